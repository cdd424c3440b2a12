//! The hosts that are reached, however they are spelled.

use lathe_proxy::{ConnectionDecision, ConnectionEnd, ProxyProtocol, UnlistedHosts};
use tokio::io::AsyncWriteExt;

use crate::servers::{echo, web};
use crate::socks::socks_name;
use crate::world::{PUBLIC, Setup, World, connect, get, read_all, status};

#[tokio::test]
async fn an_allowed_host_is_connected_and_recorded() {
    let mut world = World::allowing(&["example.com"]).await;
    world.route("93.184.216.34:443", echo().await);
    let mut client = world.tunnel("example.com:443").await;
    client.write_all(b"hello").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(read_all(&mut client).await, "hello");

    let record = world.record().await;
    assert_eq!(record.id, 1);
    assert_eq!(record.protocol, Some(ProxyProtocol::Connect));
    assert_eq!(record.asked, "example.com:443");
    assert_eq!(record.host.as_deref(), Some("example.com"));
    assert_eq!(record.port, Some(443));
    assert_eq!(record.decision, ConnectionDecision::Allowed);
    assert_eq!(record.reason, "allowed by `example.com`");
    assert_eq!(record.addresses, ["93.184.216.34:443".parse().unwrap()]);
    assert_eq!((record.bytes_up, record.bytes_down), (5, 5));
    assert_eq!(record.ended, ConnectionEnd::Closed);
    assert_eq!(world.queries(), ["example.com"]);
    assert_eq!(world.connects(), ["93.184.216.34:443"]);
    assert_eq!(world.stop().await, []);
}

#[tokio::test]
async fn a_denied_name_makes_no_query_and_its_answer_says_what_to_do() {
    let mut world = World::allowing(&["example.com"]).await;
    let line = "`other.test:443` is not an allowed host of this session; allow it with `sandbox.hosts`";
    let answer = world.send(connect("other.test:443")).await;
    assert_eq!(
        answer,
        format!(
            "HTTP/1.1 403 {line}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{line}\n",
            line.len() + 1
        )
    );
    let record = world.record().await;
    assert_eq!(record.decision, ConnectionDecision::Denied);
    assert_eq!(record.reason, "not listed");
    assert_eq!(record.host.as_deref(), Some("other.test"));
    assert_eq!(record.ended, ConnectionEnd::Refused);
    assert_eq!((record.bytes_up, record.bytes_down), (0, 0));

    assert_eq!(status(&world.send(get("other.test")).await), 403);
    assert_eq!(world.record().await.protocol, Some(ProxyProtocol::Http));
    assert_eq!(world.send(socks_name("other.test", 443)).await.as_bytes()[2..4], [5, 2]);
    assert_eq!(world.record().await.protocol, Some(ProxyProtocol::Socks5));
    assert_eq!(world.queries(), [] as [String; 0]);
    assert_eq!(world.connects(), [] as [String; 0]);
}

/// Spellings of addresses that a resolver would take, and the address that each means.
const SPELLINGS: [(&str, &str); 26] = [
    ("127.0.0.1", "127.0.0.1"),
    ("127.0.0.1.", "127.0.0.1"),
    ("127.000.000.001", "127.0.0.1"),
    ("0x7f000001", "127.0.0.1"),
    ("0X7F000001", "127.0.0.1"),
    ("0x7f.0.0.1", "127.0.0.1"),
    ("0x7f.0x0.0x0.0x1", "127.0.0.1"),
    ("0177.0.0.1", "127.0.0.1"),
    ("017700000001", "127.0.0.1"),
    ("2130706433", "127.0.0.1"),
    ("127.1", "127.0.0.1"),
    ("127.0.1", "127.0.0.1"),
    ("0x7f.1", "127.0.0.1"),
    ("①②⑦.⓪.⓪.①", "127.0.0.1"),
    ("１２７。０。０。１", "127.0.0.1"),
    ("0", "0.0.0.0"),
    ("169.254.169.254", "169.254.169.254"),
    ("2852039166", "169.254.169.254"),
    ("0xa9fea9fe", "169.254.169.254"),
    ("93.184.216.34", "93.184.216.34"),
    ("[::1]", "[::1]"),
    ("[::ffff:127.0.0.1]", "127.0.0.1"),
    ("[0:0:0:0:0:ffff:7f00:1]", "127.0.0.1"),
    ("[64:ff9b::127.0.0.1]", "[64:ff9b::7f00:1]"),
    ("[2002:7f00:1::]", "[2002:7f00:1::]"),
    ("[fd00:ec2::254]", "[fd00:ec2::254]"),
];

#[tokio::test]
async fn an_address_is_denied_in_every_spelling_and_never_resolved() {
    let mut setup = Setup::allowing(&["example.com", "*.test"]);
    // Not even a question.
    setup.unlisted = UnlistedHosts::Ask;
    let mut world = setup.start().await;
    for (spelling, meant) in SPELLINGS {
        for request in [connect(&format!("{spelling}:443")), get(spelling), socks_name(spelling, 443)] {
            let answer = world.send(&request).await;
            let record = world.record().await;
            assert_eq!(record.decision, ConnectionDecision::Denied, "{spelling}");
            assert_eq!(record.host.as_deref(), Some(meant), "{spelling}");
            assert_eq!(record.reason, "an address that is not listed", "{spelling}");
            match record.protocol.unwrap() {
                ProxyProtocol::Connect | ProxyProtocol::Http => {
                    assert_eq!(status(&answer), 403, "{spelling}")
                }
                ProxyProtocol::Socks5 => assert_eq!(answer.as_bytes()[3], 2, "{spelling}"),
            }
        }
    }
    assert_eq!(world.queries(), [] as [String; 0]);
    assert_eq!(world.connects(), [] as [String; 0]);
    assert_eq!(world.questions(), [] as [String; 0]);
}

#[tokio::test]
async fn a_listed_address_is_reached_in_every_spelling_of_it() {
    let world = World::allowing(&["127.0.0.0/8", "93.184.216.34", "::1"]).await;
    let echo = echo().await;
    for address in ["127.0.0.1:443", "93.184.216.34:443", "[::1]:443"] {
        world.route(address, echo);
    }
    for (spelling, meant) in SPELLINGS {
        let reached = ["127.0.0.1", "93.184.216.34", "[::1]"].contains(&meant);
        let status = world.status(&format!("{spelling}:443")).await;
        assert_eq!(status, if reached { 200 } else { 403 }, "{spelling}");
        assert_eq!(world.connects().last() == Some(&format!("{meant}:443")), reached, "{spelling}");
    }
    assert_eq!(world.queries(), [] as [String; 0]);
}

#[tokio::test]
async fn an_address_with_a_zone_is_refused() {
    let mut world = World::allowing(&["fe80::/10"]).await;
    for spelling in ["[fe80::1%eth0]", "[fe80::1%25eth0]", "[fe80::1%1]"] {
        assert_eq!(world.status(&format!("{spelling}:443")).await, 403, "{spelling}");
        assert_eq!(world.record().await.reason, "an address with a zone is never reached");
    }
    assert_eq!(world.connects(), [] as [String; 0]);
}

#[tokio::test]
async fn a_name_is_the_same_in_every_spelling() {
    let mut world = World::allowing(&["example.com", "bücher.example"]).await;
    world.name("xn--bcher-kva.example", &[PUBLIC]);
    world.route("93.184.216.34:443", echo().await);
    for (spelling, host) in [
        ("example.com", "example.com"),
        ("EXAMPLE.com", "example.com"),
        ("example.com.", "example.com"),
        ("eXaMpLe.CoM.", "example.com"),
        ("ｅxample。com", "example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example.", "xn--bcher-kva.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("XN--BCHER-KVA.EXAMPLE", "xn--bcher-kva.example"),
    ] {
        let (client, line) = world.ask_connect(&format!("{spelling}:443")).await;
        assert_eq!(status(&line), 200, "{spelling}");
        drop(client);
        let record = world.record().await;
        assert_eq!(record.host.as_deref(), Some(host));
        assert_eq!(record.asked, format!("{spelling}:443"));
        assert_eq!(world.queries().last().map(String::as_str), Some(host));
    }
}

#[tokio::test]
async fn a_look_alike_is_another_host() {
    let mut world = World::allowing(&["*.example.com", "example.com"]).await;
    for host in [
        "evil-example.com",
        "xexample.com",
        "example.com.evil.test",
        "www.example.com.evil.test",
        "example.co",
        "example.comm",
        "wwwexample.com",
        // A Cyrillic `е` and a dot that is none.
        "еxample.com",
        "www․evil.test",
        "xn--example-.com",
    ] {
        assert_eq!(world.status(&format!("{host}:443")).await, 403, "{host}");
        assert_eq!(world.record().await.decision, ConnectionDecision::Denied);
    }
    assert_eq!(world.queries(), [] as [String; 0]);
}

#[tokio::test]
async fn a_wildcard_is_for_names_below_it() {
    let world = World::allowing(&["*.example.com"]).await;
    world.route("93.184.216.34:443", echo().await);
    for name in ["www.example.com", "a.b.c.example.com"] {
        world.name(name, &[PUBLIC]);
        assert_eq!(world.status(&format!("{name}:443")).await, 200, "{name}");
    }
    assert_eq!(world.status("example.com:443").await, 403);
}

#[tokio::test]
async fn text_that_is_no_host_is_a_bad_request() {
    let mut world = World::allowing(&["example.com", "*.example.com", "evil.test"]).await;
    for authority in [
        "user@example.com:443",
        "user:word@example.com:443",
        "example.com@evil.test:443",
        "evil.test#@example.com:443",
        "example.com\\@evil.test:443",
        ".example.com:443",
        "www..example.com:443",
        "example.com..:443",
        "example%2ecom:443",
        "www%00.example.com:443",
        "*.example.com:443",
        "example.com/:443",
        "example.com:443/",
        "http://example.com:443",
        "example.com",
        "example.com:",
        "example.com:0",
        "example.com:65536",
        "example.com:4e2",
        "example.com:+443",
        "example.com:443:443",
        "::1:443",
        "[::1:443",
        "[::1]443",
        "[example.com]:443",
        ":443",
        ".:443",
    ] {
        let request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
        assert_eq!(status(&world.send(request).await), 400, "{authority}");
        let record = world.record().await;
        assert_eq!(record.decision, ConnectionDecision::Denied, "{authority}");
        assert_eq!(record.asked, authority);
    }
    for name in
        ["exa mple.com", "example.com\0", "example.com\0.evil.test", "example.com ", "", "user@example.com"]
    {
        assert_eq!(world.send(socks_name(name, 443)).await.as_bytes()[3], 1, "{name:?}");
        assert_eq!(world.record().await.host, None, "{name:?}");
    }
    for request in [
        &b"CONNECT example.com\0:443 HTTP/1.1\r\n\r\n"[..],
        b"CONNECT example.com :443 HTTP/1.1\r\n\r\n",
        b"CONNECT\texample.com:443 HTTP/1.1\r\n\r\n",
        b"GET http://user@example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
        b"GET http://example.com#@evil.test/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
    ] {
        assert_eq!(status(&world.send(request).await), 400, "{request:?}");
    }
    assert_eq!(world.queries(), [] as [String; 0]);
}

#[tokio::test]
async fn a_name_that_cannot_exist_is_denied() {
    let mut world = World::allowing(&["*.example.com"]).await;
    let long = format!("{}.example.com", "a".repeat(64));
    for name in
        ["xn--a.example.com", "\u{202e}.example.com", "1.2.3.4.5", "300.1.1.1", "a.b.999", long.as_str()]
    {
        assert_eq!(world.status(&format!("{name}:443")).await, 403, "{name}");
        assert_eq!(world.record().await.host, None, "{name}");
    }
    assert_eq!(world.queries(), [] as [String; 0]);
}

#[tokio::test]
async fn another_port_needs_a_pattern_that_names_it() {
    let mut world = World::allowing(&["example.com", "example.com:8443"]).await;
    let echo = echo().await;
    for port in [80, 443, 8443, 22] {
        world.route(&format!("93.184.216.34:{port}"), echo);
    }
    for (port, expected) in [(80, 200), (443, 200), (8443, 200), (22, 403), (25, 403), (8080, 403), (1, 403)]
    {
        assert_eq!(world.status(&format!("example.com:{port}")).await, expected, "{port}");
        let record = world.record().await;
        assert_eq!(record.reason == "allowed on other ports only", expected == 403, "{port}");
    }
    let (address, _requests) = web("\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n", true).await;
    world.route("93.184.216.34:8443", address);
    assert_eq!(status(&world.send(get("example.com:8443")).await), 204);
    assert_eq!(status(&world.send(get("example.com:8080")).await), 403);
}

#[tokio::test]
async fn a_denied_host_is_denied_whatever_allows_it() {
    let mut setup = Setup::allowing(&["*.example.com", "registry:npm"]);
    setup.deny = vec!["bad.example.com", "registry.npmjs.org"];
    setup.unlisted = UnlistedHosts::Ask;
    let mut world = setup.start().await;
    for host in ["bad.example.com", "BAD.example.com.", "registry.npmjs.org"] {
        let (_, line) = world.ask_connect(&format!("{host}:443")).await;
        let normal = host.to_ascii_lowercase();
        let normal = normal.trim_end_matches('.');
        assert_eq!(line, format!("HTTP/1.1 403 `{normal}:443` is a denied host of this session"));
        assert_eq!(world.record().await.reason, format!("denied by `{normal}`"));
    }
    assert_eq!(world.questions(), [] as [String; 0]);
    assert_eq!(world.queries(), [] as [String; 0]);
}
