//! The rest of a path where a variable has no value: `rm -rf "$x"/*` means the root, and `rm -rf ~/$x` the home
//! folder.

use lathe_bash::{Piece, Pieces, SimpleCommand, Word};

use crate::places::{Values, VitalPlace, is_all, parts, vital_place};

/// Variables that have a value, or whose values are judged elsewhere.
const SET: [&str; 21] = [
    "HOME", "PWD", "OLDPWD", "TMPDIR", "USER", "LOGNAME", "IFS", "@", "*", "$", "!", "#", "?", "RANDOM",
    "UID", "EUID", "PPID", "BASHPID", "HOSTNAME", "SECONDS", "SHELL",
];

/// Programs that print something wherever they run.
const PRINTS: [&str; 6] = ["mktemp", "date", "whoami", "id", "hostname", "uname"];

/// Folders of the system in which users keep folders of their own.
const SHARED: [&str; 7] = ["tmp", "opt", "mnt", "media", "srv", "run", "Volumes"];

/// Programs that take a whole folder.
const TAKES: [&str; 9] = ["rm", "srm", "trash", "find", "mv", "chmod", "chown", "chgrp", "setfacl"];

/// The words of a command if each variable that the line gives no value is empty; `None` if that makes no word a
/// place.
pub(crate) fn words_if_empty(command: &SimpleCommand, values: &Values<'_>) -> Option<Vec<String>> {
    command.program_name().filter(|name| TAKES.contains(name))?;
    let empty = |piece: &Piece| may_be_empty(piece, values);
    if !command.words.iter().skip(1).any(|word| word.pieces.iter().any(empty)) {
        return None;
    }
    let mut found = false;
    let words = command.words.iter().skip(1).flat_map(|word| {
        let place = place_without(word, values);
        found |= place.is_some();
        place.map_or_else(|| values.spellings(word), |place| vec![place])
    });
    let words: Vec<String> = words.collect();
    found.then_some(words)
}

fn may_be_empty(piece: &Piece, values: &Values<'_>) -> bool {
    match piece {
        Piece::Variable { name, .. } => !SET.contains(&&**name) && !values.assigned.contains_key(&**name),
        Piece::Substitution(Some(text)) => {
            let name = text.split_whitespace().next().unwrap_or("");
            !PRINTS.contains(&name) && lathe_bash::printed_words(text).is_empty()
        }
        _ => false,
    }
}

/// The place that a word is without its variables. The part after the first of them must mean everything there, or
/// nothing.
fn place_without(word: &Word, values: &Values<'_>) -> Option<String> {
    let at = word.pieces.iter().position(|piece| may_be_empty(piece, values))?;
    let keep = |pieces: &[Piece]| {
        let kept = pieces.iter().filter(|piece| !may_be_empty(piece, values)).cloned().collect();
        values.spellings(&Word { pieces: Pieces::Many(kept), splits: word.splits })
    };
    let (before, rest) = word.pieces.split_at(at);
    let rest = keep(rest).into_iter().next().unwrap_or_default();
    if !parts(&rest).iter().all(|part| is_all(part)) {
        return None;
    }
    let path = |before: String| {
        let path = format!("{before}{rest}");
        let shared = parts(&path).first().is_some_and(|first| SHARED.contains(first));
        match vital_place(&path, &[])? {
            VitalPlace::Root | VitalPlace::Home => Some(path),
            VitalPlace::System => (!shared).then_some(path),
            VitalPlace::Here | VitalPlace::Git => None,
        }
    };
    let before = keep(before);
    let before = if before.is_empty() { vec![String::new()] } else { before };
    before.into_iter().find_map(path)
}
