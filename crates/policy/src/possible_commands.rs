//! Commands in the words, texts and variables of another program: `tmux new 'git push'`, `docker run x rm a`, `git
//! rebase -x …`, `echo … | at now`, `PROMPT_COMMAND=…`.
//!
//! There are more programs that run others than any table holds, and more languages than could be parsed. So
//! everything that is given to a program is taken apart into words, and a denial searches for its own words there;
//! excepted are programs that are known to only read, write or print. Text that is only a message or a search term
//! (messages of commits, text that is searched for) is left alone.

use std::collections::BTreeMap;

use lathe_bash::{Piece, RedirectKind, Script, SimpleCommand, Word};

use crate::git;
use crate::patterns::glob;
use crate::places::Values;
use crate::sets::simplified;

/// Words that may be commands, in rows that belong together.
#[derive(Debug, Default)]
pub(crate) struct PossibleCommands {
    pub(crate) rows: Vec<Vec<String>>,
    /// Words that a variable holds, which are a command only from the first word on: `X='git push'`, not `X='no git
    /// push'`.
    begun: Vec<Vec<String>>,
    /// True if the line goes to a folder that holds programs.
    pub(crate) in_programs: bool,
    /// Programs that get another name.
    pub(crate) copied: Vec<String>,
}

/// Programs whose words are files, tests and packages of a project, never commands.
const SPEAK: [&str; 30] = [
    "pytest",
    "py.test",
    "tsc",
    "mypy",
    "ruff",
    "flake8",
    "pylint",
    "black",
    "isort",
    "eslint",
    "prettier",
    "jest",
    "vitest",
    "mocha",
    "pip",
    "pip3",
    "gem",
    "apt",
    "apt-get",
    "dnf",
    "yum",
    "brew",
    "lathe",
    "notify-send",
    "kill",
    "pkill",
    "killall",
    "systemctl",
    "rustfmt",
    "gofmt",
];

/// Options of such programs, and of builders, that set what they run: `cargo test --config 'target.x.runner="y"'`.
const SETS: [&str; 16] = [
    "--config",
    "-o",
    "--option",
    "--script-shell",
    "--shell",
    "--editor",
    "--viewer",
    "--browser",
    "--pager",
    "--git",
    "--node-options",
    "--exec",
    "-exec",
    "-toolexec",
    "--runner",
    "--init-author-url",
];

/// Subcommands of builders whose words are not commands.
const BUILDS: [&str; 34] = [
    "build", "check", "test", "clippy", "doc", "bench", "run", "nextest", "fmt", "b", "c", "t", "r", "add",
    "remove", "install", "i", "ci", "update", "metadata", "tree", "ls", "list", "start", "lint", "vet",
    "get", "mod", "generate", "publish", "search", "fetch", "fix", "clean",
];

/// Programs that act on other machines and run their words there.
const ELSEWHERE: [&str; 12] = [
    "kubectl", "oc", "gcloud", "aws", "fly", "flyctl", "heroku", "vagrant", "mosh", "autossh", "pssh",
    "socat",
];

/// Builtins of bash whose words are kept and run later.
const KEEP: [&str; 12] = [
    "alias", "bind", "complete", "hash", "export", "declare", "typeset", "readonly", "local", "trap",
    "enable", "fc",
];

/// Programs that give a program another name.
pub(crate) const COPY: [&str; 22] = [
    "ln", "cp", "install", "link", "mv", "alias", "hash", "cat", "dd", "tee", "rsync", "scp", "tar",
    "bsdtar", "cpio", "base64", "xxd", "gzip", "head", "tail", "sponge", "objcopy",
];

/// Parts of the paths of folders that hold programs.
const PROGRAMS: [&str; 3] = ["bin/", "git-core/", "libexec/"];

/// Tells whether a path may lie in a folder of programs.
pub(crate) fn in_programs(path: &str) -> bool {
    PROGRAMS.iter().any(|folder| path.contains(folder))
}

/// Subcommands of git whose words are messages or search terms.
const GIT_SPEAKS: [&str; 13] = [
    "commit", "tag", "merge", "notes", "revert", "stash", "grep", "log", "show", "shortlog", "blame", "add",
    "status",
];

/// Variables whose values are commands.
fn runs(variable: &str) -> bool {
    let ends = [
        "EDITOR",
        "PAGER",
        "COMMAND",
        "ASKPASS",
        "_CMD",
        "_WRAPPER",
        "BROWSER",
        "SHELL",
        "_DIFF",
        "_PROXY_CMD",
        "FLAGS",
        "_EXEC",
        "_RUNNER",
        "RUSTC",
        "_LINKER",
        // Options of a program, among them those that name another one.
        "OPT",
        "OPTS",
        "OPTIONS",
        "_RSH",
        "STARTUP",
    ];
    ends.iter().any(|end| variable.ends_with(end))
        || matches!(
            variable,
            "VISUAL" | "FCEDIT" | "PS0" | "PS1" | "PS2" | "PS3" | "PS4" | "LESS" | "LESSOPEN" | "LESSCLOSE"
        )
        || matches!(
            variable,
            "MAKEFLAGS" | "MAKE" | "CC" | "CXX" | "LD" | "ENV" | "BASH_ENV" | "RUSTC" | "TAR_OPTIONS"
        )
        || variable.starts_with("GIT_")
        || variable.starts_with("BASH_FUNC_")
        || variable.starts_with("CARGO_")
        || matches!(variable, "BASH_ALIASES" | "BASH_CMDS")
        || variable.starts_with("npm_config_")
}

/// A text with all variables empty, as shells and make write them: `to${X}uch`, `to$(X)uch`, `${X}touch`.
fn without_variables(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let inside = |open: char, close: char| {
            let (name, behind) = after.strip_prefix(open)?.split_once(close)?;
            (open == '{' || name.chars().all(is_name)).then_some(behind)
        };
        rest = inside('{', '}')
            .or_else(|| inside('(', ')'))
            .unwrap_or_else(|| after.trim_start_matches(is_name));
    }
    out + rest
}

impl PossibleCommands {
    /// The further commands that each command of a script may run.
    pub(crate) fn of_script(script: &Script, values: &Values<'_>) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::with_capacity(script.commands.len());
        let goes = |command: &SimpleCommand| {
            let there =
                |word: &Word| PROGRAMS.iter().any(|folder| format!("{}/", word.show()).contains(folder));
            matches!(command.program_name(), Some("cd" | "pushd" | "env"))
                && command.words.iter().skip(1).any(there)
        };
        let in_programs = script.commands.iter().any(goes);
        // A pipe's content is taken apart once, with the last command that may run it.
        let (mut texts, mut last) = (BTreeMap::<usize, Vec<String>>::new(), BTreeMap::new());
        for (index, command) in script.commands.iter().enumerate() {
            let mut behind = Self { in_programs, ..Self::default() };
            let starts = behind.add_command(command, values);
            if let Some(stage) = command.stage {
                let words: Vec<String> =
                    command.words.iter().skip(1).flat_map(|word| texts_of(word, values)).collect();
                let carried = texts.entry(stage.pipe).or_default();
                carried.push(words.join(" "));
                carried.extend(given(command, values));
                if starts && stage.index > 0 {
                    last.insert(stage.pipe, index);
                }
            }
            all.push(behind);
        }
        for (pipe, index) in last {
            if let Some(behind) = all.get_mut(index) {
                texts.get(&pipe).into_iter().flatten().for_each(|text| behind.take_apart(text));
            }
        }
        all
    }

    /// Adds what one command may run. Returns true if it may run what it is sent.
    fn add_command(&mut self, command: &SimpleCommand, values: &Values<'_>) -> bool {
        for assignment in &command.assignments {
            if let Some(value) = &assignment.value {
                self.assigned(&assignment.name, &values.spellings(value));
            }
        }
        let Some(name) = command.words.first().map(Word::show) else { return false };
        let name = base(&name);
        let words: Vec<String> =
            command.words.iter().skip(1).flat_map(|word| texts_of(word, values)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if let Some(words) = git::git_words(name, &words) {
            self.of_git(&words);
            return false;
        }
        // `env GIT_PAGER=x git log`: the variables that the command after `env` gets.
        if matches!(name, "env" | "sudo" | "doas") {
            let given = words.iter().filter_map(|word| word.split_once('='));
            given.for_each(|(name, value)| self.assigned(name, &[value.to_owned()]));
        }
        if COPY.contains(&name) {
            let made = |word: &&Word| {
                let shown = word.show();
                word.pieces.iter().any(|piece| matches!(piece, Piece::Substitution(_)))
                    || PROGRAMS.iter().any(|folder| shown.contains(folder))
                    || self.in_programs
            };
            let read = command.redirects.iter().filter(|redirect| redirect.kind == RedirectKind::Read);
            let given = command.words.iter().skip(1).chain(read.map(|redirect| &redirect.word));
            let made: Vec<String> = given.filter(made).flat_map(|word| values.spellings(word)).collect();
            made.iter().for_each(|word| self.copy(base(word)));
        }
        if matches!(name, "alias" | "hash") {
            words.iter().for_each(|word| self.rename(word));
        }
        if KEEP.contains(&name) {
            words.iter().for_each(|word| self.take_apart(word));
            return false;
        }
        if !starts_others(name, &words, command) {
            set_by_options(name, &words).iter().for_each(|value| self.take_apart(value));
            return false;
        }
        self.rows.push(words.iter().flat_map(|word| plain(word)).collect());
        // `sh < x` runs the file.
        let read = command.redirects.iter().filter(|redirect| redirect.kind == RedirectKind::Read);
        self.rows.extend(read.flat_map(|redirect| values.spellings(&redirect.word)).map(|file| vec![file]));
        for text in words.iter().map(|word| (*word).to_owned()).chain(given(command, values)) {
            self.take_apart(&text);
            if name.ends_with("sed") {
                // `1ecommand`
                let address = |c: char| c.is_ascii_digit() || ",$! ".contains(c);
                self.take_apart(text.trim_start_matches(address).trim_start_matches('e'));
            }
        }
        true
    }

    /// Adds the value that a variable is given.
    fn assigned(&mut self, name: &str, texts: &[String]) {
        if runs(name) {
            texts.iter().for_each(|text| self.take_apart(text));
        }
        if name == "BASH_CMDS" {
            self.copied.extend(texts.iter().map(|text| base(text).to_owned()));
        }
        // Split at blanks or not, the value as a whole may be run later.
        self.add_begun(&texts.join(" "));
        texts.iter().for_each(|text| self.add_begun(text));
    }

    /// Adds the words of git that it runs: settings before the subcommand, and the words after a subcommand that is
    /// not in [`GIT_SPEAKS`].
    fn of_git(&mut self, words: &[&str]) {
        let Some((sub, rest)) = git::split_subcommand(words) else { return };
        let before = words.get(..words.len() - rest.len() - 1).unwrap_or_default();
        before.iter().for_each(|word| self.take_apart(word));
        if !GIT_SPEAKS.contains(&sub) || !git::is_subcommand(sub) {
            rest.iter().for_each(|word| self.take_apart(word));
            // An alias is named by its subcommand alone.
            if sub == "config" && rest.iter().any(|word| word.starts_with("alias.")) {
                self.rows.push(["git"].iter().chain(rest).flat_map(|word| plain(word)).collect());
            }
            // `git for-each-repo --config=x push`
            if sub == "for-each-repo" {
                self.rows.push(["git"].iter().chain(rest).flat_map(|word| plain(word)).collect());
            }
            // `git bisect run x`, `git submodule foreach x`
            self.rows.push(rest.iter().flat_map(|word| plain(word)).collect());
        }
    }

    /// Adds a value that may be run as it stands.
    fn add_begun(&mut self, text: &str) {
        let unset = text.contains('$').then(|| without_variables(text));
        for row in
            [text].into_iter().chain(unset.as_deref()).flat_map(|text| text.split([';', '|', '&', '\n']))
        {
            let words: Vec<String> = row.split_whitespace().flat_map(plain).collect();
            self.begun.extend((!words.is_empty()).then_some(words));
        }
    }

    /// Adds a program that gets another name; one of git's own is a subcommand.
    pub(crate) fn copy(&mut self, program: &str) {
        match plain(program).as_slice() {
            [program] => self.copied.push(program.clone()),
            words => self.rows.push(words.to_vec()),
        }
    }

    /// `alias x=git`: the words after the new name follow the program, unless the value has a subcommand of its own.
    fn rename(&mut self, word: &str) {
        let Some((_, value)) = word.split_once('=') else { return };
        let words: Vec<&str> = value.split_whitespace().collect();
        let Some((program, rest)) = words.split_first() else { return };
        let open = match git::git_words(base(program), rest) {
            Some(words) => git::split_subcommand(&words).is_none(),
            None => rest.iter().all(|word| word.starts_with('-')),
        };
        if open {
            self.copy(base(program));
        }
    }

    /// Cuts a text into rows of words: at the signs that end a command, then at those that end a word in any
    /// language.
    fn take_apart(&mut self, text: &str) {
        let bare: String = text.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
        let glued =
            bare.strip_prefix('-').filter(|rest| !rest.starts_with('-')).and_then(|rest| rest.get(1..));
        // A quote may also end a word: `"git push".split()`.
        let apart = text.contains(['\'', '"']).then(|| text.replace(['\'', '"'], " "));
        // `ext::sh -c x% y` is an address of git's that runs a program; `url.ADDRESS.insteadOf` gives such an address
        // another name.
        let address = bare.contains("ext::").then(|| bare.replace("% ", " ").replace("%%", "%"));
        let lower = bare.to_ascii_lowercase();
        let instead = lower.find(".insteadof").or_else(|| lower.find(".pushinsteadof"));
        let instead = instead.and_then(|end| bare.get(..end));
        let unset = bare.contains('$').then(|| without_variables(&bare));
        // `"tou" + "ch"`, `"tou\x63h"`
        let joined = text.contains(['\'', '"']).then(|| lathe_bash::joined_literals(text));
        let joined = joined.filter(|joined| joined != text).map(|joined| joined.replace(['\'', '"'], " "));
        // The form in which Ghostscript writes into a program.
        let piped = bare.contains("%pipe%").then(|| bare.replace("%pipe%", " "));
        let all = [Some(bare.as_str()), glued, apart.as_deref(), address.as_deref(), instead];
        let made = [unset.as_deref(), joined.as_deref(), piped.as_deref()];
        for text in all.into_iter().chain(made).flatten() {
            for row in text.split([';', '|', '&', '\n', '\r']) {
                let words = row.split(|c: char| c.is_whitespace() || "()[]{},+=:!@<>$`".contains(c));
                let words: Vec<String> = words.filter(|word| !word.is_empty()).flat_map(plain).collect();
                // `s/x/git push/e`
                if row.contains('/') && words.len() > 1 {
                    let parts = words.iter().flat_map(|word| word.split('/'));
                    self.rows.push(parts.filter(|part| !part.is_empty()).map(str::to_owned).collect());
                }
                self.rows.push(words);
            }
        }
    }

    /// Tells whether a denied command is among the rows: its words in this order, with any words between them.
    pub(crate) fn may_run(&self, denied: &[String]) -> bool {
        if denied.first().is_some_and(|program| self.copied.contains(program)) {
            return true;
        }
        let begun =
            |row: &&Vec<String>| row.first().map(|word| base(word)) == denied.first().map(|word| base(word));
        self.rows.iter().chain(self.begun.iter().filter(begun)).any(|row| {
            let mut words = row.iter();
            denied.iter().enumerate().all(|(index, wanted)| {
                words.any(|word| match index {
                    0 => base(word) == base(wanted) || may_be_program(word, wanted),
                    _ => word == wanted,
                })
            })
        })
    }
}

/// Tells whether a pattern in a folder of programs may mean one: `/usr/bin/touc?`.
pub(crate) fn may_be_program(word: &str, program: &str) -> bool {
    let pattern = base(word);
    in_programs(word) && pattern.contains(['*', '?', '[']) && glob(&simplified(pattern), base(program))
}

/// The name of a program without its folder.
pub(crate) fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// A word; `git-push` is two.
fn plain(word: &str) -> Vec<String> {
    match base(word).strip_prefix("git-").filter(|sub| !sub.is_empty()) {
        Some(sub) => ["git", sub].map(str::to_owned).to_vec(),
        None => vec![word.to_owned()],
    }
}

/// Every spelling of a word; of a process substitution, the text of the process.
fn texts_of(word: &Word, values: &Values<'_>) -> Vec<String> {
    match word.pieces.first() {
        Some(Piece::Process(text)) => text.iter().map(|text| text.to_string()).collect(),
        _ => values.spellings(word),
    }
}

/// Tells whether a program may run its words, or what it reads.
fn starts_others(name: &str, words: &[&str], command: &SimpleCommand) -> bool {
    let effects = SimpleCommand { words: command.words.clone(), ..SimpleCommand::default() }.effects();
    let first = words.iter().copied().find(|word| !word.starts_with(['-', '+'])).unwrap_or_default();
    let builds =
        matches!(name, "cargo" | "npm" | "pnpm" | "yarn" | "bun" | "go" | "uv") && BUILDS.contains(&first);
    // `uv run` and `bun run` start any program.
    let builds = builds && !(matches!(name, "uv" | "bun") && first == "run");
    if SPEAK.contains(&name) || builds {
        return false;
    }
    // A sourced file runs like any other program.
    let state = matches!(name, "at" | "batch" | "crontab" | "atq" | "source" | ".");
    state
        || ELSEWHERE.contains(&name)
        || effects.opaque
        || !effects.programs.is_empty()
        || is_language(name, &effects)
}

/// The values of options that set what a program runs.
fn set_by_options<'w>(name: &str, words: &[&'w str]) -> Vec<&'w str> {
    // `pytest -o x=y` and `apt-get -o X::Y=z` are settings; `go build -o x` is a file.
    let sets = |option: &str| SETS.contains(&option) && !(option == "-o" && matches!(name, "go" | "tsc"));
    let mut found: Vec<&str> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        match word.split_once('=') {
            Some((option, value)) if sets(option) => found.push(value),
            _ if sets(word) => found.extend(words.get(at + 1)),
            _ => found.extend(word.strip_prefix("-o").filter(|rest| rest.contains("::"))),
        }
    }
    found
}

/// `sed` and `awk` whose program may do more than print.
fn is_language(name: &str, effects: &lathe_protocol::Effects) -> bool {
    (name.ends_with("sed") || name.ends_with("awk") || name.starts_with("tar") || name == "bsdtar")
        && effects.change_something()
}

/// The texts that a command is given on its standard input.
fn given(command: &SimpleCommand, values: &Values<'_>) -> Vec<String> {
    let texts = command.redirects.iter().filter(|redirect| redirect.kind == RedirectKind::Text);
    texts.flat_map(|redirect| values.spellings(&redirect.word)).collect()
}
