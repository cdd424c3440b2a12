//! The script of a fake model: its answers, in order.
//!
//! ```
//! use lathe_testkit::{Fault, Script, call, done, say};
//! use serde_json::json;
//!
//! let script = Script::new()
//!     .answer(say("I look around.").call("c1", "bash", json!({"command": "ls"})))
//!     .answer(call("c2", "bash", json!({"command": "make"})).fails(2, Fault::status(503, "overloaded")))
//!     .answer(done("It builds."));
//! assert_eq!(script.len(), 3);
//! ```

use std::time::Duration;

use lathe_protocol::{Arguments, Block, CallId, Raw, StopReason, TextBlock, ToolCall, Usage};
use serde::Deserialize;
use serde_json::{Value, json};

/// The answers of a fake model, in order.
#[derive(Debug, Clone, Default)]
pub struct Script {
    answers: Vec<FakeAnswer>,
}

impl Script {
    pub fn new() -> Self {
        Self::default()
    }

    /// `count` answers made by their number, from 0.
    pub fn repeat(count: usize, answer: impl FnMut(usize) -> FakeAnswer) -> Self {
        Self { answers: (0..count).map(answer).collect() }
    }

    /// The answers of a cassette, of all lanes.
    pub fn from_cassette(text: &str) -> Self {
        #[derive(Deserialize)]
        struct CassetteLine {
            answer: Recorded,
        }
        #[derive(Deserialize)]
        struct Recorded {
            blocks: Vec<Block>,
            #[serde(default)]
            stop: Option<StopReason>,
            #[serde(default)]
            usage: Usage,
        }
        let mut lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
        let (header, _) = lines.next().expect("a cassette has a first line");
        let header: Value = serde_json::from_str(header).expect("the first line of a cassette is JSON");
        assert_eq!(header["cassette"], 1, "not a cassette of format 1: {header}");
        let answers = lines.map(|(line, number)| {
            let entry: CassetteLine = serde_json::from_str(line)
                .unwrap_or_else(|error| panic!("line {number} of the cassette: {error}"));
            FakeAnswer {
                blocks: entry.answer.blocks,
                usage: entry.answer.usage,
                said_usage: None,
                stop: entry.answer.stop,
                faults: Vec::new(),
            }
        });
        Self { answers: answers.collect() }
    }

    #[must_use]
    pub fn answer(mut self, answer: FakeAnswer) -> Self {
        self.answers.push(answer);
        self
    }

    /// This script, then another.
    #[must_use]
    pub fn then(mut self, more: Self) -> Self {
        self.answers.extend(more.answers);
        self
    }

    pub fn len(&self) -> usize {
        self.answers.len()
    }

    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    pub(crate) fn get(&self, number: usize) -> Option<&FakeAnswer> {
        self.answers.get(number)
    }
}

/// One answer: text and calls in the order they were added, and what goes wrong before it comes through.
#[derive(Debug, Clone)]
pub struct FakeAnswer {
    pub(crate) blocks: Vec<Block>,
    pub(crate) usage: Usage,
    pub(crate) said_usage: Option<Value>,
    pub(crate) stop: Option<StopReason>,
    faults: Vec<(usize, Fault)>,
}

/// An answer that begins with text.
pub fn say(text: &str) -> FakeAnswer {
    FakeAnswer::new(Vec::new()).say(text)
}

/// An answer that begins with a call.
pub fn call(id: &str, name: &str, arguments: Value) -> FakeAnswer {
    FakeAnswer::new(Vec::new()).call(id, name, arguments)
}

/// An answer that ends the task with `task_done`.
pub fn done(summary: &str) -> FakeAnswer {
    call("call_done", "task_done", json!({ "summary": summary }))
}

impl FakeAnswer {
    pub fn new(blocks: Vec<Block>) -> Self {
        Self {
            blocks,
            usage: Usage { input_tokens: 100, output_tokens: 20, ..Usage::default() },
            said_usage: None,
            stop: None,
            faults: Vec::new(),
        }
    }

    #[must_use]
    pub fn say(mut self, text: &str) -> Self {
        self.blocks.push(Block::text(text));
        self
    }

    #[must_use]
    pub fn think(mut self, text: &str) -> Self {
        self.blocks.push(Block::Thinking(TextBlock { text: text.to_owned(), raw: None }));
        self
    }

    #[must_use]
    pub fn call(mut self, id: &str, name: &str, arguments: Value) -> Self {
        self.blocks.push(Block::Call(ToolCall {
            id: CallId::new(id),
            name: name.to_owned(),
            arguments: Arguments::Json(Raw::from_serialize(&arguments).expect("a value is JSON")),
            raw: None,
        }));
        self
    }

    /// A call whose arguments are this text, JSON or not.
    #[must_use]
    pub fn call_text(mut self, id: &str, name: &str, arguments: &str) -> Self {
        self.blocks.push(Block::Call(ToolCall {
            id: CallId::new(id),
            name: name.to_owned(),
            arguments: Arguments::Malformed(arguments.to_owned()),
            raw: None,
        }));
        self
    }

    /// A thought that only the model's maker can read, where the wire has such.
    #[must_use]
    pub fn redacted_thinking(mut self, data: &str) -> Self {
        let raw = Raw::from_serialize(&json!({ "redacted": data })).expect("a value is JSON");
        self.blocks.push(Block::Opaque(raw));
        self
    }

    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// The usage as the chat wire says it, right or wrong; `Value::Null` says nothing.
    #[must_use]
    pub fn reports_usage(mut self, usage: Value) -> Self {
        self.said_usage = Some(usage);
        self
    }

    /// The stop reason that the model gives; by default it follows from the calls.
    #[must_use]
    pub fn stop(mut self, stop: StopReason) -> Self {
        self.stop = Some(stop);
        self
    }

    /// The next `times` requests for this answer meet `fault`. Several add up, in order.
    #[must_use]
    pub fn fails(mut self, times: usize, fault: Fault) -> Self {
        self.faults.push((times, fault));
        self
    }

    #[must_use]
    pub fn always_fails(self, fault: Fault) -> Self {
        self.fails(usize::MAX, fault)
    }

    /// The fault of the request number `asked` (from 0) for this answer.
    pub(crate) fn fault(&self, asked: usize) -> Option<&Fault> {
        let mut upto = 0_usize;
        self.faults.iter().find_map(|(times, fault)| {
            upto = upto.saturating_add(*times);
            (asked < upto).then_some(fault)
        })
    }
}

/// The faults of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// An HTTP error instead of the answer.
    Status { code: u16, body: String, headers: Vec<(String, String)> },
    /// The connection is closed after the request was read.
    CloseBeforeAnyByte,
    /// The connection is reset (RST) after half of the answer.
    ResetMidStream,
    /// The stream ends as HTTP wants it, but without finish reason, usage and `[DONE]`.
    TruncateCleanly,
    /// Half of the answer, silence for this long, then the rest.
    Stall(Duration),
    /// A web page with status 200, as captive portals send it.
    Garbage,
    /// A whole stream without text and calls.
    EmptyAnswer,
    /// The arguments of every call break off in the middle; the stream itself is whole.
    MalformedArguments,
    /// Nothing at all for this long, then the end of the connection.
    SilenceFirst(Duration),
    /// An error as the wire sends it once an answer has begun: at its start, or after half of it.
    ErrorEvent(FaultPoint),
    /// The stream ends as HTTP wants it, inside an event.
    CutMidEvent,
    /// An unknown event, in the middle of an answer that is otherwise whole.
    UnknownEvent,
    /// An event whose data is not JSON.
    BrokenJson,
    /// Half of the answer, then only signs of life, without end.
    NeverEnds,
    /// Says it is compressed and is cut short.
    GzipCut,
    /// Text of more than 50 MB.
    Huge,
}

/// A position in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultPoint {
    AtStart,
    Halfway,
}

impl Fault {
    /// An error with a body like a provider's.
    pub fn status(code: u16, message: &str) -> Self {
        Self::Status {
            code,
            body: json!({"error": {"message": message, "type": "fake_error"}}).to_string(),
            headers: Vec::new(),
        }
    }

    /// Adds a header to an HTTP error.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let Self::Status { headers, .. } = &mut self else { panic!("only Fault::Status has headers") };
        headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_come_in_order_and_then_the_answer() {
        let answer = say("hi").fails(2, Fault::Garbage).fails(1, Fault::EmptyAnswer);
        let met: Vec<_> = (0..4).map(|asked| answer.fault(asked)).collect();
        assert_eq!(met, [Some(&Fault::Garbage), Some(&Fault::Garbage), Some(&Fault::EmptyAnswer), None]);
        let hopeless = say("hi").fails(1, Fault::Garbage).always_fails(Fault::EmptyAnswer);
        assert_eq!(hopeless.fault(1_000_000), Some(&Fault::EmptyAnswer));
    }

    #[test]
    fn a_cassette_is_a_script() {
        let text = concat!(
            "{\"cassette\":1,\"toolset\":\"lathe\"}\n\n",
            "{\"agent\":\"main\",\"answer\":{\"blocks\":[{\"text\":{\"text\":\"hm\"}},",
            "{\"call\":{\"id\":\"c1\",\"name\":\"bash\",\"arguments\":{\"command\":\"ls\"}}}],",
            "\"stop\":\"tool_calls\",\"usage\":{\"input_tokens\":7}}}\n",
            "{\"answer\":{\"blocks\":[{\"text\":{\"text\":\"bye\"}}]}}\n",
        );
        let script = Script::from_cassette(text);
        assert_eq!(script.len(), 2);
        let first = script.get(0).unwrap();
        assert_eq!(first.blocks, say("hm").call("c1", "bash", json!({"command": "ls"})).blocks);
        assert_eq!(first.stop, Some(StopReason::ToolCalls));
        assert_eq!(first.usage.input_tokens, 7);
    }

    #[test]
    #[should_panic(expected = "line 2 of the cassette")]
    fn a_wrong_line_of_a_cassette_is_named() {
        Script::from_cassette("{\"cassette\":1,\"toolset\":\"lathe\"}\n{\"answer\":{}}\n");
    }
}
