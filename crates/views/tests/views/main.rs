//! The views, from events to text, as a host uses them.

// A panic is how a test tells that it failed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cost;
mod make;
mod markup;
mod page;
mod schema;
mod states;
mod trajectory;
