//! The behaviour of a recorded model.

use std::time::Duration;

/// The speed at which recorded text appears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayPace {
    Instant,
    /// At a person's reading speed.
    Slow,
    /// This long for each answer: a model that always takes this time.
    Each(Duration),
}

/// The consequence of a drift.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayStrictness {
    /// The drift is reported, and the replay continues.
    Lenient,
    /// It ends the replay.
    Strict,
}
