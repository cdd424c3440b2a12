use std::path::PathBuf;

use crate::Breach;

/// Errors of file and process operations.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    #[error("{} does not exist", .0.display())]
    NotFound(PathBuf),
    #[error("{} exists already", .0.display())]
    Exists(PathBuf),
    #[error("{} is a folder", .0.display())]
    IsDirectory(PathBuf),
    #[error("{} is not in the workspace", .0.display())]
    Outside(PathBuf),
    #[error("{} is never written by tools: it is run or obeyed by other programs", .0.display())]
    Protected(PathBuf),
    #[error("{} is named by .latheignore: no tool shows or changes it", .0.display())]
    Ignored(PathBuf),
    #[error("{} is neither a file nor a folder", .0.display())]
    Special(PathBuf),
    #[error("no permission for {}", .0.display())]
    Denied(PathBuf),
    #[error("{} was changed meanwhile", .0.display())]
    Stale(PathBuf),
    #[error("no space left on the disk for {}", .0.display())]
    NoSpace(PathBuf),
    #[error("the sandbox cannot be set up: {0}")]
    Jail(String),
    #[error("stopped by the sandbox: {0}")]
    Limit(Breach),
    #[error("cannot start {program}: {source}")]
    Spawn { program: String, source: std::io::Error },
    #[error("{}: {source}", .path.display())]
    Io { path: PathBuf, source: std::io::Error },
}

impl WorkspaceError {
    /// Adds the path to an I/O error, and selects the variant that a caller acts on.
    pub fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        use std::io::ErrorKind as K;
        let path = path.into();
        match source.kind() {
            K::NotFound => Self::NotFound(path),
            K::AlreadyExists => Self::Exists(path),
            K::IsADirectory => Self::IsDirectory(path),
            K::PermissionDenied | K::ReadOnlyFilesystem => Self::Denied(path),
            K::StorageFull | K::QuotaExceeded => Self::NoSpace(path),
            _ => Self::Io { path, source },
        }
    }
}
