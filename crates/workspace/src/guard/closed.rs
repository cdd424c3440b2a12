//! A folder that no path may lead into, whatever it is called on the way: Lathe's own.
//!
//! It is known by its real path and by device and inode, so that a link, a second spelling and a second mount of it are
//! refused alike. The files that hold keys, settings and rules are known by device and inode too, because a hard link gives
//! them a name anywhere. Files deeper in it are not: the quarantine holds second names of files of the workspace.

use std::fs::{self, DirEntry};
use std::os::unix::fs::DirEntryExt as _;
use std::path::{Path, PathBuf};

use nix::fcntl::AT_FDCWD;

use super::beneath::Found;

/// Folders in it whose files are known by device and inode.
const OWN: [&str; 4] = ["", "policy", "server", "trust"];

#[derive(Debug)]
pub(super) struct Closed {
    pub(super) real: PathBuf,
    found: Option<Found>,
    /// Whether it shares names with a root: then every path of the roots is resolved name by name.
    pub(super) is_near: bool,
}

impl Closed {
    pub(super) fn new<'a>(folder: &Path, mut roots: impl Iterator<Item = &'a Path>) -> Self {
        let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let found = Found::at(AT_FDCWD, &real).ok().filter(Found::is_folder);
        let mut closed = Self { real, found, is_near: false };
        closed.is_near = roots.any(|root| closed.real.starts_with(root) || closed.holds(root));
        closed
    }

    pub(super) fn is(&self, found: &Found) -> bool {
        self.found.is_some_and(|own| own.is_same(found))
    }

    /// Whether a real path is the folder or lies in it.
    pub(super) fn holds(&self, real: &Path) -> bool {
        let is_own = |folder: &Path| Found::at(AT_FDCWD, folder).is_ok_and(|found| self.is(&found));
        real.starts_with(&self.real) || real.ancestors().any(is_own)
    }
    /// Tells whether a file of another name is one of its own files.
    pub(super) fn has_file(&self, found: &Found) -> bool {
        let is_own = |entry: DirEntry| {
            entry.ino() == found.inode
                && Found::at(AT_FDCWD, &entry.path()).is_ok_and(|own| own.is_file() && own.is_same(found))
        };
        let entries = |folder: &str| fs::read_dir(self.real.join(folder)).into_iter().flatten().flatten();
        found.is_file() && found.links > 1 && OWN.iter().flat_map(|folder| entries(folder)).any(is_own)
    }
}
