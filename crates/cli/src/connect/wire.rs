//! The wire of a server, as a client speaks it: commands to messages, frames to updates.

use std::sync::Arc;

use lathe_protocol::{
    AgentId, CallId, Command, CommandBody, CommandId, Event, Frame, FrameBody, OutputStream, Receipt,
    ReceiptAnswer, Seq, StepNo, Update,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// A frame, read.
pub(super) enum ServerMessage {
    /// An event with its changes as a diff, or what is happening this moment.
    Update(Update, String),
    Receipt(Receipt),
    /// The state of the session, after everything that had happened was sent.
    Status(String),
    /// Words about the request, and whether they refuse it.
    Words {
        message: String,
        is_error: bool,
    },
    /// A frame that says nothing to this client.
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

/// Reads a frame: its session, where it names one, and what it says. What has another form says nothing.
pub(super) fn read(text: &str) -> (Option<String>, ServerMessage) {
    let Ok(envelope) = serde_json::from_str::<Envelope>(text) else { return (None, ServerMessage::Nothing) };
    let session = envelope.session_id.clone();
    (session, said(&envelope).unwrap_or(ServerMessage::Nothing))
}

fn said(envelope: &Envelope) -> Option<ServerMessage> {
    let data = envelope.data.as_deref()?;
    let live = |step, call, body| {
        let frame =
            Frame { after: envelope.seq.unwrap_or_default(), agent: AgentId::main(), step, call, body };
        ServerMessage::Update(Update::Frame(frame), String::new())
    };
    Some(match envelope.r#type.as_str() {
        "event" => {
            let EventData { event, diff } = of(data)?;
            ServerMessage::Update(Update::Event(Arc::new(event)), diff)
        }
        "delta" => {
            let Delta { session_step, kind, text } = of(data)?;
            let body = match kind.as_str() {
                "text" => FrameBody::Text(text),
                "thinking" => FrameBody::Thinking(text),
                _ => FrameBody::CallForming(text),
            };
            live(session_step, None, body)
        }
        "tool_output" => {
            let Output { call_id, stream, text } = of(data)?;
            live(None, call_id, FrameBody::Output { stream, text })
        }
        "retry" => {
            let Retry { attempt, wait_ms, reason } = of(data)?;
            live(None, None, FrameBody::Retry { attempt, wait_ms, reason })
        }
        // What the session has to say belongs to it; the rest is about this client's request.
        "warning" if envelope.seq.is_some() => {
            live(None, None, FrameBody::Warning(of::<ErrorFrame>(data)?.message))
        }
        kind @ ("warning" | "error") => {
            ServerMessage::Words { message: of::<ErrorFrame>(data)?.message, is_error: kind == "error" }
        }
        "status" => ServerMessage::Status(of::<Status>(data)?.state),
        "receipt" => {
            let ReceiptFrame { id, accepted, seq, reason } = of(data)?;
            let answer = match accepted {
                true => ReceiptAnswer::Accepted { seq: seq.unwrap_or_default() },
                false => ReceiptAnswer::Refused { reason: reason.unwrap_or_default() },
            };
            ServerMessage::Receipt(Receipt { command: id, answer })
        }
        _ => return None,
    })
}

fn of<T: DeserializeOwned>(data: &RawValue) -> Option<T> {
    serde_json::from_str(data.get()).ok()
}

/// The message for a command; the reason if the wire has none for it.
pub(super) fn message(command: &Command) -> Result<Value, String> {
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
            return Err("a connection has no message for this; ask over HTTP".to_owned());
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
        let (session, heard) = read(event);
        assert_eq!(session.as_deref(), Some("s"));
        let ServerMessage::Update(Update::Event(event), diff) = heard else { panic!("no event") };
        assert_eq!((event.seq, diff.as_str()), (Seq(7), "+a\n"));
        assert!(matches!(&event.fact, Fact::Steered(steered) if steered.text == "x"));
        let delta = r#"{"type":"delta","data":{"step":1,"session_step":3,"kind":"text","text":"hi"},"seq":9,"session_id":"s","run_id":"s.1"}"#;
        let ServerMessage::Update(Update::Frame(frame), _) = read(delta).1 else { panic!("no frame") };
        assert_eq!(
            (frame.after, frame.step, frame.body),
            (Seq(9), Some(StepNo(3)), FrameBody::Text("hi".to_owned()))
        );
        let warning = |seq: &str| format!(r#"{{"type":"warning","data":{{"message":"m"}}{seq}}}"#);
        assert!(matches!(read(&warning("")).1, ServerMessage::Words { is_error: false, .. }));
        assert!(matches!(read(&warning(r#","seq":1"#)).1, ServerMessage::Update(Update::Frame(_), _)));
        for text in ["", "x", "[]", r#"{"type":"bubble","data":{}}"#, r#"{"type":"event","data":{}}"#] {
            assert!(matches!(read(text).1, ServerMessage::Nothing), "{text}");
        }
    }

    #[test]
    fn commands_are_said_as_the_document_says() {
        let said = |body| message(&Command { id: CommandId::new("k"), actor: Actor::Person, body });
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

    /// Issue 17, line 6, over every kind of event that there is.
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
                let ServerMessage::Update(Update::Event(heard), diff) = read(&frame).1 else {
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
