//! The server over its real protocol: sockets of this machine, a recorded model, real tools.

// Helpers of tests are not inside `#[test]` functions, where these are allowed anyway.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod access;
mod frames;
mod kit;
mod outside;
mod page;
mod runs;
mod storm;
