//! Lathe's own folder, by its real place.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Lathe's own folder, which clients never see, by any path that leads to it.
#[derive(Debug, Clone)]
pub(crate) struct OwnFolder {
    real: PathBuf,
    /// Device and inode, for a folder that has a second name.
    id: Option<(u64, u64)>,
}

impl OwnFolder {
    pub(crate) fn of(home: &Path) -> Self {
        let real = home.canonicalize().unwrap_or_else(|_| home.to_owned());
        Self { id: id(&real), real }
    }

    /// Tells whether a path is the folder or leads into it.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        path.ancestors().any(|above| self.is(above))
    }

    fn is(&self, path: &Path) -> bool {
        path == self.real || (self.id.is_some() && id(path) == self.id)
    }

    /// The same check for many paths, reading each folder once.
    pub(crate) fn for_many(&self) -> OwnOfMany<'_> {
        OwnOfMany { own: self, known: HashMap::new() }
    }

    /// The path to it from a folder that contains it.
    pub(crate) fn below(&self, folder: &Path) -> Option<&Path> {
        self.real.strip_prefix(folder).ok().filter(|below| !below.as_os_str().is_empty())
    }
}

/// Results for many paths, remembered by folder.
pub(crate) struct OwnOfMany<'a> {
    own: &'a OwnFolder,
    known: HashMap<PathBuf, bool>,
}

impl OwnOfMany<'_> {
    pub(crate) fn holds(&mut self, path: &Path) -> bool {
        let above = path.parent().is_some_and(|folder| {
            let own = self.own;
            *self.known.entry(folder.to_owned()).or_insert_with(|| own.holds(folder))
        });
        above || self.own.is(path)
    }
}

fn id(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|found| (found.dev(), found.ino()))
}
