//! Nothing that a server sends shows what looks like a secret (part 9a, line 8), and nothing in it acts unseen.

use lathe_protocol::Mode;
use serde_json::json;

use crate::kit::{Server, call, cassette, done, say};

/// Secrets by their shape: none of them is known.
const PLANTED: [&str; 4] = [
    "sk-planted0123456789abcdef",
    "ghp_planted0123456789abcdefghij",
    "planted-hunter2-hunter2",
    "AKIAPLANTED012345678",
];

#[tokio::test(flavor = "multi_thread")]
async fn every_frame_and_every_answer_is_masked_by_shape() {
    let [one, two, three, four] = PLANTED;
    let odd = "x\u{9b}31m\u{202e}y";
    let text = format!("I use {one} and {two} {odd}.");
    let print = format!(
        "printf 'sk-pla'; printf 'nted0123456789abcdef\\n'; echo 'password = {three}' {four} '{odd}'"
    );
    let answers = cassette([
        json!([say(&text), call("a1", "bash", json!({ "command": print }))]),
        json!([call(
            "b1",
            "write",
            json!({ "path": "b.txt", "content": format!("{} {one}", "y".repeat(5)) })
        )]),
        json!([call("c1", "view", json!({ "path": "nowhere", "api_key": three }))]),
        json!([say(&text), done("d1", &format!("The key is {one}, password: {three}"))]),
    ]);
    let server = Server::start(answers, Mode::FullAuto).await;
    let mut socket = server.run(&format!("Use {one} {odd}")).await;
    let frames = socket.until("end").await;
    let session = frames.iter().find_map(|frame| frame["session_id"].as_str()).unwrap().to_owned();
    for kind in ["start", "step", "bubble", "completed"] {
        assert!(frames.iter().any(|frame| frame["type"] == kind), "no {kind}");
    }
    for frame in &frames {
        for secret in PLANTED {
            assert!(!frame.to_string().contains(secret), "{secret} in {frame}");
        }
    }
    let told: String = frames.iter().map(|frame| frame.to_string()).collect();
    assert!(told.contains("I use «secret» and «secret»"), "{told}");
    for path in [
        format!("/api/sessions/{session}/trajectory"),
        format!("/api/sessions/{session}/messages"),
        format!("/api/sessions/{session}/export?format=jsonl"),
        format!("/api/sessions/{session}/export?format=trajectory"),
        format!("/api/sessions/{session}/export?format=text"),
        "/api/sessions".to_owned(),
    ] {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
            server.address, server.token
        );
        let (status, body) = server.raw(&request).await;
        assert_eq!(status, 200, "{path}: {body}");
        for secret in PLANTED {
            assert!(!body.contains(secret), "{path}: {secret} in {body}");
        }
        if !path.ends_with("format=text") {
            assert!(!body.contains(['\u{9b}', '\u{202e}']), "{path}: {body}");
        }
    }
}
