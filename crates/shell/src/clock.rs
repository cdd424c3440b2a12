//! The clock of a line, which stops while a user is being asked.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Stands for "never", if the platform's clock cannot represent a later time.
const FOREVER: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// The clock shared by a shell and the commands of its line.
#[derive(Debug, Clone)]
pub struct LineClock {
    holds: Arc<watch::Sender<usize>>,
}

/// The clock stands still while one of these exists.
#[derive(Debug)]
pub struct ClockHold {
    holds: Arc<watch::Sender<usize>>,
}

impl Default for LineClock {
    fn default() -> Self {
        Self { holds: Arc::new(watch::Sender::new(0)) }
    }
}

impl LineClock {
    pub fn hold(&self) -> ClockHold {
        self.holds.send_modify(|holds| *holds += 1);
        ClockHold { holds: Arc::clone(&self.holds) }
    }

    /// The number of holds, and every change of it.
    pub fn watch(&self) -> watch::Receiver<usize> {
        self.holds.subscribe()
    }
}

impl Drop for ClockHold {
    fn drop(&mut self) {
        self.holds.send_modify(|holds| *holds = holds.saturating_sub(1));
    }
}

/// A span of time on a line's clock.
pub struct Deadline {
    left: Duration,
    /// The time since which it runs. None while the clock stands still.
    running: Option<Instant>,
    holds: watch::Receiver<usize>,
}

impl Deadline {
    pub fn new(limit: Duration, clock: &LineClock) -> Self {
        Self { left: limit.min(FOREVER), running: Some(Instant::now()), holds: clock.watch() }
    }

    /// Waits for the end of the span. A pending call may be dropped and repeated.
    pub async fn passed(&mut self) {
        loop {
            let is_held = *self.holds.borrow_and_update() > 0;
            match (self.running, is_held) {
                (Some(since), true) => {
                    self.left = self.left.saturating_sub(since.elapsed());
                    self.running = None;
                }
                (None, false) => self.running = Some(Instant::now()),
                _ => {}
            }
            let end = self.running.map(|since| since + self.left);
            tokio::select! {
                () = until(end) => return,
                // Without a clock no hold is possible any more.
                Ok(()) = self.holds.changed() => {}
            }
        }
    }
}

async fn until(end: Option<Instant>) {
    match end {
        Some(end) => sleep_until(end).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn a_held_clock_stands_still() {
        let clock = LineClock::default();
        let mut deadline = Deadline::new(4 * TICK, &clock);
        let began = Instant::now();
        let holder = async {
            tokio::time::sleep(TICK).await;
            let (one, two) = (clock.hold(), clock.hold());
            tokio::time::sleep(5 * TICK).await;
            drop(one);
            tokio::time::sleep(5 * TICK).await;
            drop(two);
        };
        tokio::join!(deadline.passed(), holder);
        assert!(began.elapsed() >= 13 * TICK, "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn a_dropped_wait_forgets_nothing() {
        let mut deadline = Deadline::new(FOREVER, &LineClock::default());
        let (since, left) = (deadline.running, deadline.left);
        for _ in 0..3 {
            // Polled once and dropped.
            tokio::select! {
                biased;
                () = deadline.passed() => panic!("forever has passed"),
                () = std::future::ready(()) => {}
            }
            assert_eq!((deadline.running, deadline.left), (since, left));
        }
        let mut short = Deadline::new(TICK, &LineClock::default());
        tokio::select! {
            biased;
            () = short.passed() => {}
            () = std::future::ready(()) => short.passed().await,
        }
        Deadline::new(Duration::MAX, &LineClock::default());
    }
}
