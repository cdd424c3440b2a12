//! The place most like a text that was not found, as a hint for the next attempt.
//!
//! Comparing every window of lines with `similar` would be quadratic. So windows are first ranked by the number of
//! bytes they share with the wanted text in any order, which takes one pass over the file and is an upper bound of
//! the true likeness; only the best few are then compared exactly.

use similar::{Algorithm, capture_diff_slices, diff_ratio};

use crate::text::{TextLine, split_indent, trim_end};
use crate::{Nearest, TextContent};

const MAX_FILE: usize = 1024 * 1024;
const MAX_OLD: usize = 8 * 1024;
/// Below this size bytes are compared, above it lines.
const BYTEWISE: usize = 1024;
const CANDIDATES: usize = 12;
/// A smaller likeness would mislead more than help.
const ENOUGH: f32 = 0.5;

pub(crate) fn nearest(text: &TextContent<'_>, lines: &[TextLine], old: &[&str]) -> Option<Nearest> {
    let body = text.body();
    // The line breaks around the text are not lines to search for.
    let first = old.iter().position(|piece| !piece.trim().is_empty())?;
    let last = old.iter().rposition(|piece| !piece.trim().is_empty())?;
    let old: Vec<&[u8]> = old[first..=last].iter().map(|piece| piece.as_bytes()).collect();
    let size: usize = old.iter().map(|piece| bare(piece).len()).sum();
    if body.len() > MAX_FILE || size > MAX_OLD || lines.len() < old.len() {
        return None;
    }

    let mut ranked = rank(body, lines, &old, size);
    ranked.sort_by(|(likeness, line), (other, other_line)| other.cmp(likeness).then(line.cmp(other_line)));
    ranked.truncate(CANDIDATES);

    let mut best: Option<(f32, usize)> = None;
    for (_, at) in ranked {
        let window: Vec<&[u8]> = lines[at..at + old.len()].iter().map(|line| line.content(body)).collect();
        let likeness = ratio(&old, &window, size);
        if likeness >= ENOUGH && best.is_none_or(|(found, _)| likeness > found) {
            best = Some((likeness, at));
        }
    }
    let (_, at) = best?;
    let shown = &body[lines[at].start..lines[at + old.len() - 1].end];
    Some(Nearest { line: at + 1, text: String::from_utf8_lossy(shown).into_owned() })
}

/// Windows with their likeness by shared bytes, in thousandths. Indentation does not count, or deep lines would all
/// be alike. Windows much longer than the text (one line of a bundled script) are left out.
fn rank(body: &[u8], lines: &[TextLine], old: &[&[u8]], size: usize) -> Vec<(usize, usize)> {
    let mut balance = [0_i64; 256];
    for piece in old {
        for &byte in bare(piece) {
            balance[usize::from(byte)] += 1;
        }
    }
    let mut missing: usize = size;
    let mut held = 0;
    let mut ranked = Vec::new();
    for (end, line) in lines.iter().enumerate() {
        for &byte in bare(line.content(body)) {
            let left = &mut balance[usize::from(byte)];
            missing -= usize::from(*left > 0);
            *left -= 1;
            held += 1;
        }
        let Some(start) = (end + 1).checked_sub(old.len()) else {
            continue;
        };
        if held <= 4 * size + 200 {
            ranked.push((2000 * (size - missing) / (size + held).max(1), start));
        }
        for &byte in bare(lines[start].content(body)) {
            let left = &mut balance[usize::from(byte)];
            *left += 1;
            missing += usize::from(*left > 0);
            held -= 1;
        }
    }
    ranked
}

fn ratio(old: &[&[u8]], window: &[&[u8]], size: usize) -> f32 {
    if size > BYTEWISE {
        let old: Vec<&[u8]> = old.iter().map(|piece| bare(piece)).collect();
        let window: Vec<&[u8]> = window.iter().map(|line| bare(line)).collect();
        return likeness(&old, &window);
    }
    likeness(&old.join(&b'\n'), &window.join(&b'\n'))
}

fn likeness<T: Eq + std::hash::Hash>(old: &[T], new: &[T]) -> f32 {
    diff_ratio(&capture_diff_slices(Algorithm::Myers, old, new), old.len(), new.len())
}

fn bare(line: &[u8]) -> &[u8] {
    split_indent(trim_end(line)).1
}
