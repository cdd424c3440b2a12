//! The rung that compares words and signs: whitespace between them does not count.
//!
//! The idea is Gemini CLI's, so that its toolset finds the same. It is stricter where that would join separate parts:
//! two words stay two words, a line break between two words is one in the file as well, and the last word must end
//! where the given one does. A match begins with the first word of a line and may end inside a line: the text after
//! it there is not part of it.

use crate::TextContent;
use crate::find::{MatchSpan, is_blank};
use crate::text::TextLine;

/// The most bytes that may be compared.
const BUDGET: usize = 20_000_000;
/// Whitespace around these signs is optional.
const SIGNS: &[u8] = b"():[]{}<>=,;";

/// All matches, including overlapping ones, in order.
pub(crate) fn find(text: &TextContent<'_>, lines: &[TextLine], pieces: &[&str]) -> Vec<MatchSpan> {
    let lead = usize::from(pieces.len() > 1 && pieces.first().is_some_and(|piece| is_blank(piece)));
    let trail = usize::from(pieces.len() > 1 + lead && pieces.last().is_some_and(|piece| is_blank(piece)));
    let core = pieces[lead..pieces.len() - trail].join("\n");
    let wanted = core.trim_ascii().as_bytes();
    let body = text.body();
    let mut budget = BUDGET;
    let mut places = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let content = line.content(body);
        let Some(indent) = content.iter().position(|byte| !byte.is_ascii_whitespace()) else {
            continue;
        };
        let Some(end) = matches(body, line.start + indent, wanted, &mut budget) else {
            if budget == 0 {
                // An incomplete search could call an ambiguous text unique.
                return Vec::new();
            }
            continue;
        };
        let over = 1 + crate::text::newlines(&body[line.start..end]);
        places.push(MatchSpan { start: line.start, end, line: index, lines: over });
    }
    places
}

/// The end of the wanted text if it begins at `at`.
fn matches(body: &[u8], mut at: usize, wanted: &[u8], budget: &mut usize) -> Option<usize> {
    let mut before: Option<u8> = None;
    let mut from = 0;
    while from < wanted.len() {
        *budget = budget.saturating_sub(1);
        if *budget == 0 {
            return None;
        }
        let (given, next) = blanks(wanted, from);
        let (found, here) = blanks(body, at);
        let sign = before.is_some_and(is_sign) || wanted.get(next).is_some_and(|byte| is_sign(*byte));
        let fits = match before {
            None => true,
            Some(_) if sign => true,
            Some(_) => given.any == found.any && given.breaks == found.breaks,
        };
        if !fits || body.get(here) != wanted.get(next) {
            return None;
        }
        before = wanted.get(next).copied();
        (from, at) = (next + 1, here + 1);
    }
    // `1` is not the beginning of `12` or of `1.5`.
    let open =
        before.is_some_and(is_word) && body.get(at).is_some_and(|byte| is_word(*byte) || *byte == b'.');
    (!open && !wanted.is_empty()).then_some(at)
}

/// A run of whitespace.
struct Run {
    any: bool,
    breaks: bool,
}

/// The whitespace at `at`, and its end.
fn blanks(bytes: &[u8], at: usize) -> (Run, usize) {
    let run = bytes[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let breaks = bytes[at..at + run].contains(&b'\n');
    (Run { any: run > 0, breaks }, at + run)
}

fn is_sign(byte: u8) -> bool {
    SIGNS.contains(&byte)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}
