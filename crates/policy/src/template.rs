//! A command of the user's with placeholders for file names, and the files that a command names.
//!
//! A file name is never pasted into the text of a command: whatever quotes are put around it, a second replacement or
//! a quote of the template's own ends them, and the name runs. The placeholders become `"$1"` and `"$@"`, and the
//! names are passed as arguments. A position where bash would not take that as one plain word (in quotes, in a
//! here-document, in arithmetic, in `$(…)`), or where a program would not take it as a file ([`place`]), is refused
//! when the template is read.

use std::collections::BTreeSet;

use lathe_bash::{SimpleCommand, Word};
use lathe_protocol::edit_distance;

mod place;
#[cfg(test)]
mod refused;
mod tables;

/// The placeholder for one file.
const FILE: &str = "{file}";

/// The placeholder for all files.
const FILES: &str = "{files}";

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
        let (mut own, mut places) = (false, Vec::new());
        let mut quotes = Quotes::default();
        let mut rest = command;
        while let Some(c) = rest.chars().next() {
            let place = [FILES, FILE].into_iter().find(|place| rest.starts_with(place));
            let Some(place) = place.filter(|_| !quotes.escaped) else {
                if let Some(unknown) = quotes.unknown_place(rest) {
                    return Err(format!(
                        "`{command}` has `{unknown}`, and there is no such placeholder: there are {FILE} (each changed file) and {FILES} (all of them)"
                    ));
                }
                own |= quotes.is_positional(rest);
                quotes.take(c, rest);
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
            if quotes.is_substituted() {
                return Err(format!(
                    "`{command}` has {place} in a `$(…)`: what that prints may become a command; write it as an argument of a command"
                ));
            }
            script.push_str(if place == FILE { "\"$1\"" } else { "\"$@\"" });
            probe.push_str(&format!("\"${{{}}}\"", probe_name(places.len())));
            places.push(place);
            rest = rest.get(place.len()..).unwrap_or_default();
        }
        if let Some(quote) = quotes.open {
            return Err(format!("`{command}` has an unclosed {quote}"));
        }
        if own {
            return Err(format!(
                "`{command}` names its own arguments (`$1`, `$@`), which are the names of files: write {FILE} or {FILES}"
            ));
        }
        let mut read = lathe_bash::read(&probe);
        // The position itself decides where a placeholder may stand.
        read.commands.retain(|command| !command.evaluated);
        for (at, place) in places.iter().enumerate() {
            place::check(&read, &probe_name(at), *place == FILES).map_err(|why| {
                format!(
                    "`{command}` has a placeholder that is not a plain argument of a command: {why}. Put it into a script of yours and write `my-script {FILE}`"
                )
            })?;
        }
        if !places.is_empty() {
            place::check_others(&read).map_err(|why| {
                format!("`{command}` has a placeholder, and {why}: a file name could run as a command")
            })?;
        }
        Ok(Self { script, one: places.contains(&FILE), all: places.contains(&FILES) })
    }

    /// The text for `bash -c`. The names are its arguments, after one for `$0`.
    pub fn script(&self) -> &str {
        &self.script
    }

    /// True if it runs once for each file.
    pub fn runs_per_file(&self) -> bool {
        self.one
    }

    /// True if it runs once for all files.
    pub fn takes_all_files(&self) -> bool {
        self.all && !self.one
    }
}

fn probe_name(at: usize) -> String {
    format!("lathe_file_{at}")
}

/// The surroundings of a character of a shell line: quotes, and commands whose output becomes text.
#[derive(Default)]
struct Quotes {
    open: Option<char>,
    escaped: bool,
    before: Option<char>,
    /// The open parentheses, each with true if its output becomes text.
    parentheses: Vec<bool>,
    backquoted: bool,
}

impl Quotes {
    fn take(&mut self, c: char, rest: &str) {
        let before = self.before.replace(c);
        if std::mem::take(&mut self.escaped) {
            self.before = None;
            return;
        }
        match (self.open, c) {
            (Some('\''), '\'') | (Some('"'), '"') => self.open = None,
            (None | Some('"'), '\\') => self.escaped = true,
            (None, '\'' | '"') => self.open = Some(c),
            (None, '`') => self.backquoted = !self.backquoted,
            (None, '(') => self.parentheses.push(matches!(before, Some('$' | '<' | '>'))),
            // The end of a pattern of `case` does not close a parenthesis; then it stays open, and is refused.
            (None, ')') if self.parentheses.len() < 2 || !rest.contains(";;") => drop(self.parentheses.pop()),
            (None | Some(_), _) => {}
        }
    }

    fn is_substituted(&self) -> bool {
        self.backquoted || self.parentheses.contains(&true)
    }

    /// Tells whether a variable begins here that is an argument of the whole text.
    fn is_positional(&self, rest: &str) -> bool {
        let name = rest.strip_prefix('$').map(|name| name.strip_prefix(['{', '!', '#']).unwrap_or(name));
        let named =
            name.is_some_and(|name| name.starts_with(|c: char| c.is_ascii_digit() || "@*".contains(c)));
        named && self.open != Some('\'') && !self.escaped
    }

    /// A word in braces here that resembles a placeholder and is not one.
    fn unknown_place<'a>(&self, rest: &'a str) -> Option<&'a str> {
        let end = rest.strip_prefix('{')?.find('}')? + 2;
        let (word, after) = rest.split_at_checked(end)?;
        let inside = word.get(1..end - 1)?;
        let is_name = !inside.is_empty() && inside.chars().all(|c| c.is_alphanumeric() || "_.:-".contains(c));
        // `{1..3}` is bash's own.
        let is_name = is_name && inside.starts_with(|c: char| c.is_alphabetic()) && !inside.contains("..");
        let bare = self.open.is_none() && !self.escaped && !matches!(self.before, Some('$' | '@' | '^'));
        // A word of nothing but this, in quotes.
        let quoted = self.open.is_some_and(|quote| self.before == Some(quote) && after.starts_with(quote))
            && is_near(inside);
        (is_name && (bare || quoted)).then_some(word)
    }
}

/// Tells whether a word is one that a user who means a placeholder might write.
fn is_near(word: &str) -> bool {
    let word = word.to_lowercase();
    let near = |known: &str| edit_distance(known, &word) <= 1;
    near("file")
        || near("files")
        || ["path", "paths", "filename", "filepath", "file_path"].contains(&word.as_str())
}

/// The words of a command that may be names of files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedFiles {
    /// Words whose text is known, as bash reads them.
    pub known: BTreeSet<String>,
    /// Words that only bash can complete: patterns, variables, `~`.
    pub unknown: BTreeSet<String>,
    /// Programs that run files which no word names (`make`, `python -m x`), or make the words mean another folder.
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

/// Options by which a program enters another folder, so that its other words mean files there.
const GOES: [&str; 7] = ["-C", "--directory", "--prefix", "--cwd", "--chdir", "--manifest-path", "--project"];

/// Tells whether a command runs, or may run, a file that its words do not name.
fn runs_unnamed(command: &SimpleCommand, is_wrapper: bool) -> bool {
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
    // A placeholder is one of the changed files, not one that the command names itself.
    let script = lathe_bash::read(&command.replace(FILES, "/dev/null").replace(FILE, "/dev/null"));
    for (index, one) in script.commands.iter().enumerate() {
        if runs_unnamed(one, script.commands.iter().any(|inner| inner.wrapper == Some(index))) {
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
            ("wc -l < {file}", "wc -l < \"$1\""),
            ("echo 'it''s' {file}", "echo 'it''s' \"$1\""),
            ("sh -c 'grep x \"$1\"' sh {file}", "sh -c 'grep x \"$1\"' sh \"$1\""),
            ("make", "make"),
            ("python3 script.py {file}", "python3 script.py \"$1\""),
            ("python3 -m mypy {file}", "python3 -m mypy \"$1\""),
            ("python3 -W error -m py_compile {files}", "python3 -W error -m py_compile \"$@\""),
            ("python3 -c 'import sys' {file}", "python3 -c 'import sys' \"$1\""),
            ("sh check.sh {file}", "sh check.sh \"$1\""),
            ("sh -- ./check.sh {file}", "sh -- ./check.sh \"$1\""),
            ("bash -n {file}", "bash -n \"$1\""),
            ("node --check {file}", "node --check \"$1\""),
            ("php -l {file}", "php -l \"$1\""),
            ("bash -c 'sh check.sh' x {file}", "bash -c 'sh check.sh' x \"$1\""),
            (
                "npx --no-install eslint --max-warnings 0 {files}",
                "npx --no-install eslint --max-warnings 0 \"$@\"",
            ),
            ("uv run mypy --strict {file}", "uv run mypy --strict \"$1\""),
            ("awk '{print $1}' {file}", "awk '{print $1}' \"$1\""),
            ("sed -n 1p {file}", "sed -n 1p \"$1\""),
            ("mypy --ignore-missing-imports {file}", "mypy --ignore-missing-imports \"$1\""),
            ("git diff --stat -- {file}", "git diff --stat -- \"$1\""),
            (
                "cd \"$(git rev-parse --show-toplevel)\" && ruff check {file}",
                "cd \"$(git rev-parse --show-toplevel)\" && ruff check \"$1\"",
            ),
            ("(cd src && mypy {file})", "(cd src && mypy \"$1\")"),
            ("env A=1 timeout 5 mypy {file}", "env A=1 timeout 5 mypy \"$1\""),
            ("cat {file} | grep x", "cat \"$1\" | grep x"),
            ("git log HEAD@{upstream} -- {file}", "git log HEAD@{upstream} -- \"$1\""),
        ] {
            let template = Template::parse(command).unwrap();
            assert_eq!(template.script(), script, "{command}");
        }
        let template = Template::parse("a {file} {files}").unwrap();
        assert!(template.runs_per_file() && !template.takes_all_files());
    }

    #[test]
    fn a_place_that_is_not_a_plain_argument_is_refused() {
        let mut accepted = Vec::new();
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
            "make --eval={file}",
            "make --eval {file}",
            "make X={file}",
            "X={file} make check",
            "LD_PRELOAD={file} true",
            "env PAGER={file} git log",
            "for f in {files}; do cat \"$f\"; done",
            "for f in {file}; do $f; done",
            "git -c core.pager={file} log",
            "git -c {file} log",
            "git config core.pager {file}",
            "git bisect run {file}",
            "git {file}",
            "npx -c {file}",
            "npx {file}",
            "npx --yes {file}",
            "npx -p eslint {file}",
            "uv run {file}",
            "npm exec -c {file}",
            "docker run image sh -c {file}",
            "docker run image {file}",
            "perl {file}",
            "perl -e {file}",
            "perl -ne {file} x",
            "perl -I lib {file}",
            "ruby {file}",
            "ruby -e {file}",
            "node {file}",
            "node -e {file}",
            "node --eval {file}",
            "node --require {file} x.js",
            "python3 {file}",
            "python3.11 {file}",
            "/usr/bin/python3 {file}",
            "python3 -c {file}",
            "python3 -X dev {file}",
            "python3 -m {file}",
            "python3 < {file}",
            "bash < {file}",
            "bash {file}",
            "bash -x {file}",
            "bash --rcfile {file}",
            "sh -c 'sh -c \"$1\"' x {file}",
            "sh -c '$1' x {file}",
            "sh -c 'cat' {file}",
            "awk {file}",
            "awk -F : {file}",
            "awk -f {file} x",
            "sed {file} x",
            "sed -e {file} x",
            "sed -n {file}",
            "alias x={file}",
            "export x={file}",
            "set -- {file}; $1",
            "echo $(cat {file})",
            "$(basename {file})",
            "echo `cat {file}`",
            "diff <(sort {file}) x",
            "timeout 5 {file}",
            "env {file}",
            "env A=1 {file}",
            "nice {file}",
            "nice -n 5 {file}",
            "nohup {file}",
            "time {file}",
            "sudo {file}",
            "exec {file}",
            "command {file}",
            "xargs {file}",
            "echo x | xargs {file}",
            "echo {file} | xargs sh -c",
            "echo {file} | sh",
            "printf %s {file} | bash",
            "echo {file} | python3",
            "find . -exec {file} +",
            "find . -ok {file} +",
            "source {file}",
            ". {file}",
            "tar --use-compress-program {file} -cf x y",
            "tar -I {file} -cf x y",
            "rsync -e {file} a b",
            "src/{file}",
            "cat src/{file}",
            "cat {file}.bak",
            "echo --all={files}",
            "mypy {file} && $1",
            "mypy {file} && \"$@\"",
            "f() { $1; }; f {file}",
            "mypy {file}; $X",
            "read x <<< {file}; $x",
            "deno run {file}",
            "busybox sh {file}",
            "busybox {file}",
            "cargo {file}",
        ] {
            accepted.extend(Template::parse(command).is_ok().then_some(command));
        }
        assert_eq!(accepted, Vec::<&str>::new());
    }

    #[test]
    fn a_misspelt_placeholder_is_refused() {
        for (command, unknown) in [
            ("mypy {fle}", "{fle}"),
            ("mypy {path}", "{path}"),
            ("mypy --file={filename}", "{filename}"),
            ("mypy \"{fle}\"", "{fle}"),
            ("mypy '{path}'", "{path}"),
            ("mypy {FILE} {file}", "{FILE}"),
        ] {
            let refused = Template::parse(command).unwrap_err();
            assert!(
                refused.contains(&format!("has `{unknown}`")) && refused.contains("{files}"),
                "{refused}"
            );
        }
        for command in
            ["find . -exec grep x {} +", "awk '{print}' x", "echo ${HOME} {a,b} {1..3}", "echo \\{x}"]
        {
            Template::parse(command).unwrap();
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
