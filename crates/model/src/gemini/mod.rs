//! Google Gemini: `streamGenerateContent` with server-sent events.

mod decode;
mod encode;

pub(crate) use decode::GeminiAssembly;
pub(crate) use encode::{head, piece, tail};
