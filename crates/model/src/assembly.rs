//! The assembly of an answer from its frames; one implementation per wire.

use lathe_protocol::{Block, CallId, StopReason, TextBlock, Usage};

use crate::form::Wire;
use crate::frames::{Frame, Framing};
use crate::request::{Delta, ModelAnswer};
use crate::{chat, gemini, messages, ollama, responses};

/// Tells whether more frames are to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    More,
    /// The wire's terminal event was seen.
    End,
}

/// The ways in which a frame ends the stream with a failure.
#[derive(Debug, PartialEq)]
pub(crate) enum StreamFailure {
    NotJson(String),
    /// The provider's error, as it sent it.
    Provider(serde_json::Value),
    /// The provider refuses to answer this.
    Blocked(String),
}

pub(crate) trait Assembly: Send {
    /// Processes one frame; displayable deltas go to `deltas`.
    fn take(&mut self, frame: &Frame, deltas: &mut Vec<Delta>) -> Result<Flow, StreamFailure>;

    /// Processes an answer that came in one piece.
    fn whole(&mut self, body: &str, deltas: &mut Vec<Delta>) -> Result<(), StreamFailure>;

    /// Tells whether the answer is complete if the stream ends here.
    fn is_ended(&self) -> bool;

    /// The number of bytes that the model has written so far: text, thinking and calls, without what the wire adds.
    /// An answer that breaks off is counted by it, so it must grow with every frame, even with the smallest.
    fn written(&self) -> usize;

    /// The answer. `step` is used to make ids for calls without one.
    fn finish(self: Box<Self>, step: u32) -> ModelAnswer;
}

pub(crate) fn assembly(wire: Wire) -> Box<dyn Assembly> {
    match wire {
        Wire::Chat => Box::new(chat::ChatAssembly::default()),
        Wire::Messages => Box::new(messages::MessagesAssembly::default()),
        Wire::Responses => Box::new(responses::ResponsesAssembly::default()),
        Wire::Gemini => Box::new(gemini::GeminiAssembly::default()),
        Wire::Ollama => Box::new(ollama::OllamaAssembly::default()),
    }
}

pub(crate) fn framing(wire: Wire) -> Framing {
    match wire {
        Wire::Chat | Wire::Messages | Wire::Responses | Wire::Gemini => Framing::Events,
        Wire::Ollama => Framing::Lines,
    }
}

/// The common end of every assembly.
#[derive(Default)]
pub(crate) struct Closing {
    pub(crate) model: String,
    pub(crate) stop: Option<StopReason>,
    pub(crate) usage: Usage,
}

impl Closing {
    pub(crate) fn answer(self, blocks: Vec<Block>) -> ModelAnswer {
        let has_calls = lathe_protocol::calls_of(&blocks).next().is_some();
        let stop = match self.stop {
            // Some wires have no reason of their own for it.
            Some(StopReason::EndTurn) | None if has_calls => StopReason::ToolCalls,
            Some(stop) => stop,
            None => StopReason::EndTurn,
        };
        ModelAnswer { blocks, stop, usage: self.usage, model: self.model, drift: None }
    }
}

/// Gives every call of an answer a unique id, because otherwise its result could not be paired with it.
///
/// A call without an id gets one in the form of the seed documents, `STEP_TOOL`.
pub(crate) struct Ids {
    step: u32,
    given: Vec<String>,
}

impl Ids {
    pub(crate) fn new(step: u32) -> Self {
        Self { step, given: Vec::new() }
    }

    pub(crate) fn unique(&mut self, sent: &str, tool: &str) -> CallId {
        let mut id = if sent.is_empty() { format!("{}_{}", self.step, plain(tool)) } else { sent.to_owned() };
        while self.given.contains(&id) {
            id.push_str(AGAIN);
        }
        self.given.push(id.clone());
        CallId::new(id)
    }
}

/// The suffix of a call's id if another call of the answer has the same id.
const AGAIN: &str = "_again";

/// The name of a tool in characters that every provider accepts in an id. The model may have called a tool by any
/// name.
fn plain(tool: &str) -> String {
    let fits = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let plain: String = tool.chars().filter(fits).take(40).collect();
    if plain.is_empty() { "call".to_owned() } else { plain }
}

/// Tells whether the id of a call of this tool was made here, because the provider gave none. Journals of earlier
/// versions have ids that begin with `made_`.
pub(crate) fn is_generated_id(id: &str, tool: &str) -> bool {
    let own = || {
        let (step, mut name) = id.split_once('_')?;
        while let Some(shorter) = name.strip_suffix(AGAIN) {
            name = shorter;
        }
        Some(!step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit()) && name == plain(tool))
    };
    id.starts_with("made_") || own().unwrap_or(false)
}

pub(crate) fn text_block(text: String) -> Block {
    Block::Text(TextBlock { text, raw: None })
}

pub(crate) fn not_json(error: &serde_json::Error, data: &str) -> StreamFailure {
    let shown: String = data.chars().take(crate::failure::WORDS).collect();
    StreamFailure::NotJson(format!("{error} in {shown}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_without_an_id_is_named_by_its_step_and_tool() {
        let mut ids = Ids::new(3);
        let mut id = |sent: &str, tool: &str| ids.unique(sent, tool).as_str().to_owned();
        assert_eq!(id("", "bash"), "3_bash");
        assert_eq!(id("", "bash"), "3_bash_again");
        assert_eq!(id("", "rm -rf /\n"), "3_rm-rf");
        assert_eq!(id("", "终端"), "3_call");
        assert_eq!(id("x", "bash"), "x");
        assert_eq!(id("x", "bash"), "x_again");
    }

    #[test]
    fn an_id_that_was_made_here_is_told_from_one_of_a_provider() {
        for (id, tool) in
            [("3_bash", "bash"), ("12_bash_again_again", "bash"), ("3_call", "终端"), ("made_2_0", "x")]
        {
            assert!(is_generated_id(id, tool), "{id} {tool}");
        }
        for (id, tool) in
            [("3_view", "bash"), ("call_1", "bash"), ("_bash", "bash"), ("bash", "bash"), ("", "x")]
        {
            assert!(!is_generated_id(id, tool), "{id} {tool}");
        }
    }
}
