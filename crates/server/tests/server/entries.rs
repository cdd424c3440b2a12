//! A session that is opened again sends the key it had, and that of no other model.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Mutex};

use lathe_host::{AddressFrom, ModelRequest, ModelSource, Overrides, SessionPlan};
use lathe_plan::{Plans, Wish};
use lathe_protocol::{Mode, NetworkReach, SessionOptions};
use serde_json::{Value, json};

use crate::kit::{Recorded, Server};

/// Sessions ask the model that they name.
struct Asking(Recorded);

impl Asking {
    fn new() -> Self {
        Self(Recorded { cassette: String::new(), mode: Mode::Default })
    }

    fn request() -> ModelRequest {
        let mut request = ModelRequest { reach: NetworkReach::Anywhere, ..ModelRequest::default() };
        request.patience.attempts = 1;
        request
    }
}

impl Plans for Asking {
    fn plan(&self, wish: &Wish) -> Result<SessionPlan, String> {
        let mut plan = self.0.plan(wish)?;
        plan.source = ModelSource::Ask(ModelRequest {
            provider: wish.given.get("model.provider"),
            model: wish.given.get("model.name"),
            base_url: wish.given.get("model.base_url"),
            api_key: wish.given.get("model.api_key"),
            address_from: AddressFrom::Wire,
            ..Self::request()
        });
        Ok(plan)
    }

    fn overrides(&self, folder: &Path, before: &SessionOptions) -> Result<Overrides, String> {
        let source = ModelSource::Ask(Self::request());
        Ok(Overrides { source, ..self.0.overrides(folder, before)? })
    }

    fn reach(&self, _: &str) -> NetworkReach {
        NetworkReach::Anywhere
    }

    fn settings(&self, _: &Path) -> Result<Value, String> {
        Ok(json!([]))
    }
}

/// A model that answers nothing, and what it was sent as keys.
struct Listener {
    address: SocketAddr,
    keys: Arc<Mutex<Vec<String>>>,
}

impl Listener {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let keys = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&keys);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut reader = BufReader::new(stream.unwrap());
                let (mut key, mut length) = ("none".to_owned(), 0);
                loop {
                    let mut line = String::new();
                    reader.read_line(&mut line).unwrap();
                    let Some((name, value)) = line.trim_end().split_once(": ") else {
                        if line.trim_end().is_empty() {
                            break;
                        }
                        continue;
                    };
                    match name.to_ascii_lowercase().as_str() {
                        "authorization" => key = value.replace("Bearer ", ""),
                        "content-length" => length = value.parse().unwrap(),
                        _ => {}
                    }
                }
                let mut body = vec![0; length];
                let _ = reader.read_exact(&mut body);
                heard.lock().unwrap().push(key);
                let said = r#"{"error":{"message":"no"}}"#;
                let _ = write!(
                    reader.get_mut(),
                    "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{said}",
                    said.len()
                );
            }
        });
        Self { address, keys }
    }

    /// The keys that were sent since the last time.
    fn sent(&self) -> Vec<String> {
        std::mem::take(&mut *self.keys.lock().unwrap())
    }
}

async fn keep(server: &Server, name: &str, url: &str, key: &str) {
    let model = json!({ "provider": "prov", "model": "mm", "base_url": url, "api_key": key });
    let (status, said) =
        server.ask_as(&server.token, "PUT", &format!("/api/models/{name}"), Some(&model)).await;
    assert_eq!(status, 200, "{said}");
}

async fn begin(server: &Server, request: Value) -> String {
    let (status, said) = server.post("/agent/interactive/start", request).await;
    assert_eq!(status, 200, "{said}");
    said["session_id"].as_str().unwrap().to_owned()
}

/// Gives a session a task, be it open or not, and closes it.
async fn task(server: &Server, session: &str) -> (u16, String) {
    let (status, said) =
        server.post("/agent/interactive/task", json!({ "session_id": session, "task": "go" })).await;
    server.post(&format!("/agent/interactive/close?session_id={session}"), json!({})).await;
    (status, said.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_opened_again_sends_no_other_key() {
    let model = Listener::start();
    let url = format!("http://{}/v1", model.address);
    let server = Server::with(Arc::new(Asking::new())).await;
    keep(&server, "a", &url, "KEY-AAAAAAAAAA").await;
    keep(&server, "b", &url, "KEY-BBBBBBBBBB").await;
    let of_b = begin(&server, json!({ "model_config_name": "b" })).await;
    let place = json!({ "provider": "prov", "model": "mm", "model_base_url": url });
    let mut own = place.clone();
    own["api_key"] = json!("KEY-CCCCCCCCCC");
    let of_c = begin(&server, own).await;
    let of_nobody = begin(&server, place).await;
    // Its own key while it is open; its own one or a refusal afterwards.
    for round in 0..2 {
        task(&server, &of_b).await;
        assert_eq!(model.sent(), ["KEY-BBBBBBBBBB"], "{round}");
        task(&server, &of_nobody).await;
        assert_eq!(model.sent(), ["none"], "{round}");
    }
    task(&server, &of_c).await;
    assert_eq!(model.sent(), ["KEY-CCCCCCCCCC"]);
    let (status, said) = task(&server, &of_c).await;
    assert_eq!((status, model.sent()), (409, vec![]), "{said}");
    // A new key of the same entry is the session's.
    keep(&server, "b", &url, "KEY-DDDDDDDDDD").await;
    task(&server, &of_b).await;
    assert_eq!(model.sent(), ["KEY-DDDDDDDDDD"]);
    // Without the entry, nothing is sent.
    let (status, _) = server.ask_as(&server.token, "DELETE", "/api/models/b", None).await;
    assert_eq!(status, 200);
    let (status, said) = task(&server, &of_b).await;
    assert_eq!((status, model.sent()), (409, vec![]), "{said}");
    assert!(said.contains("stored as `b`"), "{said}");
    keep(&server, "b", &format!("http://{}/v2", model.address), "KEY-EEEEEEEEEE").await;
    let (status, said) = task(&server, &of_b).await;
    assert_eq!((status, model.sent()), (409, vec![]), "{said}");
}
