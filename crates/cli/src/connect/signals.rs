//! The signals that end a client: Ctrl-C cancels the run, the others end only the client.

use tokio::signal::unix::{Signal, SignalKind, signal};

pub(super) enum ClientStop {
    /// Ctrl-C.
    Cancel { first: bool },
    /// The terminal was closed, or the process is to end; with the exit code for that signal.
    Leave(u8),
}

pub(super) struct Signals {
    interrupt: Option<Signal>,
    terminate: Option<Signal>,
    hangup: Option<Signal>,
    quit: Option<Signal>,
    was_interrupted: bool,
}

impl Signals {
    pub fn listen() -> Self {
        let listen = |kind| signal(kind).ok();
        Self {
            interrupt: listen(SignalKind::interrupt()),
            terminate: listen(SignalKind::terminate()),
            hangup: if lathe_host::ignores_hangup() { None } else { listen(SignalKind::hangup()) },
            quit: listen(SignalKind::quit()),
            was_interrupted: false,
        }
    }

    pub async fn next(&mut self) -> ClientStop {
        async fn one(signal: &mut Option<Signal>) {
            match signal {
                Some(signal) => drop(signal.recv().await),
                None => std::future::pending().await,
            }
        }
        tokio::select! {
            () = one(&mut self.interrupt) => {
                ClientStop::Cancel { first: !std::mem::replace(&mut self.was_interrupted, true) }
            }
            () = one(&mut self.terminate) => ClientStop::Leave(143),
            () = one(&mut self.hangup) => ClientStop::Leave(129),
            () = one(&mut self.quit) => ClientStop::Leave(131),
        }
    }
}
