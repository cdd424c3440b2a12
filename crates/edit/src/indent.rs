//! The correspondence between the indentation of an old text and that of the file.
//!
//! The lines that matched show it: each indentation of the old text stands for one of the file. The correspondence
//! has to keep the nesting (the same indentation always means the same one, a deeper one means a deeper one),
//! otherwise the lines are not the same lines. New lines are then indented by the observed pairs, by the step between
//! two observed levels, or, when only one level was observed, by comparing tabs with spaces. A line that these do not
//! explain has no translation: its given indentation is never written unchanged.

use crate::text::{TextLine, split_indent, trim_end};

/// The width assumed for a tab where only an order of widths is needed.
const TAB_ORDER: usize = 8;
const USUAL_STEP: usize = 4;

#[derive(Debug, Clone)]
pub(crate) struct Indents {
    /// Pairs of an indentation of the given text and one of the file, shallow ones first.
    seen: Vec<(Vec<u8>, Vec<u8>)>,
    /// One level deeper: in the given text, in the file.
    step: Option<(Vec<u8>, Vec<u8>)>,
}

impl Indents {
    /// Learns the correspondence; `None` if the lines are not nested as the pieces are. `window` and `pieces` have
    /// the same length and are equal except for whitespace.
    pub fn learn(body: &[u8], window: &[TextLine], pieces: &[&str]) -> Option<Self> {
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
        if !nested || seen.is_empty() {
            return None;
        }
        let seen: Vec<(Vec<u8>, Vec<u8>)> =
            seen.into_iter().map(|(given, found)| (given.to_vec(), found.to_vec())).collect();
        let step = seen_step(&seen);
        Some(Self { seen, step })
    }

    /// One indentation of the given text that stands for one of the file.
    pub fn of(given: &[u8], found: &[u8]) -> Self {
        Self { seen: vec![(given.to_vec(), found.to_vec())], step: None }
    }

    /// Adds the step that the match could not show: with one observed level, the step of new lines can only be
    /// guessed from the new text, the lines of the match and the whole file. Only tabs and spaces are converted into
    /// each other; in a file of spaces, the number of given spaces stays.
    pub fn guess_step(&mut self, body: &[u8], window: &[TextLine], lines: &[TextLine], new: &[&str]) {
        let Some((base, found)) = self.seen.first() else {
            return;
        };
        let deltas = new.iter().filter_map(|piece| {
            let (given, rest) = split_indent(piece.as_bytes());
            let delta = given.strip_prefix(base.as_slice()).or_else(|| base.strip_prefix(given))?;
            (!trim_end(rest).is_empty() && !delta.is_empty()).then_some(delta)
        });
        let Some(given) = deltas.min_by_key(|delta| width(delta)) else {
            return;
        };
        if let Some(step) = &mut self.step {
            refine(step, given);
            return;
        }
        let spaces = |count: usize| vec![b' '; count];
        self.step = match (uniform(given), self.style(body, window, lines, found)) {
            (Some(b' '), Some(Style::Step(step))) if only(&step, b'\t') => Some((given.to_vec(), step)),
            (Some(b' '), Some(Style::Tabs)) => {
                // The base shows how many spaces a tab is, unless the new text has smaller steps.
                let one =
                    base.len().checked_div(found.len()).filter(|_| only(base, b' ') && only(found, b'\t'));
                let one = one.filter(|one| {
                    *one > 0 && given.len().is_multiple_of(*one) && base.len() == one * found.len()
                });
                Some((spaces(one.unwrap_or(given.len())), b"\t".to_vec()))
            }
            (Some(b'\t'), Some(Style::Step(step))) if only(&step, b' ') => Some((b"\t".to_vec(), step)),
            (Some(b'\t'), Some(Style::Spaces)) => {
                let one =
                    found.len().checked_div(base.len()).filter(|_| only(base, b'\t') && only(found, b' '));
                let one = one.filter(|one| *one > 0 && found.len() == one * base.len());
                Some((b"\t".to_vec(), spaces(one.unwrap_or_else(|| usual_spaces(body, lines)))))
            }
            _ => None,
        };
    }

    /// The indentation of a deeper line at this place: as another line of the match shows, otherwise as the line
    /// itself is indented, otherwise as most lines of the file are.
    fn style(&self, body: &[u8], window: &[TextLine], lines: &[TextLine], found: &[u8]) -> Option<Style> {
        let indents = |lines: &[TextLine]| -> Vec<Vec<u8>> {
            let split = lines.iter().map(|line| split_indent(line.content(body)));
            split.filter(|(_, rest)| !trim_end(rest).is_empty()).map(|(indent, _)| indent.to_vec()).collect()
        };
        let deeper = indents(window)
            .into_iter()
            .filter_map(|indent| indent.strip_prefix(found).map(<[u8]>::to_vec))
            .filter(|step| !step.is_empty())
            .min_by_key(|step| width(step));
        if let Some(step) = deeper {
            return Some(Style::Step(step));
        }
        match uniform(found) {
            Some(b'\t') => return Some(Style::Tabs),
            Some(_) => return Some(Style::Spaces),
            None if !found.is_empty() => return None,
            None => {}
        }
        let all = indents(lines);
        let tabs = all.iter().filter(|indent| indent.starts_with(b"\t")).count();
        let spaces = all.iter().filter(|indent| indent.starts_with(b" ")).count();
        match tabs.cmp(&spaces) {
            std::cmp::Ordering::Greater => Some(Style::Tabs),
            std::cmp::Ordering::Less => Some(Style::Spaces),
            std::cmp::Ordering::Equal => None,
        }
    }

    /// Tells whether the lines of the new text are nested in the file as they were given. `stays` is the indentation
    /// of a line that keeps the file's bytes.
    pub fn keeps_nesting<'a>(&self, new: impl Iterator<Item = (&'a str, Option<&'a [u8]>)>) -> bool {
        let mut pairs: Vec<(&[u8], Vec<u8>)> = Vec::new();
        for (piece, stays) in new {
            let (given, rest) = split_indent(piece.as_bytes());
            if trim_end(rest).is_empty() {
                continue;
            }
            let Some(found) = stays.map(<[u8]>::to_vec).or_else(|| self.translate(given)) else {
                return false;
            };
            if !pairs.contains(&(given, found.clone())) {
                pairs.push((given, found));
            }
        }
        pairs.sort_by_key(|(given, _)| width(given));
        pairs.windows(2).all(|two| {
            let [(given, found), (deeper_given, deeper_found)] = [&two[0], &two[1]];
            let within = !deeper_given.starts_with(given) || deeper_found.starts_with(found);
            width(given) < width(deeper_given) && width(found) < width(deeper_found) && within
        })
    }

    /// A line of the new text with the indentation it has in the file.
    pub fn apply(&self, piece: &str) -> Option<Vec<u8>> {
        let (given, rest) = split_indent(piece.as_bytes());
        if trim_end(rest).is_empty() {
            return Some(Vec::new());
        }
        let mut line = self.translate(given)?;
        line.extend_from_slice(rest);
        Some(line)
    }

    fn translate(&self, given: &[u8]) -> Option<Vec<u8>> {
        // The deepest observed level at or above the line.
        let above = self.seen.iter().rev().find(|(seen, _)| given.starts_with(seen));
        if let Some((seen, found)) = above {
            let more = self.convert(&given[seen.len()..]);
            // A tab after spaces has no width that all readers agree on.
            let clashes = more.contains(&b'\t') && found.ends_with(b" ");
            return (!clashes).then(|| [found.as_slice(), &more].concat());
        }
        // The line is shallower than all observed ones: step out from the shallowest.
        let (seen, found) = self.seen.iter().find(|(seen, _)| seen.starts_with(given))?;
        found.strip_suffix(self.convert(&seen[given.len()..]).as_slice()).map(<[u8]>::to_vec)
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

enum Style {
    Tabs,
    Spaces,
    /// The indentation that one level adds.
    Step(Vec<u8>),
}

fn seen_step(seen: &[(Vec<u8>, Vec<u8>)]) -> Option<(Vec<u8>, Vec<u8>)> {
    let steps = seen.windows(2).filter_map(|two| {
        let given = two[1].0.strip_prefix(two[0].0.as_slice())?;
        let found = two[1].1.strip_prefix(two[0].1.as_slice())?;
        Some((given.to_vec(), found.to_vec()))
    });
    if let Some((given, found)) = steps.min_by_key(|(given, _)| given.len()) {
        // Two levels at once show the indentation of one level.
        if only(&given, b' ') && only(&found, b'\t') && given.len().is_multiple_of(found.len()) {
            return Some((vec![b' '; given.len() / found.len()], b"\t".to_vec()));
        }
        return Some((given, found));
    }
    None
}

/// Makes a step smaller if the new text has a smaller one that divides it.
fn refine(step: &mut (Vec<u8>, Vec<u8>), given: &[u8]) {
    let (from, to) = (step.0.len(), step.1.len());
    if uniform(given).is_none() || uniform(&step.0) != uniform(given) || uniform(&step.1).is_none() {
        return;
    }
    let parts = from / given.len();
    if parts > 1 && from.is_multiple_of(given.len()) && to.is_multiple_of(parts) {
        step.0.truncate(given.len());
        step.1.truncate(to / parts);
    }
}

/// The smallest indentation of a file that is indented by spaces. A single space is that of a comment's second line.
fn usual_spaces(body: &[u8], lines: &[TextLine]) -> usize {
    lines
        .iter()
        .map(|line| split_indent(line.content(body)))
        .filter(|(indent, rest)| indent.len() > 1 && only(indent, b' ') && !rest.is_empty())
        .map(|(indent, _)| indent.len())
        .min()
        .unwrap_or(USUAL_STEP)
}

/// The one byte that an indentation consists of.
fn uniform(indent: &[u8]) -> Option<u8> {
    let first = *indent.first()?;
    only(indent, first).then_some(first)
}

fn only(indent: &[u8], byte: u8) -> bool {
    !indent.is_empty() && indent.iter().all(|&found| found == byte)
}

/// The depth of an indentation for comparisons, not its width on a screen.
pub(crate) fn width(indent: &[u8]) -> usize {
    indent.iter().map(|&byte| if byte == b'\t' { TAB_ORDER } else { 1 }).sum()
}
