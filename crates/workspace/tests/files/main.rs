//! Behaviour of the local files, on real folders.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

mod closed;
mod failures;
mod full_disk;
mod grounds;
mod kill;
mod names;
mod paths;
mod paths_table;
mod paths_world;
mod race;
mod reading;
mod support;
mod writing;
