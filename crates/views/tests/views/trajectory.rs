use lathe_protocol::StepState;
use lathe_protocol::{CallFinished, Ending, Event, ModelFailure, RunNo, ToolErrorKind, Toolset, Verdict};
use lathe_testkit::golden;
use lathe_views::{SessionView, TrajectoryBuilder};
use serde_json::{Value, json};

use crate::make::{Journal, call, demo, exited, long, options, result, text, usage};
use crate::schema::check;

fn build(run: Option<RunNo>, events: &[Event]) -> Value {
    let mut builder = TrajectoryBuilder::for_run(run);
    events.iter().for_each(|event| builder.take(event));
    let trajectory: Value = serde_json::from_str(&builder.to_json()).unwrap();
    check(&trajectory);
    trajectory
}

fn states(trajectory: &Value) -> Vec<&str> {
    let steps = trajectory["agent_steps"].as_array().unwrap();
    steps.iter().map(|step| step["state"].as_str().unwrap()).collect()
}

#[test]
fn a_small_run_reads_as_trae_would_have_written_it() {
    let mut builder = TrajectoryBuilder::new();
    demo().events.iter().for_each(|event| builder.take(event));
    let json = builder.to_json();
    check(&serde_json::from_str(&json).unwrap());
    golden(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/trajectory.json"), &format!("{json}\n"));
}

#[test]
fn two_hundred_steps_have_every_key_with_the_right_type_at_every_moment() {
    let journal = long(200);
    let mut builder = TrajectoryBuilder::new();
    for (at, event) in journal.events.iter().enumerate() {
        builder.take(event);
        if at % 97 == 0 {
            let running: Value = serde_json::from_str(&builder.to_json()).unwrap();
            check(&running);
            for key in ["end_time", "success", "final_result", "execution_time"] {
                assert_eq!(running[key], Value::Null, "{key} after event {at}");
            }
        }
    }
    assert!(builder.is_finished());
    let trajectory = build(None, &journal.events);
    assert_eq!(trajectory["agent_steps"].as_array().unwrap().len(), 200);
    assert_eq!(trajectory["llm_interactions"].as_array().unwrap().len(), 200);
    assert_eq!(trajectory["success"], false);
    assert_eq!(trajectory["final_result"], "Task execution exceeded maximum steps without completion.");
    assert_eq!(
        trajectory["execution_time"],
        json!(200.0 * 3.0 + 0.1 * (journal.events.len() as f64 - 202.0))
    );
}

#[test]
fn the_layout_is_that_of_python() {
    let mut builder = TrajectoryBuilder::new();
    demo().events.iter().for_each(|event| builder.take(event));
    let json = builder.to_json();
    // Raw numbers apart, serde's pretty form is the same layout.
    let json = json.replace("1e2", "100.0");
    let value: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json, serde_json::to_string_pretty(&value).unwrap());
}

#[test]
fn write_json_appends() {
    let builder = TrajectoryBuilder::new();
    let mut out = b"before ".to_vec();
    builder.write_json(&mut out);
    assert_eq!(String::from_utf8(out).unwrap(), format!("before {}", builder.to_json()));
}

#[test]
fn before_a_task_there_is_an_empty_trajectory() {
    let trajectory = build(None, &Journal::new("m").events);
    assert_eq!((&trajectory["task"], &trajectory["start_time"]), (&json!(""), &Value::Null));
    assert_eq!(trajectory["model"], "m");
}

#[test]
fn input_messages_are_only_the_new_ones_with_results_in_the_order_of_the_calls() {
    let trajectory = build(None, &demo().events);
    let roles = |at: usize| -> Vec<String> {
        let messages = trajectory["llm_interactions"][at]["input_messages"].as_array().unwrap();
        let short = |message: &Value| match &message["tool_result"] {
            Value::Null => {
                format!("{}: {}", message["role"].as_str().unwrap(), message["content"].as_str().unwrap())
            }
            result => format!(
                "{}: result of {}",
                message["role"].as_str().unwrap(),
                result["call_id"].as_str().unwrap()
            ),
        };
        messages.iter().map(short).collect()
    };
    assert_eq!(
        roles(0),
        ["system: You are Lathe.", "user: A test of this project fails. Find the cause and fix it."]
    );
    assert_eq!(roles(1), ["user: result of c1", "user: result of c2"]);
    assert_eq!(roles(2), ["user: result of c3", "user: result of c4", "user: Failed in this step: bash."]);
    assert_eq!(roles(3), ["user: Call `task_done`."]);
}

#[test]
fn with_traes_toolset_the_task_is_the_text_the_model_was_given() {
    let mut options = options("m");
    options.toolset = Toolset::Trae;
    let mut journal = Journal::opened(options, None);
    journal.task("Fix it.").asked().answered(vec![text("ok")], usage(1, 1, 0));
    let trajectory = build(None, &journal.events);
    let given = trajectory["llm_interactions"][0]["input_messages"][0]["content"].as_str().unwrap();
    assert!(given.starts_with("[Project root path]:\n/home/mira/till\n\n[Problem statement]: "), "{given}");
    assert!(given.ends_with("\nFix it.\n"));
    assert_eq!(trajectory["task"], "Fix it.");
    assert_eq!(trajectory["llm_interactions"][0]["tools_available"], Value::Null);
}

#[test]
fn a_step_whose_model_failed_is_an_error_without_an_interaction() {
    let mut journal = Journal::new("m");
    journal
        .task("t")
        .asked()
        .answered(vec![call("c", "bash", "{}")], usage(1, 1, 0))
        .ran("c", exited(0, "ok"))
        .asked()
        .failed(ModelFailure::Refused, "401: no such key")
        .finished(Ending::ModelUnavailable, "401: no such key");
    let trajectory = build(None, &journal.events);
    assert_eq!(states(&trajectory), ["completed", "error"]);
    assert_eq!(trajectory["agent_steps"][1]["error"], "401: no such key");
    assert_eq!(trajectory["agent_steps"][1]["llm_response"], Value::Null);
    assert_eq!(trajectory["llm_interactions"].as_array().unwrap().len(), 1);
}

#[test]
fn a_step_asked_for_again_after_an_interruption_is_one_step() {
    let mut journal = Journal::new("m");
    journal.task("t").asked().failed(ModelFailure::Interrupted, "stopped");
    assert_eq!(states(&build(None, &journal.events)), ["error"]);
    journal.asked_again();
    assert_eq!(states(&build(None, &journal.events)), ["thinking"]);
    journal.answered(vec![text("here")], usage(1, 1, 0));
    let trajectory = build(None, &journal.events);
    assert_eq!(states(&trajectory), ["completed"]);
    assert_eq!(trajectory["agent_steps"][0]["error"], Value::Null);
    assert_eq!(trajectory["agent_steps"][0]["step_number"], 1);
}

#[test]
fn the_state_of_the_last_step_is_the_true_one() {
    let mut journal = Journal::new("m");
    let seen = |journal: &Journal| states(&build(None, &journal.events)).join(",");
    journal.task("t").asked();
    assert_eq!(seen(&journal), "thinking");
    journal.answered(vec![call("c", "bash", "{}"), call("d", "bash", "{\"comm")], usage(1, 1, 0));
    assert_eq!(seen(&journal), "calling_tool");
    journal.decided("c", Verdict::Allow, "r", "x").ran("c", exited(0, "ok"));
    assert_eq!(seen(&journal), "calling_tool");
    journal.add(Some("d"), CallFinished::failed("bash", ToolErrorKind::InvalidToolParams, "not JSON"));
    assert_eq!(seen(&journal), "reflecting");
    let unreflected = journal.events.len();
    journal.reflected("Failed.");
    assert_eq!(seen(&journal), "completed");
    journal.events.truncate(unreflected);
    journal.finished(Ending::Cancelled, "Cancelled by the user.");
    let trajectory = build(None, &journal.events);
    assert_eq!(states(&trajectory), ["error"]);
    assert_eq!(trajectory["agent_steps"][0]["error"], "Cancelled by the user.");
    assert_eq!(trajectory["agent_steps"][0]["tool_calls"][1]["arguments"], "{\"comm");
}

#[test]
fn an_accepted_end_completes_its_step_whatever_failed_beside_it() {
    let mut journal = Journal::new("m");
    journal
        .task("t")
        .asked()
        .answered(vec![call("c", "bash", "{}"), call("d", "task_done", "{}")], usage(1, 1, 0))
        .ran("c", CallFinished::failed("bash", ToolErrorKind::TimedOut, "timed out"))
        .ran("d", result("task_done", "Task done."))
        .finished(Ending::Done, "Done.");
    let trajectory = build(None, &journal.events);
    assert_eq!(states(&trajectory), ["completed"]);
    assert_eq!(trajectory["agent_steps"][0]["reflection"], Value::Null);
    assert_eq!(SessionView::of(&journal.events).steps().next().unwrap().state(), StepState::Completed);
}

#[test]
fn a_command_that_exited_with_an_error_had_no_success_but_needs_no_reflection() {
    let trajectory = build(None, &demo().events);
    let results = &trajectory["agent_steps"][0]["tool_results"];
    assert_eq!((&results[0]["success"], &results[0]["error"]), (&json!(false), &json!("exit code 1")));
    assert_eq!(results[1]["success"], true);
    assert_eq!(states(&trajectory)[0], "completed");
}

#[test]
fn each_run_has_its_own_trajectory_with_steps_from_one() {
    let mut journal = demo();
    journal
        .task("And now?")
        .asked()
        .answered(vec![call("z", "task_done", "{}")], usage(1, 1, 0))
        .ran("z", result("task_done", "Task done."))
        .finished(Ending::Done, "Nothing more.");
    let (first, last) = (build(Some(RunNo(1)), &journal.events), build(None, &journal.events));
    assert_eq!(first, build(None, &demo().events));
    assert_eq!((&last["task"], &last["final_result"]), (&json!("And now?"), &json!("Nothing more.")));
    assert_eq!(last["agent_steps"][0]["step_number"], 1);
    // The head of the prompt is part of every run, also of one that did not make it.
    let messages = last["llm_interactions"][0]["input_messages"].as_array().unwrap();
    assert_eq!((messages.len(), &messages[0]["role"]), (2, &json!("system")));
    assert_eq!(last["llm_interactions"][0]["tools_available"], json!(["bash", "view", "edit", "task_done"]));
}

#[test]
fn times_are_written_by_the_function_handed_in() {
    let mut builder = TrajectoryBuilder::new().with_time(|at| format!("@{}", at.as_second()));
    demo().events.iter().for_each(|event| builder.take(event));
    let trajectory: Value = serde_json::from_str(&builder.to_json()).unwrap();
    assert_eq!(trajectory["start_time"], "@1794733200");
}
