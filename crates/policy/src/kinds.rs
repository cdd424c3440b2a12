//! The kinds of act that a command or a call is, for rules that ask or deny by `kind`.
//!
//! A command is of every kind that it could be: by the facts that the guard and the list of losses have about it, by
//! the table of programs, and by the commands it runs in turn. A program text in another language could do anything,
//! so it is of every kind; an unknown program that is given a file or nothing is executed and no more.

use lathe_bash::{Redirect, RedirectKind, SimpleCommand, Word};
use lathe_protocol::{Effects, ToolKind};

use crate::git_option::may_be_option;
use crate::guard::{Spelled, Spellings, operands};
use crate::kind_table::{DELETES, LANGUAGES, MODULES, MOVES, RowCondition, TABLE};
use crate::places::{UNKNOWN, Values};
use crate::possible_commands::{PossibleCommands, base};
use crate::rules::GateCall;
use crate::touch::{Touch, TouchTarget};
use crate::{git, harm, losses, removes, searchers};

/// The kinds that a program text could be of.
const ANYTHING: [ToolKind; 7] = [
    ToolKind::Execute,
    ToolKind::Read,
    ToolKind::Edit,
    ToolKind::Delete,
    ToolKind::Move,
    ToolKind::Search,
    ToolKind::Fetch,
];

/// Subcommands of git that reach other machines.
const GIT_FETCHES: [&str; 22] = [
    "fetch",
    "pull",
    "push",
    "clone",
    "ls-remote",
    "fetch-pack",
    "send-pack",
    "http-push",
    "http-fetch",
    "send-email",
    "imap-send",
    "daemon",
    "instaweb",
    "svn",
    "p4",
    "cvsimport",
    "cvsserver",
    "archimport",
    "request-pull",
    "subtree",
    "upload-pack",
    "maintenance",
];

/// Options by which any program overwrites its files.
const IN_PLACE: [&str; 6] = ["--in-place", "--inplace", "--fix", "--write", "--overwrite", "--autocorrect"];

/// Options that name the output of any program.
const OUTPUT: [&str; 7] = ["-o", "--output", "--out", "-out", "--outfile", "--out-dir", "--output-file"];

/// Kinds, each once.
#[derive(Debug, Default)]
struct KindSet(Vec<ToolKind>);

impl Extend<ToolKind> for KindSet {
    fn extend<T: IntoIterator<Item = ToolKind>>(&mut self, kinds: T) {
        for kind in kinds {
            if !self.0.contains(&kind) {
                self.0.push(kind);
            }
        }
    }
}

/// The most words after a program that are examined in one row.
const ROW: usize = 64;

/// The most words that are examined for one row, all its programs together.
const LOOKS: usize = 1 << 16;

/// Tells whether a program of this name may reach other machines.
pub(crate) fn is_fetch(name: &str) -> bool {
    TABLE.rows(name).any(|row| row.kinds.contains(&ToolKind::Fetch))
}

/// Every kind that a command of a line is, as far as its effects are known. In any case it is executed.
pub(crate) fn of_command(
    command: &SimpleCommand,
    effects: &Effects,
    touches: &[Touch],
    values: &Values<'_>,
    behind: &PossibleCommands,
) -> Vec<ToolKind> {
    let mut kinds = KindSet(vec![ToolKind::Execute]);
    kinds.extend((!effects.writes.is_empty()).then_some(ToolKind::Edit));
    kinds.extend((!effects.hosts.is_empty()).then_some(ToolKind::Fetch));
    kinds.extend(touches.iter().any(|touch| touch.sure && touch.reads).then_some(ToolKind::Read));
    let connects = |text: &str| text.contains("/dev/tcp/") || text.contains("/dev/udp/");
    let named = |touch: &Touch| matches!(&touch.target, TouchTarget::Path { names, .. } if names.iter().any(|name| connects(name)));
    let given = command.words.iter().chain(command.redirects.iter().map(|redirect| &redirect.word));
    if touches.iter().any(named) || given.map(Word::show).any(|text| connects(&text)) {
        kinds.extend([ToolKind::Fetch]);
    }
    kinds.extend(empties_a_file(command).then_some(ToolKind::Delete));
    let spellings = Spellings::of(command, values);
    let each = spellings.each();
    let dynamic = command.program().is_none() && !command.words.is_empty();
    if dynamic && (each.is_empty() || each.iter().any(|spelled| spelled.name.contains(UNKNOWN))) {
        kinds.extend(ANYTHING);
    }
    for spelled in &each {
        kinds.extend(kinds_of_words(spelled, values).0);
    }
    // A program that is linked or copied under another name does there the same as here.
    let copied = behind.copied.iter().flat_map(|program| TABLE.rows(program));
    kinds.extend(copied.flat_map(|row| row.kinds.iter().copied()));
    for row in &behind.rows {
        for (index, word) in row.iter().enumerate() {
            let name = base(word);
            if TABLE.has(name) || name == "git" || is_language(name) {
                // All words after it, unless there are so many that each would be examined together with all the
                // others.
                let most = ROW.max(LOOKS / row.len().max(1));
                let words = row.iter().skip(index + 1).take(most).map(String::as_str).collect();
                kinds.extend(kinds_of_words(&Spelled { name, words }, values).0);
            }
        }
    }
    kinds.0
}

/// Tells whether bash empties a file with this command, and nothing comes into the file: `> x`, `: > x`, `cat
/// /dev/null > x`.
fn empties_a_file(command: &SimpleCommand) -> bool {
    let shown: Vec<String> = command.words.iter().map(Word::show).collect();
    let words: Vec<&str> = shown.iter().map(String::as_str).collect();
    let silent = match words.as_slice() {
        [] | [":" | "true" | "false", ..] | ["cat", "/dev/null"] | ["echo", "-n"] | ["printf", ""] => true,
        ["echo", "-n", rest @ ..] => rest.iter().all(|word| word.is_empty()),
        _ => false,
    };
    let file = |redirect: &Redirect| {
        redirect.kind == RedirectKind::Write && !redirect.word.show().starts_with("/dev/")
    };
    silent && command.redirects.iter().any(file)
}

/// The kinds of bash's own acts around a command of the agent. The command itself is decided when it runs.
pub(crate) fn of_own(effects: &Effects, touches: &[Touch]) -> Vec<ToolKind> {
    let mut kinds = vec![ToolKind::Execute];
    kinds.extend((!effects.writes.is_empty()).then_some(ToolKind::Edit));
    kinds.extend(touches.iter().any(|touch| touch.sure && touch.reads).then_some(ToolKind::Read));
    kinds
}

/// The kinds of a program with its words.
fn kinds_of_words(spelled: &Spelled<'_>, values: &Values<'_>) -> KindSet {
    let (name, words) = (spelled.name, spelled.words.as_slice());
    if let Some(words) = git::git_words(name, words) {
        return of_git(&words);
    }
    let mut kinds = KindSet::default();
    if runs_text(name, words) {
        kinds.extend(ANYTHING);
        return kinds;
    }
    let effects = effects_of(name, words);
    for row in
        TABLE.rows(name).filter(|row| holds(&row.condition, words) && !is_cancelled(&row.unless, words))
    {
        kinds.extend(row.kinds.iter().copied());
    }
    kinds.extend(
        searchers::searches(name).then_some([ToolKind::Search, ToolKind::Read]).into_iter().flatten(),
    );
    kinds.extend((!effects.hosts.is_empty()).then_some(ToolKind::Fetch));
    let writes = !effects.writes.is_empty()
        || !harm::write_targets(spelled).is_empty()
        || !harm::spoiled_paths(spelled).is_empty();
    kinds.extend(writes.then_some(ToolKind::Edit));
    let moves = kinds.0.contains(&ToolKind::Move) && name == "mv";
    let loses = !losses::deleted(spelled, &[".".to_owned()]).is_empty()
        || !removes::removed(spelled, values).is_empty()
        || harm::deletes_by_option(spelled);
    kinds.extend((loses && !moves).then_some(ToolKind::Delete));
    if let Some((module, rest)) = module_of(name, words) {
        let known = MODULES.iter().filter(|(known, _)| *known == module);
        kinds.extend(known.flat_map(|(_, of)| of.iter().copied()));
        kinds.extend(kinds_of_words(&Spelled { name: module, words: rest.to_vec() }, values).0);
    }
    if effects.change_something() {
        kinds.extend(by_any_program(name, words));
    }
    kinds
}

pub(crate) fn effects_of(name: &str, words: &[&str]) -> Effects {
    let words = std::iter::once(name).chain(words.iter().copied()).map(Word::text).collect();
    SimpleCommand { words, ..SimpleCommand::default() }.effects()
}

/// The kinds that words make of any program that is not known to only read.
fn by_any_program(name: &str, words: &[&str]) -> Vec<ToolKind> {
    let given = operands(words);
    let verb = |verbs: &[&str]| given.iter().take(2).any(|word| verbs.contains(word));
    let option =
        |options: &[&str]| words.iter().any(|word| options.iter().any(|option| is_option(word, option)));
    let address = |word: &&str| {
        let scheme = word.split_once("://").map(|(scheme, _)| scheme).unwrap_or_default();
        let scheme = scheme.rsplit(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        !scheme.is_empty() && scheme != "file"
    };
    let deletes = |word: &&str| {
        word.starts_with("--delete")
            || word.starts_with("--remove-")
            || word.starts_with("--prune")
            || word.starts_with("--purge")
    };
    let mut kinds = Vec::new();
    // A test may have any name.
    let tests = matches!(given.first(), Some(&("test" | "t" | "nextest" | "bench")))
        || matches!(
            name,
            "pytest" | "py.test" | "tox" | "nox" | "jest" | "vitest" | "mocha" | "mypy" | "tsc"
        );
    kinds.extend(((verb(&DELETES) && !tests) || words.iter().any(deletes)).then_some(ToolKind::Delete));
    kinds.extend((verb(&MOVES) && !tests).then_some(ToolKind::Move));
    kinds.extend((option(&IN_PLACE) || option(&OUTPUT)).then_some(ToolKind::Edit));
    kinds.extend(words.iter().any(address).then_some(ToolKind::Fetch));
    // `go run example.org/x@latest`
    let versioned = |word: &&&str| word.contains('@') && name == "go";
    kinds.extend(given.iter().any(|word| versioned(&word)).then_some(ToolKind::Fetch));
    // `mount host:/x y`, `mount //host/x y`
    let remote = |word: &&str| word.contains(":/") || word.starts_with("//");
    kinds.extend((name == "mount" && given.iter().any(remote)).then_some(ToolKind::Fetch));
    // The content of a file is lost when the file is replaced by nothing, or is moved to nowhere.
    let nothing = words.iter().any(|word| matches!(*word, "/dev/null" | "if=/dev/null"));
    let puts = matches!(name, "cp" | "mv" | "dd" | "install" | "ln" | "rsync");
    kinds.extend((puts && nothing).then_some(ToolKind::Delete));
    kinds
}

/// Tells whether a word is an option of this name, with a value or without; a letter may be followed by its value or
/// bundled with others.
fn is_option(word: &str, option: &str) -> bool {
    match option.strip_prefix('-').filter(|letter| letter.chars().count() == 1) {
        Some(letter) => word.starts_with('-') && !word.starts_with("--") && word.contains(letter),
        None => word == option || word.strip_prefix(option).is_some_and(|rest| rest.starts_with('=')),
    }
}

pub(crate) fn holds(when: &RowCondition, words: &[&str]) -> bool {
    let sub = words.iter().copied().find(|word| !word.starts_with(['-', '+']));
    let any = |options: &[&str], is: fn(&str, &str) -> bool| {
        words.iter().any(|word| options.iter().any(|option| is(word, option)))
    };
    match when {
        RowCondition::Always => true,
        RowCondition::Sub(subs) => sub.is_some_and(|sub| subs.contains(&sub)),
        RowCondition::Except(subs) => {
            let asks = |word: &&str| matches!(*word, "--version" | "-v" | "-V" | "--help" | "-h");
            match sub {
                Some(sub) => !subs.contains(&sub),
                None => !words.iter().any(asks),
            }
        }
        RowCondition::With(options) => any(options, is_option),
        RowCondition::Without(options) => !any(options, is_plain_option),
        RowCondition::SubWithout(wanted, options) => sub == Some(*wanted) && !any(options, is_plain_option),
    }
}

/// Tells whether an option cancels a row. After a second operand, or `--`, it may be a word for another program.
pub(crate) fn is_cancelled(unless: &[&str], words: &[&str]) -> bool {
    let mut count = 0;
    let own = words.iter().take_while(|word| {
        count += usize::from(!word.starts_with(['-', '+']));
        count < 2 && **word != "--"
    });
    !unless.is_empty() && own.into_iter().any(|word| unless.contains(word))
}

/// Tells whether a word is this option, which makes a program harmless: among other letters only where none of them
/// takes a value.
fn is_plain_option(word: &str, option: &str) -> bool {
    let letters = word.strip_prefix('-').unwrap_or_default();
    let plain = letters.len() == 1 || letters.chars().all(|c| c.is_ascii_digit() || "kctlvfqn".contains(c));
    is_option(word, option) && (word.starts_with("--") || word == option || plain)
}

/// The name of an interpreter without its version.
fn unversioned(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-')
}

fn is_language(name: &str) -> bool {
    LANGUAGES.iter().any(|(known, _)| *known == name || *known == unversioned(name))
}

/// Tells whether a program is given a text of its own language, which could do anything.
fn runs_text(name: &str, words: &[&str]) -> bool {
    match name {
        "awk" | "gawk" | "mawk" | "nawk" => return effects_of(name, words).change_something(),
        "sed" | "gsed" => {
            // Its changes of its files in place are known.
            let option =
                |word: &&&str| !(word.starts_with("-i") || word.starts_with("--in-place") || **word == "-s");
            let rest: Vec<&str> = words
                .iter()
                .filter(option)
                .map(|word| {
                    if word.starts_with('-')
                        && !word.starts_with("--")
                        && word.contains('i')
                        && word.len() < 5
                    {
                        "-n"
                    } else {
                        *word
                    }
                })
                .collect();
            return effects_of("sed", &rest).change_something();
        }
        _ => {}
    }
    let known = |(known, _): &&(&str, &[&str])| *known == name || *known == unversioned(name);
    let Some((known, options)) = LANGUAGES.iter().find(known) else { return false };
    let editor = matches!(
        *known,
        "vim" | "vi" | "nvim" | "ex" | "emacs" | "gdb" | "lldb" | "psql" | "mysql" | "sqlite3"
    );
    let mut file = false;
    for word in words {
        if options.iter().any(|option| is_option(word, option))
            || (editor && word.starts_with('+') && word.len() > 1)
        {
            return true;
        }
        match *word {
            "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0" => return true,
            "-m" if *known == "python" => return false,
            "--version" | "-V" | "-v" | "--help" | "-h" | "-vV" => file = true,
            word if word.starts_with('-') => {}
            _ if editor => file = true,
            _ => return false,
        }
    }
    // Without a file, the text comes in on the standard input.
    !file
}

/// The module that `python -m` runs, and its words.
pub(crate) fn module_of<'w, 's>(name: &str, words: &'s [&'w str]) -> Option<(&'w str, &'s [&'w str])> {
    if !matches!(unversioned(name), "python" | "pypy") {
        return None;
    }
    let at = words.iter().position(|word| *word == "-m")?;
    Some((words.get(at + 1)?, words.get(at + 2..).unwrap_or_default()))
}

/// The kinds of a git command. Its subcommands are those of the list of losses and of the table of files that git
/// reads.
fn of_git(words: &[&str]) -> KindSet {
    let mut kinds = KindSet::default();
    let Some((sub, rest)) = git::split_subcommand(words) else { return kinds };
    if !git::is_subcommand(sub) {
        kinds.extend(ANYTHING);
        return kinds;
    }
    let all: Vec<&str> = std::iter::once(sub).chain(rest.iter().copied()).collect();
    let has = |options: &[&str]| rest.iter().any(|word| may_be_option(word, options));
    let first = operands(rest).first().copied().unwrap_or_default();
    let fetches = GIT_FETCHES.contains(&sub)
        || (sub == "submodule" && matches!(first, "update" | "add" | "sync" | "foreach"))
        || (sub == "remote"
            && (matches!(first, "update" | "show" | "prune") || has(&["-f"]) || first == "set-head"))
        || (sub == "archive" && has(&["--remote"]));
    kinds.extend(fetches.then_some(ToolKind::Fetch));
    let searches = sub == "ls-files" || git::searches_content(words);
    kinds.extend(searches.then_some([ToolKind::Search, ToolKind::Read]).into_iter().flatten());
    // The content of a file in a commit counts as the file.
    let shown = match sub {
        "blame" | "annotate" => true,
        "show" | "cat-file" => rest.iter().any(|word| word.contains(':')),
        _ => false,
    };
    kinds.extend((shown || git::files_read(words).is_some()).then_some(ToolKind::Read));
    if !effects_of("git", &all).change_something() {
        return kinds;
    }
    let sends = matches!(sub, "fetch" | "push" | "ls-remote" | "send-pack" | "send-email" | "fetch-pack");
    kinds.extend((!sends).then_some(ToolKind::Edit));
    let moves = sub == "mv"
        || (sub == "branch" && has(&["-m", "-M", "--move"]))
        || (sub == "remote" && first == "rename");
    kinds.extend(moves.then_some(ToolKind::Move));
    let forced = has(&["-f", "-B", "-C", "--force", "--discard-changes", "--merge", "-m"]);
    let (work, refs) = losses::lost_by_git(sub, rest);
    let deletes = match sub {
        "mv" | "commit" => false,
        "checkout" => forced || rest.contains(&"--") || !has(&["-b", "--orphan", "--detach"]),
        "switch" => forced,
        "tag" => has(&["-d", "-f", "--delete", "--force"]),
        "branch" => refs && !moves,
        _ => work || refs,
    };
    let verbs = DELETES.contains(&first) || matches!(first, "deinit" | "clear" | "forget" | "expire");
    let drops = (matches!(sub, "replace" | "repack") && has(&["-d", "--delete"]))
        || matches!(sub, "prune-packed" | "pack-redundant");
    let options = drops || has(&["--unset", "--unset-all", "--remove-section", "--remove", "--force-remove"]);
    kinds.extend(
        (deletes
            || options
            || (verbs
                && !matches!(
                    sub,
                    "commit"
                        | "checkout"
                        | "switch"
                        | "branch"
                        | "tag"
                        | "add"
                        | "clone"
                        | "push"
                        | "fetch"
                        | "merge"
                )))
        .then_some(ToolKind::Delete),
    );
    kinds
}

/// Every kind that a call is: the kind of its face, and those of its effects. One face may be several tools, and a
/// view through a tool for edits is a view.
pub(crate) fn of_call(call: &GateCall<'_>) -> Vec<ToolKind> {
    let effects = call.effects;
    let mut kinds = vec![call.kind];
    kinds.extend(call.kinds);
    kinds.extend((!effects.writes.is_empty()).then_some(ToolKind::Edit));
    kinds.extend((!effects.hosts.is_empty()).then_some(ToolKind::Fetch));
    kinds.extend((!effects.reads.is_empty() && !effects.change_something()).then_some(ToolKind::Read));
    kinds
        .extend(matches!(call.tool, "search" | "glob" | "list" | "code" | "ckg").then_some(ToolKind::Search));
    kinds
}
