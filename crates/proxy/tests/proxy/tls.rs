//! The server name of TLS inside of a tunnel.

use std::sync::Arc;

use lathe_proxy::{ConnectionDecision, ConnectionEnd};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::servers::{echo, listener, server};
use crate::socks::socks_name;
use crate::world::{World, connect, read_all};

/// The first bytes of a real TLS client.
fn client_hello(name: &str, sends_name: bool) -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    config.enable_sni = sends_name;
    let name = rustls::pki_types::ServerName::try_from(name.to_owned()).unwrap();
    let mut connection = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut bytes = Vec::new();
    connection.write_tls(&mut bytes).unwrap();
    bytes
}

/// The tunnel's answer to the first bytes of a client, over CONNECT and SOCKS.
async fn answers(
    world: &mut World,
    host: &str,
    port: u16,
    greeting: &[u8],
) -> Vec<(Vec<u8>, ConnectionEnd, String)> {
    let mut found = Vec::new();
    for (request, opened) in [(connect(&format!("{host}:{port}")), 39), (socks_name(host, port), 12)] {
        let mut client = world.client().await;
        client.write_all(&request).await.unwrap();
        let mut answer = vec![0; opened];
        client.read_exact(&mut answer).await.unwrap();
        client.write_all(greeting).await.unwrap();
        client.shutdown().await.unwrap();
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).await.unwrap();
        let record = world.record().await;
        assert_eq!(record.ended == ConnectionEnd::Refused, record.decision == ConnectionDecision::Denied);
        assert_eq!(record.bytes_up, rest.len() as u64);
        found.push((rest, record.ended, record.reason));
    }
    found
}

async fn world() -> World {
    let world = World::allowing(&["example.com", "example.com:8443", "93.184.216.34"]).await;
    let echo = echo().await;
    world.route("93.184.216.34:443", echo);
    world.route("93.184.216.34:8443", echo);
    world
}

#[tokio::test]
async fn tls_for_the_allowed_host_is_carried() {
    let mut world = world().await;
    for (host, name, sends_name) in [
        ("example.com", "example.com", true),
        ("EXAMPLE.com.", "Example.COM", true),
        ("example.com", "other.test", false),
        ("93.184.216.34", "93.184.216.34", true),
    ] {
        let hello = client_hello(name, sends_name);
        for (rest, ended, reason) in answers(&mut world, host, 443, &hello).await {
            assert_eq!(ended, ConnectionEnd::Closed, "{name}: {reason}");
            assert_eq!(rest, hello, "{name}");
        }
    }
}

#[tokio::test]
async fn tls_for_another_host_is_closed_before_the_server_gets_a_byte() {
    let mut world = world().await;
    let (silent, mut received) = listener().await;
    world.route("93.184.216.34:443", silent);
    world.route("93.184.216.34:8443", silent);
    for (host, port, name) in [
        ("example.com", 443, "other.test"),
        ("example.com", 443, "www.example.com"),
        ("example.com", 443, "example.com.evil.test"),
        ("example.com", 8443, "other.test"),
        ("93.184.216.34", 443, "example.com"),
    ] {
        for (rest, ended, reason) in answers(&mut world, host, port, &client_hello(name, true)).await {
            assert_eq!(ended, ConnectionEnd::Refused);
            assert_eq!(reason, format!("SNI names another host: `{name}`"));
            assert_eq!(rest, b"");
            assert_eq!(received.recv().await.unwrap(), b"", "{name}");
        }
    }
}

#[tokio::test]
async fn tls_that_cannot_be_read_is_closed() {
    let mut world = world().await;
    let hello = client_hello("example.com", true);
    for (greeting, expected) in [
        (&hello[..hello.len() - 1], "the ClientHello is not complete"),
        (&hello[..1], "the ClientHello is not complete"),
        (&[21, 3, 1, 0, 2, 1, 0][..], "TLS does not begin with a ClientHello"),
        (&[22, 3, 1, 0, 4, 1, 0xff, 0, 0], "the ClientHello is too long"),
        (&[22, 3, 1, 0, 4, 1, 0, 0, 0], "the ClientHello cannot be read"),
        (&[22, 3, 1, 0, 4, 2, 0, 0, 0], "TLS does not begin with a ClientHello"),
    ] {
        for (rest, ended, reason) in answers(&mut world, "example.com", 443, greeting).await {
            assert_eq!(ended, ConnectionEnd::Refused);
            assert_eq!((reason.as_str(), rest), (expected, Vec::new()));
        }
    }
}

#[tokio::test]
async fn a_tunnel_without_tls_is_carried() {
    let mut world = world().await;
    for greeting in [
        &b"GET / HTTP/1.1\r\nHost: other.test\r\n\r\n"[..],
        b"SSH-2.0-x\r\n",
        b"",
        b"\0",
        b"\x16x"[1..].as_ref(),
    ] {
        for (rest, ended, reason) in answers(&mut world, "example.com", 443, greeting).await {
            assert_eq!(ended, ConnectionEnd::Closed, "{reason}");
            assert_eq!(rest, greeting);
        }
    }
}

#[tokio::test]
async fn a_name_that_arrives_in_pieces_is_found() {
    let mut world = world().await;
    for (name, ended) in [("example.com", ConnectionEnd::Closed), ("other.test", ConnectionEnd::Refused)] {
        let hello = client_hello(name, true);
        let mut client = world.tunnel("example.com:443").await;
        client.set_nodelay(true).unwrap();
        for piece in hello.chunks(3) {
            // A refusing proxy may close before the last of them.
            let _ = client.write_all(piece).await;
            tokio::task::yield_now().await;
        }
        let _ = client.shutdown().await;
        read_all(&mut client).await;
        assert_eq!(world.record().await.ended, ended);
    }
}

#[tokio::test]
async fn bytes_with_the_request_are_looked_at_as_well() {
    let mut world = world().await;
    for (name, decision) in
        [("example.com", ConnectionDecision::Allowed), ("other.test", ConnectionDecision::Denied)]
    {
        let mut client = world.client().await;
        let hello = client_hello(name, true);
        client.write_all(&[connect("example.com:443"), hello.clone()].concat()).await.unwrap();
        client.shutdown().await.unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer.ends_with(&hello), decision == ConnectionDecision::Allowed);
        assert_eq!(world.record().await.decision, decision);
    }
}

#[tokio::test]
async fn a_server_that_speaks_first_is_heard() {
    let mut world = World::allowing(&["example.com"]).await;
    let address = server(|mut stream| async move {
        stream.write_all(b"220 ready\r\n").await.unwrap();
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"QUIT");
    })
    .await;
    world.route("93.184.216.34:443", address);
    let mut client = world.tunnel("example.com:443").await;
    let mut ready = [0; 11];
    client.read_exact(&mut ready).await.unwrap();
    client.write_all(b"QUIT").await.unwrap();
    assert_eq!(read_all(&mut client).await, "");
    drop(client);
    assert_eq!(world.record().await.bytes_up, 4);
}
