//! Events as bytes: server-sent events, or lines of JSON.

use crate::options::Options;
use crate::script::FakeAnswer;
use crate::wires::{AnswerShape, RequestEcho, StreamEvent, Wire};

/// The bytes a server on this wire would send for an answer, HTTP left aside.
pub fn recorded_answer(wire: Wire, answer: &FakeAnswer, options: &Options) -> Vec<u8> {
    let asked = RequestEcho { answer: 0, model: "fake", include_usage: true };
    frames(wire, &wire.events(answer, &asked, AnswerShape::Whole), options).concat()
}

/// The bytes of each event, in order.
pub(crate) fn frames(wire: Wire, events: &[StreamEvent], options: &Options) -> Vec<Vec<u8>> {
    events.iter().enumerate().map(|(number, event)| frame(wire, event, number, options)).collect()
}

pub(crate) fn frame(wire: Wire, event: &StreamEvent, number: usize, options: &Options) -> Vec<u8> {
    let end = options.line_end.as_str();
    if wire.is_lines() {
        return format!("{}{end}", event.data).into_bytes();
    }
    let mut text = String::new();
    if options.comments {
        text.push_str(&format!(": keep-alive {number}{end}{end}"));
    }
    if let Some(name) = event.name {
        text.push_str(&format!("event: {name}{end}"));
    }
    let pretty = if options.multiline {
        let value = serde_json::from_str::<serde_json::Value>(&event.data).ok();
        value.and_then(|value| serde_json::to_string_pretty(&value).ok())
    } else {
        None
    };
    for line in pretty.as_deref().unwrap_or(&event.data).lines() {
        text.push_str(&format!("data: {line}{end}"));
    }
    text.push_str(end);
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::options::LineEnd;

    #[test]
    fn line_ends_comments_and_many_lines_are_as_asked() {
        let event = StreamEvent::named("x", json!({"a": 1}));
        let options =
            Options { line_end: LineEnd::Cr, comments: true, multiline: true, ..Options::default() };
        let bytes = frame(Wire::Messages, &event, 0, &options);
        assert_eq!(
            String::from_utf8(bytes).unwrap(),
            ": keep-alive 0\r\revent: x\rdata: {\rdata:   \"a\": 1\rdata: }\r\r"
        );
        assert_eq!(frame(Wire::Ollama, &event, 0, &options), b"{\"a\":1}\r");
    }
}
