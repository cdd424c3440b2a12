//! One frame, and its form on the wire.

use std::borrow::Cow;
use std::collections::BTreeMap;

use lathe_protocol::{Event, Fact, Frame, FrameBody, RunNo, SessionId, StepNo, json_text};
use lathe_redact::{ShapeStream, mask_shapes};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::cursor::Cursor;
use super::mask::{mask_reasons, masked_json};
use super::projector::Projector;
use super::runs::StepNumbers;

/// A frame that was made from an event.
#[derive(Debug, Clone)]
pub struct WireFrame {
    pub kind: &'static str,
    /// The data without what looks like a secret.
    pub data: Box<RawValue>,
    /// The data of an open question as it is, for clients that may answer it: an answer is bound to what is shown.
    pub exact: Option<Box<RawValue>>,
    pub cursor: Cursor,
    pub run: RunNo,
    /// The step that it belongs to, if it belongs to one.
    pub step: Option<StepNumbers>,
    pub edge: Option<RunEdge>,
}

/// The place of a frame at the beginning or the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEdge {
    Begin,
    End,
}

/// `run_id` is unique over all sessions.
pub(super) fn run_id(session: &SessionId, run: RunNo) -> String {
    format!("{session}.{run}")
}

#[derive(Serialize)]
struct Envelope<'a, D: ?Sized> {
    r#type: &'a str,
    data: &'a D,
    seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
    session_id: &'a str,
    run_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_step: Option<StepNo>,
}

/// An event, with the changes of a finished call as one diff.
#[derive(Serialize)]
struct EventData<'a> {
    event: &'a Event,
    #[serde(skip_serializing_if = "str::is_empty")]
    diff: &'a str,
}

impl WireFrame {
    /// An event as it is in the journal, for clients that make their own view of a session. An open question has an exact form
    /// like every frame that asks.
    pub fn of_event(event: &Event, diff: &str) -> Self {
        let data = raw(&EventData { event, diff });
        let masked = masked_json(data.get()).map(raw_text);
        let exact =
            masked.as_ref().filter(|_| matches!(event.fact, Fact::ApprovalAsked(_))).and_then(|masked| {
                let mut exact: Value = serde_json::from_str(data.get()).ok()?;
                mask_reasons(&mut exact);
                if let Some(Value::String(call)) = exact.pointer_mut("/event/call") {
                    *call = mask_shapes(call).into_owned();
                }
                let exact = raw(&exact);
                (exact.get() != masked.get()).then_some(exact)
            });
        let edge = match &event.fact {
            Fact::TaskGiven(_) => Some(RunEdge::Begin),
            Fact::TaskFinished(_) => Some(RunEdge::End),
            _ => None,
        };
        Self {
            kind: "event",
            data: masked.unwrap_or(data),
            exact,
            cursor: Cursor::after(event.seq),
            run: event.place.run,
            step: None,
            edge,
        }
    }

    /// The frame for every client, masked by shape.
    pub fn to_json(&self, session: &SessionId) -> String {
        self.written(session, &self.data)
    }

    /// The frame for clients that may answer the question in it, if it shows more than [`Self::to_json`].
    pub fn to_exact_json(&self, session: &SessionId) -> Option<String> {
        self.exact.as_ref().map(|exact| self.written(session, exact))
    }

    fn written(&self, session: &SessionId, data: &RawValue) -> String {
        text(&Envelope {
            r#type: self.kind,
            data,
            seq: self.cursor.seq.0,
            cursor: Some(self.cursor.to_string()),
            session_id: session.as_str(),
            run_id: run_id(session, self.run),
            step: self.step.map(|step| step.in_run),
            session_step: self.step.map(|step| step.in_session),
        })
    }
}

/// Live frames, without what looks like a secret. A secret may come in pieces, so the last word of a text is held
/// back until it has ended.
#[derive(Debug, Default)]
pub struct LiveFrames {
    /// Unfinished work by its owner, with its last frame.
    streams: BTreeMap<String, (Frame, ShapeStream)>,
}

impl LiveFrames {
    /// The frame as it goes over the wire; none if all of it is held back.
    pub fn take(&mut self, frame: Frame, session: &SessionId, at: &Projector) -> Option<String> {
        let name = match &frame.body {
            FrameBody::Text(_) => "text".to_owned(),
            FrameBody::Thinking(_) => "thinking".to_owned(),
            FrameBody::Output { stream, .. } => format!("{:?} {stream:?}", frame.call),
            FrameBody::CallForming(_) | FrameBody::Retry { .. } | FrameBody::Warning(_) => {
                return Some(live_frame(&frame, session, at));
            }
        };
        let (last, stream) =
            self.streams.entry(name).or_insert_with(|| (frame.clone(), ShapeStream::default()));
        *last = frame;
        let text = stream.push(text_of_frame(&last.body));
        (!text.is_empty()).then(|| live_frame(&with_text(last, text), session, at))
    }

    /// Frames that were held back: an event says that no more of them come.
    pub fn flush(&mut self, session: &SessionId, at: &Projector) -> Vec<String> {
        let streams = std::mem::take(&mut self.streams).into_values();
        let rest = streams.filter_map(|(last, mut stream)| {
            let text = stream.finish();
            (!text.is_empty()).then(|| live_frame(&with_text(&last, text), session, at))
        });
        rest.collect()
    }
}

fn text_of_frame(body: &FrameBody) -> &str {
    match body {
        FrameBody::Text(text)
        | FrameBody::Thinking(text)
        | FrameBody::CallForming(text)
        | FrameBody::Warning(text)
        | FrameBody::Output { text, .. } => text,
        FrameBody::Retry { reason, .. } => reason,
    }
}

fn with_text(frame: &Frame, text: String) -> Frame {
    let body = match &frame.body {
        FrameBody::Text(_) => FrameBody::Text(text),
        FrameBody::Thinking(_) => FrameBody::Thinking(text),
        FrameBody::CallForming(_) => FrameBody::CallForming(text),
        FrameBody::Warning(_) => FrameBody::Warning(text),
        FrameBody::Output { stream, .. } => FrameBody::Output { stream: *stream, text },
        FrameBody::Retry { attempt, wait_ms, .. } => {
            FrameBody::Retry { attempt: *attempt, wait_ms: *wait_ms, reason: text }
        }
    };
    Frame { body, ..frame.clone() }
}

/// A live frame without a cursor: it is never replayed.
fn live_frame(frame: &Frame, session: &SessionId, at: &Projector) -> String {
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Data<'a> {
        Delta { step: Option<u32>, session_step: Option<StepNo>, kind: &'a str, text: Cow<'a, str> },
        Output { call_id: Option<Cow<'a, str>>, stream: lathe_protocol::OutputStream, text: &'a str },
        Retry { attempt: u32, wait_ms: u64, reason: Cow<'a, str> },
        Words { message: Cow<'a, str> },
    }
    let numbers = at.numbers(at.run(), frame.step);
    let (step, session_step) = (numbers.map(|step| step.in_run), numbers.map(|step| step.in_session));
    let (kind, data) = match &frame.body {
        FrameBody::Text(text) => {
            ("delta", Data::Delta { step, session_step, kind: "text", text: text.into() })
        }
        FrameBody::Thinking(text) => {
            ("delta", Data::Delta { step, session_step, kind: "thinking", text: text.into() })
        }
        FrameBody::CallForming(text) => {
            ("delta", Data::Delta { step, session_step, kind: "call", text: mask_shapes(text) })
        }
        FrameBody::Output { stream, text } => {
            let call_id = frame.call.as_ref().map(|call| mask_shapes(call.as_str()));
            ("tool_output", Data::Output { call_id, stream: *stream, text })
        }
        FrameBody::Retry { attempt, wait_ms, reason } => {
            ("retry", Data::Retry { attempt: *attempt, wait_ms: *wait_ms, reason: mask_shapes(reason) })
        }
        FrameBody::Warning(message) => ("warning", Data::Words { message: mask_shapes(message) }),
    };
    text(&Envelope {
        r#type: kind,
        data: &data,
        seq: frame.after.0,
        cursor: None,
        session_id: session.as_str(),
        run_id: run_id(session, at.run()),
        step,
        session_step,
    })
}

/// Nothing on the wire can fail to be written as JSON: no map has keys that are not text.
pub(super) fn text(value: &impl Serialize) -> String {
    json_text(value)
}

pub(super) fn raw(value: &impl Serialize) -> Box<RawValue> {
    raw_text(text(value))
}

/// JSON that is written already.
pub(super) fn raw_text(json: String) -> Box<RawValue> {
    RawValue::from_string(json).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

#[cfg(test)]
mod tests {
    use lathe_protocol::{AgentId, Seq};

    use super::*;

    #[test]
    fn a_name_that_looks_like_a_secret_is_masked_while_its_call_is_forming() {
        let (session, name) = (SessionId::new("s"), "ghp_planted0123456789abcdefghij");
        let at = Projector::new(session.clone(), "");
        let frame = |name: &str| Frame {
            after: Seq(1),
            agent: AgentId::main(),
            step: None,
            call: None,
            body: FrameBody::CallForming(name.to_owned()),
        };
        let mut live = LiveFrames::default();
        let masked = live.take(frame(name), &session, &at).unwrap();
        assert!(masked.contains("«secret»") && !masked.contains("planted"), "{masked}");
        assert!(live.take(frame("bash"), &session, &at).unwrap().contains("bash"));
    }

    #[test]
    fn an_event_is_masked_but_what_a_question_shows_to_those_who_may_answer() {
        let secret = "ghp_planted0123456789abcdefghij";
        let event = |fact: Fact| Event {
            seq: Seq(7),
            at: "2026-11-15T08:00:00Z".parse().unwrap(),
            place: lathe_protocol::EventPlace::in_run(RunNo(1)).at_call(lathe_protocol::CallId::new("c")),
            fact,
        };
        let asked = lathe_protocol::ApprovalAsked {
            what: lathe_protocol::Proposal::Other { about: format!("send {secret}") },
            rule: "r".to_owned(),
            reason: format!("it names {secret}"),
            remember: Vec::new(),
        };
        let frame = WireFrame::of_event(&event(asked.into()), "");
        assert!(!frame.data.get().contains("planted"), "{}", frame.data);
        let exact = frame.exact.unwrap();
        assert_eq!(exact.get().matches("planted").count(), 1, "{exact}");
        // What is masked is still an event.
        let reminded = lathe_protocol::Reminded { text: format!("not {secret}") };
        let frame = WireFrame::of_event(&event(reminded.into()), &format!("+{secret}\n"));
        assert!(frame.exact.is_none() && !frame.data.get().contains("planted"), "{}", frame.data);
        let data: Value = serde_json::from_str(frame.data.get()).unwrap();
        let read: Event = serde_json::from_value(data["event"].clone()).unwrap();
        assert_eq!((read.seq, frame.cursor.to_string().as_str()), (Seq(7), "7"));
        assert_eq!(data["diff"], "+«secret»\n");
    }
}
