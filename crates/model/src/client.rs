//! The client of every wire: one POST, a streamed reply, and retries where they can help.
//!
//! The HTTP client is made on first use, because reading the root certificates costs more than everything else in a
//! short run. Every wait is bounded: for the connection, the first byte, silence in the stream, the whole answer, its
//! size, and the number of attempts. Dropping the future at any await ends everything it does.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt;
use lathe_protocol::{Block, BoxFuture, Usage, plain_address};
use reqwest::header::HeaderValue;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::assembly::{Assembly, Flow, StreamFailure, assembly, framing};
use crate::body::ChainedBody;
use crate::failure::{self, ErrorContext, Failure, error_chain};
use crate::form::{Form, ToolForm, Wire};
use crate::frames::Framer;
use crate::options::{Auth, ClientOptions, Outage};
use crate::reach::restrict;
use crate::request::{Delta, ModelAnswer, ModelClient, ModelError, WireRequest};
use crate::retry::{Backoff, jittered};
use crate::shim;

/// The maximum size of one answer in bytes. The overhead of events is not counted: a long answer in small pieces is
/// mostly that.
const ANSWER_LIMIT: usize = 16 << 20;
const EVENT_COST: usize = 512;
/// The maximum size of a stream in bytes.
const STREAM_LIMIT: usize = 512 << 20;
/// The maximum number of bytes read of an error.
const ERROR_LIMIT: usize = 1 << 20;
/// The time to wait for the end of a stream after its last event, so that the connection can be reused.
const DRAIN: Duration = Duration::from_millis(20);

/// The first and the longest pause between two checks of an unreachable server.
const PARKED: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

pub struct HttpClient {
    options: ClientOptions,
    /// The address as shown in errors.
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
        // A second installation is refused, which is harmless: the first one stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = restrict(self.options.reach, reqwest::Client::builder())
            .user_agent(concat!("lathe/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(self.options.patience.connect)
            .redirect(reqwest::redirect::Policy::none())
            .tcp_nodelay(true)
            .build()
            .map_err(|error| {
                ModelError::Unavailable(format!("the HTTP client cannot be made: {}", error_chain(&error)))
            })?;
        Ok(self.http.get_or_init(|| client))
    }

    fn place(&self) -> ErrorContext<'_> {
        ErrorContext { server: &self.server, key_hint: &self.options.key_hint }
    }

    fn post(&self, request: &WireRequest) -> Result<reqwest::RequestBuilder, ModelError> {
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

    /// One attempt. `received` is the length of the partial answer, as soon as one has begun.
    async fn attempt(
        &self,
        request: &WireRequest,
        deltas: &mpsc::Sender<Delta>,
        received: &mut Option<usize>,
    ) -> Result<ModelAnswer, Failure> {
        let patience = &self.options.patience;
        let sending = self.post(request).map_err(Failure::Final)?.send();
        let response = match tokio::time::timeout(patience.first_byte, sending).await {
            Ok(sent) => sent.map_err(|error| self.unreachable(&error))?,
            Err(_) => {
                let seconds = patience.first_byte.as_secs_f32();
                return Err(Failure::retryable(format!(
                    "the model did not begin to answer in {seconds} seconds"
                )));
            }
        };
        if !response.status().is_success() {
            return Err(with_image_advice(self.refused(response).await, request));
        }
        let reading = self.read(response, request.step.0, deltas, received);
        match tokio::time::timeout(patience.total, reading).await {
            Ok(answer) => answer.map(|answer| with_plausible_usage(answer, request)),
            Err(_) => {
                let seconds = patience.total.as_secs_f32();
                Err(Failure::retryable(format!("the answer did not end in {seconds} seconds")))
            }
        }
    }

    async fn read(
        &self,
        response: reqwest::Response,
        step: u32,
        deltas: &mpsc::Sender<Delta>,
        received: &mut Option<usize>,
    ) -> Result<ModelAnswer, Failure> {
        let kind = response.headers().get("content-type").and_then(|value| value.to_str().ok());
        let kind = kind.unwrap_or_default().to_ascii_lowercase();
        if kind.starts_with("text/html") {
            return Err(Failure::retryable(format!(
                "{} answered with a web page: is this the address of a model?",
                self.server
            )));
        }
        let received = received.insert(0);
        let mut assembling = assembly(self.options.form.wire);
        if !self.is_streamed() || kind.starts_with("application/json") {
            let body = self.body(response, ANSWER_LIMIT, received).await?;
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
        received: &mut usize,
    ) -> Result<(), Failure> {
        let mut bytes = response.bytes_stream();
        let mut framer = Framer::new(framing(self.options.form.wire));
        let (mut frames, mut shown) = (Vec::new(), Vec::new());
        let (mut read, mut content) = (0_usize, 0_usize);
        loop {
            let piece = match tokio::time::timeout(self.options.patience.stall, bytes.next()).await {
                Err(_) => return Err(self.stalled()),
                Ok(None) => break,
                Ok(Some(Err(error))) => {
                    return Err(Failure::retryable(format!("the answer broke off: {}", error_chain(&error))));
                }
                Ok(Some(Ok(piece))) => piece,
            };
            read += piece.len();
            if read > STREAM_LIMIT || framer.push(&piece, &mut frames).is_err() {
                return Err(too_large());
            }
            for frame in frames.drain(..) {
                content += frame.data.len().saturating_sub(EVENT_COST);
                *received = content.max(*received);
                if content > ANSWER_LIMIT {
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
            // A large event is counted as a whole; most of a small one is overhead of the wire.
            *received = content.max(assembling.written());
            show(std::mem::take(&mut shown), deltas).await;
        }
        if let Some(frame) = framer.finish() {
            *received += frame.data.len().saturating_sub(EVENT_COST);
            assembling.take(&frame, &mut shown).map_err(|error| self.broken(error))?;
            show(shown, deltas).await;
        }
        if assembling.is_ended() {
            return Ok(());
        }
        Err(Failure::retryable("the answer broke off before its end"))
    }

    async fn body(
        &self,
        response: reqwest::Response,
        limit: usize,
        received: &mut usize,
    ) -> Result<Vec<u8>, Failure> {
        let mut bytes = response.bytes_stream();
        let mut body = Vec::new();
        loop {
            let piece: Bytes = match tokio::time::timeout(self.options.patience.stall, bytes.next()).await {
                Err(_) => return Err(self.stalled()),
                Ok(None) => return Ok(body),
                Ok(Some(Err(error))) => {
                    return Err(Failure::retryable(format!("the answer broke off: {}", error_chain(&error))));
                }
                Ok(Some(Ok(piece))) => piece,
            };
            if body.len() + piece.len() > limit {
                return Err(too_large());
            }
            body.extend_from_slice(&piece);
            *received = body.len();
        }
    }

    fn stalled(&self) -> Failure {
        let seconds = self.options.patience.stall.as_secs_f32();
        Failure::retryable(format!("the model sent nothing for {seconds} seconds"))
    }

    fn broken(&self, broken: StreamFailure) -> Failure {
        match broken {
            StreamFailure::NotJson(text) => Failure::retryable(format!("the answer is not JSON: {text}")),
            StreamFailure::Provider(error) => failure::in_stream(&self.place(), &error),
            StreamFailure::Blocked(text) => Failure::Final(ModelError::Refused(text)),
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> Failure {
        let words = error_chain(error).replace(&self.options.url(), &self.server);
        let text = format!("{} cannot be reached: {words}", self.server);
        // A retry does not make a certificate valid.
        if words.contains("certificate") || error.is_builder() {
            return Failure::Final(ModelError::Refused(text));
        }
        Failure::retryable(text)
    }

    async fn refused(&self, response: reqwest::Response) -> Failure {
        let (code, headers) = (response.status().as_u16(), response.headers().clone());
        let body = self.body(response, ERROR_LIMIT, &mut 0).await.unwrap_or_default();
        failure::status(&self.place(), code, &headers, &String::from_utf8_lossy(&body))
    }

    async fn ask_until_answered(
        &self,
        request: &WireRequest,
        deltas: &mpsc::Sender<Delta>,
        received: &mut Option<usize>,
    ) -> Result<ModelAnswer, ModelError> {
        let patience = &self.options.patience;
        let mut backoff = Backoff::new(patience.attempts, patience.longest_wait);
        loop {
            let (reason, after) = match self.attempt(request, deltas, received).await {
                Ok(answer) => return Ok(answer),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Again { reason, after }) => (reason, after),
            };
            report_lost(request, received.take(), deltas).await;
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

    /// Waits until the server is reachable again.
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

    /// Tells whether any server responds at the address. The model is not asked, so it costs nothing.
    async fn is_reachable(&self) -> bool {
        let Ok(http) = self.http() else { return false };
        let looked = http.get(&self.options.base_url).timeout(Duration::from_secs(10)).send().await;
        looked.is_ok_and(|response| !response.status().is_server_error())
    }

    /// The duration of one request that asks the model nothing, for `doctor`.
    pub async fn round_trip_time(&self) -> Option<Duration> {
        let began = Instant::now();
        self.is_reachable().await.then(|| began.elapsed())
    }
}

/// Adds advice about images to a refusal that mentions them: they would be in every later request too.
fn with_image_advice(failure: Failure, request: &WireRequest) -> Failure {
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

/// The length of a request for estimates: an image counts by its content, not by the size of its file.
fn bytes_sent(request: &WireRequest) -> usize {
    request.pictures.bytes_as_text(request.parts.iter().map(|part| part.len()).sum())
}

/// The answer with usage that a budget can rely on.
fn with_plausible_usage(answer: ModelAnswer, request: &WireRequest) -> ModelAnswer {
    let written = |block: &Block| match block {
        Block::Text(text) => text.text.len(),
        Block::Thinking(thinking) => thinking.text.len(),
        Block::Call(call) => call.name.len() + call.arguments.as_text().len(),
        Block::Opaque(_) => 0,
    };
    let received = answer.blocks.iter().map(written).sum();
    ModelAnswer { usage: answer.usage.believable(bytes_sent(request), received), ..answer }
}

/// Reports the estimated usage of an answer that began and failed.
async fn report_lost(request: &WireRequest, received: Option<usize>, deltas: &mpsc::Sender<Delta>) {
    let Some(received) = received else { return };
    let lost = Usage::default().believable(bytes_sent(request), received);
    let _ = deltas.send(Delta::Lost(lost)).await;
}

async fn wait_visibly(deltas: &mpsc::Sender<Delta>, attempt: u32, wait: Duration, reason: String) {
    let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    let _ = deltas.send(Delta::Retry { attempt, wait_ms, reason }).await;
    tokio::time::sleep(wait).await;
}

async fn show(shown: Vec<Delta>, deltas: &mpsc::Sender<Delta>) {
    for delta in shown {
        // A missing viewer is not a reason to stop.
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
        request: WireRequest,
        deltas: &'a mpsc::Sender<Delta>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ModelAnswer, ModelError>> {
        Box::pin(async move {
            let mut received = None;
            let answer = tokio::select! {
                biased;
                () = cancel.cancelled() => Err(ModelError::Cancelled),
                answer = self.ask_until_answered(&request, deltas, &mut received) => answer,
            };
            if answer.is_err() {
                report_lost(&request, received, deltas).await;
            }
            answer
        })
    }
}
