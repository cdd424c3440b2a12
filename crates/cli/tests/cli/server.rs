//! `lathe serve` as its users have it: another program, another process, another start.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use lathe_testkit::{FakeModel, Lathe, RunningLathe, Script, Signal, TempRepo, call, done, eventually};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::lathe;

const WITHIN: Duration = Duration::from_secs(60);

/// The Python that `scripts/test` made ready, or the machine's own.
fn python() -> PathBuf {
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-python/bin/python");
    if made.exists() { made } else { PathBuf::from("python3") }
}

struct Server {
    running: RunningLathe,
    address: String,
    token: String,
    left: Vec<String>,
}

/// Starts a server and reads what it says of itself.
fn serve(lathe: Lathe, flags: &[&str]) -> Server {
    let running = lathe.args(["serve", "--port", "0", "--json"]).args(flags).spawn();
    running.wait_for_stdout("\"token\"", WITHIN);
    eventually(WITHIN, "the whole line", || running.stdout_so_far().contains('\n'));
    let said: Value = serde_json::from_str(running.stdout_so_far().lines().next().unwrap()).unwrap();
    let text = |key: &str| said[key].as_str().unwrap().to_owned();
    let left = said["left"].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect();
    Server { address: text("address"), token: text("token"), left, running }
}

type Connection =
    tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>;

impl Server {
    async fn connect(&self, query: &str) -> Connection {
        let url = format!("ws://{}/ws/agent/interactive/task{query}", self.address);
        let mut request = url.into_client_request().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {}", self.token).parse().unwrap());
        tokio_tungstenite::connect_async(request).await.unwrap().0
    }
}

async fn say(connection: &mut Connection, message: Value) {
    connection.send(Message::text(message.to_string())).await.unwrap();
}

/// Frames up to the first that fits.
async fn until(connection: &mut Connection, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
    let mut frames: Vec<Value> = Vec::new();
    loop {
        let next = tokio::time::timeout(WITHIN, connection.next()).await;
        match next.unwrap_or_else(|_| panic!("nothing more came: {frames:?}")) {
            Some(Ok(Message::Text(text))) => frames.push(serde_json::from_str(&text).unwrap()),
            Some(Ok(_)) => continue,
            other => panic!("{other:?} after {frames:?}"),
        }
        if frames.last().is_some_and(&fits) {
            return frames;
        }
    }
}

/// With what words a connection was closed; none if it was merely cut.
async fn closed(connection: &mut Connection) -> Option<(u16, String)> {
    loop {
        let next = tokio::time::timeout(WITHIN, connection.next()).await.expect("it is not closed");
        match next? {
            Ok(Message::Close(frame)) => {
                return frame.map(|frame| (frame.code.into(), frame.reason.to_string()));
            }
            Ok(_) => {}
            Err(_) => return None,
        }
    }
}

fn on_a_runtime(work: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work);
}

#[test]
fn the_python_client_of_the_docs_drops_comes_back_approves_and_prints_each_bubble_once() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let outside = tempfile::tempdir().unwrap();
    let cassette = outside.path().join("answers.cassette");
    let answers = [
        json!({ "cassette": 1, "toolset": "lathe" }),
        json!({ "answer": { "blocks": [{ "text": { "text": "I look." } }, { "call": { "id": "a1", "name": "view", "arguments": { "path": "a.txt" } } }] } }),
        json!({ "answer": { "blocks": [{ "call": { "id": "b1", "name": "bash", "arguments": { "command": "touch made" } } }] } }),
        json!({ "answer": { "blocks": [{ "call": { "id": "c1", "name": "bash", "arguments": { "command": "exit 3" } } }] } }),
        json!({ "answer": { "blocks": [{ "call": { "id": "d1", "name": "task_done", "arguments": { "summary": "It is made." } } }] } }),
    ];
    let answers: Vec<String> = answers.iter().map(ToString::to_string).collect();
    std::fs::write(&cassette, answers.join("\n")).unwrap();
    let server = serve(lathe().in_dir(repo.path()), &["--replay", &cassette.display().to_string()]);
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/client.py");
    assert!(std::fs::read_to_string(&client).unwrap().lines().count() <= 40);
    let ran = Command::new(python())
        .arg(&client)
        .arg("Make it.")
        .env("LATHE_URL", format!("http://{}", server.address))
        .env("LATHE_TOKEN", &server.token)
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8(ran.stdout).unwrap(), String::from_utf8(ran.stderr).unwrap());
    assert!(ran.status.success(), "{err}\nPython needs `websockets`: scripts/test makes target/test-python");
    assert_eq!(
        out.lines().collect::<Vec<_>>(),
        [
            "llm-1\tI look.",
            "seq-1\t🧠 sequentialthinking 1：I look. ✅",
            "tc-1-a1\t🔧view {\"path\":\"a.txt\"} ✅",
            "tc-2-b1\t🔧bash {\"command\":\"touch made\"} ✅",
            "tc-3-c1\t🔧bash {\"command\":\"exit 3\"} ❌",
            "tc-4-d1\t🧠总结中…… ✅",
            "taskdone-4\tIt is made.",
        ]
    );
    assert!(repo.exists("made"));
    drop(server.running);
}

/// The flags that make a server talk to a model.
fn with_model(model: &FakeModel) -> [String; 6] {
    ["--model-base-url", &model.base_url(), "--model", "fake", "--api-key", model.key()].map(str::to_owned)
}

#[test]
fn after_a_kill_clients_come_back_by_cursor_see_the_run_parked_and_resume_it() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let script = || {
        Script::new()
            .answer(call("a1", "view", json!({ "path": "a.txt" })))
            .answer(call("b1", "bash", json!({ "command": "touch made" })))
            // The same again, under the same id: a model may do so.
            .answer(call("b1", "bash", json!({ "command": "touch made" })))
            .answer(done("It is made."))
    };
    let model = FakeModel::serving(script());
    let flags = with_model(&model);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let home = lathe().in_dir(repo.path());
    on_a_runtime(async {
        let server = serve(home.clone(), &flags);
        let mut connection = server.connect("").await;
        say(&mut connection, json!({ "task": "Make it." })).await;
        let before = until(&mut connection, |frame| frame["type"] == "approval").await;
        let last = before.iter().rev().find(|frame| frame.get("cursor").is_some()).unwrap();
        let (session, cursor) = (last["session_id"].as_str().unwrap(), last["cursor"].as_str().unwrap());
        server.running.kill9();
        eventually(WITHIN, "the server is gone", || {
            !Path::new(&format!("/proc/{}", server.running.pid())).exists() || is_zombie(server.running.pid())
        });
        drop(server);
        let server = serve(home.clone(), &flags);
        assert_eq!(server.left, [session]);
        let mut connection =
            server.connect(&format!("?session_id={session}&from={cursor}&until_end=true")).await;
        let parked = until(&mut connection, |frame| frame["type"] == "status").await;
        assert_eq!(parked.last().unwrap()["data"]["state"], "parked", "{parked:?}");
        say(&mut connection, json!({ "type": "resume" })).await;
        let asked = until(&mut connection, |frame| {
            frame["type"] == "approval" && frame["data"]["state"] == "asked" || frame["type"] == "end"
        })
        .await;
        let mut after = [parked, asked].concat();
        // The model was told that its call did not begin; what it tries again is asked again.
        let told = String::from_utf8(model.bodies()[2].clone()).unwrap();
        assert!(told.contains("Lathe was stopped before this call began. Nothing was done."), "{told}");
        assert!(!repo.exists("made"));
        let question = after.last().unwrap()["data"].clone();
        assert_eq!((&question["state"], &question["call_id"]), (&json!("asked"), &json!("b1")), "{after:?}");
        // An answer to the question of the killed server is refused, and the new one is answered.
        let old = &before.last().unwrap()["data"]["question"];
        assert_ne!(old, &question["question"]);
        for (id, number, is_accepted) in [("old", old, false), ("new", &question["question"], true)] {
            let answer = json!({
                "type": "approve", "id": id, "call_id": "b1", "question": number, "answer": "once",
            });
            say(&mut connection, answer).await;
            let is_receipt = |frame: &Value| frame["type"] == "receipt" && frame["data"]["id"] == id;
            after.extend(until(&mut connection, is_receipt).await);
            assert_eq!(after.last().unwrap()["data"]["accepted"], is_accepted, "{after:?}");
        }
        // The end may come before the receipt.
        if after.iter().all(|frame| frame["type"] != "end") {
            after.extend(until(&mut connection, |frame| frame["type"] == "end").await);
        }
        assert!(repo.exists("made"));
        let completed = after.iter().find(|frame| frame["type"] == "completed").unwrap();
        assert_eq!(completed["data"]["success"], true, "{completed}");
        // What came before the kill and what came after it is the whole, each once.
        let cursors = |frames: &[Value]| -> Vec<String> {
            frames.iter().filter_map(|frame| frame["cursor"].as_str().map(str::to_owned)).collect()
        };
        let told = [cursors(&before), cursors(&after)].concat();
        let mut all = server.connect(&format!("?session_id={session}&until_end=true")).await;
        let all = until(&mut all, |frame| frame["type"] == "end").await;
        assert_eq!(told, cursors(&all));
        // The question of the killed server is said to be open no more.
        assert!(after.iter().any(|frame| frame["type"] == "approval" && frame["data"]["state"] == "expired"));
    });
}

fn is_zombie(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
}

#[test]
fn a_server_that_is_told_to_goes_on_by_itself_after_a_kill() {
    goes_on_after(Signal::Kill);
}

#[test]
fn a_server_that_is_told_to_goes_on_by_itself_after_it_was_stopped() {
    goes_on_after(Signal::Terminate);
}

fn goes_on_after(signal: Signal) {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let model = FakeModel::serving(
        Script::new()
            .answer(call("a1", "bash", json!({ "command": "sleep 30" })))
            .answer(done("It went on.")),
    );
    let flags = with_model(&model);
    let flags: Vec<&str> = flags.iter().map(String::as_str).chain(["--on-restart", "resume"]).collect();
    let home = lathe().in_dir(repo.path());
    on_a_runtime(async {
        let server = serve(home.clone(), &flags);
        let mut connection = server.connect("").await;
        say(&mut connection, json!({ "task": "Wait.", "mode": "full-auto" })).await;
        let before = until(&mut connection, |frame| frame["type"] == "bubble").await;
        let session = before.last().unwrap()["session_id"].as_str().unwrap().to_owned();
        server.running.kill(signal);
        let closed = closed(&mut connection).await;
        match signal {
            Signal::Terminate => assert_eq!(closed, Some((1001, "the server stops".to_owned()))),
            _ => assert_eq!(closed, None),
        }
        eventually(WITHIN, "the server is gone", || is_zombie(server.running.pid()));
        drop(server);
        let server = serve(home.clone(), &flags);
        let mut connection = server.connect(&format!("?session_id={session}&until_end=true")).await;
        let all = until(&mut connection, |frame| frame["type"] == "completed").await;
        assert_eq!(all.last().unwrap()["data"]["final_result"], "It went on.");
    });
}

#[test]
fn a_session_that_a_server_merely_holds_open_is_not_said_to_be_running() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let model = FakeModel::serving(Script::new().answer(done("It is seen.")));
    let home = lathe().in_dir(repo.path());
    let server = serve(home.clone(), &with_model(&model).each_ref().map(String::as_str));
    on_a_runtime(async {
        let mut connection = server.connect("").await;
        say(&mut connection, json!({ "task": "Look." })).await;
        until(&mut connection, |frame| frame["type"] == "end").await;
    });
    // The session is still open there: no other process may write it.
    let listed = home.clone().args(["sessions"]).run().expect_code(0).stdout;
    let id = listed.split_whitespace().next().unwrap();
    home.clone().args(["resume", id, "More."]).run().expect_code(2);
    assert!(listed.contains("completed"), "{listed}");
    let shown = home.clone().args(["show", id]).run().expect_code(0).stdout;
    assert!(!shown.contains("still running") && shown.contains(&format!("lathe show {id}")), "{shown}");
    drop(server.running);
}

fn host_of(url: &str) -> String {
    url.split('/').nth(2).unwrap().to_owned()
}

#[test]
fn a_client_makes_the_server_speak_to_this_machine_only_where_its_owner_said_so() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let model = FakeModel::serving(Script::new().answer(done("done")));
    let near = model.base_url().replace("127.0.0.1", "localhost");
    let server = serve(lathe().in_dir(repo.path()), &[]);
    on_a_runtime(async {
        for url in [model.base_url(), near.clone(), "http://169.254.169.254/v1".to_owned()] {
            let mut connection = server.connect("").await;
            say(&mut connection, json!({ "task": "Look.", "model": "fake", "model_base_url": url })).await;
            let frames = until(&mut connection, |frame| frame["type"] == "error").await;
            let message = frames.last().unwrap()["data"]["message"].as_str().unwrap().to_owned();
            assert!(message.contains("is refused") && message.contains("--model-host"), "{message}");
        }
    });
    on_a_runtime(async {
        let mut connection = server.connect("").await;
        say(&mut connection, json!({ "task": "Look.", "model": "fake", "provider": "nosuch" })).await;
        let frames = until(&mut connection, |frame| frame["type"] == "error").await;
        let message = frames.last().unwrap()["data"]["message"].as_str().unwrap().to_owned();
        assert!(
            message.starts_with("`provider`: `nosuch` is not known") && message.contains("ollama"),
            "{message}"
        );
    });
    assert_eq!(model.requests().len(), 0);
    drop(server.running);
    let host = host_of(&near);
    let server = serve(lathe().in_dir(repo.path()), &["--model-host", &host]);
    on_a_runtime(async {
        let mut connection = server.connect("").await;
        let request =
            json!({ "task": "Look.", "model": "fake", "model_base_url": near, "api_key": model.key() });
        say(&mut connection, request).await;
        let frames = until(&mut connection, |frame| frame["type"] == "end").await;
        assert!(frames.iter().any(|frame| frame["data"]["success"] == true), "{frames:?}");
    });
    drop(server.running);
}

#[test]
fn two_sessions_in_two_folders_with_two_keys_do_not_mix() {
    let (one, two) = (TempRepo::new(&[("name.txt", "alpha7\n")]), TempRepo::new(&[("name.txt", "omega9\n")]));
    let script = || {
        let mut script = Script::new();
        for step in 0..6 {
            let line =
                "pwd; cat name.txt; echo \"$MARK\"; export MARK=$(cat name.txt); cd /; cd - >/dev/null";
            script = script.answer(call(&format!("c{step}"), "bash", json!({ "command": line })));
        }
        script.answer(done("done"))
    };
    let models = [FakeModel::serving(script()), FakeModel::serving(script())];
    let server = {
        let (one, two) = (one.path().display().to_string(), two.path().display().to_string());
        let hosts = models.each_ref().map(|model| host_of(&model.base_url()));
        let hosts = ["--model-host", &hosts[0], "--model-host", &hosts[1]];
        serve(lathe().in_dir(one.as_str()), &[["--root", &one, "--root", &two], hosts].concat())
    };
    on_a_runtime(async {
        let folders = [one.path(), two.path()];
        let runs = folders.iter().zip(&models).map(|(folder, model)| {
            let server = &server;
            async move {
                let mut connection = server.connect("").await;
                let request = json!({
                    "task": "Look.", "working_dir": folder, "mode": "full-auto",
                    "model": "fake", "model_base_url": model.base_url(), "api_key": model.key(),
                });
                say(&mut connection, request).await;
                until(&mut connection, |frame| frame["type"] == "end").await
            }
        });
        let runs = futures::future::join_all(runs).await;
        for (at, frames) in runs.iter().enumerate() {
            let (own, other) = if at == 0 { ("alpha7", "omega9") } else { ("omega9", "alpha7") };
            let text = serde_json::to_string(frames).unwrap();
            assert!(text.contains(own) && !text.contains(other), "{own} and {other} are mixed");
            assert!(!text.contains(models[0].key()) && !text.contains(models[1].key()));
            assert!(text.contains("\"success\":true"));
            let last = frames
                .iter()
                .rev()
                .find(|frame| frame["type"] == "step" && frame["data"]["step_number"] == 6)
                .unwrap();
            let result = last["data"]["tool_results"][0]["result"].as_str().unwrap();
            let folder = folders[at].canonicalize().unwrap();
            assert!(result.contains(&format!("\n{}\n{own}\n{own}\n", folder.display())), "{result}");
        }
        for model in &models {
            let asked = model.requests();
            assert_eq!(asked.len(), 7);
            assert!(asked.iter().all(|request| {
                request.header("authorization").is_some_and(|given| given.contains(model.key()))
            }));
        }
    });
}

#[test]
fn whatever_the_description_allows_the_server_does_not_break() {
    let repo = TempRepo::with_git(&[("a.txt", "one\n"), ("src/b.txt", "two\n")]);
    let outside = tempfile::tempdir().unwrap();
    let cassette = outside.path().join("answers.cassette");
    let done = json!({ "answer": { "blocks": [{ "call": { "id": "d1", "name": "task_done", "arguments": { "summary": "Done." } } }] } });
    let answers =
        [json!({ "cassette": 1, "toolset": "lathe" }), done.clone(), done].map(|line| line.to_string());
    std::fs::write(&cassette, answers.join("\n")).unwrap();
    let server = serve(lathe().in_dir(repo.path()), &["--replay", &cassette.display().to_string()]);
    // What ends the session it comes with, and what has no end, is tried elsewhere.
    let left_out = "^/(ws/|auth|api/files/watch|lakeview/summary/stream)";
    let examples = lathe_testkit::size(5, 60).to_string();
    let ran = Command::new(python().with_file_name("schemathesis"))
        .args(["run", &format!("http://{}/openapi.json", server.address)])
        .args(["-H", &format!("Authorization: Bearer {}", server.token)])
        .args([
            "--checks",
            "not_a_server_error",
            "--generation-deterministic",
            "--phases",
            "coverage,fuzzing",
        ])
        .args(["--max-examples", &examples, "--exclude-path-regex", left_out, "--request-timeout", "60"])
        .current_dir(outside.path())
        .output()
        .unwrap_or_else(|error| {
            panic!("schemathesis cannot be started ({error}): scripts/test makes target/test-python")
        });
    let out = String::from_utf8_lossy(&ran.stdout);
    let tail: Vec<&str> = out.lines().rev().take(60).collect();
    let tail: Vec<&str> = tail.into_iter().rev().collect();
    assert!(
        ran.status.success() && out.contains("passed"),
        "{}\n{}",
        tail.join("\n"),
        server.running.stderr_so_far()
    );
}

#[test]
fn the_configuration_of_a_server_shows_the_model_of_its_flags() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let flags = [
        "--provider",
        "openrouter",
        "--model",
        "mock/model",
        "--model-base-url",
        "http://127.0.0.1:1/v1",
        "--api-key",
        "k-planted-0123456789",
    ];
    let server = crate::beside::Server::with(lathe().in_dir(repo.path()), &flags);
    let (status, config) = server.ask("GET", "/agent/config", &json!({}));
    assert_eq!((status, &config["general"]["default_provider"]), (200, &json!("openrouter")), "{config}");
    let provider = &config["provider"];
    assert_eq!(
        (&provider["model"], &provider["base_url"], &provider["api_key_set"]),
        (&json!("mock/model"), &json!("http://127.0.0.1:1/v1"), &json!(true))
    );
    let (status, rows) = server.ask("GET", "/api/config", &json!({}));
    let rows = rows["settings"].as_array().unwrap().clone();
    let row = rows.iter().find(|row| row["key"] == "model.name").unwrap();
    assert_eq!((status, &row["value"]), (200, &json!("mock/model")), "{row}");
    for said in [config.to_string(), json!(rows).to_string()] {
        assert!(!said.contains("k-planted"), "{said}");
    }
}
