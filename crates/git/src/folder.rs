//! A folder of a repository: by name for a person, by its handle below roots.
//!
//! Below a handle no link is followed, so what is read and listed is in the folder that git is given, whatever its name means
//! by now.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lathe_workspace::{content_of, read_regular};
use nix::dir::{Dir, Type};
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{Mode, SFlag, fstat, fstatat};

use crate::{Boundary, GitError};

const FOLDER: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);
const FILE: OFlag = OFlag::O_RDONLY
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_NONBLOCK)
    .union(OFlag::O_NOCTTY)
    .union(OFlag::O_CLOEXEC);

/// A folder that is looked into.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    /// Its name, for errors.
    pub(crate) name: PathBuf,
    handle: Option<Arc<OwnedFd>>,
}

/// A name of a folder, with the kind of what it names. A link is not followed.
pub(crate) struct Listed {
    pub(crate) name: OsString,
    pub(crate) kind: SFlag,
}

impl Folder {
    /// A folder by its name, through whatever links.
    pub(crate) fn named(name: &Path) -> Self {
        Self { name: name.to_owned(), handle: None }
    }

    /// A folder by its handle. Below roots it is reached from the root that holds it without following a link.
    pub(crate) fn hold(name: &Path, boundary: &Boundary) -> Result<Self, GitError> {
        let wrong = |error: io::Error| GitError::refused(name, format!("cannot be opened: {error}"));
        let root = match boundary {
            Boundary::Anywhere => name,
            // A folder that was swapped for a link since it was looked at lies below no root.
            Boundary::Roots(_) => boundary
                .root_of(name)
                .ok_or_else(|| GitError::refused(name, "is not below the folders that may be used"))?,
        };
        let top = File::options().read(true).custom_flags(OFlag::O_DIRECTORY.bits()).open(root);
        let mut handle = OwnedFd::from(top.map_err(wrong)?);
        for part in name.strip_prefix(root).into_iter().flat_map(Path::components) {
            let next = openat(&handle, part.as_os_str(), FOLDER, Mode::empty());
            handle = next.map_err(|error| match error {
                nix::Error::ELOOP | nix::Error::ENOTDIR => GitError::refused(name, "is a symbolic link"),
                error => wrong(error.into()),
            })?;
        }
        Ok(Self { name: name.to_owned(), handle: Some(Arc::new(handle)) })
    }

    /// A folder below, reached the same way. None: there is none of this name.
    pub(crate) fn below(&self, name: impl AsRef<Path>) -> Result<Option<Self>, GitError> {
        let name = name.as_ref();
        let whole = self.name.join(name);
        let Some(handle) = &self.handle else { return Ok(whole.is_dir().then(|| Self::named(&whole))) };
        match walk(handle.as_fd(), name, FOLDER) {
            Ok(Some(found)) => Ok(Some(Self { name: whole, handle: Some(Arc::new(found)) })),
            Ok(None) => Ok(None),
            Err(error) => Err(GitError::refused(whole, format!("cannot be opened: {error}"))),
        }
    }

    pub(crate) fn handle(&self) -> Option<&Arc<OwnedFd>> {
        self.handle.as_ref()
    }

    /// A path that leads to the folder of the handle, in this process and in one that inherits it. The name has to do where
    /// there is no `/proc`.
    pub(crate) fn path(&self) -> PathBuf {
        self.handle_path().unwrap_or_else(|| self.name.clone())
    }

    pub(crate) fn handle_path(&self) -> Option<PathBuf> {
        let path = PathBuf::from(format!("/proc/self/fd/{}", self.handle.as_ref()?.as_raw_fd()));
        path.is_dir().then_some(path)
    }

    /// Whether both are the same folder by now.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let place = |folder: &Self| {
            folder
                .handle
                .as_ref()
                .and_then(|handle| fstat(handle).ok())
                .map(|found| (found.st_dev, found.st_ino))
        };
        place(self).is_some_and(|own| place(other) == Some(own))
    }

    /// The content of a regular file of at most `most` bytes. None: there is no file of this name.
    pub(crate) fn read(&self, name: &str, most: u64) -> io::Result<Option<Vec<u8>>> {
        let Some(handle) = &self.handle else { return read_regular(&self.name.join(name), most) };
        match walk(handle.as_fd(), Path::new(name), FILE)? {
            Some(file) => content_of(File::from(file), most).map(Some),
            None => Ok(None),
        }
    }

    /// The names in this folder, and no more than `most` of them.
    pub(crate) fn list(&self, most: usize) -> io::Result<Vec<Listed>> {
        let mut dir = match &self.handle {
            Some(handle) => Dir::openat(handle, ".", FOLDER, Mode::empty())?,
            None => Dir::open(&self.name, FOLDER.difference(OFlag::O_NOFOLLOW), Mode::empty())?,
        };
        let at = dir.as_fd().try_clone_to_owned()?;
        let mut listed = Vec::new();
        for entry in dir.iter() {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type().map(kind_of) {
                Some(kind) => kind,
                // What is gone by now does not count.
                None => match fstatat(&at, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
                    Ok(found) => SFlag::from_bits_truncate(found.st_mode & SFlag::S_IFMT.bits()),
                    Err(_) => continue,
                },
            };
            listed.push(Listed { name: name.to_owned(), kind });
            if listed.len() >= most {
                break;
            }
        }
        Ok(listed)
    }
}

fn kind_of(entry: Type) -> SFlag {
    match entry {
        Type::Fifo => SFlag::S_IFIFO,
        Type::CharacterDevice => SFlag::S_IFCHR,
        Type::Directory => SFlag::S_IFDIR,
        Type::BlockDevice => SFlag::S_IFBLK,
        Type::File => SFlag::S_IFREG,
        Type::Symlink => SFlag::S_IFLNK,
        Type::Socket => SFlag::S_IFSOCK,
    }
}

/// Opens what a path names below a handle, part by part, without following a link.
fn walk(from: BorrowedFd<'_>, path: &Path, last: OFlag) -> io::Result<Option<OwnedFd>> {
    let mut at = from.try_clone_to_owned()?;
    let mut parts = path.components().peekable();
    while let Some(part) = parts.next() {
        let flags = if parts.peek().is_some() { FOLDER } else { last };
        at = match openat(&at, part.as_os_str(), flags, Mode::empty()) {
            Ok(next) => next,
            Err(nix::Error::ENOENT) => return Ok(None),
            Err(nix::Error::ELOOP | nix::Error::ENOTDIR) => {
                return Err(io::Error::other("it is a symbolic link, or not what it should be"));
            }
            Err(error) => return Err(error.into()),
        };
    }
    Ok(Some(at))
}
