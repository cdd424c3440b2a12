//! Encodes neutral messages for the Chat wire.

use lathe_protocol::{Block, Message, Raw, ToolCall, UserMessage, text_of};
use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};
use serde_json::{Value, json};

use crate::encode::{item, open_list};
use crate::form::{Params, takes_temperature};
use crate::images::Picture;
use crate::members::Members;
use crate::request::Head;

/// The member under which OpenRouter keeps a model's thoughts, opaque and signed.
pub(super) const DETAILS: &str = "reasoning_details";

/// Everything up to and including the system message. Parameters come before the messages, so that a longer
/// conversation only ever appends.
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
        struct StreamOptions {
            include_usage: bool,
        }
        let Self { head, params } = self;
        let streamed = params.delivery.is_streamed();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", &head.model)?;
        map.serialize_entry("stream", &streamed)?;
        if streamed && params.quirks.stream_usage {
            map.serialize_entry("stream_options", &StreamOptions { include_usage: true })?;
        }
        if let Some(temperature) = params.temperature.filter(|_| takes_temperature(&head.model)) {
            map.serialize_entry("temperature", &temperature)?;
        }
        if let Some(top_p) = params.top_p {
            map.serialize_entry("top_p", &top_p)?;
        }
        if let Some(limit) = params.max_tokens {
            map.serialize_entry(params.quirks.limit_member, &limit)?;
        }
        if !params.stop_sequences.is_empty() {
            map.serialize_entry("stop", &params.stop_sequences)?;
        }
        if !head.tools.is_empty() {
            map.serialize_entry("tools", &Tools(head))?;
            if let Some(parallel) = params.parallel_calls {
                map.serialize_entry("parallel_tool_calls", &parallel)?;
            }
        }
        map.serialize_entry("messages", &[TextMessage { role: "system", content: &head.system }])?;
        map.end()
    }
}

struct Tools<'a>(&'a Head);

impl Serialize for Tools<'_> {
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
        serializer.collect_seq(self.0.tools.iter().map(|tool| Tool {
            r#type: "function",
            function: Function { name: &tool.name, description: &tool.description, parameters: &tool.schema },
        }))
    }
}

#[derive(Serialize)]
struct TextMessage<'a> {
    role: &'static str,
    content: &'a str,
}

/// One message with the comma that separates it from the previous one.
pub(crate) fn piece(message: &Message, pictures: &[Picture], params: &Params) -> Option<Vec<u8>> {
    #[derive(Serialize)]
    struct Tool<'a> {
        role: &'static str,
        tool_call_id: &'a str,
        content: &'a str,
    }
    Some(match message {
        Message::User(user) if pictures.is_empty() => {
            item(&TextMessage { role: "user", content: &user.text }, false)
        }
        Message::User(user) => item(&seen(user, pictures), false),
        Message::Tool(tool) => {
            item(&Tool { role: "tool", tool_call_id: tool.call.as_str(), content: &tool.text }, false)
        }
        Message::Assistant(assistant) => {
            let blocks = &assistant.blocks;
            let says = blocks.iter().any(|block| match block {
                Block::Text(text) => !text.text.is_empty(),
                Block::Call(_) => true,
                Block::Thinking(_) | Block::Opaque(_) => false,
            });
            if !says {
                return None;
            }
            item(&Assistant { blocks, reasoning: params.quirks.reasoning_back }, false)
        }
    })
}

/// Text with pictures.
fn seen(user: &UserMessage, pictures: &[Picture]) -> Value {
    let images = pictures
        .iter()
        .map(|picture| json!({ "type": "image_url", "image_url": { "url": picture.data_url() } }));
    let content: Vec<Value> = images.chain([json!({ "type": "text", "text": user.text })]).collect();
    json!({ "role": "user", "content": content })
}

struct Assistant<'a> {
    blocks: &'a [Block],
    reasoning: bool,
}

impl Serialize for Assistant<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = text_of(self.blocks);
        let calls = Calls(self.blocks);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("role", "assistant")?;
        if text.is_empty() && calls.any() {
            map.serialize_entry("content", &None::<&str>)?;
        } else {
            map.serialize_entry("content", &text)?;
        }
        if self.reasoning {
            let thought = self.blocks.iter().find_map(|block| match block {
                // Only thoughts that came on this wire: other wires keep a raw form in addition.
                Block::Thinking(thought) if thought.raw.is_none() => Some(&thought.text),
                Block::Thinking(_) | Block::Text(_) | Block::Call(_) | Block::Opaque(_) => None,
            });
            if let Some(thought) = thought {
                map.serialize_entry("reasoning_content", thought)?;
            }
        }
        for block in self.blocks {
            if let Block::Opaque(raw) = block
                && let Some(details) = Members::parse(raw.get()).as_ref().and_then(|all| all.get(DETAILS))
            {
                map.serialize_entry(DETAILS, details)?;
            }
        }
        if calls.any() {
            map.serialize_entry("tool_calls", &calls)?;
        }
        map.end()
    }
}

struct Calls<'a>(&'a [Block]);

impl Calls<'_> {
    fn any(&self) -> bool {
        lathe_protocol::calls_of(self.0).next().is_some()
    }
}

impl Serialize for Calls<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(None)?;
        for call in lathe_protocol::calls_of(self.0) {
            match call.raw.as_ref().filter(|raw| is_ours(raw)) {
                Some(raw) => seq.serialize_element(raw)?,
                None => seq.serialize_element(&CallForm::of(call))?,
            }
        }
        seq.end()
    }
}

/// Tells whether a raw call came on this wire.
fn is_ours(raw: &Raw) -> bool {
    let Some(function) = Members::parse(raw.get()).and_then(|call| call.get("function").cloned()) else {
        return false;
    };
    // Ollama's are the same except for their arguments.
    Members::parse(function.get())
        .is_some_and(|function| function.get("arguments").is_none_or(|text| text.get().starts_with('"')))
}

/// A call that no provider sent: from a cassette, or from another wire.
#[derive(Serialize)]
struct CallForm<'a> {
    id: &'a str,
    r#type: &'static str,
    function: FunctionForm<'a>,
}

#[derive(Serialize)]
struct FunctionForm<'a> {
    name: &'a str,
    arguments: &'a str,
}

impl<'a> CallForm<'a> {
    fn of(call: &'a ToolCall) -> Self {
        Self {
            id: call.id.as_str(),
            r#type: "function",
            function: FunctionForm { name: &call.name, arguments: call.arguments.as_text() },
        }
    }
}
