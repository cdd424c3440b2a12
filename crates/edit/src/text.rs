//! The bytes of a text file, and the properties that an edit has to keep.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter, memmem};
use std::ops::Range;

use crate::{EditError, Encoding};

/// The line endings. A lone CR is content, as it is for git and for compilers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnding {
    Lf,
    CrLf,
}

impl LineEnding {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::CrLf => "\r\n",
        }
    }
}

/// A file's content, read as text.
///
/// The body of a UTF-8 file is a slice of the content and may contain invalid bytes; that of any other encoding is
/// decoded, and edits of it are mapped back. The mark before it is remembered and stays.
#[derive(Debug, Clone)]
pub struct TextContent<'a> {
    encoding: Encoding,
    bom: &'a [u8],
    raw: &'a [u8],
    body: Cow<'a, [u8]>,
    lf: usize,
    crlf: usize,
}

/// New bytes, in UTF-8, for a range of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Splice {
    pub range: Range<usize>,
    pub new: Vec<u8>,
    /// The number of new bytes, at their start, that only join the text to the text before.
    pub joint: usize,
}

impl<'a> TextContent<'a> {
    /// Refuses binary content: a NUL in the first 8 KiB that UTF-16 or UTF-32 does not explain.
    pub fn decode(content: &'a [u8]) -> Result<Self, EditError> {
        let (encoding, mark) = Encoding::detect(content).ok_or(EditError::Binary)?;
        Ok(Self::decode_as(content, encoding, mark))
    }

    /// Reads content whose encoding is known: after an edit, a guess might differ.
    pub(crate) fn decode_as(content: &'a [u8], encoding: Encoding, mark: usize) -> Self {
        let (bom, raw) = content.split_at(mark.min(content.len()));
        let body = encoding.decode(raw);
        // Most files have no CR at all, and counting is several times as fast as checking each line break.
        let breaks = newlines(&body);
        let crlf = match memchr(b'\r', &body) {
            Some(first) => memmem::find_iter(&body[first..], b"\r\n").count(),
            None => 0,
        };
        let lf = breaks - crlf;
        Self { encoding, bom, raw, body, lf, crlf }
    }

    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    pub fn has_bom(&self) -> bool {
        !self.bom.is_empty()
    }

    /// The text after the byte order mark, as UTF-8 except for bytes that are invalid in the file.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The body for people and models: invalid bytes become U+FFFD. Never write it back.
    pub fn lossy(&self) -> Cow<'_, str> {
        // A search for invalid bytes piece by piece takes several times as long as a check that there are none.
        match std::str::from_utf8(&self.body) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(&self.body),
        }
    }

    /// The body if it is text throughout, so that it may be changed and given to [`crate::rewrite`].
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.body).ok()
    }

    /// The more frequent line ending; LF where there is none or both are as frequent.
    pub fn ending(&self) -> LineEnding {
        if self.crlf > self.lf { LineEnding::CrLf } else { LineEnding::Lf }
    }

    /// True if both line endings occur.
    pub fn is_mixed(&self) -> bool {
        self.lf > 0 && self.crlf > 0
    }

    pub fn ends_with_newline(&self) -> bool {
        self.body.ends_with(b"\n")
    }

    /// The number of pieces between line feeds, as `split('\n')` counts: a final newline opens one more, empty, line.
    pub fn line_count(&self) -> usize {
        self.lf + self.crlf + 1
    }

    /// The content with some ranges of the body replaced, which are in order and do not overlap.
    pub(crate) fn splice(&self, splices: &[Splice]) -> Result<Vec<u8>, EditError> {
        let trimmed: Vec<(Range<usize>, &[u8])> =
            splices.iter().map(|splice| trim_common(&self.body, splice)).collect();
        let ranges: Vec<Range<usize>> = trimmed.iter().map(|(range, _)| range.clone()).collect();
        let places = self.encoding.map(self.raw, &self.body, &ranges)?;
        let mut content = Vec::with_capacity(self.bom.len() + self.raw.len());
        content.extend_from_slice(self.bom);
        let mut done = 0;
        for (place, (_, new)) in places.into_iter().zip(trimmed) {
            content.extend_from_slice(&self.raw[done..place.start]);
            if self.encoding == Encoding::Utf8 {
                content.extend_from_slice(new);
            } else {
                content.extend(self.encoding.encode(&String::from_utf8_lossy(new))?);
            }
            done = place.end;
        }
        content.extend_from_slice(&self.raw[done..]);
        Ok(content)
    }

    pub(crate) fn mark(&self) -> usize {
        self.bom.len()
    }

    /// All lines, `line_count` of them.
    pub(crate) fn lines(&self) -> Vec<TextLine> {
        let mut lines = Vec::with_capacity(self.line_count());
        let mut start = 0;
        for piece in self.body.split(|&byte| byte == b'\n') {
            let whole = start + piece.len();
            let next = (whole + 1).min(self.body.len());
            let terminated = whole < self.body.len();
            let end = if terminated && piece.ends_with(b"\r") { whole - 1 } else { whole };
            lines.push(TextLine { start, end, next });
            start = next;
        }
        lines
    }

    /// The ending that new lines at `at` should get: that of the line there, otherwise of the line before, otherwise
    /// LF. In a file with mixed endings the place decides, not the majority.
    pub(crate) fn ending_at(&self, at: usize) -> LineEnding {
        // Only a mixed file needs a search around the place, which may be long.
        if self.crlf == 0 {
            return LineEnding::Lf;
        }
        if self.lf == 0 {
            return LineEnding::CrLf;
        }
        let at = at.min(self.body.len());
        let newline = match self.body[at..].iter().position(|&byte| byte == b'\n') {
            Some(ahead) => Some(at + ahead),
            None => self.body[..at].iter().rposition(|&byte| byte == b'\n'),
        };
        match newline {
            Some(newline) if self.body[..newline].ends_with(b"\r") => LineEnding::CrLf,
            Some(_) | None => LineEnding::Lf,
        }
    }
}

/// One line of a body: its content is `start..end`, its line break `end..next`
/// (empty for the last line). Invariant: `start <= end <= next`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextLine {
    pub start: usize,
    pub end: usize,
    pub next: usize,
}

impl TextLine {
    pub fn content<'a>(&self, body: &'a [u8]) -> &'a [u8] {
        &body[self.start..self.end]
    }

    pub fn line_break<'a>(&self, body: &'a [u8]) -> &'a [u8] {
        &body[self.end..self.next]
    }
}

/// The pieces of a given text between its line breaks, of either kind.
pub(crate) fn pieces(text: &str) -> Vec<&str> {
    let mut pieces: Vec<&str> = text.split('\n').collect();
    let last = pieces.len() - 1;
    for piece in &mut pieces[..last] {
        *piece = piece.strip_suffix('\r').unwrap_or(piece);
    }
    pieces
}

/// A splice without the bytes that old and new text have in common at both ends, cut between characters: bytes that
/// need not be written are not encoded again.
fn trim_common<'a>(body: &[u8], splice: &'a Splice) -> (Range<usize>, &'a [u8]) {
    let Range { start, end } = splice.range;
    let (old, new) = (&body[start..end], splice.new.as_slice());
    let inside = |bytes: &[u8], at: usize| bytes.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    let mut head = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    while head > 0 && (inside(old, head) || inside(new, head)) {
        head -= 1;
    }
    let (old, new) = (&old[head..], &new[head..]);
    let mut tail = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    while tail > 0 && (inside(old, old.len() - tail) || inside(new, new.len() - tail)) {
        tail -= 1;
    }
    (start + head..end - tail, &new[..new.len() - tail])
}

pub(crate) fn newlines(bytes: &[u8]) -> usize {
    memchr_iter(b'\n', bytes).count()
}

pub(crate) fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

pub(crate) fn trim_end(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|&byte| !is_blank(byte)).map_or(0, |last| last + 1);
    &bytes[..end]
}

/// Splits a line into its leading whitespace and the rest.
pub(crate) fn split_indent(bytes: &[u8]) -> (&[u8], &[u8]) {
    let indent = bytes.iter().position(|&byte| !is_blank(byte)).unwrap_or(bytes.len());
    bytes.split_at(indent)
}
