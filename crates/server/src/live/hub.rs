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
const BEHIND: usize = 1024;
/// The longest wait of a new client for frames of events that are in the journal already.
const REACH: Duration = Duration::from_secs(1);
/// Bytes of frames that are kept for listeners that lag; older frames are read from the journal.
const RECENT_MAX: usize = 2 << 20;
/// Events between two places where the projection is kept, at first; doubled whenever there are too many.
const KEEP_EVERY: u64 = 256;
const KEPT_MAX: usize = 32;

/// One frame on its way to clients.
#[derive(Debug, Clone)]
pub(crate) enum Sent {
    Frame {
        kind: &'static str,
        cursor: Cursor,
        /// The frame for every client.
        text: Utf8Bytes,
        /// The frame for clients that may answer the question in it, where that shows more.
        exact: Option<Utf8Bytes>,
    },
    /// A live frame; it is in no journal.
    Live { after: Seq, text: Utf8Bytes },
}

pub(crate) struct Hub {
    /// The task that follows the session holds the only strong reference: when the session is closed, listeners
    /// notice.
    sender: broadcast::WeakSender<Sent>,
    kept: Arc<Mutex<KeptProjections>>,
    recent: Arc<Mutex<Recent>>,
    running: Arc<AtomicBool>,
    /// The last event whose frames went out.
    seen: watch::Receiver<Seq>,
    task: JoinHandle<()>,
}

/// The last frames, for listeners that lag a little: making a frame again costs more than keeping it.
#[derive(Default)]
struct Recent {
    frames: VecDeque<(Cursor, Sent)>,
    bytes: usize,
    /// Everything after this is in `frames`.
    whole_after: Option<Cursor>,
}

impl Recent {
    fn push(&mut self, cursor: Cursor, sent: Sent) {
        self.bytes += sent.size();
        self.frames.push_back((cursor, sent));
        while self.bytes > RECENT_MAX
            && let Some((cursor, dropped)) = self.frames.pop_front()
        {
            self.bytes -= dropped.size();
            self.whole_after = Some(cursor);
        }
    }

    fn forget(&mut self) {
        if let Some((cursor, _)) = self.frames.back() {
            self.whole_after = Some(*cursor);
        }
        self.frames = VecDeque::new();
        self.bytes = 0;
    }
}

impl Sent {
    fn size(&self) -> usize {
        match self {
            Sent::Frame { text, exact, .. } => text.len() + exact.as_ref().map_or(0, |exact| exact.len()),
            Sent::Live { text, .. } => text.len(),
        }
    }
}

/// Projections of the session as it was at some places, so that a client that comes back need not wait for all of it.
struct KeptProjections {
    every: u64,
    places: Vec<Projector>,
}

impl KeptProjections {
    fn keep(&mut self, projector: &Projector) {
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
    /// Follows a session from where `frames` stands. `ended` is called with the event when a run ends.
    pub fn follow(
        id: SessionId,
        handle: &dyn SessionHandle,
        frames: FrameReader,
        ended: impl Fn(&Event) + Send + 'static,
    ) -> Self {
        let (sender, _) = broadcast::channel(BEHIND);
        let kept = Arc::new(Mutex::new(KeptProjections {
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
                            let _ = out.send(Sent::Live { after: event.seq, text: text.into() });
                        }
                        for frame in frames.take(&event) {
                            let text = Utf8Bytes::from(frame.to_json(&id));
                            let exact = frame.to_exact_json(&id).map(Utf8Bytes::from);
                            let sent = Sent::Frame { kind: frame.kind, cursor: frame.cursor, text, exact };
                            last_frames.lock().push(frame.cursor, sent.clone());
                            let _ = out.send(sent);
                        }
                        // A session that stands still keeps nothing.
                        if matches!(event.fact, Fact::TaskFinished(_)) {
                            last_frames.lock().forget();
                        }
                        places.lock().keep(frames.projector());
                        sees.send_replace(event.seq);
                    }
                    // No client listens.
                    Update::Frame(_) if out.receiver_count() == 0 => {}
                    Update::Frame(frame) => {
                        let after = frame.after;
                        if let Some(text) = live.take(frame, &id, frames.projector()) {
                            let _ = out.send(Sent::Live { after, text: text.into() });
                        }
                    }
                }
            }
        });
        Self { sender: weak, kept, recent, running, seen, task }
    }

    pub fn listen(&self) -> broadcast::Receiver<Sent> {
        // One that hears nothing but the end, where the session is closed.
        self.sender.upgrade().map_or_else(|| broadcast::channel(1).1, |sender| sender.subscribe())
    }

    pub fn listeners(&self) -> usize {
        self.sender.upgrade().map_or(0, |sender| sender.receiver_count())
    }

    pub fn is_running(&self) -> bool {
        self.running.load(Ordering::Relaxed)
    }

    /// Waits, not for long, until the frames of an event have gone out, and says how far they have.
    pub async fn reach(&self, event: Seq) -> Seq {
        let mut seen = self.seen.clone();
        let reached = seen.wait_for(|seen| *seen >= event);
        let _ = tokio::time::timeout(REACH, reached).await;
        *self.seen.borrow()
    }

    /// The frames after a cursor, if all of them are still at hand.
    pub fn recent(&self, from: Cursor) -> Option<Vec<Sent>> {
        let recent = self.recent.lock();
        if recent.whole_after.is_none_or(|whole| from < whole) {
            return None;
        }
        let first = recent.frames.partition_point(|(cursor, _)| *cursor <= from);
        Some(recent.frames.range(first..).map(|(_, sent)| sent.clone()).collect())
    }

    /// A projection that stands at or before an event.
    pub fn near(&self, seq: Seq) -> Option<Projector> {
        let kept = self.kept.lock();
        kept.places.iter().rev().find(|place| place.last() <= seq).cloned()
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.task.abort();
    }
}
