//! The client: one POST, an event stream back, asked again where that can help.
//!
//! The HTTP client is made on first use, because reading the root certificates costs more than everything else a
//! short run does.

use std::sync::OnceLock;
use std::time::Duration;

use eventsource_stream::Eventsource;
use futures::StreamExt;
use lathe_protocol::Boxed;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::decode::{Assembly, BadChunk};
use crate::body::ChainedBody;
use crate::request::{Answer, Delta, ModelClient, ModelError, Request, Wire};
use crate::retry::{Backoff, retry_after};

/// Seconds without a byte after which a stream counts as broken.
const STALL: Duration = Duration::from_secs(120);

#[derive(Clone)]
pub struct ChatOptions {
    pub base_url: String,
    pub api_key: Option<String>,
    /// Attempts in all, the first included.
    pub attempts: u32,
}

impl ChatOptions {
    /// What could never work, said before anything is sent.
    pub fn check(&self) -> Result<(), String> {
        let url = reqwest::Url::parse(&self.base_url)
            .map_err(|error| format!("`{}` is no address: {error}", self.base_url))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(format!(
                "`{}` is no address of a server: it must begin with http:// or https://",
                self.base_url
            ));
        }
        match &self.api_key {
            Some(key) if key.chars().any(|c| c.is_control() || !c.is_ascii()) => {
                Err("the key holds characters that no key has (a line break, perhaps)".to_owned())
            }
            Some(_) | None => Ok(()),
        }
    }
}

pub struct ChatClient {
    options: ChatOptions,
    http: OnceLock<reqwest::Client>,
}

/// What one attempt came to, when it came to nothing.
enum Failure {
    Final(ModelError),
    Again { reason: String, after: Option<Duration> },
}

impl ChatClient {
    pub fn new(options: ChatOptions) -> Self {
        Self { options, http: OnceLock::new() }
    }

    fn http(&self) -> Result<&reqwest::Client, ModelError> {
        if let Some(client) = self.http.get() {
            return Ok(client);
        }
        // Installing twice is refused, and that is fine: the first one stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .user_agent(concat!("lathe/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(Duration::from_secs(20))
            .redirect(reqwest::redirect::Policy::none())
            .tcp_nodelay(true)
            .build()
            .map_err(|error| {
                ModelError::Unavailable(format!("the HTTP client cannot be made: {}", chain(&error)))
            })?;
        Ok(self.http.get_or_init(|| client))
    }

    fn url(&self) -> String {
        format!("{}/chat/completions", self.options.base_url.trim_end_matches('/'))
    }

    async fn attempt(&self, request: &Request, deltas: &mpsc::Sender<Delta>) -> Result<Answer, Failure> {
        let mut post = self
            .http()
            .map_err(Failure::Final)?
            .post(self.url())
            .header("content-type", "application/json")
            .header("accept", "text/event-stream")
            .body(reqwest::Body::wrap(ChainedBody::new(request.parts.clone())));
        if let Some(key) = &self.options.api_key {
            post = post.bearer_auth(key);
        }
        let response = post.send().await.map_err(|error| self.unreachable(&error))?;
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }
        let mut events = response.bytes_stream().eventsource();
        let mut assembly = Assembly::default();
        loop {
            let event = match tokio::time::timeout(STALL, events.next()).await {
                Err(_) => {
                    return Err(again(format!("the model sent nothing for {} seconds", STALL.as_secs())));
                }
                Ok(None) => break,
                Ok(Some(Err(error))) => {
                    return Err(again(format!("the answer broke off: {}", chain(&error))));
                }
                Ok(Some(Ok(event))) => event,
            };
            if event.data == "[DONE]" {
                return Ok(assembly.finish(request.turn));
            }
            if event.data.is_empty() {
                continue;
            }
            for delta in assembly.take(&event.data).map_err(bad_chunk)? {
                // Nobody watching is no reason to stop.
                let _ = deltas.send(delta).await;
            }
        }
        if assembly.is_ended() {
            return Ok(assembly.finish(request.turn));
        }
        Err(again("the answer broke off before its end".to_owned()))
    }

    fn unreachable(&self, error: &reqwest::Error) -> Failure {
        again(format!("{} cannot be reached: {}", self.options.base_url, chain(error)))
    }

    async fn refused(&self, response: reqwest::Response) -> Failure {
        let status = response.status();
        let after = retry_after(response.headers());
        let body = response.text().await.unwrap_or_default();
        let words = error_text(&body);
        let text = format!("{} answered {}: {words}", self.options.base_url, status.as_u16());
        if matches!(status.as_u16(), 408 | 409 | 429 | 500..=599) {
            return Failure::Again { reason: text, after };
        }
        Failure::Final(ModelError::Refused(text))
    }

    async fn ask_until_answered(
        &self,
        request: &Request,
        deltas: &mpsc::Sender<Delta>,
    ) -> Result<Answer, ModelError> {
        let mut backoff = Backoff::new(self.options.attempts);
        loop {
            let (reason, after) = match self.attempt(request, deltas).await {
                Ok(answer) => return Ok(answer),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Again { reason, after }) => (reason, after),
            };
            let Some((attempt, wait)) = backoff.next(after) else {
                return Err(ModelError::Unavailable(reason));
            };
            let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            let _ = deltas.send(Delta::Retry { attempt, wait_ms, reason }).await;
            tokio::time::sleep(wait).await;
        }
    }
}

impl ModelClient for ChatClient {
    fn wire(&self) -> Wire {
        Wire::Chat
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

fn again(reason: String) -> Failure {
    Failure::Again { reason, after: None }
}

fn bad_chunk(bad: BadChunk) -> Failure {
    match bad {
        BadChunk::NotJson(text) => again(format!("the answer is not JSON: {text}")),
        BadChunk::ProviderError(text) => again(text),
    }
}

/// The provider's own words, out of the usual places of an error body.
pub(super) fn error_text(body: &str) -> String {
    let words = serde_json::from_str::<serde_json::Value>(body).ok().and_then(|value| {
        let message =
            value.pointer("/error/message").or_else(|| value.get("message")).or_else(|| value.get("error"));
        message.and_then(|text| text.as_str().map(str::to_owned))
    });
    let words = words.unwrap_or_else(|| body.trim().to_owned());
    if words.is_empty() { "no reason given".to_owned() } else { words.chars().take(2000).collect() }
}

/// An error with its causes, because the outermost often says only that something failed.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let more = inner.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        source = inner.source();
    }
    text
}
