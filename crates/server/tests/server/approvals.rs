//! The client sees over the socket exactly what runs, and no approval bypasses a rule.

use std::path::Path;
use std::process::Command;

use lathe_protocol::Mode;
use serde_json::{Value, json};

use crate::kit::{Server, Socket, call, cassette, done};

fn patch(text: &str) -> Value {
    json!({ "patch": format!("*** Begin Patch\n{text}*** End Patch\n") })
}

fn bash(id: &str, line: &str) -> Value {
    call(id, "bash", json!({ "command": line }))
}

/// The next question.
async fn asked(socket: &mut Socket) -> Value {
    loop {
        let frame = socket.next().await.expect("the connection stays open");
        assert_ne!(frame["type"], "completed", "nothing was asked: {frame}");
        if frame["type"] == "approval" && frame["data"]["state"] == "asked" {
            return frame["data"].clone();
        }
    }
}

async fn allow(socket: &mut Socket, question: &Value) {
    let answer = json!({
        "type": "approve", "call_id": question["call_id"], "question": question["question"], "answer": "once",
    });
    socket.say(&answer).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_is_shown_is_what_runs() {
    let calls = [
        call("c1", "write", json!({ "path": "n1.txt", "content": "plain\n" })),
        call("c2", "write", json!({ "path": "n2.txt", "content": "no end" })),
        call("c3", "write", json!({ "path": "dir/n3.txt", "content": "a\r\nb\r\n" })),
        call("c4", "edit", json!({ "path": "a.txt", "old_str": "one", "new_str": "two" })),
        call("c5", "edit", json!({ "path": "n1.txt", "insert_line": 1, "new_str": "more\n" })),
        call("c6", "apply_patch", patch("*** Update File: a.txt\n@@\n-two\n+2\n*** Add File: p.txt\n+new\n")),
        call("c7", "apply_patch", patch("*** Update File: p.txt\n*** Move to: q.txt\n@@\n-new\n+newer\n")),
        call("c8", "apply_patch", patch("*** Delete File: n2.txt\n")),
        call("c9", "remember", json!({ "fact": "tabs", "scope": "project" })),
        bash("l1", "touch t1"),
        bash("l2", "printf 'a\\nb' > s1.txt"),
        bash("l3", "mkdir m && mv t1 m/t1"),
        bash("l4", "write by-command.txt words"),
        bash("l5", "edit a.txt 2 3"),
    ];
    let count = calls.len();
    let answers = calls.into_iter().map(|call| json!([call])).chain([json!([done("d", "ok")])]);
    let server = Server::start(cassette(answers), Mode::Default).await;
    let replica = tempfile::tempdir().unwrap();
    std::fs::write(replica.path().join("a.txt"), "one\n").unwrap();
    let mut socket = server.run("go").await;
    for _ in 0..count {
        let question = asked(&mut socket).await;
        // A client that does by hand what it was shown gets the same files.
        let what = &question["what"];
        let ran = match what["type"].as_str().unwrap() {
            "edit" => apply(replica.path(), what["diff"].as_str().unwrap()),
            "command" => apply(replica.path(), what["about"].as_str().unwrap()),
            "line" => {
                let line = what["line"].as_str().unwrap();
                Command::new("bash")
                    .args(["-c", line])
                    .current_dir(replica.path())
                    .status()
                    .unwrap()
                    .success()
            }
            other => panic!("{other}: {question}"),
        };
        assert!(ran, "{question}");
        allow(&mut socket, &question).await;
    }
    socket.until("completed").await;
    assert_eq!(tree(&server.root), tree(replica.path()));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_changed_while_the_question_stood_is_not_touched() {
    let answers = [
        json!([call("c1", "edit", json!({ "path": "a.txt", "old_str": "one", "new_str": "two" }))]),
        json!([done("d", "ok")]),
    ];
    let server = Server::start(cassette(answers), Mode::Default).await;
    let mut socket = server.run("go").await;
    let question = asked(&mut socket).await;
    std::fs::write(server.root.join("a.txt"), "one\nMEANWHILE\n").unwrap();
    allow(&mut socket, &question).await;
    let frames = socket.until("completed").await;
    let told = frames.iter().any(|frame| frame.to_string().contains("was changed while the user was asked"));
    assert!(told, "{frames:?}");
    assert_eq!(std::fs::read_to_string(server.root.join("a.txt")).unwrap(), "one\nMEANWHILE\n");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_answer_goes_around_no_rule() {
    let answers = [json!([bash("c1", "touch harmless")]), json!([done("d", "ok")])];
    let server = Server::start(cassette(answers), Mode::Default).await;
    std::fs::create_dir_all(server.home.join("policy")).unwrap();
    let rule = "[[rule]]\ndecision = \"deny\"\ncommand = [\"touch forbidden\"]\n";
    std::fs::write(server.home.join("policy/mine.toml"), rule).unwrap();
    let mut socket = server.run("go").await;
    let question = asked(&mut socket).await;
    let edited = |command: &str| {
        json!({
            "type": "approve", "call_id": question["call_id"], "question": question["question"],
            "answer": "once", "edited": { "command": command },
        })
    };
    for command in ["touch forbidden", "true && touch forbidden", "/usr/bin/touch forbidden", "rm -rf /"] {
        socket.say(&edited(command)).await;
    }
    // The question is still open, and takes a good answer.
    socket.say(&edited("touch allowed")).await;
    socket.until("completed").await;
    assert!(server.root.join("allowed").exists());
    assert!(!server.root.join("forbidden").exists() && !server.root.join("harmless").exists());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_reaches_no_later_question_of_the_same_call_id() {
    // The model chooses call ids, and uses one again.
    let answers = [
        json!([bash("c1", "touch harmless")]),
        json!([bash("c1", "touch harmful")]),
        json!([call("q", "ask_user", json!({ "question": "Red?" }))]),
        json!([call("q", "ask_user", json!({ "question": "Delete it?" }))]),
        json!([done("d", "ok")]),
    ];
    let server = Server::start(cassette(answers), Mode::Default).await;
    let mut socket = server.run("go").await;
    let first = asked(&mut socket).await;
    allow(&mut socket, &first).await;
    let second = asked(&mut socket).await;
    assert_eq!(first["call_id"], second["call_id"]);
    let late = [
        json!({ "type": "approve", "id": "l1", "call_id": "c1", "answer": "once" }),
        json!({ "type": "approve", "id": "l2", "call_id": "c1", "question": null, "answer": "always" }),
        json!({ "type": "approve", "id": "l3", "call_id": "c1", "question": first["question"], "answer": "once" }),
        json!({ "type": "approve", "id": "l4", "data": { "call_id": "c1", "answer": "session" } }),
    ];
    for message in late {
        assert!(!accepted(&mut socket, &message).await, "{message}");
    }
    let no = json!({ "type": "approve", "call_id": "c1", "question": second["question"], "answer": "no" });
    assert!(accepted(&mut socket, &no).await);
    let red = socket.until("question").await.pop().unwrap()["data"]["question"].clone();
    let yes = json!({ "type": "answer", "call_id": "q", "question": red, "answers": ["yes"] });
    assert!(accepted(&mut socket, &yes).await);
    let delete = socket.until("question").await.pop().unwrap()["data"]["question"].clone();
    assert_ne!(red, delete);
    assert!(!accepted(&mut socket, &yes).await);
    assert!(!accepted(&mut socket, &json!({ "type": "answer", "call_id": "q", "answers": ["yes"] })).await);
    let no = json!({ "type": "answer", "call_id": "q", "question": delete, "answers": ["no"] });
    assert!(accepted(&mut socket, &no).await);
    socket.until("completed").await;
    assert!(server.root.join("harmless").exists() && !server.root.join("harmful").exists());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_client_is_shown_the_call_that_a_person_edited() {
    let answers = [json!([bash("c1", "touch by-model")]), json!([done("d", "ok")])];
    let server = Server::start(cassette(answers), Mode::Default).await;
    let mut socket = server.run("do it").await;
    let question = asked(&mut socket).await;
    let edited = json!({ "command": "touch by-person" });
    let answer = json!({
        "type": "approve", "call_id": "c1", "question": question["question"], "answer": "once", "edited": edited,
    });
    socket.say(&answer).await;
    let frames = socket.until("end").await;
    assert!(server.root.join("by-person").exists() && !server.root.join("by-model").exists());
    let of = |kind: &'static str| {
        frames.iter().filter(move |frame| frame["type"] == kind).map(|frame| &frame["data"])
    };
    let given = of("approval").find(|data| data["state"] == "given").unwrap();
    assert_eq!(given["edited"], edited);
    let bubble = of("bubble").rfind(|data| data["call_id"] == "c1").unwrap();
    assert_eq!(bubble["content"], "🔧bash {\"command\":\"touch by-person\"} ✅");
    assert_eq!(bubble["edited"], true);
    let step = of("step").rfind(|data| data["step_number"] == 1).unwrap();
    for made in [&step["tool_calls"][0], &step["message_units"][0]] {
        assert_eq!(made["arguments"], json!({ "command": "touch by-model" }), "{made}");
        assert_eq!(made["edited_arguments"], edited, "{made}");
    }
    server.stop().await;
}

/// Sends a message; true if its receipt says that it was accepted.
async fn accepted(socket: &mut Socket, message: &Value) -> bool {
    socket.say(message).await;
    socket.until("receipt").await.pop().unwrap()["data"]["accepted"] == true
}

/// Every file with its bytes.
fn tree(folder: &Path) -> String {
    let listing = "find . -type f | sort | while read -r f; do echo \"$f\"; od -c \"$f\"; done";
    let ran = Command::new("bash").args(["-c", listing]).current_dir(folder).output().unwrap();
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

/// Applies a diff as a reader of it would. What does not show was written out, and is put back.
fn apply(folder: &Path, diff: &str) -> bool {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), diff.replace("<U+000D>", "\r")).unwrap();
    let args = ["apply", "--whitespace=nowarn", "-p1"];
    let ran = Command::new("git").args(args).arg(file.path()).current_dir(folder).output().unwrap();
    ran.status.success()
}

/// Runs a request, allows everything, and gives the calls that were asked about and the frame of the end.
async fn asked_about(server: &Server, request: Value) -> (Vec<Value>, Value) {
    let mut socket = server.socket("").await;
    socket.say(&request).await;
    let mut asked = Vec::new();
    loop {
        let frame = socket.next().await.expect("the connection stays open");
        if frame["type"] == "approval" && frame["data"]["state"] == "asked" {
            asked.push(frame["data"]["what"].clone());
            allow(&mut socket, &frame["data"]).await;
        }
        if frame["type"] == "completed" {
            return (asked, frame);
        }
    }
}

/// Each of these calls would fail if it were allowed. Of a line with a syntax error only the session's own bash knows whether
/// it is one, by its aliases and options: that is asked about.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_will_fail_is_answered_and_not_asked_about() {
    let calls = [
        ("write", json!({ "path": "a.txt", "content": "two\n" })),
        ("write", json!({ "path": "a.txt", "content": "one\n" })),
        ("write", json!({ "path": "folder", "content": "x" })),
        ("write", json!({ "path": "a.txt/below", "content": "x" })),
        ("edit", json!({ "path": "none.txt", "old_str": "x", "new_str": "y" })),
        ("edit", json!({ "path": "a.txt", "old_str": "nowhere", "new_str": "y" })),
        ("edit", json!({ "path": "a.txt", "old_str": "one", "new_str": "one" })),
        ("edit", json!({ "path": "folder", "old_str": "x", "new_str": "y" })),
        ("edit", json!({ "path": "a.txt", "insert_line": 99, "new_str": "y" })),
        ("apply_patch", patch("*** Update File: none.txt\n@@\n-x\n+y\n")),
        ("apply_patch", patch("*** Update File: a.txt\n@@\n-nowhere\n+y\n")),
        ("apply_patch", patch("*** Delete File: none.txt\n")),
        ("apply_patch", patch("*** Add File: a.txt\n+x\n")),
        ("apply_patch", json!({ "patch": "no patch" })),
        ("remember", json!({ "fact": "" })),
        ("bash", json!({ "command": "" })),
    ];
    let answers = calls
        .iter()
        .enumerate()
        .map(|(number, (name, arguments))| json!([call(&format!("c{number}"), name, arguments.clone())]));
    let server = Server::start(cassette(answers.chain([json!([done("d", "ok")])])), Mode::Default).await;
    std::fs::create_dir(server.root.join("folder")).unwrap();
    let (asked, frames) = asked_about(&server, json!({ "task": "go" })).await;
    assert_eq!(asked, Vec::<Value>::new(), "{frames}");
    let id = frames["session_id"].as_str().unwrap();
    let events = server.events(id).await;
    let finished: Vec<&Value> =
        events.iter().filter(|event| event["kind"] == "call_finished").map(|event| &event["body"]).collect();
    assert_eq!(finished.len(), calls.len() + 1);
    for (body, (name, arguments)) in finished.iter().zip(&calls) {
        assert!(body["error"].is_object(), "{name} {arguments}: {body}");
    }
    server.stop().await;
    let elsewhere = json!({ "command": "touch made", "dir_path": "/nowhere" });
    let answers =
        [json!([call("g1", "run_shell_command", elsewhere)]), json!([{ "text": { "text": "ok" } }])];
    let server = Server::start(cassette(answers).replace("\"lathe\"", "\"gemini\""), Mode::Default).await;
    let (asked, frames) = asked_about(&server, json!({ "task": "go", "toolset": "gemini" })).await;
    assert_eq!(asked, Vec::<Value>::new(), "{frames}");
    let events = server.events(frames["session_id"].as_str().unwrap()).await;
    assert!(events.iter().any(|event| event["body"]["text"].to_string().contains("registered workspace")));
    server.stop().await;
}
