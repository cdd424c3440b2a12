//! Changes of names by the user: making folders, renaming, removing and restoring, and receiving files in pieces.
//!
//! The same guard applies: it resolves a path, and then everything is done by the descriptor of a folder and one
//! single name. Removed files go to a folder of ours outside of the root, so that they can be restored.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, openat, readlinkat, renameat};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::{UnlinkatFlags, symlinkat, unlinkat};

use super::transaction_folder::private_name;
use super::{LocalFiles, PERMISSIONS, read_names};
use crate::guard::{FileMeta, Guard, GuardedPath, Last, NotOpened, kind};
use crate::naming_lock::lock_naming;
use crate::{FileKind, WorkspaceError, is_protected_in};

/// The number of bytes copied at a time.
const PIECE: usize = 64 * 1024;
const NEW_FILE: OFlag = OFlag::O_WRONLY
    .union(OFlag::O_CREAT)
    .union(OFlag::O_EXCL)
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);
const OLD_FOLDER: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);
const OLD_FILE: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_NOFOLLOW).union(OFlag::O_NONBLOCK).union(OFlag::O_CLOEXEC);

/// A name in a folder that is held open.
struct Spot {
    folder: OwnedFd,
    name: OsString,
}

impl LocalFiles {
    /// Makes a folder, and the missing ones above it.
    pub fn make_folder(&self, path: &Path) -> Result<(), WorkspaceError> {
        let _one = lock_naming();
        let place = self.writable(path, Last::Followed)?;
        if place.missing == 0 {
            return Err(WorkspaceError::Exists(path.to_owned()));
        }
        self.make(&place, place.missing).map(drop).map_err(|error| error.or_stale(path))
    }

    /// Renames a file, folder or link within a root. Nothing is ever replaced.
    pub fn rename(&self, from: &Path, to: &Path) -> Result<(), WorkspaceError> {
        let _one = lock_naming();
        let (old, found) = self.existing(from)?;
        let place = self.absent(to)?;
        if found.is_folder() {
            self.check_inside(&old, &place, to)?;
        }
        let old = self.spot(&old).map_err(|error| error.or_stale(from))?;
        let new = self.spot_of_new(&place).map_err(|error| error.or_stale(to))?;
        rename_new(&old, &new).map_err(|error| WorkspaceError::io(to, error))
    }

    /// Moves the file, folder or link at a path out of the root, to a path where nothing exists yet. A link is moved
    /// itself, not its target.
    pub fn move_out(&self, path: &Path, to: &Path) -> Result<FileKind, WorkspaceError> {
        let (place, found) = self.existing(path)?;
        let failed = |error| WorkspaceError::io(path, error);
        let old = self.spot(&place).map_err(|error| error.or_stale(path))?;
        let new = outside(to).map_err(failed)?;
        match rename_new(&old, &new) {
            Ok(()) => {}
            Err(error) if is_other_disk(&error) => {
                // Under a name that no other process knows it is ours alone while it is copied.
                let private =
                    Spot { folder: old.folder.try_clone().map_err(failed)?, name: private_name("old") };
                rename_new(&old, &private).map_err(failed)?;
                let copied = copy(&private, &new).and_then(|()| remove(&private));
                if let Err(error) = copied {
                    let _ = rename_new(&private, &old);
                    let _ = remove(&new);
                    return Err(failed(error));
                }
            }
            Err(error) => return Err(failed(error)),
        }
        Ok(if found.is_link() { FileKind::Special } else { kind(&found) })
    }

    /// Moves a removed file, folder or link back into the root, to a path where nothing exists. From another disk it
    /// is copied while others may create names.
    pub fn move_in(&self, from: &Path, path: &Path) -> Result<(), WorkspaceError> {
        let failed = |error| WorkspaceError::io(path, error);
        let old = outside(from).map_err(failed)?;
        let one = lock_naming();
        let new = self.spot_of_absent(path)?;
        let renamed = rename_new(&old, &new);
        drop(one);
        match renamed {
            Err(error) if is_other_disk(&error) => {}
            renamed => return renamed.map_err(failed),
        }
        let private = Spot { folder: new.folder, name: private_name("tmp") };
        let land = || {
            let _one = lock_naming();
            rename_new(&private, &self.spot_of_absent(path)?).map_err(failed)
        };
        if let Err(error) = copy(&old, &private).map_err(failed).and_then(|()| land()) {
            let _ = remove(&private);
            return Err(error);
        }
        let _ = remove(&old);
        Ok(())
    }

    /// Begins a new file that arrives in pieces. Until it is finished it has a private name, and it is removed if it
    /// is never finished.
    pub fn receive(&self, path: &Path) -> Result<Incoming, WorkspaceError> {
        let place = self.writable(path, Last::Kept)?;
        if place.is_for_folder() || place.below.as_os_str().is_empty() {
            return Err(WorkspaceError::IsDirectory(path.to_owned()));
        }
        // The nearest existing folder: none is made for a file that may never be complete.
        let mut above = place;
        loop {
            let Some((parent, _)) = above.parent() else {
                return Err(WorkspaceError::IsDirectory(path.to_owned()));
            };
            above = parent;
            if above.missing == 0 {
                break;
            }
        }
        let folder = self.guard.hold_folder(&above).map_err(|error| error.or_stale(path))?;
        let name = private_name("tmp");
        let failed = |error: io::Error| WorkspaceError::io(path, error);
        let file = openat(&folder, name.as_os_str(), NEW_FILE, Mode::from_bits_truncate(0o666))
            .map_err(|error| failed(error.into()))?;
        let file = File::from(file);
        let mode = FileMeta::of(&file).map_err(failed)?.mode & PERMISSIONS;
        file.set_permissions(std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
        let spot = Spot { folder, name };
        Ok(Incoming { files: self.clone(), path: path.to_owned(), spot: Some(spot), file, mode })
    }

    fn writable(&self, path: &Path, last: Last) -> Result<GuardedPath, WorkspaceError> {
        let place = self.guard.locate(path, last)?;
        self.guard.may_write(path, &place)?;
        Ok(place)
    }

    /// An existing file, folder or link that may be removed from its path.
    fn existing(&self, path: &Path) -> Result<(GuardedPath, FileMeta), WorkspaceError> {
        let place = self.writable(path, Last::Kept)?;
        if place.missing > 0 {
            return Err(WorkspaceError::NotFound(path.to_owned()));
        }
        let Some((_, name)) = place.parent() else {
            return Err(WorkspaceError::Denied(path.to_owned()));
        };
        self.guard.may_take(path, &place)?;
        let spot = self.spot(&place).map_err(|error| error.or_stale(path))?;
        let found =
            FileMeta::at(&spot.folder, Path::new(name)).map_err(|error| WorkspaceError::io(path, error))?;
        // As everywhere, a link that leads out is not part of this root.
        if found.is_link()
            && matches!(self.guard.locate(path, Last::Followed), Err(WorkspaceError::Outside(_)))
        {
            return Err(WorkspaceError::Outside(path.to_owned()));
        }
        Ok((place, found))
    }

    fn absent(&self, path: &Path) -> Result<GuardedPath, WorkspaceError> {
        let place = self.writable(path, Last::Kept)?;
        match place.missing {
            0 => Err(WorkspaceError::Exists(path.to_owned())),
            _ => Ok(place),
        }
    }

    /// Refuses a new name for a folder by which a file in it would become protected.
    fn check_inside(&self, old: &GuardedPath, new: &GuardedPath, to: &Path) -> Result<(), WorkspaceError> {
        let folder = self.guard.open_folder(old).map_err(|error| error.or_stale(to))?;
        let inside = read_names(folder).map_err(|error| WorkspaceError::io(to, error))?;
        let by_name = |place: &GuardedPath, name: &OsStr| {
            is_protected_in(self.guard.root_path(place), &place.below.join(name))
        };
        let becomes = |name: &OsStr| by_name(new, name) && !by_name(old, name);
        let (from, at) = (self.guard.real(old), self.guard.real(new));
        let led = |place: &PathBuf| {
            let rest = place.strip_prefix(&at).ok();
            rest.is_some_and(|rest| from.join(rest).symlink_metadata().is_ok())
        };
        let is_led = self.guard.targets_near(new).iter().any(led);
        match is_led || inside.iter().any(|(name, _)| becomes(name)) {
            true => Err(WorkspaceError::Protected(to.to_owned())),
            false => Ok(()),
        }
    }

    fn spot(&self, place: &GuardedPath) -> Result<Spot, NotOpened> {
        let (above, name) = place.parent().ok_or(NotOpened::Directory)?;
        Ok(Spot { folder: self.guard.hold_folder(&above)?, name: name.to_owned() })
    }

    /// The spot of a path where nothing exists and something may be put. The folders above are made.
    fn spot_of_absent(&self, path: &Path) -> Result<Spot, WorkspaceError> {
        let place = self.absent(path)?;
        self.spot_of_new(&place).map_err(|error| error.or_stale(path))
    }

    /// The folders above are made.
    fn spot_of_new(&self, place: &GuardedPath) -> Result<Spot, NotOpened> {
        let (_, name) = place.parent().ok_or(NotOpened::Directory)?;
        let folder = self.make(place, place.missing.saturating_sub(1))?;
        Ok(Spot { folder, name: name.to_owned() })
    }

    /// Makes the first `count` of the missing names, and returns the last folder that then exists.
    fn make(&self, place: &GuardedPath, count: usize) -> Result<OwnedFd, NotOpened> {
        let mut there = place.clone();
        for _ in 0..place.missing {
            there = there.parent().ok_or(NotOpened::Directory)?.0;
        }
        let guard: &Arc<Guard> = &self.guard;
        let mut folder = guard.hold_folder(&there)?;
        let parts: Vec<&OsStr> = place.below.iter().collect();
        for name in parts.iter().skip(parts.len().saturating_sub(place.missing)).take(count) {
            match mkdirat(&folder, *name, Mode::from_bits_truncate(0o777)) {
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(error) => return Err(error.into()),
            }
            folder = openat(&folder, *name, OLD_FOLDER, Mode::empty())?;
        }
        Ok(folder)
    }
}

/// A file that is being received.
pub struct Incoming {
    files: LocalFiles,
    path: PathBuf,
    spot: Option<Spot>,
    file: File,
    mode: u32,
}

impl Incoming {
    pub fn write(&mut self, piece: &[u8]) -> Result<(), WorkspaceError> {
        self.file.write_all(piece).map_err(|error| WorkspaceError::io(&self.path, error))
    }

    /// Gives the complete file its name, which must be free.
    pub fn finish(mut self) -> Result<(), WorkspaceError> {
        let failed = |error: io::Error| WorkspaceError::io(&self.path, error);
        self.file.set_permissions(std::fs::Permissions::from_mode(self.mode)).map_err(failed)?;
        self.file.sync_all().map_err(failed)?;
        let _one = lock_naming();
        let new = self.files.spot_of_absent(&self.path)?;
        if let Some(spot) = &self.spot {
            rename_new(spot, &new).map_err(failed)?;
        }
        self.spot = None;
        Ok(())
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if let Some(spot) = &self.spot {
            let _ = unlinkat(&spot.folder, spot.name.as_os_str(), UnlinkatFlags::NoRemoveDir);
        }
    }
}

/// A path of our own, outside of every root.
fn outside(path: &Path) -> io::Result<Spot> {
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Errno::EINVAL.into());
    };
    Ok(Spot { folder: openat(AT_FDCWD, above, OLD_FOLDER, Mode::empty())?, name: name.to_owned() })
}

fn is_other_disk(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::EXDEV as i32)
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn rename_new(from: &Spot, to: &Spot) -> io::Result<()> {
    use nix::fcntl::{RenameFlags, renameat2};
    let (old, new) = (from.name.as_os_str(), to.name.as_os_str());
    match renameat2(&from.folder, old, &to.folder, new, RenameFlags::RENAME_NOREPLACE) {
        Err(Errno::EINVAL | Errno::ENOSYS | Errno::ENOTSUP) => rename_looking(from, to),
        done => Ok(done?),
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn rename_new(from: &Spot, to: &Spot) -> io::Result<()> {
    rename_looking(from, to)
}

fn rename_looking(from: &Spot, to: &Spot) -> io::Result<()> {
    match FileMeta::at(&to.folder, Path::new(&to.name)) {
        Ok(_) => Err(io::Error::from(io::ErrorKind::AlreadyExists)),
        Err(_) => Ok(renameat(&from.folder, from.name.as_os_str(), &to.folder, to.name.as_os_str())?),
    }
}

/// Copies a file, a link or a folder with its content; no link is followed. Other kinds of files cannot be copied.
fn copy(from: &Spot, to: &Spot) -> io::Result<()> {
    let found = FileMeta::at(&from.folder, Path::new(&from.name))?;
    let (old, new) = (from.name.as_os_str(), to.name.as_os_str());
    if found.is_link() {
        let leads = readlinkat(&from.folder, old)?;
        return Ok(symlinkat(leads.as_os_str(), &to.folder, new)?);
    }
    let mode = std::fs::Permissions::from_mode(found.mode & PERMISSIONS);
    if found.is_folder() {
        mkdirat(&to.folder, new, Mode::from_bits_truncate(0o700))?;
        let copied = openat(&to.folder, new, OLD_FOLDER, Mode::empty())?;
        for (name, _) in read_names(openat(&from.folder, old, OLD_FOLDER, Mode::empty())?)? {
            let inner = Spot { folder: openat(&from.folder, old, OLD_FOLDER, Mode::empty())?, name };
            copy(&inner, &Spot { folder: copied.as_fd().try_clone_to_owned()?, name: inner.name.clone() })?;
        }
        return File::from(copied).set_permissions(mode);
    }
    if !found.is_file() {
        let words = format!("{} is neither a file nor a folder", String::from_utf8_lossy(old.as_bytes()));
        return Err(io::Error::new(io::ErrorKind::InvalidInput, words));
    }
    let mut source = File::from(openat(&from.folder, old, OLD_FILE, Mode::empty())?);
    let mut target = File::from(openat(&to.folder, new, NEW_FILE, Mode::from_bits_truncate(0o600))?);
    let mut piece = vec![0; PIECE];
    loop {
        match source.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => target.write_all(piece.get(..read).unwrap_or_default())?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    target.set_permissions(mode)?;
    target.sync_all()
}

fn remove(spot: &Spot) -> io::Result<()> {
    let found = FileMeta::at(&spot.folder, Path::new(&spot.name))?;
    let name = spot.name.as_os_str();
    if !found.is_folder() {
        return Ok(unlinkat(&spot.folder, name, UnlinkatFlags::NoRemoveDir)?);
    }
    for (inner, _) in read_names(openat(&spot.folder, name, OLD_FOLDER, Mode::empty())?)? {
        remove(&Spot { folder: openat(&spot.folder, name, OLD_FOLDER, Mode::empty())?, name: inner })?;
    }
    Ok(unlinkat(&spot.folder, name, UnlinkatFlags::RemoveDir)?)
}
