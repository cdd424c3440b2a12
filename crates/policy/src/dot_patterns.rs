//! The names that a pattern may mean although no folder lists them: `.` and `..`.
//!
//! Bash 5.2 leaves them out by itself (`globskipdots`); dash, older versions and `shopt -u globskipdots` do not. It
//! is not known which shell reads a text, so a part such as `.?` counts as `..` wherever a path is judged.

use crate::extglob;
use crate::places::UNKNOWN;

/// The most parts of one spelling that are tried, each in all of its meanings. With more, the path may lead anywhere.
const MOST: usize = 5;

/// Tells whether a part of a path is a pattern that may mean the folder above.
pub(crate) fn may_climb(part: &str) -> bool {
    may_mean_dots(part, "..")
}

/// Every spelling that a path may stand for beyond what its folders list, its own first: `.?/a` is `../a` too. A path
/// with more than [`MOST`] such parts may lead to the root.
pub(crate) fn meanings(spelling: &str) -> Vec<String> {
    let parts: Vec<&str> = spelling.split('/').collect();
    let dotted = parts.iter().filter(|part| may_climb(part) || may_mean_dots(part, ".")).count();
    if dotted == 0 {
        return vec![spelling.to_owned()];
    }
    if dotted > MOST {
        return vec![spelling.to_owned(), "/".to_owned()];
    }
    let mut all: Vec<Vec<&str>> = vec![Vec::with_capacity(parts.len())];
    for part in parts {
        let others = ["..", "."].into_iter().filter(|name| may_mean_dots(part, name));
        let ways: Vec<&str> = std::iter::once(part).chain(others).collect();
        all = ways
            .iter()
            .flat_map(|way| all.iter().map(|before| [before.as_slice(), &[*way]].concat()))
            .collect();
    }
    all.into_iter().map(|parts| parts.join("/")).collect()
}

/// Tells whether a part of a path is a pattern that means one of the two names. Only a pattern that begins with a dot
/// does.
pub fn may_mean_dots(part: &str, name: &str) -> bool {
    if extglob::is_extended(part) {
        return extglob::patterns(part).iter().any(|pattern| may_mean_dots(pattern, name));
    }
    let Some(rest) = part.strip_prefix('.').filter(|rest| rest.contains(['*', '?', '['])) else {
        return false;
    };
    let wanted = name.get(1..).unwrap_or_default();
    fits(rest, wanted)
}

/// Tells whether a pattern matches `wanted`, which is empty or one dot. Where its sets end is not always known (see
/// [`crate::sets`]); then it may.
fn fits(pattern: &str, wanted: &str) -> bool {
    let (mut rest, mut signs, mut dots) = (pattern, 0_usize, true);
    while let Some(next) = rest.chars().next() {
        let after = rest.get(next.len_utf8()..).unwrap_or_default();
        rest = match next {
            '*' => {
                rest = after;
                continue;
            }
            ']' | UNKNOWN => return true,
            '[' => match set(after) {
                Some((inside, after)) => {
                    dots &= may_hold_dot(inside);
                    after
                }
                None if after.contains(']') => return true,
                None => {
                    dots = false;
                    after
                }
            },
            other => {
                dots &= matches!(other, '?' | '.');
                after
            }
        };
        signs += 1;
    }
    match signs {
        0 => wanted.is_empty() || pattern.contains('*'),
        1 => !wanted.is_empty() && dots,
        _ => false,
    }
}

/// The inside of a set of characters whose bracket was just read, and the text after the set.
fn set(text: &str) -> Option<(&str, &str)> {
    let start = usize::from(text.starts_with(['!', '^']));
    let mut at = start + usize::from(text.get(start..)?.starts_with(']'));
    loop {
        let rest = text.get(at..)?;
        let next = rest.chars().next()?;
        let class = [":", "=", "."]
            .into_iter()
            .find(|sign| rest.strip_prefix('[').is_some_and(|rest| rest.starts_with(*sign)));
        at += match (next, class) {
            (']', _) => return Some((text.get(..at)?, text.get(at + 1..)?)),
            (_, Some(sign)) => rest.get(2..)?.find(&format!("{sign}]"))? + 4,
            (next, None) => next.len_utf8(),
        };
    }
}

/// Tells whether a dot may be in a set. A range or a class counts, unless it is one of letters or digits.
fn may_hold_dot(inside: &str) -> bool {
    const CLASSES: [&str; 7] =
        ["[:alpha:]", "[:alnum:]", "[:digit:]", "[:lower:]", "[:upper:]", "[:space:]", "[:xdigit:]"];
    if let Some(not) = inside.strip_prefix(['!', '^']) {
        // Only a dot that surely stands there by itself is left out of a negated set.
        let plain = !not.contains(['[', '-']) || not.trim_end_matches('-').split('-').count() == 1;
        return !(plain && not.contains('.'));
    }
    let mut rest = CLASSES.iter().fold(inside.to_owned(), |rest, class| rest.replace(class, ""));
    if rest.contains(['[', '.']) {
        return true;
    }
    // `a-z`
    while let Some(at) = rest.find('-').filter(|at| *at > 0 && at + 1 < rest.len()) {
        let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        let before = rest.get(..at).and_then(|before| before.chars().next_back());
        let behind = rest.get(at + 1..).and_then(|behind| behind.chars().next());
        if !ends(before) || !ends(behind) {
            return true;
        }
        rest.replace_range(at..=at, "");
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_with_a_dot_in_front_may_be_the_folder_above() {
        for part in [
            ".[.]",
            ".?",
            ".*",
            ".[!x]",
            ".[^x]",
            ".[.x]",
            ".[x.]",
            ".[]x.]",
            ".[!]x]",
            ".?*",
            ".*?",
            ".**",
            ".[[:punct:]]",
            ".[[.period.]]",
            ".[+-9]",
            ".[!a-z]",
            ".[!,-/]",
            "..*",
            ".*.",
            ".[x].]",
            ".@(.)",
            ".+(.)",
            ".*(.)",
            ".!(x)",
            ".?(.)",
            "@(..)",
            "@(.).",
            ".@(x|.)",
        ] {
            assert!(may_climb(part), "{part}");
        }
        for part in [
            ".",
            "..",
            "...",
            "*",
            "?",
            "??",
            "[.].",
            "?.",
            ".??*",
            ".???",
            ".[!.]*",
            ".[^.]*",
            ".[a-z]*",
            ".[A-Za-z0-9]",
            ".[[:alpha:]]",
            ".[xyz]",
            ".g*",
            ".*rc",
            ".*.swp",
            ".env*",
            "a.*",
            ".x?",
            "@(a)",
        ] {
            assert!(!may_climb(part), "{part}");
        }
    }

    #[test]
    fn a_spelling_has_every_meaning_of_its_parts() {
        for (spelling, expected) in [
            ("a/*", vec!["a/*"]),
            (".?/a", vec![".?/a", "../a"]),
            ("/x/.*", vec!["/x/.*", "/x/..", "/x/."]),
            (".?/.[.]", vec![".?/.[.]", "../.[.]", ".?/..", "../.."]),
            (".?/.?/.?/.?/.?/.?/a", vec![".?/.?/.?/.?/.?/.?/a", "/"]),
        ] {
            assert_eq!(meanings(spelling), expected, "{spelling}");
        }
    }
}
