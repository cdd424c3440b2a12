//! Single acts on the disk, each on a name in an open folder, so that no path is resolved twice.

use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use lathe_protocol::Digest;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{FileStat, Mode, fstat, fstatat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchown, symlinkat, unlinkat};
use sha2::{Digest as _, Sha256};

use crate::beneath::Root;
use crate::change::State;
use crate::stat::Kind;

/// How the private names of a process begin.
fn prefix(pid: u32) -> String {
    format!(".lathe-restore-{pid}-")
}

/// Removes what a process left in a folder under its private names.
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

/// What is at a path. A special file counts as one without content.
pub(super) fn found_at(root: &Root, rel: &[u8]) -> io::Result<Option<State>> {
    let Some(stat) = root.lstat(rel)? else { return Ok(None) };
    let digest = match stat.kind() {
        Kind::Folder | Kind::Special => Digest::of(b""),
        Kind::Link => Digest::of(&root.read_link(rel)?),
        Kind::File => digest_of(root.open_file(rel)?.0)?,
    };
    Ok(Some(State { digest, mode: stat.mode }))
}

/// Whatever its size.
fn digest_of(mut file: File) -> io::Result<Digest> {
    let mut hasher = Sha256::new();
    let mut chunk = vec![0; 1 << 16];
    loop {
        match file.read(&mut chunk)? {
            0 => break,
            len => hasher.update(&chunk[..len]),
        }
    }
    let hex: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Digest::parse(&hex).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// When new content becomes durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sync {
    Now,
    /// With everything else, by [`Synced`].
    Together,
}

/// What will take the place of a name, under a name of its own until then. Dropped, it is gone.
pub(super) struct Prepared {
    pub folder: Rc<OwnedFd>,
    name: String,
    placed: bool,
}

impl Prepared {
    /// A file with this content and mode.
    pub fn file(
        folder: Rc<OwnedFd>,
        bytes: &[u8],
        mode: u32,
        owner: Option<FileStat>,
        sync: Sync,
    ) -> io::Result<Self> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let private = Mode::from_bits_truncate(0o600);
        let (prepared, file) =
            Self::under_new_name(folder, |folder, name| openat(folder, name, flags, private))?;
        let mut file = File::from(file);
        file.write_all(bytes)?;
        if let Some(owner) = owner {
            // Who is not root cannot give files away; a file of somebody else's then becomes ours.
            let _ = fchown(&file, Some(Uid::from_raw(owner.st_uid)), Some(Gid::from_raw(owner.st_gid)));
        }
        // After the owner: giving a file away takes its set-user-id bit.
        file.set_permissions(Permissions::from_mode(mode & 0o7777))?;
        if sync == Sync::Now {
            file.sync_all()?;
        }
        Ok(prepared)
    }

    pub fn link(folder: Rc<OwnedFd>, target: &[u8]) -> io::Result<Self> {
        let make = |folder: &OwnedFd, name: &str| symlinkat(OsStr::from_bytes(target), folder, name);
        let (prepared, ()) = Self::under_new_name(folder, make)?;
        Ok(prepared)
    }

    /// Gives it its name, in the place of what is there, or only if nothing is.
    pub fn place(mut self, name: &[u8], over: Over) -> io::Result<()> {
        let name = OsStr::from_bytes(name);
        match over {
            Over::Something => renameat(&self.folder, self.name.as_str(), &self.folder, name)?,
            Over::Nothing => rename_new(self.folder.as_fd(), self.name.as_str(), name)?,
        }
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
                Ok(made) => return Ok((Self { folder, name, placed: false }, made)),
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

/// What a new file may take the place of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    Something,
    Nothing,
}

/// Where the file system cannot promise it, the look that came right before has to do.
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

/// Changes the permissions of a file or folder, of exactly the one that was looked at, even if it may not be opened.
pub(super) fn chmod(folder: BorrowedFd<'_>, name: &[u8], mode: u32) -> io::Result<()> {
    let name = OsStr::from_bytes(name);
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd as _;
        let file = openat(folder, name, OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC, Mode::empty())?;
        match Kind::of(fstat(&file)?.st_mode) {
            Kind::File | Kind::Folder => {}
            Kind::Link | Kind::Special => return Err(io::ErrorKind::InvalidInput.into()),
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

pub(super) fn owner_at(folder: BorrowedFd<'_>, name: &[u8]) -> Option<FileStat> {
    fstatat(folder, OsStr::from_bytes(name), AtFlags::AT_SYMLINK_NOFOLLOW).ok()
}
