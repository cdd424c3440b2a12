//! Removal of paths that a tracker does not keep.

use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::beneath::Root;
use crate::quarantine::remove_tree;

/// Removes a path beneath a root, with everything in it. No link is followed.
pub fn remove_beneath(root: &Path, path: &Path) -> io::Result<()> {
    let outside = || io::Error::from(io::ErrorKind::InvalidInput);
    let below = path.strip_prefix(root).map_err(|_| outside())?;
    let (parent, name) = (below.parent().ok_or_else(outside)?, below.file_name().ok_or_else(outside)?);
    let root = Root::open(root).map_err(io::Error::other)?;
    let folder = root.open_folder(parent.as_os_str().as_bytes())?;
    let place = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name);
    remove_tree(&place)
}
