//! Lakeview: steps that are summarised during a run.

use lathe_protocol::Mode;
use serde_json::{Value, json};

use crate::kit::{Server, Socket, call, cassette, done, durable, say};

/// Two steps: one that looks, and the end.
fn run() -> Vec<Value> {
    vec![
        json!([say("I look at the file."), call("c1", "view", json!({ "path": "a.txt" }))]),
        json!([done("c2", "all read")]),
    ]
}

/// The same with what the model says of steps, in its own lane.
fn with_lane(said: &[&str]) -> String {
    with_dear_lane(said, 100)
}

/// The same, where each of these answers takes so many tokens.
fn with_dear_lane(said: &[&str], tokens: u64) -> String {
    let mut text = cassette(run());
    for said in said {
        let line = json!({ "purpose": "lakeview", "answer": { "blocks": [say(said)], "usage": { "input_tokens": tokens, "output_tokens": 10 } } });
        text.push('\n');
        text.push_str(&line.to_string());
    }
    text
}

const FIRST: &str = "<task>reads the only file</task><details>Looks at `a.txt`.</details>";
const LAST: &str = "<task>reports that all was read</task><details>Ends the task.</details>";

/// Runs the task; gives the session.
async fn ran(server: &Server, request: Value) -> String {
    let (status, result) = server.post("/agent/run", request).await;
    assert_eq!(status, 200, "{result}");
    assert_eq!(result["success"], true);
    result["session_id"].as_str().unwrap().to_owned()
}

async fn attached(server: &Server, id: &str) -> (Socket, Vec<Value>) {
    let mut socket = server.socket(&format!("?session_id={id}&from=0")).await;
    let frames = socket.until("end").await;
    (socket, frames)
}

/// Waits for the step of this number with a summary.
async fn summary_of(socket: &mut Socket, number: u64) -> String {
    loop {
        let frame = socket.next().await.expect("the connection stays");
        let data = &frame["data"];
        if frame["type"] == "step" && data["step_number"] == number && data["lakeview_summary"].is_string() {
            return data["lakeview_summary"].as_str().unwrap().to_owned();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finished_session_that_is_summed_up_updates_the_step_of_an_attached_client() {
    let lane = [FIRST, "<tags>EXAMINE_CODE</tags>", LAST, "<tags>REPORT,THINK</tags>"];
    let server = Server::start(with_lane(&lane), Mode::FullAuto).await;
    let id = ran(&server, json!({ "task": "read it" })).await;
    let (mut socket, before) = attached(&server, &id).await;
    assert!(before.iter().all(|frame| frame["data"]["lakeview_summary"].is_null()));
    let (status, answer) = server.post("/lakeview/summary", json!({ "session_id": id })).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(
        answer["summaries"],
        json!([
            { "step_number": 1, "task": "reads the only file", "details": "Looks at `a.txt`.", "tags": ["EXAMINE_CODE"] },
            { "step_number": 2, "task": "reports that all was read", "details": "Ends the task.", "tags": ["REPORT", "THINK"] },
        ])
    );
    assert_eq!((&answer["count"], &answer["errors"]), (&json!(2), &json!([])));
    assert_eq!(summary_of(&mut socket, 1).await, "[👁️EXAMINE_CODE] reads the only file — Looks at `a.txt`.");
    assert_eq!(
        summary_of(&mut socket, 2).await,
        "[📣REPORT · 🧠THINK] reports that all was read — Ends the task."
    );
    // The trajectory of the run has it too, and is otherwise unchanged.
    let file = server.home.join("trajectories").join(format!("{id}.json"));
    let trajectory: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let told: Vec<&Value> =
        trajectory["agent_steps"].as_array().unwrap().iter().map(|step| &step["lakeview_summary"]).collect();
    assert_eq!(told[0], "[👁️EXAMINE_CODE] reads the only file — Looks at `a.txt`.");
    assert_eq!(told.len(), 2);
    // What was said once is not asked again.
    let (_, again) = server.post("/lakeview/summary", json!({ "session_id": id })).await;
    assert_eq!(again["summaries"], answer["summaries"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_not_open_is_summed_up_in_its_journal_and_its_watchers_see_it() {
    let server = Server::start(with_lane(&[FIRST, "<tags>EXAMINE_CODE</tags>"]), Mode::FullAuto).await;
    let id = ran(&server, json!({ "task": "read it" })).await;
    let (_, closed) = server.post(&format!("/agent/interactive/close?session_id={id}"), json!({})).await;
    assert_eq!(closed["closed"], true);
    let (mut socket, _) = attached(&server, &id).await;
    let (status, answer) =
        server.post("/lakeview/summary", json!({ "session_id": id, "step_numbers": [1] })).await;
    assert_eq!((status, &answer["count"]), (200, &json!(1)), "{answer}");
    assert_eq!(summary_of(&mut socket, 1).await, "[👁️EXAMINE_CODE] reads the only file — Looks at `a.txt`.");
    let (_, session) = server.get(&format!("/api/sessions/{id}")).await;
    assert_eq!((&session["open"], &session["state"]), (&json!(false), &json!("completed")));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_model_changes_nothing_else() {
    // The recording has no such lane: the first question fails.
    let server = Server::start(cassette(run()), Mode::FullAuto).await;
    let mut socket = server.socket("").await;
    socket.say(&json!({ "task": "read it", "lakeview": true })).await;
    let frames = socket.until("end").await;
    let completed = frames.iter().find(|frame| frame["type"] == "completed").unwrap();
    assert_eq!(
        (&completed["data"]["success"], &completed["data"]["final_result"]),
        (&json!(true), &json!("all read"))
    );
    let id = completed["session_id"].as_str().unwrap().to_owned();
    let (mut socket, before) = attached(&server, &id).await;
    let (status, answer) = server.post("/lakeview/summary", json!({ "session_id": id })).await;
    assert_eq!((status, &answer["count"]), (200, &json!(0)));
    assert_eq!(answer["errors"].as_array().unwrap().len(), 2, "{answer}");
    // The client is alive, and a new one sees what the first has seen.
    socket.say(&json!({ "type": "steer" })).await;
    assert_eq!(socket.until("error").await.last().unwrap()["type"], "error");
    let (_, after) = attached(&server, &id).await;
    assert_eq!(durable(&before), durable(&after));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_cannot_be_read_is_asked_for_three_times_and_then_given_up() {
    let lane = ["no marks", "none again", FIRST, "<tags>MAGIC</tags>", "no", "no", "x", "x", "x"];
    let server = Server::start(with_lane(&lane), Mode::FullAuto).await;
    let id = ran(&server, json!({ "task": "read it" })).await;
    let (_, answer) = server.post("/lakeview/summary", json!({ "session_id": id })).await;
    assert_eq!(answer["summaries"][0]["task"], "reads the only file");
    assert_eq!(answer["summaries"][0]["tags"], json!(["OUTLIER"]));
    assert_eq!(
        answer["errors"],
        json!([{ "step_number": 2, "message": "the model's answer holds no <task> and <details>" }])
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_option_each_step_is_summed_up_by_itself() {
    let lane = [FIRST, "<tags>EXAMINE_CODE</tags>", LAST, "<tags>REPORT</tags>"];
    let server = Server::start(with_lane(&lane), Mode::FullAuto).await;
    let id = ran(&server, json!({ "task": "read it", "lakeview": true })).await;
    let mut socket = server.socket(&format!("?session_id={id}&from=0")).await;
    assert!(summary_of(&mut socket, 1).await.starts_with("[👁️EXAMINE_CODE]"));
    assert!(summary_of(&mut socket, 2).await.starts_with("[📣REPORT]"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_client_that_asked_gets_the_last_summary_before_its_connection_ends() {
    let lane = [FIRST, "<tags>EXAMINE_CODE</tags>", LAST, "<tags>REPORT</tags>"];
    let server = Server::start(with_lane(&lane), Mode::FullAuto).await;
    let mut socket = server.socket("").await;
    socket.say(&json!({ "task": "read it", "lakeview": true })).await;
    let mut summaries = std::collections::BTreeMap::new();
    let mut ended = false;
    while let Some(frame) = socket.next().await {
        ended |= frame["type"] == "end";
        if let Some(summary) = frame["data"]["lakeview_summary"].as_str() {
            summaries.insert(frame["data"]["step_number"].as_u64().unwrap(), summary.to_owned());
        }
    }
    assert!(ended && summaries[&1].starts_with("[👁️EXAMINE_CODE]"), "{summaries:?}");
    assert!(summaries[&2].starts_with("[📣REPORT]"), "{summaries:?}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stream_tells_each_step_when_it_is_there() {
    let lane = [FIRST, "<tags>EXAMINE_CODE</tags>"];
    let server = Server::start(with_lane(&lane), Mode::FullAuto).await;
    let id = ran(&server, json!({ "task": "read it" })).await;
    let body = json!({ "session_id": id, "update_trajectory": false }).to_string();
    let request = format!(
        "POST /lakeview/summary/stream HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        server.address,
        server.token,
        body.len()
    );
    let (status, text) = server.raw(&request).await;
    assert_eq!(status, 200);
    let kinds: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(kinds, ["start", "lakeview_step", "error", "end"], "{text}");
    // Nothing was kept.
    let (_, frames) = attached(&server, &id).await;
    assert!(frames.iter().all(|frame| frame["data"]["lakeview_summary"].is_null()));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_files_and_sessions_of_this_server_are_summed_up() {
    let server = Server::start(with_lane(&[]), Mode::FullAuto).await;
    let (status, _) = server.post("/lakeview/summary", json!({ "session_id": "nobody" })).await;
    assert_eq!(status, 404);
    let (status, _) = server.post("/lakeview/summary", json!({ "trajectory_file": "/etc/passwd" })).await;
    assert_eq!(status, 404);
    let (status, _) = server.post("/lakeview/summary", json!({})).await;
    assert_eq!(status, 400);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn summaries_that_are_not_kept_are_paid_for_and_none_passes_the_budget_by_more_than_one_answer() {
    // The budget is 200,000.
    for (tokens, close, summed_up) in
        [(120_000, false, [1, 0]), (120_000, true, [1, 0]), (250_000, true, [0, 0])]
    {
        let lane = [FIRST, "<tags>THINK</tags>", FIRST, "<tags>THINK</tags>"];
        let server = Server::start(with_dear_lane(&lane, tokens), Mode::FullAuto).await;
        let id = ran(&server, json!({ "task": "read it" })).await;
        if close {
            let path = format!("/agent/interactive/close?session_id={id}");
            assert_eq!(server.post(&path, json!({})).await.0, 200);
        }
        for count in summed_up {
            let wish = json!({ "session_id": id, "step_numbers": [1], "update_trajectory": false });
            let (status, answer) = server.post("/lakeview/summary", wish).await;
            assert_eq!((status, &answer["count"]), (200, &json!(count)), "{tokens} {close}: {answer}");
            let reason = answer["errors"][0]["message"].as_str().unwrap_or_default();
            assert!(count == 1 || reason.contains("budget"), "{answer}");
        }
        server.stop().await;
    }
}

/// Attack on the server, F7.
#[tokio::test(flavor = "multi_thread")]
async fn steps_that_are_named_are_few_and_those_there_are() {
    let server = Server::start(with_lane(&[FIRST, "<tags>EXAMINE_CODE</tags>"]), Mode::FullAuto).await;
    let id = ran(&server, json!({ "task": "read it" })).await;
    server.post(&format!("/agent/interactive/close?session_id={id}"), json!({})).await;
    let many: Vec<u32> = (0..1_001).collect();
    for path in ["/lakeview/summary", "/lakeview/summary/stream"] {
        let (status, body) = server.post(path, json!({ "session_id": id, "step_numbers": many })).await;
        assert_eq!(status, 422, "{path}: {body}");
    }
    let named = json!({ "session_id": id, "step_numbers": [99, 1, 1, 100] });
    let (status, answer) = server.post("/lakeview/summary", named).await;
    assert_eq!((status, &answer["count"]), (200, &json!(1)), "{answer}");
    let missing: Vec<&Value> =
        answer["errors"].as_array().unwrap().iter().map(|error| &error["step_number"]).collect();
    assert_eq!(missing, [&json!(99), &json!(100)]);
    server.stop().await;
}
