//! A session that was begun before has what its journal says, without what the configuration of now leaves out.

use lathe_testkit::{FakeAnswer, FakeModel, Lathe, Script, TempRepo, call, done};
use serde_json::{Value, json};

use crate::beside::Server;
use crate::lathe;

const MARKS: [&str; 3] = ["by-line", "by-tool", "by-command"];

/// Three ways to leave a mark, each in a step of its own.
fn marking(script: Script) -> Script {
    let calls: [(&str, Value); 3] = [
        ("bash", json!({ "command": "touch by-line" })),
        ("write", json!({ "path": "by-tool", "content": "x\n" })),
        ("bash", json!({ "command": "write by-command x" })),
    ];
    let calls = calls.into_iter().enumerate();
    let answers = calls.map(|(at, (tool, arguments))| call(&format!("m{at}"), tool, arguments));
    answers.chain([done("marked")]).fold(script, |script: Script, answer: FakeAnswer| script.answer(answer))
}

/// The marks that are there. They are taken away again.
fn marks(repo: &TempRepo) -> Vec<&'static str> {
    let found: Vec<&str> = MARKS.into_iter().filter(|name| repo.exists(name)).collect();
    found.iter().for_each(|name| std::fs::remove_file(repo.join(name)).unwrap());
    found
}

/// The names of the tools in the last request.
fn told(model: &FakeModel) -> Vec<String> {
    let last = model.requests().last().unwrap().json();
    let tools = last["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

fn configure(lathe: &Lathe, text: &str) {
    std::fs::write(lathe.home().join("config.toml"), text).unwrap();
}

/// Settings, the marks that they leave possible, and the tools that the model no longer gets.
const TABLE: [(&str, &[&str], &[&str]); 6] = [
    ("", &MARKS, &[]),
    ("[tools]\nexclude = ['bash(touch)', 'write']\n", &[], &["write"]),
    ("[tools]\nexclude = ['bash']\n", &["by-tool"], &["bash"]),
    // The name of another toolset denies the tool, and the list stays as it is, as in a new session.
    ("[tools]\nexclude = ['write_file']\n", &["by-line"], &[]),
    ("[run]\ntools = ['view', 'write']\n", &["by-tool"], &["bash", "edit"]),
    ("[run]\ntools = ['view', 'bash(ls)', 'task_done']\n", &[], &["write", "edit"]),
];

#[test]
fn what_is_left_out_now_is_left_out_of_resumed_sessions_and_their_forks() {
    for (config, possible, gone) in TABLE {
        let repo = TempRepo::with_git(&[("a.txt", "a\n")]);
        let lathe = lathe().in_dir(repo.path());
        let first = FakeModel::serving(Script::new().answer(done("begun")));
        lathe.clone().args(["run", "x"]).with_model(&first).run().expect_code(0);
        let listed = lathe.clone().args(["sessions", "--json"]).run().expect_code(0).stdout;
        let listed: Value = serde_json::from_str(&listed).unwrap();
        let id = listed[0]["id"].as_str().unwrap().to_owned();
        let forked = lathe.clone().args(["fork", &id]).run().expect_code(0).stdout.trim().to_owned();
        configure(&lathe, config);
        let resume = |session: &str, model: &FakeModel| {
            let resume = lathe.clone().args(["resume", session, "again", "--mode", "full-auto"]);
            resume.with_model(model).run()
        };
        let all = told(&first);
        for session in [&id, &forked] {
            let model = FakeModel::serving(marking(Script::new().answer(done("begun"))));
            let ran = resume(session, &model);
            assert_eq!(marks(&repo), possible, "{config}: {}{}", ran.stdout, ran.stderr);
            let told = told(&model);
            let missing: Vec<&String> = all.iter().filter(|name| !told.contains(name)).collect();
            assert!(gone.iter().all(|name| missing.iter().any(|gone| gone == name)), "{config}: {told:?}");
            assert!(!gone.is_empty() || missing.is_empty(), "{config}: {told:?}");
        }
        let exact = lathe.clone().args(["replay", &id]).run().expect_code(0);
        assert!(exact.stdout.contains("0 divergences"), "{config}: {}", exact.stdout);
        if config.contains("bash(touch)") {
            // What is left out no more is back.
            configure(&lathe, "");
            let answers = Script::repeat(5, |_| done("before"));
            let model = FakeModel::serving(answers.then(marking(Script::new())));
            let ran = resume(&id, &model);
            assert_eq!(marks(&repo), MARKS, "{}{}", ran.stdout, ran.stderr);
            assert_eq!(told(&model), all);
        }
    }
}

#[test]
fn a_server_holds_it_for_tasks_in_its_old_sessions() {
    for (config, possible, _) in TABLE {
        let repo = TempRepo::with_git(&[("a.txt", "a\n")]);
        let model = FakeModel::serving(marking(Script::new().answer(done("begun"))));
        let lathe = lathe().in_dir(repo.path());
        let flags = ["--model-base-url", &model.base_url(), "--api-key", model.key(), "--model", "fake"];
        let server = Server::with(lathe.clone(), &flags);
        let (status, ran) = server.ask("POST", "/agent/run", &json!({ "task": "x", "mode": "full-auto" }));
        assert_eq!(status, 200, "{ran}");
        server.running.kill9();
        configure(&lathe, config);
        let server = Server::with(lathe, &flags);
        let task = json!({ "session_id": ran["session_id"], "task": "again" });
        let (status, said) = server.ask("POST", "/agent/interactive/task", &task);
        assert_eq!(status, 200, "{config}: {said}");
        assert_eq!(marks(&repo), possible, "{config}: {said}");
        server.running.kill9();
    }
}
