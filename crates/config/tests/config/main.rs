//! Files, variables and flags in a temporary folder, and what comes of them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod legacy;
mod links;
mod narrow;
mod ours;
mod precedence;
mod reference;
mod samples;
mod shown;
mod support;
mod trusted;
mod yaml;
