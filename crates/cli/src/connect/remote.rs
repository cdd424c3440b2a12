//! A session of a server, held like one of this process: [`SessionHandle`] over a WebSocket.
//!
//! A stream is a connection of its own, kept by a task: when it drops, the task comes back after the last event that was
//! heard, so nothing is missed and nothing comes twice. Commands go over the connections that there are, and again over a new
//! one until they have a receipt: each has an id, so none counts twice.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lathe_protocol::{
    BoxFuture, Command, CommandId, Event, EventStream, Receipt, ReceiptAnswer, SESSION_ENDED, Seq,
    SessionHandle, Update,
};
use serde_json::Value;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;

use super::address::Address;
use super::link::{Link, LinkError};
use super::wire::{self, ServerMessage};

/// Between two attempts to come back, at first and at most.
const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(10);
/// Attempts before the server is given up.
const ATTEMPTS: u32 = 40;
/// News that wait to be taken.
const NEWS: usize = 256;

/// News of a stream.
pub(super) enum News {
    Update(Update),
    /// The session that the server named.
    Session(String),
    /// The state of the session, after everything that had happened was told.
    Status(String),
    /// Words about the request, and whether they refuse it.
    Words {
        message: String,
        is_error: bool,
    },
    Lost(String),
    Back,
    /// The stream is over.
    Over(Over),
}

/// Why a stream is over.
pub(super) enum Over {
    /// The server said no; asking again gives no other answer.
    Refused(String),
    /// The server could not be reached before it had named a session.
    Unreachable(String),
    /// It was gone for too long.
    Gone(String),
}

/// A session of a server.
#[derive(Clone)]
pub(super) struct RemoteHandle(Arc<Shared>);

struct Shared {
    address: Address,
    state: Mutex<State>,
    /// A command waits to be sent.
    wake: Notify,
}

#[derive(Default)]
struct State {
    session: Option<String>,
    /// The request that begins a run, until it is sent.
    first: Option<Value>,
    waiting: Vec<Waiting>,
    /// The changes of finished calls, until they are shown.
    diffs: HashMap<Seq, String>,
    /// The number of connections so far.
    links: u64,
}

/// A command without a receipt.
struct Waiting {
    id: CommandId,
    message: Value,
    reply: oneshot::Sender<Receipt>,
    /// The connection it was last sent over.
    link: u64,
}

impl RemoteHandle {
    /// A session that the server has; with a request, one that goes on or begins by it.
    pub fn new(address: Address, session: Option<String>, first: Option<Value>) -> Self {
        let state = State { session, first, ..State::default() };
        Self(Arc::new(Shared { address, state: Mutex::new(state), wake: Notify::new() }))
    }

    /// Everything after an event, with what is to be known about the connection.
    pub fn stream(&self, after: Seq) -> RemoteStream {
        let (sender, news) = mpsc::channel(NEWS);
        let line = Connector { shared: Arc::clone(&self.0), after, news: sender };
        RemoteStream { news, task: tokio::spawn(line.run()) }
    }

    pub fn session(&self) -> Option<String> {
        self.0.state().session.clone()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionHandle for RemoteHandle {
    fn submit(&self, command: Command) -> BoxFuture<'_, Receipt> {
        Box::pin(async move {
            let id = command.id.clone();
            let refused =
                |reason: String| Receipt { command: id.clone(), answer: ReceiptAnswer::Refused { reason } };
            let message = match wire::message(&command) {
                Ok(message) => message,
                Err(reason) => return refused(reason),
            };
            let (reply, receipt) = oneshot::channel();
            self.0.state().waiting.push(Waiting { id: command.id, message, reply, link: 0 });
            self.0.wake.notify_one();
            receipt.await.unwrap_or_else(|_| refused(SESSION_ENDED.to_owned()))
        })
    }

    fn subscribe(&self, cursor: Seq) -> Box<dyn EventStream> {
        Box::new(self.stream(cursor))
    }

    fn diff<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, String> {
        Box::pin(async move { self.0.state().diffs.remove(&event.seq).unwrap_or_default() })
    }
}

/// The updates of a session, as they are heard.
pub(super) struct RemoteStream {
    news: mpsc::Receiver<News>,
    task: JoinHandle<()>,
}

impl RemoteStream {
    /// The next news; none after the last. Nothing is lost if the future is dropped.
    pub async fn next_news(&mut self) -> Option<News> {
        self.news.recv().await
    }
}

impl Drop for RemoteStream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl EventStream for RemoteStream {
    fn next(&mut self) -> BoxFuture<'_, Option<Update>> {
        Box::pin(async move {
            loop {
                if let News::Update(update) = self.next_news().await? {
                    return Some(update);
                }
            }
        })
    }
}

/// One connection after the other.
struct Connector {
    shared: Arc<Shared>,
    /// The last event that was heard.
    after: Seq,
    news: mpsc::Sender<News>,
}

impl Connector {
    async fn run(mut self) {
        let over = self.keep().await;
        // Nobody listens any more.
        let _ = self.news.send(News::Over(over)).await;
        self.shared.state().waiting.clear();
    }

    async fn keep(&mut self) -> Over {
        let (mut wait, mut attempts) = (FIRST, 0);
        loop {
            let reason = match Link::open(&self.shared.address, &self.query()).await {
                Ok(mut link) => {
                    if attempts > 0 {
                        self.tell(News::Back).await;
                    }
                    (wait, attempts) = (FIRST, 0);
                    self.talk(&mut link).await
                }
                Err(LinkError::Refused(reason)) => return Over::Refused(reason),
                Err(LinkError::Dropped(reason)) => reason,
            };
            let is_named = {
                let state = self.shared.state();
                state.session.is_some() && state.first.is_none()
            };
            if !is_named {
                return Over::Unreachable(reason);
            }
            attempts += 1;
            if attempts > ATTEMPTS {
                return Over::Gone(reason);
            }
            if attempts == 1 {
                self.tell(News::Lost(reason)).await;
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LONGEST);
        }
    }

    /// A run is begun by the first message; else a session is attached to, from where it was heard.
    fn query(&self) -> String {
        let state = self.shared.state();
        match (&state.session, &state.first) {
            (Some(id), None) => format!("?events=true&session_id={id}&from={}", self.after),
            (Some(_) | None, _) => "?events=true".to_owned(),
        }
    }

    async fn tell(&self, news: News) {
        // Nobody listens any more, and the task is about to be ended.
        let _ = self.news.send(news).await;
    }

    /// Speaks over a connection until it drops; gives the reason.
    async fn talk(&mut self, link: &mut Link) -> String {
        let (number, first) = {
            let mut state = self.shared.state();
            state.links += 1;
            (state.links, state.first.take())
        };
        if let Some(first) = first
            && let Err(reason) = link.say(&first).await
        {
            return reason;
        }
        loop {
            for message in self.unsent(number) {
                if let Err(reason) = link.say(&message).await {
                    return reason;
                }
            }
            tokio::select! {
                frame = link.next() => match frame {
                    Ok(Some(text)) => self.hear(&text).await,
                    Ok(None) => {}
                    Err(reason) => return reason,
                },
                () = self.shared.wake.notified() => {}
            }
        }
    }

    /// The commands that did not go over this connection.
    fn unsent(&self, number: u64) -> Vec<Value> {
        let mut state = self.shared.state();
        let unsent = state.waiting.iter_mut().filter(|waiting| waiting.link != number);
        unsent
            .map(|waiting| {
                waiting.link = number;
                waiting.message.clone()
            })
            .collect()
    }

    async fn hear(&mut self, text: &str) {
        let (session, heard) = wire::read(text);
        if let Some(id) = session {
            let is_new = self.shared.state().session.replace(id.clone()).as_ref() != Some(&id);
            if is_new {
                self.tell(News::Session(id)).await;
            }
        }
        match heard {
            ServerMessage::Update(Update::Event(event), diff) => {
                self.after = self.after.max(event.seq);
                if !diff.is_empty() {
                    self.shared.state().diffs.insert(event.seq, diff);
                }
                self.tell(News::Update(Update::Event(event))).await;
            }
            ServerMessage::Update(update, _) => self.tell(News::Update(update)).await,
            ServerMessage::Receipt(receipt) => {
                let mut state = self.shared.state();
                let place = state.waiting.iter().position(|waiting| waiting.id == receipt.command);
                if let Some(waiting) = place.map(|at| state.waiting.remove(at)) {
                    let _ = waiting.reply.send(receipt);
                }
            }
            ServerMessage::Status(state) => self.tell(News::Status(state)).await,
            ServerMessage::Words { message, is_error } => self.tell(News::Words { message, is_error }).await,
            ServerMessage::Nothing => {}
        }
    }
}
