//! As much of HTTP/1.1 as one client of ours needs: requests with a length, kept connections, chunked answers.
//!
//! Written by hand, because the tests must decide about every single write, and about endings that no HTTP library
//! would produce.

use std::io;
use std::ops::Range;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const HEAD_LIMIT: usize = 64 * 1024;

/// The head of a request; header names are in lower case.
#[derive(Debug, Clone)]
pub(crate) struct RequestHead {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
}

impl RequestHead {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }
}

pub(crate) fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

/// Reads a head and takes it out of `buffer`, where the beginning of the body stays. `None`: the client is gone.
pub(crate) async fn read_head(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
) -> io::Result<Option<RequestHead>> {
    let end = loop {
        if let Some(at) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if buffer.len() > HEAD_LIMIT {
            return Err(io::Error::other("the head of the request does not end"));
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
        // The client tries TLS: there is none here, and nothing to wait for.
        if buffer.first() == Some(&0x16) {
            return Ok(None);
        }
    };
    let text = String::from_utf8_lossy(&buffer[..end]).into_owned();
    buffer.drain(..end);
    let mut lines = text.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    Ok(Some(RequestHead {
        method: first.next().unwrap_or_default().to_owned(),
        path: first.next().unwrap_or_default().to_owned(),
        headers: lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
            .collect(),
    }))
}

/// Reads until `buffer` holds the whole body. It grows once, so that a body costs few and large reads.
pub(crate) async fn fill_body(stream: &mut TcpStream, buffer: &mut Vec<u8>, length: usize) -> io::Result<()> {
    buffer.reserve(length.saturating_sub(buffer.len()));
    while buffer.len() < length {
        if stream.read_buf(buffer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

/// A response that is not a stream.
#[derive(Debug, Clone)]
pub(crate) struct PlainResponse {
    pub(crate) code: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl PlainResponse {
    /// An error in the form of the provider.
    pub(crate) fn error(code: u16, message: &str) -> Self {
        Self {
            code,
            headers: Vec::new(),
            body: serde_json::json!({"error": {"message": message, "type": "invalid_request_error"}})
                .to_string(),
        }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.code, reason(self.code));
        if header(&self.headers, "content-type").is_none() {
            head.push_str("content-type: application/json\r\n");
        }
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("content-length: {}\r\n\r\n{}", self.body.len(), self.body));
        head.into_bytes()
    }
}

fn reason(code: u16) -> &'static str {
    match code {
        200 => "OK",
        302 => "Found",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        411 => "Length Required",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Status",
    }
}

/// The head of a streamed answer.
pub(crate) fn stream_head(kind: &str, more: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncache-control: no-cache\r\n{more}transfer-encoding: chunked\r\n\r\n"
    )
    .into_bytes()
}

const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The writes of a streamed answer: the head goes with the first piece, the last chunk with the last one, and
/// between them every piece is one HTTP chunk and one write.
pub(crate) fn stream_writes(head: Vec<u8>, body: &[u8], cuts: &[Range<usize>]) -> Vec<Vec<u8>> {
    let mut writes: Vec<Vec<u8>> = cuts
        .iter()
        .map(|cut| {
            let piece = &body[cut.clone()];
            let mut write = format!("{:x}\r\n", piece.len()).into_bytes();
            write.extend_from_slice(piece);
            write.extend_from_slice(b"\r\n");
            write
        })
        .collect();
    match writes.first_mut() {
        Some(first) => drop(first.splice(..0, head)),
        None => writes.push(head),
    }
    if let Some(last) = writes.last_mut() {
        last.extend_from_slice(LAST_CHUNK);
    }
    writes
}

/// One write that leaves as a packet of its own, as far as TCP lets that be said.
pub(crate) async fn write_piece(stream: &mut TcpStream, piece: &[u8]) -> io::Result<()> {
    stream.write_all(piece).await?;
    stream.flush().await?;
    tokio::task::yield_now().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cut_is_one_chunk() {
        let writes = stream_writes(stream_head("x/y", ""), b"abcde", &[0..3, 3..5]);
        let texts: Vec<String> = writes.into_iter().map(|write| String::from_utf8(write).unwrap()).collect();
        assert!(texts[0].ends_with("chunked\r\n\r\n3\r\nabc\r\n"), "{texts:?}");
        assert_eq!(texts[1..], ["2\r\nde\r\n0\r\n\r\n".to_owned()]);
    }
}
