//! The private temporary folder of a jail, which its processes see as `/tmp` and `/var/tmp`.
//!
//! It is removed with the jail. One that was left by a process that was killed is removed by the next jail: it is
//! locked as long as its owner lives.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, Permissions};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lathe_protocol::random_number;
use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::WorkspaceError;

const PREFIX: &str = "lathe-jail.";
/// A younger folder may not have been locked yet.
const SWEEP_AGE: Duration = Duration::from_secs(60);

pub(super) struct PrivateTemp {
    path: PathBuf,
    _lock: File,
}

impl PrivateTemp {
    pub(super) fn make() -> Result<Self, WorkspaceError> {
        let parent = std::env::temp_dir();
        let parent = parent.canonicalize().map_err(|error| WorkspaceError::io(&parent, error))?;
        sweep(&parent);
        let path = parent.join(format!("{PREFIX}{:016x}", random_number()));
        let failed = |error| WorkspaceError::io(&path, error);
        DirBuilder::new().mode(0o700).create(&path).map_err(failed)?;
        let lock = File::open(&path).map_err(failed)?;
        lock.lock().map_err(failed)?;
        for name in ["tmp", "var"] {
            DirBuilder::new().mode(0o700).create(path.join(name)).map_err(failed)?;
            // Programs expect the mode of a shared folder. The folder around it keeps other users out.
            fs::set_permissions(path.join(name), Permissions::from_mode(0o1777)).map_err(failed)?;
        }
        Ok(Self { path, _lock: lock })
    }

    /// The folder that is seen as `/tmp`.
    pub(super) fn tmp(&self) -> PathBuf {
        self.path.join("tmp")
    }

    /// The folder that is seen as `/var/tmp`.
    pub(super) fn var_tmp(&self) -> PathBuf {
        self.path.join("var")
    }
}

impl Drop for PrivateTemp {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

fn remove(path: &Path) {
    if fs::remove_dir_all(path).is_err() {
        // It has a folder without the right to list it.
        let opened = open(CWD, path.as_os_str());
        opened.into_iter().for_each(|folder| open_all(&folder));
        let _ = fs::remove_dir_all(path);
    }
}

fn open(parent: impl AsFd, name: &OsStr) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty()).ok()
}

/// Gives the owner all rights to a folder and the folders below it. It goes from handle to handle, so a folder that is
/// replaced by a link meanwhile leads nowhere.
fn open_all(folder: &OwnedFd) {
    let path = format!("/proc/self/fd/{}", folder.as_raw_fd());
    let _ = fs::set_permissions(&path, Permissions::from_mode(0o700));
    for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
        open(folder, &entry.file_name()).into_iter().for_each(|folder| open_all(&folder));
    }
}

fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes());
        let age = || entry.metadata().and_then(|data| data.modified()).map(|time| time.elapsed());
        if is_ours
            && matches!(age(), Ok(Ok(age)) if age > SWEEP_AGE)
            && File::open(entry.path()).is_ok_and(|folder| folder.try_lock().is_ok())
        {
            remove(&entry.path());
        }
    }
}
