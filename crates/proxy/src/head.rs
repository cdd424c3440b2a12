//! The head of an HTTP request.
//!
//! Everything that two readers of a request could understand differently is refused: that difference is how a request is
//! smuggled past a proxy. So the head that is passed on says one thing only, and the destination is read once.

use tokio::io::AsyncBufRead;

use crate::body::{BodyLength, LineRead, read_line};
use crate::names::{Authority, RequestedHost};
use crate::record::ProxyProtocol;
use crate::refusal::Refusal;

/// The longest head of a request.
pub(crate) const HEAD_MAX: usize = 16 * 1024;
/// The most header lines.
pub(crate) const HEADERS_MAX: usize = 100;

/// Headers about one connection, which are not passed on.
const HOP_BY_HOP: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
];
/// Headers that say which host and where a body ends.
const ESSENTIAL: [&str; 3] = ["host", "content-length", "transfer-encoding"];

/// A header line.
pub(crate) type HeaderLine = (String, Vec<u8>);

/// The head of a request, as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HttpHead {
    pub(crate) method: String,
    target: String,
    /// The version is `1.` and this.
    pub(crate) minor: u8,
    headers: Vec<HeaderLine>,
}

/// The destination of a request, as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HttpTarget<'a> {
    pub(crate) protocol: ProxyProtocol,
    pub(crate) authority: &'a str,
    /// The rest of the URL; empty for a tunnel.
    pub(crate) path: &'a str,
}

/// Reads the bytes of a head, to the empty line that ends it.
pub(crate) async fn read_head(reader: &mut (impl AsyncBufRead + Unpin)) -> Result<Vec<u8>, Refusal> {
    let mut head = Vec::new();
    loop {
        let start = head.len();
        match read_line(reader, &mut head, HEAD_MAX).await {
            Ok(LineRead::Line) => {}
            Ok(LineRead::TooLong) => return Err(Refusal::too_large()),
            Ok(LineRead::Ended) | Err(_) => return Err(Refusal::gone()),
        }
        let Some(line) = head[start..].strip_suffix(b"\r\n") else {
            return Err(Refusal::malformed("a line does not end with CR and LF"));
        };
        match line {
            [] if start == 0 => return Err(Refusal::malformed("the request begins with an empty line")),
            [] => return Ok(head),
            [b' ' | b'\t', ..] => return Err(Refusal::malformed("a line begins with a space")),
            line if line.iter().any(|byte| matches!(byte, b'\r' | 0)) => {
                return Err(Refusal::malformed("a line has a CR or NUL in it"));
            }
            [..] => {}
        }
    }
}

impl HttpHead {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(bytes) {
            Ok(httparse::Status::Complete(length)) if length == bytes.len() => {}
            Ok(_) => return Err(Refusal::malformed("its head is not well formed")),
            Err(httparse::Error::TooManyHeaders) => return Err(Refusal::too_large()),
            Err(error) => return Err(Refusal::malformed(&error.to_string())),
        }
        let (Some(method), Some(target), Some(minor)) = (request.method, request.path, request.version)
        else {
            return Err(Refusal::malformed("its first line is not complete"));
        };
        Ok(Self {
            method: method.to_owned(),
            target: target.to_owned(),
            minor,
            headers: owned_headers(request.headers),
        })
    }

    /// The destination, unread.
    pub(crate) fn target(&self) -> Result<HttpTarget<'_>, Refusal> {
        if self.method == "CONNECT" {
            return Ok(HttpTarget { protocol: ProxyProtocol::Connect, authority: &self.target, path: "" });
        }
        let scheme = self.target.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("http://"));
        let Some(rest) = scheme.and_then(|scheme| self.target.get(scheme.len()..)) else {
            return Err(Refusal::malformed("it is neither CONNECT nor for an `http://` URL"));
        };
        if rest.contains('#') {
            return Err(Refusal::malformed("its URL has a fragment"));
        }
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        Ok(HttpTarget { protocol: ProxyProtocol::Http, authority, path })
    }

    fn values(&self, name: &str) -> Vec<&[u8]> {
        values(&self.headers, name)
    }

    /// Checks that the `Host` header names the destination.
    pub(crate) fn check_host(
        &self,
        protocol: ProxyProtocol,
        host: &RequestedHost,
        port: u16,
    ) -> Result<(), Refusal> {
        let values = self.values("host");
        let value = match values.as_slice() {
            [] if protocol == ProxyProtocol::Http && self.minor > 0 => {
                return Err(Refusal::malformed("it has no Host header"));
            }
            // The destination of a tunnel is in its first line, and old clients say it only there.
            [] => return Ok(()),
            [value] => *value,
            [_, _, ..] => return Err(Refusal::malformed("it has more than one Host header")),
        };
        let named = Authority::parse(value).map_err(|defect| Refusal::malformed(defect.why()))?;
        let is_port = match (protocol, named.port) {
            (_, Some(named)) => named == port,
            (ProxyProtocol::Http, None) => port == 80,
            // Java leaves the usual port of the tunnelled protocol out.
            (ProxyProtocol::Connect | ProxyProtocol::Socks5, None) => true,
        };
        if named.host != *host || !is_port {
            return Err(Refusal::malformed("its Host header names another host than its first line"));
        }
        Ok(())
    }

    /// The end of the body. Also checks all headers that could hide another end.
    pub(crate) fn body_length(&self) -> Result<BodyLength, Refusal> {
        let (coded, sized) = (self.values("transfer-encoding"), self.values("content-length"));
        if nominated(&self.headers).iter().any(|name| ESSENTIAL.contains(&name.as_str())) {
            return Err(Refusal::malformed("its Connection header names a header that is needed"));
        }
        let length = match (coded.as_slice(), sized.as_slice()) {
            ([], []) => BodyLength::Empty,
            ([], [size]) => match number(size) {
                Some(0) => BodyLength::Empty,
                Some(size) => BodyLength::Bytes(size),
                None => return Err(Refusal::malformed("its Content-Length is not a number")),
            },
            ([coding], []) if coding.eq_ignore_ascii_case(b"chunked") && self.minor > 0 => {
                BodyLength::Chunked
            }
            (_, []) => return Err(Refusal::malformed("its Transfer-Encoding is not just `chunked`")),
            ([], _) => return Err(Refusal::malformed("it has more than one Content-Length")),
            (_, _) => return Err(Refusal::malformed("it has both Content-Length and Transfer-Encoding")),
        };
        if self.method == "CONNECT" && length != BodyLength::Empty {
            return Err(Refusal::malformed("CONNECT has a body"));
        }
        Ok(length)
    }

    /// The head that the server gets.
    pub(crate) fn forwarded(&self, host: &RequestedHost, port: u16, path: &str) -> Vec<u8> {
        let port = if port == 80 { String::new() } else { format!(":{port}") };
        let slash = if path.starts_with('/') { "" } else { "/" };
        let mut head =
            format!("{} {slash}{path} HTTP/1.{}\r\nHost: {host}{port}\r\n", self.method, self.minor)
                .into_bytes();
        write_headers(&mut head, &self.headers, &["host"]);
        head
    }
}

/// The headers that were parsed.
pub(crate) fn owned_headers(headers: &[httparse::Header<'_>]) -> Vec<HeaderLine> {
    headers.iter().map(|header| (header.name.to_owned(), header.value.to_vec())).collect()
}

/// The values of a header, in any case of its name.
pub(crate) fn values<'a>(headers: &'a [HeaderLine], name: &str) -> Vec<&'a [u8]> {
    headers
        .iter()
        .filter(|(own, _)| own.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_slice())
        .collect()
}

/// Reads a length: digits only.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    let is_number = !text.is_empty() && text.len() <= 18 && text.iter().all(u8::is_ascii_digit);
    is_number.then(|| text.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

/// The headers that a `Connection` header declares to be about one connection.
fn nominated(headers: &[HeaderLine]) -> Vec<String> {
    let values = values(headers, "connection").into_iter().chain(values(headers, "proxy-connection"));
    let tokens = values.flat_map(|value| value.split(|byte| *byte == b','));
    tokens.map(|token| String::from_utf8_lossy(token.trim_ascii()).to_ascii_lowercase()).collect()
}

/// Writes the headers that are passed on, one that closes the connection after this message, and the empty line.
pub(crate) fn write_headers(head: &mut Vec<u8>, headers: &[HeaderLine], without: &[&str]) {
    let nominated = nominated(headers);
    let is_kept = |name: &String| {
        let name = name.to_ascii_lowercase();
        let is_hop = HOP_BY_HOP.contains(&name.as_str()) || nominated.contains(&name);
        (!is_hop || ESSENTIAL.contains(&name.as_str())) && !without.contains(&name.as_str())
    };
    for (name, value) in headers.iter().filter(|(name, _)| is_kept(name)) {
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value);
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"Connection: close\r\n\r\n");
}
