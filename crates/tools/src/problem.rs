//! Why a call failed, as data: each toolset has its own words for it.

use std::path::{Path, PathBuf};

use lathe_edit::Nearest;
use lathe_protocol::ToolErrorKind;
use lathe_workspace::WorkspaceError;

#[derive(Debug)]
pub(crate) enum Problem {
    /// The arguments do not fit; the text says where.
    Arguments(String),
    NotFound(PathBuf),
    Exists(PathBuf),
    /// It exists, and the model has not looked at it.
    NotSeen(PathBuf),
    IsFolder(PathBuf),
    RangeOnFolder,
    Range {
        start: i64,
        end: Option<i64>,
        lines: usize,
    },
    Binary(PathBuf),
    TooLarge {
        path: PathBuf,
        bytes: u64,
    },
    NoMatch {
        path: PathBuf,
        old: String,
        nearest: Option<Nearest>,
    },
    Ambiguous {
        path: PathBuf,
        old: String,
        lines: Vec<usize>,
    },
    EmptyOld,
    NoChange(PathBuf),
    Line {
        line: usize,
        lines: usize,
    },
    /// The file is no longer what the model saw.
    Stale(PathBuf),
    Denied(PathBuf),
    NoSpace(PathBuf),
    Read {
        path: PathBuf,
        reason: String,
    },
    Write {
        path: PathBuf,
        reason: String,
    },
    Thinking(&'static str),
    Shell(String),
}

/// What was being done when the workspace said no.
#[derive(Clone, Copy)]
pub(crate) enum Doing {
    Reading,
    Writing,
}

impl Problem {
    pub(crate) fn from_workspace(error: WorkspaceError, path: &Path, doing: Doing) -> Self {
        let reason = error.to_string();
        match error {
            WorkspaceError::NotFound(path) => Self::NotFound(path),
            WorkspaceError::Exists(path) => Self::Exists(path),
            WorkspaceError::IsDirectory(path) => Self::IsFolder(path),
            WorkspaceError::Denied(path) => Self::Denied(path),
            WorkspaceError::Stale(path) => Self::Stale(path),
            WorkspaceError::NoSpace(path) => Self::NoSpace(path),
            WorkspaceError::Special(_) | WorkspaceError::Spawn { .. } | WorkspaceError::Io { .. } => {
                match doing {
                    Doing::Reading => Self::Read {
                        path: path.to_owned(),
                        reason,
                    },
                    Doing::Writing => Self::Write {
                        path: path.to_owned(),
                        reason,
                    },
                }
            }
        }
    }

    pub(crate) fn kind(&self) -> ToolErrorKind {
        use ToolErrorKind as K;
        match self {
            Self::Arguments(_)
            | Self::RangeOnFolder
            | Self::Range { .. }
            | Self::EmptyOld
            | Self::Line { .. }
            | Self::Thinking(_) => K::InvalidToolParams,
            Self::NotFound(_) => K::FileNotFound,
            Self::Exists(_) => K::AttemptToCreateExistingFile,
            Self::NotSeen(_) | Self::Stale(_) => K::FileChanged,
            Self::IsFolder(_) => K::TargetIsDirectory,
            Self::Binary(_) | Self::TooLarge { .. } | Self::Read { .. } => K::ReadContentFailure,
            Self::NoMatch { .. } => K::EditNoOccurrenceFound,
            Self::Ambiguous { .. } => K::EditExpectedOccurrenceMismatch,
            Self::NoChange(_) => K::EditNoChange,
            Self::Denied(_) => K::PermissionDenied,
            Self::NoSpace(_) => K::NoSpaceLeft,
            Self::Write { .. } => K::FileWriteFailure,
            Self::Shell(_) => K::ShellExecuteError,
        }
    }

    /// In Lathe's own words: what happened, and what to do.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Arguments(reason) => format!("The arguments are wrong: {reason}."),
            Self::NotFound(path) => format!("{} does not exist.", path.display()),
            Self::Exists(path) => format!("{} exists already.", path.display()),
            Self::NotSeen(path) => {
                format!(
                    "{} exists and you have not viewed it. View it first, or use `edit`.",
                    path.display()
                )
            }
            Self::IsFolder(path) => format!("{} is a folder; only `view` works on folders.", path.display()),
            Self::RangeOnFolder => "A folder has no lines: leave `offset` and `limit` out.".to_owned(),
            Self::Range { start, lines, .. } => {
                format!("Line {start} is not in the file, which has {lines} lines.")
            }
            Self::Binary(path) => format!("{} is a binary file.", path.display()),
            Self::TooLarge { path, bytes } => {
                format!(
                    "{} has {bytes} bytes; look at a part of it with bash (`sed -n`, `head -c`).",
                    path.display()
                )
            }
            Self::NoMatch { path, nearest, .. } => match nearest {
                Some(near) => format!(
                    "old_str was not found in {}. The nearest place is at line {}:\n{}",
                    path.display(),
                    near.line,
                    near.text
                ),
                None => format!(
                    "old_str was not found in {}. View the file and copy the text exactly.",
                    path.display()
                ),
            },
            Self::Ambiguous { path, lines, .. } => format!(
                "old_str is not unique in {}: it stands at lines {}. Add lines around it, or set replace_all.",
                path.display(),
                lines.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
            ),
            Self::EmptyOld => "old_str is empty. To add text, give insert_line instead.".to_owned(),
            Self::NoChange(path) => format!("The edit would leave {} as it is.", path.display()),
            Self::Line { line, lines } => format!("insert_line {line} is outside of 0 to {lines}."),
            Self::Stale(path) => {
                format!(
                    "{} was changed since you viewed it. View it again, then edit.",
                    path.display()
                )
            }
            Self::Denied(path) => format!(
                "No permission for {} (or it is on a read-only file system).",
                path.display()
            ),
            Self::NoSpace(path) => format!("No space left on the disk for {}.", path.display()),
            Self::Read { path, reason } => format!("Cannot read {}: {reason}.", path.display()),
            Self::Write { path, reason } => format!("Cannot write {}: {reason}.", path.display()),
            Self::Thinking(reason) => format!("{reason}."),
            Self::Shell(reason) => reason.clone(),
        }
    }
}
