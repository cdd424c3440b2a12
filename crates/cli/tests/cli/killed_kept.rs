//! Files that only the quarantine holds are found after `kill -9` too.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use lathe_testkit::{FakeModel, Lathe, Script, Signal, TempRepo, call, done, eventually};
use serde_json::json;

use crate::{lathe, run_in};

const LONG: Duration = Duration::from_secs(60);

fn at_home(run: &Lathe) -> Lathe {
    lathe().env("LATHE_HOME", run.home())
}

/// Kills a program as soon as its line has made the file `begun`.
fn killed(command: &Lathe, repo: &TempRepo) {
    let running = command.spawn();
    eventually(LONG, "the line runs", || repo.exists("begun"));
    running.kill(Signal::Kill);
    let _ = running.wait();
}

/// Kills a run in the middle of a line; `undo` must say this, and `show` must not say that nothing was changed.
fn undone(repo: &TempRepo, line: &str, said: &str) {
    let line = format!("{line}; touch begun; sleep 98610");
    let model = FakeModel::serving(
        Script::new().answer(call("c1", "bash", json!({ "command": line }))).answer(done("ok")),
    );
    let run = run_in(repo.path(), &model);
    killed(&run, repo);
    let shown = at_home(&run).in_dir(repo.path()).arg("show").run().expect_code(0);
    assert!(!shown.stdout.contains("No file was changed by it"), "{}", shown.stdout);
    let undone = at_home(&run).in_dir(repo.path()).arg("undo").run().expect_code(0);
    assert!(undone.stdout.contains(said), "{}{}", undone.stdout, undone.stderr);
}

#[test]
fn what_a_persons_line_took_away_is_listed_and_put_back() {
    let repo = TempRepo::new(&[("me.txt", "keep\n")]);
    let shell = lathe().in_dir(repo.path()).args(["shell", "-c", "rm me.txt; touch begun; sleep 98620"]);
    killed(&shell, &repo);
    let at = |words: &[&str]| at_home(&shell).in_dir(repo.path()).args(words).run().expect_code(0).stdout;
    let listed = at(&["quarantine", "list"]);
    assert!(listed.contains("me.txt"), "{listed}");
    at(&["quarantine", "restore"]);
    assert_eq!(repo.read("me.txt"), "keep\n");
}

#[test]
fn a_file_too_large_for_a_copy_comes_back() {
    let repo = TempRepo::new(&[]);
    let huge = repo.join("huge");
    File::create(&huge).unwrap().set_len(70 << 20).unwrap();
    undone(&repo, "rm huge", "huge");
    assert_eq!(huge.metadata().unwrap().len(), 70 << 20);
}

#[test]
fn a_file_outside_of_the_workspace_comes_back() {
    let (repo, other) = (TempRepo::new(&[]), TempRepo::new(&[("o.txt", "outside\n")]));
    undone(&repo, &format!("rm {}", other.join("o.txt").display()), "o.txt");
    assert_eq!(other.read("o.txt"), "outside\n");
}

#[test]
fn a_repository_that_a_script_deletes_comes_back() {
    let script = "import glob, shutil\nfor d in glob.glob('.gi*'): shutil.rmtree(d)\n";
    let repo = TempRepo::new(&[("a.txt", "a\n"), ("del.py", script)]);
    let git = |words: &[&str]| {
        let own = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
        let ran = Command::new("git").args(own).args(words).current_dir(repo.path()).output().unwrap();
        assert!(ran.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "first"]);
    let commit = git(&["rev-parse", "HEAD"]);
    undone(&repo, "python3 del.py", ".git");
    assert!(Path::new(&repo.join(".git")).is_dir());
    assert_eq!(git(&["rev-parse", "HEAD"]), commit);
}

#[test]
fn branches_tags_and_stashes_that_a_killed_line_dropped_are_told_and_come_back() {
    for look in
        [&["show"][..], &["diff"], &["quarantine", "list"], &["undo", "--preview"], &["rewind", "--to", "0"]]
    {
        let repo = TempRepo::with_git(&[("a.txt", "a\n")]);
        repo.git(&["branch", "side"]);
        repo.git(&["tag", "v1"]);
        repo.write("a.txt", "stashed\n");
        repo.git(&["stash", "push", "-q", "-m", "work"]);
        let names = || repo.git(&["for-each-ref", "refs/heads", "refs/tags", "refs/stash"]);
        let before = names();
        let line = "git branch -q -D side; git tag -d v1; git stash drop -q; touch begun; sleep 98640";
        let model = FakeModel::serving(
            Script::new().answer(call("c1", "bash", json!({ "command": line }))).answer(done("ok")),
        );
        let run = run_in(repo.path(), &model);
        killed(&run, &repo);
        assert!(!names().contains("side") && !names().contains("v1"), "{}", names());
        let at = |words: &[&str]| at_home(&run).in_dir(repo.path()).args(words).run().expect_code(0).stdout;
        let first = at(look);
        // A rewind leaves the conversation that tells it.
        let shown = if look[0] == "rewind" { first.clone() } else { at(&["show"]) };
        for name in ["refs/heads/side", "refs/tags/v1", "work"] {
            assert!(look == ["diff"] || first.contains(name), "{look:?}: {name}: {first}");
            assert!(shown.contains(name), "{look:?}: {name}: {shown}");
        }
        if look != ["rewind", "--to", "0"] {
            at(&["undo"]);
        }
        assert_eq!(names(), before, "{look:?}");
        // Nothing of ours is left among git's names once all is back.
        eventually(LONG, "the pins are gone", || repo.git(&["for-each-ref", "refs/lathe"]).is_empty());
        assert_eq!(repo.git(&["stash", "list", "--format=%gs"]).trim(), "On main: work", "{look:?}");
    }
}

/// A name that is not UTF-8, and one with a line feed.
#[test]
fn names_of_any_bytes_are_kept_and_printed_in_one_line() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let (repo, other) = (TempRepo::new(&[]), TempRepo::new(&[("line\nFAKE", "feed\n")]));
    let odd = other.path().join(OsStr::from_bytes(b"bad\xff"));
    std::fs::write(&odd, "odd\n").unwrap();
    let line = format!("rm -f {}/*", other.path().display());
    let model = FakeModel::serving(
        Script::new().answer(call("c1", "bash", json!({ "command": line }))).answer(done("ok")),
    );
    let run = run_in(repo.path(), &model);
    run.run().expect_code(0);
    assert!(!odd.exists() && !other.exists("line\nFAKE"));
    let undone = at_home(&run).in_dir(repo.path()).arg("undo").run().expect_code(0).stdout;
    assert_eq!(std::fs::read_to_string(&odd).unwrap(), "odd\n");
    assert_eq!(other.read("line\nFAKE"), "feed\n");
    assert!(undone.contains("line<U+000A>FAKE") && !undone.contains("\nFAKE"), "{undone}");
}

#[test]
fn a_file_that_another_was_moved_over_comes_back() {
    for (line, first) in [("mv -f OUT/plain OUT/over", "plain\n"), ("mv -f OUT/plain OUT/d", "plain\n")] {
        let other = TempRepo::new(&[("plain", "plain\n"), ("over", "over\n"), ("d/plain", "over\n")]);
        let repo = TempRepo::new(&[]);
        let line = line.replace("OUT", &other.path().display().to_string());
        let model = FakeModel::serving(
            Script::new().answer(call("c1", "bash", json!({ "command": line }))).answer(done("ok")),
        );
        let run = run_in(repo.path(), &model);
        run.run().expect_code(0);
        let undone = at_home(&run).in_dir(repo.path()).arg("undo").run().expect_code(0).stdout;
        let now = [other.read("plain"), other.read("over"), other.read("d/plain")];
        assert_eq!(now, [first, "over\n", "over\n"], "{line}: {undone}");
    }
}
