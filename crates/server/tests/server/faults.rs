//! Faults of the server itself are reported as such, and lose no data.

use std::sync::Arc;
use std::time::Duration;

use lathe_protocol::Mode;
use lathe_testkit::SmallDisk;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::kit::{Recorded, Server, call, cassette, done};

fn writes() -> String {
    let write = call("w1", "write", json!({ "path": "b.txt", "content": "two\n" }));
    cassette([json!([write]), json!([done("d1", "done")])])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_home_that_cannot_be_used_is_a_fault_of_the_server_and_not_of_the_request() {
    let server = Server::start(writes(), Mode::FullAuto).await;
    let mut socket = server.run("Write it.").await;
    let frames = socket.until("end").await;
    let id = frames.iter().find_map(|frame| frame["session_id"].as_str()).unwrap().to_owned();
    let reads = [
        format!("/api/sessions/{id}/messages"),
        format!("/api/sessions/{id}/trajectory"),
        format!("/api/sessions/{id}/export?format=html"),
        format!("/api/sessions/{id}/export?format=jsonl"),
        format!("/api/sessions/{id}/changes"),
    ];
    for path in &reads {
        assert_eq!(server.get(path).await.0, 200, "{path}");
    }
    // The folder of contents is not a folder any more.
    std::fs::remove_dir_all(server.home.join("blobs")).unwrap();
    std::fs::write(server.home.join("blobs"), "").unwrap();
    for path in &reads {
        let (status, body) = server.get(path).await;
        assert_eq!((status, &body["code"]), (500, &json!("internal")), "{path}: {body}");
    }
    let (status, body) = server.post("/agent/run", json!({ "task": "Write it." })).await;
    assert_eq!((status, &body["code"]), (500, &json!("internal")), "{body}");
    // What is wrong with a request is still told so.
    for (request, status) in [
        (json!({ "task": "x", "working_dir": "/nowhere" }), 403),
        (json!({ "task": "x", "tools": ["no-such-tool"] }), 422),
        (json!({}), 400),
    ] {
        assert_eq!(server.post("/agent/run", request.clone()).await.0, status, "{request}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_is_damaged_is_a_fault_of_the_server() {
    let server = Server::start(writes(), Mode::FullAuto).await;
    let (status, started) = server.post("/agent/interactive/start", json!({})).await;
    assert_eq!(status, 200, "{started}");
    let id = started["session_id"].as_str().unwrap();
    // Another file in the place of the journal, as a crashed disk leaves it.
    let journal = server.home.join("sessions").join(format!("{id}.db"));
    std::fs::remove_file(&journal).unwrap();
    for ending in ["db-wal", "db-shm"] {
        let _ = std::fs::remove_file(server.home.join("sessions").join(format!("{id}.{ending}")));
    }
    std::fs::write(&journal, "this is not a journal ".repeat(400)).unwrap();
    for path in [format!("/api/sessions/{id}/messages"), format!("/api/sessions/{id}/trajectory")] {
        let (status, body) = server.get(&path).await;
        assert_eq!((status, &body["code"]), (500, &json!("internal")), "{path}: {body}");
    }
    // The same of a session that is not open here.
    let (_, other) = server.post("/agent/interactive/start", json!({})).await;
    let other = other["session_id"].as_str().unwrap();
    server.post(&format!("/agent/interactive/close?session_id={other}"), json!({})).await;
    let file = server.home.join("sessions").join(format!("{other}.db"));
    std::fs::write(&file, "this is not a journal ".repeat(400)).unwrap();
    let task = json!({ "session_id": other, "task": "x" });
    for (method, path, body) in [
        ("GET", format!("/api/sessions/{other}"), None),
        ("GET", format!("/api/sessions/{other}/messages"), None),
        ("GET", format!("/api/sessions/{other}/trajectory"), None),
        ("GET", format!("/api/sessions/{other}/changes"), None),
        ("POST", format!("/api/sessions/{other}/rename"), Some(json!({ "title": "x" }))),
        ("POST", format!("/api/sessions/{other}/fork"), Some(json!({}))),
        ("POST", format!("/api/sessions/{other}/undo"), Some(json!({}))),
        ("POST", "/agent/interactive/task".to_owned(), Some(task)),
    ] {
        let (status, body) = server.ask_as(&server.token, method, &path, body.as_ref()).await;
        assert_eq!((status, &body["code"]), (500, &json!("internal")), "{path}: {body}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_told_as_such_and_the_server_goes_on_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(&folder.path().join("home"), "4m") else { return };
    let ends = cassette((0..4).map(|number| json!([done(&format!("d{number}"), "done")])));
    let server = Server::inside(Arc::new(Recorded { cassette: ends, mode: Mode::Default }), folder).await;
    let (_, started) = server.post("/agent/interactive/start", json!({})).await;
    let open = started["session_id"].as_str().unwrap().to_owned();
    let (_, started) = server.post("/agent/interactive/start", json!({})).await;
    let closed = started["session_id"].as_str().unwrap().to_owned();
    server.post(&format!("/agent/interactive/close?session_id={closed}"), json!({})).await;
    disk.fill();
    // More than fits into what is left of a page of the journal.
    let task = json!({ "session_id": open, "task": "do it ".repeat(40_000) });
    let mode = json!({ "system_prompt": "x".repeat(90_000) });
    for (method, path, body) in [
        ("POST", "/agent/run", json!({ "task": "x" })),
        ("POST", "/agent/interactive/task", task.clone()),
        ("POST", &format!("/api/sessions/{closed}/fork"), json!({})),
        ("PUT", "/api/modes/long", mode),
    ] {
        let (status, body) = server.ask_as(&server.token, method, path, Some(&body)).await;
        assert_eq!((status, &body["code"]), (507, &json!("disk_full")), "{path}: {body}");
    }
    disk.free();
    let (status, body) = server.post("/agent/interactive/task", task).await;
    assert_eq!((status, &body["success"]), (200, &json!(true)), "{body}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_for_which_there_is_no_room_is_told_as_such_and_done_when_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(&folder.path().join("home"), "4m") else { return };
    let server =
        Server::inside(Arc::new(Recorded { cassette: writes(), mode: Mode::FullAuto }), folder).await;
    let mut socket = server.run("Write it.").await;
    let frames = socket.until("end").await;
    let id = frames.iter().find_map(|frame| frame["session_id"].as_str()).unwrap().to_owned();
    server.post(&format!("/agent/interactive/close?session_id={id}"), json!({})).await;
    let document = json!({ "title": "T", "content": "x".repeat(90_000), "description": "D" });
    assert_eq!(server.post("/online/docs/create", document.clone()).await.0, 200);
    disk.fill();
    for (path, body) in [
        (format!("/api/sessions/{id}/undo"), json!({})),
        (format!("/api/sessions/{id}/rewind"), json!({ "to": 0, "files": true })),
        ("/online/docs/create".to_owned(), document),
    ] {
        let (status, body) = server.post(&path, body).await;
        assert_eq!((status, &body["code"]), (507, &json!("disk_full")), "{path}: {body}");
    }
    assert_eq!(std::fs::read_to_string(server.root.join("b.txt")).unwrap(), "two\n");
    disk.free();
    let (status, body) = server.post(&format!("/api/sessions/{id}/undo"), json!({})).await;
    assert_eq!(status, 200, "{body}");
    assert!(!server.root.join("b.txt").exists());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_noted_as_removed_stays() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(folder.path(), "4m") else { return };
    let server = Server::inside(Arc::new(Recorded { cassette: writes(), mode: Mode::Default }), folder).await;
    disk.fill();
    let (status, body) = server.ask_as(&server.token, "DELETE", "/api/file?file=a.txt", None).await;
    assert_eq!((status, &body["code"]), (507, &json!("disk_full")), "{body}");
    assert_eq!(std::fs::read_to_string(server.root.join("a.txt")).unwrap(), "one\n");
    disk.free();
    assert_eq!(server.ask_as(&server.token, "DELETE", "/api/file?file=a.txt", None).await.0, 200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_does_not_fit_on_its_disk_is_told_as_such() {
    let server = Server::start(writes(), Mode::Default).await;
    let Some(disk) = SmallDisk::mount(&server.root.join("disk"), "256k") else { return };
    disk.fill();
    let save = json!({ "file": "disk/new.txt", "content": "x".repeat(100_000) });
    let (status, body) = server.post("/api/file", save).await;
    assert_eq!((status, &body["code"]), (507, &json!("disk_full")), "{body}");
    drop(disk);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_fails_at_its_end_puts_the_old_file_back() {
    let server = Server::start(writes(), Mode::Default).await;
    let before = names(&server);
    let content = "new content of the file\n".repeat(100);
    let (first, rest) = content.split_at(1000);
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "POST /files/upload?relative_path=a.txt&overwrite=true HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/octet-stream\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{first}",
        server.address,
        server.token,
        content.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // What was received so far is lost before the file has its name.
    let received = loop {
        let new: Vec<String> = names(&server).into_iter().filter(|name| !before.contains(name)).collect();
        match new.first() {
            Some(name) => break server.root.join(name),
            None => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    };
    std::fs::remove_file(received).unwrap();
    stream.write_all(rest.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(!answer.starts_with("HTTP/1.1 2"), "{answer}");
    assert_eq!(std::fs::read_to_string(server.root.join("a.txt")).unwrap(), "one\n");
    assert_eq!(names(&server), before);
    let (_, removed) = server.get("/api/files/removed").await;
    assert!(removed.as_array().is_none_or(Vec::is_empty), "{removed}");
    server.stop().await;
}

fn names(server: &Server) -> Vec<String> {
    let found = std::fs::read_dir(&server.root).unwrap().flatten();
    let mut names: Vec<String> =
        found.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
