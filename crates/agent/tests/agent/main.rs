//! Tests the loop as data: the next actions in every state, and that no order of results makes an invalid
//! conversation.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod conversation;
mod history;
mod loops;
