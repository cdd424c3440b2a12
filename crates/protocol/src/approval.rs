//! Approval requests to the user, and their answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Actor, CommandDecided, CommandId, Raw};

/// The user was asked for an approval. The number of this event identifies the request: answers and the end of the
/// request name it as their cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalAsked {
    pub what: Proposal,
    /// The rule that asks, and its reason.
    pub rule: String,
    pub reason: String,
    /// The commands or files that a standing approval would allow; empty where nothing this narrow can be remembered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remember: Vec<String>,
}

/// The act that would be done. Characters that do not show are written out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Proposal {
    /// A shell line, with every command that can run.
    Line {
        line: String,
        commands: Vec<CommandDecided>,
        /// Its purpose, in the model's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        purpose: Option<String>,
    },
    /// A file would be changed.
    Edit { path: String, diff: String },
    /// A command of the agent inside a line that is running.
    Command { words: Vec<String>, about: String },
    /// Anything else, in words.
    Other { about: String },
}

/// The answer to an approval request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalGiven {
    pub answer: ApprovalAnswer,
    /// The reason for a refusal, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub by: Actor,
    pub command: CommandId,
    /// The arguments that are used in place of those the model gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<Raw>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalAnswer {
    Once,
    /// Not asked again in this session.
    Session,
    /// Never asked again.
    Always,
    No,
}

/// An approval request will not be answered any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalExpired {
    pub reason: String,
}

/// The text of a file that a call proposes, for the user who is asked for an approval of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedText {
    pub path: String,
    pub current: String,
    pub proposed: String,
    /// The arguments with which the call would propose exactly this; `None` if they are the model's own.
    pub arguments: Option<Raw>,
    /// The change that the call would make.
    pub diff: String,
}
