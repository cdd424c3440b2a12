//! Nothing that a server sends shows what looks like a secret, and nothing in it acts on a terminal unseen.

use lathe_protocol::Mode;
use lathe_server::{Role, Tokens};
use serde_json::{Value, json};

use crate::kit::{Server, call, cassette, done, say};

/// Secrets by their shape: none of them is known.
const PLANTED: [&str; 7] = [
    "sk-planted0123456789abcdef",
    "ghp_planted0123456789abcdefghij",
    "planted-hunter2-hunter2",
    "AKIAPLANTED012345678",
    "De3J97G2fFd6M78D48G0",
    "Zk4bR81vTq0aW72m",
    "Hq27xT5bLm90cVz1",
];

#[tokio::test(flavor = "multi_thread")]
async fn every_frame_and_every_answer_is_masked_by_shape() {
    let [one, two, three, four, five, six, seven] = PLANTED;
    let odd = "x\u{9b}31m\u{202e}y";
    let text = format!("I use {one} and {two} {odd}.");
    let print = format!(
        "printf 'sk-pla'; printf 'nted0123456789abcdef\\n'; echo 'password = {three}' {four} '{odd}'; \
         true --passphrase {five}; true sshpass -p {six} ssh h; true -u bob:{seven}"
    );
    let answers = cassette([
        json!([say(&text), call("a1", "bash", json!({ "command": print }))]),
        json!([call(
            "b1",
            "write",
            json!({ "path": "b.txt", "content": format!("{} {one}", "y".repeat(5)) })
        )]),
        json!([call("c1", "view", json!({ "path": "nowhere", "api_key": three }))]),
        json!([say(&text), done("d1", &format!("The key is {one}, password: {three}"))]),
    ]);
    let server = Server::start(answers, Mode::FullAuto).await;
    let mut socket = server.run(&format!("Use {one} {odd}")).await;
    let frames = socket.until("end").await;
    let session = frames.iter().find_map(|frame| frame["session_id"].as_str()).unwrap().to_owned();
    for kind in ["start", "step", "bubble", "completed"] {
        assert!(frames.iter().any(|frame| frame["type"] == kind), "no {kind}");
    }
    for frame in &frames {
        for secret in PLANTED {
            assert!(!frame.to_string().contains(secret), "{secret} in {frame}");
        }
    }
    let told: String = frames.iter().map(|frame| frame.to_string()).collect();
    assert!(told.contains("I use «secret» and «secret»"), "{told}");
    let (_, lines) = server.get(&format!("/api/sessions/{session}/export?format=jsonl")).await;
    let lines = lines.as_str().unwrap().lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let blob = lines.into_iter().find_map(|event| changed_to(&event)).unwrap();
    for path in [
        format!("/api/sessions/{session}/trajectory"),
        format!("/api/sessions/{session}/messages"),
        format!("/api/sessions/{session}/export?format=jsonl"),
        format!("/api/sessions/{session}/export?format=trajectory"),
        format!("/api/sessions/{session}/export?format=text"),
        format!("/api/sessions/{session}/export?format=html"),
        format!("/api/sessions/{session}/blob/{blob}"),
        format!("/agent/interactive/status?session_id={session}"),
        "/api/sessions".to_owned(),
    ] {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
            server.address, server.token
        );
        let (status, body) = server.raw(&request).await;
        assert_eq!(status, 200, "{path}: {body}");
        for secret in PLANTED {
            assert!(!body.contains(secret), "{path}: {secret} in {body}");
        }
        assert!(!body.contains(['\u{9b}', '\u{202e}']), "{path}: {body}");
        if path.ends_with("format=text") {
            assert!(body.contains("x<U+009B>31m<U+202E>y"), "{body}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_begins_a_line_is_coloured_or_is_a_name_is_masked_too() {
    let token = |letter: &str| format!("ghp_{}", letter.repeat(36));
    let tokens: Vec<String> = ["a", "b", "c", "d", "e", "f", "g", "h"].map(token).to_vec();
    let [a, b, c, d, e, f, g, h] = tokens.as_slice() else { panic!("eight") };
    let inner = json!({ "z": format!("A\n{f}") }).to_string();
    let answers = cassette([
        json!([
            say(&format!("I see \"x\\n{g}\"")),
            call("a1", "write", json!({ "path": "n.txt", "content": format!("A\n{a}\nB") }))
        ]),
        json!([call("b1", "nosuch", json!({ "v": format!("q\t{b}"), (c.as_str()): 1, "inner": inner }))]),
        json!([call(
            "c1",
            "bash",
            json!({ "command": format!("printf '\\033[31m%s\\033[0m\\n' {d}; echo pre_{e}; cat n.txt") })
        )]),
        json!([done("d1", &format!("x\\n{h}"))]),
    ]);
    let server = Server::start(answers, Mode::FullAuto).await;
    let mut socket = server.run("go").await;
    let frames = socket.until("end").await;
    let session = frames.iter().find_map(|frame| frame["session_id"].as_str()).unwrap().to_owned();
    let mut told = vec![("frames".to_owned(), frames.iter().map(Value::to_string).collect::<String>())];
    for what in ["trajectory", "messages", "export?format=jsonl", "export?format=html", "export?format=text"]
    {
        let (status, body) = server.get(&format!("/api/sessions/{session}/{what}")).await;
        assert_eq!(status, 200, "{what}");
        told.push((what.to_owned(), body.to_string()));
    }
    for (what, told) in told {
        assert!(told.contains("«secret»"), "{what}: {told}");
        for token in &tokens {
            assert!(!told.contains(&token[4..]), "{what}: {token} in {told}");
        }
    }
}

/// The digest of the content that a call wrote.
fn changed_to(event: &Value) -> Option<String> {
    match event {
        Value::Object(members) => match members.get("after").and_then(Value::as_str) {
            Some(after) if after.len() == 64 => Some(after.to_owned()),
            _ => members.values().find_map(changed_to),
        },
        Value::Array(values) => values.iter().find_map(changed_to),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_shown_whole_to_those_who_may_answer_and_masked_to_all_others() {
    let [one, two, three, ..] = PLANTED;
    let line = format!("touch {one} # password = {three}");
    let answers = cassette([
        json!([call("a1", "bash", json!({ "command": line }))]),
        json!([call("b1", "write", json!({ "path": "b.txt", "content": format!("token {two}\n") }))]),
        json!([done("d1", "done")]),
    ]);
    let server = Server::start(answers, Mode::Default).await;
    std::fs::create_dir_all(server.home.join("policy")).unwrap();
    let rule = format!("[[rule]]\ndecision = \"ask\"\ncommand = [\"touch\"]\nreason = \"see {two}\"\n");
    std::fs::write(server.home.join("policy/mine.toml"), rule).unwrap();
    let viewer = Tokens::add(&server.home, "eyes", Role::Viewer).unwrap();
    let operator = Tokens::add(&server.home, "hands", Role::Operator).unwrap();
    let mut owner = server.run("go").await;
    let begun = owner.until("approval").await;
    let session = begun[0]["session_id"].as_str().or(begun[1]["session_id"].as_str()).unwrap().to_owned();
    let attach = format!("?session_id={session}");
    // One comes late and reads the journal, one is there when the next question comes.
    let (mut eyes, mut hands) =
        (server.socket_as(&viewer, &attach).await, server.socket_as(&operator, &attach).await);
    let asked = begun.last().unwrap()["data"].clone();
    assert_eq!(asked["what"]["line"], line);
    assert_eq!(hands.until("approval").await.pop().unwrap()["data"], asked);
    let seen = eyes.until("approval").await.pop().unwrap();
    assert_eq!(seen["data"]["question"], asked["question"]);
    for secret in PLANTED {
        assert!(!seen.to_string().contains(secret), "{secret} in {seen}");
        assert!(!asked["reason"].to_string().contains(secret), "{secret} in {asked}");
    }
    assert!(asked["reason"].as_str().unwrap().contains("«secret»"), "{asked}");
    let yes = json!({ "type": "approve", "call_id": "a1", "question": asked["question"], "answer": "once" });
    owner.say(&yes).await;
    let edit = loop {
        let frame = owner.until("approval").await.pop().unwrap()["data"].clone();
        if frame["state"] == "asked" {
            break frame;
        }
    };
    assert!(edit["what"]["diff"].as_str().unwrap().contains(two), "{edit}");
    owner.say(&json!({ "type": "approve", "call_id": "b1", "question": edit["question"], "answer": "no", "reason": format!("not {one}") })).await;
    let frames = eyes.until("completed").await;
    for frame in &frames {
        for secret in PLANTED {
            assert!(!frame.to_string().contains(secret), "{secret} in {frame}");
        }
    }
    // If the session is not open, no client can answer, and none is shown more than a viewer.
    let (status, _) = server.post(&format!("/agent/interactive/close{attach}"), json!({})).await;
    assert_eq!(status, 200);
    let frames = server.socket(&attach).await.until("completed").await;
    assert!(frames.iter().any(|frame| frame["type"] == "approval" && frame["data"]["state"] == "asked"));
    for frame in &frames {
        for secret in PLANTED {
            assert!(!frame.to_string().contains(secret), "{secret} in {frame}");
        }
    }
    server.stop().await;
}

/// Long outputs are cut, and half of a secret has another shape.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_secret_stands_beside_the_cut_of_a_long_output() {
    let key = format!("ghp_{}", "aB3dE6gH9".repeat(4));
    let id = format!("id-{key}");
    let print = format!("for i in {{1..3000}}; do echo {key}; echo password={key}x >&2; done");
    let answers =
        cassette([json!([call(&id, "bash", json!({ "command": print }))]), json!([done("d1", "done")])]);
    let server = Server::start(answers, Mode::FullAuto).await;
    let frames = server.run("go").await.until("end").await;
    let session = frames.iter().find_map(|frame| frame["session_id"].as_str()).unwrap().to_owned();
    let mut told: Vec<(String, String)> =
        frames.iter().map(|frame| (frame["type"].to_string(), frame.to_string())).collect();
    assert!(told.iter().any(|(_, text)| text.contains("bytes left out")));
    for what in ["trajectory", "messages", "export?format=jsonl", "export?format=html", "export?format=text"]
    {
        let (status, body) = server.get(&format!("/api/sessions/{session}/{what}")).await;
        assert_eq!(status, 200);
        told.push((what.to_owned(), body.to_string()));
    }
    for (what, text) in told {
        for part in ["ghp_", "aB3d", "dE6g", "gH9a"] {
            let at = text.find(part).map(|at| &text[text.floor_char_boundary(at.saturating_sub(60))..]);
            let shown = at.map(|text| text.chars().take(160).collect::<String>());
            assert_eq!(shown, None, "{part} in {what}");
        }
    }
    let ids = |kind: &str| -> Vec<Value> {
        let of_kind = frames.iter().filter(|frame| frame["type"] == kind);
        of_kind.map(|frame| frame["data"]["call_id"].clone()).collect()
    };
    let masked = json!("id-«secret»");
    assert!(ids("call_state").contains(&masked), "{:?}", ids("call_state"));
    // Live output is left out where a client does not keep up with it.
    assert!(ids("tool_output").iter().all(|id| *id == masked), "{:?}", ids("tool_output"));
    server.stop().await;
}

/// The id of a call is masked in every frame; a client answers by what it was shown, or by what the model said.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_answered_by_the_masked_id_of_its_call() {
    let id = format!("id-{}", PLANTED[1]);
    for named in ["id-«secret»", id.as_str()] {
        let answers = cassette([
            json!([call(&id, "write", json!({ "path": "b.txt", "content": "b\n" }))]),
            json!([done("d1", "done")]),
        ]);
        let server = Server::start(answers, Mode::Default).await;
        let mut owner = server.run("go").await;
        let asked = owner.until("approval").await.pop().unwrap()["data"].clone();
        assert_eq!(asked["call_id"], "id-«secret»");
        let other = json!({ "type": "approve", "id": "k0", "call_id": "id", "question": asked["question"], "answer": "once" });
        owner.say(&other).await;
        owner.say(&json!({ "type": "approve", "id": "k1", "call_id": named, "question": asked["question"], "answer": "once" })).await;
        let frames = owner.until("completed").await;
        assert!(frames.iter().all(|frame| !frame.to_string().contains(PLANTED[1])), "{frames:?}");
        assert_eq!(std::fs::read_to_string(server.root.join("b.txt")).unwrap(), "b\n", "{named}");
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_finds_only_what_a_title_shows() {
    let server = Server::start(cassette([json!([done("d1", "done")])]), Mode::FullAuto).await;
    let viewer = Tokens::add(&server.home, "eyes", Role::Viewer).unwrap();
    let (status, said) = server.post("/agent/run", json!({ "task": format!("fix {}", PLANTED[1]) })).await;
    assert_eq!(status, 200, "{said}");
    for (words, rows) in
        [("", 1), ("fix", 1), ("secret", 1), ("ghp_", 0), ("ghp_planted0", 0), ("abcdefghij", 0)]
    {
        let (_, found) = server.ask_as(&viewer, "GET", &format!("/api/sessions?q={words}"), None).await;
        assert_eq!(found.as_array().map(Vec::len), Some(rows), "{words}: {found}");
    }
}
