//! Files of the user's own: those of Lathe's home, and those that the user's settings name.
//!
//! Their links are followed, because the user made them. The checks apply to the opened file: a pipe is not waited
//! for, a device is not read, and a huge file is refused.

use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use lathe_blobs::{Durable, replace};
use lathe_workspace::read_regular;

/// Largest size of such a file, in bytes.
const LARGEST: u64 = 16 << 20;

/// The text of a file. None if no file has this name.
pub fn own_text(path: &Path) -> io::Result<Option<String>> {
    let Some(bytes) = read_regular(path, LARGEST)? else { return Ok(None) };
    String::from_utf8(bytes)
        .map(Some)
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// Takes the one lock of this name, and waits for it. It is a lock of the kernel, so it holds between processes and
/// threads and disappears with a process that dies.
pub fn own_lock(path: &Path) -> io::Result<File> {
    let file = File::options().create(true).append(true).mode(0o600).open(path)?;
    file.lock()?;
    Ok(file)
}

/// Writes or replaces a file: whole or not at all, durable, and readable by its owner only.
pub fn own_write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(path, bytes, Durable::Name)
}

/// Makes a folder that only its owner can enter, with its missing parents, if it does not exist.
pub fn own_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).recursive(true).create(path)
}

/// The same for a file that must exist.
pub(crate) fn required_text(path: &Path) -> io::Result<String> {
    own_text(path)?.ok_or_else(|| io::Error::new(ErrorKind::NotFound, "there is no such file"))
}
