//! Redaction of text that comes in pieces.

use crate::Redactor;

/// The line before a break decides whether it is a break in base64, so its end is remembered.
const CONTEXT: usize = 24;

/// More than this is held only of a secret that invisible characters stretch.
const MOST: usize = 1 << 16;

/// Holds back the end of the text so far only if it may be the beginning of a secret: all other text is given out at
/// once.
pub struct Stream<'a> {
    redactor: &'a Redactor,
    held: Vec<u8>,
    /// The length of the beginning of `held` that was given out before.
    given: usize,
}

impl<'a> Stream<'a> {
    pub(crate) fn new(redactor: &'a Redactor) -> Self {
        Self { redactor, held: Vec::new(), given: 0 }
    }

    /// Adds text; returns the text that may be shown now.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        if self.redactor.finder.is_none() {
            return bytes.to_vec();
        }
        self.held.extend_from_slice(bytes);
        let whole = self.held.len() - unfinished(&self.held);
        let looked = self.redactor.scan(self.held.get(..whole).unwrap_or_default(), true);
        let mut cut = looked.begun.max(self.given);
        // A secret is not cut in two by a possible beginning of another.
        if let Some(over) = looked.found.iter().find(|found| found.range.start < cut && cut < found.range.end)
        {
            cut = over.range.start.max(self.given);
        }
        let out = self.redactor.replaced(&self.held, self.given..cut, &looked.found);
        if whole - cut > MOST {
            self.shorten(cut, whole);
        }
        let context = cut.min(CONTEXT);
        self.held.drain(..cut - context);
        self.given = context;
        out
    }

    /// Drops the invisible part of the held text from `cut` on, except for a sequence that may continue.
    fn shorten(&mut self, cut: usize, whole: usize) {
        let near = whole.saturating_sub(CONTEXT);
        let last = self.held.get(near..whole).and_then(|end| end.iter().rposition(|byte| *byte == 0x1b));
        let end = last.map_or(whole, |last| near + last);
        let looked = self.redactor.scan(self.held.get(..end).unwrap_or_default(), true);
        if looked.begun == cut {
            self.held.splice(cut..end, looked.rest);
        }
    }

    /// Returns the rest, when nothing more comes.
    pub fn finish(self) -> Vec<u8> {
        if self.redactor.finder.is_none() {
            return Vec::new();
        }
        let found = self.redactor.scan(&self.held, false).found;
        self.redactor.replaced(&self.held, self.given..self.held.len(), &found)
    }
}

/// The number of bytes at the end that begin a character: it may be an invisible one.
fn unfinished(bytes: &[u8]) -> usize {
    let end = bytes.get(bytes.len().saturating_sub(3)..).unwrap_or_default();
    let first = end.iter().rposition(|byte| *byte >= 0xc0);
    let begun = first.and_then(|first| end.get(first..)).unwrap_or_default();
    match std::str::from_utf8(begun) {
        Err(error) if error.error_len().is_none() => begun.len(),
        Ok(_) | Err(_) => 0,
    }
}
