//! The two state machines of a run, in Trae's words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ApprovalAnswer, Fact, Proposal, ToolErrorKind, Verdict};

/// The state of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    Idle,
    Running,
    Completed,
    Error,
}

/// The state of a step. It never goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    Thinking,
    CallingTool,
    Reflecting,
    Completed,
    Error,
}

impl StepState {
    pub fn as_str(self) -> &'static str {
        match self {
            StepState::Thinking => "thinking",
            StepState::CallingTool => "calling_tool",
            StepState::Reflecting => "reflecting",
            StepState::Completed => "completed",
            StepState::Error => "error",
        }
    }
}

/// The state of a call, in Gemini CLI's words. Derived from its events, never stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// The model made it; nothing has examined it yet.
    Validating,
    AwaitingApproval,
    /// Allowed, and waiting for its turn.
    Scheduled,
    Executing,
    Success,
    Error,
    Cancelled,
}

impl CallState {
    pub fn as_str(self) -> &'static str {
        match self {
            CallState::Validating => "validating",
            CallState::AwaitingApproval => "awaiting_approval",
            CallState::Scheduled => "scheduled",
            CallState::Executing => "executing",
            CallState::Success => "success",
            CallState::Error => "error",
            CallState::Cancelled => "cancelled",
        }
    }

    /// The state of a call after one of its own events.
    pub fn after_event(self, fact: &Fact) -> Self {
        match (self, fact) {
            // A command inside a running line is allowed while its call goes on executing.
            (CallState::AwaitingApproval, Fact::ApprovalGiven(given)) => match given.answer {
                ApprovalAnswer::Once | ApprovalAnswer::Session | ApprovalAnswer::Always => {
                    CallState::Scheduled
                }
                // Its result follows at once.
                ApprovalAnswer::No => CallState::AwaitingApproval,
            },
            (before, fact) => Self::from_fact(fact).unwrap_or(before),
        }
    }

    /// The state in which one of a call's own events leaves it; `None` if the event does not change the state.
    fn from_fact(fact: &Fact) -> Option<Self> {
        match fact {
            Fact::CallDecided(decided) => Some(match decided.decision.verdict {
                Verdict::Allow => CallState::Scheduled,
                Verdict::Ask => CallState::AwaitingApproval,
                // Its result follows at once.
                Verdict::Deny => CallState::Validating,
            }),
            // A command inside a running line asks while its call goes on executing.
            Fact::ApprovalAsked(asked) => {
                (!matches!(asked.what, Proposal::Command { .. })).then_some(CallState::AwaitingApproval)
            }
            Fact::CallStarted(_) => Some(CallState::Executing),
            Fact::CallFinished(finished) => Some(match finished.error.as_ref().map(|error| error.kind) {
                None => CallState::Success,
                Some(ToolErrorKind::Cancelled) => CallState::Cancelled,
                Some(_) => CallState::Error,
            }),
            _ => None,
        }
    }
}
