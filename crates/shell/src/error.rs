use std::path::PathBuf;

use lathe_workspace::WorkspaceError;

/// The reasons why a line could not be run. After any of them the next line may be tried: the shell repairs itself.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    #[error("the line holds a NUL byte, which bash cannot take")]
    NulInLine,
    #[error("the line is longer than {limit} bytes")]
    LineTooLong { limit: usize },
    #[error("{} is on a file system mounted noexec; set the data folder to one that is not", .0.display())]
    NoExec(PathBuf),
    #[error("cannot place the shell supervisor at {}: {source}", .path.display())]
    Place { path: PathBuf, source: std::io::Error },
    #[error("cannot start the shell supervisor: {0}")]
    Supervisor(#[from] WorkspaceError),
    #[error("the shell supervisor ended unexpectedly{0}; the shell was lost with it")]
    SupervisorGone(String),
    #[error("the shell supervisor does not answer; the shell was ended with it")]
    SupervisorStuck,
    #[error("cannot make a folder for the agent commands: {0}")]
    Session(std::io::Error),
    #[error("the shell cannot be started: {0}")]
    Bash(String),
}
