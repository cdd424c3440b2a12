//! Behaviour of the local files, on real folders.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

mod failures;
mod reading;
mod support;
mod writing;
