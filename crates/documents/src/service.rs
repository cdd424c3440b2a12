//! A service that keeps the documents, by the wire of the server fork: `/ai/report/add|detail|edit|search`.

use std::time::Duration;

use lathe_protocol::{Document, DocumentRow};
use reqwest::Url;
use serde_json::{Value, json};

use crate::address::addresses;
use crate::error::DocumentError;

const TIME: Duration = Duration::from_secs(10);
/// The number of attempts if it is unavailable.
const TRIES: u32 = 3;
/// The first wait; each further one is twice as long.
const WAIT: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(4);
/// The maximum size of a reply in bytes.
const LARGEST: usize = 8 << 20;

#[derive(Clone)]
pub struct ServiceOptions {
    pub base_url: String,
    pub key: Option<String>,
}

impl std::fmt::Debug for ServiceOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The key is omitted.
        f.debug_struct("ServiceOptions").field("base_url", &self.base_url).finish_non_exhaustive()
    }
}

pub struct DocumentService {
    url: Url,
    host: String,
    key: Option<String>,
}

/// Tells whether a retry could help.
enum Failed {
    Again(DocumentError),
    ForGood(DocumentError),
}

impl DocumentService {
    pub fn new(options: &ServiceOptions) -> Result<Self, DocumentError> {
        let wrong = |reason: &str| DocumentError::Address {
            host: options.base_url.clone(),
            reason: reason.to_owned(),
        };
        let url = Url::parse(&options.base_url).map_err(|error| wrong(&error.to_string()))?;
        if !["http", "https"].contains(&url.scheme()) {
            return Err(wrong("it must begin with http:// or https://"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("the key belongs into the variable that `[online] key_variable` names"));
        }
        let host = url.host_str().ok_or_else(|| wrong("it names no host"))?.to_owned();
        Ok(Self { url, host, key: options.key.clone() })
    }

    pub fn host(&self) -> &str {
        &self.host
    }

    pub async fn create(
        &self,
        title: &str,
        content: &str,
        description: &str,
    ) -> Result<Document, DocumentError> {
        let ask = json!({ "userId": "user", "title": title, "content": content, "description": description });
        let answer = self.ask("/ai/report/add", &ask).await?;
        let mut made = document(&answer);
        made.title = title.to_owned();
        made.description = description.to_owned();
        Ok(made)
    }

    pub async fn detail(&self, id: &str) -> Result<Document, DocumentError> {
        let answer = self.ask("/ai/report/detail", &json!({ "userId": "user", "documentId": id })).await?;
        let found = document(&answer);
        Ok(if found.document_id.is_empty() {
            Document { document_id: id.to_owned(), ..found }
        } else {
            found
        })
    }

    /// Returns true if a new title was requested: the service does not report whether it changed.
    pub async fn edit(
        &self,
        id: &str,
        content: &str,
        title: Option<&str>,
    ) -> Result<(Document, bool), DocumentError> {
        let mut ask = json!({ "userId": "user", "documentId": id, "content": content });
        if let (Value::Object(members), Some(title)) = (&mut ask, title) {
            members.insert("title".to_owned(), title.into());
        }
        let answer = self.ask("/ai/report/edit", &ask).await?;
        Ok((Document { document_id: id.to_owned(), ..document(&answer) }, title.is_some()))
    }

    pub async fn search(
        &self,
        keyword: &str,
        page: u32,
        size: u32,
    ) -> Result<Vec<DocumentRow>, DocumentError> {
        let ask = json!({ "userId": "user", "keyword": keyword, "pageNum": page, "pageSize": size });
        let answer = self.ask("/ai/report/search", &ask).await?;
        let inner = answer.get("data").unwrap_or(&answer);
        let items = ["items", "list", "records", "rows"].iter().find_map(|name| inner.get(name)?.as_array());
        let items = items.or_else(|| inner.as_array()).map_or(&[][..], Vec::as_slice);
        let found = |item: &Value| {
            let Document { document_id, version, title, description, updated_at, .. } = document(item);
            DocumentRow { document_id, version, title, description, updated_at }
        };
        Ok(items.iter().map(found).collect())
    }

    async fn ask(&self, endpoint: &str, body: &Value) -> Result<Value, DocumentError> {
        let mut wait = WAIT;
        for attempt in 1.. {
            match self.ask_once(endpoint, body).await {
                Ok(answer) => return Ok(answer),
                Err(Failed::Again(_)) if attempt < TRIES => {
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(LONGEST);
                }
                Err(Failed::Again(error) | Failed::ForGood(error)) => return Err(error),
            }
        }
        Err(DocumentError::missing(endpoint))
    }

    async fn ask_once(&self, endpoint: &str, body: &Value) -> Result<Value, Failed> {
        let unreachable =
            |reason: String| DocumentError::Unreachable { endpoint: endpoint.to_owned(), reason };
        let port = self.url.port_or_known_default().unwrap_or(80);
        // Looked up here, and used for the request: a name cannot change its meaning in between.
        let there = addresses(&self.host, port).await.map_err(Failed::ForGood)?;
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .user_agent(concat!("lathe/", env!("CARGO_PKG_VERSION")))
            .timeout(TIME)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .resolve_to_addrs(&self.host, &there)
            .build()
            .map_err(|error| Failed::ForGood(unreachable(error.to_string())))?;
        let url = format!("{}{endpoint}", self.url.as_str().trim_end_matches('/'));
        let mut post = client.post(url).header("content-type", "application/json").body(body.to_string());
        if let Some(key) = &self.key {
            post = post.bearer_auth(key);
        }
        let mut response = post.send().await.map_err(|error| Failed::Again(unreachable(cause_of(&error))))?;
        let code = response.status().as_u16();
        let mut bytes = Vec::new();
        while let Some(piece) =
            response.chunk().await.map_err(|error| Failed::Again(unreachable(cause_of(&error))))?
        {
            bytes.extend_from_slice(&piece);
            if bytes.len() > LARGEST {
                return Err(Failed::ForGood(unreachable("its answer is too large".to_owned())));
            }
        }
        let answered =
            |reason: String| DocumentError::Answered { code, endpoint: endpoint.to_owned(), reason };
        match code {
            200..=299 => serde_json::from_slice(&bytes)
                .map_err(|error| Failed::ForGood(answered(format!("its answer is no JSON: {error}")))),
            500.. => Err(Failed::Again(answered(answer_text(&bytes)))),
            _ => Err(Failed::ForGood(answered(answer_text(&bytes)))),
        }
    }
}

/// The cause of an error, without the address, which may contain more than users should see.
fn cause_of(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "it did not answer within 10 seconds".to_owned();
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// The whole reply of the service: it is redacted first and cut afterwards.
fn answer_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Parses a document. Services differ in whether they wrap their reply, and in the spelling of its members.
fn document(answer: &Value) -> Document {
    let inner = answer.get("data").filter(|data| data.is_object()).unwrap_or(answer);
    let text = |names: &[&str]| {
        let found = names.iter().find_map(|name| inner.get(name).filter(|value| !value.is_null()));
        found.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).unwrap_or_default()
    };
    Document {
        document_id: text(&["documentId", "document_id", "id"]),
        version: 0,
        title: text(&["title"]),
        description: text(&["description"]),
        content: text(&["content"]),
        updated_at: text(&["updatedAt", "updated_at", "updateTime"]),
    }
}
