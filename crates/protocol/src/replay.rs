//! How a recorded model answers.

use std::time::Duration;

/// Speed at which recorded text appears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    Instant,
    /// As a person would like to read it.
    Slow,
    /// This long for each answer: a model that is always as slow as that.
    Each(Duration),
}

/// Consequence of a drift.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// It is told, and the replay goes on.
    Lenient,
    /// It ends the replay.
    Strict,
}
