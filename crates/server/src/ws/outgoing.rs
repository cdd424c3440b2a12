//! Messages to a client: the frames of its session, and the receipts of its commands.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{Message, WebSocket, close_code};
use futures::SinkExt;
use futures::stream::SplitSink;
use lathe_host::{EventReader, FrameReader, Host, HostError, blocking};
use lathe_protocol::{Seq, SessionId, SessionState};
use lathe_views::{Cursor, RunEdge, WireFrame, wire_json};
use serde_json::{Value, json};
use tokio::sync::{broadcast, mpsc};

use super::Content;
use super::pump::Goodbye;
use crate::access::Identity;
use crate::app::App;
use crate::live::{HubMessage, LiveSession, SessionWork};

/// The interval between two pings.
const PING: Duration = Duration::from_secs(15);
/// The time within which a client must accept one frame.
const STUCK: Duration = Duration::from_secs(30);
/// The interval between two reads of a journal that another process writes.
const TAIL: Duration = Duration::from_millis(200);

pub(super) type Sink = SplitSink<WebSocket, Message>;

/// The direction to the client.
pub(super) struct FrameSender {
    app: App,
    identity: Identity,
    id: SessionId,
    cursor: Cursor,
    until_end: bool,
    content: Content,
    /// The last event that was read ahead of the hub. Up to it only events are sent: of a text or an output that had
    /// begun, this client would see only the end.
    ahead: Seq,
    view: QuestionView,
}

/// A reader of the journal, by what the client is sent.
enum JournalReader {
    Frames(Box<FrameReader>),
    Events(Box<EventReader>),
}

impl JournalReader {
    /// Reads on. Events are not read beyond the one that is named.
    fn read(&mut self, host: &Host, up_to: Option<Seq>) -> Result<(Vec<WireFrame>, bool), HostError> {
        blocking(|| match self {
            JournalReader::Frames(frames) => frames.read(),
            JournalReader::Events(events) => events.read(host.archive(), up_to),
        })
    }

    fn last(&self) -> Seq {
        match self {
            JournalReader::Frames(frames) => frames.last(),
            JournalReader::Events(events) => events.last(),
        }
    }
}

/// The detail in which this client sees questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QuestionView {
    /// The client may answer: it sees what will run, byte for byte.
    Exact,
    /// The client may only watch: questions are masked by shape like every other frame.
    Masked,
    /// The session is not open here, so that its questions are masked and cannot be answered.
    Unopened,
}

impl QuestionView {
    fn of(live: Option<&LiveSession>, identity: &Identity) -> Self {
        match live.map(|live| live.role_needs.check(identity, SessionWork::Drive)) {
            None => QuestionView::Unopened,
            Some(Ok(())) => QuestionView::Exact,
            Some(Err(_)) => QuestionView::Masked,
        }
    }
}

/// The next action after a frame was sent.
enum NextAction {
    Continue,
    /// The run has ended, and with it the connection.
    End,
}

impl FrameSender {
    /// Sends the frames of a session after a cursor, and with `until_end` nothing after the end of a run.
    pub fn new(app: &App, identity: &Identity, id: SessionId, cursor: Cursor, until_end: bool) -> Self {
        let (app, identity, content) = (app.clone(), identity.clone(), Content::Frames);
        let (ahead, view) = (Seq(0), QuestionView::Unopened);
        Self { app, identity, id, cursor, until_end, content, ahead, view }
    }

    pub fn of(self, content: Content) -> Self {
        Self { content, ..self }
    }

    pub async fn run(mut self, sink: &mut Sink, mut answers: mpsc::Receiver<Message>) -> Goodbye {
        let mut pings = tokio::time::interval(PING);
        pings.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut was_open = None;
        loop {
            let live = self.app.sessions.get(&self.id);
            self.view = QuestionView::of(live.as_deref(), &self.identity);
            let is_new = was_open.replace(live.is_some()) != Some(live.is_some());
            let next = match live {
                Some(live) => self.follow(sink, &live, is_new, &mut answers, &mut pings).await,
                None => self.tail(sink, &mut answers, &mut pings).await,
            };
            match next {
                Ok(NextAction::Continue) => {}
                Ok(NextAction::End) => {
                    return match self.last_summaries(sink, &mut answers, &mut pings).await {
                        Ok(()) => ended(sink).await,
                        Err(goodbye) => goodbye,
                    };
                }
                Err(goodbye) => return goodbye,
            }
        }
    }

    /// Sends the steps that changed after the end of a run because they were summarised. A client that asked for
    /// summaries stays connected for the last one too.
    async fn last_summaries(
        &mut self,
        sink: &mut Sink,
        answers: &mut mpsc::Receiver<Message>,
        pings: &mut tokio::time::Interval,
    ) -> Result<(), Goodbye> {
        let Some(live) = self.app.sessions.get(&self.id) else { return Ok(()) };
        let Some(summing) = live.summary_progress() else { return Ok(()) };
        flush(sink).await?;
        let mut summed_up = pin!(summing.reach(self.cursor.seq));
        loop {
            tokio::select! {
                () = &mut summed_up => break,
                Some(answer) = answers.recv() => push(sink, answer).await?,
                _ = pings.tick() => ping(sink).await?,
            }
        }
        let mut frames = self.reader(Some(&live)).await?;
        loop {
            let read = frames.read(&self.app.host, None);
            let (read, more) = read.map_err(|error| Goodbye::new(close_code::ERROR, error.to_string()))?;
            for frame in read {
                if frame.cursor <= self.cursor {
                    continue;
                }
                // The client did not ask for the next run of the session.
                let is_other = match self.content {
                    Content::Frames => frame.kind != "step",
                    Content::Events => frame.edge.is_some(),
                };
                if is_other {
                    return Ok(());
                }
                self.cursor = frame.cursor;
                feed(sink, Message::Text(frame.to_json(&self.id).into())).await?;
                self.app.counts.frames.add(1);
            }
            if !more {
                return Ok(());
            }
        }
    }

    /// A session that is open here, until this client lags or the session is closed.
    async fn follow(
        &mut self,
        sink: &mut Sink,
        live: &LiveSession,
        is_new: bool,
        answers: &mut mpsc::Receiver<Message>,
        pings: &mut tokio::time::Interval,
    ) -> Result<NextAction, Goodbye> {
        // Listening begins before anything is read, so nothing falls between.
        let hub = live.hub.listen();
        let mut shown = match is_new {
            true => live.hub.wait_until_sent(self.last_event().await).await,
            false => Seq::default(),
        };
        let recent = match self.content {
            Content::Frames => live.hub.recent_frames(self.cursor),
            Content::Events => None,
        };
        match recent {
            Some(recent) => {
                let mut events = None;
                for sent in recent {
                    if let NextAction::End = self.forward(sink, sent, &mut events).await? {
                        return Ok(NextAction::End);
                    }
                }
            }
            None => {
                let mut frames = self.reader(Some(live)).await?;
                if let (NextAction::End, _) = self.catch_up(sink, &mut frames, None).await? {
                    return Ok(NextAction::End);
                }
                shown = shown.max(frames.last());
            }
        }
        if is_new {
            self.send_status(sink, Some(shown)).await?;
        }
        flush(sink).await?;
        self.send_hub_frames(sink, hub, answers, pings).await
    }

    /// A session that is not open here, until it is: its journal is read again now and then.
    async fn tail(
        &mut self,
        sink: &mut Sink,
        answers: &mut mpsc::Receiver<Message>,
        pings: &mut tokio::time::Interval,
    ) -> Result<NextAction, Goodbye> {
        let app = self.app.clone();
        let mut frames = self.reader(None).await?;
        let (mut was_sent, mut was_held) = (false, false);
        while self.app.sessions.get(&self.id).is_none() {
            let opened = app.sessions.opened();
            let (then, read) = self.catch_up(sink, &mut frames, None).await?;
            if let NextAction::End = then {
                return Ok(NextAction::End);
            }
            let held = self.app.host.archive().is_running(&self.id);
            if !was_sent || read || held != was_held {
                self.send_status(sink, None).await?;
                (was_sent, was_held) = (true, held);
            }
            tokio::select! {
                () = opened => {}
                () = tokio::time::sleep(TAIL) => {}
                _ = pings.tick() => ping(sink).await?,
                Some(answer) = answers.recv() => push(sink, answer).await?,
            }
        }
        Ok(NextAction::Continue)
    }

    /// The last event in the journal.
    async fn last_event(&self) -> Seq {
        let (host, id) = (Arc::clone(&self.app.host), self.id.clone());
        let last = tokio::task::spawn_blocking(move || host.archive().last_seq(&id).ok()).await;
        last.ok().flatten().unwrap_or_default()
    }

    async fn send_status(&self, sink: &mut Sink, shown: Option<Seq>) -> Result<(), Goodbye> {
        let status = self.status(shown).await;
        push(sink, note("status", &status)).await
    }

    async fn reader(&self, live: Option<&LiveSession>) -> Result<JournalReader, Goodbye> {
        let near = live.and_then(|live| live.hub.projection_before(Seq(self.cursor.seq.0.saturating_sub(1))));
        let (host, id, cursor, content) =
            (Arc::clone(&self.app.host), self.id.clone(), self.cursor, self.content);
        let opened = tokio::task::spawn_blocking(move || match content {
            Content::Frames => {
                host.archive().frames(&id, cursor, near).map(|frames| JournalReader::Frames(Box::new(frames)))
            }
            Content::Events => host
                .archive()
                .event_reader(&id, cursor.seq)
                .map(|events| JournalReader::Events(Box::new(events))),
        })
        .await;
        match opened {
            Ok(Ok(frames)) => Ok(frames),
            Ok(Err(error)) => Err(Goodbye::new(close_code::ERROR, error.to_string())),
            Err(_) => Err(Goodbye::new(close_code::ERROR, "the journal cannot be read")),
        }
    }

    /// Sends the rest of the journal, and returns whether there was any.
    async fn catch_up(
        &mut self,
        sink: &mut Sink,
        frames: &mut JournalReader,
        up_to: Option<Seq>,
    ) -> Result<(NextAction, bool), Goodbye> {
        let mut any = false;
        loop {
            let read = frames.read(&self.app.host, up_to);
            let (read, more) = read.map_err(|error| Goodbye::new(close_code::ERROR, error.to_string()))?;
            for frame in read {
                if frame.cursor <= self.cursor {
                    continue;
                }
                let exact = frame.to_exact_json(&self.id);
                // The session was opened here meanwhile: this question may be open, and is shown to clients that may
                // answer it.
                if exact.is_some()
                    && self.view == QuestionView::Unopened
                    && self.app.sessions.get(&self.id).is_some()
                {
                    flush(sink).await?;
                    return Ok((NextAction::Continue, any));
                }
                any = true;
                self.cursor = frame.cursor;
                let exact = exact.filter(|_| self.view == QuestionView::Exact);
                let text = exact.unwrap_or_else(|| frame.to_json(&self.id));
                feed(sink, Message::Text(text.into())).await?;
                self.app.counts.frames.add(1);
                if frame.edge == Some(RunEdge::End) && self.until_end {
                    return Ok((NextAction::End, any));
                }
            }
            if !more {
                if up_to.is_none() {
                    self.ahead = self.cursor.seq;
                }
                flush(sink).await?;
                return Ok((NextAction::Continue, any));
            }
        }
    }

    /// Sends the hub's frames until this client lags or the session is closed.
    async fn send_hub_frames(
        &mut self,
        sink: &mut Sink,
        mut hub: broadcast::Receiver<HubMessage>,
        answers: &mut mpsc::Receiver<Message>,
        pings: &mut tokio::time::Interval,
    ) -> Result<NextAction, Goodbye> {
        let mut events = None;
        loop {
            tokio::select! {
                sent = hub.recv() => match sent {
                    Ok(sent) => {
                        if let NextAction::End = self.forward(sink, sent, &mut events).await? {
                            return Ok(NextAction::End);
                        }
                        if hub.is_empty() {
                            flush(sink).await?;
                        }
                    }
                    Err(broadcast::error::RecvError::Lagged(_)) => return Ok(NextAction::Continue),
                    Err(broadcast::error::RecvError::Closed) => {
                        // The session is closed here; it may be opened again.
                        tokio::time::sleep(TAIL).await;
                        return Ok(NextAction::Continue);
                    }
                },
                Some(answer) = answers.recv() => push(sink, answer).await?,
                _ = pings.tick() => ping(sink).await?,
            }
        }
    }

    /// Passes on a message of the hub. `events` is the reader of the events, once there is one.
    async fn forward(
        &mut self,
        sink: &mut Sink,
        sent: HubMessage,
        events: &mut Option<JournalReader>,
    ) -> Result<NextAction, Goodbye> {
        match sent {
            HubMessage::Frame { cursor, .. } if cursor <= self.cursor => Ok(NextAction::Continue),
            // The frame only shows how far the session is.
            HubMessage::Frame { cursor, .. } if self.content == Content::Events => {
                let mut reading = match events.take() {
                    Some(reading) if reading.last() == self.cursor.seq => reading,
                    Some(_) | None => self.reader(None).await?,
                };
                let (then, _) = self.catch_up(sink, &mut reading, Some(cursor.seq)).await?;
                *events = Some(reading);
                Ok(then)
            }
            HubMessage::Live { after, .. } if self.content == Content::Events && after <= self.ahead => {
                Ok(NextAction::Continue)
            }
            HubMessage::Frame { kind, cursor, text, exact } => {
                self.cursor = cursor;
                let exact = exact.filter(|_| self.view == QuestionView::Exact);
                feed(sink, Message::Text(exact.unwrap_or(text))).await?;
                self.app.counts.frames.add(1);
                Ok(if kind == "end" && self.until_end { NextAction::End } else { NextAction::Continue })
            }
            // The client already has the events that this frame announces.
            HubMessage::Live { after, .. } if after < self.cursor.seq => Ok(NextAction::Continue),
            HubMessage::Live { text, .. } => {
                feed(sink, Message::Text(text)).await?;
                Ok(NextAction::Continue)
            }
        }
    }

    /// The state of the session for a client that has caught up; of an open session, with the last event that was
    /// shown. It never reports the end of a run whose frames are still to come.
    async fn status(&self, shown: Option<Seq>) -> Value {
        // Before the journal is read: a run that ends meanwhile would look like one that stands still.
        let is_at_work = self.is_at_work();
        let (host, id) = (Arc::clone(&self.app.host), self.id.clone());
        let looked = tokio::task::spawn_blocking(move || {
            (host.archive().state(&id), host.archive().last_seq(&id).ok())
        })
        .await;
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
pub(super) fn note(kind: &str, data: &Value) -> Message {
    Message::Text(wire_json(&json!({ "type": kind, "data": data })).into())
}

async fn ping(sink: &mut Sink) -> Result<(), Goodbye> {
    let now = jiff::Timestamp::now().to_string();
    feed(sink, Message::Text(json!({ "type": "ping", "data": now }).to_string().into())).await?;
    push(sink, Message::Ping(axum::body::Bytes::new())).await
}

pub(super) async fn push(sink: &mut Sink, message: Message) -> Result<(), Goodbye> {
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
