//! Programs that a line gives another name or place, by any command that reads them: `cp /usr/bin/to?ch t`, `sed ''
//! "$x" > t`.
//!
//! Where a line writes a file or makes a link, every word that may lie in a folder of programs counts as each denied
//! program that it could mean. It does not matter which program reads the word, unless that one only prints names or
//! sums.

use lathe_bash::{Redirect, RedirectKind, Script, SimpleCommand};

use crate::patterns::glob;
use crate::places::{UNKNOWN, Values};
use crate::possible_commands::{COPY, PossibleCommands, base, in_programs};
use crate::program_names::ProgramNames;
use crate::sets::simplified;

/// Programs that print nothing of a file's content.
const TELLS: [&str; 43] = [
    "git",
    "rm",
    "rmdir",
    "unlink",
    "mkdir",
    "ls",
    "dir",
    "stat",
    "file",
    "ldd",
    "du",
    "df",
    "find",
    "which",
    "whereis",
    "type",
    "command",
    "hash",
    "echo",
    "printf",
    "test",
    "[",
    "[[",
    "cd",
    "pushd",
    "popd",
    "readlink",
    "realpath",
    "basename",
    "dirname",
    "wc",
    "cmp",
    "cksum",
    "md5sum",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "chmod",
    "chown",
    "nm",
    "readelf",
    "export",
    "declare",
];

/// Adds the denied programs that each command of a line copies.
pub(crate) fn add_copied(
    names: &ProgramNames<'_>,
    script: &Script,
    values: &Values<'_>,
    behind: &mut [PossibleCommands],
) {
    if behind.is_empty() || names.denied().is_empty() || !script.commands.iter().any(writes) {
        return;
    }
    let shown =
        |command: &SimpleCommand| command.words.iter().any(|word| in_programs(&format!("{}/", word.show())));
    let any_programs = script.commands.iter().any(shown);
    let wrappers: Vec<usize> = script.commands.iter().filter_map(|command| command.wrapper).collect();
    for (index, (command, behind)) in script.commands.iter().zip(behind).enumerate() {
        let name = command.program_name().unwrap_or_default();
        // A command after a wrapper is judged by itself; a script of sed that writes is not a wrapper.
        let wraps = wrappers.contains(&index) && !name.ends_with("sed") && !name.ends_with("awk");
        if command.words.is_empty() || TELLS.contains(&name) || wraps {
            continue;
        }
        let read = command.redirects.iter().filter(|redirect| redirect.kind == RedirectKind::Read);
        let given = command.words.iter().skip(1).chain(read.map(|redirect| &redirect.word));
        let found = command.wrapper.and_then(|at| script.commands.get(at)?.program_name()) == Some("find");
        for text in given.flat_map(|word| values.spellings(word)) {
            // `if=/usr/bin/x`, `--file=/usr/bin/x`
            let text = text.split_once('=').map_or(text.as_str(), |(_, value)| value);
            let any = found && any_programs && text.contains("{}");
            let in_programs = behind.in_programs;
            let meant: Vec<&str> = names
                .denied()
                .iter()
                .copied()
                .filter(|denied| any || may_be(text, denied, in_programs))
                .collect();
            meant.iter().for_each(|program| behind.copy(base(program)));
            // A link in the workspace is read by many commands; it is a copy only where the command copies or its
            // output goes somewhere.
            if COPY.contains(&name) || command.stage.is_some() || command.redirects.iter().any(opens_file) {
                names.names_of_copy(text).iter().for_each(|program| behind.copy(program));
            }
        }
    }
}

/// Tells whether a command may write a file or make a link.
fn writes(command: &SimpleCommand) -> bool {
    let effects = command.effects();
    command.redirects.iter().any(opens_file) || !effects.writes.is_empty() || effects.opaque
}

/// Tells whether a redirection writes a file.
fn opens_file(redirect: &Redirect) -> bool {
    let is_file = redirect.word.literal().is_none_or(|to| !to.starts_with("/dev/"));
    redirect.kind == RedirectKind::Write && is_file
}

/// Tells whether a spelling may be a denied program in a folder of programs.
fn may_be(text: &str, denied: &str, here: bool) -> bool {
    let (folder, name) = text.rsplit_once('/').unwrap_or(("", text));
    let open = |text: &str| text.contains(['*', '?', '[', UNKNOWN]);
    // A word of which nothing is known counts as a program no more than any other file does.
    if !text.contains(|c: char| c.is_alphanumeric()) {
        return false;
    }
    let in_folder = in_programs(&format!("{folder}/")) || (here && folder.is_empty()) || open(folder);
    let pattern = simplified(&name.replace(UNKNOWN, "*"));
    in_folder && (name == base(denied) || (open(name) && glob(&pattern, base(denied))))
}
