//! The limits of a run's cost, and its behaviour while the model is unreachable.

use std::time::Duration;

use lathe_protocol::Usage;
use lathe_testkit::{FakeModel, Fault, Lathe, Script, Signal, TempRepo, call, done};
use serde_json::{Value, json};

use crate::{bodies, lathe};

/// Ten steps of 10,000 tokens in and 1,000 out, then the end.
fn costly() -> Script {
    let usage = Usage { input_tokens: 10_000, output_tokens: 1_000, ..Usage::default() };
    let step =
        |n: usize| call(&format!("c{n}"), "bash", json!({ "command": format!("echo {n}") })).usage(usage);
    Script::repeat(10, step).answer(done("ok").usage(usage))
}

fn at_home(repo: &TempRepo, prices: &str) -> Lathe {
    let lathe = lathe().in_dir(repo.path());
    std::fs::create_dir_all(lathe.home()).unwrap();
    std::fs::write(lathe.home().join("prices.json"), prices).unwrap();
    lathe
}

fn run(home: &Lathe, model: &FakeModel, more: &[&str]) -> Lathe {
    let words = ["run", "do it", "--mode", "full-auto", "--output", "stream-json"];
    home.clone().args(words).args(more).with_model(model)
}

#[test]
fn a_run_stops_within_one_answer_of_its_cost_and_goes_on_with_a_higher_one() {
    let repo = TempRepo::new(&[]);
    let model = FakeModel::serving(costly());
    // An answer costs $0.01 + $0.01.
    let home = at_home(&repo, r#"{"fake": {"input": 1, "output": 10}}"#);
    let events = run(&home, &model, &["--max-cost", "0.09"]).run().expect_code(4).events();
    let finished = bodies(&events, "task_finished").remove(0);
    assert_eq!(finished["ending"], "budget_used_up");
    let result = finished["result"].as_str().unwrap();
    assert!(result.contains("$0.08 of $0.09") && result.contains("--max-cost"), "{result}");
    assert_eq!(bodies(&events, "model_answered").len(), 4);
    let resumed =
        home.clone().args(["resume", "--max-cost", "1", "--output", "stream-json"]).with_model(&model);
    let events = resumed.run().expect_code(0).events();
    assert_eq!(bodies(&events, "task_finished").last().unwrap()["ending"], "done");
    assert_eq!(model.violations(), Vec::<String>::new());
}

#[test]
fn tokens_and_time_have_caps_too_and_a_near_cap_is_warned_of() {
    let repo = TempRepo::new(&[]);
    let model = FakeModel::serving(costly());
    let home = at_home(&repo, "{}");
    let words = ["run", "do it", "--mode", "full-auto", "--max-tokens", "60000"];
    let ran = home.clone().args(words).with_model(&model).run().expect_code(4);
    assert!(ran.stdout.contains("warning: 55000 of 60000 tokens used"), "{}", ran.stdout);
    assert!(ran.stdout.lines().next().unwrap().contains(", 60000 tokens"), "{}", ran.stdout);
    let slow = FakeModel::serving(
        Script::new().answer(done("ok").fails(1, Fault::Stall(Duration::from_secs(3600)))),
    );
    let events = run(&home, &slow, &["--max-time", "1s"]).run().expect_code(4).events();
    assert_eq!(bodies(&events, "model_failed")[0]["kind"], "out_of_time");
    home.args(["resume", "--max-time", "1m"]).with_model(&slow).run().expect_code(0);
}

#[test]
fn a_cap_on_cost_without_a_price_is_refused_before_anything_is_sent() {
    let repo = TempRepo::new(&[]);
    let model = FakeModel::serving(costly());
    let home = at_home(&repo, "{}");
    let ran = run(&home, &model, &["--max-cost", "1"]).run().expect_code(2);
    assert!(
        ran.stderr.starts_with("error[no-price]") && ran.stderr.contains("prices.json"),
        "{}",
        ran.stderr
    );
    assert_eq!(model.requests().len(), 0);
}

#[test]
fn a_run_parks_while_the_model_is_away_and_goes_on_when_it_is_back() {
    let repo = TempRepo::new(&[]);
    let mut model = FakeModel::serving(
        Script::new()
            .answer(call("c1", "bash", json!({ "command": "echo x >> count; sleep 1" })))
            .answer(call("c2", "bash", json!({ "command": "echo y >> count" })))
            .answer(done("ok")),
    );
    let home = at_home(&repo, "{}");
    std::fs::write(home.home().join("config.toml"), "[model]\nmax_retries = 1\n").unwrap();
    let words = ["run", "do it", "--mode", "full-auto", "--on-outage", "park"];
    let running = home.args(words).with_model(&model).timeout(Duration::from_secs(150)).spawn();
    model.wait_for_requests(1, Duration::from_secs(20));
    std::thread::sleep(Duration::from_millis(300));
    model.stop();
    running.wait_for_stdout("parked until the server is back", Duration::from_secs(20));
    // A minute in the full size, as the issue has it.
    std::thread::sleep(Duration::from_secs(lathe_testkit::size(3, 60) as u64));
    model.restart();
    running.wait().expect_code(0);
    assert_eq!(repo.read("count"), "x\ny\n");
    assert_eq!(model.violations(), Vec::<String>::new());
}

#[test]
fn ctrl_c_during_a_park_ends_the_run() {
    let repo = TempRepo::new(&[]);
    let home = at_home(&repo, "{}");
    std::fs::write(home.home().join("config.toml"), "[model]\nmax_retries = 0\n").unwrap();
    let words =
        ["run", "do it", "--on-outage", "park", "--model-base-url", "http://127.0.0.1:1/v1", "--model", "m"];
    let running = home.clone().args(words).spawn();
    running.wait_for_stdout("parked until", Duration::from_secs(20));
    running.kill(Signal::Interrupt);
    running.wait().expect_code(130);
}

#[test]
fn models_says_who_can_be_asked_and_auth_keeps_a_key_for_this_user_only() {
    let lathe = lathe();
    let list = |lathe: &Lathe| -> Vec<Value> {
        serde_json::from_str(&lathe.clone().args(["models", "--json"]).run().expect_code(0).stdout).unwrap()
    };
    let of = |list: &[Value], name: &str| list.iter().find(|row| row["provider"] == name).unwrap().clone();
    assert_eq!(of(&list(&lathe), "anthropic")["key"], "missing");
    assert_eq!(of(&list(&lathe.clone().env("GEMINI_API_KEY", "k")), "google")["key"], "environment");
    let login = lathe.clone().args(["auth", "login", "anthropic"]).stdin("sk-ant-stored-1234\n");
    let ran = login.run().expect_code(0);
    assert!(!ran.stdout.contains("sk-ant") && !ran.stderr.contains("sk-ant"));
    let row = of(&list(&lathe), "anthropic");
    assert_eq!((&row["key"], &row["ready"]), (&json!("stored"), &json!(true)));
    let file = lathe.home().join("auth.json");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);

    // The key is used, and appears nowhere outside of the request.
    let repo = TempRepo::new(&[]);
    let options = lathe_testkit::Options {
        require_key: Some("sk-ant-stored-1234".to_owned()),
        ..lathe_testkit::Options::default()
    };
    let model = FakeModel::start(Script::new().answer(done("ok")), options);
    let url = model.base_url_for(lathe_testkit::Wire::Messages);
    let run = lathe.clone().in_dir(repo.path()).env("ANTHROPIC_BASE_URL", url);
    run.args(["run", "do it", "--provider", "anthropic", "--model", "m"]).run().expect_code(0);

    lathe.clone().args(["auth", "logout", "anthropic"]).run().expect_code(0);
    assert_eq!(of(&list(&lathe), "anthropic")["key"], "missing");
}

#[test]
fn doctor_asks_the_model_one_small_question() {
    let model = FakeModel::serving(Script::new().answer(call("c1", "ping", json!({ "word": "ok" }))));
    for wire in lathe_testkit::Wire::ALL {
        let ran = lathe().args(["doctor", "--json"]).with_wire(&model, wire).run().expect_code(0);
        let checks: Vec<Value> = serde_json::from_str(&ran.stdout).unwrap();
        let answer = checks.iter().find(|check| check["name"] == "answer").unwrap();
        let detail = answer["detail"].as_str().unwrap();
        assert!(answer["state"] == "ok" && detail.contains("calls tools"), "{} {answer}", wire.as_str());
    }
    let refused = FakeModel::start(
        Script::new().answer(done("ok")),
        lathe_testkit::Options {
            require_key: Some("sk-right-key-456".to_owned()),
            ..lathe_testkit::Options::default()
        },
    );
    let wrong = lathe().args(["doctor"]).args(["--model-base-url", &refused.base_url(), "--model", "m"]);
    let ran = wrong.args(["--api-key", "sk-wrong-key-123"]).run().expect_code(1);
    assert!(
        ran.stdout.contains("Check the key") && !ran.stdout.contains("sk-wrong-key-123"),
        "{}",
        ran.stdout
    );
}

#[test]
fn the_page_on_models_names_every_provider_with_its_wire_keys_and_address() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/models.md")).unwrap();
    let list: Vec<Value> =
        serde_json::from_str(&lathe().args(["models", "--json"]).run().expect_code(0).stdout).unwrap();
    for row in list {
        let start =
            format!("| `{}` | {} |", row["provider"].as_str().unwrap(), row["wire"].as_str().unwrap());
        let line = page.lines().find(|line| line.starts_with(&start)).unwrap_or_else(|| panic!("no {start}"));
        assert!(line.contains(row["base_url"].as_str().unwrap()), "{line}");
        let keys = row["key_variables"].as_array().unwrap();
        let named = keys.iter().all(|key| line.contains(&format!("`{}`", key.as_str().unwrap())));
        assert!(named || line.contains("none needed"), "{line}");
    }
}

/// Usage that a server may say, honest or not, and at most how many answers a cap of 100,000 tokens then lets through. A
/// request of these runs is far over 4,000 bytes, so an estimate counts at least 1,000 tokens for each.
#[test]
fn issue_15_caps_hold_whatever_a_server_says_about_usage() {
    let half = u64::MAX / 2;
    for said in [
        Value::Null,
        json!({}),
        json!({ "prompt_tokens": 0, "completion_tokens": 0 }),
        json!({ "prompt_tokens": 0 }),
        json!({ "prompt_tokens": null, "completion_tokens": null }),
        json!({ "prompt_tokens": -5, "completion_tokens": -1 }),
        json!({ "prompt_tokens": -1e300, "completion_tokens": 0.5 }),
        json!({ "prompt_tokens": "many", "completion_tokens": [] }),
        json!({ "prompt_tokens": u64::MAX, "completion_tokens": 1 }),
        json!({ "prompt_tokens": u64::MAX, "completion_tokens": u64::MAX }),
        json!({ "prompt_tokens": half + 1, "completion_tokens": half + 1 }),
        json!({ "prompt_tokens": 1e30, "completion_tokens": 1e30 }),
        json!({ "prompt_tokens": 0, "completion_tokens": 0, "prompt_tokens_details": { "cached_tokens": u64::MAX } }),
        json!("none"),
        json!({ "prompt_tokens": 1, "completion_tokens": 1 }),
        json!({ "prompt_tokens": 1, "prompt_tokens_details": { "cached_tokens": 1_000_000_000 } }),
    ] {
        for (flag, cap) in [("--max-tokens", "5000"), ("--max-cost", "0.005")] {
            let step = |n: usize| {
                call(&format!("c{n}"), "bash", json!({ "command": format!("echo {n}") }))
                    .reports_usage(said.clone())
            };
            let repo = TempRepo::new(&[]);
            let model = FakeModel::serving(Script::repeat(12, step).answer(done("ok")));
            let home = at_home(&repo, r#"{"fake": {"input": 1, "output": 1}}"#);
            let events = run(&home, &model, &[flag, cap]).run().expect_code(4).events();
            let finished = bodies(&events, "task_finished").remove(0);
            assert_eq!(finished["ending"], "budget_used_up", "{said} {flag}");
            let answers = bodies(&events, "model_answered");
            assert!(answers.len() <= 4, "{said} {flag}: {} answers", answers.len());
        }
    }
}

#[test]
fn issue_16_answers_that_break_off_count_against_the_caps() {
    let faults = [Fault::ResetMidStream, Fault::TruncateCleanly, Fault::CutMidEvent, Fault::BrokenJson];
    for fault in faults {
        for (flag, cap) in [("--max-tokens", "5000"), ("--max-cost", "0.005")] {
            let repo = TempRepo::new(&[]);
            let model = FakeModel::serving(Script::new().answer(done("ok").fails(9, fault.clone())));
            let home = at_home(&repo, r#"{"fake": {"input": 1, "output": 1}}"#);
            let events = run(&home, &model, &[flag, cap]).run().expect_code(4).events();
            let failed = bodies(&events, "model_failed").remove(0);
            assert!(failed["lost"]["input_tokens"].as_u64().unwrap() > 2000, "{fault:?} {flag}: {failed}");
            assert_eq!(bodies(&events, "task_finished")[0]["ending"], "budget_used_up", "{fault:?} {flag}");
            assert!(model.requests().len() <= 3, "{fault:?} {flag}: {} requests", model.requests().len());
        }
    }
    // What broke off before an answer came is part of what that answer took.
    let took = |fails: usize| {
        let repo = TempRepo::new(&[]);
        let answer = done("ok").reports_usage(json!({ "prompt_tokens": 3000, "completion_tokens": 10 }));
        let answer = if fails == 0 { answer } else { answer.fails(fails, Fault::ResetMidStream) };
        let model = FakeModel::serving(Script::new().answer(answer));
        let events = run(&at_home(&repo, "{}"), &model, &[]).run().expect_code(0).events();
        bodies(&events, "model_answered")[0]["usage"]["input_tokens"].as_u64().unwrap()
    };
    assert_eq!(took(0), 3000);
    assert!(took(1) > 5000);
}

#[test]
fn issue_15_an_estimate_is_said_once() {
    let repo = TempRepo::new(&[]);
    let step = |n: usize| {
        call(&format!("c{n}"), "bash", json!({ "command": format!("echo {n}") })).reports_usage(Value::Null)
    };
    let model = FakeModel::serving(Script::repeat(3, step).answer(done("ok")));
    let home = at_home(&repo, "{}");
    let words = ["run", "do it", "--mode", "full-auto", "--max-tokens", "1000000"];
    let ran = home.clone().args(words).with_model(&model).run().expect_code(0);
    assert_eq!(ran.stdout.matches("what an answer took is estimated").count(), 1, "{}", ran.stdout);
}

#[test]
fn issue_15_a_cap_is_a_finite_number() {
    for wrong in ["NaN", "inf", "infinity", "1e400", "-1", "-inf", "many", ""] {
        let ran = lathe().args(["run", "x", &format!("--max-cost={wrong}")]).run().expect_code(2);
        assert!(ran.stderr.contains("--max-cost"), "{wrong}: {}", ran.stderr);
    }
    for wrong in ["nan", "inf", "-inf"] {
        let lathe = lathe();
        std::fs::create_dir_all(lathe.home()).unwrap();
        std::fs::write(lathe.home().join("config.toml"), format!("[run]\nmax_cost = {wrong}\n")).unwrap();
        let ran = lathe.args(["run", "x"]).run().expect_code(2);
        assert!(ran.stderr.contains("config.toml:2: `run.max_cost` must be"), "{wrong}: {}", ran.stderr);
        assert!(ran.stderr.contains("but is not finite"), "{wrong}: {}", ran.stderr);
    }
}
