//! OpenAI Responses.

mod decode;
mod encode;

pub(crate) use decode::ResponsesAssembly;
pub(crate) use encode::{head, piece};
