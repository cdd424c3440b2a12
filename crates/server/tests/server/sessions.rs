//! Sessions over HTTP: named, forked, taken back, removed and brought back, exported.

use lathe_protocol::Mode;
use serde_json::{Value, json};

use crate::kit::{Server, call, cassette, done};

/// A session of three steps that made two files.
async fn session() -> (Server, String) {
    let answers = [
        json!([call("w1", "write", json!({ "path": "one.txt", "content": "1\n" }))]),
        json!([call("w2", "write", json!({ "path": "two.txt", "content": "2\n" }))]),
        json!([done("d", "It is done.")]),
    ];
    let server = Server::start(cassette(answers), Mode::FullAuto).await;
    let mut socket = server.run("make two files").await;
    let frames = socket.until("end").await;
    let id = frames.iter().find_map(|frame| frame["session_id"].as_str()).unwrap().to_owned();
    assert!(server.root.join("two.txt").exists(), "{frames:?}");
    (server, id)
}

async fn at(server: &Server, id: &str, word: &str, body: Value) -> (u16, Value) {
    server.post(&format!("/api/sessions/{id}/{word}"), body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_named_whether_it_is_open_or_not() {
    let (server, id) = session().await;
    let mut watching = server.socket(&format!("?session_id={id}")).await;
    let (status, row) = at(&server, &id, "rename", json!({ "title": " The  two\nfiles " })).await;
    assert_eq!((status, &row["title"]), (200, &json!("The two files")), "{row}");
    watching.until("session").await;
    server.post(&format!("/agent/interactive/close?session_id={id}"), json!({})).await;
    let (status, row) = at(&server, &id, "rename", json!({ "title": "Later" })).await;
    assert_eq!((status, &row["title"]), (200, &json!("Later")), "{row}");
    assert_eq!(watching.until("session").await.last().unwrap()["data"]["title"], "Later");
    assert_eq!(at(&server, &id, "rename", json!({ "title": " " })).await.0, 400);
    assert_eq!(server.get("/api/sessions?q=later").await.1[0]["id"], json!(id));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_back_and_forth_and_has_children() {
    let (server, id) = session().await;
    let (status, fork) = at(&server, &id, "fork", json!({ "at": 1 })).await;
    assert_eq!(status, 200, "{fork}");
    let (_, row) = server.get(&format!("/api/sessions/{}", fork["id"].as_str().unwrap())).await;
    assert_eq!(row["steps"], 1);
    let (status, look) = at(&server, &id, "rewind", json!({ "to": 1, "files": true, "preview": true })).await;
    assert_eq!(
        (status, &look["restored"]),
        (200, &json!([{ "path": "two.txt", "act": "removed" }])),
        "{look}"
    );
    assert!(server.root.join("two.txt").exists());
    let (status, back) = at(&server, &id, "rewind", json!({ "to": 1, "files": true })).await;
    assert_eq!((status, &back["steps"]), (200, &json!(2)), "{back}");
    assert!(server.root.join("one.txt").exists() && !server.root.join("two.txt").exists());
    let (status, _) = at(&server, &id, "undo", json!({})).await;
    assert_eq!(status, 200);
    assert!(server.root.join("two.txt").exists());
    assert_eq!(at(&server, &id, "rewind", json!({ "to": 99 })).await.0, 400);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_session_is_gone_and_can_come_back() {
    let (server, id) = session().await;
    let path = format!("/api/sessions/{id}");
    let (status, kept) = server.ask_as(&server.token, "DELETE", &path, None).await;
    assert_eq!((status, &kept["kind"]), (200, &json!("session")), "{kept}");
    assert_eq!(server.get(&path).await.0, 404);
    assert_eq!(server.get("/api/sessions").await.1, json!([]));
    assert_eq!(at(&server, "nobody", "restore", json!({})).await.0, 404);
    assert_eq!(at(&server, &id, "restore", json!({})).await.0, 200);
    assert_eq!(server.get(&path).await.1["steps"], 3);
    assert_eq!(at(&server, &id, "restore", json!({})).await.0, 404);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_at_work_is_not_removed_nor_taken_back() {
    let answers = [json!([call("b1", "bash", json!({ "command": "sleep 60" }))]), json!([done("d", "done")])];
    let server = Server::start(cassette(answers), Mode::FullAuto).await;
    let mut socket = server.run("wait").await;
    let frames = socket.until("bubble").await;
    let id = frames.iter().find_map(|frame| frame["session_id"].as_str()).unwrap().to_owned();
    assert_eq!(server.ask_as(&server.token, "DELETE", &format!("/api/sessions/{id}"), None).await.0, 409);
    assert_eq!(at(&server, &id, "rewind", json!({ "to": 0 })).await.0, 409);
    assert_eq!(at(&server, &id, "undo", json!({})).await.0, 409);
    assert_eq!(at(&server, &id, "rename", json!({ "title": "Busy" })).await.0, 200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_given_out_in_every_form() {
    let (server, id) = session().await;
    let (_, messages) = server.get(&format!("/api/sessions/{id}/messages")).await;
    let last = messages.as_array().unwrap().last().unwrap();
    assert_eq!((&last["content"], &last["role"]), (&json!("It is done."), &last["meta"]["role"]));
    assert!(last["created_at"].as_str().unwrap().ends_with('Z'), "{last}");
    let export =
        async |format: &str| server.get(&format!("/api/sessions/{id}/export?format={format}")).await.1;
    let lines = export("jsonl").await;
    let first: Value = serde_json::from_str(lines.as_str().unwrap().lines().next().unwrap()).unwrap();
    assert_eq!(first["kind"], "session_opened");
    assert_eq!(export("trajectory").await["task"], "make two files");
    assert!(export("html").await.as_str().unwrap().contains("<html"));
    assert!(export("text").await.as_str().unwrap().ends_with("It is done.\n"));
    assert_eq!(server.get(&format!("/api/sessions/{id}/export?format=exe")).await.0, 422);
    let (status, run) = server.get(&format!("/api/sessions/{id}/trajectory?run=1")).await;
    assert_eq!((status, &run["task"]), (200, &json!("make two files")));
    let digest = lathe_protocol::Digest::of(b"2\n");
    assert_eq!(server.get(&format!("/api/sessions/{id}/blob/{digest}")).await, (200, json!(2)));
    // Bytes that another session has are not this one's.
    let other = lathe_protocol::Digest::of(b"another");
    assert_eq!(server.get(&format!("/api/sessions/{id}/blob/{other}")).await.0, 404);
    assert_eq!(server.get(&format!("/api/sessions/{id}/blob/..%2f..%2fsecret")).await.0, 400);
    let (_, files) = server.get(&format!("/agent/session/{id}/files")).await;
    assert_eq!(files["files"][0], json!({ "name": "a.txt", "type": "file" }));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_is_the_newest_session_and_names_its_origin() {
    let (server, id) = session().await;
    let (_, fork) = at(&server, &id, "fork", json!({ "at": 2 })).await;
    let (_, row) = server.get(&format!("/api/sessions/{}", fork["id"].as_str().unwrap())).await;
    assert_eq!(row["forked_from"], json!({ "id": id, "session_step": 2 }));
    assert!(row["updated_at"].as_str() >= row["created_at"].as_str(), "{row}");
    let (_, listed) = server.get("/api/sessions").await;
    assert_eq!((&listed[0]["id"], &listed[0]["forked_from"]), (&fork["id"], &row["forked_from"]));
    assert!(listed[1].get("forked_from").is_none(), "{listed}");
    // The index was asked now: it keeps what the journals say.
    assert_eq!(server.get("/api/sessions").await.1, listed);
    let (_, row) = server.get(&format!("/api/sessions/{id}")).await;
    assert!(row.get("forked_from").is_none(), "{row}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_hold_the_words_of_the_user_in_their_place() {
    let answers = [
        json!([call("b1", "bash", json!({ "command": "while [ ! -e go ]; do sleep 0.02; done" }))]),
        json!([done("d1", "first done")]),
        json!([done("d2", "second done")]),
    ];
    let server = Server::start(cassette(answers), Mode::FullAuto).await;
    let (_, body) = server.post("/agent/interactive/start", json!({})).await;
    let session = body["session_id"].as_str().unwrap().to_owned();
    let mut socket = server.socket(&format!("?session_id={session}")).await;
    socket.say(&json!({ "type": "task", "task": "the first task" })).await;
    socket.until("bubble").await;
    socket.say(&json!({ "type": "input", "text": "and hurry" })).await;
    socket.until("input").await;
    std::fs::write(server.root.join("go"), "").unwrap();
    socket.until("end").await;
    let task = json!({ "session_id": session, "task": "the second task" });
    assert_eq!(server.post("/agent/interactive/task", task).await.0, 200);
    let (_, messages) = server.get(&format!("/api/sessions/{session}/messages")).await;
    let said: Vec<(&str, &str)> = messages
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "user" || message["id"].as_str().unwrap().contains("taskdone"))
        .map(|message| (message["role"].as_str().unwrap(), message["content"].as_str().unwrap()))
        .collect();
    let wanted = [
        ("user", "the first task"),
        ("user", "and hurry"),
        ("agent", "first done"),
        ("user", "the second task"),
        ("agent", "second done"),
    ];
    assert_eq!(said, wanted, "{messages}");
    let ids: std::collections::BTreeSet<&str> =
        messages.as_array().unwrap().iter().map(|message| message["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), messages.as_array().unwrap().len(), "{messages}");
    server.stop().await;
}
