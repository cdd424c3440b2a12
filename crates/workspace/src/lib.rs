//! The workspace: files and processes of the place where the agent works.
//!
//! No tool knows where it runs. `Files` and `Processes` are the two seams; local
//! is the first implementation, a jail and containers join with their parts.

mod capture;
mod error;
mod files;
mod git;
mod guard;
mod hardened;
mod local_files;
mod local_process;
mod pin;
mod process;
mod protected;

pub use capture::{CaptureEnd, CaptureLimits, Captured, capture};
pub use error::WorkspaceError;
pub use files::{Applied, Content, Entry, Expect, FileKind, FileOp, Files, Named, Stat};
pub use git::{Git, GitError};
pub use hardened::{
    GitCall, GitConfig, LIST_FILTERS, absolute_path, find_program, git_output, git_plain, git_would_wait,
};
pub use local_files::{Incoming, LocalFiles};
pub use local_process::LocalProcesses;
pub use pin::Pin;
pub use process::{Boxed, Child, Ended, Pipes, Processes, Spawn};
pub use protected::is_protected;
