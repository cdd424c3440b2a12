//! Steps have two numbers, and steps that a rewind dropped are shown nowhere.

use lathe_protocol::Mode;
use serde_json::{Value, json};

use crate::kit::{Server, call, cassette, done, durable, say};

fn write(id: &str, name: &str) -> Value {
    call(id, "write", json!({ "path": name, "content": "x\n" }))
}

/// A session of two runs, of two steps each, and the frames of both.
async fn two_runs() -> (Server, String, Vec<Value>) {
    let answers = [
        json!([say("I begin."), write("w1", "one.txt")]),
        json!([done("d1", "first done")]),
        json!([say("I go on."), write("w2", "two.txt")]),
        json!([done("d2", "second done")]),
    ];
    let server = Server::start(cassette(answers), Mode::FullAuto).await;
    let (_, body) = server.post("/agent/interactive/start", json!({})).await;
    let id = body["session_id"].as_str().unwrap().to_owned();
    let mut socket = server.socket(&format!("?session_id={id}")).await;
    let mut frames = Vec::new();
    for task in ["first", "second"] {
        socket.say(&json!({ "type": "task", "task": task })).await;
        frames.extend(socket.until("end").await);
    }
    (server, id, frames)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_frame_of_a_step_has_its_number_in_the_run_and_in_the_session() {
    let (server, id, frames) = two_runs().await;
    let mut kinds: Vec<&str> = Vec::new();
    for frame in frames.iter().filter(|frame| frame.get("session_step").is_some()) {
        let (step, session_step) = (frame["step"].as_u64().unwrap(), frame["session_step"].as_u64().unwrap());
        let first = if frame["run_id"].as_str().unwrap().ends_with(".2") { 2 } else { 0 };
        assert_eq!(session_step, first + step, "{frame}");
        let data = &frame["data"];
        match frame["type"].as_str().unwrap() {
            "step" => assert_eq!(
                (&data["step_number"], &data["session_step"]),
                (&json!(step), &json!(session_step))
            ),
            "usage" | "delta" => {
                assert_eq!(
                    (&data["step"], &data["session_step"]),
                    (&json!(step), &json!(session_step)),
                    "{frame}"
                );
            }
            _ => {}
        }
        kinds.push(frame["type"].as_str().unwrap());
    }
    for kind in ["step", "usage", "bubble", "file_changed"] {
        assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
    }
    // Nothing that tells a number of a step is without both.
    for frame in durable(&frames) {
        let tells = ["step_number", "step"].iter().any(|name| frame["data"].get(*name).is_some());
        assert!(!tells || frame["session_step"].is_u64(), "{frame}");
    }
    // A client that comes later gets the very same frames.
    let mut later = server.socket(&format!("?session_id={id}")).await;
    let (mut again, wanted) = (Vec::new(), durable(&frames));
    while again.len() < wanted.len() {
        again.extend(durable(&[later.next().await.unwrap()]));
    }
    assert_eq!(again, wanted);
    // The numbers of messages are those that `rewind` and `fork` take.
    let (_, messages) = server.get(&format!("/api/sessions/{id}/messages")).await;
    let second = messages.as_array().unwrap().iter().find(|row| row["id"] == "2:tc-1-w2").unwrap();
    assert_eq!((&second["step"], &second["session_step"]), (&json!(1), &json!(3)));
    let (status, back) = server.post(&format!("/api/sessions/{id}/rewind"), json!({ "to": 3 })).await;
    assert_eq!((status, &back["steps"]), (200, &json!(1)), "{back}");
    let rewound = later.until("rewound").await.pop().unwrap();
    assert_eq!(rewound["data"]["to"], 3);
    assert_eq!(rewound["data"]["place"], json!({ "run": 2, "step": 1 }));
    server.stop().await;
}

/// The ids of the messages of a session, and its text.
async fn shown(server: &Server, id: &str) -> (Vec<String>, String) {
    let (_, messages) = server.get(&format!("/api/sessions/{id}/messages")).await;
    let ids = messages.as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect();
    let (_, text) = server.get(&format!("/api/sessions/{id}/export?format=text")).await;
    (ids, text.as_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_text_and_page_hold_what_the_trajectory_holds_after_a_rewind() {
    let (server, id, _) = two_runs().await;
    let whole = shown(&server, &id).await;
    assert_eq!(
        whole.0,
        [
            "1:task",
            "1:seq-1",
            "1:tc-1-w1",
            "1:tc-2-d1",
            "1:taskdone-2",
            "2:task",
            "2:seq-1",
            "2:tc-1-w2",
            "2:tc-2-d2",
            "2:taskdone-2"
        ]
    );
    let signed_in = server.sign_in(&server.token).await;
    let at = |word: &str| format!("/api/sessions/{id}/{word}");
    for (to, kept) in [(3, 8), (2, 5), (1, 3), (0, 0)] {
        assert_eq!(server.post(&at("rewind"), json!({ "to": to })).await.0, 200);
        let (ids, text) = shown(&server, &id).await;
        assert_eq!(ids, whole.0[..kept], "{to}");
        assert!(whole.1.starts_with(&text), "{to}: {text}");
        let (_, page) = server.by_page(&signed_in, "GET", &format!("/?session={id}")).await;
        assert_eq!(page.matches("<article").count(), kept, "{to}");
    }
    // What is taken back of a rewind is shown again.
    for kept in [3, 5, 8, 10] {
        assert_eq!(server.post(&at("undo"), json!({})).await.0, 200);
        assert_eq!(shown(&server, &id).await.0, whole.0[..kept]);
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_error_bubble_of_a_step_replaces_another() {
    let refused = |id: &str| done(id, "nothing was done");
    let answers = [json!([refused("d1"), refused("d2")]), json!([refused("d3")])];
    let server = Server::start(cassette(answers), Mode::FullAuto).await;
    let mut socket = server.socket("").await;
    socket.say(&json!({ "task": "do", "must_patch": true, "max_steps": 2 })).await;
    let frames = socket.until("end").await;
    let errors: Vec<(&str, &str)> = frames
        .iter()
        .filter(|frame| frame["type"] == "bubble" && frame["data"]["role"] == "error")
        .map(|frame| (frame["data"]["id"].as_str().unwrap(), frame["data"]["content"].as_str().unwrap()))
        .collect();
    let mut ids: Vec<&str> = errors.iter().map(|(id, _)| *id).collect();
    assert!(ids.contains(&"taskdone-2-error") && ids.contains(&"taskdone-2-error-2"), "{errors:?}");
    ids.dedup();
    assert_eq!(ids.len(), errors.len(), "{errors:?}");
    assert!(errors.last().unwrap().1.contains("maximum steps"), "{errors:?}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_ends_whose_model_ends_it_twice_in_one_answer() {
    let answers = [json!([done("d1", "once"), done("d2", "twice")])];
    let server = Server::start(cassette(answers), Mode::FullAuto).await;
    let frames = server.run("do").await.until("end").await;
    let completed = frames.iter().find(|frame| frame["type"] == "completed").unwrap();
    assert_eq!(completed["data"]["success"], true, "{completed}");
    server.stop().await;
}
