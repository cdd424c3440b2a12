//! Every wire, from the environment to the last request.

use std::path::Path;

use lathe_testkit::{
    FakeModel, Lathe, Script, TempRepo, Wire, call, check_prefix_on, done, fault_cases, golden, say, size,
};
use serde_json::{Value, json};

use crate::lathe;

const DEMO: &str = include_str!("../../../host/demo.cassette");

fn demo_repo() -> TempRepo {
    let files = ["README.md", "till.sh", "lib/money.sh", "tests/run.sh"];
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/demo");
    let files: Vec<(&str, String)> =
        files.iter().map(|name| (*name, std::fs::read_to_string(demo.join(name)).unwrap())).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    TempRepo::new(&files)
}

/// A body with what differs between machines left out.
fn masked(body: &[u8], repo: &TempRepo) -> String {
    let mut value: Value = serde_json::from_slice(body).unwrap();
    // The words of the prompt and of the tools are held by tests of their own.
    for member in ["tools", "instructions", "system", "systemInstruction", "prompt_cache_key"] {
        if let Some(found) = value.get_mut(member) {
            *found = json!("...");
        }
    }
    for message in value.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten() {
        if message["role"] == "system" {
            message["content"] = json!("...");
        }
    }
    let root = repo.path().canonicalize().unwrap();
    let text = serde_json::to_string_pretty(&value).unwrap();
    text.replace(&root.display().to_string(), "${root}")
}

#[test]
fn the_demo_task_is_done_over_every_wire_and_its_requests_are_as_they_should_be() {
    for wire in Wire::ALL {
        let repo = demo_repo();
        let model = FakeModel::serving(Script::from_cassette(DEMO));
        let task = "A test of this project fails. Find the cause and fix it.";
        let ran = lathe()
            .in_dir(repo.path())
            .args(["run", task, "--mode", "full-auto", "--output", "stream-json"])
            .with_wire(&model, wire)
            .run()
            .expect_code(0);
        assert_eq!(model.violations(), Vec::<String>::new(), "{}", wire.as_str());
        let passed = std::process::Command::new("bash")
            .arg("tests/run.sh")
            .current_dir(repo.path())
            .output()
            .unwrap()
            .status
            .success();
        assert!(passed, "{}", ran.stdout);
        check_prefix_on(wire, &model.bodies()).unwrap();
        let requests = model.requests();
        let head = format!(
            "POST {}\n{}\n",
            requests[0].path,
            ["x-api-key", "anthropic-version", "authorization", "x-goog-api-key"]
                .iter()
                .filter_map(|name| requests[0].header(name).map(|value| format!("{name}: {value}\n")))
                .collect::<String>()
        );
        // The first shows the head, the second how an answer and its results go back.
        let shown: Vec<String> =
            requests.iter().take(2).map(|request| masked(&request.body, &repo)).collect();
        golden(
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/wire-{}.txt", wire.as_str())),
            &format!("{head}{}\n", shown.join("\n\n")),
        );
    }
}

/// Every fault of `fault_cases`, with the real binary.
fn survives(wire: Wire) {
    let cases = fault_cases(wire);
    assert!(cases.len() >= 40, "{} faults", cases.len());
    let binary = Path::new(env!("CARGO_BIN_EXE_lathe"));
    let next = std::sync::atomic::AtomicUsize::new(0);
    // They mostly wait, so several run at once.
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..6)
            .map(|_| {
                scope.spawn(|| {
                    let mut wrong = Vec::new();
                    while let Some(case) = cases.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                    {
                        let outcome = case.run(binary, wire);
                        wrong.extend(outcome.wrong.into_iter().map(|what| format!("{}: {what}", case.name)));
                    }
                    wrong
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{} on {}:\n{}", wrong.len(), wire.as_str(), wrong.join("\n"));
}

#[test]
fn every_fault_is_survived_on_chat() {
    survives(Wire::Chat);
}

#[test]
fn every_fault_is_survived_on_messages() {
    survives(Wire::Messages);
}

#[test]
fn every_fault_is_survived_on_responses() {
    survives(Wire::Responses);
}

#[test]
fn every_fault_is_survived_on_gemini() {
    survives(Wire::Gemini);
}

#[test]
fn every_fault_is_survived_on_ollama() {
    survives(Wire::Ollama);
}

fn thinking_script(steps: usize) -> Script {
    let script = Script::repeat(steps, |n| {
        say("")
            .think(&format!("thought {n} ü"))
            .redacted_thinking(&format!("hidden-{n}=="))
            .say("I go on.")
            .call(&format!("c{n}"), "bash", json!({ "command": format!("echo {n}") }))
    });
    script.answer(done("ok"))
}

#[test]
fn what_a_model_signed_goes_back_as_it_came_after_kill_resume_and_fork() {
    for wire in [Wire::Messages, Wire::Responses, Wire::Gemini] {
        let repo = TempRepo::new(&[]);
        let model = FakeModel::serving(thinking_script(4));
        let home = lathe().in_dir(repo.path());
        let with = |words: &[&str]| home.clone().args(words).with_wire(&model, wire);
        // The server refuses every request whose signed parts are not what it sent.
        with(&["run", "do it", "--mode", "full-auto", "--max-steps", "2"]).run().expect_code(4);
        let running = with(&["resume", "--max-steps", "1"]).spawn();
        model.wait_for_requests(3, std::time::Duration::from_secs(20));
        running.kill9();
        drop(running);
        let sessions: Value =
            serde_json::from_str(&home.clone().args(["sessions", "--json"]).run().stdout).unwrap();
        let id = sessions[0]["id"].as_str().unwrap().to_owned();
        let fork = home.clone().args(["fork", &id, "--at", "2"]).run().expect_code(0).stdout;
        with(&["resume", &id, "--max-steps", "20"]).run().expect_code(0);
        with(&["resume", fork.trim(), "--max-steps", "20"]).run().expect_code(0);
        home.clone().args(["replay", &id]).run().expect_code(0);
        assert_eq!(model.violations(), Vec::<String>::new(), "{}", wire.as_str());
        let last = model.requests().pop().unwrap();
        let text = String::from_utf8(last.body.to_vec()).unwrap();
        assert!(text.contains("sig/0+") && text.contains("sig/3+"), "{text}");
    }
}

#[test]
fn each_of_fifty_requests_begins_with_the_one_before_on_every_wire() {
    for wire in Wire::ALL {
        let steps = size(12, 50);
        let repo = TempRepo::new(&[]);
        let model = FakeModel::serving(thinking_script(steps));
        lathe()
            .in_dir(repo.path())
            .args(["run", "do it", "--mode", "full-auto"])
            .with_wire(&model, wire)
            .run()
            .expect_code(0);
        assert_eq!(model.violations(), Vec::<String>::new(), "{}", wire.as_str());
        assert_eq!(model.bodies().len(), steps + 1);
        check_prefix_on(wire, &model.bodies()).unwrap();
        if wire == Wire::Messages {
            // A mark moves forward only: the last of a request is never before the last of the request before.
            let places: Vec<usize> = model
                .bodies()
                .iter()
                .map(|body| String::from_utf8_lossy(body).rfind("\"cache_control\"").unwrap())
                .collect();
            assert!(places.is_sorted(), "{places:?}");
        }
    }
}

#[test]
fn a_session_goes_on_with_another_provider_on_another_wire() {
    let repo = TempRepo::new(&[]);
    let options = lathe_testkit::Options {
        thoughts: lathe_testkit::Thoughts::Ignored,
        ..lathe_testkit::Options::default()
    };
    let model = FakeModel::start(thinking_script(9), options);
    let home = lathe().in_dir(repo.path());
    let go_on = |lathe: Lathe, wire| lathe.with_wire(&model, wire).run();
    let task = ["run", "do it", "--mode", "full-auto", "--max-steps", "2"];
    go_on(home.clone().args(task), Wire::Messages).expect_code(4);
    for wire in [Wire::Responses, Wire::Gemini, Wire::Ollama] {
        go_on(home.clone().args(["resume", "--max-steps", "2"]), wire).expect_code(4);
    }
    go_on(home.clone().args(["resume", "--max-steps", "9"]), Wire::Chat).expect_code(0);
    assert_eq!(model.violations(), Vec::<String>::new());
}

#[test]
fn a_model_without_calls_is_told_of_tools_in_words() {
    let repo = TempRepo::new(&[]);
    let script = Script::new()
        .answer(say("I write.\n```tool_call\n{\"name\": \"bash\", \"arguments\": {\"command\": \"echo x > made\"}}\n```"))
        .answer(say("```tool_call\n{\"name\": \"task_done\", \"arguments\": {\"summary\": \"made\"}}\n```"));
    let model = FakeModel::serving(script);
    let lathe = lathe().in_dir(repo.path());
    std::fs::create_dir_all(lathe.home()).unwrap();
    std::fs::write(lathe.home().join("config.toml"), "[model]\nsupports_tool_calling = false\n").unwrap();
    lathe.args(["run", "do it", "--mode", "full-auto"]).with_model(&model).run().expect_code(0);
    assert_eq!(repo.read("made"), "x\n");
    let request = model.requests().pop().unwrap().json();
    assert!(request.get("tools").is_none());
    assert!(request["messages"][0]["content"].as_str().unwrap().contains("## bash"));
    assert_eq!(request["messages"][2]["content"].as_str().unwrap().lines().next(), Some("I write."));
}

#[test]
fn a_call_that_was_half_received_is_never_run() {
    for wire in Wire::ALL {
        let repo = TempRepo::new(&[]);
        let script = Script::new()
            .answer(
                call("c1", "bash", json!({ "command": "echo x >> count" }))
                    .fails(2, lathe_testkit::Fault::CutMidEvent),
            )
            .answer(done("ok"));
        let model = FakeModel::serving(script);
        lathe()
            .in_dir(repo.path())
            .args(["run", "do it", "--mode", "full-auto"])
            .with_wire(&model, wire)
            .run()
            .expect_code(0);
        assert_eq!(repo.read("count"), "x\n", "{}", wire.as_str());
        assert_eq!(model.requests().len(), 4);
    }
}
