//! The seam for reading and changing files, wherever they are stored.
//!
//! Writing goes through [`Files::apply`] only: a list of operations, each with the content that it expects to find,
//! done all or none. So a tool that read a file can never overwrite what others wrote meanwhile.

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
pub struct FileInfo {
    pub kind: FileKind,
    pub bytes: u64,
    pub mode: u32,
}

/// One entry of a walk, relative to the folder of the walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalkEntry {
    pub path: PathBuf,
    pub kind: FileKind,
}

/// One name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderEntry {
    pub name: OsString,
    /// A link has the kind and size of its target; one that leads nowhere, or outside, is special.
    pub kind: FileKind,
    pub bytes: u64,
}

/// The content that an operation expects to find before it acts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    /// No file may be there.
    Absent,
    /// Exactly this content.
    Hash(Digest),
    /// Exactly these bytes, for a caller that has them: comparing takes a tenth of the time that hashing takes. If
    /// their hash must also have a certain value, that is checked while the new content is being written to the disk.
    Held(Content, Option<Digest>),
}

/// The whole content of a file. Shared, because otherwise a change of a large file would copy it for each reader.
pub type Content = Arc<Vec<u8>>;

#[derive(Debug, Clone)]
pub enum FileOp {
    /// The whole new content. Missing parent folders are made; the mode of an existing file is kept.
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

/// The result of one operation: content before and after, for the journal's `Change`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    pub path: PathBuf,
    pub before: Option<Content>,
    pub after: Option<Content>,
    pub mode: u32,
}

/// The files of a workspace. A path is absolute or begins at the root; none leads out of the workspace, by any link.
pub trait Files: Send + Sync {
    fn stat<'a>(&'a self, path: &'a Path) -> Boxed<'a, Result<FileInfo, WorkspaceError>>;
    /// Bytes of a file, or of a part of it.
    fn read<'a>(
        &'a self,
        path: &'a Path,
        range: Option<Range<u64>>,
    ) -> Boxed<'a, Result<Vec<u8>, WorkspaceError>>;
    /// Entries below a folder down to `depth`, without hidden names, sorted.
    fn walk<'a>(&'a self, path: &'a Path, depth: usize) -> Boxed<'a, Result<Vec<WalkEntry>, WorkspaceError>>;
    /// All names in one folder, including hidden ones, sorted.
    fn list<'a>(&'a self, path: &'a Path) -> Boxed<'a, Result<Vec<FolderEntry>, WorkspaceError>>;
    /// Applies all operations, or none. Names for which [`is_protected`](crate::is_protected) is true are refused.
    fn apply<'a>(&'a self, ops: Vec<FileOp>) -> Boxed<'a, Result<Vec<Applied>, WorkspaceError>> {
        self.apply_with_umask(ops, None)
    }
    /// Like [`apply`](Self::apply), with the umask of a caller for new files and folders. None: the umask of this
    /// process.
    fn apply_with_umask<'a>(
        &'a self,
        ops: Vec<FileOp>,
        umask: Option<u32>,
    ) -> Boxed<'a, Result<Vec<Applied>, WorkspaceError>>;
    /// The path with all links followed; refused if it is outside.
    fn real<'a>(&'a self, path: &'a Path) -> Boxed<'a, Result<PathBuf, WorkspaceError>>;
    /// The path that a write ends at: like [`real`](Self::real), and also if nothing exists there yet.
    fn target<'a>(&'a self, path: &'a Path) -> Boxed<'a, Result<PathBuf, WorkspaceError>>;
}
