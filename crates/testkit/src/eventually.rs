//! Waiting for something another process does.

use std::time::{Duration, Instant};

/// The least time that anything is waited for: long enough for a machine that is busy with other things, so that only
/// what never comes is missed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(150);

/// Returns when `condition` holds; panics, naming `what`, when it does not within `within`, or within two and a half
/// minutes if that is longer.
#[track_caller]
pub fn eventually(within: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let within = within.max(PATIENCE);
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < within, "not within {:.1} s: {what}", within.as_secs_f64());
        std::thread::sleep(Duration::from_millis(2));
    }
}
