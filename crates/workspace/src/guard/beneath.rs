//! Opening paths beneath a folder that is held open.
//!
//! With `openat2` the kernel itself makes sure that no step leaves the folder. Without it (other systems, old
//! kernels, filters that forbid it) the path is walked name by name without following links. That is the same
//! guarantee for paths without links, and only such paths are used then.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, openat};
use nix::libc;
use nix::sys::stat::{FileStat, Mode, fstat, fstatat};

/// The methods of resolving a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resolution {
    /// By `openat2`.
    Kernel,
    /// Name by name.
    Stepwise,
}

impl Resolution {
    /// Selects the best available method.
    pub(super) fn probe() -> Self {
        match kernel(AT_FDCWD, Path::new("."), LOOK, Links::Refused) {
            // An unreadable working folder says nothing about the call.
            Err(error)
                if matches!(
                    error.raw_os_error().map(Errno::from_raw),
                    Some(Errno::ENOSYS | Errno::EPERM)
                ) =>
            {
                Self::Stepwise
            }
            Ok(_) | Err(_) => Self::Kernel,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    /// Links that stay beneath the folder are followed. Only the kernel can do that.
    Followed,
    /// The same, without leaving the mount of the folder.
    OnOneMount,
    Refused,
}

/// Flags for a descriptor that only refers to a file without opening it, on systems that have it.
#[cfg(target_os = "linux")]
pub(super) const LOOK: OFlag = OFlag::O_PATH;
#[cfg(not(target_os = "linux"))]
pub(super) const LOOK: OFlag = OFlag::O_RDONLY.union(OFlag::O_NONBLOCK);

/// The metadata of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileMeta {
    pub mode: u32,
    pub len: u64,
    pub uid: u32,
    pub gid: u32,
    pub device: u64,
    pub inode: u64,
    /// The number of its hard links.
    pub links: u64,
    /// The time of its last change of any kind: seconds and nanoseconds.
    pub changed: (i64, i64),
    /// The time of the last write to its content: seconds and nanoseconds.
    pub modified: (i64, i64),
}

impl FileMeta {
    /// The widths of these fields differ between systems.
    #[allow(clippy::unnecessary_cast)]
    fn from(stat: &FileStat) -> Self {
        Self {
            mode: stat.st_mode as u32,
            len: u64::try_from(stat.st_size).unwrap_or_default(),
            uid: stat.st_uid,
            gid: stat.st_gid,
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            links: stat.st_nlink as u64,
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
        }
    }

    pub(crate) fn of(file: impl AsFd) -> io::Result<Self> {
        Ok(Self::from(&fstat(file)?))
    }

    /// The metadata of one name in a folder, or of the link itself if it is one.
    pub(crate) fn at(folder: impl AsFd, name: &Path) -> io::Result<Self> {
        Ok(Self::from(&fstatat(folder, name, AtFlags::AT_SYMLINK_NOFOLLOW)?))
    }

    #[allow(clippy::unnecessary_cast)]
    fn is(&self, kind: libc::mode_t) -> bool {
        self.mode & libc::S_IFMT as u32 == kind as u32
    }

    /// Tells whether both are the same file or folder.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode) && self.is_folder() == other.is_folder()
    }

    pub(crate) fn is_file(&self) -> bool {
        self.is(libc::S_IFREG)
    }

    pub(crate) fn is_folder(&self) -> bool {
        self.is(libc::S_IFDIR)
    }

    pub(crate) fn is_link(&self) -> bool {
        self.is(libc::S_IFLNK)
    }
}

/// Opens a path beneath a folder. A forbidden link fails with `ELOOP`, a way out with `EXDEV`.
pub(super) fn open(
    how: Resolution,
    folder: BorrowedFd<'_>,
    path: &Path,
    flags: OFlag,
    links: Links,
) -> io::Result<OwnedFd> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    match (how, links) {
        (Resolution::Kernel, links) => kernel(folder, path, flags, links),
        (Resolution::Stepwise, Links::Refused) => stepwise(folder, path, flags),
        (Resolution::Stepwise, Links::Followed | Links::OnOneMount) => Err(Errno::EXDEV.into()),
    }
}

/// The metadata at a path without links, without opening the file.
pub(super) fn metadata(
    how: Resolution,
    folder: BorrowedFd<'_>,
    path: &Path,
    links: Links,
) -> io::Result<FileMeta> {
    if cfg!(target_os = "linux") {
        return FileMeta::of(open(how, folder, path, LOOK, links)?);
    }
    let Some(name) = path.file_name() else {
        return FileMeta::of(open(how, folder, path, LOOK, links)?);
    };
    let parent = path.parent().unwrap_or(Path::new(""));
    let parent = open(how, folder, parent, LOOK | OFlag::O_DIRECTORY, links)?;
    let found = FileMeta::at(&parent, Path::new(name))?;
    if found.is_link() { Err(Errno::ELOOP.into()) } else { Ok(found) }
}

#[cfg(target_os = "linux")]
fn kernel(folder: BorrowedFd<'_>, path: &Path, flags: OFlag, links: Links) -> io::Result<OwnedFd> {
    use nix::fcntl::{OpenHow, ResolveFlag, openat2};
    let beneath = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS;
    let resolve = match links {
        Links::Followed => beneath,
        Links::OnOneMount => beneath | ResolveFlag::RESOLVE_NO_XDEV,
        Links::Refused => beneath | ResolveFlag::RESOLVE_NO_SYMLINKS,
    };
    let how = OpenHow::new().flags(flags | OFlag::O_CLOEXEC).resolve(resolve);
    Ok(openat2(folder, path, how)?)
}

#[cfg(not(target_os = "linux"))]
fn kernel(_: BorrowedFd<'_>, _: &Path, _: OFlag, _: Links) -> io::Result<OwnedFd> {
    Err(Errno::ENOSYS.into())
}

fn stepwise(folder: BorrowedFd<'_>, path: &Path, flags: OFlag) -> io::Result<OwnedFd> {
    let mut at: Option<OwnedFd> = None;
    let mut parts = path.components().peekable();
    while let Some(part) = parts.next() {
        let name = match part {
            Component::Normal(name) => name,
            Component::CurDir => std::ffi::OsStr::new("."),
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(Errno::EXDEV.into());
            }
        };
        let here = at.as_ref().map_or(folder, |at| at.as_fd());
        let flags = if parts.peek().is_some() { LOOK | OFlag::O_DIRECTORY } else { flags };
        let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let opened = match openat(here, name, flags, Mode::empty()) {
            // A link is not a folder either.
            Err(Errno::ENOTDIR) if FileMeta::at(here, Path::new(name))?.is_link() => Err(Errno::ELOOP),
            other => other,
        }?;
        // With `O_PATH` the link itself is opened.
        if FileMeta::of(&opened)?.is_link() {
            return Err(Errno::ELOOP.into());
        }
        at = Some(opened);
    }
    at.ok_or_else(|| Errno::ENOENT.into())
}
