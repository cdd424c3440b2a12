//! Names that a line passes from one command to another. Each line goes through `lathe policy check`, as in a
//! session, for a folder that exists.

use std::os::unix::fs::symlink;
use std::path::Path;

use lathe_testkit::{Lathe, TempRepo};
use serde_json::{Value, json};

use crate::lathe;

/// Lines whose names lie in the workspace by construction.
const ALLOWED: &[&str] = &[
    "find . -name '*.rs' | xargs wc -l",
    "search -l needle | xargs view",
    "search -l needle | xargs wc -l",
    "find src -name '*.py' -exec grep -n needle {} +",
    "find src -name '*.py' -exec grep -n needle {} \\;",
    "find . -name '*.rs' -exec view {} \\;",
    "find . -name '*.rs' -execdir head -1 {} \\;",
    "find . -type f -print0 | xargs -0 grep -l needle",
    "find . -name '*.rs' | xargs grep -l needle | xargs wc -l",
    "find src -type f 2>/dev/null | sort | head -3 | xargs cat",
    "ls | xargs -I{} head -3 {}",
    "ls src/*.py | xargs -n1 wc -l",
    "echo src/*.py | xargs cat",
    "grep -rl needle src | xargs wc -l",
    "rg -l needle | xargs wc -l",
    "git ls-files | xargs cat",
    "git ls-files -z | xargs -0 wc -l",
    "git ls-files | grep -v test | xargs grep -n needle",
    "git diff --name-only | xargs cat",
    "for f in $(git ls-files); do wc -l \"$f\"; done",
    "for f in $(ls src); do cat \"src/$f\"; done",
    "for f in $(ls src); do view src/$f; done",
    "wc -l $(git ls-files)",
    "cat $(find src -name '*.py')",
    "cd web && ls && cd .. && cat t",
    "cd web && cd ../src && cd .. && cat t",
];

/// Lines whose names may be anything, or that do more with them than read.
const ASKED: &[&str] = &[
    "cat list | xargs cat",
    "find . | xargs cat < list",
    "{ cat list | sort; find .; } | xargs cat",
    "(cat list; find .) | xargs cat",
    "find . 2>&1 | xargs cat",
    "find . |& xargs cat",
    "find .. | xargs cat",
    "find . -printf '/x\\n' | xargs cat",
    "find . -ls | xargs cat",
    "ls -a | xargs ls",
    "ls -la | xargs cat",
    "ls | xargs -d c cat",
    "ls | xargs -I c cat c",
    "ls | xargs -I{} cat ../{}",
    "ls | xargs -I{} cat {}/../../x",
    "find . -exec cat ../x {} \\;",
    "find . -exec cat {}/../../x \\;",
    "find . -exec cat + /home/other/x {} \\;",
    "find . -ok cat {} \\;",
    "find . -execdir cat ../../x {} \\;",
    "find . -exec rm {} \\;",
    "find . -exec sh -c 'cat {}' \\;",
    "find . -exec {} \\;",
    "find . -fprint x -exec cat {} \\;",
    "ls | xargs uniq",
    "ls | xargs xxd",
    "ls | xargs sort -o",
    "ls | xargs wc --files0-from",
    "ls | xargs file -f",
    "ls | xargs sed",
    "ls | xargs awk 1",
    "ls | tail -c 5 | xargs cat",
    "ls | grep -o '/x.*' | xargs cat",
    "ls | sed 's,^,/,' | xargs cat",
    "ls | tr a / | xargs cat",
    "ls | head list | xargs cat",
    "ls | grep x list | xargs cat",
    "grep needle src/a.py | xargs cat",
    "rg needle | xargs cat",
    "git log --name-only | xargs cat",
    "git diff --name-only HEAD~1 | xargs cat",
    "git ls-files .. | xargs cat",
    "git ls-files :/ | xargs cat",
    "git -C / ls-files | xargs cat",
    "git ls-files --format='/x/%(path)' | xargs cat",
    "echo /home/other/x | xargs cat",
    "echo .* | xargs cat",
    "printf '/%s\\n' a | xargs cat",
    "for f in $(cat list); do cat \"$f\"; done",
    "for f in $(ls); do cat \"/$f\"; done",
    "for f in $(ls); do cat \"../$f\"; done",
    "for f in $(ls); do cat \"$f/../../x\"; done",
    "for f in $(ls); do cat \"${f#?}\"; done",
    "for f in $(ls); do cat \"$f.bak\"; done",
    "ln -s /home/other x; find -L . | xargs cat",
    "IFS=c; cat $(git ls-files)",
    "x=$(ls); cat $x",
    "ls | xargs env cat",
    "ls | xargs -a list cat",
    "cd .. && ls | xargs cat",
    "cd web; ls; cd ..; cat t",
    "cd web || true && cd .. && cd .. && cat t",
    "cd nope && ls || ls && cd .. && cd .. && ls",
    "cd web && cd .. && cd .. && ls",
];

fn workspace(root: &Path) {
    std::fs::create_dir_all(root.join("src")).unwrap();
    std::fs::create_dir_all(root.join("web")).unwrap();
    for (name, text) in
        [("src/a.py", "needle\n"), ("src/a.rs", "// needle\n"), ("t", "t\n"), ("list", "/etc/x\n")]
    {
        std::fs::write(root.join(name), text).unwrap();
    }
    git(root, &["init", "-q"]);
    git(root, &["add", "src", "t"]);
}

fn git(root: &Path, words: &[&str]) {
    assert!(std::process::Command::new("git").args(words).current_dir(root).status().unwrap().success());
}

/// The decisions about lines, as in a session.
fn check(lathe: &Lathe, root: &Path, mode: &str, lines: &[&str]) -> Vec<String> {
    let input: String = lines.iter().map(|line| format!("{}\n", json!(line))).collect();
    let words = ["policy", "check", "--json", "--mode", mode];
    let ran = lathe.clone().in_dir(root).args(words).stdin(input).run().expect_code(0);
    let answers = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let said = |key: &str, answer: &Value| answer[key].as_str().unwrap().to_owned();
    let shown = |answer: Value| ["decision", "command", "because"].map(|key| said(key, &answer)).join("  ");
    answers.map(shown).collect()
}

/// The lines that are not decided so, with what was decided.
fn wrong(lathe: &Lathe, root: &Path, mode: &str, lines: &[&str], verdict: &str) -> Vec<String> {
    let decided = check(lathe, root, mode, lines);
    decided.into_iter().filter(|decided| !decided.starts_with(verdict)).collect()
}

#[test]
fn names_of_the_workspace_are_read_without_a_question_and_others_are_not() {
    let (lathe, place) = (lathe(), TempRepo::new(&[]));
    let root = place.path().join("ws");
    workspace(&root);
    for mode in ["default", "plan"] {
        assert_eq!(wrong(&lathe, &root, mode, ALLOWED, "allow"), Vec::<String>::new(), "{mode}");
        let decided = check(&lathe, &root, mode, ASKED);
        let allowed: Vec<&String> = decided.iter().filter(|decided| decided.starts_with("allow")).collect();
        assert_eq!(allowed, Vec::<&String>::new(), "{mode}");
    }
    // An unknown path is not reported as outside.
    let said = check(&lathe, &root, "plan", &["cat list | xargs cat"]).concat();
    assert!(said.contains("shows only when the line runs"), "{said}");
}

#[test]
fn a_name_that_would_come_apart_on_its_way_is_asked_about() {
    let cases: [(&str, &[&str], &[&str]); 5] = [
        // `./a /etc/x` is two names to xargs.
        (
            "a /etc/x",
            &["find . | xargs cat", "cat $(find .)"],
            &["find . -print0 | xargs -0 cat", "find . -exec cat {} +"],
        ),
        (
            "a\n",
            &["find . | xargs cat", "find . -print0 | head -n 1 | xargs -0 cat"],
            &["find . -exec cat {} +"],
        ),
        ("-x", &["ls | xargs cat", "cat $(ls)", "git ls-files -z | xargs -0 cat"], &["find . | xargs cat"]),
        ("it's", &["find . | xargs cat"], &["find . -print0 | xargs -0 cat"]),
        ("[a].ts", &["cat $(find .)"], &["find . | xargs cat"]),
    ];
    for (name, asked, allowed) in cases {
        let (lathe, place) = (lathe(), TempRepo::new(&[]));
        let root = place.path().join("ws");
        workspace(&root);
        let file = root.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "x").unwrap();
        assert_eq!(wrong(&lathe, &root, "default", asked, "ask"), Vec::<String>::new(), "{name:?}");
        assert_eq!(wrong(&lathe, &root, "plan", asked, "deny"), Vec::<String>::new(), "{name:?}");
        assert_eq!(wrong(&lathe, &root, "plan", allowed, "allow"), Vec::<String>::new(), "{name:?}");
    }
}

#[test]
fn a_name_that_only_git_knows_is_looked_at_too() {
    let (lathe, place) = (lathe(), TempRepo::new(&[]));
    let root = place.path().join("ws");
    workspace(&root);
    std::fs::create_dir(root.join("a ")).unwrap();
    std::fs::write(root.join("a /x"), "x").unwrap();
    git(&root, &["add", "a /x"]);
    std::fs::remove_dir_all(root.join("a ")).unwrap();
    let lines = ["git ls-files | xargs cat", "cat $(git ls-files)", "git diff --name-only | xargs cat"];
    assert_eq!(wrong(&lathe, &root, "default", &lines, "ask"), Vec::<String>::new());
    let lines = ["git ls-files -z | xargs -0 cat", "find . | xargs cat"];
    assert_eq!(wrong(&lathe, &root, "default", &lines, "allow"), Vec::<String>::new());
}

#[test]
fn links_and_denied_files_count_for_readers_that_are_given_names() {
    let (lathe, place) = (lathe(), TempRepo::new(&[]));
    let root = place.path().join("ws");
    workspace(&root);
    std::fs::create_dir_all(lathe.home().join("policy")).unwrap();
    std::fs::create_dir_all(root.join("private")).unwrap();
    std::fs::write(root.join("private/key"), "x").unwrap();
    let rule = "[[rule]]\ndecision = \"deny\"\npath = [\"private\"]\n";
    std::fs::write(lathe.home().join("policy/mine.toml"), rule).unwrap();
    let denied = [
        "find . | xargs cat",
        "find . -type f -exec cat {} +",
        "git ls-files | xargs cat",
        "ls private | xargs cat",
        "cat $(find .)",
        "for f in $(ls private); do cat private/$f; done",
        "ls | xargs -I{} cat {}",
        "echo private/k* | xargs cat",
        "cat list | xargs cat",
    ];
    let free = [
        "find src | xargs cat",
        "find src -exec cat {} +",
        "git ls-files src | xargs cat",
        "cat $(find src)",
    ];
    for mode in ["plan", "default", "full-auto"] {
        assert_eq!(wrong(&lathe, &root, mode, &denied, "deny"), Vec::<String>::new(), "{mode}");
        assert_eq!(wrong(&lathe, &root, mode, &free, "allow"), Vec::<String>::new(), "{mode}");
    }
    // A link in the places that names come from leads out of the workspace, or to what is denied.
    std::fs::write(place.path().join("secret"), "x").unwrap();
    symlink(place.path().join("secret"), root.join("web/out")).unwrap();
    symlink("../private/key", root.join("src/in")).unwrap();
    let links = [
        "find web | xargs cat",
        "find web -type l -exec cat {} +",
        "cat $(find web)",
        "ls web/* | xargs cat",
    ];
    assert_eq!(wrong(&lathe, &root, "plan", &links, "deny"), Vec::<String>::new());
    for mode in ["plan", "full-auto"] {
        assert_eq!(wrong(&lathe, &root, mode, &free, "deny"), Vec::<String>::new(), "{mode}");
    }
}

#[test]
fn without_a_folder_wrappers_are_asked_about() {
    let (lathe, place) = (lathe(), TempRepo::new(&[]));
    workspace(&place.path().join("ws"));
    let rules = place.path().join("r.toml");
    std::fs::write(
        &rules,
        "[[rule]]\ndecision = \"allow\"\ncommand = [\"find\", \"cat\", \"ls\", \"git\", \"wc\"]\n",
    )
    .unwrap();
    let lines = ["find . | xargs cat", "find . -exec cat {} +", "git ls-files | xargs wc -l"];
    for line in lines {
        let words = ["policy", "check", "--rules", rules.to_str().unwrap(), line];
        let said = lathe.clone().in_dir(place.path().join("ws")).args(words).run().expect_code(0).stdout;
        assert!(said.starts_with("ask"), "{said}");
    }
}
