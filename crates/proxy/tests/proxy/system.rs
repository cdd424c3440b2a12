//! The seams of a real session, on loopback.

use std::sync::Arc;

use lathe_proxy::{
    ConnectionDecision, HostAnswer, HostRules, Proxy, ProxyLimits, SystemSeams, UnlistedHosts,
};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::servers::echo;
use crate::world::{connect, read_all, status};

#[tokio::test]
async fn the_system_resolves_and_connects_and_the_callbacks_ask_and_record() {
    let echo = echo().await;
    let (sender, mut records) = mpsc::unbounded_channel();
    let allowed = format!("localhost:{}", echo.port());
    // The answer of the user; without it, this would be a name of the internet.
    let seams = SystemSeams::new(
        move |record| sender.send(record).unwrap(),
        |host, port| {
            assert_eq!((host.as_str(), port), ("ask.test", 443));
            Box::pin(std::future::ready(HostAnswer::Refuse))
        },
    );
    let rules = HostRules::parse(&[&allowed], &[], UnlistedHosts::Ask).unwrap();
    let proxy = Proxy::new(Arc::new(rules), Arc::new(seams), ProxyLimits::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let serving = tokio::spawn(proxy.serve(listener, stop.clone()));

    for (authority, code, decision) in [
        (allowed.as_str(), 200, ConnectionDecision::Allowed),
        ("ask.test:443", 403, ConnectionDecision::DeniedByAnswer),
    ] {
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(&connect(authority)).await.unwrap();
        client.shutdown().await.unwrap();
        assert_eq!(status(&read_all(&mut client).await), code);
        assert_eq!(records.recv().await.unwrap().decision, decision);
    }
    stop.cancel();
    serving.await.unwrap();
}

#[tokio::test]
async fn without_a_user_every_question_is_a_no() {
    let seams = SystemSeams::headless(|_| {});
    let answer = lathe_proxy::Seams::ask(&seams, "example.com", 443).await;
    assert_eq!(answer, HostAnswer::Refuse);
}
