use std::path::PathBuf;

/// The reasons why a search could not run.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    #[error("the pattern is not a regular expression: {0}")]
    Pattern(String),
    #[error("the pattern is too large: {0}")]
    LargePattern(String),
    #[error("the glob {glob} is wrong: {reason}")]
    Glob { glob: String, reason: String },
    #[error("there is no file type {0}")]
    Type(String),
    #[error("{} does not exist", .0.display())]
    NotFound(PathBuf),
    #[error("{} is left out by an ignore file", .0.display())]
    Ignored(PathBuf),
    #[error("{}: {reason}", .path.display())]
    Walk { path: PathBuf, reason: String },
    #[error("cancelled")]
    Cancelled,
}
