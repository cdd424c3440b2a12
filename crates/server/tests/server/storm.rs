//! Many clients that come and go: none loses a frame, none gets one twice.

use std::time::Instant;

use lathe_protocol::Mode;
use lathe_testkit::is_full;
use serde_json::{Value, json};

use crate::kit::{Server, call, cassette, done};

/// Steps of ten calls each: 32 events a step.
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

/// The frames that a client saw: their number, and a checksum that another set of frames does not have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Seen {
    last: (u64, u64),
    count: u64,
    sum: u64,
}

impl Seen {
    /// Cursors only go up, so a frame that comes twice is noticed at once.
    fn add(&mut self, cursor: &str) {
        let (seq, part) = cursor.split_once('.').unwrap();
        let next = (seq.parse().unwrap(), part.parse().unwrap());
        assert!(self.count == 0 || next > self.last, "{next:?} came after {:?}", self.last);
        let mixed = (next.0 << 20 | next.1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (self.last, self.count, self.sum) =
            (next, self.count + 1, self.sum.wrapping_add(mixed ^ mixed >> 31));
    }
}

/// Reads all frames of a session, going away again and again.
async fn restless(
    address: std::net::SocketAddr,
    token: String,
    session: String,
    seed: u64,
    patience: u64,
) -> Seen {
    use futures::StreamExt;
    use tokio_tungstenite::tungstenite::Message;
    use tokio_tungstenite::tungstenite::client::IntoClientRequest;
    let mut chance = Chance(seed);
    let mut seen = Seen::default();
    loop {
        let from = match seen.last {
            (0, _) => String::new(),
            (seq, part) => format!("&from={seq}.{part}"),
        };
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
            seen.add(cursor.split('"').next().unwrap_or_default());
            if text.starts_with("{\"type\":\"end\"") {
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
    let (clients, steps, patience) = if is_full() { (100, 31_300, 60_000) } else { (12, 160, 500) };
    let server = Server::start(busy(steps), Mode::FullAuto).await;
    let (status, started) = server.post("/agent/interactive/start", json!({})).await;
    assert_eq!(status, 200, "{started}");
    let session = started["session_id"].as_str().unwrap().to_owned();
    let watch = |n: u64, patience: u64| {
        tokio::spawn(restless(server.address, server.token.clone(), session.clone(), 7919 * n, patience))
    };
    let tasks: Vec<_> = (1..=clients).map(|n| watch(n, patience)).collect();
    let mut socket = server.socket("").await;
    socket.say(&json!({ "session_id": session, "task": "Think." })).await;
    drop(socket);
    let mut all = Vec::new();
    for task in tasks {
        // The time limit is set with the other limits of tests, in `.config/nextest.toml`.
        all.push(task.await.unwrap());
    }
    // One who comes when all is over and stays has the journal's frames, all of them.
    let afterwards = watch(1, u64::MAX).await.unwrap();
    let others: Vec<_> = all.iter().enumerate().filter(|(_, seen)| **seen != afterwards).collect();
    assert!(others.is_empty(), "not {afterwards:?}: {others:?}");
    // The journal has the number of events that was wanted.
    let (events, _) = afterwards.last;
    println!("{clients} clients, {events} events, {} frames each", afterwards.count);
    assert!(events >= if is_full() { 1_000_000 } else { 5_000 }, "{events}");
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
