//! What is read out of a text.

mod commands;
mod depth;
