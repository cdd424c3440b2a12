//! A session of a server, used like one of this process: [`SessionHandle`] over a WebSocket.
//!
//! A stream has a connection of its own, kept by a task: when it drops, the task reconnects after the last event that
//! it received, so no event is missed or received twice. Commands are sent over the existing connections, and again
//! over a new one until they have a receipt: each has an id, so none counts twice.

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

/// The wait between two attempts to reconnect, at first and at most.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// Attempts before the client gives up.
const ATTEMPTS: u32 = 40;
/// The capacity of the channel for news.
const NEWS_CAPACITY: usize = 256;

/// News of a stream.
pub(super) enum News {
    Update(Update),
    /// The session that the server named.
    Session(String),
    /// The state of the session, sent after all of its past.
    Status(String),
    /// A message about the request; it may refuse the request.
    Notice {
        message: String,
        is_error: bool,
    },
    Disconnected(String),
    Reconnected,
    /// The stream has ended.
    Ended(RemoteEnd),
}

/// The reasons for which a stream ends.
pub(super) enum RemoteEnd {
    /// The server refused; another attempt gets the same reply.
    Refused(String),
    /// The server was unreachable before it had named a session.
    Unreachable(String),
    /// The server was unreachable for too long.
    Gone(String),
}

/// A session of a server.
#[derive(Clone)]
pub(super) struct RemoteHandle(Arc<Shared>);

struct Shared {
    address: Address,
    state: Mutex<State>,
    /// Notified when a command waits to be sent.
    wake: Notify,
}

#[derive(Default)]
struct State {
    session: Option<String>,
    /// The request that begins a run, until it is sent.
    first: Option<Value>,
    unconfirmed: Vec<UnconfirmedCommand>,
    /// The diffs of finished calls, until they are shown.
    diffs: HashMap<Seq, String>,
    /// The number of connections so far.
    links: u64,
}

/// A command without a receipt.
struct UnconfirmedCommand {
    id: CommandId,
    message: Value,
    reply: oneshot::Sender<Receipt>,
    /// The connection it was last sent over.
    link: u64,
}

impl RemoteHandle {
    /// A session that exists on the server; with a request, a session that the request begins or continues.
    pub fn new(address: Address, session: Option<String>, first: Option<Value>) -> Self {
        let state = State { session, first, ..State::default() };
        Self(Arc::new(Shared { address, state: Mutex::new(state), wake: Notify::new() }))
    }

    /// The events after a given one, and news about the connection.
    pub fn stream(&self, after: Seq) -> RemoteStream {
        let (sender, news) = mpsc::channel(NEWS_CAPACITY);
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
            let message = match wire::to_message(&command) {
                Ok(message) => message,
                Err(reason) => return refused(reason),
            };
            let (reply, receipt) = oneshot::channel();
            self.0.state().unconfirmed.push(UnconfirmedCommand { id: command.id, message, reply, link: 0 });
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

/// The updates of a session as they are received.
pub(super) struct RemoteStream {
    news: mpsc::Receiver<News>,
    task: JoinHandle<()>,
}

impl RemoteStream {
    /// The next news; None after the last. Nothing is lost if the future is dropped.
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

/// The task that opens one connection after the other.
struct Connector {
    shared: Arc<Shared>,
    /// The last event that was received.
    after: Seq,
    news: mpsc::Sender<News>,
}

impl Connector {
    async fn run(mut self) {
        let end = self.stay_connected().await;
        // The stream may have been dropped already.
        let _ = self.news.send(News::Ended(end)).await;
        self.shared.state().unconfirmed.clear();
    }

    async fn stay_connected(&mut self) -> RemoteEnd {
        let (mut wait, mut attempts) = (FIRST_WAIT, 0);
        loop {
            let reason = match Link::open(&self.shared.address, &self.query()).await {
                Ok(mut link) => {
                    if attempts > 0 {
                        self.send_news(News::Reconnected).await;
                    }
                    (wait, attempts) = (FIRST_WAIT, 0);
                    self.exchange(&mut link).await
                }
                Err(LinkError::Refused(reason)) => return RemoteEnd::Refused(reason),
                Err(LinkError::Dropped(reason)) => reason,
            };
            let is_named = {
                let state = self.shared.state();
                state.session.is_some() && state.first.is_none()
            };
            if !is_named {
                return RemoteEnd::Unreachable(reason);
            }
            attempts += 1;
            if attempts > ATTEMPTS {
                return RemoteEnd::Gone(reason);
            }
            if attempts == 1 {
                self.send_news(News::Disconnected(reason)).await;
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    /// The query of a connection. The first message begins a run; without one, the connection attaches to the session
    /// after the last event that was received.
    fn query(&self) -> String {
        let state = self.shared.state();
        match (&state.session, &state.first) {
            (Some(id), None) => format!("?events=true&session_id={id}&from={}", self.after),
            (Some(_) | None, _) => "?events=true".to_owned(),
        }
    }

    async fn send_news(&self, news: News) {
        // If the stream was dropped, this task is about to be aborted.
        let _ = self.news.send(news).await;
    }

    /// Sends and receives over a connection until it drops; returns the reason.
    async fn exchange(&mut self, link: &mut Link) -> String {
        let (number, first) = {
            let mut state = self.shared.state();
            state.links += 1;
            (state.links, state.first.take())
        };
        if let Some(first) = first
            && let Err(reason) = link.send(&first).await
        {
            return reason;
        }
        loop {
            for message in self.unsent(number) {
                if let Err(reason) = link.send(&message).await {
                    return reason;
                }
            }
            tokio::select! {
                frame = link.next() => match frame {
                    Ok(Some(text)) => self.receive(&text).await,
                    Ok(None) => {}
                    Err(reason) => return reason,
                },
                () = self.shared.wake.notified() => {}
            }
        }
    }

    /// The commands that were not sent over this connection.
    fn unsent(&self, number: u64) -> Vec<Value> {
        let mut state = self.shared.state();
        let unsent = state.unconfirmed.iter_mut().filter(|unconfirmed| unconfirmed.link != number);
        unsent
            .map(|unconfirmed| {
                unconfirmed.link = number;
                unconfirmed.message.clone()
            })
            .collect()
    }

    async fn receive(&mut self, text: &str) {
        let (session, heard) = wire::parse_frame(text);
        if let Some(id) = session {
            let is_new = self.shared.state().session.replace(id.clone()).as_ref() != Some(&id);
            if is_new {
                self.send_news(News::Session(id)).await;
            }
        }
        match heard {
            ServerMessage::Update(Update::Event(event), diff) => {
                self.after = self.after.max(event.seq);
                if !diff.is_empty() {
                    self.shared.state().diffs.insert(event.seq, diff);
                }
                self.send_news(News::Update(Update::Event(event))).await;
            }
            ServerMessage::Update(update, _) => self.send_news(News::Update(update)).await,
            ServerMessage::Receipt(receipt) => {
                let mut state = self.shared.state();
                let place =
                    state.unconfirmed.iter().position(|unconfirmed| unconfirmed.id == receipt.command);
                if let Some(unconfirmed) = place.map(|at| state.unconfirmed.remove(at)) {
                    let _ = unconfirmed.reply.send(receipt);
                }
            }
            ServerMessage::Status(state) => self.send_news(News::Status(state)).await,
            ServerMessage::Notice { message, is_error } => {
                self.send_news(News::Notice { message, is_error }).await
            }
            ServerMessage::Nothing => {}
        }
    }
}
