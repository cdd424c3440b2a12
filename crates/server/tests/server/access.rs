//! Requests without a valid token, from a foreign page or to a foreign host name are refused.

use lathe_protocol::Mode;
use serde_json::{Value, json};

use crate::kit::{Server, cassette, done};

fn nothing() -> String {
    cassette([json!([done("c1", "done")])])
}

#[tokio::test(flavor = "multi_thread")]
async fn of_48_handshakes_only_those_with_the_token_from_here_to_here_pass() {
    let server = Server::start(nothing(), Mode::Default).await;
    let port = server.address.port();
    let tokens = [("none", None), ("wrong", Some("0".repeat(64))), ("right", Some(server.token.clone()))];
    let origins = [
        ("none", None),
        ("own", Some(format!("http://127.0.0.1:{port}"))),
        ("foreign", Some("https://evil.test".to_owned())),
        ("null", Some("null".to_owned())),
    ];
    let hosts = [
        ("loopback", Some(format!("127.0.0.1:{port}"))),
        ("localhost", Some(format!("localhost:{port}"))),
        ("foreign", Some(format!("evil.test:{port}"))),
        ("missing", None),
    ];
    let mut passed = Vec::new();
    for (token_is, token) in &tokens {
        for (origin_is, origin) in &origins {
            for (host_is, host) in &hosts {
                let mut request = "GET /ws/agent/interactive/task HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n".to_owned();
                let headers = [
                    ("Host", host.clone()),
                    ("Origin", origin.clone()),
                    ("Authorization", token.as_ref().map(|token| format!("Bearer {token}"))),
                ];
                for (name, value) in headers {
                    request.extend(value.map(|value| format!("{name}: {value}\r\n")));
                }
                request.push_str("\r\n");
                let (status, _) = server.raw(&request).await;
                let cell = format!("{token_is}/{origin_is}/{host_is}");
                let good_host = matches!(*host_is, "loopback" | "localhost");
                let good_origin = matches!(*origin_is, "none" | "own");
                let wanted = match (*host_is, good_host, good_origin, *token_is) {
                    ("missing", ..) => 400,
                    (_, false, ..) | (_, _, false, _) => 403,
                    (_, _, _, "right") => 101,
                    _ => 401,
                };
                assert_eq!(status, wanted, "{cell}");
                if status == 101 {
                    passed.push(cell);
                }
            }
        }
    }
    assert_eq!(
        passed,
        ["right/none/loopback", "right/none/localhost", "right/own/loopback", "right/own/localhost"]
    );
    server.stop().await;
}

/// A value for each parameter of a path.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_names_two_hosts_is_refused() {
    let server = Server::start(nothing(), Mode::Default).await;
    let (us, port) = (server.address.to_string(), server.address.port());
    for (target, host, wanted) in [
        (format!("http://{us}/health"), us.clone(), 200),
        (format!("http://LOCALHOST:{port}/health"), format!("localhost:{port}"), 200),
        ("http://evil.example/health".to_owned(), us.clone(), 400),
        (format!("http://{us}/health"), "evil.example".to_owned(), 400),
        (format!("http://evil@{us}/health"), us.clone(), 400),
        ("http://evil.example/health".to_owned(), "evil.example".to_owned(), 403),
    ] {
        let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        assert_eq!(server.raw(&request).await.0, wanted, "{target} {host}");
    }
    server.stop().await;
}

fn filled(path: &str) -> String {
    path.split('/').map(|part| if part.starts_with('{') { "x" } else { part }).collect::<Vec<_>>().join("/")
}

async fn routes(server: &Server) -> Vec<(String, String, Value)> {
    let (status, document) = server.get("/openapi.json").await;
    assert_eq!(status, 200);
    let paths = document["paths"].as_object().unwrap().clone();
    let each = |(path, item): (String, Value)| {
        let methods = item.as_object().unwrap().clone();
        methods.into_iter().map(move |(method, operation)| (method.to_uppercase(), path.clone(), operation))
    };
    paths.into_iter().flat_map(each).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_but_four_wants_a_token_and_every_route_of_the_document_is_there() {
    let server = Server::start(nothing(), Mode::Default).await;
    let host = server.address.to_string();
    let routes = routes(&server).await;
    assert!(routes.len() >= 14, "{}", routes.len());
    let mut open = Vec::new();
    for (method, path, operation) in &routes {
        let request = format!(
            "{method} {} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            filled(path)
        );
        let (status, body) = server.raw(&request).await;
        let is_open = operation.get("security").is_none();
        if is_open {
            open.push(format!("{method} {path}"));
        } else {
            assert_eq!(status, 401, "{method} {path}: {body}");
        }
        // With a token the reply differs from that of an address without a route.
        let (status, body) = server.ask_as(&server.token, method, &filled(path), None).await;
        assert!(
            status != 405 && body["detail"] != "There is nothing at this address: see /openapi.json.",
            "{method} {path}"
        );
        assert!(status < 500 || status == 503, "{method} {path}: {status} {body}");
    }
    assert_eq!(open, ["GET /health", "POST /auth", "GET /", "GET /assets/{name}"]);
    let (status, _) =
        server.raw(&format!("GET /nowhere HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")).await;
    assert_eq!(status, 401);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_may_do_what_it_may_and_a_removed_token_nothing() {
    let server = Server::start(nothing(), Mode::Default).await;
    let make = |name: &str, role| lathe_server::Tokens::add(&server.home, name, role).unwrap();
    let viewer = make("eyes", lathe_server::Role::Viewer);
    let operator = make("hands", lathe_server::Role::Operator);
    let run = json!({ "task": "x" });
    assert_eq!(server.ask_as(&viewer, "GET", "/api/sessions", None).await.0, 200);
    assert_eq!(server.ask_as(&viewer, "POST", "/agent/run", Some(&run)).await.0, 403);
    assert_eq!(server.ask_as(&operator, "POST", "/agent/run", Some(&run)).await.0, 200);
    // What names endpoints, keys or paths of the server, and what switches questions off, is for admins.
    for (field, value) in [
        ("model_base_url", json!("http://127.0.0.1:1")),
        ("api_key", json!("k")),
        ("config_file", json!("/etc/passwd")),
        ("file_path", json!("/etc/passwd")),
        ("mode", json!("full-auto")),
        ("sandbox", json!("off")),
    ] {
        let mut request = if field == "file_path" { json!({}) } else { run.clone() };
        request[field] = value;
        let (status, body) = server.ask_as(&operator, "POST", "/agent/run", Some(&request)).await;
        assert_eq!(status, 403, "{field}: {body}");
    }
    for folder in ["/", "/etc", "..", "nowhere"] {
        let request = json!({ "task": "x", "working_dir": folder });
        assert_eq!(server.ask_as(&operator, "POST", "/agent/run", Some(&request)).await.0, 403, "{folder}");
    }
    // A viewer may watch a connection, but say nothing on it.
    let mut socket = server.socket_as(&viewer, "").await;
    socket.say(&run).await;
    assert_eq!(socket.closed().await.unwrap().0, 1008);
    lathe_server::Tokens::remove(&server.home, "hands").unwrap();
    assert_eq!(server.ask_as(&operator, "GET", "/api/sessions", None).await.0, 401);
    let audit = std::fs::read_to_string(server.home.join("server/audit.jsonl")).unwrap();
    assert!(
        audit.contains(r#""who":"hands","role":"operator","did":"POST","on":"/agent/run","outcome":"403""#),
        "{audit}"
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_exchanged_for_a_cookie_that_scripts_and_other_sites_do_not_get() {
    let server = Server::start(nothing(), Mode::Default).await;
    let body = json!({ "token": server.token }).to_string();
    let host = server.address;
    let ask = |cookie: &str, origin: &str| {
        format!("GET /api/sessions HTTP/1.1\r\nHost: {host}\r\n{cookie}{origin}Connection: close\r\n\r\n")
    };
    let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let request = format!(
        "POST /auth HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut stream, &mut answer).await.unwrap();
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    assert!(answer.contains("content-security-policy: default-src 'none'"), "{answer}");
    assert!(!answer.to_lowercase().contains("access-control-allow"), "{answer}");
    let (_, who) = answer.split_once("\r\n\r\n").unwrap();
    let who: Value = serde_json::from_str(who).unwrap();
    let half = who["page"].as_str().unwrap();
    let pair = format!("Cookie: {}\r\nX-Lathe-Page: {half}\r\n", cookie.split(';').next().unwrap());
    assert!(!pair.contains(&server.token) && !cookie.contains(half));
    assert_eq!(server.raw(&ask(&pair, "")).await.0, 200);
    assert_eq!(server.raw(&ask(&pair, "Origin: https://evil.test\r\n")).await.0, 403);
    assert_eq!(server.raw(&ask("Cookie: lathe_1=x\r\n", "")).await.0, 401);
    // Two hosts, or two tokens: an attack that counts on one of them being checked and the other being used.
    let two = format!("GET /health HTTP/1.1\r\nHost: {host}\r\nHost: evil.test\r\nConnection: close\r\n\r\n");
    assert_eq!(server.raw(&two).await.0, 400);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_guesses_tokens_has_to_wait_and_who_knows_one_does_not() {
    let server = Server::start(nothing(), Mode::Default).await;
    let mut seen = Vec::new();
    for at in 0..40 {
        seen.push(server.ask_as(&format!("{at:064}"), "GET", "/api/sessions", None).await.0);
    }
    assert_eq!((seen[0], seen.last()), (401, Some(&429)));
    // The right token comes from the same address, again and again, and signs in too.
    for _ in 0..3 {
        assert_eq!(server.get("/api/sessions").await.0, 200);
        assert_eq!(server.post("/auth", json!({ "token": server.token })).await.0, 200);
    }
    // That does not forgive the guesses, whichever route they use.
    assert_eq!(server.ask_as(&"1".repeat(64), "GET", "/api/sessions", None).await.0, 429);
    let body = json!({ "token": "2".repeat(64) }).to_string();
    let guess = format!(
        "POST /auth HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        server.address,
        body.len()
    );
    assert_eq!(server.raw(&guess).await.0, 429);
    server.stop().await;
}
