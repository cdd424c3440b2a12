//! Assembly of a Responses answer from its stream.
//!
//! An item is taken from the event that ends it; the earlier deltas are only for display.

use std::collections::BTreeMap;

use lathe_protocol::{Arguments, Block, Raw, StopReason, TextBlock, ToolCall, Usage};
use serde::Deserialize;
use serde_json::Value;

use crate::assembly::{Assembly, Closing, Flow, Ids, StreamFailure, not_json};
use crate::frames::Frame;
use crate::lenient::lenient;
use crate::members::Members;
use crate::request::{Delta, ModelAnswer};
use crate::schema;

/// One event. Its type determines its members; those of other types are absent.
#[derive(Deserialize)]
struct ResponseEvent {
    r#type: String,
    #[serde(default)]
    output_index: Option<usize>,
    #[serde(default)]
    item: Option<Members>,
    #[serde(default)]
    delta: Option<Raw>,
    #[serde(default)]
    response: Option<Response>,
}

#[derive(Deserialize)]
struct Response {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    output: Option<Vec<Members>>,
    #[serde(default, deserialize_with = "lenient")]
    usage: Option<ResponseUsage>,
    #[serde(default)]
    error: Option<Value>,
    #[serde(default)]
    incomplete_details: Option<Incomplete>,
}

#[derive(Deserialize)]
struct Incomplete {
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Deserialize)]
struct ResponseUsage {
    #[serde(default, deserialize_with = "lenient")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    input_tokens_details: Option<InputDetails>,
    #[serde(default, deserialize_with = "lenient")]
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize)]
struct InputDetails {
    #[serde(default, deserialize_with = "lenient")]
    cached_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct OutputDetails {
    #[serde(default, deserialize_with = "lenient")]
    reasoning_tokens: Option<u64>,
}

/// The quotes around a piece of text.
const QUOTES: usize = 2;

#[derive(Default)]
pub(crate) struct ResponsesAssembly {
    closing: Closing,
    items: BTreeMap<usize, Members>,
    /// The bytes of the pieces of items, and of complete items. Pieces are not kept: an item comes complete after
    /// them.
    written: (usize, usize),
}

impl Assembly for ResponsesAssembly {
    fn take(&mut self, frame: &Frame, deltas: &mut Vec<Delta>) -> Result<Flow, StreamFailure> {
        match frame.data.trim() {
            "" => return Ok(Flow::More),
            "[DONE]" => return Ok(Flow::End),
            _ => {}
        }
        let event: ResponseEvent =
            serde_json::from_str(&frame.data).map_err(|error| not_json(&error, &frame.data))?;
        let text = |delta: Option<Raw>| -> Option<String> { serde_json::from_str(delta?.get()).ok() };
        self.written.0 += event.delta.as_ref().map_or(0, |delta| delta.get().len().saturating_sub(QUOTES));
        match event.r#type.as_str() {
            "response.output_text.delta" | "response.refusal.delta" => {
                deltas.extend(text(event.delta).map(Delta::Text));
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                deltas.extend(text(event.delta).map(Delta::Thinking));
            }
            "response.output_item.added" => {
                let name =
                    event.item.as_ref().filter(|item| is_call(item)).and_then(|item| item.text("name"));
                deltas.extend(name.map(Delta::CallForming));
            }
            "response.output_item.done" => {
                if let Some(item) = event.item {
                    self.written.1 += item.len();
                    self.items.insert(event.output_index.unwrap_or(self.items.len()), item);
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.close(event.response)?;
                return Ok(Flow::End);
            }
            "error" => {
                return Err(StreamFailure::Provider(serde_json::from_str(&frame.data).unwrap_or_default()));
            }
            _ => {}
        }
        Ok(Flow::More)
    }

    fn whole(&mut self, body: &str, deltas: &mut Vec<Delta>) -> Result<(), StreamFailure> {
        let response: Response = serde_json::from_str(body).map_err(|error| not_json(&error, body))?;
        self.close(Some(response))?;
        deltas.extend(self.items.values().map(text_of_item).filter(|text| !text.is_empty()).map(Delta::Text));
        Ok(())
    }

    fn is_ended(&self) -> bool {
        self.closing.stop.is_some()
    }

    fn written(&self) -> usize {
        let (pieces, items) = self.written;
        pieces.max(items)
    }

    fn finish(self: Box<Self>, step: u32) -> ModelAnswer {
        let mut ids = Ids::new(step);
        let blocks = self.items.into_values().filter_map(|item| block(item, &mut ids)).collect();
        self.closing.answer(blocks)
    }
}

impl ResponsesAssembly {
    fn close(&mut self, response: Option<Response>) -> Result<(), StreamFailure> {
        let Some(response) = response else {
            self.closing.stop = Some(StopReason::EndTurn);
            return Ok(());
        };
        if let Some(error) = response.error.filter(|error| !error.is_null()) {
            return Err(StreamFailure::Provider(error));
        }
        // Servers that do not end each item send them all here.
        for (index, item) in response.output.into_iter().flatten().enumerate() {
            self.items.entry(index).or_insert(item);
        }
        self.closing.model = response.model.unwrap_or_default();
        if let Some(usage) = response.usage {
            self.closing.usage = Usage {
                input_tokens: usage.input_tokens.unwrap_or(0),
                output_tokens: usage.output_tokens.unwrap_or(0),
                cache_read_input_tokens: usage
                    .input_tokens_details
                    .and_then(|details| details.cached_tokens)
                    .unwrap_or(0),
                reasoning_tokens: usage
                    .output_tokens_details
                    .and_then(|details| details.reasoning_tokens)
                    .unwrap_or(0),
                ..Usage::default()
            };
        }
        let reason = response.incomplete_details.and_then(|details| details.reason);
        self.closing.stop = Some(match (response.status.as_deref(), reason.as_deref()) {
            (_, Some("max_output_tokens")) => StopReason::Length,
            (_, Some("content_filter")) => StopReason::ContentFilter,
            (Some("completed") | None, None) => StopReason::EndTurn,
            (Some("failed"), _) => {
                return Err(StreamFailure::Provider(Value::String(
                    "the response failed without a reason".into(),
                )));
            }
            (status, reason) => StopReason::Other(reason.or(status).unwrap_or_default().to_owned()),
        });
        Ok(())
    }
}

fn is_call(item: &Members) -> bool {
    item.text("type").as_deref() == Some("function_call")
}

fn block(mut item: Members, ids: &mut Ids) -> Option<Block> {
    match item.text("type").as_deref() {
        Some("message") => {
            let text = text_of_item(&item);
            Some(Block::Text(TextBlock { text, raw: item.raw() }))
        }
        Some("reasoning") => {
            let texts = texts(&item, "summary").into_iter().chain(texts(&item, "content"));
            let text = texts.collect::<Vec<_>>().join("\n");
            Some(Block::Thinking(TextBlock { text, raw: item.raw() }))
        }
        Some("function_call") => {
            let given = item.text("call_id").unwrap_or_default();
            let id = ids.unique(&given, &item.text("name").unwrap_or_default());
            if id.as_str() != given {
                item.set_text("call_id", id.as_str());
            }
            let sent = Arguments::from_text(&item.text("arguments").unwrap_or_default());
            Some(Block::Call(ToolCall {
                id,
                name: item.text("name").unwrap_or_default(),
                // A strict schema makes the model send `null` for omitted members.
                arguments: schema::without_nulls(sent),
                raw: item.raw(),
            }))
        }
        Some(_) | None => item.raw().map(Block::Opaque),
    }
}

fn text_of_item(item: &Members) -> String {
    texts(item, "content").concat()
}

/// The texts of a list of parts.
fn texts(item: &Members, member: &str) -> Vec<String> {
    #[derive(Deserialize)]
    struct Part {
        #[serde(default)]
        text: Option<String>,
        #[serde(default)]
        refusal: Option<String>,
    }
    let parts = item.get(member).and_then(|parts| serde_json::from_str::<Vec<Part>>(parts.get()).ok());
    parts.into_iter().flatten().filter_map(|part| part.text.or(part.refusal)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(events: &[&str]) -> (Box<ResponsesAssembly>, Result<Flow, StreamFailure>) {
        let mut assembling = Box::new(ResponsesAssembly::default());
        let mut last = Ok(Flow::More);
        for data in events {
            let frame = Frame { event: String::new(), data: (*data).to_owned() };
            last = assembling.take(&frame, &mut Vec::new());
        }
        (assembling, last)
    }

    #[test]
    fn items_are_kept_whole_and_in_order() {
        let reasoning = r#"{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"gAAA=="}"#;
        let call = r#"{"id":"fc_1","type":"function_call","status":"completed","arguments":"{\"command\":\"ls\",\"timeout\":null}","call_id":"call_1","name":"bash"}"#;
        let (assembling, last) = taken(&[
            r#"{"type":"response.created","response":{"id":"r","status":"in_progress","output":[]}}"#,
            &format!(r#"{{"type":"response.output_item.done","output_index":1,"item":{call}}}"#),
            &format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{reasoning}}}"#),
            r#"{"type":"response.completed","response":{"model":"m","status":"completed","output":[],"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":4},"output_tokens":3,"output_tokens_details":{"reasoning_tokens":2}}}}"#,
        ]);
        assert_eq!(last, Ok(Flow::End));
        let answer = assembling.finish(0);
        let [Block::Thinking(thought), Block::Call(made)] = &answer.blocks[..] else {
            panic!("{:?}", answer.blocks)
        };
        assert_eq!((thought.text.as_str(), thought.raw.as_ref().unwrap().get()), ("hm", reasoning));
        assert_eq!(
            (made.arguments.as_text(), made.raw.as_ref().unwrap().get()),
            (r#"{"command":"ls"}"#, call)
        );
        assert_eq!(answer.stop, StopReason::ToolCalls);
        assert_eq!((answer.usage.cache_read_input_tokens, answer.usage.reasoning_tokens), (4, 2));
    }

    #[test]
    fn a_failed_or_cut_response_says_so() {
        let (_, last) = taken(&[
            r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"oops"}}}"#,
        ]);
        assert!(matches!(last, Err(StreamFailure::Provider(error)) if error["message"] == "oops"));
        let (cut, _) = taken(&[
            r#"{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}}"#,
        ]);
        assert_eq!(cut.finish(0).stop, StopReason::Length);
    }
}
