//! Bytes on their way: lines, bodies and whole streams, with bounded memory.
//!
//! Every copy waits until the other side has taken what was read, so a slow reader slows the writer down, and a connection
//! keeps no more than the buffers of its two readers.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};

/// The size of the buffer of a reader.
pub(crate) const BUFFER: usize = 16 * 1024;
/// The longest line between the chunks of a body.
const CHUNK_LINE_MAX: usize = 4 * 1024;

/// The end of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyLength {
    Empty,
    Bytes(u64),
    Chunked,
    /// The end of the connection.
    UntilEnd,
}

/// An error of a copy, with the side that made it.
#[derive(Debug)]
pub(crate) enum CopyError {
    Read(io::Error),
    Write(io::Error),
}

impl CopyError {
    pub(crate) fn into_io(self) -> io::Error {
        match self {
            CopyError::Read(error) | CopyError::Write(error) => error,
        }
    }
}

/// The ways in which reading a line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineRead {
    Line,
    /// The text has reached its limit before the line ended.
    TooLong,
    /// The stream ended before the line did.
    Ended,
}

/// Appends a line with its end to `text`, which grows to `max` bytes at most.
pub(crate) async fn read_line(
    reader: &mut (impl AsyncBufRead + Unpin),
    text: &mut Vec<u8>,
    max: usize,
) -> io::Result<LineRead> {
    loop {
        let room = max.saturating_sub(text.len());
        if room == 0 {
            return Ok(LineRead::TooLong);
        }
        let bytes = reader.fill_buf().await?;
        if bytes.is_empty() {
            return Ok(LineRead::Ended);
        }
        let window = &bytes[..bytes.len().min(room)];
        let end = window.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(window.len(), |at| at + 1);
        text.extend_from_slice(&window[..taken]);
        reader.consume(taken);
        if end.is_some() {
            return Ok(LineRead::Line);
        }
    }
}

/// Writes all bytes and counts those that were taken.
pub(crate) async fn write_counted(
    writer: &mut (impl AsyncWrite + Unpin),
    mut bytes: &[u8],
    count: &AtomicU64,
) -> Result<(), CopyError> {
    while !bytes.is_empty() {
        let written = writer.write(bytes).await.map_err(CopyError::Write)?;
        if written == 0 {
            return Err(CopyError::Write(io::ErrorKind::WriteZero.into()));
        }
        count.fetch_add(written as u64, Ordering::Relaxed);
        bytes = &bytes[written..];
    }
    Ok(())
}

/// Copies until the reader ends.
pub(crate) async fn copy_to_end(
    reader: &mut (impl AsyncBufRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
    count: &AtomicU64,
) -> Result<(), CopyError> {
    loop {
        let bytes = reader.fill_buf().await.map_err(CopyError::Read)?;
        let taken = bytes.len();
        if taken == 0 {
            return Ok(());
        }
        write_counted(writer, bytes, count).await?;
        reader.consume(taken);
    }
}

/// Copies exactly `left` bytes.
async fn copy_bytes(
    reader: &mut (impl AsyncBufRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
    mut left: u64,
    count: &AtomicU64,
) -> Result<(), CopyError> {
    while left > 0 {
        let bytes = reader.fill_buf().await.map_err(CopyError::Read)?;
        if bytes.is_empty() {
            return Err(CopyError::Read(io::ErrorKind::UnexpectedEof.into()));
        }
        let taken = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
        write_counted(writer, &bytes[..taken], count).await?;
        reader.consume(taken);
        left -= taken as u64;
    }
    Ok(())
}

/// Copies a body, and nothing that follows it.
pub(crate) async fn copy_body(
    reader: &mut (impl AsyncBufRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
    length: BodyLength,
    count: &AtomicU64,
) -> Result<(), CopyError> {
    match length {
        BodyLength::Empty => Ok(()),
        BodyLength::Bytes(bytes) => copy_bytes(reader, writer, bytes, count).await,
        BodyLength::Chunked => copy_chunks(reader, writer, count).await,
        BodyLength::UntilEnd => copy_to_end(reader, writer, count).await,
    }
}

/// Copies a chunked body. The sizes are written anew and extensions and trailers are dropped, so both sides of the proxy
/// see the same chunks.
async fn copy_chunks(
    reader: &mut (impl AsyncBufRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
    count: &AtomicU64,
) -> Result<(), CopyError> {
    let mut line = Vec::new();
    loop {
        read_chunk_line(reader, &mut line).await?;
        let size = chunk_size(&line).ok_or_else(bad_chunk)?;
        if size == 0 {
            break;
        }
        write_counted(writer, format!("{size:x}\r\n").as_bytes(), count).await?;
        copy_bytes(reader, writer, size, count).await?;
        read_chunk_line(reader, &mut line).await?;
        if !line.is_empty() {
            return Err(bad_chunk());
        }
        write_counted(writer, b"\r\n", count).await?;
    }
    let mut trailers = 0;
    loop {
        read_chunk_line(reader, &mut line).await?;
        trailers += line.len();
        if line.is_empty() {
            return write_counted(writer, b"0\r\n\r\n", count).await;
        }
        if trailers > BUFFER {
            return Err(bad_chunk());
        }
    }
}

fn bad_chunk() -> CopyError {
    CopyError::Read(io::Error::new(io::ErrorKind::InvalidData, "a chunk of the body is malformed"))
}

/// Reads a line between chunks, without its end.
async fn read_chunk_line(
    reader: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
) -> Result<(), CopyError> {
    line.clear();
    match read_line(reader, line, CHUNK_LINE_MAX).await.map_err(CopyError::Read)? {
        LineRead::Line => {}
        LineRead::TooLong => return Err(bad_chunk()),
        LineRead::Ended => return Err(CopyError::Read(io::ErrorKind::UnexpectedEof.into())),
    }
    match line.strip_suffix(b"\r\n") {
        Some(text) if !text.contains(&b'\r') => {
            line.truncate(line.len() - 2);
            Ok(())
        }
        Some(_) | None => Err(bad_chunk()),
    }
}

/// The size at the beginning of a chunk.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let size = line.split(|byte| *byte == b';').next()?.trim_ascii_end();
    if size.is_empty() || size.len() > 15 || !size.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(size).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_begins_with_its_size() {
        for (line, size) in [
            (&b"0"[..], Some(0)),
            (b"1a", Some(26)),
            (b"1A;name=value", Some(26)),
            (b"5 ", Some(5)),
            (b"", None),
            (b" 5", None),
            (b"+5", None),
            (b"0x5", None),
            (b"-1", None),
            (b"fffffffffffffffff", None),
        ] {
            assert_eq!(chunk_size(line), size, "{line:?}");
        }
    }
}
