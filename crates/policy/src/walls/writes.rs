//! Files outside that a command surely writes: the walls refuse that, so the user is asked instead.

use std::path::Path;

use lathe_bash::{RedirectKind, SimpleCommand};

use crate::file_words::targets;
use crate::gate::Gate;
use crate::git::{is_far, split_subcommand};
use crate::git_option::{operands, without_values};
use crate::guard::Spelled;
use crate::places::{HERE, LATHE, UNKNOWN, Values};
use crate::{guard, harm, losses, removes};

/// Programs all of whose operands they make, remove or change.
const MAKERS: [&str; 12] = [
    "mkdir", "rmdir", "touch", "rm", "unlink", "truncate", "mkfifo", "chmod", "chown", "chgrp", "chattr",
    "tee",
];

/// A file outside that bash writes for a command.
pub(super) fn redirected(
    gate: &Gate,
    from: &[String],
    command: &SimpleCommand,
    values: &Values<'_>,
) -> Option<String> {
    let opened = command.redirects.iter().filter(|redirect| redirect.kind == RedirectKind::Write);
    let mut named = opened.flat_map(|redirect| values.spellings(&redirect.word));
    named.find(|name| is_outside(gate, from, name)).map(|name| shown(&name))
}

/// A file outside that a program writes, by the words that surely name one.
pub(super) fn named(
    gate: &Gate,
    from: &[String],
    program: &Spelled<'_>,
    values: &Values<'_>,
) -> Option<String> {
    let words = program.words.as_slice();
    let mut found: Vec<String> = match program.name {
        "cp" | "mv" | "install" | "rsync" | "scp" => {
            targets(program.name, words).into_iter().map(str::to_owned).collect()
        }
        "ln" => targets("cp", words).into_iter().map(str::to_owned).collect(),
        "git" => by_git(words),
        name if MAKERS.contains(&name) => guard::operands(words).into_iter().map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    if !matches!(program.name, "cp" | "mv" | "install" | "rsync" | "scp" | "ln") {
        found.extend(harm::write_targets(program).into_iter().map(str::to_owned));
    }
    found.extend(losses::deleted(program, from).into_iter().map(|(path, _)| path));
    found.extend(harm::spoiled_paths(program).into_iter().map(|(path, _)| path));
    found.extend(removes::removed(program, values));
    found.into_iter().find(|name| is_outside(gate, from, name)).map(|name| shown(&name))
}

/// The folders that git makes, or copies from.
fn by_git(words: &[&str]) -> Vec<String> {
    let Some((sub, rest)) = split_subcommand(words) else { return Vec::new() };
    let given =
        operands(&without_values(rest, &["-b", "-B", "--branch", "-o", "--origin", "--depth", "--reason"]));
    let paths: Vec<&str> = match (sub, given.as_slice()) {
        ("worktree", ["add" | "remove", path, ..]) => vec![*path],
        ("worktree", ["move", from, to, ..]) => vec![*from, *to],
        ("clone", paths) => paths.iter().copied().filter(|path| !is_far(path)).collect(),
        ("init" | "init-db", [path, ..]) | ("bundle", ["create", path, ..]) => vec![*path],
        _ => Vec::new(),
    };
    paths.into_iter().map(str::to_owned).collect()
}

fn shown(name: &str) -> String {
    name.replace(HERE, "$PWD").replace(LATHE, "$LATHE_HOME").replace(UNKNOWN, "…")
}

/// Tells whether a name surely means a place that lines may not write, from every folder that the line may be in.
fn is_outside(gate: &Gate, from: &[String], name: &str) -> bool {
    if name.is_empty() || name == "-" {
        return false;
    }
    let (name, is_cut) = match name.split_once(UNKNOWN) {
        // What follows is not known; the folder before it is.
        Some((before, _)) => match before.rsplit_once('/') {
            Some((folder, _)) if !folder.is_empty() => (folder, true),
            Some(_) | None => return false,
        },
        None => (name, false),
    };
    let open = |path: &Path| gate.is_writable(path, name) || (is_cut && gate.root.starts_with(path));
    let places = gate.resolve(name, from);
    if places.is_empty() {
        // Another user's folder.
        return name.starts_with('~');
    }
    places.iter().all(|place| {
        let place = Path::new(place);
        let real = gate.disk.get().map(|disk| disk.real(place));
        !open(place) || real.is_some_and(|real| !open(&real))
    })
}
