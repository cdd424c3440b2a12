//! What spoils `.git`, a home folder or the system without a plain deletion: `truncate`, `sed -i`, `tar --remove-files`.

use crate::guard::{Spelled, operands, recursive, simple};
use crate::places::is_all;
use crate::rules::glob;

/// Each path that a command spoils, as it is spelled, and whether all of it is lost. Where it is not, only `.git` counts.
pub(crate) fn harmed(command: &Spelled<'_>) -> Vec<(String, bool)> {
    let words = command.words.as_slice();
    let given = operands(words);
    let some = |paths: &[&str]| paths.iter().map(|path| ((*path).to_owned(), false)).collect();
    match command.name {
        "truncate" | "shred" => some(&given),
        "mv" if given.len() > 1 => some(&given),
        "dd" => some(&words.iter().filter_map(|word| word.strip_prefix("of=")).collect::<Vec<_>>()),
        "sed" if in_place(words) => some(&files_of_sed(words)),
        "chmod" if recursive(words) && takes_away(words) => some(&given),
        "tar" | "bsdtar" if empties(command) => packed(words),
        "rsync" if empties(command) => {
            let deletes = words.iter().any(|word| word.starts_with("--del"));
            let count = given.len();
            let lost = given.iter().enumerate().filter(|(index, _)| (index + 1 == count) == deletes);
            lost.map(|(_, path)| ((*path).to_owned(), true)).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether it deletes by an option.
pub(crate) fn empties(command: &Spelled<'_>) -> bool {
    let has = |begin: &str| command.words.iter().any(|word| word.starts_with(begin));
    match command.name {
        "tar" | "bsdtar" => has("--remove"),
        "rsync" => has("--del") || has("--remove"),
        _ => false,
    }
}

fn in_place(words: &[&str]) -> bool {
    words.iter().any(|word| match word.strip_prefix('-') {
        Some(long) if long.starts_with('-') => long.starts_with("-i"),
        // Behind these letters a value follows.
        Some(letters) => letters.split(['e', 'f', 'l']).next().is_some_and(|letters| letters.contains('i')),
        None => false,
    })
}

/// The words of `sed` that are no script.
fn files_of_sed<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let script = |word: &str| {
        matches!(word, "--expression" | "--file")
            || (word.starts_with('-') && !word.starts_with("--") && word.ends_with(['e', 'f']))
    };
    let explicit =
        |word: &&str| script(word) || word.starts_with("--expression=") || word.starts_with("--file=");
    let given = words.iter().enumerate().filter(|(index, _)| {
        !index.checked_sub(1).and_then(|before| words.get(before)).is_some_and(|before| script(before))
    });
    let given: Vec<&str> = given.map(|(_, word)| *word).collect();
    operands(&given).into_iter().skip(usize::from(!words.iter().any(explicit))).collect()
}

/// `000`, `a-rwx`, `-w`: the owner can no longer read, write or enter.
fn takes_away(words: &[&str]) -> bool {
    words.iter().any(|word| {
        let digits = word.trim_start_matches('0');
        let numeric = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        (numeric && (digits.len() < 3 || owner(digits) < 6))
            || (!word.starts_with("--")
                && ["-r", "-w", "-x"].iter().any(|less| word.contains(less))
                && *word != "-r")
            || word.ends_with('=')
    })
}

/// What the owner may do, of a mode in digits.
fn owner(digits: &str) -> u32 {
    digits.chars().rev().nth(2).and_then(|digit| digit.to_digit(10)).unwrap_or(0)
}

/// What `tar --remove-files` packs, from the folder it goes to.
fn packed(words: &[&str]) -> Vec<(String, bool)> {
    let (mut folder, mut paths) = (None, Vec::new());
    let mut rest = words.iter().copied();
    while let Some(word) = rest.next() {
        if let Some(to) = word.strip_prefix("--directory=") {
            folder = Some(to);
        } else if matches!(word, "-C" | "--directory") {
            folder = rest.next();
        } else if !word.starts_with('-') {
            let path = match folder.filter(|_| !word.starts_with(['/', '~'])) {
                Some(folder) => format!("{folder}/{word}"),
                None => word.to_owned(),
            };
            paths.push((path, true));
        }
    }
    paths
}

/// Whether a search is for `.git` or what is in it: `-name .git`, `-path './.git/*'`.
pub(crate) fn seeks_git(words: &[&str]) -> bool {
    let tests = ["-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex"];
    words.windows(2).enumerate().any(|(index, pair)| {
        let before = index.checked_sub(1).and_then(|before| words.get(before));
        let spared = matches!(before, Some(&("!" | "-not"))) || words.get(index + 2) == Some(&"-prune");
        let plain = pair[1].to_lowercase().replace('\\', "");
        let git = |part: &str| !is_all(part) && glob(&simple(part), ".git");
        tests.contains(&pair[0]) && !spared && plain.split('/').any(git)
    })
}
