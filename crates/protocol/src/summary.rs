//! The summary of a session in a list of sessions.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Ending, Forked, SessionId, Timestamp};

/// One line of the list of sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSummary {
    pub id: SessionId,
    pub created: Timestamp,
    pub updated: Timestamp,
    pub workspace: String,
    /// The title it was given, or the first task, in one line, at most 80 characters; empty before there is one.
    pub title: String,
    pub model: String,
    pub state: SessionState,
    pub steps: u32,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// The origin of a fork, without the command that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked: Option<Forked>,
}

/// State of a session, as a list of sessions names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// The session has no task yet.
    New,
    /// A task is unfinished. The journal does not say whether a process works on it.
    Running,
    Completed,
    Error,
    Cancelled,
    /// Unfinished, and no process works on it: set by code that knows this, never derived from a journal alone.
    Interrupted,
}

impl SessionState {
    pub const ALL: [SessionState; 6] = [
        SessionState::New,
        SessionState::Running,
        SessionState::Completed,
        SessionState::Error,
        SessionState::Cancelled,
        SessionState::Interrupted,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            SessionState::New => "new",
            SessionState::Running => "running",
            SessionState::Completed => "completed",
            SessionState::Error => "error",
            SessionState::Cancelled => "cancelled",
            SessionState::Interrupted => "interrupted",
        }
    }

    pub fn from_name(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

impl fmt::Display for SessionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<Ending> for SessionState {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Done | Ending::Answered => Self::Completed,
            Ending::Failed
            | Ending::ModelUnavailable
            | Ending::StepsUsedUp
            | Ending::BudgetUsedUp
            | Ending::Denied
            | Ending::DiskFull => Self::Error,
            Ending::Cancelled => Self::Cancelled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_is_found_by_its_name() {
        for state in SessionState::ALL {
            assert_eq!(SessionState::from_name(state.as_str()), Some(state));
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
    }
}
