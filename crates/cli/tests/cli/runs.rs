//! Whole runs over the real wire.

use std::time::Duration;

use lathe_testkit::{
    Chunking, FakeModel, LineEnd, Options, Script, TempRepo, call, check_prefix, done, say, size,
};
use serde_json::{Value, json};

use crate::{bodies, lathe, play, results, run_in};

/// Events without what differs between any two runs: times, durations, folders, ids of commands and sessions.
pub(crate) fn comparable(events: &[Value]) -> Vec<Value> {
    let mut events = events.to_vec();
    for event in &mut events {
        let object = event.as_object_mut().unwrap();
        object.remove("at");
        let body = object["body"].as_object_mut().unwrap();
        for key in ["took_ms", "command", "session", "workspace", "folder", "surroundings"] {
            body.remove(key);
        }
        // The fake model's port differs.
        if let Some(model) = body.get_mut("options").and_then(|options| options["model"].as_object_mut()) {
            model.remove("base_url");
            model.remove("key");
        }
    }
    events
}

#[test]
fn the_demo_ends_well_and_shows_a_diff_and_a_passing_test() {
    let ran = lathe().arg("demo").run().expect_code(0);
    for shown in ["+  part=${part}00 # 2.5 means 2.50", "✔ done", "ok    one decimal", "lathe show "] {
        assert!(ran.stdout.contains(shown), "{shown:?} is missing in\n{}", ran.stdout);
    }
    let (_, now) = ran.stdout.split_once("its tests now").expect("the tests are run again at the end");
    assert!(!now.contains("FAIL"));
}

#[test]
fn the_demo_leaves_a_session_that_can_be_listed_and_shown() {
    let lathe = lathe();
    lathe.clone().args(["demo", "--output", "json"]).run().expect_code(0);
    let listed = lathe.clone().args(["sessions", "--json"]).run().expect_code(0);
    let sessions: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!((&sessions[0]["state"], &sessions[0]["steps"]), (&json!("completed"), &json!(8)));
    let id = sessions[0]["id"].as_str().unwrap();
    let shown = lathe.clone().args(["show", id]).run().expect_code(0);
    assert!(
        shown.stdout.contains("✔ done") && shown.stdout.contains("lib/money.sh  +3 -1"),
        "{}",
        shown.stdout
    );
    let json = lathe.clone().args(["show", &id[..10], "--format", "json"]).run().expect_code(0);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["events"][0]["kind"], "session_opened");
}

#[test]
fn a_stream_in_random_chops_gives_the_same_journal_as_an_unchopped_one() {
    let script = || {
        Script::new()
            .answer(say("Zuerst schaue ich: größe, 中文, 🙂.").think("hm…").call(
                "c1",
                "bash",
                json!({ "command": "echo 'ünï\u{2028}code' \"$((1+1))\"" }),
            ))
            .answer(call("c2", "write", json!({ "path": "ü.txt", "content": "zwölf\n" })).call(
                "c3",
                "view",
                json!({ "path": "ü.txt" }),
            ))
            .answer(say("Done.").call("c4", "task_done", json!({ "summary": "fertig 🙂" })))
    };
    let whole = {
        let repo = TempRepo::new(&[]);
        comparable(&masked(&play(repo.path(), script()).expect_code(0).events(), &repo))
    };
    let seeds = size(6, 40) as u64;
    let chops = (0..seeds).map(Chunking::Random).chain([Chunking::Bytes(1), Chunking::Bytes(7)]);
    let ends = [LineEnd::Lf, LineEnd::CrLf, LineEnd::Cr];
    for (chop, line_end) in chops.zip(ends.into_iter().cycle()) {
        let repo = TempRepo::new(&[]);
        let model =
            FakeModel::start(script(), Options { chop, line_end, comments: true, ..Options::default() });
        let events = run_in(repo.path(), &model).run().expect_code(0).events();
        assert_eq!(model.violations(), Vec::<String>::new());
        assert_eq!(comparable(&masked(&events, &repo)), whole, "{chop:?} {line_end:?}");
    }
}

/// The temporary folder differs between runs.
fn masked(events: &[Value], repo: &TempRepo) -> Vec<Value> {
    let root = repo.path().canonicalize().unwrap();
    let text = serde_json::to_string(events).unwrap().replace(root.to_str().unwrap(), "ROOT");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn calls_beside_task_done_have_their_results_and_the_next_task_sends_a_valid_history() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let first = Script::new().answer(
        call("d", "task_done", json!({ "summary": "first" }))
            .call("v", "view", json!({ "path": "a.txt" }))
            .call("b", "bash", json!({ "command": "echo beside > b.txt; false" })),
    );
    let model = FakeModel::serving(
        first.answer(call("c2", "bash", json!({ "command": "cat b.txt" }))).answer(done("second")),
    );
    let first = run_in(repo.path(), &model);
    let events = first.run().expect_code(0).events();
    let ids: Vec<String> = results(&events).into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, ["d", "v", "b"]);
    // `task_done` is judged last, wherever it is in the answer.
    let finished: Vec<&Value> = events.iter().filter(|event| event["kind"] == "call_finished").collect();
    assert_eq!(finished.last().unwrap()["call"], "d");
    assert_eq!(bodies(&events, "task_finished")[0]["result"], "first");
    let session = bodies(&events, "session_opened")[0]["session"].as_str().unwrap().to_owned();

    let again = lathe_of(&first)
        .args(["resume", &session, "another task", "--output", "stream-json", "--mode", "full-auto"])
        .with_model(&model);
    let events = again.in_dir(repo.path()).run().expect_code(0).events();
    assert_eq!(bodies(&events, "task_finished").last().unwrap()["result"], "second");
    assert_eq!(model.violations(), Vec::<String>::new());
    check_prefix(&model.bodies()).unwrap();
    let messages = model.requests().last().unwrap().messages();
    assert!(messages.iter().any(|message| message["content"] == "another task"));
}

/// The same home with an empty command line.
fn lathe_of(lathe: &lathe_testkit::Lathe) -> lathe_testkit::Lathe {
    crate::lathe().env("LATHE_HOME", lathe.home())
}

#[test]
fn text_without_calls_is_reminded_of_once_and_is_then_the_result() {
    let repo = TempRepo::new(&[]);
    let script = Script::new().answer(say("I think it is done.")).answer(say("Yes, it is."));
    let events = play(repo.path(), script).expect_code(0).events();
    assert_eq!(bodies(&events, "reminded").len(), 1);
    let finished = &bodies(&events, "task_finished")[0];
    assert_eq!((&finished["ending"], &finished["result"]), (&json!("answered"), &json!("Yes, it is.")));
}

#[test]
fn unknown_tools_and_malformed_arguments_are_results_not_failures() {
    let repo = TempRepo::new(&[]);
    let script = Script::new()
        .answer(call("c1", "bsh", json!({ "command": "ls" })).call("c2", "bash", json!({ "comand": "ls" })))
        .answer(
            call("c3", "bash", json!({ "command": "ls" })).fails(1, lathe_testkit::Fault::MalformedArguments),
        )
        .answer(done("ok"));
    let events = play(repo.path(), script).expect_code(0).events();
    let told = results(&events);
    assert!(told[0].1.starts_with("Tool \"bsh\" not found. Did you mean one of: \"bash\""), "{}", told[0].1);
    assert!(told[1].1.contains("there is no parameter `comand`"), "{}", told[1].1);
    assert!(told[2].1.contains("not valid JSON"), "{}", told[2].1);
}

#[test]
fn long_runs_keep_a_stable_prefix() {
    let repo = TempRepo::new(&[]);
    let steps = size(15, 60);
    let script =
        Script::repeat(steps, |k| call(&format!("c{k}"), "bash", json!({ "command": format!("echo {k}") })))
            .answer(done("ok"));
    let model = FakeModel::serving(script);
    run_in(repo.path(), &model).timeout(Duration::from_secs(120)).run().expect_code(0);
    assert_eq!(model.violations(), Vec::<String>::new());
    assert_eq!(model.bodies().len(), steps + 1);
    check_prefix(&model.bodies()).unwrap();
}

#[test]
fn the_trae_toolset_speaks_traes_words() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let path = repo.path().canonicalize().unwrap().join("a.txt");
    let script = Script::new()
        .answer(call("c1", "str_replace_based_edit_tool", json!({ "command": "view", "path": path })))
        .answer(call(
            "c2",
            "str_replace_based_edit_tool",
            json!({ "command": "str_replace", "path": path, "old_str": "one", "new_str": "two" }),
        ))
        .answer(call(
            "c3",
            "sequentialthinking",
            json!({ "thought": "t", "thought_number": 1, "total_thoughts": 1, "next_thought_needed": false }),
        ))
        .answer(call("c4", "task_done", json!({})).say("All done."));
    let model = FakeModel::serving(script);
    let ran = run_in(repo.path(), &model).args(["--toolset", "trae"]).run();
    let events = ran.expect_code(0).events();
    assert_eq!(model.violations(), Vec::<String>::new());
    let told = results(&events);
    assert!(told[0].1.starts_with(&format!(
        "Here's the result of running `cat -n` on {}:\n     1\tone\n",
        path.display()
    )));
    assert!(told[1].1.starts_with(&format!("The file {} has been edited. ", path.display())));
    assert!(told[2].1.starts_with("Sequential thinking step completed.\n\nStatus:\n{"));
    assert_eq!(bodies(&events, "task_finished")[0]["result"], "All done.");
    let task = model.requests()[0].messages()[1]["content"].as_str().unwrap().to_owned();
    assert!(
        task.starts_with("[Project root path]:\n/")
            && task.contains("[Problem statement]: We're currently solving")
    );
}
