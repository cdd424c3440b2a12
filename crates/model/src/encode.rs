//! Encoding of neutral messages for a wire.
//!
//! A piece is one message with its separator from the previous one, so a request is the head, the pieces and a tail,
//! and nothing is ever written twice. Two wires require consecutive user messages in one message; there a piece only
//! opens that message, and the next piece or the tail closes it.

use bytes::Bytes;
use lathe_protocol::Message;
use serde::Serialize;

use crate::form::{Form, ToolForm, Wire};
use crate::images::Picture;
use crate::request::Head;
use crate::{chat, gemini, messages, ollama, responses, shim};

/// The author of the last message that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastSpeaker {
    Start,
    User,
    Assistant,
}

impl LastSpeaker {
    pub(crate) fn after(message: &Message) -> Self {
        match message {
            Message::User(_) | Message::Tool(_) => LastSpeaker::User,
            Message::Assistant(_) => LastSpeaker::Assistant,
        }
    }
}

pub(crate) fn head(form: &Form, head: &Head) -> Bytes {
    let described;
    let head = match form.params.tools {
        ToolForm::Native => head,
        ToolForm::Described => {
            described = shim::head(head);
            &described
        }
    };
    let params = &form.params;
    Bytes::from(match form.wire {
        Wire::Chat => chat::head(head, params),
        Wire::Messages => messages::head(head, params),
        Wire::Responses => responses::head(head, params),
        Wire::Gemini => gemini::head(head, params),
        Wire::Ollama => ollama::head(head, params),
    })
}

/// The piece of a message. None if no part of it may be sent.
pub(crate) fn piece(
    form: &Form,
    message: &Message,
    pictures: &[Picture],
    before: LastSpeaker,
) -> Option<Bytes> {
    let described;
    let message = match form.params.tools {
        ToolForm::Native => message,
        ToolForm::Described => {
            described = shim::message(message);
            &described
        }
    };
    let params = &form.params;
    let bytes = match form.wire {
        Wire::Chat => chat::piece(message, pictures, params),
        Wire::Messages => messages::piece(message, pictures, before),
        Wire::Responses => responses::piece(message, pictures, before),
        Wire::Gemini => gemini::piece(message, pictures, before),
        Wire::Ollama => ollama::piece(message, pictures),
    };
    bytes.map(Bytes::from)
}

/// Tells whether results are text only, so that their pictures follow the last result of the answer.
pub(crate) fn sends_pictures_apart(form: &Form) -> bool {
    match (form.params.tools, form.wire) {
        (ToolForm::Described, _) | (_, Wire::Messages | Wire::Responses) => false,
        // Gemini requires the results of an answer one after the other.
        (ToolForm::Native, Wire::Chat | Wire::Ollama | Wire::Gemini) => true,
    }
}

/// The end of a body after its last message.
pub(crate) fn tail(form: &Form, before: LastSpeaker) -> Bytes {
    match form.wire {
        Wire::Chat | Wire::Responses | Wire::Ollama => Bytes::from_static(b"]}"),
        Wire::Messages => messages::tail(before),
        Wire::Gemini => gemini::tail(before),
    }
}

/// The mark between two pieces that makes the provider cache everything before it, if the wire has one.
pub(crate) fn cache_mark(form: &Form) -> Option<Bytes> {
    match form.wire {
        Wire::Messages => Some(Bytes::from_static(messages::MARK)),
        Wire::Chat | Wire::Responses | Wire::Gemini | Wire::Ollama => None,
    }
}

/// Our own types always serialise: keys are strings, and raw JSON was checked when it was made.
pub(crate) fn json<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

/// A body whose last member is an open list: without its final `]}`.
pub(crate) fn open_list<T: Serialize>(body: &T) -> Vec<u8> {
    let mut bytes = json(body);
    bytes.truncate(bytes.len().saturating_sub(2));
    bytes
}

/// An item of a list, with the comma that separates it from the previous one.
pub(crate) fn item<T: Serialize>(value: &T, is_first: bool) -> Vec<u8> {
    let mut bytes = if is_first { Vec::new() } else { vec![b','] };
    bytes.extend_from_slice(&json(value));
    bytes
}
