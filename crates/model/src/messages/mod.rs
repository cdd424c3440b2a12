//! Anthropic Messages.

mod decode;
mod encode;

pub(crate) use decode::Assembling;
pub(crate) use encode::{MARK, head, piece, tail};
