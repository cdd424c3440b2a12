//! One plain HTTP request, and its response.
//!
//! The connection ends after them, whatever the client wanted, so that every request is decided on its own. Exactly one body
//! is read in each direction.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, BufReader};
use tokio::net::TcpStream;

use crate::body::{BUFFER, BodyLength, CopyError, LineRead, copy_body, read_line, write_counted};
use crate::head::{HEADERS_MAX, HeaderLine, number, owned_headers, values, write_headers};
use crate::record::ByteCounts;

/// The longest head of a response.
const RESPONSE_HEAD_MAX: usize = 64 * 1024;

/// A request that was allowed.
#[derive(Debug)]
pub(crate) struct ForwardedRequest<'a> {
    /// The head for the server.
    pub(crate) head: Vec<u8>,
    pub(crate) body: BodyLength,
    pub(crate) method: &'a str,
    pub(crate) minor: u8,
}

/// The reasons why a request was not answered in full.
#[derive(Debug)]
pub(crate) enum ForwardError {
    /// The client was sent nothing yet.
    NoAnswer(String),
    Broken(String),
}

/// Sends a request and delivers its response.
pub(crate) async fn forward_request(
    request: ForwardedRequest<'_>,
    client_reader: &mut (impl AsyncBufRead + Unpin),
    client_writer: &mut (impl AsyncWrite + Unpin),
    server: TcpStream,
    counts: &ByteCounts,
) -> Result<(), ForwardError> {
    let (server_reader, mut server_writer) = server.into_split();
    let mut server_reader = BufReader::with_capacity(BUFFER, server_reader);
    let up = async {
        let sent = async {
            write_counted(&mut server_writer, &request.head, &counts.up).await?;
            copy_body(client_reader, &mut server_writer, request.body, &counts.up).await
        };
        match sent.await {
            Ok(()) => lost_client(client_reader).await,
            Err(CopyError::Read(error)) => error,
            // The server takes no more, and may have answered before.
            Err(CopyError::Write(_)) => std::future::pending().await,
        }
    };
    let down = deliver_response(&request, &mut server_reader, client_writer, counts);
    tokio::select! {
        biased;
        delivered = down => delivered,
        error = up => Err(ForwardError::Broken(format!("client: {error}"))),
    }
}

/// Waits until the client breaks the connection off. What it sends after its request is dropped; that it sends no more is
/// fine.
async fn lost_client(reader: &mut (impl AsyncBufRead + Unpin)) -> io::Error {
    loop {
        match reader.fill_buf().await {
            Ok([]) => return std::future::pending().await,
            Ok(bytes) => {
                let taken = bytes.len();
                reader.consume(taken);
            }
            Err(error) => return error,
        }
    }
}

/// Delivers the response, with the provisional ones before it.
async fn deliver_response(
    request: &ForwardedRequest<'_>,
    server: &mut (impl AsyncBufRead + Unpin),
    client: &mut (impl AsyncWrite + Unpin),
    counts: &ByteCounts,
) -> Result<(), ForwardError> {
    let broken = |error: CopyError| ForwardError::Broken(error.into_io().to_string());
    let mut has_begun = false;
    loop {
        let read = async {
            let response = ResponseHead::parse(&read_response_head(server).await?)?;
            let length = response.body_length(request.method)?;
            Ok::<_, String>((response, length))
        };
        let (response, length) = read.await.map_err(|why| match has_begun {
            true => ForwardError::Broken(why),
            false => ForwardError::NoAnswer(why),
        })?;
        let is_provisional = (100..200).contains(&response.code);
        // A client of HTTP/1.0 knows no provisional responses.
        if !is_provisional || request.minor > 0 {
            has_begun = true;
            write_counted(client, &response.delivered(is_provisional), &counts.down).await.map_err(broken)?;
        }
        if !is_provisional {
            return copy_body(server, client, length, &counts.down).await.map_err(broken);
        }
    }
}

/// Reads the bytes of a response's head.
async fn read_response_head(server: &mut (impl AsyncBufRead + Unpin)) -> Result<Vec<u8>, String> {
    let mut head = Vec::new();
    loop {
        let start = head.len();
        match read_line(server, &mut head, RESPONSE_HEAD_MAX).await {
            Ok(LineRead::Line) => {}
            Ok(LineRead::TooLong) => return Err("the head of its response is too large".to_owned()),
            Ok(LineRead::Ended) => return Err("it closed the connection without a response".to_owned()),
            Err(error) => return Err(error.to_string()),
        }
        if matches!(&head[start..], b"\r\n" | b"\n") {
            return Ok(head);
        }
    }
}

/// The head of a response.
struct ResponseHead {
    code: u16,
    minor: u8,
    reason: String,
    headers: Vec<HeaderLine>,
}

impl ResponseHead {
    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut headers);
        let parsed =
            response.parse(bytes).map_err(|error| format!("its response cannot be read: {error}"))?;
        match (parsed, response.code, response.version) {
            (httparse::Status::Complete(_), Some(101), _) => {
                Err("it changed the protocol unasked".to_owned())
            }
            (httparse::Status::Complete(_), Some(code), Some(minor)) => Ok(Self {
                code,
                minor,
                reason: response.reason.unwrap_or_default().to_owned(),
                headers: owned_headers(response.headers),
            }),
            _ => Err("its response cannot be read".to_owned()),
        }
    }

    fn body_length(&self, method: &str) -> Result<BodyLength, String> {
        let (coded, sized) =
            (values(&self.headers, "transfer-encoding"), values(&self.headers, "content-length"));
        if method == "HEAD" || matches!(self.code, 100..200 | 204 | 304) {
            return Ok(BodyLength::Empty);
        }
        if let Some(last) = coded.last() {
            let is_chunked = last.to_ascii_lowercase().trim_ascii().ends_with(b"chunked");
            return Ok(if is_chunked { BodyLength::Chunked } else { BodyLength::UntilEnd });
        }
        let Some(first) = sized.first() else { return Ok(BodyLength::UntilEnd) };
        let length = number(first).filter(|_| sized.iter().all(|other| other == first));
        length.map(BodyLength::Bytes).ok_or_else(|| "its response has no clear length".to_owned())
    }

    /// The head that the client gets.
    fn delivered(&self, is_provisional: bool) -> Vec<u8> {
        let mut head = format!("HTTP/1.{} {} {}\r\n", self.minor, self.code, self.reason).into_bytes();
        let is_coded = !values(&self.headers, "transfer-encoding").is_empty();
        let without: &[&str] = if is_coded { &["content-length"] } else { &[] };
        if is_provisional {
            head.extend_from_slice(b"\r\n");
        } else {
            write_headers(&mut head, &self.headers, without);
        }
        head
    }
}
