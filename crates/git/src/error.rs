use std::path::PathBuf;

use lathe_workspace::WorkspaceError;

#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// The folder is in no work tree, or no git is installed.
    #[error("not a git work tree")]
    NoRepository,
    /// The repository has a part that is not followed.
    #[error("the git repository is not used: {} {why}", file.display())]
    Refused { file: PathBuf, why: String },
    #[error("the git configuration cannot be used: {}, line {line}: {why}", file.display())]
    Config { file: PathBuf, line: usize, why: String },
    #[error("the program git was not found: install it, or add its folder to PATH")]
    NoProgram,
    #[error("git {what}: {words}")]
    Failed { what: String, words: String },
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
}

impl GitError {
    pub(crate) fn refused(file: impl Into<PathBuf>, why: impl Into<String>) -> Self {
        Self::Refused { file: file.into(), why: why.into() }
    }
}
