//! The stream of a Chat answer, put together again.
//!
//! Every member a provider sends is kept: a call's raw form is its first delta with the later argument pieces joined,
//! so members this program does not know (signatures, for one) go back with it.

use std::collections::BTreeMap;

use lathe_protocol::{Arguments, Block, CallId, Raw, StopReason, TextBlock, ToolCall, Usage};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::request::{Answer, Delta};

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<ChatUsage>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    delta: Map<String, Value>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct ChatUsage {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
    #[serde(default)]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default)]
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Deserialize)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct CompletionDetails {
    #[serde(default)]
    reasoning_tokens: Option<u64>,
}

/// Puts an answer together from its chunks.
#[derive(Default)]
pub(super) struct Assembly {
    model: String,
    text: String,
    thinking: String,
    calls: BTreeMap<u64, Map<String, Value>>,
    stop: Option<StopReason>,
    usage: Usage,
}

/// A chunk that ends the stream badly.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BadChunk {
    NotJson(String),
    ProviderError(String),
}

impl Assembly {
    /// Takes the data of one event; returns what a watcher may be shown.
    pub(super) fn take(&mut self, data: &str) -> Result<Vec<Delta>, BadChunk> {
        let chunk: Chunk = serde_json::from_str(data)
            .map_err(|error| BadChunk::NotJson(format!("{error} in {}", clip(data))))?;
        if let Some(error) = chunk.error {
            return Err(BadChunk::ProviderError(super::client::error_text(&error.to_string())));
        }
        if let Some(model) = chunk.model {
            self.model = model;
        }
        if let Some(usage) = chunk.usage {
            self.usage = Usage {
                input_tokens: usage.prompt_tokens,
                output_tokens: usage.completion_tokens,
                cache_read_input_tokens: usage
                    .prompt_tokens_details
                    .and_then(|d| d.cached_tokens)
                    .unwrap_or(0),
                reasoning_tokens: usage
                    .completion_tokens_details
                    .and_then(|d| d.reasoning_tokens)
                    .unwrap_or(0),
                cache_creation_input_tokens: 0,
            };
        }
        let mut deltas = Vec::new();
        if let Some(choice) = chunk.choices.into_iter().next() {
            self.take_delta(choice.delta, &mut deltas);
            if let Some(reason) = choice.finish_reason {
                self.stop = Some(stop_reason(&reason));
            }
        }
        Ok(deltas)
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
        // Some servers leave the index out when a call comes whole.
        let index =
            piece.shift_remove("index").and_then(|index| index.as_u64()).unwrap_or(self.calls.len() as u64);
        let call = self.calls.entry(index).or_default();
        let named_before = name_of(call).is_some();
        merge(call, piece);
        if let (false, Some(name)) = (named_before, name_of(call)) {
            deltas.push(Delta::CallForming(name.to_owned()));
        }
    }

    /// Whether the provider said why it stopped.
    pub(super) fn is_ended(&self) -> bool {
        self.stop.is_some()
    }

    pub(super) fn finish(self, turn: u32) -> Answer {
        let mut blocks = Vec::new();
        if !self.thinking.is_empty() {
            blocks.push(Block::Thinking(TextBlock { text: self.thinking, raw: None }));
        }
        if !self.text.is_empty() {
            blocks.push(Block::text(self.text));
        }
        let mut ids: Vec<String> = Vec::new();
        for (place, (_, mut call)) in self.calls.into_iter().enumerate() {
            // Every call needs an id of its own, or its result cannot be paired with it.
            let given = call.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
            let mut id = if given.is_empty() { format!("call_{turn}_{place}") } else { given.clone() };
            while ids.contains(&id) {
                id.push_str("_again");
            }
            if id != given {
                call.insert("id".to_owned(), Value::String(id.clone()));
            }
            call.entry("type").or_insert_with(|| Value::String("function".to_owned()));
            blocks.push(Block::Call(tool_call(&id, &call)));
            ids.push(id);
        }
        let stop = match self.stop {
            Some(stop) => stop,
            None if ids.is_empty() => StopReason::EndTurn,
            None => StopReason::ToolCalls,
        };
        Answer { blocks, stop, usage: self.usage, model: self.model, drift: None }
    }
}

fn tool_call(id: &str, call: &Map<String, Value>) -> ToolCall {
    let function = call.get("function").and_then(Value::as_object);
    let text = |key| function.and_then(|f| f.get(key)).and_then(Value::as_str).unwrap_or_default();
    ToolCall {
        id: CallId::new(id),
        name: text("name").to_owned(),
        arguments: Arguments::from_text(text("arguments")),
        raw: Raw::from_serialize(call).ok(),
    }
}

fn name_of(call: &Map<String, Value>) -> Option<&str> {
    call.get("function")?.get("name")?.as_str().filter(|name| !name.is_empty())
}

/// Adds a piece: argument texts are joined, objects merged, anything else is set once.
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

fn clip(text: &str) -> String {
    text.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assemble(chunks: &[&str]) -> Answer {
        let mut assembly = Assembly::default();
        for chunk in chunks {
            assembly.take(chunk).unwrap();
        }
        assembly.finish(3)
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
        assert_eq!(ids, ["call_3_0", "x", "x_again"]);
    }

    #[test]
    fn an_error_in_the_stream_is_the_providers_word() {
        let mut assembly = Assembly::default();
        let bad = assembly.take(r#"{"error":{"message":"overloaded","type":"server_error"}}"#).unwrap_err();
        assert_eq!(bad, BadChunk::ProviderError("overloaded".into()));
    }
}
