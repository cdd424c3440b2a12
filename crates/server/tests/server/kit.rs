//! A server on a free port, and clients that may say anything.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use lathe_host::{
    Attended, Extras, Home, Host, LakeviewPlan, ModeWish, ModelSource, OnlinePlan, Overrides, ReviewPlan,
    SessionPlan,
};
use lathe_plan::{Plans, Wish};
use lathe_protocol::{
    EndingRule, LimitChanges, Limits, Mode, NetworkReach, PatchRule, ReplayStrictness, ReviewRule, Sandbox,
    SessionOptions, ToolChoice,
};
use lathe_server::{OnRestart, ServerOptions, bind};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

pub struct Server {
    pub address: SocketAddr,
    pub token: String,
    pub home: PathBuf,
    pub root: PathBuf,
    folder: Option<tempfile::TempDir>,
    stop: Option<oneshot::Sender<()>>,
    task: tokio::task::JoinHandle<()>,
}

/// Every session is answered from this cassette.
pub struct Recorded {
    pub cassette: String,
    pub mode: Mode,
}

impl Recorded {
    fn source(&self) -> ModelSource {
        ModelSource::Given { cassette: self.cassette.clone(), strictness: ReplayStrictness::Lenient }
    }
}

impl Plans for Recorded {
    fn plan(&self, wish: &Wish) -> Result<SessionPlan, String> {
        Ok(SessionPlan {
            own_model: wish.own_model,
            folder: wish.folder.clone(),
            source: self.source(),
            mode: ModeWish::Given(wish.given.get("run.mode").unwrap_or(self.mode)),
            // Sessions of these tests are about the server.
            sandbox: Some(Sandbox::Off),
            toolset: wish.given.get("run.toolset"),
            limits: Limits {
                max_steps: wish.given.get("run.max_steps").unwrap_or(1_000_000),
                ..Limits::default()
            },
            ending: if wish.conversation { EndingRule::EndTurn } else { EndingRule::Remind },
            patch: (wish.given.get("run.must_patch") == Some(true))
                .then_some(PatchRule { must: true, base: None }),
            record: None,
            tools: ToolChoice { core: wish.given.get("run.tools").unwrap_or_default(), exclude: Vec::new() },
            attended: Attended::Person,
            extras: Extras {
                lakeview: LakeviewPlan {
                    each_step: wish.given.get("lakeview.enabled") == Some(true),
                    ..LakeviewPlan::default()
                },
                review: ReviewPlan {
                    rule: wish.review.as_ref().map(|wished| ReviewRule {
                        rules: wished.rules.clone(),
                        gate: wished.gate,
                        after_edits: true,
                        max_reviews: 3,
                        max_tokens: 1_000,
                    }),
                    source: None,
                },
                persona: wish.persona.clone(),
                online: OnlinePlan { enabled: wish.given.get("online.enabled") == Some(true), service: None },
                ..Extras::default()
            },
        })
    }

    fn overrides(&self, _: &Path, _: &SessionOptions) -> Result<Overrides, String> {
        Ok(Overrides {
            sandbox: None,
            own_model: false,
            source: self.source(),
            mode: None,
            limits: LimitChanges::default(),
            record: None,
            attended: Attended::Person,
            extras: Extras::default(),
        })
    }

    /// No server listens on the two ports that tests name.
    fn reach(&self, base_url: &str) -> NetworkReach {
        match base_url.starts_with("http://127.0.0.1:1/") || base_url.starts_with("http://127.0.0.1:2/") {
            true => NetworkReach::Anywhere,
            false => NetworkReach::Outside,
        }
    }

    fn settings(&self, _: &Path) -> Result<Value, String> {
        Ok(json!([]))
    }
}

/// A cassette of these answers.
pub fn cassette(answers: impl IntoIterator<Item = Value>) -> String {
    let mut text = json!({ "cassette": 1, "toolset": "lathe" }).to_string();
    for answer in answers {
        text.push('\n');
        text.push_str(&json!({ "answer": { "blocks": answer } }).to_string());
    }
    text
}

pub fn say(text: &str) -> Value {
    json!({ "text": { "text": text } })
}

pub fn call(id: &str, name: &str, arguments: Value) -> Value {
    json!({ "call": { "id": id, "name": name, "arguments": arguments } })
}

pub fn done(id: &str, summary: &str) -> Value {
    call(id, "task_done", json!({ "summary": summary }))
}

impl Server {
    pub async fn start(cassette: String, mode: Mode) -> Self {
        Self::with(Arc::new(Recorded { cassette, mode })).await
    }

    pub async fn with(plans: Arc<dyn Plans>) -> Self {
        Self::inside(plans, tempfile::tempdir().unwrap()).await
    }

    /// A server whose home and root are in this folder, perhaps from an earlier start.
    pub async fn inside(plans: Arc<dyn Plans>, folder: tempfile::TempDir) -> Self {
        let (home, root) = (folder.path().join("home"), folder.path().join("repo"));
        if !root.exists() {
            std::fs::create_dir(&root).unwrap();
            std::fs::write(root.join("a.txt"), "one\n").unwrap();
        }
        let host = Arc::new(Host::new(Home::at(home.clone())));
        let options = ServerOptions {
            address: "127.0.0.1:0".parse().unwrap(),
            names: Vec::new(),
            roots: vec![root.clone()],
            tls: None,
            on_restart: OnRestart::Park,
            token: None,
        };
        let bound = bind(host, plans, options).await.unwrap();
        let (address, token) = (bound.address, bound.token.clone());
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let stop = async {
                let _ = stopped.await;
            };
            bound.serve(stop).await.unwrap();
        });
        let root = root.canonicalize().unwrap();
        Self { address, token, home, root, folder: Some(folder), stop: Some(stop), task }
    }

    pub async fn stop(self) {
        self.stop_keeping().await;
    }

    /// Stops the server and gives its folder, for another start.
    pub async fn stop_keeping(mut self) -> tempfile::TempDir {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        (&mut self.task).await.unwrap();
        self.folder.take().unwrap()
    }

    /// The events of a session.
    pub async fn events(&self, session: &str) -> Vec<Value> {
        let request = format!(
            "GET /api/sessions/{session}/export?format=jsonl HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
            self.address, self.token
        );
        let (status, lines) = self.raw(&request).await;
        assert_eq!(status, 200, "{lines}");
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Sends these bytes and gives the status and the body of the answer.
    pub async fn raw(&self, request: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let mut piece = vec![0u8; 65536];
        let (mut head, mut length) = (None, None);
        loop {
            let read = tokio::time::timeout(Duration::from_secs(150), stream.read(&mut piece)).await.unwrap();
            let Ok(read) = read else { break };
            answer.extend_from_slice(&piece[..read]);
            if head.is_none()
                && let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n")
            {
                let text = String::from_utf8_lossy(&answer[..end]).to_lowercase();
                length = text
                    .lines()
                    .find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
                head = Some(end + 4);
                if text.starts_with("http/1.1 101") {
                    break;
                }
            }
            if read == 0 || head.zip(length).is_some_and(|(head, length)| answer.len() >= head + length) {
                break;
            }
        }
        let text = String::from_utf8_lossy(&answer).into_owned();
        let status = text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        let body = text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default();
        (status, body)
    }

    pub async fn ask_as(&self, token: &str, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let body = body.map(ToString::to_string).unwrap_or_default();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.address,
            body.len()
        );
        let (status, body) = self.raw(&request).await;
        let body = serde_json::from_str(&body).unwrap_or(Value::String(body));
        (status, body)
    }

    /// Sends several requests on one connection, the last of which closes it, and gives all the answers.
    pub async fn whole(&self, requests: &str) -> String {
        let (mut reading, mut writing) = TcpStream::connect(self.address).await.unwrap().into_split();
        let mut answers = String::new();
        let (written, read) =
            tokio::join!(writing.write_all(requests.as_bytes()), reading.read_to_string(&mut answers));
        written.unwrap();
        read.unwrap();
        answers
    }

    /// Signs a browser in: its cookie, and the half that the page keeps.
    pub async fn sign_in(&self, token: &str) -> (String, String) {
        let body = json!({ "token": token }).to_string();
        let request = format!(
            "POST /auth HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.address,
            body.len()
        );
        let answer = self.whole(&request).await;
        let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect(&answer);
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let body: Value = serde_json::from_str(body).unwrap();
        (cookie.split(';').next().unwrap().to_owned(), body["page"].as_str().unwrap().to_owned())
    }

    /// A request as the page makes it.
    pub async fn by_page(&self, signed_in: &(String, String), method: &str, path: &str) -> (u16, String) {
        let (cookie, half) = signed_in;
        let half = if half.is_empty() { String::new() } else { format!("X-Lathe-Page: {half}\r\n") };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nCookie: {cookie}\r\n{half}Content-Length: 0\r\nConnection: close\r\n\r\n",
            self.address
        );
        self.raw(&request).await
    }

    pub async fn get(&self, path: &str) -> (u16, Value) {
        self.ask_as(&self.token, "GET", path, None).await
    }

    pub async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.ask_as(&self.token, "POST", path, Some(&body)).await
    }

    pub async fn socket(&self, query: &str) -> Socket {
        self.socket_as(&self.token, query).await
    }

    pub async fn socket_as(&self, token: &str, query: &str) -> Socket {
        let url = format!("ws://{}/ws/agent/interactive/task{query}", self.address);
        let mut request = url.into_client_request().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        let (socket, _) = tokio_tungstenite::connect_async(request).await.unwrap();
        Socket { socket }
    }

    /// Starts a run and gives the connection that watches it.
    pub async fn run(&self, task: &str) -> Socket {
        let mut socket = self.socket("").await;
        socket.say(&json!({ "task": task })).await;
        socket
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub struct Socket {
    pub socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

impl Socket {
    pub async fn say(&mut self, message: &Value) {
        self.socket.send(Message::text(message.to_string())).await.unwrap();
    }

    /// The next frame; none when the connection was closed.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            let next = tokio::time::timeout(Duration::from_secs(150), self.socket.next()).await;
            match next.expect("no frame within a minute")? {
                Ok(Message::Text(text)) => return Some(serde_json::from_str(&text).unwrap()),
                Ok(Message::Close(_)) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// Waits until the connection is closed; returns the code and the reason.
    pub async fn closed(&mut self) -> Option<(u16, String)> {
        loop {
            let next = tokio::time::timeout(Duration::from_secs(150), self.socket.next()).await;
            match next.expect("not closed within a minute")? {
                Ok(Message::Close(Some(frame))) => {
                    return Some((frame.code.into(), frame.reason.to_string()));
                }
                Ok(Message::Close(None)) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// Frames up to and with the first of this type.
    pub async fn until(&mut self, kind: &str) -> Vec<Value> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            let found = frame["type"] == kind;
            frames.push(frame);
            if found {
                return frames;
            }
        }
        panic!("closed before `{kind}`: {frames:?}");
    }
}

/// Only what the journal told.
pub fn durable(frames: &[Value]) -> Vec<Value> {
    frames.iter().filter(|frame| frame.get("cursor").is_some()).cloned().collect()
}
