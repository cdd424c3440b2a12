//! Requests whose size or shape would cost the server more than they cost their client.

use std::sync::Arc;

use lathe_host::{Home, Host};
use lathe_plan::{Configured, GivenOptions};
use lathe_protocol::Mode;
use serde_json::json;

use crate::kit::{Server, call, cassette, done};

fn one_step() -> String {
    cassette([json!([done("d1", "done")])])
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_is_too_long_is_refused_and_not_kept() {
    let server = Server::start(one_step(), Mode::FullAuto).await;
    let mut socket = server.run("go").await;
    socket.until("end").await;
    let (_, sessions) = server.get("/api/sessions").await;
    let session = sessions[0]["id"].as_str().unwrap().to_owned();
    let long = "i".repeat(129);
    for (path, mut body) in [
        (format!("/api/sessions/{session}/rename"), json!({ "title": "other" })),
        (format!("/api/sessions/{session}/undo"), json!({})),
        (format!("/api/sessions/{session}/rewind"), json!({ "to": 0 })),
        (format!("/api/sessions/{session}/fork"), json!({ "at": 1 })),
        ("/agent/interactive/task".to_owned(), json!({ "session_id": session, "task": "again" })),
    ] {
        body["id"] = json!(long);
        let (status, refused) = server.post(&path, body).await;
        assert_eq!(status, 422, "{path}: {refused}");
        assert!(refused["detail"].as_str().unwrap().contains("128 bytes"), "{path}: {refused}");
    }
    let mut socket = server.socket(&format!("?session_id={session}")).await;
    socket.say(&json!({ "type": "cancel", "id": long })).await;
    let told = socket.until("error").await;
    assert!(told.last().unwrap()["data"]["message"].as_str().unwrap().contains("128 bytes"), "{told:?}");
    // One that is as long as it may be is taken.
    socket.say(&json!({ "type": "cancel", "id": "i".repeat(128) })).await;
    let told = socket.until("receipt").await;
    assert_eq!(told.last().unwrap()["data"]["id"], json!("i".repeat(128)));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_does_not_send_the_request_back() {
    let server = Server::start(one_step(), Mode::FullAuto).await;
    let (status, refused) =
        server.post("/online/docs/search", json!({ "pageNum": "A".repeat(1_000_000) })).await;
    assert_eq!(status, 422);
    let detail = refused["detail"].as_str().unwrap();
    assert!(detail.chars().count() < 2100, "{}", detail.len());
    assert!(detail.contains("bytes in all"), "{detail}");
    // A secret that lies on the place of the cut is not shown in half.
    let key = format!("{}sk-ant-api03-{}", "x".repeat(1900), "Ab3dE5gH".repeat(12));
    let (_, refused) =
        server.post("/online/docs/search", json!({ "pageNum": format!("{key}{}", "y".repeat(3000)) })).await;
    assert!(!refused.to_string().contains("sk-ant-api03-Ab3"), "{refused}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_of_sockets_answers_a_plain_request_in_json() {
    let server = Server::start(one_step(), Mode::FullAuto).await;
    for path in ["/ws/agent/run/stream", "/ws/agent/interactive/task"] {
        let (status, refused) = server.get(path).await;
        assert_eq!(status, 400, "{path}: {refused}");
        assert_eq!(refused["code"], "bad_request", "{path}: {refused}");
    }
    server.stop().await;
}

/// An absurd line is not parsed for long: the server answers other requests meanwhile, and the call is refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_line_of_brackets_in_brackets_is_refused() {
    let line = format!("echo {}ls{}", "$(".repeat(20_000), ")".repeat(20_000));
    let steps =
        cassette([json!([call("c", "bash", json!({ "command": line }))]), json!([done("d", "done")])]);
    let server = Server::start(steps, Mode::Plan).await;
    let mut socket = server.run("go").await;
    let frames = socket.until("end").await;
    let (_, sessions) = server.get("/api/sessions").await;
    let events = server.events(sessions[0]["id"].as_str().unwrap()).await;
    let decided = events.iter().find(|event| event["kind"] == "call_decided").expect("a decision");
    assert_eq!(decided["body"]["decision"]["verdict"], "deny", "{frames:?}");
    server.stop().await;
}

/// A model that is stored without an address is at its provider's, regardless of the owner's settings for that
/// provider.
#[tokio::test(flavor = "multi_thread")]
async fn the_key_of_a_kept_model_goes_to_no_address_of_the_settings() {
    let folder = tempfile::tempdir().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let home = folder.path().join("home");
    std::fs::create_dir(&home).unwrap();
    let settings = format!(
        "[model]\nprovider = 'vllm'\nname = 'm'\nbase_url = 'http://{address}/v1'\nmax_retries = 0\n"
    );
    std::fs::write(home.join("config.toml"), settings).unwrap();
    let plans = Configured {
        host: Arc::new(Host::new(Home::at(home))),
        flags: GivenOptions::default(),
        cassette: None,
        model_hosts: Vec::new(),
    };
    let server = Server::inside(Arc::new(plans), folder).await;
    let model = json!({ "provider": "vllm", "model": "m", "api_key": "KEY-OF-THE-ADMIN" });
    let (status, said) = server.ask_as(&server.token, "PUT", "/api/models/k", Some(&model)).await;
    assert_eq!(status, 200, "{said}");
    let (status, said) = server.post("/agent/interactive/start", json!({ "model_config_name": "k" })).await;
    assert_eq!(status, 200, "{said}");
    let session = said["session_id"].as_str().unwrap().to_owned();
    server.post("/agent/interactive/task", json!({ "session_id": session, "task": "go" })).await;
    assert!(listener.accept().is_err(), "the key of the kept model was sent to an address of the settings");
    server.stop().await;
}
