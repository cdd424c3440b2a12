//! The result of an edit: the new content, or the reason why there is none.

use std::ops::Range;

use crate::TextContent;
use crate::text::{Splice, newlines};

/// The looseness with which the old text was found. The order is that of the ladder: a later rung is tried only when
/// all earlier ones found nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchKind {
    /// Byte for byte.
    Exact,
    /// Equal when LF and CRLF count as the same line break.
    LineEndings,
    /// Equal when blanks at the ends of lines do not count either.
    TrailingBlanks,
    /// Whole lines equal except for their leading whitespace, nested the same way.
    Indentation,
    /// From the first word of a line on, equal except for the whitespace between words and signs. Tried only when the
    /// caller asked for it, like the next.
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
    /// The lines of the old text, counted from 1 at the time of the edit, the end not included. Empty ranges are
    /// places of insertions.
    pub found: Vec<Range<usize>>,
    /// The lines of the new text in `content`, counted from 1, the end not included. A deletion leaves an empty range
    /// at the place of the text.
    pub regions: Vec<Range<usize>>,
    /// The number of places that were replaced; an insertion replaces none.
    pub replaced: usize,
}

/// The place most like an old text that was not found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nearest {
    /// Its first line, counted from 1.
    pub line: usize,
    /// The lines as they are in the file, without the last line break.
    pub text: String,
}

/// The reasons why an edit was not made. The content is unchanged in every case.
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
    /// The text is there with other whitespace, and the given texts do not determine the indentation of the new text.
    #[error("the text to replace is at line {} with other whitespace, and the indentation of the new text is not clear", place.line)]
    Unclear { place: Nearest },
    /// The new text contains this line, which only says that code was left out.
    #[error("the new text leaves code out: {line:?}")]
    LeftOut { line: String },
    /// The first line of each match, counted from 1.
    #[error("the text to replace was found {} times, at lines {lines:?}", lines.len())]
    Ambiguous { lines: Vec<usize> },
    /// `lines` is the largest line after which text can be inserted.
    #[error("line {line} is not within 0..={lines}")]
    LineOutOfRange { line: usize, lines: usize },
    /// The number of matches differs from the caller's. `lines` as in `Ambiguous`.
    #[error("the text to replace was found {} times, not {wanted}, at lines {lines:?}", lines.len())]
    WrongCount { wanted: usize, lines: Vec<usize> },
    #[error("the file is {encoding}, which has no {character:?}")]
    Unencodable { character: char, encoding: &'static str },
    /// Two edits of one transaction, counted from 1, change the same lines.
    #[error("edits {first} and {second} overlap")]
    Overlap { first: usize, second: usize },
    /// The edit of a transaction, counted from 1, that cannot be made. No other was made either.
    #[error("edit {edit}: {error}")]
    In { edit: usize, error: Box<EditError> },
}

/// An edit that is decided and not yet made.
pub(crate) struct EditDraft {
    pub matched: MatchKind,
    /// In order, without overlaps.
    pub splices: Vec<Splice>,
    pub replaced: usize,
}

impl EditDraft {
    pub fn finish(self, text: &TextContent<'_>) -> Result<Edited, EditError> {
        let Self { matched, splices, replaced } = self;
        let body = text.body();
        // A looser match may differ from the new text only by the ignored characters.
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

/// The lines of these bytes if they begin in line `first`.
pub(crate) fn span(first: usize, bytes: &[u8]) -> Range<usize> {
    let ended = bytes.is_empty() || bytes.ends_with(b"\n");
    first..first + newlines(bytes) + usize::from(!ended)
}
