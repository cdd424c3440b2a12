//! Requests to models outside of the conversation, over real connections: reviews of edits and summaries of steps;
//! and models that are stored on a server.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use lathe_testkit::{FakeModel, RunningLathe, Script, TempRepo, call, done, eventually, say};
use serde_json::{Value, json};

use crate::lathe;

const WITHIN: Duration = Duration::from_secs(60);

/// A model under a name of its own, for a configuration file.
fn named(name: &str, model: &FakeModel) -> String {
    format!(
        "[models.{name}]\nprovider = '{name}'\nname = '{name}'\nbase_url = '{}'\napi_key = '{}'\n",
        model.base_url(),
        model.key()
    )
}

#[test]
fn a_judge_of_its_own_holds_up_the_end_until_its_budget_is_used_up() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let write = |id: &str| call(id, "write", json!({ "path": format!("{id}.txt"), "content": "thin\n" }));
    let script =
        Script::new().answer(write("w1")).answer(done("early")).answer(write("w2")).answer(done("late"));
    let model = FakeModel::serving(script);
    let verdict = json!({ "pass": false, "reasons": ["it is thin"], "suggestions": [], "locations": [{ "path": "w1.txt" }] });
    let judge = FakeModel::serving(Script::new().answer(say(&verdict.to_string())));
    let lathe = lathe().in_dir(repo.path());
    std::fs::create_dir_all(lathe.home()).unwrap();
    let config = format!(
        "[review]\nenabled = true\nrules = 'No thin text.'\ngate = true\nmax_reviews = 2\nmodel = 'judge'\n{}",
        named("judge", &judge)
    );
    std::fs::write(lathe.home().join("config.toml"), config).unwrap();
    let lathe = lathe.args(["run", "Write.", "--mode", "full-auto", "--output", "json"]);
    let ran = lathe.with_model(&model).run();
    let ran = ran.expect_code(0);
    assert!(ran.stdout.contains("late"), "{}", ran.stdout);
    let asked = judge.requests();
    assert_eq!(asked.len(), 2);
    let first = asked[0].json();
    assert_eq!((&first["temperature"], &first["max_tokens"]), (&json!(0.2), &json!(4096)));
    assert!(first.get("tools").is_none());
    let text = first["messages"].to_string();
    assert!(text.contains("No thin text.") && text.contains("+thin") && text.contains("w1.txt"), "{text}");
    // What the model read: the reasons at the edit, and again where the end was refused.
    let last = model.requests().last().unwrap().json()["messages"].to_string();
    assert_eq!(last.matches("- it is thin").count(), 3, "{last}");
    assert!(last.contains("The task cannot end") && last.contains("This was the last review of this run"));
    assert!(judge.violations().is_empty() && model.violations().is_empty());
}

pub(crate) struct Server {
    pub(crate) running: RunningLathe,
    address: String,
    token: String,
}

impl Server {
    pub(crate) fn start(lathe: lathe_testkit::Lathe) -> Self {
        Self::with(lathe, &[])
    }

    pub(crate) fn with(lathe: lathe_testkit::Lathe, flags: &[&str]) -> Self {
        let running = lathe.args(["serve", "--port", "0", "--json"]).args(flags).spawn();
        running.wait_for_stdout("\"token\"", WITHIN);
        eventually(WITHIN, "the whole line", || running.stdout_so_far().contains('\n'));
        let said: Value = serde_json::from_str(running.stdout_so_far().lines().next().unwrap()).unwrap();
        let text = |key: &str| said[key].as_str().unwrap().to_owned();
        Self { address: text("address"), token: text("token"), running }
    }

    pub(crate) fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        self.ask_as(&self.token, method, path, body)
    }

    pub(crate) fn ask_as(&self, token: &str, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let body = body.to_string();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.address,
            body.len()
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let status = text.split(' ').nth(1).unwrap().parse().unwrap();
        let body = text.split_once("\r\n\r\n").unwrap().1;
        (status, serde_json::from_str(body).unwrap_or_else(|_| Value::String(body.to_owned())))
    }
}

#[test]
fn a_model_that_the_server_keeps_is_used_by_its_name_also_after_a_restart_and_its_steps_are_summed_up() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let script = Script::new()
        .answer(call("v1", "view", json!({ "path": "a.txt" })))
        .answer(done("first"))
        .answer(done("second"));
    let model = FakeModel::serving(script);
    // One answer for both questions: each reads what it needs.
    let said = "<task>looks at the file</task><details>Reads a.txt.</details><tags>EXAMINE_CODE</tags>";
    let lake = FakeModel::serving(Script::new().answer(say(said)));
    let lathe = lathe().in_dir(repo.path());
    std::fs::create_dir_all(lathe.home()).unwrap();
    std::fs::write(
        lathe.home().join("config.toml"),
        // A model on this machine may be named by clients, because this file names it too.
        format!(
            "[lakeview]\nmodel = 'lake'\n{}[providers.near]\nbase_url = '{}'\n",
            named("lake", &lake),
            model.base_url()
        ),
    )
    .unwrap();
    let server = Server::start(lathe.clone());
    let kept =
        json!({ "provider": "mine", "model": "fake", "base_url": model.base_url(), "api_key": model.key() });
    let put = server.ask("PUT", "/api/models/main", &kept);
    assert_eq!(put.0, 200, "{}", put.1);
    let (status, tested) = server.ask("POST", "/api/models/main/test", &json!({}));
    assert_eq!((status, &tested["ok"]), (200, &json!(true)), "{tested}");
    let (status, result) = server.ask(
        "POST",
        "/agent/run",
        &json!({ "task": "Look.", "model_config_name": "main", "mode": "full-auto" }),
    );
    assert_eq!((status, &result["final_result"]), (200, &json!("first")), "{result}");
    let session = result["session_id"].as_str().unwrap().to_owned();
    let (_, summed) = server.ask("POST", "/lakeview/summary", &json!({ "session_id": session }));
    assert_eq!((&summed["count"], &summed["summaries"][0]["task"]), (&json!(2), &json!("looks at the file")));
    assert_eq!(lake.requests().len(), 4);
    assert!(!lake.requests()[0].json()["messages"].to_string().contains("one\\n"), "results are not shown");
    let (_, config) = server.ask("GET", "/api/config", &json!({}));
    let (_, models) = server.ask("GET", "/api/models", &json!({}));
    for told in [config.to_string(), models.to_string()] {
        assert!(!told.contains(model.key()) && !told.contains(lake.key()), "{told}");
    }
    // Summaries cost money too, and are listed separately.
    let cost = lathe.clone().args(["cost", "--json"]).run().expect_code(0).stdout;
    let total = serde_json::from_str::<Value>(&cost).unwrap()["total"].clone();
    assert_eq!((&total["answers"], &total["lakeview"]["answers"]), (&json!(4), &json!(2)), "{total}");
    let beside = total["lakeview"]["usage"]["input_tokens"].as_u64().unwrap();
    assert!(beside > 0 && total["usage"]["input_tokens"].as_u64().unwrap() > beside, "{total}");
    let text = lathe.clone().args(["cost"]).run().expect_code(0).stdout;
    assert!(text.contains("of that Lakeview: "), "{text}");
    server.running.kill9();
    // The key is not in the journal; the server knows whose it was.
    let server = Server::start(lathe);
    let (status, result) =
        server.ask("POST", "/agent/interactive/task", &json!({ "session_id": session, "task": "Again." }));
    assert_eq!((status, &result["final_result"]), (200, &json!("second")), "{result}");
    assert!(model.violations().is_empty() && lake.violations().is_empty());
}
