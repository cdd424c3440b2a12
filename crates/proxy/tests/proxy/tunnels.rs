//! Tunnels from end to end.

use lathe_proxy::ConnectionEnd;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

use crate::servers::{echo, server};
use crate::world::{World, read_all};

#[tokio::test]
async fn a_client_may_end_its_direction_first() {
    let mut world = World::allowing(&["example.com"]).await;
    let address = server(|mut stream| async move {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await.unwrap();
        // Only now does the server begin to speak.
        stream.write_all(format!("received {}", all.len()).as_bytes()).await.unwrap();
    })
    .await;
    world.route("93.184.216.34:443", address);
    let mut client = world.tunnel("example.com:443").await;
    client.write_all(b"0123456789").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(read_all(&mut client).await, "received 10");
    let record = world.record().await;
    assert_eq!((record.bytes_up, record.bytes_down), (10, 11));
    assert_eq!(record.ended, ConnectionEnd::Closed);
}

#[tokio::test]
async fn a_server_may_end_its_direction_first() {
    let mut world = World::allowing(&["example.com"]).await;
    let (sender, mut received) = mpsc::unbounded_channel();
    let address = server(move |mut stream| {
        let sender = sender.clone();
        async move {
            stream.write_all(b"all that I say").await.unwrap();
            stream.shutdown().await.unwrap();
            let mut all = Vec::new();
            stream.read_to_end(&mut all).await.unwrap();
            sender.send(all).unwrap();
        }
    })
    .await;
    world.route("93.184.216.34:443", address);
    let mut client = world.tunnel("example.com:443").await;
    assert_eq!(read_all(&mut client).await, "all that I say");
    // The client has seen the end, and its own direction is still open.
    client.write_all(b"one").await.unwrap();
    client.write_all(b"two").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(received.recv().await.unwrap(), b"onetwo");
    let record = world.record().await;
    assert_eq!((record.bytes_up, record.bytes_down), (6, 14));
    assert_eq!(record.ended, ConnectionEnd::Closed);
}

#[tokio::test]
async fn many_bytes_arrive_unchanged_and_are_counted() {
    let mut world = World::allowing(&["example.com"]).await;
    world.route("93.184.216.34:443", echo().await);
    let sent: Vec<u8> =
        (0..3_000_000u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let client = world.tunnel("example.com:443").await;
    let (mut reader, mut writer) = client.into_split();
    let expected = sent.clone();
    let writing = tokio::spawn(async move {
        writer.write_all(&sent).await.unwrap();
        writer.shutdown().await.unwrap();
    });
    let mut received = Vec::new();
    reader.read_to_end(&mut received).await.unwrap();
    writing.await.unwrap();
    assert!(received == expected);
    let record = world.record().await;
    assert_eq!((record.bytes_up, record.bytes_down), (3_000_000, 3_000_000));
}

#[tokio::test]
async fn a_side_that_breaks_off_ends_the_tunnel() {
    let mut world = World::allowing(&["example.com"]).await;
    let (sender, mut arrived) = mpsc::unbounded_channel();
    let address = server(move |mut stream| {
        let sender = sender.clone();
        async move {
            let _ = sender.send(stream.read_u8().await.unwrap());
            // The server says nothing and does not end by itself.
            let ended = stream.read_u8().await.is_err();
            assert!(ended);
        }
    })
    .await;
    world.route("93.184.216.34:443", address);
    let mut client = world.tunnel("example.com:443").await;
    client.write_all(b"x").await.unwrap();
    arrived.recv().await.unwrap();
    // Closing is a reset then.
    client.set_zero_linger().unwrap();
    drop(client);
    let record = world.record().await;
    assert!(matches!(&record.ended, ConnectionEnd::Broken(why) if why.starts_with("client: ")), "{record:?}");
    assert_eq!(record.bytes_up, 1);
}

#[tokio::test]
async fn what_a_server_said_before_it_broke_off_is_delivered() {
    let mut world = World::allowing(&["example.com"]).await;
    let address = server(|mut stream| async move {
        stream.write_all(b"goodbye").await.unwrap();
        stream.shutdown().await.unwrap();
        // Dropped with unread bytes: a reset.
        let _ = stream.readable().await;
    })
    .await;
    world.route("93.184.216.34:443", address);
    let mut client = world.tunnel("example.com:443").await;
    assert_eq!(read_all(&mut client).await, "goodbye");
    // Until the proxy notices, these are taken.
    while client.write_all(&[b'x'; 65_536]).await.is_ok() {
        tokio::task::yield_now().await;
    }
    let record = world.record().await;
    assert_eq!(record.bytes_down, 7);
    assert!(matches!(&record.ended, ConnectionEnd::Broken(why) if why.starts_with("server: ")), "{record:?}");
}
