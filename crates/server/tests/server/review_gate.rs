//! quality_review: edits are judged by rules, and the verdict may keep a task from ending.

use lathe_protocol::Mode;
use serde_json::{Value, json};

use crate::kit::{Server, call, cassette, done, durable};

fn lane(steps: Vec<Value>, verdicts: &[Value], tokens: u64) -> String {
    let mut text = cassette(steps);
    for verdict in verdicts {
        let said = match verdict {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let line = json!({ "purpose": "review", "answer": { "blocks": [{ "text": { "text": said } }], "usage": { "input_tokens": tokens, "output_tokens": 0 } } });
        text.push('\n');
        text.push_str(&line.to_string());
    }
    text
}

fn write(id: &str, content: &str) -> Value {
    call(id, "write", json!({ "path": format!("{id}.txt"), "content": content }))
}

fn fails(reason: &str) -> Value {
    json!({ "pass": false, "reasons": [reason], "suggestions": ["say more"], "locations": [{ "path": "w1.txt", "start_line": 1, "operation": "replace" }] })
}

fn passes() -> Value {
    json!({ "pass": true, "reasons": [], "suggestions": [], "locations": [] })
}

fn request(gate: bool) -> Value {
    json!({ "task": "write", "enable_quality_review": true, "quality_review_rules": "No thin text.", "quality_review_gate": gate })
}

/// Runs it; gives the end, and the results by call.
async fn ran(server: &Server, request: &Value) -> (Value, Vec<(String, String, bool)>, String) {
    let mut socket = server.socket("").await;
    socket.say(request).await;
    let frames = durable(&socket.until("end").await);
    let mut results = Vec::new();
    for frame in frames.iter().filter(|frame| frame["type"] == "step") {
        for result in frame["data"]["tool_results"].as_array().unwrap() {
            let row = (
                result["call_id"].as_str().unwrap().to_owned(),
                result["result"].as_str().unwrap().to_owned(),
                result["success"].as_bool().unwrap(),
            );
            if !results.contains(&row) {
                results.push(row);
            }
        }
    }
    let completed = frames.iter().find(|frame| frame["type"] == "completed").unwrap();
    (completed["data"].clone(), results, completed["session_id"].as_str().unwrap().to_owned())
}

fn text<'a>(results: &'a [(String, String, bool)], call: &str) -> &'a str {
    &results.iter().find(|(id, _, _)| id == call).unwrap_or_else(|| panic!("{call}: {results:?}")).1
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_verdict_keeps_the_run_going_with_its_reasons() {
    let steps = vec![
        json!([write("w1", "thin\n")]),
        json!([done("d1", "written")]),
        json!([write("w2", "much thicker\n")]),
        json!([done("d2", "written well")]),
    ];
    let server = Server::start(lane(steps, &[fails("the text is thin"), passes()], 10), Mode::FullAuto).await;
    let (end, results, id) = ran(&server, &request(true)).await;
    assert_eq!(
        (&end["success"], &end["final_result"], &end["steps_count"]),
        (&json!(true), &json!("written well"), &json!(4))
    );
    assert!(
        text(&results, "w1").ends_with(
            "Quality review: fail\nReasons:\n- the text is thin\nSuggestions:\n- say more\nWhere:\n- w1.txt:1 replace"
        ),
        "{results:?}"
    );
    let refused = results.iter().find(|(id, _, _)| id == "d1").unwrap();
    assert!(
        !refused.2 && refused.1.starts_with("The task cannot end: the last quality review did not pass."),
        "{refused:?}"
    );
    assert!(refused.1.contains("- the text is thin"));
    assert!(text(&results, "w2").ends_with("Quality review: pass"));
    // What was judged is part of the results: the journal alone gives the same requests again.
    let out = lathe_host::Host::new(lathe_host::Home::at(server.home.clone()));
    let verified = out.archive().replay_recorded(&lathe_protocol::SessionId::new(&id)).unwrap();
    assert!(verified.divergences.is_empty(), "{:?}", verified.divergences);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_who_only_says_that_it_is_done_is_told_the_reasons_too() {
    let steps = vec![
        json!([write("w1", "thin\n")]),
        json!([{ "text": { "text": "It is written." } }]),
        json!([write("w2", "much thicker\n")]),
        json!([done("d2", "written well")]),
    ];
    let server = Server::start(lane(steps, &[fails("the text is thin"), passes()], 10), Mode::FullAuto).await;
    let (end, _, id) = ran(&server, &request(true)).await;
    assert_eq!((&end["success"], &end["final_result"]), (&json!(true), &json!("written well")));
    let (_, trajectory) = server.get(&format!("/api/sessions/{id}/trajectory")).await;
    let text = trajectory.to_string();
    assert!(text.matches("the last quality review did not pass").count() > 0, "{text}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_gate_a_failing_verdict_is_only_told() {
    let steps = vec![json!([write("w1", "thin\n")]), json!([done("d1", "written")])];
    let server = Server::start(lane(steps, &[fails("thin")], 10), Mode::FullAuto).await;
    let (end, results, _) = ran(&server, &request(false)).await;
    assert_eq!((&end["success"], &end["steps_count"]), (&json!(true), &json!(2)));
    assert!(text(&results, "w1").contains("Quality review: fail"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_budget_ends_reviews_says_so_once_and_opens_the_gate() {
    let steps = vec![
        json!([write("w1", "1\n")]),
        json!([write("w2", "2\n")]),
        json!([done("d1", "too early")]),
        json!([write("w3", "3\n")]),
        json!([write("w4", "4\n")]),
        json!([call(
            "q1",
            "quality_review",
            json!({ "file_path": "w4.txt", "edited_snippet": "4", "quality_review_rules": "none" })
        )]),
        json!([done("d2", "as good as it gets")]),
    ];
    let verdicts = [fails("one"), fails("two"), fails("three")];
    let server = Server::start(lane(steps, &verdicts, 10), Mode::FullAuto).await;
    let (end, results, _) = ran(&server, &request(true)).await;
    assert_eq!((&end["success"], &end["final_result"]), (&json!(true), &json!("as good as it gets")));
    let said = "This was the last review of this run";
    let told: Vec<&str> =
        results.iter().filter(|(_, text, _)| text.contains(said)).map(|(id, _, _)| id.as_str()).collect();
    assert_eq!(told, ["w3"]);
    assert!(!text(&results, "w4").contains("Quality review"));
    assert_eq!(text(&results, "q1"), "No more reviews in this run: their budget is used up. Go on without.");
    assert!(text(&results, "d1").contains("- two"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_a_budget_too() {
    let steps = vec![json!([write("w1", "1\n")]), json!([done("d1", "over")])];
    let server = Server::start(lane(steps, &[fails("one")], 5_000), Mode::FullAuto).await;
    let (end, results, _) = ran(&server, &request(true)).await;
    assert_eq!((&end["success"], &end["steps_count"]), (&json!(true), &json!(2)));
    assert!(text(&results, "w1").contains("their budget is used up"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_judge_that_says_no_json_is_asked_once_more_and_then_changes_nothing() {
    let steps = vec![json!([write("w1", "1\n")]), json!([write("w2", "2\n")]), json!([done("d1", "done")])];
    let verdicts = [json!("It looks good."), passes(), json!("Fine."), json!("Really fine.")];
    let server = Server::start(lane(steps, &verdicts, 10), Mode::FullAuto).await;
    let (end, results, _) = ran(&server, &request(true)).await;
    assert_eq!(end["success"], true);
    assert!(text(&results, "w1").ends_with("Quality review: pass"), "{results:?}");
    assert!(
        text(&results, "w2").contains("Quality review: could not be made (it is not the JSON object"),
        "{results:?}"
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tool_is_there_only_with_rules_and_answers_on_demand() {
    let ask = call(
        "q1",
        "quality_review",
        json!({ "file_path": "a.txt", "edited_snippet": "one", "quality_review_rules": "No thin text." }),
    );
    let steps = vec![json!([ask]), json!([done("d1", "done")])];
    let server = Server::start(lane(steps, &[passes()], 10), Mode::FullAuto).await;
    let (_, results, _) = ran(&server, &request(true)).await;
    assert_eq!(text(&results, "q1"), "Quality review: pass");
    let (_, results, _) = ran(&server, &json!({ "task": "write" })).await;
    assert!(text(&results, "q1").starts_with("Tool \"quality_review\" not found."), "{results:?}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verdict_is_told_to_programs_and_seen_by_people() {
    let ask = call(
        "q1",
        "quality_review",
        json!({ "file_path": "w1.txt", "edited_snippet": "thin", "quality_review_rules": "No thin text." }),
    );
    let steps = vec![
        json!([write("w1", "thin\n")]),
        json!([ask]),
        json!([write("w2", "thick\n")]),
        json!([done("d1", "written")]),
    ];
    let verdicts = [fails("the text is thin"), fails("still thin"), passes()];
    let server = Server::start(lane(steps, &verdicts, 10), Mode::FullAuto).await;
    let mut socket = server.socket("").await;
    socket.say(&request(false)).await;
    let frames = durable(&socket.until("end").await);
    let of = |kind: &'static str| {
        frames.iter().filter(move |frame| frame["type"] == kind).map(|frame| &frame["data"])
    };
    let told: Vec<(&str, Option<bool>, &Value)> = of("quality_review")
        .map(|data| (data["call_id"].as_str().unwrap(), data["pass"].as_bool(), &data["reasons"]))
        .collect();
    let (thin, still, none) = (json!(["the text is thin"]), json!(["still thin"]), json!([]));
    assert_eq!(told, [("w1", Some(false), &thin), ("q1", Some(false), &still), ("w2", Some(true), &none)]);
    let last = |id: &str| {
        let found = of("bubble").rfind(|data| data["id"] == id);
        found.unwrap_or_else(|| panic!("no bubble {id}"))["content"].as_str().unwrap().to_owned()
    };
    // The edit was made; its review did not pass.
    assert!(last("tc-1-w1").ends_with('✅'));
    assert!(
        last("tc-1-w1-review").starts_with("🔧quality_review {\"rules\":\"No thin text.\",\"target\":\"")
    );
    assert!(last("tc-1-w1-review").ends_with('❌'));
    assert!(last("tc-2-q1").ends_with('❌'));
    assert!(last("tc-3-w2-review").ends_with('✅'));
    let results = of("step").flat_map(|data| data["tool_results"].as_array().unwrap());
    let review = results.clone().find(|result| result["call_id"] == "w1").unwrap()["review"].clone();
    assert_eq!((&review["pass"], &review["reasons"]), (&json!(false), &thin));
    server.stop().await;
}
