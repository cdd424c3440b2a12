//! OpenAI Chat Completions, streamed, at any base URL.

mod client;
mod decode;
mod encode;

pub use client::{ChatClient, ChatOptions};
pub(crate) use encode::{TAIL, encode_head, encode_message};
