//! Waiting for something another process does.

use std::time::{Duration, Instant};

/// Returns when `condition` holds; panics, naming `what`, when it does not within `within`.
#[track_caller]
pub fn eventually(within: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < within, "not within {:.1} s: {what}", within.as_secs_f64());
        std::thread::sleep(Duration::from_millis(2));
    }
}
