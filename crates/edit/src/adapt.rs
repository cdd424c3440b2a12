//! The new text of a loose match, adapted to the file.
//!
//! The file decides line endings and indentation, the new text only the nesting of its lines. A new text can be read
//! in three ways, and the given texts must show which one applies:
//!
//! - **mapped**: old and new text are indented alike, so the indentation in the file that the old text's corresponds
//!   to gives that of the new text;
//! - **relative**: the new text has an indentation of its own. Its first line goes where the first matched line is,
//!   and the others are indented relative to it;
//! - **detached**: all lines but the first are indented as in the file, because the text was copied from the first
//!   word on.
//!
//! If the given texts show none of them, or a line would have to be indented by a guess, there is no new text and the
//! edit is refused: a wrong indentation is another program.
//!
//! A line that is in both texts keeps the file's bytes. If the file's line breaks around the match are part of the
//! old text and not of the new one, they stay, so that no line of the file is joined to the new text.

use std::ops::Range;

use similar::DiffOp;

use crate::compare::compare;
use crate::find::{MatchSpan, is_blank};
use crate::indent::{Indents, width};
use crate::text::{Splice, TextLine, split_indent, trim_end};
use crate::{MatchKind, TextContent};

/// The given texts do not determine the indentation of the new text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnclearIndent;

/// A match of an old text, and the new text for it.
pub(crate) struct Adaptation<'a> {
    pub text: &'a TextContent<'a>,
    pub lines: &'a [TextLine],
    pub old: &'a [&'a str],
    pub new: &'a [&'a str],
    pub place: MatchSpan,
}

impl Adaptation<'_> {
    /// The new bytes at a looser rung.
    pub fn splice(&self, kind: MatchKind) -> Result<Splice, UnclearIndent> {
        match kind {
            MatchKind::Exact | MatchKind::LineEndings | MatchKind::TrailingBlanks => self.as_given(kind),
            MatchKind::Indentation | MatchKind::Tokens | MatchKind::Fuzzy => self.indented(kind),
        }
    }

    /// The new text where the old one is indented as the file, except perhaps for the first line.
    fn as_given(&self, kind: MatchKind) -> Result<Splice, UnclearIndent> {
        let body = self.text.body();
        let MatchSpan { start, end, line, lines } = self.place;
        let window = &self.lines[line..line + lines];
        let mut kept = kept_lines(self.old, self.new);
        let before = &body[window[0].start..start];
        let mut new = self.new.to_vec();
        let reading = self.after_indent(window, &kept)?;
        // The line break at the end of the old text stays.
        let broken = self.old.len() > 1 && self.old.last().is_some_and(|last| last.is_empty());
        let empty = new.iter().all(|piece| piece.is_empty());
        if kind == MatchKind::TrailingBlanks
            && broken
            && !empty
            && new.last().is_some_and(|last| !is_blank(last))
        {
            new.push("");
            kept.push(None);
        }
        let new = match reading {
            IndentReading::Given => self.write(window, start..end, &new, &kept, &reading)?,
            // The indentation of the first line stands before the match.
            IndentReading::Mapped(_) | IndentReading::Detached { .. } => {
                let written = self.write(window, window[0].start..end, &new, &kept, &reading)?;
                written.strip_prefix(before).ok_or(UnclearIndent)?.to_vec()
            }
        };
        Ok(Splice { range: start..end, new, joint: 0 })
    }

    /// The new text for an exact match that begins inside the indentation of its line, if its other lines are
    /// indented relative to the first. Then the given indentation is not that of the file, and other lines would be
    /// written with it.
    pub fn inside_indent(&self) -> Result<Option<Splice>, UnclearIndent> {
        let body = self.text.body();
        let window = &self.lines[self.place.line..self.place.line + self.place.lines];
        let before = &body[window[0].start..self.place.start];
        let inside =
            !before.is_empty() && trim_end(before).is_empty() && self.old[0].starts_with([' ', '\t']);
        if !inside {
            return Ok(None);
        }
        match self.after_indent(window, &kept_lines(self.old, self.new))? {
            IndentReading::Given => Ok(None),
            IndentReading::Mapped(_) | IndentReading::Detached { .. } => {
                self.as_given(MatchKind::Exact).map(Some)
            }
        }
    }

    /// The reading of the new text where the old one begins after the indentation of
    /// its first line, or inside it.
    fn after_indent(
        &self,
        window: &[TextLine],
        kept: &[Option<usize>],
    ) -> Result<IndentReading, UnclearIndent> {
        let body = self.text.body();
        let before = &body[window[0].start..self.place.start];
        if before.is_empty() || !trim_end(before).is_empty() || is_blank(self.old[0]) {
            return Ok(IndentReading::Given);
        }
        let found = split_indent(window[0].content(body)).0;
        match self.detached(self.old, window, self.new, kept, found)? {
            RestIndent::AsFile => Ok(IndentReading::Given),
            RestIndent::Relative => {
                let mut indents = Indents::of(first_indent(self.new).unwrap_or_default(), found);
                indents.guess_step(body, window, self.lines, self.new);
                Ok(IndentReading::Mapped(indents))
            }
        }
    }

    /// The new text where the old one is indented differently from the file.
    fn indented(&self, kind: MatchKind) -> Result<Splice, UnclearIndent> {
        let body = self.text.body();
        let lead = usize::from(self.old.len() > 1 && is_blank(self.old[0]));
        let trail =
            usize::from(self.old.len() > 1 + lead && self.old.last().is_some_and(|last| is_blank(last)));
        let old = &self.old[lead..self.old.len() - trail];
        let MatchSpan { line, lines, .. } = self.place;
        // The token rung finds the lines themselves, without the line breaks around them.
        let window = match kind {
            MatchKind::Tokens => &self.lines[line..line + lines],
            MatchKind::Exact
            | MatchKind::LineEndings
            | MatchKind::TrailingBlanks
            | MatchKind::Indentation
            | MatchKind::Fuzzy => &self.lines[line + lead..line + lines - trail],
        };
        let (Some(first), Some(last)) = (window.first(), window.last()) else {
            return Err(UnclearIndent);
        };
        let end = if kind == MatchKind::Tokens { self.place.end } else { last.end };
        let after = &body[end..last.end];

        if self.new.iter().all(|piece| piece.is_empty()) && self.new.len() == 1 {
            if !trim_end(after).is_empty() {
                return Err(UnclearIndent);
            }
            let range = match (lead, trail) {
                (_, 1) => first.start..last.next,
                (1, _) => first.start - self.break_before(first)..last.end,
                (_, _) => first.start..last.end,
            };
            return Ok(Splice { range, new: Vec::new(), joint: 0 });
        }
        let mut new = self.new;
        let mut start = first.start;
        if lead == 1 {
            match new.split_first() {
                Some((head, rest)) if is_blank(head) && !rest.is_empty() => new = rest,
                // The blank line before is removed.
                Some(_) | None => start -= self.blank_before(first),
            }
        }
        if trail == 1
            && let Some((tail, rest)) = new.split_last()
            && is_blank(tail)
            && !rest.is_empty()
        {
            new = rest;
        }
        let aligned =
            window.len() == old.len() && (kind != MatchKind::Tokens || same_lines(body, window, old));
        let kept = if aligned { kept_lines(old, new) } else { vec![None; new.len()] };
        let reading = self.reading(old, window, new, &kept, aligned)?;
        let written = self.write(window, first.start..end, new, &kept, &reading)?;
        Ok(Splice { range: start..end, new: written, joint: 0 })
    }

    /// The bytes of the line break before a line.
    fn break_before(&self, line: &TextLine) -> usize {
        let before = &self.text.body()[..line.start];
        usize::from(before.ends_with(b"\n")) + usize::from(before.ends_with(b"\r\n"))
    }

    /// The bytes of the line before, if it is blank.
    fn blank_before(&self, line: &TextLine) -> usize {
        let body = self.text.body();
        let at = self.lines.partition_point(|other| other.start < line.start);
        let before = at.checked_sub(1).map(|before| self.lines[before]);
        before
            .filter(|before| trim_end(before.content(body)).is_empty())
            .map_or(0, |before| line.start - before.start)
    }

    /// The reading of the new text where whole lines match with other whitespace.
    fn reading(
        &self,
        old: &[&str],
        window: &[TextLine],
        new: &[&str],
        kept: &[Option<usize>],
        aligned: bool,
    ) -> Result<IndentReading, UnclearIndent> {
        let body = self.text.body();
        let Some(given) = first_indent(new) else {
            return Ok(IndentReading::Mapped(Indents::of(b"", b"")));
        };
        let found = first_found(body, window);
        let relative = || {
            let mut indents = Indents::of(given, found);
            indents.guess_step(body, window, self.lines, new);
            IndentReading::Mapped(indents)
        };
        if !aligned {
            return if is_nested(new) { Ok(relative()) } else { Err(UnclearIndent) };
        }
        if self.is_detached(old, window) {
            return Ok(match self.detached(old, window, new, kept, found)? {
                RestIndent::AsFile => IndentReading::Detached { first: found.to_vec() },
                RestIndent::Relative => relative(),
            });
        }
        let keeps = kept.iter().zip(new).any(|(kept, piece)| kept.is_some() && !is_blank(piece));
        if let Some(mut indents) = Indents::learn(body, window, old) {
            if first_indent(old) == Some(given) {
                indents.guess_step(body, window, self.lines, new);
                return Ok(IndentReading::Mapped(indents));
            }
            // Lines that stay in place and a first line that moves contradict each other.
            return if keeps { Err(UnclearIndent) } else { Ok(relative()) };
        }
        if keeps || !is_nested(new) {
            return Err(UnclearIndent);
        }
        Ok(relative())
    }

    /// Tells whether all lines of the old text but the first are indented as in the file.
    fn is_detached(&self, old: &[&str], window: &[TextLine]) -> bool {
        let body = self.text.body();
        let mut pairs = old
            .iter()
            .zip(window)
            .filter(|(piece, _)| !is_blank(piece))
            .map(|(piece, line)| (split_indent(piece.as_bytes()).0, split_indent(line.content(body)).0));
        let first = pairs.next().is_some_and(|(given, found)| width(given) < width(found));
        let mut rest = pairs.peekable();
        first && rest.peek().is_some() && rest.all(|(given, found)| given == found)
    }

    /// The indentation of the lines after the first in a new text whose old text begins
    /// with the first word of a line.
    fn detached(
        &self,
        old: &[&str],
        window: &[TextLine],
        new: &[&str],
        kept: &[Option<usize>],
        found: &[u8],
    ) -> Result<RestIndent, UnclearIndent> {
        let after_first = |pieces: &[&str]| -> Vec<usize> {
            (0..pieces.len()).filter(|at| !is_blank(pieces[*at])).skip(1).collect()
        };
        let indent = |piece: &str| split_indent(piece.as_bytes()).0.to_vec();
        let rest: Vec<usize> = after_first(new);
        let least =
            |pieces: &[&str]| after_first(pieces).into_iter().map(|at| width(&indent(pieces[at]))).min();
        let (Some(least_new), Some(least_old)) = (least(new), least(old)) else {
            // A text that shows an indentation of its first line uses it throughout.
            let shows = first_indent(old).is_some_and(|given| !given.is_empty());
            let as_file =
                rest.is_empty() || !shows && rest.iter().all(|at| indent(new[*at]).starts_with(found));
            return Ok(if as_file { RestIndent::AsFile } else { RestIndent::Relative });
        };
        if least_new >= least_old || rest.iter().any(|at| kept[*at].is_some()) {
            return Ok(RestIndent::AsFile);
        }
        // Under a line that opens a block, shallower lines can only be meant relative to it.
        let body = self.text.body();
        let second = after_first(old).first().map(|at| split_indent(window[*at].content(body)).0);
        let opens = second.is_some_and(|second| width(second) > width(found));
        if opens { Ok(RestIndent::Relative) } else { Err(UnclearIndent) }
    }

    /// The new lines. Those common to old and new keep the file's bytes.
    fn write(
        &self,
        window: &[TextLine],
        range: Range<usize>,
        new: &[&str],
        kept: &[Option<usize>],
        reading: &IndentReading,
    ) -> Result<Vec<u8>, UnclearIndent> {
        let body = self.text.body();
        let ending = self.text.ending_at(range.start).as_str().as_bytes();
        let first = new.iter().position(|piece| !is_blank(piece));
        if let IndentReading::Mapped(indents) = reading {
            let stays = |at: usize| {
                kept.get(at).copied().flatten().map(|index| split_indent(window[index].content(body)).0)
            };
            let nested = new.iter().enumerate().map(|(at, piece)| (*piece, stays(at)));
            if !indents.keeps_nesting(nested) {
                return Err(UnclearIndent);
            }
        }
        let mut out = Vec::new();
        for (at, piece) in new.iter().enumerate() {
            let kept = kept.get(at).copied().flatten();
            match (kept, reading) {
                (Some(index), _) => {
                    let line = window[index];
                    let start = line.start.max(range.start);
                    let end = line.end.min(range.end).max(start);
                    out.extend_from_slice(&body[start..end]);
                }
                (None, IndentReading::Given) => out.extend_from_slice(piece.as_bytes()),
                (None, IndentReading::Mapped(indents)) => {
                    out.extend(indents.apply(piece).ok_or(UnclearIndent)?)
                }
                (None, IndentReading::Detached { first: indent }) if first == Some(at) => {
                    out.extend_from_slice(indent);
                    out.extend_from_slice(split_indent(piece.as_bytes()).1);
                }
                (None, IndentReading::Detached { .. }) if is_blank(piece) => {}
                (None, IndentReading::Detached { .. }) => out.extend_from_slice(piece.as_bytes()),
            }
            if at + 1 < new.len() {
                let own = kept.filter(|index| index + 1 < window.len());
                out.extend_from_slice(own.map_or(ending, |index| window[index].line_break(body)));
            }
        }
        Ok(out)
    }
}

/// The readings of the indentation of the new text.
enum IndentReading {
    /// It is that of the file.
    Given,
    /// It corresponds to another one.
    Mapped(Indents),
    /// It is that of the file, except for the first line, which gets this one.
    Detached { first: Vec<u8> },
}

/// The indentation of lines after a first one that lacks its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RestIndent {
    AsFile,
    /// Relative to the first line.
    Relative,
}

/// The indentation of the first line that is not blank.
fn first_indent<'a>(pieces: &[&'a str]) -> Option<&'a [u8]> {
    let first = pieces.iter().find(|piece| !is_blank(piece))?;
    Some(split_indent(first.as_bytes()).0)
}

fn first_found<'a>(body: &'a [u8], window: &[TextLine]) -> &'a [u8] {
    let split = window.iter().map(|line| split_indent(line.content(body)));
    let mut text = split.filter(|(_, rest)| !trim_end(rest).is_empty());
    text.next().map_or(b"", |(indent, _)| indent)
}

/// Tells whether a text shows its nesting: after each line that opens a block a deeper one.
fn is_nested(pieces: &[&str]) -> bool {
    let lines: Vec<&str> = pieces.iter().copied().filter(|piece| !is_blank(piece)).collect();
    lines.windows(2).all(|two| {
        let code =
            two[0].split_once(" #").or_else(|| two[0].split_once(" //")).map_or(two[0], |(code, _)| code);
        let opens = code.trim_end().ends_with([':', '{', '(', '[']);
        let [above, below] = [two[0], two[1]].map(|line| split_indent(line.as_bytes()).0);
        let closes = two[1].trim_start().starts_with(['}', ')', ']', '-']);
        !opens || closes || width(below) > width(above)
    })
}

/// Tells whether the old lines are the lines of the window except for whitespace; the last may continue.
fn same_lines(body: &[u8], window: &[TextLine], old: &[&str]) -> bool {
    let bare = |bytes: &[u8]| -> Vec<u8> {
        bytes.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect()
    };
    window.iter().zip(old).enumerate().all(|(at, (line, piece))| {
        let (found, wanted) = (bare(line.content(body)), bare(piece.as_bytes()));
        if at + 1 == old.len() { found.starts_with(&wanted) } else { found == wanted }
    })
}

/// For each new piece, the index of the same old piece, if there is one.
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
