//! Encodes neutral messages for the Messages wire.
//!
//! Consecutive user messages, results of calls first, are one message. A piece is left open before its last brace:
//! there the mark for the provider's cache can be inserted without touching the written bytes.

use bytes::Bytes;
use lathe_protocol::{Arguments, Block, Message, Raw, ToolCall, ToolMessage};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::encode::{LastSpeaker, json, open_list};
use crate::form::Params;
use crate::images::Picture;
use crate::members::type_of;
use crate::request::Head;

/// The mark that makes the provider cache everything up to here.
pub(crate) const MARK: &[u8] = br#","cache_control":{"type":"ephemeral"}"#;

const LAST: &[u8] = br#","cache_control":{"type":"ephemeral"}}]}]}"#;

#[derive(Serialize)]
struct Mark {
    r#type: &'static str,
}

const EPHEMERAL: Mark = Mark { r#type: "ephemeral" };

/// Everything before the first message.
pub(crate) fn head(head: &Head, params: &Params) -> Vec<u8> {
    open_list(&HeadBody { head, params })
}

struct HeadBody<'a> {
    head: &'a Head,
    params: &'a Params,
}

impl Serialize for HeadBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct System<'a> {
            r#type: &'static str,
            text: &'a str,
            cache_control: Mark,
        }
        #[derive(Serialize)]
        struct Thinking {
            r#type: &'static str,
            budget_tokens: u32,
        }
        let Self { head, params } = self;
        let limit = params.max_tokens.unwrap_or_else(|| usual_limit(&head.model));
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", &head.model)?;
        map.serialize_entry("max_tokens", &limit)?;
        map.serialize_entry("stream", &params.delivery.is_streamed())?;
        match (params.thinking_tokens, params.temperature, params.top_p) {
            // A thinking model chooses by itself.
            (Some(budget_tokens), ..) => {
                map.serialize_entry("thinking", &Thinking { r#type: "enabled", budget_tokens })?;
            }
            // Newer models refuse both together.
            (None, Some(temperature), _) => map.serialize_entry("temperature", &temperature)?,
            (None, None, Some(top_p)) => map.serialize_entry("top_p", &top_p)?,
            (None, None, None) => {}
        }
        if let (Some(top_k), None) = (params.top_k.filter(|k| *k > 0), params.thinking_tokens) {
            map.serialize_entry("top_k", &top_k)?;
        }
        if !params.stop_sequences.is_empty() {
            map.serialize_entry("stop_sequences", &params.stop_sequences)?;
        }
        if !head.tools.is_empty() {
            map.serialize_entry("tools", &Tools { head, own: params.own_tools })?;
            if params.parallel_calls == Some(false) {
                let choice = serde_json::json!({ "type": "auto", "disable_parallel_tool_use": true });
                map.serialize_entry("tool_choice", &choice)?;
            }
        }
        if !head.system.is_empty() {
            let system = System { r#type: "text", text: &head.system, cache_control: EPHEMERAL };
            map.serialize_entry("system", &[system])?;
        }
        map.serialize_entry("messages", &[(); 0])?;
        map.end()
    }
}

/// An answer must be limited on this wire; these are the maximum values of the models.
fn usual_limit(model: &str) -> u32 {
    match model {
        _ if model.contains("claude-3-5") => 8192,
        _ if model.contains("claude-3-7") => 32_000,
        _ if model.contains("claude-3-") => 4096,
        _ => 32_000,
    }
}

struct Tools<'a> {
    head: &'a Head,
    own: bool,
}

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(untagged)]
        enum Tool<'a> {
            Own {
                r#type: &'static str,
                name: &'a str,
                #[serde(skip_serializing_if = "Option::is_none")]
                cache_control: Option<Mark>,
            },
            Ours {
                name: &'a str,
                description: &'a str,
                input_schema: &'a Raw,
                #[serde(skip_serializing_if = "Option::is_none")]
                cache_control: Option<Mark>,
            },
        }
        let last = self.head.tools.len();
        serializer.collect_seq(self.head.tools.iter().zip(1..).map(|(tool, number)| {
            let cache_control = (number == last).then_some(EPHEMERAL);
            match own_type(&tool.name).filter(|_| self.own) {
                Some(r#type) => Tool::Own { r#type, name: &tool.name, cache_control },
                None => Tool::Ours {
                    name: &tool.name,
                    description: &tool.description,
                    input_schema: &tool.schema,
                    cache_control,
                },
            }
        }))
    }
}

/// Tools whose schema is built into these models.
fn own_type(name: &str) -> Option<&'static str> {
    match name {
        "bash" => Some("bash_20250124"),
        "str_replace_based_edit_tool" => Some("text_editor_20250429"),
        _ => None,
    }
}

#[derive(Serialize)]
struct TextForm<'a> {
    r#type: &'static str,
    text: &'a str,
}

fn picture(image: &Picture) -> serde_json::Value {
    let source = serde_json::json!({ "type": "base64", "media_type": image.media_type, "data": image.data });
    serde_json::json!({ "type": "image", "source": source })
}

/// The content of a result: text, pictures, or both.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Parts(Vec<serde_json::Value>),
}

impl<'a> Content<'a> {
    fn of(tool: &'a ToolMessage, pictures: &[Picture]) -> Self {
        if pictures.is_empty() {
            return Self::Text(&tool.text);
        }
        let text = (!tool.text.is_empty()).then(|| serde_json::json!({ "type": "text", "text": tool.text }));
        Self::Parts(text.into_iter().chain(pictures.iter().map(picture)).collect())
    }
}

/// A message, or a part of the one that is open.
pub(crate) fn piece(message: &Message, pictures: &[Picture], before: LastSpeaker) -> Option<Vec<u8>> {
    #[derive(Serialize)]
    struct ResultForm<'a> {
        r#type: &'static str,
        tool_use_id: &'a str,
        content: Content<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    }
    let block = match message {
        Message::Assistant(assistant) => return answer(&assistant.blocks, before),
        Message::User(user) => {
            let text = TextForm { r#type: "text", text: &user.text };
            // Empty text is refused.
            let text = (!user.text.is_empty()).then(|| json(&text));
            let blocks: Vec<Vec<u8>> =
                pictures.iter().map(|image| json(&picture(image))).chain(text).collect();
            if blocks.is_empty() {
                return None;
            }
            blocks.join(&b',')
        }
        Message::Tool(tool) => json(&ResultForm {
            r#type: "tool_result",
            tool_use_id: tool.call.as_str(),
            content: Content::of(tool, pictures),
            is_error: tool.error,
        }),
    };
    let opening: &[u8] = match before {
        LastSpeaker::Start => br#"{"role":"user","content":["#,
        LastSpeaker::User => b"},",
        LastSpeaker::Assistant => br#",{"role":"user","content":["#,
    };
    let mut bytes = opening.to_vec();
    bytes.extend_from_slice(block.strip_suffix(b"}").unwrap_or(&block));
    Some(bytes)
}

fn answer(blocks: &[Block], before: LastSpeaker) -> Option<Vec<u8>> {
    let forms: Vec<Vec<u8>> = blocks.iter().filter_map(block).collect();
    // A message with thoughts alone is refused.
    let says = blocks.iter().any(|block| match block {
        Block::Text(text) => !text.text.is_empty(),
        Block::Call(_) => true,
        Block::Thinking(_) | Block::Opaque(_) => false,
    });
    if !says {
        return None;
    }
    let opening: &[u8] = match before {
        LastSpeaker::Start => b"",
        LastSpeaker::User => b"}]},",
        LastSpeaker::Assistant => b",",
    };
    let mut bytes = opening.to_vec();
    bytes.extend_from_slice(br#"{"role":"assistant","content":["#);
    bytes.extend_from_slice(&forms.join(&b','));
    bytes.extend_from_slice(b"]}");
    Some(bytes)
}

fn block(block: &Block) -> Option<Vec<u8>> {
    let ours = |raw: &Raw, kinds: &[&str]| type_of(raw).is_some_and(|kind| kinds.contains(&&*kind));
    match block {
        Block::Text(text) => match text.raw.as_ref().filter(|raw| ours(raw, &["text"])) {
            Some(raw) => Some(raw.get().as_bytes().to_vec()),
            None if text.text.is_empty() => None,
            None => Some(json(&TextForm { r#type: "text", text: &text.text })),
        },
        // Only this provider's own signed thoughts are accepted.
        Block::Thinking(thought) => {
            let raw = thought.raw.as_ref().filter(|raw| ours(raw, &["thinking", "redacted_thinking"]))?;
            Some(raw.get().as_bytes().to_vec())
        }
        Block::Opaque(raw) => {
            let foreign = ["reasoning", "message", "function_call"];
            let kind = type_of(raw)?;
            (!foreign.contains(&&*kind)).then(|| raw.get().as_bytes().to_vec())
        }
        Block::Call(call) => Some(match call.raw.as_ref().filter(|raw| ours(raw, &["tool_use"])) {
            Some(raw) => raw.get().as_bytes().to_vec(),
            None => json(&CallForm::of(call)),
        }),
    }
}

#[derive(Serialize)]
struct CallForm<'a> {
    r#type: &'static str,
    id: &'a str,
    name: &'a str,
    input: Raw,
}

impl<'a> CallForm<'a> {
    fn of(call: &'a ToolCall) -> Self {
        Self { r#type: "tool_use", id: call.id.as_str(), name: &call.name, input: input_of(&call.arguments) }
    }
}

/// Arguments as an object, the only form on this wire. Arguments that are not JSON are sent under Anthropic's own
/// name for them.
pub(super) fn input_of(arguments: &Arguments) -> Raw {
    match arguments {
        Arguments::Json(raw) if raw.get().starts_with('{') => raw.clone(),
        Arguments::Json(_) | Arguments::Malformed(_) => {
            let wrapped = std::collections::BTreeMap::from([("INVALID_JSON", arguments.as_text())]);
            Raw::from_serialize(&wrapped).unwrap_or_else(|_| Raw::null())
        }
    }
}

pub(crate) fn tail(before: LastSpeaker) -> Bytes {
    match before {
        LastSpeaker::User => Bytes::from_static(LAST),
        LastSpeaker::Start | LastSpeaker::Assistant => Bytes::from_static(b"]}"),
    }
}
