//! Behaviour of the edits, as tables over bytes.
#![allow(clippy::unwrap_used, clippy::panic)]

mod compliance;
mod data;
mod data_properties;
mod diff;
mod edits;
mod encodings;
mod insert;
mod loose;
mod number;
mod omissions;
mod patch;
mod properties;
mod replace;
mod syntax;
mod text;
