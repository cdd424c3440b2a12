//! Writes into `.git` and Lathe's own folder by programs that are not known as writers: `iconv -o .git/hooks/x`.
//!
//! There are more programs that write a file they are given the name of than any table holds. So a program that is
//! not known to only read is given no name inside of a guarded place, and does not run in there. Programs whose
//! targets the guard knows one by one ([`crate::harm::write_targets`]) may still read from there.

use std::cell::OnceCell;

use lathe_bash::{Piece, Script, SimpleCommand, Word, normal_words};
use lathe_protocol::{Decision, Effects};

use crate::gate::Gate;
use crate::guard::{Spelled, Spellings};
use crate::guarded::GuardedPlace;
use crate::losses::worktrees;
use crate::places::{UNKNOWN, Values, parts};
use crate::touch::{Touch, TouchTarget};
use crate::{git, git_config, harm};

/// Programs that put no content into the files they name: they delete, make folders, change modes, or enter a folder.
/// Other code decides whether they may.
const NO_CONTENT: [&str; 15] = [
    "rm", "rmdir", "unlink", "srm", "trash", "mkdir", "chmod", "chown", "chgrp", "cd", "pushd", "popd",
    "find", "fd", "fdfind",
];

/// Shells, and interpreters: their first operand is a file that they run.
const RUN_A_FILE: [&str; 20] = [
    "bash", "sh", "zsh", "dash", "ksh", "ash", "fish", "source", ".", "python", "python2", "python3", "perl",
    "ruby", "node", "deno", "bun", "php", "lua", "Rscript",
];

/// Editors, which write to the file that a command among their words names: `+w!.git/config`.
const EDITORS: [&str; 5] = ["vi", "vim", "nvim", "ex", "ed"];

/// Subcommands of git that write no file that their words name, except by the options that the guard knows one by one
/// ([`crate::harm::write_targets`]).
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

/// The denials for places that are never written, computed once for all commands of a line.
#[derive(Default)]
pub(crate) struct DenialCache {
    /// The denial for something in such a place.
    pub(crate) inside: OnceCell<Option<Decision>>,
    /// The denial for something in such a place, or the place itself.
    pub(crate) whole: OnceCell<Option<Decision>>,
    /// The denial for a pattern of `extglob` that may mean one.
    pub(crate) extended: OnceCell<Option<Decision>>,
}

/// One command of a line, with the facts about it.
pub(crate) struct Writer<'a> {
    pub(crate) line: &'a str,
    pub(crate) script: &'a Script,
    pub(crate) index: usize,
    pub(crate) command: &'a SimpleCommand,
    pub(crate) effects: &'a Effects,
    pub(crate) touches: &'a [Touch],
    /// The folders that it may run in.
    pub(crate) from: &'a [String],
    /// All the folders that the line may be in.
    pub(crate) everywhere: &'a [String],
    pub(crate) denials: &'a DenialCache,
    pub(crate) gate: &'a Gate,
    pub(crate) values: &'a Values<'a>,
}

impl Writer<'_> {
    /// The guarded place that a path leads into; with `whole`, or to the place itself.
    fn guarded(&self, path: &str, whole: bool) -> Option<GuardedPlace> {
        GuardedPlace::of(self.gate, path, self.from, whole)
    }

    /// The program of the wrapper in front of it.
    fn wrapper(&self) -> Option<&str> {
        self.command.wrapper.and_then(|behind| self.script.commands.get(behind)?.program_name())
    }

    /// Tells whether words come to it through a pipe or from a file.
    pub(crate) fn is_fed(&self) -> bool {
        matches!(self.wrapper(), Some("xargs" | "parallel"))
    }

    /// Tells whether the words that come to it are known, so that the script lists another command with them.
    fn has_known_words(&self) -> bool {
        let same = |other: &&SimpleCommand| {
            other.wrapper == self.command.wrapper && other.words.len() > self.command.words.len()
        };
        self.script.commands.iter().filter(same).any(|other| other.words.starts_with(&self.command.words))
    }

    /// A word as the wrapper hands it on: something else takes the place of `{}`, or of the mark that `xargs -I`
    /// names.
    pub(crate) fn filled(&self, word: &str) -> String {
        if !self.is_fed() && !matches!(self.wrapper(), Some("find" | "fd" | "fdfind")) {
            return word.to_owned();
        }
        let wrapper = self.command.wrapper.and_then(|behind| self.script.commands.get(behind));
        let given: Vec<String> = wrapper.iter().flat_map(|wrapper| &wrapper.words).map(Word::show).collect();
        let given: Vec<&str> = given.iter().map(String::as_str).collect();
        let marks = harm::option_values(&given, &["-I", "--replace"]);
        let marks = marks.iter().copied().filter(|mark| !mark.is_empty() && self.is_fed());
        marks.chain(["{}"]).fold(word.to_owned(), |word, mark| word.replace(mark, &UNKNOWN.to_string()))
    }

    /// The guarded place that the command runs in.
    fn runs_in(&self) -> Option<GuardedPlace> {
        self.from.iter().find_map(|folder| self.guarded(folder, true))
    }
}

/// The denial of such a command, if it is never run.
pub(crate) fn denied(writer: &Writer<'_>) -> Option<Decision> {
    let name = writer.command.program_name().unwrap_or_default();
    if let Some(denied) = crate::runtime_names::denied(writer) {
        return Some(denied);
    }
    if let Some(denied) = sets_program(writer).or_else(|| runs_in_text(writer)) {
        return Some(denied);
    }
    let inside = match name {
        "git" => git(writer),
        _ if NO_CONTENT.contains(&name) || !changes(writer) => None,
        _ => plain(name, writer),
    };
    inside.map(GuardedPlace::denial)
}

/// A word, and its parts after `=`, `:` and `,`.
fn parts_of(word: &str) -> impl Iterator<Item = &str> {
    std::iter::once(word).chain(word.split(['=', ':', ',']))
}

/// Tells whether a program does more than read. The files that bash writes for it, and the variables that are set for
/// it, are not its own acts.
pub(crate) fn changes(writer: &Writer<'_>) -> bool {
    let changes = |effects: &Effects| {
        effects.opaque
            || !effects.writes.is_empty()
            || !effects.programs.is_empty()
            || !effects.hosts.is_empty()
    };
    changes(writer.effects)
        && (writer.command.redirects.is_empty() || {
            changes(&SimpleCommand { redirects: Vec::new(), ..writer.command.clone() }.effects())
        })
}

fn plain(name: &str, writer: &Writer<'_>) -> Option<GuardedPlace> {
    // The command after it is judged by itself.
    let behind = || writer.script.commands.iter().filter(|command| command.wrapper == Some(writer.index));
    let inner: Vec<String> = behind().flat_map(|command| command.words.iter().map(Word::show)).collect();
    if let Some(place) = writer.runs_in().filter(|_| inner.is_empty()) {
        return Some(place);
    }
    let versioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let runs = RUN_A_FILE.contains(&name) || RUN_A_FILE.contains(&versioned);
    let words: Vec<String> = writer.command.words.iter().skip(1).map(Word::show).collect();
    let spelled = Spelled { name, words: words.iter().map(String::as_str).collect() };
    if harm::known_write_targets(&spelled).is_some() && !EDITORS.contains(&name) {
        return None;
    }
    // A program text that uses a name of Lathe's own folder is never harmless: that folder may not be read either.
    if let Some(home) = home_in_texts(writer).filter(|_| inner.is_empty() || runs) {
        return Some(home);
    }
    // `python -m zipfile -e x`: after the name of a module, the options are the module's own.
    let own = words.iter().take_while(|word| word.starts_with('-') && *word != "-m");
    let first = words.iter().find(|word| !word.starts_with('-'));
    if runs && own.chain(first).any(|word| is_inline(word)) {
        return None;
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
    // `wrapper -o x y`: the word after an option is not surely the program that it runs.
    let programs: Vec<String> = behind().filter_map(|command| Some(command.words.first()?.show())).collect();
    let unsure = words.windows(2).filter(|pair| pair[0].starts_with('-') && programs.contains(&pair[1]));
    let named = glued.chain(&set).chain(unsure.map(|pair| &pair[1])).flat_map(|word| parts_of(word));
    let named = edited.into_iter().chain(named).find_map(|part| writer.guarded(part, false));
    named.or_else(|| writer.touches.iter().filter(meant).find_map(|touch| touches_inside(writer, touch)))
}

/// Lathe's own folder, where the words or the input of a program name something in it.
fn home_in_texts(writer: &Writer<'_>) -> Option<GuardedPlace> {
    let input =
        writer.command.redirects.iter().filter(|redirect| redirect.kind == lathe_bash::RedirectKind::Text);
    let texts = writer.command.words.iter().skip(1).chain(input.map(|redirect| &redirect.word));
    let texts: Vec<String> = texts.flat_map(|word| writer.values.spellings(word)).collect();
    let mut parts = texts.iter().flat_map(|text| crate::runtime_names::possible_names(text));
    parts.find_map(|part| writer.guarded(part, true).filter(|place| *place == GuardedPlace::Home))
}

/// Tells whether an option gives an interpreter its program as a text, which is judged elsewhere.
fn is_inline(word: &str) -> bool {
    let short = word.strip_prefix('-').filter(|letters| !letters.starts_with('-') && letters.len() <= 4);
    short.is_some_and(|letters| letters.ends_with(['c', 'e', 'E', 'p', 'r']))
        || word.starts_with("--eval")
        || word.starts_with("--print")
        || word == "eval"
}

/// The denial of a git command that sets a key by which git runs a program later.
fn sets_program(writer: &Writer<'_>) -> Option<Decision> {
    if !writer.command.program_name().is_none_or(|name| name.starts_with("git")) {
        return None;
    }
    let values = Values { line: Some(writer.line), ..*writer.values };
    let spellings = Spellings::of(writer.command, &values);
    // Words that are known only when the line runs stand last: `xargs git config`, `git config $(cat a)`.
    let unknown = UNKNOWN.to_string();
    let more = match writer.is_fed() {
        true => 2,
        false => usize::from(writer.command.words.iter().any(is_several)),
    };
    spellings.each().iter().find_map(|spelled| {
        let words = git::git_words(spelled.name, &spelled.words)?;
        let filled = words.iter().map(|word| writer.filled(word));
        let words: Vec<String> = filled.chain(std::iter::repeat_n(unknown.clone(), more)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        // `echo status | xargs git`: the script lists the command once more with the words it is sent.
        let told = writer.is_fed() && writer.has_known_words();
        git_config::denied(&words)
            .filter(|_| !told || git::split_subcommand(&words).is_some_and(|(sub, _)| sub == "config"))
    })
}

/// The denial of a command line that stands in a word or a variable and writes a guarded place: `-o ProxyCommand='tee
/// X'`, `GIT_SSH_COMMAND='tee X'`. It is not known which programs run such a text, so any may.
fn runs_in_text(writer: &Writer<'_>) -> Option<Decision> {
    let command = writer.command;
    let keeps = matches!(command.program_name(), Some("export" | "declare" | "typeset" | "alias" | "trap"));
    let words: Vec<String> = command.words.iter().skip(1).map(Word::show).collect();
    let plain: Vec<&str> = words.iter().map(String::as_str).collect();
    let spoken = match command.program_name() {
        Some("git") => crate::file_words::git_text_words(&plain),
        Some(_) | None => Vec::new(),
    };
    let runs = changes(writer) || keeps;
    let given = words.iter().enumerate().filter(|(index, _)| runs && !spoken.contains(index));
    let set: Vec<String> =
        command.assignments.iter().filter_map(|set| Some(set.value.as_ref()?.show())).collect();
    let texts = given.map(|(_, word)| word).chain(&set).filter(|text| text.contains(char::is_whitespace));
    let named = |text: &&String| {
        crate::runtime_names::possible_names(text)
            .any(|part| GuardedPlace::of(writer.gate, part, writer.everywhere, false).is_some())
    };
    texts.filter(named).find_map(|text| {
        let behind = text.split_once('=').map(|(_, line)| line);
        [Some(text.as_str()), behind].into_iter().flatten().find_map(|line| {
            let script = lathe_bash::read(line);
            let values = Values {
                assigned: &script.values,
                may_be_empty: false,
                line: None,
                spent: writer.values.spent,
            };
            let denied = script.commands.iter().find_map(|command| {
                crate::guard::command_denial(Some(writer.gate), command, &values, writer.everywhere)
            });
            // Behind walls Lathe's own folder is masked.
            let home = !writer.gate.has_walls();
            denied.filter(|denied| denied.rule == "guard.git" || (home && denied.rule == "guard.home"))
        })
    })
}

/// Tells whether a word may become several words that are known only when the line runs.
fn is_several(word: &Word) -> bool {
    word.pieces.iter().any(|piece| match piece {
        Piece::Variable { name, quoted } => !quoted || matches!(&**name, "@" | "*"),
        Piece::Operator { .. } | Piece::Substitution(_) | Piece::Glob(_) => true,
        Piece::Text(_)
        | Piece::Tilde(_)
        | Piece::Process(_)
        | Piece::Arithmetic { .. }
        | Piece::Brace { .. } => false,
    })
}

fn git(writer: &Writer<'_>) -> Option<GuardedPlace> {
    let words = normal_words(&writer.command.words);
    let sub = words.get(1).map(String::as_str).unwrap_or_default();
    let shown: Vec<String> = writer.command.words.iter().map(Word::show).collect();
    let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
    let tree = |place: String| {
        let below = |from: &String| {
            let relative = !place.starts_with('/');
            relative.then(|| writer.guarded(&format!("{from}/{place}"), true)).flatten()
        };
        writer.guarded(&place, true).or_else(|| writer.from.iter().find_map(below))
    };
    let set = |name: &str| {
        let all = writer.script.values.get(name).into_iter().flatten();
        all.map(Word::show).filter(|value| !value.is_empty()).collect::<Vec<String>>()
    };
    let mut trees = worktrees(&shown).into_iter().map(str::to_owned).chain(set("GIT_WORK_TREE"));
    if GIT_CHECKS_OUT.contains(&sub)
        && let Some(place) = writer.runs_in().or_else(|| trees.find_map(tree))
    {
        return Some(place);
    }
    // A template is copied into the new `.git`, hooks and all.
    let begins = matches!(sub, "init" | "init-db" | "clone");
    let template = harm::option_values(&shown, &["--template"]).iter().any(|value| !value.is_empty());
    let setting = shown.iter().any(|word| word.to_lowercase().contains("init.templatedir"));
    if (begins && (template || !set("GIT_TEMPLATE_DIR").is_empty())) || (setting && shown.len() > 3) {
        return Some(GuardedPlace::Git);
    }
    if sub == "fast-import" && shown.iter().any(|word| word.starts_with("--allow-unsafe")) {
        return Some(GuardedPlace::Git);
    }
    if GIT_NAMES.contains(&sub) {
        return None;
    }
    let mut named = shown.iter().skip(1).flat_map(|word| parts_of(word));
    // Git itself changes its own configuration; a hook is not part of it.
    if sub == "config" {
        return named.find_map(|part| match writer.guarded(part, false)? {
            GuardedPlace::Git => parts(part).contains(&"hooks").then_some(GuardedPlace::Git),
            GuardedPlace::Home => Some(GuardedPlace::Home),
        });
    }
    writer
        .runs_in()
        .or_else(|| named.find_map(|part| writer.guarded(part, false)))
        .or_else(|| writer.touches.iter().find_map(|touch| touches_inside(writer, touch)))
}

fn touches_inside(writer: &Writer<'_>, touch: &Touch) -> Option<GuardedPlace> {
    match &touch.target {
        TouchTarget::Path { names, .. } | TouchTarget::Pattern { names, .. } => {
            names.iter().find_map(|name| writer.guarded(name, false))
        }
        TouchTarget::Unknown | TouchTarget::Ending { .. } => None,
    }
}
