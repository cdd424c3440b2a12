//! Which words of a program are files, which of them it writes, and whether it goes through folders.

use crate::guard::{find_parts, operands, recursive};
use crate::harm::files_of_sed;
use crate::reading::Depth;

/// Programs whose first word is a pattern or a program of their own, unless an option gives it.
pub(crate) const PATTERN_FIRST: [&str; 16] = [
    "grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "fd", "fdfind", "awk", "gawk", "mawk", "nawk",
    "jq", "gojq", "yq",
];

/// The words that surely are files or folders.
pub(crate) fn sure<'w>(name: &str, words: &[&'w str]) -> Vec<&'w str> {
    match name {
        "sed" => files_of_sed(words),
        "find" => find_parts(words).starts,
        "dd" => Vec::new(),
        "git" => {
            // Behind the mark, everything is a path.
            let at = words.iter().position(|word| *word == "--");
            at.and_then(|at| words.get(at + 1..)).unwrap_or_default().to_vec()
        }
        _ if PATTERN_FIRST.contains(&name) => {
            let given = |word: &str| {
                matches!(word, "-e" | "-f" | "--regexp" | "--file" | "--files" | "--from-file")
                    || word.starts_with("--regexp=")
                    || word.starts_with("--file=")
                    || word.starts_with("--from-file=")
                    || (word.starts_with('-')
                        && !word.starts_with("--")
                        && word.len() > 2
                        && word.contains(['e', 'f'])
                        && name.contains("grep"))
            };
            let is_pattern = |before: &str| {
                let letters = before.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
                before == "--regexp"
                    || letters.is_some_and(|letters| letters.ends_with('e') && name.contains(['g', 'a']))
            };
            let files = words.iter().enumerate().filter(|(index, _)| {
                let before = index.checked_sub(1).and_then(|before| words.get(before));
                !before.is_some_and(|before| is_pattern(before))
            });
            let files: Vec<&str> = files.map(|(_, word)| *word).collect();
            let patterns = usize::from(!words.iter().any(|word| given(word)));
            operands(&files).into_iter().skip(patterns).collect()
        }
        _ => operands(words),
    }
}

/// Parts of a program's text that may be files. A regular expression between slashes is none.
pub(crate) fn literals<'w>(name: &str, word: &'w str) -> impl Iterator<Item = &'w str> {
    let awk = name.ends_with("awk");
    let cut = move |c: char| match awk {
        true => c == '"',
        false => c.is_whitespace() || "'\"`()[]{}<>,;|&=+!".contains(c),
    };
    let parts = word.split(cut).enumerate().filter(move |(index, _)| !awk || index % 2 == 1);
    let parts = parts.map(|(_, part)| part).filter(move |part| part.len() > 1 && *part != word);
    parts.filter(|part| !part.ends_with('/'))
}

/// What a command writes to: its last operand, where it copies.
pub(crate) fn targets<'w>(name: &str, words: &[&'w str]) -> Vec<&'w str> {
    match name {
        "cp" | "mv" | "install" | "rsync" | "scp" => {
            let named = words
                .windows(2)
                .find(|pair| matches!(pair[0], "-t" | "--target-directory"))
                .map(|pair| pair[1]);
            let given = operands(words);
            let last = given.last().copied().filter(|_| given.len() > 1);
            named.or(last).into_iter().collect()
        }
        "tee" | "truncate" => operands(words),
        _ => Vec::new(),
    }
}

/// Whether it goes through a folder with all that is in it.
pub(crate) fn depth(name: &str, words: &[&str]) -> Depth {
    let has = |options: &[&str]| words.iter().any(|word| options.contains(word));
    let letters = |letters: &[char]| {
        words.iter().any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(letters))
    };
    let deep = match name {
        "rg" | "ag" | "ack" | "find" | "fd" | "fdfind" | "tree" | "du" | "tar" | "bsdtar" | "zip" | "7z"
        | "7za" | "rsync" | "cpio" | "locate" => true,
        "grep" | "egrep" | "fgrep" | "zgrep" => {
            let follows = |word: &&str| word.len() > 3 && "--dereference-recursive".starts_with(*word);
            recursive(words)
                || has(&["recurse", "--directories=recurse", "-drecurse"])
                || words.iter().any(follows)
        }
        "ls" | "dir" | "vdir" => letters(&['R']) || has(&["--recursive"]),
        "cp" | "install" => recursive(words) || letters(&['a', 'd']) || has(&["--archive"]),
        "scp" | "diff" => recursive(words),
        "mv" | "ln" => true,
        _ => false,
    };
    if deep { Depth::All } else { Depth::One }
}
