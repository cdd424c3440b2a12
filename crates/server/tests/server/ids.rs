//! Ids of commands mean one command of one client for the life of a session, however often it is opened.

use lathe_protocol::Mode;
use lathe_server::{Role, Tokens};
use serde_json::{Value, json};

use crate::kit::{Server, Socket, cassette, done};

async fn receipt(socket: &mut Socket, message: &Value) -> Value {
    socket.say(message).await;
    socket.until("receipt").await.pop().unwrap()["data"].clone()
}

/// How many tasks a session was given.
async fn tasks(server: &Server, session: &str) -> usize {
    let request = format!(
        "GET /api/sessions/{session}/export?format=jsonl HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
        server.address, server.token
    );
    let (status, lines) = server.raw(&request).await;
    assert_eq!(status, 200, "{lines}");
    lines.lines().filter(|line| line.contains("\"task_given\"")).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_of_a_command_means_the_same_after_the_session_was_closed() {
    let ends = (0..4).map(|number| json!([done(&format!("d{number}"), "done")]));
    let server = Server::start(cassette(ends), Mode::Default).await;
    let hands = Tokens::add(&server.home, "hands", Role::Operator).unwrap();
    let others = Tokens::add(&server.home, "others", Role::Operator).unwrap();
    let (_, body) = server.ask_as(&hands, "POST", "/agent/interactive/start", Some(&json!({}))).await;
    let session = body["session_id"].as_str().unwrap().to_owned();
    let query = format!("?session_id={session}");
    let task = |id: &str, text: &str| json!({ "type": "task", "id": id, "task": text });
    let mut socket = server.socket_as(&hands, &query).await;
    let first = receipt(&mut socket, &task("0", "first")).await;
    assert_eq!(first["accepted"], true, "{first}");
    socket.until("completed").await;
    for _ in 0..2 {
        let close = format!("/agent/interactive/close?session_id={session}");
        assert_eq!(server.post(&close, json!({})).await.0, 200);
        let mut socket = server.socket_as(&hands, &query).await;
        // The same command gets its first receipt.
        assert_eq!(receipt(&mut socket, &task("0", "first")).await, first);
        // Another command, or another client, is not taken for it.
        let mut stranger = server.socket_as(&others, &query).await;
        for (by, message) in [
            ("hands", task("0", "second")),
            ("hands", json!({ "type": "cancel", "id": "0" })),
            ("hands", json!({ "type": "resume", "id": "0" })),
            ("others", task("0", "first")),
        ] {
            let socket = if by == "hands" { &mut socket } else { &mut stranger };
            let said = receipt(socket, &message).await;
            assert_eq!(said["accepted"], false, "{message}: {said}");
            assert!(
                said["reason"].as_str().unwrap().contains("used for another command"),
                "{message}: {said}"
            );
        }
        assert_eq!(tasks(&server, &session).await, 1);
    }
    // A new id has an effect.
    let mut socket = server.socket_as(&hands, &query).await;
    let second = receipt(&mut socket, &task("1", "second")).await;
    assert!(second["accepted"] == true && second["seq"] != first["seq"], "{second}");
    assert_eq!(second["id"], "1");
    assert_eq!(tasks(&server, &session).await, 2);
    server.stop().await;
}
