//! The clock of a line, which stands still while somebody is being asked.

use std::sync::Arc;

use tokio::sync::watch;

/// Shared by a shell and the commands of its line.
#[derive(Debug, Clone)]
pub struct LineClock {
    holds: Arc<watch::Sender<usize>>,
}

/// The clock stands still as long as one of these lives.
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

    /// How many hold it, and every change of that.
    pub fn watch(&self) -> watch::Receiver<usize> {
        self.holds.subscribe()
    }
}

impl Drop for ClockHold {
    fn drop(&mut self) {
        self.holds.send_modify(|holds| *holds = holds.saturating_sub(1));
    }
}
