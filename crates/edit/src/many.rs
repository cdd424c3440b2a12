//! Several edits of one content, all or none.
//!
//! They are made in order, and a text is searched for in the result of the edits before it, so a later edit may
//! change the text of an earlier one. Line numbers are different: the caller has seen the original content, so they
//! always mean its lines, and are adjusted when other edits move them. Line ranges that overlap each other, or that
//! an earlier edit has changed, are refused: no order of two such edits would do what both were meant to do.
//! edits would be what both were meant to do.

use std::ops::Range;

use crate::edited::{EditDraft, span};
use crate::insert::{insertion, replacement, whole_draft};
use crate::replace::draft;
use crate::text::{Splice, newlines};
use crate::{EditError, Edited, Looseness, MatchKind, Occurrence, TextContent};

/// One edit of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    Replace {
        old: String,
        new: String,
        how: Occurrence,
        loose: Looseness,
    },
    /// As [`crate::insert`] does.
    Insert {
        after_line: usize,
        text: String,
    },
    /// Whole lines, counted from 1, the end not included; an empty text deletes them.
    Lines {
        lines: Range<usize>,
        text: String,
    },
    /// As [`crate::rewrite`] does.
    Whole {
        text: String,
    },
}

/// Makes the edits in order, or none of them.
pub fn edit_many(content: &[u8], edits: &[Edit]) -> Result<Edited, EditError> {
    let original = TextContent::decode(content)?;
    let (encoding, mark) = (original.encoding(), original.mark());
    let at = |edit: usize| move |error| EditError::In { edit: edit + 1, error: Box::new(error) };

    let mut waiting: Vec<Option<EditDraft>> = Vec::with_capacity(edits.len());
    for (index, edit) in edits.iter().enumerate() {
        let placed = match edit {
            Edit::Insert { after_line, text } => Some(insertion(&original, *after_line, text)),
            Edit::Lines { lines, text } => Some(replacement(&original, lines, text)),
            Edit::Replace { .. } | Edit::Whole { .. } => None,
        };
        waiting.push(placed.transpose().map_err(at(index))?);
    }
    refuse_overlaps(&waiting, original.body().is_empty())?;

    let mut state = content.to_vec();
    let mut all = Edited {
        content: Vec::new(),
        matched: MatchKind::Exact,
        found: vec![],
        regions: vec![],
        replaced: 0,
    };
    let mut written: Vec<Range<usize>> = Vec::new();
    for (index, edit) in edits.iter().enumerate() {
        let text = TextContent::decode_as(&state, encoding, mark);
        let next = match (waiting[index].take(), edit) {
            (Some(placed), _) => placed,
            (None, Edit::Replace { old, new, how, loose }) => {
                draft(&text, old, new, *how, *loose).map_err(at(index))?
            }
            (None, Edit::Whole { text: new }) => whole_draft(&text, new),
            (None, Edit::Insert { .. } | Edit::Lines { .. }) => continue,
        };
        for (later, placed) in waiting.iter_mut().enumerate() {
            for splice in placed.iter_mut().flat_map(|placed| &mut placed.splices) {
                splice.range = moved_range(&splice.range, &next.splices)
                    .ok_or(EditError::Overlap { first: index + 1, second: later + 1 })?;
            }
        }
        record_regions(&mut written, &next.splices);
        let edited = next.finish(&text).map_err(at(index))?;
        all.matched = all.matched.max(edited.matched);
        all.found.extend(edited.found);
        all.replaced += edited.replaced;
        state = edited.content;
    }
    if state == content {
        return Err(EditError::NoChange);
    }
    let text = TextContent::decode_as(&state, encoding, mark);
    written.sort_by_key(|range| (range.start, range.end));
    written.dedup_by(|later, earlier| {
        let within = later.start < earlier.end && later.end <= earlier.end;
        within || later == earlier
    });
    let body = text.body();
    all.regions =
        written.into_iter().map(|range| span(1 + newlines(&body[..range.start]), &body[range])).collect();
    all.content = state;
    Ok(all)
}

/// Refuses placed edits that change the same lines. An empty file has no lines to distinguish two insertions.
fn refuse_overlaps(waiting: &[Option<EditDraft>], empty: bool) -> Result<(), EditError> {
    let placed: Vec<(usize, &Range<usize>)> = waiting
        .iter()
        .enumerate()
        .flat_map(|(index, draft)| draft.iter().map(move |draft| (index, draft)))
        .flat_map(|(index, draft)| draft.splices.iter().map(move |splice| (index + 1, &splice.range)))
        .collect();
    for (at, (first, one)) in placed.iter().enumerate() {
        for (second, other) in &placed[at + 1..] {
            if empty || (one.start < other.end && other.start < one.end) {
                return Err(EditError::Overlap { first: *first, second: *second });
            }
        }
    }
    Ok(())
}

/// The position of a range after the splices, if none of them reaches into it.
fn moved_range(range: &Range<usize>, splices: &[Splice]) -> Option<Range<usize>> {
    let (mut grown, mut gone) = (0, 0);
    for splice in splices {
        if splice.range.end <= range.start {
            grown += splice.new.len();
            gone += splice.range.len();
        } else if splice.range.start < range.end {
            return None;
        }
    }
    Some(range.start + grown - gone..range.end + grown - gone)
}

/// Moves the regions written so far and adds the new ones.
fn record_regions(written: &mut Vec<Range<usize>>, splices: &[Splice]) {
    for region in written.iter_mut() {
        let (mut start, mut end) = (region.start, region.end);
        let (mut grown_start, mut gone_start, mut grown, mut gone) = (0, 0, 0, 0);
        for Splice { range, new, .. } in splices {
            if range.end <= region.start {
                grown_start += new.len();
                gone_start += range.len();
            } else if range.start < region.end {
                start = start.min(range.start);
                end = end.max(range.end);
            } else {
                continue;
            }
            grown += new.len();
            gone += range.len();
        }
        *region = start + grown_start - gone_start..end + grown - gone;
    }
    let (mut grown, mut gone) = (0, 0);
    for Splice { range, new, joint } in splices {
        let start = range.start + grown - gone;
        written.push(start + joint..start + new.len());
        grown += new.len();
        gone += range.len();
    }
}
