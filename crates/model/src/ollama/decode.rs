//! Assembly of an Ollama answer from its lines. A call comes in one piece.

use lathe_protocol::{Arguments, Block, StopReason, TextBlock, ToolCall, Usage};
use serde::Deserialize;
use serde_json::Value;

use crate::assembly::{Assembly, Closing, Flow, Ids, StreamFailure, not_json, text_block};
use crate::frames::Frame;
use crate::lenient::lenient;
use crate::members::Members;
use crate::request::{Delta, ModelAnswer};

#[derive(Deserialize)]
struct StreamLine {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    message: Option<LineMessage>,
    #[serde(default)]
    done: bool,
    #[serde(default)]
    done_reason: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    prompt_eval_count: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    eval_count: Option<u64>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct LineMessage {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    thinking: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<Members>>,
}

#[derive(Default)]
pub(crate) struct OllamaAssembly {
    closing: Closing,
    text: String,
    thinking: String,
    calls: Vec<Members>,
}

impl Assembly for OllamaAssembly {
    fn take(&mut self, frame: &Frame, deltas: &mut Vec<Delta>) -> Result<Flow, StreamFailure> {
        self.whole(&frame.data, deltas)?;
        Ok(if self.is_ended() { Flow::End } else { Flow::More })
    }

    fn whole(&mut self, body: &str, deltas: &mut Vec<Delta>) -> Result<(), StreamFailure> {
        let line: StreamLine = serde_json::from_str(body).map_err(|error| not_json(&error, body))?;
        if let Some(error) = line.error {
            return Err(StreamFailure::Provider(error));
        }
        if let Some(model) = line.model {
            self.closing.model = model;
        }
        if let Some(said) = line.message {
            if let Some(text) = said.thinking.filter(|text| !text.is_empty()) {
                self.thinking.push_str(&text);
                deltas.push(Delta::Thinking(text));
            }
            if let Some(text) = said.content.filter(|text| !text.is_empty()) {
                self.text.push_str(&text);
                deltas.push(Delta::Text(text));
            }
            for call in said.tool_calls.unwrap_or_default() {
                let name = function(&call).text("name").unwrap_or_default();
                deltas.push(Delta::CallForming(name));
                self.calls.push(call);
            }
        }
        if line.done {
            self.closing.usage = Usage {
                input_tokens: line.prompt_eval_count.unwrap_or(0),
                output_tokens: line.eval_count.unwrap_or(0),
                ..Usage::default()
            };
            self.closing.stop = Some(match line.done_reason.as_deref() {
                Some("stop") | None => StopReason::EndTurn,
                Some("length") => StopReason::Length,
                Some(other) => StopReason::Other(other.to_owned()),
            });
        }
        Ok(())
    }

    fn is_ended(&self) -> bool {
        self.closing.stop.is_some()
    }

    fn written(&self) -> usize {
        self.text.len() + self.thinking.len() + self.calls.iter().map(Members::len).sum::<usize>()
    }

    fn finish(self: Box<Self>, step: u32) -> ModelAnswer {
        let mut blocks = Vec::new();
        if !self.thinking.is_empty() {
            blocks.push(Block::Thinking(TextBlock { text: self.thinking, raw: None }));
        }
        if !self.text.is_empty() {
            blocks.push(text_block(self.text));
        }
        let mut ids = Ids::new(step);
        for call in self.calls {
            let function = function(&call);
            let id =
                ids.unique(&call.text("id").unwrap_or_default(), &function.text("name").unwrap_or_default());
            let sent = function.get("arguments").map(|arguments| arguments.get().to_owned());
            // Arguments as text are a habit of other wires, but some models send it here too.
            let text = sent.unwrap_or_default();
            let text = serde_json::from_str::<String>(&text).unwrap_or(text);
            blocks.push(Block::Call(ToolCall {
                id,
                name: function.text("name").unwrap_or_default(),
                arguments: Arguments::from_text(&text),
                raw: call.raw(),
            }));
        }
        self.closing.answer(blocks)
    }
}

fn function(call: &Members) -> Members {
    call.get("function").and_then(|function| Members::parse(function.get())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_one_answer_and_a_call_keeps_its_members() {
        let mut assembling = Box::new(OllamaAssembly::default());
        let mut flow = Flow::More;
        for data in [
            r#"{"model":"q","message":{"role":"assistant","content":"","thinking":"hm"},"done":false}"#,
            r#"{"model":"q","message":{"role":"assistant","content":"Hi"},"done":false}"#,
            r#"{"model":"q","message":{"role":"assistant","content":"","tool_calls":[{"function":{"index":0,"name":"bash","arguments":{"n":1e2}}}]},"done":false}"#,
            r#"{"model":"q","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":7,"eval_count":3}"#,
        ] {
            assert_eq!(flow, Flow::More);
            let frame = Frame { event: String::new(), data: data.to_owned() };
            flow = assembling.take(&frame, &mut Vec::new()).unwrap();
        }
        assert_eq!(flow, Flow::End);
        let answer = assembling.finish(2);
        let [Block::Thinking(_), Block::Text(_), Block::Call(call)] = &answer.blocks[..] else {
            panic!("{:?}", answer.blocks)
        };
        assert_eq!((call.id.as_str(), call.arguments.as_text()), ("2_bash", r#"{"n":1e2}"#));
        assert_eq!(
            call.raw.as_ref().unwrap().get(),
            r#"{"function":{"index":0,"name":"bash","arguments":{"n":1e2}}}"#
        );
        assert_eq!((answer.usage.input_tokens, answer.stop), (7, StopReason::ToolCalls));
    }
}
