use std::path::PathBuf;

/// What went wrong, by what the caller does next.
#[derive(Debug, thiserror::Error)]
pub enum GraphError {
    #[error("{path} is not a folder that can be read: {source}")]
    Root { path: PathBuf, source: std::io::Error },
    #[error("the folder for graphs {path} cannot be used: {source}")]
    Folder { path: PathBuf, source: std::io::Error },
    /// Rebuilding did not help either: a full disk, a read-only file system.
    #[error("the graph's database failed: {0}")]
    Database(#[from] rusqlite::Error),
    #[error("{0}")]
    Question(String),
}
