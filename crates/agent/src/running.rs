//! The calls that are running: how each is stopped alone, and how it asks the user.

use std::collections::HashMap;
use std::time::Duration;

use lathe_protocol::{Boxed, CallId, CommandRan, Decision, Question, Seq, Verdict};
use lathe_tools::{Asker, Handle, Ledger, Output, Recalled, Wanted};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::effects::Inbox;

/// Where the answers to a question go; none if they are dismissed.
pub(crate) type Reply = oneshot::Sender<Option<Vec<String>>>;

/// What the actor holds of running calls.
#[derive(Default)]
pub(crate) struct Running {
    stops: HashMap<CallId, CancellationToken>,
    /// Open questions of calls.
    questions: HashMap<CallId, OpenQuestion>,
}

/// Questions of a call that wait for their answers.
pub(crate) struct OpenQuestion {
    /// The number of the event that asked.
    pub(crate) question: Seq,
    /// The number of questions that were asked at once.
    pub(crate) count: usize,
    pub(crate) reply: Reply,
}

impl Running {
    /// The token of a call that begins; it is cancelled with the run, or alone.
    pub(crate) fn begin(&mut self, call: CallId, run: &CancellationToken) -> CancellationToken {
        let stop = run.child_token();
        self.stops.insert(call, stop.clone());
        stop
    }

    pub(crate) fn end(&mut self, call: &CallId) {
        self.stops.remove(call);
        self.questions.remove(call);
    }

    /// Whether there was such a call to stop.
    pub(crate) fn stop(&mut self, call: &CallId) -> bool {
        let stop = self.stops.get(call).or_else(|| {
            let mut named = self.stops.iter().filter(|(known, _)| is_named(known, call));
            // Two that look the same once they are masked are not told apart.
            named.next().filter(|_| named.next().is_none()).map(|(_, stop)| stop)
        });
        stop.inspect(|stop| stop.cancel()).is_some()
    }

    pub(crate) fn asked(&mut self, call: CallId, open: OpenQuestion) {
        self.questions.insert(call, open);
    }

    /// Hands answers to the call that waits for them. The error is why it cannot be done: the question stays as it is.
    pub(crate) fn answer(
        &mut self,
        call: &CallId,
        question: Seq,
        answers: Option<Vec<String>>,
    ) -> Result<(), String> {
        let gone = || "the question was answered already, or is no longer asked".to_owned();
        let asked =
            |(known, open): &(&CallId, &OpenQuestion)| open.question == question && is_named(known, call);
        let (call, open) = self.questions.iter().find(asked).ok_or_else(gone)?;
        let call = call.clone();
        if let Some(given) = answers.as_ref().map(Vec::len).filter(|given| *given != open.count) {
            return Err(format!("one answer for each question: {} asked, {given} answered", open.count));
        }
        let open = self.questions.remove(&call).ok_or_else(gone)?;
        open.reply.send(answers).map_err(|_| gone())
    }
}

/// Whether a client means this call: by its id, or by what a client is shown of it, which is masked by shape.
pub(crate) fn is_named(call: &CallId, by: &CallId) -> bool {
    call == by || lathe_redact::shape(call.as_str()) == by.as_str()
}

/// Puts a tool's questions before the actor, which writes them down.
pub(crate) struct InboxAsker(pub(crate) mpsc::Sender<Inbox>);

impl Asker for InboxAsker {
    fn ask<'a>(&'a self, call: &'a CallId, questions: Vec<Question>) -> Boxed<'a, Option<Vec<String>>> {
        Box::pin(async move {
            let (reply, answers) = oneshot::channel();
            let asked = Inbox::Question { call: call.clone(), questions, reply };
            self.0.send(asked).await.ok()?;
            answers.await.ok().flatten()
        })
    }

    fn approve<'a>(&'a self, call: &'a CallId, wanted: Wanted) -> Boxed<'a, Decision> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            let _ = self.0.send(Inbox::Approval { call: call.clone(), wanted, reply }).await;
            answer.await.unwrap_or_else(|_| Decision {
                verdict: Verdict::Deny,
                rule: "approval".to_owned(),
                reason: "nobody answered whether it may be done".to_owned(),
            })
        })
    }
}

/// What commands of a shell line know of the session, and tell it.
pub(crate) struct InboxLedger {
    pub(crate) inbox: mpsc::Sender<Inbox>,
    /// Cancelled with the run. A session that closes reads nothing any more, so nobody waits for it much longer then.
    pub(crate) cancel: CancellationToken,
}

impl InboxLedger {
    async fn ask<T>(&self, message: impl FnOnce(oneshot::Sender<T>) -> Inbox) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        let asking = async {
            self.inbox.send(message(reply)).await.ok()?;
            answer.await.ok()
        };
        let closing = async {
            self.cancel.cancelled().await;
            tokio::time::sleep(CLOSING).await;
        };
        tokio::select! {
            answer = asking => answer,
            () = closing => None,
        }
    }
}

/// How long a cancelled session may take to write a command down.
const CLOSING: Duration = Duration::from_secs(1);

impl Ledger for InboxLedger {
    fn recall<'a>(&'a self, tool: &'a str, paths: Vec<String>) -> Boxed<'a, Recalled> {
        Box::pin(async move {
            let tool = tool.to_owned();
            self.ask(|reply| Inbox::Recall { tool, paths, reply }).await.unwrap_or_default()
        })
    }

    fn record<'a>(&'a self, call: &'a CallId, ran: CommandRan) -> Boxed<'a, ()> {
        Box::pin(async move {
            let (call, ran) = (call.clone(), Box::new(ran));
            self.ask(|written| Inbox::Ran { call, ran, written }).await;
        })
    }

    fn output<'a>(&'a self, handle: Handle) -> Boxed<'a, Option<Output>> {
        Box::pin(async move { self.ask(|reply| Inbox::Output { handle, reply }).await.flatten() })
    }

    fn may_end<'a>(&'a self) -> Boxed<'a, Result<(), String>> {
        Box::pin(async move {
            let closing = || Err("the session is closing".to_owned());
            self.ask(Inbox::MayEnd).await.unwrap_or_else(closing)
        })
    }
}
