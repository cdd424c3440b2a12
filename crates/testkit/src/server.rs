//! The fake model: a scripted provider on loopback, in a thread of its own.
//!
//! It has no memory of a conversation: which answer it sends is the number of assistant messages in the request.
//! So a client may be killed, resumed, forked or made to ask again, and the script still fits. Only faults are
//! counted, per answer, because they must end.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::eventually;
use crate::http::{self, Head, Plain};
use crate::options::Options;
use crate::pairing::check_pairing;
use crate::script::{Fault, Script};
use crate::sse::{self, Asked, Shape};

/// How long the client gets to read the first half before a reset throws away what it has not read.
const BEFORE_RESET: Duration = Duration::from_millis(20);

/// A running fake model. Dropping it stops it.
pub struct FakeModel {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// One request as it arrived.
#[derive(Debug, Clone)]
pub struct Request {
    /// Which connection it came on, from 0.
    pub connection: usize,
    pub method: String,
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// Empty if [`Options::keep_bodies`] is off.
    pub body: Arc<Vec<u8>>,
    pub body_length: usize,
    pub head_at: Instant,
    /// When the last byte of the body had been read.
    pub body_at: Instant,
    /// Taken just before the last write of the answer, so a step measured from here is never flattered.
    pub answered_at: Option<Instant>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        http::header(&self.headers, name)
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the body of a request is JSON")
    }

    pub fn messages(&self) -> Vec<Value> {
        match self.json()["messages"].take() {
            Value::Array(messages) => messages,
            other => panic!("the messages of a request are a list, not {other}"),
        }
    }
}

impl FakeModel {
    pub fn start(script: Script, options: Options) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        listener.set_nonblocking(true).expect("a listener may be non-blocking");
        let address = listener.local_addr().expect("a bound listener has an address");
        let shared = Arc::new(Shared { script, options, log: Mutex::new(Log::default()) });
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
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
            }
        });
        Self { address, shared, stop: Some(stop), thread: Some(thread) }
    }

    /// With the usual options.
    pub fn serving(script: Script) -> Self {
        Self::start(script, Options::default())
    }

    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// A key that this server takes.
    pub fn key(&self) -> &str {
        self.shared.options.require_key.as_deref().unwrap_or("fake-key")
    }

    /// Every request so far, refused and broken ones too.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.log().requests.clone()
    }

    /// The bodies of all requests, for [`crate::check_prefix`].
    pub fn bodies(&self) -> Vec<Vec<u8>> {
        let requests = self.requests();
        requests.iter().map(|request| request.body.to_vec()).collect()
    }

    /// What was wrong with requests: each of these was answered with 400.
    pub fn violations(&self) -> Vec<String> {
        self.shared.log().violations.clone()
    }

    /// Waits until `count` requests have arrived in whole.
    #[track_caller]
    pub fn wait_for_requests(&self, count: usize, within: Duration) {
        eventually(within, &format!("{count} requests at the fake model"), || {
            self.shared.log().requests.len() >= count
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
    requests: Vec<Request>,
    violations: Vec<String>,
    /// How often each answer was asked for.
    asked: HashMap<usize, usize>,
}

/// What the server does about a request.
enum Reply {
    Plain(Plain),
    Close,
    Stream { writes: Vec<Vec<u8>>, halfway: Halfway },
}

/// What happens after half of the writes.
enum Halfway {
    Nothing,
    Stall(Duration),
    Reset,
}

async fn accept(listener: std::net::TcpListener, shared: Arc<Shared>) {
    let listener = TcpListener::from_std(listener).expect("the listener fits into the runtime");
    let mut connections = JoinSet::new();
    for number in 0.. {
        let Ok((stream, _)) = listener.accept().await else {
            return;
        };
        // A client that goes away is no failure: kill tests do nothing else.
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
        let body_at = Instant::now();
        let number = shared.note(Request {
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
                shared.answered(number);
                http::write_piece(&mut stream, &plain.bytes()).await?;
            }
            Reply::Close => return Ok(()),
            Reply::Stream { writes, halfway } => {
                let half = writes.len() / 2;
                for (at, piece) in writes.iter().enumerate() {
                    if at == half {
                        match halfway {
                            Halfway::Nothing => {}
                            Halfway::Stall(duration) => tokio::time::sleep(duration).await,
                            Halfway::Reset => {
                                tokio::time::sleep(BEFORE_RESET).await;
                                return stream.set_zero_linger();
                            }
                        }
                    }
                    if at + 1 == writes.len() {
                        shared.answered(number);
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
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, request: Request) -> usize {
        let mut log = self.log();
        log.requests.push(request);
        log.requests.len() - 1
    }

    fn answered(&self, number: usize) {
        self.log().requests[number].answered_at = Some(Instant::now());
    }

    fn refuse(&self, code: u16, violation: String) -> Plain {
        let plain = Plain::error(code, &violation);
        self.log().violations.push(violation);
        plain
    }

    fn reply(&self, head: &Head, body: &[u8]) -> Reply {
        if (head.method.as_str(), head.path.as_str()) != ("POST", "/v1/chat/completions") {
            let path = format!("there is no {} {}", head.method, head.path);
            return Reply::Plain(self.refuse(404, path));
        }
        if let Some(key) = &self.options.require_key {
            let given = head.header("authorization").unwrap_or_default();
            let given = given.strip_prefix("Bearer ").unwrap_or(given);
            if given != key {
                // The whole key comes back, as careless servers do it: a test sees whether it is shown or kept.
                let message = format!("Incorrect API key provided: {given}.");
                return Reply::Plain(Plain::error(401, &message));
            }
        }
        self.answer(body).unwrap_or_else(|violation| Reply::Plain(self.refuse(400, violation)))
    }

    fn answer(&self, body: &[u8]) -> Result<Reply, String> {
        let request: Value = serde_json::from_slice(body).map_err(|error| format!("the body: {error}"))?;
        let model = request["model"].as_str().ok_or("model must be a string")?;
        if request["stream"] != true {
            return Err("stream must be true".to_owned());
        }
        let messages = request["messages"].as_array().ok_or("messages must be a list")?;
        check_pairing(messages)?;
        let number = messages.iter().filter(|message| message["role"] == "assistant").count();
        let answer = self.script.get(number).ok_or_else(|| {
            format!("the script has {} answers, and number {} was asked for", self.script.len(), number + 1)
        })?;
        let asked_before = {
            let mut log = self.log();
            let count = log.asked.entry(number).or_default();
            *count += 1;
            *count - 1
        };
        let asked = Asked {
            answer: number,
            model,
            include_usage: request["stream_options"]["include_usage"] == true,
        };
        let stream = |shape, halfway| {
            let body = sse::stream(answer, &asked, shape, &self.options);
            let mut cuts = self.options.chop.cuts(body.len(), number);
            if cuts.len() == 1 && !matches!(halfway, Halfway::Nothing) {
                // There is no halfway in one piece.
                cuts = vec![0..body.len() / 2, body.len() / 2..body.len()];
            }
            Reply::Stream { writes: http::stream_writes(&body, &cuts), halfway }
        };
        Ok(match answer.fault(asked_before) {
            None => stream(Shape::Whole, Halfway::Nothing),
            Some(Fault::Status { code, body, headers }) => {
                Reply::Plain(Plain { code: *code, headers: headers.clone(), body: body.clone() })
            }
            Some(Fault::CloseBeforeAnyByte) => Reply::Close,
            Some(Fault::ResetMidStream) => stream(Shape::Whole, Halfway::Reset),
            Some(Fault::TruncateCleanly) => stream(Shape::WithoutEnd, Halfway::Nothing),
            Some(Fault::Stall(duration)) => stream(Shape::Whole, Halfway::Stall(*duration)),
            Some(Fault::Garbage) => Reply::Plain(Plain {
                code: 200,
                headers: vec![("content-type".to_owned(), "text/html".to_owned())],
                body: "<!doctype html>\n<title>Welcome</title>\n<p>Please log in to this network.\n"
                    .to_owned(),
            }),
            Some(Fault::EmptyAnswer) => stream(Shape::Empty, Halfway::Nothing),
            Some(Fault::MalformedArguments) => stream(Shape::MalformedArguments, Halfway::Nothing),
        })
    }
}
