//! Finds an old text in a body, rung by rung.
//!
//! The exact rung searches bytes. The looser rungs compare windows of lines, each piece of the old text between line
//! breaks with one line of the file: the first piece with the tail of its line, the last with the head, those in
//! between with whole lines. So an old text may begin and end inside a line, as in an exact match. Only the
//! indentation rung needs whole lines, because a part of a line has no indentation to compare.

use memchr::memmem;

use crate::indent::Indents;
use crate::text::{TextLine, split_indent, trim_end};
use crate::{MatchKind, TextContent};

/// The most pairs of lines that the looser rungs may compare. Ordinary files need a tiny part of it; it keeps a file
/// of a million equal lines from taking minutes.
const BUDGET: usize = 20_000_000;

/// A match in the body. `line` is the index of the line it begins in, `lines` the number of lines it spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MatchSpan {
    pub start: usize,
    pub end: usize,
    pub line: usize,
    pub lines: usize,
}

/// All exact matches that do not overlap, in order, except those that begin between the CR and the LF of one line
/// break: replacing there would tear it apart, and the next rung finds them whole.
///
/// The old text is valid UTF-8, which begins with the first byte of a character and ends with the last of one: where
/// its bytes match, its characters match, even among invalid bytes.
pub(crate) fn exact_matches(body: &[u8], old: &str) -> Vec<MatchSpan> {
    let mut starts: Vec<usize> = memmem::find_iter(body, old).collect();
    starts.retain(|&start| !splits_crlf(body, old, start));
    let mut places = Vec::with_capacity(starts.len());
    let (mut counted, mut line) = (0, 0);
    let lines = 1 + crate::text::newlines(old.as_bytes());
    for start in starts {
        line += crate::text::newlines(&body[counted..start]);
        counted = start;
        places.push(MatchSpan { start, end: start + old.len(), line, lines });
    }
    places
}

/// Another exact match that overlaps `place`, as `aa` occurs twice in `aaa`. A search that steps over each match
/// would call such a text unique.
pub(crate) fn overlapping_match(body: &[u8], old: &str, place: MatchSpan) -> Option<MatchSpan> {
    let first = old.chars().next().map_or(1, char::len_utf8);
    let from = place.start + first;
    let to = (place.end + old.len() - 1).min(body.len());
    let start = from + memmem::find(body.get(from..to)?, old.as_bytes())?;
    let line = place.line + crate::text::newlines(&body[place.start..start]);
    let found = MatchSpan { start, end: start + old.len(), line, lines: place.lines };
    (!splits_crlf(body, old, start)).then_some(found)
}

fn splits_crlf(body: &[u8], old: &str, start: usize) -> bool {
    old.starts_with('\n') && body[..start].ends_with(b"\r")
}

/// All matches of the pieces at a looser rung, including overlapping ones, in order. Nothing is found once the budget
/// is spent: an incomplete search could call an ambiguous text unique.
pub(crate) fn loose_matches(
    text: &TextContent<'_>,
    lines: &[TextLine],
    pieces: &[&str],
    kind: MatchKind,
) -> Vec<MatchSpan> {
    let fits = match kind {
        // These rungs have searches of their own.
        MatchKind::Exact | MatchKind::Tokens | MatchKind::Fuzzy => return Vec::new(),
        // Without a line break in the old text, no line ending can differ.
        MatchKind::LineEndings if pieces.len() == 1 => return Vec::new(),
        MatchKind::LineEndings => line_ending,
        // Blank lines alone would match at all blank lines.
        MatchKind::TrailingBlanks | MatchKind::Indentation if pieces.iter().all(|piece| is_blank(piece)) => {
            return Vec::new();
        }
        MatchKind::TrailingBlanks => trailing_blanks,
        MatchKind::Indentation => indentation,
    };
    let body = text.body();
    let mut budget = BUDGET;
    let mut places = Vec::new();
    for (index, window) in lines.windows(pieces.len()).enumerate() {
        let mut place =
            MatchSpan { start: window[0].start, end: window[0].start, line: index, lines: pieces.len() };
        let all = window.iter().zip(pieces).enumerate().all(|(at, (line, piece))| {
            budget = budget.saturating_sub(1);
            let role = PieceRole { first: at == 0, last: at + 1 == pieces.len() };
            match fits(line.content(body), piece.as_bytes(), role) {
                Some((from, to)) => {
                    if role.first {
                        place.start = line.start + from;
                    }
                    place.end = line.start + to;
                    true
                }
                None => false,
            }
        });
        if budget == 0 {
            return Vec::new();
        }
        if all && (kind != MatchKind::Indentation || Indents::learn(body, window, pieces).is_some()) {
            places.push(place);
        }
    }
    places
}

/// The position in the old text of the piece that a line is compared with.
#[derive(Debug, Clone, Copy)]
struct PieceRole {
    first: bool,
    last: bool,
}

/// The part of `line` that `piece` stands for, if it matches.
type Fit = Option<(usize, usize)>;

fn line_ending(line: &[u8], piece: &[u8], role: PieceRole) -> Fit {
    match (role.first, role.last) {
        (true, _) => line.ends_with(piece).then(|| (line.len() - piece.len(), line.len())),
        (false, true) => line.starts_with(piece).then_some((0, piece.len())),
        (false, false) => (line == piece).then_some((0, line.len())),
    }
}

fn trailing_blanks(line: &[u8], piece: &[u8], role: PieceRole) -> Fit {
    let (text, wanted) = (trim_end(line), trim_end(piece));
    match (role.first, role.last) {
        // A single piece can only differ here by blanks of its own at a line's end.
        (true, true) => (wanted.len() < piece.len() && !wanted.is_empty() && text.ends_with(wanted))
            .then(|| (text.len() - wanted.len(), line.len())),
        (true, false) => text.ends_with(wanted).then(|| (text.len() - wanted.len(), line.len())),
        (false, true) if line.starts_with(piece) => Some((0, piece.len())),
        (false, _) => (text == wanted).then_some((0, line.len())),
    }
}

/// A blank first or last piece of several is the line break before or after the lines, and takes nothing of its own
/// line.
fn indentation(line: &[u8], piece: &[u8], role: PieceRole) -> Fit {
    let (_, wanted) = split_indent(trim_end(piece));
    let (_, text) = split_indent(trim_end(line));
    match (wanted.is_empty(), role.first, role.last) {
        (true, true, _) => Some((line.len(), line.len())),
        (true, false, true) => Some((0, 0)),
        (_, _, _) => (text == wanted).then_some((0, line.len())),
    }
}

pub(crate) fn is_blank(piece: &str) -> bool {
    trim_end(piece.as_bytes()).is_empty()
}
