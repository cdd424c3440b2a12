//! The fake model: a scripted provider on loopback, in a thread of its own.
//!
//! It has no memory of a conversation: which answer it sends is the number of assistant messages in the request.
//! So a client may be killed, resumed, forked or made to ask again, and the script still fits. Only faults are
//! counted, per answer, because they must end.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::eventually;
use crate::http::{self, PlainResponse, RequestHead};
use crate::options::Options;
use crate::script::{Fault, FaultPoint, Script, say};
use crate::stream;
use crate::wires::{AnswerShape, RequestEcho, StreamEvent, Wire};

/// The time in which the client reads the first half before a reset discards what it has not read.
const BEFORE_RESET: Duration = Duration::from_millis(20);

/// The interval of signs of life of an answer that never ends.
const BETWEEN_SIGNS: Duration = Duration::from_millis(50);

/// A running fake model. Dropping it stops it.
pub struct FakeModel {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// One request as it arrived.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    /// The connection it came on, counted from 0.
    pub connection: usize,
    pub method: String,
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// Empty if [`Options::keep_bodies`] is off.
    pub body: Arc<Vec<u8>>,
    pub body_length: usize,
    pub head_at: Instant,
    /// The time at which the last byte of the body had been read.
    pub body_at: Instant,
    /// Taken just before the last write of the answer, so a step measured from here is never flattered.
    pub answered_at: Option<Instant>,
}

impl ReceivedRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        http::header(&self.headers, name)
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the body of a request is JSON")
    }

    /// The wire it was sent on.
    pub fn wire(&self) -> Option<Wire> {
        Wire::of_path(&self.path)
    }

    /// The conversation, by the name that the wire gives it.
    pub fn messages(&self) -> Vec<Value> {
        let member = self.wire().map_or("messages", Wire::conversation);
        match self.json()[member].take() {
            Value::Array(messages) => messages,
            other => panic!("the messages of a request are a list, not {other}"),
        }
    }
}

impl FakeModel {
    pub fn start(script: Script, options: Options) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let shared = Arc::new(Shared { script, options, log: Mutex::new(Log::default()) });
        let (stop, thread) = serve_on(listener, &shared);
        Self { address, shared, stop: Some(stop), thread: Some(thread) }
    }

    /// With the usual options.
    pub fn serving(script: Script) -> Self {
        Self::start(script, Options::default())
    }

    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The base URL a user would give for a wire.
    pub fn base_url_for(&self, wire: Wire) -> String {
        format!("http://{}{}", self.address, wire.base())
    }

    /// Serves the same script again at the same address, after [`FakeModel::stop`]; what was collected stays.
    pub fn restart(&mut self) {
        let listener = std::net::TcpListener::bind(self.address).expect("the port is still free");
        let (stop, thread) = serve_on(listener, &self.shared);
        (self.stop, self.thread) = (Some(stop), Some(thread));
    }

    /// A key that this server takes.
    pub fn key(&self) -> &str {
        self.shared.options.require_key.as_deref().unwrap_or("fake-key")
    }

    /// Every request so far, refused and broken ones too.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.shared.log.lock().requests.clone()
    }

    /// The bodies of all requests, for [`crate::check_prefix`].
    pub fn bodies(&self) -> Vec<Vec<u8>> {
        let requests = self.requests();
        requests.iter().map(|request| request.body.to_vec()).collect()
    }

    /// The faults of requests: each of these was answered with 400.
    pub fn violations(&self) -> Vec<String> {
        self.shared.log.lock().violations.clone()
    }

    /// Waits until `count` requests have arrived in whole.
    #[track_caller]
    pub fn wait_for_requests(&self, count: usize, within: Duration) {
        eventually(within, &format!("{count} requests at the fake model"), || {
            self.shared.log.lock().requests.len() >= count
        });
    }

    /// Closes every connection and refuses new ones; what was collected stays.
    pub fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve_on(listener: std::net::TcpListener, shared: &Arc<Shared>) -> (oneshot::Sender<()>, JoinHandle<()>) {
    listener.set_nonblocking(true).expect("a listener may be non-blocking");
    let (stop, stopped) = oneshot::channel();
    let shared = Arc::clone(shared);
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime can be made");
        runtime.block_on(async {
            tokio::select! {
                _ = stopped => {}
                () = accept(listener, shared) => {}
            }
        });
    });
    (stop, thread)
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Shared {
    script: Script,
    options: Options,
    log: Mutex<Log>,
}

#[derive(Default)]
struct Log {
    requests: Vec<ReceivedRequest>,
    violations: Vec<String>,
    /// The number of requests for each answer.
    asked: HashMap<usize, usize>,
}

/// The server's reaction to a request.
enum Reply {
    Plain(PlainResponse),
    Close,
    Silence(Duration),
    Stream { writes: Vec<Vec<u8>>, halfway: HalfwayEvent },
}

/// The event after half of the writes.
enum HalfwayEvent {
    Nothing,
    Stall(Duration),
    Reset,
    /// This again and again, without an end.
    SignsOfLife(Vec<u8>),
}

async fn accept(listener: std::net::TcpListener, shared: Arc<Shared>) {
    let listener = TcpListener::from_std(listener).expect("the listener fits into the runtime");
    let mut connections = JoinSet::new();
    for number in 0.. {
        let Ok((stream, _)) = listener.accept().await else {
            return;
        };
        // A client that disconnects is not a failure: kill tests cause nothing but disconnections.
        connections.spawn(serve(stream, Arc::clone(&shared), number));
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>, connection: usize) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(64 * 1024);
    while let Some(head) = http::read_head(&mut stream, &mut buffer).await? {
        let head_at = Instant::now();
        let length = match head.header("content-length").map(str::parse::<usize>) {
            Some(Ok(length)) => length,
            None if head.method == "GET" => 0,
            _ => {
                let refusal = shared.refuse(411, "a request must say its Content-Length".to_owned());
                return http::write_piece(&mut stream, &refusal.bytes()).await;
            }
        };
        http::fill_body(&mut stream, &mut buffer, length).await?;
        if head.method == "GET" {
            // A probe for a server here. It is not a request of the conversation.
            buffer.drain(..length);
            let body = r#"{"object":"list","data":[{"id":"fake","object":"model"}]}"#.to_owned();
            let plain = PlainResponse { code: 200, headers: Vec::new(), body };
            http::write_piece(&mut stream, &plain.bytes()).await?;
            // Version 1.0 ends with the connection.
            return Ok(());
        }
        let body_at = Instant::now();
        let number = shared.record_request(ReceivedRequest {
            connection,
            method: head.method.clone(),
            path: head.path.clone(),
            headers: head.headers.clone(),
            body: Arc::new(if shared.options.keep_bodies { buffer[..length].to_vec() } else { Vec::new() }),
            body_length: length,
            head_at,
            body_at,
            answered_at: None,
        });
        let reply = shared.reply(&head, &buffer[..length]);
        buffer.drain(..length);
        tokio::time::sleep(shared.options.delay).await;
        match reply {
            Reply::Plain(plain) => {
                shared.record_answer(number);
                http::write_piece(&mut stream, &plain.bytes()).await?;
            }
            Reply::Close => return Ok(()),
            Reply::Silence(duration) => {
                tokio::time::sleep(duration).await;
                return Ok(());
            }
            Reply::Stream { writes, halfway } => {
                let half = writes.len() / 2;
                for (at, piece) in writes.iter().enumerate() {
                    if at == half {
                        match &halfway {
                            HalfwayEvent::Nothing => {}
                            HalfwayEvent::SignsOfLife(sign) => loop {
                                http::write_piece(&mut stream, sign).await?;
                                tokio::time::sleep(BETWEEN_SIGNS).await;
                            },
                            HalfwayEvent::Stall(duration) => tokio::time::sleep(*duration).await,
                            HalfwayEvent::Reset => {
                                tokio::time::sleep(BEFORE_RESET).await;
                                return stream.set_zero_linger();
                            }
                        }
                    }
                    if at + 1 == writes.len() {
                        shared.record_answer(number);
                    }
                    http::write_piece(&mut stream, piece).await?;
                }
            }
        }
        if head.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
            return Ok(());
        }
    }
    Ok(())
}

impl Shared {
    fn record_request(&self, request: ReceivedRequest) -> usize {
        let mut log = self.log.lock();
        log.requests.push(request);
        log.requests.len() - 1
    }

    fn record_answer(&self, number: usize) {
        self.log.lock().requests[number].answered_at = Some(Instant::now());
    }

    fn refuse(&self, code: u16, violation: String) -> PlainResponse {
        let plain = PlainResponse::error(code, &violation);
        self.log.lock().violations.push(violation);
        plain
    }

    fn reply(&self, head: &RequestHead, body: &[u8]) -> Reply {
        let Some(wire) = Wire::of_path(&head.path).filter(|_| head.method == "POST") else {
            let path = format!("there is no {} {}", head.method, head.path);
            return Reply::Plain(self.refuse(404, path));
        };
        if let Some(key) = &self.options.require_key {
            let given = head.header(wire.key_header()).unwrap_or_default();
            let given = given.strip_prefix("Bearer ").unwrap_or(given);
            if given != key {
                // The whole key comes back, as careless servers do it: a test sees whether it is shown or kept.
                let message = format!("Incorrect API key provided: {given}.");
                return Reply::Plain(PlainResponse::error(401, &message));
            }
        }
        self.answer(wire, body).unwrap_or_else(|violation| Reply::Plain(self.refuse(400, violation)))
    }

    fn answer(&self, wire: Wire, body: &[u8]) -> Result<Reply, String> {
        let request: Value = serde_json::from_slice(body).map_err(|error| format!("the body: {error}"))?;
        let number = wire.check(&request, &self.script, self.options.thoughts)?;
        let answer = self.script.get(number).ok_or_else(|| {
            format!("the script has {} answers, and number {} was asked for", self.script.len(), number + 1)
        })?;
        let asked_before = {
            let mut log = self.log.lock();
            let count = log.asked.entry(number).or_default();
            *count += 1;
            *count - 1
        };
        let asked = RequestEcho {
            answer: number,
            model: request["model"].as_str().unwrap_or("fake"),
            include_usage: request["stream_options"]["include_usage"] == true,
        };
        let fault = answer.fault(asked_before);
        let shape = match fault {
            Some(Fault::TruncateCleanly) => AnswerShape::WithoutEnd,
            Some(Fault::EmptyAnswer) => AnswerShape::Empty,
            Some(Fault::MalformedArguments) => AnswerShape::MalformedArguments,
            Some(_) | None => AnswerShape::Whole,
        };
        let mut events = wire.events(answer, &asked, shape);
        let half = events.len() / 2;
        match fault {
            Some(Fault::ErrorEvent(at)) => {
                events.truncate(match at {
                    FaultPoint::AtStart => 0,
                    FaultPoint::Halfway => half,
                });
                events.push(wire.error_event("the model is overloaded"));
            }
            Some(Fault::UnknownEvent) => events.insert(half, wire.unknown_event()),
            Some(Fault::BrokenJson) => {
                events.insert(half, StreamEvent { name: None, data: "{\"broken\":".to_owned() })
            }
            Some(_) | None => {}
        }
        let frames = stream::frames(wire, &events, &self.options);
        let mut body = frames.concat();
        if let Some(Fault::Huge) = fault {
            let much = wire.events(&say(&"x".repeat(1 << 20)), &asked, AnswerShape::WithoutEnd);
            let much = stream::frames(wire, &much, &self.options).concat();
            body = much.repeat((50 << 20) / much.len() + 1);
        }
        if let Some(Fault::CutMidEvent) = fault {
            let whole: usize = frames.iter().take(half).map(Vec::len).sum();
            body.truncate(whole + frames.get(half).map_or(0, Vec::len).div_ceil(2));
        }
        let kind = if wire.is_lines() { "application/x-ndjson" } else { "text/event-stream; charset=utf-8" };
        let stream = |halfway: HalfwayEvent| {
            let mut cuts = self.options.chop.cuts(body.len(), number);
            if cuts.len() == 1 && !matches!(halfway, HalfwayEvent::Nothing) {
                // One piece has no middle. Signs of life come between events; inside they would be part of one.
                let between: usize = frames.iter().take(half).map(Vec::len).sum();
                let middle = match halfway {
                    HalfwayEvent::SignsOfLife(_) => between.clamp(1, body.len() - 1),
                    HalfwayEvent::Nothing | HalfwayEvent::Stall(_) | HalfwayEvent::Reset => body.len() / 2,
                };
                cuts = vec![0..middle, middle..body.len()];
            }
            let head = http::stream_head(kind, "");
            Reply::Stream { writes: http::stream_writes(head, &body, &cuts), halfway }
        };
        Ok(match fault {
            Some(Fault::Status { code, body, headers }) => {
                Reply::Plain(PlainResponse { code: *code, headers: headers.clone(), body: body.clone() })
            }
            Some(Fault::CloseBeforeAnyByte) => Reply::Close,
            Some(Fault::SilenceFirst(duration)) => Reply::Silence(*duration),
            Some(Fault::ResetMidStream) => stream(HalfwayEvent::Reset),
            Some(Fault::Stall(duration)) => stream(HalfwayEvent::Stall(*duration)),
            Some(Fault::NeverEnds) => {
                let sign: &[u8] = if wire.is_lines() { b"1\r\n\n\r\n" } else { b"8\r\n: here\n\n\r\n" };
                stream(HalfwayEvent::SignsOfLife(sign.to_vec()))
            }
            Some(Fault::GzipCut) => {
                let head = http::stream_head(kind, "content-encoding: gzip\r\n");
                let body = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xab, 0x56, 0x4a];
                Reply::Stream {
                    writes: http::stream_writes(head, &body, std::slice::from_ref(&(0..13))),
                    halfway: HalfwayEvent::Nothing,
                }
            }
            Some(Fault::Garbage) => Reply::Plain(PlainResponse {
                code: 200,
                headers: vec![("content-type".to_owned(), "text/html".to_owned())],
                body: "<!doctype html>\n<title>Welcome</title>\n<p>Please log in to this network.\n"
                    .to_owned(),
            }),
            Some(
                Fault::TruncateCleanly
                | Fault::EmptyAnswer
                | Fault::MalformedArguments
                | Fault::ErrorEvent(_)
                | Fault::CutMidEvent
                | Fault::UnknownEvent
                | Fault::Huge
                | Fault::BrokenJson,
            )
            | None => stream(HalfwayEvent::Nothing),
        })
    }
}
