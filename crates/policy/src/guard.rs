//! What is denied whatever rules and modes say, by any spelling that can be seen through.

use lathe_bash::{Command, Piece, RedirectKind, Script, Word};
use lathe_protocol::{Decision, Effects, Verdict};

use crate::gate::{Gate, decision};
use crate::places::{Place, Values, is_block_device, place};
use crate::rules::glob;

fn deny(rule: &str, reason: &str) -> Option<Decision> {
    Some(decision(Verdict::Deny, rule, reason))
}

/// What is wrong with a whole text.
pub(crate) fn script(script: &Script) -> Option<Decision> {
    if script.endless {
        return deny("guard.endless", "it is wrapped in itself too often to be read");
    }
    if !script.bombs.is_empty() || runs_itself(script) {
        return deny("guard.fork-bomb", "it starts itself over and over");
    }
    None
}

/// `$0 | $0 &`, in the text that a shell is given.
fn runs_itself(script: &Script) -> bool {
    let own = |command: &&Command| {
        matches!(command.words.first().map(|word| word.pieces.as_slice()),
            Some([Piece::Variable { name, .. }]) if name == "0")
    };
    script.commands.iter().filter(own).count() >= 2
}

/// The folders that a line may be in after its `cd`.
pub(crate) fn folders(script: &Script, values: &Values<'_>) -> Vec<String> {
    let mut folders: Vec<String> = Vec::new();
    for command in &script.commands {
        if !matches!(command.program_name(), Some("cd" | "pushd")) {
            continue;
        }
        let targets: Vec<String> = command.words.iter().skip(1).flat_map(|word| values.spell(word)).collect();
        if targets.is_empty() {
            folders.push("~".to_owned());
        }
        for target in targets.into_iter().filter(|target| !target.starts_with('-')).take(16) {
            if target.starts_with(['/', '~']) {
                folders.push(target);
            } else {
                let more: Vec<String> =
                    folders.iter().take(16).map(|from| format!("{from}/{target}")).collect();
                folders.extend(more);
            }
        }
        folders.truncate(64);
    }
    folders
}

/// Why one command is never run.
pub(crate) fn command(
    gate: Option<&Gate>,
    command: &Command,
    values: &Values<'_>,
    from: &[String],
) -> Option<Decision> {
    for redirect in command.redirects.iter().filter(|redirect| redirect.kind == RedirectKind::Write) {
        if let Some(denied) = values.spell(&redirect.word).iter().find_map(|target| written(gate, target)) {
            return Some(denied);
        }
    }
    let (first, rest) = command.words.split_first()?;
    let given: Vec<String> = rest.iter().flat_map(|word| values.spell(word)).collect();
    // The program may come from a variable, with words of its own: `c="rm -rf"; $c /`.
    let mut spellings = Values { empty: true, ..*values }.spell(first);
    let variable = first.pieces.iter().any(|piece| !matches!(piece, Piece::Text(_)));
    if !variable {
        spellings.truncate(1);
    }
    for (index, program) in spellings.iter().enumerate() {
        let mut words: Vec<&str> = spellings.iter().skip(index + 1).map(String::as_str).collect();
        words.extend(given.iter().map(String::as_str));
        let name = program.rsplit('/').next().unwrap_or(program);
        // `/bin/r?` may be any program whose name fits.
        let meant = |guarded: &&&str| name.contains(['*', '?', '[']) && fits(name, guarded);
        for name in GUARDED.iter().filter(meant).copied().chain([name]) {
            if let Some(denied) = named(gate, name, &words, from) {
                return Some(denied);
            }
        }
    }
    None
}

/// The programs that [`named`] knows.
const GUARDED: [&str; 12] =
    ["rm", "find", "chmod", "chown", "mv", "dd", "tee", "cp", "shred", "wipefs", "mkfs", "kill"];

/// Whether a pattern fits a name; a set of characters stands for any character.
fn fits(pattern: &str, name: &str) -> bool {
    let mut simple = String::new();
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once('[') {
        simple.push_str(before);
        simple.push('?');
        rest = after.split_once(']').map_or("", |(_, after)| after);
    }
    simple.push_str(rest);
    glob(&simple, name)
}

fn named(gate: Option<&Gate>, name: &str, words: &[&str], from: &[String]) -> Option<Decision> {
    let operands = operands(words);
    destroys(gate, name, words, &operands, from).or_else(|| {
        let lost = loses_workspace(gate, name, words, &operands, from);
        lost.then(|| decision(Verdict::Deny, "guard.workspace", "it takes the whole workspace away"))
    })
}

fn destroys(
    gate: Option<&Gate>,
    name: &str,
    words: &[&str],
    operands: &[&str],
    from: &[String],
) -> Option<Decision> {
    let places = || operands.iter().filter_map(|operand| place(operand, from));
    match name {
        "rm" | "srm" | "trash" if recursive(words) => match places().next()? {
            Place::Root | Place::System => deny("guard.destroy", "it deletes the system"),
            Place::Home => deny("guard.destroy", "it deletes a home folder"),
            Place::Here => deny("guard.destroy", "it deletes the folder it runs in"),
            Place::Git => deny("guard.git", "it deletes the history in .git"),
        },
        "find" => find(words, from),
        "chmod" | "chown" | "chgrp" | "setfacl" if recursive(words) => {
            places().find(|place| *place == Place::Root)?;
            deny("guard.destroy", "it changes who may use the whole system")
        }
        "mv" => {
            let into = words.iter().any(|word| word.starts_with("-t") || word.starts_with("--target"));
            let sources = operands.len().saturating_sub(usize::from(!into && operands.len() > 1));
            let lost = operands.iter().take(sources).filter_map(|operand| place(operand, from)).next();
            match lost {
                Some(Place::Git) => deny("guard.git", "it moves the history in .git away"),
                Some(_) => deny("guard.destroy", "it moves the system or a home folder away"),
                None => operands.iter().find_map(|target| written(gate, target)),
            }
        }
        "dd" => {
            words.iter().filter_map(|word| word.strip_prefix("of=")).find_map(|target| written(gate, target))
        }
        "tee" | "cp" | "ln" | "install" => operands.iter().find_map(|target| written(gate, target)),
        "shred" | "wipefs" | "truncate" | "blkdiscard" | "mkswap" | "badblocks" | "mke2fs" | "newfs"
        | "sgdisk" => {
            operands.iter().find(|target| is_block_device(target))?;
            deny("guard.disk", "it destroys a disk")
        }
        _ if name == "mkfs" || name.starts_with("mkfs.") || name.starts_with("newfs_") => {
            operands.iter().find(|target| is_block_device(target))?;
            deny("guard.disk", "it destroys a disk")
        }
        "kill" => {
            words.iter().skip(1).find(|word| **word == "-1")?;
            deny("guard.kill-all", "it ends every process")
        }
        _ => None,
    }
}

/// Whether the folder worked in, or one above it, is deleted or moved away. By a relative name nobody can tell here which
/// folder is meant; what such a line takes away can be brought back.
fn loses_workspace(
    gate: Option<&Gate>,
    name: &str,
    words: &[&str],
    operands: &[&str],
    from: &[String],
) -> bool {
    let loses = match name {
        "rm" | "srm" | "trash" => recursive(words),
        "mv" => operands.len() > 1,
        "find" => words.contains(&"-delete") && !words.iter().any(|word| word.contains("name")),
        _ => false,
    };
    // The last word of a move is where things go.
    let count = if name == "mv" { operands.len().saturating_sub(1) } else { operands.len() };
    let Some(gate) = gate.filter(|_| loses) else { return false };
    operands.iter().take(count).any(|operand| {
        let folder = operand.strip_suffix("/*").unwrap_or(operand);
        let absolute = |path: &str| path.starts_with('/') && gate.is_workspace(path);
        absolute(folder) || (from.iter().any(|from| absolute(&format!("{from}/{folder}"))))
    })
}

/// What a file that is written over means.
fn written(gate: Option<&Gate>, target: &str) -> Option<Decision> {
    if is_block_device(target) {
        return deny("guard.disk", "it destroys a disk");
    }
    gate?.guard(&Effects::writing(target))
}

fn operands<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let mut ended = false;
    words
        .iter()
        .copied()
        .filter(|word| {
            if *word == "--" && !ended {
                ended = true;
                return false;
            }
            ended || !word.starts_with('-')
        })
        .collect()
}

/// `-r`, `-R`, `-fr`, `--recursive` and what it may be shortened to.
fn recursive(words: &[&str]) -> bool {
    words.iter().take_while(|word| **word != "--").any(|word| match word.strip_prefix("--") {
        Some(long) => !long.is_empty() && "recursive".starts_with(long),
        None => word.starts_with('-') && word.contains(['r', 'R']),
    })
}

fn find(words: &[&str], from: &[String]) -> Option<Decision> {
    let expression = |word: &&str| word.starts_with(['-', '(', '!']);
    let option = |word: &&&str| matches!(**word, "-H" | "-L" | "-P" | "-D") || word.starts_with("-O");
    let options = words.iter().take_while(option).count();
    let starts: Vec<&str> =
        words.iter().skip(options).take_while(|word| !expression(word)).copied().collect();
    let mut places: Vec<Place> = starts.iter().filter_map(|start| place(start, from)).collect();
    if starts.is_empty() {
        places.extend(from.iter().filter_map(|from| place(".", std::slice::from_ref(from))));
    }
    let removes = |words: &[&str]| {
        let remove = |word: &&str| {
            let name = word.rsplit('/').next().unwrap_or(word);
            matches!(name, "rm" | "shred" | "unlink" | "srm")
                || word.split([' ', ';', '&', '|']).any(|part| part == "rm" || part.ends_with("/rm"))
        };
        words.iter().any(remove)
    };
    let executes = words.iter().position(|word| matches!(*word, "-exec" | "-execdir" | "-ok" | "-okdir"));
    let destroys =
        words.contains(&"-delete") || executes.is_some_and(|at| removes(words.get(at..).unwrap_or(&[])));
    // With a test, a search through a folder of the system may be meant well; from the root or a home it never is.
    let tests = words
        .iter()
        .any(|word| word.starts_with("-name") || word.starts_with("-iname") || word.ends_with("time"));
    let lost = places.iter().any(|place| match place {
        Place::Root | Place::Home => true,
        Place::System | Place::Here | Place::Git => !tests,
    });
    (destroys && lost).then(|| {
        decision(Verdict::Deny, "guard.destroy", "it deletes what it finds in the system or a home folder")
    })
}

/// The words of a command as a person reads them.
pub(crate) fn shown(words: &[Word]) -> Vec<String> {
    words.iter().map(Word::show).collect()
}
