//! What only a tree of this machine can do: the capability that a workspace may lack.
//!
//! Search, the code graph, change tracking, git and watches read folders by themselves and need real paths. They are given
//! this value, which says that there are such paths, and never ask for it behind a caller's back.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{Entry, FileKind, Incoming, LocalFiles, WalkBounds, WorkspaceError};

/// Says whether a holder may open a file.
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

    /// The tree of a folder that belongs to no session. No path leads into the closed folder, if one is named.
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

    /// The root as it was named.
    pub fn root(&self) -> &Path {
        self.files.root()
    }

    /// Whether the root is there.
    pub fn is_there(&self) -> bool {
        self.files.is_there()
    }

    /// The real path of the folder that no path leads into, for what walks by itself.
    pub fn closed(&self) -> Option<&Path> {
        self.files.closed()
    }

    /// A regular file, open for reading. Opening it by its path instead would follow a link put there meanwhile.
    pub fn open(&self, path: &Path) -> Result<File, WorkspaceError> {
        self.may_open.as_ref().map_or(Ok(()), |may_open| may_open(path))?;
        self.files.open(path)
    }

    /// The folder of exactly this absolute path, open for listing: no link on the way is followed. A watch begins here.
    pub fn exact_folder(&self, path: &Path) -> Result<OwnedFd, WorkspaceError> {
        self.files.exact_folder(path)
    }

    /// The real place of something that is there.
    pub fn real_place(&self, path: &Path) -> Result<PathBuf, WorkspaceError> {
        self.files.real_place(path)
    }

    /// The size of a file or folder, and the time at which its content was last written: seconds since 1970, and nanoseconds.
    pub fn size_and_time(&self, path: &Path) -> Result<(u64, (i64, i64)), WorkspaceError> {
        self.files.size_and_time(path)
    }

    /// The first names below a folder, those that begin with a dot too. What is inside of a `.git` is left out.
    pub fn walk_hidden(
        &self,
        path: &Path,
        depth: usize,
        bounds: WalkBounds<'_>,
    ) -> Result<Vec<Entry>, WorkspaceError> {
        self.files.walk_hidden(path, depth, bounds)
    }

    pub fn make_folder(&self, path: &Path) -> Result<(), WorkspaceError> {
        self.files.make_folder(path)
    }

    /// Gives something another name, where nothing has that name.
    pub fn rename(&self, from: &Path, to: &Path) -> Result<(), WorkspaceError> {
        self.files.rename(from, to)
    }

    /// Moves something out of the tree, to a path that the tree does not have.
    pub fn take_away(&self, path: &Path, to: &Path) -> Result<FileKind, WorkspaceError> {
        self.files.take_away(path, to)
    }

    /// Brings back what was taken away, to a path where nothing is.
    pub fn bring_back(&self, from: &Path, path: &Path) -> Result<(), WorkspaceError> {
        self.files.bring_back(from, path)
    }

    /// A new file that comes in pieces.
    pub fn receive(&self, path: &Path) -> Result<Incoming, WorkspaceError> {
        self.files.receive(path)
    }
}
