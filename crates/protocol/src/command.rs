//! What a client asks of a session, and the one handle through which every surface holds one.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Actor, AgentId, ApprovalAnswer, Attachment, CallId, Change, CommandId, EditsReviewed, Event, Raw, RunNo,
    Seq, StepNo, StepSummarised,
};

/// Something a client wants. The client makes the id: a repeated command gets the first receipt.
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
    /// Go on with a run that was interrupted.
    GoOn,
    /// Say something to a run that is under way.
    Steer { text: String },
    /// Give the session a title.
    Rename { title: String },
    /// Keep what a step was about.
    Summarise { run: RunNo, step: StepNo, summary: StepSummarised },
    /// Keep what a person said about edits, and what that changed.
    Review {
        reviewed: EditsReviewed,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changes: Vec<Change>,
    },
    /// Stop what is under way and close the history.
    Cancel,
    /// Stop one call; the run goes on.
    CancelCall { call: CallId },
    /// Answers to the questions of a call, in their order; none if they are dismissed.
    Answer {
        call: CallId,
        /// The number of the event that asked: the model chooses call ids, and may use one twice.
        question: Seq,
        answers: Option<Vec<String>>,
    },
    /// The answer to whether something may be done. The first counts.
    Approve {
        call: CallId,
        /// The number of the event that asked: an answer is bound to the question that was shown.
        question: Seq,
        answer: ApprovalAnswer,
        /// Why not, for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// With `once`: these arguments in the place of those the model gave.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        edited: Option<Raw>,
    },
}

/// What became of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Receipt {
    pub command: CommandId,
    pub answer: ReceiptAnswer,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptAnswer {
    /// Taken; the journal stood at this number then.
    Accepted {
        seq: Seq,
    },
    Refused {
        reason: String,
    },
}

/// The reason why a command is refused after the task that owns the session has ended.
pub const SESSION_ENDED: &str = "the session has ended";

/// Something that is happening. Never stored; carries the event it follows.
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
    /// The model is asked again.
    Retry { attempt: u32, wait_ms: u64, reason: String },
    /// Something a person should know now, such as a cap that is near.
    Warning(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputStream {
    Stdout,
    Stderr,
}

/// What a subscription yields.
#[derive(Debug, Clone)]
pub enum Update {
    Event(Arc<Event>),
    Frame(Frame),
}

/// A future returned through a dynamic seam.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Events after a place, then live; never misses one. Frames may be left out when the reader is slow.
pub trait EventStream: Send {
    /// None when the session has closed.
    fn next(&mut self) -> Boxed<'_, Option<Update>>;
}

/// A session as every surface sees it: the actor of this process, or one reached over a network.
pub trait SessionHandle: Send + Sync {
    fn submit(&self, command: Command) -> Boxed<'_, Receipt>;
    /// Everything after `cursor`.
    fn subscribe(&self, cursor: Seq) -> Box<dyn EventStream>;
    /// The changes of a finished call as one diff to be shown, without secrets; empty for any other event. It is made where
    /// the contents are: elsewhere nobody knows which secrets to take out.
    fn diff<'a>(&'a self, event: &'a Event) -> Boxed<'a, String>;
}
