//! Every wire, from the environment to the last request (part 4).

use std::path::Path;

use lathe_testkit::{
    FakeModel, Lathe, Script, TempRepo, Wire, call, check_prefix_on, done, fault_cases, golden, say,
};
use serde_json::{Value, json};

use crate::{lathe, size};

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
    for member in ["tools", "instructions", "system", "systemInstruction"] {
        if !value[member].is_null() {
            // The words of the prompt and of the tools are held by tests of their own.
            value[member] = json!("...");
        }
    }
    for message in value["messages"].as_array_mut().into_iter().flatten() {
        if message["role"] == "system" {
            message["content"] = json!("...");
        }
    }
    if !value["prompt_cache_key"].is_null() {
        value["prompt_cache_key"] = json!("...");
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
