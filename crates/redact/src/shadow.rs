//! The visible part of a text that has invisible characters.
//!
//! A secret with a colour in its middle is whole on a screen, because screens drop controls and characters without a
//! width; one in wrapped base64 is whole for a reader who joins the lines. So a text is read once more without these
//! stretches, and a secret found so is replaced in its place, together with them. Only their surroundings are read
//! again: a secret in one piece was found before.

use std::ops::Range;

/// A line of base64 with this many characters continues in the next.
const WRAPPED: usize = 8;

/// The most bytes that are read at once, however densely a text is strewn with controls.
const BLOCK: usize = 1 << 20;

/// The treatments of control characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ControlHandling {
    /// As our own screens drop them: a sequence continues until it ends.
    Dropped,
    /// As [`Self::Dropped`], but a sequence ends with its line.
    ByLine,
    /// As a terminal does: it knows more sequences, but one that does not end before the next control is not a
    /// sequence, and a backspace removes the character before it.
    Terminal,
}

/// The treatment of line breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BreakHandling {
    /// A line break in the middle of base64 is invisible.
    Base64Joined,
    Kept,
}

/// The visible pieces of a text, joined.
pub(crate) struct Shadow<'a> {
    raw: &'a [u8],
    reading: ControlHandling,
    /// The length of the longest secret.
    longest: usize,
    seen: Vec<u8>,
    /// The beginning of each piece: in `seen`, and in `raw`.
    pieces: Vec<(usize, usize)>,
    /// True if another reading may give a different result.
    pub(crate) is_ambiguous: bool,
}

impl<'a> Shadow<'a> {
    /// Passes the visible text to `look`, part by part. `None` if all of the text is visible.
    pub(crate) fn cast(
        raw: &'a [u8],
        reading: ControlHandling,
        breaks: BreakHandling,
        longest: usize,
        mut look: impl FnMut(&Self),
    ) -> Option<Self> {
        let first = next_unseen(raw, 0, reading, breaks)?;
        let (seen, pieces) = (Vec::new(), Vec::new());
        let mut shadow = Self { raw, reading, longest, seen, pieces, is_ambiguous: false };
        let (mut from, mut next) = (0, Some(first));
        while let Some(Range { start, end }) = next {
            shadow.keep(from..start, &mut look);
            shadow.pass(start);
            from = end;
            next = next_unseen(raw, from, reading, breaks);
        }
        shadow.keep(from..raw.len(), &mut look);
        look(&shadow);
        Some(shadow)
    }

    pub(crate) fn seen(&self) -> &[u8] {
        &self.seen
    }

    /// The position in the text of a visible byte.
    fn place(&self, at: usize) -> usize {
        let piece = self.pieces.partition_point(|(seen, _)| *seen <= at).saturating_sub(1);
        self.pieces.get(piece).map_or(at, |(seen, raw)| raw + (at - seen))
    }

    /// The range in the text of a visible range.
    pub(crate) fn range(&self, seen: Range<usize>) -> Range<usize> {
        self.place(seen.start)..self.place(seen.end.saturating_sub(1)) + 1
    }

    fn pass(&mut self, at: usize) {
        let byte = self.raw.get(at);
        self.is_ambiguous |= matches!(byte, Some(0x08 | 0x1b | 0xc2));
        if byte == Some(&0x08) && self.reading == ControlHandling::Terminal {
            self.erase();
        }
    }

    /// Removes the last character, if there is one in the line.
    fn erase(&mut self) {
        let mut at = self.seen.len().saturating_sub(1);
        while at > 0 && self.seen.get(at).is_some_and(|byte| byte & 0xc0 == 0x80) {
            at -= 1;
        }
        if self.seen.get(at) != Some(&b'\n') {
            self.seen.truncate(at);
            while self.pieces.pop_if(|(seen, _)| *seen >= at).is_some() {}
        }
    }

    fn keep(&mut self, piece: Range<usize>, look: &mut impl FnMut(&Self)) {
        if piece.len() > 2 * self.longest {
            self.push(piece.start..piece.start + self.longest);
            look(self);
            self.forget(0);
            self.push(piece.end - self.longest..piece.end);
        } else {
            self.push(piece);
        }
        if self.seen.len() > BLOCK + self.longest {
            look(self);
            self.forget(self.longest);
        }
    }

    fn push(&mut self, piece: Range<usize>) {
        if !piece.is_empty() {
            self.pieces.push((self.seen.len(), piece.start));
            self.seen.extend_from_slice(self.raw.get(piece).unwrap_or_default());
        }
    }

    /// Drops all but the last `kept` bytes.
    fn forget(&mut self, kept: usize) {
        let gone = self.seen.len() - kept;
        let first = (gone < self.seen.len()).then(|| (0, self.place(gone)));
        let rest = self.pieces.iter().filter(|(seen, _)| *seen > gone).map(|(seen, raw)| (seen - gone, *raw));
        self.pieces = first.into_iter().chain(rest).collect();
        self.seen.drain(..gone);
    }
}

/// The next invisible stretch.
fn next_unseen(
    raw: &[u8],
    from: usize,
    reading: ControlHandling,
    breaks: BreakHandling,
) -> Option<Range<usize>> {
    let mut at = from;
    loop {
        at += raw.get(at..)?.iter().position(|byte| may_be_unseen(*byte))?;
        if let Some(end) = unseen(raw, at, reading, breaks) {
            return Some(at..end.min(raw.len()));
        }
        at += 1;
    }
}

/// Controls, and the first bytes of invisible characters.
fn may_be_unseen(byte: u8) -> bool {
    byte < 0x20 && byte != b'\t' || matches!(byte, 0x7f | 0xc2 | 0xcc | 0xd8 | 0xe1 | 0xe2 | 0xef | 0xf3)
}

/// The end of the stretch that begins here.
fn unseen(raw: &[u8], at: usize, reading: ControlHandling, breaks: BreakHandling) -> Option<usize> {
    match *raw.get(at)? {
        b'\n' => (breaks == BreakHandling::Base64Joined && wraps(raw, at, at + 1)).then_some(at + 1),
        b'\r' if raw.get(at + 1) == Some(&b'\n') => {
            (breaks == BreakHandling::Base64Joined && wraps(raw, at, at + 2)).then_some(at + 2)
        }
        b'\t' => None,
        0x1b => Some(escape(raw, at + 1, reading)),
        0..0x20 | 0x7f => Some(at + 1),
        _ => {
            let c = character(raw, at)?;
            let end = at + c.len_utf8();
            match c {
                '\u{9b}' if reading == ControlHandling::Terminal => Some(csi(raw, end, reading)),
                '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' if reading == ControlHandling::Terminal => {
                    Some(text_of(raw, end, reading))
                }
                c => (c.is_control() || is_hidden(c)).then_some(end),
            }
        }
    }
}

fn character(raw: &[u8], at: usize) -> Option<char> {
    let width = match raw.get(at)? {
        0..0x80 => 1,
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        _ => 4,
    };
    std::str::from_utf8(raw.get(at..at + width)?).ok()?.chars().next()
}

/// Tells whether screens drop a character inside a word.
pub(crate) fn is_unseen(c: char) -> bool {
    (c.is_control() && !c.is_whitespace()) || is_hidden(c)
}

/// Characters without a width.
fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Tells whether a break between two lines only wraps base64. The last line of the text so far may continue.
fn wraps(raw: &[u8], end: usize, next: usize) -> bool {
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte);
    let before = end.checked_sub(WRAPPED).and_then(|begin| raw.get(begin..end));
    before.is_some_and(|line| line.iter().rev().all(is_base64)) && raw.get(next).is_none_or(is_base64)
}

/// The end of a sequence whose ESC stands before `at`.
fn escape(raw: &[u8], at: usize, reading: ControlHandling) -> usize {
    match raw.get(at) {
        Some(b'[') => csi(raw, at + 1, reading),
        Some(b']' | b'P' | b'^' | b'_' | b'X') => text_of(raw, at + 1, reading),
        // For example `ESC ( B`, which programs print to end a colour.
        Some(0x20..0x30) if reading == ControlHandling::Terminal => at + 2,
        Some(_) => at + character(raw, at).map_or(1, char::len_utf8),
        None => at,
    }
}

/// Tells whether a sequence ends before this byte, even if it is incomplete.
fn is_beyond(byte: u8, reading: ControlHandling) -> bool {
    reading == ControlHandling::ByLine && byte == b'\n'
}

/// The end of a sequence, after its final letter.
fn csi(raw: &[u8], at: usize, reading: ControlHandling) -> usize {
    let rest = raw.get(at..).unwrap_or_default();
    let is_final = |byte: &u8| (0x40..0x7f).contains(byte);
    if reading != ControlHandling::Terminal {
        let end = rest.iter().position(|byte| is_final(byte) || is_beyond(*byte, reading));
        let end = end.unwrap_or(rest.len());
        return at + end + usize::from(rest.get(end).is_some_and(is_final));
    }
    let end = rest.iter().position(|byte| !(0x20..0x40).contains(byte)).unwrap_or(rest.len());
    if rest.get(end).is_some_and(is_final) { at + end + 1 } else { at }
}

/// The end of OSC and similar sequences: after BEL or ST.
fn text_of(raw: &[u8], at: usize, reading: ControlHandling) -> usize {
    let rest = raw.get(at..).unwrap_or_default();
    let end_at = |place: usize| match (rest.get(place), rest.get(place + 1)) {
        (Some(0x07), _) => Some(place + 1),
        (Some(0x1b), Some(b'\\')) | (Some(0xc2), Some(0x9c)) => Some(place + 2),
        _ => None,
    };
    if reading != ControlHandling::Terminal {
        // Our screens know ST only in its form with ESC.
        let is_end = |(place, byte): (usize, &u8)| match byte {
            0xc2 => None,
            byte if is_beyond(*byte, reading) => Some(place),
            _ => end_at(place),
        };
        return at + rest.iter().enumerate().find_map(is_end).unwrap_or(rest.len());
    }
    let is_control = |place: &usize| match rest.get(*place) {
        Some(0xc2) => rest.get(place + 1).is_some_and(|next| (0x80..0xa0).contains(next)),
        byte => byte.is_some_and(|byte| *byte < 0x20),
    };
    at + (0..rest.len()).find(is_control).and_then(end_at).unwrap_or(0)
}
