//! Replacement of a text that is given by its content, not by its location.

use crate::adapt::{Adaptation, UnclearIndent};
use crate::edited::EditDraft;
use crate::find::{self, MatchSpan};
use crate::nearest::nearest;
use crate::omission::omission_line;
use crate::text::{Splice, TextLine, pieces};
use crate::{EditError, Edited, LineEnding, MatchKind, Nearest, TextContent, fuzzy, tokens};

/// The matches that are meant, of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occurrence {
    /// There must be exactly one.
    Unique,
    /// There must be exactly this many, none overlapping another.
    Exactly(usize),
    /// Each one, from the start, none overlapping the one before. Only the matches of the first rung that has any are
    /// replaced.
    All,
}

/// The lowest rung of the ladder that a search may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looseness {
    /// Whitespace may differ, as far as it cannot be mistaken.
    Whitespace,
    /// Some characters may differ as well: a guess, which the caller must report.
    Fuzzy,
}

/// Replaces `old` by `new`, both taken literally.
///
/// The ladder is exact bytes, then line endings, then blanks at line ends, then indentation. The first rung that
/// finds anything decides: with [`Occurrence::Unique`], two matches there are refused, never passed on to a looser
/// rung. At a looser rung, a line that is in both `old` and `new` keeps the file's bytes, and the other lines of
/// `new` get the file's line ending and indentation; where the given texts do not determine that indentation, the
/// edit is refused. An exact `old` without a line break shows no line ending, so line feeds in its `new` become those
/// of the place.
///
/// A `new` with a line that only says that code was left out is refused, unless `old` has that line too.
pub fn replace(content: &[u8], old: &str, new: &str, how: Occurrence) -> Result<Edited, EditError> {
    replace_loosely(content, old, new, how, Looseness::Whitespace)
}

/// Replaces like [`replace`], with a choice of the search's looseness.
pub fn replace_loosely(
    content: &[u8],
    old: &str,
    new: &str,
    how: Occurrence,
    loose: Looseness,
) -> Result<Edited, EditError> {
    let text = TextContent::decode(content)?;
    draft(&text, old, new, how, loose)?.finish(&text)
}

pub(crate) fn draft(
    text: &TextContent<'_>,
    old: &str,
    new: &str,
    how: Occurrence,
    loose: Looseness,
) -> Result<EditDraft, EditError> {
    if old.is_empty() {
        return Err(EditError::EmptyOld);
    }
    if old == new {
        return Err(EditError::NoChange);
    }
    // The mark is not part of the body: an old text that shows it can only match at the start, and the mark stays
    // whatever the new text has.
    let (old, new, at_start) = match old.strip_prefix('\u{feff}') {
        Some(rest) if text.has_bom() => (rest, new.strip_prefix('\u{feff}').unwrap_or(new), true),
        Some(_) | None => (old, new, false),
    };
    if old.is_empty() {
        return Err(EditError::EmptyOld);
    }
    if let Some(line) = omission_line(old, new) {
        return Err(EditError::LeftOut { line });
    }
    let change = TextReplacement { text, old: pieces(old), new: pieces(new) };
    let allowed = |place: &MatchSpan| !at_start || place.start == 0;

    let mut places = find::exact_matches(text.body(), old);
    places.retain(allowed);
    if !places.is_empty() {
        if let (Occurrence::Unique | Occurrence::Exactly(1), [place]) = (how, places.as_slice()) {
            places.extend(find::overlapping_match(text.body(), old, *place).filter(allowed));
        }
        let places = choose(places, how)?;
        return change.exact(old, new, &places);
    }
    let lines = text.lines();
    for kind in [MatchKind::LineEndings, MatchKind::TrailingBlanks, MatchKind::Indentation] {
        let mut places = find::loose_matches(text, &lines, &change.old, kind);
        places.retain(allowed);
        if !places.is_empty() {
            let places = choose(places, how)?;
            return change.adapted(&lines, kind, &places);
        }
    }
    if loose == Looseness::Fuzzy {
        let mut places = tokens::find(text, &lines, &change.old);
        places.retain(allowed);
        if !places.is_empty() {
            let places = choose(places, how)?;
            return change.adapted(&lines, MatchKind::Tokens, &places);
        }
        let places = fuzzy::find(
            text,
            &lines,
            &change.old,
            matches!(how, Occurrence::Unique | Occurrence::Exactly(1)),
            allowed,
        );
        if !places.is_empty() {
            let places = choose(places, how)?;
            return change.adapted(&lines, MatchKind::Fuzzy, &places);
        }
    }
    Err(EditError::NoMatch { nearest: nearest(text, &lines, &change.old) })
}

fn choose(places: Vec<MatchSpan>, how: Occurrence) -> Result<Vec<MatchSpan>, EditError> {
    let lines = |places: &[MatchSpan]| places.iter().map(|place| place.line + 1).collect();
    let apart = |places: &[MatchSpan]| {
        let mut chosen: Vec<MatchSpan> = Vec::with_capacity(places.len());
        for place in places {
            if chosen.last().is_none_or(|last| place.start >= last.end) {
                chosen.push(*place);
            }
        }
        chosen
    };
    match how {
        Occurrence::Unique if places.len() > 1 => Err(EditError::Ambiguous { lines: lines(&places) }),
        Occurrence::Exactly(1) if places.len() > 1 => {
            Err(EditError::WrongCount { wanted: 1, lines: lines(&places) })
        }
        Occurrence::Unique => Ok(places),
        Occurrence::Exactly(wanted) => {
            let chosen = apart(&places);
            if chosen.len() == wanted {
                return Ok(chosen);
            }
            Err(EditError::WrongCount { wanted, lines: lines(&chosen) })
        }
        Occurrence::All => Ok(apart(&places)),
    }
}

struct TextReplacement<'a> {
    text: &'a TextContent<'a>,
    old: Vec<&'a str>,
    new: Vec<&'a str>,
}

impl TextReplacement<'_> {
    /// The edit of exact matches. Only one that begins inside an indentation is not literal.
    fn exact(&self, old: &str, new: &str, places: &[MatchSpan]) -> Result<EditDraft, EditError> {
        let mut matched = MatchKind::Exact;
        let mut splices = Vec::with_capacity(places.len());
        let lines =
            if new.contains('\n') && old.starts_with([' ', '\t']) { self.text.lines() } else { vec![] };
        for place in places {
            let adapted =
                if lines.is_empty() { None } else { self.at(&lines, place).inside_indent().transpose() };
            splices.push(match adapted {
                None => self.literal(old, new, place),
                Some(adapted) => {
                    matched = MatchKind::Indentation;
                    adapted.map_err(|UnclearIndent| self.unclear(&lines, place))?
                }
            });
        }
        Ok(EditDraft { matched, splices, replaced: places.len() })
    }

    fn at<'b>(&'b self, lines: &'b [TextLine], place: &MatchSpan) -> Adaptation<'b> {
        Adaptation { text: self.text, lines, old: &self.old, new: &self.new, place: *place }
    }

    fn unclear(&self, lines: &[TextLine], place: &MatchSpan) -> EditError {
        let window = &lines[place.line..(place.line + place.lines).min(lines.len())];
        let end = window.last().map_or(place.end, |line| line.end);
        let shown = String::from_utf8_lossy(&self.text.body()[lines[place.line].start..end]);
        EditError::Unclear { place: Nearest { line: place.line + 1, text: shown.into_owned() } }
    }

    /// The edit at a looser rung; an error for the place that leaves the indentation unclear.
    fn adapted(
        &self,
        lines: &[TextLine],
        matched: MatchKind,
        places: &[MatchSpan],
    ) -> Result<EditDraft, EditError> {
        let mut splices = Vec::with_capacity(places.len());
        for place in places {
            let splice = self.at(lines, place).splice(matched);
            splices.push(splice.map_err(|UnclearIndent| self.unclear(lines, place))?);
        }
        Ok(EditDraft { matched, splices, replaced: places.len() })
    }

    /// The new text for an exact match.
    fn literal(&self, old: &str, new: &str, place: &MatchSpan) -> Splice {
        let open = !old.contains('\n') && !new.contains("\r\n");
        let new = match self.text.ending_at(place.start) {
            LineEnding::CrLf if open => new.replace('\n', "\r\n").into_bytes(),
            LineEnding::CrLf | LineEnding::Lf => new.as_bytes().to_vec(),
        };
        Splice { range: place.start..place.end, new, joint: 0 }
    }
}
