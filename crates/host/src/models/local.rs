//! Model servers on this machine: a quick check whether one answers, and the models that it offers.
//!
//! It uses plain sockets, because creating the HTTP client costs more than asking all servers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const QUICK: Duration = Duration::from_millis(300);
/// Bytes of a list that are read.
const LIST_LIMIT: u64 = 1 << 20;

/// The models that a server on loopback offers; none if no server answers there.
pub(crate) fn offered_models(base_url: &str) -> Vec<String> {
    ask(base_url).unwrap_or_default()
}

fn ask(base_url: &str) -> Option<Vec<String>> {
    let rest = base_url.strip_prefix("http://")?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let address: SocketAddr = host.replace("localhost", "127.0.0.1").parse().ok()?;
    if !address.ip().is_loopback() {
        return None;
    }
    let path = path.trim_end_matches('/');
    let path = if path.is_empty() { "v1" } else { path };
    let mut stream = TcpStream::connect_timeout(&address, QUICK).ok()?;
    stream.set_read_timeout(Some(QUICK)).ok()?;
    stream.set_write_timeout(Some(QUICK)).ok()?;
    // Version 1.0, so that the reply comes in one piece and ends with the connection.
    let request = format!("GET /{path}/models HTTP/1.0\r\nhost: {host}\r\naccept: application/json\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    // The bytes that came before a server fell silent may be the whole list.
    let _ = stream.take(LIST_LIMIT).read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer);
    let (head, body) = text.split_once("\r\n\r\n")?;
    if !head.lines().next()?.contains(" 200") {
        return None;
    }
    let list: serde_json::Value = serde_json::from_str(body).ok()?;
    let models = list.get("data")?.as_array()?;
    Some(models.iter().filter_map(|model| model.get("id")?.as_str().map(str::to_owned)).collect())
}
