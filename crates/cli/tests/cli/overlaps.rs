//! Two runs in one folder whose lines run at the same time. Each undo undoes what its own line did and leaves the
//! other's changes alone, in both orders; a file that both wrote is a conflict that is shown and left as it is.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use lathe_testkit::{FakeModel, FinishedLathe, Lathe, Script, TempRepo, call, done, eventually};
use serde_json::json;

use crate::lathe;
use crate::whose::back_as_printed;

const LONG: Duration = Duration::from_secs(60);

/// A way in which two lines write: its name, and what each does while both run. `ME` is `a` in one and `b` in the other.
const WAYS: [(&str, &str); 8] = [
    ("new files", "echo ME > new-ME.txt"),
    ("over files", "echo ME > old-ME.txt"),
    ("at the end of files", "echo ME >> old-ME.txt; echo more >> old-ME.txt"),
    ("nested folders", "mkdir -p n/ME/deep; echo ME > n/ME/deep/f-ME"),
    ("removals", "rm old-ME.txt"),
    ("renames", "mv old-ME.txt moved-ME.txt"),
    ("in place", "sed -i s/old/ME/ old-ME.txt"),
    ("a script", "python3 SYNC/write-ME.py"),
];

/// A command that makes a line say nothing for certain about what it writes.
const OPAQUE: &str = "python3 -c pass; ";

struct Two {
    repo: TempRepo,
    sync: TempRepo,
    home: Lathe,
    _models: Vec<FakeModel>,
    /// The sessions of the lines `a` and `b`.
    sessions: BTreeMap<&'static str, String>,
}

fn files(folder: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(at) = open.pop() {
        for entry in at.read_dir().unwrap().map(Result::unwrap) {
            let path = entry.path();
            let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                open.push(path);
                all.insert(name, "folder".to_owned());
            } else {
                all.insert(name, std::fs::read_to_string(path).unwrap());
            }
        }
    }
    all
}

impl Two {
    fn new() -> Self {
        let repo = TempRepo::new(&[("old-a.txt", "old\n"), ("old-b.txt", "old\n"), ("both.txt", "old\n")]);
        let sync = TempRepo::new(&[]);
        for me in ["a", "b"] {
            sync.write(&format!("write-{me}.py"), format!("open('made-{me}.txt', 'w').write('{me}')\n"));
        }
        Self { repo, sync, home: lathe(), _models: Vec::new(), sessions: BTreeMap::new() }
    }

    fn has(&self, name: &str) -> bool {
        self.sync.exists(name)
    }

    /// Runs both lines at the same time: each does its part while the other runs, one after the other; the line `last` ends
    /// last. `parts` are what `a` and `b` do.
    fn run(&mut self, opaque: bool, [a, b]: [&str; 2], last: &'static str) {
        let mut running = BTreeMap::new();
        for (me, part) in [("a", a), ("b", b)] {
            let sync = self.sync.path().display().to_string();
            let part = part.replace("ME", me).replace("SYNC", &sync);
            let wait = |name: &str| format!("while [ ! -e {sync}/{me}-{name} ]; do sleep 0.02; done");
            let line = format!(
                "{}touch {sync}/{me}-runs; {}; {part}; touch {sync}/{me}-wrote; {}",
                if opaque { OPAQUE } else { "" },
                wait("write"),
                wait("end"),
            );
            let answer = call("c1", "bash", json!({ "command": line }));
            let model = FakeModel::serving(Script::new().answer(answer).answer(done("ok")));
            let words = ["run", "go", "--mode", "full-auto", "--output", "stream-json"];
            let run = self.home.clone().in_dir(self.repo.path()).args(words).with_model(&model);
            self._models.push(model);
            running.insert(me, run.spawn());
            eventually(LONG, "the line runs", || self.has(&format!("{me}-runs")));
        }
        for me in ["a", "b"] {
            self.sync.write(&format!("{me}-write"), "");
            eventually(LONG, "the line has written", || self.has(&format!("{me}-wrote")));
        }
        let first = if last == "a" { "b" } else { "a" };
        for me in [first, last] {
            self.sync.write(&format!("{me}-end"), "");
            let events = running.remove(me).unwrap().wait().expect_code(0).events();
            self.sessions.insert(me, events[0]["body"]["session"].as_str().unwrap().to_owned());
        }
    }

    fn undo(&self, me: &str) -> FinishedLathe {
        self.home.clone().in_dir(self.repo.path()).args(["undo", &self.sessions[me]]).run()
    }
}

/// The files of one line.
fn of(me: &str, all: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let is_of = |name: &str| name.contains(&format!("-{me}")) || name.starts_with(&format!("n/{me}"));
    all.iter().filter(|(name, _)| is_of(name)).map(|(name, text)| (name.clone(), text.clone())).collect()
}

#[test]
fn each_undo_takes_back_its_own_and_leaves_the_others() {
    for (at, (name, part)) in WAYS.into_iter().enumerate() {
        for (turn, [first, second]) in [["a", "b"], ["b", "a"]].into_iter().enumerate() {
            // Each way in both orders of undo, with both endings and both kinds of line among them.
            let (last, opaque) = (["a", "b"][(at + turn) % 2], true);
            let mut two = Two::new();
            let before = files(two.repo.path());
            two.run(opaque, [part, part], last);
            let both = files(two.repo.path());
            for me in ["a", "b"] {
                assert_ne!(of(me, &both), of(me, &before), "{name}: {me} did nothing");
            }
            let about = format!("{name}: {first} before {second}, {last} ended last");
            let ran = two.undo(first);
            let now = files(two.repo.path());
            assert_eq!(of(first, &now), of(first, &before), "{about}: {}", ran.stdout);
            assert_eq!(of(second, &now), of(second, &both), "{about}: {}", ran.stdout);
            // And there and back again, past the other's.
            let again = back_as_printed(&two.home, two.repo.path(), &ran.stdout);
            assert_eq!(files(two.repo.path()), both, "{about}: {}", again.stdout);
            two.undo(first);
            let ran = two.undo(second);
            assert_eq!(files(two.repo.path()), before, "{about}: {}", ran.stdout);
        }
    }
}

#[test]
fn lines_that_say_what_they_write_know_their_own_too() {
    for (name, part) in WAYS {
        let mut two = Two::new();
        let before = files(two.repo.path());
        two.run(false, [part, part], "a");
        two.undo("b");
        let ran = two.undo("a");
        assert_eq!(files(two.repo.path()), before, "{name}: {}", ran.stdout);
    }
}

#[test]
fn a_file_that_both_wrote_is_a_conflict_for_both() {
    for (name, parts) in [
        ("both append", ["echo ME >> both.txt", "echo ME >> both.txt"]),
        ("both write over it", ["echo ME > both.txt", "echo ME > both.txt"]),
        ("one edits, one removes", ["sed -i s/old/ME/ both.txt", "rm both.txt"]),
    ] {
        for [first, second] in [["a", "b"], ["b", "a"]] {
            for last in ["a", "b"] {
                let mut two = Two::new();
                two.run(true, parts, last);
                let both = files(two.repo.path());
                for me in [first, second] {
                    let ran = two.undo(me);
                    let about = format!("{name}: {first} before {second}, {last} ended last: {}", ran.stdout);
                    assert_eq!(files(two.repo.path()), both, "{about}");
                    assert_eq!(ran.code, 1, "{about}");
                    assert!(ran.stdout.contains("was at work at the same time"), "{about}");
                }
            }
        }
    }
}

#[test]
fn what_a_line_that_still_runs_may_have_written_is_left_to_it() {
    let mut two = Two::new();
    // The line `b` runs on while `a` is undone: its journal tells nothing of it yet.
    let sync = two.sync.path().display().to_string();
    let hidden = format!("python3 {sync}/hidden.py");
    two.sync.write(
        "hidden.py",
        "import os, time\nbase = os.path.dirname(__file__)\nopen('hid' + 'den', 'w').write('b')\nopen(base + '/b-wrote', 'w')\n\
         while not os.path.exists(base + '/b-end'): time.sleep(0.02)\n",
    );
    let own = format!(
        "{OPAQUE}touch {sync}/a-runs; while [ ! -e {sync}/a-end ]; do sleep 0.02; done; echo a > own.txt"
    );
    let mut running = Vec::new();
    for (line, sign) in [(own, "a-runs"), (hidden, "b-wrote")] {
        let answer = call("c1", "bash", json!({ "command": line }));
        let model = FakeModel::serving(Script::new().answer(answer).answer(done("ok")));
        let words = ["run", "go", "--mode", "full-auto", "--output", "stream-json"];
        let run = two.home.clone().in_dir(two.repo.path()).args(words).with_model(&model);
        two._models.push(model);
        running.push(run.spawn());
        eventually(LONG, sign, || two.has(sign));
    }
    two.sync.write("a-end", "");
    let events = running.remove(0).wait().expect_code(0).events();
    two.sessions.insert("a", events[0]["body"]["session"].as_str().unwrap().to_owned());
    let ran = two.undo("a");
    assert_eq!(two.repo.read("hidden"), "b", "{}", ran.stdout);
    assert!(!two.repo.exists("own.txt"), "{}", ran.stdout);
    assert!(ran.stdout.contains("hidden") && ran.code == 1, "{}", ran.stdout);
    two.sync.write("b-end", "");
    running.remove(0).wait().expect_code(0);
}
