//! The loop as data: what is done next in every state, and that no order of results makes a bad conversation.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod conversation;
mod history;
mod loops;
