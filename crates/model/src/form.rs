//! The form of a request: the wire, and everything in a body except system text, tools and messages.
//!
//! It is fixed for the life of a client, so it never breaks a provider's cache.

use std::sync::Arc;

/// The wire of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wire {
    /// OpenAI Chat Completions.
    Chat,
    /// Anthropic Messages.
    Messages,
    /// OpenAI Responses.
    Responses,
    /// Google Gemini, `streamGenerateContent`.
    Gemini,
    /// Ollama's own `/api/chat`.
    Ollama,
}

impl Wire {
    pub const ALL: [Wire; 5] = [Wire::Chat, Wire::Messages, Wire::Responses, Wire::Gemini, Wire::Ollama];

    pub fn as_str(self) -> &'static str {
        match self {
            Wire::Chat => "chat",
            Wire::Messages => "messages",
            Wire::Responses => "responses",
            Wire::Gemini => "gemini",
            Wire::Ollama => "ollama",
        }
    }
}

/// The form of all requests of one client.
#[derive(Debug, Clone)]
pub struct Form {
    pub wire: Wire,
    pub params: Arc<Params>,
}

impl Form {
    pub fn new(wire: Wire, params: Params) -> Self {
        Self { wire, params: Arc::new(params) }
    }
}

impl From<Wire> for Form {
    fn from(wire: Wire) -> Self {
        Self::new(wire, Params::default())
    }
}

/// The user's parameters for answers. The provider decides omitted ones.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Params {
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub top_k: Option<u32>,
    /// The maximum number of tokens of one answer.
    pub max_tokens: Option<u32>,
    pub parallel_calls: Option<bool>,
    pub candidate_count: Option<u32>,
    pub stop_sequences: Vec<String>,
    /// The number of tokens for thinking, if it must be requested (Anthropic).
    pub thinking_tokens: Option<u32>,
    /// Requests with the same key are sent to the same cache (Responses).
    pub cache_key: Option<String>,
    pub tools: ToolForm,
    /// True if the model takes images; None counts as true.
    pub images: Option<bool>,
    /// True if Anthropic's own `bash` and text editor replace tools with those names.
    pub own_tools: bool,
    pub delivery: Delivery,
    pub quirks: Quirks,
}

/// The ways in which tools reach the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolForm {
    /// In the wire's own member for tools.
    #[default]
    Native,
    /// In the system text, for models without calls; calls come back as fenced blocks of text.
    Described,
}

/// The ways in which an answer arrives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Delivery {
    #[default]
    Streamed,
    /// In one piece, for servers that cannot stream.
    Whole,
}

impl Delivery {
    pub(crate) fn is_streamed(self) -> bool {
        self == Delivery::Streamed
    }
}

/// Differences between servers of the Chat wire. A provider is a row of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quirks {
    /// The name of the member that limits an answer.
    pub limit_member: &'static str,
    /// True if usage must be requested, and may be.
    pub stream_usage: bool,
    /// True if the model requires its reasoning back (`reasoning_content`).
    pub reasoning_back: bool,
    /// The context size, in tokens, for a local server (Ollama), which otherwise cuts a long prompt silently.
    pub context: Option<u32>,
}

impl Quirks {
    pub const USUAL: Quirks =
        Quirks { limit_member: "max_tokens", stream_usage: true, reasoning_back: false, context: None };
}

impl Default for Quirks {
    fn default() -> Self {
        Self::USUAL
    }
}

/// Tells whether a model of OpenAI thinks. Others refuse requests for their thoughts.
pub(crate) fn thinks(model: &str) -> bool {
    !["gpt-4", "gpt-3.5", "chatgpt-4o"].iter().any(|plain| model.contains(plain))
}

/// Tells whether a model accepts a temperature.
pub(crate) fn takes_temperature(model: &str) -> bool {
    !["o3", "o4-mini", "gpt-5"].iter().any(|fixed| model.contains(fixed))
}
