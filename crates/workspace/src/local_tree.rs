//! The operations that only a tree of this machine supports: the capability that a workspace may lack.
//!
//! Search, the code graph, change tracking, git and watches read folders by themselves and need real paths. They are
//! given this value, which proves that such paths exist, and never look for them without the caller's knowledge.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{FileKind, Incoming, LocalFiles, WalkBounds, WalkEntry, WorkspaceError};

/// Checks whether a holder may open a file.
pub type MayOpen = Arc<dyn Fn(&Path) -> Result<(), WorkspaceError> + Send + Sync>;

/// A tree of this machine. Every path goes through the guard of its files.
#[derive(Clone)]
pub struct LocalTree {
    files: Arc<LocalFiles>,
    may_open: Option<MayOpen>,
}

impl LocalTree {
    pub(crate) fn of(files: Arc<LocalFiles>) -> Self {
        Self { files, may_open: None }
    }

    /// The tree of a folder that belongs to no session. No path leads into the closed folder, if one is given.
    pub fn at(root: PathBuf, closed: Option<&Path>) -> Self {
        Self::of(Arc::new(match closed {
            Some(closed) => LocalFiles::confined(root, closed),
            None => LocalFiles::new(root),
        }))
    }

    pub(crate) fn limited(self, may_open: MayOpen) -> Self {
        Self { may_open: Some(may_open), ..self }
    }

    /// The files of this tree, with their transactions noted in a folder; see [`LocalFiles::recovering`].
    pub(crate) fn recovering(&self, notes: PathBuf) -> Result<LocalFiles, WorkspaceError> {
        LocalFiles::clone(&self.files).recovering(notes)
    }

    /// The root under its given name.
    pub fn root(&self) -> &Path {
        self.files.root()
    }

    /// Tells whether the root exists.
    pub fn is_there(&self) -> bool {
        self.files.is_there()
    }

    /// The real path of the closed folder, for code that walks by itself.
    pub fn closed(&self) -> Option<&Path> {
        self.files.closed()
    }

    /// Opens a regular file for reading. Opening it by its path instead would follow a link that was put there
    /// meanwhile.
    pub fn open(&self, path: &Path) -> Result<File, WorkspaceError> {
        self.may_open.as_ref().map_or(Ok(()), |may_open| may_open(path))?;
        self.files.open(path)
    }

    /// Opens the folder at exactly this absolute path for listing: no link on the way is followed. A watch begins
    /// here.
    pub fn exact_folder(&self, path: &Path) -> Result<OwnedFd, WorkspaceError> {
        self.files.exact_folder(path)
    }

    /// The real path of an existing file or folder.
    pub fn real_place(&self, path: &Path) -> Result<PathBuf, WorkspaceError> {
        self.files.real_place(path)
    }

    /// The size of a file or folder, and the time of the last write to its content: seconds since 1970, and
    /// nanoseconds.
    pub fn size_and_time(&self, path: &Path) -> Result<(u64, (i64, i64)), WorkspaceError> {
        self.files.size_and_time(path)
    }

    /// The first entries below a folder, including names that begin with a dot. The content of a `.git` is left out.
    pub fn walk_hidden(
        &self,
        path: &Path,
        depth: usize,
        bounds: WalkBounds<'_>,
    ) -> Result<Vec<WalkEntry>, WorkspaceError> {
        self.files.walk_hidden(path, depth, bounds)
    }

    pub fn make_folder(&self, path: &Path) -> Result<(), WorkspaceError> {
        self.files.make_folder(path)
    }

    /// Renames a file or folder to a free name.
    pub fn rename(&self, from: &Path, to: &Path) -> Result<(), WorkspaceError> {
        self.files.rename(from, to)
    }

    /// Moves a file or folder out of the tree, to a path outside of it.
    pub fn move_out(&self, path: &Path, to: &Path) -> Result<FileKind, WorkspaceError> {
        self.files.move_out(path, to)
    }

    /// Moves a removed file or folder back, to a free path.
    pub fn move_in(&self, from: &Path, path: &Path) -> Result<(), WorkspaceError> {
        self.files.move_in(from, path)
    }

    /// Begins a new file that arrives in pieces.
    pub fn receive(&self, path: &Path) -> Result<Incoming, WorkspaceError> {
        self.files.receive(path)
    }
}
