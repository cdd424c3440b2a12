//! The signals that ask for an end: one listener for the whole of a command, from before its first output to its last.
//!
//! A listener made for each part of a command would lose signals that come between two parts, and a signal that was
//! listened for once no longer ends the process by itself. So each command makes one [`Stops`] and passes it on.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// A request to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Ctrl-C: it concerns the current activity only. A prompt stays.
    Interrupt,
    /// SIGTERM, a closed terminal (SIGHUP), Ctrl-\ (SIGQUIT): the process is to end after the current activity is closed.
    Leave,
}

/// The requests to end, counted.
pub(crate) struct Stops {
    signals: [Option<Signal>; 4],
    count: u32,
    leaves: bool,
}

impl Stops {
    pub(crate) fn listen() -> Self {
        let listen = |kind| signal(kind).ok();
        // `nohup` asks for the opposite of an end; a handler would undo it.
        let hangup = if lathe_host::ignores_hangup() { None } else { listen(SignalKind::hangup()) };
        let signals = [
            listen(SignalKind::interrupt()),
            listen(SignalKind::terminate()),
            hangup,
            listen(SignalKind::quit()),
        ];
        Self { signals, count: 0, leaves: false }
    }

    /// Begins another task of the same command: requests that came before it do not count against it.
    pub(crate) fn begin_task(&mut self) {
        self.count = 0;
    }

    /// Waits for the next request. Nothing is lost if the future is dropped.
    pub(crate) async fn next(&mut self) -> Stop {
        let [interrupt, terminate, hangup, quit] = &mut self.signals;
        let stop = tokio::select! {
            () = one(interrupt) => Stop::Interrupt,
            () = one(terminate) => Stop::Leave,
            () = one(hangup) => Stop::Leave,
            () = one(quit) => Stop::Leave,
        };
        self.note(stop)
    }

    /// Waits for a request to leave. Ctrl-C meanwhile belongs to another program that has the terminal.
    pub(crate) async fn wait_to_leave(&mut self) -> Stop {
        loop {
            let [interrupt, terminate, hangup, quit] = &mut self.signals;
            tokio::select! {
                () = one(interrupt) => {}
                () = one(terminate) => return self.note(Stop::Leave),
                () = one(hangup) => return self.note(Stop::Leave),
                () = one(quit) => return self.note(Stop::Leave),
            }
        }
    }

    /// Discards the Ctrl-C that ended a program which had the terminal: it reached this process too, perhaps only after
    /// the program's end was seen.
    pub(crate) async fn discard_interrupt(&mut self, patience: Duration) {
        let [interrupt, ..] = &mut self.signals;
        let _ = tokio::time::timeout(patience, one(interrupt)).await;
    }

    fn note(&mut self, stop: Stop) -> Stop {
        self.count += 1;
        self.leaves |= stop == Stop::Leave;
        stop
    }

    /// The number of requests since the task began.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Tells whether the process was asked to end.
    pub(crate) fn is_leaving(&self) -> bool {
        self.leaves
    }
}

async fn one(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}
