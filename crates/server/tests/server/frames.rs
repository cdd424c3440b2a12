//! The frames of a run agree with the journal and the trajectory.

use lathe_protocol::Mode;
use serde_json::{Value, json};

use crate::kit::{Server, call, cassette, done, durable, say};

/// Thinking, parallel calls, one that fails, a long text, a file made and changed, the end.
fn scenario() -> String {
    cassette([
        json!([
            say("I look around."),
            call("a1", "view", json!({ "path": "a.txt" })),
            call("a2", "bash", json!({ "command": "echo 日本" }))
        ]),
        json!([call("b1", "bash", json!({ "command": "exit 3" }))]),
        json!([
            say(&"long ".repeat(400)),
            call("c1", "write", json!({ "path": "b.txt", "content": "two\n" }))
        ]),
        json!([call("d1", "edit", json!({ "path": "a.txt", "old_str": "nowhere", "new_str": "x" }))]),
        json!([
            call("e1", "edit", json!({ "path": "a.txt", "old_str": "one", "new_str": "uno" })),
            call("e2", "bash", json!({ "command": "API_KEY=sk-abcdefghijklmnopqrstuv true" }))
        ]),
        json!([say("All is done."), done("f1", "Both files are right.")]),
    ])
}

fn bubbles(frames: &[Value]) -> Vec<(String, String, String)> {
    let data = |frame: &Value, key: &str| frame["data"][key].as_str().unwrap_or_default().to_owned();
    let of = |frame: &Value| (data(frame, "id"), data(frame, "role"), data(frame, "content"));
    frames.iter().filter(|frame| frame["type"] == "bubble").map(of).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_and_bubbles_agree_with_the_trajectory() {
    let server = Server::start(scenario(), Mode::FullAuto).await;
    let mut socket = server.run("Mend the files.").await;
    let frames = socket.until("end").await;
    assert_eq!(socket.closed().await, Some((1000, "done".to_owned())));
    let frames = durable(&frames);
    let session = frames[0]["session_id"].as_str().unwrap().to_owned();
    assert_eq!(frames[0]["type"], "start");
    assert_eq!(frames[0]["data"]["working_dir"], server.root.display().to_string());
    assert!(
        frames[0]["data"]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .any(|tool| tool["name"] == "bash" && tool["parameters"]["type"] == "object")
    );
    assert!(frames.iter().all(|frame| frame["run_id"] == format!("{session}.1")));
    let completed = &frames[frames.len() - 2]["data"];
    assert_eq!(
        (&completed["success"], &completed["final_result"], &completed["steps_count"]),
        (&json!(true), &json!("Both files are right."), &json!(6))
    );
    // The trajectory of the same run, step by step.
    let path = completed["trajectory_file"].as_str().unwrap().to_owned();
    lathe_testkit::eventually(std::time::Duration::from_secs(10), "the trajectory is written", || {
        std::fs::metadata(&path).is_ok()
    });
    let trajectory: Value = serde_json::from_str(
        // The file on disk keeps the truth; what goes over the wire is masked.
        &std::fs::read_to_string(path).unwrap().replace("sk-abcdefghijklmnopqrstuv", "«secret»"),
    )
    .unwrap();
    assert_eq!(trajectory["final_result"], completed["final_result"]);
    let steps = trajectory["agent_steps"].as_array().unwrap();
    assert_eq!(steps.len(), 6);
    for step in steps {
        let number = &step["step_number"];
        let last = frames
            .iter()
            .rev()
            .find(|frame| frame["type"] == "step" && frame["data"]["step_number"] == *number)
            .unwrap();
        let sent = &last["data"];
        assert_eq!(sent["state"], step["state"], "{number}");
        assert_eq!(sent["error"], step["error"]);
        assert_eq!(sent["reflection"], step["reflection"]);
        assert_eq!(sent["tool_calls"], step["tool_calls"]);
        assert_eq!(sent["llm_response"]["content"], step["llm_response"]["content"]);
        let results = step["tool_results"].as_array().cloned().unwrap_or_default();
        let shown = sent["tool_results"].as_array().unwrap();
        assert_eq!(shown.len(), results.len());
        for (shown, result) in shown.iter().zip(&results) {
            for key in ["call_id", "name", "success", "result", "error"] {
                assert_eq!(shown[key], result[key], "{number} {key}");
            }
        }
        for call in step["tool_calls"].as_array().into_iter().flatten() {
            let id = format!("tc-{number}-{}", call["call_id"].as_str().unwrap());
            let mark = results
                .iter()
                .find(|result| result["call_id"] == call["call_id"])
                .map(|result| if result["success"] == true { "✅" } else { "❌" });
            let forms: Vec<_> = bubbles(&frames)
                .into_iter()
                .filter(|(known, ..)| *known == id)
                .map(|(_, _, content)| content)
                .collect();
            assert_eq!(forms.len(), 2, "{id} goes out at the call and again with its mark");
            assert_eq!(forms[1], format!("{} {}", forms[0], mark.unwrap()), "{id}");
        }
    }
    let all = bubbles(&frames);
    assert!(all.iter().any(|(id, _, content)| id == "seq-3"
        && content.starts_with("🧠 sequentialthinking 3：long ")
        && content.ends_with("\n<response clipped> ✅")));
    assert!(all.iter().any(|(id, ..)| id == "seq-reflect-4"), "{all:?}");
    assert!(all.iter().any(|(id, role, content)| id == "taskdone-6"
        && role == "agent"
        && content == "Both files are right."));
    assert!(all.iter().all(|(_, _, content)| !content.contains("sk-abcdefghijklmnop")));
    let changed: Vec<&str> = frames
        .iter()
        .filter(|frame| frame["type"] == "file_changed")
        .map(|frame| frame["data"]["path"].as_str().unwrap())
        .collect();
    assert_eq!(
        changed,
        [server.root.join("b.txt").display().to_string(), server.root.join("a.txt").display().to_string()]
    );
    // All of it again from the journal, and from any place in it.
    let mut again = server.socket(&format!("?session_id={session}&until_end=true")).await;
    assert_eq!(durable(&again.until("end").await), frames);
    for (at, frame) in frames.iter().enumerate().step_by(3).filter(|(at, _)| at + 1 < frames.len()) {
        let from = frame["cursor"].as_str().unwrap();
        let mut socket = server.socket(&format!("?session_id={session}&from={from}&until_end=true")).await;
        assert_eq!(durable(&socket.until("end").await), frames[at + 1..], "from {from}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_run_of_a_session_has_ids_and_a_trajectory_of_its_own() {
    let answers = (1..=2).map(|n| json!([say(&format!("turn {n}"))]));
    let server = Server::start(cassette(answers), Mode::FullAuto).await;
    let (status, started) = server.post("/agent/interactive/start", json!({})).await;
    assert_eq!(status, 200, "{started}");
    let session = started["session_id"].as_str().unwrap();
    for n in 1..=2 {
        let mut socket = server.socket("").await;
        socket.say(&json!({ "session_id": session, "task": format!("task {n}") })).await;
        let frames = durable(&socket.until("end").await);
        assert_eq!(frames[0]["type"], "start");
        assert_eq!(frames[0]["data"]["task"], format!("task {n}"));
        assert!(frames.iter().all(|frame| frame["run_id"] == format!("{session}.{n}")));
        assert!(
            bubbles(&frames).iter().any(|(id, _, content)| id == "llm-1" && *content == format!("turn {n}"))
        );
        let file =
            frames.last().and_then(|_| frames[frames.len() - 2]["data"]["trajectory_file"].as_str()).unwrap();
        assert!(file.ends_with(if n == 1 { ".json" } else { "-2.json" }), "{file}");
    }
    let (_, status) = server.get(&format!("/agent/interactive/status?session_id={session}")).await;
    assert_eq!(status["running"], false);
    let (_, closed) = server.post(&format!("/agent/interactive/close?session_id={session}"), json!({})).await;
    assert_eq!(closed["closed"], true);
    // It is opened again when it is wanted.
    let (status, _) = server.get("/agent/interactive/status?session_id=nobody").await;
    assert_eq!(status, 404);
    server.stop().await;
}
