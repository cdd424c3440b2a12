//! Errors of the blob store, with messages that say what to do.

use std::io;
use std::path::{Path, PathBuf};

use lathe_protocol::Digest;

#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    #[error(
        "no space left to store a blob in {}: the disk, the quota or the largest size of a file (`ulimit -f`) is used up; free some space and try again",
        .dir.display()
    )]
    NoSpace { dir: PathBuf },

    #[error(
        "no permission for {}: {source}; Lathe must be able to read and write its home folder",
        .path.display()
    )]
    Denied { path: PathBuf, source: io::Error },

    /// The bytes on disk are not the bytes that were stored.
    #[error(
        "blob {} is damaged ({why}): its content is lost; to store it again, remove {}",
        .digest.short(), .path.display()
    )]
    Damaged { digest: Digest, path: PathBuf, why: &'static str },

    /// A digest that is not a SHA-256; it was not turned into a path.
    #[error("{text:?} is not the name of a blob: 64 lower-case hex digits are needed")]
    BadDigest { text: String },

    #[error("{len} bytes are too many for one blob: 4 GiB is the most")]
    TooLarge { len: usize },

    #[error("could not {doing} {}: {source}", .path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
}

impl BlobError {
    pub(crate) fn from_io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Self::NoSpace { dir: path }
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::Denied { path, source }
            }
            _ => Self::Io { doing, path, source },
        }
    }
}
