//! The session actor: one task that receives, decides, appends, applies and acts.
//!
//! It is the only writer of the journal. Effects run in tasks it owns and reply into its inbox; nothing they do
//! counts until the event is appended. An event is appended before any subscriber sees it, and an intent before its
//! effect.

mod approvals;
mod background;
mod calls;
mod current_rules;
mod saved_state;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use lathe_journal::{Journal, JournalError, Syncer};
use lathe_model::{ModelAnswer, ModelClient, ModelError, Variables};
use lathe_policy::{Gate, Rulebook};
use lathe_protocol::{
    AgentId, BaselineTaken, CallFinished, CallId, CancelAsked, Command, CommandBody, CommandTaken, Draft,
    EditsReviewed, EpochStarted, Event, EventPlace, Fact, FilesRestored, FrameBody, ModelAnswered,
    ModelAsked, ModelFailed, ModelFailure, OptionsChanged, QuestionAsked, Receipt, ReceiptAnswer, Reflected,
    Reminded, RunResumed, Seq, SessionNamed, SessionOptions, Steered, StepNo, StepSummarised, TaskFinished,
    TaskGiven, Timestamp, ToolCall, Update, Usage, calls_of,
};
use lathe_redact::Redactor;
use lathe_tools::Toolbox;
use parking_lot::Mutex;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::actor::approvals::{GivenApproval, OpenApproval};
use crate::budget::out_of_time;
use crate::effects::{self, ActorMessage, Unanswered, UnansweredCause, UpdateChannel};
use crate::handle::{LocalHandle, OpenReader};
use crate::history::{History, StoredImages};
use crate::next::{Action, next};
use crate::patch::Patcher;
use crate::prompt::{PromptFacts, SessionLimits, system_prompt};
use crate::running::{OpenQuestion, RunningCalls};
use crate::state::{Phase, State};

pub use current_rules::ApprovalStore;
use current_rules::CurrentRules;
use saved_state::{SavedState, StateFold};

/// Events between two snapshots of the state.
const SNAPSHOT_EVERY: u64 = 300;

/// Updates that a slow subscriber may fall behind before it must read the journal again.
const UPDATES: usize = 1024;

/// The time of day, injected.
pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;
}

#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("the journal of this session does not begin with its opening, so the session cannot be resumed")]
    NoBeginning,
}

/// Everything that a session needs from outside.
pub struct ActorSetup {
    pub journal: Journal,
    pub model: Arc<dyn ModelClient>,
    pub toolbox: Arc<Toolbox>,
    pub gate: Gate,
    pub rules: Arc<Rulebook>,
    /// Keeps standing approvals.
    pub approvals: Arc<dyn ApprovalStore>,
    pub clock: Arc<dyn Clock>,
    pub redactor: Arc<Redactor>,
    pub variables: Arc<Variables>,
    /// Describes the environment; called once per epoch.
    pub facts: Box<dyn Fn() -> PromptFacts + Send + Sync>,
    /// Compares the work tree with its baseline, for patches.
    pub patcher: Arc<dyn Patcher>,
    /// Opens a reader on this session's journal, for subscriptions.
    pub readers: OpenReader,
    /// True if a user is present to answer questions.
    pub attended: bool,
}

pub struct Actor {
    setup: ActorSetup,
    state: State,
    history: History,
    inbox: mpsc::Receiver<ActorMessage>,
    inbox_sender: mpsc::Sender<ActorMessage>,
    watchers: UpdateChannel,
    last: watch::Sender<Seq>,
    syncer: Arc<Mutex<Syncer>>,
    tasks: JoinSet<()>,
    cancel: CancellationToken,
    /// The calls of the last answer, as the model made them.
    calls: Vec<ToolCall>,
    prepared: HashMap<CallId, calls::PendingCall>,
    /// Calls whose preview is being made before the user is asked about them.
    previewing: HashSet<CallId>,
    /// The notes on what the user changed in calls that have not ended.
    edited: HashMap<CallId, String>,
    open_approvals: BTreeMap<Seq, OpenApproval>,
    rules: CurrentRules,
    running: RunningCalls,
    snapshot: Seq,
    /// True if an interrupted run waits for a command: it does not continue just because the session was opened.
    waits_for_resume: bool,
    /// True while the work tree is being compared; the result comes into the inbox.
    comparing: bool,
    /// True if background processes were checked since the last action, so that the run can end.
    settled: bool,
}

impl Actor {
    /// Reads a journal that has at least its opening, closes what was left open, and gets ready. New options become
    /// an event if they differ from the session's.
    pub fn open(
        setup: ActorSetup,
        options: Option<SessionOptions>,
    ) -> Result<(Self, LocalHandle), AgentError> {
        let reader = setup.journal.reader()?;
        // A snapshot may belong to a branch that was rewound. Then everything is read as if there were no snapshot.
        let rewound = reader.has_rewinds()?;
        let saved = if rewound { None } else { setup.journal.snapshot()? };
        let saved = saved.and_then(|(_, bytes)| serde_json::from_slice::<SavedState>(&bytes).ok());
        let images = Arc::new(StoredImages(setup.toolbox.services().blobs.clone()));
        let mut history = History::new(setup.model.form(), AgentId::main(), Arc::clone(&setup.variables))
            .with_images(images);
        // The last request was digested when it was made, so only the messages after it are digested here.
        let asked = if rewound { None } else { reader.last_request()? };
        match (asked.map(|event| (event.seq, event.fact)), &saved) {
            (Some((seq, Fact::ModelAsked(asked))), saved)
                if saved.as_ref().is_none_or(|saved| saved.state.seq < seq) =>
            {
                history.trust_chain(seq, asked.digest);
            }
            (_, Some(saved)) => history.trust_chain(saved.state.seq, saved.chain.clone()),
            (_, None) => {}
        }
        let snapshot = saved.as_ref().map_or(Seq(0), |saved| saved.state.seq);
        let saved = saved.map(|saved| saved.state);
        let mut fold = StateFold { saved, state: None };
        reader.live_each(|event| {
            history.take(&event);
            fold.take(&event);
        })?;
        let state = fold.state.ok_or(AgentError::NoBeginning)?;
        let (answers, inbox) = mpsc::channel(256);
        let (updates, _) = broadcast::channel(UPDATES);
        let (last, last_seen) = watch::channel(state.seq);
        let handle = LocalHandle {
            inbox: answers.clone(),
            updates: updates.downgrade(),
            open: Arc::clone(&setup.readers),
            blobs: setup.toolbox.services().blobs.clone(),
        };
        let watchers = UpdateChannel { updates, last: last_seen, agent: AgentId::main() };
        let mut actor = Self {
            syncer: Arc::new(Mutex::new(setup.journal.syncer()?)),
            snapshot,
            state,
            history,
            inbox,
            inbox_sender: answers,
            watchers,
            last,
            tasks: JoinSet::new(),
            cancel: CancellationToken::new(),
            calls: Vec::new(),
            prepared: HashMap::new(),
            previewing: HashSet::new(),
            edited: HashMap::new(),
            open_approvals: BTreeMap::new(),
            running: RunningCalls::default(),
            rules: CurrentRules::new(Arc::clone(&setup.rules), Arc::clone(&setup.approvals)),
            setup,
            waits_for_resume: false,
            comparing: false,
            settled: false,
        };
        actor.repair(options)?;
        actor.waits_for_resume = actor.state.is_unfinished();
        Ok((actor, handle))
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    fn repair(&mut self, options: Option<SessionOptions>) -> Result<(), AgentError> {
        for event in self.setup.journal.repair(self.setup.clock.now())? {
            self.apply_event(event);
        }
        self.expire(None, "Lathe was stopped while it asked")?;
        if self.state.phase == Phase::Thinking {
            let message = "Lathe was stopped while it waited for the model.".to_owned();
            let lost = Usage::default();
            self.append(self.at_step(), ModelFailed { kind: ModelFailure::Interrupted, message, lost })?;
        }
        match options {
            Some(options) if options != self.state.options => {
                self.append(self.in_run(), OptionsChanged { options })?;
            }
            Some(_) | None => {}
        }
        Ok(())
    }

    /// Works until a close message arrives. Work that is then still running is cancelled first.
    pub async fn run(mut self) -> Result<(), AgentError> {
        let worked = self.work().await;
        self.cancel.cancel();
        while self.tasks.join_next().await.is_some() {}
        let closed = self.close_shell().await;
        self.setup.journal.close()?;
        worked.and(closed)
    }

    async fn work(&mut self) -> Result<(), AgentError> {
        loop {
            self.act_until_waiting()?;
            // Ended tasks are removed, or the set would grow with every call.
            while self.tasks.try_join_next().is_some() {}
            match self.inbox.recv().await {
                Some(ActorMessage::Close) | None => return Ok(()),
                Some(message) => self.receive(message)?,
            }
        }
    }

    fn act_until_waiting(&mut self) -> Result<(), AgentError> {
        while !self.waits_for_resume {
            let actions = next(&self.state);
            if actions.is_empty() || self.comparing || !self.previewing.is_empty() {
                return Ok(());
            }
            for action in actions {
                self.act(action)?;
            }
        }
        Ok(())
    }

    fn receive(&mut self, message: ActorMessage) -> Result<(), AgentError> {
        match message {
            ActorMessage::Command(command, reply) => {
                let answer = self.command(&command)?;
                let _ = reply.send(Receipt { command: command.id, answer });
                Ok(())
            }
            ActorMessage::Answered { step, result, took_ms } => self.handle_answer(step, result, took_ms),
            ActorMessage::Finished { call, result } => {
                self.running.end(&call);
                let result = self.with_edit(&call, result);
                self.expire(Some(&call), "the call has ended")?;
                self.append(self.at_call(call), *result)
            }
            ActorMessage::Question { call, questions, reply } => {
                let count = questions.len();
                self.append(self.at_call(call.clone()), QuestionAsked { questions })?;
                self.running.add_question(call, OpenQuestion { question: self.state.seq, count, reply });
                Ok(())
            }
            ActorMessage::Previewed { call, preview } => self.open_previewed(call, preview),
            ActorMessage::Proposed { question, text, reply } => {
                let _ = reply.send(self.proposed_text(question, text));
                Ok(())
            }
            ActorMessage::Approval { call, wanted, reply } => {
                self.handle_command_approval(call, &wanted, reply)
            }
            ActorMessage::Recall { tool, paths, reply } => {
                let _ = reply.send(self.recall(&tool, paths));
                Ok(())
            }
            ActorMessage::Output { handle, reply } => {
                let _ = reply.send(self.output(handle));
                Ok(())
            }
            ActorMessage::CommandEnded { call, ran, written } => {
                self.append(self.at_call(call), *ran)?;
                let _ = written.send(());
                Ok(())
            }
            ActorMessage::MayEnd(reply) => {
                if let Some(reason) = self.state.review_refusal() {
                    let _ = reply.send(Err(reason));
                } else if self.state.must_patch() {
                    let (patcher, look) = (Arc::clone(&self.setup.patcher), self.patch_check());
                    self.tasks.spawn(effects::may_end(patcher, look, self.cancel.clone(), reply));
                } else {
                    let _ = reply.send(Ok(()));
                }
                Ok(())
            }
            ActorMessage::Baseline(tree) => {
                self.comparing = false;
                self.append(self.in_run(), BaselineTaken { tree })
            }
            ActorMessage::CompareStopped => {
                self.comparing = false;
                Ok(())
            }
            ActorMessage::Settled(late) => self.background_settled(late.map(|late| *late)),
            ActorMessage::EndingChecked(ending, result) => {
                self.comparing = false;
                // A cancel that arrived meanwhile takes precedence.
                if self.state.cancelled {
                    return Ok(());
                }
                self.append(self.in_run(), TaskFinished { ending, result })
            }
            ActorMessage::Synced(result) => result.map_err(AgentError::from),
            ActorMessage::Close => Ok(()),
        }
    }

    fn command(&mut self, command: &Command) -> Result<ReceiptAnswer, AgentError> {
        if let Some(seq) = self.state.taken.get(&command.id) {
            return Ok(ReceiptAnswer::Accepted { seq: *seq });
        }
        let refused = |reason: &str| Ok(ReceiptAnswer::Refused { reason: reason.to_owned() });
        match &command.body {
            CommandBody::GiveTask { .. } if self.state.is_unfinished() => {
                refused("a task is under way in this session")
            }
            CommandBody::GiveTask { text, images } => {
                self.cancel = CancellationToken::new();
                let text = self.setup.redactor.redact_text(text).into_owned();
                let place = EventPlace::in_run(self.state.run.next());
                let (id, images) = (command.id.clone(), images.clone());
                self.append(place, TaskGiven { text, images, command: id, actor: command.actor })?;
                Ok(ReceiptAnswer::Accepted { seq: self.state.seq })
            }
            CommandBody::GoOn if self.state.is_unfinished() && !self.waits_for_resume => {
                refused("the run is under way already")
            }
            CommandBody::GoOn if self.state.is_unfinished() && !self.state.cancelled => {
                self.waits_for_resume = false;
                self.accept(command)
            }
            // This includes a run whose cancelling was interrupted: a user who resumes it no longer wants to cancel.
            CommandBody::GoOn if self.state.can_resume() => {
                self.waits_for_resume = false;
                self.cancel = CancellationToken::new();
                self.append(self.in_run(), RunResumed { command: command.id.clone(), actor: command.actor })?;
                Ok(ReceiptAnswer::Accepted { seq: self.state.seq })
            }
            CommandBody::GoOn => refused("there is nothing to resume: the last task was finished"),
            CommandBody::Steer { text } if self.state.is_unfinished() && !self.state.cancelled => {
                let text = self.setup.redactor.redact_text(text).into_owned();
                let said = Steered { text, command: command.id.clone(), actor: command.actor };
                self.append(self.in_run(), said)?;
                Ok(ReceiptAnswer::Accepted { seq: self.state.seq })
            }
            CommandBody::Steer { .. } => refused("no task is under way: give one"),
            CommandBody::Rename { title } => {
                let title = self.setup.redactor.redact_text(title).into_owned();
                self.append(self.in_run(), SessionNamed { title, command: Some(command.id.clone()) })?;
                Ok(ReceiptAnswer::Accepted { seq: self.state.seq })
            }
            CommandBody::Summarise { run, step, summary } => {
                let summary = StepSummarised { command: Some(command.id.clone()), ..summary.clone() };
                self.append(EventPlace::in_run(*run).at_step(*step), summary)?;
                Ok(ReceiptAnswer::Accepted { seq: self.state.seq })
            }
            CommandBody::Review { reviewed, changes } => {
                let word = EditsReviewed { command: Some(command.id.clone()), ..reviewed.clone() };
                self.append(self.in_run(), word)?;
                let seq = self.state.seq;
                if !changes.is_empty() {
                    let restored = FilesRestored {
                        folder: None,
                        to: None,
                        undoes: None,
                        changes: changes.clone(),
                        conflicts: Vec::new(),
                    };
                    self.append(self.in_run(), restored)?;
                }
                Ok(ReceiptAnswer::Accepted { seq })
            }
            CommandBody::Cancel if self.state.is_unfinished() => {
                self.append(
                    self.in_run(),
                    CancelAsked {
                        command: command.id.clone(),
                        actor: command.actor,
                        interrupted: self.waits_for_resume,
                    },
                )?;
                self.cancel.cancel();
                self.waits_for_resume = false;
                Ok(ReceiptAnswer::Accepted { seq: self.state.seq })
            }
            CommandBody::Cancel => refused("nothing is under way"),
            CommandBody::CancelCall { call } if self.running.stop(call) => self.accept(command),
            CommandBody::CancelCall { .. } => refused("no such call is running"),
            CommandBody::Answer { call, question, answers } => {
                match self.running.answer(call, *question, answers.clone()) {
                    Ok(()) => self.accept(command),
                    Err(reason) => refused(&reason),
                }
            }
            CommandBody::Approve { call, question, answer, reason, edited } => {
                let (reason, edited) = (reason.as_deref(), edited.as_ref());
                let given = GivenApproval { call, question: *question, answer: *answer, reason, edited };
                self.approve(command, &given)
            }
        }
    }

    /// Records a command that no other event names, so that a repetition gets the same receipt.
    fn accept(&mut self, command: &Command) -> Result<ReceiptAnswer, AgentError> {
        let (id, actor) = (command.id.clone(), command.actor);
        self.append(self.in_run(), CommandTaken { command: id, actor, receipt: None })?;
        Ok(ReceiptAnswer::Accepted { seq: self.state.seq })
    }

    fn act(&mut self, action: Action) -> Result<(), AgentError> {
        if self.must_settle_first(&action) {
            return Ok(());
        }
        match action {
            Action::StartEpoch(cause) => {
                let toolset = self.state.options.toolset;
                let own = self.state.options.persona.as_ref().and_then(|persona| persona.system.clone());
                let tools = self.setup.toolbox.own_specs();
                let limits = SessionLimits {
                    mode: self.state.options.mode,
                    is_attended: !self.setup.gate.headless,
                    tools: tools.iter().map(|tool| tool.name.clone()).collect(),
                };
                let system =
                    own.unwrap_or_else(|| system_prompt(toolset, &(self.setup.facts)(), Some(&limits)));
                self.append(self.in_run(), EpochStarted { cause, system, tools })
            }
            Action::Ask(step) => self.ask(step),
            Action::Decide(call) => self.decide(call),
            Action::AskApproval(call) => self.ask_approval(call),
            Action::Run(call) => self.run_call(call),
            Action::Close { call, kind, message } => {
                let name = self.call_name(&call);
                self.prepared.remove(&call);
                self.expire(Some(&call), "the call has ended")?;
                self.append(self.at_call(call), CallFinished::failed(&name, kind, message))
            }
            Action::Reflect(text) => self.append(self.at_step(), Reflected { text }),
            Action::Remind(text) => self.append(self.at_step(), Reminded { text }),
            Action::TakeBaseline => {
                let base = self.state.options.patch.as_ref().and_then(|rule| rule.base.clone());
                self.comparing = true;
                let patcher = Arc::clone(&self.setup.patcher);
                let cancel = self.cancel.clone();
                self.tasks.spawn(effects::baseline(patcher, base, cancel, self.inbox_sender.clone()));
                Ok(())
            }
            Action::Judge { result } => {
                self.comparing = true;
                let (patcher, look) = (Arc::clone(&self.setup.patcher), self.patch_check());
                let cancel = self.cancel.clone();
                self.tasks.spawn(effects::check_ending(
                    patcher,
                    look,
                    result,
                    cancel,
                    self.inbox_sender.clone(),
                ));
                Ok(())
            }
            Action::Finish { ending, result } => self.append(self.in_run(), TaskFinished { ending, result }),
        }
    }

    fn ask(&mut self, step: StepNo) -> Result<(), AgentError> {
        self.history.push_user_messages();
        let request = self.history.request(step);
        let asked = ModelAsked { digest: request.digest.clone(), messages: request.messages };
        self.append(self.in_run().at_step(step), asked)?;
        self.tasks.spawn(effects::ask(
            Arc::clone(&self.setup.model),
            request,
            self.watchers.clone(),
            self.cancel.clone(),
            self.state.spent.remaining(&self.state.options.limits.budget),
            self.inbox_sender.clone(),
        ));
        // The previous step is made durable while the model thinks.
        self.tasks.spawn(effects::sync(Arc::clone(&self.syncer), self.inbox_sender.clone()));
        if self.state.seq.0 - self.snapshot.0 >= SNAPSHOT_EVERY {
            let snapshot = SavedState { state: self.state.clone(), chain: self.history.chain().clone() };
            let bytes = serde_json::to_vec(&snapshot).unwrap_or_default();
            self.setup.journal.save_snapshot(self.state.seq, &bytes)?;
            self.snapshot = self.state.seq;
        }
        Ok(())
    }

    fn handle_answer(
        &mut self,
        step: StepNo,
        result: Result<ModelAnswer, Unanswered>,
        took_ms: u64,
    ) -> Result<(), AgentError> {
        let place = self.in_run().at_step(step);
        let failed = |kind, message: String| (kind, message);
        let lost = result.as_ref().err().map_or_else(Usage::default, |unanswered| unanswered.lost);
        let (kind, message) = match result.map_err(Unanswered::cause) {
            Ok(ModelAnswer { blocks, stop, usage, model, drift }) => {
                if let Some(drift) = drift {
                    self.append(place.clone(), drift)?;
                }
                let before = self.state.spent.clone();
                self.append(place, ModelAnswered { blocks, stop, usage, model, took_ms })?;
                if let Some(words) = self.state.spent.warning(&before, &self.state.options.limits.budget) {
                    self.watchers.show(step, None, FrameBody::Warning(words));
                }
                return Ok(());
            }
            Err(UnansweredCause::UsedUp(words)) => failed(ModelFailure::OutOfTime, words),
            Err(UnansweredCause::Error(error)) => match error {
                ModelError::Refused(message) => failed(ModelFailure::Refused, message),
                ModelError::TooLong(message) => failed(ModelFailure::TooLong, message),
                ModelError::Unavailable(message) => failed(ModelFailure::Unavailable, message),
                ModelError::Diverged(message) => failed(ModelFailure::Diverged, message),
                ModelError::OutOfTime => {
                    failed(ModelFailure::OutOfTime, out_of_time(&self.state.options.limits.budget))
                }
                ModelError::Cancelled => failed(ModelFailure::Cancelled, "cancelled".to_owned()),
            },
        };
        let message = self.setup.redactor.redact_text(&message).into_owned();
        self.append(place, ModelFailed { kind, message, lost })
    }

    fn append(&mut self, place: EventPlace, fact: impl Into<Fact>) -> Result<(), AgentError> {
        let event = self.setup.journal.append(self.setup.clock.now(), Draft { place, fact: fact.into() })?;
        self.apply_event(event);
        Ok(())
    }

    /// Applies an event that is in the journal: from now on it counts.
    fn apply_event(&mut self, event: Event) {
        self.state.apply(&event);
        self.history.take(&event);
        if let Fact::ModelAnswered(answered) = &event.fact {
            self.calls = calls_of(&answered.blocks).cloned().collect();
            self.prepared.clear();
        }
        if let (Fact::CallFinished(_), Some(call)) = (&event.fact, &event.place.call) {
            self.setup.toolbox.services().discard_pledges(call);
            self.hold_background();
        }
        self.last.send_replace(event.seq);
        let _ = self.watchers.updates.send(Update::Event(Arc::new(event)));
    }

    fn call_name(&self, id: &CallId) -> String {
        self.state.calls.iter().find(|call| call.id == *id).map(|call| call.name.clone()).unwrap_or_default()
    }

    fn in_run(&self) -> EventPlace {
        EventPlace::in_run(self.state.run)
    }

    fn at_step(&self) -> EventPlace {
        self.in_run().at_step(self.state.step)
    }

    fn at_call(&self, call: CallId) -> EventPlace {
        self.at_step().at_call(call)
    }
}
