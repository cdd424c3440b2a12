//! Replacement of a text that is given, not located.

use similar::DiffOp;

use crate::compare::compare;
use crate::edited::Draft;
use crate::find::{self, Place};
use crate::fuzzy;
use crate::indent::Indents;
use crate::nearest::nearest;
use crate::text::{Line, Splice, pieces};
use crate::{EditError, Edited, LineEnding, MatchKind, Text};

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
/// indentation. An exact `old` without a line break says nothing about line
/// endings, so line feeds in its `new` become those of the place.
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
    let change = Change { text, old: pieces(old), new: pieces(new) };
    let allowed = |place: &Place| !at_start || place.start == 0;

    let mut places = find::exact(text.body(), old);
    places.retain(allowed);
    if !places.is_empty() {
        if let (Occurrence::Unique | Occurrence::Exactly(1), [place]) = (how, places.as_slice()) {
            places.extend(find::overlapping(text.body(), old, *place).filter(allowed));
        }
        let places = choose(places, how)?;
        return Ok(change.draft(MatchKind::Exact, &places, |place| change.literal(old, new, place)));
    }
    let lines = text.lines();
    for kind in [MatchKind::LineEndings, MatchKind::TrailingBlanks, MatchKind::Indentation] {
        let mut places = find::loose(text, &lines, &change.old, kind);
        places.retain(allowed);
        if !places.is_empty() {
            let places = choose(places, how)?;
            return Ok(change.draft(kind, &places, |place| change.adapted(&lines, kind, place)));
        }
    }
    if loose == Looseness::Fuzzy {
        let places = fuzzy::find(
            text,
            &lines,
            &change.old,
            matches!(how, Occurrence::Unique | Occurrence::Exactly(1)),
            allowed,
        );
        if !places.is_empty() {
            let places = choose(places, how)?;
            let kind = MatchKind::Fuzzy;
            return Ok(change.draft(kind, &places, |place| change.adapted(&lines, kind, place)));
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
    fn draft(&self, matched: MatchKind, places: &[Place], with: impl Fn(&Place) -> Vec<u8>) -> Draft {
        let splice = |place: &Place| Splice { range: place.start..place.end, new: with(place), joint: 0 };
        Draft { matched, splices: places.iter().map(splice).collect(), replaced: places.len() }
    }

    /// The new text for an exact match.
    fn literal(&self, old: &str, new: &str, place: &Place) -> Vec<u8> {
        let open = !old.contains('\n') && !new.contains("\r\n");
        match self.text.ending_at(place.start) {
            LineEnding::CrLf if open => new.replace('\n', "\r\n").into_bytes(),
            LineEnding::CrLf | LineEnding::Lf => new.as_bytes().to_vec(),
        }
    }

    /// The new text for a looser match: lines common to old and new keep the
    /// file's bytes, the others are written the way the file is.
    fn adapted(&self, lines: &[Line], kind: MatchKind, place: &Place) -> Vec<u8> {
        let body = self.text.body();
        let window = &lines[place.line..place.line + self.old.len()];
        let ending = self.text.ending_at(place.start).as_str().as_bytes();
        let indents = match kind {
            MatchKind::Indentation | MatchKind::Fuzzy => {
                Indents::learn(body, window, &self.old).map(|mut indents| {
                    indents.guess_step(body, lines, &self.new);
                    indents
                })
            }
            MatchKind::Exact | MatchKind::LineEndings | MatchKind::TrailingBlanks => None,
        };
        let mut out = Vec::new();
        for (at, kept) in kept_lines(&self.old, &self.new).into_iter().enumerate() {
            let last = at + 1 == self.new.len();
            match kept {
                Some(index) => {
                    let line = window[index];
                    let start = line.start.max(place.start);
                    let end = line.end.min(place.end).max(start);
                    out.extend_from_slice(&body[start..end]);
                }
                None => match &indents {
                    Some(indents) => out.extend(indents.apply(self.new[at])),
                    None => out.extend_from_slice(self.new[at].as_bytes()),
                },
            }
            if !last {
                let own = kept.filter(|index| index + 1 < window.len());
                out.extend_from_slice(own.map_or(ending, |index| window[index].line_break(body)));
            }
        }
        out
    }
}

/// For each new piece the old piece it is, where it is one.
fn kept_lines(old: &[&str], new: &[&str]) -> Vec<Option<usize>> {
    let mut kept = vec![None; new.len()];
    for op in compare(old, new) {
        if let DiffOp::Equal { old_index, new_index, len } = op {
            for at in 0..len {
                kept[new_index + at] = Some(old_index + at);
            }
        }
    }
    kept
}
