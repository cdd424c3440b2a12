//! Ollama's own `/api/chat`: lines of JSON.

mod decode;
mod encode;

pub(crate) use decode::OllamaAssembly;
pub(crate) use encode::{head, piece};
