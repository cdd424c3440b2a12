//! Regular files, opened without blocking: a pipe or a device in place of a file is an error.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::libc;

/// Opens a regular file for reading. The kind is checked on the open file, so a file swapped for a pipe does not
/// block.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = File::options().read(true).custom_flags(flags).open(path).map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound && is_dangling(path) {
            dangling_link_error()
        } else {
            error
        }
    })?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(not_regular()),
    }
}

/// Tells whether a path, or a folder on its way, is a link to a missing file. That differs from a path that was never
/// made: a file was meant to be there.
pub fn is_dangling(path: &Path) -> bool {
    let missing = path.ancestors().take_while(|place| place.metadata().is_err());
    missing.into_iter().any(|place| place.symlink_metadata().is_ok_and(|found| found.is_symlink()))
}

/// The error for such a link. No error kind exists for it.
pub fn dangling_link_error() -> io::Error {
    io::Error::other("it is a link that leads nowhere: put the file there, or remove the link")
}

/// The content of a regular file of at most `most` bytes. None if it does not exist.
pub fn read_regular(path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    match open_regular(path) {
        Ok(file) => content_of(file, most).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The content of an open file, if it is a regular one of at most `most` bytes.
pub fn content_of(file: File, most: u64) -> io::Result<Vec<u8>> {
    if !file.metadata()?.is_file() {
        return Err(not_regular());
    }
    let mut content = Vec::new();
    file.take(most + 1).read_to_end(&mut content)?;
    if content.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than such a file can be"));
    }
    Ok(content)
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipes_devices_and_large_files_are_errors_and_none_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::fs::write(folder.path().join("file"), "1234").unwrap();
        let read = |name: &str, most| read_regular(&folder.path().join(name), most);
        assert_eq!(read("file", 4).unwrap().unwrap(), b"1234");
        assert!(read("nothing", 4).unwrap().is_none());
        std::os::unix::fs::symlink("nothing", folder.path().join("link")).unwrap();
        std::os::unix::fs::symlink("nothing", folder.path().join("folder")).unwrap();
        for name in ["link", "folder/file"] {
            assert!(read(name, 4).unwrap_err().to_string().contains("leads nowhere"), "{name}");
        }
        for (name, most) in [("pipe", 9), ("/dev/zero", 9), ("", 9), ("file", 3)] {
            assert!(read(name, most).is_err(), "{name}");
        }
        assert!(open_regular(&pipe).is_err());
    }
}
