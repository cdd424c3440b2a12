use std::path::PathBuf;

/// The errors of the graph, by what the caller does next.
#[derive(Debug, thiserror::Error)]
pub enum GraphError {
    #[error("{path} is not a folder that can be read: {source}")]
    Root { path: PathBuf, source: std::io::Error },
    #[error("the folder for graphs {path} cannot be used: {source}")]
    Folder { path: PathBuf, source: std::io::Error },
    /// Rebuilding did not help either: the disk is full, or the file system is read-only.
    #[error("the graph's database failed: {0}")]
    Database(#[from] rusqlite::Error),
    #[error("{0}")]
    Question(String),
}
