//! The shell with a real bash, in behaviours.

// clippy knows test functions, not their helpers.
#![allow(clippy::unwrap_used, clippy::panic)]

mod death;
mod ending;
mod harness;
mod io;
mod rest;
mod state;
mod stopping;
