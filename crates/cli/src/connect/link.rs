//! One WebSocket to a server.

use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::address::{Address, ByteStream};

/// The longest silence of a server that counts as connected. A server sends something at least every 15 seconds.
const SILENCE: Duration = Duration::from_secs(60);

pub(super) enum LinkError {
    /// The server refused; another attempt gets the same reply.
    Refused(String),
    Dropped(String),
}

pub(super) struct Link {
    socket: WebSocketStream<Box<dyn ByteStream>>,
}

impl Link {
    pub async fn open(address: &Address, query: &str) -> Result<Self, LinkError> {
        let refused = |error: Error| LinkError::Refused(error.to_string());
        let scheme = if address.is_secure() { "wss" } else { "ws" };
        let url = format!("{scheme}://{}/ws/agent/interactive/task{query}", address.host);
        let mut request = url.into_client_request().map_err(refused)?;
        let token = HeaderValue::from_str(&format!("Bearer {}", address.token));
        let token = token.map_err(|error| LinkError::Refused(error.to_string()))?;
        request.headers_mut().insert("authorization", token);
        let stream = address.open().await.map_err(LinkError::Dropped)?;
        match tokio_tungstenite::client_async(request, stream).await {
            Ok((socket, _)) => Ok(Self { socket }),
            Err(Error::Http(response)) => {
                let body = response.body().as_deref().unwrap_or_default();
                let body: Value = serde_json::from_slice(body).unwrap_or_default();
                let words = body["detail"].as_str().unwrap_or("the server refuses the connection");
                let words = format!("{words} ({})", response.status().as_u16());
                // Too many at once, or not ready yet: that passes.
                match response.status().as_u16() {
                    429 | 500.. => Err(LinkError::Dropped(words)),
                    _ => Err(LinkError::Refused(words)),
                }
            }
            Err(error) => Err(LinkError::Dropped(error.to_string())),
        }
    }

    pub async fn send(&mut self, message: &Value) -> Result<(), String> {
        self.socket.send(Message::text(message.to_string())).await.map_err(|error| error.to_string())
    }

    /// The text of the next frame. None for a message that is not a text frame.
    pub async fn next(&mut self) -> Result<Option<String>, String> {
        match tokio::time::timeout(SILENCE, self.socket.next()).await {
            Err(_) => Err("nothing was heard for a minute".to_owned()),
            Ok(None) => Err("the server closed the connection".to_owned()),
            Ok(Some(Err(error))) => Err(error.to_string()),
            Ok(Some(Ok(Message::Text(text)))) => Ok(Some(text.as_str().to_owned())),
            Ok(Some(Ok(Message::Close(frame)))) => {
                let reason = frame.map(|frame| frame.reason.to_string()).filter(|reason| !reason.is_empty());
                Err(reason.unwrap_or_else(|| "the server closed the connection".to_owned()))
            }
            Ok(Some(Ok(_))) => Ok(None),
        }
    }
}
