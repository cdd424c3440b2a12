//! Settings and sessions mean the same on every surface: `run`, `interactive`, the server, a replay.

use lathe_protocol::Usage;
use lathe_testkit::{FakeModel, Script, TempRepo, call, done};
use serde_json::json;

use crate::beside::Server;
use crate::lathe;

#[test]
fn a_cap_on_cost_holds_in_interactive_too() {
    let repo = TempRepo::new(&[]);
    let usage = Usage { input_tokens: 10_000, output_tokens: 1_000, ..Usage::default() };
    let script =
        Script::repeat(10, |n| call(&format!("c{n}"), "bash", json!({ "command": "true" })).usage(usage));
    let model = FakeModel::serving(script);
    let lathe = lathe().in_dir(repo.path());
    std::fs::create_dir_all(lathe.home()).unwrap();
    // An answer costs $0.01 + $0.01.
    std::fs::write(lathe.home().join("prices.json"), r#"{"fake": {"input": 1, "output": 10}}"#).unwrap();
    let words = ["interactive", "--mode", "full-auto", "--max-cost", "0.05"];
    let ran = lathe.args(words).with_model(&model).stdin("do it\nexit\n").run();
    assert!(ran.stdout.contains("$0.04 of $0.05"), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(model.requests().len(), 2);
}

#[test]
fn a_patch_that_the_configuration_wants_is_wanted_by_the_server_too() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let script = Script::new()
        .answer(done("nothing to do"))
        .answer(call("w1", "write", json!({ "path": "b.txt", "content": "two\n" })))
        .answer(done("made"));
    let model = FakeModel::serving(script);
    let lathe = lathe().in_dir(repo.path());
    std::fs::create_dir_all(lathe.home()).unwrap();
    std::fs::write(lathe.home().join("config.toml"), "[run]\nmust_patch = true\n").unwrap();
    let flags = ["--model-base-url", &model.base_url(), "--model", "fake", "--api-key", model.key()];
    let server = Server::with(lathe, &flags);
    let request = json!({ "task": "Do it.", "mode": "full-auto" });
    let (status, result) = server.ask("POST", "/agent/run", &request);
    assert_eq!((status, &result["final_result"]), (200, &json!("made")), "{result}");
    let told = model.requests()[1].json()["messages"].to_string();
    assert!(told.contains("Your Patch is empty") && told.contains("your calls made"), "{told}");
    // A conversation has no patch.
    let (_, started) = server.ask("POST", "/agent/interactive/start", &json!({}));
    let task = json!({ "session_id": started["session_id"], "task": "Look." });
    let (status, result) = server.ask("POST", "/agent/interactive/task", &task);
    assert_eq!((status, &result["final_result"]), (200, &json!("nothing to do")), "{result}");
}

#[test]
fn a_session_with_instructions_is_run_again_without_a_difference() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let script = Script::new().answer(call("v1", "view", json!({ "path": "a.txt" }))).answer(done("seen"));
    let model = FakeModel::serving(script);
    let lathe = lathe().in_dir(repo.path());
    let flags = ["--model-base-url", &model.base_url(), "--model", "fake", "--api-key", model.key()];
    let server = Server::with(lathe.clone(), &flags);
    let mode = json!({ "system_prompt": "You look.", "custom_instructions": "Look twice." });
    let request = json!({ "task": "Look.", "agent_mode_config": mode });
    let (status, result) = server.ask("POST", "/agent/run", &request);
    assert_eq!((status, &result["success"]), (200, &json!(true)), "{result}");
    drop(server);
    let first = model.requests()[0].json()["messages"].to_string();
    assert!(first.contains("Look twice."), "{first}");
    let ran = lathe.args(["replay", "--tools", "live"]).run().expect_code(0);
    assert!(ran.stdout.contains("0 differences"), "{}", ran.stdout);
}
