//! The frames of one session, made once and given to every client that listens.
//!
//! The hub waits for no client: one that falls behind gets a notice and reads the journal again from its cursor. So a
//! client that is stuck costs the agent nothing.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::extract::ws::Utf8Bytes;
use lathe_host::FrameReader;
use lathe_protocol::{Event, Fact, Seq, SessionHandle, SessionId, Update};
use lathe_views::{Cursor, LiveFrames, Projector};
use parking_lot::Mutex;
use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;

/// Frames a listener may lag before it reads the journal again.
const LAG_MAX: usize = 1024;
/// The longest wait of a new client for frames of events that are in the journal already.
const REACH_TIME: Duration = Duration::from_secs(1);
/// Bytes of frames that are kept for listeners that lag; older frames are read from the journal.
const RECENT_MAX: usize = 2 << 20;
/// Events between two stored projections at first; doubled whenever there are too many.
const KEEP_EVERY: u64 = 256;
const KEPT_MAX: usize = 32;

/// One frame on its way to clients.
#[derive(Debug, Clone)]
pub(crate) enum HubMessage {
    Frame {
        kind: &'static str,
        cursor: Cursor,
        /// The frame for every client.
        text: Utf8Bytes,
        /// The frame for clients that may answer the question in it, if it shows more to them.
        exact: Option<Utf8Bytes>,
    },
    /// A live frame; it is in no journal.
    Live { after: Seq, text: Utf8Bytes },
}

pub(crate) struct Hub {
    /// The task that follows the session holds the only strong reference: when the session is closed, listeners
    /// notice.
    sender: broadcast::WeakSender<HubMessage>,
    kept: Arc<Mutex<StoredProjections>>,
    recent: Arc<Mutex<Recent>>,
    running: Arc<AtomicBool>,
    /// The last event whose frames went out.
    seen: watch::Receiver<Seq>,
    task: JoinHandle<()>,
}

/// The last frames, for listeners that lag a little: making a frame again costs more than keeping it.
#[derive(Default)]
struct Recent {
    frames: VecDeque<(Cursor, HubMessage)>,
    bytes: usize,
    /// Everything after this is in `frames`.
    whole_after: Option<Cursor>,
}

impl Recent {
    fn push(&mut self, cursor: Cursor, sent: HubMessage) {
        self.bytes += sent.size();
        self.frames.push_back((cursor, sent));
        while self.bytes > RECENT_MAX
            && let Some((cursor, dropped)) = self.frames.pop_front()
        {
            self.bytes -= dropped.size();
            self.whole_after = Some(cursor);
        }
    }

    fn clear(&mut self) {
        if let Some((cursor, _)) = self.frames.back() {
            self.whole_after = Some(*cursor);
        }
        self.frames = VecDeque::new();
        self.bytes = 0;
    }
}

impl HubMessage {
    fn size(&self) -> usize {
        match self {
            HubMessage::Frame { text, exact, .. } => {
                text.len() + exact.as_ref().map_or(0, |exact| exact.len())
            }
            HubMessage::Live { text, .. } => text.len(),
        }
    }
}

/// Projections of the session at some of its events, so that a returning client need not wait for all of it.
struct StoredProjections {
    every: u64,
    places: Vec<Projector>,
}

impl StoredProjections {
    fn store(&mut self, projector: &Projector) {
        let last = self.places.last().map_or(0, |place| place.last().0);
        if projector.last().0 < last + self.every {
            return;
        }
        self.places.push(projector.clone());
        if self.places.len() > KEPT_MAX {
            let mut odd = false;
            self.places.retain(|_| {
                odd = !odd;
                !odd
            });
            self.every *= 2;
        }
    }
}

impl Hub {
    /// Follows a session from the position of `frames`. `ended` is called with the event when a run ends.
    pub fn follow(
        id: SessionId,
        handle: &dyn SessionHandle,
        frames: FrameReader,
        ended: impl Fn(&Event) + Send + 'static,
    ) -> Self {
        let (sender, _) = broadcast::channel(LAG_MAX);
        let kept = Arc::new(Mutex::new(StoredProjections {
            every: KEEP_EVERY,
            places: vec![frames.projector().clone()],
        }));
        let recent = Arc::new(Mutex::new(Recent {
            whole_after: Some(Cursor::after(frames.last())),
            ..Recent::default()
        }));
        let running = Arc::new(AtomicBool::new(false));
        let (sees, seen) = watch::channel(frames.last());
        let mut updates = handle.subscribe(frames.last());
        let weak = sender.downgrade();
        let (out, places, is_running) = (sender, Arc::clone(&kept), Arc::clone(&running));
        let last_frames = Arc::clone(&recent);
        let task = tokio::spawn(async move {
            let mut frames = frames;
            let mut live = LiveFrames::default();
            while let Some(update) = updates.next().await {
                match update {
                    Update::Event(event) => {
                        match &event.fact {
                            Fact::TaskGiven(_) | Fact::RunResumed(_) | Fact::ModelAsked(_) => {
                                is_running.store(true, Ordering::Relaxed);
                            }
                            Fact::TaskFinished(_) => {
                                is_running.store(false, Ordering::Relaxed);
                                ended(&event);
                            }
                            _ => {}
                        }
                        for text in live.flush(&id, frames.projector()) {
                            let _ = out.send(HubMessage::Live { after: event.seq, text: text.into() });
                        }
                        for frame in frames.take(&event) {
                            let text = Utf8Bytes::from(frame.to_json(&id));
                            let exact = frame.to_exact_json(&id).map(Utf8Bytes::from);
                            let sent =
                                HubMessage::Frame { kind: frame.kind, cursor: frame.cursor, text, exact };
                            last_frames.lock().push(frame.cursor, sent.clone());
                            let _ = out.send(sent);
                        }
                        // An idle session keeps nothing.
                        if matches!(event.fact, Fact::TaskFinished(_)) {
                            last_frames.lock().clear();
                        }
                        places.lock().store(frames.projector());
                        sees.send_replace(event.seq);
                    }
                    // No client listens.
                    Update::Frame(_) if out.receiver_count() == 0 => {}
                    Update::Frame(frame) => {
                        let after = frame.after;
                        if let Some(text) = live.take(frame, &id, frames.projector()) {
                            let _ = out.send(HubMessage::Live { after, text: text.into() });
                        }
                    }
                }
            }
        });
        Self { sender: weak, kept, recent, running, seen, task }
    }

    pub fn listen(&self) -> broadcast::Receiver<HubMessage> {
        // If the session is closed: a receiver that gets nothing but the end.
        self.sender.upgrade().map_or_else(|| broadcast::channel(1).1, |sender| sender.subscribe())
    }

    pub fn listeners(&self) -> usize {
        self.sender.upgrade().map_or(0, |sender| sender.receiver_count())
    }

    pub fn is_running(&self) -> bool {
        self.running.load(Ordering::Relaxed)
    }

    /// Waits briefly until the frames of an event were sent, and returns the last event whose frames were.
    pub async fn wait_until_sent(&self, event: Seq) -> Seq {
        let mut seen = self.seen.clone();
        let reached = seen.wait_for(|seen| *seen >= event);
        let _ = tokio::time::timeout(REACH_TIME, reached).await;
        *self.seen.borrow()
    }

    /// The frames after a cursor, if all of them are still buffered.
    pub fn recent_frames(&self, from: Cursor) -> Option<Vec<HubMessage>> {
        let recent = self.recent.lock();
        if recent.whole_after.is_none_or(|whole| from < whole) {
            return None;
        }
        let first = recent.frames.partition_point(|(cursor, _)| *cursor <= from);
        Some(recent.frames.range(first..).map(|(_, sent)| sent.clone()).collect())
    }

    /// A projection at or before an event.
    pub fn projection_before(&self, seq: Seq) -> Option<Projector> {
        let kept = self.kept.lock();
        kept.places.iter().rev().find(|place| place.last() <= seq).cloned()
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.task.abort();
    }
}
