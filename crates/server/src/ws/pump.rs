//! One connection: two tasks, one for each direction.
//!
//! Frames go out as fast as this client takes them. A client that falls behind what the hub keeps reads the journal again
//! from its cursor, by the same code that serves one who has just come.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use futures::stream::SplitSink;
use futures::{SinkExt, StreamExt};
use lathe_host::{Cursor, FrameReader, SessionState};
use lathe_protocol::{CommandId, ReceiptAnswer, Seq, SessionId, json_text};
use serde_json::{Value, json};
use tokio::sync::{broadcast, mpsc};

use super::Purpose;
use super::incoming::{Heard, Incoming};
use super::said::{Said, understand};
use crate::access::{Identity, Role, random};
use crate::app::App;
use crate::error::ApiError;
use crate::live::{Live, Sent, SessionWork};
use crate::metered::Meter;
use crate::routes::runs;

/// How long the first message may take.
const FIRST: Duration = Duration::from_secs(10);
/// Between two pings.
const PING: Duration = Duration::from_secs(15);
/// A client that is not heard for so long is gone.
const SILENCE: Duration = Duration::from_secs(60);
/// How long one frame may take to be taken.
const STUCK: Duration = Duration::from_secs(30);
/// Between two looks at a journal that another process writes.
const TAIL: Duration = Duration::from_millis(200);
/// Answers to a client that wait to be sent.
const REPLIES: usize = 64;

type Sink = SplitSink<WebSocket, Message>;

/// Why a connection ends.
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

pub(super) async fn serve(socket: WebSocket, meter: Meter, app: App, identity: Identity, purpose: Purpose) {
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
            Ok(watched) => talk(&mut sink, stream, &app, &identity, watched).await,
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
    let reason: String = goodbye.reason.chars().take(120).filter(|c| c.is_ascii()).collect();
    let close = Message::Close(Some(CloseFrame { code: goodbye.code, reason: reason.into() }));
    let farewell = async {
        let _ = sink.send(close).await;
        // Also where the client said goodbye first: it is answered.
        let _ = sink.close().await;
    };
    let _ = tokio::time::timeout(Duration::from_secs(2), farewell).await;
}

/// What is looked at, and from where.
struct Watched {
    id: SessionId,
    from: Cursor,
    until_end: bool,
    /// What of the request meant nothing here.
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
                Ok(Heard::Text(text)) => return Ok(text),
                Ok(Heard::Life) => {}
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
    if !app.access.still(identity) {
        return Err((Some(ApiError::token_removed()), Goodbye::token_removed()));
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
    watched: Watched,
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
    let sending =
        Sending { app: app.clone(), id: watched.id, cursor: watched.from, until_end: watched.until_end };
    tokio::select! {
        goodbye = listening.run(stream) => goodbye,
        goodbye = sending.run(sink, answers) => goodbye,
        goodbye = silence(&heard, began) => goodbye,
    }
}

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
            let Heard::Text(text) = heard else { continue };
            if !self.app.access.still(&self.identity) {
                return Goodbye::token_removed();
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
            let id = heard.id.unwrap_or_else(|| CommandId::new(random().unwrap_or_default()));
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
    async fn obey(&self, id: CommandId, said: Said) -> Option<Value> {
        let (opens, word) = (said.opens(), format!("{said:?}"));
        let word = word.split([' ', '{']).next().unwrap_or_default().to_lowercase();
        let refused =
            |reason: String| Some(json!({ "id": id, "command": word, "accepted": false, "reason": reason }));
        let flaw = said.flaw();
        let body = said.command()?;
        if self.identity.role < Role::Operator {
            return refused("this needs a token with the role operator".to_owned());
        }
        if let Some(flaw) = flaw {
            return refused(flaw.to_owned());
        }
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
            self.app.audit.note(Some(&self.identity), &word, self.id.as_str(), error.code);
            return refused(error.detail);
        }
        if let Some(reason) = live.objection(&id, &body) {
            return refused(reason);
        }
        let receipt = match live.submit(&self.identity, id.clone(), body).await {
            Ok(receipt) => receipt,
            Err(error) => {
                self.app.audit.note(Some(&self.identity), &word, self.id.as_str(), error.code);
                return refused(error.detail);
            }
        };
        match receipt.answer {
            ReceiptAnswer::Accepted { seq } => {
                self.app.audit.note(Some(&self.identity), &word, self.id.as_str(), "accepted");
                Some(json!({ "id": id, "command": word, "accepted": true, "seq": seq }))
            }
            ReceiptAnswer::Refused { reason } => {
                self.app.audit.note(Some(&self.identity), &word, self.id.as_str(), &reason);
                refused(reason)
            }
        }
    }
}

/// The direction to the client.
struct Sending {
    app: App,
    id: SessionId,
    cursor: Cursor,
    until_end: bool,
}

/// What to do after something was sent.
enum Then {
    GoOn,
    /// The run has ended, and with it the connection.
    End,
}

impl Sending {
    async fn run(mut self, sink: &mut Sink, mut answers: mpsc::Receiver<Message>) -> Goodbye {
        let mut pings = tokio::time::interval(PING);
        pings.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut was_open = None;
        loop {
            let live = self.app.sessions.get(&self.id);
            let is_new = was_open.replace(live.is_some()) != Some(live.is_some());
            let went = match live {
                Some(live) => self.follow(sink, &live, is_new, &mut answers, &mut pings).await,
                None => self.tail(sink, &mut answers, &mut pings).await,
            };
            match went {
                Ok(Then::GoOn) => {}
                Ok(Then::End) => return ended(sink).await,
                Err(goodbye) => return goodbye,
            }
        }
    }

    /// A session that is open here, until this client has fallen behind or the session is closed.
    async fn follow(
        &mut self,
        sink: &mut Sink,
        live: &Live,
        is_new: bool,
        answers: &mut mpsc::Receiver<Message>,
        pings: &mut tokio::time::Interval,
    ) -> Result<Then, Goodbye> {
        // Listening begins before anything is read, so nothing falls between.
        let hub = live.hub.listen();
        let mut shown = match is_new {
            true => live.hub.reach(self.written().await).await,
            false => Seq::default(),
        };
        match live.hub.recent(self.cursor) {
            Some(recent) => {
                for sent in recent {
                    if let Then::End = self.pass(sink, sent).await? {
                        return Ok(Then::End);
                    }
                }
            }
            None => {
                let mut frames = self.reader(Some(live)).await?;
                if let (Then::End, _) = self.catch_up(sink, &mut frames).await? {
                    return Ok(Then::End);
                }
                shown = shown.max(frames.last());
            }
        }
        if is_new {
            self.tell_status(sink, Some(shown)).await?;
        }
        flush(sink).await?;
        self.listen(sink, hub, answers, pings).await
    }

    /// A session that is not open here, until it is: its journal is read, and looked at again now and then.
    async fn tail(
        &mut self,
        sink: &mut Sink,
        answers: &mut mpsc::Receiver<Message>,
        pings: &mut tokio::time::Interval,
    ) -> Result<Then, Goodbye> {
        let app = self.app.clone();
        let mut frames = self.reader(None).await?;
        let (mut told, mut was_held) = (false, false);
        while self.app.sessions.get(&self.id).is_none() {
            let opened = app.sessions.opened();
            let (then, read) = self.catch_up(sink, &mut frames).await?;
            if let Then::End = then {
                return Ok(Then::End);
            }
            let held = self.app.host.is_running(&self.id);
            if !told || read || held != was_held {
                self.tell_status(sink, None).await?;
                (told, was_held) = (true, held);
            }
            tokio::select! {
                () = opened => {}
                () = tokio::time::sleep(TAIL) => {}
                _ = pings.tick() => ping(sink).await?,
                Some(answer) = answers.recv() => push(sink, answer).await?,
            }
        }
        Ok(Then::GoOn)
    }

    /// The last event that the journal has.
    async fn written(&self) -> Seq {
        let (host, id) = (Arc::clone(&self.app.host), self.id.clone());
        let last = tokio::task::spawn_blocking(move || host.last_seq(&id).ok()).await;
        last.ok().flatten().unwrap_or_default()
    }

    async fn tell_status(&self, sink: &mut Sink, shown: Option<Seq>) -> Result<(), Goodbye> {
        let status = self.status(shown).await;
        push(sink, note("status", &status)).await
    }

    async fn reader(&self, live: Option<&Live>) -> Result<FrameReader, Goodbye> {
        let near = live.and_then(|live| live.hub.near(Seq(self.cursor.seq.0.saturating_sub(1))));
        let (host, id, cursor) = (Arc::clone(&self.app.host), self.id.clone(), self.cursor);
        let opened = tokio::task::spawn_blocking(move || host.frames(&id, cursor, near)).await;
        match opened {
            Ok(Ok(frames)) => Ok(frames),
            Ok(Err(error)) => Err(Goodbye::new(close_code::ERROR, error.to_string())),
            Err(_) => Err(Goodbye::new(close_code::ERROR, "the journal cannot be read")),
        }
    }

    /// Sends what the journal has, and says whether that was anything.
    async fn catch_up(&mut self, sink: &mut Sink, frames: &mut FrameReader) -> Result<(Then, bool), Goodbye> {
        let mut any = false;
        loop {
            let read = tokio::task::block_in_place(|| frames.read());
            let (read, more) = read.map_err(|error| Goodbye::new(close_code::ERROR, error.to_string()))?;
            for frame in read {
                if frame.cursor <= self.cursor {
                    continue;
                }
                any = true;
                self.cursor = frame.cursor;
                feed(sink, Message::Text(frame.to_json(&self.id).into())).await?;
                self.app.counts.frames.add(1);
                if frame.kind == "end" && self.until_end {
                    return Ok((Then::End, any));
                }
            }
            if !more {
                flush(sink).await?;
                return Ok((Then::GoOn, any));
            }
        }
    }

    /// Sends what the hub tells, until this client has fallen behind or the session is closed.
    async fn listen(
        &mut self,
        sink: &mut Sink,
        mut hub: broadcast::Receiver<Sent>,
        answers: &mut mpsc::Receiver<Message>,
        pings: &mut tokio::time::Interval,
    ) -> Result<Then, Goodbye> {
        loop {
            tokio::select! {
                sent = hub.recv() => match sent {
                    Ok(sent) => {
                        if let Then::End = self.pass(sink, sent).await? {
                            return Ok(Then::End);
                        }
                        if hub.is_empty() {
                            flush(sink).await?;
                        }
                    }
                    Err(broadcast::error::RecvError::Lagged(_)) => return Ok(Then::GoOn),
                    Err(broadcast::error::RecvError::Closed) => {
                        // The session is closed here; it may be opened again.
                        tokio::time::sleep(TAIL).await;
                        return Ok(Then::GoOn);
                    }
                },
                Some(answer) = answers.recv() => push(sink, answer).await?,
                _ = pings.tick() => ping(sink).await?,
            }
        }
    }

    async fn pass(&mut self, sink: &mut Sink, sent: Sent) -> Result<Then, Goodbye> {
        match sent {
            Sent::Frame { cursor, .. } if cursor <= self.cursor => Ok(Then::GoOn),
            Sent::Frame { kind, cursor, text } => {
                self.cursor = cursor;
                feed(sink, Message::Text(text)).await?;
                self.app.counts.frames.add(1);
                Ok(if kind == "end" && self.until_end { Then::End } else { Then::GoOn })
            }
            // What the journal has already told needs no announcement.
            Sent::Live { after, .. } if after < self.cursor.seq => Ok(Then::GoOn),
            Sent::Live { text, .. } => {
                feed(sink, Message::Text(text)).await?;
                Ok(Then::GoOn)
            }
        }
    }

    /// How the session stands, for one who has just caught up; of one that is open here, with the last event that was
    /// shown. It never tells the end of a run whose frames are still to come.
    async fn status(&self, shown: Option<Seq>) -> Value {
        // Before the journal is looked at: a run that ends meanwhile would look like one that stands still.
        let is_at_work = self.is_at_work();
        let (host, id) = (Arc::clone(&self.app.host), self.id.clone());
        let looked = tokio::task::spawn_blocking(move || (host.state(&id), host.last_seq(&id).ok())).await;
        let (state, last) = looked.unwrap_or_default();
        let is_moving = shown.is_some_and(|shown| last.is_some_and(|last| last > shown));
        let running_here = shown.is_some() && state == Some(SessionState::Running);
        let parked = state == Some(SessionState::Interrupted) || (running_here && !is_at_work);
        let word = match state {
            _ if is_moving => SessionState::Running.as_str(),
            _ if parked => "parked",
            Some(state) => state.as_str(),
            None => "unknown",
        };
        json!({
            "session_id": self.id,
            "state": word,
            "open": shown.is_some(),
            "cursor": self.cursor.to_string(),
        })
    }

    fn is_at_work(&self) -> bool {
        self.app.sessions.get(&self.id).is_some_and(|live| live.hub.is_running())
    }
}

/// Trae's server waits a moment before it closes, so that the last frame is read.
async fn ended(sink: &mut Sink) -> Goodbye {
    let _ = flush(sink).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    Goodbye::new(close_code::NORMAL, "done")
}

/// A frame that is in no journal.
fn note(kind: &str, data: &Value) -> Message {
    Message::Text(json_text(&json!({ "type": kind, "data": data })).into())
}

async fn ping(sink: &mut Sink) -> Result<(), Goodbye> {
    let now = jiff::Timestamp::now().to_string();
    feed(sink, Message::Text(json!({ "type": "ping", "data": now }).to_string().into())).await?;
    push(sink, Message::Ping(axum::body::Bytes::new())).await
}

async fn push(sink: &mut Sink, message: Message) -> Result<(), Goodbye> {
    feed(sink, message).await?;
    flush(sink).await
}

async fn feed(sink: &mut Sink, message: Message) -> Result<(), Goodbye> {
    in_time(sink.feed(message)).await
}

async fn flush(sink: &mut Sink) -> Result<(), Goodbye> {
    in_time(sink.flush()).await
}

async fn in_time(sending: impl Future<Output = Result<(), axum::Error>>) -> Result<(), Goodbye> {
    match tokio::time::timeout(STUCK, sending).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(Goodbye::gone()),
        Err(_) => Err(Goodbye::new(close_code::AGAIN, "frames were not taken for 30 seconds")),
    }
}
