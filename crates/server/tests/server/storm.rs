//! Many clients that come and go: none loses a frame, none gets one twice.

use std::time::{Duration, Instant};

use lathe_protocol::Mode;
use serde_json::{Value, json};

use crate::kit::{Server, call, cassette, done};

fn is_full() -> bool {
    std::env::var("LATHE_TEST_FULL").is_ok_and(|value| value == "1")
}

/// Steps of ten calls each: some 33 events a step.
fn busy(steps: usize) -> String {
    let calls = |step: usize| -> Value {
        (0..10).map(|n| call(&format!("s{step}c{n}"), "think", json!({ "thought": "x" }))).collect()
    };
    cassette((0..steps).map(calls).chain([json!([done("end", "done")])]))
}

/// Numbers that look random and are the same each time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// Reads all frames of a session, going away again and again. Gives the cursors as they came.
async fn restless(
    address: std::net::SocketAddr,
    token: String,
    session: String,
    seed: u64,
    patience: u64,
) -> Vec<String> {
    use futures::StreamExt;
    use tokio_tungstenite::tungstenite::Message;
    use tokio_tungstenite::tungstenite::client::IntoClientRequest;
    let mut chance = Chance(seed);
    let mut seen: Vec<String> = Vec::new();
    loop {
        let from = seen.last().map(|cursor| format!("&from={cursor}")).unwrap_or_default();
        let url = format!("ws://{address}/ws/agent/interactive/task?session_id={session}{from}");
        let mut request = url.into_client_request().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        let (mut socket, _) = tokio_tungstenite::connect_async(request).await.unwrap();
        let mut left = 1 + chance.below(patience);
        while let Some(Ok(message)) = socket.next().await {
            let Message::Text(text) = message else { continue };
            // Reading all of a frame would take longer than making it.
            let Some(cursor) = text.split("\"cursor\":\"").nth(1).filter(|_| text.contains("\"run_id\""))
            else {
                continue;
            };
            let cursor = cursor.split('"').next().unwrap_or_default().to_owned();
            let ended = text.starts_with("{\"type\":\"end\"");
            seen.push(cursor);
            if ended {
                return seen;
            }
            left -= 1;
            if left == 0 {
                break;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_come_and_go_lose_nothing_and_get_nothing_twice() {
    let (clients, steps, patience) = if is_full() { (100, 30_000, 60_000) } else { (20, 640, 2_000) };
    let server = Server::start(busy(steps), Mode::FullAuto).await;
    let (status, started) = server.post("/agent/interactive/start", json!({})).await;
    assert_eq!(status, 200, "{started}");
    let session = started["session_id"].as_str().unwrap().to_owned();
    let tasks: Vec<_> = (1..=clients)
        .map(|n| {
            tokio::spawn(restless(server.address, server.token.clone(), session.clone(), 7919 * n, patience))
        })
        .collect();
    let mut socket = server.socket("").await;
    socket.say(&json!({ "session_id": session, "task": "Think." })).await;
    drop(socket);
    let mut all: Option<Vec<String>> = None;
    for (n, task) in tasks.into_iter().enumerate() {
        let seen = tokio::time::timeout(Duration::from_secs(3000), task).await.expect("in time").unwrap();
        let unique: std::collections::HashSet<&String> = seen.iter().collect();
        assert_eq!(unique.len(), seen.len(), "client {n} got a frame twice");
        match &all {
            None => all = Some(seen),
            Some(all) => assert!(*all == seen, "client {n} saw {} frames, another {}", seen.len(), all.len()),
        }
    }
    // The journal has the number of events that was wanted.
    let last = all.unwrap().last().cloned().unwrap();
    let events: u64 = last.split('.').next().unwrap().parse().unwrap();
    assert!(events >= if is_full() { 950_000 } else { 20_000 }, "{events}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_nothing_does_not_hold_the_agent_up() {
    let steps = 150;
    let took = |frames: &[Value]| frames[frames.len() - 2]["data"]["execution_time"].as_f64().unwrap();
    let alone = {
        let server = Server::start(busy(steps), Mode::FullAuto).await;
        let mut socket = server.run("Think.").await;
        let frames = socket.until("end").await;
        server.stop().await;
        took(&frames)
    };
    let server = Server::start(busy(steps), Mode::FullAuto).await;
    let (_, started) = server.post("/agent/interactive/start", json!({})).await;
    let session = started["session_id"].as_str().unwrap();
    let mut stuck = Vec::new();
    for _ in 0..8 {
        stuck.push(server.socket(&format!("?session_id={session}")).await);
    }
    let began = Instant::now();
    let (status, result) =
        server.post("/agent/interactive/task", json!({ "session_id": session, "task": "Think." })).await;
    assert_eq!(status, 200, "{result}");
    // The stuck ones never read. An agent that waited for one would wait for half a minute; `scripts/bench --server` measures.
    let with = result["execution_time"].as_f64().unwrap();
    assert!(with < alone * 5.0 + 25.0, "alone {alone} s, with stuck clients {with} s, {:?}", began.elapsed());
    drop(stuck);
    server.stop().await;
}
