//! The checksum of a row.
//!
//! SQLite checks its write-ahead log but not its pages, so a bit that flips on disk would be shown as the record.
//! CRC-32 finds every single flip and every burst of up to 32 bits; it does not protect against an attacker who edits
//! the file and recomputes the checksum.

use crc32fast::Hasher;

/// The cells of an event's row, as stored in the file.
pub(crate) struct Cells<'a> {
    pub seq: i64,
    pub at: &'a str,
    pub run: u32,
    pub agent: &'a str,
    pub step: Option<u32>,
    pub call: Option<&'a str>,
    pub cause: Option<i64>,
    pub kind: &'a str,
    pub v: u16,
    pub body: Option<&'a str>,
    pub blob: Option<&'a str>,
}

impl Cells<'_> {
    /// The checksum covers every cell with its length and presence, so no two rows look alike.
    pub fn sum(&self) -> u32 {
        let mut sum = Hasher::new();
        let mut number = |number: Option<i64>| {
            sum.update(&[u8::from(number.is_some())]);
            sum.update(&number.unwrap_or_default().to_le_bytes());
        };
        number(Some(self.seq));
        number(Some(self.run.into()));
        number(self.step.map(i64::from));
        number(self.cause);
        number(Some(self.v.into()));
        let texts = [Some(self.at), Some(self.agent), self.call, Some(self.kind), self.body, self.blob];
        for text in texts {
            sum.update(&[u8::from(text.is_some())]);
            let text = text.unwrap_or_default();
            sum.update(&text.len().to_le_bytes());
            sum.update(text.as_bytes());
        }
        sum.finalize()
    }
}

/// The checksum of a saved state and the event it goes up to.
pub(crate) fn of_state(upto: i64, state: &[u8]) -> u32 {
    let mut sum = Hasher::new();
    sum.update(&upto.to_le_bytes());
    sum.update(state);
    sum.finalize()
}

/// The checksum of the seal.
pub(crate) fn of_seal(since: i64, last: i64) -> u32 {
    of_state(since, &last.to_le_bytes())
}
