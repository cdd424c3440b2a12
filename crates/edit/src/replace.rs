//! Replacement of a text that is given, not located.

use crate::adapt::{Adapt, UnclearIndent};
use crate::edited::Draft;
use crate::find::{self, Place};
use crate::nearest::nearest;
use crate::omission::left_out;
use crate::text::{Line, Splice, pieces};
use crate::{EditError, Edited, LineEnding, MatchKind, Nearest, Text, fuzzy, tokens};

/// Which of several matches are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occurrence {
    /// There must be exactly one.
    Unique,
    /// There must be exactly this many, none overlapping another.
    Exactly(usize),
    /// Each one, from the start, none overlapping the one before. Only the matches
    /// of the first rung that has any are replaced.
    All,
}

/// How far down the ladder a search may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looseness {
    /// Whitespace may differ, as far as it cannot be mistaken.
    Whitespace,
    /// Some characters may differ as well: a guess, which the caller must tell.
    Fuzzy,
}

/// Replaces `old` by `new`, both taken literally.
///
/// The ladder is exact bytes, then line endings, then blanks at line ends, then
/// indentation. The first rung that finds anything decides: with
/// [`Occurrence::Unique`], two matches there are refused, never passed on to a
/// looser rung. At a looser rung, a line that stands in both `old` and `new` keeps
/// the file's bytes, and the other lines of `new` get the file's line ending and
/// indentation; where that indentation does not follow from what was given, the edit is
/// refused. An exact `old` without a line break says nothing about line
/// endings, so line feeds in its `new` become those of the place.
///
/// A `new` with a line that only says that code was left out is refused, unless `old`
/// has that line too.
pub fn replace(content: &[u8], old: &str, new: &str, how: Occurrence) -> Result<Edited, EditError> {
    replace_loosely(content, old, new, how, Looseness::Whitespace)
}

/// The same with a choice of how loose the search may be.
pub fn replace_loosely(
    content: &[u8],
    old: &str,
    new: &str,
    how: Occurrence,
    loose: Looseness,
) -> Result<Edited, EditError> {
    let text = Text::decode(content)?;
    draft(&text, old, new, how, loose)?.finish(&text)
}

pub(crate) fn draft(
    text: &Text<'_>,
    old: &str,
    new: &str,
    how: Occurrence,
    loose: Looseness,
) -> Result<Draft, EditError> {
    if old.is_empty() {
        return Err(EditError::EmptyOld);
    }
    if old == new {
        return Err(EditError::NoChange);
    }
    // The mark is not part of the body: an old text that shows it can only stand
    // at the start, and the mark stays whatever the new text says.
    let (old, new, at_start) = match old.strip_prefix('\u{feff}') {
        Some(rest) if text.has_bom() => (rest, new.strip_prefix('\u{feff}').unwrap_or(new), true),
        Some(_) | None => (old, new, false),
    };
    if old.is_empty() {
        return Err(EditError::EmptyOld);
    }
    if let Some(line) = left_out(old, new) {
        return Err(EditError::LeftOut { line });
    }
    let change = Change { text, old: pieces(old), new: pieces(new) };
    let allowed = |place: &Place| !at_start || place.start == 0;

    let mut places = find::exact(text.body(), old);
    places.retain(allowed);
    if !places.is_empty() {
        if let (Occurrence::Unique | Occurrence::Exactly(1), [place]) = (how, places.as_slice()) {
            places.extend(find::overlapping(text.body(), old, *place).filter(allowed));
        }
        let places = choose(places, how)?;
        return change.exact(old, new, &places);
    }
    let lines = text.lines();
    for kind in [MatchKind::LineEndings, MatchKind::TrailingBlanks, MatchKind::Indentation] {
        let mut places = find::loose(text, &lines, &change.old, kind);
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

fn choose(places: Vec<Place>, how: Occurrence) -> Result<Vec<Place>, EditError> {
    let lines = |places: &[Place]| places.iter().map(|place| place.line + 1).collect();
    let apart = |places: &[Place]| {
        let mut chosen: Vec<Place> = Vec::with_capacity(places.len());
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

struct Change<'a> {
    text: &'a Text<'a>,
    old: Vec<&'a str>,
    new: Vec<&'a str>,
}

impl Change<'_> {
    /// The edit of exact matches. Only one that begins inside an indentation is not literal.
    fn exact(&self, old: &str, new: &str, places: &[Place]) -> Result<Draft, EditError> {
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
        Ok(Draft { matched, splices, replaced: places.len() })
    }

    fn at<'b>(&'b self, lines: &'b [Line], place: &Place) -> Adapt<'b> {
        Adapt { text: self.text, lines, old: &self.old, new: &self.new, place: *place }
    }

    fn unclear(&self, lines: &[Line], place: &Place) -> EditError {
        let window = &lines[place.line..(place.line + place.lines).min(lines.len())];
        let end = window.last().map_or(place.end, |line| line.end);
        let shown = String::from_utf8_lossy(&self.text.body()[lines[place.line].start..end]);
        EditError::Unclear { place: Nearest { line: place.line + 1, text: shown.into_owned() } }
    }

    /// The edit at a looser rung, or which place leaves the indentation unclear.
    fn adapted(&self, lines: &[Line], matched: MatchKind, places: &[Place]) -> Result<Draft, EditError> {
        let mut splices = Vec::with_capacity(places.len());
        for place in places {
            let splice = self.at(lines, place).splice(matched);
            splices.push(splice.map_err(|UnclearIndent| self.unclear(lines, place))?);
        }
        Ok(Draft { matched, splices, replaced: places.len() })
    }

    /// The new text for an exact match.
    fn literal(&self, old: &str, new: &str, place: &Place) -> Splice {
        let open = !old.contains('\n') && !new.contains("\r\n");
        let new = match self.text.ending_at(place.start) {
            LineEnding::CrLf if open => new.replace('\n', "\r\n").into_bytes(),
            LineEnding::CrLf | LineEnding::Lf => new.as_bytes().to_vec(),
        };
        Splice { range: place.start..place.end, new, joint: 0 }
    }
}
