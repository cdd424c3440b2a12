//! An answer put together from its frames; one of these per wire.

use lathe_protocol::{Block, CallId, StopReason, TextBlock, Usage};

use crate::form::Wire;
use crate::frames::{Frame, Framing};
use crate::request::{Answer, Delta};
use crate::{chat, gemini, messages, ollama, responses};

/// Whether more is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    More,
    /// The wire's terminal event was seen.
    End,
}

/// A frame that ends the stream badly.
#[derive(Debug, PartialEq)]
pub(crate) enum Broken {
    NotJson(String),
    /// The provider's error, as it sent it.
    Provider(serde_json::Value),
    /// The provider will not answer this.
    Blocked(String),
}

pub(crate) trait Assembly: Send {
    /// Takes one frame; what a watcher may be shown goes to `deltas`.
    fn take(&mut self, frame: &Frame, deltas: &mut Vec<Delta>) -> Result<Flow, Broken>;

    /// Takes an answer that came in one piece.
    fn whole(&mut self, body: &str, deltas: &mut Vec<Delta>) -> Result<(), Broken>;

    /// Whether everything there is has come, should the stream end here.
    fn is_ended(&self) -> bool;

    /// Bytes that the model has written so far: text, thinking and calls, without what the wire adds. An answer that breaks
    /// off is counted by it, so it must grow with every frame, however small the frames are.
    fn written(&self) -> usize;

    /// The answer. `turn` makes ids of calls that have none.
    fn finish(self: Box<Self>, step: u32) -> Answer;
}

pub(crate) fn assembly(wire: Wire) -> Box<dyn Assembly> {
    match wire {
        Wire::Chat => Box::new(chat::Assembling::default()),
        Wire::Messages => Box::new(messages::Assembling::default()),
        Wire::Responses => Box::new(responses::Assembling::default()),
        Wire::Gemini => Box::new(gemini::Assembling::default()),
        Wire::Ollama => Box::new(ollama::Assembling::default()),
    }
}

pub(crate) fn framing(wire: Wire) -> Framing {
    match wire {
        Wire::Chat | Wire::Messages | Wire::Responses | Wire::Gemini => Framing::Events,
        Wire::Ollama => Framing::Lines,
    }
}

/// What every assembly ends with.
#[derive(Default)]
pub(crate) struct Closing {
    pub(crate) model: String,
    pub(crate) stop: Option<StopReason>,
    pub(crate) usage: Usage,
}

impl Closing {
    pub(crate) fn answer(self, blocks: Vec<Block>) -> Answer {
        let has_calls = lathe_protocol::calls_of(&blocks).next().is_some();
        let stop = match self.stop {
            // Some wires have no word of their own for it.
            Some(StopReason::EndTurn) | None if has_calls => StopReason::ToolCalls,
            Some(stop) => stop,
            None => StopReason::EndTurn,
        };
        Answer { blocks, stop, usage: self.usage, model: self.model, drift: None }
    }
}

/// Gives every call of an answer an id of its own, or its result could not be paired with it.
///
/// A call that came without one has that of the seed documents, `STEP_TOOL`.
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

/// The end of the id of a call whose id another call of the answer has.
const AGAIN: &str = "_again";

/// The name of a tool in characters that every provider takes in an id. The model may have called a tool by any name.
fn plain(tool: &str) -> String {
    let fits = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let plain: String = tool.chars().filter(fits).take(40).collect();
    if plain.is_empty() { "call".to_owned() } else { plain }
}

/// Whether the id of a call of this tool was made here, because the provider gave none. Journals of earlier versions have ids
/// that begin with `made_`.
pub(crate) fn is_made(id: &str, tool: &str) -> bool {
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

pub(crate) fn not_json(error: &serde_json::Error, data: &str) -> Broken {
    let shown: String = data.chars().take(crate::failure::WORDS).collect();
    Broken::NotJson(format!("{error} in {shown}"))
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
            assert!(is_made(id, tool), "{id} {tool}");
        }
        for (id, tool) in
            [("3_view", "bash"), ("call_1", "bash"), ("_bash", "bash"), ("bash", "bash"), ("", "x")]
        {
            assert!(!is_made(id, tool), "{id} {tool}");
        }
    }
}
