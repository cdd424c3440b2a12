//! Messages in fragments may not be larger than others, nor slower than a slow but honest client.

use std::time::{Duration, Instant};

use futures::SinkExt;
use lathe_protocol::Mode;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use crate::kit::{Server, Socket, call, cassette, done};

/// A run that waits for leave, and how to attach to it.
async fn waiting() -> (Server, String, Value) {
    let answers =
        [json!([call("a1", "bash", json!({ "command": "touch made" }))]), json!([done("b1", "made")])];
    let server = Server::start(cassette(answers), Mode::Default).await;
    let mut watcher = server.run("Make it.").await;
    let frames = watcher.until("approval").await;
    let session = frames.iter().find_map(|frame| frame["session_id"].as_str()).unwrap().to_owned();
    let question = frames.last().unwrap()["data"]["question"].clone();
    (server, format!("?session_id={session}"), question)
}

async fn fragment(socket: &mut Socket, first: bool, last: bool, text: &str) -> bool {
    let code = OpCode::Data(if first { Data::Text } else { Data::Continue });
    let frame = Frame::message(text.as_bytes().to_vec(), code, last);
    socket.socket.send(Message::Frame(frame)).await.is_ok()
}

async fn ping(socket: &mut Socket) -> bool {
    socket.socket.send(Message::Ping(b"still here".to_vec().into())).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_in_fragments_is_one_message_and_refused_as_soon_as_it_is_too_large() {
    let (server, attach, _) = waiting().await;
    let mut socket = server.socket(&attach).await;
    socket.until("status").await;
    // With pings between the fragments, as any client may send them.
    fragment(&mut socket, true, false, r#"{"type":"inp"#).await;
    ping(&mut socket).await;
    fragment(&mut socket, false, false, r#"ut","text":"#).await;
    fragment(&mut socket, false, true, r#""hello"}"#).await;
    assert_eq!(socket.until("receipt").await.last().unwrap()["data"]["accepted"], true);
    // Three megabytes are on their way; the connection ends after the first, and the client gets the reason.
    let piece = "x".repeat(64 << 10);
    let mut sent = fragment(&mut socket, true, false, &piece).await;
    for _ in 0..48 {
        sent = sent && fragment(&mut socket, false, false, &piece).await && ping(&mut socket).await;
    }
    let (code, reason) = socket.closed().await.expect("closed without a reason");
    assert_eq!((code, reason.as_str()), (1009, "a message may have 1048576 bytes"));
    // One frame that says in its head what it would be.
    let mut socket = server.socket(&attach).await;
    socket.until("status").await;
    let _ = socket.socket.send(Message::text("y".repeat(6 << 20))).await;
    assert_eq!(socket.closed().await.expect("closed without a reason").0, 1009);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_never_ends_is_not_waited_for_though_pings_come_between() {
    let (server, attach, question) = waiting().await;
    let mut quiet = server.socket(&attach).await;
    quiet.until("status").await;
    let mut slow = server.socket(&attach).await;
    slow.until("status").await;
    let began = Instant::now();
    let mut first = true;
    while fragment(&mut slow, first, false, "x").await && ping(&mut slow).await {
        first = false;
        // One that only says that it is there may stay.
        assert!(ping(&mut quiet).await);
        assert!(
            began.elapsed() < Duration::from_secs(240),
            "a message may take a minute, on a machine with time"
        );
        let closed = tokio::time::timeout(Duration::from_millis(300), slow.closed()).await;
        if let Ok(closed) = closed {
            let (code, reason) = closed.expect("closed without a reason");
            assert_eq!((code, reason.as_str()), (1008, "a message took longer than 10 seconds"));
            break;
        }
    }
    quiet.say(&json!({ "type": "approve", "call_id": "a1", "question": question, "answer": "once" })).await;
    quiet.until("end").await;
    assert!(server.root.join("made").exists());
    server.stop().await;
}
