//! Encodes neutral messages for Ollama's wire.

use lathe_protocol::{Arguments, Block, Message, Raw, ToolCall, calls_of, text_of};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::encode::{item, json, open_list};
use crate::form::Params;
use crate::images::Picture;
use crate::members::Members;
use crate::request::Head;

pub(crate) fn head(head: &Head, params: &Params) -> Vec<u8> {
    open_list(&HeadBody { head, params })
}

struct HeadBody<'a> {
    head: &'a Head,
    params: &'a Params,
}

#[derive(Serialize)]
struct TextMessage<'a> {
    role: &'static str,
    content: &'a str,
}

#[derive(Serialize)]
struct Options<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_predict: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_ctx: Option<u32>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop: &'a [String],
}

impl Serialize for HeadBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Function<'a> {
            name: &'a str,
            description: &'a str,
            parameters: &'a Raw,
        }
        #[derive(Serialize)]
        struct Tool<'a> {
            r#type: &'static str,
            function: Function<'a>,
        }
        let Self { head, params } = self;
        let options = Options {
            temperature: params.temperature,
            top_p: params.top_p,
            top_k: params.top_k.filter(|k| *k > 0),
            num_predict: params.max_tokens,
            num_ctx: params.quirks.context,
            stop: &params.stop_sequences,
        };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", &head.model)?;
        map.serialize_entry("stream", &params.delivery.is_streamed())?;
        if json(&options) != b"{}" {
            map.serialize_entry("options", &options)?;
        }
        if !head.tools.is_empty() {
            let tools: Vec<Tool<'_>> = head
                .tools
                .iter()
                .map(|tool| Tool {
                    r#type: "function",
                    function: Function {
                        name: &tool.name,
                        description: &tool.description,
                        parameters: &tool.schema,
                    },
                })
                .collect();
            map.serialize_entry("tools", &tools)?;
        }
        map.serialize_entry("messages", &[TextMessage { role: "system", content: &head.system }])?;
        map.end()
    }
}

pub(crate) fn piece(message: &Message, pictures: &[Picture]) -> Option<Vec<u8>> {
    #[derive(Serialize)]
    struct InputMessage<'a> {
        role: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_name: Option<&'a str>,
        content: &'a str,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        images: Vec<&'a str>,
    }
    match message {
        Message::User(user) => {
            let images = pictures.iter().map(|picture| picture.data.as_str()).collect();
            Some(item(&InputMessage { role: "user", tool_name: None, content: &user.text, images }, false))
        }
        Message::Tool(tool) => {
            let tool_name = Some(tool.name.as_str());
            Some(item(
                &InputMessage { role: "tool", tool_name, content: &tool.text, images: Vec::new() },
                false,
            ))
        }
        Message::Assistant(assistant) => {
            let blocks = &assistant.blocks;
            let text = text_of(blocks);
            let calls: Vec<Raw> = calls_of(blocks).filter_map(call).collect();
            if text.is_empty() && calls.is_empty() {
                return None;
            }
            Some(item(&Answered { text, thought: thought(blocks), calls }, false))
        }
    }
}

/// The model's thoughts, if they came on this wire: others keep a raw form in addition.
fn thought(blocks: &[Block]) -> Option<&str> {
    blocks.iter().find_map(|block| match block {
        Block::Thinking(thought) if thought.raw.is_none() => Some(thought.text.as_str()),
        Block::Thinking(_) | Block::Text(_) | Block::Call(_) | Block::Opaque(_) => None,
    })
}

#[derive(Serialize)]
#[serde(tag = "role", rename = "assistant")]
struct Answered<'a> {
    #[serde(rename = "content")]
    text: String,
    #[serde(rename = "thinking", skip_serializing_if = "Option::is_none")]
    thought: Option<&'a str>,
    #[serde(rename = "tool_calls", skip_serializing_if = "Vec::is_empty")]
    calls: Vec<Raw>,
}

fn call(call: &ToolCall) -> Option<Raw> {
    #[derive(Serialize)]
    struct Form<'a> {
        function: Function<'a>,
    }
    #[derive(Serialize)]
    struct Function<'a> {
        name: &'a str,
        arguments: Raw,
    }
    if let Some(raw) = call.raw.as_ref().filter(|raw| is_ours(raw)) {
        return Some(raw.clone());
    }
    let arguments = match &call.arguments {
        Arguments::Json(raw) if raw.get().starts_with('{') => raw.clone(),
        Arguments::Json(_) | Arguments::Malformed(_) => {
            let wrapped = std::collections::BTreeMap::from([("invalid_json", call.arguments.as_text())]);
            Raw::from_serialize(&wrapped).ok()?
        }
    };
    Raw::from_serialize(&Form { function: Function { name: &call.name, arguments } }).ok()
}

/// Tells whether a raw call came on this wire: its arguments are an object, not text.
fn is_ours(raw: &Raw) -> bool {
    let function = Members::parse(raw.get()).and_then(|call| call.get("function").cloned());
    let function = function.and_then(|function| Members::parse(function.get()));
    function.is_some_and(|function| {
        function.get("arguments").is_some_and(|arguments| arguments.get().starts_with('{'))
    })
}
