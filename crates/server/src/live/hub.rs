//! The frames of one session, made once and given to everybody who listens.
//!
//! Nobody is waited for: a listener that falls behind is told so, and reads the journal again from its cursor. So a client
//! that is stuck costs the agent nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::ws::Utf8Bytes;
use lathe_host::{Cursor, FrameReader, Projector, live_frame};
use lathe_protocol::{Event, Fact, Seq, SessionHandle, SessionId, Update};
use tokio::sync::broadcast;
use tokio::task::JoinHandle;

/// Frames a listener may fall behind before it reads the journal again.
const BEHIND: usize = 512;
/// Events between two places where the projection is kept, at first; doubled whenever there are too many.
const KEEP_EVERY: u64 = 256;
const KEPT_MAX: usize = 32;

/// One frame on its way to clients.
#[derive(Debug, Clone)]
pub(crate) enum Sent {
    Frame {
        kind: &'static str,
        cursor: Cursor,
        text: Utf8Bytes,
    },
    /// What is happening; it is in no journal.
    Live {
        after: Seq,
        text: Utf8Bytes,
    },
}

pub(crate) struct Hub {
    sender: broadcast::Sender<Sent>,
    kept: Arc<Mutex<Kept>>,
    running: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

/// Projections of the session as it was at some places, so that a client that comes back need not wait for all of it.
struct Kept {
    every: u64,
    places: Vec<Projector>,
}

impl Kept {
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
        let kept = Arc::new(Mutex::new(Kept { every: KEEP_EVERY, places: vec![frames.projector().clone()] }));
        let running = Arc::new(AtomicBool::new(false));
        let mut updates = handle.subscribe(frames.last());
        let (out, places, is_running) = (sender.clone(), Arc::clone(&kept), Arc::clone(&running));
        let task = tokio::spawn(async move {
            let mut frames = frames;
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
                        for frame in frames.take(&event) {
                            let text = Utf8Bytes::from(frame.to_json(&id));
                            let _ = out.send(Sent::Frame { kind: frame.kind, cursor: frame.cursor, text });
                        }
                        places.lock().unwrap_or_else(PoisonError::into_inner).keep(frames.projector());
                    }
                    // Nobody is there to see it.
                    Update::Frame(_) if out.receiver_count() == 0 => {}
                    Update::Frame(frame) => {
                        let text = live_frame(&frame, &id, frames.projector().run());
                        let _ = out.send(Sent::Live { after: frame.after, text: text.into() });
                    }
                }
            }
        });
        Self { sender, kept, running, task }
    }

    pub fn listen(&self) -> broadcast::Receiver<Sent> {
        self.sender.subscribe()
    }

    pub fn listeners(&self) -> usize {
        self.sender.receiver_count()
    }

    pub fn is_running(&self) -> bool {
        self.running.load(Ordering::Relaxed)
    }

    /// A projection that stands at or before an event.
    pub fn near(&self, seq: Seq) -> Option<Projector> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.places.iter().rev().find(|place| place.last() <= seq).cloned()
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.task.abort();
    }
}
