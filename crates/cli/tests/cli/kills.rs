//! `kill -9` at any instant, and two processes on one session.

use std::time::Duration;

use lathe_testkit::{
    FakeModel, Lathe, Script, TempRepo, call, done, eventually, no_process_with, processes_with, say, size,
};
use serde_json::{Value, json};

use crate::{bodies, lathe, run_in};

/// A script with every kind of step: parallel reads, edits, shell lines, a failure.
fn script() -> Script {
    Script::new()
        .answer(say("First I look.").call("a1", "view", json!({ "path": "a.txt" })).call(
            "a2",
            "view",
            json!({ "path": "b.txt" }),
        ))
        .answer(call("b1", "bash", json!({ "command": "for i in 1 2 3 4 5; do echo $i; sleep 0.01; done" })))
        .answer(call("c1", "edit", json!({ "path": "a.txt", "old_str": "one", "new_str": "ONE" })).call(
            "c2",
            "bash",
            json!({ "command": "sleep 0.03; cat a.txt" }),
        ))
        .answer(call("d1", "edit", json!({ "path": "a.txt", "old_str": "not there", "new_str": "x" })))
        .answer(call("e1", "bash", json!({ "command": "sleep 0.02 & sleep 0.05" })).call(
            "e2",
            "bash",
            json!({ "command": "echo e2" }),
        ))
        .answer(say("Nearly.").call("f1", "write", json!({ "path": "c.txt", "content": "new\n" })))
        .answer(done("finished"))
        // Killed inside its last step, the run is asked for one more.
        .answer(done("finished"))
}

fn repo() -> TempRepo {
    TempRepo::new(&[("a.txt", "one\ntwo\n"), ("b.txt", "beta\n")])
}

fn resume(home: &Lathe, model: &FakeModel) -> Lathe {
    lathe()
        .env("LATHE_HOME", home.home())
        .args(["resume", "--mode", "full-auto", "--output", "stream-json"])
        .with_model(model)
}

/// The duration of an undisturbed run: kills are spread over it.
fn undisturbed() -> Duration {
    let repo = repo();
    let model = FakeModel::serving(script());
    run_in(repo.path(), &model).run().expect_code(0).elapsed
}

#[test]
fn after_a_kill_at_any_instant_nothing_acknowledged_is_lost_and_the_next_request_is_valid() {
    let whole = undisturbed();
    let kills = size(20, 200);
    let mut interrupted = 0;
    for kill in 0..kills {
        let repo = repo();
        let model = FakeModel::serving(script());
        let run = run_in(repo.path(), &model);
        let running = run.spawn();
        // Spread evenly with a jitter that differs from kill to kill, a little past the end too.
        let share = (kill as f64 + ((kill * 7919) % 97) as f64 / 97.0) / kills as f64;
        std::thread::sleep(whole.mul_f64(1.05 * share));
        running.kill9();
        let ran = running.wait();
        let acknowledged = lines(&ran.stdout);

        let Some(kept) = events_of(&run) else {
            // Killed before the session was there: then nothing was acknowledged either.
            assert_eq!(acknowledged, Vec::<Value>::new(), "kill {kill}");
            continue;
        };
        assert_eq!(
            kept[..acknowledged.len()],
            acknowledged[..],
            "kill {kill}: what was shown is in the journal"
        );
        let finished_before = !bodies(&kept, "task_finished").is_empty();
        if bodies(&kept, "task_given").is_empty() || finished_before {
            continue;
        }
        interrupted += 1;
        let events = resume(&run, &model).run().expect_code(0).events();
        assert_eq!(model.violations(), Vec::<String>::new(), "kill {kill}");
        assert_eq!(events[..kept.len()], kept[..], "kill {kill}: resuming only appends");
        assert_eq!(bodies(&events, "task_finished").len(), 1);
        // One result for each call, also for those that were under way.
        crate::results(&events);
        let seqs: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
        assert_eq!(seqs, (1..=events.len() as u64).collect::<Vec<_>>());
    }
    // On a busy machine a run takes longer than the one that was measured, and more kills come too early.
    assert!(interrupted * 5 >= kills, "only {interrupted} of {kills} kills hit a run");
}

/// Whole lines of a stream that may have been cut off in the middle.
fn lines(stdout: &str) -> Vec<Value> {
    stdout
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn events_of(home: &Lathe) -> Option<Vec<Value>> {
    let shown = lathe().env("LATHE_HOME", home.home()).args(["show", "--format", "json"]).run();
    if shown.code != 0 {
        assert!(shown.stderr.contains("no-sessions"), "{}", shown.stderr);
        return None;
    }
    let json: Value = serde_json::from_str(&shown.stdout).unwrap();
    Some(json["events"].as_array().unwrap().clone())
}

#[test]
fn a_killed_host_leaves_no_process() {
    let repo = repo();
    let model = FakeModel::serving(Script::new().answer(call(
        "c1",
        "bash",
        json!({ "command": "setsid sleep 98571 & sleep 98572" }),
    )));
    let running = run_in(repo.path(), &model).spawn();
    eventually(Duration::from_secs(20), "the command runs", || {
        !no_process_with("sleep 98571") && !no_process_with("sleep 98572")
    });
    running.kill9();
    eventually(Duration::from_secs(5), "all is gone", || {
        no_process_with("sleep 98571") && no_process_with("sleep 98572")
    });
    running.wait();
}

#[test]
fn the_second_process_on_a_session_is_told_who_holds_it_and_can_still_show_it() {
    let repo = repo();
    let model =
        FakeModel::serving(Script::new().answer(call("c1", "bash", json!({ "command": "sleep 98681" }))));
    let run = run_in(repo.path(), &model);
    let running = run.spawn();
    running.wait_for_stdout("call_started", Duration::from_secs(20));
    let second = resume(&run, &model).run().expect_code(2);
    let holder = format!("is in use by process {} (lathe run …) since ", running.pid());
    assert!(
        second.stderr.contains("error[session-held]") && second.stderr.contains(&holder),
        "{}",
        second.stderr
    );
    let shown = lathe().env("LATHE_HOME", run.home()).arg("show").run().expect_code(0);
    assert!(shown.stdout.contains("$ sleep 98681"), "{}", shown.stdout);
    let listed = lathe().env("LATHE_HOME", run.home()).args(["sessions", "--json"]).run().expect_code(0);
    assert!(listed.stdout.contains("\"state\":\"running\""), "{}", listed.stdout);
    running.kill9();
    running.wait();
    let listed = lathe().env("LATHE_HOME", run.home()).args(["sessions", "--json"]).run().expect_code(0);
    assert!(listed.stdout.contains("\"state\":\"interrupted\""), "{}", listed.stdout);
}

#[test]
fn nothing_is_left_when_lathe_and_its_supervisor_are_killed_together() {
    let sleep = format!("sleep 9{}7", std::process::id());
    let line = format!(
        "echo $PPID > supervisor; setsid {sleep} & (setsid env -i /bin/{sleep} &); nohup {sleep} & {sleep}"
    );
    for round in 0..size(2, 20) {
        let repo = repo();
        let model = FakeModel::serving(Script::new().answer(call("c1", "bash", json!({ "command": line }))));
        let running = run_in(repo.path(), &model).spawn();
        eventually(Duration::from_secs(30), "all are there", || processes_with(&sleep).len() >= 4);
        let supervisor = std::fs::read_to_string(repo.join("supervisor")).unwrap();
        let both = [running.pid().to_string(), supervisor.trim().to_owned()];
        assert!(std::process::Command::new("kill").arg("-9").args(both).status().unwrap().success());
        running.wait();
        eventually(Duration::from_secs(30), &format!("round {round}: none is left"), || {
            no_process_with(&sleep)
        });
    }
}
