//! The command that an undo or rewind prints restores exactly the state before it, also for files that only the
//! quarantine holds; and it can be undone in turn.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use lathe_testkit::{FakeModel, Lathe, Script, TempRepo, call, done};
use serde_json::json;

use crate::lathe;
use crate::whose::back_as_printed;

const SCRIPT: &str = "import glob, shutil\nfor d in glob.glob('.gi*'): shutil.rmtree(d)\n";

/// A workspace with all kinds of things that are not copied, and a folder next to it.
struct Place {
    repo: TempRepo,
    beside: TempRepo,
    home: Lathe,
}

impl Place {
    fn new() -> Self {
        let repo = TempRepo::with_git(&[("a.txt", "a\n"), ("sub/b.txt", "b\n"), ("del.py", SCRIPT)]);
        repo.git(&["branch", "side"]);
        repo.git(&["tag", "v1"]);
        repo.write("a.txt", "stashed\n");
        repo.git(&["stash", "push", "-q", "-m", "work"]);
        for name in ["huge", "sub/huge"] {
            File::create(repo.join(name)).unwrap().set_len(70 << 20).unwrap();
        }
        let beside = TempRepo::new(&[("o/one.txt", "one\n"), ("o/deep/two.txt", "two\n")]);
        Self { repo, beside, home: lathe() }
    }

    fn run(&self, line: &str) {
        let line = line.replace("OUTSIDE", self.beside.path().to_str().unwrap());
        let answer = call("c1", "bash", json!({ "command": line }));
        let model = FakeModel::serving(Script::new().answer(answer).answer(done("ok")));
        let words = ["run", "go", "--mode", "full-auto", "--output", "stream-json"];
        let run = self.home.clone().in_dir(self.repo.path()).args(words).with_model(&model);
        run.run().expect_code(0);
    }

    /// Everything that is there, and all that git names.
    fn state(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        for (prefix, root) in [("w/", self.repo.path()), ("o/", self.beside.path())] {
            add(&mut all, prefix, root);
        }
        if self.repo.exists(".git") {
            let names = self.repo.git(&[
                "for-each-ref",
                "--format=%(refname) %(objectname)",
                "refs/heads",
                "refs/tags",
            ]);
            all.insert("names".to_owned(), names);
            all.insert("stashes".to_owned(), self.repo.git(&["stash", "list", "--format=%H"]));
            all.insert("status".to_owned(), self.repo.git(&["status", "--porcelain"]));
        }
        all
    }
}

fn add(all: &mut BTreeMap<String, String>, name: &str, path: &Path) {
    for entry in path.read_dir().unwrap().map(Result::unwrap) {
        let (path, found) = (entry.path(), entry.metadata().unwrap());
        let name = format!("{name}{}", entry.file_name().to_str().unwrap());
        if name == "w/.git" {
            all.insert(name, String::new());
        } else if found.is_dir() {
            add(all, &format!("{name}/"), &path);
            all.insert(name, "folder".to_owned());
        } else if found.len() > 1 << 20 {
            all.insert(name, format!("{} bytes", found.len()));
        } else {
            all.insert(name, std::fs::read_to_string(path).unwrap());
        }
    }
}

const LINES: [&str; 8] = [
    "rm huge",
    "rm -r sub; echo x > made",
    "rm -rf OUTSIDE/o",
    "rm OUTSIDE/o/deep/two.txt huge",
    "python3 del.py",
    "git branch -q -D side; git tag -d v1",
    "git stash drop -q",
    "git reset -q --hard v1; git branch -q -f side HEAD; rm sub/huge; echo y > a.txt",
];

#[test]
fn the_way_back_of_an_undo_takes_away_again_what_came_from_the_quarantine() {
    for line in LINES {
        for way in [&["undo"][..], &["rewind", "--to", "0", "--files"], &["rewind", "--to", "0"]] {
            let place = Place::new();
            let before = place.state();
            place.run(line);
            let after = place.state();
            assert_ne!(before, after, "{line}");
            for round in 0..2 {
                let about = format!("{line}: {way:?}: round {round}");
                let ran = place.home.clone().in_dir(place.repo.path()).args(way).run().expect_code(0);
                assert_eq!(place.state(), before, "{about}: {}", ran.stdout);
                let back = back_as_printed(&place.home, place.repo.path(), &ran.stdout).expect_code(0);
                assert_eq!(place.state(), after, "{about}: {}{}", ran.stdout, back.stdout);
            }
        }
    }
}

#[test]
fn what_somebody_changed_since_the_undo_is_not_taken_away_again() {
    let place = Place::new();
    place.run("rm huge; rm -r OUTSIDE/o");
    let at = |words: &[&str]| place.home.clone().in_dir(place.repo.path()).args(words).run();
    let undone = at(&["undo"]).expect_code(0);
    place.beside.write("o/mine.txt", "mine\n");
    let back = back_as_printed(&place.home, place.repo.path(), &undone.stdout);
    assert_eq!(back.code, 1, "{}", back.stdout);
    assert!(back.stdout.contains("somebody changed it meanwhile"), "{}", back.stdout);
    assert!(!place.repo.exists("huge"), "{}", back.stdout);
    assert_eq!(
        (place.beside.read("o/mine.txt"), place.beside.read("o/one.txt")),
        ("mine\n".to_owned(), "one\n".to_owned())
    );
    // What was taken away again comes back again.
    at(&["undo"]).expect_code(0);
    assert_eq!(place.repo.join("huge").metadata().unwrap().len(), 70 << 20);
}

#[test]
fn a_repository_that_is_made_whole_again_is_named_as_what_stays() {
    let place = Place::new();
    place.repo.write("part.py", "import os\nos.remove('.git/HEAD')\n");
    place.run("python3 part.py");
    assert!(!place.repo.exists(".git/HEAD"));
    let undone = place.home.clone().in_dir(place.repo.path()).args(["undo"]).run().expect_code(0);
    assert!(place.repo.exists(".git/HEAD"), "{}", undone.stdout);
    assert!(undone.stdout.contains("It keeps these as they are now"), "{}", undone.stdout);
    back_as_printed(&place.home, place.repo.path(), &undone.stdout).expect_code(0);
    assert!(place.repo.exists(".git/HEAD"));
}
