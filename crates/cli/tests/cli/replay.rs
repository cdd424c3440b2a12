//! Cassettes: recorded, replayed, and exact.

use std::path::{Path, PathBuf};

use lathe_testkit::{FakeModel, Lathe, Script, TempRepo, call, done};
use serde_json::{Value, json};

use crate::runs::comparable;
use crate::{bodies, lathe, run_in};

fn demo_cassette() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/demo.cassette")
}

/// A copy of the sample project, which the demo's cassette was written for.
fn sample() -> TempRepo {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/demo");
    let repo = TempRepo::new(&[]);
    for file in ["README.md", "till.sh", "lib/money.sh", "tests/run.sh"] {
        repo.write(file, std::fs::read(demo.join(file)).unwrap());
    }
    repo
}

fn replay(repo: &TempRepo, cassette: &Path) -> Lathe {
    let run = lathe().in_dir(repo.path()).args([
        "run",
        "do it",
        "--mode",
        "full-auto",
        "--output",
        "stream-json",
        "--replay",
    ]);
    run.arg(cassette)
}

/// Events by step and call, in the order of the calls, and without the folder, which differs.
fn by_call(events: &[Value], repo: &TempRepo) -> Vec<Value> {
    let root = repo.path().canonicalize().unwrap();
    let text = serde_json::to_string(&comparable(events)).unwrap().replace(root.to_str().unwrap(), "ROOT");
    let mut events: Vec<Value> = serde_json::from_str(&text).unwrap();
    for event in &mut events {
        // Numbers of parallel calls' events depend on which was first.
        event.as_object_mut().unwrap().remove("seq");
        // The content of the workspace's own path is in the system prompt and its digests.
    }
    events.sort_by_key(|event| (event["step"].as_u64(), event["call"].as_str().map(str::to_owned)));
    events
}

#[test]
fn two_replays_give_the_same_events() {
    let (first, second) = (sample(), sample());
    let a = replay(&first, &demo_cassette()).run().expect_code(0).events();
    let b = replay(&second, &demo_cassette()).run().expect_code(0).events();
    assert!(a.len() > 40);
    assert_eq!(by_call(&a, &first), by_call(&b, &second));
    assert_eq!(bodies(&a, "replay_drifted"), Vec::<Value>::new());
}

/// Records a run with one shell call and one view.
fn recorded() -> (TempRepo, PathBuf) {
    let repo = TempRepo::new(&[("a.txt", "alpha\n")]);
    let script = Script::new()
        .answer(call("c1", "bash", json!({ "command": "pwd; cat a.txt; sleep 0.01s" })))
        .answer(call("c2", "view", json!({ "path": "a.txt" })))
        .answer(done("ok"));
    let model = FakeModel::serving(script);
    let cassette = repo.join("../").canonicalize().unwrap().join(format!("{}.cassette", std::process::id()));
    let cassette =
        cassette.with_file_name(format!("{}.cassette", repo.path().file_name().unwrap().to_str().unwrap()));
    run_in(repo.path(), &model).arg("--record").arg(&cassette).run().expect_code(0);
    (repo, cassette)
}

#[test]
fn a_recorded_run_replays_exactly_also_in_another_folder() {
    let (_repo, cassette) = recorded();
    let text = std::fs::read_to_string(&cassette).unwrap();
    assert!(text.contains("${workspace}") && text.contains("sleep 0.01s"), "{text}");
    let other = TempRepo::new(&[("a.txt", "alpha\n")]);
    let events = replay(&other, &cassette).run().expect_code(0).events();
    assert_eq!(bodies(&events, "replay_drifted"), Vec::<Value>::new());
    std::fs::remove_file(cassette).unwrap();
}

#[test]
fn one_changed_byte_in_a_recorded_result_is_a_drift_with_step_and_both_sides() {
    let (repo, cassette) = recorded();
    let text = std::fs::read_to_string(&cassette).unwrap();
    std::fs::write(&cassette, text.replacen("\\nalpha\\n", "\\nalphA\\n", 1)).unwrap();
    let events = replay(&repo, &cassette).run().expect_code(0).events();
    let drift = events.iter().find(|event| event["kind"] == "replay_drifted").expect("the drift is told");
    assert_eq!(drift["step"], 2);
    assert_eq!(drift["body"]["place"], "result of call c1 (bash)");
    assert!(drift["body"]["recorded"].as_str().unwrap().contains("alphA"));
    assert!(drift["body"]["now"].as_str().unwrap().contains("alpha"));
    // The user gets the message too.
    let said = lathe()
        .in_dir(repo.path())
        .args(["run", "do it", "--mode", "full-auto", "--replay"])
        .arg(&cassette)
        .run();
    assert!(said.stdout.contains("the replay drifted: step 2, result of call c1 (bash)"), "{}", said.stdout);
    std::fs::remove_file(cassette).unwrap();
}

#[test]
fn a_changed_answer_shows_in_the_history_of_the_next_step() {
    let (repo, cassette) = recorded();
    let text = std::fs::read_to_string(&cassette).unwrap();
    std::fs::write(&cassette, text.replacen("cat a.txt; sleep 0.01s", "cat a.txt; sleep 0.02s", 1)).unwrap();
    let events = replay(&repo, &cassette).run().expect_code(0).events();
    // Durations are variables, so this one is still exact; another command is not.
    assert_eq!(bodies(&events, "replay_drifted"), Vec::<Value>::new());
    std::fs::write(&cassette, text.replacen("pwd; cat a.txt", "pwd; cat ./a.txt", 1)).unwrap();
    let events = replay(&repo, &cassette).run().expect_code(0).events();
    let drift = &bodies(&events, "replay_drifted")[0];
    assert_eq!(drift["place"], "history before this step");
    std::fs::remove_file(cassette).unwrap();
}

#[test]
fn another_shape_or_too_few_answers_is_a_divergence_with_both_sides() {
    let (repo, cassette) = recorded();
    let text = std::fs::read_to_string(&cassette).unwrap();
    // The recorded request of step 2 is said to have held the result of another call.
    let changed: Vec<String> = text
        .lines()
        .map(|line| line.replacen(r#""asked":[{"tool":{"call":"c1""#, r#""asked":[{"tool":{"call":"c9""#, 1))
        .collect();
    std::fs::write(&cassette, changed.join("\n")).unwrap();
    let ran = replay(&repo, &cassette).run().expect_code(1);
    let finished = &bodies(&ran.events(), "task_finished")[0];
    let result = finished["result"].as_str().unwrap();
    assert!(
        result.contains("diverged at step 2") && result.contains("call c9") && result.contains("call c1"),
        "{result}"
    );

    let short: Vec<&str> = text.lines().take(2).collect();
    std::fs::write(&cassette, short.join("\n")).unwrap();
    let ran = replay(&repo, &cassette).run().expect_code(1);
    let result = bodies(&ran.events(), "task_finished")[0]["result"].to_string();
    assert!(result.contains("the recording ends after 1 answers"), "{result}");
    std::fs::remove_file(cassette).unwrap();
}

#[test]
fn a_cassette_that_cannot_be_used_is_an_error_of_usage() {
    let repo = TempRepo::new(&[
        ("bad.cassette", "{\"cassette\":1,\"toolset\":\"lathe\"}\nnot json\n"),
        ("empty", ""),
    ]);
    let ran = replay(&repo, &repo.join("bad.cassette")).run().expect_code(2);
    assert!(ran.stderr.contains("error[cassette]: line 2 of the cassette is wrong"), "{}", ran.stderr);
    let ran = replay(&repo, &repo.join("empty")).run().expect_code(2);
    assert!(ran.stderr.contains("the cassette is empty"), "{}", ran.stderr);
    let ran = replay(&repo, &repo.join("nowhere")).run().expect_code(2);
    assert!(ran.stderr.contains("cannot read the cassette"), "{}", ran.stderr);
    let ran = replay(&repo, &demo_cassette()).args(["--toolset", "trae"]).run().expect_code(2);
    assert!(ran.stderr.contains("error[other-toolset]"), "{}", ran.stderr);
}
