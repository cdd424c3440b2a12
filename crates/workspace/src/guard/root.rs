//! A root: a folder that is held open as long as its name refers to it.
//!
//! The name is made canonical once. A folder that is moved away, or removed and made again, as tools that check out
//! repositories do, is not the root any more: the new folder is used then, but never through a link, so that only a
//! folder with exactly this name can become the root.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::fcntl::{AT_FDCWD, OFlag, open};
use nix::sys::stat::Mode;
use parking_lot::RwLock;

use super::beneath::{self, FileMeta, LOOK, Links, Resolution};

#[derive(Debug)]
pub(super) struct GuardRoot {
    /// The path as it was given.
    pub(super) spelled: PathBuf,
    /// The path without links.
    pub(super) path: PathBuf,
    held: RwLock<Option<Arc<HeldRoot>>>,
}

#[derive(Debug)]
pub(super) struct HeldRoot {
    pub(super) folder: OwnedFd,
    pub(super) found: FileMeta,
}

impl GuardRoot {
    pub(super) fn new(spelled: PathBuf, how: Resolution) -> Self {
        let path = spelled.canonicalize().unwrap_or_else(|_| spelled.clone());
        let held = RwLock::new(HeldRoot::open(&path, how));
        Self { spelled, path, held }
    }

    /// The folder at exactly this path: no link in it is followed, now or later.
    pub(super) fn exact(path: PathBuf, how: Resolution) -> Self {
        let held = RwLock::new(HeldRoot::open(&path, how));
        Self { spelled: path.clone(), path, held }
    }

    /// None while the folder does not exist.
    pub(super) fn held(&self) -> Option<Arc<HeldRoot>> {
        self.held.read().clone()
    }

    pub(super) fn refresh(&self, how: Resolution) {
        let now = FileMeta::at(AT_FDCWD, &self.path).ok();
        let same = match (self.held(), now) {
            (Some(held), Some(now)) => held.found.is_same(&now),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if !same {
            let held = HeldRoot::open(&self.path, how);
            *self.held.write() = held;
        }
    }
}

/// Opens the folder at exactly this absolute path: a link on the way is not followed, but an error.
pub fn open_exact(path: &Path) -> io::Result<OwnedFd> {
    exact(path, Resolution::probe())
}

fn exact(path: &Path, how: Resolution) -> io::Result<OwnedFd> {
    let flags = LOOK | OFlag::O_DIRECTORY;
    let top = open("/", flags | OFlag::O_CLOEXEC, Mode::empty())?;
    let below = path.strip_prefix("/").map_err(|_| io::ErrorKind::InvalidInput)?;
    beneath::open(how, top.as_fd(), below, flags, Links::Refused)
}

impl HeldRoot {
    /// Opens the folder at exactly this path, with no link on the way.
    fn open(path: &Path, how: Resolution) -> Option<Arc<Self>> {
        let folder = exact(path, how).ok()?;
        let found = FileMeta::of(&folder).ok()?;
        Some(Arc::new(Self { folder, found }))
    }
}
