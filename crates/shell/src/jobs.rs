//! What lines have left running.

use std::time::Duration;

/// The processes one line left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The number of the line, which is the number of the job.
    pub id: u64,
    /// The line's text.
    pub line: String,
    /// The processes that live; none when all have ended.
    pub pids: Vec<u32>,
    pub age: Duration,
    /// Bytes printed after the line's end.
    pub printed: u64,
}
