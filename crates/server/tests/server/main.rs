//! The server over its real protocol: sockets of this machine, a recorded model, real tools.

// Helpers of tests are not inside `#[test]` functions, where these are allowed anyway.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod access;
mod approvals;
mod documented;
mod entries;
mod events;
mod faults;
mod files;
mod fragments;
mod frames;
mod git;
mod git_bounds;
mod grounds;
mod ids;
mod kit;
mod lakeview;
mod layouts;
mod limits;
mod masked;
mod matrix;
mod online;
mod outside;
mod page;
#[allow(dead_code)]
#[path = "../../../workspace/tests/files/paths_table.rs"]
mod paths_table;
#[allow(dead_code)]
#[path = "../../../workspace/tests/files/paths_world.rs"]
mod paths_world;
mod patterns;
mod requests;
mod review;
mod review_gate;
mod roles;
mod runs;
mod sessions;
mod settings;
mod shapes;
mod steps;
mod storm;
mod swapped;
