//! Single operations on the disk, each on a name in an open folder, so that no path is resolved twice.

use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io::{self, Seek as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lathe_protocol::Digest;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{Mode, fstat};
use nix::unistd::{UnlinkatFlags, linkat, symlinkat, unlinkat};

use crate::attributes::Attributes;
use crate::beneath::{Root, split};
use crate::change::PathState;
use crate::stat::{PathKind, Stat};
use crate::whole_files::{Whole, digest_of};

/// The prefix of a process's private names.
fn prefix(pid: u32) -> String {
    format!(".lathe-restore-{pid}-")
}

/// Removes the files that a process left in a folder under its private names.
pub(super) fn sweep(root: &Root, folder: &[u8], pid: u32) {
    let prefix = prefix(pid);
    let Ok(folder) = root.open_folder(folder) else { return };
    let Ok(names) = std::fs::read_dir(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&folder)))
    else {
        return;
    };
    for name in names.flatten().map(|entry| entry.file_name()) {
        let number = name.to_str().and_then(|name| name.strip_prefix(&prefix));
        if number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit())) {
            let _ = unlinkat(&folder, name.as_os_str(), UnlinkatFlags::NoRemoveDir);
        }
    }
}

/// The state of a path. A special file counts as one without content.
pub(super) fn found_at(root: &Root, rel: &[u8]) -> io::Result<Option<PathState>> {
    let Some(stat) = root.lstat(rel)? else { return Ok(None) };
    let digest = match stat.kind() {
        PathKind::Folder | PathKind::Special => Digest::of(b""),
        PathKind::Link => Digest::of(&root.read_link(rel)?),
        PathKind::File => digest_of(root.open_file(rel)?.0)?,
    };
    let attributes = attributes_at(root, rel, &stat).map(|attributes| attributes.digest());
    Ok(Some(PathState { attributes, ..PathState::new(digest, stat.mode) }))
}

/// Owner and extended attributes of a path.
pub(super) fn attributes_at(root: &Root, rel: &[u8], stat: &Stat) -> Option<Arc<Attributes>> {
    let (parent, name) = split(rel);
    let folder = root.open_folder(parent).ok()?;
    Attributes::read(folder.as_fd(), name, stat)
}

/// The moment at which new content becomes durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sync {
    Now,
    /// Together with everything else, by [`Synced`].
    Together,
}

/// A replacement for a name, under a private name until then. It is removed on drop.
pub(super) struct Prepared {
    pub folder: Rc<OwnedFd>,
    name: String,
    placed: bool,
    /// A description of the parts that could not be set.
    pub flaw: Option<String>,
}

impl Prepared {
    /// A file with this content, mode and attributes. Without `attributes`, it has those of any new file.
    pub fn file(
        folder: Rc<OwnedFd>,
        bytes: &[u8],
        mode: u32,
        attributes: Option<&Attributes>,
        sync: Sync,
    ) -> io::Result<Self> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let private = Mode::from_bits_truncate(0o600);
        let (mut prepared, file) =
            Self::under_new_name(folder, |folder, name| openat(folder, name, flags, private))?;
        let mut file = File::from(file);
        write_with_holes(&mut file, bytes)?;
        match attributes {
            Some(attributes) => prepared.give(attributes, Some(mode)),
            None => file.set_permissions(Permissions::from_mode(mode & 0o7777))?,
        }
        if sync == Sync::Now {
            file.sync_all()?;
        }
        Ok(prepared)
    }

    pub fn link(folder: Rc<OwnedFd>, target: &[u8], attributes: Option<&Attributes>) -> io::Result<Self> {
        let make = |folder: &OwnedFd, name: &str| symlinkat(OsStr::from_bytes(target), folder, name);
        let (mut prepared, ()) = Self::under_new_name(folder, make)?;
        if let Some(attributes) = attributes {
            prepared.give(attributes, None);
        }
        Ok(prepared)
    }

    /// A file that was kept whole. None if it is not kept any more.
    pub fn whole(
        folder: Rc<OwnedFd>,
        whole: &Whole,
        digest: &Digest,
        mode: u32,
        attributes: Option<&Attributes>,
    ) -> io::Result<Option<Self>> {
        let (mut prepared, is_there) =
            Self::under_new_name(folder, |folder, name| whole.link_into(digest, folder, name))?;
        if !is_there {
            prepared.placed = true;
            return Ok(None);
        }
        match attributes {
            Some(attributes) => prepared.give(attributes, Some(mode)),
            None => chmod(prepared.folder.as_fd(), prepared.name.as_bytes(), mode)?,
        }
        Ok(Some(prepared))
    }

    /// Another name of an existing file.
    pub fn name_of(folder: Rc<OwnedFd>, other: BorrowedFd<'_>, name: &[u8]) -> io::Result<Self> {
        let make = |folder: &OwnedFd, new: &str| {
            linkat(other, OsStr::from_bytes(name), folder, new, AtFlags::empty())
        };
        let (prepared, ()) = Self::under_new_name(folder, make)?;
        Ok(prepared)
    }

    /// Sets mode and attributes. The content counts more than an owner that only root can give: that failure is
    /// reported, and the rest is done.
    fn give(&mut self, attributes: &Attributes, mode: Option<u32>) {
        let name = self.name.as_bytes();
        if let Err(error) = attributes.put(self.folder.as_fd(), name, mode) {
            self.flaw = Some(error.to_string());
        }
    }

    /// Gives the replacement its name: in place of what is there, or only if nothing is there.
    pub fn place(mut self, name: &[u8], over: Over) -> io::Result<()> {
        let name = OsStr::from_bytes(name);
        match over {
            Over::Something => renameat(&self.folder, self.name.as_str(), &self.folder, name)?,
            Over::Nothing => rename_new(self.folder.as_fd(), self.name.as_str(), name)?,
        }
        // Two names of one file do not replace each other: then the private one still exists.
        let _ = unlinkat(&self.folder, self.name.as_str(), UnlinkatFlags::NoRemoveDir);
        self.placed = true;
        Ok(())
    }

    fn under_new_name<T>(
        folder: Rc<OwnedFd>,
        make: impl Fn(&OwnedFd, &str) -> Result<T, Errno>,
    ) -> io::Result<(Self, T)> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}{number}", prefix(std::process::id()));
            match make(&folder, &name) {
                Ok(made) => return Ok((Self { folder, name, placed: false, flaw: None }, made)),
                Err(Errno::EEXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        if !self.placed {
            let _ = unlinkat(&self.folder, self.name.as_str(), UnlinkatFlags::NoRemoveDir);
        }
    }
}

/// File systems that were synced, each once.
#[derive(Default)]
#[cfg(target_os = "linux")]
pub(super) struct Synced(Vec<nix::libc::dev_t>);

#[cfg(target_os = "linux")]
impl Synced {
    /// Makes everything on the file system of this folder durable.
    pub fn sync(&mut self, folder: &OwnedFd) -> io::Result<()> {
        let device = fstat(folder)?.st_dev;
        if !self.0.contains(&device) {
            nix::unistd::syncfs(folder)?;
            self.0.push(device);
        }
        Ok(())
    }
}

/// The obstacle that a new file may replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    Something,
    Nothing,
}

/// Renames without replacing. If the file system cannot guarantee that, the check right before has to suffice.
fn rename_new(folder: BorrowedFd<'_>, from: &str, to: &OsStr) -> Result<(), Errno> {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        use nix::fcntl::{RenameFlags, renameat2};
        match renameat2(folder, from, folder, to, RenameFlags::RENAME_NOREPLACE) {
            Err(Errno::EINVAL | Errno::ENOSYS) => {}
            renamed => return renamed,
        }
    }
    renameat(folder, from, folder, to)
}

/// Changes the permissions of exactly this file or folder, even if it cannot be opened.
pub(crate) fn chmod(folder: BorrowedFd<'_>, name: &[u8], mode: u32) -> io::Result<()> {
    let name = OsStr::from_bytes(name);
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd as _;
        let file = openat(folder, name, OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC, Mode::empty())?;
        match PathKind::of(fstat(&file)?.st_mode) {
            PathKind::File | PathKind::Folder => {}
            PathKind::Link | PathKind::Special => return Err(io::ErrorKind::InvalidInput.into()),
        }
        let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
        std::fs::set_permissions(path, Permissions::from_mode(mode & 0o7777))
    }
    #[cfg(not(target_os = "linux"))]
    {
        use nix::sys::stat::{FchmodatFlags, fchmodat};
        let mode = Mode::from_bits_truncate((mode & 0o7777) as nix::libc::mode_t);
        Ok(fchmodat(folder, name, mode, FchmodatFlags::NoFollowSymlink)?)
    }
}

/// Writes content without its long runs of zeros, which then use no disk space: a sparse file stays sparse.
fn write_with_holes(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    const BLOCK: usize = 4096;
    let is_hole = |block: &[u8]| block.len() == BLOCK && block.iter().all(|byte| *byte == 0);
    let mut at = 0;
    for run in bytes.chunks(BLOCK).collect::<Vec<_>>().chunk_by(|a, b| is_hole(a) == is_hole(b)) {
        let len = run.iter().map(|block| block.len()).sum::<usize>();
        if !run.first().is_some_and(|block| is_hole(block)) {
            file.seek(io::SeekFrom::Start(at as u64))?;
            file.write_all(bytes.get(at..at + len).unwrap_or_default())?;
        }
        at += len;
    }
    file.set_len(bytes.len() as u64)
}
