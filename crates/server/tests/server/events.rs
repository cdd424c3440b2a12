//! `?events=true`: the events of the journal, for clients that make their own view.

use lathe_protocol::Mode;
use lathe_server::{Role, Tokens};
use serde_json::{Value, json};

use crate::kit::{Server, Socket, call, cassette, done, durable, say};

const SECRET: &str = "ghp_planted0123456789abcdefghij";

/// Frames up to and with the event of this kind.
async fn until(socket: &mut Socket, kind: &str) -> Vec<Value> {
    let mut frames = Vec::new();
    loop {
        let frame = socket.next().await.unwrap_or_else(|| panic!("closed before `{kind}`: {frames:?}"));
        let is_it = frame["data"]["event"]["kind"] == kind;
        frames.push(frame);
        if is_it {
            return frames;
        }
    }
}

fn seqs(frames: &[Value]) -> Vec<u64> {
    durable(frames).iter().map(|frame| frame["data"]["event"]["seq"].as_u64().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_asks_for_events_gets_each_of_them_once_in_order_and_masked() {
    let text = format!("two\n{SECRET}\n");
    let answers = cassette([
        json!([say("I write."), call("w", "write", json!({ "path": "new.txt", "content": text }))]),
        json!([done("d", "It is written.")]),
    ]);
    let server = Server::start(answers, Mode::FullAuto).await;
    let mut socket = server.socket("?events=true").await;
    socket.say(&json!({ "task": "Write it." })).await;
    let frames = until(&mut socket, "task_finished").await;
    assert!(socket.next().await.is_none_or(|frame| frame["type"] == "status"), "nothing more of this run");
    assert!(durable(&frames).iter().all(|frame| frame["type"] == "event"), "{frames:?}");
    let session = durable(&frames)[0]["session_id"].as_str().unwrap().to_owned();
    let recorded = server.events(&session).await;
    let given = recorded.iter().position(|event| event["kind"] == "task_given").unwrap();
    let numbers: Vec<u64> = recorded[given..].iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs(&frames), numbers);
    for (frame, event) in durable(&frames).iter().zip(&recorded[given..]) {
        assert_eq!(frame["data"]["event"], *event, "masked like every export");
        assert_eq!((&frame["cursor"], &frame["seq"]), (&json!(event["seq"].to_string()), &event["seq"]));
        assert!(!frame.to_string().contains("planted"), "{frame}");
    }
    let diffs: Vec<Value> = durable(&frames).iter().map(|frame| frame["data"]["diff"].clone()).collect();
    let diffs: Vec<&str> = diffs.iter().filter_map(Value::as_str).collect();
    assert!(matches!(diffs[..], [diff] if diff.contains("+two\n+«secret»\n")), "{diffs:?}");
    // A client that connects later gets the same events, from any cursor.
    for from in [0, numbers[0], numbers[numbers.len() - 2]] {
        let mut again = server.socket(&format!("?events=true&session_id={session}&from={from}")).await;
        let frames = until(&mut again, "task_finished").await;
        let after: Vec<u64> = (from + 1..=*numbers.last().unwrap()).collect();
        assert_eq!(seqs(&frames), after, "from {from}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_question_is_exact_for_those_who_may_answer_and_masked_for_the_others() {
    let write = call("w", "write", json!({ "path": "new.txt", "content": format!("{SECRET}\n") }));
    let server = Server::start(cassette([json!([write]), json!([done("d", "Done.")])]), Mode::Default).await;
    let viewer = Tokens::add(&server.home, "eyes", Role::Viewer).unwrap();
    let mut owner = server.socket("?events=true").await;
    owner.say(&json!({ "task": "Write it." })).await;
    let frames = until(&mut owner, "approval_asked").await;
    let asked = frames.last().unwrap();
    assert!(asked["data"]["event"]["body"]["what"].to_string().contains(SECRET), "{asked}");
    let session = asked["session_id"].as_str().unwrap();
    let mut other = server.socket_as(&viewer, &format!("?events=true&session_id={session}")).await;
    let seen = until(&mut other, "approval_asked").await;
    assert!(seen.iter().all(|frame| !frame.to_string().contains("planted")), "{seen:?}");
    let question = &asked["data"]["event"];
    owner
        .say(&json!({ "type": "approve", "call_id": question["call"], "question": question["seq"], "answer": "once" }))
        .await;
    for socket in [&mut owner, &mut other] {
        let frames = until(socket, "task_finished").await;
        assert!(frames.iter().all(|frame| !frame.to_string().contains("planted")), "{frames:?}");
    }
    assert_eq!(std::fs::read_to_string(server.root.join("new.txt")).unwrap(), format!("{SECRET}\n"));
    server.stop().await;
}
