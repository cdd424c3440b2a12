//! Plain HTTP requests, and requests that mean two things.

use lathe_proxy::{ConnectionDecision, ConnectionEnd, ProxyProtocol};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::servers::{server, web};
use crate::world::{World, get, read_all, status};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const OK_DELIVERED: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";

/// A proxy, and the requests that the server behind it gets.
async fn site(
    end: &'static str,
    response: &'static str,
    closes: bool,
) -> (World, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let world = World::allowing(&["example.com"]).await;
    let (address, requests) = web(end, response, closes).await;
    world.route("93.184.216.34:80", address);
    (world, requests)
}

#[tokio::test]
async fn a_request_is_passed_on_without_the_headers_of_one_connection() {
    let (mut world, mut requests) = site("\r\n\r\n", OK, false).await;
    let answer = world
        .send(
            "GET http://EXAMPLE.com:80/a/b?c=http://x.test/ HTTP/1.1\r\nHost: example.com\r\nX-One: 1\r\n\
             Proxy-Connection: keep-alive\r\nConnection: keep-alive, X-Mine\r\nX-Mine: 2\r\nKeep-Alive: 5\r\n\
             TE: trailers\r\nUpgrade: h2c\r\nProxy-Authorization: Basic x\r\nAccept: */*\r\n\r\n",
        )
        .await;
    assert_eq!(answer, OK_DELIVERED);
    let request = requests.recv().await.unwrap();
    let expected = "GET /a/b?c=http://x.test/ HTTP/1.1\r\nHost: example.com\r\nX-One: 1\r\nAccept: */*\r\n\
                    Connection: close\r\n\r\n";
    assert_eq!(request, expected);

    let record = world.record().await;
    assert_eq!(record.protocol, Some(ProxyProtocol::Http));
    assert_eq!(record.asked, "EXAMPLE.com:80");
    assert_eq!(record.host.as_deref(), Some("example.com"));
    assert_eq!(record.port, Some(80));
    assert_eq!(record.bytes_up, expected.len() as u64);
    assert_eq!(record.bytes_down, OK_DELIVERED.len() as u64);
    assert_eq!(record.ended, ConnectionEnd::Closed);
}

#[tokio::test]
async fn the_path_of_a_url_is_never_empty() {
    for (url, path) in
        [("http://example.com", "/"), ("HTTP://example.com?x", "/?x"), ("http://example.com/.", "/.")]
    {
        let (world, mut requests) = site("\r\n\r\n", OK, true).await;
        world.send(format!("GET {url} HTTP/1.0\r\n\r\n")).await;
        let expected = format!("GET {path} HTTP/1.0\r\nHost: example.com\r\nConnection: close\r\n\r\n");
        assert_eq!(requests.recv().await.unwrap(), expected, "{url}");
    }
}

#[tokio::test]
async fn a_request_that_means_two_things_is_refused() {
    let mut world = World::allowing(&["example.com", "other.test"]).await;
    let line = "POST http://example.com/ HTTP/1.1\r\n";
    let host = "Host: example.com\r\n";
    for (what, request) in [
        ("length and coding", format!("{line}{host}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n")),
        ("coding and length", format!("{line}{host}Transfer-Encoding: chunked\r\ncontent-length: 0\r\n\r\n")),
        ("two lengths", format!("{line}{host}Content-Length: 5\r\nContent-Length: 6\r\n\r\n")),
        ("one length twice", format!("{line}{host}Content-Length: 5\r\nContent-Length: 5\r\n\r\n")),
        ("a list of lengths", format!("{line}{host}Content-Length: 5, 5\r\n\r\n")),
        ("a signed length", format!("{line}{host}Content-Length: +5\r\n\r\n")),
        ("a hexadecimal length", format!("{line}{host}Content-Length: 0x5\r\n\r\n")),
        ("an endless length", format!("{line}{host}Content-Length: 99999999999999999999\r\n\r\n")),
        (
            "two codings",
            format!("{line}{host}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
        ),
        ("a list of codings", format!("{line}{host}Transfer-Encoding: gzip, chunked\r\n\r\n")),
        ("a strange coding", format!("{line}{host}Transfer-Encoding: xchunked\r\n\r\n")),
        ("a folded header", format!("{line}{host}X: 1\r\n Transfer-Encoding: chunked\r\n\r\n")),
        ("a folded first header", format!("{line} X: 1\r\n{host}\r\n")),
        ("a space before the colon", format!("{line}{host}Transfer-Encoding : chunked\r\n\r\n")),
        ("no name of a header", format!("{line}{host}: chunked\r\n\r\n")),
        ("a bare LF", format!("{line}{host}X: 1\nTransfer-Encoding: chunked\r\n\r\n")),
        ("a bare CR", format!("{line}{host}X: 1\rTransfer-Encoding: chunked\r\n\r\n")),
        ("LF for all lines", "GET http://example.com/ HTTP/1.1\nHost: example.com\n\n".to_owned()),
        ("a NUL", format!("{line}{host}X: a\0b\r\n\r\n")),
        ("another control character", format!("{line}{host}X: a\x01b\r\n\r\n")),
        ("two hosts", format!("{line}{host}Host: other.test\r\n\r\n")),
        ("one host twice", format!("{line}{host}{host}\r\n")),
        ("another host", format!("{line}Host: other.test\r\n\r\n")),
        ("another port", format!("{line}Host: example.com:8080\r\n\r\n")),
        ("a user in the host", format!("{line}Host: user@example.com\r\n\r\n")),
        ("a list of hosts", format!("{line}Host: example.com, other.test\r\n\r\n")),
        ("an empty host", format!("{line}Host:\r\n\r\n")),
        ("no host", format!("{line}X: 1\r\n\r\n")),
        ("a hidden length", format!("{line}{host}Connection: content-length\r\nContent-Length: 5\r\n\r\n")),
        ("a hidden host", format!("{line}{host}Connection: close, Host\r\n\r\n")),
        (
            "a coding in HTTP/1.0",
            "POST http://example.com/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(),
        ),
        ("a path only", format!("GET / HTTP/1.1\r\n{host}\r\n")),
        ("another scheme", format!("GET ftp://example.com/ HTTP/1.1\r\n{host}\r\n")),
        ("TLS by the proxy", format!("GET https://example.com/ HTTP/1.1\r\n{host}\r\n")),
        ("no scheme", format!("GET example.com/ HTTP/1.1\r\n{host}\r\n")),
        ("a small connect", "connect example.com:443 HTTP/1.1\r\n\r\n".to_owned()),
        ("two spaces", format!("GET  http://example.com/ HTTP/1.1\r\n{host}\r\n")),
        ("a space in the URL", format!("GET http://example.com/a b HTTP/1.1\r\n{host}\r\n")),
        ("HTTP/2", format!("GET http://example.com/ HTTP/2.0\r\n{host}\r\n")),
        ("no version", "GET http://example.com/\r\n\r\n".to_owned()),
        ("an empty line", format!("\r\n{line}{host}\r\n")),
        (
            "a body of CONNECT",
            "CONNECT example.com:443 HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello".to_owned(),
        ),
        (
            "chunks of CONNECT",
            "CONNECT example.com:443 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(),
        ),
        (
            "another host than CONNECT's",
            "CONNECT example.com:443 HTTP/1.1\r\nHost: other.test:443\r\n\r\n".to_owned(),
        ),
        (
            "another port than CONNECT's",
            "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:80\r\n\r\n".to_owned(),
        ),
        ("two hosts of CONNECT", format!("CONNECT example.com:443 HTTP/1.1\r\n{host}{host}\r\n")),
    ] {
        let answer = world.send(&request).await;
        assert_eq!(status(&answer), 400, "{what}: {answer}");
        let record = world.record().await;
        assert_eq!(record.decision, ConnectionDecision::Denied, "{what}");
        assert_eq!(record.ended, ConnectionEnd::Refused, "{what}");
        assert_eq!(record.reason == "a line begins with a space", what.contains("folded"), "{what}");
    }
    assert_eq!(world.queries(), [] as [String; 0]);
}

#[tokio::test]
async fn connect_takes_the_host_headers_of_real_clients() {
    let mut world = World::allowing(&["example.com"]).await;
    world.route("93.184.216.34:443", crate::servers::echo().await);
    for headers in [
        "Host: example.com:443\r\n",
        "Host: EXAMPLE.COM.:443\r\n",
        // Java.
        "Host: example.com\r\n",
        // Old Python.
        "",
        "Host: example.com:443\r\nContent-Length: 0\r\nProxy-Connection: Keep-Alive\r\n",
    ] {
        let mut client = world.client().await;
        let request = format!("CONNECT example.com:443 HTTP/1.1\r\n{headers}\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
        client.shutdown().await.unwrap();
        assert_eq!(status(&read_all(&mut client).await), 200, "{headers}");
        assert_eq!(world.record().await.decision, ConnectionDecision::Allowed);
    }
}

#[tokio::test]
async fn a_second_request_on_a_connection_is_not_served() {
    let (mut world, mut requests) = site("\r\n\r\n", OK, false).await;
    let second = "GET http://other.test/ HTTP/1.1\r\nHost: other.test\r\n\r\n";
    let pipelined = String::from_utf8(get("example.com")).unwrap() + second;
    assert_eq!(world.send(pipelined).await, OK_DELIVERED);
    assert!(!requests.recv().await.unwrap().contains("other.test"));
    assert_eq!(world.record().await.decision, ConnectionDecision::Allowed);
    assert_eq!(world.queries(), ["example.com"]);
}

#[tokio::test]
async fn a_body_is_passed_on_to_its_end_and_not_further() {
    let line = "POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\n";
    for (body, end, passed_on) in [
        (
            "Content-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\n\r\n",
            "hello",
            "Content-Length: 5\r\nConnection: close\r\n\r\nhello",
        ),
        (
            "Transfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n00a \r\n0123456789\r\n0\r\nX-Trailer: 1\r\n\r\nGET /",
            "0\r\n\r\n",
            "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\na\r\n0123456789\r\n0\r\n\r\n",
        ),
        (
            "Transfer-Encoding: CHUNKED\r\n\r\n0\r\n\r\nmore",
            "0\r\n\r\n",
            "Transfer-Encoding: CHUNKED\r\nConnection: close\r\n\r\n0\r\n\r\n",
        ),
    ] {
        let (mut world, mut requests) = site(end, OK, false).await;
        assert_eq!(world.send(format!("{line}{body}")).await, OK_DELIVERED);
        let expected = format!("POST / HTTP/1.1\r\nHost: example.com\r\n{passed_on}");
        assert_eq!(requests.recv().await.unwrap(), expected);
        assert_eq!(world.record().await.bytes_up, expected.len() as u64);
    }
}

#[tokio::test]
async fn a_malformed_chunk_ends_the_connection() {
    for chunk in
        ["x\r\n", "-1\r\n", "5\nhello\r\n", "5\r\nhelloX\r\n", "fffffffffffffffff\r\n", "\r\n", "5\r\nhel"]
    {
        let (mut world, _requests) = site("0\r\n\r\n", OK, false).await;
        let request = format!(
            "POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}"
        );
        let mut client = world.client().await;
        client.write_all(request.as_bytes()).await.unwrap();
        client.shutdown().await.unwrap();
        assert_eq!(read_all(&mut client).await, "", "{chunk:?}");
        assert!(matches!(world.record().await.ended, ConnectionEnd::Broken(_)), "{chunk:?}");
    }
}

#[tokio::test]
async fn a_response_ends_where_it_says() {
    for (what, method, response, closes, delivered) in [
        ("a length", "GET", OK, false, OK_DELIVERED),
        (
            "chunks",
            "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nKeep-Alive: 5\r\n\r\n2;a\r\nok\r\n0\r\nT: 1\r\n\r\n",
            false,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        ),
        (
            "chunks with a length",
            "GET",
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            false,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        ),
        (
            "the end",
            "GET",
            "HTTP/1.0 200 OK\r\n\r\nok",
            true,
            "HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nok",
        ),
        (
            "the head of HEAD",
            "HEAD",
            "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n",
            false,
            "HTTP/1.1 200 OK\r\nContent-Length: 99\r\nConnection: close\r\n\r\n",
        ),
        (
            "no content",
            "GET",
            "HTTP/1.1 304 Not Modified\r\nETag: 1\r\n\r\n",
            false,
            "HTTP/1.1 304 Not Modified\r\nETag: 1\r\nConnection: close\r\n\r\n",
        ),
        (
            "provisional responses",
            "GET",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            false,
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
        ),
        (
            "more than its length",
            "GET",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n",
            false,
            OK_DELIVERED,
        ),
    ] {
        let (mut world, _requests) = site("\r\n\r\n", response, closes).await;
        let request = format!("{method} http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n");
        assert_eq!(world.send(request).await, delivered, "{what}");
        let record = world.record().await;
        assert_eq!(record.bytes_down, delivered.len() as u64, "{what}");
        assert_eq!(record.ended, ConnectionEnd::Closed, "{what}");
    }
}

#[tokio::test]
async fn a_server_without_a_readable_response_is_unreachable() {
    for (response, why) in [
        ("", "it closed the connection without a response"),
        ("HTTP/1.1 200", "it closed the connection without a response"),
        ("SSH-2.0-OpenSSH\r\n\r\n", "its response cannot be read: invalid HTTP version"),
        ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "it changed the protocol unasked"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
            "its response has no clear length",
        ),
    ] {
        let (mut world, _requests) = site("\r\n\r\n", response, true).await;
        let answer = world.send(get("example.com")).await;
        let line = format!("`example.com:80` is allowed, but cannot be reached: {why}");
        assert!(answer.starts_with(&format!("HTTP/1.1 502 {line}\r\n")), "{answer}");
        let record = world.record().await;
        assert_eq!(record.decision, ConnectionDecision::Allowed);
        assert_eq!(record.ended, ConnectionEnd::Unreachable(why.to_owned()));
    }
}

#[tokio::test]
async fn a_provisional_response_reaches_a_client_that_waits_with_its_body() {
    let world = World::allowing(&["example.com"]).await;
    let address = server(|mut stream| async move {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.unwrap();
        let mut body = [0; 4];
        stream.read_exact(&mut body).await.unwrap();
        assert_eq!(&body, b"body");
        stream.write_all(OK.as_bytes()).await.unwrap();
    })
    .await;
    world.route("93.184.216.34:80", address);
    let mut client = world.client().await;
    client
        .write_all(
            b"POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n",
        )
        .await
        .unwrap();
    let mut go_on = [0; 25];
    client.read_exact(&mut go_on).await.unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    client.write_all(b"body").await.unwrap();
    assert_eq!(read_all(&mut client).await, OK_DELIVERED);
}

#[tokio::test]
async fn a_response_before_the_end_of_the_request_is_delivered() {
    let mut world = World::allowing(&["example.com"]).await;
    let address = server(|mut stream| async move {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await.unwrap());
        }
        let response = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n";
        stream.write_all(response).await.unwrap();
        stream.shutdown().await.unwrap();
        // It reads nothing more.
        std::future::pending::<()>().await;
    })
    .await;
    world.route("93.184.216.34:80", address);
    let answer = world
        .send("POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nContent-Length: 1000000\r\n\r\nsome")
        .await;
    assert_eq!(status(&answer), 413);
    assert_eq!(world.record().await.ended, ConnectionEnd::Closed);
}

#[tokio::test]
async fn a_client_that_ended_its_direction_still_gets_the_response() {
    let (mut world, _requests) = site("\r\n\r\n", OK, true).await;
    let mut client = world.client().await;
    client.write_all(&get("example.com")).await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(read_all(&mut client).await, OK_DELIVERED);
    assert_eq!(world.record().await.ended, ConnectionEnd::Closed);
}
