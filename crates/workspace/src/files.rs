//! Files: how file content is read and changed, wherever it lies.
//!
//! Writing goes through [`Files::apply`] only: a list of operations, each with
//! the content it expects to find, done all or none. A tool that read a file can
//! therefore never overwrite what somebody else wrote meanwhile.

use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lathe_protocol::Digest;

use crate::{Boxed, WorkspaceError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    File,
    Directory,
    /// A FIFO, socket or device: never opened by a file tool.
    Special,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    pub kind: FileKind,
    pub bytes: u64,
    pub mode: u32,
}

/// One entry of a walk, relative to the folder that was walked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub path: PathBuf,
    pub kind: FileKind,
}

/// One name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub name: OsString,
    /// A link is what it leads to; one that leads nowhere, or outside, is special.
    pub kind: FileKind,
    pub bytes: u64,
}

/// What an operation expects to find before it acts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    /// No file may be there.
    Absent,
    /// Exactly this content.
    Hash(Digest),
    /// Exactly these bytes, for whoever holds them: comparing takes a tenth of the time that hashing takes. If their hash
    /// must be a certain one too, that is found out while the new content is on its way to the disk.
    Held(Content, Option<Digest>),
}

/// The whole content of a file. Shared, because a change of a large file would else copy it for each who looks at it.
pub type Content = Arc<Vec<u8>>;

#[derive(Debug, Clone)]
pub enum FileOp {
    /// The whole new content. Parent folders are made; the mode of an existing
    /// file is kept.
    Write {
        path: PathBuf,
        expect: Expect,
        content: Content,
    },
    Remove {
        path: PathBuf,
        expect: Expect,
    },
}

/// What one operation did: content before and after, for the journal's `Change`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    pub path: PathBuf,
    pub before: Option<Content>,
    pub after: Option<Content>,
    pub mode: u32,
}

/// Where files are. A path is absolute or begins at the root; none leads out of the workspace, by whatever links.
pub trait Files: Send + Sync {
    fn stat<'a>(&'a self, path: &'a Path) -> Boxed<'a, Result<Stat, WorkspaceError>>;
    /// Bytes of a file, or of a part of it.
    fn read<'a>(
        &'a self,
        path: &'a Path,
        range: Option<Range<u64>>,
    ) -> Boxed<'a, Result<Vec<u8>, WorkspaceError>>;
    /// Entries below a folder down to `depth`, hidden names left out, sorted.
    fn walk<'a>(&'a self, path: &'a Path, depth: usize) -> Boxed<'a, Result<Vec<Entry>, WorkspaceError>>;
    /// All names in one folder, hidden ones too, sorted.
    fn list<'a>(&'a self, path: &'a Path) -> Boxed<'a, Result<Vec<Named>, WorkspaceError>>;
    /// All operations, or none. Names that [`is_protected`](crate::is_protected) knows are refused.
    fn apply<'a>(&'a self, ops: Vec<FileOp>) -> Boxed<'a, Result<Vec<Applied>, WorkspaceError>> {
        self.apply_masked(ops, None)
    }
    /// The same with new files and folders made under the umask of a caller; none is that of this process.
    fn apply_masked<'a>(
        &'a self,
        ops: Vec<FileOp>,
        umask: Option<u32>,
    ) -> Boxed<'a, Result<Vec<Applied>, WorkspaceError>>;
    /// Where a path leads when all links are followed; refused if that is outside.
    fn real<'a>(&'a self, path: &'a Path) -> Boxed<'a, Result<PathBuf, WorkspaceError>>;
    /// The place that writing a path ends at: as [`real`](Self::real), also where nothing is yet.
    fn target<'a>(&'a self, path: &'a Path) -> Boxed<'a, Result<PathBuf, WorkspaceError>>;
}
