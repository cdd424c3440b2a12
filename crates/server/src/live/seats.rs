//! Seats: the right to have a session open. There is a fixed number for all, and half of them for one token.
//!
//! A seat is taken before a session is started and freed when the session was closed, so sessions started at the same
//! time cannot exceed the number of seats: a count of open sessions does not know those that are being opened.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::access::TokenKey;

pub(crate) struct SessionSeats {
    /// The number of seats for all tokens together.
    most: usize,
    taken: Arc<Mutex<HashMap<TokenKey, usize>>>,
}

/// The right to have one session open.
#[derive(Debug)]
pub(crate) struct SessionSeat {
    pub key: TokenKey,
    taken: Arc<Mutex<HashMap<TokenKey, usize>>>,
}

/// The reason why a seat was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SeatRefusal {
    /// The token has its share.
    OfToken,
    OfAll,
}

impl SessionSeats {
    pub fn new(most: usize) -> Self {
        Self { most, taken: Arc::default() }
    }

    pub fn most(&self) -> usize {
        self.most
    }

    /// The share of one token.
    pub fn each(&self) -> usize {
        (self.most / 2).max(2)
    }

    pub fn take(&self, key: TokenKey) -> Result<SessionSeat, SeatRefusal> {
        let mut taken = self.taken.lock();
        if taken.get(&key).is_some_and(|own| *own >= self.each()) {
            return Err(SeatRefusal::OfToken);
        }
        if taken.values().sum::<usize>() >= self.most {
            return Err(SeatRefusal::OfAll);
        }
        *taken.entry(key).or_default() += 1;
        Ok(SessionSeat { key, taken: Arc::clone(&self.taken) })
    }
}

impl Drop for SessionSeat {
    fn drop(&mut self) {
        let mut taken = self.taken.lock();
        if let Some(own) = taken.get_mut(&self.key) {
            *own -= 1;
            if *own == 0 {
                taken.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_token_has_half_of_the_seats_and_all_have_no_more_than_there_are() {
        let seats = SessionSeats::new(6);
        let [a, b, c] = ["a", "b", "c"].map(TokenKey::of);
        let mut held: Vec<SessionSeat> = (0..3).map(|_| seats.take(a).unwrap()).collect();
        assert_eq!(seats.take(a).unwrap_err(), SeatRefusal::OfToken);
        held.extend((0..3).map(|_| seats.take(b).unwrap()));
        assert_eq!(seats.take(c).unwrap_err(), SeatRefusal::OfAll);
        held.remove(0);
        held.push(seats.take(c).unwrap());
        assert_eq!(seats.take(a).unwrap_err(), SeatRefusal::OfAll);
        held.clear();
        assert!(seats.taken.lock().is_empty());
    }
}
