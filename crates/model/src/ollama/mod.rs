//! Ollama's own `/api/chat`: lines of JSON.

mod decode;
mod encode;

pub(crate) use decode::Assembling;
pub(crate) use encode::{head, piece};
