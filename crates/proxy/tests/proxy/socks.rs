//! SOCKS5 on the same port.

use std::net::{Ipv4Addr, Ipv6Addr};

use lathe_proxy::{ConnectionDecision, ConnectionEnd, ProxyProtocol};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::servers::echo;
use crate::world::{World, read_all};

/// A greeting and a CONNECT request for a name.
pub fn socks_name(name: &str, port: u16) -> Vec<u8> {
    let length = u8::try_from(name.len()).unwrap();
    request(1, 3, &[&[length], name.as_bytes()].concat(), port)
}

fn request(command: u8, kind: u8, address: &[u8], port: u16) -> Vec<u8> {
    [&[5, 1, 0, 5, command, 0, kind], address, &port.to_be_bytes()].concat()
}

fn reply(code: u8) -> String {
    String::from_utf8_lossy(&[5, 0, 5, code, 0, 1, 0, 0, 0, 0, 0, 0]).into_owned()
}

#[tokio::test]
async fn a_tunnel_by_name_and_by_listed_address() {
    let mut world = World::allowing(&["example.com", "93.184.216.34", "2606::1"]).await;
    let echo = echo().await;
    world.route("93.184.216.34:443", echo);
    world.route("[2606::1]:443", echo);
    let (v4, v6): (Ipv4Addr, Ipv6Addr) = ("93.184.216.34".parse().unwrap(), "2606::1".parse().unwrap());
    let mapped = v4.to_ipv6_mapped();
    for (request, host) in [
        (socks_name("Example.com.", 443), "example.com"),
        (socks_name("93.184.216.34", 443), "93.184.216.34"),
        (socks_name("2606::1", 443), "[2606::1]"),
        (request(1, 1, &v4.octets(), 443), "93.184.216.34"),
        (request(1, 4, &v6.octets(), 443), "[2606::1]"),
        (request(1, 4, &mapped.octets(), 443), "93.184.216.34"),
    ] {
        let mut client = world.client().await;
        client.write_all(&request).await.unwrap();
        client.write_all(b"hello").await.unwrap();
        client.shutdown().await.unwrap();
        assert_eq!(read_all(&mut client).await, reply(0) + "hello");
        let record = world.record().await;
        assert_eq!(record.protocol, Some(ProxyProtocol::Socks5));
        assert_eq!(record.host.as_deref(), Some(host));
        assert_eq!(record.decision, ConnectionDecision::Allowed);
        assert_eq!((record.bytes_up, record.bytes_down), (5, 5));
        assert_eq!(record.ended, ConnectionEnd::Closed);
    }
    assert_eq!(world.queries(), ["example.com"]);
}

#[tokio::test]
async fn a_refusal_has_the_code_of_its_reason() {
    let mut world = World::allowing(&["example.com", "nowhere.test"]).await;
    for (what, request, code, decision) in [
        ("a denied name", socks_name("other.test", 443), 2, ConnectionDecision::Denied),
        ("an odd port", socks_name("example.com", 22), 2, ConnectionDecision::Denied),
        ("an address", request(1, 1, &[127, 0, 0, 1], 443), 2, ConnectionDecision::Denied),
        ("an IPv6 address", request(1, 4, &Ipv6Addr::LOCALHOST.octets(), 443), 2, ConnectionDecision::Denied),
        ("an impossible name", socks_name("1.2.3.4.5", 443), 2, ConnectionDecision::Denied),
        ("BIND", request(2, 1, &[93, 184, 216, 34], 443), 7, ConnectionDecision::Denied),
        ("UDP ASSOCIATE", request(3, 1, &[0, 0, 0, 0], 53), 7, ConnectionDecision::Denied),
        ("another kind of address", request(1, 9, &[], 443), 8, ConnectionDecision::Denied),
        ("port 0", socks_name("example.com", 0), 1, ConnectionDecision::Denied),
        ("a wrong version", vec![5, 1, 0, 4, 1, 0, 1, 1, 2, 3, 4, 0, 80], 1, ConnectionDecision::Denied),
        ("no address", socks_name("nowhere.test", 443), 4, ConnectionDecision::Allowed),
        ("a refusing server", socks_name("example.com", 443), 5, ConnectionDecision::Allowed),
    ] {
        assert_eq!(world.send(request).await, reply(code), "{what}");
        assert_eq!(world.record().await.decision, decision, "{what}");
    }
}

#[tokio::test]
async fn a_client_that_must_authenticate_is_refused() {
    let mut world = World::allowing(&["example.com"]).await;
    for greeting in [&[5, 1, 2][..], &[5, 0], &[5, 3, 1, 2, 128]] {
        let mut client = world.client().await;
        client.write_all(greeting).await.unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer, [5, 0xff]);
        assert_eq!(world.record().await.reason, "the SOCKS client wants to authenticate");
    }
}

#[tokio::test]
async fn a_request_may_arrive_byte_by_byte() {
    let world = World::allowing(&["example.com"]).await;
    world.route("93.184.216.34:443", echo().await);
    let mut client = world.client().await;
    client.set_nodelay(true).unwrap();
    for byte in socks_name("example.com", 443) {
        client.write_all(&[byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    let mut answer = [0; 12];
    client.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer[3], 0);
}

#[tokio::test]
async fn a_client_that_leaves_early_is_recorded() {
    let mut world = World::allowing(&["example.com"]).await;
    let whole = socks_name("example.com", 443);
    for end in 1..whole.len() {
        let mut client = world.client().await;
        client.write_all(&whole[..end]).await.unwrap();
        client.shutdown().await.unwrap();
        read_all(&mut client).await;
        let record = world.record().await;
        assert_eq!(record.decision, ConnectionDecision::Denied, "{end}");
        assert_eq!(record.reason, "the client closed before it asked for a host", "{end}");
    }
    assert_eq!(world.queries(), [] as [String; 0]);
}
