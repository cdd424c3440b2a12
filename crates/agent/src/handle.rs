//! The handle of a session in this process.

use std::collections::VecDeque;
use std::sync::Arc;

use lathe_blobs::Blobs;
use lathe_journal::SessionReader;
use lathe_protocol::{
    BoxFuture, Command, Digest, Event, EventStream, ProposedText, Receipt, ReceiptAnswer, SESSION_ENDED, Seq,
    Update,
};
use tokio::sync::{broadcast, mpsc, oneshot};

use crate::effects::ActorMessage;

/// Opens a reader on the session's journal.
pub type OpenReader = Arc<dyn Fn() -> Option<SessionReader> + Send + Sync>;

#[derive(Clone)]
pub struct LocalHandle {
    pub(crate) inbox: mpsc::Sender<ActorMessage>,
    pub(crate) updates: broadcast::WeakSender<Update>,
    pub(crate) open: OpenReader,
    pub(crate) blobs: Blobs,
}

impl LocalHandle {
    /// Asks the actor to end. It closes its shell and its journal first.
    pub async fn close(&self) {
        let _ = self.inbox.send(ActorMessage::Close).await;
    }

    /// The text that the call of an open question proposes, or the proposal for the user's version of it. None if the
    /// call proposes no text.
    pub async fn proposed_text(&self, question: Seq, text: Option<String>) -> Option<ProposedText> {
        let (reply, answer) = oneshot::channel();
        self.inbox.send(ActorMessage::Proposed { question, text, reply }).await.ok()?;
        answer.await.ok().flatten()
    }
}

impl LocalHandle {
    /// Gives the actor a command.
    pub fn submit(&self, command: Command) -> BoxFuture<'_, Receipt> {
        Box::pin(async move {
            let id = command.id.clone();
            let (sender, receiver) = oneshot::channel();
            let sent = self.inbox.send(ActorMessage::Command(command, sender)).await;
            match (sent, receiver.await) {
                (Ok(()), Ok(receipt)) => receipt,
                _ => Receipt {
                    command: id,
                    answer: ReceiptAnswer::Refused { reason: SESSION_ENDED.to_owned() },
                },
            }
        })
    }

    /// Subscribes to everything after an event.
    pub fn subscribe(&self, cursor: Seq) -> Box<dyn EventStream> {
        // The subscription begins before the journal is read, so no event is missed in between.
        let live = self.updates.upgrade().map(|updates| updates.subscribe());
        Box::new(Subscription {
            live,
            reader: (self.open)(),
            last: cursor,
            backlog: VecDeque::new(),
            caught_up: false,
        })
    }

    /// Content that the session recorded. None if it is damaged or no longer stored.
    pub fn blob(&self, id: &Digest) -> Option<Vec<u8>> {
        self.blobs.get(id).ok().flatten()
    }
}

/// Reads the journal until it has caught up, then follows the live updates. It reads the journal again whenever it
/// has fallen behind.
struct Subscription {
    live: Option<broadcast::Receiver<Update>>,
    reader: Option<SessionReader>,
    last: Seq,
    backlog: VecDeque<Event>,
    caught_up: bool,
}

/// Events read at once from the journal.
const BATCH: usize = 256;

impl Subscription {
    fn read_on(&mut self) {
        let read =
            self.reader.as_ref().and_then(|reader| reader.after(self.last, BATCH).ok()).unwrap_or_default();
        self.caught_up = read.len() < BATCH;
        self.backlog.extend(read);
    }

    async fn next_update(&mut self) -> Option<Update> {
        loop {
            if let Some(event) = self.backlog.pop_front() {
                self.last = event.seq;
                return Some(Update::Event(Arc::new(event)));
            }
            if !self.caught_up {
                self.read_on();
                continue;
            }
            match self.live.as_mut()?.recv().await {
                Ok(Update::Event(event)) if event.seq <= self.last => {}
                Ok(Update::Event(event)) => {
                    self.last = event.seq;
                    return Some(Update::Event(event));
                }
                // A frame from before an event that the journal already delivered is dropped.
                Ok(Update::Frame(frame)) if frame.after < self.last => {}
                Ok(Update::Frame(frame)) => return Some(Update::Frame(frame)),
                Err(broadcast::error::RecvError::Lagged(_)) => self.caught_up = false,
                Err(broadcast::error::RecvError::Closed) => {
                    self.live = None;
                    self.read_on();
                }
            }
        }
    }
}

impl EventStream for Subscription {
    fn next(&mut self) -> BoxFuture<'_, Option<Update>> {
        Box::pin(self.next_update())
    }
}
