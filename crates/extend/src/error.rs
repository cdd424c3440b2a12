use std::path::PathBuf;

use lathe_workspace::WorkspaceError;

/// The reasons why a program's tools are unavailable.
#[derive(Debug, thiserror::Error)]
pub enum ExtendError {
    #[error("the command `{command}` cannot be split into words: {reason}")]
    Words { command: String, reason: &'static str },
    #[error("the tool discovery command `{command}` failed: {reason}")]
    Discovery { command: String, reason: String },
    #[error("it is not run: {0}")]
    Changed(String),
    #[error("processes of this workspace have no path for {}", .0.display())]
    NoPath(PathBuf),
    #[error(
        "`{0}` may be a file of the project, which can only be seen in a folder of this machine: write `./{0}`"
    )]
    Unclear(String),
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
}
