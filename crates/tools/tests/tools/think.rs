//! Thoughts, and the end of a task.

use lathe_protocol::{CallFinished, Raw, ToolErrorKind};
use serde_json::{Value, json};

use crate::bench::{lathe, trae};

const TOOL: &str = "sequentialthinking";

fn thought(number: i64, total: i64, more: Value) -> Value {
    let mut call = json!({
        "thought": "hm",
        "thought_number": number,
        "total_thoughts": total,
        "next_thought_needed": true,
    });
    call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    call
}

fn status(number: i64, total: i64, needed: bool, branches: &str, history: usize) -> String {
    format!(
        "Sequential thinking step completed.\n\nStatus:\n{{\n  \"thought_number\": {number},\n  \"total_thoughts\": {total},\n  \"next_thought_needed\": {needed},\n  \"branches\": {branches},\n  \"thought_history_length\": {history}\n}}"
    )
}

#[tokio::test]
async fn thoughts_are_counted_on_with_their_branches() {
    let mut bench = trae();
    for (call, expected) in [
        (thought(1, 3, json!({})), status(1, 3, true, "[]", 1)),
        (thought(2, 3, json!({ "is_revision": true, "revises_thought": 1 })), status(2, 3, true, "[]", 2)),
        (
            thought(3, 3, json!({ "branch_from_thought": 1, "branch_id": "b" })),
            status(3, 3, true, "[\n    \"b\"\n  ]", 3),
        ),
        (
            thought(4, 3, json!({ "branch_from_thought": 1, "branch_id": "b" })),
            status(4, 4, true, "[\n    \"b\"\n  ]", 4),
        ),
        (
            thought(
                5,
                5,
                json!({ "next_thought_needed": false, "revises_thought": 0, "branch_from_thought": 0, "branch_id": "", "needs_more_thoughts": null }),
            ),
            status(5, 5, false, "[\n    \"b\"\n  ]", 5),
        ),
        (
            thought(6, 6, json!({ "branch_from_thought": null, "branch_id": "not a branch" })),
            status(6, 6, true, "[\n    \"b\"\n  ]", 6),
        ),
    ] {
        assert_eq!(bench.told(TOOL, call).await, expected);
    }
}

#[tokio::test]
async fn wrong_thoughts_are_refused_and_not_counted() {
    let mut bench = trae();
    for (key, value, reason) in [
        ("thought", json!(1), "Invalid thought: must be a string"),
        ("thought_number", json!("one"), "Invalid thought_number: must be a number"),
        ("total_thoughts", json!(null), "Invalid total_thoughts: must be a number"),
        ("next_thought_needed", json!("yes"), "Invalid next_thought_needed: must be a boolean"),
        ("thought_number", json!(0), "thought_number must be at least 1"),
        ("total_thoughts", json!(-1), "total_thoughts must be at least 1"),
        ("revises_thought", json!(-1), "revises_thought must be a positive integer"),
        ("branch_from_thought", json!("x"), "branch_from_thought must be a positive integer"),
    ] {
        let call = thought(1, 1, json!({ key: value }));
        assert_eq!(
            bench.refused(TOOL, call).await,
            (
                ToolErrorKind::InvalidToolParams,
                format!(
                    "Sequential thinking failed: {reason}\n\nDetails:\n{{\n  \"error\": \"{reason}\",\n  \"status\": \"failed\"\n}}"
                )
            )
        );
    }
    assert_eq!(bench.told(TOOL, thought(1, 1, json!({}))).await, status(1, 1, true, "[]", 1));
}

#[tokio::test]
async fn lathes_thought_is_noted_and_counted() {
    let mut bench = lathe();
    for number in 1..=2 {
        let finished = bench.call("think", json!({ "thought": "first this,\nthen that" })).await;
        assert_eq!(
            finished,
            CallFinished {
                name: "think".to_owned(),
                text: "Noted.".to_owned(),
                error: None,
                data: Raw::from_serialize(&json!({ "thought_number": number, "total_thoughts": number }))
                    .ok(),
                truncated: None,
                changes: Vec::new(),
                not_undoable: Vec::new(),
                others: Vec::new(),
                broken: Vec::new(),
                seen: Vec::new(),
                attachments: Vec::new(),
                memory: Raw::from_serialize(&json!({ "thoughts": number, "branches": [] })).ok(),
                review: None,
                took_ms: 0,
            }
        );
    }
}

#[tokio::test]
async fn a_memory_that_cannot_be_read_begins_anew() {
    let mut bench = lathe();
    bench.memory.insert("think", Raw::parse("{\"other\":1}").unwrap());
    let finished = bench.call("think", json!({ "thought": "hm" })).await;
    assert_eq!(finished.memory.unwrap().get(), r#"{"thoughts":1,"branches":[]}"#);
}

#[tokio::test]
async fn a_task_is_done_in_both_toolsets() {
    let finished = lathe().call("task_done", json!({ "summary": "it works" })).await;
    assert_eq!((finished.text.as_str(), finished.error), ("Task done.", None));
    assert_eq!(finished.data.unwrap().get(), r#"{"summary":"it works"}"#);
    let finished = trae().call("task_done", json!({ "anything": 1 })).await;
    assert_eq!((finished.text.as_str(), finished.error), ("Task done.", None));
    assert_eq!(finished.data.unwrap().get(), r#"{"summary":""}"#);
}
