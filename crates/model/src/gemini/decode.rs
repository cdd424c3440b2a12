//! Assembly of a Gemini answer from its stream.
//!
//! Pieces of plain text are joined; a part with other members besides its text (a signature) stays a part of its own,
//! because the signature must be sent back at the same position.

use lathe_protocol::{Arguments, Block, StopReason, TextBlock, ToolCall, Usage};
use serde::Deserialize;
use serde_json::Value;

use crate::assembly::{Assembly, Closing, Flow, Ids, StreamFailure, not_json};
use crate::frames::Frame;
use crate::lenient::lenient;
use crate::members::Members;
use crate::request::{Delta, ModelAnswer};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk {
    #[serde(default)]
    candidates: Option<Vec<Candidate>>,
    #[serde(default, deserialize_with = "lenient")]
    usage_metadata: Option<Counted>,
    #[serde(default)]
    model_version: Option<String>,
    #[serde(default)]
    prompt_feedback: Option<Feedback>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    #[serde(default)]
    content: Option<Content>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Content {
    #[serde(default)]
    parts: Vec<Members>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    #[serde(default)]
    block_reason: Option<String>,
}

/// Totals up to this chunk.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Counted {
    #[serde(default, deserialize_with = "lenient")]
    prompt_token_count: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    tool_use_prompt_token_count: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    cached_content_token_count: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    candidates_token_count: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    thoughts_token_count: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TextKind {
    Text,
    Thought,
}

enum Gathered {
    /// Text without other members, joined.
    Plain(TextKind, String),
    Signed(TextKind, String, Members),
    Call(Members),
    Other(Members),
}

#[derive(Default)]
pub(crate) struct GeminiAssembly {
    closing: Closing,
    parts: Vec<Gathered>,
}

impl Assembly for GeminiAssembly {
    fn take(&mut self, frame: &Frame, deltas: &mut Vec<Delta>) -> Result<Flow, StreamFailure> {
        if frame.data.trim().is_empty() || frame.data == "[DONE]" {
            return Ok(Flow::More);
        }
        self.whole(&frame.data, deltas)?;
        Ok(Flow::More)
    }

    fn whole(&mut self, body: &str, deltas: &mut Vec<Delta>) -> Result<(), StreamFailure> {
        let chunk: Chunk = serde_json::from_str(body).map_err(|error| not_json(&error, body))?;
        if let Some(error) = chunk.error {
            return Err(StreamFailure::Provider(error));
        }
        if let Some(reason) = chunk.prompt_feedback.and_then(|feedback| feedback.block_reason) {
            return Err(StreamFailure::Blocked(format!("the prompt was blocked by the provider: {reason}")));
        }
        if let Some(model) = chunk.model_version {
            self.closing.model = model;
        }
        if let Some(counted) = chunk.usage_metadata {
            let sum = |a: Option<u64>, b: Option<u64>| a.unwrap_or(0).saturating_add(b.unwrap_or(0));
            self.closing.usage = Usage {
                input_tokens: sum(counted.prompt_token_count, counted.tool_use_prompt_token_count),
                output_tokens: sum(counted.candidates_token_count, counted.thoughts_token_count),
                cache_read_input_tokens: counted.cached_content_token_count.unwrap_or(0),
                reasoning_tokens: counted.thoughts_token_count.unwrap_or(0),
                ..Usage::default()
            };
        }
        if let Some(candidate) = chunk.candidates.into_iter().flatten().next() {
            for part in candidate.content.map(|content| content.parts).unwrap_or_default() {
                self.part(part, deltas);
            }
            if let Some(reason) =
                candidate.finish_reason.filter(|reason| reason != "FINISH_REASON_UNSPECIFIED")
            {
                self.closing.stop = Some(stop_reason(&reason));
            }
        }
        Ok(())
    }

    fn is_ended(&self) -> bool {
        self.closing.stop.is_some()
    }

    fn written(&self) -> usize {
        let of = |part: &Gathered| match part {
            Gathered::Plain(_, text) | Gathered::Signed(_, text, _) => text.len(),
            Gathered::Call(part) | Gathered::Other(part) => part.len(),
        };
        self.parts.iter().map(of).sum()
    }

    fn finish(self: Box<Self>, step: u32) -> ModelAnswer {
        let mut ids = Ids::new(step);
        let blocks = self.parts.into_iter().filter_map(|part| part.block(&mut ids)).collect();
        self.closing.answer(blocks)
    }
}

impl GeminiAssembly {
    fn part(&mut self, part: Members, deltas: &mut Vec<Delta>) {
        if let Some(call) = part.get("functionCall") {
            let name = Members::parse(call.get()).and_then(|call| call.text("name"));
            deltas.push(Delta::CallForming(name.unwrap_or_default()));
            self.parts.push(Gathered::Call(part));
            return;
        }
        let Some(text) = part.text("text") else {
            self.parts.push(Gathered::Other(part));
            return;
        };
        let kind = if part.is_true("thought") { TextKind::Thought } else { TextKind::Text };
        if !text.is_empty() {
            deltas.push(match kind {
                TextKind::Text => Delta::Text(text.clone()),
                TextKind::Thought => Delta::Thinking(text.clone()),
            });
        }
        if part.0.iter().any(|(name, _)| name != "text" && name != "thought") {
            self.parts.push(Gathered::Signed(kind, text, part));
            return;
        }
        match self.parts.last_mut() {
            Some(Gathered::Plain(known, before)) if *known == kind => before.push_str(&text),
            _ => self.parts.push(Gathered::Plain(kind, text)),
        }
    }
}

impl Gathered {
    fn block(self, ids: &mut Ids) -> Option<Block> {
        match self {
            Gathered::Plain(_, text) if text.is_empty() => None,
            Gathered::Plain(TextKind::Text, text) => Some(Block::Text(TextBlock { text, raw: None })),
            Gathered::Plain(TextKind::Thought, text) => {
                let raw = serde_json::json!({ "text": text, "thought": true });
                let raw = lathe_protocol::Raw::from_serialize(&raw).ok();
                Some(Block::Thinking(TextBlock { text, raw }))
            }
            Gathered::Signed(TextKind::Text, text, part) => {
                Some(Block::Text(TextBlock { text, raw: part.raw() }))
            }
            Gathered::Signed(TextKind::Thought, text, part) => {
                Some(Block::Thinking(TextBlock { text, raw: part.raw() }))
            }
            Gathered::Call(part) => Some(Block::Call(call(&part, ids))),
            Gathered::Other(part) => part.raw().map(Block::Opaque),
        }
    }
}

fn call(part: &Members, ids: &mut Ids) -> ToolCall {
    let made = part.get("functionCall").and_then(|call| Members::parse(call.get())).unwrap_or_default();
    let given = made.text("id").unwrap_or_default();
    let id = ids.unique(&given, &made.text("name").unwrap_or_default());
    let mut part = part.clone();
    if !given.is_empty() && id.as_str() != given {
        let mut made = made.clone();
        made.set_text("id", id.as_str());
        if let Some(raw) = made.raw() {
            part.set("functionCall", raw);
        }
    }
    ToolCall {
        id,
        name: made.text("name").unwrap_or_default(),
        arguments: Arguments::from_text(made.get("args").map(|args| args.get()).unwrap_or_default()),
        raw: part.raw(),
    }
}

fn stop_reason(text: &str) -> StopReason {
    match text {
        "STOP" => StopReason::EndTurn,
        "MAX_TOKENS" => StopReason::Length,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "IMAGE_SAFETY" => {
            StopReason::ContentFilter
        }
        other => StopReason::Other(other.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_stay_with_their_parts_and_plain_text_is_joined() {
        let mut assembling = Box::new(GeminiAssembly::default());
        for data in [
            r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"hm","thought":true}]}}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":"Hel"}]}}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":"lo"}]}}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"bash","args":{"n":1e2}},"thoughtSignature":"Cg=="}]}}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"Zz=="}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":10,"cachedContentTokenCount":4,"candidatesTokenCount":5,"thoughtsTokenCount":2},"modelVersion":"g"}"#,
        ] {
            let frame = Frame { event: String::new(), data: data.to_owned() };
            assembling.take(&frame, &mut Vec::new()).unwrap();
        }
        let answer = assembling.finish(4);
        let [Block::Thinking(_), Block::Text(text), Block::Call(call), Block::Text(signed)] =
            &answer.blocks[..]
        else {
            panic!("{:?}", answer.blocks)
        };
        assert_eq!((text.text.as_str(), &text.raw), ("Hello", &None));
        assert_eq!(call.id.as_str(), "4_bash");
        assert_eq!(
            call.raw.as_ref().unwrap().get(),
            r#"{"functionCall":{"name":"bash","args":{"n":1e2}},"thoughtSignature":"Cg=="}"#
        );
        assert_eq!(signed.raw.as_ref().unwrap().get(), r#"{"text":"","thoughtSignature":"Zz=="}"#);
        assert_eq!((answer.usage.output_tokens, answer.usage.reasoning_tokens), (7, 2));
        assert_eq!(answer.stop, StopReason::ToolCalls);
    }
}
