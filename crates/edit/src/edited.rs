//! What an edit gives back: the new content, or why there is none.

use std::ops::Range;

use crate::Text;
use crate::text::{Splice, newlines};

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
    /// From the first word of a line on, equal but for the whitespace between words and
    /// signs. Tried only when the caller asked for it, as the next.
    Tokens,
    /// Whole lines nearly equal.
    Fuzzy,
}

/// A finished edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// The whole new content.
    pub content: Vec<u8>,
    /// The loosest reading that was needed.
    pub matched: MatchKind,
    /// The lines the old text occupied, counted from 1 as they stood when the edit
    /// was made, the end not included. Empty ranges are places of insertions.
    pub found: Vec<Range<usize>>,
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
    /// The text stands there with other whitespace, and how the new text is to be indented
    /// there does not follow from what was given.
    #[error("the text to replace is at line {} with other whitespace, and the indentation of the new text is not clear", place.line)]
    Unclear { place: Nearest },
    /// The new text holds this line, which only says that code was left out.
    #[error("the new text leaves code out: {line:?}")]
    LeftOut { line: String },
    /// The first line of each match, counted from 1.
    #[error("the text to replace was found {} times, at lines {lines:?}", lines.len())]
    Ambiguous { lines: Vec<usize> },
    /// `lines` is the largest line after which text can be inserted.
    #[error("line {line} is not within 0..={lines}")]
    LineOutOfRange { line: usize, lines: usize },
    /// The matches are not as many as the caller said. `lines` as in `Ambiguous`.
    #[error("the text to replace was found {} times, not {wanted}, at lines {lines:?}", lines.len())]
    WrongCount { wanted: usize, lines: Vec<usize> },
    #[error("the file is {encoding}, which has no {character:?}")]
    Unencodable { character: char, encoding: &'static str },
    /// Two edits of one transaction, counted from 1, want the same lines.
    #[error("edits {first} and {second} overlap")]
    Overlap { first: usize, second: usize },
    /// The edit of a transaction, counted from 1, that cannot be made. No other was made either.
    #[error("edit {edit}: {error}")]
    In { edit: usize, error: Box<EditError> },
}

/// An edit that is decided and not yet made.
pub(crate) struct Draft {
    pub matched: MatchKind,
    /// In order and apart.
    pub splices: Vec<Splice>,
    pub replaced: usize,
}

impl Draft {
    pub fn finish(self, text: &Text<'_>) -> Result<Edited, EditError> {
        let Self { matched, splices, replaced } = self;
        let body = text.body();
        // A looser match may differ from the new text only by what was ignored.
        if splices.iter().all(|splice| body[splice.range.clone()] == *splice.new) {
            return Err(EditError::NoChange);
        }
        let content = text.splice(&splices)?;
        let (mut found, mut regions) = (Vec::new(), Vec::new());
        let (mut done, mut old_line, mut line) = (0, 1, 1);
        for Splice { range, new, joint } in splices {
            let kept = newlines(&body[done..range.start]);
            let old = &body[range.clone()];
            found.push(span(old_line + kept, old));
            old_line += kept + newlines(old);
            let joined = newlines(&new[..joint]);
            regions.push(span(line + kept + joined, &new[joint..]));
            line += kept + newlines(&new);
            done = range.end;
        }
        Ok(Edited { content, matched, found, regions, replaced })
    }
}

/// The lines that bytes occupy which begin in line `first`.
pub(crate) fn span(first: usize, bytes: &[u8]) -> Range<usize> {
    let ended = bytes.is_empty() || bytes.ends_with(b"\n");
    first..first + newlines(bytes) + usize::from(!ended)
}
