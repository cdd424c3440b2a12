//! Repositories as people have them and as attackers make them, with the machine's own git.

// Helpers of tests are not inside `#[test]` functions, where these are allowed anyway.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod bounds;
mod kinds;
mod programs;
mod swaps;
