//! The wires a fake model speaks, all from the same script.
//!
//! Each wire writes an answer as its events, and checks a request as strictly as the strictest provider on that wire
//! does: every call has its one result in order, and every signed part comes back as it was sent.

pub(crate) mod chat;
mod gemini;
mod messages;
mod ollama;
mod pairing;
mod responses;

pub use pairing::check_pairing;

use lathe_protocol::{Block, StopReason, calls_of};
use serde_json::{Value, json};

use crate::script::{FakeAnswer, Script};

/// Into how many deltas a text is cut, if it is long enough.
const PIECES: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wire {
    Chat,
    Messages,
    Responses,
    Gemini,
    Ollama,
}

/// The parts of an answer that are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerShape {
    Whole,
    WithoutEnd,
    Empty,
    MalformedArguments,
}

/// The values that the stream repeats from the request.
pub(crate) struct RequestEcho<'a> {
    pub(crate) answer: usize,
    pub(crate) model: &'a str,
    pub(crate) include_usage: bool,
}

/// One event of a stream, or one line of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StreamEvent {
    pub(crate) name: Option<&'static str>,
    pub(crate) data: String,
}

impl StreamEvent {
    pub(crate) fn of(data: Value) -> Self {
        Self { name: None, data: data.to_string() }
    }

    pub(crate) fn named(name: &'static str, data: Value) -> Self {
        Self { name: Some(name), data: data.to_string() }
    }
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

    /// The provider of Lathe that speaks it, and the variables by which a user sets it.
    pub fn provider(self) -> &'static str {
        match self {
            Wire::Chat => "openrouter",
            Wire::Messages => "anthropic",
            Wire::Responses => "openai",
            Wire::Gemini => "google",
            Wire::Ollama => "ollama",
        }
    }

    /// The wire of an endpoint.
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or(path);
        match path {
            "/v1/chat/completions" => Some(Wire::Chat),
            "/v1/messages" => Some(Wire::Messages),
            "/v1/responses" => Some(Wire::Responses),
            "/api/chat" => Some(Wire::Ollama),
            _ if path.starts_with("/v1beta/models/") && path.ends_with(":streamGenerateContent") => {
                Some(Wire::Gemini)
            }
            _ => None,
        }
    }

    /// The path of the base URL.
    pub(crate) fn base(self) -> &'static str {
        match self {
            Wire::Chat | Wire::Responses => "/v1",
            Wire::Messages | Wire::Gemini | Wire::Ollama => "",
        }
    }

    /// The header a key comes in.
    pub(crate) fn key_header(self) -> &'static str {
        match self {
            Wire::Chat | Wire::Responses | Wire::Ollama => "authorization",
            Wire::Messages => "x-api-key",
            Wire::Gemini => "x-goog-api-key",
        }
    }

    /// The member that holds the conversation.
    pub(crate) fn conversation(self) -> &'static str {
        match self {
            Wire::Chat | Wire::Messages | Wire::Ollama => "messages",
            Wire::Responses => "input",
            Wire::Gemini => "contents",
        }
    }

    pub(crate) fn is_lines(self) -> bool {
        self == Wire::Ollama
    }

    /// The end of a body after its last message, cache marks left out.
    pub(crate) fn tail(self) -> &'static [u8] {
        match self {
            Wire::Chat | Wire::Responses | Wire::Ollama => b"]}",
            Wire::Gemini => b"]}]}",
            Wire::Messages => b"}]}]}",
        }
    }

    pub(crate) fn events(
        self,
        answer: &FakeAnswer,
        asked: &RequestEcho<'_>,
        shape: AnswerShape,
    ) -> Vec<StreamEvent> {
        match self {
            Wire::Chat => chat::events(answer, asked, shape),
            Wire::Messages => messages::events(answer, asked, shape),
            Wire::Responses => responses::events(answer, asked, shape),
            Wire::Gemini => gemini::events(answer, asked, shape),
            Wire::Ollama => ollama::events(answer, asked, shape),
        }
    }

    /// An error where an answer had begun.
    pub(crate) fn error_event(self, message: &str) -> StreamEvent {
        match self {
            Wire::Chat => {
                StreamEvent::of(json!({"error": {"message": message, "type": "server_error", "code": 500}}))
            }
            Wire::Messages => StreamEvent::named(
                "error",
                json!({"type": "error", "error": {"type": "overloaded_error", "message": message}}),
            ),
            Wire::Responses => StreamEvent::named(
                "error",
                json!({"type": "error", "code": "server_error", "message": message, "param": null}),
            ),
            Wire::Gemini => {
                StreamEvent::of(json!({"error": {"code": 503, "message": message, "status": "UNAVAILABLE"}}))
            }
            Wire::Ollama => StreamEvent::of(json!({ "error": message })),
        }
    }

    /// An event this version of the world does not know.
    pub(crate) fn unknown_event(self) -> StreamEvent {
        match self {
            Wire::Chat => StreamEvent::of(json!({"object": "chat.completion.novelty", "choices": []})),
            Wire::Messages => StreamEvent::named("novelty", json!({"type": "novelty", "index": 7})),
            Wire::Responses => {
                StreamEvent::named("response.novelty", json!({"type": "response.novelty", "x": 1}))
            }
            Wire::Gemini => StreamEvent::of(json!({"novelty": true})),
            Wire::Ollama => StreamEvent::of(json!({"novelty": true, "done": false})),
        }
    }

    /// Checks a request and says which answer it asks for.
    pub(crate) fn check(self, request: &Value, script: &Script, thoughts: Thoughts) -> Result<usize, String> {
        let member = self.conversation();
        let items = request[member].as_array().ok_or_else(|| format!("{member} must be a list"))?;
        if self != Wire::Gemini {
            request["model"].as_str().ok_or("model must be a string")?;
            if request["stream"] != true {
                return Err("stream must be true".to_owned());
            }
        }
        let turns = match self {
            Wire::Chat => {
                check_pairing(items)?;
                items.iter().filter(|message| message["role"] == "assistant").map(|_| Vec::new()).collect()
            }
            Wire::Messages => messages::check(request)?,
            Wire::Responses => responses::check(items)?,
            Wire::Gemini => gemini::check(items)?,
            Wire::Ollama => ollama::check(items)?,
        };
        if thoughts == Thoughts::Checked {
            for (number, turn) in turns.iter().enumerate() {
                self.check_thoughts(number, turn, script)?;
            }
        }
        Ok(turns.len())
    }

    fn check_thoughts(self, number: usize, turn: &[Value], script: &Script) -> Result<(), String> {
        let Some(answer) = script.get(number) else { return Ok(()) };
        let sent = match self {
            Wire::Chat | Wire::Ollama => return Ok(()),
            Wire::Messages => messages::signed_blocks(&messages::blocks(answer, number)),
            Wire::Responses => responses::signed_items(&responses::items(answer, number)),
            Wire::Gemini => gemini::signed_parts(&gemini::parts(answer, number)),
        };
        let back = match self {
            Wire::Chat | Wire::Ollama => return Ok(()),
            Wire::Messages => messages::signed_blocks(turn),
            Wire::Responses => responses::signed_items(turn),
            Wire::Gemini => gemini::signed_parts(turn),
        };
        if sent == back {
            return Ok(());
        }
        Err(format!("what answer {number} signed did not come back: {sent:?} became {back:?}"))
    }
}

/// Check that signed parts of earlier answers come back. Off where a conversation moved between wires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thoughts {
    Checked,
    Ignored,
}

/// The signature of a thought.
fn signature(answer: usize, block: usize) -> String {
    format!("sig/{answer}+{block}==")
}

/// A text in up to [`PIECES`] parts.
fn pieces(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(chars.len().div_ceil(PIECES).max(1)).map(|piece| piece.iter().collect()).collect()
}

fn half(text: &str) -> String {
    text.chars().take(text.chars().count().div_ceil(2)).collect()
}

/// The stop reason of the answer, in neutral words.
fn stop(answer: &FakeAnswer, shape: AnswerShape) -> StopReason {
    match (&answer.stop, shape) {
        (_, AnswerShape::Empty) => StopReason::EndTurn,
        (Some(stop), _) => stop.clone(),
        (None, _) if calls_of(&answer.blocks).next().is_some() => StopReason::ToolCalls,
        (None, _) => StopReason::EndTurn,
    }
}

/// Data a model hides even from itself, as [`Answer::redacted`] makes it.
fn redacted(block: &Block) -> Option<Value> {
    match block {
        Block::Opaque(raw) => raw.to_value().ok()?.get("redacted").cloned(),
        Block::Text(_) | Block::Thinking(_) | Block::Call(_) => None,
    }
}

fn wrong(at: usize, rule: &str, message: &Value) -> String {
    let shown: String = message.to_string().chars().take(300).collect();
    format!("message {at}: {rule}: {shown}")
}

/// Numbers, order and members as text: a comparison by value would not see another order.
fn exact_texts(values: impl IntoIterator<Item = Value>) -> Vec<String> {
    values.into_iter().map(|value| value.to_string()).collect()
}
/// Tells whether a value is a list with something in it, each of which is good.
fn are_parts(value: &Value, good: impl Fn(&Value) -> bool) -> bool {
    value.as_array().is_some_and(|parts| !parts.is_empty() && parts.iter().all(good))
}

fn is_base64(value: &Value) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    value.as_str().is_some_and(|text| !text.is_empty() && text.len() % 4 == 0 && text.bytes().all(is_letter))
}

fn is_data_url(value: &Value) -> bool {
    let data = value.as_str().and_then(|url| url.strip_prefix("data:image/")?.split_once(";base64,"));
    data.is_some_and(|(_, data)| is_base64(&Value::from(data)))
}
