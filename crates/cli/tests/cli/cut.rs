//! Lines whose words come apart when they run, in a real folder: what they read is asked about, and what they write comes back.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use lathe_testkit::{FakeModel, Script, TempRepo, call, done};
use serde_json::{Value, json};

use crate::{lathe, run_in};

/// The verdict of `lathe policy check` about a line in a folder.
fn verdict(folder: &Path, mode: &str, line: &str) -> String {
    let ran = lathe().in_dir(folder).args(["policy", "check", "--json", "--mode", mode, line]).run();
    let told: Value = serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap();
    told["decision"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned()
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let ran = Command::new("git").args(arguments).current_dir(folder).output().unwrap();
    assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8_lossy(&ran.stdout).trim().to_owned()
}

#[test]
fn a_file_whose_name_reads_as_an_option_is_taken_for_one() {
    let outside = TempRepo::new(&[("key", "SECRET\n")]);
    let repo = TempRepo::new(&[("a.txt", "x\n"), ("src/b.txt", "y\n")]);
    symlink(outside.path(), repo.join("src/link")).unwrap();
    let lines = ["grep . *", "grep -n . *", "egrep . *", "for f in *; do grep . \"$f\" src; done"];
    for line in lines {
        assert_eq!(verdict(repo.path(), "default", line), "allow", "{line}");
    }
    std::fs::write(repo.join("-R"), "").unwrap();
    for line in lines {
        assert_ne!(verdict(repo.path(), "default", line), "allow", "{line}");
        assert_eq!(verdict(repo.path(), "plan", line), "deny", "{line}");
    }
    assert_eq!(verdict(repo.path(), "default", "grep . ./*"), "allow");
}

#[test]
fn a_repository_whose_work_tree_is_elsewhere_is_asked_about() {
    let outside = TempRepo::new(&[("key", "SECRET\n")]);
    let repo = TempRepo::new(&[("a", "a\n")]);
    git(repo.path(), &["init", "-q"]);
    for line in ["git diff", "git grep x", "git diff HEAD", "git blame a"] {
        assert_eq!(verdict(repo.path(), "default", line), "allow", "{line}");
    }
    for (key, value) in [
        ("core.worktree", outside.path().to_str().unwrap()),
        ("core.worktree", "/"),
        ("core.worktree", "../.."),
        ("blame.ignoreRevsFile", "/etc/shadow"),
    ] {
        git(repo.path(), &["config", "--file", ".git/config", key, value]);
        for line in ["git diff", "git grep x", "git blame a"] {
            assert_ne!(verdict(repo.path(), "default", line), "allow", "{key} {value}: {line}");
        }
        git(repo.path(), &["config", "--file", ".git/config", "--unset", key]);
    }
    git(repo.path(), &["config", "--file", ".git/config", "core.worktree", ".."]);
    assert_eq!(verdict(repo.path(), "default", "git diff"), "allow", "its own folder, said out");
}

#[test]
fn what_a_line_writes_by_words_that_come_apart_comes_back() {
    for line in [
        "rm -$(echo f f1)",
        "tee -$(echo a f1) < a.txt",
        "cp -$(echo f a.txt f1)",
        "sort -$(echo o f1) a.txt",
        "mv -$(echo f a.txt f1)",
        "for o in 'f a.txt f1'; do cp -$o; done",
    ] {
        let repo = TempRepo::new(&[("a.txt", "new\n"), ("f1", "orig\n")]);
        let script = Script::new().answer(call("c1", "bash", json!({ "command": line }))).answer(done("ok"));
        let model = FakeModel::serving(script);
        let run = run_in(repo.path(), &model);
        run.run().expect_code(0);
        let now = std::fs::read_to_string(repo.join("f1")).unwrap_or_default();
        assert_ne!(now, "orig\n", "{line}: it did something");
        let undo = lathe().env("LATHE_HOME", run.home()).in_dir(repo.path());
        undo.args(["undo"]).run().expect_code(0);
        assert_eq!((repo.read("f1"), repo.read("a.txt")), ("orig\n".into(), "new\n".into()), "{line}");
    }
}
