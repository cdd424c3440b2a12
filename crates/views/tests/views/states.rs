//! The seven states of a call, as clients see them.

use lathe_protocol::{
    Actor, ApprovalAnswer, ApprovalAsked, ApprovalGiven, CallStarted, CommandId, Proposal, ToolError,
    ToolErrorKind, Verdict,
};
use lathe_views::Projector;
use serde_json::{Value, json};

use crate::make::{Journal, call, result, usage};

fn told(journal: &Journal) -> (Vec<(String, String)>, Value) {
    let mut projector = Projector::new(lathe_protocol::SessionId::new("s"), "t");
    let (mut states, mut step) = (Vec::new(), Value::Null);
    for event in &journal.events {
        for frame in projector.take(event, &|_, _| Vec::new()) {
            let data: Value = serde_json::from_str(frame.data.get()).unwrap();
            match frame.kind {
                "call_state" => states.push((
                    data["call_id"].as_str().unwrap().to_owned(),
                    data["state"].as_str().unwrap().to_owned(),
                )),
                "step" => step = data,
                _ => {}
            }
        }
    }
    (states, step)
}

#[test]
fn every_state_of_a_call_is_told_when_it_begins() {
    let mut journal = Journal::new("m");
    let blocks = ["asked", "denied", "stopped"].map(|id| call(id, "bash", "{}")).to_vec();
    journal.task("go").asked().answered(blocks, usage(1, 1, 0));
    let (_, step) = told(&journal);
    assert_eq!(step["call_states"], json!(["validating", "validating", "validating"]));
    journal.decided("asked", Verdict::Ask, "r", "why");
    let what = Proposal::Other { about: "it".into() };
    let asked = ApprovalAsked { what, rule: "r".into(), reason: "why".into(), remember: Vec::new() };
    journal.add(Some("asked"), asked);
    let given = ApprovalGiven {
        answer: ApprovalAnswer::Once,
        reason: None,
        by: Actor::Person,
        command: CommandId::new("c"),
        edited: None,
    };
    journal
        .add(Some("asked"), given)
        .add(Some("asked"), CallStarted {})
        .add(Some("asked"), result("bash", "ok"));
    let failed = |kind| {
        let error = Some(ToolError { kind, message: "no".into() });
        lathe_protocol::CallFinished { error, ..result("bash", "no") }
    };
    journal.decided("denied", Verdict::Deny, "r", "why");
    journal.add(Some("denied"), failed(ToolErrorKind::PolicyViolation));
    journal.decided("stopped", Verdict::Allow, "r", "why").add(Some("stopped"), CallStarted {});
    journal.add(Some("stopped"), failed(ToolErrorKind::Cancelled));
    let (states, step) = told(&journal);
    let states: Vec<(&str, &str)> =
        states.iter().map(|(call, state)| (call.as_str(), state.as_str())).collect();
    assert_eq!(
        states,
        [
            ("asked", "awaiting_approval"),
            ("asked", "scheduled"),
            ("asked", "executing"),
            ("asked", "success"),
            ("denied", "error"),
            ("stopped", "scheduled"),
            ("stopped", "executing"),
            ("stopped", "cancelled"),
        ]
    );
    assert_eq!(step["call_states"], json!(["success", "error", "cancelled"]));
}

#[test]
fn a_kind_of_error_that_nobody_knows_is_read_as_unknown() {
    let error: ToolError = serde_json::from_str(r#"{"kind":"mcp_tool_error","message":"m"}"#).unwrap();
    assert_eq!(error.kind, ToolErrorKind::Unknown);
    assert_eq!(serde_json::to_value(ToolErrorKind::Unknown).unwrap(), "unknown");
}

#[test]
fn frames_of_some_kinds_have_the_cursors_that_they_have_among_all() {
    let mut journal = Journal::new("m");
    let blocks = vec![crate::make::text("I look."), call("a", "bash", r#"{"command":"ls"}"#)];
    journal.task("go").asked().answered(blocks, usage(1, 1, 0)).add(Some("a"), result("bash", "x"));
    let frames = |mut projector: Projector| -> Vec<(String, &str, String)> {
        let frames = journal.events.iter().flat_map(|event| projector.take(event, &|_, _| Vec::new()));
        frames.map(|frame| (frame.cursor.to_string(), frame.kind, frame.data.get().to_owned())).collect()
    };
    let projector = || Projector::new(lathe_protocol::SessionId::new("s"), "t");
    let mut all = frames(projector());
    assert!(all.iter().any(|(_, kind, _)| *kind == "step"));
    all.retain(|(_, kind, _)| ["start", "bubble"].contains(kind));
    assert!(all.len() > 3);
    assert_eq!(frames(projector().only(&["start", "bubble"])), all);
}
