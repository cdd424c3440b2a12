//! The two state machines of a run, in Trae's words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
