//! Anthropic Messages.

use lathe_protocol::{Block, StopReason};
use serde_json::{Map, Value, json};

use super::{
    AnswerShape, RequestEcho, StreamEvent, exact_texts, half, pieces, redacted, signature, stop, wrong,
};
use crate::script::FakeAnswer;

/// The content of an answer, as it must come back.
pub(super) fn blocks(answer: &FakeAnswer, number: usize) -> Vec<Value> {
    let known = |raw: &Option<lathe_protocol::Raw>| {
        raw.as_ref().and_then(|raw| raw.to_value().ok()).filter(|raw| raw["type"].is_string())
    };
    let blocks = answer.blocks.iter().enumerate().filter_map(|(at, block)| match block {
        Block::Text(text) => Some(json!({"type": "text", "text": text.text})),
        Block::Thinking(thought) => Some(known(&thought.raw).unwrap_or_else(
            || json!({"type": "thinking", "thinking": thought.text, "signature": signature(number, at)}),
        )),
        Block::Opaque(_) => redacted(block).map(|data| json!({"type": "redacted_thinking", "data": data})),
        Block::Call(call) => {
            let input = serde_json::from_str(call.arguments.as_text()).unwrap_or_else(|_| json!({}));
            Some(json!({"type": "tool_use", "id": call.id.as_str(), "name": call.name, "input": input}))
        }
    });
    blocks.collect()
}

/// The parts that a provider would notice a change of.
pub(super) fn signed_blocks(blocks: &[Value]) -> Vec<String> {
    let kinds = ["thinking", "redacted_thinking"];
    exact_texts(
        blocks
            .iter()
            .filter(|block| block["type"].as_str().is_some_and(|kind| kinds.contains(&kind)))
            .cloned(),
    )
}

pub(super) fn events(answer: &FakeAnswer, asked: &RequestEcho<'_>, shape: AnswerShape) -> Vec<StreamEvent> {
    let usage = &answer.usage;
    let fresh = usage
        .input_tokens
        .saturating_sub(usage.cache_read_input_tokens)
        .saturating_sub(usage.cache_creation_input_tokens);
    let mut events = vec![
        StreamEvent::named(
            "message_start",
            json!({"type": "message_start", "message": {
                "id": format!("msg_fake_{}", asked.answer), "type": "message", "role": "assistant",
                "model": asked.model, "content": [], "stop_reason": null, "stop_sequence": null,
                "usage": {"input_tokens": fresh, "cache_creation_input_tokens": usage.cache_creation_input_tokens,
                    "cache_read_input_tokens": usage.cache_read_input_tokens, "output_tokens": 1}}}),
        ),
        StreamEvent::named("ping", json!({"type": "ping"})),
    ];
    let blocks = if shape == AnswerShape::Empty { Vec::new() } else { blocks(answer, asked.answer) };
    let calls: Vec<&str> =
        lathe_protocol::calls_of(&answer.blocks).map(|call| call.arguments.as_text()).collect();
    let mut calls = calls.into_iter();
    for (index, block) in blocks.into_iter().enumerate() {
        let arguments = if block["type"] == "tool_use" { calls.next() } else { None };
        events.extend(block_events(index, block, arguments, shape));
    }
    if shape == AnswerShape::WithoutEnd {
        return events;
    }
    let reason = match stop(answer, shape) {
        StopReason::EndTurn => "end_turn".to_owned(),
        StopReason::ToolCalls => "tool_use".to_owned(),
        StopReason::Length => "max_tokens".to_owned(),
        StopReason::ContentFilter => "refusal".to_owned(),
        StopReason::Other(text) => text,
    };
    events.push(StreamEvent::named(
        "message_delta",
        json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
            "usage": {"output_tokens": usage.output_tokens}}),
    ));
    events.push(StreamEvent::named("message_stop", json!({"type": "message_stop"})));
    events
}

fn block_events(index: usize, block: Value, arguments: Option<&str>, shape: AnswerShape) -> Vec<StreamEvent> {
    let Value::Object(block) = block else { return Vec::new() };
    let text = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let kind = text("type");
    let mut start: Map<String, Value> = block.clone();
    let deltas: Vec<Value> = match kind.as_str() {
        "text" => {
            start.insert("text".to_owned(), json!(""));
            pieces(&text("text"))
                .into_iter()
                .map(|piece| json!({"type": "text_delta", "text": piece}))
                .collect()
        }
        "thinking" => {
            start.insert("thinking".to_owned(), json!(""));
            start.insert("signature".to_owned(), json!(""));
            let thoughts = pieces(&text("thinking"));
            let signed = json!({"type": "signature_delta", "signature": text("signature")});
            let thoughts =
                thoughts.into_iter().map(|piece| json!({"type": "thinking_delta", "thinking": piece}));
            thoughts.chain([signed]).collect()
        }
        "tool_use" => {
            start.insert("input".to_owned(), json!({}));
            let whole = arguments.unwrap_or_default();
            let sent = if shape == AnswerShape::MalformedArguments { half(whole) } else { whole.to_owned() };
            pieces(&sent)
                .into_iter()
                .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}))
                .collect()
        }
        _ => Vec::new(),
    };
    let mut events = vec![StreamEvent::named(
        "content_block_start",
        json!({"type": "content_block_start", "index": index, "content_block": start}),
    )];
    events.extend(deltas.into_iter().map(|delta| {
        StreamEvent::named(
            "content_block_delta",
            json!({"type": "content_block_delta", "index": index, "delta": delta}),
        )
    }));
    events.push(StreamEvent::named(
        "content_block_stop",
        json!({"type": "content_block_stop", "index": index}),
    ));
    events
}

/// The answers of a conversation, if it is one Anthropic takes.
pub(super) fn check(request: &Value) -> Result<Vec<Vec<Value>>, String> {
    if !request["max_tokens"].is_u64() {
        return Err("max_tokens must be a number".to_owned());
    }
    let marks = request.to_string().matches("\"cache_control\"").count();
    if marks > 4 {
        return Err(format!("there are {marks} marks for the cache, and four are allowed"));
    }
    let messages = request["messages"].as_array().ok_or("messages must be a list")?;
    let mut turns = Vec::new();
    // Ids whose results must come next, in this order.
    let mut open: Vec<String> = Vec::new();
    let mut last = "assistant";
    for (at, message) in messages.iter().enumerate() {
        let fail = |rule: &str| Err(wrong(at, rule, message));
        let Some(content) = message["content"].as_array().filter(|content| !content.is_empty()) else {
            return fail("the content must be a list with blocks");
        };
        match message["role"].as_str() {
            Some("user") if last == "user" => return fail("two messages of the user in a row"),
            Some("user") => {
                let mut results = std::mem::take(&mut open).into_iter();
                for block in content {
                    match block["type"].as_str() {
                        Some("tool_result") => {
                            if results.next().as_deref() != block["tool_use_id"].as_str() {
                                return fail("results must come first and in the order of the calls");
                            }
                            let is_content = block["content"].is_string()
                                || super::are_parts(&block["content"], |part| {
                                    is_image(part) || part["type"] == "text" && part["text"].is_string()
                                });
                            if !is_content {
                                return fail("a result must have a content of texts and images");
                            }
                        }
                        Some("text" | "image") if results.len() > 0 => return fail("a call has no result"),
                        Some("text") if block["text"].as_str().is_some_and(|text| !text.is_empty()) => {}
                        Some("image") if is_image(block) => {}
                        _ => {
                            return fail(
                                "a user's block must be an image, a text that is not empty, or a result",
                            );
                        }
                    }
                }
                if results.next().is_some() {
                    return fail("a call has no result");
                }
                last = "user";
            }
            Some("assistant") if last == "assistant" => return fail("an answer must follow the user"),
            Some("assistant") => {
                open = check_answer(content).map_err(|rule| wrong(at, &rule, message))?;
                turns.push(content.clone());
                last = "assistant";
            }
            _ => return fail("this role is unknown"),
        }
    }
    if last != "user" {
        return Err("the conversation must end with the user".to_owned());
    }
    Ok(turns)
}

fn is_image(block: &Value) -> bool {
    let source = &block["source"];
    block["type"] == "image"
        && source["type"] == "base64"
        && source["media_type"].as_str().is_some_and(|kind| kind.starts_with("image/"))
        && super::is_base64(&source["data"])
}

fn check_answer(content: &[Value]) -> Result<Vec<String>, String> {
    let mut ids: Vec<String> = Vec::new();
    for block in content {
        match block["type"].as_str() {
            Some("text") if block["text"].as_str().is_some_and(|text| !text.is_empty()) => {}
            Some("thinking") if block["signature"].is_string() => {}
            Some("redacted_thinking") if block["data"].is_string() => {}
            Some("tool_use") if block["input"].is_object() && block["name"].is_string() => {
                let id = block["id"].as_str().unwrap_or_default().to_owned();
                if id.is_empty() || ids.contains(&id) {
                    return Err(format!("the id `{id}` is empty or stands twice"));
                }
                ids.push(id);
            }
            _ => return Err(format!("a block of an answer is wrong: {block}")),
        }
    }
    Ok(ids)
}
