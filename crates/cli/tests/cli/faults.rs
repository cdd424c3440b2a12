//! A bad network is a pause, not a failure; a half-received call is never run.

use lathe_testkit::{FakeModel, Fault, Script, TempRepo, call, done};
use serde_json::json;

use crate::{bodies, run_in};

#[test]
fn passing_faults_are_asked_through_and_the_call_runs_once() {
    let faults = [
        Fault::status(429, "slow down").header("retry-after-ms", "10"),
        Fault::status(500, "oops").header("retry-after", "0"),
        Fault::status(503, "overloaded").header("retry-after-ms", "1"),
        Fault::CloseBeforeAnyByte,
        Fault::ResetMidStream,
        Fault::TruncateCleanly,
        Fault::Garbage,
    ];
    for fault in faults {
        let repo = TempRepo::new(&[]);
        let script = Script::new()
            .answer(call("c1", "bash", json!({ "command": "echo x >> count" })).fails(1, fault.clone()))
            .answer(done("ok"));
        let model = FakeModel::serving(script);
        let events = run_in(repo.path(), &model).run().expect_code(0).events();
        assert_eq!(model.violations(), Vec::<String>::new(), "{fault:?}");
        assert_eq!(repo.read("count"), "x\n", "{fault:?}");
        assert_eq!(bodies(&events, "model_failed").len(), 0, "{fault:?}");
        assert_eq!(model.requests().len(), 3, "{fault:?}");
    }
}

#[test]
fn a_refused_request_is_not_repeated_and_says_why() {
    for (code, words) in [(400, "max_tokens is too large"), (403, "no access"), (404, "no such model")] {
        let repo = TempRepo::new(&[]);
        let model =
            FakeModel::serving(Script::new().answer(done("ok").always_fails(Fault::status(code, words))));
        let events = run_in(repo.path(), &model).run().expect_code(3).events();
        assert_eq!(model.requests().len(), 1);
        let result = bodies(&events, "task_finished")[0]["result"].as_str().unwrap().to_owned();
        assert!(result.contains(&format!("answered {code}: {words}")), "{result}");
    }
}

#[test]
fn a_conversation_that_is_too_long_is_recorded_as_that() {
    let repo = TempRepo::new(&[]);
    let fault = Fault::status(400, "This model's maximum context length is 8192 tokens");
    let model = FakeModel::serving(Script::new().answer(done("ok").always_fails(fault)));
    let events = run_in(repo.path(), &model).run().expect_code(3).events();
    assert_eq!(bodies(&events, "model_failed")[0]["kind"], "too_long");
}

#[test]
fn a_wait_the_provider_asks_for_is_kept_and_shown() {
    for seconds in [1, 4] {
        let repo = TempRepo::new(&[]);
        let fault = Fault::status(429, "slow down").header("retry-after", &seconds.to_string());
        let model = FakeModel::serving(Script::new().answer(done("ok").fails(1, fault)));
        let run = crate::lathe().in_dir(repo.path()).args(["run", "do it"]).with_model(&model);
        let ran = run.run().expect_code(0);
        let took = model.requests()[1].head_at - model.requests()[0].body_at;
        assert!(took.as_secs() >= seconds, "{took:?} instead of {seconds} s");
        assert!(
            ran.stdout.contains(&format!("{seconds}.0 s")) && ran.stdout.contains("slow down"),
            "{}",
            ran.stdout
        );
    }
}
