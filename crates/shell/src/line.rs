//! What one line is given and what it gives back.

use std::path::PathBuf;
use std::time::Duration;

use crate::Spool;

/// What a line may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineLimits {
    /// After it the line's processes are ended.
    pub timeout: Duration,
    /// The same if it prints nothing for so long; any output starts the time anew.
    pub silence: Option<Duration>,
    /// Bytes kept of each stream: the first half and the last half.
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

/// Output as it comes, for somebody who watches. Best effort: a slow receiver misses chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveChunk {
    pub stream: Stream,
    /// Bytes of the stream that came before it, by which one that was missed is noticed.
    pub at: u64,
    pub bytes: Vec<u8>,
}

/// How a line ended. The codes are those of bash: 128 and the number for a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineExit {
    /// By itself. Also when it took bash with it: `exit 3`, `exec prog`, `set -e`.
    Code(i32),
    /// It got bash itself killed by a signal that was not ours.
    ShellKilled {
        signal: i32,
    },
    TimedOut {
        code: i32,
    },
    /// It printed nothing for too long.
    Silent {
        code: i32,
        limit: Duration,
    },
    Cancelled {
        code: i32,
    },
}

impl LineExit {
    /// The exit code as a shell would tell it.
    pub fn code(self) -> i32 {
        match self {
            Self::Code(code)
            | Self::TimedOut { code }
            | Self::Silent { code, .. }
            | Self::Cancelled { code } => code,
            Self::ShellKilled { signal } => 128 + signal,
        }
    }
}

#[derive(Debug)]
pub struct LineEnd {
    pub exit: LineExit,
    pub stdout: Spool,
    pub stderr: Spool,
    /// The folder bash is really in, or its nearest parent if it was deleted.
    pub cwd: PathBuf,
    /// Bash was replaced by a new one, at the end of this line or before it. Options, aliases, traps, open
    /// descriptors and the numbers of jobs are lost; background processes live on.
    ///
    /// If the line ended bash (`exit`, `set -e`, a signal), exported variables, functions and umask are those
    /// of the end of the line before, and plain variables are lost. If it was stopped, variables, functions
    /// and folder are as the line had made them; only where bash did not react they are those of the end of
    /// the line before, except the folder.
    pub respawned: bool,
    /// Background processes alive, of this line and of earlier ones.
    pub jobs: usize,
    pub elapsed: Duration,
}
