//! The client of every wire: one POST, a stream back, asked again where that can help.
//!
//! The HTTP client is made on first use, because reading the root certificates costs more than everything else a
//! short run does. Every wait is bounded: for the connection, the first byte, silence in the stream, the whole answer, its
//! size, and the number of attempts. Dropping the future at any await ends everything it does.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt;
use lathe_protocol::{Block, Boxed, Usage, plain_address};
use reqwest::header::HeaderValue;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::assembly::{Assembly, Broken, Flow, assembly, framing};
use crate::body::ChainedBody;
use crate::failure::{self, Failure, Place, chain};
use crate::form::{Delivery, Form, ToolForm, Wire};
use crate::frames::Framer;
use crate::reach::Reach;
use crate::request::{Answer, Delta, ModelClient, ModelError, Request};
use crate::retry::{Backoff, jittered};
use crate::shim;

/// Bytes one answer may have. What events cost beside their content is not counted: a long answer in small pieces is mostly
/// that.
const ANSWER_LIMIT: usize = 16 << 20;
const EVENT_COST: usize = 512;
/// Bytes a stream may have in all.
const STREAM_LIMIT: usize = 512 << 20;
/// Bytes of an error that are read.
const ERROR_LIMIT: usize = 1 << 20;
/// How long the end of a stream is waited for after its last event, so that the connection can be used again.
const DRAIN: Duration = Duration::from_millis(20);

/// Where and how a server is asked.
#[derive(Clone)]
pub struct ClientOptions {
    pub form: Form,
    pub base_url: String,
    /// The model, where the address names it.
    pub model: String,
    pub address: Address,
    pub auth: Auth,
    /// Headers beside the key.
    pub headers: Vec<(String, String)>,
    /// What to do about a key, in words: `set OPENAI_API_KEY, or give --api-key`.
    pub key_hint: String,
    pub patience: Patience,
    pub outage: Outage,
    pub reach: Reach,
}

/// How the address of a request is made from the base URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    Usual,
    /// By deployment and version.
    Azure {
        api_version: String,
    },
}

/// The key and where it goes. It is shown nowhere.
#[derive(Clone)]
pub enum Auth {
    None,
    Bearer(String),
    Header { name: &'static str, key: String },
}

impl Auth {
    pub fn key(&self) -> Option<&str> {
        match self {
            Auth::None => None,
            Auth::Bearer(key) | Auth::Header { key, .. } => Some(key),
        }
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.key().is_some() { "key" } else { "no key" })
    }
}

/// How long an answer is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patience {
    /// Attempts in all, the first included.
    pub attempts: u32,
    pub connect: Duration,
    /// Until the answer begins. Models that think long send nothing meanwhile.
    pub first_byte: Duration,
    /// Silence after which a stream counts as broken.
    pub stall: Duration,
    /// One attempt in all.
    pub total: Duration,
    /// The longest a provider may make us wait before the next attempt.
    pub longest_wait: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            attempts: 6,
            connect: Duration::from_secs(20),
            first_byte: Duration::from_secs(600),
            stall: Duration::from_secs(120),
            total: Duration::from_secs(3600),
            longest_wait: Duration::from_secs(120),
        }
    }
}

/// What happens when all attempts are used up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Outage {
    #[default]
    Fail,
    /// Wait, look now and then whether the server is back, and go on.
    Park,
}

/// The first and the longest pause between two looks at a server that is away.
const PARKED: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

impl ClientOptions {
    /// What could never work, said before anything is sent.
    pub fn check(&self) -> Result<(), String> {
        let url = reqwest::Url::parse(&self.base_url)
            .map_err(|error| format!("`{}` is no address: {error}", plain_address(&self.base_url)))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(format!(
                "`{}` is no address of a server: it must begin with http:// or https://",
                plain_address(&self.base_url)
            ));
        }
        if let Some(reason) = self.reach.refuses(&self.base_url) {
            return Err(reason);
        }
        match self.auth.key() {
            Some(key) if key.chars().any(|c| c.is_control() || !c.is_ascii()) => {
                Err("the key holds characters that no key has (a line break, perhaps)".to_owned())
            }
            Some(_) | None => Ok(()),
        }
    }

    fn url(&self) -> String {
        let base = self.base_url.trim_end_matches('/');
        let bare = base.strip_suffix("/v1").unwrap_or(base);
        match (self.form.wire, &self.address) {
            (Wire::Chat, Address::Azure { api_version }) => {
                let place = if base.contains("/deployments/") {
                    base.to_owned()
                } else {
                    format!("{base}/openai/deployments/{}", self.model)
                };
                format!("{place}/chat/completions?api-version={api_version}")
            }
            (Wire::Responses, Address::Azure { api_version }) => {
                format!("{base}/openai/responses?api-version={api_version}")
            }
            (Wire::Chat, Address::Usual) => format!("{base}/chat/completions"),
            (Wire::Responses, Address::Usual) => format!("{base}/responses"),
            (Wire::Messages, _) => format!("{bare}/v1/messages"),
            (Wire::Gemini, _) => {
                let versioned = base.rsplit('/').next().is_some_and(|last| {
                    last.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
                });
                let version = if versioned { "" } else { "/v1beta" };
                let method = match self.form.params.delivery {
                    Delivery::Streamed => "streamGenerateContent?alt=sse",
                    Delivery::Whole => "generateContent",
                };
                format!("{base}{version}/models/{}:{method}", self.model)
            }
            (Wire::Ollama, _) => format!("{bare}/api/chat"),
        }
    }
}

pub struct HttpClient {
    options: ClientOptions,
    /// The address as it is told.
    server: String,
    http: OnceLock<reqwest::Client>,
}

impl HttpClient {
    pub fn new(options: ClientOptions) -> Self {
        let server = plain_address(&options.base_url);
        Self { options, server, http: OnceLock::new() }
    }

    fn http(&self) -> Result<&reqwest::Client, ModelError> {
        if let Some(client) = self.http.get() {
            return Ok(client);
        }
        // Installing twice is refused, and that is fine: the first one stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = self
            .options
            .reach
            .limit(reqwest::Client::builder())
            .user_agent(concat!("lathe/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(self.options.patience.connect)
            .redirect(reqwest::redirect::Policy::none())
            .tcp_nodelay(true)
            .build()
            .map_err(|error| {
                ModelError::Unavailable(format!("the HTTP client cannot be made: {}", chain(&error)))
            })?;
        Ok(self.http.get_or_init(|| client))
    }

    fn place(&self) -> Place<'_> {
        Place { server: &self.server, key_hint: &self.options.key_hint }
    }

    fn post(&self, request: &Request) -> Result<reqwest::RequestBuilder, ModelError> {
        let mut post = self
            .http()?
            .post(self.options.url())
            .header("content-type", "application/json")
            .header("accept", if self.is_streamed() { "text/event-stream" } else { "application/json" })
            .body(reqwest::Body::wrap(ChainedBody::new(Arc::clone(&request.parts))));
        if self.options.form.wire == Wire::Messages {
            post = post.header("anthropic-version", "2023-06-01");
        }
        for (name, value) in &self.options.headers {
            post = post.header(name, value);
        }
        let secret = |text: &str| {
            let mut value = HeaderValue::from_str(text)
                .map_err(|_| ModelError::Refused("the key cannot be sent as a header".to_owned()))?;
            value.set_sensitive(true);
            Ok(value)
        };
        Ok(match &self.options.auth {
            Auth::None => post,
            Auth::Bearer(key) => post.header("authorization", secret(&format!("Bearer {key}"))?),
            Auth::Header { name, key } => post.header(*name, secret(key)?),
        })
    }

    fn is_streamed(&self) -> bool {
        self.options.form.params.delivery.is_streamed()
    }

    async fn attempt(&self, request: &Request, deltas: &mpsc::Sender<Delta>) -> Result<Answer, Failure> {
        let patience = &self.options.patience;
        let sending = self.post(request).map_err(Failure::Final)?.send();
        let response = match tokio::time::timeout(patience.first_byte, sending).await {
            Ok(sent) => sent.map_err(|error| self.unreachable(&error))?,
            Err(_) => {
                let seconds = patience.first_byte.as_secs_f32();
                return Err(Failure::again(format!(
                    "the model did not begin to answer in {seconds} seconds"
                )));
            }
        };
        if !response.status().is_success() {
            return Err(about_images(self.refused(response).await, request));
        }
        let mut received = None;
        let reading = self.read(response, request.step.0, deltas, &mut received);
        let answer = match tokio::time::timeout(patience.total, reading).await {
            Ok(answer) => answer.map(|answer| believable(answer, request)),
            Err(_) => {
                let seconds = patience.total.as_secs_f32();
                Err(Failure::again(format!("the answer did not end in {seconds} seconds")))
            }
        };
        if let (Err(_), Some(received)) = (&answer, received) {
            let lost = Usage::default().believable(bytes_sent(request), received);
            let _ = deltas.send(Delta::Lost(lost)).await;
        }
        answer
    }

    /// `received` is the length of what came of an answer, as soon as one has begun.
    async fn read(
        &self,
        response: reqwest::Response,
        step: u32,
        deltas: &mpsc::Sender<Delta>,
        received: &mut Option<usize>,
    ) -> Result<Answer, Failure> {
        let kind = response.headers().get("content-type").and_then(|value| value.to_str().ok());
        let kind = kind.unwrap_or_default().to_ascii_lowercase();
        if kind.starts_with("text/html") {
            return Err(Failure::again(format!(
                "{} answered with a web page: is this the address of a model?",
                self.server
            )));
        }
        let received = received.insert(0);
        let mut assembling = assembly(self.options.form.wire);
        if !self.is_streamed() || kind.starts_with("application/json") {
            let body = self.body(response, ANSWER_LIMIT).await?;
            *received = body.len();
            let mut shown = Vec::new();
            assembling.whole(&String::from_utf8_lossy(&body), &mut shown).map_err(|e| self.broken(e))?;
            show(shown, deltas).await;
        } else {
            self.stream(response, &mut *assembling, deltas, received).await?;
        }
        let answer = assembling.finish(step);
        Ok(match self.options.form.params.tools {
            ToolForm::Native => answer,
            ToolForm::Described => shim::answer(answer, step),
        })
    }

    async fn stream(
        &self,
        response: reqwest::Response,
        assembling: &mut dyn Assembly,
        deltas: &mpsc::Sender<Delta>,
        content: &mut usize,
    ) -> Result<(), Failure> {
        let mut bytes = response.bytes_stream();
        let mut framer = Framer::new(framing(self.options.form.wire));
        let (mut frames, mut shown) = (Vec::new(), Vec::new());
        let mut read = 0_usize;
        loop {
            let piece = match tokio::time::timeout(self.options.patience.stall, bytes.next()).await {
                Err(_) => return Err(self.silent()),
                Ok(None) => break,
                Ok(Some(Err(error))) => {
                    return Err(Failure::again(format!("the answer broke off: {}", chain(&error))));
                }
                Ok(Some(Ok(piece))) => piece,
            };
            read += piece.len();
            if read > STREAM_LIMIT || framer.push(&piece, &mut frames).is_err() {
                return Err(too_large());
            }
            for frame in frames.drain(..) {
                *content += frame.data.len().saturating_sub(EVENT_COST);
                if *content > ANSWER_LIMIT {
                    return Err(too_large());
                }
                let flow = assembling.take(&frame, &mut shown).map_err(|error| self.broken(error))?;
                if flow == Flow::End {
                    show(shown, deltas).await;
                    let _ =
                        tokio::time::timeout(DRAIN, async { while let Some(Ok(_)) = bytes.next().await {} })
                            .await;
                    return Ok(());
                }
            }
            show(std::mem::take(&mut shown), deltas).await;
        }
        if let Some(frame) = framer.finish() {
            assembling.take(&frame, &mut shown).map_err(|error| self.broken(error))?;
            show(shown, deltas).await;
        }
        if assembling.is_ended() {
            return Ok(());
        }
        Err(Failure::again("the answer broke off before its end"))
    }

    async fn body(&self, response: reqwest::Response, limit: usize) -> Result<Vec<u8>, Failure> {
        let mut bytes = response.bytes_stream();
        let mut body = Vec::new();
        loop {
            let piece: Bytes = match tokio::time::timeout(self.options.patience.stall, bytes.next()).await {
                Err(_) => return Err(self.silent()),
                Ok(None) => return Ok(body),
                Ok(Some(Err(error))) => {
                    return Err(Failure::again(format!("the answer broke off: {}", chain(&error))));
                }
                Ok(Some(Ok(piece))) => piece,
            };
            if body.len() + piece.len() > limit {
                return Err(too_large());
            }
            body.extend_from_slice(&piece);
        }
    }

    fn silent(&self) -> Failure {
        let seconds = self.options.patience.stall.as_secs_f32();
        Failure::again(format!("the model sent nothing for {seconds} seconds"))
    }

    fn broken(&self, broken: Broken) -> Failure {
        match broken {
            Broken::NotJson(text) => Failure::again(format!("the answer is not JSON: {text}")),
            Broken::Provider(error) => failure::in_stream(&self.place(), &error),
            Broken::Blocked(text) => Failure::Final(ModelError::Refused(text)),
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> Failure {
        let words = chain(error).replace(&self.options.url(), &self.server);
        let text = format!("{} cannot be reached: {words}", self.server);
        // Asking again does not make a certificate good.
        if words.contains("certificate") || error.is_builder() {
            return Failure::Final(ModelError::Refused(text));
        }
        Failure::again(text)
    }

    async fn refused(&self, response: reqwest::Response) -> Failure {
        let (code, headers) = (response.status().as_u16(), response.headers().clone());
        let body = self.body(response, ERROR_LIMIT).await.unwrap_or_default();
        failure::status(&self.place(), code, &headers, &String::from_utf8_lossy(&body))
    }

    async fn ask_until_answered(
        &self,
        request: &Request,
        deltas: &mpsc::Sender<Delta>,
    ) -> Result<Answer, ModelError> {
        let patience = &self.options.patience;
        let mut backoff = Backoff::new(patience.attempts, patience.longest_wait);
        loop {
            let (reason, after) = match self.attempt(request, deltas).await {
                Ok(answer) => return Ok(answer),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Again { reason, after }) => (reason, after),
            };
            match (backoff.next(after), self.options.outage) {
                (Some((attempt, wait)), _) => wait_visibly(deltas, attempt, wait, reason).await,
                (None, Outage::Fail) => return Err(ModelError::Unavailable(reason)),
                (None, Outage::Park) => {
                    self.park(deltas, &reason).await;
                    backoff = Backoff::new(patience.attempts, patience.longest_wait);
                }
            }
        }
    }

    /// Waits until the server can be reached again.
    async fn park(&self, deltas: &mpsc::Sender<Delta>, reason: &str) {
        let (mut wait, longest) = PARKED;
        for look in 1.. {
            let words = format!("parked until the server is back: {reason}");
            wait_visibly(deltas, look, wait / 2 + jittered(wait / 2), words).await;
            if self.is_reachable().await {
                return;
            }
            wait = (wait * 2).min(longest);
        }
    }

    /// Whether anything at all answers at the address. Nothing is asked of the model, so it costs nothing.
    async fn is_reachable(&self) -> bool {
        let Ok(http) = self.http() else { return false };
        let looked = http.get(&self.options.base_url).timeout(Duration::from_secs(10)).send().await;
        looked.is_ok_and(|response| !response.status().is_server_error())
    }

    /// How long one request that asks for nothing takes, for `doctor`.
    pub async fn reach(&self) -> Option<Duration> {
        let began = Instant::now();
        self.is_reachable().await.then(|| began.elapsed())
    }
}

/// A refusal that speaks of images says how to go on without them: they would be in every later request too.
fn about_images(failure: Failure, request: &Request) -> Failure {
    match failure {
        Failure::Final(ModelError::Refused(text))
            if request.pictures.count() > 0 && text.to_lowercase().contains("image") =>
        {
            Failure::Final(ModelError::Refused(format!(
                "{text} (The request holds {} images. If the model takes none, set model.supports_images = false and resume.)",
                request.pictures.count()
            )))
        }
        other => other,
    }
}

/// The length of a request as it counts: an image costs what it shows, not what its file takes up.
fn bytes_sent(request: &Request) -> usize {
    request.pictures.bytes_as_text(request.parts.iter().map(|part| part.len()).sum())
}

/// The answer with usage that a budget can be counted by.
fn believable(answer: Answer, request: &Request) -> Answer {
    let written = |block: &Block| match block {
        Block::Text(text) => text.text.len(),
        Block::Thinking(thinking) => thinking.text.len(),
        Block::Call(call) => call.name.len() + call.arguments.as_text().len(),
        Block::Opaque(_) => 0,
    };
    let received = answer.blocks.iter().map(written).sum();
    Answer { usage: answer.usage.believable(bytes_sent(request), received), ..answer }
}

async fn wait_visibly(deltas: &mpsc::Sender<Delta>, attempt: u32, wait: Duration, reason: String) {
    let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    let _ = deltas.send(Delta::Retry { attempt, wait_ms, reason }).await;
    tokio::time::sleep(wait).await;
}

async fn show(shown: Vec<Delta>, deltas: &mpsc::Sender<Delta>) {
    for delta in shown {
        // Nobody watching is no reason to stop.
        let _ = deltas.send(delta).await;
    }
}

fn too_large() -> Failure {
    Failure::Final(ModelError::Refused(format!("the answer is larger than {} MB", ANSWER_LIMIT >> 20)))
}

impl ModelClient for HttpClient {
    fn form(&self) -> Form {
        self.options.form.clone()
    }

    fn ask<'a>(
        &'a self,
        request: Request,
        deltas: &'a mpsc::Sender<Delta>,
        cancel: &'a CancellationToken,
    ) -> Boxed<'a, Result<Answer, ModelError>> {
        Box::pin(async move {
            tokio::select! {
                biased;
                () = cancel.cancelled() => Err(ModelError::Cancelled),
                answer = self.ask_until_answered(&request, deltas) => answer,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(wire: Wire, base_url: &str, address: Address) -> String {
        ClientOptions {
            form: wire.into(),
            base_url: base_url.to_owned(),
            model: "m".to_owned(),
            address,
            auth: Auth::None,
            headers: Vec::new(),
            key_hint: String::new(),
            patience: Patience::default(),
            outage: Outage::Fail,
            reach: Reach::Anywhere,
        }
        .url()
    }

    #[test]
    fn each_wire_has_its_address_with_and_without_a_version_in_the_base() {
        use Address::Usual;
        let azure = || Address::Azure { api_version: "2025-03-01-preview".to_owned() };
        let table = [
            (url(Wire::Chat, "http://x/v1/", Usual), "http://x/v1/chat/completions"),
            (
                url(Wire::Chat, "http://x", azure()),
                "http://x/openai/deployments/m/chat/completions?api-version=2025-03-01-preview",
            ),
            (url(Wire::Responses, "http://x/v1", Usual), "http://x/v1/responses"),
            (url(Wire::Messages, "http://x", Usual), "http://x/v1/messages"),
            (url(Wire::Messages, "http://x/anthropic/v1", Usual), "http://x/anthropic/v1/messages"),
            (url(Wire::Gemini, "http://x", Usual), "http://x/v1beta/models/m:streamGenerateContent?alt=sse"),
            (url(Wire::Gemini, "http://x/v1", Usual), "http://x/v1/models/m:streamGenerateContent?alt=sse"),
            (url(Wire::Ollama, "http://x:11434", Usual), "http://x:11434/api/chat"),
            (url(Wire::Ollama, "http://x:11434/v1", Usual), "http://x:11434/api/chat"),
        ];
        for (made, expected) in table {
            assert_eq!(made, expected);
        }
    }

    #[test]
    fn a_key_is_not_shown() {
        assert_eq!(format!("{:?}", Auth::Bearer("sk-secret".to_owned())), "key");
    }
}
