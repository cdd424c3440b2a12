//! Cleanup if the supervisor itself was killed: its tree is found by a mark in the environment.
//!
//! The supervisor ends everything below it, also when the host dies. If a line kills it (`kill -9 $PPID`), no process
//! does that. Its descendants have no common ancestor then, but every one of them inherited one variable with a
//! unique value; only a program started with a cleared environment escapes this.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

pub(crate) const VARIABLE: &str = "LATHE_SHELL";

/// A value that no other shell has.
pub(crate) fn mark() -> String {
    format!("{}-{:016x}", std::process::id(), lathe_protocol::random_number())
}

/// Kills every process that carries the mark, until none is left.
pub(crate) async fn sweep(mark: &str) {
    let wanted = format!("{VARIABLE}={mark}");
    for _ in 0..20 {
        let found = marked(wanted.as_bytes());
        if found.is_empty() {
            return;
        }
        for pid in found {
            let _ = kill(pid, Signal::SIGKILL);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn marked(wanted: &[u8]) -> Vec<Pid> {
    let own = std::process::id();
    let pids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| *pid != own)
        .filter(|pid| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == wanted)
        })
        .filter_map(|pid| i32::try_from(pid).ok().map(Pid::from_raw))
        .collect()
}
