//! Neutral messages to the bytes of the Chat wire.

use bytes::Bytes;
use lathe_protocol::{Block, Message, ToolCall, text_of};
use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};

use crate::request::Head;

/// What closes a body after its last message.
pub(crate) const TAIL: Bytes = Bytes::from_static(b"]}");

/// Everything up to and with the system message. Parameters stand before the messages, so that a longer
/// conversation only ever appends.
pub(crate) fn encode_head(head: &Head) -> Bytes {
    #[derive(Serialize)]
    struct Function<'a> {
        name: &'a str,
        description: &'a str,
        parameters: &'a lathe_protocol::Raw,
    }
    #[derive(Serialize)]
    struct Tool<'a> {
        r#type: &'static str,
        function: Function<'a>,
    }
    #[derive(Serialize)]
    struct StreamOptions {
        include_usage: bool,
    }
    #[derive(Serialize)]
    struct HeadBody<'a> {
        model: &'a str,
        stream: bool,
        stream_options: StreamOptions,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tools: Vec<Tool<'a>>,
        messages: [SystemMessage<'a>; 1],
    }
    #[derive(Serialize)]
    struct SystemMessage<'a> {
        role: &'static str,
        content: &'a str,
    }
    let body = HeadBody {
        model: &head.model,
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        tools: head
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
            .collect(),
        messages: [SystemMessage { role: "system", content: &head.system }],
    };
    let mut bytes = to_vec(&body);
    bytes.truncate(bytes.len().saturating_sub(TAIL.len()));
    Bytes::from(bytes)
}

/// One message with the comma that parts it from the one before.
pub(crate) fn encode_message(message: &Message) -> Bytes {
    #[derive(Serialize)]
    struct User<'a> {
        role: &'static str,
        content: &'a str,
    }
    #[derive(Serialize)]
    struct Tool<'a> {
        role: &'static str,
        tool_call_id: &'a str,
        content: &'a str,
    }
    let json = match message {
        Message::User(user) => to_vec(&User { role: "user", content: &user.text }),
        Message::Tool(tool) => {
            to_vec(&Tool { role: "tool", tool_call_id: tool.call.as_str(), content: &tool.text })
        }
        Message::Assistant(assistant) => to_vec(&Assistant { blocks: &assistant.blocks }),
    };
    let mut bytes = Vec::with_capacity(json.len() + 1);
    bytes.push(b',');
    bytes.extend_from_slice(&json);
    Bytes::from(bytes)
}

struct Assistant<'a> {
    blocks: &'a [Block],
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
            match &call.raw {
                Some(raw) => seq.serialize_element(raw)?,
                None => seq.serialize_element(&CallForm::of(call))?,
            }
        }
        seq.end()
    }
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

/// Our own types always serialise: keys are strings, and raw JSON was checked when it was made.
fn to_vec<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}
