//! The closed folder, which no path may lead into under any name: Lathe's own.
//!
//! It is recognised by its real path and by device and inode, so that a link, a second spelling and a second mount of
//! it are refused alike. The files with keys, settings and rules are recognised by device and inode too, because a
//! hard link gives them a name anywhere. Deeper files are not: the quarantine holds second names of files of the
//! workspace.

use std::fs::{self, DirEntry};
use std::os::unix::fs::DirEntryExt as _;
use std::path::{Path, PathBuf};

use nix::fcntl::AT_FDCWD;

use super::beneath::FileMeta;

/// Folders in it whose files are recognised by device and inode.
const OWN: [&str; 4] = ["", "policy", "server", "trust"];

#[derive(Debug)]
pub(super) struct Closed {
    pub(super) real: PathBuf,
    found: Option<FileMeta>,
    /// True if it is inside of a root or around one: then every path of the roots is resolved name by name.
    pub(super) is_near: bool,
}

impl Closed {
    pub(super) fn new<'a>(folder: &Path, mut roots: impl Iterator<Item = &'a Path>) -> Self {
        let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let found = FileMeta::at(AT_FDCWD, &real).ok().filter(FileMeta::is_folder);
        let mut closed = Self { real, found, is_near: false };
        closed.is_near = roots.any(|root| closed.real.starts_with(root) || closed.holds(root));
        closed
    }

    pub(super) fn is(&self, found: &FileMeta) -> bool {
        self.found.is_some_and(|own| own.is_same(found))
    }

    /// Tells whether a real path is the folder or lies in it.
    pub(super) fn holds(&self, real: &Path) -> bool {
        let is_own = |folder: &Path| FileMeta::at(AT_FDCWD, folder).is_ok_and(|found| self.is(&found));
        real.starts_with(&self.real) || real.ancestors().any(is_own)
    }
    /// Tells whether a file with another name is one of its own files.
    pub(super) fn has_file(&self, found: &FileMeta) -> bool {
        let is_own = |entry: DirEntry| {
            entry.ino() == found.inode
                && FileMeta::at(AT_FDCWD, &entry.path()).is_ok_and(|own| own.is_file() && own.is_same(found))
        };
        let entries = |folder: &str| fs::read_dir(self.real.join(folder)).into_iter().flatten().flatten();
        found.is_file() && found.links > 1 && OWN.iter().flat_map(|folder| entries(folder)).any(is_own)
    }
}
