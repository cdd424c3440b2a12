//! A run is steered, asked about, cancelled; and nothing a client does harms it.

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use lathe_protocol::Mode;
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use crate::kit::{Server, Socket, call, cassette, done, durable, say};

/// One command that has to be asked about.
fn asking() -> String {
    cassette([json!([call("a1", "bash", json!({ "command": "touch made" }))]), json!([done("b1", "made")])])
}

async fn question(socket: &mut Socket) -> serde_json::Value {
    socket.until("approval").await.pop().unwrap()["data"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_answers_the_first_counts_and_the_second_is_told() {
    let server = Server::start(asking(), Mode::Default).await;
    let mut first = server.run("Make it.").await;
    let asked = question(&mut first).await;
    assert_eq!((&asked["state"], &asked["what"]["line"]), (&json!("asked"), &json!("touch made")));
    let (_, sessions) = server.get("/api/sessions").await;
    let session = sessions[0]["id"].as_str().unwrap();
    assert_eq!(sessions[0]["state"], "running");
    let mut second = server.socket(&format!("?session_id={session}")).await;
    assert_eq!(question(&mut second).await["question"], asked["question"]);
    let answer = |id: &str, answer: &str| json!({ "type": "approve", "id": id, "call_id": "a1", "question": asked["question"], "answer": answer });
    first.say(&answer("one", "once")).await;
    let receipt = first.until("receipt").await.pop().unwrap();
    assert_eq!(receipt["data"]["accepted"], true, "{receipt}");
    let given = question(&mut second).await;
    assert_eq!((&given["state"], &given["answer"]), (&json!("given"), &json!("once")));
    second.say(&answer("two", "no")).await;
    let receipt = second.until("receipt").await.pop().unwrap()["data"].clone();
    assert_eq!((&receipt["accepted"], &receipt["id"]), (&json!(false), &json!("two")));
    first.until("end").await;
    assert!(server.root.join("made").exists());
    server.stop().await;
}

/// A run so short that it may end before its first frame goes out.
#[tokio::test(flavor = "multi_thread")]
async fn the_status_never_tells_an_end_whose_frames_are_still_to_come() {
    for _ in 0..20 {
        let server = Server::start(cassette([json!([done("a1", "at once")])]), Mode::Default).await;
        let frames = server.run("Do it.").await.until("end").await;
        let early =
            frames.iter().find(|frame| frame["type"] == "status" && frame["data"]["state"] != "running");
        assert!(early.is_none(), "{frames:?}");
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_away_leaves_the_question_open() {
    let server = Server::start(asking(), Mode::Default).await;
    let mut first = server.run("Make it.").await;
    let asked = question(&mut first).await;
    drop(first);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let (_, sessions) = server.get("/api/sessions").await;
    let session = sessions[0]["id"].as_str().unwrap();
    let mut again = server.socket(&format!("?session_id={session}&until_end=true")).await;
    assert_eq!(question(&mut again).await, asked);
    again
        .say(&json!({
            "type": "approve",
            "data": { "call_id": "a1", "question": asked["question"], "answer": "no", "reason": "not here" },
        }))
        .await;
    let frames = again.until("end").await;
    let told = frames.iter().find(|frame| {
        frame["type"] == "step" && frame["data"]["tool_results"].to_string().contains("not here")
    });
    assert!(told.is_some(), "{frames:?}");
    assert!(!server.root.join("made").exists());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_while_the_model_says_done_is_read_before_the_run_ends() {
    let answers = cassette([
        json!([call("a1", "bash", json!({ "command": "touch made" })), done("a2", "first")]),
        json!([say("I heard it."), done("b1", "second")]),
    ]);
    let server = Server::start(answers, Mode::Default).await;
    let mut socket = server.run("Make it.").await;
    let asked = question(&mut socket).await;
    socket.say(&json!({ "type": "input", "text": "and say that you heard this" })).await;
    socket.until("receipt").await;
    let number = &asked["question"];
    socket.say(&json!({ "type": "approve", "call_id": "a1", "question": number, "answer": "once" })).await;
    let frames = socket.until("end").await;
    let completed = &frames[frames.len() - 2]["data"];
    assert_eq!((&completed["final_result"], &completed["steps_count"]), (&json!("second"), &json!(2)));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn input_is_heard_and_cancel_ends_the_run() {
    let answers = cassette([
        json!([call("a1", "bash", json!({ "command": "sleep 0.5" }))]),
        json!([say("I heard it."), call("b1", "bash", json!({ "command": "sleep 98360" }))]),
        json!([done("c1", "never")]),
    ]);
    let server = Server::start(answers, Mode::FullAuto).await;
    let mut socket = server.run("Wait.").await;
    socket.until("usage").await;
    socket.say(&json!({ "type": "input", "id": "k1", "text": "only the parser, please" })).await;
    let frames = socket.until("receipt").await;
    assert_eq!(frames.last().unwrap()["data"]["accepted"], true);
    // A repeat of the same command is the same command.
    socket.say(&json!({ "type": "input", "id": "k1", "text": "only the parser, please" })).await;
    socket.until("receipt").await;
    socket.until("usage").await;
    socket.say(&json!({ "type": "cancel" })).await;
    let frames = socket.until("end").await;
    let completed = &frames[frames.len() - 2]["data"];
    assert_eq!((&completed["success"], &completed["ending"]), (&json!(false), &json!("cancelled")));
    let (_, sessions) = server.get("/api/sessions?q=wait").await;
    let session = sessions[0]["id"].as_str().unwrap();
    let mut all = server.socket(&format!("?session_id={session}&until_end=true")).await;
    let all = all.until("end").await;
    let said: Vec<_> = all.iter().filter(|frame| frame["type"] == "input").collect();
    assert_eq!(said.len(), 1);
    assert_eq!(said[0]["data"]["text"], "only the parser, please");
    // A word to a run that is over is refused, with what to do instead.
    let mut late = server.socket(&format!("?session_id={session}")).await;
    late.say(&json!({ "type": "input", "text": "too late" })).await;
    let receipt = late.until("receipt").await.pop().unwrap();
    assert_eq!(receipt["data"]["accepted"], false);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_frames_end_the_connection_with_a_reason_and_the_run_goes_on() {
    let server = Server::start(asking(), Mode::Default).await;
    let mut watcher = server.run("Make it.").await;
    let asked = question(&mut watcher).await;
    let (_, sessions) = server.get("/api/sessions").await;
    let attach = format!("?session_id={}", sessions[0]["id"].as_str().unwrap());
    let big = "x".repeat((1 << 20) + 1);
    let bad: Vec<(&str, Message, u16)> = vec![
        ("not JSON", Message::text("{\"type\":"), 1003),
        ("binary", Message::binary(vec![1, 2, 3]), 1003),
        ("too large", Message::text(big), 1009),
    ];
    for (what, message, code) in bad {
        let mut socket = server.socket(&attach).await;
        socket.until("status").await;
        let _ = socket.socket.send(message).await;
        let (closed, reason) =
            socket.closed().await.unwrap_or_else(|| panic!("{what}: closed without a reason"));
        assert_eq!(closed, code, "{what}: {reason}");
        assert!(!reason.is_empty(), "{what}");
    }
    // What is JSON but not understood is said, and the connection stays.
    let mut socket = server.socket(&attach).await;
    for text in [r#"{"type":"dance"}"#, "[1]", "\"x\"", r#"{"type":"approve","answer":"maybe"}"#] {
        socket.socket.send(Message::text(text)).await.unwrap();
        socket.until("error").await;
    }
    // Bytes that are not a frame at all, and half a frame.
    for bytes in [&b"\x00\xff\xff\xff garbage"[..], &b"\x81\xfe\x00\x10\x00"[..]] {
        let mut raw = server.socket(&attach).await;
        let stream = raw.socket.get_mut();
        tokio::io::AsyncWriteExt::write_all(stream, bytes).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // First messages that are not a request.
    for (text, code) in [
        ("", 1003),
        ("[]", 1003),
        ("{}", 1003),
        (r#"{"session_id":"nobody","task":"x"}"#, 1008),
        (r#"{"task":5}"#, 1003),
    ] {
        let mut socket = server.socket("").await;
        socket.socket.send(Message::text(text)).await.unwrap();
        let first = socket.next().await.unwrap();
        assert_eq!(first["type"], "error", "{text}");
        assert_eq!(socket.closed().await.unwrap().0, code, "{text}");
    }
    // Attaching to a session that does not exist, or from a cursor that is not one.
    for (query, status) in [("?session_id=nobody", 404), (&*format!("{attach}&from=soon"), 422)] {
        let request = format!(
            "GET /ws/agent/interactive/task{query} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            server.address, server.token
        );
        assert_eq!(server.raw(&request).await.0, status, "{query}");
    }
    let number = &asked["question"];
    watcher.say(&json!({ "type": "approve", "call_id": "a1", "question": number, "answer": "once" })).await;
    let frames = watcher.until("end").await;
    assert!(
        durable(&frames).iter().any(|frame| frame["type"] == "completed" && frame["data"]["success"] == true)
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocking_run_gives_the_result_object() {
    let server = Server::start(cassette([json!([done("a1", "All good.")])]), Mode::Default).await;
    for route in ["/agent/run", "/api/agent/run"] {
        let (status, result) = server.post(route, json!({ "task": "x" })).await;
        assert_eq!(status, 200, "{result}");
        assert_eq!(result["final_result"], "All good.");
        assert_eq!(
            (&result["success"], &result["agent_state"], &result["steps_count"]),
            (&json!(true), &json!("completed"), &json!(1))
        );
        assert_eq!(result["working_dir"], server.root.display().to_string());
    }
    for wrong in [json!({}), json!({ "task": " " }), json!({ "task": "x", "file_path": "/x" })] {
        assert_eq!(server.post("/agent/run", wrong.clone()).await.0, 400, "{wrong}");
    }
    assert_eq!(server.post("/agent/run", json!({ "task": 5 })).await.0, 422);
    let mut quiet = server.socket("").await;
    assert!(tokio::time::timeout(Duration::from_millis(200), quiet.socket.next()).await.is_err());
    server.stop().await;
}

/// The status of a request to attach to a session.
async fn attached(server: &Server, query: &str) -> u16 {
    let request = format!(
        "GET /ws/agent/interactive/task{query} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        server.address, server.token
    );
    server.raw(&request).await.0
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_that_the_session_has_not_come_to_is_refused_before_the_upgrade() {
    let server = Server::start(cassette([json!([done("d1", "done")])]), Mode::FullAuto).await;
    let frames = server.run("Do it.").await.until("end").await;
    let end = frames.last().unwrap();
    let (id, cursor) = (end["session_id"].as_str().unwrap(), end["cursor"].as_str().unwrap());
    for (from, wanted) in [(cursor, 101), ("0", 101), ("", 101), ("99999.1", 422), ("99999", 422), ("x", 422)]
    {
        assert_eq!(attached(&server, &format!("?session_id={id}&from={from}")).await, wanted, "{from}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_are_told_that_the_server_stops() {
    let server = Server::start(asking(), Mode::Default).await;
    let mut running = server.run("Make it.").await;
    let asked = running.until("approval").await.pop().unwrap();
    let id = asked["session_id"].as_str().unwrap();
    let mut watching = server.socket(&format!("?session_id={id}")).await;
    watching.until("status").await;
    // One that has said nothing yet.
    let mut silent = server.socket("").await;
    server.stop().await;
    for socket in [&mut running, &mut watching, &mut silent] {
        assert_eq!(socket.closed().await, Some((1001, "the server stops".to_owned())));
    }
}

async fn receipt(socket: &mut Socket, message: &serde_json::Value) -> (bool, String) {
    socket.say(message).await;
    let receipt = socket.until("receipt").await.pop().unwrap();
    let data = &receipt["data"];
    (data["accepted"].as_bool().unwrap(), data["reason"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn words_that_say_nothing_are_refused_with_a_reason() {
    let answers = cassette([
        json!([call("a1", "ask_user", json!({ "question": "Which colour?" }))]),
        json!([done("d1", "done")]),
    ]);
    let server = Server::start(answers, Mode::Default).await;
    let mut socket = server.run("Ask me.").await;
    let asked = socket.until("question").await.pop().unwrap();
    let number = &asked["data"]["question"];
    let answer = |answers: &[&str]| json!({ "type": "answer", "call_id": "a1", "question": number, "answers": answers });
    for (message, told) in [
        (answer(&[]), "1 asked, 0 answered"),
        (answer(&["red", "blue"]), "1 asked, 2 answered"),
        (json!({ "type": "input", "text": "" }), "`text` is empty"),
        (json!({ "type": "input", "text": " \n" }), "`text` is empty"),
        (json!({ "type": "task", "task": "" }), "`task` is empty"),
        (json!({ "type": "resume" }), "under way"),
        (json!({ "type": "answer", "call_id": "a1", "answers": ["red"] }), "`question` is missing"),
        (json!({ "type": "answer", "call_id": "a1", "question": 1, "answers": ["red"] }), "no longer asked"),
        (json!({ "type": "approve", "call_id": "a1", "answer": "once" }), "`question` is missing"),
    ] {
        let (accepted, reason) = receipt(&mut socket, &message).await;
        assert!(!accepted && reason.contains(told), "{message}: {reason}");
    }
    assert_eq!(receipt(&mut socket, &answer(&["red"])).await, (true, String::new()));
    socket.until("end").await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_cancelled_goes_on_and_everybody_is_told() {
    let answers = cassette([
        json!([call("a1", "bash", json!({ "command": "sleep 98360" }))]),
        json!([done("d1", "It went on.")]),
    ]);
    let server = Server::start(answers, Mode::FullAuto).await;
    let mut socket = server.run("Wait.").await;
    let id = socket.until("usage").await.pop().unwrap()["session_id"].as_str().unwrap().to_owned();
    socket.say(&json!({ "type": "cancel" })).await;
    let end = socket.until("end").await.pop().unwrap();
    let query = format!("?session_id={id}&from={}", end["cursor"].as_str().unwrap());
    let (mut one, mut other) = (server.socket(&query).await, server.socket(&query).await);
    // Said twice, it is one command, with one receipt.
    for _ in 0..2 {
        one.say(&json!({ "type": "resume", "id": "r1" })).await;
    }
    let mut told = Vec::new();
    while told.iter().filter(|frame: &&serde_json::Value| frame["type"] == "receipt").count() < 2
        || !told.iter().any(|frame| frame["type"] == "completed")
    {
        told.push(one.next().await.unwrap());
    }
    let of = |kind: &str| -> Vec<_> {
        told.iter().filter(|frame| frame["type"] == kind).map(|frame| frame["data"].clone()).collect()
    };
    assert_eq!(of("resumed"), [json!({ "run": 1 })]);
    assert_eq!(of("receipt")[0]["accepted"], true, "{:?}", of("receipt"));
    assert_eq!(of("receipt")[0], of("receipt")[1]);
    other.until("resumed").await;
    let completed = other.until("completed").await.pop().unwrap();
    assert_eq!(completed["data"]["final_result"], "It went on.");
    server.stop().await;
}
