//! One frame, and how it is written.

use lathe_protocol::{Frame, FrameBody, RunNo, SessionId};
use serde::Serialize;
use serde_json::value::RawValue;

use super::cursor::Cursor;

/// A frame that was made from an event.
#[derive(Debug, Clone)]
pub struct WireFrame {
    pub kind: &'static str,
    pub data: Box<RawValue>,
    pub cursor: Cursor,
    pub run: RunNo,
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
}

impl WireFrame {
    pub fn to_json(&self, session: &SessionId) -> String {
        text(&Envelope {
            r#type: self.kind,
            data: &*self.data,
            seq: self.cursor.seq.0,
            cursor: Some(self.cursor.to_string()),
            session_id: session.as_str(),
            run_id: run_id(session, self.run),
        })
    }
}

/// What is happening right now, as a frame without a cursor: it is never replayed. None for what has no word on the wire.
pub fn live_frame(frame: &Frame, session: &SessionId, run: RunNo) -> String {
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Data<'a> {
        Delta { step: Option<u32>, kind: &'a str, text: &'a str },
        Output { call_id: Option<&'a str>, stream: lathe_protocol::OutputStream, text: &'a str },
        Retry { attempt: u32, wait_ms: u64, reason: &'a str },
        Words { message: &'a str },
    }
    let step = frame.step.map(|step| step.0);
    let (kind, data) = match &frame.body {
        FrameBody::Text(text) => ("delta", Data::Delta { step, kind: "text", text }),
        FrameBody::Thinking(text) => ("delta", Data::Delta { step, kind: "thinking", text }),
        FrameBody::CallForming(text) => ("delta", Data::Delta { step, kind: "call", text }),
        FrameBody::Output { stream, text } => {
            let call_id = frame.call.as_ref().map(|call| call.as_str());
            ("tool_output", Data::Output { call_id, stream: *stream, text })
        }
        FrameBody::Retry { attempt, wait_ms, reason } => {
            ("retry", Data::Retry { attempt: *attempt, wait_ms: *wait_ms, reason })
        }
        FrameBody::Warning(message) => ("warning", Data::Words { message }),
    };
    text(&Envelope {
        r#type: kind,
        data: &data,
        seq: frame.after.0,
        cursor: None,
        session_id: session.as_str(),
        run_id: run_id(session, run),
    })
}

/// Nothing on the wire can fail to be written as JSON: no map has keys that are not text.
pub(super) fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

pub(super) fn raw(value: &impl Serialize) -> Box<RawValue> {
    RawValue::from_string(text(value)).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
