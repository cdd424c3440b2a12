//! What a client says on a connection.

use lathe_protocol::{ApprovalAnswer, CallId, CommandBody, CommandId, Raw, Seq};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::api;
use crate::error::ApiError;

/// One message of a client. Members may stand beside `type` or inside `data`.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Said {
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
        #[serde(default)]
        answers: Option<Vec<String>>,
    },
    Task {
        task: String,
    },
    Resume {},
    /// Taken, and not needed: a client says where it is when it comes back.
    Ack {},
    Pong {},
}

/// A message that was understood, with the id the client gave it.
pub(super) struct Heard {
    pub id: Option<CommandId>,
    pub said: Said,
}

pub(super) fn understand(text: &str) -> Result<Heard, ApiError> {
    let mut message: Map<String, Value> = api::parse(text.as_bytes())?;
    if let Some(Value::Object(data)) = message.remove("data") {
        data.into_iter().for_each(|(key, value)| {
            message.entry(key).or_insert(value);
        });
    }
    let id = message.remove("id").and_then(|id| id.as_str().map(CommandId::new));
    let said = serde_path_to_error::deserialize(Value::Object(message))
        .map_err(|error| ApiError::unprocessable(error.to_string()))?;
    Ok(Heard { id, said })
}

impl Said {
    /// The command to a session; none for what concerns the connection only.
    pub fn command(self) -> Option<CommandBody> {
        Some(match self {
            Said::Cancel { call_id: None } => CommandBody::Cancel,
            Said::Cancel { call_id: Some(call) } => CommandBody::CancelCall { call },
            Said::Input { text } => CommandBody::Steer { text },
            Said::Approve { call_id, question, answer, reason, edited } => {
                let edited = edited.and_then(|edited| Raw::from_serialize(&edited).ok());
                CommandBody::Approve { call: call_id, question, answer, reason, edited }
            }
            Said::Answer { call_id, answers } => CommandBody::Answer { call: call_id, answers },
            Said::Task { task } => CommandBody::GiveTask { text: task },
            Said::Resume {} => CommandBody::GoOn,
            Said::Ack {} | Said::Pong {} => return None,
        })
    }

    /// Why it means nothing, whatever the session is at.
    pub fn flaw(&self) -> Option<&'static str> {
        match self {
            Said::Input { text } if text.trim().is_empty() => Some("`text` is empty"),
            Said::Task { task } if task.trim().is_empty() => Some("`task` is empty"),
            _ => None,
        }
    }

    /// Whether the session must be open for it, and may be opened.
    pub fn opens(&self) -> bool {
        matches!(self, Said::Resume {} | Said::Task { .. })
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
            let heard = understand(text).unwrap();
            assert_eq!(heard.id, Some(CommandId::new("k1")));
            assert_eq!(heard.said.command(), Some(CommandBody::Steer { text: "hello".to_owned() }));
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
            r#"{"type":"approve","call_id":"c","answer":"maybe"}"#,
        ] {
            assert!(understand(text).is_err(), "{text}");
        }
    }
}
