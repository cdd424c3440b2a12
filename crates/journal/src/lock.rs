//! The writer lock of a session, and the identity of its holder.
//!
//! The lock is an flock on `<id>.lock`: the kernel releases it when its holder dies, in any way. The content of the
//! file is only a note for the error message of another process. The file is never removed, because a lock on a
//! removed file excludes no process.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use lathe_protocol::{SessionId, Timestamp};
use nix::sys::signal::kill;
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::JournalError;
use crate::files::SessionPaths;

/// The process that writes a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub pid: u32,
    pub since: Timestamp,
    /// The command that it runs, for example `lathe run …`. Never its arguments: they may contain a key.
    pub what: String,
}

impl Holder {
    fn myself() -> Self {
        Self {
            pid: std::process::id(),
            since: Timestamp::now(),
            what: what_runs(std::env::args_os().map(|arg| arg.to_string_lossy().into_owned())),
        }
    }

    fn read(path: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    fn is_alive(&self) -> bool {
        let Ok(pid) = i32::try_from(self.pid) else {
            return false;
        };
        !matches!(kill(Pid::from_raw(pid), None), Err(nix::Error::ESRCH))
    }

    pub(crate) fn describe(holder: Option<&Self>) -> String {
        holder.map_or_else(|| "another process".to_owned(), ToString::to_string)
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} ({}) since {:.0}", self.pid, self.what, self.since)
    }
}

/// Program and subcommand, the rest as an ellipsis.
fn what_runs(args: impl Iterator<Item = String>) -> String {
    let mut args = args.peekable();
    let program = args.next().unwrap_or_default();
    let mut what: String = Path::new(&program)
        .file_name()
        .map_or("lathe".into(), |name| name.to_string_lossy())
        .chars()
        .take(40)
        .collect();
    let is_subcommand = |arg: &String| {
        arg.len() <= 16 && arg.starts_with(|c: char| c.is_ascii_lowercase()) && arg.bytes().all(is_word)
    };
    if let Some(subcommand) = args.next_if(is_subcommand) {
        what = format!("{what} {subcommand}");
    }
    if args.peek().is_some() {
        what.push_str(" …");
    }
    what
}

fn is_word(b: u8) -> bool {
    b.is_ascii_lowercase() || b == b'-'
}

/// The right to write. It ends when this is dropped or the process dies.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

/// The time to wait for a lock whose holder is dead: a process that it was about to start may have the file open for
/// a moment longer.
const DYING: Duration = Duration::from_secs(2);

impl Lock {
    pub fn take(files: &SessionPaths) -> Result<Self, JournalError> {
        let failed = |error| JournalError::from_io("lock", &files.lock, error);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&files.lock)
            .map_err(failed)?;
        let began = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            let holder = holder_of(&files.lock);
            if holder.as_ref().is_some_and(Holder::is_alive) || began.elapsed() >= DYING {
                return Err(JournalError::Held { id: files.id.clone(), holder });
            }
        }
        // The note is a courtesy: the lock is held even if the disk is too full for it.
        let note = serde_json::to_vec(&Holder::myself()).unwrap_or_default();
        let _ = file.set_len(0).and_then(|()| file.write_all(&note));
        Ok(Self { file })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = self.file.set_len(0);
    }
}

/// Tells whether a live process notes that it writes this session.
pub fn is_held(sessions: &Path, id: &SessionId) -> bool {
    SessionPaths::of(sessions, id)
        .is_ok_and(|files| Holder::read(&files.lock).is_some_and(|holder| holder.is_alive()))
}

/// Reads the holder's note. Between its lock and its note the file is empty or names a dead process, so this tries
/// for a while; in the end it returns the note as it is (its process may be in another container).
fn holder_of(lock: &Path) -> Option<Holder> {
    for _ in 0..20 {
        if let Some(holder) = Holder::read(lock).filter(Holder::is_alive) {
            return Some(holder);
        }
        thread::sleep(Duration::from_millis(5));
    }
    Holder::read(lock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_names_the_subcommand_and_hides_arguments() {
        let table = [
            (&["/usr/bin/lathe"][..], "lathe"),
            (&["lathe", "run", "fix it"], "lathe run …"),
            (&["lathe", "resume"], "lathe resume"),
            (&["lathe", "--api-key", "sk-1"], "lathe …"),
            (&["lathe", "sk-ant-0123456789abcdef"], "lathe …"),
            (&[], "lathe"),
        ];
        for (args, expected) in table {
            assert_eq!(what_runs(args.iter().map(|arg| (*arg).to_owned())), expected);
        }
    }

    #[test]
    fn a_holder_is_described_by_process_program_and_time() {
        let holder = Holder {
            pid: 1234,
            since: "2026-11-15T08:00:00.5Z".parse().unwrap(),
            what: "lathe run …".into(),
        };
        assert_eq!(holder.to_string(), "process 1234 (lathe run …) since 2026-11-15T08:00:00Z");
    }
}
