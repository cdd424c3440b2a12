//! Assembly of a Chat answer from its stream.
//!
//! Every member that a provider sends is kept: a call's raw form is its first delta with the later argument pieces
//! appended, so unknown members (signatures, for example) are sent back with it.

use std::collections::BTreeMap;

use lathe_protocol::{Arguments, Block, CallId, Raw, StopReason, TextBlock, ToolCall, Usage};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::encode::DETAILS;
use crate::assembly::{Assembly, Closing, Flow, Ids, StreamFailure, not_json, text_block};
use crate::frames::Frame;
use crate::lenient::lenient;
use crate::request::{Delta, ModelAnswer};

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    #[serde(default, deserialize_with = "lenient")]
    usage: Option<ChatUsage>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    delta: Option<Map<String, Value>>,
    /// An answer in one piece has this instead.
    #[serde(default)]
    message: Option<Map<String, Value>>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct ChatUsage {
    #[serde(default, deserialize_with = "lenient")]
    prompt_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    completion_tokens: Option<u64>,
    /// DeepSeek's name for the cached part.
    #[serde(default, deserialize_with = "lenient")]
    prompt_cache_hit_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default, deserialize_with = "lenient")]
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Deserialize)]
struct PromptDetails {
    #[serde(default, deserialize_with = "lenient")]
    cached_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct CompletionDetails {
    #[serde(default, deserialize_with = "lenient")]
    reasoning_tokens: Option<u64>,
}

/// Assembles an answer from its chunks.
#[derive(Default)]
pub(crate) struct ChatAssembly {
    closing: Closing,
    text: String,
    thinking: String,
    details: Vec<Value>,
    calls: BTreeMap<u64, Map<String, Value>>,
}

impl Assembly for ChatAssembly {
    fn take(&mut self, frame: &Frame, deltas: &mut Vec<Delta>) -> Result<Flow, StreamFailure> {
        match frame.data.trim() {
            "" => return Ok(Flow::More),
            "[DONE]" => return Ok(Flow::End),
            _ => {}
        }
        let chunk: Chunk =
            serde_json::from_str(&frame.data).map_err(|error| not_json(&error, &frame.data))?;
        self.take_chunk(chunk, deltas)?;
        Ok(Flow::More)
    }

    fn whole(&mut self, body: &str, deltas: &mut Vec<Delta>) -> Result<(), StreamFailure> {
        let chunk = serde_json::from_str(body).map_err(|error| not_json(&error, body))?;
        self.take_chunk(chunk, deltas)
    }

    fn is_ended(&self) -> bool {
        self.closing.stop.is_some()
    }

    fn written(&self) -> usize {
        let calls = self.calls.values().filter_map(|call| call.get("function")?.as_object());
        let called = calls.flat_map(Map::values).map(|member| match member {
            Value::String(text) => text.len(),
            other => other.to_string().len(),
        });
        self.text.len() + self.thinking.len() + called.sum::<usize>()
    }

    fn finish(self: Box<Self>, step: u32) -> ModelAnswer {
        let mut blocks = Vec::new();
        if !self.details.is_empty() {
            let details = Map::from_iter([(DETAILS.to_owned(), Value::Array(self.details))]);
            blocks.extend(Raw::from_serialize(&details).ok().map(Block::Opaque));
        }
        if !self.thinking.is_empty() {
            blocks.push(Block::Thinking(TextBlock { text: self.thinking, raw: None }));
        }
        if !self.text.is_empty() {
            blocks.push(text_block(self.text));
        }
        let mut ids = Ids::new(step);
        for (_, mut call) in self.calls {
            let given = call.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
            let name = call.get("function").and_then(|function| function.get("name")).and_then(Value::as_str);
            let id = ids.unique(&given, name.unwrap_or_default());
            if id.as_str() != given {
                call.insert("id".to_owned(), Value::String(id.as_str().to_owned()));
            }
            call.entry("type").or_insert_with(|| Value::String("function".to_owned()));
            blocks.push(Block::Call(tool_call(id, &call)));
        }
        self.closing.answer(blocks)
    }
}

impl ChatAssembly {
    fn take_chunk(&mut self, chunk: Chunk, deltas: &mut Vec<Delta>) -> Result<(), StreamFailure> {
        if let Some(error) = chunk.error {
            return Err(StreamFailure::Provider(error));
        }
        if let Some(model) = chunk.model {
            self.closing.model = model;
        }
        if let Some(usage) = chunk.usage {
            self.closing.usage = Usage {
                input_tokens: usage.prompt_tokens.unwrap_or(0),
                output_tokens: usage.completion_tokens.unwrap_or(0),
                cache_read_input_tokens: usage
                    .prompt_tokens_details
                    .and_then(|details| details.cached_tokens)
                    .or(usage.prompt_cache_hit_tokens)
                    .unwrap_or(0),
                reasoning_tokens: usage
                    .completion_tokens_details
                    .and_then(|details| details.reasoning_tokens)
                    .unwrap_or(0),
                ..Usage::default()
            };
        }
        if let Some(choice) = chunk.choices.into_iter().flatten().next() {
            self.take_delta(choice.delta.or(choice.message).unwrap_or_default(), deltas);
            if let Some(reason) = choice.finish_reason {
                self.closing.stop = Some(stop_reason(&reason));
            }
        }
        Ok(())
    }

    fn take_delta(&mut self, delta: Map<String, Value>, deltas: &mut Vec<Delta>) {
        for (key, value) in delta {
            match (key.as_str(), value) {
                ("content", Value::String(text)) if !text.is_empty() => {
                    self.text.push_str(&text);
                    deltas.push(Delta::Text(text));
                }
                ("reasoning_content" | "reasoning", Value::String(text)) if !text.is_empty() => {
                    self.thinking.push_str(&text);
                    deltas.push(Delta::Thinking(text));
                }
                (DETAILS, Value::Array(more)) => self.details.extend(more),
                ("tool_calls", Value::Array(pieces)) => {
                    for piece in pieces {
                        self.take_call(piece, deltas);
                    }
                }
                _ => {}
            }
        }
    }

    fn take_call(&mut self, piece: Value, deltas: &mut Vec<Delta>) {
        let Value::Object(mut piece) = piece else { return };
        // Some servers omit the index when a call comes in one piece.
        let index =
            piece.shift_remove("index").and_then(|index| index.as_u64()).unwrap_or(self.calls.len() as u64);
        let call = self.calls.entry(index).or_default();
        let named_before = name_of(call).is_some();
        merge(call, piece);
        if let (false, Some(name)) = (named_before, name_of(call)) {
            deltas.push(Delta::CallForming(name.to_owned()));
        }
    }
}

fn tool_call(id: CallId, call: &Map<String, Value>) -> ToolCall {
    let function = call.get("function").and_then(Value::as_object);
    let member = |name| function.and_then(|function| function.get(name));
    let arguments = match member("arguments") {
        Some(Value::String(text)) => Arguments::from_text(text),
        // Some servers send the arguments as JSON, not as text.
        Some(other @ Value::Object(_)) => Arguments::from_text(&other.to_string()),
        Some(_) | None => Arguments::from_text(""),
    };
    ToolCall {
        id,
        name: member("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
        arguments,
        raw: Raw::from_serialize(call).ok(),
    }
}

fn name_of(call: &Map<String, Value>) -> Option<&str> {
    call.get("function")?.get("name")?.as_str().filter(|name| !name.is_empty())
}

/// Merges a piece: argument texts are joined, objects merged, other members set once.
fn merge(into: &mut Map<String, Value>, piece: Map<String, Value>) {
    for (key, value) in piece {
        match (into.get_mut(&key), value) {
            (Some(Value::Object(known)), Value::Object(more)) => merge(known, more),
            (Some(Value::String(known)), Value::String(more)) if key == "arguments" => known.push_str(&more),
            (Some(Value::String(known)), Value::String(more)) if known.is_empty() => *known = more,
            (Some(known @ Value::Null), more) => *known = more,
            (Some(_), _) => {}
            (None, more) => {
                into.insert(key, more);
            }
        }
    }
}

fn stop_reason(text: &str) -> StopReason {
    match text {
        "stop" => StopReason::EndTurn,
        "tool_calls" | "function_call" => StopReason::ToolCalls,
        "length" => StopReason::Length,
        "content_filter" => StopReason::ContentFilter,
        other => StopReason::Other(other.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(data: &str) -> Frame {
        Frame { event: String::new(), data: data.to_owned() }
    }

    fn assemble(chunks: &[&str]) -> ModelAnswer {
        let mut assembling = Box::new(ChatAssembly::default());
        for chunk in chunks {
            assembling.take(&frame(chunk), &mut Vec::new()).unwrap();
        }
        assembling.finish(3)
    }

    #[test]
    fn joins_arguments_and_keeps_members_it_does_not_know() {
        let answer = assemble(&[
            r#"{"choices":[{"delta":{"role":"assistant","content":"hi"}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","sig":"s==","function":{"name":"bash","arguments":""}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"command\":"}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":" \"ls\"}"}}]},"finish_reason":"tool_calls"}]}"#,
        ]);
        let Block::Call(call) = &answer.blocks[1] else { panic!("a call is expected") };
        assert_eq!(call.arguments.as_text(), r#"{"command":"ls"}"#);
        let raw = call.raw.as_ref().unwrap().get();
        assert_eq!(
            raw,
            r#"{"id":"a","type":"function","sig":"s==","function":{"name":"bash","arguments":"{\"command\": \"ls\"}"}}"#
        );
        assert_eq!(answer.stop, StopReason::ToolCalls);
    }

    #[test]
    fn missing_and_double_ids_become_unique() {
        let call = |id: &str, index: u32| {
            format!(
                r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":{index},{id}"function":{{"name":"t","arguments":"{{}}"}}}}]}}}}]}}"#
            )
        };
        let chunks = [call("", 0), call(r#""id":"x","#, 1), call(r#""id":"x","#, 2)];
        let answer = assemble(&chunks.iter().map(String::as_str).collect::<Vec<_>>());
        let ids: Vec<&str> = lathe_protocol::calls_of(&answer.blocks).map(|call| call.id.as_str()).collect();
        assert_eq!(ids, ["3_t", "x", "x_again"]);
    }

    #[test]
    fn an_error_in_the_stream_is_the_providers_word() {
        let error = r#"{"error":{"message":"overloaded","type":"server_error"}}"#;
        let broken = ChatAssembly::default().take(&frame(error), &mut Vec::new()).unwrap_err();
        assert!(matches!(broken, StreamFailure::Provider(error) if error["message"] == "overloaded"));
    }

    #[test]
    fn an_answer_in_one_piece_is_the_same_as_a_streamed_one() {
        let mut assembling = Box::new(ChatAssembly::default());
        let body = r#"{"model":"m","choices":[{"message":{"role":"assistant","content":"hi","tool_calls":[{"id":"a","type":"function","function":{"name":"t","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}"#;
        assembling.whole(body, &mut Vec::new()).unwrap();
        let answer = assembling.finish(0);
        assert_eq!(
            (answer.blocks.len(), answer.usage.input_tokens, answer.stop),
            (2, 3, StopReason::ToolCalls)
        );
    }
}
