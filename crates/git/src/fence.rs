//! The files that a git process may use if the repository must lie below roots.
//!
//! Checks of names are not sufficient: git opens names again, and a link that is swapped in after the check leads it
//! out. So the kernel compares each file that git opens with the roots themselves ([`Fence`]). Git reads below the
//! roots, writes only in the repository and its work tree, and runs only programs of the system.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use lathe_workspace::{Fence, FenceRight};
use nix::fcntl::OFlag;

use crate::call::GitProgram;
use crate::config::user_folder;
use crate::folder::RepositoryFolder;

/// Folders of programs and libraries.
const SYSTEM: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store", "/gnu/store", "/run/current-system"];

/// Files that the C library reads before the program begins, and sources of randomness.
const OF_LIBRARIES: [&str; 5] =
    ["/etc/ld.so.cache", "/etc/localtime", "/dev/urandom", "/dev/random", "/sys/devices/system/cpu"];

/// The fence around a git process. `written` are folders of the repository, `scratch` is one of our own.
pub(crate) fn fence_around(
    roots: &[PathBuf],
    written: &[&RepositoryFolder],
    scratch: Option<&Path>,
    program: &GitProgram,
) -> io::Result<Fence> {
    let mut places: Vec<(File, FenceRight)> = Vec::new();
    // A path that does not exist cannot be used either.
    let mut add = |path: &Path, right| places.extend(open(path).ok().map(|place| (place, right)));
    for path in SYSTEM {
        add(Path::new(path), FenceRight::Run);
    }
    for path in OF_LIBRARIES {
        add(Path::new(path), FenceRight::Read);
    }
    add(Path::new("/dev/null"), FenceRight::Write);
    for path in program_files(&program.git) {
        add(&path, FenceRight::Run);
    }
    for name in ["ignore", "attributes"] {
        user_folder().iter().for_each(|folder| add(&folder.join(name), FenceRight::Read));
    }
    for root in roots {
        add(root, FenceRight::Read);
    }
    if let Some(scratch) = scratch {
        add(scratch, FenceRight::Write);
    }
    let written = written.iter().filter_map(|folder| folder.handle());
    let written = written.map(|handle| (handle.as_fd(), FenceRight::Write));
    let places = places.iter().map(|(place, right)| (place.as_fd(), *right));
    Fence::around(&places.chain(written).collect::<Vec<_>>())
}

/// The locations of the program and its parts, for a git that is not the system's.
fn program_files(git: &Path) -> Vec<PathBuf> {
    let real = git.canonicalize().unwrap_or_else(|_| git.to_owned());
    let prefix = real.parent().and_then(Path::parent);
    let parts = ["libexec/git-core", "lib", "share/git-core"];
    let parts = parts.iter().filter_map(|part| Some(prefix?.join(part)));
    parts.chain([git.to_owned(), real.clone()]).collect()
}

/// Opens a path only as a reference, not for reading.
fn open(path: &Path) -> io::Result<File> {
    File::options().read(true).custom_flags(PATH_ONLY.bits()).open(path)
}

#[cfg(target_os = "linux")]
const PATH_ONLY: OFlag = OFlag::O_PATH;
#[cfg(not(target_os = "linux"))]
const PATH_ONLY: OFlag = OFlag::O_NONBLOCK;
