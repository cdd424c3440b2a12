//! A resumed session keeps the options it was begun with: no flag of `run` is needed again, whatever the
//! configuration says by now; and a client that may begin a session with the server's own model may work in it later.

use lathe_testkit::{FakeModel, Lathe, Script, TempRepo, Wire, call, done, say};
use serde_json::json;

use crate::beside::Server;
use crate::lathe;

/// Two runs' worth of answers.
fn two_runs() -> Script {
    Script::new().answer(done("first")).answer(done("second"))
}

/// Another model of the user's, that no session of these tests asks.
fn other_model(lathe: &Lathe, other: &FakeModel) {
    std::fs::create_dir_all(lathe.home()).unwrap();
    let config = format!(
        "[model]\nprovider = 'anthropic'\nname = 'other'\nbase_url = '{}'\napi_key = 'key-of-the-other'\n[run]\nmax_steps = 3\n",
        other.base_url()
    );
    std::fs::write(lathe.home().join("config.toml"), config).unwrap();
}

#[test]
fn resume_needs_no_flag_that_run_was_given_but_a_key_that_is_nowhere() {
    for provider in [&[][..], &["-p", "deepseek"], &["-p", "mine"]] {
        let (repo, other) = (TempRepo::new(&[]), FakeModel::serving(two_runs()));
        let model = FakeModel::serving(two_runs());
        let lathe = lathe().in_dir(repo.path());
        other_model(&lathe, &other);
        let flags = ["--model-base-url", &model.base_url(), "-m", "fake", "--api-key", model.key()];
        let run = ["run", "x", "--max-steps", "7", "--max-tokens", "123456"];
        lathe.clone().args(run).args(flags).args(provider).run().expect_code(0);
        // The key is the one thing that is not kept, and the error says how to get it again.
        let refused = lathe.clone().args(["resume", "more of it"]).run().expect_code(2);
        assert!(
            refused.stderr.contains("--api-key") && refused.stderr.contains("came from a flag"),
            "{}",
            refused.stderr
        );
        let ran = lathe.clone().args(["resume", "more of it", "--api-key", model.key()]).run().expect_code(0);
        let first = ran.stdout.lines().next().unwrap();
        assert!(first.contains("fake") && first.contains("7") && first.contains("123456 tokens"), "{first}");
        assert_eq!((model.requests().len(), other.requests().len()), (2, 0), "{provider:?}");
    }
}

#[test]
fn the_places_of_a_key_are_named_and_a_key_that_is_there_again_is_enough() {
    let (repo, other) = (TempRepo::new(&[]), FakeModel::serving(two_runs()));
    let model = FakeModel::serving(two_runs());
    let lathe = lathe().in_dir(repo.path());
    other_model(&lathe, &other);
    let flags = ["-p", "deepseek", "-m", "fake", "--model-base-url", &model.base_url()];
    let keyed = lathe.clone().env("DEEPSEEK_API_KEY", model.key());
    keyed.clone().args(["run", "x"]).args(flags).run().expect_code(0);
    let refused = lathe.clone().args(["resume", "more of it"]).run().expect_code(2);
    assert!(refused.stderr.contains("the variable DEEPSEEK_API_KEY"), "{}", refused.stderr);
    keyed.args(["resume", "more of it"]).run().expect_code(0);
    // One that was stored.
    let model = FakeModel::serving(two_runs());
    let flags = ["-p", "mine", "-m", "fake", "--model-base-url", &model.base_url()];
    lathe.clone().args(["auth", "login", "mine"]).stdin(model.key()).run().expect_code(0);
    lathe.clone().args(["run", "x"]).args(flags).run().expect_code(0);
    lathe.clone().args(["auth", "logout", "mine"]).run().expect_code(0);
    let refused = lathe.clone().args(["resume", "more of it"]).run().expect_code(2);
    assert!(refused.stderr.contains("`lathe auth login mine`"), "{}", refused.stderr);
    lathe.clone().args(["auth", "login", "mine"]).stdin(model.key()).run().expect_code(0);
    lathe.clone().args(["resume", "more of it"]).run().expect_code(0);
    assert_eq!((model.requests().len(), other.requests().len()), (2, 0));
    // At the provider's own address: the key of another provider is not taken for it.
    let refused = lathe.args(["run", "x", "-p", "openai", "-m", "m"]).run().expect_code(2);
    for way in ["OPENAI_API_KEY", "`lathe auth login openai`", "--api-key"] {
        assert!(refused.stderr.contains(way), "{way}: {}", refused.stderr);
    }
}

#[test]
fn a_key_of_the_configuration_goes_on_where_it_was_sent() {
    let repo = TempRepo::new(&[]);
    let model = FakeModel::serving(two_runs());
    let lathe = lathe().in_dir(repo.path());
    std::fs::create_dir_all(lathe.home()).unwrap();
    // The entry is chosen by a flag once; the session is at its address from then on.
    let config = format!(
        "[model]\nprovider = 'anthropic'\nname = 'other'\napi_key = 'key-of-the-other'\n[providers.work]\nprovider = 'deepseek'\nbase_url = '{}'\napi_key = '{}'\n",
        model.base_url(),
        model.key()
    );
    std::fs::write(lathe.home().join("config.toml"), config).unwrap();
    lathe.clone().args(["run", "x", "-p", "work", "-m", "fake"]).run().expect_code(0);
    lathe.clone().args(["resume", "more of it"]).run().expect_code(0);
    assert_eq!(model.requests().len(), 2);
    assert!(model.violations().is_empty(), "{:?}", model.violations());
}

#[test]
fn a_session_over_any_wire_resumes_by_its_id_alone() {
    for wire in Wire::ALL {
        let (repo, other) = (TempRepo::new(&[]), FakeModel::serving(two_runs()));
        let model = FakeModel::serving(two_runs());
        let lathe = lathe().in_dir(repo.path());
        other_model(&lathe, &other);
        let variable = format!("{}_API_KEY", wire.provider().to_uppercase());
        let keyed = lathe.env(variable, model.key());
        keyed.clone().args(["run", "x"]).with_wire(&model, wire).run().expect_code(0);
        keyed.args(["resume", "more of it"]).run().expect_code(0);
        assert_eq!((model.requests().len(), other.requests().len()), (2, 0), "{wire:?}");
        assert!(model.violations().is_empty(), "{wire:?}: {:?}", model.violations());
    }
}

/// An operator's own session of a server whose flags name the model: removed, restored, forked, renamed and resumed,
/// by the same server and by one that was started with other flags.
#[test]
fn an_operator_keeps_his_session_where_the_servers_flags_chose_the_model() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let script = Script::new()
        .answer(call("v", "view", json!({ "path": "a.txt" })))
        .answer(done("first"))
        .answer(done("second"))
        .answer(say("more"));
    let (model, other) = (FakeModel::serving(script), FakeModel::serving(two_runs()));
    let lathe = lathe().in_dir(repo.path());
    let flags = ["--model-base-url", &model.base_url(), "--api-key", model.key(), "--model", "fake"];
    let added = lathe.clone().args(["serve", "token", "add", "hands", "--role", "operator"]).run();
    let token = added.expect_code(0).stdout.trim().to_owned();
    let mut server = Server::with(lathe.clone(), &flags);
    let (status, ran) = server.ask_as(&token, "POST", "/agent/run", &json!({ "task": "x" }));
    assert_eq!(status, 200, "{ran}");
    let id = ran["session_id"].as_str().unwrap().to_owned();
    let others = [
        "--model-base-url",
        &other.base_url(),
        "--api-key",
        other.key(),
        "--model",
        "fake",
        "-p",
        "deepseek",
    ];
    for again in [&flags[..], &others] {
        for (method, path, body) in [
            ("POST", format!("/api/sessions/{id}/rename"), json!({ "title": "mine" })),
            ("POST", format!("/api/sessions/{id}/fork"), json!({})),
            ("DELETE", format!("/api/sessions/{id}"), json!({})),
            ("POST", format!("/api/sessions/{id}/restore"), json!({})),
            ("POST", format!("/api/sessions/{id}/rewind"), json!({ "to": 1 })),
        ] {
            let (status, said) = server.ask_as(&token, method, &path, &body);
            assert_eq!(status, 200, "{method} {path}: {said}");
        }
        server.running.kill9();
        server = Server::with(lathe.clone(), again);
    }
    assert_eq!(other.requests().len(), 0, "a session is not moved to another model");
    server.running.kill9();
}
