//! Errors of tracking a tree, with texts that say what to do.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use lathe_blobs::BlobError;

#[derive(Debug, thiserror::Error)]
pub enum ChangesError {
    /// The tracked folder cannot be opened: nothing in it can be known.
    #[error("cannot open the workspace {}: {source}", .root.display())]
    Root { root: PathBuf, source: io::Error },

    /// Copies of what a line may change cannot be stored.
    #[error(
        "cannot keep copies of files in {}: {source}; changes of shell lines cannot be undone",
        .scratch.display()
    )]
    Scratch { scratch: PathBuf, source: io::Error },

    #[error("cannot {doing} {}: {source}", .path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },

    #[error(transparent)]
    Blob(#[from] BlobError),
}

impl ChangesError {
    /// Tells whether the disk or the quota is full.
    pub fn is_full(&self) -> bool {
        let full = |error: &io::Error| {
            matches!(
                error.kind(),
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
            )
        };
        match self {
            Self::Root { source, .. } | Self::Scratch { source, .. } | Self::Io { source, .. } => {
                full(source)
            }
            Self::Blob(error) => matches!(error, BlobError::NoSpace { .. }),
        }
    }

    pub(crate) fn io(doing: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        Self::Io { doing, path: path.to_owned(), source: source.into() }
    }
}

/// The reasons why a change cannot be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum NotUndoableReason {
    /// Larger than the limit for one file.
    TooLarge,
    /// The limit for all copies together is reached.
    OverTotal,
    /// The limit for the number of entries is reached.
    TooMany,
    /// We lack the permission to read it.
    Unreadable,
    /// A pipe, socket or device.
    Special,
    /// A folder whose content can be made again, by its own mark or by its name.
    Cache,
    /// Git's own data.
    Git,
    /// Lathe's own data, or excluded by the caller.
    Excluded,
    /// Git had the content, and no longer has it.
    ObjectGone,
    /// Git's object for the file is not what the file held.
    ObjectDiffers,
    /// Our copy can no longer be read.
    CopyGone,
    /// The file has names outside of the tracked tree (hard links), which are not restored with it.
    OtherNames,
    /// Only root can restore the owner or the capabilities that it had.
    Privilege,
}

impl NotUndoableReason {
    const ALL: [Self; 13] = [
        Self::TooLarge,
        Self::OverTotal,
        Self::TooMany,
        Self::Unreadable,
        Self::Special,
        Self::Cache,
        Self::Git,
        Self::Excluded,
        Self::ObjectGone,
        Self::ObjectDiffers,
        Self::CopyGone,
        Self::OtherNames,
        Self::Privilege,
    ];

    pub(crate) fn of(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|why| *why as u8 == byte)
    }
}

impl fmt::Display for NotUndoableReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLarge => "larger than the limit for one file",
            Self::OverTotal => "the limit for all copies together is reached",
            Self::TooMany => "the limit for the number of files is reached",
            Self::Unreadable => "cannot be read",
            Self::Special => "a pipe, socket or device",
            Self::Cache => "a folder of caches or installed packages",
            Self::Git => "git's own data is never touched",
            Self::Excluded => "kept out of tracking",
            Self::ObjectGone => "git no longer has its content",
            Self::ObjectDiffers => "git's object is not what the file held",
            Self::CopyGone => "the copy of its content cannot be read",
            Self::OtherNames => {
                "it has another name (hard link) outside of the workspace, which does not go back with it"
            }
            Self::Privilege => "only root can give back the owner, group or capabilities that it had",
        })
    }
}
