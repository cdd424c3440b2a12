//! The effects of a session: tasks that call the model, tools and the disk, and reply into the actor's inbox.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lathe_journal::{JournalError, Syncer};
use lathe_model::{Delta, ModelAnswer, ModelClient, ModelError, WireRequest};
use lathe_policy::Permit;
use lathe_protocol::{
    CallFinished, CallId, Command, CommandRan, Decision, Ending, Frame, FrameBody, ProposedText, Question,
    Receipt, Seq, StepNo, ToolErrorKind, Update, Usage,
};
use lathe_tools::{
    CommandApproval, LateChanges, OutputHandle, PreparedCall, Preview, Recalled, RecordedOutput, RunContext,
    Toolbox,
};
use parking_lot::Mutex;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::budget::RemainingBudget;
use crate::patch::{EMPTY_PATCH, ONLY_RECORDED, Patcher, is_test_path};
use crate::running::Reply;
use crate::state::Baseline;

/// A message to the actor.
pub(crate) enum ActorMessage {
    Command(Command, oneshot::Sender<Receipt>),
    Answered {
        step: StepNo,
        result: Result<ModelAnswer, Unanswered>,
        took_ms: u64,
    },
    Finished {
        call: CallId,
        result: Box<CallFinished>,
    },
    /// A running call has a question for the user.
    Question {
        call: CallId,
        questions: Vec<Question>,
        reply: Reply,
    },
    /// The preview of a call, made before the user is asked.
    Previewed {
        call: CallId,
        preview: Result<Preview, Box<CallFinished>>,
    },
    /// The user wants to see or change the text that a call proposes.
    Proposed {
        question: Seq,
        /// The user's version of the text. None to only see it.
        text: Option<String>,
        reply: oneshot::Sender<Option<ProposedText>>,
    },
    /// A command of a running line needs the user's approval.
    Approval {
        call: CallId,
        wanted: CommandApproval,
        reply: oneshot::Sender<Decision>,
    },
    /// A command of a running line recalls what the session knows.
    Recall {
        tool: String,
        paths: Vec<String>,
        reply: oneshot::Sender<Recalled>,
    },
    /// A call reads the output of an earlier one.
    Output {
        handle: OutputHandle,
        reply: oneshot::Sender<Option<RecordedOutput>>,
    },
    /// A command of a running line has ended.
    CommandEnded {
        call: CallId,
        ran: Box<CommandRan>,
        written: oneshot::Sender<()>,
    },
    /// A command says that the task is done, and asks whether the run may end.
    MayEnd(oneshot::Sender<Result<(), String>>),
    Baseline(Option<String>),
    /// The ending of a run that ended in text, after its patch was checked.
    EndingChecked(Ending, String),
    /// Background processes had their time at the end of a run, and their changes were looked up.
    Settled(Option<Box<LateChanges>>),
    /// A comparison of the work tree ended without a result, because the run was cancelled.
    CompareStopped,
    Synced(Result<(), JournalError>),
    Close,
}

/// The end of a request without an answer.
pub(crate) struct Unanswered {
    error: ModelError,
    /// The usage of answers that broke off.
    pub(crate) lost: Usage,
    /// The cap that they used up, in words.
    used_up: Option<String>,
}

pub(crate) enum UnansweredCause {
    UsedUp(String),
    Error(ModelError),
}

impl Unanswered {
    pub(crate) fn cause(self) -> UnansweredCause {
        self.used_up.map_or(UnansweredCause::Error(self.error), UnansweredCause::UsedUp)
    }
}

/// The channel on which an effect shows its progress.
#[derive(Clone)]
pub(crate) struct UpdateChannel {
    pub(crate) updates: broadcast::Sender<Update>,
    /// The last event, so that a frame can name the event it follows.
    pub(crate) last: watch::Receiver<Seq>,
    pub(crate) agent: lathe_protocol::AgentId,
}

impl UpdateChannel {
    pub(crate) fn show(&self, step: StepNo, call: Option<CallId>, body: FrameBody) {
        let after = *self.last.borrow();
        // It is fine if nothing is subscribed.
        let _ = self.updates.send(Update::Frame(Frame {
            after,
            agent: self.agent.clone(),
            step: Some(step),
            call,
            body,
        }));
    }
}

/// Asks the model and shows its text while it arrives.
pub(crate) async fn ask(
    model: Arc<dyn ModelClient>,
    request: WireRequest,
    watchers: UpdateChannel,
    cancel: CancellationToken,
    purse: RemainingBudget,
    inbox: mpsc::Sender<ActorMessage>,
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
                // The request is stopped, not dropped: the client reports the usage of the answer so far.
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
                    // No further attempt is made that would pass a cap.
                    if purse.exhausted_reason_with(&lost).is_some() {
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
            let used_up = purse.exhausted_reason_with(&lost).filter(|_| !cancel.is_cancelled());
            Err(Unanswered { error, lost, used_up })
        }
    };
    let _ = inbox.send(ActorMessage::Answered { step, result, took_ms }).await;
}

/// Runs a call.
pub(crate) async fn run_call(
    toolbox: Arc<Toolbox>,
    prepared: PreparedCall,
    permit: Permit,
    context: RunContext,
    inbox: mpsc::Sender<ActorMessage>,
) {
    let call = context.call.clone();
    let result = Box::new(toolbox.run(prepared, permit, context).await);
    let _ = inbox.send(ActorMessage::Finished { call, result }).await;
}

/// Makes the preview of a call. It changes nothing.
pub(crate) async fn preview(
    prepared: Arc<PreparedCall>,
    context: RunContext,
    inbox: mpsc::Sender<ActorMessage>,
) {
    let preview = prepared.preview(&context).await;
    // The task that runs the call must be its only owner.
    drop(prepared);
    let _ = inbox.send(ActorMessage::Previewed { call: context.call, preview }).await;
}

/// The result of a call that waited for the comparison of changes.
const STOPPED: &str = "The run was stopped before its changes were looked at.";

/// The known facts about a run's changes.
pub(crate) struct PatchCheck {
    pub(crate) baseline: Option<Baseline>,
    pub(crate) recorded: Vec<String>,
}

impl PatchCheck {
    /// Tells whether something outside of tests has changed. If that cannot be determined, it counts as no. None if
    /// it was cancelled.
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

/// Records the work tree as a baseline.
pub(crate) async fn baseline(
    patcher: Arc<dyn Patcher>,
    base: Option<String>,
    cancel: CancellationToken,
    inbox: mpsc::Sender<ActorMessage>,
) {
    let taken = match cancel.run_until_cancelled(patcher.baseline(base)).await {
        // Without a tree the recorded changes count: less complete, but never wrong.
        Some(tree) => ActorMessage::Baseline(tree.unwrap_or_default()),
        None => ActorMessage::CompareStopped,
    };
    let _ = inbox.send(taken).await;
}

/// Determines the ending of a run that ended in text.
pub(crate) async fn check_ending(
    patcher: Arc<dyn Patcher>,
    look: PatchCheck,
    result: String,
    cancel: CancellationToken,
    inbox: mpsc::Sender<ActorMessage>,
) {
    let judged = match look.has_patch(&*patcher, &cancel).await {
        Some(Ok(())) => ActorMessage::EndingChecked(Ending::Answered, result),
        Some(Err(reason)) => ActorMessage::EndingChecked(Ending::Failed, format!("{result}\n\n{reason}")),
        None => ActorMessage::CompareStopped,
    };
    let _ = inbox.send(judged).await;
}

/// Runs `task_done` if there is a patch; otherwise its result is the reason of the refusal.
pub(crate) async fn run_done_call(
    toolbox: Arc<Toolbox>,
    prepared: PreparedCall,
    permit: Permit,
    context: RunContext,
    patcher: Arc<dyn Patcher>,
    look: PatchCheck,
    inbox: mpsc::Sender<ActorMessage>,
) {
    let (kind, reason) = match look.has_patch(&*patcher, &context.cancel).await {
        Some(Ok(())) => return run_call(toolbox, prepared, permit, context, inbox).await,
        Some(Err(reason)) => (ToolErrorKind::ExecutionFailed, reason),
        None => (ToolErrorKind::Cancelled, STOPPED.to_owned()),
    };
    let result = Box::new(CallFinished::failed(prepared.name(), kind, reason));
    let _ = inbox.send(ActorMessage::Finished { call: context.call, result }).await;
}

/// Tells whether a command may end the task.
pub(crate) async fn may_end(
    patcher: Arc<dyn Patcher>,
    look: PatchCheck,
    cancel: CancellationToken,
    reply: oneshot::Sender<Result<(), String>>,
) {
    let judged = look.has_patch(&*patcher, &cancel).await;
    let _ = reply.send(judged.unwrap_or_else(|| Err(STOPPED.to_owned())));
}

/// Waits shortly for background processes at the end of a run, and finds their changes.
pub(crate) async fn settle(toolbox: Arc<Toolbox>, inbox: mpsc::Sender<ActorMessage>) {
    let late = toolbox.services().settle_background().await;
    let _ = inbox.send(ActorMessage::Settled(late.map(Box::new))).await;
}

/// Keeps a way to undo what background processes do, in case this process is killed.
pub(crate) async fn hold(toolbox: Arc<Toolbox>, changed: bool) {
    toolbox.services().hold_background(changed).await;
}

/// Makes appended events durable against loss of power, while the model thinks.
pub(crate) async fn sync(syncer: Arc<Mutex<Syncer>>, inbox: mpsc::Sender<ActorMessage>) {
    let work = tokio::task::spawn_blocking(move || {
        let mut syncer = syncer.lock();
        syncer.sync()?;
        syncer.checkpoint_if_large()
    });
    if let Ok(Err(error)) = work.await {
        let _ = inbox.send(ActorMessage::Synced(Err(error))).await;
    }
}
