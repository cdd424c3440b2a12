//! Hosts that no rule names, where the user is asked.

use lathe_proxy::{ConnectionDecision, HostAnswer, UnlistedHosts};
use tokio::task::JoinSet;

use crate::servers::echo;
use crate::world::{PUBLIC, Setup, World, connect, status};

async fn asking(answer: HostAnswer) -> World {
    let mut setup = Setup::allowing(&["example.com"]);
    setup.unlisted = UnlistedHosts::Ask;
    setup.answer = answer;
    let world = setup.start().await;
    world.name("new.test", &[PUBLIC]);
    let echo = echo().await;
    world.route("93.184.216.34:443", echo);
    world.route("93.184.216.34:8443", echo);
    world
}

/// Waits until a condition holds.
async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn connections_for_one_host_wait_for_one_answer_which_is_remembered() {
    for (answer, code, decision) in [
        (HostAnswer::Allow, 200, ConnectionDecision::AllowedByAnswer),
        (HostAnswer::Refuse, 403, ConnectionDecision::DeniedByAnswer),
    ] {
        let mut world = asking(answer).await;
        let mut clients = JoinSet::new();
        for spelling in ["new.test", "NEW.test", "new.test."].iter().cycle().take(30) {
            let address = world.address;
            let request = connect(&format!("{spelling}:443"));
            clients.spawn(async move {
                use tokio::io::{AsyncReadExt, AsyncWriteExt};
                let mut client = tokio::net::TcpStream::connect(address).await.unwrap();
                client.write_all(&request).await.unwrap();
                let mut start = [0; 12];
                client.read_exact(&mut start).await.unwrap();
                status(&String::from_utf8_lossy(&start))
            });
        }
        until(|| world.questions() == ["new.test:443"]).await;
        assert_eq!(world.queries(), [] as [String; 0], "nothing is resolved before the answer");
        // There is one permit, so a second question would never be answered.
        world.seams.may_answer.add_permits(1);
        while let Some(found) = clients.join_next().await {
            assert_eq!(found.unwrap(), code);
        }
        for _ in 0..30 {
            assert_eq!(world.record().await.decision, decision);
        }
        assert_eq!(world.status("new.test:443").await, code);
        assert_eq!(world.questions(), ["new.test:443"]);
    }
}

#[tokio::test]
async fn another_port_is_another_question() {
    let world = asking(HostAnswer::Allow).await;
    world.seams.may_answer.add_permits(2);
    assert_eq!(world.status("new.test:443").await, 200);
    assert_eq!(world.status("new.test:8443").await, 200);
    assert_eq!(world.questions(), ["new.test:443", "new.test:8443"]);
}

#[tokio::test]
async fn a_listed_host_is_not_asked_about() {
    let world = asking(HostAnswer::Refuse).await;
    assert_eq!(world.status("example.com:443").await, 200);
    assert_eq!(world.questions(), [] as [String; 0]);
}

#[tokio::test]
async fn the_users_yes_does_not_open_special_addresses() {
    let mut world = asking(HostAnswer::Allow).await;
    world.name("inner.test", &["10.0.0.1"]);
    world.seams.may_answer.add_permits(1);
    assert_eq!(world.status("inner.test:443").await, 403);
    assert_eq!(world.record().await.reason, "leads to 10.0.0.1, a private network");
    assert_eq!(world.connects(), [] as [String; 0]);
}

#[tokio::test]
async fn the_refusal_says_that_the_user_refused() {
    let mut world = asking(HostAnswer::Refuse).await;
    world.seams.may_answer.add_permits(1);
    let (_, line) = world.ask_connect("new.test:443").await;
    assert_eq!(line, "HTTP/1.1 403 `new.test:443` was refused by the user for this session");
    assert_eq!(world.record().await.reason, "the user refused it");
}

#[tokio::test]
async fn the_number_of_questions_is_bounded() {
    let mut setup = Setup::allowing(&[]);
    setup.unlisted = UnlistedHosts::Ask;
    setup.answer = HostAnswer::Allow;
    setup.limits.asked_hosts = 2;
    let mut world = setup.start().await;
    world.seams.may_answer.add_permits(10);
    world.route("93.184.216.34:443", echo().await);
    for (name, code) in [("a.test", 200), ("b.test", 200), ("c.test", 403), ("a.test", 200)] {
        world.name(name, &[PUBLIC]);
        assert_eq!(world.status(&format!("{name}:443")).await, code, "{name}");
        let record = world.record().await;
        assert_eq!(record.reason.ends_with("too many hosts were asked about"), code == 403);
    }
    assert_eq!(world.questions(), ["a.test:443", "b.test:443"]);
}

#[tokio::test]
async fn a_question_without_an_answer_ends_with_the_proxy() {
    let world = asking(HostAnswer::Allow).await;
    let mut client = world.client().await;
    tokio::io::AsyncWriteExt::write_all(&mut client, &connect("new.test:443")).await.unwrap();
    until(|| world.questions().len() == 1).await;
    let records = world.stop().await;
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].decision, ConnectionDecision::Denied);
    assert_eq!(records[0].reason, "the connection ended before it was decided");
}
