//! Edits of whole lines and of whole files.

use std::ops::Range;

use crate::edited::EditDraft;
use crate::text::{Splice, pieces};
use crate::{EditError, Edited, LineEnding, MatchKind, TextContent};

/// Inserts `text` as whole lines after line `after_line`, where 0 is the start.
///
/// One newline at the end of `text` ends its last line and does not add an empty one; a text without it gets one. The
/// end of the file stays as it was: after a last line without newline, a newline is put in between and none at the
/// end. Lines may be counted with or without the empty piece after a final newline, so `after_line` goes up to
/// [`TextContent::line_count`].
pub fn insert(content: &[u8], after_line: usize, text: &str) -> Result<Edited, EditError> {
    let file = TextContent::decode(content)?;
    insertion(&file, after_line, text)?.finish(&file)
}

pub(crate) fn insertion(
    file: &TextContent<'_>,
    after_line: usize,
    text: &str,
) -> Result<EditDraft, EditError> {
    if after_line > file.line_count() {
        return Err(EditError::LineOutOfRange { line: after_line, lines: file.line_count() });
    }
    if text.is_empty() {
        return Err(EditError::NoChange);
    }
    let body = file.body();
    let lines = file.lines();
    let at = match after_line.checked_sub(1) {
        Some(index) => lines[index].next,
        None => 0,
    };
    if body.is_empty() {
        return Ok(one(at..at, text.as_bytes().to_vec(), 0, 0));
    }
    // The line before decides the ending; at the very start, the first line does.
    let ending = file.ending_at(lines[after_line.saturating_sub(1)].start).as_str();
    let mut block = joined(text, ending);
    let after_unended = at == body.len() && !file.ends_with_newline();
    let joint = if after_unended { ending.len() } else { 0 };
    if after_unended {
        block.splice(..0, ending.bytes());
    } else {
        block.extend_from_slice(ending.as_bytes());
    }
    Ok(one(at..at, block, joint, 0))
}

/// Replaces whole lines, counted from 1, the end not included, by the lines of `text`; an empty text deletes them.
/// The newline at the end of `text` may be left out, and the end of the file stays as it was.
pub(crate) fn replacement(
    file: &TextContent<'_>,
    range: &Range<usize>,
    text: &str,
) -> Result<EditDraft, EditError> {
    let lines = file.lines();
    // The empty piece after a final newline is not a line to replace.
    let count = lines.len() - usize::from(lines.len() > 1 && file.ends_with_newline());
    for line in [range.start, range.end.saturating_sub(1).max(range.start)] {
        if !(1..=count).contains(&line) {
            return Err(EditError::LineOutOfRange { line, lines: count });
        }
    }
    if range.is_empty() {
        return insertion(file, range.start - 1, text);
    }
    let (first, last) = (&lines[range.start - 1], &lines[range.end - 2]);
    let ending = file.ending_at(first.start).as_str();
    let unended = last.end == last.next;
    let mut block = if text.is_empty() { Vec::new() } else { joined(text, ending) };
    let mut start = first.start;
    if text.is_empty() && unended && range.start > 1 {
        // Deleting the last line removes the break before it, or the file would end differently.
        start = lines[range.start - 2].end;
    } else if !text.is_empty() && !unended {
        block.extend_from_slice(last.line_break(file.body()));
    }
    Ok(one(start..last.next, block, 0, 1))
}

/// Replaces the whole content and keeps its other properties: the encoding, the byte order mark and the most frequent
/// line ending. A text that has CRLFs itself is taken as it is, and so is its final newline. Binary content is simply
/// replaced.
pub fn rewrite(content: &[u8], text: &str) -> Result<Edited, EditError> {
    match TextContent::decode(content) {
        Ok(file) => whole_draft(&file, text).finish(&file),
        Err(EditError::Binary) => {
            let file = TextContent::decode(b"")?;
            whole_draft(&file, text).finish(&file)
        }
        Err(error) => Err(error),
    }
}

pub(crate) fn whole_draft(file: &TextContent<'_>, text: &str) -> EditDraft {
    let text = if file.has_bom() { text.strip_prefix('\u{feff}').unwrap_or(text) } else { text };
    let new = match file.ending() {
        LineEnding::CrLf if !text.contains("\r\n") => text.replace('\n', "\r\n"),
        LineEnding::CrLf | LineEnding::Lf => text.to_owned(),
    };
    one(0..file.body().len(), new.into_bytes(), 0, 1)
}

/// The lines of a text, joined with the given ending.
fn joined(text: &str, ending: &str) -> Vec<u8> {
    let mut given = pieces(text);
    if given.len() > 1 && given.last() == Some(&"") {
        given.pop();
    }
    given.join(ending).into_bytes()
}

fn one(range: Range<usize>, new: Vec<u8>, joint: usize, replaced: usize) -> EditDraft {
    EditDraft { matched: MatchKind::Exact, splices: vec![Splice { range, new, joint }], replaced }
}
