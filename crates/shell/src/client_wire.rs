//! The frames between an agent command and the host: one type byte, a little-endian `u32` length, the payload.
//! `crates/ax/src/client.rs` is the other end.
//!
//! The command begins with its request, `C`. The host sends `O` and `E` with output to print, `R` when it wants the
//! next piece of standard input, and last `X` with the exit code. A piece of input is sent as `I`, empty at the end
//! of the input.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::{InputSource, OutputTarget};

const VERSION: u8 = 1;
/// The largest payload of a frame, in both directions, except for the request.
const PIECE_MAX: usize = 64 * 1024;
/// More than the kernel allows a program as arguments (6 MiB), and its folder.
const REQUEST_MAX: usize = 8 * 1024 * 1024;
const HEAD: usize = 5;
/// Most requests fit into this size.
const READ_SIZE: usize = 4096;

/// The request of an agent command, with its context.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CommandRequest {
    pub(crate) argv: Vec<OsString>,
    /// None if its folder was deleted.
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) umask: u32,
    pub(crate) input: InputSource,
    pub(crate) output: OutputTarget,
}

/// The incoming frames of one connection. Dropping a pending `next` loses nothing.
pub(crate) struct Frames<R> {
    from: R,
    buffer: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    pub(crate) fn new(from: R) -> Self {
        Self { from, buffer: Vec::with_capacity(READ_SIZE) }
    }

    /// None at the end, and for any frame except a request.
    pub(crate) async fn request(&mut self) -> Option<CommandRequest> {
        match self.next(REQUEST_MAX).await? {
            (b'C', payload) => request(&payload),
            _ => None,
        }
    }

    /// The next piece of standard input. None at the end of the connection.
    pub(crate) async fn piece(&mut self) -> Option<Vec<u8>> {
        match self.next(PIECE_MAX).await? {
            (b'I', payload) => Some(payload),
            _ => None,
        }
    }

    async fn next(&mut self, max: usize) -> Option<(u8, Vec<u8>)> {
        loop {
            if let Some(([kind, size @ ..], rest)) = self.buffer.split_first_chunk::<HEAD>() {
                let size = u32::from_le_bytes(*size) as usize;
                if size > max {
                    return None;
                }
                if let Some(payload) = rest.get(..size) {
                    let frame = (*kind, payload.to_vec());
                    self.buffer.drain(..HEAD + size);
                    return Some(frame);
                }
                self.buffer.reserve(HEAD + size - self.buffer.len());
            }
            match self.from.read_buf(&mut self.buffer).await {
                Ok(1..) => {}
                Ok(0) | Err(_) => return None,
            }
        }
    }
}

fn request(payload: &[u8]) -> Option<CommandRequest> {
    let ([version, input, output], rest) = payload.split_first_chunk()?;
    if *version != VERSION {
        return None;
    }
    let (umask, rest) = number(rest)?;
    let (count, mut rest) = number(rest)?;
    let mut argv = Vec::new();
    for _ in 0..count {
        let (size, more) = number(rest)?;
        let (word, more) = more.split_at_checked(size as usize)?;
        argv.push(OsString::from_vec(word.to_vec()));
        rest = more;
    }
    Some(CommandRequest {
        argv,
        cwd: (!rest.is_empty()).then(|| PathBuf::from(OsString::from_vec(rest.to_vec()))),
        umask,
        input: if *input == 0 { InputSource::Nothing } else { InputSource::Stream },
        output: if *output == 0 { OutputTarget::Elsewhere } else { OutputTarget::Session },
    })
}

fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    bytes.split_first_chunk().map(|(number, rest)| (u32::from_le_bytes(*number), rest))
}

/// The frames that the host sends.
pub(crate) enum Reply<'a> {
    Out(&'a [u8]),
    Err(&'a [u8]),
    WantsInput,
    Exit(u8),
}

/// The outgoing replies. They are buffered until they are large or the caller has to act on them, since every write
/// wakes it up.
pub(crate) struct Replies<W> {
    to: W,
    buffer: Vec<u8>,
    /// The number of bytes of the buffer that were sent.
    sent: usize,
}

impl<W: AsyncWrite + Unpin> Replies<W> {
    pub(crate) fn new(to: W) -> Self {
        Self { to, buffer: Vec::new(), sent: 0 }
    }

    pub(crate) async fn put(&mut self, reply: Reply<'_>) -> io::Result<()> {
        match reply {
            Reply::Out(bytes) => self.pieces(b'O', bytes).await,
            Reply::Err(bytes) => self.pieces(b'E', bytes).await,
            Reply::WantsInput => self.frame(b'R', &[]).await,
            Reply::Exit(code) => self.frame(b'X', &[code]).await,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// A pending call may be dropped and repeated.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        while self.sent < self.buffer.len() {
            match self.to.write(&self.buffer[self.sent..]).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => self.sent += count,
            }
        }
        self.buffer.clear();
        self.sent = 0;
        Ok(())
    }

    async fn pieces(&mut self, kind: u8, bytes: &[u8]) -> io::Result<()> {
        for piece in bytes.chunks(PIECE_MAX) {
            self.frame(kind, piece).await?;
        }
        Ok(())
    }

    async fn frame(&mut self, kind: u8, payload: &[u8]) -> io::Result<()> {
        self.buffer.push(kind);
        self.buffer.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        self.buffer.extend_from_slice(payload);
        if self.buffer.len() >= PIECE_MAX { self.flush().await } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        [&[kind], (payload.len() as u32).to_le_bytes().as_slice(), payload].concat()
    }

    fn payload() -> Vec<u8> {
        let mut payload = vec![VERSION, 1, 0];
        for number in [0o22u32, 2, 1] {
            payload.extend_from_slice(&number.to_le_bytes());
        }
        payload.extend_from_slice(b"\xff\0\0\0\0/tmp");
        payload
    }

    #[tokio::test]
    async fn a_request_may_come_in_any_pieces() {
        let bytes = [frame(b'C', &payload()), frame(b'I', b"piece"), frame(b'I', b"")].concat();
        for size in 1..bytes.len() {
            let mut builder = tokio::io::duplex(size);
            let mut frames = Frames::new(&mut builder.1);
            let feed = async {
                builder.0.write_all(&bytes).await.unwrap();
                drop(builder.0);
            };
            let read = async {
                let request = frames.request().await.unwrap();
                assert_eq!(request.argv, [OsString::from_vec(vec![0xff]), OsString::new()]);
                assert_eq!((request.cwd, request.umask), (Some("/tmp".into()), 0o22));
                assert_eq!((request.input, request.output), (InputSource::Stream, OutputTarget::Elsewhere));
                assert_eq!(frames.piece().await.unwrap(), b"piece");
                assert_eq!(frames.piece().await.unwrap(), b"");
                assert_eq!(frames.piece().await, None);
            };
            tokio::join!(feed, read);
        }
    }

    #[tokio::test]
    async fn nonsense_is_the_end() {
        let mut other = payload();
        other[0] = 9;
        let mut cut = payload();
        cut.truncate(12);
        let mut many = payload();
        many[7..11].copy_from_slice(&u32::MAX.to_le_bytes());
        let large = [b'C', 0xff, 0xff, 0xff, 0xff].to_vec();
        for bytes in [frame(b'C', &other), frame(b'C', &cut), frame(b'C', &many), frame(b'I', b"x"), large] {
            assert_eq!(Frames::new(bytes.as_slice()).request().await, None, "{bytes:?}");
        }
    }
}
