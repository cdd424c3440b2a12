//! The state of a session: the sum of its events.
//!
//! `apply` is the only way it changes, live and on resume alike, so a resumed session cannot differ from one that was
//! never stopped. It holds no history: that belongs to the rope, which is built from the same events.

use std::collections::{BTreeMap, BTreeSet};

use lathe_protocol::{
    AgentState, ApprovalAnswer, ApprovalGiven, CallDecided, CallFinished, CallId, CommandId, CommandRan,
    Decision, Digest, Ending, EndingRule, Event, Fact, Lane, ModelAnswered, ModelFailed, ModelFailure, Raw,
    RunNo, Seq, SessionOptions, StepNo, StepState, StopReason, TaskFinished, ToolErrorKind, Toolset, Usage,
    Verdict, calls_of, text_of,
};
use serde::{Deserialize, Serialize};

use crate::budget::Spending;
use crate::review::Reviews;

/// The canonical name of the tool that ends a task.
pub const DONE_TOOL: &str = "done";

/// The phases of a session. The loop is a walk through them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Between steps.
    Ready,
    /// The model was asked.
    Thinking,
    /// The answer's calls are being handled.
    Calling,
    /// Some results were failures.
    Reflecting,
    /// The answer called nothing.
    Spoke { text: String, cut: bool },
    /// `task_done` was accepted.
    Done { summary: String },
    /// The model was unreachable, or failed.
    Failed(ModelFailed),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagedCall {
    pub id: CallId,
    /// The name the model called.
    pub name: String,
    pub stage: CallStage,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStage {
    Proposed,
    Decided {
        tool: String,
        lane: Lane,
        verdict: Verdict,
        reason: String,
        #[serde(default)]
        asking: QuestionState,
    },
    Started {
        tool: String,
        lane: Lane,
    },
    Finished {
        failed: bool,
        denied: bool,
    },
}

/// The states of the question about a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionState {
    #[default]
    Not,
    Waiting,
    /// The user refused; the reason is the user's.
    Refused,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The last event applied.
    pub seq: Seq,
    pub options: SessionOptions,
    pub workspace: String,
    pub agent: AgentState,
    pub run: RunNo,
    pub step: StepNo,
    /// True if that step was asked for and has no answer: after an interruption it is asked for again.
    pub step_open: bool,
    pub steps_in_run: u32,
    pub phase: Phase,
    pub calls: Vec<StagedCall>,
    /// Tells whether the head of the prompt fits the options.
    pub head: HeadState,
    pub reminded: bool,
    pub cancelled: bool,
    /// True if the run that is cancelled was interrupted by the end of its process.
    #[serde(default)]
    pub interrupted: bool,
    /// The number of steps in a row in which every call was denied.
    pub denied_steps: u32,
    /// True if the gate denied something in this run that would have changed something.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub denied_change: bool,
    /// The error of a call when the disk was full: the run cannot continue.
    pub disk_full: Option<String>,
    /// The baseline of this run's patch, once it was recorded.
    pub baseline: Option<Baseline>,
    /// The paths that the run's calls have changed, as recorded.
    pub changed: BTreeSet<String>,
    /// The last text the model gave in this run.
    pub last_text: String,
    pub usage: Usage,
    /// The spending of the run.
    #[serde(default)]
    pub spent: Spending,
    pub seen: BTreeMap<String, Digest>,
    /// State that tools want to be given at their next call, by canonical tool name.
    pub memory: BTreeMap<String, Raw>,
    /// Commands that were accepted, with the event they led to: a repeat gets the first receipt.
    pub taken: BTreeMap<CommandId, Seq>,
    pub ending: Option<TaskFinished>,
    /// The summary of a `task_done` command in a shell line: the run ends when the other calls of the answer have
    /// ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said_done: Option<String>,
    /// Questions without an answer so far, by the number of their event.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub approvals: BTreeMap<Seq, CallId>,
    /// True if the user sent a message that the model has not seen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub steered: bool,
    /// The reviews of this run's edits.
    #[serde(default)]
    pub reviews: Reviews,
}

/// The tools that change files, by their canonical names.
const EDITORS: [&str; 4] = ["edit", "write", "patch", "data"];

/// The shell commands of these tools.
const EDIT_COMMANDS: [&str; 4] = ["edit", "write", "apply_patch", "json_edit"];

/// Tells whether a decision prevented a change. A line that was denied for its mode is one that may change something;
/// one that was denied for what it reads is not.
fn denies_a_change(decided: &CallDecided) -> bool {
    let Decision { verdict, rule, .. } = &decided.decision;
    let by_mode = rule.starts_with("mode.") || rule == "headless";
    // The writes of an agent command are known only when it runs.
    let mut programs = decided.each.iter().filter_map(|each| each.words.first());
    let edits = programs.any(|program| EDIT_COMMANDS.contains(&program.as_str()));
    // For a line, the effects of each command are known: one that only reads is not a change, whatever denied it.
    let only_reads =
        !decided.each.is_empty() && !decided.each.iter().any(|each| each.effects.change_something());
    *verdict == Verdict::Deny
        && decided.lane != Lane::Reader
        && (edits || !only_reads && (by_mode || !decided.effects.writes.is_empty()))
}

/// The baseline that the work tree is compared with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Baseline {
    Tree(String),
    /// Without git, only the recorded changes are known.
    Recorded,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeadState {
    Missing,
    Outdated,
    Fits,
}

impl State {
    /// The state after the first event of a journal. None if that event does not open a session.
    pub fn from_opening(event: &Event) -> Option<Self> {
        let Fact::SessionOpened(opened) = &event.fact else {
            return None;
        };
        Some(Self {
            seq: event.seq,
            options: opened.options.clone(),
            workspace: opened.workspace.clone(),
            agent: AgentState::Idle,
            run: RunNo(0),
            step: StepNo(0),
            step_open: false,
            steps_in_run: 0,
            phase: Phase::Ready,
            calls: Vec::new(),
            head: HeadState::Missing,
            reminded: false,
            cancelled: false,
            interrupted: false,
            denied_steps: 0,
            denied_change: false,
            disk_full: None,
            baseline: None,
            changed: BTreeSet::new(),
            last_text: String::new(),
            usage: Usage::default(),
            spent: Spending::default(),
            seen: BTreeMap::new(),
            memory: BTreeMap::new(),
            taken: BTreeMap::new(),
            ending: None,
            said_done: None,
            approvals: BTreeMap::new(),
            steered: false,
            reviews: Reviews::default(),
        })
    }

    pub fn apply(&mut self, event: &Event) {
        self.seq = event.seq;
        self.spent.apply(event, &self.options.limits.budget);
        if let Some(command) = event.fact.command() {
            self.taken.insert(command.clone(), event.seq);
        }
        match &event.fact {
            Fact::TaskGiven(_) => self.begin_run(event.place.run),
            Fact::RunResumed(_) => self.resume(),
            Fact::Steered(_) => self.steered = true,
            Fact::CancelAsked(asked) => {
                self.cancelled = true;
                self.interrupted = asked.interrupted;
            }
            Fact::OptionsChanged(changed) => {
                self.options = changed.options.clone();
                self.head = HeadState::Outdated;
            }
            Fact::EpochStarted(_) => self.head = HeadState::Fits,
            Fact::BaselineTaken(taken) => {
                self.baseline = Some(taken.tree.clone().map_or(Baseline::Recorded, Baseline::Tree));
            }
            Fact::ModelAsked(_) => {
                let step = event.place.step.unwrap_or(self.step);
                if step > self.step {
                    self.steps_in_run += 1;
                }
                self.step = step;
                self.step_open = true;
                self.steered = false;
                self.phase = Phase::Thinking;
            }
            Fact::ModelAnswered(answered) => self.apply_answer(answered),
            Fact::ModelFailed(failed) => self.model_failed(failed),
            Fact::CallDecided(decided) => self.apply_decision(event, decided),
            Fact::CallStarted(_) => self.apply_start(event),
            Fact::CallFinished(finished) => self.apply_finish(event, finished),
            Fact::Reflected(_) => self.phase = Phase::Ready,
            Fact::Reminded(_) => {
                self.reminded = true;
                self.phase = Phase::Ready;
            }
            Fact::TaskFinished(finished) => {
                self.agent =
                    if finished.ending.is_success() { AgentState::Completed } else { AgentState::Error };
                self.ending = Some(finished.clone());
                self.phase = Phase::Ready;
                self.calls.clear();
            }
            Fact::FilesRestored(restored) => {
                // The content that the model saw of these files is out of date; the hash shows it.
                self.changed.extend(restored.changes.iter().map(|change| change.path.clone()));
            }
            Fact::CommandRan(ran) => self.apply_command(ran),
            Fact::ApprovalAsked(_) => {
                self.approvals.extend(event.place.call.clone().map(|call| (event.seq, call)));
                self.update_decided_call(event, |_, _, asking| *asking = QuestionState::Waiting);
            }
            Fact::ApprovalGiven(given) => self.apply_approval(event, given),
            Fact::ApprovalExpired(_) => {
                self.close_question(event);
                self.update_decided_call(event, |_, _, asking| *asking = QuestionState::Not);
            }
            Fact::SessionOpened(_)
            | Fact::ReplayDrifted(_)
            | Fact::Rewound(_)
            | Fact::RewindUndone(_)
            | Fact::QuestionAsked(_)
            | Fact::SessionNamed(_)
            | Fact::StepSummarised(_)
            | Fact::EditsReviewed(_)
            | Fact::CommandTaken(_)
            | Fact::Unknown(_) => {}
        }
    }

    /// Resumes a run that had ended without success. The causes of the ending are reset; everything else stays.
    fn resume(&mut self) {
        self.agent = AgentState::Running;
        self.steps_in_run = 0;
        self.phase = Phase::Ready;
        self.reminded = false;
        self.cancelled = false;
        self.interrupted = false;
        self.denied_steps = 0;
        self.denied_change = false;
        self.disk_full = None;
        self.ending = None;
        self.said_done = None;
    }

    fn begin_run(&mut self, run: RunNo) {
        self.agent = AgentState::Running;
        self.run = run;
        self.step_open = false;
        self.steps_in_run = 0;
        self.phase = Phase::Ready;
        self.calls.clear();
        self.reminded = false;
        self.cancelled = false;
        self.interrupted = false;
        self.denied_steps = 0;
        self.denied_change = false;
        self.disk_full = None;
        self.baseline = None;
        self.changed.clear();
        self.last_text.clear();
        self.said_done = None;
        self.ending = None;
        self.steered = false;
        self.reviews = Reviews::default();
    }

    fn apply_answer(&mut self, answered: &ModelAnswered) {
        self.usage += answered.usage;
        self.step_open = false;
        let text = text_of(&answered.blocks);
        if !text.trim().is_empty() {
            self.last_text.clone_from(&text);
        }
        self.calls = calls_of(&answered.blocks)
            .map(|call| StagedCall {
                id: call.id.clone(),
                name: call.name.clone(),
                stage: CallStage::Proposed,
            })
            .collect();
        self.phase = if self.calls.is_empty() {
            Phase::Spoke { text, cut: answered.stop == StopReason::Length }
        } else {
            Phase::Calling
        };
    }

    fn model_failed(&mut self, failed: &ModelFailed) {
        self.phase = match failed.kind {
            // The step was never answered, so it is still to be done.
            ModelFailure::Interrupted => Phase::Ready,
            ModelFailure::Refused
            | ModelFailure::TooLong
            | ModelFailure::Unavailable
            | ModelFailure::Diverged
            | ModelFailure::OutOfTime
            | ModelFailure::Cancelled => Phase::Failed(failed.clone()),
        };
    }

    /// Tells whether every change that the run tried was denied. Then the task was not done, whatever the model says.
    pub fn only_denied(&self) -> bool {
        self.denied_change && self.changed.is_empty()
    }

    fn apply_decision(&mut self, event: &Event, decided: &CallDecided) {
        self.denied_change |= denies_a_change(decided);
        if let Some(call) = self.call_mut(event) {
            call.stage = CallStage::Decided {
                tool: decided.tool.clone(),
                lane: decided.lane,
                verdict: decided.decision.verdict,
                reason: decided.decision.reason.clone(),
                asking: QuestionState::Not,
            };
        }
    }

    fn update_decided_call(
        &mut self,
        event: &Event,
        change: impl FnOnce(&mut Verdict, &mut String, &mut QuestionState),
    ) {
        if let Some(call) = self.call_mut(event)
            && let CallStage::Decided { verdict, reason, asking, .. } = &mut call.stage
        {
            change(verdict, reason, asking);
        }
    }

    fn apply_approval(&mut self, event: &Event, given: &ApprovalGiven) {
        self.close_question(event);
        self.update_decided_call(event, |verdict, reason, asking| match given.answer {
            ApprovalAnswer::Once | ApprovalAnswer::Session | ApprovalAnswer::Always => {
                (*verdict, *asking) = (Verdict::Allow, QuestionState::Not);
            }
            ApprovalAnswer::No => {
                (*verdict, *asking) = (Verdict::Deny, QuestionState::Refused);
                *reason = given.reason.clone().unwrap_or_default();
            }
        });
    }

    fn close_question(&mut self, event: &Event) {
        if let Some(question) = event.place.cause {
            self.approvals.remove(&question);
        }
    }

    fn apply_start(&mut self, event: &Event) {
        if let Some(call) = self.call_mut(event)
            && let CallStage::Decided { tool, lane, .. } = &call.stage
        {
            call.stage = CallStage::Started { tool: tool.clone(), lane: *lane };
        }
    }

    fn apply_finish(&mut self, event: &Event, finished: &CallFinished) {
        self.changed.extend(finished.changes.iter().map(|change| change.path.clone()));
        for seen in &finished.seen {
            self.seen.insert(seen.path.clone(), seen.hash.clone());
        }
        if let Some(reviewed) = &finished.review {
            self.reviews.apply(reviewed);
        }
        if let Some(error) = &finished.error
            && error.kind == ToolErrorKind::NoSpaceLeft
        {
            self.disk_full = Some(error.message.clone());
        }
        let Some(call) = self.call_mut(event) else { return };
        let (tool, denied) = match &call.stage {
            CallStage::Started { tool, .. } => (Some(tool.clone()), false),
            // A user's refusal is information to work with, not a denial by the gate.
            CallStage::Decided { tool, verdict, asking, .. } => {
                (Some(tool.clone()), *verdict == Verdict::Deny && *asking != QuestionState::Refused)
            }
            CallStage::Proposed | CallStage::Finished { .. } => (None, false),
        };
        // A call that an interruption closed is not a failure of the model.
        let failed = finished.error.as_ref().is_some_and(|error| error.kind != ToolErrorKind::Interrupted);
        call.stage = CallStage::Finished { failed, denied };
        if let Some(tool) = tool {
            if tool == DONE_TOOL && finished.error.is_none() {
                self.phase = Phase::Done { summary: self.summary(finished) };
            }
            if let Some(memory) = &finished.memory {
                self.memory.insert(tool, memory.clone());
            }
        }
        if self.calls.iter().all(|call| matches!(call.stage, CallStage::Finished { .. })) {
            self.end_step();
        }
    }

    /// Applies a command of a shell line: its tool counts as if it had been called.
    fn apply_command(&mut self, ran: &CommandRan) {
        let edits = ran.tool.as_deref().is_some_and(|tool| EDITORS.contains(&tool));
        self.denied_change |= edits && ran.decision.verdict == Verdict::Deny;
        self.changed.extend(ran.changes.iter().map(|change| change.path.clone()));
        for seen in &ran.seen {
            self.seen.insert(seen.path.clone(), seen.hash.clone());
        }
        if let (Some(tool), Some(memory)) = (&ran.tool, &ran.memory) {
            self.memory.insert(tool.clone(), memory.clone());
        }
        if let Some(summary) = &ran.summary {
            let text = if summary.is_empty() { &self.last_text } else { summary };
            self.said_done = Some(text.clone());
        }
    }

    /// Ends the step: all calls of the answer have their result.
    fn end_step(&mut self) {
        let mut stages = self.calls.iter().map(|call| &call.stage);
        let all_denied = stages.all(|stage| matches!(stage, CallStage::Finished { denied: true, .. }));
        self.denied_steps = if all_denied { self.denied_steps + 1 } else { 0 };
        let failed =
            self.calls.iter().any(|call| matches!(call.stage, CallStage::Finished { failed: true, .. }));
        if let Some(summary) = self.said_done.take() {
            self.phase = Phase::Done { summary };
        }
        match self.phase {
            // `task_done` is handled last. If it is accepted, the run ends even if other calls of the answer failed.
            Phase::Done { .. } => {}
            Phase::Calling if failed => self.phase = Phase::Reflecting,
            Phase::Ready
            | Phase::Thinking
            | Phase::Calling
            | Phase::Reflecting
            | Phase::Spoke { .. }
            | Phase::Failed(_) => {
                self.phase = Phase::Ready;
            }
        }
    }

    fn summary(&self, finished: &CallFinished) -> String {
        let given = finished.data.as_ref().and_then(|data| data.to_value().ok());
        let summary = given.as_ref().and_then(|data| data.get("summary")?.as_str()).unwrap_or_default();
        if summary.is_empty() { self.last_text.clone() } else { summary.to_owned() }
    }

    fn call_mut(&mut self, event: &Event) -> Option<&mut StagedCall> {
        let id = event.place.call.as_ref()?;
        self.calls.iter_mut().find(|call| call.id == *id)
    }

    /// The state of the current step in Trae's words. None before the first step.
    pub fn step_state(&self) -> Option<StepState> {
        if self.step == StepNo(0) {
            return None;
        }
        Some(match &self.phase {
            Phase::Thinking => StepState::Thinking,
            Phase::Calling => StepState::CallingTool,
            Phase::Reflecting => StepState::Reflecting,
            Phase::Failed(_) => StepState::Error,
            Phase::Ready | Phase::Spoke { .. } | Phase::Done { .. } => StepState::Completed,
        })
    }

    /// Tells whether the last run ended in a way that resuming could help.
    pub fn can_resume(&self) -> bool {
        self.is_unfinished() || self.last_ending().is_some_and(|ending| !ending.is_success())
    }

    /// The step to do now.
    pub fn next_step(&self) -> StepNo {
        if self.step_open { self.step } else { self.step.next() }
    }

    /// Tells whether a run is unfinished: after a kill, this is the run that `resume` continues.
    pub fn is_unfinished(&self) -> bool {
        self.agent == AgentState::Running
    }

    pub(crate) fn remind_rule(&self) -> EndingRule {
        self.options.ending
    }

    pub(crate) fn toolset(&self) -> Toolset {
        self.options.toolset
    }

    /// Tells whether a run needs a patch to be done.
    pub fn must_patch(&self) -> bool {
        self.options.patch.as_ref().is_some_and(|rule| rule.must)
    }

    /// The reason why a judge's verdict keeps the task from ending, if it does.
    pub fn review_refusal(&self) -> Option<String> {
        self.reviews.refusal(self.options.review.as_ref())
    }

    /// The ending of the last run.
    pub fn last_ending(&self) -> Option<Ending> {
        self.ending.as_ref().map(|finished| finished.ending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_of_an_editor_is_known() {
        let commands = lathe_tools::built_in_commands().into_iter();
        let mut editing: Vec<String> =
            commands.filter(|own| EDITORS.contains(&own.tool.as_str())).map(|own| own.name).collect();
        editing.sort();
        let mut known = EDIT_COMMANDS;
        known.sort_unstable();
        assert_eq!(editing, known);
    }
}
