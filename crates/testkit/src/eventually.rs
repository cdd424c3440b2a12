//! Waiting for something another process does.

use std::time::{Duration, Instant};

/// The least time that a test waits for anything. It ends hangs and measures nothing, so it is long enough for a machine
/// with forty other runnable processes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

/// Returns when `condition` holds; panics, naming `what`, when it does not within `within`, or within ten
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
