//! Decides what to do next: the whole loop as one pure function of the state.
//!
//! `Ready` asks the model; its answer leads to calls, to text, or to a failure; finished calls lead back to `Ready`,
//! through a reflection if some failed. Every ending of a run is decided here.

use lathe_protocol::{
    CallId, Ending, EndingRule, EpochCause, ModelFailure, StepNo, ToolErrorKind, Toolset, Verdict,
};
use lathe_tools::{Stage, startable};

use crate::state::{CallStage, HeadState, Phase, QuestionState, State};
use lathe_protocol::AgentState;

/// Steps in a row with every call denied, after which the task counts as impossible.
const DENIED_STEPS: u32 = 3;

/// An action of the session; each leads to at least one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    StartEpoch(EpochCause),
    Ask(StepNo),
    /// Build the invocation and show its effects to the gate.
    Decide(CallId),
    /// Show the user the preview of a call, and ask.
    AskApproval(CallId),
    Run(CallId),
    /// Close a call without running it.
    Close {
        call: CallId,
        kind: ToolErrorKind,
        message: String,
    },
    Reflect(String),
    Remind(String),
    Finish {
        ending: Ending,
        result: String,
    },
    /// Record the work tree, for the patch.
    TakeBaseline,
    /// Check that there is a patch before the text counts as the result.
    Judge {
        result: String,
    },
}

/// The actions of the session now. Empty if it waits for an answer, a result or a task.
pub fn next(state: &State) -> Vec<Action> {
    if state.agent != AgentState::Running {
        return Vec::new();
    }
    if state.cancelled {
        return cancel(state);
    }
    // A second call that ends the task may follow the first, and must have its result too.
    if matches!(state.phase, Phase::Done { .. }) && !all_calls_closed(state) {
        return calls(state);
    }
    if let (Some(message), Phase::Ready | Phase::Reflecting | Phase::Done { .. }) =
        (&state.disk_full, &state.phase)
    {
        return once_closed(state, || finish(Ending::DiskFull, message));
    }
    match &state.phase {
        Phase::Ready => ready(state),
        // The user sent a message that the model has not read: it is asked once more before the run may end.
        Phase::Spoke { .. } | Phase::Done { .. } if state.steered && all_calls_closed(state) => ready(state),
        Phase::Thinking => Vec::new(),
        Phase::Calling => calls(state),
        Phase::Reflecting => vec![Action::Reflect(reflection(state))],
        Phase::Spoke { text, cut } => after_text(state, text, *cut),
        Phase::Done { summary } => {
            let ending = if state.only_denied() { Ending::Denied } else { Ending::Done };
            once_closed(state, || finish(ending, summary))
        }
        Phase::Failed(failed) => {
            let ending = match failed.kind {
                ModelFailure::Diverged => Ending::Failed,
                ModelFailure::Cancelled => Ending::Cancelled,
                ModelFailure::OutOfTime => Ending::BudgetUsedUp,
                ModelFailure::Refused
                | ModelFailure::TooLong
                | ModelFailure::Unavailable
                | ModelFailure::Interrupted => Ending::ModelUnavailable,
            };
            vec![finish(ending, &failed.message)]
        }
    }
}

fn ready(state: &State) -> Vec<Action> {
    if state.denied_steps >= DENIED_STEPS {
        return vec![finish(
            Ending::Denied,
            "The last steps were denied by policy as a whole; the task cannot go on.",
        )];
    }
    // A step that is asked again was counted already.
    if state.steps_in_run >= state.options.limits.steps() && !state.step_open {
        return vec![finish(
            Ending::StepsUsedUp,
            "Task execution exceeded maximum steps without completion.",
        )];
    }
    if let Some(why) = state.spent.exhausted_reason(&state.options.limits.budget) {
        return vec![finish(Ending::BudgetUsedUp, &why)];
    }
    if state.options.patch.is_some() && state.baseline.is_none() {
        return vec![Action::TakeBaseline];
    }
    match state.head {
        HeadState::Missing => vec![Action::StartEpoch(EpochCause::SessionOpened)],
        HeadState::Outdated => vec![Action::StartEpoch(EpochCause::OptionsChanged)],
        HeadState::Fits => vec![Action::Ask(state.next_step())],
    }
}

fn calls(state: &State) -> Vec<Action> {
    let undecided: Vec<Action> = state
        .calls
        .iter()
        .filter(|call| call.stage == CallStage::Proposed)
        .map(|call| Action::Decide(call.id.clone()))
        .collect();
    if !undecided.is_empty() {
        return undecided;
    }
    let mut actions: Vec<Action> = Vec::new();
    for call in &state.calls {
        if let CallStage::Decided { verdict: Verdict::Deny, reason, asking, .. } = &call.stage {
            actions.push(Action::Close {
                call: call.id.clone(),
                kind: ToolErrorKind::PolicyViolation,
                message: match asking {
                    QuestionState::Refused => refusal(reason),
                    QuestionState::Not | QuestionState::Waiting => {
                        format!("Tool execution denied by policy. {reason}")
                    }
                },
            });
        }
    }
    let stages: Vec<Stage> = state.calls.iter().map(|call| stage(&call.stage)).collect();
    let started = startable(&stages).into_iter().filter_map(|at| state.calls.get(at));
    actions.extend(started.map(|call| match call.stage {
        CallStage::Decided { verdict: Verdict::Ask, .. } => Action::AskApproval(call.id.clone()),
        _ => Action::Run(call.id.clone()),
    }));
    actions
}

/// The result for the model of a call that the user refused.
pub(crate) fn refusal(reason: &str) -> String {
    match reason {
        "" => "Denied by the user. Nothing was done.".to_owned(),
        reason => format!("Denied by the user: {reason}"),
    }
}

fn stage(stage: &CallStage) -> Stage {
    match stage {
        // A call that waits for an approval keeps its place among the others, so that its preview shows what would
        // run.
        CallStage::Decided { lane, verdict: Verdict::Ask, asking: QuestionState::Waiting, .. } => {
            Stage::Running(*lane)
        }
        CallStage::Decided { lane, verdict: Verdict::Allow | Verdict::Ask, .. } => Stage::Waiting(*lane),
        CallStage::Started { lane, .. } => Stage::Running(*lane),
        // A refused call is closed at once and delays no other call.
        CallStage::Proposed | CallStage::Decided { .. } | CallStage::Finished { .. } => Stage::Finished,
    }
}

fn cancel(state: &State) -> Vec<Action> {
    let waiting = state
        .calls
        .iter()
        .filter(|call| matches!(call.stage, CallStage::Proposed | CallStage::Decided { .. }));
    let close: Vec<Action> = waiting
        .map(|call| Action::Close {
            call: call.id.clone(),
            kind: ToolErrorKind::Cancelled,
            message: match state.interrupted {
                true => "Interrupted before it began. Nothing was done.".to_owned(),
                false => "Cancelled by the user before it began. Nothing was done.".to_owned(),
            },
        })
        .collect();
    if !close.is_empty() {
        return close;
    }
    if state.phase == Phase::Thinking {
        return Vec::new();
    }
    once_closed(state, || {
        let words = match state.interrupted {
            true => "Interrupted: the process that ran it ended.",
            false => "Cancelled by the user.",
        };
        finish(Ending::Cancelled, words)
    })
}

/// The action `then`, but only if every call has its result: a run never ends with an open call.
fn once_closed(state: &State, then: impl FnOnce() -> Action) -> Vec<Action> {
    if all_calls_closed(state) { vec![then()] } else { Vec::new() }
}

fn all_calls_closed(state: &State) -> bool {
    state.calls.iter().all(|call| matches!(call.stage, CallStage::Finished { .. }))
}

fn after_text(state: &State, text: &str, cut: bool) -> Vec<Action> {
    let empty = text.trim().is_empty();
    let ends_by_call = state.remind_rule() == EndingRule::Remind && ends_by_call(state.toolset());
    if !state.reminded && (ends_by_call || empty || cut) {
        // The judge's objection is reported in the same reminder: there is no second one.
        let words = [Some(reminder(state.toolset(), empty, cut).to_owned()), state.review_refusal()];
        return vec![Action::Remind(words.into_iter().flatten().collect::<Vec<_>>().join("\n\n"))];
    }
    if empty {
        return vec![finish(Ending::Failed, "The model answered with nothing, twice.")];
    }
    if let Some(reason) = state.review_refusal() {
        return if state.reminded {
            vec![finish(Ending::Failed, &format!("{text}\n\n{reason}"))]
        } else {
            vec![Action::Remind(reason)]
        };
    }
    // Giving up after everything was denied is not an answer.
    if state.denied_steps > 0 || state.only_denied() {
        return vec![finish(Ending::Denied, text)];
    }
    if state.must_patch() {
        return vec![Action::Judge { result: text.to_owned() }];
    }
    vec![finish(Ending::Answered, text)]
}

/// Tells whether the toolset has a call that ends the task. If it has none, text ends the task.
fn ends_by_call(toolset: Toolset) -> bool {
    match toolset {
        Toolset::Lathe | Toolset::Trae | Toolset::Bash => true,
        Toolset::Gemini => false,
    }
}

fn reminder(toolset: Toolset, empty: bool, cut: bool) -> &'static str {
    match (toolset, empty, cut) {
        (Toolset::Trae, _, false) => "It seems that you have not completed the task.",
        (_, _, true) => "Your last answer was cut off at the length limit. Go on in smaller pieces.",
        (Toolset::Gemini, _, false) | (Toolset::Lathe | Toolset::Bash, true, false) => {
            "Your last answer was empty. Go on with the task."
        }
        (Toolset::Lathe, false, false) => {
            "It seems that you have not completed the task. If it is complete, call `task_done` with a summary; if not, go on."
        }
        (Toolset::Bash, false, false) => {
            "It seems that you have not completed the task. If it is complete, run `task_done 'summary'` with Bash; if not, go on."
        }
    }
}

/// The text about all failed results of the step.
fn reflection(state: &State) -> String {
    let failed: Vec<&str> = state
        .calls
        .iter()
        .filter(|call| matches!(call.stage, CallStage::Finished { failed: true, .. }))
        .map(|call| call.name.as_str())
        .collect();
    format!(
        "Failed in this step: {}. Read each error above, then consider a different approach or fix the parameters; do not repeat the same call unchanged.",
        failed.join(", ")
    )
}

fn finish(ending: Ending, result: &str) -> Action {
    Action::Finish { ending, result: result.to_owned() }
}
