//! What an edit gives back: the new content, or why there is none.

use std::ops::Range;

/// How loosely the old text had to be read to be found. The order is the order
/// of the ladder: a later rung is tried only when all earlier ones found nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchKind {
    /// Byte for byte.
    Exact,
    /// Equal when LF and CRLF count as the same line break.
    LineEndings,
    /// Equal when also blanks at the ends of lines do not count.
    TrailingBlanks,
    /// Whole lines equal but for their leading whitespace, nested the same way.
    Indentation,
}

/// A finished edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// The whole new content.
    pub content: Vec<u8>,
    pub matched: MatchKind,
    /// The lines the new text occupies in `content`, counted from 1, the end not
    /// included. A deletion leaves an empty range where the text was.
    pub regions: Vec<Range<usize>>,
    /// How many places were replaced; an insertion replaces none.
    pub replaced: usize,
}

/// The place most like an old text that was not found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nearest {
    /// Its first line, counted from 1.
    pub line: usize,
    /// The lines as they stand in the file, without the last line break.
    pub text: String,
}

/// Why an edit was not made. The content is as it was in every case.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error("the file is binary")]
    Binary,
    #[error("the text to replace is empty")]
    EmptyOld,
    #[error("the edit changes nothing")]
    NoChange,
    #[error("the text to replace was not found")]
    NoMatch { nearest: Option<Nearest> },
    /// The first line of each match, counted from 1.
    #[error("the text to replace was found {} times, at lines {lines:?}", lines.len())]
    Ambiguous { lines: Vec<usize> },
    /// `lines` is the largest line after which text can be inserted.
    #[error("line {line} is not within 0..={lines}")]
    LineOutOfRange { line: usize, lines: usize },
}
