//! Durations and how they are spread.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Default)]
pub struct Samples(Vec<Duration>);

impl Samples {
    pub fn push(&mut self, duration: Duration) {
        self.0.push(duration);
    }

    pub fn extend(&mut self, durations: impl IntoIterator<Item = Duration>) {
        self.0.extend(durations);
    }

    /// The smallest sample that `percent` of all samples do not exceed.
    pub fn percentile(&self, percent: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let at = (sorted.len() * percent).div_ceil(100).max(1) - 1;
        sorted.get(at).copied().expect("something was measured")
    }

    pub fn median(&self) -> Duration {
        self.percentile(50)
    }
}

/// Measures the duration of the work.
pub fn time(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

/// Measures a program from its start to its end.
pub fn time_program(command: &mut Command) -> Duration {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut status = None;
    let elapsed = time(|| status = Some(command.status().expect("the program can be started")));
    assert!(status.expect("it ran").success(), "{command:?} failed");
    elapsed
}
