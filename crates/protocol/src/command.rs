//! Commands that a client sends to a session, and the one handle through which every surface uses a session.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Actor, AgentId, ApprovalAnswer, Attachment, CallId, Change, CommandId, EditsReviewed, Event, Raw, RunNo,
    Seq, StepNo, StepSummarised,
};

/// A request of a client. The client makes the id: a repeated command gets the first receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Command {
    pub id: CommandId,
    pub actor: Actor,
    pub body: CommandBody,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommandBody {
    GiveTask {
        text: String,
        /// Images in the blob store that the model is shown with the task.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Attachment>,
    },
    /// Resume a run that was interrupted.
    GoOn,
    /// Send a message to a run that is under way.
    Steer { text: String },
    /// Give the session a title.
    Rename { title: String },
    /// Store the summary of a step.
    Summarise { run: RunNo, step: StepNo, summary: StepSummarised },
    /// Store a person's review of edits, and the changes it made.
    Review {
        reviewed: EditsReviewed,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changes: Vec<Change>,
    },
    /// Stop the work under way and close the history.
    Cancel,
    /// Stop one call; the run continues.
    CancelCall { call: CallId },
    /// Answers to the questions of a call, in their order; `None` if they are dismissed.
    Answer {
        call: CallId,
        /// The number of the event that asked: the model chooses call ids, and may use one twice.
        question: Seq,
        answers: Option<Vec<String>>,
    },
    /// The answer to an approval request. The first answer counts.
    Approve {
        call: CallId,
        /// The number of the event that asked: an answer is bound to the question that was shown.
        question: Seq,
        answer: ApprovalAnswer,
        /// The reason for a refusal, for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// With `once`: these arguments in place of those the model gave.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        edited: Option<Raw>,
    },
}

/// The outcome of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Receipt {
    pub command: CommandId,
    pub answer: ReceiptAnswer,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptAnswer {
    /// The command was accepted; the journal was at this number then.
    Accepted {
        seq: Seq,
    },
    Refused {
        reason: String,
    },
}

/// The reason why a command is refused after the task that owns the session has ended.
pub const SESSION_ENDED: &str = "the session has ended";

/// Something that is happening. Never stored; names the event it follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Frame {
    pub after: Seq,
    pub agent: AgentId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepNo>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    pub body: FrameBody,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "frame", content = "data", rename_all = "snake_case")]
pub enum FrameBody {
    /// The model writes.
    Text(String),
    /// The model thinks.
    Thinking(String),
    /// The model begins a call of this name.
    CallForming(String),
    /// A running command prints.
    Output { stream: OutputStream, text: String },
    /// The request to the model is repeated.
    Retry { attempt: u32, wait_ms: u64, reason: String },
    /// Something that the user should know now, such as a cap that is near.
    Warning(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputStream {
    Stdout,
    Stderr,
}

/// An item of a subscription.
#[derive(Debug, Clone)]
pub enum Update {
    Event(Arc<Event>),
    Frame(Frame),
}

/// A future returned through a dynamic seam.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Events after a cursor, then live ones; never misses an event. Frames may be left out when the reader is slow.
pub trait EventStream: Send {
    /// The next update; `None` when the session has closed.
    fn next(&mut self) -> BoxFuture<'_, Option<Update>>;
}

/// A session as every surface sees it: the actor of this process, or one reached over a network.
pub trait SessionHandle: Send + Sync {
    fn submit(&self, command: Command) -> BoxFuture<'_, Receipt>;
    /// Subscribes to everything after `cursor`.
    fn subscribe(&self, cursor: Seq) -> Box<dyn EventStream>;
    /// The changes of a finished call as one diff for display, without secrets; empty for any other event. It is made
    /// where the contents are: elsewhere it is not known which secrets to redact.
    fn diff<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, String>;
}
