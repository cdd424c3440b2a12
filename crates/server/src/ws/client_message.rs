//! A client's messages on a connection.

use lathe_protocol::{ApprovalAnswer, CallId, CommandBody, CommandId, Raw, Seq};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::api;
use crate::error::ApiError;
use crate::live::client_id;

/// One message of a client. Members may stand next to `type` or inside `data`.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ClientMessage {
    Cancel {
        /// Only this call; the run if left out.
        #[serde(default)]
        call_id: Option<CallId>,
    },
    Input {
        text: String,
    },
    Approve {
        call_id: CallId,
        /// The number in the `approval` frame.
        #[serde(default)]
        question: Option<Seq>,
        answer: ApprovalAnswer,
        #[serde(default)]
        reason: Option<String>,
        /// Arguments to use in the place of those the model gave.
        #[serde(default)]
        edited: Option<Value>,
    },
    Answer {
        call_id: CallId,
        /// The number in the `question` frame.
        #[serde(default)]
        question: Option<Seq>,
        #[serde(default)]
        answers: Option<Vec<String>>,
    },
    Task {
        task: String,
    },
    Resume {},
    /// Accepted and ignored: a client names its cursor when it reconnects.
    Ack {},
    Pong {},
}

/// An answer goes to the question that the client was shown. The model chooses call ids and may use one again, so a
/// call alone does not identify a question.
const NO_APPROVAL_NUMBER: &str =
    "`question` is missing: send the number `question` of the `approval` frame that is answered";
const NO_QUESTION_NUMBER: &str =
    "`question` is missing: send the number `question` of the `question` frame that is answered";

/// A parsed message, with the id that the client gave it.
pub(super) struct IdentifiedMessage {
    pub id: Option<CommandId>,
    pub message: ClientMessage,
}

pub(super) fn parse_message(text: &str) -> Result<IdentifiedMessage, ApiError> {
    let mut message: Map<String, Value> = api::parse(text.as_bytes())?;
    if let Some(Value::Object(data)) = message.remove("data") {
        data.into_iter().for_each(|(key, value)| {
            message.entry(key).or_insert(value);
        });
    }
    let id = match message.remove("id") {
        None | Some(Value::Null) => None,
        Some(Value::String(id)) => Some(client_id(id)?),
        // A client that counts means the digits.
        Some(Value::Number(id)) if id.is_u64() || id.is_i64() => Some(client_id(id.to_string())?),
        Some(_) => return Err(ApiError::unprocessable("`id` is a text or a whole number.")),
    };
    let parsed = serde_path_to_error::deserialize(Value::Object(message))
        .map_err(|error| ApiError::unprocessable(error.to_string()))?;
    Ok(IdentifiedMessage { id, message: parsed })
}

impl ClientMessage {
    /// The type of the message, for its receipt and the audit log.
    pub fn type_word(&self) -> &'static str {
        match self {
            ClientMessage::Cancel { .. } => "cancel",
            ClientMessage::Input { .. } => "input",
            ClientMessage::Approve { .. } => "approve",
            ClientMessage::Answer { .. } => "answer",
            ClientMessage::Task { .. } => "task",
            ClientMessage::Resume {} => "resume",
            ClientMessage::Ack {} => "ack",
            ClientMessage::Pong {} => "pong",
        }
    }

    /// Tells whether it concerns the connection only and is not answered.
    pub fn is_silent(&self) -> bool {
        matches!(self, ClientMessage::Ack {} | ClientMessage::Pong {})
    }

    /// The command to a session, or the reason why there is none, in any state of the session.
    pub fn command(self) -> Result<CommandBody, &'static str> {
        Ok(match self {
            ClientMessage::Cancel { call_id: None } => CommandBody::Cancel,
            ClientMessage::Cancel { call_id: Some(call) } => CommandBody::CancelCall { call },
            ClientMessage::Input { text } if text.trim().is_empty() => return Err("`text` is empty"),
            ClientMessage::Task { task } if task.trim().is_empty() => return Err("`task` is empty"),
            ClientMessage::Input { text } => CommandBody::Steer { text },
            ClientMessage::Approve { question: None, .. } => return Err(NO_APPROVAL_NUMBER),
            ClientMessage::Answer { question: None, .. } => return Err(NO_QUESTION_NUMBER),
            ClientMessage::Approve { call_id, question: Some(question), answer, reason, edited } => {
                let edited = edited.and_then(|edited| Raw::from_serialize(&edited).ok());
                CommandBody::Approve { call: call_id, question, answer, reason, edited }
            }
            ClientMessage::Answer { call_id, question: Some(question), answers } => {
                CommandBody::Answer { call: call_id, question, answers }
            }
            ClientMessage::Task { task } => CommandBody::GiveTask { text: task, images: Vec::new() },
            ClientMessage::Resume {} => CommandBody::GoOn,
            ClientMessage::Ack {} | ClientMessage::Pong {} => return Err("it is not a command"),
        })
    }

    /// Tells whether the session must be open for it, and may be opened.
    pub fn needs_open_session(&self) -> bool {
        matches!(self, ClientMessage::Resume {} | ClientMessage::Task { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_may_stand_beside_the_type_or_in_data() {
        for text in [
            r#"{"type":"input","id":"k1","text":"hello"}"#,
            r#"{"type":"input","id":"k1","data":{"text":"hello"}}"#,
        ] {
            let parsed = parse_message(text).unwrap();
            assert_eq!(parsed.id, Some(CommandId::new("k1")));
            assert_eq!(parsed.message.command(), Ok(CommandBody::Steer { text: "hello".to_owned() }));
        }
    }

    #[test]
    fn an_id_that_is_a_number_is_the_id_of_its_digits() {
        for (text, id) in [("5", Some("5")), ("-1", Some("-1")), ("\"5\"", Some("5")), ("null", None)] {
            let parsed = parse_message(&format!(r#"{{"type":"input","id":{text},"text":"hello"}}"#)).unwrap();
            assert_eq!(parsed.id, id.map(CommandId::new), "{text}");
        }
    }

    #[test]
    fn what_is_not_understood_is_said() {
        for text in [
            "",
            "x",
            "[]",
            "{}",
            r#"{"type":"dance"}"#,
            r#"{"type":"input"}"#,
            r#"{"type":"input","id":["k"],"text":"x"}"#,
            r#"{"type":"input","id":1.5,"text":"x"}"#,
            r#"{"type":"input","id":true,"text":"x"}"#,
            r#"{"type":"approve","call_id":"c","answer":"maybe"}"#,
        ] {
            assert!(parse_message(text).is_err(), "{text}");
        }
    }
}
