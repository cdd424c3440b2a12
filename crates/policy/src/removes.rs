//! Programs that remove a whole folder without being known for it: `cargo clean --target-dir`, `cmake -E rm`, `zip
//! -m`.

use lathe_protocol::{Decision, Verdict};

use crate::gate::{Gate, decision};
use crate::guard::{Spelled, is_recursive, operands};
use crate::places::{HERE, Values, VitalPlace, vital_place};

/// The denial of such a command, if it is never run.
pub(crate) fn denied(
    gate: Option<&Gate>,
    command: &Spelled<'_>,
    values: &Values<'_>,
    from: &[String],
) -> Option<Decision> {
    removed(command, values).iter().find_map(|folder| match vital_place(folder, from) {
        Some(VitalPlace::Git) => Some(decision(Verdict::Deny, "guard.git", "it deletes the history in .git")),
        Some(_) => Some(decision(Verdict::Deny, "guard.destroy", "it deletes the system or a home folder")),
        None => {
            let gate = gate?;
            let relative = !folder.starts_with(['/', '~']) && !folder.starts_with(HERE);
            gate.resolve(folder, from).iter().find_map(|path| gate.never_deleted(path, relative, false))
        }
    })
}

/// The folders that are removed with all that is in them, as they are spelled.
pub(crate) fn removed(command: &Spelled<'_>, values: &Values<'_>) -> Vec<String> {
    let words = command.words.as_slice();
    let given = operands(words);
    let behind = |count: usize| given.iter().skip(count).map(|path| (*path).to_owned()).collect();
    match (command.name, given.first().copied()) {
        ("cargo", _) if given.contains(&"clean") => {
            let next =
                words.windows(2).filter(|pair| pair[0] == "--target-dir").map(|pair| pair[1].to_owned());
            let glued = words.iter().filter_map(|word| word.strip_prefix("--target-dir=")).map(str::to_owned);
            let names = ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR"];
            let set = names.iter().filter_map(|name| values.assigned.get(*name)).flatten();
            next.chain(glued).chain(set.flat_map(|word| values.spellings(word))).collect()
        }
        ("cmake", Some("remove_directory")) => behind(1),
        ("cmake", Some("rm")) if is_recursive(words) => behind(1),
        ("gio", Some("trash" | "remove")) | ("rclone", Some("purge" | "delete")) => behind(1),
        ("rclone", Some("sync" | "move")) => behind(2),
        ("trash" | "trash-put" | "rmtrash", _) => behind(0),
        ("zip", _) if moves(words) => behind(1),
        ("7z" | "7za" | "7zr" | "7zz", Some("a" | "u")) if words.contains(&"-sdel") => behind(2),
        ("rar", Some("m" | "mf")) => behind(2),
        _ => Vec::new(),
    }
}

/// `zip -m`, also among other letters.
fn moves(words: &[&str]) -> bool {
    words.iter().any(|word| {
        *word == "--move" || (word.starts_with('-') && !word.starts_with("--") && word.contains('m'))
    })
}
