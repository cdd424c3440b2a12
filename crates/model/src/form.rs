//! The form a request takes: which wire, and everything of a body that is neither system text, tools nor messages.
//!
//! It is fixed for as long as a client lives, so it never breaks a provider's cache.

use std::sync::Arc;

/// The wire a server speaks.
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

/// How requests are written for one client.
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

/// What a user may set about answers. What is left out, the provider decides.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Params {
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub top_k: Option<u32>,
    /// Tokens of one answer at most.
    pub max_tokens: Option<u32>,
    pub parallel_calls: Option<bool>,
    pub candidate_count: Option<u32>,
    pub stop_sequences: Vec<String>,
    /// Tokens the model may think for, where that must be asked for (Anthropic).
    pub thinking_tokens: Option<u32>,
    /// Requests with the same key are sent to the same cache (Responses).
    pub cache_key: Option<String>,
    pub tools: ToolForm,
    /// True if the model takes images; taken to be so unless it is said.
    pub images: Option<bool>,
    /// Whether Anthropic's own `bash` and text editor stand in for tools of those names.
    pub own_tools: bool,
    pub delivery: Delivery,
    pub quirks: Quirks,
}

/// How tools reach the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolForm {
    /// In the member the wire has for them.
    #[default]
    Native,
    /// In the system text, for models that know no calls; calls come back as fenced blocks of text.
    Described,
}

/// How an answer comes.
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

/// Where servers of the Chat wire differ. A provider is a row of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quirks {
    /// The member that limits an answer.
    pub limit_member: &'static str,
    /// Whether usage must be asked for, and may be.
    pub stream_usage: bool,
    /// Whether the model wants its reasoning back (`reasoning_content`).
    pub reasoning_back: bool,
    /// Tokens of context a local server is told to keep (Ollama); it would cut a long prompt silently otherwise.
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

/// Whether a model of OpenAI's thinks. Those that do not refuse to be asked for their thoughts.
pub(crate) fn thinks(model: &str) -> bool {
    !["gpt-4", "gpt-3.5", "chatgpt-4o"].iter().any(|plain| model.contains(plain))
}

/// Whether a model takes a temperature.
pub(crate) fn takes_temperature(model: &str) -> bool {
    !["o3", "o4-mini", "gpt-5"].iter().any(|fixed| model.contains(fixed))
}
