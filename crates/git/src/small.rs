//! Small files of a repository, read without waiting for a pipe and without reading more than is useful.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::libc;

/// The content of a regular file of at most `most` bytes. None: there is no file of this name.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    let opened = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    content(file, most).map(Some)
}

/// The content of an open file, if it is a regular one of at most `most` bytes.
pub(crate) fn content(file: File, most: u64) -> io::Result<Vec<u8>> {
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut content = Vec::new();
    file.take(most + 1).read_to_end(&mut content)?;
    if content.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than such a file can be"));
    }
    Ok(content)
}

/// The content without the ends of lines at its end.
pub(crate) fn without_newline(mut text: &[u8]) -> &[u8] {
    while let Some(shorter) = text.strip_suffix(b"\n").or_else(|| text.strip_suffix(b"\r")) {
        text = shorter;
    }
    text
}
