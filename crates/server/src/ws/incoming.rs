//! A client's messages, each within its size and its time.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use axum::extract::ws::{Message, Utf8Bytes, WebSocket, close_code};
use futures::StreamExt as _;
use futures::stream::SplitStream;
use tokio::time::{Sleep, sleep};

use super::MESSAGE_MAX;
use super::pump::Goodbye;
use crate::metered::Meter;

/// The time of one message from its first byte to its last, including anything between its fragments.
const MESSAGE_TIME: Duration = Duration::from_secs(10);
/// The head and the mask of a ping or a pong.
const CONTROL_HEAD: u64 = 6;

/// A received message.
pub(super) enum ClientInput {
    Text(Utf8Bytes),
    /// A ping or a pong.
    Life,
}

pub(super) struct MessageStream {
    stream: SplitStream<WebSocket>,
    meter: Meter,
    /// Bytes of the connection that belong to complete messages.
    taken: u64,
    /// The time at which the message that has begun must be complete.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl MessageStream {
    pub fn new(stream: SplitStream<WebSocket>, meter: Meter) -> Self {
        Self { stream, taken: meter.read(), meter, deadline: None }
    }

    /// The next complete message. The future may be dropped and called again: the time of a message continues.
    pub async fn next(&mut self) -> Result<ClientInput, Goodbye> {
        let input = poll_fn(|cx| {
            if let Poll::Ready(next) = self.stream.poll_next_unpin(cx) {
                self.count_bytes(&next);
                return Poll::Ready(Ok(next));
            }
            // All bytes that were read are in whole messages: the client is not slow.
            if self.meter.read() <= self.taken {
                self.deadline = None;
                return Poll::Pending;
            }
            let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(MESSAGE_TIME)));
            deadline.as_mut().poll(cx).map(Err)
        });
        match input.await {
            Ok(None | Some(Ok(Message::Close(_)))) => Err(Goodbye::gone()),
            Ok(Some(Ok(Message::Text(text)))) => Ok(ClientInput::Text(text)),
            Ok(Some(Ok(Message::Binary(_)))) => {
                Err(Goodbye::new(close_code::UNSUPPORTED, "messages are text, not binary"))
            }
            Ok(Some(Ok(Message::Ping(_) | Message::Pong(_)))) => Ok(ClientInput::Life),
            Ok(Some(Err(error))) => Err(protocol_error(&error)),
            Err(()) => {
                let seconds = MESSAGE_TIME.as_secs();
                Err(Goodbye::new(close_code::POLICY, format!("a message took longer than {seconds} seconds")))
            }
        }
    }

    /// Counts the bytes of a message. Pings may come between the fragments of a message, so only their own bytes are
    /// subtracted. A text ends everything that was read; a byte of the next message that came with it is missed, but
    /// not the one after.
    fn count_bytes(&mut self, next: &Option<Result<Message, axum::Error>>) {
        let read = self.meter.read();
        match next {
            Some(Ok(Message::Ping(payload) | Message::Pong(payload))) => {
                self.taken = (self.taken + CONTROL_HEAD + payload.len() as u64).min(read);
            }
            _ => (self.taken, self.deadline) = (read, None),
        }
    }
}

fn protocol_error(error: &axum::Error) -> Goodbye {
    let words = error.to_string();
    if words.contains("too long") || words.contains("too big") || words.contains("Space limit") {
        return Goodbye::new(close_code::SIZE, format!("a message may have {MESSAGE_MAX} bytes"));
    }
    if words.to_lowercase().contains("utf-8") || words.to_lowercase().contains("utf8") {
        return Goodbye::new(close_code::INVALID, "a message was not UTF-8");
    }
    Goodbye::new(close_code::PROTOCOL, words)
}
