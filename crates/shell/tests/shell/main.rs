//! The shell with a real bash, in behaviours.

// clippy knows test functions, not their helpers.
#![allow(clippy::unwrap_used, clippy::panic)]

mod commands;
mod death;
mod ending;
mod faults;
mod harness;
mod host;
mod io;
mod jail;
mod jail_limits;
mod jobs;
mod like_bash;
mod losses;
mod rest;
mod session;
mod state;
mod stopping;
mod swapped;
