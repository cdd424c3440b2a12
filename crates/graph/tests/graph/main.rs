//! The graph, from the facts of one file to answers about a repository.
#![allow(clippy::unwrap_used, clippy::panic)]

mod facts;
