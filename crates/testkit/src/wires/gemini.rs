//! Google Gemini.

use lathe_protocol::{Block, StopReason};
use serde_json::{Value, json};

use super::{AnswerShape, RequestEcho, StreamEvent, exact_texts, pieces, signature, stop, wrong};
use crate::script::FakeAnswer;

/// The parts of an answer, as they must come back. What follows a thought is signed.
pub(super) fn parts(answer: &FakeAnswer, number: usize) -> Vec<Value> {
    let mut parts = Vec::new();
    let mut thought_at = None;
    for (at, block) in answer.blocks.iter().enumerate() {
        let mut part = match block {
            Block::Text(text) => json!({"text": text.text}),
            Block::Thinking(thought) => {
                parts.push(json!({"text": thought.text, "thought": true}));
                thought_at = Some(at);
                continue;
            }
            Block::Opaque(_) => continue,
            Block::Call(call) => {
                let args = serde_json::from_str(call.arguments.as_text()).unwrap_or_else(|_| json!({}));
                json!({"functionCall": {"id": call.id.as_str(), "name": call.name, "args": args}})
            }
        };
        if let Some(at) = thought_at.take() {
            part["thoughtSignature"] = json!(signature(number, at));
        }
        parts.push(part);
    }
    parts
}

pub(super) fn signed_parts(parts: &[Value]) -> Vec<String> {
    exact_texts(parts.iter().filter(|part| part.get("thoughtSignature").is_some()).cloned())
}

pub(super) fn events(answer: &FakeAnswer, asked: &RequestEcho<'_>, shape: AnswerShape) -> Vec<StreamEvent> {
    let chunk = |parts: Value, finish: Option<&str>| {
        let mut chunk = json!({
            "candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0}],
            "usageMetadata": usage(answer),
            "modelVersion": asked.model,
            "responseId": format!("fake-{}", asked.answer),
        });
        if let Some(finish) = finish {
            chunk["candidates"][0]["finishReason"] = json!(finish);
        }
        StreamEvent::of(chunk)
    };
    let mut events = Vec::new();
    // Arguments come parsed on this wire: a model that fails at them has made no call at all.
    let broken = shape == AnswerShape::MalformedArguments;
    if shape != AnswerShape::Empty {
        for part in parts(answer, asked.answer) {
            match part["text"].as_str() {
                Some(text) if part.get("thoughtSignature").is_none() => {
                    for piece in pieces(text) {
                        let mut small = part.clone();
                        small["text"] = json!(piece);
                        events.push(chunk(json!([small]), None));
                    }
                }
                _ if broken && part.get("functionCall").is_some() => {}
                _ => events.push(chunk(json!([part]), None)),
            }
        }
    }
    if shape == AnswerShape::WithoutEnd {
        return events;
    }
    let finish = match stop(answer, shape) {
        _ if broken => "MALFORMED_FUNCTION_CALL".to_owned(),
        StopReason::EndTurn | StopReason::ToolCalls => "STOP".to_owned(),
        StopReason::Length => "MAX_TOKENS".to_owned(),
        StopReason::ContentFilter => "SAFETY".to_owned(),
        StopReason::Other(text) => text,
    };
    events.push(chunk(json!([{"text": ""}]), Some(&finish)));
    events
}

fn usage(answer: &FakeAnswer) -> Value {
    let usage = &answer.usage;
    json!({
        "promptTokenCount": usage.input_tokens,
        "cachedContentTokenCount": usage.cache_read_input_tokens,
        "candidatesTokenCount": usage.output_tokens.saturating_sub(usage.reasoning_tokens),
        "thoughtsTokenCount": usage.reasoning_tokens,
        "totalTokenCount": usage.input_tokens + usage.output_tokens,
    })
}

/// The answers of a conversation, if it is one Gemini takes.
pub(super) fn check(contents: &[Value]) -> Result<Vec<Vec<Value>>, String> {
    let mut turns: Vec<Vec<Value>> = Vec::new();
    let mut open: Vec<Value> = Vec::new();
    let mut last = "model";
    for (at, content) in contents.iter().enumerate() {
        let fail = |rule: &str| Err(wrong(at, rule, content));
        let Some(parts) = content["parts"].as_array().filter(|parts| !parts.is_empty()) else {
            return fail("parts must be a list that is not empty");
        };
        match content["role"].as_str() {
            Some(role @ ("user" | "model")) if role == last => {
                return fail("two contents of one role in a row");
            }
            Some("user") => {
                let answered: Vec<Value> = parts
                    .iter()
                    .filter_map(|part| part.get("functionResponse"))
                    .map(|response| json!([response.get("id"), response["name"]]))
                    .collect();
                if answered != open {
                    return fail("there must be one response for every call, in order");
                }
                let known = |part: &Value| {
                    part["text"].is_string()
                        || part["functionResponse"]["response"].is_object()
                        || part["inlineData"]["mimeType"].is_string()
                            && super::is_base64(&part["inlineData"]["data"])
                };
                if !parts.iter().all(known) {
                    return fail("a part must be a text, or a response that is an object");
                }
                open.clear();
                last = "user";
            }
            Some("model") => {
                let calls = parts.iter().filter_map(|part| part.get("functionCall"));
                open = calls.map(|call| json!([call.get("id"), call["name"]])).collect();
                turns.push(parts.clone());
                last = "model";
            }
            _ => return fail("this role is unknown"),
        }
    }
    if last != "user" || !open.is_empty() {
        return Err("the conversation must end with the user, and every call have a response".to_owned());
    }
    Ok(turns)
}
