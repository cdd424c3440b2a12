//! Expands `{a,b}`, because bash does it before any other expansion: `{rm,-rf,/}` is three words.

use std::borrow::Cow;

/// The most words that one word expands to, and the most bytes of all words in between.
const MOST: usize = 4096;
const MOST_TEXT: usize = 256 * 1024;

/// A longer word is not expanded.
const LONGEST: usize = 4096;

/// Tells whether the braces of a word may be a brace expansion.
pub(crate) fn may_expand(text: &str) -> bool {
    text.contains('}') && (text.contains(',') || text.contains(".."))
}

/// Tells whether the brace at the beginning may begin one. Only a short part after it is read, so that a word full of
/// braces stays linear; a longer one counts as an expansion.
pub(crate) fn may_begin(text: &str) -> bool {
    if text.starts_with("{}") {
        return false;
    }
    let near = text.as_bytes().get(1..text.len().min(200)).unwrap_or(&[]);
    match near.iter().position(|byte| *byte == b'}') {
        Some(end) => near.get(..end).is_some_and(|inside| {
            inside.iter().any(|byte| b",{$".contains(byte)) || inside.windows(2).any(|two| two == b"..")
        }),
        None => near.len() + 1 < text.len(),
    }
}

/// The result of expanding the braces of a word.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BraceExpansion {
    /// There are none to expand, or only numbers, which are left as they stand.
    Nothing,
    /// The words they give, each still quoted.
    Words(Vec<String>),
    /// More words than are read.
    TooMany,
}

/// Expands the braces of a word without other expansions.
pub(crate) fn expand_braces(raw: &str) -> BraceExpansion {
    if !may_expand(raw) {
        return BraceExpansion::Nothing;
    }
    if raw.len() > LONGEST {
        let braced = unquoted(raw).any(|(_, c)| c == '{') && unquoted(raw).any(|(_, c)| c == ',');
        return if braced { BraceExpansion::TooMany } else { BraceExpansion::Nothing };
    }
    let (mut work, mut room) = (vec![raw.to_owned()], MOST_TEXT);
    let mut done: Vec<String> = Vec::new();
    let mut multiplied = false;
    // The first word with braces left is replaced by its alternatives, in order.
    while let Some(word) = work.pop() {
        match split(&word) {
            None => done.push(word),
            Some((before, parts, after)) => {
                multiplied = true;
                for part in parts.iter().rev() {
                    let word = format!("{before}{part}{after}");
                    let Some(left) = room.checked_sub(word.len()) else { return BraceExpansion::TooMany };
                    room = left;
                    work.push(word);
                }
            }
        }
        if work.len() + done.len() > MOST {
            return BraceExpansion::TooMany;
        }
    }
    if multiplied { BraceExpansion::Words(done) } else { BraceExpansion::Nothing }
}

/// The first unquoted `{…,…}` or `{a..z}`: the text before it, its alternatives, the text after it.
fn split(word: &str) -> Option<(&str, Vec<Cow<'_, str>>, &str)> {
    let mut from = 0;
    loop {
        let open = find_open(word, from)?;
        if let Some((parts, end)) = alternatives(word, open) {
            return Some((word.get(..open)?, parts, word.get(end..)?));
        }
        from = open + 1;
    }
}

/// `a..e`, `e..a..2`: letters one after the other.
fn letters(inside: &str) -> Option<Vec<Cow<'static, str>>> {
    let mut parts = inside.split("..");
    let mut letter = || {
        let text = parts.next()?;
        text.bytes().next().filter(|byte| text.len() == 1 && byte.is_ascii_alphabetic())
    };
    let (from, to) = (letter()?, letter()?);
    let step = match parts.next() {
        None => 1,
        Some(step) => step.parse::<i64>().ok()?.unsigned_abs().max(1),
    };
    let step = usize::try_from(step).ok()?;
    if parts.next().is_some() {
        return None;
    }
    let all = from.min(to)..=from.max(to);
    let one = |byte: u8| Cow::Owned(char::from(byte).to_string());
    Some(if from <= to {
        all.step_by(step).map(one).collect()
    } else {
        all.rev().step_by(step).map(one).collect()
    })
}

fn find_open(word: &str, from: usize) -> Option<usize> {
    unquoted(word).find(|(at, c)| *at >= from && *c == '{').map(|(at, _)| at)
}

fn alternatives(word: &str, open: usize) -> Option<(Vec<Cow<'_, str>>, usize)> {
    let (mut depth, mut begin, mut parts) = (0_usize, open + 1, Vec::new());
    for (at, c) in unquoted(word).filter(|(at, _)| *at >= open) {
        match c {
            '{' => depth += 1,
            '}' => {
                depth -= 1;
                if depth == 0 {
                    if parts.is_empty() {
                        return Some((letters(word.get(begin..at)?)?, at + 1));
                    }
                    parts.push(Cow::Borrowed(word.get(begin..at)?));
                    return Some((parts, at + 1));
                }
            }
            ',' if depth == 1 => {
                parts.push(Cow::Borrowed(word.get(begin..at)?));
                begin = at + 1;
            }
            _ => {}
        }
    }
    None
}

/// The characters outside of quotes.
fn unquoted(word: &str) -> impl Iterator<Item = (usize, char)> + '_ {
    let (mut quote, mut escaped) = (None, false);
    word.char_indices().filter(move |(_, c)| {
        if escaped {
            escaped = false;
            return false;
        }
        match (quote, c) {
            (None | Some('"'), '\\') => {
                escaped = true;
                false
            }
            (None, '\'' | '"') => {
                quote = Some(*c);
                false
            }
            (Some(open), c) => {
                if open == *c {
                    quote = None;
                }
                false
            }
            (None, _) => true,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{BraceExpansion, expand_braces};

    #[test]
    fn braces_multiply_as_in_bash() {
        for (raw, words) in [
            ("{rm,-rf,/}", vec!["rm", "-rf", "/"]),
            ("a{b,c}d{e,f}", vec!["abde", "abdf", "acde", "acdf"]),
            ("{a,{b,c}}", vec!["a", "b", "c"]),
            ("x{,y}", vec!["x", "xy"]),
            ("{'a,b',c}", vec!["'a,b'", "c"]),
            ("~/{x,..}", vec!["~/x", "~/.."]),
            ("{1..3,x}", vec!["1..3", "x"]),
            ("{a,b}{1..3}", vec!["a{1..3}", "b{1..3}"]),
            ("a{c..a}", vec!["ac", "ab", "aa"]),
            (".{g..g}it", vec![".git"]),
            ("{a..e..2}", vec!["a", "c", "e"]),
        ] {
            let words = words.into_iter().map(str::to_owned).collect();
            assert_eq!(expand_braces(raw), BraceExpansion::Words(words), "{raw}");
        }
        for raw in ["{}", "{a}", "a,b", "'{a,b}'", "{a,b", "{1..3}", "{a..bc}", "{a..b..c}"] {
            assert_eq!(expand_braces(raw), BraceExpansion::Nothing, "{raw}");
        }
        assert_eq!(expand_braces(&"{a,b}".repeat(30)), BraceExpansion::TooMany);
        assert_eq!(expand_braces(&format!("{{{}}}", "a,".repeat(5000))), BraceExpansion::TooMany);
    }
}
