//! Access to paths beneath a root without following a link on the way.
//!
//! A shell line may replace a folder by a link at any moment. Reading through it would copy foreign files into our
//! store, writing through it would overwrite them. So every parent is opened beneath the root with links refused: by
//! one `openat2` where the kernel has it, else component by component with `O_NOFOLLOW`.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat};
use nix::sys::stat::{Mode, fstat, fstatat};

use crate::ChangesError;
use crate::stat::{PathKind, Stat};

/// The bytes of a path beneath the root: components with one `/` between them, no link, no `..`; empty is the root.
pub(crate) type Rel = Box<[u8]>;

const FOLDER: OFlag = OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_CLOEXEC);

/// Opening must not block on a pipe that replaced a file.
const FILE: OFlag = OFlag::O_RDONLY.union(OFlag::O_NOFOLLOW).union(OFlag::O_NONBLOCK).union(OFlag::O_CLOEXEC);

#[derive(Debug)]
pub(crate) struct Root {
    pub path: PathBuf,
    folder: OwnedFd,
}

impl Root {
    /// Opens the folder at exactly this absolute path. A link anywhere on the way is not followed: it was put there
    /// after the path was made canonical, and leads to files outside of the folder that was meant.
    pub fn open(path: &Path) -> Result<Self, ChangesError> {
        Self::reach(path, Missing::Kept).map_err(|error| swapped(path, error))
    }

    /// Like [`open`](Self::open), and creates missing folders of the path.
    pub fn open_or_make(path: &Path) -> Result<Self, ChangesError> {
        Self::reach(path, Missing::Made).map_err(|error| swapped(path, error))
    }

    fn reach(path: &Path, missing: Missing) -> Result<Self, Errno> {
        let below = path.strip_prefix("/").map_err(|_| Errno::EINVAL)?;
        let top = Self { path: PathBuf::from("/"), folder: nix::fcntl::open("/", FOLDER, Mode::empty())? };
        let rel: PathBuf = below.components().filter(|part| *part != Component::CurDir).collect();
        let folder = match top.open_folder(rel.as_os_str().as_bytes()) {
            Err(Errno::ENOENT) if missing == Missing::Made => top.make(&rel)?,
            opened => opened?,
        };
        Ok(Self { path: path.to_owned(), folder })
    }

    /// Creates the missing folders of a path, below the nearest existing one.
    fn make(&self, rel: &Path) -> Result<OwnedFd, Errno> {
        let mut there = rel;
        let mut at = loop {
            there = there.parent().ok_or(Errno::ENOENT)?;
            match self.open_folder(there.as_os_str().as_bytes()) {
                Err(Errno::ENOENT) => {}
                opened => break opened?,
            }
        };
        for name in rel.strip_prefix(there).unwrap_or(rel).iter() {
            match nix::sys::stat::mkdirat(&at, name, Mode::from_bits_truncate(0o777)) {
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(error) => return Err(error),
            }
            at = openat(&at, name, FOLDER | OFlag::O_NOFOLLOW, Mode::empty())?;
        }
        Ok(at)
    }

    /// A path to the open folder itself, even if its name leads elsewhere by now.
    pub fn by_handle(&self) -> PathBuf {
        let handle = PathBuf::from(format!("/proc/self/fd/{}", self.folder.as_raw_fd()));
        if handle.is_dir() { handle } else { self.path.clone() }
    }

    /// Like [`open`](Self::open) for a root that may be gone: a missing root is an empty one.
    pub fn open_or_gone(path: &Path) -> Result<Self, ChangesError> {
        match Self::open(path) {
            Err(ChangesError::Root { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                let failed = |source| ChangesError::Root { root: path.to_owned(), source };
                let folder = nothing().map_err(failed)?;
                Ok(Self { path: path.to_owned(), folder })
            }
            opened => opened,
        }
    }

    pub fn absolute(&self, rel: &[u8]) -> PathBuf {
        if rel.is_empty() { self.path.clone() } else { self.path.join(OsStr::from_bytes(rel)) }
    }

    /// A folder as a path whose last part is not a link, even if the root is given as one.
    pub fn folder_path(&self, rel: &[u8]) -> PathBuf {
        if rel.is_empty() { self.path.join(".") } else { self.absolute(rel) }
    }

    /// The inode number of the root. A replaced root has another number.
    pub fn inode(&self) -> Result<u64, Errno> {
        Ok(Stat::new(&fstat(&self.folder)?).inode)
    }

    pub fn open_folder(&self, rel: &[u8]) -> Result<OwnedFd, Errno> {
        self.open_at(rel, FOLDER | OFlag::O_NOFOLLOW)
    }

    /// None if nothing is at the path.
    pub fn lstat(&self, rel: &[u8]) -> Result<Option<Stat>, Errno> {
        let (parent, name) = split(rel);
        let found = self.open_folder(parent).and_then(|parent| lstat_at(parent.as_fd(), name));
        match found {
            Ok(stat) => Ok(Some(stat)),
            // A link or a file replaced a folder: nothing of ours is beneath it.
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The content of a file, and its `stat` when the reading began.
    pub fn open_file(&self, rel: &[u8]) -> Result<(File, Stat), Errno> {
        let file = self.open_at(rel, FILE)?;
        let stat = Stat::new(&fstat(&file)?);
        match stat.kind() {
            PathKind::File => Ok((File::from(file), stat)),
            PathKind::Link | PathKind::Folder | PathKind::Special => Err(Errno::ENOENT),
        }
    }

    pub fn read_link(&self, rel: &[u8]) -> Result<Vec<u8>, Errno> {
        let (parent, name) = split(rel);
        let parent = self.open_folder(parent)?;
        Ok(readlinkat(&parent, OsStr::from_bytes(name))?.into_vec())
    }

    fn open_at(&self, rel: &[u8], flags: OFlag) -> Result<OwnedFd, Errno> {
        let rel = if rel.is_empty() { b"." } else { rel };
        #[cfg(target_os = "linux")]
        {
            use nix::fcntl::{OpenHow, ResolveFlag, openat2};
            let how = OpenHow::new()
                .flags(flags)
                .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS);
            match openat2(&self.folder, OsStr::from_bytes(rel), how) {
                // An old kernel, or a sandbox that does not know the call.
                Err(Errno::ENOSYS | Errno::EPERM | Errno::EAGAIN) => {}
                opened => return opened,
            }
        }
        self.open_by_components(rel, flags)
    }

    fn open_by_components(&self, rel: &[u8], flags: OFlag) -> Result<OwnedFd, Errno> {
        let (parent, name) = split(rel);
        let mut folder: Option<OwnedFd> = None;
        for part in parent.split(|byte| *byte == b'/').filter(|part| !part.is_empty()) {
            let at = folder.as_ref().unwrap_or(&self.folder);
            folder = Some(openat(at, OsStr::from_bytes(part), FOLDER | OFlag::O_NOFOLLOW, Mode::empty())?);
        }
        let at = folder.as_ref().unwrap_or(&self.folder);
        openat(at, OsStr::from_bytes(name), flags | OFlag::O_NOFOLLOW, Mode::empty())
    }
}

/// Treatment of missing folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    Kept,
    Made,
}

/// Explains the error of a root that is reached through a link.
fn swapped(root: &Path, error: Errno) -> ChangesError {
    let source = match error {
        Errno::ELOOP | Errno::ENOTDIR => io::Error::new(
            io::ErrorKind::InvalidInput,
            "a link or a file stands on the way to it now, so it is not the folder that was worked in; nothing was \
             touched. Put the folder back in its place and try again",
        ),
        error => error.into(),
    };
    ChangesError::Root { root: root.to_owned(), source }
}

/// An empty folder without a name, so that nothing can get into it.
fn nothing() -> io::Result<OwnedFd> {
    let base = std::env::temp_dir();
    for at in 0..1000 {
        let path = base.join(format!("lathe-gone-{}-{at}", std::process::id()));
        match std::fs::create_dir(&path) {
            Ok(()) => {
                let folder = nix::fcntl::open(&path, FOLDER | OFlag::O_NOFOLLOW, Mode::empty());
                std::fs::remove_dir(&path)?;
                return Ok(folder?);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

pub(crate) fn lstat_at(folder: BorrowedFd<'_>, name: &[u8]) -> Result<Stat, Errno> {
    Ok(Stat::new(&fstatat(folder, OsStr::from_bytes(name), AtFlags::AT_SYMLINK_NOFOLLOW)?))
}

/// Reads a file to its end, or to one byte more than `limit`. The buffer is emptied first.
pub(crate) fn read_into(file: File, limit: u64, into: &mut Vec<u8>) -> io::Result<()> {
    into.clear();
    file.take(limit.saturating_add(1)).read_to_end(into).map(drop)
}

/// Folder and name.
pub(crate) fn split(rel: &[u8]) -> (&[u8], &[u8]) {
    match rel.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&rel[..at], &rel[at + 1..]),
        None => (&[], rel),
    }
}

pub(crate) fn join(folder: &[u8], name: &[u8]) -> Rel {
    let mut rel = Vec::with_capacity(folder.len() + 1 + name.len());
    rel.extend_from_slice(folder);
    if !folder.is_empty() {
        rel.push(b'/');
    }
    rel.extend_from_slice(name);
    rel.into()
}

/// Tells whether `rel` is anywhere inside `folder`.
pub(crate) fn is_inside(rel: &[u8], folder: &[u8]) -> bool {
    folder.is_empty() && !rel.is_empty()
        || rel.len() > folder.len() && rel.starts_with(folder) && rel[folder.len()] == b'/'
}

/// Tells whether a name is git's own folder or file, in any case: a file system may ignore case.
pub(crate) fn is_git(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b".git")
}
