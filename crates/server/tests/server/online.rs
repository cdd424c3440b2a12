//! Online documents: by the tool of a session, and over HTTP.

use lathe_protocol::Mode;
use serde_json::{Value, json};

use crate::kit::{Server, call, cassette, done, durable};

async fn results(server: &Server, request: &Value) -> Vec<(String, String)> {
    let mut socket = server.socket("").await;
    socket.say(request).await;
    let frames = durable(&socket.until("end").await);
    let mut found = Vec::new();
    for frame in frames.iter().filter(|frame| frame["type"] == "step") {
        for result in frame["data"]["tool_results"].as_array().unwrap() {
            let text = |key: &str| result[key].as_str().unwrap_or_default().to_owned();
            let row = (text("call_id"), text("result"));
            if !found.contains(&row) {
                found.push(row);
            }
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tool_and_http_work_on_the_same_documents_and_every_version_is_kept() {
    let (_, made) = {
        let server = Server::start(cassette([json!([done("d", "x")])]), Mode::FullAuto).await;
        server
            .post("/online/docs/create", json!({ "title": "T", "content": "<p>1</p>", "description": "D" }))
            .await
    };
    assert!(made["documentId"].is_string(), "{made}");
    // A fresh server, whose model makes one, and fails to find another.
    let steps = [
        json!([call(
            "c1",
            "online_doc_tool",
            json!({ "command": "create", "title": "Plan", "content": "<p>a</p>", "description": "what to do" })
        )]),
        json!([call("c2", "online_doc_tool", json!({ "command": "detail", "document_id": "none" }))]),
        json!([call("c3", "online_doc_tool", json!({ "command": "create", "title": "no content" }))]),
        json!([done("d1", "made")]),
    ];
    let server = Server::start(cassette(steps), Mode::FullAuto).await;
    let told = results(&server, &json!({ "task": "make it", "use_online_mode": true })).await;
    let (first, body) = told[0].1.split_once('\n').unwrap();
    assert_eq!(first, "Create success: document created");
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!((&body["title"], &body["description"]), (&json!("Plan"), &json!("what to do")));
    assert_eq!(told[1].1, "HTTP 404 at /online/docs/detail: there is no such document");
    assert!(told[2].1.contains("`content` is needed"), "{told:?}");
    let id = body["documentId"].as_str().unwrap().to_owned();
    // Over HTTP: both spellings of the id.
    let (status, edited) = server
        .post("/online/report/edit", json!({ "document_id": id, "content": "<p>b</p>", "title": "Plan B" }))
        .await;
    assert_eq!(status, 200);
    assert_eq!(edited, json!({ "documentId": id, "success": true, "titleChanged": true, "version": 2 }));
    let (_, shown) = server.post("/online/docs/detail", json!({ "documentId": id })).await;
    assert_eq!((&shown["content"], &shown["title"]), (&json!("<p>b</p>"), &json!("Plan B")));
    let (_, found) = server.post("/online/docs/search", json!({ "keyword": "plan b" })).await;
    assert_eq!(found["items"][0]["documentId"], json!(id));
    let (_, versions) = server.get(&format!("/online/docs/{id}/versions?version=1")).await;
    assert_eq!(versions["versions"].as_array().unwrap().len(), 2);
    assert_eq!(versions["document"]["content"], "<p>a</p>");
    let (status, _) = server.get("/online/docs/none/versions").await;
    assert_eq!(status, 404);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_reads_and_replaces_a_document_it_is_told_of() {
    // The id is only known when the document is there, so the session comes after it.
    let folder = tempfile::tempdir().unwrap();
    let host = lathe_host::Host::new(lathe_host::Home::at(folder.path().join("home")));
    let shelf = host.archive().shelf(&lathe_host::OnlinePlan::default()).unwrap();
    let long = "x".repeat(17_000);
    let made = shelf.create("T".to_owned(), long, "D".to_owned()).await.unwrap();
    let ask = |id: &str, rest: Value| {
        let mut arguments = rest;
        arguments["document_id"] = json!(made.document_id);
        call(id, "online_doc_tool", arguments)
    };
    let steps = [
        json!([ask("c1", json!({ "command": "detail" }))]),
        json!([ask("c2", json!({ "command": "edit", "content": "<p>short</p>" }))]),
        json!([ask("c3", json!({ "command": "detail" }))]),
        json!([done("d1", "made")]),
    ];
    let server = Server::start(cassette(steps), Mode::FullAuto).await;
    // The server's own store: the same file, put in its place before the session begins.
    std::fs::create_dir_all(&server.home).unwrap();
    std::fs::copy(folder.path().join("home/docs.db"), server.home.join("docs.db")).unwrap();
    let told = results(&server, &json!({ "task": "shorten it", "use_online_mode": true })).await;
    let (first, body) = told[0].1.split_once('\n').unwrap();
    assert_eq!(first, "Detail success: document fetched");
    let body: Value = serde_json::from_str(body).unwrap();
    let content = body["content"].as_str().unwrap();
    assert!(content.starts_with(&"x".repeat(16_000)) && content[16_000..].starts_with("<response clipped>"));
    assert_eq!(
        told[1].1,
        format!(
            "Edit success: document updated\n{}",
            json!({ "documentId": made.document_id, "success": true, "titleChanged": false })
        )
    );
    assert!(told[2].1.contains("<p>short</p>"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_option_there_is_no_such_tool() {
    let steps = [
        json!([call("c1", "online_doc_tool", json!({ "command": "detail", "document_id": "x" }))]),
        json!([done("d1", "made")]),
    ];
    let server = Server::start(cassette(steps), Mode::FullAuto).await;
    let told = results(&server, &json!({ "task": "read it" })).await;
    assert!(told[0].1.starts_with("Tool \"online_doc_tool\" not found."), "{told:?}");
    server.stop().await;
}
