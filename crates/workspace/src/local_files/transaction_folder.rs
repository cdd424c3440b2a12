//! Names in a folder that is held open: a transaction changes files by descriptor and single name. Even if the path
//! changes meanwhile, the folder stays the one that was checked.

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
use super::attributes::ExtendedAttributes;
use lathe_protocol::random_number;

use crate::guard::{FileMeta, Guard, GuardedPath, NotOpened, only_regular};

/// A folder of a transaction.
pub(super) struct TransactionFolder {
    guard: Arc<Guard>,
    pub(super) place: GuardedPath,
    /// Held open, unless there are too many; then it is opened beneath its root each time.
    held: Option<Arc<OwnedFd>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    Open,
    Closed,
}

impl TransactionFolder {
    pub(super) fn open(guard: &Arc<Guard>, place: GuardedPath, hold: Hold) -> io::Result<Self> {
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

    /// Opens a regular file with this name, not a link.
    pub(super) fn file(&self, name: &OsStr) -> Result<(File, FileMeta), NotOpened> {
        let folder = self.fd()?;
        only_regular(&FileMeta::at(&*folder, Path::new(name))?)?;
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
        let file: File = openat(&*folder, name, flags | OFlag::O_CLOEXEC, Mode::empty())?.into();
        let found = FileMeta::of(&file)?;
        only_regular(&found)?;
        Ok((file, found))
    }

    pub(super) fn found(&self, name: &OsStr) -> io::Result<FileMeta> {
        FileMeta::at(&*self.fd()?, Path::new(name))
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

    /// Renames a file, and replaces another one with that name.
    pub(super) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        let folder = self.fd()?;
        Ok(renameat(&*folder, from, &*folder, to)?)
    }

    /// Renames a file to a name that must be free.
    pub(super) fn rename_new(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        match self.rename_with(from, to, Rename::NoReplace) {
            Err(error) if is_unsupported(&error) => match self.found(to) {
                Ok(_) => Err(io::Error::from(io::ErrorKind::AlreadyExists)),
                Err(_) => self.rename(from, to),
            },
            done => done,
        }
    }

    /// Exchanges two names in one step. Not every file system supports that.
    pub(super) fn exchange(&self, one: &OsStr, other: &OsStr) -> io::Result<()> {
        self.rename_with(one, other, Rename::Exchange)
    }

    /// Gives a file a second name.
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
            // Some file systems cannot sync a folder, and an unreadable one is open only as a reference.
            Ok(()) | Err(Errno::EINVAL | Errno::EBADF | Errno::EACCES | Errno::ENOTSUP) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes and syncs a file under a private name. No other user may read it before it is complete and has its mode
    /// and owner: those of the old file, or for a new one those that the umask allows. Returns the mode.
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
        let own = FileMeta::of(&file)?;
        let mut mode = own.mode & PERMISSIONS;
        // Still empty: only now the effect of the umask is known.
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        file.write_all(content)?;
        let mut attributes = ExtendedAttributes::default();
        if let Some(Like { found: like, name }) = like {
            mode = like.mode & PERMISSIONS;
            let other = (own.uid, own.gid) != (like.uid, like.gid);
            if other && std::os::unix::fs::fchown(&file, Some(like.uid), Some(like.gid)).is_err() {
                // Only root gives files away. The content counts more than the owner, but the set-user-id bit of
                // another user's file must not become ours.
                mode &= 0o1777;
            }
            if let Ok((old, _)) = self.file(name) {
                attributes = ExtendedAttributes::of(&old)?;
            }
        }
        attributes.apply_to(&file, std::fs::Permissions::from_mode(mode))?;
        file.sync_all()?;
        if FileMeta::of(&file)?.len != content.len() as u64 {
            let short = "the file is shorter than what was written";
            return Err(io::Error::new(io::ErrorKind::WriteZero, short));
        }
        Ok((private, mode))
    }
}

/// The file that a new one replaces.
#[derive(Clone, Copy)]
pub(super) struct Like<'a> {
    pub(super) found: &'a FileMeta,
    /// Its name in the same folder.
    pub(super) name: &'a OsStr,
}

#[derive(Clone, Copy)]
enum Rename {
    NoReplace,
    Exchange,
}

/// A file under a private name, which is removed with this value unless it is kept.
pub(super) struct Private {
    pub(super) folder: Arc<TransactionFolder>,
    pub(super) name: OsString,
    keep: bool,
}

impl Private {
    /// Takes ownership of a file that already has this name.
    pub(super) fn adopt(folder: &Arc<TransactionFolder>, name: &OsStr) -> Self {
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

/// An unguessable name: two hashes with keys from the system.
pub(super) fn private_name(ending: &str) -> OsString {
    format!(".lathe-{:016x}{:016x}.{ending}", random_number(), random_number()).into()
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
