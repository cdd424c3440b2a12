//! Several surfaces connected to one session (issue 7): a question is put to all of them, and the first answer
//! counts.

use std::path::Path;

use lathe_host::{Attended, Extras, Home, Host, ModelRequest, ModelSource, OpenSession, SessionPlan};
use lathe_protocol::{
    Actor, ApprovalAnswer, CallId, Command, CommandBody, CommandId, EndingRule, Event, EventStream, Fact,
    Limits, Mode, Proposal, Raw, ReceiptAnswer, Seq, ToolChoice, Update,
};
use lathe_testkit::{FakeModel, Script, call, say};
use serde_json::{Value, json};

async fn started(home: &Path, folder: &Path, model: &FakeModel) -> OpenSession {
    let request = ModelRequest {
        base_url: Some(model.base_url().to_owned()),
        api_key: Some(model.key().to_owned()),
        model: Some("fake".to_owned()),
        ..ModelRequest::default()
    };
    let plan = SessionPlan {
        own_model: false,
        folder: folder.to_owned(),
        source: ModelSource::Ask(request),
        mode: lathe_host::ModeWish::Given(Mode::Default),
        sandbox: Some(lathe_protocol::Sandbox::Off),
        toolset: None,
        limits: Limits::default(),
        ending: EndingRule::EndTurn,
        patch: None,
        tools: ToolChoice::default(),
        record: None,
        attended: Attended::Person,
        extras: Extras::default(),
    };
    let session = Host::new(Home::at(home.to_owned())).start(plan).await.unwrap();
    submit(
        &session,
        "task",
        Actor::Person,
        CommandBody::GiveTask { text: "hi".to_owned(), images: Vec::new() },
    )
    .await;
    session
}

async fn submit(session: &OpenSession, id: &str, actor: Actor, body: CommandBody) -> ReceiptAnswer {
    session.handle().submit(Command { id: CommandId::new(id), actor, body }).await.answer
}

fn answer(question: Seq, answer: ApprovalAnswer) -> CommandBody {
    CommandBody::Approve { call: CallId::new("c"), question, answer, reason: None, edited: None }
}

/// The next event that is wanted.
async fn until(updates: &mut dyn EventStream, wanted: impl Fn(&Fact) -> bool) -> Event {
    loop {
        match updates.next().await.expect("the session goes on") {
            Update::Event(event) if wanted(&event.fact) => return event.as_ref().clone(),
            Update::Event(_) | Update::Frame(_) => {}
        }
    }
}

fn asked(fact: &Fact) -> bool {
    matches!(fact, Fact::ApprovalAsked(_))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_answer_counts_and_the_others_are_told() {
    let (home, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let script =
        Script::new().answer(call("c", "bash", json!({ "command": "touch made" }))).answer(say("ok"));
    let model = FakeModel::serving(script);
    let session = started(home.path(), folder.path(), &model).await;
    let mut first = session.handle().subscribe(Seq(0));
    let mut second = session.handle().subscribe(Seq(0));
    let question = until(&mut *first, asked).await.seq;
    assert_eq!(until(&mut *second, asked).await.seq, question);
    let refused = |receipt: &ReceiptAnswer| matches!(receipt, ReceiptAnswer::Refused { .. });
    // Only people give leave, and only to what is asked.
    assert!(refused(&submit(&session, "m", Actor::Model, answer(question, ApprovalAnswer::Once)).await));
    assert!(refused(&submit(&session, "o", Actor::Person, answer(Seq(1), ApprovalAnswer::Once)).await));
    let (one, two) = tokio::join!(
        submit(&session, "a", Actor::Person, answer(question, ApprovalAnswer::Once)),
        submit(&session, "b", Actor::Person, answer(question, ApprovalAnswer::No)),
    );
    assert_ne!(refused(&one), refused(&two), "{one:?} {two:?}");
    let given = until(&mut *second, |fact| matches!(fact, Fact::ApprovalGiven(_))).await;
    assert_eq!(given.place.cause, Some(question));
    // A repeat gets the first receipt.
    let (winner, body) = if refused(&one) {
        ("b", answer(question, ApprovalAnswer::No))
    } else {
        ("a", answer(question, ApprovalAnswer::Once))
    };
    let again = submit(&session, winner, Actor::Person, body).await;
    assert_eq!(again, ReceiptAnswer::Accepted { seq: given.seq });
    until(&mut *first, |fact| matches!(fact, Fact::TaskFinished(_))).await;
    assert_eq!(folder.path().join("made").exists(), winner == "a");
    session.close().await.unwrap();
    assert_eq!(model.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_commands_of_one_line_are_two_questions() {
    let (home, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let line = json!({ "command": "write a.txt one | write b.txt two" });
    let script = Script::new().answer(call("c", "bash", line)).answer(say("ok"));
    let model = FakeModel::serving(script);
    let session = started(home.path(), folder.path(), &model).await;
    let mut updates = session.handle().subscribe(Seq(0));
    let mut refused = 0;
    for at in 0..2 {
        let event = until(&mut *updates, asked).await;
        let Fact::ApprovalAsked(body) = &event.fact else { continue };
        let Proposal::Command { words, .. } = &body.what else { panic!("{body:?}") };
        let said = if words[1] == "a.txt" { ApprovalAnswer::Once } else { ApprovalAnswer::No };
        refused += usize::from(said == ApprovalAnswer::No);
        let receipt = submit(&session, &format!("k{at}"), Actor::Person, answer(event.seq, said)).await;
        assert!(matches!(receipt, ReceiptAnswer::Accepted { .. }), "{receipt:?}");
    }
    until(&mut *updates, |fact| matches!(fact, Fact::TaskFinished(_))).await;
    assert_eq!(refused, 1);
    assert!(folder.path().join("a.txt").exists() && !folder.path().join("b.txt").exists());
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_for_the_session_spares_the_same_question_inside_a_line() {
    let (home, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let line = json!({ "command": "for n in 1 2 3; do write a.txt $n; view a.txt; done" });
    let script = Script::new().answer(call("c", "bash", line)).answer(say("ok"));
    let model = FakeModel::serving(script);
    let session = started(home.path(), folder.path(), &model).await;
    let mut updates = session.handle().subscribe(Seq(0));
    let question = until(&mut *updates, asked).await.seq;
    submit(&session, "k", Actor::Person, answer(question, ApprovalAnswer::Session)).await;
    let next = until(&mut *updates, |fact| matches!(fact, Fact::TaskFinished(_)) || asked(fact)).await;
    assert!(!asked(&next.fact), "{next:?}");
    assert_eq!(std::fs::read_to_string(folder.path().join("a.txt")).unwrap(), "3");
    session.close().await.unwrap();
}

fn edited(question: Seq, arguments: Value) -> CommandBody {
    CommandBody::Approve {
        call: CallId::new("c"),
        question,
        answer: ApprovalAnswer::Once,
        reason: None,
        edited: Some(Raw::from_serialize(&arguments).unwrap()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_may_change_a_proposal_and_the_result_says_so() {
    let (home, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let script =
        Script::new().answer(call("c", "bash", json!({ "command": "touch theirs" }))).answer(say("ok"));
    let model = FakeModel::serving(script);
    let session = started(home.path(), folder.path(), &model).await;
    let mut updates = session.handle().subscribe(Seq(0));
    let question = until(&mut *updates, asked).await.seq;
    let refused = |receipt: &ReceiptAnswer| matches!(receipt, ReceiptAnswer::Refused { .. });
    // What does not fit, and what the guard denies, leaves the question open.
    for (id, wrong) in [("1", json!({ "commands": 1 })), ("2", json!({ "command": "rm -rf .git" }))] {
        let receipt = submit(&session, id, Actor::Person, edited(question, wrong)).await;
        assert!(refused(&receipt), "{receipt:?}");
    }
    let always = CommandBody::Approve {
        call: CallId::new("c"),
        question,
        answer: ApprovalAnswer::Always,
        reason: None,
        edited: Some(Raw::from_serialize(&json!({ "command": "touch mine" })).unwrap()),
    };
    assert!(refused(&submit(&session, "3", Actor::Person, always).await));
    let receipt =
        submit(&session, "4", Actor::Person, edited(question, json!({ "command": "touch mine" }))).await;
    assert!(!refused(&receipt), "{receipt:?}");
    let given = until(&mut *updates, |fact| matches!(fact, Fact::ApprovalGiven(_))).await;
    let Fact::ApprovalGiven(given) = given.fact else { return };
    assert_eq!(given.edited.unwrap().get(), r#"{"command":"touch mine"}"#);
    let finished = until(&mut *updates, |fact| matches!(fact, Fact::CallFinished(_))).await;
    let Fact::CallFinished(finished) = finished.fact else { return };
    let begins = "The user changed this call before it ran:\n- command: \"touch theirs\" became \"touch mine\"\nexit code 0";
    assert!(finished.text.starts_with(begins), "{}", finished.text);
    until(&mut *updates, |fact| matches!(fact, Fact::TaskFinished(_))).await;
    assert!(folder.path().join("mine").exists() && !folder.path().join("theirs").exists());
    // The model's own call stays what it was.
    let request = String::from_utf8(model.requests().pop().unwrap().body.to_vec()).unwrap();
    assert!(request.contains("touch theirs") && request.contains("changed this call"), "{request}");
    session.close().await.unwrap();
    assert_eq!(model.violations(), Vec::<String>::new());
}
