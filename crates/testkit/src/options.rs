//! The fake model's way of writing the answers of its script.

use std::ops::Range;
use std::time::Duration;

use crate::wires::Thoughts;

#[derive(Debug, Clone)]
pub struct Options {
    pub chop: Chunking,
    pub line_end: LineEnd,
    /// Comment lines between the events, as servers send them to keep a connection alive.
    pub comments: bool,
    /// Data of events over several lines, as the standard allows it.
    pub multiline: bool,
    /// Signed parts must come back as they were sent.
    pub thoughts: Thoughts,
    /// The delay before the first byte of an answer.
    pub delay: Duration,
    /// The bearer token without which every request is answered with 401.
    pub require_key: Option<String>,
    /// Keep request bodies in the log. A long benchmark turns it off: its bodies add up to gigabytes.
    pub keep_bodies: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            chop: Chunking::Whole,
            line_end: LineEnd::Lf,
            comments: false,
            multiline: false,
            thoughts: Thoughts::Checked,
            delay: Duration::ZERO,
            require_key: None,
            keep_bodies: true,
        }
    }
}

/// The cuts of an answer into writes. They fall anywhere, inside events and inside UTF-8 characters too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chunking {
    Whole,
    /// Pieces of this many bytes.
    Bytes(usize),
    /// Pieces of 1 to 48 bytes; the same seed cuts the same answer the same way.
    Random(u64),
}

impl Chunking {
    /// The places at which `length` bytes of answer number `answer` are cut.
    pub(crate) fn cuts(self, length: usize, answer: usize) -> Vec<Range<usize>> {
        let mut random = match self {
            Self::Whole | Self::Bytes(_) => XorShift::new(0),
            Self::Random(seed) => XorShift::new(seed ^ (answer as u64).rotate_left(32)),
        };
        let mut cuts = Vec::new();
        let mut from = 0;
        while from < length {
            let piece = match self {
                Self::Whole => length,
                Self::Bytes(n) => n.max(1),
                Self::Random(_) => 1 + (random.next() % 48) as usize,
            };
            let to = length.min(from.saturating_add(piece));
            cuts.push(from..to);
            from = to;
        }
        cuts
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnd {
    Lf,
    CrLf,
    Cr,
}

impl LineEnd {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::CrLf => "\r\n",
            Self::Cr => "\r",
        }
    }
}

struct XorShift(u64);

impl XorShift {
    fn new(seed: u64) -> Self {
        // The generator stays at zero forever, so no seed may become zero.
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_cover_every_byte_once_and_in_order() {
        for chop in [Chunking::Whole, Chunking::Bytes(1), Chunking::Bytes(7), Chunking::Random(3)] {
            let cuts = chop.cuts(1000, 2);
            let joined: Vec<usize> = cuts.into_iter().flatten().collect();
            assert_eq!(joined, (0..1000).collect::<Vec<_>>(), "{chop:?}");
        }
    }

    #[test]
    fn a_seed_decides_the_cuts() {
        let cuts = |seed, answer| Chunking::Random(seed).cuts(500, answer);
        assert_eq!(cuts(1, 0), cuts(1, 0));
        assert_ne!(cuts(1, 0), cuts(2, 0));
        assert_ne!(cuts(1, 0), cuts(1, 1));
    }
}
