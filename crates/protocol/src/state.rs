//! The two state machines of a run, in Trae's words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ApprovalAnswer, Fact, Proposal, ToolErrorKind, Verdict};

/// Where the agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    Idle,
    Running,
    Completed,
    Error,
}

/// Where a step is. It never goes back.
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

/// Where a call is, in Gemini CLI's words. Derived from its events, never stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// The model made it; nothing has looked at it yet.
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
    pub fn then(self, fact: &Fact) -> Self {
        match (self, fact) {
            // A command inside a running line is allowed while its call goes on executing.
            (CallState::AwaitingApproval, Fact::ApprovalGiven(given)) => match given.answer {
                ApprovalAnswer::Once | ApprovalAnswer::Session | ApprovalAnswer::Always => {
                    CallState::Scheduled
                }
                // Its result follows at once.
                ApprovalAnswer::No => CallState::AwaitingApproval,
            },
            (before, fact) => Self::after(fact).unwrap_or(before),
        }
    }

    /// Where one of a call's own events leaves it; none if the event says nothing about that.
    fn after(fact: &Fact) -> Option<Self> {
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
