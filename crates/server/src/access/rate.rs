//! The request rate of a token, and the number of wrong tokens an address may send.
//!
//! Public routes have no rate: serving them costs no more than refusing them, and a rate for an address would let one
//! client of it shut the others out.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::TokenKey;

/// Requests allowed at once, and the number regained each second.
const BURST: f64 = 1000.0;
const PER_SECOND: f64 = 500.0;
/// Wrong tokens from one address within the window, before it has to wait.
const WRONG_MAX: u32 = 30;
const WINDOW: Duration = Duration::from_secs(60);
/// Tokens and addresses that are remembered.
const KNOWN_MAX: usize = 10_000;

#[derive(Default)]
pub(crate) struct Rates {
    buckets: Mutex<HashMap<TokenKey, (f64, Instant)>>,
    wrong: Mutex<HashMap<IpAddr, (u32, Instant)>>,
}

impl Rates {
    /// Tells whether this token may send a request now.
    pub fn may_send(&self, key: TokenKey) -> bool {
        let now = Instant::now();
        let mut buckets = self.buckets.lock();
        if buckets.len() >= KNOWN_MAX {
            buckets.clear();
        }
        let (left, at) = buckets.entry(key).or_insert((BURST, now));
        *left = (*left + now.duration_since(*at).as_secs_f64() * PER_SECOND).min(BURST);
        *at = now;
        let may = *left >= 1.0;
        if may {
            *left -= 1.0;
        }
        may
    }

    /// Counts an unknown token from this address.
    pub fn count_wrong(&self, from: IpAddr) {
        let now = Instant::now();
        let mut wrong = self.wrong.lock();
        if wrong.len() >= KNOWN_MAX {
            wrong.clear();
        }
        let (count, since) = wrong.entry(from).or_insert((0, now));
        if now.duration_since(*since) > WINDOW {
            (*count, *since) = (0, now);
        }
        *count += 1;
    }

    /// Tells whether too many wrong tokens came from this address lately.
    pub fn is_guessing(&self, from: IpAddr) -> bool {
        let wrong = self.wrong.lock();
        wrong.get(&from).is_some_and(|(count, since)| *count > WRONG_MAX && since.elapsed() <= WINDOW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_too_often_waits_and_others_do_not() {
        let rates = Rates::default();
        let (a, b) = (TokenKey::of("a"), TokenKey::of("b"));
        let allowed = (0..3000).filter(|_| rates.may_send(a)).count();
        assert!((1000..2900).contains(&allowed), "{allowed}");
        assert!(rates.may_send(b));
    }

    #[test]
    fn who_guesses_tokens_is_kept_out() {
        let rates = Rates::default();
        let from: IpAddr = "127.0.0.1".parse().unwrap();
        (0..WRONG_MAX).for_each(|_| rates.count_wrong(from));
        assert!(!rates.is_guessing(from));
        rates.count_wrong(from);
        assert!(rates.is_guessing(from));
        assert!(!rates.is_guessing("127.0.0.2".parse().unwrap()));
    }
}
