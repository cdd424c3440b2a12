//! Questions to a person about what may be done, and their answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Actor, CommandDecided, CommandId, Raw};

/// A person was asked whether something may be done. The question is known by the number of this event: answers and the
/// end of the question name it as their cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalAsked {
    pub what: Proposal,
    /// The rule that asks, and why.
    pub rule: String,
    pub reason: String,
    /// What an answer for longer than once would allow; empty where nothing as narrow can be remembered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remember: Vec<String>,
}

/// What would be done. What does not show is written out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Proposal {
    /// A shell line, with every command that can run.
    Line {
        line: String,
        commands: Vec<CommandDecided>,
        /// The purpose of it, in the model's words.
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

/// The answer to such a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalGiven {
    pub answer: ApprovalAnswer,
    /// Why not, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub by: Actor,
    pub command: CommandId,
    /// The arguments that are used in the place of those the model gave.
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

/// Nobody will answer a question any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalExpired {
    pub reason: String,
}

/// The text of a file that a call proposes, for the person who is asked about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedText {
    pub path: String,
    pub current: String,
    pub proposed: String,
    /// The arguments by which the call would propose exactly this; none if they are the model's own.
    pub arguments: Option<Raw>,
    /// The change that the call would make.
    pub diff: String,
}
