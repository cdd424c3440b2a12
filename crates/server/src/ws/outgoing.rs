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
use crate::live::{Live, Sent, SessionWork};

/// Between two pings.
const PING: Duration = Duration::from_secs(15);
/// The time within which a client must accept one frame.
const STUCK: Duration = Duration::from_secs(30);
/// Between two looks at a journal that another process writes.
const TAIL: Duration = Duration::from_millis(200);

pub(super) type Sink = SplitSink<WebSocket, Message>;

/// The direction to the client.
pub(super) struct Sending {
    app: App,
    identity: Identity,
    id: SessionId,
    cursor: Cursor,
    until_end: bool,
    content: Content,
    /// The last event that was read ahead of the hub. Up to it only events are sent: of a text or an output that had
    /// begun, this client would see only the end.
    ahead: Seq,
    view: View,
}

/// A reader of the journal, by what the client is sent.
enum JournalReader {
    Frames(Box<FrameReader>),
    Events(Box<EventReader>),
}

impl JournalReader {
    /// Reads on, events not beyond the last one that is named.
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
enum View {
    /// The client may answer: it sees what will run, byte for byte.
    Exact,
    /// The client may only watch: questions are masked by shape like every other frame.
    Masked,
    /// The session is not open here, so that its questions are masked and cannot be answered.
    Unopened,
}

impl View {
    fn of(live: Option<&Live>, identity: &Identity) -> Self {
        match live.map(|live| live.needs.check(identity, SessionWork::Drive)) {
            None => View::Unopened,
            Some(Ok(())) => View::Exact,
            Some(Err(_)) => View::Masked,
        }
    }
}

/// The next action after a frame was sent.
enum Then {
    GoOn,
    /// The run has ended, and with it the connection.
    End,
}

impl Sending {
    /// Sends the frames of a session after a cursor, and with `until_end` nothing after the end of a run.
    pub fn new(app: &App, identity: &Identity, id: SessionId, cursor: Cursor, until_end: bool) -> Self {
        let (app, identity, content) = (app.clone(), identity.clone(), Content::Frames);
        let (ahead, view) = (Seq(0), View::Unopened);
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
            self.view = View::of(live.as_deref(), &self.identity);
            let is_new = was_open.replace(live.is_some()) != Some(live.is_some());
            let went = match live {
                Some(live) => self.follow(sink, &live, is_new, &mut answers, &mut pings).await,
                None => self.tail(sink, &mut answers, &mut pings).await,
            };
            match went {
                Ok(Then::GoOn) => {}
                Ok(Then::End) => {
                    return match self.last_summaries(sink, &mut answers, &mut pings).await {
                        Ok(()) => ended(sink).await,
                        Err(goodbye) => goodbye,
                    };
                }
                Err(goodbye) => return goodbye,
            }
        }
    }

    /// After the end of a run whose steps are summed up: the steps that changed by it. The client that asked for summaries is
    /// there to get the last one too.
    async fn last_summaries(
        &mut self,
        sink: &mut Sink,
        answers: &mut mpsc::Receiver<Message>,
        pings: &mut tokio::time::Interval,
    ) -> Result<(), Goodbye> {
        let Some(live) = self.app.sessions.get(&self.id) else { return Ok(()) };
        let Some(summing) = live.summing() else { return Ok(()) };
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
                // The next run of the session is not what this client asked for.
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
        let recent = match self.content {
            Content::Frames => live.hub.recent(self.cursor),
            Content::Events => None,
        };
        match recent {
            Some(recent) => {
                let mut events = None;
                for sent in recent {
                    if let Then::End = self.pass(sink, sent, &mut events).await? {
                        return Ok(Then::End);
                    }
                }
            }
            None => {
                let mut frames = self.reader(Some(live)).await?;
                if let (Then::End, _) = self.catch_up(sink, &mut frames, None).await? {
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

    /// A session that is not open here, until it is: its journal is read again now and then.
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
            let (then, read) = self.catch_up(sink, &mut frames, None).await?;
            if let Then::End = then {
                return Ok(Then::End);
            }
            let held = self.app.host.archive().is_running(&self.id);
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
        let last = tokio::task::spawn_blocking(move || host.archive().last_seq(&id).ok()).await;
        last.ok().flatten().unwrap_or_default()
    }

    async fn tell_status(&self, sink: &mut Sink, shown: Option<Seq>) -> Result<(), Goodbye> {
        let status = self.status(shown).await;
        push(sink, note("status", &status)).await
    }

    async fn reader(&self, live: Option<&Live>) -> Result<JournalReader, Goodbye> {
        let near = live.and_then(|live| live.hub.near(Seq(self.cursor.seq.0.saturating_sub(1))));
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

    /// Sends what the journal has, and says whether that was anything.
    async fn catch_up(
        &mut self,
        sink: &mut Sink,
        frames: &mut JournalReader,
        up_to: Option<Seq>,
    ) -> Result<(Then, bool), Goodbye> {
        let mut any = false;
        loop {
            let read = frames.read(&self.app.host, up_to);
            let (read, more) = read.map_err(|error| Goodbye::new(close_code::ERROR, error.to_string()))?;
            for frame in read {
                if frame.cursor <= self.cursor {
                    continue;
                }
                let exact = frame.to_exact_json(&self.id);
                // The session was opened here meanwhile: this question may be open, and is shown to those who may answer it.
                if exact.is_some() && self.view == View::Unopened && self.app.sessions.get(&self.id).is_some()
                {
                    flush(sink).await?;
                    return Ok((Then::GoOn, any));
                }
                any = true;
                self.cursor = frame.cursor;
                let exact = exact.filter(|_| self.view == View::Exact);
                let text = exact.unwrap_or_else(|| frame.to_json(&self.id));
                feed(sink, Message::Text(text.into())).await?;
                self.app.counts.frames.add(1);
                if frame.edge == Some(RunEdge::End) && self.until_end {
                    return Ok((Then::End, any));
                }
            }
            if !more {
                if up_to.is_none() {
                    self.ahead = self.cursor.seq;
                }
                flush(sink).await?;
                return Ok((Then::GoOn, any));
            }
        }
    }

    /// Sends the hub's frames until this client lags or the session is closed.
    async fn listen(
        &mut self,
        sink: &mut Sink,
        mut hub: broadcast::Receiver<Sent>,
        answers: &mut mpsc::Receiver<Message>,
        pings: &mut tokio::time::Interval,
    ) -> Result<Then, Goodbye> {
        let mut events = None;
        loop {
            tokio::select! {
                sent = hub.recv() => match sent {
                    Ok(sent) => {
                        if let Then::End = self.pass(sink, sent, &mut events).await? {
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

    /// Passes on what the hub tells. `events` is the reader that events are read by, once there is one.
    async fn pass(
        &mut self,
        sink: &mut Sink,
        sent: Sent,
        events: &mut Option<JournalReader>,
    ) -> Result<Then, Goodbye> {
        match sent {
            Sent::Frame { cursor, .. } if cursor <= self.cursor => Ok(Then::GoOn),
            // The frame says how far the session is.
            Sent::Frame { cursor, .. } if self.content == Content::Events => {
                let mut reading = match events.take() {
                    Some(reading) if reading.last() == self.cursor.seq => reading,
                    Some(_) | None => self.reader(None).await?,
                };
                let (then, _) = self.catch_up(sink, &mut reading, Some(cursor.seq)).await?;
                *events = Some(reading);
                Ok(then)
            }
            Sent::Live { after, .. } if self.content == Content::Events && after <= self.ahead => {
                Ok(Then::GoOn)
            }
            Sent::Frame { kind, cursor, text, exact } => {
                self.cursor = cursor;
                let exact = exact.filter(|_| self.view == View::Exact);
                feed(sink, Message::Text(exact.unwrap_or(text))).await?;
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
