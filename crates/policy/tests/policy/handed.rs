//! Names that one command hands to another are names of files, for every program that prints them and every
//! separator.

use std::path::{Path, PathBuf};

use lathe_policy::{Disk, FileId, Gate, OnDisk, Rulebook, Tier};
use lathe_protocol::{Actor, Mode, Verdict};

use crate::corpus::gate as anywhere;

/// A repository in `/w` with these files, all of which git knows.
struct Listed(&'static [&'static str]);

impl Disk for Listed {
    fn real(&self, path: &Path) -> PathBuf {
        path.components().filter(|part| part.as_os_str() != ".").collect()
    }

    fn expand(&self, pattern: &str) -> Option<Vec<PathBuf>> {
        Some(vec![PathBuf::from(pattern)])
    }

    fn holds_any(&self, folder: &Path, test: &mut dyn FnMut(&Path) -> bool) -> bool {
        let folder = self.real(folder);
        self.0
            .iter()
            .map(|name| Path::new("/w").join(name))
            .any(|path| path.starts_with(&folder) && test(&path))
    }

    fn is_tracked(&self, _: &Path) -> bool {
        true
    }

    fn tracks_any(&self, _: &Path, test: &mut dyn FnMut(&str) -> bool) -> bool {
        self.0.iter().any(|name| test(name))
    }

    fn is_ignored_by_git(&self, _: &Path) -> bool {
        false
    }

    fn repository(&self, _: &Path) -> Option<PathBuf> {
        Some("/w".into())
    }

    fn hard_link_id(&self, _: &Path) -> Option<FileId> {
        None
    }
}

/// The lines that are not decided so in the default mode.
fn wrong<'l>(files: &'static [&'static str], verdict: Verdict, lines: &[&'l str]) -> Vec<String> {
    let gate = Gate {
        here: Some("/w".into()),
        root: "/w".into(),
        user_home: Some("/home/me".into()),
        disk: OnDisk::new(Listed(files)),
        switched: lathe_policy::ShellSwitches::default(),
        walls: lathe_policy::Walls::None,
        ..anywhere()
    };
    let decide = |line: &&'l str| {
        let decided = gate.decide_line(&Rulebook::builtin(), Actor::Model, Mode::Default, line).decision;
        (decided.verdict != verdict).then(|| format!("{line}: {} {}", decided.rule, decided.reason))
    };
    lines.iter().filter_map(decide).collect()
}

const NONE: [String; 0] = [];

#[test]
fn names_that_git_quotes_are_no_names_of_files() {
    let lines = [
        "cat $(git ls-files src)",
        "wc -l $(git ls-files src)",
        "for f in $(git ls-files src); do cat \"$f\"; done",
        "git ls-files src | xargs cat",
        "git ls-files src | sort | xargs wc -l",
        "git grep -l x | xargs cat",
        "git diff --name-only | xargs cat",
    ];
    assert_eq!(wrong(&["src/a.rs", "b"], Verdict::Allow, &lines), NONE);
    for files in [&["src/é.rs"][..], &["src/a\\b.rs"], &["src/a\"b.rs"], &["src/a\tb.rs"], &["é/a"]] {
        assert_eq!(wrong(files, Verdict::Ask, &lines), NONE, "{files:?}");
    }
    let zero = ["git ls-files -z src | xargs -0 cat", "git ls-files -z src | sort -z | xargs -0 wc -l"];
    assert_eq!(wrong(&["src/é.rs", "src/a\"b.rs"], Verdict::Allow, &zero), NONE);
}

#[test]
fn names_are_parted_as_they_come() {
    let files = &["a", "b", "src/c"];
    let parted = [
        "find a b -print0 | xargs -0 cat",
        "find a b -print0 | xargs -d '\\0' cat",
        "find a b | xargs cat",
        "find src -print0 | xargs -0 grep -l x | xargs wc -l",
        "find src | xargs grep -lZ x | xargs -0 wc -l",
        "find src -print0 | sort -z | xargs -0 cat",
        "find src | sort | cat | xargs cat",
        "cat $(find a b)",
    ];
    assert_eq!(wrong(files, Verdict::Allow, &parted), NONE);
    // Several names would become one: `ab` is a file that was not judged.
    let joined = [
        "cat $(find a b -print0)",
        "cat $(find a b -print0 | cat)",
        "cat $(git ls-files -z a b)",
        "cat $(printf '%s\\0' a b)",
        "for f in $(find a b -print0); do cat \"$f\"; done",
        "find a b | xargs -0 cat",
        "find a b -print0 | xargs cat",
        "find a b -print0 | sort | xargs cat",
        "find a b | sort -z | xargs cat",
        "find a b -print0 | xargs grep -l x | xargs cat",
        "find a b -print0 | xargs -0 -d '\\n' cat",
    ];
    assert_eq!(wrong(files, Verdict::Ask, &joined), NONE);
}

#[test]
fn a_substitution_in_no_quotes_is_many_words() {
    let files = &["a", "b", "src/a", "src/c"];
    let key = "/home/me/.ssh/id_rsa";
    let keys: Vec<String> = [
        "cat src/$(echo a KEY)",
        "cat ./$(echo a KEY)",
        "cat -$(echo n KEY)",
        "cat $(echo a)$(echo b KEY)",
        "cat src/`echo a KEY`",
        "grep $(echo . KEY)",
        "grep -e $(echo . KEY)",
        "grep -$(echo n . KEY)",
        "grep . src/$(printf '%s\\n' a KEY)",
        "head -$(echo n1 KEY)",
        "wc -$(echo l KEY)",
        "od src/$(printf '%s\\n' a KEY)",
        "sed -n $(echo p KEY)",
        "jq --arg $(echo a b . KEY)",
        "cat \"src/$(echo ../../home/me/.ssh/id_rsa)\"",
        "for f in $(echo ../../home/me/.ssh/id_rsa); do cat \"src/$f\"; done",
        "ls src/$(echo a /home/me/.ssh)",
        "cat src/{a,$(echo b KEY)}",
        "cat \"src/\"$(echo a KEY)",
        "cat src/x$(echo a KEY)",
        "grep --regexp=$(echo . KEY)",
        "wc --$(echo lines KEY)",
        "column -t src/$(echo a KEY)",
        "tail -$(echo f KEY)",
        "cmp -$(echo l KEY b.txt)",
        "md5sum -$(echo b KEY)",
        "hexdump -$(echo C KEY)",
    ]
    .map(|line| line.replace("KEY", key))
    .into();
    let lines: Vec<&str> = keys.iter().map(String::as_str).collect();
    assert_eq!(wrong(files, Verdict::Ask, &lines), NONE);
    let fine = [
        "cat src/$(echo a c)",
        "cat $(echo a b)",
        "grep -n x $(ls)",
        "for f in $(ls src); do cat \"src/$f\"; done",
        "wc -l $(find src)",
    ];
    assert_eq!(wrong(files, Verdict::Allow, &fine), NONE);
}

#[test]
fn a_word_that_names_a_file_of_words_is_asked_about() {
    let asked = [
        "strings @list",
        "strings -- @list",
        "strings -n 8 @list",
        "strings *",
        "strings [@a]*",
        "strings @*",
        "strings $x",
        "strings ./$x",
        "strings $(cat list)",
        "strings \"$(cat list)\"",
        "for f in *; do strings \"$f\"; done",
        "for f in @list; do strings \"$f\"; done",
        "find @list | xargs strings",
        "find . | xargs strings",
        "echo @list | xargs strings",
        "grep -l key @list list | xargs strings",
        "find @list -exec strings {} +",
        "nm @list",
        "nm *",
        "size @list",
        "readelf -a @list",
        "readelf -a \"$x\"",
        "ruff check @list",
        "ruff check @*",
        "mypy @list",
        "pytest @list",
        "tsc @list",
    ];
    assert_eq!(wrong(&["@list", "list", "a.o"], Verdict::Ask, &asked), NONE);
    let plain =
        ["strings a.o", "strings -n 8 ./a.o", "strings ./*.o", "strings src/*.o", "strings src/@list"];
    assert_eq!(wrong(&["list", "a.o"], Verdict::Allow, &plain), NONE);
}

#[test]
fn a_file_of_words_may_name_a_file_that_is_denied() {
    let text = "[[rule]]\ndecision = \"deny\"\npath = [\"private\"]\n";
    let rules = Rulebook::builtin().with_file(Tier::User, "m.toml", text).unwrap();
    for line in [
        "strings @list",
        "nm @list",
        "objdump -s @list",
        "readelf -p1 @list",
        "gcc-12 -E @list",
        "ruff check @list",
    ] {
        let decided = crate::gate(true).decide_line(&rules, Actor::Model, Mode::FullAuto, line).decision;
        assert_eq!(decided.verdict, Verdict::Deny, "{line}: {}", decided.reason);
    }
}
