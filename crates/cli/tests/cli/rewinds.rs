//! The changes of every call are known and can always be undone.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use lathe_testkit::{FakeModel, Lathe, Script, TempRepo, call, done};
use serde_json::{Value, json};

use crate::{bodies, lathe, run_in};

/// Everything in a tree: modes, contents and targets of links, by path. Git's own is left out.
pub(crate) fn tree(root: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    fn add(root: &Path, folder: &Path, found: &mut BTreeMap<String, (u32, Vec<u8>)>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            if name == ".git" {
                continue;
            }
            let meta = path.symlink_metadata().unwrap();
            let content = if meta.is_symlink() {
                std::fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else if meta.is_file() {
                std::fs::read(&path).unwrap()
            } else {
                Vec::new()
            };
            found.insert(name, (meta.mode(), content));
            if meta.is_dir() {
                add(root, &path, found);
            }
        }
    }
    let mut found = BTreeMap::new();
    add(root, root, &mut found);
    found
}

fn at_home(run: &Lathe) -> Lathe {
    lathe().env("LATHE_HOME", run.home())
}

fn bash(id: &str, command: &str) -> lathe_testkit::FakeAnswer {
    call(id, "bash", json!({ "command": command }))
}

/// A tree with everything in it that can be lost.
fn full_tree(git: bool) -> TempRepo {
    let files: Vec<(String, String)> =
        (0..40).map(|n| (format!("d{}/f{n}.txt", n % 4), format!("file {n}\n"))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let repo = if git { TempRepo::with_git(&files) } else { TempRepo::new(&files) };
    repo.write("pic.bin", [0, 159, 146, 150, 0, 255]);
    repo.write("tool.sh", "#!/bin/sh\n");
    std::fs::set_permissions(repo.join("tool.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    repo.write("untracked/deep/er/x", "x\n");
    std::fs::create_dir(repo.join("empty")).unwrap();
    symlink("tool.sh", repo.join("link")).unwrap();
    symlink("/nowhere/at/all", repo.join("dangling")).unwrap();
    repo
}

const HAVOC: &str = "rm -rf d0 d1 untracked link; mv d2 moved; printf '\\001\\002\\000' > pic.bin; chmod 600 tool.sh; rmdir empty; ln -sfn d3 dangling; echo new > d3/new.txt; mkdir -p made/here";

#[test]
fn a_line_that_wrecks_the_tree_is_taken_back_and_the_taking_back_too() {
    for git in [false, true] {
        let repo = full_tree(git);
        let before = tree(repo.path());
        let model = FakeModel::serving(Script::new().answer(bash("c1", HAVOC)).answer(done("wrecked")));
        let run = run_in(repo.path(), &model);
        let events = run.run().expect_code(0).events();
        let wrecked = tree(repo.path());
        assert_ne!(before, wrecked);
        let finished = &bodies(&events, "call_finished")[0];
        assert!(finished["changes"].as_array().unwrap().len() > 20, "{finished}");
        assert_eq!(finished["not_undoable"], Value::Null);

        let preview =
            at_home(&run).in_dir(repo.path()).args(["rewind", "--to", "0", "--preview"]).run().expect_code(0);
        assert!(preview.stdout.contains("d0/f0.txt  brought back"), "{}", preview.stdout);
        assert_eq!(tree(repo.path()), wrecked, "a preview changes nothing");

        at_home(&run).in_dir(repo.path()).args(["rewind", "--to", "0", "--files"]).run().expect_code(0);
        assert_eq!(tree(repo.path()), before, "git: {git}");
        at_home(&run).in_dir(repo.path()).arg("undo").run().expect_code(0);
        assert_eq!(tree(repo.path()), wrecked, "git: {git}");
        // What is undone stays undone; the next act is the step itself.
        at_home(&run).in_dir(repo.path()).arg("undo").run().expect_code(0);
        assert_eq!(tree(repo.path()), before, "git: {git}");
        let ran = at_home(&run).in_dir(repo.path()).arg("undo").run().expect_code(2);
        assert!(ran.stderr.contains("error[nothing-to-undo]"), "{}", ran.stderr);
    }
}

#[test]
fn what_the_user_changed_meanwhile_is_a_shown_conflict() {
    let repo = TempRepo::new(&[("a.txt", "old a\n"), ("b.txt", "old b\n"), ("c.txt", "old c\n")]);
    let line = "echo agent > a.txt; echo agent > b.txt; rm c.txt";
    let model = FakeModel::serving(Script::new().answer(bash("c1", line)).answer(done("ok")));
    let run = run_in(repo.path(), &model);
    run.run().expect_code(0);
    repo.write("b.txt", "mine\n");
    repo.write("c.txt", "mine too\n");
    let ran = at_home(&run)
        .in_dir(repo.path())
        .args(["rewind", "--to", "0", "--files", "--json"])
        .run()
        .expect_code(1);
    let told: Value = serde_json::from_str(&ran.stdout).unwrap();
    let paths = |key: &str| -> Vec<String> {
        let acts = told["undone"][key].as_array().unwrap();
        acts.iter().map(|act| act["path"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        (paths("restored"), paths("conflicts")),
        (vec!["a.txt".into()], vec!["b.txt".into(), "c.txt".into()])
    );
    assert_eq!(
        (repo.read("a.txt"), repo.read("b.txt"), repo.read("c.txt")),
        ("old a\n".into(), "mine\n".into(), "mine too\n".into())
    );
}

#[test]
fn a_rewind_of_both_goes_on_from_the_step_and_can_be_undone() {
    let repo = TempRepo::new(&[("a.txt", "0\n")]);
    let script = Script::new()
        .answer(bash("c1", "echo 1 > a.txt"))
        .answer(bash("c2", "echo 2 > a.txt"))
        .answer(call("c3", "write", json!({ "path": "deep/new.txt", "content": "n\n" })))
        .answer(done("three changes"));
    let model = FakeModel::serving(script);
    let run = run_in(repo.path(), &model);
    run.run().expect_code(0);
    let ran = at_home(&run).in_dir(repo.path()).args(["rewind", "--to", "1"]).run().expect_code(0);
    assert!(ran.stdout.contains("Steps of the conversation dropped: 3"), "{}", ran.stdout);
    assert_eq!(repo.read("a.txt"), "1\n");
    assert!(!repo.exists("deep"), "a folder made for a file goes with it");
    // The next task continues from step 1.
    at_home(&run)
        .in_dir(repo.path())
        .in_dir(repo.path())
        .args(["resume", "--output", "stream-json"])
        .with_model(&model)
        .run()
        .expect_code(0);
    // The first request after the four of the run.
    let next = model.requests()[4].messages();
    let text = serde_json::to_string(&next).unwrap();
    assert!(text.contains("echo 1 > a.txt") && !text.contains("echo 2 > a.txt"), "{text}");
    assert_eq!(model.violations(), Vec::<String>::new());
}

#[test]
fn undoing_a_rewind_of_both_brings_the_conversation_back() {
    let repo = TempRepo::new(&[("a.txt", "0\n")]);
    let script = Script::new()
        .answer(bash("c1", "echo 1 > a.txt"))
        .answer(bash("c2", "echo 2 > a.txt"))
        .answer(done("x"));
    let model = FakeModel::serving(script);
    let run = run_in(repo.path(), &model);
    run.run().expect_code(0);
    let steps = || -> u64 {
        let listed = at_home(&run).in_dir(repo.path()).args(["sessions", "--json"]).run().expect_code(0);
        serde_json::from_str::<Value>(&listed.stdout).unwrap()[0]["steps"].as_u64().unwrap()
    };
    assert_eq!(steps(), 3);
    at_home(&run).in_dir(repo.path()).args(["rewind", "--to", "1"]).run().expect_code(0);
    assert_eq!((steps(), repo.read("a.txt")), (1, "1\n".into()));
    let undone = at_home(&run).in_dir(repo.path()).arg("undo").run().expect_code(0);
    assert!(undone.stdout.contains("`lathe rewind --to 1` restores it."), "{}", undone.stdout);
    assert_eq!((steps(), repo.read("a.txt")), (3, "2\n".into()));
    // Every way back that is printed, each of them run: to where the last command found things.
    let at = |words: &[&str]| at_home(&run).in_dir(repo.path()).args(words).run().expect_code(0).stdout;
    let seen = || (steps(), repo.read("a.txt"));
    for words in [
        &["undo"][..],
        &["rewind", "--to", "0", "--files"],
        &["undo"],
        &["rewind", "--to", "2", "--files"],
        &["rewind", "--to", "1"],
        &["undo"],
        &["undo"],
        &["undo"],
    ] {
        let before = seen();
        let printed = at(words);
        let after = seen();
        let Some(hint) = printed.split('`').find(|part| part.starts_with("lathe ")) else {
            panic!("no way back from {words:?}: {printed}");
        };
        let hint: Vec<&str> = hint.split(' ').skip(1).collect();
        let back = at(&hint);
        assert_eq!(seen(), before, "{words:?}, then {hint:?}: {back}");
        // And forth again: an undo of the way back, or the same words.
        at(if hint[0] == "rewind" { &["undo"] } else { words });
        assert_eq!(seen(), after, "{words:?} again");
    }
    at(&["rewind", "--to", "3", "--files"]);
    assert_eq!(seen(), (3, "2\n".into()));
    let shown = at_home(&run).in_dir(repo.path()).arg("show").run().expect_code(0);
    assert!(shown.stdout.contains("a.txt  +1 -1"), "{}", shown.stdout);
    let replayed = at_home(&run).in_dir(repo.path()).arg("replay").run().expect_code(0);
    assert!(replayed.stdout.ends_with("0 divergences\n"), "{}", replayed.stdout);
}

#[test]
fn diff_shows_what_shell_lines_changed_too() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let model = FakeModel::serving(Script::new().answer(bash("c1", "echo two >> a.txt")).answer(done("ok")));
    let run = run_in(repo.path(), &model);
    run.run().expect_code(0);
    let diff = at_home(&run).in_dir(repo.path()).arg("diff").run().expect_code(0);
    assert!(diff.stdout.contains("--- a/a.txt") && diff.stdout.contains("+two"), "{}", diff.stdout);
    let ran = at_home(&run).in_dir(repo.path()).args(["rewind", "--to", "9"]).run().expect_code(2);
    assert!(ran.stderr.contains("error[no-such-step]"), "{}", ran.stderr);
}

#[test]
fn a_user_s_change_between_two_lines_is_not_the_lines_doing() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let theirs = repo.join("theirs.txt");
    // The line itself plays the user: what it starts goes on after it has ended.
    let line = format!("(sleep 0.3; echo user > {}) >/dev/null 2>&1 &", theirs.display());
    let script = Script::new()
        .answer(bash("c1", &line))
        .answer(call("w", "view", json!({ "path": "a.txt" })))
        .answer(bash("c2", "sleep 0.6; true"))
        .answer(bash("c3", "echo mine > a.txt"))
        .answer(done("ok"));
    let model = FakeModel::serving(script);
    let run = run_in(repo.path(), &model);
    let events = run.run().expect_code(0).events();
    let changed = |call: &str| -> Vec<String> {
        let finished =
            events.iter().find(|event| event["kind"] == "call_finished" && event["call"] == call).unwrap();
        let changes = finished["body"]["changes"].as_array().cloned().unwrap_or_default();
        changes
            .iter()
            .map(|change| change["path"].as_str().unwrap().rsplit('/').next().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        (changed("c1"), changed("c2"), changed("c3")),
        (vec![], vec!["theirs.txt".to_owned()], vec!["a.txt".to_owned()])
    );
}

/// A generator that needs no crate and is the same everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// One call that changes something, by any tool, or fails to.
fn random_call(dice: &mut Dice, at: usize) -> lathe_testkit::FakeAnswer {
    let id = format!("c{at}");
    let name = |dice: &mut Dice| format!("d{}/f{}.txt", dice.roll(3), dice.roll(4));
    let (one, two) = (name(dice), name(dice));
    match dice.roll(12) {
        0 => {
            call(&id, "write", json!({ "path": format!("new{at}/deep/x.txt"), "content": format!("{at}\n") }))
        }
        1 => call(&id, "edit", json!({ "path": one, "old_str": "line", "new_str": format!("line {at}") })),
        2 => call(&id, "edit", json!({ "path": one, "insert_line": 0, "new_str": format!("top {at}\n") })),
        3 => {
            let patch = format!(
                "*** Begin Patch\n*** Delete File: {one}\n*** Add File: p{at}.txt\n+{at}\n*** End Patch\n"
            );
            call(&id, "apply_patch", json!({ "patch": patch }))
        }
        4 => bash(&id, &format!("rm -f {one}; echo {at} >> {two}")),
        5 => bash(&id, &format!("mv d0 moved{at} 2>/dev/null; mkdir -p d0; echo x > d0/f0.txt")),
        6 => bash(&id, &format!("chmod 7{}0 {one} 2>/dev/null; true", dice.roll(8))),
        7 => bash(&id, &format!("ln -sfn {two} link{}; rm -f {one}", dice.roll(2))),
        8 => bash(&id, &format!("rm -rf d1; mkdir -p empty{at}")),
        9 => bash(
            &id,
            &format!("mkdir -p d2; printf '\\000\\001' > d2/bin; cp d2/bin {one} 2>/dev/null; true"),
        ),
        10 => bash(&id, &format!("rm -rf {one}; mkdir -p {one}/inside; touch {one}/inside/y")),
        _ => bash(&id, "find . -name '*.txt' -newer a.txt -exec sh -c 'echo more >> \"$1\"' _ {} \\;"),
    }
}

#[test]
fn after_any_sequence_of_calls_a_rewind_gives_the_first_tree() {
    for seed in 0..lathe_testkit::size(6, 60) {
        let mut dice = Dice(seed as u64 * 7919 + 1);
        let files: Vec<(String, String)> = (0..3)
            .flat_map(|d| (0..4).map(move |f| (format!("d{d}/f{f}.txt"), format!("a line\nand {f}\n"))))
            .chain([("a.txt".to_owned(), "a\n".to_owned())])
            .collect();
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let repo = if seed % 2 == 0 { TempRepo::new(&files) } else { TempRepo::with_git(&files) };
        let before = tree(repo.path());
        let count = 12;
        let calls: Vec<_> = (0..count).map(|at| random_call(&mut dice, at)).collect();
        let mut calls = calls.into_iter();
        let script = Script::repeat(count, |_| calls.next().unwrap()).answer(done("ok"));
        let model = FakeModel::serving(script);
        let run = run_in(repo.path(), &model);
        run.run().expect_code(0);
        let after = tree(repo.path());
        at_home(&run).in_dir(repo.path()).args(["rewind", "--to", "0", "--files"]).run().expect_code(0);
        assert_eq!(tree(repo.path()), before, "seed {seed}");
        at_home(&run).in_dir(repo.path()).arg("undo").run().expect_code(0);
        assert_eq!(tree(repo.path()), after, "seed {seed}");
    }
}

#[test]
fn without_an_id_only_files_of_this_folder_go_back_and_what_is_lost_is_told() {
    let (repo, elsewhere) = (TempRepo::new(&[("a.txt", "0\n")]), TempRepo::new(&[]));
    let model =
        FakeModel::serving(Script::new().answer(bash("c1", "echo 1 > a.txt; mkfifo pipe")).answer(done("x")));
    let run = run_in(repo.path(), &model);
    run.run().expect_code(0);
    let ran = at_home(&run).in_dir(elsewhere.path()).args(["rewind", "--to", "0"]).run().expect_code(2);
    assert!(ran.stderr.contains("error[no-session-here]"), "{}", ran.stderr);
    assert_eq!(repo.read("a.txt"), "1\n");
    let shown = at_home(&run).arg("show").run().expect_code(0);
    assert!(shown.stdout.contains("cannot be undone:") && shown.stdout.contains("pipe"), "{}", shown.stdout);
    let ran = at_home(&run).in_dir(repo.path()).args(["rewind", "--to", "0"]).run();
    assert!(ran.stdout.contains("cannot be undone:") && ran.stdout.contains("pipe"), "{}", ran.stdout);
    assert_eq!(repo.read("a.txt"), "0\n");
}

#[test]
fn an_undo_takes_a_step_of_several_calls_back_once() {
    let repo = TempRepo::new(&[("a.txt", "0\n"), ("b.txt", "0\n")]);
    let both = bash("c2", "echo 2 > a.txt").call("c3", "bash", json!({ "command": "echo 2 > b.txt" }));
    let script =
        Script::new().answer(bash("c1", "echo 1 > a.txt")).answer(both).answer(done("three changes"));
    let model = FakeModel::serving(script);
    let run = run_in(repo.path(), &model);
    run.run().expect_code(0);
    let undo = |code: i32| at_home(&run).in_dir(repo.path()).arg("undo").run().expect_code(code);
    let seen = || (repo.read("a.txt"), repo.read("b.txt"));
    undo(0);
    assert_eq!(seen(), ("1\n".into(), "0\n".into()));
    undo(0);
    assert_eq!(seen(), ("0\n".into(), "0\n".into()));
    assert!(undo(2).stderr.contains("error[nothing-to-undo]"));
}
