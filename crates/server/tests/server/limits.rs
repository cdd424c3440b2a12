//! Limits that keep one client from using up what others need.

use lathe_protocol::Mode;
use lathe_server::{Role, Tokens};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::kit::{Server, call, cassette, done};

/// Leaves this process so many descriptors. Each test is a process of its own.
fn few_descriptors(most: u64) {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, most.min(hard), hard).unwrap();
}

fn waits() -> String {
    cassette([json!([call("a1", "bash", json!({ "command": "touch made" }))]), json!([done("b1", "made")])])
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_clients_give_way_where_descriptors_are_few() {
    // The clients are in this process too: 200 of them, and 120 that the server may have.
    few_descriptors(360);
    let server = Server::start(waits(), Mode::Default).await;
    let host = server.address;
    let mut socket = server.socket("").await;
    let mut silent = Vec::new();
    for at in 0..200 {
        let mut stream = TcpStream::connect(host).await.unwrap();
        let said = if at % 2 == 0 { String::new() } else { format!("GET / HTTP/1.1\r\nHost: {host}\r\n") };
        let _ = stream.write_all(said.as_bytes()).await;
        silent.push(stream);
    }
    let health = format!("GET /health HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    assert_eq!(server.raw(&health).await.0, 200);
    assert_eq!(server.get("/api/sessions").await.0, 200);
    // The oldest were closed for it; one that has a token was not.
    let mut byte = [0];
    assert!(matches!(silent[0].read(&mut byte).await, Ok(0) | Err(_)));
    socket.say(&json!({ "task": "Make it." })).await;
    socket.until("approval").await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_nobody_uses_are_closed_for_new_ones_and_those_at_work_are_not() {
    // Eight sessions at once, four of one token.
    few_descriptors(192);
    let server = Server::start(waits(), Mode::Default).await;
    let hands = Tokens::add(&server.home, "hands", Role::Operator).unwrap();
    let start = async |token: &str| {
        let (status, body) = server.ask_as(token, "POST", "/agent/interactive/start", Some(&json!({}))).await;
        (status, body["session_id"].as_str().unwrap_or_default().to_owned())
    };
    let first = start(&hands).await;
    assert_eq!(first.0, 200);
    for _ in 0..12 {
        assert_eq!(start(&hands).await.0, 200);
    }
    let status = format!("/agent/interactive/status?session_id={}", first.1);
    assert_eq!(server.get(&status).await.0, 404);
    let open = server.get("/metrics").await.1.to_string();
    assert!(open.contains("lathe_sessions_open 4"), "{open}");
    // Those that wait for an answer are at work.
    let mut working = Vec::new();
    for _ in 0..4 {
        let mut socket = server.socket_as(&hands, "").await;
        socket.say(&json!({ "task": "Make it." })).await;
        socket.until("approval").await;
        working.push(socket);
    }
    let (status, _) = start(&hands).await;
    assert_eq!(status, 429);
    // Others are not kept from anything by that.
    assert_eq!(start(&server.token).await.0, 200);
    server.stop().await;
}

/// Attack on the server, F4: the cap was asked before a start, not with it.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_are_started_at_the_same_time_are_no_more_than_one_after_the_other() {
    // Eight sessions at once, four of one token.
    few_descriptors(192);
    let server = Server::start(waits(), Mode::Default).await;
    let hands = Tokens::add(&server.home, "hands", Role::Operator).unwrap();
    let start = async || server.ask_as(&hands, "POST", "/agent/interactive/start", Some(&json!({}))).await.0;
    let answers = futures::future::join_all((0..20).map(|_| start())).await;
    assert!(answers.iter().all(|status| [200, 429].contains(status)), "{answers:?}");
    assert!(answers.contains(&200), "{answers:?}");
    let metrics = server.get("/metrics").await.1.to_string();
    let is_open = |count: usize| metrics.contains(&format!(r"lathe_sessions_open {count}\n"));
    assert!((1..=4).any(is_open), "{metrics}");
    // Nothing is used up for good.
    assert_eq!(start().await, 200);
    server.stop().await;
}

/// Attack on the server, F4: a file of tokens that could not be read was taken for one without the token.
#[tokio::test(flavor = "multi_thread")]
async fn tokens_that_cannot_be_read_are_not_removed_and_their_sockets_stay() {
    let server = Server::start(waits(), Mode::Default).await;
    let hands = Tokens::add(&server.home, "hands", Role::Operator).unwrap();
    let mut socket = server.socket_as(&hands, "").await;
    socket.say(&json!({ "task": "Make it." })).await;
    socket.until("approval").await;
    // A folder is not read as a file.
    let (file, aside) = (server.home.join("server/tokens.json"), server.home.join("server/aside.json"));
    std::fs::rename(&file, &aside).unwrap();
    std::fs::create_dir(&file).unwrap();
    let (status, body) = server.ask_as(&hands, "GET", "/api/sessions", None).await;
    assert_eq!((status, &body["code"]), (503, &json!("unavailable")), "{body}");
    // The owner needs no file.
    assert_eq!(server.get("/api/sessions").await.0, 200);
    socket.say(&json!({ "type": "cancel" })).await;
    let frames = socket.until("error").await;
    assert_eq!(frames.last().unwrap()["data"]["code"], "unavailable", "{frames:?}");
    std::fs::remove_dir(&file).unwrap();
    std::fs::rename(&aside, &file).unwrap();
    assert_eq!(server.ask_as(&hands, "GET", "/api/sessions", None).await.0, 200);
    socket.say(&json!({ "type": "cancel" })).await;
    socket.until("end").await;
    // One that was read and lacks the token removes it.
    let mut other = server.socket_as(&hands, "").await;
    Tokens::remove(&server.home, "hands").unwrap();
    assert_eq!(other.closed().await.unwrap().0, 1008);
    assert_eq!(server.ask_as(&hands, "GET", "/api/sessions", None).await.0, 401);
    server.stop().await;
}

/// Attack on the server, F1 and F5.
#[tokio::test(flavor = "multi_thread")]
async fn what_one_request_names_and_is_shown_has_a_bound() {
    let server = Server::start(waits(), Mode::Default).await;
    crate::git_bounds::git(&server.root, &["init", "-q", "-b", "main"]);
    crate::git_bounds::git(&server.root, &["add", "a.txt"]);
    let names =
        |count: usize| -> Vec<String> { (0..count).map(|number| format!("{number}/config")).collect() };
    let deep = vec![format!("{}a", "b/".repeat(2_000)); 400];
    for what in ["add", "reset", "checkout"] {
        let path = format!("/api/git/{what}");
        for files in [names(10_001), deep.clone()] {
            assert_eq!(server.post(&path, json!({ "files": files })).await.0, 413, "{what}");
        }
    }
    // Nothing of these is there.
    let (status, body) = server.post("/api/git/checkout", json!({ "files": names(10_000) })).await;
    assert_eq!(status, 409, "{body}");
    for number in 0..20_100 {
        std::fs::write(server.root.join(format!("f{number:05}")), "").unwrap();
    }
    let (_, tree) = server.get("/api/files?depth=32").await;
    assert_eq!((&tree["count"], &tree["more"]), (&json!(20_000), &json!(true)));
    let (_, level) = server.get("/api/files").await;
    assert_eq!((&level["count"], &level["more"]), (&json!(20_102), &json!(false)));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_watches_eight_folders_and_the_next_is_refused() {
    let server = Server::start(waits(), Mode::Default).await;
    let viewer = Tokens::add(&server.home, "eyes", Role::Viewer).unwrap();
    let watchers = || {
        std::fs::read_dir("/proc/self/fd")
            .unwrap()
            .flatten()
            .filter(|entry| {
                std::fs::read_link(entry.path()).is_ok_and(|to| to.ends_with("anon_inode:inotify"))
            })
            .count()
    };
    let before = watchers();
    let ask = |token: &str| {
        format!(
            "GET /api/files/watch HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nAccept: text/event-stream\r\nConnection: close\r\n\r\n",
            server.address
        )
    };
    let mut open = Vec::new();
    for _ in 0..8 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(ask(&viewer).as_bytes()).await.unwrap();
        let (mut told, mut piece) = (String::new(), [0; 4096]);
        while !told.contains("event: ready") {
            let read = stream.read(&mut piece).await.unwrap();
            assert!(read > 0, "{told}");
            told.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
        open.push(stream);
    }
    assert_eq!(watchers() - before, 1);
    assert_eq!(server.raw(&ask(&viewer)).await.0, 429);
    // Each of them gets the change.
    std::fs::write(server.root.join("new.txt"), "new").unwrap();
    for stream in &mut open {
        let (mut told, mut piece) = (String::new(), [0; 4096]);
        while !told.contains("new.txt") {
            let read = stream.read(&mut piece).await.unwrap();
            assert!(read > 0, "{told}");
            told.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
    }
    // Another token has its own.
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(ask(&server.token).as_bytes()).await.unwrap();
    let mut piece = [0; 12];
    stream.read_exact(&mut piece).await.unwrap();
    assert_eq!(&piece, b"HTTP/1.1 200");
    server.stop().await;
}
