//! Placing hunks in a text.

use super::{HunkLine, LineMark, Loosened, PatchHunk};
use crate::indent::Indents;
use crate::nearest::nearest;
use crate::text::{Splice, TextLine, split_indent, trim_end};
use crate::{MatchKind, Nearest, TextContent};

/// The most pairs of lines that may be compared for one hunk, as for the other edits.
const BUDGET: usize = 20_000_000;
const LADDER: [MatchKind; 4] =
    [MatchKind::Exact, MatchKind::LineEndings, MatchKind::TrailingBlanks, MatchKind::Indentation];

/// The reason why a hunk, counted from 0, has no place.
pub(super) enum HunkFault {
    NoMatch { hunk: usize, nearest: Option<Nearest> },
    Ambiguous { hunk: usize, lines: Vec<usize> },
}

pub(super) fn apply(
    text: &TextContent<'_>,
    hunks: &[PatchHunk],
) -> Result<(Vec<Splice>, Vec<Loosened>), HunkFault> {
    let mut lines = text.lines();
    if lines.last().is_some_and(|last| last.start == last.next) {
        lines.pop();
    }
    let file = FileLines { text, lines };
    let mut splices = Vec::with_capacity(hunks.len());
    let mut loosened = Vec::new();
    let (mut from, mut shift) = (0, 0);
    for (index, hunk) in hunks.iter().enumerate() {
        let old: Vec<&HunkLine> = hunk.old().collect();
        let (at, matched) = file.place(hunk, &old, from, shift).map_err(|lines| match lines {
            None => {
                let pieces: Vec<&str> = old.iter().map(|line| line.text.as_str()).collect();
                HunkFault::NoMatch { hunk: index, nearest: nearest(text, &file.lines, &pieces) }
            }
            Some(lines) => HunkFault::Ambiguous { hunk: index, lines },
        })?;
        let shifted = hunk.start.map_or(0, |start| at.cast_signed() - first(start, &old).cast_signed());
        if hunk.start.is_some() {
            shift = shifted;
        }
        if matched != MatchKind::Exact || shifted != 0 || hunk.miscounted {
            let (hunk, miscounted) = (index + 1, hunk.miscounted);
            loosened.push(Loosened { hunk, line: at + 1, matched, shifted, miscounted });
        }
        splices.push(file.splice(hunk, &old, at, matched).ok_or_else(|| {
            let text = file.shown(at, old.len());
            HunkFault::NoMatch { hunk: index, nearest: Some(Nearest { line: at + 1, text }) }
        })?);
        from = at + old.len();
    }
    Ok((splices, loosened))
}

/// The index of the first old line, by the number in a header. Without old lines, the number is that of the line
/// before.
fn first(start: usize, old: &[&HunkLine]) -> usize {
    if old.is_empty() { start } else { start.saturating_sub(1) }
}

struct FileLines<'a> {
    text: &'a TextContent<'a>,
    /// Without the empty piece after a final newline.
    lines: Vec<TextLine>,
}

impl FileLines<'_> {
    /// The line where a hunk goes and the kind of match, or the lines that match equally.
    fn place(
        &self,
        hunk: &PatchHunk,
        old: &[&HunkLine],
        from: usize,
        shift: isize,
    ) -> Result<(usize, MatchKind), Option<Vec<usize>>> {
        let mut from = from;
        for heading in &hunk.headings {
            from = self.heading(heading, from).ok_or(None)? + 1;
        }
        if old.is_empty() {
            let at = match hunk.start {
                Some(start) => start,
                None if hunk.headings.is_empty() => self.lines.len(),
                None => from,
            };
            return if (from..=self.lines.len()).contains(&at) {
                Ok((at, MatchKind::Exact))
            } else {
                Err(None)
            };
        }
        let Some(last) = self.lines.len().checked_sub(old.len()) else {
            return Err(None);
        };
        let mut budget = BUDGET;
        for kind in LADDER {
            let hinted = hunk.start.and_then(|start| first(start, old).checked_add_signed(shift));
            let headed = hunk.start.map(|start| first(start, old));
            for at in [headed, hinted].into_iter().flatten() {
                if at >= from && at <= last && self.fits(at, old, kind, &mut budget) {
                    return Ok((at, kind));
                }
            }
            let first = if hunk.at_end { from.max(last) } else { from };
            let mut places = (first..=last).filter(|at| self.fits(*at, old, kind, &mut budget));
            let Some(place) = places.next() else {
                continue;
            };
            // A heading means the first place below it.
            let others: Vec<usize> = if hunk.headings.is_empty() { places.collect() } else { Vec::new() };
            if budget == 0 {
                return Err(None);
            }
            if others.is_empty() {
                return Ok((place, kind));
            }
            return Err(Some(std::iter::once(place).chain(others).map(|at| at + 1).collect()));
        }
        Err(None)
    }

    /// The first line from there on that is equal to the heading: exactly, or otherwise except for blanks around it.
    fn heading(&self, heading: &str, from: usize) -> Option<usize> {
        let body = self.text.body();
        let bare = |line: &[u8]| trim_end(split_indent(line).1).to_vec();
        let wanted = bare(heading.as_bytes());
        let rest = self.lines.iter().enumerate().skip(from);
        let mut found = None;
        for (at, line) in rest {
            if line.content(body) == heading.as_bytes() {
                return Some(at);
            }
            if found.is_none() && bare(line.content(body)) == wanted {
                found = Some(at);
            }
        }
        found
    }

    fn fits(&self, at: usize, old: &[&HunkLine], kind: MatchKind, budget: &mut usize) -> bool {
        let body = self.text.body();
        let window = &self.lines[at..at + old.len()];
        let equal = window.iter().zip(old).all(|(line, piece)| {
            *budget = budget.saturating_sub(1);
            let (text, wanted) = (line.content(body), without_cr(&piece.text));
            *budget > 0
                && match kind {
                    MatchKind::Exact => {
                        let ended = line.end < line.next;
                        let cr = line.line_break(body).starts_with(b"\r");
                        text == wanted && ended != piece.unended && cr == piece.text.ends_with('\r')
                            || !ended && piece.unended && text == piece.text.as_bytes()
                    }
                    MatchKind::LineEndings => text == wanted,
                    MatchKind::TrailingBlanks => trim_end(text) == trim_end(wanted),
                    MatchKind::Indentation | MatchKind::Tokens | MatchKind::Fuzzy => {
                        split_indent(trim_end(text)).1 == split_indent(trim_end(wanted)).1
                    }
                }
        });
        match kind {
            MatchKind::Exact | MatchKind::LineEndings => equal,
            MatchKind::TrailingBlanks | MatchKind::Indentation | MatchKind::Tokens | MatchKind::Fuzzy => {
                // Blank lines alone would match at all blank lines.
                let any = old.iter().any(|piece| !trim_end(without_cr(&piece.text)).is_empty());
                let nested = || kind == MatchKind::TrailingBlanks || self.indents(at, old).is_some();
                equal && any && nested()
            }
        }
    }

    /// The lines there, without the last line break.
    fn shown(&self, at: usize, lines: usize) -> String {
        let (first, last) = (self.lines.get(at), self.lines.get(at + lines - 1));
        let range = first.map_or(0, |line| line.start)..last.map_or(0, |line| line.end);
        String::from_utf8_lossy(self.text.body().get(range).unwrap_or_default()).into_owned()
    }

    fn indents(&self, at: usize, old: &[&HunkLine]) -> Option<Indents> {
        let pieces: Vec<&str> = old.iter().map(|piece| piece.text.as_str()).collect();
        Indents::learn(self.text.body(), &self.lines[at..at + old.len()], &pieces)
    }

    /// The new bytes of the lines that a hunk covers, if their indentation is clear.
    fn splice(&self, hunk: &PatchHunk, old: &[&HunkLine], at: usize, kind: MatchKind) -> Option<Splice> {
        let body = self.text.body();
        let window = &self.lines[at..at + old.len()];
        let start = self.lines.get(at).map_or(body.len(), |line| line.start);
        let end = window.last().map_or(start, |line| line.next);
        let ending = self.text.ending_at(start).as_str().as_bytes();
        let indents = match kind {
            MatchKind::Indentation | MatchKind::Tokens | MatchKind::Fuzzy => {
                let added = hunk.lines.iter().filter(|line| line.mark == LineMark::Add);
                let added: Vec<&str> = added.map(|line| line.text.as_str()).collect();
                let mut indents = self.indents(at, old)?;
                indents.guess_step(body, window, &self.lines, &added);
                indents.keeps_nesting(added.iter().map(|piece| (*piece, None))).then_some(())?;
                Some(indents)
            }
            MatchKind::Exact | MatchKind::LineEndings | MatchKind::TrailingBlanks => None,
        };
        // Without old lines and a number, nothing shows the file's endings.
        let exact = kind == MatchKind::Exact && (!old.is_empty() || hunk.start.is_some());

        // Each new line and its break.
        let mut out: Vec<(Vec<u8>, &[u8])> = Vec::with_capacity(hunk.lines.len());
        let mut kept = window.iter();
        for line in &hunk.lines {
            match line.mark {
                LineMark::Keep => {
                    out.extend(kept.next().map(|line| (line.content(body).to_vec(), line.line_break(body))));
                }
                LineMark::Remove => {
                    kept.next();
                }
                LineMark::Add => {
                    let own: &[u8] = if line.unended { b"" } else { b"\n" };
                    out.push(match &indents {
                        _ if exact => (line.text.as_bytes().to_vec(), own),
                        Some(indents) => {
                            (indents.apply(line.text.strip_suffix('\r').unwrap_or(&line.text))?, ending)
                        }
                        None => (without_cr(&line.text).to_vec(), ending),
                    });
                }
            }
        }
        let last_of_file = end == body.len();
        let unended = !body.is_empty() && !self.text.ends_with_newline();
        let count = out.len();
        let mut new = Vec::new();
        // Text after a last line without newline needs the break that the line lacks.
        let joint = if start == body.len() && unended { ending } else { b"" };
        new.extend_from_slice(joint);
        for (index, (content, own)) in out.into_iter().enumerate() {
            let last = index + 1 == count;
            let stays_unended = last && last_of_file && unended && !exact;
            let own = match own {
                b"" if !last || !last_of_file => ending,
                _ if stays_unended => b"",
                own => own,
            };
            new.extend_from_slice(&content);
            new.extend_from_slice(own);
        }
        Some(Splice { range: start..end, new, joint: joint.len() })
    }
}

fn without_cr(text: &str) -> &[u8] {
    text.strip_suffix('\r').unwrap_or(text).as_bytes()
}
