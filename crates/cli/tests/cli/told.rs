//! Words for a person when a call ends and by the next look: others' changes, a lost repository, what only the quarantine
//! has, which session is meant, and how long a run took.

use std::fs::File;
use std::time::Duration;

use lathe_testkit::{
    FakeModel, Fault, FinishedLathe, Lathe, Script, Signal, TempRepo, call, done, eventually, say,
};
use serde_json::{Value, json};

use crate::lathe;

const LONG: Duration = Duration::from_secs(60);

fn run(home: &Lathe, repo: &TempRepo, line: &str, output: &str) -> (Lathe, FakeModel) {
    let answer = call("c1", "bash", json!({ "command": line }));
    let model = FakeModel::serving(Script::new().answer(answer).answer(done("ok")));
    let words = ["run", "go", "--mode", "full-auto", "--output", output];
    (home.clone().in_dir(repo.path()).args(words).with_model(&model), model)
}

fn at(home: &Lathe, repo: &TempRepo, words: &[&str]) -> FinishedLathe {
    home.clone().in_dir(repo.path()).args(words).run()
}

fn json_of(ran: &FinishedLathe) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}{}", ran.stdout, ran.stderr))
}

#[test]
fn others_changes_are_told_when_the_call_ends() {
    let line =
        "echo one; echo ours > ours.txt; touch begun; while [ ! -e go ]; do sleep 0.02; done; rm begun go";
    for output in ["text", "json"] {
        let (repo, home) = (TempRepo::new(&[("theirs.txt", "before\n")]), lathe());
        let (command, _model) = run(&home, &repo, line, output);
        let running = command.spawn();
        eventually(LONG, "the line runs", || repo.exists("begun"));
        repo.write("theirs.txt", "mine\n");
        repo.write("go", "");
        let ran = running.wait().expect_code(0);
        if output == "json" {
            let told = json_of(&ran)["changed_by_others"].clone();
            assert_eq!(
                told,
                json!([repo.path().canonicalize().unwrap().join("theirs.txt")]),
                "{}",
                ran.stdout
            );
        } else {
            let told = "changed by another program or user while this ran, not by this call:";
            assert_eq!(ran.stdout.matches(told).count(), 1, "{}", ran.stdout);
            // The journal tells it once too.
            let shown = at(&home, &repo, &["show"]).expect_code(0).stdout;
            assert_eq!(
                shown.to_lowercase().matches("changed by another program or user").count(),
                1,
                "{shown}"
            );
        }
    }
}

#[test]
fn a_lost_repository_is_told_when_the_call_ends() {
    let script = "import glob, shutil\nprint('going')\nfor d in glob.glob('.gi*'): shutil.rmtree(d)\n";
    for output in ["text", "json"] {
        let (repo, home) = (TempRepo::with_git(&[("a.txt", "a\n"), ("del.py", script)]), lathe());
        let ran = run(&home, &repo, "python3 del.py", output).0.run().expect_code(0);
        let told = "brings it back";
        if output == "json" {
            let broken = json_of(&ran)["broken"].clone();
            assert!(broken[0].as_str().is_some_and(|words| words.contains(told)), "{}", ran.stdout);
        } else {
            assert!(ran.stdout.contains("A copy from before the line is kept"), "{}", ran.stdout);
        }
        let shown = at(&home, &repo, &["show"]).expect_code(0).stdout;
        assert_eq!(shown.matches("A copy from before the line is kept").count(), 1, "{shown}");
    }
}

#[test]
fn a_large_file_that_was_removed_is_among_the_changes_until_it_is_back() {
    let (repo, home, outside) = (TempRepo::new(&[]), lathe(), TempRepo::new(&[("o.txt", "o\n")]));
    File::create(repo.join("huge")).unwrap().set_len(70 << 20).unwrap();
    let line = format!("rm huge {}", outside.join("o.txt").display());
    let ran = run(&home, &repo, &line, "text").0.run().expect_code(0);
    let kept = "removed, kept in the quarantine";
    assert!(
        ran.stdout.matches(kept).count() == 2 && !ran.stdout.contains("no file was changed"),
        "{}",
        ran.stdout
    );
    let diff = at(&home, &repo, &["diff"]).expect_code(0);
    assert!(diff.stdout.contains("huge: taken away, and kept in the quarantine"), "{}", diff.stdout);
    assert!(diff.stdout.contains("o.txt: taken away"), "{}", diff.stdout);
    let rows = json_of(&at(&home, &repo, &["diff", "--json"]).expect_code(0));
    assert!(rows.as_array().unwrap().iter().all(|row| row["kept"].is_string()), "{rows}");
    at(&home, &repo, &["undo"]).expect_code(0);
    let diff = at(&home, &repo, &["diff"]).expect_code(0);
    assert!(!diff.stdout.contains("huge"), "{}", diff.stdout);
}

#[test]
fn diff_means_the_newest_session_of_this_folder_and_says_which() {
    let (here, there, home) = (TempRepo::new(&[]), TempRepo::new(&[]), lathe());
    for (repo, name) in [(&here, "here.txt"), (&there, "there.txt")] {
        run(&home, repo, &format!("echo x > {name}"), "text").0.run().expect_code(0);
    }
    let diff = at(&home, &here, &["diff"]).expect_code(0);
    assert!(diff.stdout.contains("here.txt") && !diff.stdout.contains("there.txt"), "{}", diff.stdout);
    let folder = here.path().canonicalize().unwrap();
    assert!(diff.stderr.contains(folder.to_str().unwrap()), "{}", diff.stderr);
    let nowhere = at(&home, &TempRepo::new(&[]), &["diff"]);
    assert!(nowhere.code != 0 && nowhere.stderr.contains("no session worked in"), "{}", nowhere.stderr);
}

#[test]
fn the_time_of_a_run_is_its_own() {
    let (repo, home) = (TempRepo::new(&[]), lathe());
    run(&home, &repo, "echo x > f", "text").0.run().expect_code(0);
    let seconds = || {
        let shown = at(&home, &repo, &["show"]).expect_code(0).stdout;
        let line = shown.lines().find(|line| line.ends_with(" s") && line.contains(" · ")).map(str::to_owned);
        line.unwrap_or_else(|| panic!("{shown}"))
    };
    let before = seconds();
    // The clock goes on between the run and what is done with its session.
    let began = std::time::Instant::now();
    eventually(LONG, "some time", || began.elapsed() > Duration::from_millis(300));
    at(&home, &repo, &["undo"]).expect_code(0);
    at(&home, &repo, &["rewind", "--to", "1", "--files"]).expect_code(0);
    assert_eq!(seconds().split(" · ").last(), before.split(" · ").last());
}

#[test]
fn a_run_that_never_began_is_not_called_one_that_changed_nothing() {
    let (repo, home) = (TempRepo::new(&[]), lathe());
    let refused = Script::new().answer(say("never").always_fails(Fault::status(401, "no such key")));
    let model = FakeModel::serving(refused);
    let ran = home.clone().in_dir(repo.path()).args(["run", "go"]).with_model(&model).run();
    for text in [ran.stdout, at(&home, &repo, &["show"]).expect_code(0).stdout] {
        assert!(text.contains("the model gave no answer, so nothing was done"), "{text}");
        assert!(!text.contains("no file was changed"), "{text}");
    }
}

#[test]
fn a_cancelled_line_of_a_person_says_what_is_kept() {
    let repo = TempRepo::new(&[("me.txt", "keep\n")]);
    let shell = lathe().in_dir(repo.path()).args(["shell", "-c", "rm me.txt; touch begun; sleep 98630"]);
    let running = shell.spawn();
    eventually(LONG, "the line runs", || repo.exists("begun"));
    running.kill(Signal::Interrupt);
    let ran = running.wait();
    assert_eq!(ran.code, 130, "{}", ran.stderr);
    let hint = ran.stderr.split('`').find(|part| part.starts_with("lathe quarantine restore"));
    let hint = hint.unwrap_or_else(|| panic!("{}", ran.stderr));
    lathe()
        .env("LATHE_HOME", shell.home())
        .in_dir(repo.path())
        .args(hint.split(' ').skip(1))
        .run()
        .expect_code(0);
    assert_eq!(repo.read("me.txt"), "keep\n");
}
