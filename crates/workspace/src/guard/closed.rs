//! A folder that no path may lead into, whatever it is called on the way: Lathe's own.
//!
//! It is known by its real path and by device and inode, so that a link, a second spelling and a second mount of it are
//! refused alike.

use std::path::{Path, PathBuf};

use nix::fcntl::AT_FDCWD;

use super::beneath::Found;

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
}
