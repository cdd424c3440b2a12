//! Lines that hide from analysis what they remove. Each runs in a repository that the test made, and only where a
//! file of the test lies next to it.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::bodies;
use crate::lost::Place;
use crate::result;

/// Takes everything away that is in its folder, if that is the test's.
const CLEAN_PY: &str = "\
import os, shutil
assert os.path.exists('marker.txt')
for name in os.listdir('.'):
    if os.path.isdir(name) and not os.path.islink(name):
        shutil.rmtree(name)
    else:
        os.remove(name)
";

const CLEAN_SH: &str = "\
test -e marker.txt || exit 1
shopt -s dotglob
rm -rf -- ./*
";

/// Takes one part of `.git` away, or spoils it.
const PART_PY: &str = "\
import os, shutil, sys
assert os.path.exists('marker.txt')
part = os.path.join('.git', sys.argv[1])
if len(sys.argv) > 2:
    open(part, 'w').close()
elif os.path.isdir(part):
    shutil.rmtree(part)
else:
    os.remove(part)
";

const LINES: [&str; 5] = [
    "test -e marker.txt && rm -rf $(ls -A)",
    "test -e marker.txt && ls -A | xargs rm -rf",
    "python3 clean.py",
    "bash clean.sh",
    "rm -f other.txt; bash clean.sh",
];

impl Place {
    fn with_scripts() -> Self {
        let place = Self::new();
        place.add_scripts();
        place
    }

    fn add_scripts(&self) {
        for (name, text) in [
            ("marker.txt", "of the test\n"),
            ("clean.py", CLEAN_PY),
            ("clean.sh", CLEAN_SH),
            ("part.py", PART_PY),
        ] {
            self.write(name, text);
        }
    }

    /// All that git knows: commits, names, index, what is not committed, settings.
    pub(crate) fn known(&self) -> Vec<String> {
        [
            &["log", "--all", "--format=%H %s"][..],
            &["ls-files", "-s"],
            &["status", "--porcelain", "--ignored"],
            &["stash", "list", "--format=%H %gs"],
            &["reflog", "--format=%H %gs"],
            &["config", "--local", "--list"],
            &["symbolic-ref", "HEAD"],
        ]
        .into_iter()
        .map(|words| self.git(words))
        .collect()
    }

    fn is_whole(&self) {
        self.git(&["fsck", "--full", "--strict", "--no-dangling", "--no-progress"]);
    }

    fn entries(&self, home: &Path) -> Vec<Value> {
        let listed = self.lathe().env("LATHE_HOME", home).args(["quarantine", "list", "--json"]).run();
        serde_json::from_str(&listed.expect_code(0).stdout).unwrap()
    }
}

#[test]
fn what_a_hidden_line_takes_away_comes_back_by_undo_with_the_repository() {
    for line in LINES {
        let place = Place::with_scripts();
        let (before, known) = (place.tree(), place.known());
        let (run, events) = place.run("full-auto", &[line]);
        assert_eq!(std::fs::read_dir(place.repo()).unwrap().count(), 0, "{line}: {events:#?}");
        let told = result(&events, "c0");
        assert!(told.contains(".git is gone. A copy from before the line is kept"), "{line}: {told}");
        assert_eq!(bodies(&events, "call_finished")[0]["not_undoable"], Value::Null, "{line}");
        let undone = place.lathe().env("LATHE_HOME", run.home()).arg("undo").run();
        assert_eq!(undone.code, 0, "{line}: {}{}", undone.stdout, undone.stderr);
        place.is_whole();
        assert_eq!(place.tree(), before, "{line}");
        assert_eq!(place.known(), known, "{line}");
        assert_eq!(place.entries(&run.home()), Vec::<Value>::new(), "{line}");
    }
}

#[test]
fn the_repository_alone_comes_back_from_the_quarantine_and_by_rewind() {
    for way in [&["quarantine", "restore"][..], &["rewind", "--to", "0"]] {
        let place = Place::with_scripts();
        let (before, known) = (place.tree(), place.known());
        let (run, _) = place.run("full-auto", &["bash clean.sh"]);
        let mut words: Vec<String> = way.iter().map(|word| (*word).to_owned()).collect();
        if way[0] == "rewind" {
            let sessions = place.lathe().env("LATHE_HOME", run.home()).args(["sessions", "--json"]).run();
            let sessions: Value = serde_json::from_str(&sessions.expect_code(0).stdout).unwrap();
            words.insert(1, sessions[0]["id"].as_str().unwrap().to_owned());
        }
        let back = place.lathe().env("LATHE_HOME", run.home()).args(&words).run();
        assert_eq!(back.code, 0, "{way:?}: {}{}", back.stdout, back.stderr);
        place.is_whole();
        if way[0] == "rewind" {
            assert_eq!((place.tree(), place.known()), (before, known));
        } else {
            // Files are the journal's: undo brings them.
            place.lathe().env("LATHE_HOME", run.home()).arg("undo").run().expect_code(0);
            assert_eq!(place.known(), known);
        }
    }
}

#[test]
fn a_part_that_is_taken_away_or_spoiled_comes_back() {
    let object = |place: &Place| {
        let tree = place.git(&["rev-parse", "HEAD^{tree}"]);
        format!("objects/{}", &tree[..2])
    };
    let parts = ["HEAD", "refs", "objects", "config", "HEAD spoil", "config spoil", "refs/heads", "OBJECT"];
    for part in parts {
        let place = Place::with_scripts();
        let known = place.known();
        let part = part.replace("OBJECT", &object(&place));
        // What comes after does not make the copy that of a broken repository.
        let line = format!("python3 part.py {part}");
        let (run, events) = place.run("full-auto", &[line.as_str(), "python3 -c 'print(1)'"]);
        let told = result(&events, "c0");
        assert!(told.contains("lathe quarantine restore "), "{part}: {told}");
        assert_eq!(place.entries(&run.home()).len(), 1, "{part}");
        let back = place.lathe().env("LATHE_HOME", run.home()).args(["quarantine", "restore"]).run();
        assert_eq!(back.code, 0, "{part}: {}{}", back.stdout, back.stderr);
        place.is_whole();
        assert_eq!(place.known(), known, "{part}");
    }
}

#[test]
fn a_persons_hidden_line_loses_no_repository_either() {
    let place = Place::with_scripts();
    let log = place.git(&["log", "--all", "--format=%H"]);
    let shell = place.lathe().args(["shell", "-c", "bash clean.sh"]);
    let ran = shell.run().expect_code(0);
    assert!(ran.stderr.contains(".git is gone. A copy from before the line is kept"), "{}", ran.stderr);
    place.lathe().env("LATHE_HOME", shell.home()).args(["quarantine", "restore"]).run().expect_code(0);
    place.is_whole();
    assert_eq!(place.git(&["log", "--all", "--format=%H"]), log);
}

#[test]
fn what_git_does_by_itself_is_no_loss_and_undo_leaves_commits() {
    let place = Place::with_scripts();
    let lines = [
        "git add -A && git commit -qm third",
        "git checkout -q side && git checkout -q main",
        "git gc -q --prune=now",
        "git repack -qad",
        "git pack-refs --all",
        "git commit -q --allow-empty -m fourth && git rebase -q HEAD~1",
        "git checkout -q -b other && git branch -q -D side",
        "git prune --expire=now",
        "git worktree add -q ../tree",
        "git checkout -q --orphan bare",
        "git checkout -q -f main",
        "bash -c 'echo more >> a.txt; git commit -qam fifth'",
    ];
    let (run, events) = place.run("full-auto", &lines);
    for (at, line) in lines.iter().enumerate() {
        let told = result(&events, &format!("c{at}"));
        assert!(!told.contains("quarantine") && told.contains("exit code 0"), "{line}: {told}");
    }
    let kept = place.entries(&run.home());
    assert!(kept.iter().all(|kept| kept["repositories"] == Value::Null), "{kept:#?}");
    let (log, file) = (place.git(&["log", "--format=%H"]), "a.txt");
    let text = std::fs::read_to_string(place.repo().join(file)).unwrap();
    place.lathe().env("LATHE_HOME", run.home()).arg("undo").run();
    assert_ne!(std::fs::read_to_string(place.repo().join(file)).unwrap(), text, "the files went back");
    assert_eq!(place.git(&["log", "--format=%H"]), log, "commits stay");
    place.is_whole();
}

#[test]
fn the_file_of_a_work_tree_and_the_modules_of_a_repository_come_back() {
    // A work tree: `.git` is a file.
    let place = Place::with_scripts();
    let other = place.base.join("work/other");
    place.git(&["worktree", "add", "-q", other.to_str().unwrap()]);
    for name in ["marker.txt", "clean.sh"] {
        std::fs::copy(place.repo().join(name), other.join(name)).unwrap();
    }
    let status = |folder: &Path| {
        let ran = Command::new("git").args(["status", "--porcelain"]).current_dir(folder).output().unwrap();
        (ran.status.success(), String::from_utf8(ran.stdout).unwrap())
    };
    let before = status(&other);
    let shell = place.lathe().in_dir(&other).args(["shell", "-c", "bash clean.sh"]);
    shell.run().expect_code(0);
    assert!(!other.join(".git").exists());
    let restore = place.lathe().in_dir(&other).env("LATHE_HOME", shell.home());
    restore.args(["quarantine", "restore"]).run().expect_code(0);
    assert!(status(&other).0 && before.0);

    // A repository with a module, the data of which is in `.git/modules`.
    let place = Place::with_scripts();
    let outside = Place::new();
    let from = outside.repo().display().to_string();
    place.git(&["-c", "protocol.file.allow=always", "submodule", "add", "-q", &from, "module"]);
    place.git(&["commit", "-qam", "with a module"]);
    let module = place.repo().join("module");
    let (tree, known) = (place.tree(), place.known());
    let inner = status(&module);
    assert!(module.join(".git").is_file() && inner.0);
    let (run, events) = place.run("full-auto", &["bash clean.sh"]);
    assert!(!place.repo().join(".git").exists(), "{events:#?}");
    let undone = place.lathe().env("LATHE_HOME", run.home()).arg("undo").run();
    assert_eq!(undone.code, 0, "{}{}", undone.stdout, undone.stderr);
    place.is_whole();
    assert_eq!((place.tree(), place.known(), status(&module)), (tree, known, inner));
}
