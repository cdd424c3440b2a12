//! Encodes neutral messages for the Responses wire: a flat list of items.
//!
//! Nothing is stored at the provider (`store: false`), so the model's thoughts come back encrypted and are sent
//! again.

use lathe_protocol::{Block, Message, Raw, ToolCall};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::encode::{LastSpeaker, item, json, open_list};
use crate::form::{Params, takes_temperature, thinks};
use crate::images::Picture;
use crate::members::type_of;
use crate::request::Head;
use crate::schema;

/// Everything before the first item.
pub(crate) fn head(head: &Head, params: &Params) -> Vec<u8> {
    open_list(&HeadBody { head, params })
}

struct HeadBody<'a> {
    head: &'a Head,
    params: &'a Params,
}

impl Serialize for HeadBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { head, params } = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", &head.model)?;
        map.serialize_entry("stream", &params.delivery.is_streamed())?;
        map.serialize_entry("store", &false)?;
        if thinks(&head.model) {
            map.serialize_entry("include", &["reasoning.encrypted_content"])?;
        }
        if let Some(key) = &params.cache_key {
            map.serialize_entry("prompt_cache_key", key)?;
        }
        if takes_temperature(&head.model) {
            if let Some(temperature) = params.temperature {
                map.serialize_entry("temperature", &temperature)?;
            }
            if let Some(top_p) = params.top_p {
                map.serialize_entry("top_p", &top_p)?;
            }
        }
        if let Some(limit) = params.max_tokens {
            map.serialize_entry("max_output_tokens", &limit)?;
        }
        if !head.tools.is_empty() {
            map.serialize_entry("tools", &Tools(head))?;
            if let Some(parallel) = params.parallel_calls {
                map.serialize_entry("parallel_tool_calls", &parallel)?;
            }
        }
        if !head.system.is_empty() {
            map.serialize_entry("instructions", &head.system)?;
        }
        map.serialize_entry("input", &[(); 0])?;
        map.end()
    }
}

struct Tools<'a>(&'a Head);

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Tool<'a> {
            r#type: &'static str,
            name: &'a str,
            description: &'a str,
            parameters: Raw,
            strict: bool,
        }
        serializer.collect_seq(self.0.tools.iter().map(|tool| {
            // A schema that is not explicit enough for strictness is sent as it is.
            let strict = schema::strict(&tool.schema);
            Tool {
                r#type: "function",
                name: &tool.name,
                description: &tool.description,
                strict: strict.is_some(),
                parameters: strict.unwrap_or_else(|| tool.schema.clone()),
            }
        }))
    }
}

#[derive(Serialize)]
struct TextItem<'a> {
    role: &'static str,
    content: &'a str,
}

#[derive(Serialize)]
struct InputItem<'a> {
    role: &'static str,
    content: Content<'a>,
}

/// Text, or text with pictures.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Parts(Vec<serde_json::Value>),
}

impl<'a> Content<'a> {
    fn of(text: &'a str, images: &[Picture]) -> Self {
        if images.is_empty() {
            return Self::Text(text);
        }
        let words = serde_json::json!({ "type": "input_text", "text": text });
        let images = images
            .iter()
            .map(|image| serde_json::json!({ "type": "input_image", "image_url": image.data_url() }));
        Self::Parts(std::iter::once(words).chain(images).collect())
    }
}

/// The items of one message.
pub(crate) fn piece(message: &Message, pictures: &[Picture], before: LastSpeaker) -> Option<Vec<u8>> {
    #[derive(Serialize)]
    struct Output<'a> {
        r#type: &'static str,
        call_id: &'a str,
        output: Content<'a>,
    }
    let first = before == LastSpeaker::Start;
    match message {
        Message::User(user) => {
            Some(item(&InputItem { role: "user", content: Content::of(&user.text, pictures) }, first))
        }
        Message::Tool(tool) => {
            let output = Output {
                r#type: "function_call_output",
                call_id: tool.call.as_str(),
                output: Content::of(&tool.text, pictures),
            };
            Some(item(&output, first))
        }
        Message::Assistant(assistant) => {
            // A thought that nothing follows is refused.
            let says = assistant.blocks.iter().any(|block| match block {
                Block::Text(text) => !text.text.is_empty(),
                Block::Call(_) => true,
                Block::Thinking(_) | Block::Opaque(_) => false,
            });
            let items: Vec<Vec<u8>> = assistant.blocks.iter().filter_map(block).collect();
            if !says || items.is_empty() {
                return None;
            }
            let mut bytes = if first { Vec::new() } else { vec![b','] };
            bytes.extend_from_slice(&items.join(&b','));
            Some(bytes)
        }
    }
}

fn block(block: &Block) -> Option<Vec<u8>> {
    let ours = |raw: &Raw, kind: &str| type_of(raw).is_some_and(|known| known == kind);
    let bytes = |raw: &Raw| raw.get().as_bytes().to_vec();
    match block {
        Block::Text(text) => match text.raw.as_ref().filter(|raw| ours(raw, "message")) {
            Some(raw) => Some(bytes(raw)),
            None if text.text.is_empty() => None,
            None => Some(json(&TextItem { role: "assistant", content: &text.text })),
        },
        Block::Thinking(thought) => thought.raw.as_ref().filter(|raw| ours(raw, "reasoning")).map(bytes),
        Block::Opaque(raw) => {
            let foreign = ["thinking", "redacted_thinking", "tool_use", "text"];
            let kind = type_of(raw)?;
            (!foreign.contains(&&*kind)).then(|| bytes(raw))
        }
        Block::Call(call) => Some(match call.raw.as_ref().filter(|raw| ours(raw, "function_call")) {
            Some(raw) => bytes(raw),
            None => json(&CallForm::of(call)),
        }),
    }
}

#[derive(Serialize)]
struct CallForm<'a> {
    r#type: &'static str,
    call_id: &'a str,
    name: &'a str,
    arguments: &'a str,
}

impl<'a> CallForm<'a> {
    fn of(call: &'a ToolCall) -> Self {
        Self {
            r#type: "function_call",
            call_id: call.id.as_str(),
            name: &call.name,
            arguments: call.arguments.as_text(),
        }
    }
}
