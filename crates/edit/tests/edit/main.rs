//! Behaviour of the edits, as tables over bytes.
#![allow(clippy::unwrap_used, clippy::panic)]

mod diff;
mod insert;
mod number;
mod properties;
mod replace;
mod text;
