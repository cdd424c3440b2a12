//! The effects of a session: tasks that talk to the model, to tools and to the disk, and answer into the actor's inbox.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lathe_journal::{JournalError, Syncer};
use lathe_model::{Answer, Delta, ModelClient, ModelError, Request};
use lathe_policy::Permit;
use lathe_protocol::{
    CallFinished, CallId, Command, CommandRan, Decision, Ending, Frame, FrameBody, ProposedText, Question,
    Receipt, Seq, StepNo, ToolErrorKind, Update, Usage,
};
use lathe_tools::{Handle, LateChanges, Output, Prepared, Preview, Recalled, RunContext, Toolbox, Wanted};
use parking_lot::Mutex;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::budget::Purse;
use crate::patch::{EMPTY_PATCH, ONLY_RECORDED, Patcher, is_test_path};
use crate::running::Reply;
use crate::state::Baseline;

/// What reaches the actor.
pub(crate) enum Inbox {
    Command(Command, oneshot::Sender<Receipt>),
    Answered {
        step: StepNo,
        result: Result<Answer, Unanswered>,
        took_ms: u64,
    },
    Finished {
        call: CallId,
        result: Box<CallFinished>,
    },
    /// A running call wants to know something of the user.
    Question {
        call: CallId,
        questions: Vec<Question>,
        reply: Reply,
    },
    /// What a call would do, looked at before a person is asked.
    Previewed {
        call: CallId,
        preview: Result<Preview, Box<CallFinished>>,
    },
    /// A person wants to see or change the text that a call proposes.
    Proposed {
        question: Seq,
        /// The text that the person made of it; none to see it.
        text: Option<String>,
        reply: oneshot::Sender<Option<ProposedText>>,
    },
    /// A command of a running line may only go on if a person says so.
    Approval {
        call: CallId,
        wanted: Wanted,
        reply: oneshot::Sender<Decision>,
    },
    /// A command of a running line wants to know what the session knows.
    Recall {
        tool: String,
        paths: Vec<String>,
        reply: oneshot::Sender<Recalled>,
    },
    /// A call wants the output of an earlier one.
    Output {
        handle: Handle,
        reply: oneshot::Sender<Option<Output>>,
    },
    /// A command of a running line has ended.
    Ran {
        call: CallId,
        ran: Box<CommandRan>,
        written: oneshot::Sender<()>,
    },
    /// A command says that the task is done; may it?
    MayEnd(oneshot::Sender<Result<(), String>>),
    Baseline(Option<String>),
    /// How a run that ended in text has ended, after a look at its patch.
    Judged(Ending, String),
    /// Background processes had their time at the end of a run, and were looked at.
    Settled(Option<Box<LateChanges>>),
    /// A look at the work tree ended without a result, because the run was cancelled.
    LookStopped,
    Synced(Result<(), JournalError>),
    Close,
}

/// The end of a request without an answer.
pub(crate) struct Unanswered {
    error: ModelError,
    /// Usage of answers that broke off.
    pub(crate) lost: Usage,
    /// The cap they used up, in words.
    used_up: Option<String>,
}

pub(crate) enum Cause {
    UsedUp(String),
    Error(ModelError),
}

impl Unanswered {
    pub(crate) fn cause(self) -> Cause {
        self.used_up.map_or(Cause::Error(self.error), Cause::UsedUp)
    }
}

/// Where an effect shows what is happening.
#[derive(Clone)]
pub(crate) struct Watchers {
    pub(crate) updates: broadcast::Sender<Update>,
    /// The last event, so that a frame can say what it follows.
    pub(crate) last: watch::Receiver<Seq>,
    pub(crate) agent: lathe_protocol::AgentId,
}

impl Watchers {
    pub(crate) fn show(&self, step: StepNo, call: Option<CallId>, body: FrameBody) {
        let after = *self.last.borrow();
        // Nobody watching is fine.
        let _ = self.updates.send(Update::Frame(Frame {
            after,
            agent: self.agent.clone(),
            step: Some(step),
            call,
            body,
        }));
    }
}

/// Asks the model and shows its words while they come.
pub(crate) async fn ask(
    model: Arc<dyn ModelClient>,
    request: Request,
    watchers: Watchers,
    cancel: CancellationToken,
    purse: Purse,
    inbox: mpsc::Sender<Inbox>,
) {
    let (began, step) = (Instant::now(), request.step);
    let (sender, mut deltas) = mpsc::channel(256);
    let stop = cancel.child_token();
    let time_left = purse.ms_left().map(Duration::from_millis);
    let asking = async {
        let answer = async {
            let mut asked = model.ask(request, &sender, &stop);
            let Some(left) = time_left else { return asked.await };
            match tokio::time::timeout(left, &mut asked).await {
                Ok(answer) => answer,
                // Stopped, not dropped: the client tells what the answer has taken so far.
                Err(_) => {
                    stop.cancel();
                    asked.await.or(Err(ModelError::OutOfTime))
                }
            }
        };
        let answer = answer.await;
        drop(sender);
        answer
    };
    let mut lost = Usage::default();
    let showing = async {
        while let Some(delta) = deltas.recv().await {
            let body = match delta {
                Delta::Lost(usage) => {
                    lost += usage;
                    // No further attempt that would pass a cap.
                    if purse.used_up_with(&lost).is_some() {
                        stop.cancel();
                    }
                    continue;
                }
                Delta::Text(text) => FrameBody::Text(text),
                Delta::Thinking(text) => FrameBody::Thinking(text),
                Delta::CallForming(name) => FrameBody::CallForming(name),
                Delta::Retry { attempt, wait_ms, reason } => FrameBody::Retry { attempt, wait_ms, reason },
            };
            watchers.show(step, None, body);
        }
    };
    let (result, ()) = tokio::join!(asking, showing);
    let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let result = match result {
        Ok(mut answer) => {
            answer.usage += lost;
            Ok(answer)
        }
        Err(error) => {
            let used_up = purse.used_up_with(&lost).filter(|_| !cancel.is_cancelled());
            Err(Unanswered { error, lost, used_up })
        }
    };
    let _ = inbox.send(Inbox::Answered { step, result, took_ms }).await;
}

/// Runs a call.
pub(crate) async fn call(
    toolbox: Arc<Toolbox>,
    prepared: Prepared,
    permit: Permit,
    context: RunContext,
    inbox: mpsc::Sender<Inbox>,
) {
    let call = context.call.clone();
    let result = Box::new(toolbox.run(prepared, permit, context).await);
    let _ = inbox.send(Inbox::Finished { call, result }).await;
}

/// Looks at what a call would do. Nothing is changed by it.
pub(crate) async fn preview(prepared: Arc<Prepared>, context: RunContext, inbox: mpsc::Sender<Inbox>) {
    let preview = prepared.preview(&context).await;
    // Whoever runs it must be the only one who has it.
    drop(prepared);
    let _ = inbox.send(Inbox::Previewed { call: context.call, preview }).await;
}

/// The result of a call that waited for a look at the changes.
const STOPPED: &str = "The run was stopped before its changes were looked at.";

/// What is known of a run's changes.
pub(crate) struct Look {
    pub(crate) baseline: Option<Baseline>,
    pub(crate) recorded: Vec<String>,
}

impl Look {
    /// Whether something outside of tests has changed. If that cannot be found out, it counts as not. None: it was cancelled.
    async fn has_patch(
        self,
        patcher: &dyn Patcher,
        cancel: &CancellationToken,
    ) -> Option<Result<(), String>> {
        cancel.run_until_cancelled(self.compare(patcher)).await
    }

    async fn compare(self, patcher: &dyn Patcher) -> Result<(), String> {
        let without_git = !matches!(self.baseline, Some(Baseline::Tree(_)));
        let changed = match self.baseline {
            Some(Baseline::Tree(tree)) => patcher.changed(tree).await?,
            Some(Baseline::Recorded) | None => self.recorded,
        };
        if changed.iter().any(|path| !is_test_path(path)) {
            return Ok(());
        }
        Err(if without_git { format!("{EMPTY_PATCH} {ONLY_RECORDED}") } else { EMPTY_PATCH.to_owned() })
    }
}

/// Notes the work tree down.
pub(crate) async fn baseline(
    patcher: Arc<dyn Patcher>,
    base: Option<String>,
    cancel: CancellationToken,
    inbox: mpsc::Sender<Inbox>,
) {
    let taken = match cancel.run_until_cancelled(patcher.baseline(base)).await {
        // Without a tree the recorded changes count: poorer, never wrong.
        Some(tree) => Inbox::Baseline(tree.unwrap_or_default()),
        None => Inbox::LookStopped,
    };
    let _ = inbox.send(taken).await;
}

/// Judges a run that ended in text.
pub(crate) async fn judge(
    patcher: Arc<dyn Patcher>,
    look: Look,
    result: String,
    cancel: CancellationToken,
    inbox: mpsc::Sender<Inbox>,
) {
    let judged = match look.has_patch(&*patcher, &cancel).await {
        Some(Ok(())) => Inbox::Judged(Ending::Answered, result),
        Some(Err(reason)) => Inbox::Judged(Ending::Failed, format!("{result}\n\n{reason}")),
        None => Inbox::LookStopped,
    };
    let _ = inbox.send(judged).await;
}

/// Runs `task_done` if there is a patch; else its result is the reason why it is refused.
pub(crate) async fn judged_call(
    toolbox: Arc<Toolbox>,
    prepared: Prepared,
    permit: Permit,
    context: RunContext,
    patcher: Arc<dyn Patcher>,
    look: Look,
    inbox: mpsc::Sender<Inbox>,
) {
    let (kind, reason) = match look.has_patch(&*patcher, &context.cancel).await {
        Some(Ok(())) => return call(toolbox, prepared, permit, context, inbox).await,
        Some(Err(reason)) => (ToolErrorKind::ExecutionFailed, reason),
        None => (ToolErrorKind::Cancelled, STOPPED.to_owned()),
    };
    let result = Box::new(CallFinished::failed(prepared.name(), kind, reason));
    let _ = inbox.send(Inbox::Finished { call: context.call, result }).await;
}

/// Whether a command may say that the task is done.
pub(crate) async fn may_end(
    patcher: Arc<dyn Patcher>,
    look: Look,
    cancel: CancellationToken,
    reply: oneshot::Sender<Result<(), String>>,
) {
    let judged = look.has_patch(&*patcher, &cancel).await;
    let _ = reply.send(judged.unwrap_or_else(|| Err(STOPPED.to_owned())));
}

/// Waits shortly for background processes at the end of a run, and finds what they changed.
pub(crate) async fn settle(toolbox: Arc<Toolbox>, inbox: mpsc::Sender<Inbox>) {
    let late = toolbox.services().settle_left().await;
    let _ = inbox.send(Inbox::Settled(late.map(Box::new))).await;
}

/// Keeps the way back from what background processes do, should this process be killed.
pub(crate) async fn hold(toolbox: Arc<Toolbox>, changed: bool) {
    toolbox.services().hold_left(changed).await;
}

/// Makes what was appended durable against loss of power, while the model thinks.
pub(crate) async fn sync(syncer: Arc<Mutex<Syncer>>, inbox: mpsc::Sender<Inbox>) {
    let work = tokio::task::spawn_blocking(move || {
        let mut syncer = syncer.lock();
        syncer.sync()?;
        syncer.checkpoint_if_large()
    });
    if let Ok(Err(error)) = work.await {
        let _ = inbox.send(Inbox::Synced(Err(error))).await;
    }
}
