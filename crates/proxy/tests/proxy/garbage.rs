//! Bytes that no client would send.

use lathe_proxy::{ConnectionDecision, ConnectionEnd};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::socks::socks_name;
use crate::world::{World, connect, get};

/// A generator of numbers that are the same in every run (xorshift).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }
}

/// Random bytes, or a good request with some of its bytes changed, left out, doubled or added.
fn garbage(numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = match numbers.below(6) {
        0 => {
            let length = numbers.below(2000);
            return numbers.bytes(length);
        }
        1 => connect("denied.test:443"),
        2 => get("denied.test"),
        3 => socks_name("denied.test", 443),
        4 => [&[5, 1, 0, 5, 1, 0, 4], &[0; 15][..], &[1, 1, 187]].concat(),
        _ => b"POST http://denied.test/ HTTP/1.1\r\nHost: denied.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_vec(),
    };
    for _ in 0..=numbers.below(6) {
        let at = numbers.below(bytes.len());
        let new = match numbers.below(3) {
            0 => numbers.next() as u8,
            1 => *b"\r\n\0 :/@%[].#\x05\xff".get(numbers.below(15)).unwrap_or(&b'\t'),
            _ => bytes[numbers.below(bytes.len())],
        };
        match numbers.below(4) {
            0 => bytes[at] = new,
            1 => bytes.insert(at, new),
            2 if bytes.len() > 1 => drop(bytes.remove(at)),
            _ => bytes.extend_from_within(at..),
        }
    }
    bytes
}

#[tokio::test]
async fn garbage_is_denied_and_recorded_and_reaches_nothing() {
    let mut world = World::allowing(&["allowed.example.com"]).await;
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for round in 1..=500 {
        let bytes = garbage(&mut numbers);
        let mut client = world.client().await;
        // The proxy may have closed before it read everything.
        let _ = client.write_all(&bytes).await;
        let _ = client.shutdown().await;
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer).await;
        let record = world.record().await;
        assert_eq!(record.id, round);
        assert_eq!(record.decision, ConnectionDecision::Denied, "{bytes:?}");
        // A task that panics leaves another end.
        assert_eq!(record.ended, ConnectionEnd::Refused, "{bytes:?}");
        if answer.starts_with(b"HTTP") {
            let text = String::from_utf8(answer).unwrap();
            assert!(text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\r' | b'\n')), "{text:?}");
            assert_eq!(text.matches("HTTP/1.1 ").count(), 1, "{text:?}");
        }
    }
    assert_eq!(world.queries(), [] as [String; 0]);
    assert_eq!(world.connects(), [] as [String; 0]);
    assert_eq!(world.stop().await, []);
}
