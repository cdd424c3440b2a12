//! Errors of a journal, with texts that say what to do.

use std::io;
use std::path::{Path, PathBuf};

use lathe_blobs::BlobError;
use lathe_protocol::{Digest, Seq, SessionId};
use rusqlite::ErrorCode;

use crate::Holder;

#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error(
        "{id:?} cannot be the id of a session: 1 to 64 letters, digits, '.', '_' or '-' are needed, and the first must not be '.'"
    )]
    BadId { id: String },

    #[error("session {id} exists already in {}: open it, or take another id", .sessions.display())]
    Exists { id: SessionId, sessions: PathBuf },

    #[error("there is no session {id} in {}: `lathe sessions` lists those there are", .sessions.display())]
    NoSuchSession { id: SessionId, sessions: PathBuf },

    /// Another journal is open on the session. None if the holder's note could not be read.
    #[error(
        "session {id} is in use by {}: end it first, or only watch the session",
        Holder::describe(.holder.as_ref())
    )]
    Held { id: SessionId, holder: Option<Holder> },

    #[error(
        "{} is damaged: {why}; copy it and its -wal file away before anything else is tried, then take another session",
        .path.display()
    )]
    Damaged { path: PathBuf, why: String },

    #[error(
        "{} was written by a newer Lathe (format {found}, this one knows up to {known}): update Lathe to open it",
        .path.display()
    )]
    NewerFormat { path: PathBuf, found: i64, known: i64 },

    #[error(
        "no space left for {}: the disk, the quota or the largest size of a file (`ulimit -f`) is used up; acknowledged events are safe; free some space and continue",
        .path.display()
    )]
    NoSpace { path: PathBuf },

    #[error(
        "no permission for {}: {why}; Lathe must be able to read and write its home folder",
        .path.display()
    )]
    Denied { path: PathBuf, why: String },

    #[error("{} stayed locked by another process: try again", .path.display())]
    Busy { path: PathBuf },

    /// The event is there, but the blob with its body is missing.
    #[error(
        "the body of event {seq} is lost: blob {digest} is missing; restore the blobs folder from a copy"
    )]
    LostBody { seq: Seq, digest: Digest },

    #[error("a snapshot up to event {upto} was offered, but the journal ends at {last}: append first")]
    SnapshotAhead { upto: Seq, last: Seq },

    #[error("an event of kind {kind} cannot be written as JSON: {source}")]
    Encode { kind: String, source: serde_json::Error },

    #[error(transparent)]
    Blob(BlobError),

    #[error("could not {doing} {}: {source}", .path.display())]
    Io { doing: &'static str, path: PathBuf, source: Box<dyn std::error::Error + Send + Sync> },
}

impl From<BlobError> for JournalError {
    fn from(error: BlobError) -> Self {
        match error {
            BlobError::NoSpace { dir } => Self::NoSpace { path: dir },
            BlobError::Denied { path, source } => Self::Denied { path, why: source.to_string() },
            BlobError::Damaged { .. }
            | BlobError::BadDigest { .. }
            | BlobError::TooLarge { .. }
            | BlobError::Io { .. } => Self::Blob(error),
        }
    }
}

impl JournalError {
    pub(crate) fn from_io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Self::NoSpace { path }
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::Denied { path, why: source.to_string() }
            }
            _ => Self::Io { doing, path, source: source.into() },
        }
    }

    /// `os` is the system's error if SQLite failed and it is known: SQLite recognises a full disk, but not a full
    /// quota or a file system that became read-only.
    pub(crate) fn from_sqlite(
        doing: &'static str,
        path: &Path,
        source: rusqlite::Error,
        os: Option<io::Error>,
    ) -> Self {
        let owned = path.to_owned();
        let code = match &source {
            rusqlite::Error::SqliteFailure(failure, _) => failure.code,
            // A value of the wrong type in a column: we did not write this.
            rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::Utf8Error(..) => ErrorCode::DatabaseCorrupt,
            _ => ErrorCode::InternalMalfunction,
        };
        match (code, os) {
            (ErrorCode::DiskFull, _) => Self::NoSpace { path: owned },
            (ErrorCode::ReadOnly | ErrorCode::PermissionDenied, _) => {
                Self::Denied { path: owned, why: source.to_string() }
            }
            // Unknown is SQLITE_ERROR. Our statements are fixed, so only a foreign schema causes it.
            (ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt | ErrorCode::Unknown, _) => {
                Self::Damaged { path: owned, why: source.to_string() }
            }
            (ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked, _) => Self::Busy { path: owned },
            // The log could neither be made (which SQLite tries first) nor found.
            (ErrorCode::CannotOpen, Some(os)) if os.kind() == io::ErrorKind::NotFound && path.exists() => {
                Self::Denied { path: owned, why: "the files next to it cannot be made".to_owned() }
            }
            (ErrorCode::CannotOpen | ErrorCode::SystemIoFailure, Some(os)) => Self::from_io(doing, path, os),
            _ => Self::Io { doing, path: owned, source: source.into() },
        }
    }
}
