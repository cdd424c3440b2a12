//! Work in a session needs the role for its mode and its model, and removing a token ends everything opened with it.

use lathe_protocol::Mode;
use lathe_server::{Role, Tokens};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::kit::{Server, call, cassette, done, say};

fn busy() -> String {
    cassette([
        json!([call("a1", "bash", json!({ "command": "touch made" }))]),
        json!([say("done")]),
        json!([done("b1", "made")]),
    ])
}

async fn started(server: &Server, token: &str, request: Value) -> String {
    let (status, body) = server.ask_as(token, "POST", "/agent/interactive/start", Some(&request)).await;
    assert_eq!(status, 200, "{body}");
    body["session_id"].as_str().unwrap().to_owned()
}

/// Every way to make a session work, over HTTP and on a socket.
async fn ways_in(server: &Server, token: &str, session: &str) -> Vec<(String, bool, String)> {
    let mut seen = Vec::new();
    let task = json!({ "session_id": session, "task": "x" });
    let (status, body) = server.ask_as(token, "POST", "/agent/interactive/task", Some(&task)).await;
    seen.push(("POST task".to_owned(), status == 403, body.to_string()));
    let fork = format!("/api/sessions/{session}/fork");
    let (status, body) = server.ask_as(token, "POST", &fork, Some(&json!({}))).await;
    seen.push(("POST fork".to_owned(), status == 403, body.to_string()));
    for (name, body) in [
        ("rewind", json!({ "to": 0, "files": true })),
        ("undo", json!({})),
        ("rename", json!({ "title": "mine now" })),
    ] {
        let way = format!("/api/sessions/{session}/{name}");
        let (status, body) = server.ask_as(token, "POST", &way, Some(&body)).await;
        seen.push((format!("POST {name}"), status == 403, body.to_string()));
    }
    let mut socket = server.socket_as(token, "").await;
    socket.say(&task).await;
    let closed = socket.closed().await.unwrap();
    seen.push(("first message".to_owned(), closed.0 == 1008, closed.1));
    let mut socket = server.socket_as(token, &format!("?session_id={session}")).await;
    socket.until("status").await;
    for message in [
        json!({ "type": "task", "task": "x" }),
        json!({ "type": "resume" }),
        json!({ "type": "input", "text": "x" }),
        json!({ "type": "approve", "call_id": "a1", "question": 1, "answer": "once" }),
        json!({ "type": "answer", "call_id": "a1", "question": 1, "answers": ["x"] }),
    ] {
        socket.say(&message).await;
        let receipt = socket.until("receipt").await.pop().unwrap()["data"].clone();
        let reason = receipt["reason"].as_str().unwrap_or_default().to_owned();
        let refused = receipt["accepted"] == false && reason.contains("role admin");
        seen.push((message["type"].to_string(), refused, reason));
    }
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_does_not_work_in_full_auto_by_any_way() {
    let server = Server::start(busy(), Mode::Default).await;
    let operator = Tokens::add(&server.home, "hands", Role::Operator).unwrap();
    let viewer = Tokens::add(&server.home, "eyes", Role::Viewer).unwrap();
    let session = started(&server, &server.token, json!({ "mode": "full-auto" })).await;
    // Open here, and closed as one that was made in the terminal is.
    for is_open in [true, false] {
        if !is_open {
            let close = format!("/agent/interactive/close?session_id={session}");
            assert_eq!(server.post(&close, json!({})).await.0, 200);
        }
        for (way, refused, said) in ways_in(&server, &operator, &session).await {
            // A session that is not open here answers no questions, for any client.
            let is_closed_answer = !is_open && said.contains("not open here");
            assert!(refused || is_closed_answer, "{way}, open: {is_open}: {said}");
            assert!(is_closed_answer || said.contains("full-auto"), "{way}: {said}");
        }
        let row = server.ask_as(&viewer, "GET", &format!("/api/sessions/{session}"), None).await;
        assert_eq!((row.0, &row.1["steps"]), (200, &json!(0)));
    }
    // Who may do it does it, and the operator may still stop it.
    let (status, body) =
        server.post("/agent/interactive/task", json!({ "session_id": session, "task": "x" })).await;
    assert_eq!((status, &body["success"]), (200, &json!(true)), "{body}");
    assert!(server.root.join("made").exists());
    let close = format!("/agent/interactive/close?session_id={session}");
    assert_eq!(server.ask_as(&operator, "POST", &close, Some(&json!({}))).await.0, 200);
    // A session of the operator's own mode is not refused.
    let own = started(&server, &operator, json!({ "mode": "plan" })).await;
    let task = json!({ "session_id": own, "task": "x" });
    assert_eq!(server.ask_as(&operator, "POST", "/agent/interactive/task", Some(&task)).await.0, 200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_says_full_auto_does_not_give_it_to_an_operator() {
    let server = Server::start(busy(), Mode::FullAuto).await;
    let operator = Tokens::add(&server.home, "hands", Role::Operator).unwrap();
    let (status, body) = server.ask_as(&operator, "POST", "/agent/run", Some(&json!({ "task": "x" }))).await;
    assert_eq!(status, 403, "{body}");
    assert!(body["detail"].as_str().unwrap().contains("full-auto"), "{body}");
    assert_eq!(server.get("/api/sessions").await.1, json!([]));
    started(&server, &operator, json!({ "mode": "default" })).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_does_not_use_the_model_that_an_admin_chose_for_one_session() {
    let server = Server::start(busy(), Mode::Default).await;
    let operator = Tokens::add(&server.home, "hands", Role::Operator).unwrap();
    let session = started(&server, &server.token, json!({ "api_key": "an-admins-own-key-1234" })).await;
    for (way, refused, said) in ways_in(&server, &operator, &session).await {
        assert!(refused, "{way}: {said}");
    }
    let wish = json!({ "session_id": session });
    let (status, body) = server.ask_as(&operator, "POST", "/lakeview/summary", Some(&wish)).await;
    assert_eq!(status, 403, "{body}");
    assert_eq!(server.post("/lakeview/summary", wish).await.0, 200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_does_not_answer_the_questions_of_an_admins_session() {
    let server = Server::start(busy(), Mode::Default).await;
    let operator = Tokens::add(&server.home, "hands", Role::Operator).unwrap();
    let session = started(&server, &server.token, json!({ "api_key": "an-admins-own-key-1234" })).await;
    let mut owner = server.socket(&format!("?session_id={session}")).await;
    owner.until("status").await;
    owner.say(&json!({ "type": "task", "task": "Make it." })).await;
    let asked = owner.until("approval").await.pop().unwrap();
    let mut other = server.socket_as(&operator, &format!("?session_id={session}")).await;
    let mut answer = json!({ "type": "approve", "call_id": "a1", "question": asked["data"]["question"], "answer": "once" });
    other.say(&answer).await;
    let receipt = other.until("receipt").await.pop().unwrap();
    assert_eq!(receipt["data"]["accepted"], false, "{receipt}");
    assert!(!server.root.join("made").exists());
    answer["id"] = json!("mine");
    owner.say(&answer).await;
    assert_eq!(owner.until("receipt").await.pop().unwrap()["data"]["accepted"], true);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_token_takes_its_sockets_watches_and_requests_with_it() {
    let server = Server::start(busy(), Mode::Default).await;
    let operator = Tokens::add(&server.home, "hands", Role::Operator).unwrap();
    let viewer = Tokens::add(&server.home, "eyes", Role::Viewer).unwrap();
    let mut talking = server.socket_as(&operator, "").await;
    talking.say(&json!({ "task": "Make it." })).await;
    let asked = talking.until("approval").await.pop().unwrap();
    let session = asked["session_id"].as_str().unwrap().to_owned();
    let mut looking = server.socket_as(&viewer, &format!("?session_id={session}")).await;
    looking.until("status").await;
    // A request that waits for the end of its run, and an answer that has no end.
    let own = started(&server, &operator, json!({})).await;
    let waiting = json!({ "session_id": own, "task": "Make it too." });
    let watch = format!(
        "GET /api/files/watch HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {viewer}\r\nAccept: text/event-stream\r\nConnection: close\r\n\r\n",
        server.address
    );
    let removed = async {
        let mut here = server.socket(&format!("?session_id={own}")).await;
        here.until("approval").await;
        Tokens::remove(&server.home, "hands").unwrap();
        Tokens::remove(&server.home, "eyes").unwrap();
        // What is said after the removal is not done, and the connection ends.
        let answer = json!({ "type": "approve", "call_id": "a1", "question": asked["data"]["question"], "answer": "once" });
        talking.say(&answer).await;
        for socket in [&mut talking, &mut looking] {
            assert_eq!(socket.closed().await, Some((1008, "the token was removed".to_owned())));
        }
    };
    let (waited, watched, ()) = tokio::join!(
        server.ask_as(&operator, "POST", "/agent/interactive/task", Some(&waiting)),
        server.raw(&watch),
        removed,
    );
    assert_eq!(waited.0, 401, "{}", waited.1);
    // The answer began, and it has an end now.
    assert_eq!(watched.0, 200, "{}", watched.1);
    assert!(!server.root.join("made").exists());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_made_again_under_its_name_revives_nothing() {
    let server = Server::start(busy(), Mode::Default).await;
    let first = Tokens::add(&server.home, "hands", Role::Operator).unwrap();
    let old = server.sign_in(&first).await;
    let mut socket = server.socket_as(&first, "").await;
    assert_eq!(server.by_page(&old, "GET", "/api/sessions").await.0, 200);
    Tokens::remove(&server.home, "hands").unwrap();
    let second = Tokens::add(&server.home, "hands", Role::Operator).unwrap();
    assert_eq!(server.by_page(&old, "GET", "/api/sessions").await.0, 401);
    assert_eq!(server.ask_as(&first, "GET", "/api/sessions", None).await.0, 401);
    assert_eq!(socket.closed().await.unwrap().0, 1008);
    let new = server.sign_in(&second).await;
    assert_eq!(server.by_page(&new, "GET", "/api/sessions").await.0, 200);
    // The log tells the two apart.
    let audit = std::fs::read_to_string(server.home.join("server/audit.jsonl")).unwrap();
    let rows = audit.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let tokens: std::collections::BTreeSet<String> =
        rows.filter(|row| row["who"] == "hands").map(|row| row["token"].to_string()).collect();
    assert_eq!(tokens.len(), 2, "{audit}");
    server.stop().await;
}

#[test]
fn names_that_mean_something_else_are_not_given_to_tokens() {
    let home = tempfile::tempdir().unwrap();
    for name in [
        "owner",
        "Owner",
        "OWNER",
        "nobody",
        "-",
        "--",
        "_",
        ".",
        "127.0.0.1",
        "10.1",
        "12",
        "",
        "a b",
        "owner.",
        "Owner-",
        "0x7f.1",
        "own-er",
        "0wner",
        "a.b",
    ] {
        assert!(Tokens::add(home.path(), name, Role::Viewer).is_err(), "{name}");
    }
    for name in ["owners", "ci", "node-1", "a-box"] {
        assert!(Tokens::add(home.path(), name, Role::Viewer).is_ok(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_is_worth_nothing_without_the_half_that_the_page_keeps() {
    let server = Server::start(busy(), Mode::Default).await;
    let other = Server::start(busy(), Mode::Default).await;
    let (cookie, half) = server.sign_in(&server.token).await;
    let strange = other.sign_in(&other.token).await;
    let wrong = "0".repeat(64);
    let with = |half: &str| (cookie.clone(), half.to_owned());
    assert_eq!(server.by_page(&with(&half), "GET", "/api/sessions").await.0, 200);
    for (what, signed) in [
        ("no half", with("")),
        ("a wrong half", with(&wrong)),
        ("the half of another server", with(&strange.1)),
        ("the cookie as a half", with(cookie.split_once('=').unwrap().1)),
        ("another server's", strange.clone()),
        // As a browser sends them: under the name of this port.
        ("another server's under our name", {
            let name = cookie.split_once('=').unwrap().0;
            (format!("{name}={}", strange.0.split_once('=').unwrap().1), strange.1.clone())
        }),
    ] {
        for (method, path) in [("GET", "/api/sessions"), ("DELETE", "/auth"), ("POST", "/agent/run")] {
            assert_eq!(server.by_page(&signed, method, path).await.0, 401, "{what}: {method} {path}");
        }
        let page = server.by_page(&signed, "GET", "/").await;
        assert!(page.0 == 200 && page.1.contains("sign-in"), "{what}: {}", page.1);
    }
    let page = server.by_page(&with(&half), "GET", "/").await.1;
    assert!(page.contains("owner") && !page.contains("sign-in"), "{page}");
    // On a socket the half is a protocol.
    for (offered, wanted) in [
        (format!("Sec-WebSocket-Protocol: lathe, lathe.page.{half}\r\n"), 101),
        (format!("Sec-WebSocket-Protocol: lathe, lathe.page.{wrong}\r\n"), 401),
        ("Sec-WebSocket-Protocol: lathe\r\n".to_owned(), 401),
        (String::new(), 401),
    ] {
        let request = format!(
            "GET /ws/agent/interactive/task HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nCookie: {cookie}\r\n{offered}\r\n",
            server.address
        );
        assert_eq!(server.raw(&request).await.0, wanted, "{offered}");
    }
    // Signing out ends it.
    assert_eq!(server.by_page(&with(&half), "DELETE", "/auth").await.0, 200);
    assert_eq!(server.by_page(&with(&half), "GET", "/api/sessions").await.0, 401);
    server.stop().await;
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_that_signs_in_a_thousand_times_shuts_nobody_out() {
    let server = Server::start(busy(), Mode::Default).await;
    let viewer = Tokens::add(&server.home, "eyes", Role::Viewer).unwrap();
    let mine = server.sign_in(&server.token).await;
    let body = json!({ "token": viewer }).to_string();
    let one = |end: &str| {
        format!(
            "POST /auth HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{end}\r\n{body}",
            server.address,
            body.len()
        )
    };
    let all = one("").repeat(1030) + &one("Connection: close\r\n");
    let answers = server.whole(&all).await;
    let counted = ["HTTP/1.1 200", "HTTP/1.1 429"].map(|status| answers.matches(status).count());
    assert_eq!(counted.iter().sum::<usize>(), 1031, "{counted:?}");
    assert_eq!(server.by_page(&mine, "GET", "/api/sessions").await.0, 200);
    let again = server.sign_in(&server.token).await;
    assert_eq!(server.by_page(&again, "GET", "/api/sessions").await.0, 200);
    let audit = std::fs::read_to_string(server.home.join("server/audit.jsonl")).unwrap();
    assert!(!audit.contains("wrong token"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_open_to_everybody_cannot_be_used_up() {
    let server = Server::start(busy(), Mode::Default).await;
    let one = format!("GET /health HTTP/1.1\r\nHost: {}\r\n\r\n", server.address);
    let last = format!("GET / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.address);
    let answers = server.whole(&(one.repeat(6000) + &last)).await;
    assert_eq!(answers.matches("HTTP/1.1 200").count(), 6001);
    server.sign_in(&server.token).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_silent_clients_leave_the_server_answering() {
    let server = Server::start(busy(), Mode::Default).await;
    let host = server.address;
    let mut silent = Vec::new();
    for at in 0..200 {
        let mut stream = tokio::net::TcpStream::connect(host).await.unwrap();
        let said = match at % 4 {
            0 => String::new(),
            1 => format!("GET /health HTTP/1.1\r\nHost: {host}\r\nX-Half: "),
            2 => format!(
                "POST /auth HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{"
            ),
            _ => format!("POST /auth HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n1000\r\n"),
        };
        let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, said.as_bytes()).await;
        silent.push(stream);
    }
    let health = format!("GET /health HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    assert_eq!(server.raw(&health).await.0, 200);
    assert_eq!(server.get("/api/sessions").await.0, 200);
    let (opened, _) = (server.socket("").await, silent);
    drop(opened);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_a_request_names_is_an_ordinary_one() {
    let server = Server::start(busy(), Mode::FullAuto).await;
    let fifo = server.root.join("pipe");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let large = server.root.join("large");
    std::fs::write(&large, vec![b'a'; (1 << 20) + 1]).unwrap();
    let good = server.root.join("task.md");
    std::fs::write(&good, "Make it.").unwrap();
    for path in [fifo.to_str().unwrap(), server.root.to_str().unwrap(), large.to_str().unwrap(), "nowhere"] {
        // More of them than there are workers.
        for _ in 0..3 {
            let (status, body) = server.post("/agent/run", json!({ "file_path": path })).await;
            assert!(matches!(status, 400 | 404), "{path}: {body}");
            let (status, body) = server.post("/agent/run", json!({ "task": "x", "config_file": path })).await;
            assert_eq!(status, 400, "{path}: {body}");
        }
    }
    for path in ["/dev/zero", "/dev/tty", "/", "/nowhere"] {
        let (status, body) = server.post("/agent/run", json!({ "task": "x", "config_file": path })).await;
        assert!(matches!(status, 400 | 403), "{path}: {body}");
    }
    let (status, body) = server.post("/agent/run", json!({ "file_path": good })).await;
    assert_eq!((status, &body["success"]), (200, &json!(true)), "{body}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_a_request_names_lies_in_a_root_and_holds_no_keys() {
    let server = Server::start(busy(), Mode::FullAuto).await;
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("task.md"), "outside").unwrap();
    std::fs::write(server.home.join("task.md"), "of Lathe").unwrap();
    std::os::unix::fs::symlink("/etc/shadow", server.root.join("shadow")).unwrap();
    std::os::unix::fs::symlink(server.home.join("task.md"), server.root.join("home.md")).unwrap();
    std::os::unix::fs::symlink(outside.path(), server.root.join("out")).unwrap();
    let root = server.root.display();
    for path in [
        format!("{}/task.md", outside.path().display()),
        format!("{}/task.md", server.home.display()),
        format!("{}/server/tokens.json", server.home.display()),
        "/etc/shadow".to_owned(),
        "/etc/passwd".to_owned(),
        "/proc/self/environ".to_owned(),
        format!("{root}/../home/task.md"),
        format!("{root}/../../etc/shadow"),
        format!("{root}/shadow"),
        format!("{root}/home.md"),
        format!("{root}/out/task.md"),
        "../home/task.md".to_owned(),
    ] {
        let (status, body) = server.post("/agent/run", json!({ "file_path": path })).await;
        assert!(matches!(status, 400 | 403 | 404), "{path}: {status} {body}");
    }
    // A configuration may lie outside of the roots, but not among keys.
    for path in ["/etc/shadow", "/proc/self/environ", &format!("{}/task.md", server.home.display())] {
        let (status, body) = server.post("/agent/run", json!({ "task": "x", "config_file": path })).await;
        assert_eq!(status, 403, "{path}: {body}");
    }
    std::fs::write(server.root.join("task.md"), "inside").unwrap();
    let (status, body) = server.post("/agent/run", json!({ "file_path": "task.md" })).await;
    assert_eq!((status, &body["success"]), (200, &json!(true)), "{body}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_unknown_fields_make_no_long_answer() {
    let server = Server::start(busy(), Mode::FullAuto).await;
    let mut request = json!({ "task": "x", "agent_mode_config": {} });
    for number in 0..50_000 {
        request[format!("unknown{number}")] = json!(1);
    }
    for number in 0..50_000 {
        request["agent_mode_config"][format!("unknown{number}")] = json!(1);
    }
    let (status, body) = server.post("/agent/run", request).await;
    assert_eq!(status, 200, "{body}");
    let warnings = body["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 21);
    assert_eq!(warnings[20], "99980 more like these are not listed.");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_neither_takes_back_nor_removes_what_a_full_auto_session_did() {
    let server = Server::start(busy(), Mode::Default).await;
    let operator = Tokens::add(&server.home, "hands", Role::Operator).unwrap();
    let session = started(&server, &server.token, json!({ "mode": "full-auto" })).await;
    let task = json!({ "session_id": session, "task": "x" });
    assert_eq!(server.post("/agent/interactive/task", task).await.0, 200);
    for is_open in [true, false] {
        if !is_open {
            let close = format!("/agent/interactive/close?session_id={session}");
            assert_eq!(server.post(&close, json!({})).await.0, 200);
        }
        for (method, path, body) in [
            ("POST", "/undo", Some(json!({ "preview": false }))),
            ("POST", "/rewind", Some(json!({ "to": 0, "files": true }))),
            ("DELETE", "", None),
        ] {
            let path = format!("/api/sessions/{session}{path}");
            let (status, said) = server.ask_as(&operator, method, &path, body.as_ref()).await;
            assert_eq!(status, 403, "{method} {path}, open: {is_open}: {said}");
        }
        assert!(server.root.join("made").exists());
    }
}

/// The key is not in the journal, but the fact that an admin gave it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_with_an_admins_key_stays_the_admins_when_it_is_closed_and_forked() {
    let server = Server::start(busy(), Mode::Default).await;
    let operator = Tokens::add(&server.home, "hands", Role::Operator).unwrap();
    let session = started(&server, &server.token, json!({ "api_key": "sk-of-the-admin-000111222" })).await;
    let close = format!("/agent/interactive/close?session_id={session}");
    assert_eq!(server.post(&close, json!({})).await.0, 200);
    let (status, fork) = server.post(&format!("/api/sessions/{session}/fork"), json!({})).await;
    assert_eq!(status, 200, "{fork}");
    for id in [session.as_str(), fork["id"].as_str().unwrap()] {
        let task = json!({ "session_id": id, "task": "x" });
        let (status, said) = server.ask_as(&operator, "POST", "/agent/interactive/task", Some(&task)).await;
        assert_eq!(status, 403, "{id}: {said}");
    }
}

/// An id that one client had used swallowed the `cancel` of another.
#[tokio::test(flavor = "multi_thread")]
async fn an_id_of_a_command_belongs_to_the_client_and_the_command_that_used_it_first() {
    let server = Server::start(busy(), Mode::Default).await;
    let operator = Tokens::add(&server.home, "hands", Role::Operator).unwrap();
    let session = started(&server, &server.token, json!({})).await;
    let query = format!("?session_id={session}");
    let mut first = server.socket_as(&operator, &query).await;
    let mut second = server.socket(&query).await;
    first.until("status").await;
    second.until("status").await;
    let cancel = json!({ "type": "cancel", "id": "k1" });
    first.say(&cancel).await;
    let before = first.until("receipt").await.pop().unwrap()["data"].clone();
    first.say(&cancel).await;
    assert_eq!(first.until("receipt").await.pop().unwrap()["data"], before);
    for socket in [&mut second, &mut first] {
        let message = json!({ "type": "input", "text": "other", "id": "k1" });
        socket.say(&message).await;
        let receipt = socket.until("receipt").await.pop().unwrap()["data"].clone();
        assert_eq!(receipt["accepted"], false, "{receipt}");
        assert!(receipt["reason"].as_str().unwrap().contains("used for another command"), "{receipt}");
    }
    second.say(&cancel).await;
    let receipt = second.until("receipt").await.pop().unwrap()["data"].clone();
    assert!(receipt["reason"].as_str().unwrap_or_default().contains("used for another command"), "{receipt}");
}

/// Each name had a toolbox made.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_tools_has_at_most_256_names() {
    let server = Server::start(busy(), Mode::Default).await;
    let many = |count: usize| vec!["bash"; count];
    for (count, wanted) in [(256, 200), (257, 422)] {
        let request = json!({ "tools": many(count) });
        let (status, said) = server.post("/agent/interactive/start", request).await;
        assert_eq!(status, wanted, "{said}");
        let mode = json!({ "name": "m", "tool_whitelist": many(count) });
        let (status, said) =
            server.post("/agent/interactive/start", json!({ "agent_mode_config": mode })).await;
        assert_eq!(status, wanted, "{said}");
    }
}

/// A body that ended after the token was removed was still acted on.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_ends_after_its_token_was_removed_is_not_acted_on() {
    let server = Server::start(busy(), Mode::Default).await;
    let json = json!({ "path": "late.txt", "content": "late" }).to_string();
    ends_late(&server, "PUT /api/file", "application/json", &json).await;
    let upload = "POST /files/upload?relative_path=late.txt";
    ends_late(&server, upload, "application/octet-stream", "late").await;
    let form = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"late.txt\"\r\n\r\nlate\r\n--b--\r\n";
    ends_late(&server, "POST /files/upload", "multipart/form-data; boundary=b", form).await;
}

/// Removes the token of a request between its head and its body.
async fn ends_late(server: &Server, request: &str, kind: &str, body: &str) {
    let operator = Tokens::add(&server.home, "hands", Role::Operator).unwrap();
    let head = format!(
        "{request} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {operator}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n",
        server.address,
        body.len()
    );
    let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    // The server asks for the body once the token was accepted.
    let mut piece = [0; 25];
    stream.read_exact(&mut piece).await.unwrap();
    assert!(piece.starts_with(b"HTTP/1.1 100"), "{}", String::from_utf8_lossy(&piece));
    Tokens::remove(&server.home, "hands").unwrap();
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    assert!(!answer.starts_with("HTTP/1.1 200"), "{request}: {answer}");
    assert!(!server.root.join("late.txt").exists(), "{request}");
}
