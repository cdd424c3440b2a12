//! Tests the order of results in requests: every order they can arrive in gives a request that a strict provider
//! accepts.

use std::sync::Arc;

use lathe_agent::History;
use lathe_model::{Variables, Wire};
use lathe_protocol::{AgentId, Lane, StepNo, Verdict};
use proptest::prelude::*;
use serde_json::Value;

use crate::conversation::Conversation;

fn messages(conversation: &Conversation) -> Vec<Value> {
    let mut history = History::new(Wire::Chat, AgentId::main(), Arc::new(Variables::none()));
    conversation.events.iter().for_each(|event| history.take(event));
    let body: Value = serde_json::from_slice(&history.request(StepNo(99)).body().unwrap()).unwrap();
    body["messages"].as_array().unwrap().clone()
}

proptest! {
    #[test]
    fn results_stand_in_the_order_of_the_calls(order in Just(vec![0_usize, 1, 2, 3]).prop_shuffle(), done in 0_usize..5) {
        let mut conversation = Conversation::asked();
        let calls = ["c0", "c1", "c2", "c3"];
        conversation.answer("", &calls);
        for call in calls {
            conversation.decide(call, "view", Lane::Reader, Verdict::Allow);
            conversation.start(call);
        }
        for at in order.iter().take(done) {
            conversation.finish(calls[*at], None);
        }
        let ids: Vec<String> = messages(&conversation)
            .iter()
            .filter(|message| message["role"] == "tool")
            .map(|message| message["tool_call_id"].as_str().unwrap().to_owned())
            .collect();
        // All or none: a conversation with half of the results is never sent.
        prop_assert_eq!(ids, if done >= 4 { calls.to_vec() } else { Vec::new() });
    }
}

#[test]
fn a_reflection_and_a_reminder_are_user_texts_after_the_results() {
    let mut conversation = Conversation::asked();
    conversation.answer("", &["a"]);
    conversation.decide("a", "view", Lane::Reader, Verdict::Allow);
    conversation.start("a");
    conversation.finish("a", Some(lathe_protocol::ToolErrorKind::FileNotFound));
    conversation.act();
    conversation.act();
    conversation.answer("text only", &[]);
    conversation.act();
    let roles: Vec<String> =
        messages(&conversation).iter().map(|message| message["role"].as_str().unwrap().to_owned()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "user", "assistant", "user"]);
}
