//! The origin of a write: another user and another run write while a line runs, and none of their writes is undone.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use lathe_testkit::{FakeModel, FinishedLathe, Lathe, Script, TempRepo, call, done, eventually};
use serde_json::{Value, json};

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

/// A way in which another writer writes, and the text that must be there after the undo.
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

/// Runs the way back that an undo or rewind has printed.
pub(crate) fn back_as_printed(home: &Lathe, folder: &Path, printed: &str) -> FinishedLathe {
    let hint = printed.split('`').find(|part| part.starts_with("lathe "));
    let hint = hint.unwrap_or_else(|| panic!("no way back is printed: {printed}"));
    home.clone().in_dir(folder).args(hint.split(' ').skip(1)).run()
}

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
            // The way back that was printed leads back, and leaves theirs alone too.
            let again = back_as_printed(&home, repo.path(), &ran.stdout).expect_code(0);
            let ours = ("ours\n".to_owned(), "a\nmore\n".to_owned());
            assert_eq!((repo.read("ours.txt"), repo.read("a.txt")), ours, "{name}: {}", again.stdout);
            assert!(holds(repo.path()), "{name}: {}", again.stdout);
        }
    }
}

/// A way in which a second run writes: its name, tool and arguments, and what must be there after the undo.
type RunWay = (&'static str, &'static str, Value, fn(&Path) -> bool);

fn ways_of_a_run() -> [RunWay; 12] {
    let line = |text: &str| json!({ "command": text });
    let patch = |text: &str| json!({ "patch": format!("*** Begin Patch\n{text}\n*** End Patch\n") });
    [
        ("a new file", "write", json!({ "path": "second.txt", "content": "second\n" }), |at| {
            text(at, "second.txt") == "second\n"
        }),
        (
            "an edit",
            "edit",
            json!({ "path": "theirs.txt", "old_str": "before", "new_str": "second" }),
            |at| text(at, "theirs.txt") == "second\n",
        ),
        ("a patch that removes", "apply_patch", patch("*** Delete File: gone.txt"), |at| {
            !at.join("gone.txt").exists()
        }),
        (
            "a patch that moves",
            "apply_patch",
            patch("*** Update File: moved.txt\n*** Move to: there/moved.txt\n@@\n-to be moved\n+was moved"),
            |at| text(at, "there/moved.txt") == "was moved\n" && !at.join("moved.txt").exists(),
        ),
        ("a line", "bash", line("echo second > second.txt"), |at| text(at, "second.txt") == "second\n"),
        ("a line that appends", "bash", line("echo second >> theirs.txt"), |at| {
            text(at, "theirs.txt") == "before\nsecond\n"
        }),
        ("a line that removes", "bash", line("rm gone.txt"), |at| !at.join("gone.txt").exists()),
        ("a line that moves", "bash", line("mv moved.txt elsewhere.txt"), |at| {
            text(at, "elsewhere.txt") == "to be moved\n" && !at.join("moved.txt").exists()
        }),
        ("a mode", "bash", line("chmod 755 mode.sh"), |at| {
            at.join("mode.sh").metadata().unwrap().permissions().mode() & 0o777 == 0o755
        }),
        ("a link", "bash", line("ln -s a.txt link"), |at| at.join("link").is_symlink()),
        ("a folder", "bash", line("mkdir -p x/y; echo second > x/y/z"), |at| text(at, "x/y/z") == "second\n"),
        (
            "a line of which nobody knows",
            "bash",
            line("python3 -c \"open('second.txt','w').write('second\\n')\""),
            |at| text(at, "second.txt") == "second\n",
        ),
    ]
}

#[test]
fn what_another_run_writes_while_a_line_runs_is_left_alone() {
    // Each in the same folder with the same home, as two terminals would.
    for (name, tool, arguments, holds) in ways_of_a_run() {
        let (repo, home) = (place(), lathe());
        // The writes of a program are unknown, so only the journal of the other run can tell.
        repo.write("ours.py", "import os, time\nopen('ours.txt', 'w').write('ours')\nopen('begun', 'w')\nwhile not os.path.exists('go'): time.sleep(0.02)\nos.remove('begun'); os.remove('go')\n");
        let (command, _model) = run(&home, &repo, "python3 ours.py");
        let running = command.spawn();
        eventually(Duration::from_secs(60), name, || repo.exists("begun"));
        let script = Script::new().answer(call("o0", "view", json!({ "path": "theirs.txt" })));
        let other = FakeModel::serving(script.answer(call("o1", tool, arguments)).answer(done("ok")));
        let words = ["run", "second", "--mode", "full-auto", "--output", "stream-json"];
        home.clone().in_dir(repo.path()).args(words).with_model(&other).run().expect_code(0);
        assert!(holds(repo.path()), "{name}: the second run did nothing");
        repo.write("go", "");
        let events = running.wait().expect_code(0).events();
        let first = events[0]["body"]["session"].as_str().unwrap().to_owned();
        // From elsewhere, where only the id says which session is meant.
        let elsewhere = TempRepo::new(&[]);
        let ran = home.clone().in_dir(elsewhere.path()).args(["undo", &first]).run();
        assert!(holds(repo.path()), "{name}: {}", ran.stdout);
        assert!(!repo.exists("ours.txt"), "{name}: {}", ran.stdout);
        let again = back_as_printed(&home, elsewhere.path(), &ran.stdout).expect_code(0);
        assert!(holds(repo.path()) && repo.read("ours.txt") == "ours", "{name}: {}", again.stdout);
    }
}
