//! How the indentation of an old text corresponds to that of the file.
//!
//! The lines that matched show it: each indentation of the old text stands for
//! one of the file. The correspondence has to keep the nesting (the same
//! indentation always means the same one, a deeper one means a deeper one), else
//! the lines are not the same lines and there is no match. New lines are then
//! indented by what was seen, by the step between two seen levels, or, when only
//! one level was seen, by comparing tabs with spaces.

use crate::text::{Line, split_indent, trim_end};

/// The width assumed for a tab where only an order of widths is wanted.
const TAB_ORDER: usize = 8;
const USUAL_STEP: usize = 4;

pub(crate) struct Indents {
    /// Indentation of the old text and of the file, shallow ones first.
    seen: Vec<(Vec<u8>, Vec<u8>)>,
    /// One level deeper: in the old text, in the file.
    step: Option<(Vec<u8>, Vec<u8>)>,
}

impl Indents {
    /// `None` where the lines are not nested as the pieces are. `window` and
    /// `pieces` are as long as each other and equal but for whitespace.
    pub fn learn(body: &[u8], window: &[Line], pieces: &[&str]) -> Option<Self> {
        let mut seen: Vec<(&[u8], &[u8])> = Vec::new();
        for (line, piece) in window.iter().zip(pieces) {
            let (given, rest) = split_indent(piece.as_bytes());
            if trim_end(rest).is_empty() {
                continue;
            }
            let (found, _) = split_indent(line.content(body));
            if !seen.contains(&(given, found)) {
                seen.push((given, found));
            }
        }
        seen.sort_by_key(|(given, _)| width(given));
        let nested = seen.windows(2).all(|two| {
            let [(given, found), (deeper_given, deeper_found)] = [two[0], two[1]];
            width(given) < width(deeper_given) && width(found) < width(deeper_found)
        });
        if !nested {
            return None;
        }
        let seen: Vec<(Vec<u8>, Vec<u8>)> =
            seen.into_iter().map(|(given, found)| (given.to_vec(), found.to_vec())).collect();
        let step = seen_step(&seen);
        Some(Self { seen, step })
    }

    /// Completes what the match could not show: with one level seen and that level
    /// not indented in the old text, the step of new lines can only be guessed from
    /// the new text and the whole file.
    pub fn guess_step(&mut self, body: &[u8], lines: &[Line], new: &[&str]) {
        if self.step.is_some() {
            return;
        }
        let Some((_, found)) = self.seen.first() else {
            return;
        };
        let given =
            new.iter().map(|piece| split_indent(piece.as_bytes()).0).filter(|indent| !indent.is_empty());
        let Some(given) = given.min_by_key(|indent| width(indent)) else {
            return;
        };
        if only(found, b'\t') && only(given, b' ') {
            self.step = Some((given.to_vec(), b"\t".to_vec()));
        } else if only(found, b' ') && only(given, b'\t') {
            let spaces = lines
                .iter()
                .map(|line| split_indent(line.content(body)))
                .filter(|(indent, rest)| indent.len() > 1 && only(indent, b' ') && !rest.is_empty())
                .map(|(indent, _)| indent.len())
                .min()
                .unwrap_or(USUAL_STEP);
            self.step = Some((b"\t".to_vec(), vec![b' '; spaces]));
        }
    }

    /// A line of the new text with the indentation it has in the file.
    pub fn apply(&self, piece: &str) -> Vec<u8> {
        let (given, rest) = split_indent(piece.as_bytes());
        if rest.is_empty() {
            return piece.as_bytes().to_vec();
        }
        let mut line = self.translate(given);
        line.extend_from_slice(rest);
        line
    }

    fn translate(&self, given: &[u8]) -> Vec<u8> {
        // The deepest level seen at or above the line.
        let above = self.seen.iter().rev().find(|(seen, _)| given.starts_with(seen));
        if let Some((seen, found)) = above {
            let mut indent = found.clone();
            indent.extend(self.convert(&given[seen.len()..]));
            return indent;
        }
        // The line is shallower than all that was seen: step out from the shallowest.
        let below = self.seen.iter().find(|(seen, _)| seen.starts_with(given));
        if let Some((seen, found)) = below {
            let out = self.convert(&seen[given.len()..]);
            if let Some(indent) = found.strip_suffix(out.as_slice()) {
                return indent.to_vec();
            }
        }
        self.convert(given)
    }

    fn convert(&self, mut given: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(given.len());
        if let Some((from, to)) = &self.step {
            while let Some(rest) = given.strip_prefix(from.as_slice()) {
                out.extend_from_slice(to);
                given = rest;
            }
        }
        out.extend_from_slice(given);
        out
    }
}

fn seen_step(seen: &[(Vec<u8>, Vec<u8>)]) -> Option<(Vec<u8>, Vec<u8>)> {
    let steps = seen.windows(2).filter_map(|two| {
        let given = two[1].0.strip_prefix(two[0].0.as_slice())?;
        let found = two[1].1.strip_prefix(two[0].1.as_slice())?;
        Some((given.to_vec(), found.to_vec()))
    });
    if let Some(step) = steps.min_by_key(|(given, _)| given.len()) {
        return Some(step);
    }
    let (given, found) = seen.first()?;
    if only(given, b' ') && only(found, b'\t') && given.len().is_multiple_of(found.len()) {
        return Some((vec![b' '; given.len() / found.len()], b"\t".to_vec()));
    }
    if only(given, b'\t') && only(found, b' ') && found.len().is_multiple_of(given.len()) {
        return Some((b"\t".to_vec(), vec![b' '; found.len() / given.len()]));
    }
    None
}

fn only(indent: &[u8], byte: u8) -> bool {
    !indent.is_empty() && indent.iter().all(|&found| found == byte)
}

fn width(indent: &[u8]) -> usize {
    indent.iter().map(|&byte| if byte == b'\t' { TAB_ORDER } else { 1 }).sum()
}
