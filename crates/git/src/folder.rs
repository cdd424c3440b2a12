//! A folder of a repository: by name for the user of this machine, by its handle below roots.
//!
//! Below a handle no link is followed, so every file that is read or listed is in the folder that git is given, even
//! if its name leads elsewhere by now.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use lathe_workspace::{content_of, open_regular};
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

/// A folder that is read.
#[derive(Debug, Clone)]
pub(crate) struct RepositoryFolder {
    /// Its name, for errors.
    pub(crate) name: PathBuf,
    handle: Option<Arc<OwnedFd>>,
}

/// A name in a folder, with the kind of the file. A link is not followed.
pub(crate) struct FolderName {
    pub(crate) name: OsString,
    pub(crate) kind: SFlag,
}

impl RepositoryFolder {
    /// A folder by its name, through any links.
    pub(crate) fn named(name: &Path) -> Self {
        Self { name: name.to_owned(), handle: None }
    }

    /// A folder by its handle. Below roots it is opened from the root that contains it, without following a link.
    pub(crate) fn hold(name: &Path, boundary: &Boundary) -> Result<Self, GitError> {
        let wrong = |error: io::Error| GitError::refused(name, format!("cannot be opened: {error}"));
        let root = match boundary {
            Boundary::Anywhere => name,
            // A folder that was swapped for a link since it was checked lies below no root.
            Boundary::Roots(_) => boundary
                .root_of(name)
                .ok_or_else(|| GitError::refused(name, "is not below the folders that may be used"))?,
        };
        let top = File::options().read(true).custom_flags(OFlag::O_DIRECTORY.bits()).open(root);
        let mut handle = OwnedFd::from(top.map_err(wrong)?);
        for part in name.strip_prefix(root).into_iter().flat_map(Path::components) {
            if !matches!(part, Component::Normal(_)) {
                return Err(GitError::refused(name, "is not a plain path"));
            }
            let next = openat(&handle, part.as_os_str(), FOLDER, Mode::empty());
            handle = next.map_err(|error| match error {
                nix::Error::ELOOP | nix::Error::ENOTDIR => GitError::refused(name, "is a symbolic link"),
                error => wrong(error.into()),
            })?;
        }
        Ok(Self { name: name.to_owned(), handle: Some(Arc::new(handle)) })
    }

    /// A subfolder, opened in the same way. None if it does not exist.
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

    /// A path that leads to the folder of the handle, in this process and in one that inherits it. Without `/proc` it
    /// is the name.
    pub(crate) fn path(&self) -> PathBuf {
        self.handle_path().unwrap_or_else(|| self.name.clone())
    }

    pub(crate) fn handle_path(&self) -> Option<PathBuf> {
        let path = PathBuf::from(format!("/proc/self/fd/{}", self.handle.as_ref()?.as_raw_fd()));
        path.is_dir().then_some(path)
    }

    /// Tells whether both are the same folder at this moment.
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

    /// The content of a regular file of at most `most` bytes. None if it does not exist.
    pub(crate) fn read(&self, name: &str, most: u64) -> io::Result<Option<Vec<u8>>> {
        self.file(name)?.map(|file| content_of(file, most)).transpose()
    }

    /// A file, opened without blocking. None if it does not exist.
    pub(crate) fn file(&self, name: &str) -> io::Result<Option<File>> {
        match &self.handle {
            Some(handle) => Ok(walk(handle.as_fd(), Path::new(name), FILE)?.map(File::from)),
            None => match open_regular(&self.name.join(name)) {
                Ok(file) => Ok(Some(file)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            },
        }
    }

    /// The names in this folder, at most `most` of them.
    pub(crate) fn list(&self, most: usize) -> io::Result<Vec<FolderName>> {
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
                // A file that is gone by now is skipped.
                None => match fstatat(&at, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
                    Ok(found) => SFlag::from_bits_truncate(found.st_mode & SFlag::S_IFMT.bits()),
                    Err(_) => continue,
                },
            };
            listed.push(FolderName { name: name.to_owned(), kind });
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

/// Opens a path below a handle, part by part, without following a link.
fn walk(from: BorrowedFd<'_>, path: &Path, last: OFlag) -> io::Result<Option<OwnedFd>> {
    let mut at = from.try_clone_to_owned()?;
    let mut parts = path.components().peekable();
    while let Some(part) = parts.next() {
        if !matches!(part, Component::Normal(_)) {
            return Err(io::Error::other("its name leads elsewhere"));
        }
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
