//! Messages between Lathe and a model, neutral between the wires of the providers.
//!
//! Enums here are externally tagged: the other forms of serde cannot be read back when they hold raw JSON.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Attachment, CallId, Digest, Raw};

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    User(UserMessage),
    Assistant(AssistantMessage),
    Tool(ToolMessage),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UserMessage {
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
}

/// A picture, by its place in the blob store. The bytes are read when the message is written for a wire, so neither a
/// journal nor a cassette holds them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// For example `image/png`.
    pub media_type: String,
    pub blob: Digest,
    /// The name of the file it came from.
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AssistantMessage {
    pub blocks: Vec<Block>,
}

/// The result of one call, as the model sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolMessage {
    pub call: CallId,
    pub name: String,
    pub text: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub error: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
}

/// A part of an assistant message, in the order in which it was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    Text(TextBlock),
    Thinking(TextBlock),
    Call(ToolCall),
    /// Something that this version does not know; it is sent back as it came.
    Opaque(Raw),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TextBlock {
    pub text: String,
    /// The JSON that the provider sent, with every member of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Raw>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    pub id: CallId,
    pub name: String,
    pub arguments: Arguments,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Raw>,
}

/// The arguments of a call. In JSON: the value itself, or, if the model's text was not JSON, that text as a string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arguments {
    Json(Raw),
    Malformed(String),
}

impl Arguments {
    /// Reads the model's text. An empty text means no arguments.
    pub fn from_text(text: &str) -> Self {
        let text = if text.trim().is_empty() { "{}" } else { text };
        match Raw::parse(text) {
            Ok(raw) if !raw.get().starts_with('"') => Self::Json(raw),
            _ => Self::Malformed(text.to_owned()),
        }
    }

    pub fn as_text(&self) -> &str {
        match self {
            Self::Json(raw) => raw.get(),
            Self::Malformed(text) => text,
        }
    }
}

impl Serialize for Arguments {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Json(raw) => raw.serialize(serializer),
            Self::Malformed(text) => text.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Raw::deserialize(deserializer)?;
        if !raw.get().starts_with('"') {
            return Ok(Self::Json(raw));
        }
        serde_json::from_str(raw.get()).map(Self::Malformed).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Arguments {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Arguments".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        true.into()
    }
}

impl From<&Attachment> for Image {
    fn from(attachment: &Attachment) -> Self {
        let Attachment { mime, blob, name } = attachment;
        Self { media_type: mime.clone(), blob: blob.clone(), name: name.clone() }
    }
}

impl Message {
    pub fn user(text: impl Into<String>) -> Self {
        Self::User(UserMessage { text: text.into(), images: Vec::new() })
    }
}

impl Block {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextBlock { text: text.into(), raw: None })
    }
}

/// All text of an answer, in order.
pub fn text_of(blocks: &[Block]) -> String {
    let texts: Vec<&str> = blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text(text) => Some(text.text.as_str()),
            Block::Thinking(_) | Block::Call(_) | Block::Opaque(_) => None,
        })
        .collect();
    texts.join("\n")
}

/// The calls of an answer, in order.
pub fn calls_of(blocks: &[Block]) -> impl Iterator<Item = &ToolCall> {
    blocks.iter().filter_map(|block| match block {
        Block::Call(call) => Some(call),
        Block::Text(_) | Block::Thinking(_) | Block::Opaque(_) => None,
    })
}

/// Tokens of one model answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_creation_input_tokens: u64,
    pub cache_read_input_tokens: u64,
    pub reasoning_tokens: u64,
    /// True if the server gave no numbers, so that these are derived from the lengths of request and answer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

/// The bytes that count as one token where the server counts none.
const BYTES_PER_TOKEN: usize = 4;

/// A count is believed between the estimate divided by this and the estimate times this: no text has fewer or more
/// tokens.
const FACTOR: u64 = 16;

/// Tokens that a server may read without having been sent them: its own system text, and its form of the tools.
const UNSEEN_INPUT: u64 = 16 << 10;

/// Tokens that a model may write without sending them: its thinking. No model writes more in one answer.
const UNSEEN_OUTPUT: u64 = 128 << 10;

fn estimate(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX)
}

impl Usage {
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Tokens read and written.
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// The usage with believable numbers: a number that the server left out, gave as zero or as far too small is
    /// estimated from the bytes sent and received, and one that is far too large is cut to the most that these bytes
    /// allow. So a cap on cost holds whatever a server says, and a server cannot use it up by one absurd number.
    pub fn believable(self, sent_bytes: usize, received_bytes: usize) -> Self {
        let (sent, received) = (estimate(sent_bytes), estimate(received_bytes));
        let most_input = sent.saturating_mul(FACTOR).max(UNSEEN_INPUT);
        let most_output = received.saturating_mul(FACTOR).max(UNSEEN_OUTPUT);
        let mut usage = Self {
            input_tokens: self.input_tokens.min(most_input),
            output_tokens: self.output_tokens.min(most_output),
            estimated: self.estimated || self.input_tokens > most_input || self.output_tokens > most_output,
            ..self
        };
        let is_too_few = |counted: u64, estimate: u64| counted < estimate / FACTOR || counted == 0;
        if is_too_few(usage.input_tokens, sent) {
            (usage.input_tokens, usage.estimated) = (sent, true);
        }
        if received_bytes > 0 && is_too_few(usage.output_tokens, received) {
            (usage.output_tokens, usage.estimated) = (received, true);
        }
        usage.reasoning_tokens = usage.reasoning_tokens.min(usage.output_tokens);
        usage.cache_read_input_tokens = usage.cache_read_input_tokens.min(usage.input_tokens);
        usage.cache_creation_input_tokens = usage.cache_creation_input_tokens.min(usage.input_tokens);
        usage
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cache_creation_input_tokens =
            self.cache_creation_input_tokens.saturating_add(other.cache_creation_input_tokens);
        self.cache_read_input_tokens =
            self.cache_read_input_tokens.saturating_add(other.cache_read_input_tokens);
        self.reasoning_tokens = self.reasoning_tokens.saturating_add(other.reasoning_tokens);
        self.estimated = self.estimated || other.estimated;
    }
}

/// The reasons why the model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    EndTurn,
    ToolCalls,
    Length,
    ContentFilter,
    Other(String),
}

/// A tool as the model sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON Schema of the parameters.
    pub schema: Raw,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_believed_within_what_was_sent_and_received() {
        // Bytes sent and received, the server's numbers, and the numbers that count.
        for ((sent, received), (input, output), counted, estimated) in [
            ((40_000, 400), (10_000, 100), (10_000, 100), false),
            ((400_000, 400), (u64::MAX, 100), (1_600_000, 100), true),
            ((400_000, 400), (1_600_000, 100), (1_600_000, 100), false),
            ((400_000, 400), (1_600_001, 100), (1_600_000, 100), true),
            // A server's addition to a short question, and a model's thinking, cannot be seen.
            ((400, 400), (16_384, 131_072), (16_384, 131_072), false),
            ((400, 400), (10_000_000, 10_000_000), (16_384, 131_072), true),
            ((40_000, 40_000_000), (10_000, u64::MAX), (10_000, 160_000_000), true),
            ((40_000, 400), (0, 0), (10_000, 100), true),
            ((40_000, 400), (624, 100), (10_000, 100), true),
            ((40_000, 0), (10_000, 0), (10_000, 0), false),
        ] {
            let said = Usage { input_tokens: input, output_tokens: output, ..Usage::default() };
            let usage = said.believable(sent, received);
            let found = ((usage.input_tokens, usage.output_tokens), usage.estimated);
            assert_eq!(found, (counted, estimated), "{sent} {received}: {said:?}");
        }
        let parts = Usage {
            input_tokens: 10,
            output_tokens: 10,
            cache_creation_input_tokens: u64::MAX,
            cache_read_input_tokens: u64::MAX,
            reasoning_tokens: u64::MAX,
            estimated: false,
        };
        let usage = parts.believable(40, 40);
        let found =
            [usage.cache_creation_input_tokens, usage.cache_read_input_tokens, usage.reasoning_tokens];
        assert_eq!(found, [10, 10, 10]);
    }

    #[test]
    fn a_message_with_raw_json_survives_writing_and_reading() {
        let message = Message::Assistant(AssistantMessage {
            blocks: vec![
                Block::Thinking(TextBlock {
                    text: "hm".into(),
                    raw: Some(Raw::parse(r#"{"sig":"a=","n":1e2}"#).unwrap()),
                }),
                Block::Call(ToolCall {
                    id: CallId::new("c1"),
                    name: "bash".into(),
                    arguments: Arguments::from_text(r#"{ "command" : "ls" }"#),
                    raw: None,
                }),
                Block::Call(ToolCall {
                    id: CallId::new("c2"),
                    name: "bash".into(),
                    arguments: Arguments::from_text("{\"comm"),
                    raw: None,
                }),
            ],
        });
        let text = serde_json::to_string(&message).unwrap();
        assert_eq!(serde_json::from_str::<Message>(&text).unwrap(), message);
        assert!(
            text.contains(r#""arguments":{"command":"ls"}"#) && text.contains(r#""arguments":"{\"comm""#)
        );
    }

    #[test]
    fn no_arguments_are_an_empty_object() {
        assert_eq!(Arguments::from_text(" ").as_text(), "{}");
    }
}
