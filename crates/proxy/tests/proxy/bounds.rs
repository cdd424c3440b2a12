//! Limits, and the end of a proxy.

use std::time::Duration;

use lathe_proxy::{ConnectionDecision, ConnectionEnd};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::servers::{echo, server};
use crate::socks::socks_name;
use crate::world::{Setup, World, connect, get, read_all, status};

#[tokio::test]
async fn a_thousand_connections_at_once_are_all_decided_and_recorded() {
    // Each has four sockets in this process.
    let (_, most) = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE).unwrap();
    nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE, most, most).unwrap();
    let mut world = World::allowing(&["example.com"]).await;
    world.route("93.184.216.34:443", echo().await);

    let mut opening = JoinSet::new();
    for number in 0..1000u32 {
        let address = world.address;
        opening.spawn(async move {
            let mut client = TcpStream::connect(address).await.unwrap();
            let (request, length) = match number % 4 {
                0 | 1 => (connect("example.com:443"), 12),
                2 => (connect("denied.test:443"), 12),
                _ => (socks_name("example.com", 443), 12),
            };
            client.write_all(&request).await.unwrap();
            let mut answer = vec![0; length];
            client.read_exact(&mut answer).await.unwrap();
            let is_open = if answer[0] == 5 { answer[3] == 0 } else { answer == b"HTTP/1.1 200" };
            assert_eq!(is_open, number % 4 != 2, "{number}");
            (client, is_open)
        });
    }
    let mut clients = Vec::new();
    while let Some(opened) = opening.join_next().await {
        clients.push(opened.unwrap());
    }
    assert_eq!(clients.len(), 1000);
    // All that are allowed are open at the same time; each carries its own bytes.
    for (number, (client, _)) in clients.iter_mut().enumerate().filter(|(_, (_, is_open))| *is_open) {
        client.write_all(&vec![b'x'; number]).await.unwrap();
        client.shutdown().await.unwrap();
    }
    for (number, (client, _)) in clients.iter_mut().enumerate().filter(|(_, (_, is_open))| *is_open) {
        let answer = read_all(client).await;
        assert!(answer.ends_with(&"x".repeat(number)), "{number}");
    }
    drop(clients);

    let (mut ids, mut allowed, mut bytes) = (Vec::new(), 0, 0);
    for _ in 0..1000 {
        let record = world.record().await;
        ids.push(record.id);
        bytes += record.bytes_up;
        match record.decision {
            ConnectionDecision::Allowed => {
                allowed += 1;
                assert_eq!(record.ended, ConnectionEnd::Closed);
            }
            ConnectionDecision::Denied => assert_eq!(record.ended, ConnectionEnd::Refused),
            ConnectionDecision::AllowedByAnswer | ConnectionDecision::DeniedByAnswer => unreachable!(),
        }
    }
    ids.sort_unstable();
    assert_eq!(ids, (1..=1000).collect::<Vec<u64>>());
    assert_eq!(allowed, 750);
    assert!(bytes > 0);
    assert_eq!(world.queries().len(), 750);
    assert_eq!(world.stop().await, []);
}

#[tokio::test]
async fn more_connections_than_the_limit_wait() {
    let mut setup = Setup::allowing(&["example.com"]);
    setup.limits.connections = 2;
    let mut world = setup.start().await;
    world.route("93.184.216.34:443", echo().await);
    let first = world.tunnel("example.com:443").await;
    let mut second = world.tunnel("example.com:443").await;
    let mut third = world.client().await;
    third.write_all(&connect("example.com:443")).await.unwrap();
    // Meanwhile the proxy has all the time to make a mistake.
    for _ in 0..100 {
        second.write_all(b"x").await.unwrap();
        assert_eq!(second.read_u8().await.unwrap(), b'x');
    }
    assert_eq!(world.connects().len(), 2);
    drop(first);
    let mut answer = [0; 12];
    third.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    // The third was accepted only after the first had ended, and so after its record.
    assert_eq!(world.record().await.id, 1);
    assert_eq!(world.connects().len(), 3);
}

#[tokio::test]
async fn a_head_that_never_ends_is_given_up() {
    let mut setup = Setup::allowing(&["example.com"]);
    setup.limits.head = Duration::from_millis(50);
    let mut world = setup.start().await;
    for (start, dribble, answer) in [
        (&b"GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n"[..], &b"X: 1\r\n"[..], 408),
        (b"G", b"E", 408),
        (b"\x05\x02\x00", b"", 0),
        (b"", b"", 0),
    ] {
        let mut client = world.client().await;
        client.write_all(start).await.unwrap();
        let (mut reader, mut writer) = client.split();
        let mut found = Vec::new();
        // A client that sends a little from time to time gains nothing by it.
        let dribbling = async {
            while writer.write_all(dribble).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            read = reader.read_to_end(&mut found) => { read.unwrap(); }
            () = dribbling => {}
        }
        match answer {
            0 => assert!(found.is_empty() || found == [5, 0xff], "{found:?}"),
            code => assert_eq!(status(&String::from_utf8_lossy(&found)), code),
        }
        let record = world.record().await;
        assert_eq!(record.reason, "the request did not arrive in time");
        assert_eq!(record.decision, ConnectionDecision::Denied);
    }
}

#[tokio::test]
async fn a_greeting_of_tls_that_never_ends_is_given_up_and_other_silence_is_not() {
    let mut setup = Setup::allowing(&["example.com"]);
    setup.limits.head = Duration::from_millis(50);
    let mut world = setup.start().await;
    world.route("93.184.216.34:443", echo().await);
    let mut quiet = world.tunnel("example.com:443").await;
    let mut client = world.tunnel("example.com:443").await;
    client.write_all(&[22, 3, 1]).await.unwrap();
    assert_eq!(read_all(&mut client).await, "");
    assert_eq!(world.record().await.reason, "the ClientHello did not arrive in time");
    // By now, the other tunnel has been quiet for as long.
    quiet.write_all(b"late").await.unwrap();
    quiet.shutdown().await.unwrap();
    assert_eq!(read_all(&mut quiet).await, "late");
}

#[tokio::test]
async fn a_client_that_was_refused_may_finish_its_request() {
    let mut world = World::allowing(&["example.com"]).await;
    let mut client = world.client().await;
    let head = b"POST http://denied.test/ HTTP/1.1\r\nHost: denied.test\r\nContent-Length: 700000\r\n\r\n";
    client.write_all(head).await.unwrap();
    assert_eq!(status(&read_all(&mut client).await), 403);
    assert_eq!(world.record().await.bytes_up, 0);
    // Many clients send all of their body before they look at the answer: a reset would hide it from them.
    for _ in 0..100 {
        client.write_all(&[b'x'; 7000]).await.unwrap();
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let mut world = World::allowing(&["example.com"]).await;
    let line = "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n";
    for request in [
        format!("{line}X: {}\r\n\r\n", "x".repeat(17_000)),
        format!("GET http://example.com/{} HTTP/1.1\r\n", "x".repeat(17_000)),
        format!("{line}{}\r\n", "X: 1\r\n".repeat(3_000)),
        format!("{line}{}\r\n", "X: 1\r\n".repeat(101)),
    ] {
        assert_eq!(status(&world.send(request).await), 431);
        assert_eq!(world.record().await.reason, "the head of the request is too large");
    }
}

#[tokio::test]
async fn an_address_that_does_not_answer_is_given_up() {
    let mut setup = Setup::allowing(&["example.com"]);
    setup.limits.connect = Duration::from_millis(50);
    let mut world = setup.start().await;
    world.silence("93.184.216.34:443");
    world.silence("93.184.216.34:80");
    let (_, line) = world.ask_connect("example.com:443").await;
    assert_eq!(
        line,
        "HTTP/1.1 504 `example.com:443` is allowed, but cannot be reached: no connection in time"
    );
    let record = world.record().await;
    assert_eq!(record.decision, ConnectionDecision::Allowed);
    assert_eq!(record.ended, ConnectionEnd::Unreachable("no connection in time".to_owned()));
    assert_eq!(status(&world.send(get("example.com")).await), 504);
}

#[tokio::test]
async fn a_slow_reader_slows_the_server_down() {
    let world = World::allowing(&["example.com"]).await;
    let (sender, mut written) = mpsc::unbounded_channel();
    let address = server(move |mut stream| {
        let sender = sender.clone();
        async move {
            let block = vec![0; 64 * 1024];
            while let Ok(length) = stream.write(&block).await {
                let _ = sender.send(length);
            }
        }
    })
    .await;
    world.route("93.184.216.34:443", address);
    let client = world.tunnel("example.com:443").await;
    // The client reads nothing, so the server gets rid of what the buffers of the system hold, and then of nothing more.
    let mut total = 0;
    while let Ok(Some(length)) = tokio::time::timeout(Duration::from_millis(300), written.recv()).await {
        total += length;
        assert!(total < 256 * 1024 * 1024, "the proxy takes everything");
    }
    drop(client);
}

#[tokio::test]
async fn stopping_ends_and_records_everything() {
    let world = World::allowing(&["example.com"]).await;
    world.route("93.184.216.34:443", echo().await);
    world.silence("93.184.216.34:80");
    let mut open = world.tunnel("example.com:443").await;
    open.write_all(b"hello").await.unwrap();
    let mut hello = [0; 5];
    open.read_exact(&mut hello).await.unwrap();
    let _silent = world.client().await;
    let mut waiting = world.client().await;
    waiting.write_all(&get("example.com")).await.unwrap();
    while world.connects().len() < 2 {
        tokio::task::yield_now().await;
    }
    let address = world.address;
    let records = world.stop().await;
    assert_eq!(records.len(), 3);
    assert!(records.iter().all(|record| record.ended == ConnectionEnd::Stopped), "{records:?}");
    let tunnel = records.iter().find(|record| record.port == Some(443)).unwrap();
    assert_eq!(tunnel.decision, ConnectionDecision::Allowed);
    assert_eq!((tunnel.bytes_up, tunnel.bytes_down), (5, 5));
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn a_client_that_says_nothing_is_recorded() {
    let mut world = World::allowing(&["example.com"]).await;
    drop(world.client().await);
    let record = world.record().await;
    assert_eq!((record.protocol, record.host, record.asked.as_str()), (None, None, ""));
    assert_eq!(record.reason, "the client closed before it asked for a host");
}
