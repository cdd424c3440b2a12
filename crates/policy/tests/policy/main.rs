//! The gate from outside: rule files, shell lines, modes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod corpus;
mod denials;
mod differential;
mod docs;
mod generated;
mod inside;
mod kinds;
mod lost;
mod many;
mod options;
mod reading;
mod reads;
mod rules;
mod texts;
mod values;
