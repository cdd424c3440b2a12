//! An answer as the event stream of Chat Completions.

use lathe_protocol::{Block, StopReason, ToolCall, calls_of};
use serde_json::{Map, Value, json};

use super::{AnswerShape, RequestEcho, StreamEvent, half, pieces};
use crate::script::FakeAnswer;

pub(super) fn events(answer: &FakeAnswer, asked: &RequestEcho<'_>, shape: AnswerShape) -> Vec<StreamEvent> {
    let chunk = |choices: Value, usage: Option<Value>| {
        let mut chunk = json!({
            "id": format!("chatcmpl-fake-{}", asked.answer),
            "object": "chat.completion.chunk",
            "created": 0,
            "model": asked.model,
            "choices": choices,
        });
        if asked.include_usage {
            chunk["usage"] = usage.unwrap_or(Value::Null);
        }
        StreamEvent::of(chunk)
    };
    let delta = |delta: Value| chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]), None);
    let mut events = vec![delta(json!({"role": "assistant", "content": ""}))];
    if shape != AnswerShape::Empty {
        events.extend(deltas(&answer.blocks, shape).into_iter().map(delta));
    }
    if shape == AnswerShape::WithoutEnd {
        return events;
    }
    let finish = match shape {
        AnswerShape::Empty => "stop",
        AnswerShape::Whole | AnswerShape::WithoutEnd | AnswerShape::MalformedArguments => {
            finish_reason(answer)
        }
    };
    events.push(chunk(json!([{"index": 0, "delta": {}, "finish_reason": finish}]), None));
    if asked.include_usage {
        events.push(chunk(json!([]), Some(usage(answer))));
    }
    events.push(StreamEvent { name: None, data: "[DONE]".to_owned() });
    events
}

fn deltas(blocks: &[Block], shape: AnswerShape) -> Vec<Value> {
    let mut deltas = Vec::new();
    let mut index = 0;
    for block in blocks {
        match block {
            Block::Text(text) => {
                deltas.extend(pieces(&text.text).into_iter().map(|piece| json!({"content": piece})));
            }
            Block::Thinking(text) => {
                deltas
                    .extend(pieces(&text.text).into_iter().map(|piece| json!({"reasoning_content": piece})));
            }
            Block::Call(call) => {
                deltas.extend(call_deltas(call, index, shape));
                index += 1;
            }
            // Nothing on this wire would carry it.
            Block::Opaque(_) => {}
        }
    }
    deltas
}

/// The start of a call with its id and name, and every other member it was recorded with; then its arguments.
fn call_deltas(call: &ToolCall, index: usize, shape: AnswerShape) -> Vec<Value> {
    let raw = call.raw.as_ref().and_then(|raw| raw.to_value().ok()).filter(|raw| raw["function"].is_object());
    let Value::Object(recorded) = raw.unwrap_or_else(|| json!({"id": call.id.as_str(), "type": "function"}))
    else {
        panic!("the raw form of call {} is no object", call.id.as_str())
    };
    let mut function = match recorded.get("function") {
        Some(Value::Object(function)) => function.clone(),
        _ => Map::from_iter([("name".to_owned(), Value::String(call.name.clone()))]),
    };
    let arguments = match function.insert("arguments".to_owned(), Value::String(String::new())) {
        Some(Value::String(text)) => text,
        _ => call.arguments.as_text().to_owned(),
    };
    let mut start = Map::from_iter([("index".to_owned(), json!(index))]);
    start.extend(recorded);
    start.insert("function".to_owned(), Value::Object(function));
    let arguments = match shape {
        AnswerShape::MalformedArguments => half(&arguments),
        AnswerShape::Whole | AnswerShape::WithoutEnd | AnswerShape::Empty => arguments,
    };
    let mut deltas = vec![json!({"tool_calls": [start]})];
    deltas.extend(
        pieces(&arguments)
            .into_iter()
            .map(|piece| json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})),
    );
    deltas
}

fn finish_reason(answer: &FakeAnswer) -> &str {
    match &answer.stop {
        Some(StopReason::EndTurn) => "stop",
        Some(StopReason::ToolCalls) => "tool_calls",
        Some(StopReason::Length) => "length",
        Some(StopReason::ContentFilter) => "content_filter",
        Some(StopReason::Other(text)) => text,
        None if calls_of(&answer.blocks).next().is_some() => "tool_calls",
        None => "stop",
    }
}

fn usage(answer: &FakeAnswer) -> Value {
    if let Some(said) = &answer.said_usage {
        return said.clone();
    }
    let usage = &answer.usage;
    json!({
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.tokens(),
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_input_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    })
}

#[cfg(test)]
mod tests {
    use lathe_protocol::{Arguments, CallId, Raw};

    use super::*;
    use crate::script::{call, say};

    const ASKED: RequestEcho<'_> = RequestEcho { answer: 3, model: "fake", include_usage: true };

    fn datas(answer: &FakeAnswer, shape: AnswerShape) -> Vec<Value> {
        events(answer, &ASKED, shape)
            .iter()
            .filter(|event| event.data != "[DONE]")
            .map(|event| serde_json::from_str(&event.data).unwrap())
            .collect()
    }

    fn joined(datas: &[Value], pointer: &str) -> String {
        datas.iter().filter_map(|data| data.pointer(pointer)?.as_str()).collect()
    }

    const ARGUMENTS: &str = "/choices/0/delta/tool_calls/0/function/arguments";

    #[test]
    fn texts_and_arguments_come_in_pieces_that_join_to_the_whole() {
        let answer = say("Grüße, 世界!").call("c1", "bash", json!({"command": "echo 世界"}));
        let datas = datas(&answer, AnswerShape::Whole);
        assert_eq!(joined(&datas, "/choices/0/delta/content"), "Grüße, 世界!");
        assert_eq!(joined(&datas, ARGUMENTS), r#"{"command":"echo 世界"}"#);
        assert_eq!(joined(&datas, "/choices/0/finish_reason"), "tool_calls");
        assert_eq!(datas.last().unwrap()["usage"]["prompt_tokens"], 100);
        assert!(datas.len() > 9, "{} events", datas.len());
    }

    #[test]
    fn members_a_call_was_recorded_with_are_sent_with_its_start() {
        let raw = r#"{"id":"c1","type":"function","sig":"s==","function":{"name":"bash","arguments":"{ }"}}"#;
        let answer = FakeAnswer::new(vec![Block::Call(ToolCall {
            id: CallId::new("c1"),
            name: "bash".into(),
            arguments: Arguments::from_text("{}"),
            raw: Some(Raw::parse(raw).unwrap()),
        })]);
        let datas = datas(&answer, AnswerShape::Whole);
        assert_eq!(
            datas[1].pointer("/choices/0/delta/tool_calls/0").unwrap(),
            &json!({"index": 0, "id": "c1", "type": "function", "sig": "s==",
                    "function": {"name": "bash", "arguments": ""}})
        );
        assert_eq!(joined(&datas, ARGUMENTS), "{ }");
    }

    #[test]
    fn each_shape_lacks_what_it_says() {
        let answer = call("c1", "bash", json!({"command": "ls"}));
        let without_end = datas(&answer, AnswerShape::WithoutEnd);
        assert_eq!(joined(&without_end, ARGUMENTS), r#"{"command":"ls"}"#);
        assert_eq!(joined(&without_end, "/choices/0/finish_reason"), "");
        let empty = datas(&answer, AnswerShape::Empty);
        assert_eq!(joined(&empty, "/choices/0/finish_reason"), "stop");
        assert_eq!(joined(&empty, ARGUMENTS), "");
        let malformed = joined(&datas(&answer, AnswerShape::MalformedArguments), ARGUMENTS);
        assert_eq!(malformed, "{\"comman");
    }
}
