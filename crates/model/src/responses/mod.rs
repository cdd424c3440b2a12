//! OpenAI Responses.

mod decode;
mod encode;

pub(crate) use decode::Assembling;
pub(crate) use encode::{head, piece};
