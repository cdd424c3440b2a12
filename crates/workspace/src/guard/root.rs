//! A root: a folder that is held open for as long as its name stands for it.
//!
//! The name is made canonical once. A folder that is moved away, or removed and made anew, as tools that check out
//! repositories do, is not the root any more: the new one is taken then, but never by way of a link, so that nothing can
//! be put in the root's place that is not a folder of exactly this name.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::fcntl::{AT_FDCWD, OFlag, open};
use nix::sys::stat::Mode;
use parking_lot::RwLock;

use super::beneath::{self, Found, How, LOOK, Links};

#[derive(Debug)]
pub(super) struct Root {
    /// As it was given.
    pub(super) spelled: PathBuf,
    /// Without links.
    pub(super) path: PathBuf,
    held: RwLock<Option<Arc<Held>>>,
}

#[derive(Debug)]
pub(super) struct Held {
    pub(super) folder: OwnedFd,
    pub(super) found: Found,
}

impl Root {
    pub(super) fn new(spelled: PathBuf, how: How) -> Self {
        let path = spelled.canonicalize().unwrap_or_else(|_| spelled.clone());
        let held = RwLock::new(Held::open(&path, how));
        Self { spelled, path, held }
    }

    /// The folder of exactly this path: no link in it is followed, now or later.
    pub(super) fn exact(path: PathBuf, how: How) -> Self {
        let held = RwLock::new(Held::open(&path, how));
        Self { spelled: path.clone(), path, held }
    }

    /// None while there is no such folder.
    pub(super) fn held(&self) -> Option<Arc<Held>> {
        self.held.read().clone()
    }

    pub(super) fn refresh(&self, how: How) {
        let now = Found::at(AT_FDCWD, &self.path).ok();
        let same = match (self.held(), now) {
            (Some(held), Some(now)) => held.found.is_same(&now),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if !same {
            let held = Held::open(&self.path, how);
            *self.held.write() = held;
        }
    }
}

/// Opens the folder of exactly this absolute path: a link on the way is not followed, but an error.
pub fn open_exact(path: &Path) -> io::Result<OwnedFd> {
    exact(path, How::probe())
}

fn exact(path: &Path, how: How) -> io::Result<OwnedFd> {
    let flags = LOOK | OFlag::O_DIRECTORY;
    let top = open("/", flags | OFlag::O_CLOEXEC, Mode::empty())?;
    let below = path.strip_prefix("/").map_err(|_| io::ErrorKind::InvalidInput)?;
    beneath::open(how, top.as_fd(), below, flags, Links::Refused)
}

impl Held {
    /// A folder of exactly this name, with no link on the way.
    fn open(path: &Path, how: How) -> Option<Arc<Self>> {
        let folder = exact(path, how).ok()?;
        let found = Found::of(&folder).ok()?;
        Some(Arc::new(Self { folder, found }))
    }
}
