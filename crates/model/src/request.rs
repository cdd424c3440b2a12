//! Requests to a model and its answers, and the seam between the program and models.

use std::sync::Arc;

use lathe_protocol::{
    AgentId, Block, BoxFuture, Digest, Message, ReplayDrifted, StepNo, StopReason, ToolSpec, Usage,
};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::form::Form;
use crate::images::Pictures;
use crate::part::Part;

/// The part of a prompt that changes only with an epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    pub model: String,
    pub system: String,
    pub tools: Vec<ToolSpec>,
}

/// The purpose of a request. Each purpose of each agent is a lane of its own in a cassette.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    #[default]
    Step,
    Lakeview,
    Review,
}

/// One request, ready to be sent: the parts are shared with the rope, not copied.
#[derive(Debug, Clone)]
pub struct WireRequest {
    pub agent: AgentId,
    pub purpose: Purpose,
    pub step: StepNo,
    /// The body in the client's wire; chained, never joined.
    pub parts: Arc<Vec<Part>>,
    /// Chain over the digests of all messages, without the head.
    pub digest: Digest,
    pub messages: u32,
    /// The index of the answer in its lane, counted from 0.
    pub turn: u32,
    /// The messages since the last answer.
    pub fresh: Arc<Vec<Message>>,
    /// The images in the body.
    pub pictures: Pictures,
}

impl WireRequest {
    /// The whole body in one piece: for inspection, not for sending.
    pub fn body(&self) -> std::io::Result<Vec<u8>> {
        let mut body = Vec::with_capacity(self.parts.iter().map(Part::len).sum());
        for part in self.parts.iter() {
            body.extend_from_slice(&part.bytes()?);
        }
        Ok(body)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelAnswer {
    pub blocks: Vec<Block>,
    pub stop: StopReason,
    pub usage: Usage,
    pub model: String,
    /// Set by a replay whose request was not exactly the recorded one.
    pub drift: Option<ReplayDrifted>,
}

/// An event that arrives before the answer is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    Text(String),
    Thinking(String),
    CallForming(String),
    Retry {
        attempt: u32,
        wait_ms: u64,
        reason: String,
    },
    /// An answer that began and failed: it may be billed all the same. The numbers are estimated.
    Lost(Usage),
}

#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// Another attempt would give the same result: key, model name, request.
    #[error("{0}")]
    Refused(String),
    /// The conversation does not fit into the model's context.
    #[error("{0}")]
    TooLong(String),
    #[error("{0}")]
    Unavailable(String),
    #[error("{0}")]
    Diverged(String),
    #[error("cancelled")]
    Cancelled,
    /// The caller's time ran out.
    #[error("out of time")]
    OutOfTime,
}

/// A model, real or recorded.
pub trait ModelClient: Send + Sync {
    /// The form in which the rope must be encoded for this client.
    fn form(&self) -> Form;

    /// Asks once, with retries inside. Deltas are sent while the answer arrives; a full channel slows the reader
    /// down.
    fn ask<'a>(
        &'a self,
        request: WireRequest,
        deltas: &'a mpsc::Sender<Delta>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ModelAnswer, ModelError>>;
}
