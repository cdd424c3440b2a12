//! A repository that a line replaces, damages or takes a part of, and a workspace that is removed completely. The
//! scripts destroy nothing: they move what they remove to a folder of the test, and only where a file of the test
//! lies.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::lost::Place;
use crate::result;

/// Moves something out of the workspace, and leaves another thing in its place.
const TAKE_PY: &str = "\
import os, subprocess, sys
assert os.path.exists('marker.txt')
away, what, then = sys.argv[1:4]
what = os.path.abspath(what.replace('OWN', '.git', 1))
os.rename(what, os.path.join(away, str(len(os.listdir(away)))))
git = lambda *words: subprocess.run(['git', '-c', 'user.name=x', '-c', 'user.email=x@x', *words], check=True)
if then == 'link':
    os.symlink('nowhere', what)
elif then == 'init':
    git('init', '-q', '-b', 'fresh')
elif then == 'commit':
    git('init', '-q', '-b', 'main')
    git('add', 'a.txt')
    git('commit', '-qm', 'x')
elif then != '-':
    open(what, 'w').write(then + '\\n')
";

struct Taken {
    place: Place,
    away: TempDir,
}

impl Taken {
    fn new() -> Self {
        let place = Place::new();
        place.write("marker.txt", "of the test\n");
        place.write("take.py", TAKE_PY);
        place.write(".git/hooks/pre-push", "#!/bin/sh\n");
        place.git(&["worktree", "add", "-q", "--detach", "../tree"]);
        // Tags alone are packed so.
        place.git(&["tag", "old"]);
        place.git(&["pack-refs"]);
        place.git(&["tag", "new"]);
        Self { place, away: tempfile::tempdir().unwrap() }
    }

    /// A line that does not say what it does: one that names a place in `.git` would be denied.
    fn line(&self, what: &str, then: &str) -> String {
        let what = what.replacen(".git", "OWN", 1);
        format!("python3 take.py {} {what} '{then}'", self.away.path().display())
    }

    /// All that git knows, and what lies in `.git` for people.
    fn known(&self) -> Vec<String> {
        let mut known = self.place.known();
        known.push(self.place.git(&["for-each-ref"]));
        known.push(self.place.git(&["worktree", "list", "--porcelain"]));
        for name in ["hooks/pre-push", "info/exclude", "description", "logs/HEAD", "logs/refs/heads/main"] {
            known.push(std::fs::read_to_string(self.place.repo().join(".git").join(name)).unwrap());
        }
        known
    }

    fn is_whole(&self) {
        self.place.git(&["fsck", "--full", "--strict", "--no-dangling", "--no-progress"]);
    }

    fn lathe(&self, home: &Path, words: &[&str]) -> lathe_testkit::FinishedLathe {
        self.place.lathe().env("LATHE_HOME", home).args(words).run()
    }
}

#[test]
fn a_repository_in_the_place_of_another_is_noticed_and_undo_brings_the_first_back() {
    for then in ["init", "commit"] {
        let taken = Taken::new();
        let (tree, known) = (taken.place.tree(), taken.known());
        let (run, events) = taken.place.run("full-auto", &[&taken.line(".git", then)]);
        let told = result(&events, "c0");
        assert!(told.contains("was replaced by another"), "{then}: {told}");
        let undone = taken.lathe(&run.home(), &["undo"]);
        assert_eq!(undone.code, 0, "{then}: {}{}", undone.stdout, undone.stderr);
        taken.is_whole();
        assert_eq!((taken.place.tree(), taken.known()), (tree, known), "{then}");
    }
}

#[test]
fn what_a_line_leaves_in_the_place_of_git_s_own_is_its_doing() {
    for (what, then) in [
        (".git", "nothing"),
        (".git", "link"),
        (".git/index", "garbage"),
        (".git/index", "-"),
        (".git/config", "[core]"),
        (".git/packed-refs", "-"),
        (".git/packed-refs", "garbage"),
        (".git/worktrees", "-"),
        (".git/worktrees/tree/HEAD", "-"),
        (".git/refs/tags", "-"),
        (".git/HEAD", "garbage"),
        (".git/refs/heads/side", "garbage"),
        (".git/refs/heads/side", "0123456789012345678901234567890123456789"),
        (".git/refs/heads/side", "-"),
        (".git/refs/stash", "-"),
        (".git/logs", "-"),
        (".git/hooks", "-"),
        (".git/info", "-"),
        (".git/description", "-"),
    ] {
        let taken = Taken::new();
        let (tree, known) = (taken.place.tree(), taken.known());
        let (run, events) = taken.place.run("full-auto", &[&taken.line(what, then)]);
        let told = result(&events, "c0");
        assert!(told.contains("A copy from before the line is kept"), "{what} {then}: {told}");
        let undone = taken.lathe(&run.home(), &["undo"]);
        assert_eq!(undone.code, 0, "{what} {then}: {}{}", undone.stdout, undone.stderr);
        taken.is_whole();
        assert_eq!((taken.place.tree(), taken.known()), (tree, known), "{what} {then}");
    }
}

#[test]
fn the_workspace_itself_comes_back() {
    let taken = Taken::new();
    let (tree, known) = (taken.place.tree(), taken.known());
    let (run, events) = taken.place.run("full-auto", &[&taken.line(".", "-")]);
    assert!(!taken.place.repo().exists(), "{events:#?}");
    let above = taken.place.repo().parent().unwrap().to_owned();
    for words in [&["undo", "--preview"][..], &["undo"]] {
        let undo = taken.place.lathe().in_dir(&above).env("LATHE_HOME", run.home()).args(words);
        let undone = undo.run();
        assert_eq!(undone.code, 0, "{words:?}: {}{}", undone.stdout, undone.stderr);
        assert!(undone.stdout.contains("a.txt"), "{words:?}: {}", undone.stdout);
    }
    taken.is_whole();
    assert_eq!((taken.place.tree(), taken.known()), (tree, known));
    // The folder that was made again is the session's own from here on.
    let rewound = taken.lathe(&run.home(), &["rewind", "--to", "0", "--files"]);
    assert_eq!(rewound.code, 0, "{}{}", rewound.stdout, rewound.stderr);
}

#[test]
fn a_repository_that_is_lost_twice_comes_back_twice() {
    let taken = Taken::new();
    let (tree, known) = (taken.place.tree(), taken.known());
    let (run, _) = taken.place.run("full-auto", &[&taken.line(".git", "-")]);
    let home = run.home();
    taken.lathe(&home, &["shell", "-c", "git init -q -b fresh"]).expect_code(0);
    taken.lathe(&home, &["shell", "-c", &taken.line(".git", "-")]).expect_code(0);
    let second = taken.lathe(&home, &["quarantine", "restore"]);
    assert_eq!(second.code, 0, "{}{}", second.stdout, second.stderr);
    assert_eq!(taken.place.git(&["symbolic-ref", "HEAD"]), "refs/heads/fresh\n");
    let first = taken.lathe(&home, &["undo"]);
    assert_eq!(first.code, 0, "{}{}", first.stdout, first.stderr);
    taken.is_whole();
    assert_eq!((taken.place.tree(), taken.known()), (tree, known));
    // What had to make room is kept too.
    let kept: Value =
        serde_json::from_str(&taken.lathe(&home, &["quarantine", "list", "--json"]).stdout).unwrap();
    assert_eq!(kept.as_array().map(Vec::len), Some(1), "{kept:#}");
}

#[test]
fn what_is_kept_of_another_folder_is_not_put_back_without_its_id() {
    let taken = Taken::new();
    let (run, _) = taken.place.run("full-auto", &[&taken.line(".git", "-")]);
    let beside = taken.place.repo().parent().unwrap().join("beside");
    let restore = || taken.place.lathe().env("LATHE_HOME", run.home()).args(["quarantine", "restore"]);
    let elsewhere = restore().in_dir(beside).run();
    assert_ne!(elsewhere.code, 0);
    assert!(elsewhere.stderr.contains("no entry for this folder"), "{}", elsewhere.stderr);
    assert!(!taken.place.repo().join(".git").exists());
    restore().run().expect_code(0);
    taken.is_whole();
}
