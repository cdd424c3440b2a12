//! The kit itself, over real sockets and real processes.

// Helpers outside `#[test]` functions fail as tests do.
#![allow(clippy::unwrap_used)]

mod client;
mod fake_model;
mod lathe;
