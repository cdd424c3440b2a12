//! The one way to replace a small file of Lathe's own: whole or not at all.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

/// The part of a replaced file that survives the loss of power once [`replace`] has returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durable {
    /// Nothing: the file is made again when it is missing.
    Nothing,
    /// The bytes, if the name survives. A caller that needs the name syncs the folder later, once for several files.
    Content,
    /// The bytes and the name.
    Name,
}

/// Replaces a file, or creates it. Readers find the old bytes or all of the new ones, and only its owner can read it.
/// A link of that name is replaced, not followed.
pub fn replace(path: &Path, bytes: &[u8], durable: Durable) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // tempfile makes it 0600, and removes it when it is dropped without being persisted.
    let mut file = tempfile::Builder::new().prefix(".tmp-").tempfile_in(folder)?;
    file.write_all(bytes)?;
    if durable != Durable::Nothing {
        file.as_file().sync_all()?;
    }
    file.persist(path).map_err(|error| error.error)?;
    match durable {
        Durable::Name => File::open(folder)?.sync_all(),
        Durable::Nothing | Durable::Content => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_replaced_file_is_whole_private_and_no_link() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("file"), folder.path().join("other"));
        std::fs::write(&other, "theirs").unwrap();
        symlink(&other, &path).unwrap();
        for (bytes, durable) in [("one", Durable::Nothing), ("two", Durable::Content), ("", Durable::Name)] {
            replace(&path, bytes.as_bytes(), durable).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), bytes);
            let found = path.symlink_metadata().unwrap();
            assert!(found.is_file());
            assert_eq!(found.permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "theirs");
    }

    #[test]
    fn what_cannot_be_written_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in-the-way");
        std::fs::create_dir(&path).unwrap();
        assert!(replace(&path, b"x", Durable::Name).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
