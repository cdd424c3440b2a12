//! The status page.

use lathe_protocol::Mode;
use serde_json::json;

use crate::kit::{Server, call, cassette, done};

async fn html(server: &Server, path: &str, headers: &str) -> String {
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{headers}Connection: close\r\n\r\n", server.address);
    server.raw(&request).await.1
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_tells_nothing_without_a_token_and_everything_with_one() {
    let hostile = "<script>alert(1)</script>\u{202e}";
    let answers = cassette([
        json!([call("a1", "bash", json!({ "command": format!("echo '{hostile}'") }))]),
        json!([done("b1", "<img src=x onerror=alert(1)>")]),
    ]);
    let server = Server::start(answers, Mode::FullAuto).await;
    let (_, result) = server.post("/agent/run", json!({ "task": format!("Look at {hostile}") })).await;
    let session = result["session_id"].as_str().unwrap();
    let with = format!("Authorization: Bearer {}\r\n", server.token);
    let closed = html(&server, "/", "").await;
    assert!(closed.contains("sign-in") && !closed.contains(session) && !closed.contains("Look at"));
    let list = html(&server, "/", &with).await;
    assert!(list.contains(&format!("/?session={session}")) && list.contains("completed"), "{list}");
    let page = html(&server, &format!("/?session={session}"), &with).await;
    assert!(
        page.contains("data-id=\"1:tc-1-a1\"") && page.contains("✅") && page.contains("taskdone-2"),
        "{page}"
    );
    for text in [&list, &page] {
        assert!(
            !text.contains("<script>alert") && !text.contains("<img") && !text.contains('\u{202e}'),
            "{text}"
        );
    }
    assert!(html(&server, "/", &format!("{with}Accept-Language: zh-CN,zh;q=0.9\r\n")).await.contains("会话"));
    assert!(html(&server, "/assets/page.js", "").await.contains("WebSocket"));
    assert_eq!(server.get("/?session=nobody").await.0, 404);
    assert_eq!(
        server
            .raw(&format!(
                "GET /assets/../app.rs HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
                server.address
            ))
            .await
            .0,
        401
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_opened_while_a_question_is_open_is_told_it() {
    let answers = cassette([
        json!([call("a1", "bash", json!({ "command": "touch made" }))]),
        json!([done("b1", "made")]),
    ]);
    let server = Server::start(answers, Mode::Default).await;
    let mut first = server.run("Make it.").await;
    let asked = first.until("approval").await.pop().unwrap();
    let session = asked["session_id"].as_str().unwrap();
    let with = format!("Authorization: Bearer {}\r\n", server.token);
    let page = html(&server, &format!("/?session={session}"), &with).await;
    let cursor = page.split("data-cursor=\"").nth(1).unwrap().split('"').next().unwrap();
    let mut opened = server.socket(&format!("?session_id={session}&from={cursor}")).await;
    assert_eq!(opened.until("approval").await.pop().unwrap()["data"], asked["data"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_looks_like_a_secret_is_in_no_bubble_and_no_title() {
    let answers = cassette([
        json!([call(
            "a1",
            "bash",
            json!({ "command": "true -u admin:wJalrS3cret; STRIPE_ACCESS_KEY=wJalrS3cret true" })
        )]),
        json!([done("b1", "SECRET_KEY=wJalrS3cret is set, and «secret:MY_KEY» stays.")]),
    ]);
    let server = Server::start(answers, Mode::FullAuto).await;
    let frames = server.run("Deploy with AWS_SECRET_ACCESS_KEY=wJalrS3cret").await.until("end").await;
    let bubbles: Vec<_> = frames.iter().filter(|frame| frame["type"] == "bubble").collect();
    let told = format!("{bubbles:?}");
    assert!(told.contains("admin:«secret»") && told.contains("SECRET_KEY=«secret»"), "{told}");
    assert!(!told.contains("wJalrS3cret") && told.contains("«secret:MY_KEY»"), "{told}");
    let session = frames.last().unwrap()["session_id"].as_str().unwrap();
    let title = "Deploy with AWS_SECRET_ACCESS_KEY=«secret»";
    assert_eq!(server.get("/api/sessions").await.1[0]["title"], title);
    assert_eq!(server.get(&format!("/api/sessions/{session}")).await.1["title"], title);
    let with = format!("Authorization: Bearer {}\r\n", server.token);
    for path in ["/".to_owned(), format!("/?session={session}")] {
        let page = html(&server, &path, &with).await;
        assert!(page.contains(title) && !page.contains("wJalrS3cret"), "{path}: {page}");
    }
    let rename = format!("/api/sessions/{session}/rename");
    let (status, row) = server.post(&rename, json!({ "title": "DB_PASS=wJalrS3cret" })).await;
    assert_eq!((status, &row["title"]), (200, &json!("DB_PASS=«secret»")));
    let mut watching = server.socket(&format!("?session_id={session}")).await;
    let named = watching.until("session").await.pop().unwrap();
    assert_eq!(named["data"]["title"], "DB_PASS=«secret»");
    server.stop().await;
}

/// The page as Chromium shows it after its script has run.
fn seen_in_chromium(url: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = std::process::Command::new("timeout")
        .args(["60", "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
        .args(["--virtual-time-budget=10000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .arg(url)
        .env("HOME", folder.path())
        .output()
        .expect("scripts/test --full installs chromium");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn chromium_signs_in_by_the_printed_address_and_shows_sessions_and_bubbles() {
    if !lathe_testkit::is_full() {
        return;
    }
    let answers = cassette([json!([done("b1", "all of it is made")])]);
    let server = Server::start(answers, Mode::FullAuto).await;
    let (_, result) = server.post("/agent/run", json!({ "task": "Make it." })).await;
    let session = result["session_id"].as_str().unwrap();
    let (host, token) = (server.address, &server.token);
    for (address, shown) in [
        (format!("http://{host}/#token={token}"), session),
        (format!("http://{host}/?session={session}#token={token}"), "all of it is made"),
    ] {
        let seen = tokio::task::block_in_place(|| seen_in_chromium(&address));
        assert!(seen.contains(shown) && !seen.contains("id=\"sign-in\""), "{seen}");
    }
    let seen = tokio::task::block_in_place(|| seen_in_chromium(&format!("http://{host}/")));
    assert!(seen.contains("id=\"sign-in\"") && !seen.contains(session), "{seen}");
    server.stop().await;
}
