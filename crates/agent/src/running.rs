//! The running calls: each can be stopped alone, and can ask the user questions.

use std::collections::HashMap;
use std::time::Duration;

use lathe_protocol::{BoxFuture, CallId, CommandRan, Decision, Question, Seq, Verdict};
use lathe_tools::{Asker, CommandApproval, Ledger, OutputHandle, Recalled, RecordedOutput};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::effects::ActorMessage;

/// The channel for the replies to a question. None if the question is dismissed.
pub(crate) type Reply = oneshot::Sender<Option<Vec<String>>>;

/// The actor's record of running calls.
#[derive(Default)]
pub(crate) struct RunningCalls {
    stops: HashMap<CallId, CancellationToken>,
    /// Open questions of calls.
    questions: HashMap<CallId, OpenQuestion>,
}

/// Questions of a call that wait for their replies.
pub(crate) struct OpenQuestion {
    /// The number of the event that asked them.
    pub(crate) question: Seq,
    /// The number of questions asked at once.
    pub(crate) count: usize,
    pub(crate) reply: Reply,
}

impl RunningCalls {
    /// The token of a call that begins. It is cancelled with the run, or alone.
    pub(crate) fn begin(&mut self, call: CallId, run: &CancellationToken) -> CancellationToken {
        let stop = run.child_token();
        self.stops.insert(call, stop.clone());
        stop
    }

    pub(crate) fn end(&mut self, call: &CallId) {
        self.stops.remove(call);
        self.questions.remove(call);
    }

    /// Stops a call. True if there was such a call.
    pub(crate) fn stop(&mut self, call: &CallId) -> bool {
        let stop = self.stops.get(call).or_else(|| {
            let mut named = self.stops.iter().filter(|(known, _)| refers_to(known, call));
            // Two calls that look the same once they are masked cannot be told apart.
            named.next().filter(|_| named.next().is_none()).map(|(_, stop)| stop)
        });
        stop.inspect(|stop| stop.cancel()).is_some()
    }

    pub(crate) fn add_question(&mut self, call: CallId, open: OpenQuestion) {
        self.questions.insert(call, open);
    }

    /// Hands replies to the call that waits for them. The error is the reason why it cannot be done: the question
    /// stays open.
    pub(crate) fn answer(
        &mut self,
        call: &CallId,
        question: Seq,
        answers: Option<Vec<String>>,
    ) -> Result<(), String> {
        let gone = || "the question was answered already, or is no longer asked".to_owned();
        let asked =
            |(known, open): &(&CallId, &OpenQuestion)| open.question == question && refers_to(known, call);
        let (call, open) = self.questions.iter().find(asked).ok_or_else(gone)?;
        let call = call.clone();
        if let Some(given) = answers.as_ref().map(Vec::len).filter(|given| *given != open.count) {
            return Err(format!("one answer for each question: {} asked, {given} answered", open.count));
        }
        let open = self.questions.remove(&call).ok_or_else(gone)?;
        open.reply.send(answers).map_err(|_| gone())
    }
}

/// Tells whether a client means this call: by its id, or by the form that clients are shown, which is masked by
/// shape.
pub(crate) fn refers_to(call: &CallId, by: &CallId) -> bool {
    call == by || lathe_redact::mask_shapes(call.as_str()) == by.as_str()
}

/// Passes a tool's questions to the actor, which records them.
pub(crate) struct InboxAsker(pub(crate) mpsc::Sender<ActorMessage>);

impl Asker for InboxAsker {
    fn ask<'a>(&'a self, call: &'a CallId, questions: Vec<Question>) -> BoxFuture<'a, Option<Vec<String>>> {
        Box::pin(async move {
            let (reply, answers) = oneshot::channel();
            let asked = ActorMessage::Question { call: call.clone(), questions, reply };
            self.0.send(asked).await.ok()?;
            answers.await.ok().flatten()
        })
    }

    fn approve<'a>(&'a self, call: &'a CallId, wanted: CommandApproval) -> BoxFuture<'a, Decision> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            let _ = self.0.send(ActorMessage::Approval { call: call.clone(), wanted, reply }).await;
            answer.await.unwrap_or_else(|_| Decision {
                verdict: Verdict::Deny,
                rule: "approval".to_owned(),
                reason: "nobody answered whether it may be done".to_owned(),
            })
        })
    }
}

/// The session's ledger for the commands of a shell line.
pub(crate) struct InboxLedger {
    pub(crate) inbox: mpsc::Sender<ActorMessage>,
    /// Cancelled with the run. A session that closes reads no more messages, so the wait ends soon after.
    pub(crate) cancel: CancellationToken,
}

impl InboxLedger {
    async fn ask<T>(&self, message: impl FnOnce(oneshot::Sender<T>) -> ActorMessage) -> Option<T> {
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

/// The time that a cancelled session may take to record a command.
const CLOSING: Duration = Duration::from_secs(1);

impl Ledger for InboxLedger {
    fn recall<'a>(&'a self, tool: &'a str, paths: Vec<String>) -> BoxFuture<'a, Recalled> {
        Box::pin(async move {
            let tool = tool.to_owned();
            self.ask(|reply| ActorMessage::Recall { tool, paths, reply }).await.unwrap_or_default()
        })
    }

    fn record<'a>(&'a self, call: &'a CallId, ran: CommandRan) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let (call, ran) = (call.clone(), Box::new(ran));
            self.ask(|written| ActorMessage::CommandEnded { call, ran, written }).await;
        })
    }

    fn output<'a>(&'a self, handle: OutputHandle) -> BoxFuture<'a, Option<RecordedOutput>> {
        Box::pin(async move { self.ask(|reply| ActorMessage::Output { handle, reply }).await.flatten() })
    }

    fn may_end<'a>(&'a self) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let closing = || Err("the session is closing".to_owned());
            self.ask(ActorMessage::MayEnd).await.unwrap_or_else(closing)
        })
    }
}
