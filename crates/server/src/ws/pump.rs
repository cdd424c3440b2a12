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

use super::incoming::{ClientInput, Incoming};
use super::outgoing::{Sending, Sink, note, push};
use super::said::{ClientMessage, understand};
use super::{Content, Purpose};
use crate::access::{Identity, Role, Standing};
use crate::app::App;
use crate::error::ApiError;
use crate::live::{SessionWork, new_command_id};
use crate::metered::Meter;
use crate::routes::runs;

/// The time for the first message.
const FIRST: Duration = Duration::from_secs(10);
/// A client that is not heard for so long is gone.
const SILENCE: Duration = Duration::from_secs(60);
/// Answers to a client that wait to be sent.
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

    /// The other side is not there any more, so it need not be told.
    pub fn gone() -> Self {
        Self::new(close_code::NORMAL, "")
    }
}

/// Counts a client while it is there.
struct Present(App);

impl Drop for Present {
    fn drop(&mut self) {
        self.0.counts.clients.less();
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
    let _present = Present(app.clone());
    let (mut sink, stream) = socket.split();
    let mut stream = Incoming::new(stream, meter.clone());
    let conversation = async {
        let watched = match purpose {
            Purpose::Attach { id, from, until_end } => {
                Ok(Watched { id, from, until_end, warnings: Vec::new() })
            }
            Purpose::Run | Purpose::Task => begin(&mut stream, &app, &identity, &purpose).await,
        };
        match watched {
            Ok(watched) => talk(&mut sink, stream, &app, &identity, (watched, content)).await,
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
    // A client that is still sending reads why only if it is not cut off in the middle.
    meter.part();
    let reason: String =
        Projector::shown(&goodbye.reason).chars().take(120).filter(|c| c.is_ascii()).collect();
    let close = Message::Close(Some(CloseFrame { code: goodbye.code, reason: reason.into() }));
    let farewell = async {
        let _ = sink.send(close).await;
        // Also where the client said goodbye first: it is answered.
        let _ = sink.close().await;
    };
    let _ = tokio::time::timeout(Duration::from_secs(2), farewell).await;
}

/// The session to show, and the cursor.
struct Watched {
    id: SessionId,
    from: Cursor,
    until_end: bool,
    /// Members of the request that were ignored.
    warnings: Vec<String>,
}

/// Reads the first message and starts what it asks for.
async fn begin(
    stream: &mut Incoming,
    app: &App,
    identity: &Identity,
    purpose: &Purpose,
) -> Result<Watched, (Option<ApiError>, Goodbye)> {
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
    match app.access.standing(identity) {
        Standing::Known => {}
        Standing::Removed => return Err((Some(ApiError::token_removed()), Goodbye::token_removed())),
        Standing::Unreadable => return Err(refused(ApiError::tokens_unreadable())),
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
    let runs::Begun { live, given, warnings } = started.map_err(refused)?;
    app.audit.note(Some(identity), "start", live.id.as_str(), "accepted");
    let from = Cursor::after(Seq(given.0.saturating_sub(1)));
    Ok(Watched { id: live.id.clone(), from, until_end: true, warnings })
}

async fn talk(
    sink: &mut Sink,
    stream: Incoming,
    app: &App,
    identity: &Identity,
    (watched, content): (Watched, Content),
) -> Goodbye {
    for warning in &watched.warnings {
        if let Err(goodbye) = push(sink, note("warning", &json!({ "message": warning }))).await {
            return goodbye;
        }
    }
    let (replies, answers) = mpsc::channel(REPLIES);
    let began = Instant::now();
    let heard = Arc::new(AtomicU64::new(0));
    let listening = Listening {
        app: app.clone(),
        identity: identity.clone(),
        id: watched.id.clone(),
        replies,
        heard: Arc::clone(&heard),
        began,
    };
    let sending = Sending::new(app, identity, watched.id, watched.from, watched.until_end).of(content);
    tokio::select! {
        goodbye = listening.run(stream) => goodbye,
        goodbye = sending.run(sink, answers) => goodbye,
        goodbye = silence(&heard, began) => goodbye,
    }
}

/// The wait of a client that sends more messages than its token may.
const TOO_OFTEN: Duration = Duration::from_millis(20);

/// Ends when nothing was heard of the client for too long.
async fn silence(heard: &AtomicU64, began: Instant) -> Goodbye {
    loop {
        let last = Duration::from_millis(heard.load(Ordering::Relaxed));
        let silent = began.elapsed().saturating_sub(last);
        if silent >= SILENCE {
            return Goodbye::new(close_code::POLICY, "nothing was heard for 60 seconds");
        }
        tokio::time::sleep(SILENCE - silent).await;
    }
}

/// The direction from the client.
struct Listening {
    app: App,
    identity: Identity,
    id: SessionId,
    replies: mpsc::Sender<Message>,
    heard: Arc<AtomicU64>,
    began: Instant,
}

impl Listening {
    async fn run(self, mut stream: Incoming) -> Goodbye {
        loop {
            let heard = match stream.next().await {
                Ok(heard) => heard,
                Err(goodbye) => return goodbye,
            };
            let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.heard.store(now, Ordering::Relaxed);
            let ClientInput::Text(text) = heard else { continue };
            // Messages count as requests do; who sends more of them is read more slowly.
            while !self.app.rates.may(self.identity.key) {
                tokio::time::sleep(TOO_OFTEN).await;
            }
            match self.app.access.standing(&self.identity) {
                Standing::Known => {}
                Standing::Removed => return Goodbye::token_removed(),
                Standing::Unreadable => {
                    let error = ApiError::tokens_unreadable();
                    self.reply("error", &json!({ "message": error.detail, "code": error.code })).await;
                    continue;
                }
            }
            let heard = match understand(&text) {
                Ok(heard) => heard,
                Err(error) if serde_json::from_str::<serde::de::IgnoredAny>(&text).is_err() => {
                    self.reply("error", &json!({ "message": error.detail })).await;
                    return Goodbye::new(close_code::UNSUPPORTED, "a message was not JSON");
                }
                Err(error) => {
                    self.reply("error", &json!({ "message": error.detail })).await;
                    continue;
                }
            };
            let id = match heard.id.map_or_else(new_command_id, Ok) {
                Ok(id) => id,
                Err(error) => {
                    self.reply("error", &json!({ "message": error.detail })).await;
                    continue;
                }
            };
            let receipt = self.obey(id, heard.said).await;
            if let Some(receipt) = receipt {
                self.reply("receipt", &receipt).await;
            }
        }
    }

    async fn reply(&self, kind: &'static str, data: &Value) {
        let _ = self.replies.send(note(kind, data)).await;
    }

    /// Does what was said; none if there is nothing to answer.
    async fn obey(&self, id: CommandId, said: ClientMessage) -> Option<Value> {
        let (opens, word) = (said.opens(), said.word());
        let refused =
            |reason: String| Some(json!({ "id": id, "command": word, "accepted": false, "reason": reason }));
        if said.is_silent() {
            return None;
        }
        if self.identity.role < Role::Operator {
            return refused("this needs a token with the role operator".to_owned());
        }
        let body = match said.command() {
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
                return refused("the session is not open here; send `resume` to go on with it".to_owned());
            }
        };
        if let Err(error) = live.needs.check(&self.identity, SessionWork::of(&body)) {
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
