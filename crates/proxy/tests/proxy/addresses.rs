//! The addresses that an allowed name may lead to.

use lathe_proxy::{ConnectionDecision, ConnectionEnd};

use crate::servers::{echo, web};
use crate::world::{PUBLIC, Setup, World, get, status};

#[tokio::test]
async fn a_name_that_leads_to_a_special_address_is_refused() {
    let mut world = World::allowing(&["*.example.com"]).await;
    for (index, address) in [
        "127.0.0.1",
        "10.0.0.1",
        "172.16.5.4",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "240.0.0.1",
        "192.0.2.1",
        "198.51.100.1",
        "203.0.113.1",
        "198.18.0.1",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::",
        "2001:db8::1",
        "fd00:ec2::254",
        "fe80::1",
        "ff02::1",
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("n{index}.example.com");
        world.name(&name, &[address]);
        assert_eq!(world.status(&format!("{name}:443")).await, 403, "{address}");
        let record = world.record().await;
        assert_eq!(record.decision, ConnectionDecision::Denied, "{address}");
        assert_eq!(record.addresses.len(), 1, "{address}");
        assert!(record.reason.starts_with("leads to "), "{}", record.reason);
    }
    assert_eq!(world.connects(), [] as [String; 0]);
}

#[tokio::test]
async fn a_client_is_not_told_the_address_that_a_name_leads_to() {
    let mut world = World::allowing(&["inner.example.com"]).await;
    world.name("inner.example.com", &["10.20.30.40"]);
    let (_, line) = world.ask_connect("inner.example.com:443").await;
    assert_eq!(
        line,
        "HTTP/1.1 403 `inner.example.com:443` leads to a private network, which is not allowed in this session; \
         allow the address with `sandbox.hosts`"
    );
    assert_eq!(world.record().await.reason, "leads to 10.20.30.40, a private network");
}

#[tokio::test]
async fn a_listed_range_opens_its_addresses_to_allowed_names_only() {
    let world = World::allowing(&["db.example.com:5432", "10.0.0.0/8"]).await;
    world.name("db.example.com", &["10.0.0.5"]);
    world.name("other.example.com", &["10.0.0.5"]);
    world.route("10.0.0.5:5432", echo().await);
    assert_eq!(world.status("db.example.com:5432").await, 200);
    assert_eq!(world.status("other.example.com:443").await, 403);
    assert_eq!(world.queries(), ["db.example.com"]);
}

#[tokio::test]
async fn a_denied_address_is_refused_whichever_name_leads_to_it() {
    let mut setup = Setup::allowing(&["example.com"]);
    setup.deny = vec!["93.184.216.0/24"];
    let mut world = setup.start().await;
    assert_eq!(world.status("example.com:443").await, 403);
    assert_eq!(world.record().await.reason, "leads to 93.184.216.34, denied by `93.184.216.0/24`");
    assert_eq!(world.connects(), [] as [String; 0]);
}

#[tokio::test]
async fn a_name_is_resolved_once_and_the_checked_address_is_connected_to() {
    let mut world = World::allowing(&["rebind.example.com"]).await;
    world.name("rebind.example.com", &[PUBLIC]);
    world.name("rebind.example.com", &["127.0.0.1"]);
    let echo = echo().await;
    world.route("93.184.216.34:443", echo);
    world.route("127.0.0.1:443", echo);

    let (client, line) = world.ask_connect("rebind.example.com:443").await;
    assert_eq!(status(&line), 200);
    assert_eq!(world.queries().len(), 1);
    assert_eq!(world.connects(), ["93.184.216.34:443"]);
    drop(client);
    world.record().await;

    // The next connection is a new decision.
    assert_eq!(world.status("rebind.example.com:443").await, 403);
    assert_eq!(world.record().await.reason, "leads to 127.0.0.1, this machine");
    assert_eq!(world.connects(), ["93.184.216.34:443"]);
}

#[tokio::test]
async fn an_answer_with_one_special_address_is_refused_as_a_whole() {
    let mut world = World::allowing(&["*.example.com"]).await;
    world.name("a.example.com", &[PUBLIC, "127.0.0.1"]);
    world.name("b.example.com", &["::1", PUBLIC]);
    world.name("c.example.com", &[PUBLIC, "93.184.216.35", "::ffff:169.254.169.254"]);
    world.route("93.184.216.34:443", echo().await);
    for name in ["a", "b", "c"] {
        assert_eq!(world.status(&format!("{name}.example.com:443")).await, 403, "{name}");
        assert_eq!(world.record().await.decision, ConnectionDecision::Denied);
    }
    assert_eq!(world.connects(), [] as [String; 0]);
}

#[tokio::test]
async fn addresses_are_tried_in_order() {
    let mut world = World::allowing(&["many.example.com"]).await;
    world.name("many.example.com", &["93.184.216.1", "2606:2800:220:1::1", PUBLIC, "93.184.216.99"]);
    world.route("93.184.216.34:443", echo().await);
    let (client, line) = world.ask_connect("many.example.com:443").await;
    assert_eq!(status(&line), 200);
    drop(client);
    assert_eq!(world.connects(), ["93.184.216.1:443", "[2606:2800:220:1::1]:443", "93.184.216.34:443"]);
    assert_eq!(world.record().await.addresses.len(), 4);
}

#[tokio::test]
async fn an_address_is_connected_to_in_the_form_in_which_it_was_checked() {
    let mut world = World::allowing(&["mapped.example.com"]).await;
    world.name("mapped.example.com", &["::ffff:93.184.216.34", PUBLIC]);
    assert_eq!(world.status("mapped.example.com:443").await, 502);
    assert_eq!(world.connects(), ["93.184.216.34:443"]);
    assert_eq!(world.record().await.addresses, ["93.184.216.34:443".parse().unwrap()]);
}

#[tokio::test]
async fn a_host_that_cannot_be_reached_is_no_denial() {
    let mut world = World::allowing(&["example.com", "nowhere.test", "empty.test"]).await;
    world.name("empty.test", &[]);
    for (host, why) in [
        ("example.com", "connection refused"),
        ("nowhere.test", "its name cannot be resolved: no such name"),
        ("empty.test", "its name has no address"),
    ] {
        let (_, line) = world.ask_connect(&format!("{host}:443")).await;
        assert_eq!(line, format!("HTTP/1.1 502 `{host}:443` is allowed, but cannot be reached: {why}"));
        let record = world.record().await;
        assert_eq!(record.decision, ConnectionDecision::Allowed);
        assert_eq!(record.ended, ConnectionEnd::Unreachable(why.to_owned()));
    }
}

#[tokio::test]
async fn a_redirect_is_a_new_request_and_judged_anew() {
    let mut world = World::allowing(&["example.com", "inner.example.com"]).await;
    world.name("inner.example.com", &["192.168.0.1"]);
    for (location, reason) in [
        ("169.254.169.254", "an address that is not listed"),
        ("0xa9fea9fe", "an address that is not listed"),
        ("inner.example.com", "leads to 192.168.0.1, a private network"),
        ("other.test", "not listed"),
    ] {
        let response =
            format!("HTTP/1.1 302 Found\r\nLocation: http://{location}/\r\nContent-Length: 0\r\n\r\n");
        let (address, _requests) = web("\r\n\r\n", response.leak(), true).await;
        world.route("93.184.216.34:80", address);
        let answer = world.send(get("example.com")).await;
        assert_eq!(status(&answer), 302);
        assert_eq!(world.record().await.decision, ConnectionDecision::Allowed);
        let target = answer.split("http://").nth(1).unwrap().split('/').next().unwrap();
        assert_eq!(status(&world.send(get(target)).await), 403, "{location}");
        assert_eq!(world.record().await.reason, reason);
    }
    assert!(world.connects().iter().all(|address| address == "93.184.216.34:80"));
}
