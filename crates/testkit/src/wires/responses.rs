//! OpenAI Responses.

use lathe_protocol::{Block, StopReason};
use serde_json::{Value, json};

use super::{AnswerShape, RequestEcho, StreamEvent, exact_texts, half, pieces, signature, stop, wrong};
use crate::script::FakeAnswer;

/// The items of an answer, as they must come back.
pub(super) fn items(answer: &FakeAnswer, number: usize) -> Vec<Value> {
    let items = answer.blocks.iter().enumerate().filter_map(|(at, block)| match block {
        Block::Text(text) => Some(json!({"id": format!("msg_{number}_{at}"), "type": "message",
            "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": text.text}]})),
        Block::Thinking(thought) => Some(json!({"id": format!("rs_{number}_{at}"), "type": "reasoning",
            "summary": [{"type": "summary_text", "text": thought.text}],
            "encrypted_content": signature(number, at)})),
        Block::Opaque(_) => None,
        Block::Call(call) => Some(json!({"id": format!("fc_{number}_{at}"), "type": "function_call",
            "status": "completed", "arguments": call.arguments.as_text(), "call_id": call.id.as_str(),
            "name": call.name})),
    });
    items.collect()
}

pub(super) fn signed_items(items: &[Value]) -> Vec<String> {
    exact_texts(items.iter().filter(|item| item["type"] == "reasoning").cloned())
}

pub(super) fn events(answer: &FakeAnswer, asked: &RequestEcho<'_>, shape: AnswerShape) -> Vec<StreamEvent> {
    let mut events: Vec<(&'static str, Value)> = Vec::new();
    let response = |status: &str, output: Value| {
        json!({"id": format!("resp_fake_{}", asked.answer), "object": "response", "status": status,
            "model": asked.model, "output": output, "error": null, "incomplete_details": null})
    };
    events.push(("response.created", json!({"response": response("in_progress", json!([]))})));
    let mut items = if shape == AnswerShape::Empty { Vec::new() } else { items(answer, asked.answer) };
    if shape == AnswerShape::MalformedArguments {
        for item in items.iter_mut().filter(|item| item["type"] == "function_call") {
            item["arguments"] = json!(half(item["arguments"].as_str().unwrap_or_default()));
        }
    }
    for (index, item) in items.iter().enumerate() {
        item_events(index, item, &mut events);
    }
    if shape != AnswerShape::WithoutEnd {
        let usage = &answer.usage;
        let (name, status, reason) = match stop(answer, shape) {
            StopReason::EndTurn | StopReason::ToolCalls => ("response.completed", "completed", None),
            StopReason::Length => ("response.incomplete", "incomplete", Some("max_output_tokens".to_owned())),
            StopReason::ContentFilter => {
                ("response.incomplete", "incomplete", Some("content_filter".to_owned()))
            }
            StopReason::Other(text) => ("response.incomplete", "incomplete", Some(text)),
        };
        let mut done = response(status, json!(items));
        done["usage"] = json!({"input_tokens": usage.input_tokens,
            "input_tokens_details": {"cached_tokens": usage.cache_read_input_tokens},
            "output_tokens": usage.output_tokens,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
            "total_tokens": usage.input_tokens + usage.output_tokens});
        if let Some(reason) = reason {
            done["incomplete_details"] = json!({ "reason": reason });
        }
        events.push((name, json!({ "response": done })));
    }
    let numbered = events.into_iter().enumerate().map(|(number, (name, mut data))| {
        data["type"] = json!(name);
        data["sequence_number"] = json!(number);
        StreamEvent::named(name, data)
    });
    numbered.collect()
}

fn item_events(index: usize, item: &Value, events: &mut Vec<(&'static str, Value)>) {
    let id = item["id"].clone();
    let mut added = item.clone();
    let deltas: (&'static str, String) = match item["type"].as_str() {
        Some("message") => {
            added["content"] = json!([]);
            ("response.output_text.delta", item["content"][0]["text"].as_str().unwrap_or_default().to_owned())
        }
        Some("reasoning") => {
            added["summary"] = json!([]);
            (
                "response.reasoning_summary_text.delta",
                item["summary"][0]["text"].as_str().unwrap_or_default().to_owned(),
            )
        }
        _ => {
            added["arguments"] = json!("");
            (
                "response.function_call_arguments.delta",
                item["arguments"].as_str().unwrap_or_default().to_owned(),
            )
        }
    };
    events.push(("response.output_item.added", json!({"output_index": index, "item": added})));
    for piece in pieces(&deltas.1) {
        events.push((deltas.0, json!({"item_id": id, "output_index": index, "delta": piece})));
    }
    events.push(("response.output_item.done", json!({"output_index": index, "item": item})));
}

/// A text or an image that a model is given.
fn is_input(part: &Value) -> bool {
    match part["type"].as_str() {
        Some("input_text") => part["text"].is_string(),
        Some("input_image") => super::is_data_url(&part["image_url"]),
        _ => false,
    }
}

/// The answers of a conversation, if it is one OpenAI takes.
pub(super) fn check(items: &[Value]) -> Result<Vec<Vec<Value>>, String> {
    let mut turns: Vec<Vec<Value>> = Vec::new();
    let mut open: Vec<&str> = Vec::new();
    let mut speaks = false;
    for (at, item) in items.iter().enumerate() {
        let fail = |rule: &str| Err(wrong(at, rule, item));
        let kind = item["type"].as_str().or(item["role"].as_str().map(|_| "message")).unwrap_or_default();
        let from_model = kind == "reasoning" || kind == "function_call" || item["role"] == "assistant";
        if from_model {
            if !open.is_empty() && !speaks {
                return fail("a call has no result before this");
            }
            if !std::mem::replace(&mut speaks, true) {
                turns.push(Vec::new());
            }
            turns.last_mut().map(|turn| turn.push(item.clone())).unwrap_or_default();
        } else if std::mem::take(&mut speaks) && last_is_reasoning(&turns) {
            return fail("a reasoning item must be followed by what it led to");
        }
        match kind {
            "reasoning" if item["encrypted_content"].is_string() && item["summary"].is_array() => {}
            "function_call" => {
                let id = item["call_id"].as_str().unwrap_or_default();
                if id.is_empty() || open.contains(&id) {
                    return fail("a call must have an id of its own");
                }
                if !item["arguments"].is_string() || !item["name"].is_string() {
                    return fail("a call must have a name, and arguments as a string");
                }
                open.push(id);
            }
            "function_call_output" => {
                if open.first().copied() != item["call_id"].as_str() {
                    return fail("results must come in the order of the calls");
                }
                if !item["output"].is_string() && !super::are_parts(&item["output"], is_input) {
                    return fail("an output must be a string, or texts and images");
                }
                open.remove(0);
            }
            "message" if item["role"] == "assistant" => {}
            "message" if item["role"] == "user" && !open.is_empty() => return fail("a call has no result"),
            "message" if item["role"] == "user" && item["content"].is_string() => {}
            "message" if item["role"] == "user" && super::are_parts(&item["content"], is_input) => {}
            _ => return fail("this item is unknown or wrong"),
        }
    }
    if speaks || !open.is_empty() {
        return Err("the conversation must end with the user or a result, and every call have one".to_owned());
    }
    Ok(turns)
}

fn last_is_reasoning(turns: &[Vec<Value>]) -> bool {
    turns.last().and_then(|turn| turn.last()).is_some_and(|item| item["type"] == "reasoning")
}
