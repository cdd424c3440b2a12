//! Assembly of a Messages answer from its stream.
//!
//! A block is every member of its start with the deltas appended to them, so signatures and unknown members are sent
//! back with it.

use std::collections::BTreeMap;

use lathe_protocol::{Arguments, Block, Raw, StopReason, TextBlock, ToolCall, Usage};
use serde::Deserialize;
use serde_json::Value;

use super::encode::input_of;
use crate::assembly::{Assembly, Closing, Flow, Ids, StreamFailure, not_json};
use crate::frames::Frame;
use crate::lenient::lenient;
use crate::members::Members;
use crate::request::{Delta, ModelAnswer};

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum MessagesEvent {
    MessageStart {
        message: Start,
    },
    ContentBlockDelta {
        index: usize,
        delta: BlockDelta,
    },
    ContentBlockStop {},
    MessageDelta {
        delta: MessageDelta,
        #[serde(default)]
        usage: Option<MessageUsage>,
    },
    MessageStop {},
    Error {
        error: Value,
    },
    /// A ping, or something newer. The start of a block is parsed separately, because it contains raw JSON.
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct BlockStart {
    index: usize,
    content_block: Members,
}

#[derive(Deserialize)]
struct Start {
    #[serde(default)]
    model: String,
    #[serde(default)]
    usage: Option<MessageUsage>,
}

#[derive(Deserialize)]
struct MessageDelta {
    #[serde(default)]
    stop_reason: Option<String>,
}

/// Counts are totals; a later one replaces an earlier one.
#[derive(Deserialize)]
struct MessageUsage {
    #[serde(default, deserialize_with = "lenient")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    cache_read_input_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct BlockDelta {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    partial_json: Option<String>,
    #[serde(default)]
    thinking: Option<String>,
    #[serde(default)]
    signature: Option<String>,
    #[serde(default)]
    citation: Option<Value>,
}

/// An answer in one piece.
#[derive(Deserialize)]
struct Whole {
    #[serde(default)]
    error: Option<Value>,
    #[serde(default)]
    model: String,
    #[serde(default)]
    content: Vec<Members>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    usage: Option<MessageUsage>,
}

/// A block that is being received.
#[derive(Default)]
struct Forming {
    start: Members,
    text: String,
    json: String,
    thinking: String,
    signature: String,
    citations: Vec<Value>,
}

#[derive(Default)]
pub(crate) struct MessagesAssembly {
    closing: Closing,
    /// Input tokens that were not cached; the neutral count includes all input.
    fresh: u64,
    blocks: BTreeMap<usize, Forming>,
}

impl Assembly for MessagesAssembly {
    fn take(&mut self, frame: &Frame, deltas: &mut Vec<Delta>) -> Result<Flow, StreamFailure> {
        if frame.data.trim().is_empty() {
            return Ok(Flow::More);
        }
        let wrong = |error: serde_json::Error| not_json(&error, &frame.data);
        // Recognised by the name of the event, or by the content if a server omits the name.
        if frame.event == "content_block_start"
            || (frame.event.is_empty() && frame.data.contains("\"content_block_start\""))
        {
            let start: BlockStart = serde_json::from_str(&frame.data).map_err(wrong)?;
            self.start(start.index, start.content_block, deltas);
            return Ok(Flow::More);
        }
        match serde_json::from_str(&frame.data).map_err(wrong)? {
            MessagesEvent::MessageStart { message } => {
                self.closing.model = message.model;
                self.count(message.usage);
            }
            MessagesEvent::ContentBlockDelta { index, delta } => self.delta(index, delta, deltas),
            MessagesEvent::MessageDelta { delta, usage } => {
                self.count(usage);
                if let Some(reason) = delta.stop_reason {
                    self.closing.stop = Some(stop_reason(&reason));
                }
            }
            MessagesEvent::MessageStop {} => return Ok(Flow::End),
            MessagesEvent::Error { error } => return Err(StreamFailure::Provider(error)),
            MessagesEvent::ContentBlockStop {} | MessagesEvent::Other => {}
        }
        Ok(Flow::More)
    }

    fn whole(&mut self, body: &str, deltas: &mut Vec<Delta>) -> Result<(), StreamFailure> {
        let whole: Whole = serde_json::from_str(body).map_err(|error| not_json(&error, body))?;
        if let Some(error) = whole.error {
            return Err(StreamFailure::Provider(error));
        }
        self.closing.model = whole.model;
        self.count(whole.usage);
        for (index, block) in whole.content.into_iter().enumerate() {
            self.start(index, block, deltas);
        }
        self.closing.stop = whole.stop_reason.as_deref().map(stop_reason);
        Ok(())
    }

    fn is_ended(&self) -> bool {
        self.closing.stop.is_some()
    }

    fn written(&self) -> usize {
        let of = |forming: &Forming| forming.text.len() + forming.thinking.len() + forming.json.len();
        self.blocks.values().map(of).sum()
    }

    fn finish(mut self: Box<Self>, step: u32) -> ModelAnswer {
        let mut ids = Ids::new(step);
        let blocks = std::mem::take(&mut self.blocks);
        let blocks = blocks.into_values().filter_map(|forming| forming.finish(&mut ids)).collect();
        self.closing.answer(blocks)
    }
}

impl MessagesAssembly {
    fn start(&mut self, index: usize, start: Members, deltas: &mut Vec<Delta>) {
        let mut forming = Forming::default();
        match start.text("type").as_deref() {
            Some("text") => {
                forming.text = start.text("text").unwrap_or_default();
                if !forming.text.is_empty() {
                    deltas.push(Delta::Text(forming.text.clone()));
                }
            }
            Some("thinking") => {
                forming.thinking = start.text("thinking").unwrap_or_default();
                forming.signature = start.text("signature").unwrap_or_default();
            }
            Some("tool_use") => {
                deltas.push(Delta::CallForming(start.text("name").unwrap_or_default()));
            }
            Some(_) | None => {}
        }
        forming.start = start;
        self.blocks.insert(index, forming);
    }

    fn delta(&mut self, index: usize, delta: BlockDelta, deltas: &mut Vec<Delta>) {
        let forming = self.blocks.entry(index).or_default();
        if let Some(text) = delta.text {
            forming.text.push_str(&text);
            deltas.push(Delta::Text(text));
        }
        if let Some(thinking) = delta.thinking {
            forming.thinking.push_str(&thinking);
            deltas.push(Delta::Thinking(thinking));
        }
        forming.json.push_str(&delta.partial_json.unwrap_or_default());
        forming.signature.push_str(&delta.signature.unwrap_or_default());
        forming.citations.extend(delta.citation);
    }

    fn count(&mut self, usage: Option<MessageUsage>) {
        let Some(usage) = usage else { return };
        let known = &mut self.closing.usage;
        self.fresh = usage.input_tokens.unwrap_or(self.fresh);
        *known = Usage {
            output_tokens: usage.output_tokens.unwrap_or(known.output_tokens),
            cache_creation_input_tokens: usage
                .cache_creation_input_tokens
                .unwrap_or(known.cache_creation_input_tokens),
            cache_read_input_tokens: usage.cache_read_input_tokens.unwrap_or(known.cache_read_input_tokens),
            ..*known
        };
        let cached = known.cache_creation_input_tokens.saturating_add(known.cache_read_input_tokens);
        known.input_tokens = self.fresh.saturating_add(cached);
    }
}

impl Forming {
    fn finish(mut self, ids: &mut Ids) -> Option<Block> {
        match self.start.text("type").as_deref() {
            Some("text") => {
                if !self.citations.is_empty()
                    && let Ok(citations) = Raw::from_serialize(&self.citations)
                {
                    self.start.set("citations", citations);
                }
                // A raw form with nothing except its text is not stored twice.
                let plain = self.start.0.iter().all(|(name, value)| {
                    name == "type" || name == "text" || (name == "citations" && value.get() == "null")
                });
                self.start.set_text("text", &self.text);
                let raw = if plain { None } else { self.start.raw() };
                (raw.is_some() || !self.text.is_empty())
                    .then_some(Block::Text(TextBlock { text: self.text, raw }))
            }
            Some("thinking") => {
                self.start.set_text("thinking", &self.thinking);
                if !self.signature.is_empty() {
                    self.start.set_text("signature", &self.signature);
                }
                Some(Block::Thinking(TextBlock { raw: self.start.raw(), text: self.thinking }))
            }
            Some("redacted_thinking") => {
                Some(Block::Thinking(TextBlock { text: String::new(), raw: self.start.raw() }))
            }
            Some("tool_use") => Some(Block::Call(self.call(ids))),
            Some(_) | None => self.start.raw().map(Block::Opaque),
        }
    }

    fn call(mut self, ids: &mut Ids) -> ToolCall {
        let given = self.start.text("id").unwrap_or_default();
        let id = ids.unique(&given, &self.start.text("name").unwrap_or_default());
        if id.as_str() != given {
            self.start.set_text("id", id.as_str());
        }
        let whole = self.start.get("input").map(|input| input.get().to_owned());
        let arguments = if self.json.is_empty() {
            Arguments::from_text(whole.as_deref().unwrap_or_default())
        } else {
            Arguments::from_text(&self.json)
        };
        self.start.set("input", input_of(&arguments));
        ToolCall { id, name: self.start.text("name").unwrap_or_default(), arguments, raw: self.start.raw() }
    }
}

fn stop_reason(text: &str) -> StopReason {
    match text {
        "end_turn" | "stop_sequence" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
        "refusal" => StopReason::ContentFilter,
        other => StopReason::Other(other.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assemble(events: &[(&str, &str)]) -> ModelAnswer {
        let mut assembling = Box::new(MessagesAssembly::default());
        for (event, data) in events {
            let frame = Frame { event: (*event).to_owned(), data: (*data).to_owned() };
            assembling.take(&frame, &mut Vec::new()).unwrap();
        }
        assert!(assembling.is_ended());
        assembling.finish(0)
    }

    #[test]
    fn signed_and_redacted_thoughts_and_calls_are_kept_value_for_value_in_their_order() {
        let answer = assemble(&[
            (
                "message_start",
                r#"{"type":"message_start","message":{"model":"m","usage":{"input_tokens":5,"cache_read_input_tokens":90,"cache_creation_input_tokens":7,"output_tokens":1}}}"#,
            ),
            (
                "content_block_start",
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
            ),
            (
                "content_block_delta",
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#,
            ),
            (
                "content_block_delta",
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"Eq+/="}}"#,
            ),
            (
                "content_block_start",
                r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"xyz","n":1e2}}"#,
            ),
            (
                "content_block_start",
                r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t1","name":"bash","input":{},"caller":{"type":"direct"}}}"#,
            ),
            (
                "content_block_delta",
                r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"n\": 1e2,"}}"#,
            ),
            (
                "content_block_delta",
                r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":" \"c\": 1}"}}"#,
            ),
            ("ping", r#"{"type":"ping"}"#),
            ("new_thing", r#"{"type":"new_thing","x":1}"#),
            (
                "message_delta",
                r#"{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":12}}"#,
            ),
        ]);
        let raws: Vec<&str> = answer
            .blocks
            .iter()
            .map(|block| match block {
                Block::Thinking(thought) => thought.raw.as_ref().unwrap().get(),
                Block::Call(call) => call.raw.as_ref().unwrap().get(),
                Block::Text(_) | Block::Opaque(_) => panic!("unexpected"),
            })
            .collect();
        assert_eq!(
            raws,
            [
                r#"{"type":"thinking","thinking":"hm","signature":"Eq+/="}"#,
                r#"{"type":"redacted_thinking","data":"xyz","n":1e2}"#,
                r#"{"type":"tool_use","id":"t1","name":"bash","input":{"n":1e2,"c":1},"caller":{"type":"direct"}}"#,
            ]
        );
        let usage = answer.usage;
        assert_eq!((usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens), (102, 90, 12));
    }

    #[test]
    fn malformed_arguments_stay_what_they_were_and_go_back_as_an_object() {
        let answer = assemble(&[
            (
                "content_block_start",
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t1","name":"bash","input":{}}}"#,
            ),
            (
                "content_block_delta",
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"comm"}}"#,
            ),
            ("message_delta", r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#),
        ]);
        let Block::Call(call) = &answer.blocks[0] else { panic!("a call is expected") };
        assert_eq!(call.arguments, Arguments::Malformed("{\"comm".into()));
        assert!(call.raw.as_ref().unwrap().get().contains(r#""input":{"INVALID_JSON":"{\"comm"}"#));
    }
}
