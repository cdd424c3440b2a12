//! The server name in the first message of TLS.
//!
//! A tunnel is decided by the name that the client asked the proxy for. A server that hosts many names chooses by the name in
//! the `ClientHello` instead, so that name must be the same. This reads as little as is needed for that, and what it cannot
//! read is refused. Not seen are what is encrypted (the `Host` of a request inside, an encrypted `ClientHello`), TLS that
//! begins later in a connection (`STARTTLS`), and a second `ClientHello`. So a server that serves other names to clients of
//! an allowed one is not stopped by this.

/// The longest `ClientHello` that is read.
pub(crate) const HELLO_MAX: usize = 16 * 1024;

/// The kind of the first bytes of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Greeting {
    /// Not TLS.
    Other,
    /// The beginning of TLS. More is needed.
    Partial,
    Hello {
        server_name: Option<Vec<u8>>,
    },
    /// TLS, but no `ClientHello` that can be read.
    Broken(&'static str),
}

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const HOST_NAME: u8 = 0;

/// Reads the first bytes that a client sends.
pub(crate) fn read_greeting(bytes: &[u8]) -> Greeting {
    match bytes {
        [] => return Greeting::Partial,
        [HANDSHAKE, ..] => {}
        // Other kinds of TLS records. Some servers skip them before a ClientHello.
        [20..=24] => return Greeting::Partial,
        [20..=24, 3, ..] => return Greeting::Broken("TLS does not begin with a ClientHello"),
        [..] => return Greeting::Other,
    }
    let mut message = Vec::new();
    let mut rest = bytes;
    loop {
        let [kind, _, _, high, low, payload @ ..] = rest else { return Greeting::Partial };
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        if *kind != HANDSHAKE || length == 0 {
            return Greeting::Broken("TLS does not begin with a ClientHello");
        }
        let here = length.min(payload.len());
        message.extend_from_slice(&payload[..here]);
        if let [kind, a, b, c, body @ ..] = message.as_slice() {
            let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
            if *kind != CLIENT_HELLO {
                return Greeting::Broken("TLS does not begin with a ClientHello");
            }
            if length > HELLO_MAX {
                return Greeting::Broken("the ClientHello is too long");
            }
            if let Some(body) = body.get(..length) {
                return match read_hello(body) {
                    Some(server_name) => Greeting::Hello { server_name },
                    None => Greeting::Broken("the ClientHello cannot be read"),
                };
            }
        }
        if here < length {
            return Greeting::Partial;
        }
        rest = &payload[length..];
    }
}

/// The rest of a message that is being read.
struct MessageRest<'a>(&'a [u8]);

impl<'a> MessageRest<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// A number of `width` bytes.
    fn number(&mut self, width: usize) -> Option<usize> {
        Some(self.take(width)?.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
    }

    /// Bytes that follow their length, which has `width` bytes itself.
    fn sized(&mut self, width: usize) -> Option<&'a [u8]> {
        let length = self.number(width)?;
        self.take(length)
    }
}

/// The server name of a `ClientHello`. The outer `None`: the message is not well formed.
fn read_hello(body: &[u8]) -> Option<Option<Vec<u8>>> {
    let mut body = MessageRest(body);
    let _version_and_random = body.take(2 + 32)?;
    let _session = body.sized(1)?;
    let _cipher_suites = body.sized(2)?;
    let _compressions = body.sized(1)?;
    if body.0.is_empty() {
        return Some(None);
    }
    let mut extensions = MessageRest(body.sized(2)?);
    if !body.0.is_empty() {
        return None;
    }
    let mut name = None;
    while !extensions.0.is_empty() {
        let kind = extensions.number(2)?;
        let data = extensions.sized(2)?;
        if kind == 0 {
            let found = read_server_name(data)?;
            // A second one: servers do not agree which of them counts.
            if name.replace(found).is_some() {
                return None;
            }
        }
    }
    Some(name)
}

/// The only host name in the data of the extension `server_name`.
fn read_server_name(data: &[u8]) -> Option<Vec<u8>> {
    let mut data = MessageRest(data);
    let mut list = MessageRest(data.sized(2)?);
    let kind = list.number(1)?;
    let name = list.sized(2)?;
    let is_only = data.0.is_empty() && list.0.is_empty();
    (kind == usize::from(HOST_NAME) && is_only && !name.is_empty()).then(|| name.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes after their length.
    fn sized(width: usize, bytes: &[u8]) -> Vec<u8> {
        let length = bytes.len().to_be_bytes();
        [&length[length.len() - width..], bytes].concat()
    }

    fn server_name(names: &[&str]) -> Vec<u8> {
        let list: Vec<u8> =
            names.iter().flat_map(|name| [vec![0], sized(2, name.as_bytes())].concat()).collect();
        [vec![0, 0], sized(2, &sized(2, &list))].concat()
    }

    fn hello(extensions: &[Vec<u8>]) -> Vec<u8> {
        let body = [
            vec![3, 3],
            vec![7; 32],
            sized(1, &[1; 32]),
            sized(2, &[0x13, 1]),
            sized(1, &[0]),
            sized(2, &extensions.concat()),
        ]
        .concat();
        [vec![CLIENT_HELLO], sized(3, &body)].concat()
    }

    fn records(message: &[u8], size: usize) -> Vec<u8> {
        message.chunks(size).flat_map(|chunk| [vec![HANDSHAKE, 3, 1], sized(2, chunk)].concat()).collect()
    }

    fn named(name: &str) -> Greeting {
        Greeting::Hello { server_name: Some(name.as_bytes().to_vec()) }
    }

    #[test]
    fn a_name_is_found_however_the_message_is_cut() {
        let other = [vec![0, 43], sized(2, &[2, 3, 4])].concat();
        let message = hello(&[other, server_name(&["example.com"])]);
        for size in [1, 3, 7, message.len() - 1, message.len(), message.len() + 5] {
            let bytes = records(&message, size);
            assert_eq!(read_greeting(&bytes), named("example.com"), "records of {size}");
            for end in 1..bytes.len() {
                let found = read_greeting(&bytes[..end]);
                assert_eq!(found, Greeting::Partial, "{end} of {} bytes, records of {size}", bytes.len());
            }
            assert_eq!(read_greeting(&[bytes, b"more".to_vec()].concat()), named("example.com"));
        }
    }

    #[test]
    fn a_message_without_a_name_has_none() {
        assert_eq!(read_greeting(&records(&hello(&[]), 4096)), Greeting::Hello { server_name: None });
        let body = [vec![3, 3], vec![7; 32], vec![0], sized(2, &[0x13, 1]), sized(1, &[0])].concat();
        let message = [vec![CLIENT_HELLO], sized(3, &body)].concat();
        assert_eq!(read_greeting(&records(&message, 4096)), Greeting::Hello { server_name: None });
    }

    #[test]
    fn what_is_not_tls_is_another_thing() {
        for bytes in
            [&b"GET / HTTP/1.1\r\n"[..], b"SSH-2.0-x", b"\x00", b"\xff\xff", b"\x14x", b"\x80\x2e\x01"]
        {
            assert_eq!(read_greeting(bytes), Greeting::Other, "{bytes:?}");
        }
    }

    #[test]
    fn tls_that_cannot_be_read_is_broken() {
        let two_extensions = hello(&[server_name(&["a.test"]), server_name(&["b.test"])]);
        let mut long = hello(&[]);
        long[1] = 1;
        let mut cut = hello(&[server_name(&["a.test"])]);
        let end = cut.len() - 1;
        cut[3] -= 1;
        cut.truncate(end);
        for (what, bytes) in [
            ("two extensions", records(&two_extensions, 4096)),
            ("two names", records(&hello(&[server_name(&["a.test", "b.test"])]), 4096)),
            ("no name in the list", records(&hello(&[server_name(&[])]), 4096)),
            ("an empty name", records(&hello(&[server_name(&[""])]), 4096)),
            ("too long", records(&long, 4096)),
            ("cut short", records(&cut, 4096)),
            ("an alert", vec![21, 3, 1, 0, 2, 1, 0]),
            ("a change of ciphers", vec![20, 3, 3, 0, 1, 1]),
            ("an empty record", vec![22, 3, 1, 0, 0]),
            ("another message", vec![22, 3, 1, 0, 4, 2, 0, 0, 0]),
            (
                "another record in between",
                [records(&hello(&[])[..9], 9), vec![21, 3, 1, 0, 2, 1, 0]].concat(),
            ),
        ] {
            assert!(
                matches!(read_greeting(&bytes), Greeting::Broken(_)),
                "{what}: {:?}",
                read_greeting(&bytes)
            );
        }
    }
}
