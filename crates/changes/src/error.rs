//! What can go wrong with the tree, in words that say what to do.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use lathe_blobs::BlobError;

#[derive(Debug, thiserror::Error)]
pub enum ChangesError {
    /// The folder that is tracked cannot be opened: nothing in it can be known.
    #[error("cannot open the workspace {}: {source}", .root.display())]
    Root { root: PathBuf, source: io::Error },

    /// There is no place for copies of what a line may change.
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
    /// Whether the disk or the quota is full.
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

/// Why something cannot be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Why {
    /// Larger than one file may be.
    TooLarge,
    /// All the copies together are as large as they may be.
    OverTotal,
    /// More entries than are looked at.
    TooMany,
    /// We may not read it.
    Unreadable,
    /// A pipe, socket or device.
    Special,
    /// A folder of things that can be made again: it says so itself, or by its name.
    Cache,
    /// Git's own.
    Git,
    /// Lathe's own, or kept out by the caller.
    Excluded,
    /// Git had the content, and has it no more.
    ObjectGone,
    /// What git has under the file's name is not what the file held.
    ObjectDiffers,
    /// Our copy cannot be read any more.
    CopyGone,
    /// It has names outside of what is tracked (hard links), which do not go back with it.
    OtherNames,
    /// Only root can give back the owner or the capabilities that it had.
    Privilege,
}

impl Why {
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

impl fmt::Display for Why {
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
