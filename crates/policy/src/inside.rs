//! Writes into `.git` by programs that nobody knows as writers: `iconv -o .git/hooks/x`, `git clone . .git/q`.
//!
//! There are more programs that write a file they are given the name of than any table holds. So a program that is not
//! known to only read is given no name inside of `.git`, and does not run in there. Those whose targets the guard knows
//! one by one ([`crate::harm::targets`]) may still read from there.

use lathe_bash::{Command, Script, Word, normal_words};
use lathe_protocol::{Decision, Effects, Verdict};

use crate::gate::decision;
use crate::guard::Spelled;
use crate::harm;
use crate::losses::worktrees;
use crate::places::parts;
use crate::touch::{Touch, What};

/// Programs that put no content into what they name: they delete, make folders and empty files, change modes, or go there.
/// Whether they may is decided elsewhere.
const NO_CONTENT: [&str; 16] = [
    "rm", "rmdir", "unlink", "srm", "trash", "touch", "mkdir", "chmod", "chown", "chgrp", "cd", "pushd",
    "popd", "find", "fd", "fdfind",
];

/// Shells, and interpreters: their first operand is a file that they run.
const RUN_A_FILE: [&str; 20] = [
    "bash", "sh", "zsh", "dash", "ksh", "ash", "fish", "source", ".", "python", "python2", "python3", "perl",
    "ruby", "node", "deno", "bun", "php", "lua", "Rscript",
];

/// Editors, which write where a command among their words says: `+w!.git/config`.
const EDITORS: [&str; 5] = ["vi", "vim", "nvim", "ex", "ed"];

/// Subcommands of git that write where their words say.
const GIT_WRITES: [&str; 8] =
    ["clone", "init", "bundle", "worktree", "checkout-index", "submodule", "archive", "format-patch"];

/// Subcommands of git that write files of the work tree.
const GIT_CHECKS_OUT: [&str; 14] = [
    "checkout",
    "switch",
    "restore",
    "reset",
    "stash",
    "apply",
    "am",
    "merge",
    "pull",
    "rebase",
    "cherry-pick",
    "revert",
    "read-tree",
    "checkout-index",
];

/// One command of a line, with what is known of it.
pub(crate) struct Writer<'a> {
    pub(crate) script: &'a Script,
    pub(crate) index: usize,
    pub(crate) command: &'a Command,
    pub(crate) effects: &'a Effects,
    pub(crate) touches: &'a [Touch],
    /// The folders that it may run in.
    pub(crate) from: &'a [String],
}

/// Why such a command is never run.
pub(crate) fn denied(writer: &Writer<'_>) -> Option<Decision> {
    let name = writer.command.program_name().unwrap_or_default();
    let inside = match name {
        "git" => git(writer),
        _ if NO_CONTENT.contains(&name) || !changes(writer) => return None,
        _ => plain(name, writer),
    };
    let reason = "files inside .git are written by git only; use git commands";
    inside.then(|| decision(Verdict::Deny, "guard.git", reason))
}

/// Whether a program does more than read. What bash writes for it, and variables that are set for it, are no act of its own.
fn changes(writer: &Writer<'_>) -> bool {
    let changes = |effects: &Effects| {
        effects.opaque
            || !effects.writes.is_empty()
            || !effects.programs.is_empty()
            || !effects.hosts.is_empty()
    };
    changes(writer.effects)
        && (writer.command.redirects.is_empty() || {
            changes(&Command { redirects: Vec::new(), ..writer.command.clone() }.effects())
        })
}

fn plain(name: &str, writer: &Writer<'_>) -> bool {
    // What runs behind it is looked at by itself.
    let behind = || writer.script.commands.iter().filter(|command| command.behind == Some(writer.index));
    let inner: Vec<String> = behind().flat_map(|command| command.words.iter().map(Word::show)).collect();
    if inner.is_empty() && writer.from.iter().any(|folder| is_inside(folder, true)) {
        return true;
    }
    let versioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let runs = RUN_A_FILE.contains(&name) || RUN_A_FILE.contains(&versioned);
    let words: Vec<String> = writer.command.words.iter().skip(1).map(Word::show).collect();
    let spelled = Spelled { name, words: words.iter().map(String::as_str).collect() };
    if harm::known_targets(&spelled).is_some() && !EDITORS.contains(&name) {
        return false;
    }
    if runs && words.iter().any(|word| is_inline(word)) {
        return false;
    }
    let ran = words.iter().find(|word| runs && !word.starts_with('-'));
    let texts = runs || !inner.is_empty();
    let opened: Vec<String> = writer.command.redirects.iter().map(|redirect| redirect.word.show()).collect();
    let meant = |touch: &&Touch| {
        Some(&touch.shown) != ran
            && (!opened.contains(&touch.shown) || words.contains(&touch.shown))
            && !inner.contains(&touch.shown)
            && !(texts && touch.shown.contains(char::is_whitespace))
    };
    let edited =
        words.iter().filter(|_| EDITORS.contains(&name)).flat_map(|word| word.split(['!', ' ', '|']));
    edited.into_iter().any(|part| is_inside(part, false))
        || writer.touches.iter().filter(meant).any(|touch| touches_inside(touch, false))
}

/// An option that gives an interpreter its program as a text, which is looked at elsewhere.
fn is_inline(word: &str) -> bool {
    let short = word.strip_prefix('-').filter(|letters| !letters.starts_with('-') && letters.len() <= 4);
    short.is_some_and(|letters| letters.ends_with(['c', 'e', 'E', 'p', 'r']))
        || word.starts_with("--eval")
        || word.starts_with("--print")
        || word == "eval"
}

fn git(writer: &Writer<'_>) -> bool {
    let words = normal_words(&writer.command.words);
    let sub = words.get(1).map(String::as_str).unwrap_or_default();
    let shown: Vec<String> = writer.command.words.iter().map(Word::show).collect();
    let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
    let tree = |place: &str| is_inside(place, true);
    let set = writer.command.assignments.iter().filter(|assignment| assignment.name == "GIT_WORK_TREE");
    let set = set.filter_map(|assignment| assignment.value.as_ref().map(Word::show));
    let trees = worktrees(&shown).into_iter().map(str::to_owned).chain(set);
    if GIT_CHECKS_OUT.contains(&sub) && trees.into_iter().any(|place| tree(&place)) {
        return true;
    }
    GIT_WRITES.contains(&sub) && writer.touches.iter().any(|touch| touches_inside(touch, false))
}

fn touches_inside(touch: &Touch, whole: bool) -> bool {
    match &touch.what {
        What::Path { names, .. } | What::Pattern { names, .. } => {
            names.iter().any(|name| is_inside(name, whole))
        }
        What::Unknown => false,
    }
}

/// Whether a path leads into a `.git`; with `whole`, or to one.
fn is_inside(path: &str, whole: bool) -> bool {
    let parts = parts(path);
    let git = parts.iter().position(|part| crate::losses::fits(&part.to_lowercase(), ".git"));
    git.is_some_and(|at| whole || at + 1 < parts.len())
}
