//! `{a,b}` multiplied out, because bash does it before it looks at anything else: `{rm,-rf,/}` is three words.

use std::borrow::Cow;

/// Words that one word is multiplied out to, and bytes of all that stands in between.
const MOST: usize = 4096;
const MOST_TEXT: usize = 256 * 1024;

/// A longer word is not multiplied out.
const LONGEST: usize = 4096;

/// Whether the braces of a word may be a brace expansion.
pub(crate) fn may_multiply(text: &str) -> bool {
    text.contains('}') && (text.contains(',') || text.contains(".."))
}

/// Whether the brace at the beginning may begin one. Only a little of what follows is looked at, so that a word full of
/// braces stays linear; what is longer counts as one.
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

/// What the braces of a word come to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Multiplied {
    /// There are none to multiply out, or only numbers, which are left as they stand.
    Nothing,
    /// The words they give, each still quoted.
    Words(Vec<String>),
    /// More than are looked at.
    TooMany,
}

/// Multiplies the braces of a word without expansions.
pub(crate) fn multiply(raw: &str) -> Multiplied {
    if !may_multiply(raw) {
        return Multiplied::Nothing;
    }
    if raw.len() > LONGEST {
        let braced = unquoted(raw).any(|(_, c)| c == '{') && unquoted(raw).any(|(_, c)| c == ',');
        return if braced { Multiplied::TooMany } else { Multiplied::Nothing };
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
                    let Some(left) = room.checked_sub(word.len()) else { return Multiplied::TooMany };
                    room = left;
                    work.push(word);
                }
            }
        }
        if work.len() + done.len() > MOST {
            return Multiplied::TooMany;
        }
    }
    if multiplied { Multiplied::Words(done) } else { Multiplied::Nothing }
}

/// The first unquoted `{…,…}` or `{a..z}`: what stands before, its alternatives, what stands after.
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
    use super::{Multiplied, multiply};

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
            assert_eq!(multiply(raw), Multiplied::Words(words), "{raw}");
        }
        for raw in ["{}", "{a}", "a,b", "'{a,b}'", "{a,b", "{1..3}", "{a..bc}", "{a..b..c}"] {
            assert_eq!(multiply(raw), Multiplied::Nothing, "{raw}");
        }
        assert_eq!(multiply(&"{a,b}".repeat(30)), Multiplied::TooMany);
        assert_eq!(multiply(&format!("{{{}}}", "a,".repeat(5000))), Multiplied::TooMany);
    }
}
