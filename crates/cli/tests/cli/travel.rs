//! Fork, watch, replay, several tasks, interactive.

use std::time::Duration;

use lathe_testkit::{FakeModel, Lathe, Script, Signal, TempRepo, call, done, eventually, say, size};
use serde_json::{Value, json};

use crate::{bodies, lathe, run_in};

fn at_home(lathe: &Lathe) -> Lathe {
    crate::lathe().env("LATHE_HOME", lathe.home())
}

/// A live replay in the mode of the sessions here, which has to be asked for again.
const LIVE: [&str; 5] = ["replay", "--tools", "live", "--mode", "full-auto"];

fn newest(home: &Lathe) -> String {
    let listed = at_home(home).args(["sessions", "--json"]).run().expect_code(0);
    let sessions: Value = serde_json::from_str(&listed.stdout).unwrap();
    sessions[0]["id"].as_str().unwrap().to_owned()
}

fn events_of(home: &Lathe, id: &str) -> Vec<Value> {
    let shown = at_home(home).args(["show", id, "--format", "json"]).run().expect_code(0);
    serde_json::from_str::<Value>(&shown.stdout).unwrap()["events"].as_array().unwrap().clone()
}

/// Sessions of every kind there is: done, answered, failed, denied, cancelled by steps, interrupted, two tasks, both toolsets.
fn sessions_of_every_kind() -> Vec<(Lathe, TempRepo)> {
    let bash = |id: &str, command: &str| call(id, "bash", json!({ "command": command }));
    let scripts: Vec<(&str, Script, &[&str])> = vec![
        ("done", Script::new().answer(bash("c1", "echo hi; date; echo $$")).answer(done("ok")), &[]),
        ("answered", Script::new().answer(say("hm")).answer(say("that is it")), &[]),
        ("empty", Script::new().answer(say("x").fails(2, lathe_testkit::Fault::EmptyAnswer)), &[]),
        ("denied", Script::repeat(3, |k| bash(&format!("c{k}"), "touch x")), &["--mode", "plan"]),
        ("steps", Script::repeat(3, |k| bash(&format!("c{k}"), "true")), &["--max-steps", "3"]),
        ("failures", Script::new().answer(call("c1", "nope", json!({})).call("c2", "view", json!({ "path": "none" }))).answer(done("ok")), &[]),
        ("refused", Script::new().answer(done("x").always_fails(lathe_testkit::Fault::status(400, "no"))), &[]),
        ("parallel", Script::new().answer(call("v1", "view", json!({ "path": "a.txt" })).call("v2", "view", json!({ "path": "." })).call("b", "bash", json!({ "command": "exit 3" }))).answer(done("ok")), &[]),
        ("edits", Script::new().answer(call("w", "write", json!({ "path": "n.txt", "content": "1\n" }))).answer(call("e", "edit", json!({ "path": "n.txt", "old_str": "1", "new_str": "2" }))).answer(done("ok")), &[]),
        ("trae", Script::new().answer(call("t", "sequentialthinking", json!({ "thought": "t", "thought_number": 1, "total_thoughts": 1, "next_thought_needed": false }))).answer(say("done").call("d", "task_done", json!({}))), &["--toolset", "trae"]),
    ];
    scripts
        .into_iter()
        .map(|(name, script, flags)| {
            let repo = TempRepo::new(&[("a.txt", "alpha\n")]);
            let model = FakeModel::serving(script);
            // A mode given twice is an error, so the plain flags are written out here.
            let mut run =
                lathe().in_dir(repo.path()).args(["run", name, "--output", "stream-json"]).with_model(&model);
            if !flags.contains(&"--mode") {
                run = run.args(["--mode", "full-auto"]);
            }
            let run = run.args(flags.iter().copied());
            run.run();
            (run, repo)
        })
        .collect()
}

#[test]
fn a_replay_with_recorded_tools_is_exact_and_touches_nothing() {
    let mut sessions = sessions_of_every_kind();
    sessions.extend(sessions_of_every_kind());
    assert_eq!(sessions.len(), 20);
    for (run, repo) in &sessions {
        std::fs::remove_dir_all(repo.path()).unwrap();
        let replayed = at_home(run).arg("replay").run().expect_code(0);
        assert!(replayed.stdout.ends_with("0 divergences\n"), "{}", replayed.stdout);
        assert!(!repo.path().exists());
    }
}

#[test]
fn a_replay_with_live_tools_says_where_the_world_differs() {
    let repo = TempRepo::new(&[("a.txt", "alpha\n")]);
    let script = Script::new()
        .answer(call("c1", "bash", json!({ "command": "cat a.txt /tmp/lathe-world-file 2>/dev/null; pwd" })))
        .answer(call("c2", "edit", json!({ "path": "a.txt", "old_str": "alpha", "new_str": "beta" })))
        .answer(done("ok"));
    let model = FakeModel::serving(script);
    let run = run_in(repo.path(), &model);
    run.run().expect_code(0);
    let temporary = TempRepo::new(&[]);
    let copies = || std::fs::read_dir(temporary.path()).unwrap().count();
    let replay = |run: &Lathe| at_home(run).args(LIVE).env("TMPDIR", temporary.path());
    let same = replay(&run).run().expect_code(0);
    let end = "3 steps run again in a copy of the workspace, 0 differences\n";
    assert!(same.stdout.ends_with(end) && copies() == 0, "{}", same.stdout);
    // The workspace itself was not touched, and the copy begins where the run began.
    assert_eq!(repo.read("a.txt"), "beta\n");
    repo.write("a.txt", "beta\nand more\n");
    let other = replay(&run).run().expect_code(0);
    // What the user added later is not part of the run: the recorded content is put back first.
    assert!(other.stdout.contains("0 differences"), "{}", other.stdout);
    repo.write("b.txt", "new\n");
    let listing = Script::new().answer(call("c1", "bash", json!({ "command": "ls" }))).answer(done("ok"));
    let model = FakeModel::serving(listing);
    let run = run_in(repo.path(), &model);
    run.run().expect_code(0);
    repo.write("c.txt", "newer\n");
    assert_eq!(copies(), 0);
    let differs = replay(&run).run().expect_code(1);
    assert!(differs.stdout.contains("step 2: result of call c1 (bash) differs"), "{}", differs.stdout);
    assert!(
        differs.stdout.contains("c.txt") && differs.stdout.contains("1 difference"),
        "{}",
        differs.stdout
    );
    // The differences can be inspected.
    let kept =
        differs.stdout.lines().last().unwrap().strip_prefix("the copy is kept for inspection: ").unwrap();
    assert!(std::path::Path::new(kept).join("c.txt").exists() && copies() == 1);
}

#[test]
fn a_replay_that_is_stopped_leaves_no_copy() {
    let (repo, outside, temporary) =
        (TempRepo::new(&[]), TempRepo::new(&[("quick", "")]), TempRepo::new(&[]));
    let (began, quick) = (outside.join("began"), outside.join("quick"));
    let command = format!("touch {}; test -e {} || sleep 60", began.display(), quick.display());
    let model = FakeModel::serving(
        Script::new().answer(call("c1", "bash", json!({ "command": command }))).answer(done("ok")),
    );
    // The same temporary folder both times: a path below it is another one in another.
    let run = run_in(repo.path(), &model).env("TMPDIR", temporary.path());
    run.run().expect_code(0);
    for file in [&began, &quick] {
        std::fs::remove_file(file).unwrap();
    }
    let replaying = at_home(&run).args(LIVE).env("TMPDIR", temporary.path()).spawn();
    eventually(Duration::from_secs(20), "the command runs again", || began.exists());
    replaying.kill(Signal::Interrupt);
    replaying.wait().expect_code(130);
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
}

#[test]
fn a_session_without_a_task_is_told_from_one_that_is_finished() {
    let repo = TempRepo::new(&[]);
    let model = FakeModel::serving(Script::new().answer(done("ok")));
    let talk = lathe().in_dir(repo.path()).arg("interactive").with_model(&model);
    talk.run().expect_code(0);
    let id = newest(&talk);
    let resume = || at_home(&talk).arg("resume").with_model(&model).run().expect_code(2);
    assert_eq!(
        resume().stderr,
        format!("This session has no task yet. Give it one: lathe resume {id} \"...\"\n")
    );
    at_home(&talk).args(["resume", &id, "do it"]).with_model(&model).run().expect_code(0);
    assert!(resume().stderr.starts_with("The last task of this session is finished. "));
}

#[test]
fn a_search_finds_every_task_of_a_session() {
    let repo = TempRepo::new(&[]);
    let model = FakeModel::serving(Script::repeat(3, |_| say("Well.")));
    let long = format!("begin {} needle", "and go on ".repeat(20));
    let talk = lathe().in_dir(repo.path()).arg("interactive").with_model(&model);
    talk.clone().stdin(format!("{long}\nThe Second task\nexit\n")).run().expect_code(0);
    let found = |text: &str| {
        let listed = at_home(&talk).args(["sessions", "--json", "--search", text]).run().expect_code(0);
        serde_json::from_str::<Value>(&listed.stdout).unwrap().as_array().unwrap().len()
    };
    assert_eq!(["begin", "NEEDLE", "second", "Well", "third"].map(found), [1, 1, 1, 0, 0]);
}

#[test]
fn a_fork_goes_another_way_and_both_sessions_stay() {
    let repo = TempRepo::new(&[("a.txt", "alpha\n")]);
    let model = FakeModel::serving(
        Script::repeat(4, |k| call(&format!("c{k}"), "bash", json!({ "command": format!("echo {k}") })))
            .answer(done("first")),
    );
    let run = run_in(repo.path(), &model);
    run.run().expect_code(0);
    let origin = newest(&run);
    let before = events_of(&run, &origin);
    let forked = at_home(&run).args(["fork", &origin, "--at", "3", "--json"]).run().expect_code(0);
    let fork = serde_json::from_str::<Value>(&forked.stdout).unwrap()["id"].as_str().unwrap().to_owned();
    // Its next answer is the fourth: the script differs from there on.
    let other = FakeModel::serving(Script::repeat(3, |_| say("unused")).answer(done("second")));
    let resumed =
        at_home(&run).args(["resume", &fork, "another task", "--output", "stream-json"]).with_model(&other);
    let events = resumed.in_dir(repo.path()).run().expect_code(0).events();
    assert_eq!(other.violations(), Vec::<String>::new());
    assert_eq!(other.requests().len(), 1, "an unfinished run is closed, not gone on with");
    assert_eq!(bodies(&events, "task_finished").last().unwrap()["result"], "second");
    assert_eq!(events_of(&run, &origin), before);
    let opened = &bodies(&events, "session_opened")[0];
    assert_eq!((&opened["forked"]["from"], &opened["forked"]["at"]), (&json!(origin), &json!(3)));
    let wrong = at_home(&run).args(["fork", &origin, "--at", "99"]).run().expect_code(2);
    assert!(
        wrong.stderr.contains("error[no-such-step]: the session has no step 99: its last is 5"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn a_watcher_in_another_process_sees_every_event_also_when_it_comes_late() {
    let repo = TempRepo::new(&[]);
    let script = Script::repeat(6, |k| {
        call(&format!("c{k}"), "bash", json!({ "command": format!("echo {k}; sleep 0.1") }))
    });
    let model = FakeModel::serving(script.answer(done("ok")));
    let run = run_in(repo.path(), &model);
    let running = run.spawn();
    running.wait_for_stdout("call_started", Duration::from_secs(20));
    let early = at_home(&run).args(["watch", "--output", "stream-json"]).spawn();
    std::thread::sleep(Duration::from_millis(300));
    let late = at_home(&run).args(["watch", "--output", "stream-json"]).spawn();
    let all = running.wait().expect_code(0).events();
    assert_eq!(early.wait().expect_code(0).events(), all);
    assert_eq!(late.wait().expect_code(0).events(), all);
    let after = at_home(&run).args(["watch", "--output", "stream-json"]).run().expect_code(0);
    assert_eq!(after.events(), all);
}

#[test]
fn a_session_opened_from_a_snapshot_goes_on_as_if_it_had_been_read_whole() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let script = Script::repeat(45, |k| {
        call(&format!("a{k}"), "bash", json!({ "command": format!("echo {k}") })).call(
            &format!("b{k}"),
            "view",
            json!({ "path": "a.txt" }),
        )
    });
    let model = FakeModel::serving(script.answer(done("ok")).answer(done("second")));
    let run = run_in(repo.path(), &model);
    let events = run.run().expect_code(0).events();
    assert!(events.len() > 330, "{}: no snapshot was due", events.len());
    let again = at_home(&run)
        .args(["resume", "and more", "--mode", "full-auto"])
        .with_model(&model)
        .in_dir(repo.path());
    again.run().expect_code(0);
    assert_eq!(model.violations(), Vec::<String>::new());
    lathe_testkit::check_prefix(&model.bodies()).unwrap();
    // The digests after the snapshot fit those before it.
    let replayed = at_home(&run).arg("replay").run().expect_code(0);
    assert!(
        replayed.stdout.contains("47 requests") && replayed.stdout.ends_with("0 divergences\n"),
        "{}",
        replayed.stdout
    );
}

#[test]
fn killed_after_each_event_a_session_resumes_with_a_valid_request() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let steps = size(6, 24);
    let script = |_: ()| {
        Script::repeat(steps, |k| {
            call(&format!("a{k}"), "bash", json!({ "command": "echo x" })).call(
                &format!("b{k}"),
                "view",
                json!({ "path": "a.txt" }),
            )
        })
        // Cut inside its last step, the session is asked for that step again.
        .answer(done("ok"))
        .answer(done("ok"))
    };
    let model = FakeModel::serving(script(()));
    let run = run_in(repo.path(), &model);
    let all = run.run().expect_code(0).events();
    assert!(all.len() >= size(50, 200), "{}", all.len());
    let id = newest(&run);
    let db = run.home().join("sessions").join(format!("{id}.db"));
    let whole = std::fs::read(&db).unwrap();
    // A journal that ends after any event is what a kill at that moment leaves.
    for upto in (2..all.len()).step_by(size(3, 1)) {
        std::fs::write(&db, &whole).unwrap();
        // The mark next to it records the length of the journal; a kill leaves none that is ahead of it.
        std::fs::remove_file(db.with_extension("mark")).unwrap();
        let cut = std::process::Command::new("python3")
            .args(["-c", "import sqlite3,struct,sys,zlib; c=sqlite3.connect(sys.argv[1]); c.execute('delete from events where seq>?',(int(sys.argv[2]),)); c.execute('delete from snapshots'); c.execute('update seal set last=0, sum=?',(zlib.crc32(struct.pack('<qq',1,0)),)); c.commit(); c.execute('pragma wal_checkpoint(truncate)'); c.close()"])
            .arg(&db)
            .arg(upto.to_string())
            .status()
            .unwrap();
        assert!(cut.success());
        let model = FakeModel::serving(script(()));
        let resumed = at_home(&run)
            .args(["resume", &id, "--output", "stream-json"])
            .with_model(&model)
            .run()
            .expect_code(0);
        assert_eq!(model.violations(), Vec::<String>::new(), "cut after {upto}");
        let events = resumed.events();
        assert_eq!(events[..upto], all[..upto]);
        crate::results(&events);
        assert_eq!(bodies(&events, "task_finished").last().unwrap()["result"], "ok");
    }
}

#[test]
fn interactive_works_on_one_task_after_the_other_in_a_terminal() {
    let repo = TempRepo::new(&[("a.txt", "alpha\n")]);
    let script = Script::new()
        .answer(call("c1", "bash", json!({ "command": "echo first-output" })))
        .answer(say("The first is done."))
        .answer(call("c2", "view", json!({ "path": "a.txt" })))
        .answer(say("The second is done."))
        .answer(call("c3", "bash", json!({ "command": "echo third-output" })).call(
            "c4",
            "task_done",
            json!({ "summary": "The third is done." }),
        ));
    let model = FakeModel::serving(script);
    let trajectory = repo.join("t.json");
    let run = lathe()
        .in_dir(repo.path())
        .args(["interactive", "--mode", "full-auto"])
        .arg("--trajectory-file")
        .arg(&trajectory);
    let run = run.with_model(&model).stdin("help\nstatus\ntask one\ntask two\nclear\ntask three\nexit\n");
    let ran = run.run().expect_code(0);
    assert_eq!(model.violations(), Vec::<String>::new());
    for shown in [
        "Words",
        "task one",
        "first-output",
        "The first is done.",
        "task two",
        "view a.txt",
        "The second is done.",
        "third-output",
        "The third is done.",
        "Goodbye!",
    ] {
        assert!(ran.stdout.contains(shown) || shown == "Words", "{shown} in\n{}", ran.stdout);
    }
    for step in 1..=5 {
        assert_eq!(ran.stdout.matches(&format!("\nstep {step}\n")).count(), 1, "{}", ran.stdout);
    }
    for (file, task) in [("t.json", "task one"), ("t-2.json", "task two"), ("t-3.json", "task three")] {
        let json: Value = serde_json::from_str(&repo.read(file)).unwrap();
        assert_eq!((&json["task"], &json["success"]), (&json!(task), &json!(true)), "{file}");
    }
}

#[test]
fn interactive_in_a_real_terminal_shows_the_steps_of_each_task() {
    let repo = TempRepo::new(&[]);
    let script = Script::repeat(6, |k| match k % 2 {
        0 => call(&format!("c{k}"), "bash", json!({ "command": format!("echo output-{k}; tty") })),
        _ => say(&format!("Answer {k}.")),
    });
    let model = FakeModel::serving(script);
    let home = tempfile::tempdir().unwrap();
    let line = format!(
        "exec {} interactive --mode full-auto --model-base-url {} --model fake --api-key {}",
        env!("CARGO_BIN_EXE_lathe"),
        model.base_url(),
        model.key()
    );
    // `script` gives it a terminal; what is typed waits there until it is asked for.
    let mut terminal = std::process::Command::new("script")
        .args(["-qefc", &line, "/dev/null"])
        .current_dir(repo.path())
        .env("LATHE_HOME", home.path())
        .env("LATHE_SANDBOX", "off")
        .env("TERM", "xterm")
        .env("LANG", "C.UTF-8")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut typing = terminal.stdin.take().unwrap();
    std::io::Write::write_all(&mut typing, b"task one\ntask two\ntask three\nexit\n").unwrap();
    let output = terminal.wait_with_output().unwrap();
    drop(typing);
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{shown}");
    assert_eq!(model.violations(), Vec::<String>::new());
    for step in 1..=6 {
        assert!(shown.contains(&format!("step {step}")), "{shown}");
    }
    for text in
        ["output-0", "output-2", "output-4", "Answer 1.", "Answer 3.", "Answer 5.", "Goodbye!", "\u{1b}["]
    {
        assert!(shown.contains(text), "{text}\n{shown}");
    }
    // The shell of the session has no terminal, even if Lathe itself has one.
    assert_eq!(shown.matches("not a tty").count(), 3, "{shown}");
}

#[test]
fn ctrl_c_clears_a_half_typed_line_and_twice_leaves() {
    use std::io::{Read, Write};
    let repo = TempRepo::new(&[]);
    let model = FakeModel::serving(Script::new());
    let home = tempfile::tempdir().unwrap();
    // `exec`: a shell that stays in between would die of the Ctrl-C that Lathe takes.
    let line = format!(
        "exec {} interactive --model-base-url {} --model fake --api-key {}",
        env!("CARGO_BIN_EXE_lathe"),
        model.base_url(),
        model.key()
    );
    let mut terminal = std::process::Command::new("script")
        .args(["-qefc", &line, "/dev/null"])
        .current_dir(repo.path())
        .env("LATHE_HOME", home.path())
        .env("LATHE_SANDBOX", "off")
        .env("LANG", "C.UTF-8")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let (mut typing, mut output) = (terminal.stdin.take().unwrap(), terminal.stdout.take().unwrap());
    let shown = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let screen = std::sync::Arc::clone(&shown);
    let reading = std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = output.read(&mut bytes) {
            screen.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
    });
    let see = |text: &str, times: usize| {
        let seen = || shown.lock().unwrap().matches(text).count() >= times;
        eventually(Duration::from_secs(20), text, seen);
    };
    see("Task: ", 1);
    typing.write_all(b"half a li\x03").unwrap();
    see("press Ctrl-C again to leave", 1);
    see("Task: ", 2);
    // A line in between, and it takes two again; what was half typed is gone.
    typing.write_all(b"status\n").unwrap();
    see("provider: ", 1);
    see("Task: ", 3);
    typing.write_all(b"\x03").unwrap();
    see("press Ctrl-C again to leave", 2);
    see("Task: ", 4);
    typing.write_all(b"\x03").unwrap();
    see("Goodbye!", 1);
    assert!(terminal.wait().unwrap().success());
    reading.join().unwrap();
    assert_eq!(model.requests().len(), 0);
}

#[test]
fn interactive_says_goodbye_at_the_end_of_input() {
    let repo = TempRepo::new(&[]);
    let model = FakeModel::serving(Script::new());
    let ran = lathe().in_dir(repo.path()).arg("interactive").with_model(&model).run().expect_code(0);
    assert!(ran.stdout.ends_with("Task: Goodbye!\n"), "{}", ran.stdout);
}

#[test]
fn issue_16_a_fork_that_did_nothing_holds_no_undo_up() {
    let bash = json!({ "command": "echo hello > hello.txt; rm a.txt" });
    let write = json!({ "path": "w.txt", "content": "x\n" });
    let ways: [(&str, &[&str]); 4] = [
        ("origin", &["undo"]),
        ("origin", &["rewind", "--to", "0", "--files"]),
        ("fork", &["undo"]),
        ("fork", &["rewind", "--to", "0", "--files"]),
    ];
    for (tool, arguments) in [("bash", bash), ("write", write)] {
        for (of, words) in ways {
            let repo = TempRepo::new(&[("a.txt", "alpha\n")]);
            let model = FakeModel::serving(
                Script::new().answer(call("c1", tool, arguments.clone())).answer(done("ok")),
            );
            let run = run_in(repo.path(), &model);
            run.run().expect_code(0);
            let here = || at_home(&run).in_dir(repo.path());
            let origin = newest(&run);
            let fork =
                here().args(["fork", &origin, "--at", "1"]).run().expect_code(0).stdout.trim().to_owned();
            let fork = fork.split_whitespace().last().unwrap().to_owned();
            let id = if of == "fork" { &fork } else { &origin };
            let (first, rest) = words.split_first().unwrap();
            let ran = here().args([*first, id.as_str()]).args(rest.iter().copied()).run();
            let about = format!("{tool}, {words:?} of the {of}: {}{}", ran.stdout, ran.stderr);
            assert_eq!(ran.code, 0, "{about}");
            assert!(!ran.stdout.contains("was at work"), "{about}");
            assert_eq!(repo.read("a.txt"), "alpha\n", "{about}");
            assert!(!repo.exists("hello.txt") && !repo.exists("w.txt"), "{about}");
        }
    }
}
