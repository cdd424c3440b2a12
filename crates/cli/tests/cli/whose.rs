//! Whose write it was: a person, and another run, write while a line runs, and nothing of theirs is taken back.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use lathe_testkit::{FakeModel, Lathe, Script, TempRepo, call, done, eventually};
use serde_json::json;

use crate::{lathe, result};

/// A line that writes `ours.txt` and changes `a.txt`, and waits in between until `go` is there.
const LINE: &str = "echo ours > ours.txt; touch begun; while [ ! -e go ]; do sleep 0.02; done; echo more >> a.txt; rm begun go";

fn place() -> TempRepo {
    TempRepo::with_git(&[
        ("a.txt", "a\n"),
        ("theirs.txt", "before\n"),
        ("sub/deep.txt", "deep\n"),
        ("mode.sh", "#!/bin/sh\n"),
        ("gone.txt", "to be removed\n"),
        ("moved.txt", "to be moved\n"),
    ])
}

fn run(lathe: &Lathe, repo: &TempRepo, line: &str) -> (Lathe, FakeModel) {
    let answer = call("c1", "bash", json!({ "command": line }));
    let model = FakeModel::serving(Script::new().answer(answer).answer(done("ok")));
    let words = ["run", "go", "--mode", "full-auto", "--output", "stream-json"];
    (lathe.clone().in_dir(repo.path()).args(words).with_model(&model), model)
}

fn sh(folder: &Path, line: &str) {
    let ran = Command::new("sh").args(["-c", line]).current_dir(folder).output().unwrap();
    assert!(ran.status.success(), "{line}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// A way in which somebody writes, and what must be there after the undo.
type Way = (&'static str, fn(&Path), fn(&Path) -> bool);

fn text(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap_or_default()
}

const WAYS: [Way; 12] = [
    ("a new file", |at| sh(at, "echo mine > new.txt"), |at| text(at, "new.txt") == "mine\n"),
    ("over a file", |at| sh(at, "echo mine > theirs.txt"), |at| text(at, "theirs.txt") == "mine\n"),
    (
        "at the end of a file",
        |at| sh(at, "echo mine >> theirs.txt"),
        |at| text(at, "theirs.txt") == "before\nmine\n",
    ),
    (
        "as an editor does",
        |at| sh(at, "echo mine > .t.swp; mv .t.swp theirs.txt"),
        |at| text(at, "theirs.txt") == "mine\n",
    ),
    ("in a folder", |at| sh(at, "echo mine > sub/deep.txt"), |at| text(at, "sub/deep.txt") == "mine\n"),
    ("a new folder", |at| sh(at, "mkdir -p x/y; echo mine > x/y/z"), |at| text(at, "x/y/z") == "mine\n"),
    ("a removal", |at| sh(at, "rm gone.txt"), |at| !at.join("gone.txt").exists()),
    (
        "another name",
        |at| sh(at, "mv moved.txt elsewhere.txt"),
        |at| text(at, "elsewhere.txt") == "to be moved\n" && !at.join("moved.txt").exists(),
    ),
    (
        "a mode",
        |at| sh(at, "chmod 755 mode.sh"),
        |at| at.join("mode.sh").metadata().unwrap().permissions().mode() & 0o777 == 0o755,
    ),
    ("a link", |at| sh(at, "ln -s a.txt link"), |at| at.join("link").is_symlink()),
    (
        "many files",
        |at| sh(at, "for i in $(seq 40); do echo $i > many$i; done"),
        |at| (1..=40).all(|number| text(at, &format!("many{number}")) == format!("{number}\n")),
    ),
    (
        "a commit",
        |at| sh(at, "echo mine > theirs.txt; git -c user.name=t -c user.email=t@e commit -qam mine"),
        |at| text(at, "theirs.txt") == "mine\n",
    ),
];

#[test]
fn what_a_person_writes_while_a_line_runs_is_left_alone_by_every_way_back() {
    for (name, write, holds) in WAYS {
        for back in [&["undo"][..], &["rewind", "--to", "0"]] {
            let (repo, home) = (place(), lathe());
            let (command, _model) = run(&home, &repo, LINE);
            let running = command.spawn();
            eventually(Duration::from_secs(60), name, || repo.exists("begun"));
            write(repo.path());
            repo.write("go", "");
            let events = running.wait().expect_code(0).events();
            let told = result(&events, "c1");
            assert!(name == "a commit" || told.contains("Changed by somebody else"), "{name}: {told}");
            let ran = home.clone().in_dir(repo.path()).args(back).run().expect_code(0);
            assert!(holds(repo.path()), "{name}: {}", ran.stdout);
            assert_eq!((repo.exists("ours.txt"), repo.read("a.txt")), (false, "a\n".to_owned()), "{name}");
            assert!(ran.stdout.contains("while a line ran"), "{name}: {}", ran.stdout);
        }
    }
}

#[test]
fn what_another_run_writes_while_a_line_runs_is_left_alone() {
    // Each in the same folder with the same home, as two terminals would.
    for (name, tool, arguments) in [
        ("a file tool", "write", json!({ "path": "second.txt", "content": "second\n" })),
        ("a line", "bash", json!({ "command": "echo second > second.txt" })),
        (
            "a line of which nobody knows",
            "bash",
            json!({ "command": "python3 -c \"open('second.txt','w').write('second\\\\n')\"" }),
        ),
    ] {
        let (repo, home) = (place(), lathe());
        // Nobody knows what a program writes, so only the journal of the other run can tell.
        repo.write("ours.py", "import os, time\nopen('ours.txt', 'w').write('ours')\nopen('begun', 'w')\nwhile not os.path.exists('go'): time.sleep(0.02)\nos.remove('begun'); os.remove('go')\n");
        let (command, _model) = run(&home, &repo, "python3 ours.py");
        let running = command.spawn();
        eventually(Duration::from_secs(60), name, || repo.exists("begun"));
        let other = FakeModel::serving(Script::new().answer(call("o1", tool, arguments)).answer(done("ok")));
        let words = ["run", "second", "--mode", "full-auto", "--output", "stream-json"];
        home.clone().in_dir(repo.path()).args(words).with_model(&other).run().expect_code(0);
        repo.write("go", "");
        let events = running.wait().expect_code(0).events();
        let first = events[0]["body"]["session"].as_str().unwrap().to_owned();
        let ran = home.clone().in_dir(repo.path()).args(["undo", &first]).run();
        assert_eq!(repo.read("second.txt"), "second\n", "{name}: {}", ran.stdout);
        assert!(!repo.exists("ours.txt"), "{name}: {}", ran.stdout);
    }
}
