//! How long to wait before asking again.

use std::time::Duration;

use reqwest::header::HeaderMap;

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);

/// Doubling waits with full jitter; a provider's own word comes first, up to a cap.
pub(crate) struct Backoff {
    attempts: u32,
    made: u32,
}

impl Backoff {
    pub(crate) fn new(attempts: u32) -> Self {
        Self { attempts, made: 1 }
    }

    /// The number of the next attempt and the wait before it; none when all are used.
    pub(crate) fn next(&mut self, told: Option<Duration>) -> Option<(u32, Duration)> {
        if self.made >= self.attempts {
            return None;
        }
        let ceiling = FIRST.saturating_mul(1 << self.made.min(10).saturating_sub(1)).min(LONGEST);
        self.made += 1;
        Some((self.made, told.map_or_else(|| jittered(ceiling), |told| told.min(LONGEST))))
    }
}

/// Between a tenth and the whole of `ceiling`.
fn jittered(ceiling: Duration) -> Duration {
    use std::hash::{BuildHasher, RandomState};
    // A new RandomState is seeded anew: chance enough for spreading retries, without a dependency.
    let chance = RandomState::new().hash_one(0) % 1000;
    ceiling.mul_f64(0.1 + 0.9 * chance as f64 / 1000.0)
}

/// `retry-after-ms`, or `retry-after` in seconds.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let seconds = number("retry-after-ms").map(|ms| ms / 1000.0).or_else(|| number("retry-after"))?;
    Duration::try_from_secs_f64(seconds).ok()
}
