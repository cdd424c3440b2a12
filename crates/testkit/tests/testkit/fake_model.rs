use std::time::{Duration, Instant};

use lathe_testkit::{Chunking, FakeModel, Fault, LineEnd, Options, Script, call, check_prefix, done, say};
use serde_json::json;

use crate::client::{Client, messages};

const TEXT: &str = "Grüße aus 世界 🌍, ein längerer Text mit allem.";

fn ls() -> lathe_testkit::FakeAnswer {
    call("c1", "bash", json!({"command": "ls"}))
}

#[test]
fn the_number_of_assistant_messages_chooses_the_answer() {
    let model = FakeModel::serving(Script::repeat(3, |k| say(&format!("answer {k}"))));
    let mut client = Client::to(&model);
    for number in [0, 2, 1, 1] {
        let response = client.ask(number);
        assert_eq!(response.content(), format!("answer {number}"));
        assert!(response.is_whole());
    }
    let requests = model.requests();
    assert_eq!(requests.len(), 4);
    assert!(requests.iter().all(|request| request.connection == 0), "one kept connection");
    assert_eq!(requests[1].messages(), messages(2));
    assert_eq!(requests[1].header("Host"), Some("x"));
    for request in &requests {
        assert!(request.head_at <= request.body_at && request.body_at <= request.answered_at.unwrap());
    }
    assert_eq!(model.violations(), Vec::<String>::new());
}

#[test]
fn however_it_is_cut_the_answer_is_the_same() {
    let text = "世界🌍".repeat(30);
    let script = || Script::new().answer(say(&text).call("c1", "bash", json!({"command": "echo 世界"})));
    for chop in [Chunking::Whole, Chunking::Bytes(1), Chunking::Bytes(5), Chunking::Random(7)] {
        for line_end in [LineEnd::Lf, LineEnd::CrLf, LineEnd::Cr] {
            let options = Options { chop, line_end, comments: true, ..Options::default() };
            let model = FakeModel::start(script(), options);
            let response = Client::to(&model).ask(0);
            let pieces = response.chunks.len();
            assert_eq!(response.content(), text, "{chop:?} {line_end:?}");
            assert_eq!(response.arguments(), r#"{"command":"echo 世界"}"#);
            assert!(response.is_whole());
            match chop {
                Chunking::Whole => assert_eq!(pieces, 1),
                Chunking::Bytes(n) => {
                    assert!(response.chunks[..pieces - 1].iter().all(|chunk| chunk.len() == n))
                }
                Chunking::Random(_) => {
                    let inside = |chunk: &Vec<u8>| std::str::from_utf8(chunk).is_err();
                    assert!(response.chunks.iter().any(inside), "no cut fell into a character");
                }
            }
        }
    }
}

#[test]
fn a_status_comes_with_its_headers_as_often_as_asked() {
    let fault = Fault::status(429, "slow down").header("retry-after", "1");
    let model = FakeModel::serving(Script::new().answer(ls().fails(2, fault)));
    let mut client = Client::to(&model);
    for _ in 0..2 {
        let response = client.ask(0);
        assert_eq!(response.code, 429);
        assert!(response.headers.contains("retry-after: 1"), "{}", response.headers);
        assert!(response.text().contains("slow down"));
    }
    assert!(client.ask(0).is_whole());
    assert_eq!(check_prefix(&model.bodies()), Ok(()));
}

#[test]
fn connections_break_where_the_fault_says() {
    let script = Script::new().answer(
        say(TEXT)
            .fails(1, Fault::CloseBeforeAnyByte)
            .fails(1, Fault::ResetMidStream)
            .fails(1, Fault::TruncateCleanly),
    );
    let model = FakeModel::serving(script);
    let closed = Client::to(&model).ask(0);
    assert!(closed.code == 0 && closed.broke.is_some(), "{closed:?}");
    let reset = Client::to(&model).ask(0);
    assert_eq!(reset.code, 200);
    assert_eq!(reset.broke, Some(std::io::ErrorKind::ConnectionReset));
    assert!(!reset.chunks.is_empty() && !reset.is_whole());
    let mut client = Client::to(&model);
    let truncated = client.ask(0);
    assert_eq!(truncated.broke, None);
    assert_eq!(truncated.content(), TEXT);
    assert!(!truncated.is_whole() && !truncated.text().contains("\"finish_reason\":\"stop\""));
    assert!(client.ask(0).is_whole(), "the connection was kept");
    let requests = model.requests();
    assert!(requests[0].answered_at.is_none() && requests[1].answered_at.is_none());
}

#[test]
fn odd_answers_are_odd_in_their_own_way() {
    let script = Script::new().answer(
        ls().fails(1, Fault::Garbage).fails(1, Fault::EmptyAnswer).fails(1, Fault::MalformedArguments),
    );
    let model = FakeModel::serving(script);
    let mut client = Client::to(&model);
    let garbage = client.ask(0);
    assert!(garbage.code == 200 && garbage.headers.contains("text/html") && garbage.text().contains("<p>"));
    let empty = client.ask(0);
    assert!(empty.is_whole() && empty.content().is_empty() && empty.arguments().is_empty());
    let malformed = client.ask(0);
    assert!(malformed.is_whole());
    assert_eq!(malformed.arguments(), "{\"comman");
    assert_eq!(client.ask(0).arguments(), r#"{"command":"ls"}"#);
}

#[test]
fn a_stall_and_a_delay_take_their_time() {
    let options = Options { delay: Duration::from_millis(60), ..Options::default() };
    let script = Script::new().answer(say(TEXT).fails(1, Fault::Stall(Duration::from_millis(120))));
    let model = FakeModel::start(script, options);
    let started = Instant::now();
    let response = Client::to(&model).ask(0);
    assert!(response.is_whole() && response.content() == TEXT);
    assert!(started.elapsed() >= Duration::from_millis(180));
}

#[test]
fn a_broken_conversation_is_refused_and_noted() {
    let model = FakeModel::serving(Script::new().answer(say("hi")));
    let mut client = Client::to(&model);
    let mut broken = messages(1);
    broken.pop();
    let response = client.ask_with(broken);
    assert_eq!(response.code, 400);
    let beyond = client.ask(1);
    assert_eq!(beyond.code, 400);
    assert_eq!(
        model.violations(),
        [
            "the conversation ends and call `c0` has no result",
            "the script has 1 answers, and number 2 was asked for"
        ]
    );
    assert!(beyond.text().contains("number 2 was asked for"), "{}", beyond.text());
}

#[test]
fn without_the_key_there_is_no_answer() {
    let options = Options { require_key: Some("sk-right".into()), ..Options::default() };
    let model = FakeModel::start(Script::new().answer(done("ok")), options);
    assert_eq!(Client::to(&model).ask(0).code, 401);
    let wrong = Client::to(&model).with_key("sk-wrong").ask(0);
    assert_eq!(wrong.code, 401);
    assert!(wrong.text().contains("Incorrect API key provided: sk-wrong"));
    assert!(Client::to(&model).with_key(model.key()).ask(0).is_whole());
    assert_eq!(model.violations(), Vec::<String>::new());
}

#[test]
fn stopped_it_is_gone_and_still_tells() {
    let mut model = FakeModel::serving(Script::new().answer(say("hi")));
    let mut client = Client::to(&model);
    client.ask(0);
    model.wait_for_requests(1, Duration::from_secs(1));
    model.stop();
    let address = model.base_url().replace("http://", "").replace("/v1", "");
    assert!(std::net::TcpStream::connect(address).is_err());
    assert_eq!(model.requests().len(), 1);
}
