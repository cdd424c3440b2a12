//! A command of the user's with places for file names, and the files that a command names.
//!
//! A file name is never pasted into the text of a command: whatever quoting is put around it, a second replacement or a
//! quote of the template's own ends it, and the name runs. The places become `"$1"` and `"$@"`, and the names are passed as
//! arguments. A place where bash would not take that as one plain word (in quotes, in a here-document, in arithmetic, as
//! the program itself, behind `eval`) is refused when the template is read.

use std::collections::BTreeSet;

use lathe_bash::{Command, Piece, RedirectKind, Script, Word};

/// The placeholder for one file.
const FILE: &str = "{file}";

/// The placeholder for all files.
const FILES: &str = "{files}";

/// Programs and builtins that read their arguments as commands or as arithmetic.
const READS_TEXT: [&str; 16] = [
    "eval", "let", "trap", "[[", "declare", "typeset", "local", "su", "runuser", "watch", "ssh", "script",
    "parallel", "at", "batch", "tmux",
];

/// Programs that read an argument as a command after one of these options.
const READS_OPTION: [(&str, &str); 3] = [("env", "S"), ("flock", "c"), ("env", "--split-string")];

/// Shells, in whose text a variable of the template may be anything.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "busybox"];

/// A command that file names are passed to as arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    script: String,
    one: bool,
    all: bool,
}

impl Template {
    /// Reads a command with `{file}` and `{files}` in it. The error says why it cannot be used.
    pub fn parse(command: &str) -> Result<Self, String> {
        let (mut script, mut probe) = (String::new(), String::new());
        let (mut one, mut all, mut count) = (false, false, 0);
        let mut quotes = Quotes::default();
        let mut rest = command;
        while let Some(c) = rest.chars().next() {
            let place = [FILES, FILE].into_iter().find(|place| rest.starts_with(place));
            let Some(place) = place.filter(|_| !quotes.escaped) else {
                quotes.take(c);
                script.push(c);
                probe.push(c);
                rest = rest.get(c.len_utf8()..).unwrap_or_default();
                continue;
            };
            if quotes.open.is_some() {
                return Err(format!(
                    "`{command}` has {place} in quotes: write it without them, the name is passed as one word"
                ));
            }
            one |= place == FILE;
            all |= place == FILES;
            script.push_str(if place == FILE { "\"$1\"" } else { "\"$@\"" });
            probe.push_str(&format!("\"${{{}}}\"", probe_name(count)));
            count += 1;
            rest = rest.get(place.len()..).unwrap_or_default();
        }
        if let Some(quote) = quotes.open {
            return Err(format!("`{command}` has an unclosed {quote}"));
        }
        let read = lathe_bash::read(&probe);
        for at in 0..count {
            if !is_argument(&read, &probe_name(at)) {
                return Err(format!(
                    "`{command}` has a placeholder that is not a plain argument of a command: a file name there could run as a command"
                ));
            }
        }
        Ok(Self { script, one, all })
    }

    /// The text for `bash -c`. The names are its arguments, after one for `$0`.
    pub fn script(&self) -> &str {
        &self.script
    }

    /// Whether it runs once for each file.
    pub fn runs_per_file(&self) -> bool {
        self.one
    }

    /// Whether it runs once for all files.
    pub fn takes_all_files(&self) -> bool {
        self.all && !self.one
    }
}

fn probe_name(at: usize) -> String {
    format!("lathe_file_{at}")
}

/// The quotes around a character of a shell line.
#[derive(Default)]
struct Quotes {
    open: Option<char>,
    escaped: bool,
}

impl Quotes {
    fn take(&mut self, c: char) {
        if std::mem::take(&mut self.escaped) {
            return;
        }
        match (self.open, c) {
            (Some('\''), '\'') | (Some('"'), '"') => self.open = None,
            (None | Some('"'), '\\') => self.escaped = true,
            (None, '\'' | '"') => self.open = Some(c),
            (None | Some(_), _) => {}
        }
    }
}

/// Whether a variable stands where bash takes it as one argument, and nowhere else.
fn is_argument(script: &Script, name: &str) -> bool {
    let holds = |word: &Word| {
        word.pieces.iter().any(|piece| matches!(piece, Piece::Variable { name: held, .. } if **held == *name))
    };
    let is_code = |command: &Command| {
        let reads_text = command.program_name().is_some_and(|program| READS_TEXT.contains(&program));
        let takes = |(program, option): &(&str, &str)| {
            let given = |word: &Word| {
                let text = word.show();
                text.starts_with(option)
                    || (text.starts_with('-') && !text.starts_with("--") && text.contains(option))
            };
            command.program_name() == Some(*program) && command.words.iter().any(given)
        };
        let reads_text = reads_text || READS_OPTION.iter().any(takes);
        command.words.first().is_some_and(holds) || (reads_text && command.words.iter().any(holds))
    };
    let is_eval = |command: &Command| matches!(command.program_name(), Some("eval" | "source" | "."));
    let is_in_shell = |command: &Command| {
        let outer = command.behind.and_then(|at| script.commands.get(at)).and_then(Command::program_name);
        outer.is_some_and(|name| SHELLS.contains(&name))
    };
    let is_plain = |command: &Command| {
        let targets = command.redirects.iter().filter(|redirect| redirect.kind != RedirectKind::Text);
        command.words.iter().skip(1).any(holds) || targets.map(|redirect| &redirect.word).any(holds)
    };
    let assigned = script.values.values().flatten().any(holds);
    // What a variable holds may become a command where the template reads text as commands. The arguments of an inner shell
    // are its own `$1`, which only `eval` reads so.
    let named =
        script.values.iter().filter(|(name, _)| name.starts_with(|c: char| c.is_alphabetic() || c == '_'));
    let is_named = named.flat_map(|(_, values)| values).any(holds);
    let becomes_code = (assigned && script.commands.iter().any(is_eval))
        || (is_named && script.commands.iter().any(is_in_shell));
    !becomes_code
        && !script.commands.iter().any(is_code)
        && (assigned || script.commands.iter().any(is_plain))
}

/// The words of a command that may be names of files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedFiles {
    /// Words whose text is known, as bash reads them.
    pub known: BTreeSet<String>,
    /// Words that only bash can complete: patterns, variables, `~`.
    pub unknown: BTreeSet<String>,
    /// Programs that run files which no word names (`make`, `python -m x`), or have the words mean another folder.
    pub unnamed: BTreeSet<String>,
}

/// Programs that run what a file of the project says: build tools, runners of tasks and tests, launchers of packages.
const RUN_UNNAMED: [&str; 58] = [
    "make",
    "gmake",
    "bmake",
    "ninja",
    "samu",
    "cmake",
    "meson",
    "scons",
    "waf",
    "just",
    "task",
    "mage",
    "invoke",
    "inv",
    "fab",
    "npm",
    "npx",
    "pnpm",
    "pnpx",
    "yarn",
    "bun",
    "bunx",
    "deno",
    "gulp",
    "grunt",
    "jest",
    "vitest",
    "mocha",
    "ava",
    "eslint",
    "prettier",
    "cargo",
    "go",
    "pytest",
    "py.test",
    "tox",
    "nox",
    "poetry",
    "pdm",
    "hatch",
    "uv",
    "pre-commit",
    "mvn",
    "gradle",
    "gradlew",
    "ant",
    "sbt",
    "lein",
    "rake",
    "bundle",
    "rspec",
    "mix",
    "rebar3",
    "dotnet",
    "bazel",
    "composer",
    "phpunit",
    "nix",
];

/// Options by which a program goes to another folder, so that its other words mean files there.
const GOES: [&str; 7] = ["-C", "--directory", "--prefix", "--cwd", "--chdir", "--manifest-path", "--project"];

/// Whether a command runs, or may run, a file that its words do not name.
fn runs_unnamed(command: &Command, is_wrapper: bool) -> bool {
    let Some(name) = command.program_name() else { return false };
    let words = || command.words.iter().skip(1).filter_map(Word::literal);
    let goes = |word: &str| {
        GOES.iter().any(|option| {
            word == *option
                || word.strip_prefix(option).is_some_and(|rest| rest.starts_with('=') || option.len() == 2)
        })
    };
    let interpreter = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    match name {
        _ if RUN_UNNAMED.contains(&name) => true,
        "cd" | "pushd" | "popd" => true,
        "find" | "fd" | "fdfind" | "xargs" | "parallel" | "entr" => is_wrapper,
        "env" | "sudo" | "git" | "tar" if words().any(goes) => true,
        _ => match interpreter {
            "python" | "pypy" => words().any(|word| {
                !word.starts_with("--") && word.starts_with('-') && word.ends_with(['m', 'c'])
                    || word.starts_with("-m")
            }),
            "perl" | "ruby" => words().any(|word| word.starts_with(['-']) && word.contains(['M', 'I', 'r'])),
            "node" => {
                words().any(|word| matches!(word, "-r" | "--require" | "--import" | "--run" | "--test"))
            }
            _ => false,
        },
    }
}

/// The files that a shell command may name. Each part between signs counts too (`--config=a.cfg`, `sh -c "sh a.sh"`).
pub fn named_files(command: &str) -> NamedFiles {
    let mut named = NamedFiles::default();
    let is_between = |c: char| c.is_whitespace() || "'\"`;|&()<>={}$,".contains(c);
    let add_parts = |text: &str, known: &mut BTreeSet<String>| {
        known.extend(text.split(is_between).filter(|part| !part.is_empty()).map(str::to_owned));
    };
    add_parts(command, &mut named.known);
    // A placeholder is one of the files that were changed, not one that the command brings along.
    let script = lathe_bash::read(&command.replace(FILES, "/dev/null").replace(FILE, "/dev/null"));
    for (index, one) in script.commands.iter().enumerate() {
        if runs_unnamed(one, script.commands.iter().any(|inner| inner.behind == Some(index))) {
            named.unnamed.extend(one.program_name().map(str::to_owned));
        }
        let words = one.words.iter().chain(one.redirects.iter().map(|redirect| &redirect.word));
        let values = one.assignments.iter().filter_map(|assignment| assignment.value.as_ref());
        for word in words.chain(values) {
            match word.literal() {
                Some(text) => {
                    named.known.insert(text.to_owned());
                    add_parts(text, &mut named.known);
                }
                None => {
                    named.unknown.insert(word.show());
                }
            }
        }
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_become_arguments() {
        for (command, script) in [
            ("mypy {file}", "mypy \"$1\""),
            ("mypy {files} | head", "mypy \"$@\" | head"),
            ("nice -n 5 mypy --path={file}", "nice -n 5 mypy --path=\"$1\""),
            ("X={file} make check", "X=\"$1\" make check"),
            ("for f in {files}; do cat \"$f\"; done", "for f in \"$@\"; do cat \"$f\"; done"),
            ("wc -l < {file}", "wc -l < \"$1\""),
            ("echo 'it''s' {file}", "echo 'it''s' \"$1\""),
            ("sh -c 'grep x \"$1\"' sh {file}", "sh -c 'grep x \"$1\"' sh \"$1\""),
            ("make", "make"),
        ] {
            let template = Template::parse(command).unwrap();
            assert_eq!(template.script(), script, "{command}");
        }
        let template = Template::parse("a {file} {files}").unwrap();
        assert!(template.runs_per_file() && !template.takes_all_files());
    }

    #[test]
    fn a_place_that_is_not_a_plain_argument_is_refused() {
        for command in [
            "mypy '{file}'",
            "mypy \"{file}\"",
            "sh -c 'mypy {file}'",
            "sh -c \"mypy {files}\"",
            "sh -c {file}",
            "bash -lc {file}",
            "eval mypy {file}",
            "eval {files}",
            "let x={file}",
            "echo $(({file}))",
            "(( {file} > 1 ))",
            "[[ -v {file} ]]",
            "cat <<END\n{file}\nEND\n",
            "cat <<< '{file}'",
            "{file}",
            "{file} --check",
            "trap {file} EXIT",
            "echo $'{file}'",
            "mypy 'a",
            "f={file}; eval echo $f",
            "for f in {files}; do eval cat $f; done",
            "f={file}; sh -c \"cat $f\"",
            "sh -c 'eval cat $1' sh {file}",
            "su -c {file}",
            "su -c mypy nobody {file}",
            "ssh host mypy {file}",
            "watch mypy {file}",
            "env -S {file}",
            "flock -c {file} lock",
            "script -qc {file} /dev/null",
        ] {
            assert!(Template::parse(command).is_err(), "{command}");
        }
    }

    #[test]
    fn words_are_named_as_bash_reads_them() {
        let named =
            named_files("sh c\\heck.sh --config=a.cfg; sh -c 'sh \"in ner.sh\"' < in'put'; sh {file}");
        for word in ["check.sh", "a.cfg", "in ner.sh", "input"] {
            assert!(named.known.contains(word), "{word}: {named:?}");
        }
        assert!(named.unknown.is_empty(), "{named:?}");
        let named = named_files("sh check[.]sh; sh ~+/check.sh; sh $D/x.sh; sh {a,b}.sh");
        for word in ["check[.]sh", "~+/check.sh", "$D/x.sh"] {
            assert!(named.unknown.contains(word), "{word}: {named:?}");
        }
    }
}
