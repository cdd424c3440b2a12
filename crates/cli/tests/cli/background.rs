//! Lines in the background: their changes are recorded and can be undone, even after later lines.

use std::fs::File;
use std::time::Duration;

use lathe_testkit::{
    FakeAnswer, FakeModel, Fault, Lathe, Script, TempRepo, call, differing_paths, done, eventually, say,
};
use serde_json::{Value, json};

use crate::lathe;
use crate::rewinds::tree;

const LONG: Duration = Duration::from_secs(60);

fn bash(id: &str, command: &str) -> FakeAnswer {
    call(id, "bash", json!({ "command": command }))
}

/// The model takes a second for this answer.
fn slow(answer: FakeAnswer) -> FakeAnswer {
    answer.fails(1, Fault::status(503, "busy").header("retry-after", "1"))
}

fn view() -> FakeAnswer {
    call("v", "view", json!({ "path": "b.txt" }))
}

fn repo(is_git: bool) -> TempRepo {
    let files = [("a.txt", "alpha\n"), ("b.txt", "beta\n")];
    if is_git { TempRepo::with_git(&files) } else { TempRepo::new(&files) }
}

/// Runs a script, and gives the report as JSON.
fn run(repo: &TempRepo, script: Script) -> (Lathe, Value) {
    let model = FakeModel::serving(script);
    let words = ["run", "go", "--mode", "full-auto", "--output", "json"];
    let run = lathe().in_dir(repo.path()).args(words).with_model(&model);
    let ran = run.run().expect_code(0);
    (run, serde_json::from_str(&ran.stdout).unwrap())
}

fn again(run: &Lathe, repo: &TempRepo, words: &[&str]) -> lathe_testkit::FinishedLathe {
    lathe().in_dir(repo.path()).env("LATHE_HOME", run.home()).args(words.iter().copied()).run()
}

fn told(report: &Value) -> Vec<String> {
    let changes = report["changes"].as_array().unwrap().iter();
    changes.map(|change| change["path"].as_str().unwrap().to_owned()).collect()
}

/// The rest of a script.
type Rest = fn(Script) -> Script;

#[test]
fn issue_16_what_a_line_in_the_background_takes_away_comes_back() {
    let lines = [
        "rm a.txt &",
        "(sleep 0.2; rm a.txt) &",
        "(sleep 0.2; echo bg > a.txt; echo z > z.txt) &",
        "nohup python3 -c 'import os; os.remove(\"a.txt\")' > /dev/null 2>&1 &",
        "write a.txt OVER &",
        "mv a.txt c.txt &",
    ];
    let rest: [(&str, Rest); 4] = [
        ("the end", |script| script.answer(done("ok"))),
        ("the end, later", |script| script.answer(slow(done("ok")))),
        ("a view", |script| script.answer(slow(view())).answer(done("ok"))),
        ("a word", |script| script.answer(slow(say("it runs"))).answer(say("it runs"))),
    ];
    let mut taken_back = 0;
    for (number, line) in lines.iter().copied().enumerate() {
        for (way, (then, rest)) in rest.iter().enumerate() {
            let repo = repo((number + way) % 2 == 0);
            let before = tree(repo.path());
            let (run, report) = run(&repo, rest(Script::new().answer(bash("c1", line))));
            let after = tree(repo.path());
            let about = format!("{line}, then {then}: {report:#}");
            // A program that had no time to begin has changed nothing, and a busy machine gives it none. A command of the
            // agent is waited for.
            let mut changed = differing_paths(&after, &before);
            changed.sort();
            assert_eq!(told(&report), changed, "{about}");
            assert!(!changed.is_empty() || !line.starts_with("write"), "{about}");
            if changed.is_empty() {
                continue;
            }
            taken_back += 1;
            let diff = again(&run, &repo, &["diff"]).expect_code(0);
            assert!(changed.iter().all(|path| diff.stdout.contains(path)), "{about}: {}", diff.stdout);
            let shown = again(&run, &repo, &["show"]).expect_code(0);
            assert!(!shown.stdout.contains("no file was changed"), "{about}: {}", shown.stdout);
            again(&run, &repo, &["undo"]).expect_code(0);
            assert_eq!(differing_paths(&tree(repo.path()), &before), Vec::<String>::new(), "{about}");
        }
    }
    assert!(taken_back >= lines.len() * rest.len() / 2, "only {taken_back} had time to begin");
}

#[test]
fn issue_16_a_command_of_the_agent_in_the_background_happens_as_the_last_line() {
    for is_git in [true, false] {
        let repo = repo(is_git);
        let before = tree(repo.path());
        let (run, report) =
            run(&repo, Script::new().answer(bash("c1", "write a.txt OVER &")).answer(done("ok")));
        assert_eq!(std::fs::read_to_string(repo.join("a.txt")).unwrap(), "OVER", "{report:#}");
        assert_eq!(told(&report), ["a.txt"]);
        again(&run, &repo, &["undo"]).expect_code(0);
        assert_eq!(differing_paths(&tree(repo.path()), &before), Vec::<String>::new());
    }
    let repo = repo(false);
    lathe().in_dir(repo.path()).args(["shell", "-c", "write bg.txt x &"]).run().expect_code(0);
    assert_eq!(std::fs::read_to_string(repo.join("bg.txt")).unwrap(), "x");
}

#[test]
fn issue_16_the_content_before_a_process_in_the_background_outlives_a_write_of_the_same_file() {
    for write in [
        call("w", "write", json!({ "path": "a.txt", "content": "later\n" })),
        bash("w", "write a.txt later"),
        bash("w", "echo later > a.txt"),
    ] {
        let repo = repo(false);
        let before = tree(repo.path());
        let script = Script::new()
            .answer(bash("c1", "(sleep 0.2; echo bg > a.txt) &"))
            .answer(slow(call("v", "view", json!({ "path": "a.txt" }))))
            .answer(write)
            .answer(done("ok"));
        let (run, report) = run(&repo, script);
        assert_eq!(told(&report), ["a.txt"]);
        again(&run, &repo, &["rewind", "--to", "0", "--files"]).expect_code(0);
        assert_eq!(differing_paths(&tree(repo.path()), &before), Vec::<String>::new(), "{report:#}");
    }
}

#[test]
fn issue_16_a_large_file_that_a_line_in_the_background_removes_comes_back() {
    for line in ["rm huge.bin &", "(sleep 0.2; rm huge.bin) &"] {
        let repo = repo(false);
        File::create(repo.join("huge.bin")).unwrap().set_len(70 << 20).unwrap();
        let script = Script::new().answer(bash("c1", line)).answer(slow(view())).answer(done("ok"));
        let (run, report) = run(&repo, script);
        assert!(!repo.join("huge.bin").exists(), "{line}: {report:#}");
        again(&run, &repo, &["undo"]).expect_code(0);
        assert_eq!(repo.join("huge.bin").metadata().unwrap().len(), 70 << 20, "{line}");
    }
}

#[test]
fn issue_16_a_process_in_the_background_is_told_with_the_next_line_in_the_report() {
    let repo = repo(true);
    let script = Script::new()
        .answer(bash("c1", "write bg.txt x > /dev/null 2>&1 &"))
        .answer(slow(bash("c2", "wait; cat bg.txt")))
        .answer(done("ok"));
    let (run, report) = run(&repo, script);
    assert_eq!(told(&report), ["bg.txt"], "{report:#}");
    let shown = again(&run, &repo, &["show"]).expect_code(0);
    assert!(!shown.stdout.contains("no file was changed"), "{}", shown.stdout);
}

#[test]
fn issue_16_a_server_in_the_background_holds_no_run_up_and_ends_with_it() {
    let repo = repo(true);
    let line = "sleep 98341 & echo begun";
    let (_, report) = run(&repo, Script::new().answer(bash("c1", line)).answer(view()).answer(done("ok")));
    assert_eq!(told(&report), Vec::<String>::new());
    assert!(lathe_testkit::no_process_with("sleep 98341"));
}

/// No call is open then: the model was thinking.
#[test]
fn issue_16_what_a_process_in_the_background_took_away_before_a_kill_comes_back() {
    for look in [&["undo"][..], &["rewind", "--to", "0", "--files"]] {
        let repo = repo(true);
        let before = tree(repo.path());
        let line = "echo done > c.txt; (sleep 0.2; rm a.txt; sleep 98342) &";
        let silent = Fault::SilenceFirst(Duration::from_secs(3600));
        let script = Script::new().answer(bash("c1", line)).answer(done("ok").always_fails(silent));
        let model = FakeModel::serving(script);
        let words = ["run", "go", "--mode", "full-auto"];
        let run = lathe().in_dir(repo.path()).args(words).with_model(&model);
        let running = run.spawn();
        let has_note = || {
            let folders = std::fs::read_dir(run.home().join("baselines")).into_iter().flatten().flatten();
            folders.into_iter().any(|folder| folder.path().join("background").exists())
        };
        eventually(LONG, "the line is held", || has_note() && !repo.exists("a.txt"));
        running.kill9();
        running.wait();
        let shown = again(&run, &repo, &["show"]).expect_code(0).stdout;
        assert!(shown.contains("a.txt"), "{shown}");
        again(&run, &repo, look).expect_code(0);
        assert_eq!(repo.read("a.txt"), "alpha\n", "{look:?}: {shown}");
        if look[0] == "undo" {
            again(&run, &repo, look).expect_code(0);
        }
        assert_eq!(differing_paths(&tree(repo.path()), &before), Vec::<String>::new(), "{look:?}: {shown}");
    }
}
