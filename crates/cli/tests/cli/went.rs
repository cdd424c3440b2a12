//! A shell that went through a link: lines are judged for the folder in which bash really runs them.

use std::os::unix::fs::symlink;

use lathe_testkit::{FakeModel, Script, TempRepo, call, done};
use serde_json::json;

use crate::{bodies, lathe};

/// A folder `ws` with a link `l` to `src/deep`, and a file next to `ws` that no line may read without asking.
fn linked() -> TempRepo {
    let base = TempRepo::new(&[
        ("out/key", "OUTSIDE\n"),
        ("ws/src/deep/in", "inside\n"),
        ("ws/f", "harmless\n"),
        ("ws/deep/a/b/x", ""),
    ]);
    symlink("src/deep", base.join("ws/l")).unwrap();
    symlink("../../../src", base.join("ws/deep/a/b/l")).unwrap();
    symlink(base.join("out/key"), base.join("ws/deep/a/b/f")).unwrap();
    base
}

/// The outputs of lines that are run one after the other in one session, and the verdicts about them.
fn ran(base: &TempRepo, mode: &str, lines: &[&str]) -> (String, Vec<String>) {
    let mut script = Script::new();
    for (at, line) in lines.iter().enumerate() {
        script = script.answer(call(&format!("c{at}"), "bash", json!({ "command": line })));
    }
    let model = FakeModel::serving(script.answer(done("ok")));
    let words = ["run", "go", "--mode", mode, "--output", "stream-json"];
    // With it, `cd out` would lead to the folder next to the workspace.
    let run = lathe().in_dir(base.join("ws")).env("CDPATH", base.path().to_str().unwrap());
    let events = run.args(words).with_model(&model).run().events();
    let verdicts = bodies(&events, "call_decided");
    let verdict = |decided: &serde_json::Value| decided["decision"]["verdict"].as_str().unwrap().to_owned();
    let results = bodies(&events, "call_finished").iter().map(ToString::to_string).collect();
    (results, verdicts.iter().map(verdict).collect())
}

#[test]
fn behind_a_link_the_folder_above_is_that_of_the_place() {
    for lines in [
        &["cd l", "cd ../.. && cat out/key"][..],
        &["cd l", "(cd ../..; cat out/key)"],
        &["cd l", "cd ..; cd ..; cat out/key"],
        &["cd l; cd ../..; cat out/key"],
        &["cd l && cd .. && cd .. && cat out/key"],
        &["cd deep/a/b/l/.. && cat f"],
        &["cd deep/a/b/l", "cd .. && cat f; cat deep/a/b/f"],
        &["set -P; cd l; cd ..; cat ../../out/key"],
    ] {
        for mode in ["plan", "default"] {
            let (results, verdicts) = ran(&linked(), mode, lines);
            assert!(!results.contains("OUTSIDE"), "{mode} {lines:?}: {verdicts:?} {results}");
        }
    }
    // What stays inside goes on to work, and each line begins in the real folder.
    let (results, verdicts) = ran(&linked(), "default", &["cd l", "cat in; cd ..; ls", "cd ..", "cat f"]);
    assert_eq!(verdicts, ["allow"; 5], "{results}");
    assert!(results.contains("inside") && results.contains("harmless"), "{results}");
}

#[test]
fn what_is_destroyed_behind_a_link_is_what_was_judged() {
    let base = linked();
    let lines = ["cd l", "cd ../.. && rm -rf out && echo changed > beside"];
    let (results, _) = ran(&base, "full-auto", &lines);
    assert!(base.exists("out/key"), "{results}");
    assert!(!base.exists("beside") && base.exists("ws/beside"), "{results}");
}

#[test]
fn the_users_search_path_for_folders_does_not_count() {
    let base = linked();
    base.write("ws/out/key", "inside\n");
    let (results, verdicts) = ran(&base, "plan", &["cd out && cat key"]);
    assert_eq!(verdicts[0], "allow");
    assert!(results.contains("inside") && !results.contains("OUTSIDE"), "{results}");
}
