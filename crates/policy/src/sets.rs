//! Sets of characters in patterns of bash: `[a-z]`, `[]x]`, `[!]x]`, `[[:alpha:]]`, `[[=s=]]`, `[[.s.]]`.
//!
//! The spellings of words have lost their quotes, so `[i\]]` arrives as `[i]]`, and the end of a set is not always
//! certain. A set that can be read becomes `?`; otherwise everything from the first bracket to the last becomes `*`,
//! which stands for more than bash would find and never for less.

use crate::places::UNKNOWN;

/// The pattern with `?` in place of a set of characters, and `*` in place of a part that cannot be read.
pub(crate) fn simplified(pattern: &str) -> String {
    let parts: Vec<String> = pattern.split('/').map(part).collect();
    parts.join("/")
}

/// The simplified pattern of one part of a path. A bracket without an end is a character.
fn part(part: &str) -> String {
    let ends = part.find('[').zip(part.rfind(']')).filter(|(open, close)| open < close);
    let Some((open, close)) = ends else { return part.to_owned() };
    let (before, after) = (part.get(..open).unwrap_or_default(), part.get(close + 1..).unwrap_or_default());
    if part.get(open + 1..close).is_some_and(is_one_set) {
        return format!("{before}?{after}");
    }
    // Two stars would match across folders.
    format!("{}*{}", before.trim_end_matches('*'), after.trim_start_matches('*'))
}

/// Tells whether the text between two brackets is one set, with no end before the last bracket.
fn is_one_set(inside: &str) -> bool {
    let inside = inside.strip_prefix(['!', '^']).unwrap_or(inside);
    // A bracket at the beginning is one of the characters.
    let mut rest = inside.strip_prefix(']').unwrap_or(inside);
    while let Some(next) = rest.chars().next() {
        let class = rest.get(1..2).filter(|_| next == '[').filter(|sign| [":", "=", "."].contains(sign));
        rest = match (next, class) {
            (']' | UNKNOWN, _) => return false,
            (_, Some(sign)) => {
                let Some((name, after)) = rest.get(2..).and_then(|rest| rest.split_once(&format!("{sign}]")))
                else {
                    return false;
                };
                if name.contains([']', '[']) {
                    return false;
                }
                after
            }
            (next, None) => rest.get(next.len_utf8()..).unwrap_or_default(),
        };
    }
    !inside.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_read_as_bash_reads_them_or_stand_for_anything() {
        for (pattern, expected) in [
            ("a", "a"),
            ("[ab]c", "?c"),
            ("x[!a-z]", "x?"),
            (".gi[[:alpha:]]", ".gi?"),
            ("[[=s=]]x", "?x"),
            ("[[.s.]]x", "?x"),
            ("[[:alpha:]_0-9]x", "?x"),
            ("[]t]", "?"),
            ("[!]t]", "?"),
            ("[^]t]", "?"),
            // A quoted bracket has lost its quote.
            (".g[i]]t", ".g*t"),
            (".gi[x]b[t]", ".gi*"),
            ("[a][b]*", "*"),
            ("[[:alpha:]", "*"),
            ("[]", "*"),
            ("[a", "[a"),
            ("a]", "a]"),
            ("]a[", "]a["),
            ("/w/[a/b]", "/w/[a/b]"),
            ("[a]/[b]", "?/?"),
            ("[\u{1}]", "*"),
        ] {
            assert_eq!(simplified(pattern), expected, "{pattern}");
        }
    }
}
