//! The position of a client in the frames of a session.

use std::fmt;
use std::str::FromStr;

use lathe_protocol::Seq;

/// After this many frames of event `seq`. `12` means all of event 12.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    pub seq: Seq,
    pub part: u32,
}

impl Cursor {
    pub const START: Cursor = Cursor { seq: Seq(0), part: u32::MAX };

    /// Everything of an event was seen.
    pub fn after(seq: Seq) -> Self {
        Self { seq, part: u32::MAX }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part {
            u32::MAX => write!(f, "{}", self.seq),
            part => write!(f, "{}.{part}", self.seq),
        }
    }
}

/// Not the form of a cursor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a cursor is a number, or two with a point between, as in 12 or 12.3")]
pub struct NoCursor;

impl FromStr for Cursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Self, NoCursor> {
        let number = |text: &str| text.parse::<u64>().map_err(|_| NoCursor);
        match text.split_once('.') {
            None => Ok(Self::after(Seq(number(text)?))),
            Some((seq, part)) => {
                Ok(Self { seq: Seq(number(seq)?), part: part.parse().map_err(|_| NoCursor)? })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_is_written() {
        for text in ["0", "12", "12.1", "12.40"] {
            assert_eq!(text.parse::<Cursor>().unwrap().to_string(), text);
        }
        for text in ["", "x", "-1", "1.", ".1", "1.2.3", "1.-2", "99999999999999999999"] {
            assert_eq!(text.parse::<Cursor>(), Err(NoCursor), "{text}");
        }
    }

    #[test]
    fn parts_of_an_event_come_before_the_whole_of_it() {
        let cursors: Vec<Cursor> =
            ["11", "12.1", "12.2", "12", "13.1"].map(|text| text.parse().unwrap()).into();
        assert!(cursors.is_sorted());
    }
}
