//! The limits and the result of one line.

use std::path::PathBuf;
use std::time::Duration;

use lathe_workspace::Breach;

use crate::Spool;

/// The limits of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineLimits {
    /// The time after which the line's processes are ended.
    pub timeout: Duration,
    /// The maximum time without output; any output restarts it.
    pub silence: Option<Duration>,
    /// The number of bytes kept of each stream: the first half and the last half.
    pub keep: u64,
}

impl Default for LineLimits {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(120), silence: None, keep: 64 * 1024 * 1024 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// Live output, for a viewer. Best effort: a slow receiver misses chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveChunk {
    pub stream: Stream,
    /// The number of earlier bytes of the stream, by which a missed chunk is noticed.
    pub at: u64,
    pub bytes: Vec<u8>,
}

/// The ways in which a line ends. The codes are those of bash: 128 and the number for a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineExit {
    /// The line ended by itself, or ended bash with it: `exit 3`, `exec prog`, `set -e`.
    Code(i32),
    /// The line got bash killed by a signal that was not ours.
    ShellKilled {
        signal: i32,
    },
    TimedOut {
        code: i32,
    },
    /// The line printed nothing for too long.
    Silent {
        code: i32,
        limit: Duration,
    },
    Cancelled {
        code: i32,
    },
    /// The line, or background processes of the shell, passed a limit of the sandbox.
    Limited {
        code: i32,
        breach: Breach,
    },
}

impl LineExit {
    /// The exit code as a shell reports it.
    pub fn code(self) -> i32 {
        match self {
            Self::Code(code)
            | Self::TimedOut { code }
            | Self::Silent { code, .. }
            | Self::Cancelled { code }
            | Self::Limited { code, .. } => code,
            Self::ShellKilled { signal } => 128 + signal,
        }
    }
}

#[derive(Debug)]
pub struct LineEnd {
    pub exit: LineExit,
    pub stdout: Spool,
    pub stderr: Spool,
    /// The folder that bash is really in, or its nearest parent if it was deleted.
    pub cwd: PathBuf,
    /// True if bash was replaced by a new one, at the end of this line or before it. Options, aliases, traps, open
    /// descriptors and the numbers of jobs are lost; background processes stay alive.
    ///
    /// If the line ended bash (`exit`, `set -e`, a signal), exported variables, functions and umask are those of the
    /// end of the line before, and plain variables are lost. If the line was stopped, variables, functions and folder
    /// are as the line had made them; only if bash did not react they are those of the end of the line before, except
    /// the folder.
    pub respawned: bool,
    /// The number of living background processes, of this line and of earlier ones.
    pub jobs: usize,
    /// The limit of the sandbox that background processes passed before this line. All of them were ended, and bash
    /// was replaced.
    pub background: Option<Breach>,
    pub elapsed: Duration,
}
