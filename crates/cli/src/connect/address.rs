//! The address of a server, and a plain request to it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// The longest time that opening a connection may take.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes that are read of a reply.
const MAX_REPLY_BYTES: u64 = 16 << 20;

pub(super) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

pub(super) struct Address {
    /// The value of the header `Host`.
    pub host: String,
    name: String,
    port: u16,
    tls: Option<TlsConnector>,
    pub token: String,
}

impl Address {
    /// Reads `http://host:port/#token=...`.
    pub fn read(url: &str, token: Option<String>, ca: Option<&Path>) -> Result<Self, String> {
        let wrong = || {
            "give the address as `lathe serve` prints it, such as http://127.0.0.1:8090/#token=...".to_owned()
        };
        let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
        let secure = match scheme.to_ascii_lowercase().as_str() {
            "http" | "ws" => false,
            "https" | "wss" => true,
            _ => return Err(wrong()),
        };
        let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
        let host = rest.split(['/', '?']).next().unwrap_or_default();
        if host.is_empty() || host.contains(['@', ' ', '\r', '\n']) {
            return Err(wrong());
        }
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') => (name, port.parse().map_err(|_| wrong())?),
            _ => (host, if secure { 443 } else { 80 }),
        };
        let name = name.trim_start_matches('[').trim_end_matches(']').to_owned();
        let given = fragment.split('&').find_map(|part| part.strip_prefix("token="));
        let token = given.map(str::to_owned).or(token);
        let token = token
            .ok_or("give the token in LATHE_TOKEN, in --token-file, or in the address (`#token=...`)")?;
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("the token is one word".to_owned());
        }
        // A token on an unencrypted connection can be read on the way.
        let is_near = matches!(name.as_str(), "127.0.0.1" | "localhost" | "::1");
        if !secure && !is_near {
            return Err(format!(
                "the token would go to {name} in the clear: use https, or a tunnel to 127.0.0.1"
            ));
        }
        let tls = if secure { Some(connector(ca)?) } else { None };
        Ok(Self { host: host.to_owned(), name, port, tls, token })
    }

    pub fn is_secure(&self) -> bool {
        self.tls.is_some()
    }

    pub async fn open(&self) -> Result<Box<dyn ByteStream>, String> {
        let opening = async {
            let stream =
                TcpStream::connect((self.name.as_str(), self.port)).await.map_err(|e| e.to_string())?;
            let Some(tls) = &self.tls else { return Ok(Box::new(stream) as Box<dyn ByteStream>) };
            let name = ServerName::try_from(self.name.clone()).map_err(|error| error.to_string())?;
            let stream = tls.connect(name, stream).await.map_err(|error| error.to_string())?;
            Ok(Box::new(stream) as Box<dyn ByteStream>)
        };
        match tokio::time::timeout(OPEN_TIMEOUT, opening).await {
            Ok(opened) => opened,
            Err(_) => Err("no answer within 10 seconds".to_owned()),
        }
    }

    /// Requests JSON.
    pub async fn get(&self, path: &str) -> Result<Value, String> {
        let unreachable = |reason: String| format!("the server cannot be reached: {reason}");
        let mut stream = self.open().await.map_err(unreachable)?;
        let request = format!(
            "GET {path} HTTP/1.0\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
            self.host, self.token
        );
        stream.write_all(request.as_bytes()).await.map_err(|error| unreachable(error.to_string()))?;
        let mut answer = Vec::new();
        // A connection that drops without a TLS close counts as the end of the reply.
        let reading = async { stream.take(MAX_REPLY_BYTES).read_to_end(&mut answer).await };
        let _ = tokio::time::timeout(OPEN_TIMEOUT * 3, reading).await;
        let text = String::from_utf8_lossy(&answer);
        let (head, body) = text.split_once("\r\n\r\n").ok_or_else(|| unreachable("no answer".to_owned()))?;
        let status = head.split(' ').nth(1).unwrap_or_default();
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        match status {
            "200" => Ok(body),
            _ => Err(format!(
                "{} ({status})",
                body["detail"].as_str().unwrap_or("the server refuses the request")
            )),
        }
    }
}

fn connector(ca: Option<&Path>) -> Result<TlsConnector, String> {
    let mut roots = RootCertStore::empty();
    let mut add = |certificate: CertificateDer<'static>| drop(roots.add(certificate));
    match ca {
        Some(path) => {
            let wrong = |error: &dyn std::fmt::Display| format!("--ca {}: {error}", path.display());
            for certificate in CertificateDer::pem_file_iter(path).map_err(|error| wrong(&error))? {
                add(certificate.map_err(|error| wrong(&error))?);
            }
        }
        None => rustls_native_certs::load_native_certs().certs.into_iter().for_each(&mut add),
    }
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Result<(String, String, u16, String), String> {
        let address = Address::read(url, None, None)?;
        Ok((address.host, address.name, address.port, address.token))
    }

    #[test]
    fn an_address_is_read_as_serve_prints_it() {
        let near =
            |host: &str, name: &str, port| Ok((host.to_owned(), name.to_owned(), port, "ab".to_owned()));
        assert_eq!(read("http://127.0.0.1:8090/#token=ab"), near("127.0.0.1:8090", "127.0.0.1", 8090));
        assert_eq!(read("ws://[::1]:9/x?y#z=1&token=ab"), near("[::1]:9", "::1", 9));
        assert_eq!(read("http://localhost#token=ab"), near("localhost", "localhost", 80));
    }

    #[test]
    fn what_is_no_address_or_would_show_the_token_is_refused() {
        for url in [
            "",
            "127.0.0.1:8090",
            "ftp://127.0.0.1/#token=ab",
            "http://#token=ab",
            "http://user@127.0.0.1/#token=ab",
            "http://127.0.0.1:x/#token=ab",
            "http://127.0.0.1:80/",
            "http://127.0.0.1:80/#token=a b",
            "http://example.com/#token=ab",
        ] {
            assert!(read(url).is_err(), "{url}");
        }
    }
}
