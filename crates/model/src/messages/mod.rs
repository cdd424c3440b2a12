//! Anthropic Messages.

mod decode;
mod encode;

pub(crate) use decode::MessagesAssembly;
pub(crate) use encode::{MARK, head, piece, tail};
