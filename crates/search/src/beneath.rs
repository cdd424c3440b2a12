//! Files that are opened only where they really are.
//!
//! A walk uses names, and a folder may be swapped for a link between two accesses. So a folder is opened from the
//! root's own descriptor without following any link, once for all the files in it, and its files from there. That is
//! also faster than opening each by its whole path.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use nix::fcntl::{AtFlags, OFlag, open, openat};
use nix::sys::stat::{Mode, fstatat};

/// Opens files of one tree. Each thread has its own.
pub(crate) struct Beneath {
    root: PathBuf,
    folder: Option<OwnedFd>,
    /// The last folder, which most often is the next one too; `None` inside if it is not at its path.
    last: Option<(PathBuf, Option<OwnedFd>)>,
}

const FOLDER: OFlag =
    OFlag::O_DIRECTORY.union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC).union(OFlag::O_RDONLY);
const FILE: OFlag = OFlag::O_NOFOLLOW
    .union(OFlag::O_NONBLOCK)
    .union(OFlag::O_NOCTTY)
    .union(OFlag::O_CLOEXEC)
    .union(OFlag::O_RDONLY);

impl Beneath {
    /// Opens the root, which has no links in its path. If a link has replaced a part of it since, nothing is found.
    pub(crate) fn new(root: &Path) -> Self {
        let folder = open("/", FOLDER, Mode::empty()).ok();
        let folder = folder.and_then(|top| step_down(&top, root.strip_prefix("/").ok()?));
        Self { root: root.to_owned(), folder, last: None }
    }

    /// Opens a regular file, without waiting for anything.
    pub(crate) fn open(&mut self, path: &Path) -> io::Result<File> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let folder = self.folder(path.parent().unwrap_or(path)).ok_or(io::ErrorKind::NotFound)?;
        let file = File::from(openat(folder, name, FILE, Mode::empty())?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }

    /// Tells whether something of this name is really at its path.
    pub(crate) fn has(&mut self, path: &Path) -> bool {
        let Some(name) = path.file_name() else { return false };
        let folder = self.folder(path.parent().unwrap_or(path));
        folder.is_some_and(|folder| fstatat(folder, name, AtFlags::AT_SYMLINK_NOFOLLOW).is_ok())
    }

    fn folder(&mut self, folder: &Path) -> Option<&OwnedFd> {
        if self.last.as_ref().is_none_or(|(known, _)| known != folder) {
            let inside = folder.strip_prefix(&self.root).ok();
            let opened = inside.and_then(|inside| step_down(self.folder.as_ref()?, inside));
            self.last = Some((folder.to_owned(), opened));
        }
        self.last.as_ref().and_then(|(_, opened)| opened.as_ref())
    }
}

/// Opens a folder below another without following a link: in one call of the kernel if it can, otherwise name by
/// name.
fn step_down(from: &OwnedFd, inside: &Path) -> Option<OwnedFd> {
    let mut at = from.try_clone().ok()?;
    #[cfg(target_os = "linux")]
    if !inside.as_os_str().is_empty() {
        use nix::fcntl::{OpenHow, ResolveFlag, openat2};
        let how = OpenHow::new().flags(FOLDER).resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
        match openat2(&at, inside, how) {
            Ok(opened) => return Some(opened),
            Err(nix::errno::Errno::ENOSYS | nix::errno::Errno::EPERM) => {}
            Err(_) => return None,
        }
    }
    for name in inside.components() {
        at = openat(&at, name.as_os_str(), FOLDER, Mode::empty()).ok()?;
    }
    Some(at)
}
