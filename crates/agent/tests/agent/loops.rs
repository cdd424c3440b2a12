use lathe_agent::Action;
use lathe_protocol::{AgentState, StepState};
use lathe_protocol::{
    ApprovalAnswer, CallId, Ending, EndingRule, EpochCause, Lane, ModelFailure, StepNo, ToolErrorKind,
    Verdict,
};

use crate::conversation::{Conversation, options};

fn id(call: &str) -> CallId {
    CallId::new(call)
}

fn ends_with(conversation: &Conversation, ending: Ending) {
    let actions = conversation.next();
    assert!(
        matches!(actions.as_slice(), [Action::Finish { ending: found, .. }] if *found == ending),
        "{actions:?}"
    );
}

#[test]
fn an_idle_session_does_nothing_and_a_task_makes_it_ask() {
    let mut conversation = Conversation::new();
    assert_eq!((conversation.next(), conversation.state.agent), (vec![], AgentState::Idle));
    conversation.task("t1");
    assert_eq!(conversation.state.agent, AgentState::Running);
    assert_eq!(conversation.act(), [Action::StartEpoch(EpochCause::SessionOpened)]);
    assert_eq!(conversation.act(), [Action::Ask(StepNo(1))]);
    assert_eq!((conversation.next(), conversation.state.step_state()), (vec![], Some(StepState::Thinking)));
}

#[test]
fn step_states_go_their_way_and_never_back() {
    let mut conversation = Conversation::asked();
    let mut seen = vec![conversation.state.step_state().unwrap()];
    conversation.answer("look", &["a"]);
    seen.push(conversation.state.step_state().unwrap());
    conversation.decide("a", "view", Lane::Reader, Verdict::Allow);
    conversation.start("a");
    conversation.finish("a", Some(ToolErrorKind::FileNotFound));
    seen.push(conversation.state.step_state().unwrap());
    assert!(matches!(conversation.act().as_slice(), [Action::Reflect(_)]));
    seen.push(conversation.state.step_state().unwrap());
    assert_eq!(
        seen,
        [StepState::Thinking, StepState::CallingTool, StepState::Reflecting, StepState::Completed]
    );
    assert_eq!(conversation.act(), [Action::Ask(StepNo(2))]);
    conversation.failed(ModelFailure::Refused);
    assert_eq!(conversation.state.step_state(), Some(StepState::Error));
}

#[test]
fn calls_are_decided_first_then_run_by_their_lanes_and_task_done_last() {
    let mut conversation = Conversation::asked();
    conversation.answer("", &["done", "v1", "v2", "b"]);
    assert_eq!(conversation.next(), ["done", "v1", "v2", "b"].map(|call| Action::Decide(id(call))));
    conversation.decide("done", "done", Lane::Last, Verdict::Allow);
    conversation.decide("v1", "view", Lane::Reader, Verdict::Allow);
    conversation.decide("v2", "view", Lane::Reader, Verdict::Allow);
    conversation.decide("b", "bash", Lane::Alone, Verdict::Allow);
    assert_eq!(conversation.next(), [Action::Run(id("v1")), Action::Run(id("v2"))]);
    conversation.start("v1");
    conversation.start("v2");
    assert_eq!(conversation.next(), []);
    conversation.finish("v2", None);
    assert_eq!(conversation.next(), []);
    conversation.finish("v1", None);
    assert_eq!(conversation.next(), [Action::Run(id("b"))]);
    conversation.start("b");
    conversation.finish("b", Some(ToolErrorKind::TimedOut));
    assert_eq!(conversation.next(), [Action::Run(id("done"))]);
    conversation.start("done");
    conversation.finish("done", None);
    assert_eq!(conversation.next(), [Action::Finish { ending: Ending::Done, result: "all good".into() }]);
    conversation.act();
    assert_eq!((conversation.state.agent, conversation.next()), (AgentState::Completed, vec![]));
}

#[test]
fn a_denied_call_is_closed_with_its_reason_and_the_rest_runs() {
    let mut conversation = Conversation::asked();
    conversation.answer("", &["w", "v"]);
    conversation.decide("w", "write", Lane::Alone, Verdict::Deny);
    conversation.decide("v", "view", Lane::Reader, Verdict::Allow);
    let actions = conversation.next();
    assert!(
        matches!(&actions[..], [Action::Close { kind: ToolErrorKind::PolicyViolation, message, .. }, Action::Run(call)]
            if message == "Tool execution denied by policy. because" && *call == id("v")),
        "{actions:?}"
    );
}

#[test]
fn what_is_asked_about_keeps_its_place_and_runs_when_allowed() {
    let mut conversation = Conversation::asked();
    conversation.answer("", &["v", "w", "x"]);
    conversation.decide("v", "view", Lane::Reader, Verdict::Allow);
    conversation.decide("w", "write", Lane::Alone, Verdict::Ask);
    conversation.decide("x", "bash", Lane::Alone, Verdict::Allow);
    assert_eq!(conversation.next(), [Action::Run(id("v"))]);
    conversation.start("v");
    assert_eq!(conversation.next(), []);
    conversation.finish("v", None);
    assert_eq!(conversation.next(), [Action::AskApproval(id("w"))]);
    let question = conversation.question("w");
    assert_eq!(conversation.next(), [], "everything behind it waits");
    assert_eq!(conversation.state.approvals.len(), 1);
    conversation.say("w", question, ApprovalAnswer::Once, None);
    assert!(conversation.state.approvals.is_empty());
    assert_eq!(conversation.next(), [Action::Run(id("w"))]);
}

#[test]
fn a_persons_no_is_told_with_its_reason_and_is_no_wall() {
    for (reason, told) in
        [(Some("use b"), "Denied by the user: use b"), (None, "Denied by the user. Nothing was done.")]
    {
        let mut conversation = Conversation::asked();
        for _ in 0..3 {
            conversation.answer("", &["w"]);
            conversation.decide("w", "write", Lane::Alone, Verdict::Ask);
            let question = conversation.question("w");
            conversation.say("w", question, ApprovalAnswer::No, reason);
            let actions = conversation.act();
            assert!(
                matches!(&actions[..], [Action::Close { message, .. }] if message == told),
                "{actions:?}"
            );
            conversation.act();
            assert!(matches!(conversation.act().as_slice(), [Action::Ask(_)]));
        }
        assert_eq!(conversation.state.denied_steps, 0);
    }
}

#[test]
fn a_cancelled_question_closes_its_call() {
    let mut conversation = Conversation::asked();
    conversation.answer("", &["w"]);
    conversation.decide("w", "write", Lane::Alone, Verdict::Ask);
    conversation.question("w");
    conversation.cancel();
    assert!(matches!(&conversation.next()[..], [Action::Close { kind: ToolErrorKind::Cancelled, .. }]));
}

#[test]
fn three_steps_denied_as_a_whole_end_the_run() {
    let mut conversation = Conversation::asked();
    for round in 1..=3 {
        conversation.answer("", &["w"]);
        conversation.decide("w", "write", Lane::Alone, Verdict::Deny);
        conversation.act();
        assert!(matches!(conversation.act().as_slice(), [Action::Reflect(_)]), "round {round}");
        if round < 3 {
            conversation.act();
        }
    }
    ends_with(&conversation, Ending::Denied);
}

#[test]
fn text_without_calls_is_reminded_of_once_where_a_call_ends_the_task() {
    let mut conversation = Conversation::asked();
    conversation.answer("I am done", &[]);
    assert!(matches!(conversation.act().as_slice(), [Action::Remind(_)]));
    conversation.act();
    conversation.answer("Really", &[]);
    assert_eq!(conversation.next(), [Action::Finish { ending: Ending::Answered, result: "Really".into() }]);
}

#[test]
fn text_without_calls_ends_the_turn_elsewhere() {
    let mut conversation =
        Conversation::with(lathe_protocol::SessionOptions { ending: EndingRule::EndTurn, ..options() });
    conversation.task("t1");
    conversation.act();
    conversation.act();
    conversation.answer("Hello", &[]);
    ends_with(&conversation, Ending::Answered);
}

#[test]
fn an_empty_answer_is_asked_again_and_then_a_failure() {
    let mut conversation = Conversation::asked();
    conversation.answer("", &[]);
    assert!(matches!(conversation.act().as_slice(), [Action::Remind(_)]));
    conversation.act();
    conversation.answer("", &[]);
    ends_with(&conversation, Ending::Failed);
}

#[test]
fn steps_are_limited_by_run_and_numbered_through_the_session() {
    let mut conversation = Conversation::new();
    for task in ["t1", "t2"] {
        conversation.task(task);
        if task == "t1" {
            conversation.act();
        }
        for _ in 0..5 {
            assert!(matches!(conversation.act().as_slice(), [Action::Ask(_)]));
            conversation.answer("", &["a"]);
            conversation.go("a", "bash");
        }
        ends_with(&conversation, Ending::StepsUsedUp);
        conversation.act();
    }
    assert_eq!(conversation.step(), StepNo(10));
}

#[test]
fn an_unanswered_step_is_asked_again_under_its_number_and_counts_once() {
    let mut conversation = Conversation::asked();
    conversation.failed(ModelFailure::Interrupted);
    assert_eq!(conversation.state.steps_in_run, 1);
    // The step that had no answer is the one to be done.
    assert_eq!(conversation.next(), [Action::Ask(StepNo(1))]);
}

#[test]
fn the_models_failures_end_the_run_by_their_kind() {
    for (kind, ending) in [
        (ModelFailure::Refused, Ending::ModelUnavailable),
        (ModelFailure::Unavailable, Ending::ModelUnavailable),
        (ModelFailure::Diverged, Ending::Failed),
        (ModelFailure::Cancelled, Ending::Cancelled),
    ] {
        let mut conversation = Conversation::asked();
        conversation.failed(kind);
        ends_with(&conversation, ending);
    }
}

#[test]
fn cancelling_closes_what_waits_waits_for_what_runs_and_then_ends() {
    let mut conversation = Conversation::asked();
    conversation.answer("", &["a", "b", "c"]);
    conversation.decide("a", "bash", Lane::Alone, Verdict::Allow);
    conversation.decide("b", "bash", Lane::Alone, Verdict::Allow);
    conversation.start("a");
    conversation.cancel();
    let closed: Vec<CallId> = conversation
        .act()
        .into_iter()
        .map(|action| match action {
            Action::Close { call, kind: ToolErrorKind::Cancelled, .. } => call,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(closed, [id("b"), id("c")]);
    assert_eq!(conversation.next(), []);
    conversation.finish("a", Some(ToolErrorKind::Cancelled));
    ends_with(&conversation, Ending::Cancelled);
    conversation.act();
    // The next task begins with a clean slate.
    conversation.task("t2");
    assert_eq!(conversation.next(), [Action::Ask(StepNo(2))]);
}

#[test]
fn cancelling_while_the_model_thinks_waits_for_the_model_to_let_go() {
    let mut conversation = Conversation::asked();
    conversation.cancel();
    assert_eq!(conversation.next(), []);
    conversation.failed(ModelFailure::Cancelled);
    ends_with(&conversation, Ending::Cancelled);
}

#[test]
fn a_full_disk_ends_the_run() {
    let mut conversation = Conversation::asked();
    conversation.answer("", &["a", "b"]);
    conversation.decide("a", "edit", Lane::Alone, Verdict::Allow);
    conversation.decide("b", "bash", Lane::Alone, Verdict::Allow);
    conversation.start("a");
    conversation.finish("a", Some(ToolErrorKind::NoSpaceLeft));
    assert_eq!(conversation.next(), [Action::Run(id("b"))]);
    conversation.start("b");
    conversation.finish("b", None);
    assert_eq!(conversation.next(), [Action::Finish { ending: Ending::DiskFull, result: "full".into() }]);
}

#[test]
fn a_command_is_remembered_by_its_id() {
    let conversation = Conversation::asked();
    let taken: Vec<&str> = conversation.state.taken.keys().map(lathe_protocol::CommandId::as_str).collect();
    assert_eq!(taken, ["t1"]);
}

#[test]
fn the_state_survives_a_snapshot() {
    let mut conversation = Conversation::asked();
    conversation.answer("x", &["a"]);
    conversation.decide("a", "bash", Lane::Alone, Verdict::Allow);
    let saved = serde_json::to_vec(&conversation.state).unwrap();
    assert_eq!(serde_json::from_slice::<lathe_agent::State>(&saved).unwrap(), conversation.state);
}
