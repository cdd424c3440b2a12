//! One connection: two tasks, one for each direction.
//!
//! Frames go out as fast as this client accepts them. A client that falls behind the hub's buffer reads the journal
//! again from its cursor, by the same code that serves a new client.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use futures::{SinkExt, StreamExt};
use lathe_protocol::{CommandId, ReceiptAnswer, Seq, SessionId};
use lathe_views::{Cursor, Projector};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::client_message::{ClientMessage, parse_message};
use super::incoming::{ClientInput, MessageStream};
use super::outgoing::{FrameSender, Sink, note, push};
use super::{Content, Purpose};
use crate::access::{Identity, Role, TokenState};
use crate::app::App;
use crate::error::ApiError;
use crate::live::{SessionWork, new_command_id};
use crate::metered::Meter;
use crate::routes::runs;

/// The time for the first message.
const FIRST: Duration = Duration::from_secs(10);
/// A client that is silent for so long is gone.
const SILENCE: Duration = Duration::from_secs(60);
/// Replies to a client that may wait to be sent.
const REPLIES: usize = 64;

/// The reasons for which a connection ends.
pub(super) struct Goodbye {
    code: u16,
    reason: String,
}

impl Goodbye {
    pub fn new(code: u16, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into() }
    }

    pub fn token_removed() -> Self {
        Self::new(close_code::POLICY, "the token was removed")
    }

    /// The client is no longer there, so it gets no reason.
    pub fn gone() -> Self {
        Self::new(close_code::NORMAL, "")
    }
}

/// Counts a client while it is connected.
struct ClientCount(App);

impl Drop for ClientCount {
    fn drop(&mut self) {
        self.0.counts.clients.subtract();
    }
}

pub(super) async fn serve(
    socket: WebSocket,
    meter: Meter,
    app: App,
    identity: Identity,
    (purpose, content): (Purpose, Content),
) {
    app.counts.clients.add(1);
    let _present = ClientCount(app.clone());
    let (mut sink, stream) = socket.split();
    let mut stream = MessageStream::new(stream, meter.clone());
    let conversation = async {
        let watched = match purpose {
            Purpose::Attach { id, from, until_end } => {
                Ok(AttachedSession { id, from, until_end, warnings: Vec::new() })
            }
            Purpose::Run | Purpose::Task => first_message(&mut stream, &app, &identity, &purpose).await,
        };
        match watched {
            Ok(watched) => exchange(&mut sink, stream, &app, &identity, (watched, content)).await,
            Err((error, goodbye)) => {
                if let Some(error) = error {
                    let data = json!({ "message": error.detail, "code": error.code });
                    let _ = sink.send(note("error", &data)).await;
                }
                goodbye
            }
        }
    };
    let goodbye = tokio::select! {
        goodbye = conversation => goodbye,
        () = app.stopped() => Goodbye::new(close_code::AWAY, "the server stops"),
        () = app.access.removed(&identity) => Goodbye::token_removed(),
    };
    // A client that is still sending reads the reason only if it is not cut off in the middle.
    meter.linger();
    let reason: String =
        Projector::shown(&goodbye.reason).chars().take(120).filter(|c| c.is_ascii()).collect();
    let close = Message::Close(Some(CloseFrame { code: goodbye.code, reason: reason.into() }));
    let farewell = async {
        let _ = sink.send(close).await;
        // This also answers a client that closed first.
        let _ = sink.close().await;
    };
    let _ = tokio::time::timeout(Duration::from_secs(2), farewell).await;
}

/// The session to show, and the cursor.
struct AttachedSession {
    id: SessionId,
    from: Cursor,
    until_end: bool,
    /// Members of the request that were ignored.
    warnings: Vec<String>,
}

/// Reads the first message and starts what it requests.
async fn first_message(
    stream: &mut MessageStream,
    app: &App,
    identity: &Identity,
    purpose: &Purpose,
) -> Result<AttachedSession, (Option<ApiError>, Goodbye)> {
    let refused = |error: ApiError| {
        let code = if matches!(error.status, 401 | 403 | 404) {
            close_code::POLICY
        } else {
            close_code::UNSUPPORTED
        };
        let reason = error.detail.clone();
        (Some(error), Goodbye::new(code, reason))
    };
    let request = async {
        loop {
            match stream.next().await {
                Ok(ClientInput::Text(text)) => return Ok(text),
                Ok(ClientInput::Life) => {}
                Err(goodbye) => return Err(goodbye),
            }
        }
    };
    let first = match tokio::time::timeout(FIRST, request).await {
        Ok(Ok(text)) => text,
        Ok(Err(goodbye)) => return Err((Some(ApiError::bad(goodbye.reason.clone())), goodbye)),
        Err(_) => {
            let reason = "no request came within 10 seconds";
            return Err((Some(ApiError::bad(reason)), Goodbye::new(close_code::POLICY, reason)));
        }
    };
    match app.access.token_state(identity) {
        TokenState::Known => {}
        TokenState::Removed => return Err((Some(ApiError::token_removed()), Goodbye::token_removed())),
        TokenState::Unreadable => return Err(refused(ApiError::tokens_unreadable())),
    }
    if identity.role < Role::Operator {
        let reason = "starting a run needs a token with the role operator";
        return Err((Some(ApiError::forbidden(reason)), Goodbye::new(close_code::POLICY, reason)));
    }
    let request: Value = crate::api::parse(first.as_bytes()).map_err(refused)?;
    let started = match purpose {
        Purpose::Task => runs::give_task(app, identity, request).await,
        Purpose::Run | Purpose::Attach { .. } => runs::start_run(app, identity, request).await,
    };
    let runs::StartedTask { live, given, warnings } = started.map_err(refused)?;
    app.audit.note(Some(identity), "start", live.id.as_str(), "accepted");
    let from = Cursor::after(Seq(given.0.saturating_sub(1)));
    Ok(AttachedSession { id: live.id.clone(), from, until_end: true, warnings })
}

async fn exchange(
    sink: &mut Sink,
    stream: MessageStream,
    app: &App,
    identity: &Identity,
    (watched, content): (AttachedSession, Content),
) -> Goodbye {
    for warning in &watched.warnings {
        if let Err(goodbye) = push(sink, note("warning", &json!({ "message": warning }))).await {
            return goodbye;
        }
    }
    let (replies, answers) = mpsc::channel(REPLIES);
    let began = Instant::now();
    let last_message = Arc::new(AtomicU64::new(0));
    let listening = MessageHandler {
        app: app.clone(),
        identity: identity.clone(),
        id: watched.id.clone(),
        replies,
        last_message: Arc::clone(&last_message),
        began,
    };
    let sending = FrameSender::new(app, identity, watched.id, watched.from, watched.until_end).of(content);
    tokio::select! {
        goodbye = listening.run(stream) => goodbye,
        goodbye = sending.run(sink, answers) => goodbye,
        goodbye = wait_for_silence(&last_message, began) => goodbye,
    }
}

/// The wait of a client that sends more messages than its token may.
const TOO_OFTEN: Duration = Duration::from_millis(20);

/// Ends when the client has been silent for too long.
async fn wait_for_silence(last_message: &AtomicU64, began: Instant) -> Goodbye {
    loop {
        let last = Duration::from_millis(last_message.load(Ordering::Relaxed));
        let silent = began.elapsed().saturating_sub(last);
        if silent >= SILENCE {
            return Goodbye::new(close_code::POLICY, "nothing was heard for 60 seconds");
        }
        tokio::time::sleep(SILENCE - silent).await;
    }
}

/// The direction from the client.
struct MessageHandler {
    app: App,
    identity: Identity,
    id: SessionId,
    replies: mpsc::Sender<Message>,
    last_message: Arc<AtomicU64>,
    began: Instant,
}

impl MessageHandler {
    async fn run(self, mut stream: MessageStream) -> Goodbye {
        loop {
            let message = match stream.next().await {
                Ok(message) => message,
                Err(goodbye) => return goodbye,
            };
            let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.last_message.store(now, Ordering::Relaxed);
            let ClientInput::Text(text) = message else { continue };
            // Messages count like requests; a client that sends too many is read more slowly.
            while !self.app.rates.may_send(self.identity.key) {
                tokio::time::sleep(TOO_OFTEN).await;
            }
            match self.app.access.token_state(&self.identity) {
                TokenState::Known => {}
                TokenState::Removed => return Goodbye::token_removed(),
                TokenState::Unreadable => {
                    let error = ApiError::tokens_unreadable();
                    self.reply("error", &json!({ "message": error.detail, "code": error.code })).await;
                    continue;
                }
            }
            let message = match parse_message(&text) {
                Ok(message) => message,
                Err(error) if serde_json::from_str::<serde::de::IgnoredAny>(&text).is_err() => {
                    self.reply("error", &json!({ "message": error.detail })).await;
                    return Goodbye::new(close_code::UNSUPPORTED, "a message was not JSON");
                }
                Err(error) => {
                    self.reply("error", &json!({ "message": error.detail })).await;
                    continue;
                }
            };
            let id = match message.id.map_or_else(new_command_id, Ok) {
                Ok(id) => id,
                Err(error) => {
                    self.reply("error", &json!({ "message": error.detail })).await;
                    continue;
                }
            };
            let receipt = self.carry_out(id, message.message).await;
            if let Some(receipt) = receipt {
                self.reply("receipt", &receipt).await;
            }
        }
    }

    async fn reply(&self, kind: &'static str, data: &Value) {
        let _ = self.replies.send(note(kind, data)).await;
    }

    /// Carries out a message; none if it needs no reply.
    async fn carry_out(&self, id: CommandId, message: ClientMessage) -> Option<Value> {
        let (opens, word) = (message.needs_open_session(), message.type_word());
        let refused =
            |reason: String| Some(json!({ "id": id, "command": word, "accepted": false, "reason": reason }));
        if message.is_silent() {
            return None;
        }
        if self.identity.role < Role::Operator {
            return refused("this needs a token with the role operator".to_owned());
        }
        let body = match message.command() {
            Ok(body) => body,
            Err(flaw) => return refused(flaw.to_owned()),
        };
        let live = match (self.app.sessions.get(&self.id), opens) {
            (Some(live), _) => live,
            (None, true) => match self.app.open(&self.identity, &self.id).await {
                Ok(live) => live,
                Err(error) => return refused(error.detail),
            },
            (None, false) => {
                return refused("the session is not open here; send `resume` to continue it".to_owned());
            }
        };
        if let Err(error) = live.role_needs.check(&self.identity, SessionWork::of(&body)) {
            self.app.audit.note(Some(&self.identity), word, self.id.as_str(), error.code);
            return refused(error.detail);
        }
        let receipt = match live.submit(&self.identity, id.clone(), body).await {
            Ok(receipt) => receipt,
            Err(error) => {
                self.app.audit.note(Some(&self.identity), word, self.id.as_str(), error.code);
                return refused(error.detail);
            }
        };
        match receipt.answer {
            ReceiptAnswer::Accepted { seq } => {
                self.app.audit.note(Some(&self.identity), word, self.id.as_str(), "accepted");
                Some(json!({ "id": id, "command": word, "accepted": true, "seq": seq }))
            }
            ReceiptAnswer::Refused { reason } => {
                self.app.audit.note(Some(&self.identity), word, self.id.as_str(), &reason);
                refused(reason)
            }
        }
    }
}
