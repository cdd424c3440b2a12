//! Google Gemini: `streamGenerateContent` with server-sent events.

mod decode;
mod encode;

pub(crate) use decode::Assembling;
pub(crate) use encode::{head, piece, tail};
