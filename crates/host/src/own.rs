//! Lathe's own folder, by its real place.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Lathe's own folder, which clients never see, wherever it lies and however it is reached.
#[derive(Debug, Clone)]
pub(crate) struct OwnFolder {
    real: PathBuf,
    /// Device and inode, for a place that has a second name.
    id: Option<(u64, u64)>,
}

impl OwnFolder {
    pub(crate) fn of(home: &Path) -> Self {
        let real = home.canonicalize().unwrap_or_else(|_| home.to_owned());
        Self { id: id(&real), real }
    }

    /// Whether a path is the folder or leads into it.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        path.ancestors().any(|above| above == self.real || (self.id.is_some() && id(above) == self.id))
    }

    /// The way to it from a folder that holds it.
    pub(crate) fn below(&self, folder: &Path) -> Option<&Path> {
        self.real.strip_prefix(folder).ok().filter(|below| !below.as_os_str().is_empty())
    }
}

fn id(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|found| (found.dev(), found.ino()))
}
