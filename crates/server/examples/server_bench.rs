//! The costs of the server: many sessions at a steady pace, frames to many clients, memory of idle sessions.
//!
//! Server and clients share this process and the machine's cores, so every number includes the clients' work.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{SinkExt, StreamExt};
use lathe_host::{Attended, Extras, Home, Host, ModeWish, ModelSource, Overrides, SessionPlan};
use lathe_plan::{Plans, Wish};
use lathe_protocol::{
    EndingRule, LimitChanges, Limits, Mode, ReplayPace, ReplayStrictness, Sandbox, SessionOptions, ToolChoice,
};
use lathe_server::{OnRestart, ServerOptions, bind};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

struct Paced {
    /// The word of a task that chooses a cassette is the name of its toolset's tool: `paced` or `busy`.
    paced: PathBuf,
    busy: PathBuf,
}

impl Paced {
    fn source(&self, wish: &Wish) -> ModelSource {
        let is_busy = wish.given.get("run.max_steps") == Some(1_000_000);
        let (cassette, pace) = match is_busy {
            true => (self.busy.clone(), ReplayPace::Instant),
            false => (self.paced.clone(), ReplayPace::Each(Duration::from_millis(500))),
        };
        ModelSource::Replay { cassette, pace, strictness: ReplayStrictness::Lenient }
    }
}

impl Plans for Paced {
    fn plan(&self, wish: &Wish) -> Result<SessionPlan, String> {
        Ok(SessionPlan {
            own_model: false,
            folder: wish.folder.clone(),
            source: self.source(wish),
            mode: ModeWish::Given(Mode::FullAuto),
            // What is measured is the server.
            sandbox: Some(Sandbox::Off),
            toolset: None,
            limits: Limits { max_steps: 1_000_000, ..Limits::default() },
            ending: EndingRule::Remind,
            patch: None,
            record: None,
            tools: ToolChoice::default(),
            attended: Attended::Person,
            extras: Extras::default(),
        })
    }

    fn overrides(&self, folder: &Path, _: &SessionOptions) -> Result<Overrides, String> {
        Ok(Overrides {
            sandbox: None,
            own_model: false,
            source: self.source(&Wish::task(folder)),
            mode: None,
            limits: LimitChanges::default(),
            record: None,
            attended: Attended::Person,
            extras: Extras::default(),
        })
    }

    fn settings(&self, _: &Path) -> Result<Value, String> {
        Ok(json!([]))
    }
}

fn cassette(path: &Path, steps: usize, calls: usize) {
    let mut text = json!({ "cassette": 1, "toolset": "lathe" }).to_string();
    for step in 0..steps {
        let call = |n: usize| {
            let arguments = json!({ "thought": "What is next, and why." });
            json!({ "call": { "id": format!("s{step}c{n}"), "name": "think", "arguments": arguments } })
        };
        let blocks: Vec<Value> = (0..calls).map(call).collect();
        text.push_str(&format!("\n{}", json!({ "answer": { "blocks": blocks } })));
    }
    let done = json!({ "call": { "id": "end", "name": "task_done", "arguments": { "summary": "done" } } });
    text.push_str(&format!("\n{}", json!({ "answer": { "blocks": [done] } })));
    std::fs::write(path, text).unwrap();
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

#[derive(Clone)]
struct Place {
    address: String,
    token: String,
}

impl Place {
    async fn connect(&self, query: &str) -> Socket {
        let url = format!("ws://{}/ws/agent/interactive/task{query}", self.address);
        let mut request = url.into_client_request().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {}", self.token).parse().unwrap());
        tokio_tungstenite::connect_async(request).await.unwrap().0
    }
}

/// Resident memory of this process in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap()
}

fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').next().unwrap_or("?").to_owned()
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "NOT MET" }
}

/// Runs sessions in parallel, each with a client; milliseconds from the append of an event to its frame.
async fn paced(place: &Place, sessions: usize, seconds: u64) {
    let until = Instant::now() + Duration::from_secs(seconds);
    let client = |place: Place| async move {
        let mut socket = place.connect("").await;
        socket.send(Message::text(json!({ "task": "Think." }).to_string())).await.unwrap();
        let (mut late, mut steps) = (Vec::new(), 0u32);
        while let Ok(Some(Ok(message))) = tokio::time::timeout_at(until.into(), socket.next()).await {
            let Message::Text(text) = message else { continue };
            // The frame of a requested step has the time of its event, not a later one.
            if text.starts_with("{\"type\":\"step\"") {
                steps += u32::from(text.contains("\"state\":\"thinking\""));
                let Some(at) = text.split("\"timestamp\":\"").nth(1).and_then(|rest| rest.split('"').next())
                else {
                    continue;
                };
                let at: jiff::Timestamp = at.parse().unwrap();
                late.push(
                    (jiff::Timestamp::now().as_microsecond() - at.as_microsecond()).max(0) as f64 / 1e3,
                );
            }
        }
        (late, steps)
    };
    let tasks: Vec<_> = (0..sessions).map(|_| tokio::spawn(client(place.clone()))).collect();
    let (mut late, mut steps) = (Vec::new(), 0);
    for task in tasks {
        let (more, count) = task.await.unwrap();
        // The first seconds are the opening of two hundred sessions at once.
        late.extend(more.into_iter().skip(6));
        steps += count;
    }
    late.sort_by(f64::total_cmp);
    let at = |share: f64| late[((late.len() - 1) as f64 * share) as usize];
    println!(
        "append to client, {sessions} sessions, {:.2} steps/s each: median {:.1} ms, p99 {:.1} ms, worst {:.1} ms over {} frames; goal p99 20 ms: {} (load {})",
        f64::from(steps) / sessions as f64 / seconds as f64,
        at(0.5),
        at(0.99),
        at(1.0),
        late.len(),
        verdict(at(0.99) < 20.0),
        load()
    );
}

/// Memory of sessions that are open and stand still.
async fn idle(place: &Place, sessions: usize) {
    let open = |place: Place| async move {
        let mut stream = TcpStream::connect(&place.address).await.unwrap();
        let request = format!(
            "POST /agent/interactive/start HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}",
            place.address, place.token
        );
        tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        tokio::io::AsyncReadExt::read_to_string(&mut stream, &mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    };
    for _ in 0..5 {
        open(place.clone()).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = resident();
    for _ in 0..sessions {
        open(place.clone()).await;
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let each = (resident().saturating_sub(before)) as f64 / sessions as f64 / 1024.0;
    println!("memory of an idle session: {each:.2} MB over {sessions}; goal 1 MB: {}", verdict(each < 1.0));
}

/// One session, many clients: frames a second, summed.
async fn fan_out(place: &Place, clients: usize) {
    let mut first = place.connect("").await;
    first.send(Message::text(json!({ "task": "Think.", "max_steps": 1_000_000 }).to_string())).await.unwrap();
    let session = loop {
        let Some(Ok(Message::Text(text))) = first.next().await else { continue };
        let frame: Value = serde_json::from_str(&text).unwrap();
        if let Some(session) = frame["session_id"].as_str() {
            break session.to_owned();
        }
    };
    let watch = |place: Place, session: String| async move {
        let mut socket = place.connect(&format!("?session_id={session}&until_end=true")).await;
        let mut frames = 0u64;
        while let Some(Ok(message)) = socket.next().await {
            frames += u64::from(message.is_text());
        }
        frames
    };
    let began = Instant::now();
    let tasks: Vec<_> = (0..clients).map(|_| tokio::spawn(watch(place.clone(), session.clone()))).collect();
    drop(first);
    let mut frames = 0;
    for task in tasks {
        frames += task.await.unwrap();
    }
    let rate = frames as f64 / began.elapsed().as_secs_f64();
    println!(
        "frames to {clients} clients: {frames} in {:.1} s = {rate:.0} a second; goal 50000: {} (load {})",
        began.elapsed().as_secs_f64(),
        verdict(rate >= 50_000.0),
        load()
    );
}

/// The cost for the agent of clients that never read: the time of a run without and with them.
async fn stuck(place: &Place, clients: usize, steps: usize) {
    async fn run(place: &Place, stuck: usize) -> f64 {
        let mut first = place.connect("").await;
        first
            .send(Message::text(json!({ "task": "Think.", "max_steps": 1_000_000 }).to_string()))
            .await
            .unwrap();
        let mut idle = Vec::new();
        while let Some(Ok(message)) = first.next().await {
            let Message::Text(text) = message else { continue };
            if idle.len() < stuck && text.starts_with("{\"type\":\"start\"") {
                let frame: Value = serde_json::from_str(&text).unwrap();
                let session = frame["session_id"].as_str().unwrap();
                for _ in 0..stuck {
                    idle.push(place.connect(&format!("?session_id={session}")).await);
                }
            }
            if text.starts_with("{\"type\":\"completed\"") {
                let frame: Value = serde_json::from_str(&text).unwrap();
                return frame["data"]["execution_time"].as_f64().unwrap();
            }
        }
        panic!("the run did not end");
    }
    let alone = run(place, 0).await;
    let with = run(place, clients).await;
    let delay = (with - alone).max(0.0) * 1e3 / steps as f64;
    println!(
        "{clients} clients that never read: {steps} steps in {alone:.2} s without them, {with:.2} s with them, {delay:.2} ms more a step of ten calls; goal 10 ms: {} (load {})",
        verdict(delay < 10.0),
        load()
    );
}

#[tokio::main]
async fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let folder = tempfile::tempdir().unwrap();
    let (home, root) = (folder.path().join("home"), folder.path().join("repo"));
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("a.txt"), "one\n").unwrap();
    let plans = Paced { paced: folder.path().join("paced"), busy: folder.path().join("busy") };
    // Short, because every session holds its own: a real model has no cassette.
    cassette(&plans.paced, 100, 1);
    cassette(&plans.busy, if quick { 200 } else { 1000 }, 10);
    let options = ServerOptions {
        address: "127.0.0.1:0".parse().unwrap(),
        names: Vec::new(),
        roots: vec![root],
        tls: None,
        on_restart: OnRestart::Park,
        token: None,
    };
    let bound = bind(Arc::new(Host::new(Home::at(home))), Arc::new(plans), options).await.unwrap();
    let place = Place { address: bound.address.to_string(), token: bound.token.clone() };
    let server = tokio::spawn(bound.serve(std::future::pending()));
    idle(&place, if quick { 50 } else { 200 }).await;
    let steps = if quick { 200 } else { 1000 };
    stuck(&place, 8, steps).await;
    fan_out(&place, 100).await;
    paced(&place, 200, if quick { 10 } else { 30 }).await;
    server.abort();
}
