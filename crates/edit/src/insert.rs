//! Insertion of lines.

use crate::text::{newlines, pieces};
use crate::{EditError, Edited, MatchKind, Text};

/// Inserts `text` as whole lines after line `after_line`, where 0 is the start.
///
/// One newline at the end of `text` ends its last line and does not add an empty
/// one; a text without it gets one. The file ends as it did: after a last line
/// without newline, a newline is put between and none at the end. Lines may be
/// counted with or without the empty piece after a final newline, so `after_line`
/// goes up to [`Text::line_count`].
pub fn insert(content: &[u8], after_line: usize, text: &str) -> Result<Edited, EditError> {
    let file = Text::decode(content)?;
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
    // The line before decides the ending; at the very start, the first line does.
    let ending = file.ending_at(lines[after_line.saturating_sub(1)].start).as_str();
    let after_unended = at == body.len() && !body.is_empty() && !file.ends_with_newline();

    let (mut block, count) = if body.is_empty() {
        let count = newlines(text.as_bytes()) + usize::from(!text.ends_with('\n'));
        (text.as_bytes().to_vec(), count)
    } else {
        let mut given = pieces(text);
        if given.len() > 1 && given.last() == Some(&"") {
            given.pop();
        }
        (given.join(ending).into_bytes(), given.len())
    };
    let first_line = 1 + newlines(&body[..at]) + usize::from(after_unended);
    let region = first_line..first_line + count;
    if after_unended {
        block.splice(..0, ending.bytes());
    } else if !body.is_empty() {
        block.extend_from_slice(ending.as_bytes());
    }

    let mut out = Vec::with_capacity(content.len() + block.len());
    out.extend_from_slice(file.bom());
    out.extend_from_slice(&body[..at]);
    out.extend_from_slice(&block);
    out.extend_from_slice(&body[at..]);
    Ok(Edited { content: out, matched: MatchKind::Exact, regions: vec![region], replaced: 0 })
}
