//! Names in a folder that is held open: what a transaction does to files, it does here, by descriptor and single name.
//! Whatever happens to the path meanwhile, the folder stays the one that was checked.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat, renameat};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::{UnlinkatFlags, linkat, unlinkat};

use super::PERMISSIONS;
use super::attributes::Attributes;
use lathe_protocol::chance;

use crate::guard::{Found, Guard, NotOpened, Place, only_regular};

/// A folder of a transaction.
pub(super) struct Folder {
    guard: Arc<Guard>,
    pub(super) place: Place,
    /// Held open, unless there are too many; then it is opened beneath its root each time.
    held: Option<Arc<OwnedFd>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    Open,
    Closed,
}

impl Folder {
    pub(super) fn open(guard: &Arc<Guard>, place: Place, hold: Hold) -> io::Result<Self> {
        let folder = Arc::new(guard.hold_folder(&place).map_err(plain)?);
        let held = (hold == Hold::Open).then_some(folder);
        Ok(Self { guard: Arc::clone(guard), place, held })
    }

    fn fd(&self) -> io::Result<Arc<OwnedFd>> {
        match &self.held {
            Some(held) => Ok(Arc::clone(held)),
            None => Ok(Arc::new(self.guard.hold_folder(&self.place).map_err(plain)?)),
        }
    }

    pub(super) fn real(&self) -> PathBuf {
        self.guard.real(&self.place)
    }

    /// A regular file of this name, and no link.
    pub(super) fn file(&self, name: &OsStr) -> Result<(File, Found), NotOpened> {
        let folder = self.fd()?;
        only_regular(&Found::at(&*folder, Path::new(name))?)?;
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
        let file: File = openat(&*folder, name, flags | OFlag::O_CLOEXEC, Mode::empty())?.into();
        let found = Found::of(&file)?;
        only_regular(&found)?;
        Ok((file, found))
    }

    pub(super) fn found(&self, name: &OsStr) -> io::Result<Found> {
        Found::at(&*self.fd()?, Path::new(name))
    }

    pub(super) fn link(&self, name: &OsStr) -> io::Result<OsString> {
        Ok(readlinkat(&*self.fd()?, name)?)
    }

    pub(super) fn unlink(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&*self.fd()?, name, UnlinkatFlags::NoRemoveDir)?)
    }

    pub(super) fn make_folder(&self, name: &OsStr) -> io::Result<()> {
        Ok(mkdirat(&*self.fd()?, name, Mode::from_bits_truncate(0o777))?)
    }

    pub(super) fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&*self.fd()?, name, UnlinkatFlags::RemoveDir)?)
    }

    /// Gives a file another name, which may have been another file's.
    pub(super) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        let folder = self.fd()?;
        Ok(renameat(&*folder, from, &*folder, to)?)
    }

    /// Gives a file a name that nothing may have yet.
    pub(super) fn rename_new(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        match self.rename_with(from, to, Rename::NoReplace) {
            Err(error) if is_unsupported(&error) => match self.found(to) {
                Ok(_) => Err(io::Error::from(io::ErrorKind::AlreadyExists)),
                Err(_) => self.rename(from, to),
            },
            done => done,
        }
    }

    /// Both names change places, in one step. Not every file system can.
    pub(super) fn exchange(&self, one: &OsStr, other: &OsStr) -> io::Result<()> {
        self.rename_with(one, other, Rename::Exchange)
    }

    /// A second name for a file.
    pub(super) fn hard_link(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        let folder = self.fd()?;
        Ok(linkat(&*folder, from, &*folder, to, AtFlags::empty())?)
    }

    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn rename_with(&self, from: &OsStr, to: &OsStr, how: Rename) -> io::Result<()> {
        use nix::fcntl::{RenameFlags, renameat2};
        if !self.guard.exchanges {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        }
        let flags = match how {
            Rename::NoReplace => RenameFlags::RENAME_NOREPLACE,
            Rename::Exchange => RenameFlags::RENAME_EXCHANGE,
        };
        let folder = self.fd()?;
        Ok(renameat2(&*folder, from, &*folder, to, flags)?)
    }

    /// Other systems have such calls under other names, or none.
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    fn rename_with(&self, _: &OsStr, _: &OsStr, how: Rename) -> io::Result<()> {
        match how {
            Rename::NoReplace | Rename::Exchange => Err(io::Error::from(io::ErrorKind::Unsupported)),
        }
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        match nix::unistd::fsync(&*self.fd()?) {
            // Some file systems have nothing to sync in a folder, and one that may not be read is open for looking only.
            Ok(()) | Err(Errno::EINVAL | Errno::EBADF | Errno::EACCES | Errno::ENOTSUP) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes and syncs a file under a private name. Nobody else may read it before it is whole and has its mode and
    /// owner: the old file's, or what the umask leaves of a new one's. Returns the mode.
    pub(super) fn write_private(
        self: &Arc<Self>,
        name: &OsStr,
        content: &[u8],
        like: Option<Like<'_>>,
    ) -> io::Result<(Private, u32)> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let usual = if like.is_some() { 0o600 } else { 0o666 };
        let mut file: File = openat(&*self.fd()?, name, flags, Mode::from_bits_truncate(usual))?.into();
        let private = Private { folder: Arc::clone(self), name: name.to_owned(), keep: false };
        let own = Found::of(&file)?;
        let mut mode = own.mode & PERMISSIONS;
        // Still empty: only now it is known what the umask leaves.
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        file.write_all(content)?;
        let mut attributes = Attributes::default();
        if let Some(Like { found: like, name }) = like {
            mode = like.mode & PERMISSIONS;
            let other = (own.uid, own.gid) != (like.uid, like.gid);
            if other && std::os::unix::fs::fchown(&file, Some(like.uid), Some(like.gid)).is_err() {
                // Only root gives files away. The content counts more than the owner, but nobody's set-user-id bit may
                // become ours.
                mode &= 0o1777;
            }
            if let Ok((old, _)) = self.file(name) {
                attributes = Attributes::of(&old)?;
            }
        }
        attributes.give(&file, std::fs::Permissions::from_mode(mode))?;
        file.sync_all()?;
        if Found::of(&file)?.len != content.len() as u64 {
            let short = "the file is shorter than what was written";
            return Err(io::Error::new(io::ErrorKind::WriteZero, short));
        }
        Ok((private, mode))
    }
}

/// The file that a new one takes the place of.
#[derive(Clone, Copy)]
pub(super) struct Like<'a> {
    pub(super) found: &'a Found,
    /// Its name in the same folder.
    pub(super) name: &'a OsStr,
}

#[derive(Clone, Copy)]
enum Rename {
    NoReplace,
    Exchange,
}

/// A file under a private name, which goes with this value unless it is kept.
pub(super) struct Private {
    pub(super) folder: Arc<Folder>,
    pub(super) name: OsString,
    keep: bool,
}

impl Private {
    /// Takes charge of a file that has this name already.
    pub(super) fn adopt(folder: &Arc<Folder>, name: &OsStr) -> Self {
        Self { folder: Arc::clone(folder), name: name.to_owned(), keep: false }
    }

    /// The name is no longer ours.
    pub(super) fn keep(mut self) {
        self.keep = true;
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        if !self.keep {
            let _ = self.folder.unlink(&self.name);
        }
    }
}

/// A name nobody can guess: two hashes with keys the system drew.
pub(super) fn private_name(ending: &str) -> OsString {
    format!(".lathe-{:016x}{:016x}.{ending}", chance(), chance()).into()
}

pub(super) fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}

fn plain(error: NotOpened) -> io::Error {
    match error {
        NotOpened::Directory => Errno::EISDIR.into(),
        NotOpened::Special => Errno::ENXIO.into(),
        NotOpened::Io(error) => error,
    }
}
