//! The wire of a server as a client uses it: commands to messages, frames to updates.

use std::sync::Arc;

use lathe_protocol::{
    AgentId, CallId, Command, CommandBody, CommandId, Event, Frame, FrameBody, OutputStream, Receipt,
    ReceiptAnswer, Seq, StepNo, Update,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The content of a frame.
pub(super) enum ServerMessage {
    /// An event with its changes as a diff, or a frame about the present.
    Update(Update, String),
    Receipt(Receipt),
    /// The state of the session, sent after all of its past.
    Status(String),
    /// A message about the request; it may refuse the request.
    Notice {
        message: String,
        is_error: bool,
    },
    /// A frame that means nothing to this client.
    Nothing,
}

#[derive(Deserialize)]
struct Envelope {
    r#type: String,
    #[serde(default)]
    data: Option<Box<RawValue>>,
    #[serde(default)]
    seq: Option<Seq>,
    #[serde(default)]
    session_id: Option<String>,
}

#[derive(Deserialize)]
struct EventData {
    event: Event,
    #[serde(default)]
    diff: String,
}

#[derive(Deserialize)]
struct Delta {
    #[serde(default)]
    session_step: Option<StepNo>,
    kind: String,
    text: String,
}

#[derive(Deserialize)]
struct Output {
    #[serde(default)]
    call_id: Option<CallId>,
    stream: OutputStream,
    text: String,
}

#[derive(Deserialize)]
struct Retry {
    attempt: u32,
    wait_ms: u64,
    reason: String,
}

#[derive(Deserialize)]
struct ErrorFrame {
    message: String,
}

#[derive(Deserialize)]
struct Status {
    state: String,
}

#[derive(Deserialize)]
struct ReceiptFrame {
    id: CommandId,
    accepted: bool,
    #[serde(default)]
    seq: Option<Seq>,
    #[serde(default)]
    reason: Option<String>,
}

/// Parses a frame: its session, if it names one, and its content. A frame of an unknown form means nothing.
pub(super) fn parse_frame(text: &str) -> (Option<String>, ServerMessage) {
    let Ok(envelope) = serde_json::from_str::<Envelope>(text) else { return (None, ServerMessage::Nothing) };
    let session = envelope.session_id.clone();
    (session, parse_message(&envelope).unwrap_or(ServerMessage::Nothing))
}

fn parse_message(envelope: &Envelope) -> Option<ServerMessage> {
    let data = envelope.data.as_deref()?;
    let live = |step, call, body| {
        let frame =
            Frame { after: envelope.seq.unwrap_or_default(), agent: AgentId::main(), step, call, body };
        ServerMessage::Update(Update::Frame(frame), String::new())
    };
    Some(match envelope.r#type.as_str() {
        "event" => {
            let EventData { event, diff } = parse(data)?;
            ServerMessage::Update(Update::Event(Arc::new(event)), diff)
        }
        "delta" => {
            let Delta { session_step, kind, text } = parse(data)?;
            let body = match kind.as_str() {
                "text" => FrameBody::Text(text),
                "thinking" => FrameBody::Thinking(text),
                _ => FrameBody::CallForming(text),
            };
            live(session_step, None, body)
        }
        "tool_output" => {
            let Output { call_id, stream, text } = parse(data)?;
            live(None, call_id, FrameBody::Output { stream, text })
        }
        "retry" => {
            let Retry { attempt, wait_ms, reason } = parse(data)?;
            live(None, None, FrameBody::Retry { attempt, wait_ms, reason })
        }
        // A warning of the session belongs to the session; the rest is about this client's request.
        "warning" if envelope.seq.is_some() => {
            live(None, None, FrameBody::Warning(parse::<ErrorFrame>(data)?.message))
        }
        kind @ ("warning" | "error") => {
            ServerMessage::Notice { message: parse::<ErrorFrame>(data)?.message, is_error: kind == "error" }
        }
        "status" => ServerMessage::Status(parse::<Status>(data)?.state),
        "receipt" => {
            let ReceiptFrame { id, accepted, seq, reason } = parse(data)?;
            let answer = match accepted {
                true => ReceiptAnswer::Accepted { seq: seq.unwrap_or_default() },
                false => ReceiptAnswer::Refused { reason: reason.unwrap_or_default() },
            };
            ServerMessage::Receipt(Receipt { command: id, answer })
        }
        _ => return None,
    })
}

fn parse<T: DeserializeOwned>(data: &RawValue) -> Option<T> {
    serde_json::from_str(data.get()).ok()
}

/// The message for a command; the reason if the wire has none for it.
pub(super) fn to_message(command: &Command) -> Result<Value, String> {
    let mut message = match &command.body {
        CommandBody::GiveTask { text, images } if images.is_empty() => {
            json!({ "type": "task", "task": text })
        }
        CommandBody::GoOn => json!({ "type": "resume" }),
        CommandBody::Steer { text } => json!({ "type": "input", "text": text }),
        CommandBody::Cancel => json!({ "type": "cancel" }),
        CommandBody::CancelCall { call } => json!({ "type": "cancel", "call_id": call }),
        CommandBody::Answer { call, question, answers } => {
            json!({ "type": "answer", "call_id": call, "question": question, "answers": answers })
        }
        CommandBody::Approve { call, question, answer, reason, edited } => json!({
            "type": "approve", "call_id": call, "question": question, "answer": answer, "reason": reason,
            "edited": edited,
        }),
        CommandBody::GiveTask { .. }
        | CommandBody::Rename { .. }
        | CommandBody::Summarise { .. }
        | CommandBody::Review { .. } => {
            return Err("a connection has no message for this; use the HTTP interface".to_owned());
        }
    };
    message["id"] = json!(command.id);
    Ok(message)
}

#[cfg(test)]
mod tests {
    use lathe_protocol::{Actor, ApprovalAnswer, Fact, SessionId};
    use lathe_views::{Console, Language, WireFrame};

    use super::*;

    #[test]
    fn frames_become_updates_and_what_is_unknown_says_nothing() {
        let event = r#"{"type":"event","data":{"event":{"seq":7,"at":"2026-11-15T08:00:00Z","run":1,"agent":"main","kind":"steered","v":1,"body":{"text":"x","command":"k","actor":"person"}},"diff":"+a\n"},"seq":7,"cursor":"7","session_id":"s","run_id":"s.1"}"#;
        let (session, heard) = parse_frame(event);
        assert_eq!(session.as_deref(), Some("s"));
        let ServerMessage::Update(Update::Event(event), diff) = heard else { panic!("no event") };
        assert_eq!((event.seq, diff.as_str()), (Seq(7), "+a\n"));
        assert!(matches!(&event.fact, Fact::Steered(steered) if steered.text == "x"));
        let delta = r#"{"type":"delta","data":{"step":1,"session_step":3,"kind":"text","text":"hi"},"seq":9,"session_id":"s","run_id":"s.1"}"#;
        let ServerMessage::Update(Update::Frame(frame), _) = parse_frame(delta).1 else { panic!("no frame") };
        assert_eq!(
            (frame.after, frame.step, frame.body),
            (Seq(9), Some(StepNo(3)), FrameBody::Text("hi".to_owned()))
        );
        let warning = |seq: &str| format!(r#"{{"type":"warning","data":{{"message":"m"}}{seq}}}"#);
        assert!(matches!(parse_frame(&warning("")).1, ServerMessage::Notice { is_error: false, .. }));
        assert!(matches!(parse_frame(&warning(r#","seq":1"#)).1, ServerMessage::Update(Update::Frame(_), _)));
        for text in ["", "x", "[]", r#"{"type":"bubble","data":{}}"#, r#"{"type":"event","data":{}}"#] {
            assert!(matches!(parse_frame(text).1, ServerMessage::Nothing), "{text}");
        }
    }

    #[test]
    fn commands_are_said_as_the_document_says() {
        let said = |body| to_message(&Command { id: CommandId::new("k"), actor: Actor::Person, body });
        let approve = CommandBody::Approve {
            call: CallId::new("c"),
            question: Seq(4),
            answer: ApprovalAnswer::Once,
            reason: None,
            edited: None,
        };
        assert_eq!(
            said(approve).unwrap(),
            json!({ "type": "approve", "call_id": "c", "question": 4, "answer": "once", "reason": null, "edited": null, "id": "k" })
        );
        assert_eq!(said(CommandBody::Cancel).unwrap(), json!({ "type": "cancel", "id": "k" }));
        assert!(said(CommandBody::Rename { title: "t".to_owned() }).is_err());
    }

    /// The console shows every kind of event alike from the journal and from the wire.
    #[test]
    fn the_events_of_the_golden_journal_have_the_same_lines_here_and_over_the_wire() {
        let golden = include_str!("../../../journal/tests/golden/v1.jsonl");
        let session = SessionId::new("s");
        for language in [Language::English, Language::Chinese] {
            let (mut here, mut there) = (Console::new(language), Console::new(language));
            let mut lines = String::new();
            for line in golden.lines() {
                let event: Event = serde_json::from_str(line).unwrap();
                let frame =
                    WireFrame::of_event(&event, "--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n").to_json(&session);
                let ServerMessage::Update(Update::Event(heard), diff) = parse_frame(&frame).1 else {
                    panic!("{frame}")
                };
                assert_eq!((heard.seq, heard.fact.kind()), (event.seq, event.fact.kind()));
                let shown = here.event(&event, "--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n");
                assert_eq!(there.event(&heard, &diff), shown);
                lines.push_str(&shown.plain());
            }
            assert!(lines.lines().count() > 10, "{lines}");
        }
    }
}
