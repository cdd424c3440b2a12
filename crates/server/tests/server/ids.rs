//! Ids of commands mean one command of one client for the life of a session, however often it is opened.

use lathe_protocol::{
    Actor, Command, CommandBody, CommandId, EditsReviewed, Mode, ReceiptAnswer, RunNo, StepNo, StepSummarised,
};
use lathe_server::{Role, Tokens};
use serde_json::{Value, json};

use std::sync::Arc;

use crate::kit::{Recorded, Server, Socket, call, cassette, done};

async fn receipt(socket: &mut Socket, message: &Value) -> Value {
    socket.say(message).await;
    receipt_of(socket, &message["id"]).await
}

/// The receipt of the message with this id.
async fn receipt_of(socket: &mut Socket, id: &Value) -> Value {
    loop {
        let data = socket.until("receipt").await.pop().unwrap()["data"].clone();
        if data["id"] == *id {
            return data;
        }
    }
}

/// The number of tasks that a session was given.
async fn tasks(server: &Server, session: &str) -> usize {
    server.events(session).await.iter().filter(|event| event["kind"] == "task_given").count()
}

/// The number of events that a command of this id led to.
async fn effects(server: &Server, session: &str, id: &str) -> usize {
    let events = server.events(session).await;
    let of_command = |event: &&Value| {
        event["body"]["command"].as_str().is_some_and(|command| command.split('~').next() == Some(id))
    };
    events.iter().filter(of_command).count()
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
    // The end may come before the receipt, so it is read from the beginning.
    server.socket_as(&hands, &query).await.until("completed").await;
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

/// A session that stands where a command has an effect, a client of it, and the command.
async fn ready(command: &str) -> (Server, String, Socket, Value) {
    let (first, mode) = match command {
        "approve" => (call("a1", "bash", json!({ "command": "touch made" })), Mode::Default),
        "answer" => (call("q1", "ask_user", json!({ "question": "Which colour?" })), Mode::FullAuto),
        _ => (call("b1", "bash", json!({ "command": "sleep 60" })), Mode::FullAuto),
    };
    let text = cassette([json!([first]), json!([done("d1", "done")]), json!([done("d2", "done")])]);
    let mut server = Server::start(text.clone(), mode).await;
    let (_, body) = server.post("/agent/interactive/start", json!({})).await;
    let session = body["session_id"].as_str().unwrap().to_owned();
    let query = format!("?session_id={session}");
    let mut socket = server.socket(&query).await;
    if command == "task" {
        return (server, session, socket, json!({ "type": "task", "id": "k", "task": "first" }));
    }
    socket.say(&json!({ "type": "task", "task": "first" })).await;
    let message = match command {
        "approve" => {
            let question = socket.until("approval").await.pop().unwrap()["data"]["question"].clone();
            json!({ "type": "approve", "id": "k", "call_id": "a1", "question": question, "answer": "once" })
        }
        "answer" => {
            let question = socket.until("question").await.pop().unwrap()["data"]["question"].clone();
            json!({ "type": "answer", "id": "k", "call_id": "q1", "question": question, "answers": ["blue"] })
        }
        _ => {
            socket.until("bubble").await;
            match command {
                "input" => json!({ "type": "input", "id": "k", "text": "hurry" }),
                "cancel" => json!({ "type": "cancel", "id": "k" }),
                "cancel call" => json!({ "type": "cancel", "id": "k", "call_id": "b1" }),
                "resume" => {
                    socket.say(&json!({ "type": "cancel" })).await;
                    socket.until("end").await;
                    json!({ "type": "resume", "id": "k" })
                }
                "resume parked" => {
                    let folder = server.stop_keeping().await;
                    let again = Arc::new(Recorded { cassette: text, mode });
                    server = Server::inside(again, folder).await;
                    socket = server.socket(&query).await;
                    json!({ "type": "resume", "id": "k" })
                }
                other => panic!("{other}"),
            }
        }
    };
    (server, session, socket, message)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_command_of_a_socket_that_is_repeated_has_one_effect_and_one_receipt() {
    for command in ["task", "input", "cancel", "cancel call", "approve", "answer", "resume", "resume parked"]
    {
        let (server, session, mut socket, message) = ready(command).await;
        let first = receipt(&mut socket, &message).await;
        assert_eq!(first["accepted"], true, "{command}: {first}");
        for _ in 0..2 {
            assert_eq!(receipt(&mut socket, &message).await, first, "{command}");
        }
        // Another client of the same token may repeat it too, and so may one that comes after the effect.
        let mut other = server.socket(&format!("?session_id={session}")).await;
        assert_eq!(receipt(&mut other, &message).await, first, "{command}");
        assert_eq!(effects(&server, &session, "k").await, 1, "{command}");
        let close = format!("/agent/interactive/close?session_id={session}");
        assert_eq!(server.post(&close, json!({})).await.0, 200);
        // Only a task and `resume` open a session again.
        if message["type"] == "task" || message["type"] == "resume" {
            let mut later = server.socket(&format!("?session_id={session}")).await;
            assert_eq!(receipt(&mut later, &message).await, first, "{command}");
        }
        assert_eq!(effects(&server, &session, "k").await, 1, "{command}");
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_commands_to_resume_a_run_the_second_is_refused() {
    for command in ["resume", "resume parked"] {
        let (server, _, mut socket, _) = ready(command).await;
        socket.say(&json!({ "type": "resume", "id": "r1" })).await;
        socket.say(&json!({ "type": "resume", "id": "r2" })).await;
        let first = receipt_of(&mut socket, &json!("r1")).await;
        let second = receipt_of(&mut socket, &json!("r2")).await;
        assert_eq!((&first["accepted"], &second["accepted"]), (&json!(true), &json!(false)), "{second}");
        server.stop().await;
    }
}

/// A session of one run that changed two files.
async fn changed() -> (Server, String) {
    let text = cassette([
        json!([call("w1", "write", json!({ "path": "one.txt", "content": "1\n" }))]),
        json!([call("w2", "write", json!({ "path": "two.txt", "content": "2\n" }))]),
        json!([done("d1", "done")]),
        json!([done("d2", "done")]),
        json!([done("d3", "done")]),
    ]);
    let server = Server::start(text, Mode::FullAuto).await;
    let (_, body) = server.post("/agent/interactive/start", json!({})).await;
    let session = body["session_id"].as_str().unwrap().to_owned();
    let (status, body) =
        server.post("/agent/interactive/task", json!({ "session_id": session, "task": "make" })).await;
    assert_eq!(status, 200, "{body}");
    (server, session)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_command_over_http_that_is_repeated_has_one_effect() {
    for is_open in [true, false] {
        for (path, body, other, kind) in [
            ("rename", json!({ "title": "New" }), json!({ "title": "Other" }), "session_named"),
            ("changes/accept", json!({ "path": "one.txt" }), json!({ "path": "two.txt" }), "edits_reviewed"),
            ("changes/reject", json!({ "all": true }), json!({ "path": "two.txt" }), "files_restored"),
        ] {
            let (server, session) = changed().await;
            if !is_open {
                let close = format!("/agent/interactive/close?session_id={session}");
                assert_eq!(server.post(&close, json!({})).await.0, 200);
            }
            let route = format!("/api/sessions/{session}/{path}");
            let with_id = |mut body: Value| {
                body["id"] = json!("k");
                body
            };
            let mut counts = Vec::new();
            for _ in 0..3 {
                let (status, answer) = server.post(&route, with_id(body.clone())).await;
                assert_eq!(status, 200, "{path}: {answer}");
                let events = server.events(&session).await;
                counts.push(events.iter().filter(|event| event["kind"] == kind).count());
            }
            let once = if path == "changes/reject" { 2 } else { 1 };
            assert_eq!(counts, [once; 3], "{path}, open: {is_open}");
            // The id belongs to this command.
            let (status, answer) = server.post(&route, with_id(other)).await;
            assert_eq!(status, 409, "{path}: {answer}");
            assert!(answer["detail"].as_str().unwrap().contains("used for another command"), "{answer}");
            server.stop().await;
        }
    }
    let (server, session) = changed().await;
    let task = json!({ "session_id": session, "task": "again", "id": "k" });
    let (status, first) = server.post("/agent/interactive/task", task.clone()).await;
    assert_eq!(status, 200, "{first}");
    assert_eq!(server.post("/agent/interactive/task", task).await, (200, first));
    assert_eq!(tasks(&server, &session).await, 2);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_a_rewind_and_a_fork_that_are_repeated_have_one_effect_and_one_answer() {
    for is_open in [true, false] {
        for (path, body, other, effects) in [
            ("undo", json!({}), None, 1),
            ("rewind", json!({ "to": 1, "files": true }), Some(json!({ "to": 0, "files": true })), 2),
            ("rewind", json!({ "to": 1 }), Some(json!({ "to": 0 })), 1),
            ("fork", json!({ "at": 1 }), Some(json!({ "at": 2 })), 0),
        ] {
            let (server, session) = changed().await;
            let close = format!("/agent/interactive/close?session_id={session}");
            if !is_open {
                assert_eq!(server.post(&close, json!({})).await.0, 200);
            }
            let route = format!("/api/sessions/{session}/{path}");
            let with_id = |mut body: Value| {
                body["id"] = json!("k");
                body
            };
            // The token that is printed at the start ends with the server; this one does not.
            let hands = Tokens::add(&server.home, "hands", Role::Admin).unwrap();
            let command = with_id(body);
            let (status, first) = server.ask_as(&hands, "POST", &route, Some(&command)).await;
            assert_eq!(status, 200, "{path}: {first}");
            let (one, two) = tokio::join!(
                server.ask_as(&hands, "POST", &route, Some(&command)),
                server.ask_as(&hands, "POST", &route, Some(&command))
            );
            for again in [one, two] {
                // One may find the journal in use by the other.
                assert!(again == (200, first.clone()) || again.0 == 409, "{path}: {again:?}");
            }
            let folder = server.stop_keeping().await;
            let plans = Recorded { cassette: cassette([json!([done("d", "done")])]), mode: Mode::FullAuto };
            let server = Server::inside(Arc::new(plans), folder).await;
            let again = server.ask_as(&hands, "POST", &route, Some(&command)).await;
            assert_eq!(again, (200, first), "{path}, open: {is_open}");
            let events = server.events(&session).await;
            let is_effect = |event: &&Value| event["kind"] == "files_restored" || event["kind"] == "rewound";
            assert_eq!(events.iter().filter(is_effect).count(), effects, "{path}, open: {is_open}");
            let sessions = server.get("/api/sessions").await.1.as_array().unwrap().len();
            assert_eq!(sessions, if path == "fork" { 2 } else { 1 }, "{path}");
            // The id belongs to this command.
            if let Some(other) = other {
                let (status, answer) = server.ask_as(&hands, "POST", &route, Some(&with_id(other))).await;
                assert_eq!(status, 409, "{path}: {answer}");
            }
            server.stop().await;
        }
    }
}

/// Commands that a client cannot name an id for, given by the handle that every surface has.
#[tokio::test(flavor = "multi_thread")]
async fn each_command_of_a_surface_that_is_repeated_has_one_effect_and_one_receipt() {
    let (server, session) = changed().await;
    let folder = server.stop_keeping().await;
    let host = lathe_host::Host::new(lathe_host::Home::at(folder.path().join("home")));
    let plans = Recorded { cassette: cassette([json!([done("d", "done")])]), mode: Mode::FullAuto };
    let id = lathe_protocol::SessionId::new(&session);
    let recorded = host.archive().options(&id).unwrap();
    let overrides = lathe_plan::Plans::overrides(&plans, folder.path(), &recorded).unwrap();
    let opened = host.resume(&id, overrides).await.unwrap();
    let summary = StepSummarised {
        task: "t".to_owned(),
        details: "d".to_owned(),
        tags: Vec::new(),
        model: "m".to_owned(),
        usage: lathe_protocol::Usage::default(),
        command: None,
    };
    let (path, hunks) = ("one.txt".to_owned(), vec!["h".to_owned()]);
    let reviewed = EditsReviewed { path, hunks, accepted: true, command: None };
    for body in [
        CommandBody::Rename { title: "Named".to_owned() },
        CommandBody::Summarise { run: RunNo(1), step: StepNo(1), summary },
        CommandBody::Review { reviewed, changes: Vec::new() },
    ] {
        let name = format!("{body:?}");
        let before = host.archive().events(&id).unwrap().len();
        let command = Command { id: CommandId::new(&name), actor: Actor::Person, body };
        let first = opened.handle().submit(command.clone()).await;
        assert!(matches!(first.answer, ReceiptAnswer::Accepted { .. }), "{name}: {first:?}");
        assert_eq!(opened.handle().submit(command).await, first, "{name}");
        assert_eq!(host.archive().events(&id).unwrap().len(), before + 1, "{name}");
    }
    opened.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_of_the_journal_is_not_forgotten_for_refused_ones() {
    let server = Server::start(cassette([json!([done("d1", "done")])]), Mode::Default).await;
    let hands = Tokens::add(&server.home, "hands", Role::Operator).unwrap();
    let others = Tokens::add(&server.home, "others", Role::Operator).unwrap();
    let (_, body) = server.ask_as(&hands, "POST", "/agent/interactive/start", Some(&json!({}))).await;
    let query = format!("?session_id={}", body["session_id"].as_str().unwrap());
    let task = json!({ "type": "task", "id": "k", "task": "first" });
    let mut socket = server.socket_as(&hands, &query).await;
    let first = receipt(&mut socket, &task).await;
    assert_eq!(first["accepted"], true, "{first}");
    server.socket_as(&hands, &query).await.until("completed").await;
    for hundred in 0..42 {
        let cancel =
            |at: usize| json!({ "type": "cancel", "id": format!("c{hundred}-{at}"), "call_id": "nope" });
        for at in 0..99 {
            socket.say(&cancel(at)).await;
        }
        let last = receipt(&mut socket, &cancel(99)).await;
        assert_eq!(last["accepted"], false, "{last}");
    }
    let mut stranger = server.socket_as(&others, &query).await;
    let refused = receipt(&mut stranger, &task).await;
    assert_eq!(refused["accepted"], false, "{refused}");
    assert_eq!(receipt(&mut socket, &task).await, first);
}
