//! Encodes neutral messages for the Gemini wire.
//!
//! Consecutive user messages are one content, with as many function responses as there were calls. The model's own
//! parts are sent back as they came: a signature belongs to its part.

use bytes::Bytes;
use lathe_protocol::{Arguments, Block, Message, Raw, ToolCall, ToolMessage};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::assembly::is_generated_id;
use crate::encode::{LastSpeaker, json, open_list};
use crate::form::Params;
use crate::images::Picture;
use crate::members::Members;
use crate::request::Head;
use crate::schema;

/// Everything before the first content. The name of the model is in the address.
pub(crate) fn head(head: &Head, params: &Params) -> Vec<u8> {
    open_list(&HeadBody { head, params })
}

struct HeadBody<'a> {
    head: &'a Head,
    params: &'a Params,
}

#[derive(Serialize)]
struct Text<'a> {
    text: &'a str,
}

#[derive(Serialize)]
struct Parts<'a> {
    parts: [Text<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Generation<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    candidate_count: Option<u32>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop_sequences: &'a [String],
}

impl Serialize for HeadBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Function<'a> {
            name: &'a str,
            description: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            parameters: Option<Raw>,
        }
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Functions<'a> {
            function_declarations: Vec<Function<'a>>,
        }
        let Self { head, params } = self;
        let mut map = serializer.serialize_map(None)?;
        if !head.system.is_empty() {
            map.serialize_entry("systemInstruction", &Parts { parts: [Text { text: &head.system }] })?;
        }
        if !head.tools.is_empty() {
            let functions = head.tools.iter().map(|tool| Function {
                name: &tool.name,
                description: &tool.description,
                parameters: schema::gemini(&tool.schema),
            });
            map.serialize_entry("tools", &[Functions { function_declarations: functions.collect() }])?;
        }
        let generation = Generation {
            temperature: params.temperature,
            top_p: params.top_p,
            top_k: params.top_k.filter(|k| *k > 0),
            max_output_tokens: params.max_tokens,
            candidate_count: params.candidate_count,
            stop_sequences: &params.stop_sequences,
        };
        if json(&generation) != b"{}" {
            map.serialize_entry("generationConfig", &generation)?;
        }
        map.serialize_entry("contents", &[(); 0])?;
        map.end()
    }
}

/// A content, or a part of the one that is open.
pub(crate) fn piece(message: &Message, pictures: &[Picture], before: LastSpeaker) -> Option<Vec<u8>> {
    let part = match message {
        Message::Assistant(assistant) => return answer(&assistant.blocks, before),
        Message::User(user) => with_images(json(&Text { text: &user.text }), pictures),
        Message::Tool(tool) => with_images(json(&response(tool)), pictures),
    };
    let opening: &[u8] = match before {
        LastSpeaker::Start => br#"{"role":"user","parts":["#,
        LastSpeaker::User => b",",
        LastSpeaker::Assistant => br#",{"role":"user","parts":["#,
    };
    Some([opening, &part].concat())
}

/// Pictures are parts of their own, after the part that they belong to.
fn with_images(part: Vec<u8>, pictures: &[Picture]) -> Vec<u8> {
    let images = pictures.iter().map(|image| {
        json(&serde_json::json!({ "inlineData": { "mimeType": image.media_type, "data": image.data } }))
    });
    std::iter::once(part).chain(images).collect::<Vec<_>>().join(&b',')
}

fn response(tool: &ToolMessage) -> impl Serialize {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Form<'a> {
        function_response: Response<'a>,
    }
    #[derive(Serialize)]
    struct Response<'a> {
        /// Present only if the model gave the call an id.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        name: &'a str,
        response: Outcome<'a>,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "snake_case")]
    enum Outcome<'a> {
        Output(&'a str),
        Error(&'a str),
    }
    Form {
        function_response: Response {
            id: Some(tool.call.as_str()).filter(|id| !is_generated_id(id, &tool.name)),
            name: &tool.name,
            response: if tool.error { Outcome::Error(&tool.text) } else { Outcome::Output(&tool.text) },
        },
    }
}

fn answer(blocks: &[Block], before: LastSpeaker) -> Option<Vec<u8>> {
    let says = blocks.iter().any(|block| match block {
        Block::Text(text) => !text.text.is_empty(),
        Block::Call(_) => true,
        Block::Thinking(_) | Block::Opaque(_) => false,
    });
    let parts: Vec<Vec<u8>> = blocks.iter().filter_map(part).collect();
    if !says || parts.is_empty() {
        return None;
    }
    let opening: &[u8] = match before {
        LastSpeaker::Start => b"",
        LastSpeaker::User => b"]},",
        LastSpeaker::Assistant => b",",
    };
    Some([opening, br#"{"role":"model","parts":["#, &parts.join(&b','), b"]}"].concat())
}

fn part(block: &Block) -> Option<Vec<u8>> {
    let bytes = |raw: &Raw| raw.get().as_bytes().to_vec();
    let with = |raw: &Raw, member: &str| {
        Members::parse(raw.get()).is_some_and(|part| part.get(member).is_some() && part.get("type").is_none())
    };
    match block {
        Block::Text(text) => match text.raw.as_ref().filter(|raw| with(raw, "text")) {
            Some(raw) => Some(bytes(raw)),
            None if text.text.is_empty() => None,
            None => Some(json(&Text { text: &text.text })),
        },
        Block::Thinking(thought) => thought.raw.as_ref().filter(|raw| with(raw, "thought")).map(bytes),
        Block::Opaque(raw) => {
            let known =
                ["executableCode", "codeExecutionResult", "inlineData", "fileData", "thoughtSignature"];
            known.iter().any(|member| with(raw, member)).then(|| bytes(raw))
        }
        Block::Call(call) => Some(match call.raw.as_ref().filter(|raw| with(raw, "functionCall")) {
            Some(raw) => bytes(raw),
            None => json(&call_form(call)),
        }),
    }
}

fn call_form(call: &ToolCall) -> impl Serialize {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Form {
        function_call: FunctionCall,
    }
    #[derive(Serialize)]
    struct FunctionCall {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        name: String,
        args: Raw,
    }
    let args = match &call.arguments {
        Arguments::Json(raw) if raw.get().starts_with('{') => raw.clone(),
        Arguments::Json(_) | Arguments::Malformed(_) => {
            let wrapped = std::collections::BTreeMap::from([("invalid_json", call.arguments.as_text())]);
            Raw::from_serialize(&wrapped).unwrap_or_else(|_| Raw::null())
        }
    };
    let id = Some(call.id.as_str().to_owned()).filter(|id| !is_generated_id(id, &call.name));
    Form { function_call: FunctionCall { id, name: call.name.clone(), args } }
}

pub(crate) fn tail(before: LastSpeaker) -> Bytes {
    match before {
        LastSpeaker::User => Bytes::from_static(b"]}]}"),
        LastSpeaker::Start | LastSpeaker::Assistant => Bytes::from_static(b"]}"),
    }
}
