//! The data of frames that an event gives whole.

use lathe_protocol::{ApprovalAsked, ApprovalExpired, ApprovalGiven, Event, Reviewed, ToolSpec};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::frames::raw;

pub(super) fn tools(specs: &[ToolSpec]) -> Box<RawValue> {
    #[derive(Serialize)]
    struct Tool<'a> {
        name: &'a str,
        description: &'a str,
        parameters: &'a lathe_protocol::Raw,
    }
    let tools: Vec<Tool<'_>> = specs
        .iter()
        .map(|spec| Tool { name: &spec.name, description: &spec.description, parameters: &spec.schema })
        .collect();
    raw(&tools)
}

pub(super) fn asked_data(event: &Event, asked: &ApprovalAsked) -> Value {
    json!({
        "question": event.seq,
        "state": "asked",
        "call_id": event.place.call,
        "what": asked.what,
        "rule": asked.rule,
        "reason": asked.reason,
        "remember": asked.remember,
        "timestamp": event.at.to_string(),
    })
}

pub(super) fn given_data(event: &Event, given: &ApprovalGiven) -> Value {
    json!({
        "question": event.place.cause,
        "state": "given",
        "call_id": event.place.call,
        "answer": given.answer,
        "reason": given.reason,
        "edited": given.edited,
        "by": given.by,
        "command": given.command.as_sent(),
    })
}

pub(super) fn expired_data(event: &Event, expired: &ApprovalExpired) -> Value {
    json!({
        "question": event.place.cause,
        "state": "expired",
        "call_id": event.place.call,
        "reason": expired.reason,
    })
}

/// The verdict of a judge. `pass` is null if there is none, and `failure` says why.
pub(super) fn review_data(event: &Event, target: Option<&str>, review: &Reviewed) -> Value {
    let verdict = review.verdict.as_ref();
    json!({
        "call_id": event.place.call,
        "target": target,
        "pass": verdict.map(|verdict| verdict.pass),
        "reasons": verdict.map_or(&[][..], |verdict| &verdict.reasons),
        "suggestions": verdict.map_or(&[][..], |verdict| &verdict.suggestions),
        "locations": verdict.map_or(&[][..], |verdict| &verdict.locations),
        "failure": review.failure,
        "timestamp": event.at.to_string(),
    })
}
