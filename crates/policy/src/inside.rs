//! Writes into `.git` by programs that nobody knows as writers: `iconv -o .git/hooks/x`, `git clone . .git/q`.
//!
//! There are more programs that write a file they are given the name of than any table holds. So a program that is not
//! known to only read is given no name inside of `.git`, and does not run in there. Those whose targets the guard knows
//! one by one ([`crate::harm::targets`]) may still read from there.

use std::cell::OnceCell;
use std::path::Path;

use lathe_bash::{Command, RedirectKind, Script, Word, normal_words};
use lathe_protocol::{Decision, Effects, Verdict};

use crate::gate::{Gate, decision};
use crate::guard::Spelled;
use crate::harm;
use crate::losses::worktrees;
use crate::places::{UNKNOWN, Values, parts};
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

/// Subcommands of git that write no file that their words name, but for the options that the guard knows one by one
/// ([`crate::harm::targets`]).
const GIT_NAMES: [&str; 50] = [
    "log",
    "show",
    "diff",
    "status",
    "rev-parse",
    "rev-list",
    "cat-file",
    "ls-files",
    "ls-tree",
    "ls-remote",
    "check-ignore",
    "check-attr",
    "check-ref-format",
    "add",
    "stage",
    "commit",
    "tag",
    "branch",
    "describe",
    "blame",
    "annotate",
    "grep",
    "shortlog",
    "reflog",
    "show-ref",
    "show-branch",
    "for-each-ref",
    "remote",
    "fetch",
    "push",
    "var",
    "version",
    "help",
    "count-objects",
    "name-rev",
    "merge-base",
    "diff-tree",
    "diff-index",
    "diff-files",
    "whatchanged",
    "range-diff",
    "cherry",
    "verify-pack",
    "verify-commit",
    "verify-tag",
    "fsck",
    "hash-object",
    "update-index",
    "update-ref",
    "symbolic-ref",
];

/// Subcommands of git that write files of the work tree.
const GIT_CHECKS_OUT: [&str; 19] = [
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
    "mv",
    "rm",
    "clean",
    "sparse-checkout",
    "merge-file",
];

/// Commands whose words are only said, and may become the name of a file later in the line.
const SAID: [&str; 8] = ["echo", "printf", "set", "read", "mapfile", "readarray", "declare", "export"];

/// One command of a line, with what is known of it.
pub(crate) struct Writer<'a> {
    pub(crate) script: &'a Script,
    pub(crate) index: usize,
    pub(crate) command: &'a Command,
    pub(crate) effects: &'a Effects,
    pub(crate) touches: &'a [Touch],
    /// The folders that it may run in.
    pub(crate) from: &'a [String],
    /// All the folders that the line may be in.
    pub(crate) everywhere: &'a [String],
    /// What the line says of places that are never written, found once for all its commands.
    pub(crate) said: &'a OnceCell<Option<Decision>>,
    pub(crate) gate: &'a Gate,
    pub(crate) values: &'a Values<'a>,
}

/// Why such a command is never run.
pub(crate) fn denied(writer: &Writer<'_>) -> Option<Decision> {
    let name = writer.command.program_name().unwrap_or_default();
    if let Some(denied) = hidden_target(writer) {
        return Some(denied);
    }
    let inside = match name {
        "git" => git(writer),
        _ if NO_CONTENT.contains(&name) || !changes(writer) => return None,
        _ => plain(name, writer),
    };
    let reason = "files inside .git are written by git only; use git commands";
    inside.then(|| decision(Verdict::Deny, "guard.git", reason))
}

/// A file that is written and whose name shows only when the line runs, where the line says the name of one that is never
/// written.
fn hidden_target(writer: &Writer<'_>) -> Option<Decision> {
    let mut targets = writer.command.redirects.iter().filter(|redirect| redirect.kind == RedirectKind::Write);
    let unknown = |word: &Word| {
        let spelled = writer.values.spell(word);
        !spelled.is_empty() && spelled.iter().all(|target| target.contains(UNKNOWN))
    };
    let config = writer.command.program_name() == Some("curl") && reads_configuration(&writer.command.words);
    if !config && !targets.any(|redirect| unknown(&redirect.word)) {
        return None;
    }
    writer.said.get_or_init(|| said(writer)).clone()
}

/// The denial for a name of a place that is never written, where the line says one.
fn said(writer: &Writer<'_>) -> Option<Decision> {
    let said = |command: &&Command| command.program_name().is_some_and(|name| SAID.contains(&name));
    let words = writer.script.commands.iter().filter(said).flat_map(|command| command.words.iter().skip(1));
    let texts = writer.script.commands.iter().flat_map(|command| &command.redirects);
    let texts = texts.filter(|redirect| redirect.kind == RedirectKind::Text).map(|redirect| &redirect.word);
    let all = words.chain(texts).chain(writer.script.values.values().flatten()).map(Word::show);
    let home = |part: &str| {
        part.contains('/')
            && writer
                .gate
                .resolve(part, writer.everywhere)
                .iter()
                .any(|path| Path::new(path).starts_with(&writer.gate.home))
    };
    all.into_iter().find_map(|text| {
        let mut parts = text.split(|c: char| c.is_whitespace() || "=:,;|&<>()\"'`".contains(c));
        parts.find_map(|part| match (is_inside(part, false), home(part)) {
            (false, false) => None,
            (inside, _) => {
                let rule = if inside { "guard.git" } else { "guard.home" };
                let why = format!("which file it writes shows only when it runs, and the line names {part}; write the name out");
                Some(decision(Verdict::Deny, rule, &why))
            }
        })
    })
}

/// `curl -K -`: where it writes stands in what it is sent.
fn reads_configuration(words: &[Word]) -> bool {
    let shown: Vec<String> = words.iter().map(Word::show).collect();
    let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
    !harm::values(&shown, &["-K", "--config"]).is_empty()
}

/// A word, and its parts after `=`, `:` and `,`.
fn parts_of(word: &str) -> impl Iterator<Item = &str> {
    std::iter::once(word).chain(word.split(['=', ':', ',']))
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
    // `python -m zipfile -e x`: behind the name of a module the options are its own.
    let own = words.iter().take_while(|word| word.starts_with('-') && *word != "-m");
    let first = words.iter().find(|word| !word.starts_with('-'));
    if runs && own.chain(first).any(|word| is_inline(word)) {
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
    let glued = words.iter().filter(|word| {
        Some(*word) != ran && !inner.contains(word) && !(texts && word.contains(char::is_whitespace))
    });
    let set = writer.command.assignments.iter().filter_map(|set| set.value.as_ref().map(Word::show));
    let set: Vec<String> = set.collect();
    // `wrapper -o x y`: what follows an option is not surely the program that it runs.
    let programs: Vec<String> = behind().filter_map(|command| Some(command.words.first()?.show())).collect();
    let unsure = words.windows(2).filter(|pair| pair[0].starts_with('-') && programs.contains(&pair[1]));
    let named = glued.chain(&set).chain(unsure.map(|pair| &pair[1])).flat_map(|word| parts_of(word));
    edited.into_iter().chain(named).any(|part| is_inside(part, false))
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
    let inside_from = || writer.from.iter().any(|folder| is_inside(folder, true));
    let tree = |place: &str| {
        let below = |from: &String| !place.starts_with('/') && is_inside(&format!("{from}/{place}"), true);
        is_inside(place, true) || writer.from.iter().any(below)
    };
    let set = |name: &str| {
        let all = writer.script.values.get(name).into_iter().flatten();
        all.map(Word::show).filter(|value| !value.is_empty()).collect::<Vec<String>>()
    };
    let trees = worktrees(&shown).into_iter().map(str::to_owned).chain(set("GIT_WORK_TREE"));
    if GIT_CHECKS_OUT.contains(&sub) && (inside_from() || trees.into_iter().any(|place| tree(&place))) {
        return true;
    }
    // A template is copied into the new `.git`, hooks and all.
    let begins = matches!(sub, "init" | "init-db" | "clone");
    let template = harm::values(&shown, &["--template"]).iter().any(|value| !value.is_empty());
    let setting = shown.iter().any(|word| word.to_lowercase().contains("init.templatedir"));
    if (begins && (template || !set("GIT_TEMPLATE_DIR").is_empty())) || (setting && shown.len() > 3) {
        return true;
    }
    if sub == "fast-import" && shown.iter().any(|word| word.starts_with("--allow-unsafe")) {
        return true;
    }
    if GIT_NAMES.contains(&sub) {
        return false;
    }
    let named = || shown.iter().skip(1).flat_map(|word| parts_of(word));
    // Git's own configuration is changed by git; a hook is none.
    if sub == "config" {
        let hook = |part: &str| is_inside(part, false) && parts(part).contains(&"hooks");
        return named().any(hook);
    }
    inside_from()
        || named().any(|part| is_inside(part, false))
        || writer.touches.iter().any(|touch| touches_inside(touch, false))
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
