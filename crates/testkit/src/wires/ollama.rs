//! Ollama's own `/api/chat`.

use lathe_protocol::{Block, StopReason};
use serde_json::{Value, json};

use super::{AnswerShape, RequestEcho, StreamEvent, pieces, stop, wrong};
use crate::script::FakeAnswer;

pub(super) fn events(answer: &FakeAnswer, asked: &RequestEcho<'_>, shape: AnswerShape) -> Vec<StreamEvent> {
    let line = |message: Value| {
        StreamEvent::of(
            json!({"model": asked.model, "created_at": "2026-01-01T00:00:00Z", "message": message, "done": false}),
        )
    };
    let mut events = Vec::new();
    if shape != AnswerShape::Empty {
        for block in &answer.blocks {
            match block {
                Block::Text(text) => events.extend(
                    pieces(&text.text)
                        .into_iter()
                        .map(|piece| line(json!({"role": "assistant", "content": piece}))),
                ),
                Block::Thinking(thought) => events.extend(
                    pieces(&thought.text)
                        .into_iter()
                        .map(|piece| line(json!({"role": "assistant", "content": "", "thinking": piece}))),
                ),
                Block::Opaque(_) => {}
                // The server parses what the model wrote, and fails where it cannot.
                Block::Call(_) if shape == AnswerShape::MalformedArguments => {
                    events.push(StreamEvent::of(
                        json!({"error": "error parsing tool call: unexpected end of JSON input"}),
                    ));
                    return events;
                }
                Block::Call(call) => {
                    let arguments =
                        serde_json::from_str::<Value>(call.arguments.as_text()).unwrap_or_else(|_| json!({}));
                    events.push(line(json!({"role": "assistant", "content": "",
                        "tool_calls": [{"function": {"name": call.name, "arguments": arguments}}]})));
                }
            }
        }
    }
    if shape == AnswerShape::WithoutEnd {
        return events;
    }
    let reason = match stop(answer, shape) {
        StopReason::EndTurn | StopReason::ToolCalls | StopReason::ContentFilter => "stop".to_owned(),
        StopReason::Length => "length".to_owned(),
        StopReason::Other(text) => text,
    };
    events.push(StreamEvent::of(json!({"model": asked.model, "created_at": "2026-01-01T00:00:00Z",
        "message": {"role": "assistant", "content": ""}, "done": true, "done_reason": reason,
        "total_duration": 1, "prompt_eval_count": answer.usage.input_tokens,
        "eval_count": answer.usage.output_tokens})));
    events
}

/// The answers of a conversation, if it is a sound one.
pub(super) fn check(messages: &[Value]) -> Result<Vec<Vec<Value>>, String> {
    let mut turns = Vec::new();
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let fail = |rule: &str| Err(wrong(at, rule, message));
        if !message["content"].is_string() {
            return fail("the content must be a string");
        }
        let images = message.get("images").map(|images| super::are_parts(images, super::is_base64));
        if images.is_some_and(|good| !good || message["role"] != "user") {
            return fail("images must be a list of base64 in a message of the user");
        }
        match message["role"].as_str() {
            Some("system") if at == 0 => {}
            Some("tool") => {
                if open.first().copied() != message["tool_name"].as_str() {
                    return fail("results must come in the order of the calls");
                }
                open.remove(0);
            }
            _ if !open.is_empty() => return fail("a call has no result"),
            Some("user") => {}
            Some("assistant") => {
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    if !call["function"]["arguments"].is_object() {
                        return fail("arguments must be an object");
                    }
                    open.push(call["function"]["name"].as_str().unwrap_or_default());
                }
                turns.push(vec![message.clone()]);
            }
            _ => return fail("this role is unknown"),
        }
    }
    match messages.last() {
        Some(last) if open.is_empty() && (last["role"] == "user" || last["role"] == "tool") => Ok(turns),
        _ => {
            Err("the conversation must end with a user or tool message, and every call have a result"
                .to_owned())
        }
    }
}
