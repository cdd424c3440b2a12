//! OpenAI Chat Completions, at any base URL.

mod decode;
mod encode;

pub(crate) use decode::ChatAssembly;
pub(crate) use encode::{head, piece};
