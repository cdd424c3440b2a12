//! Reading a text: commands, depth of nesting, and flat statements.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod commands;
mod depth;
mod flat;
