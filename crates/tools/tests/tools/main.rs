//! The tools through their public face: real files in temporary folders, a real bash.

// Helpers of tests are not recognised as tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod bash;
mod bench;
mod calls;
mod checks;
mod commands;
mod edit;
mod elsewhere;
mod full_disk;
mod gemini_rows;
mod gemini_vectors;
mod graph;
mod ignored;
mod json_paths;
mod limited;
mod output;
mod outside;
mod paths;
mod plain_words;
mod reading;
mod secrets;
mod specs;
mod syntax;
mod taxonomy;
mod think;
mod trae_edit;
mod trae_view;
mod view;
mod write;
