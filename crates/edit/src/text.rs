//! The bytes of a text file, and what an edit has to keep of them.

use std::borrow::Cow;

use crate::EditError;

const BOM: &[u8] = "\u{feff}".as_bytes();
const BINARY_PROBE: usize = 8 * 1024;

/// How a line ends. A lone CR is content, as it is for git and for compilers.
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

/// A file's content, looked at as text without being decoded.
///
/// The body is a slice of the content and may hold invalid UTF-8; the mark
/// before it is remembered and written again.
#[derive(Debug, Clone, Copy)]
pub struct Text<'a> {
    bom: &'a [u8],
    body: &'a [u8],
    lf: usize,
    crlf: usize,
}

impl<'a> Text<'a> {
    /// Refuses content with a NUL in its first 8 KiB. UTF-16 falls under this too.
    pub fn decode(content: &'a [u8]) -> Result<Self, EditError> {
        if is_binary(content) {
            return Err(EditError::Binary);
        }
        let (bom, body) = match content.strip_prefix(BOM) {
            Some(body) => content.split_at(content.len() - body.len()),
            None => content.split_at(0),
        };
        let (mut lf, mut crlf) = (0, 0);
        let mut before = 0;
        for &byte in body {
            if byte == b'\n' {
                if before == b'\r' {
                    crlf += 1;
                } else {
                    lf += 1;
                }
            }
            before = byte;
        }
        Ok(Self { bom, body, lf, crlf })
    }

    pub fn has_bom(&self) -> bool {
        !self.bom.is_empty()
    }

    /// The content after the byte order mark.
    pub fn body(&self) -> &'a [u8] {
        self.body
    }

    /// The body for people and models: invalid bytes become U+FFFD. Never write it back.
    pub fn lossy(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.body)
    }

    /// The more frequent line ending; LF where there is none or both are as frequent.
    pub fn ending(&self) -> LineEnding {
        if self.crlf > self.lf { LineEnding::CrLf } else { LineEnding::Lf }
    }

    /// Whether both line endings occur.
    pub fn is_mixed(&self) -> bool {
        self.lf > 0 && self.crlf > 0
    }

    pub fn ends_with_newline(&self) -> bool {
        self.body.ends_with(b"\n")
    }

    /// The number of pieces between line feeds, as `split('\n')` counts: a final
    /// newline opens one more, empty, line.
    pub fn line_count(&self) -> usize {
        self.lf + self.crlf + 1
    }

    pub(crate) fn bom(&self) -> &'a [u8] {
        self.bom
    }

    /// All lines, as many as `line_count` says.
    pub(crate) fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::with_capacity(self.line_count());
        let mut start = 0;
        for piece in self.body.split(|&byte| byte == b'\n') {
            let whole = start + piece.len();
            let next = (whole + 1).min(self.body.len());
            let terminated = whole < self.body.len();
            let end = if terminated && piece.ends_with(b"\r") { whole - 1 } else { whole };
            lines.push(Line { start, end, next });
            start = next;
        }
        lines
    }

    /// The ending that new lines at `at` should get: that of the line there, else
    /// of the line before, else LF. In a file with mixed endings the place
    /// decides, not the majority.
    pub(crate) fn ending_at(&self, at: usize) -> LineEnding {
        // Only a mixed file needs a look around, which may be long.
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
pub(crate) struct Line {
    pub start: usize,
    pub end: usize,
    pub next: usize,
}

impl Line {
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

pub(crate) fn is_binary(content: &[u8]) -> bool {
    content[..content.len().min(BINARY_PROBE)].contains(&0)
}

pub(crate) fn newlines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte == b'\n').count()
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
