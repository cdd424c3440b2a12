//! Placing the embedded `ax` where it can be run.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::sys::statvfs::{FsFlags, statvfs};

use crate::ShellError;

const AX: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/ax"));

/// Places the embedded `ax` at `home/ax/<hash>/ax`, unless it is there already, and returns that path.
///
/// It is written under another name and renamed, so the file is complete for every reader. Call this once before any
/// process is spawned: a file that was written while other threads fork can be "busy" for a moment.
pub fn place_ax(home: &Path) -> Result<PathBuf, ShellError> {
    let folder = home.join("ax").join(env!("AX_HASH"));
    let path = folder.join("ax");
    let failed = |source| ShellError::Place { path: path.clone(), source };
    if !is_whole(&path) {
        DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(failed)?;
        write_whole(&folder, &path).map_err(failed)?;
    }
    if statvfs(&folder).is_ok_and(|system| system.flags().contains(FsFlags::ST_NOEXEC)) {
        return Err(ShellError::NoExec(folder));
    }
    Ok(path)
}

fn write_whole(folder: &Path, path: &Path) -> io::Result<()> {
    let mut file = tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempfile_in(folder)?;
    file.write_all(AX)?;
    // A folder at its path cannot be replaced by a file.
    if path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        fs::remove_dir_all(path)?;
    }
    file.persist(path)?;
    Ok(())
}

/// Tells whether the file has all of its content and is executable.
fn is_whole(path: &Path) -> bool {
    let may_run = |found: fs::Metadata| found.is_file() && found.permissions().mode() & 0o700 == 0o700;
    path.symlink_metadata().is_ok_and(may_run) && fs::read(path).ok().as_deref() == Some(AX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_placed_once_and_repaired_when_damaged() {
        let home = tempfile::tempdir().unwrap();
        let path = place_ax(home.path()).unwrap();
        assert_eq!(fs::read(&path).unwrap(), AX);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        let written = fs::metadata(&path).unwrap().modified().unwrap();
        assert_eq!(place_ax(home.path()).unwrap(), path);
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), written);
        fs::write(&path, b"half").unwrap();
        place_ax(home.path()).unwrap();
        assert_eq!(fs::read(&path).unwrap(), AX);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        // Without execute permission, a folder at its path, and a link to something else.
        let is_placed = || {
            place_ax(home.path()).unwrap();
            let found = fs::symlink_metadata(&path).unwrap();
            assert!(found.is_file() && found.permissions().mode() & 0o777 == 0o700);
            assert_eq!(fs::read(&path).unwrap(), AX);
        };
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        is_placed();
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        fs::write(path.join("inside"), "").unwrap();
        is_placed();
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/bin/true", &path).unwrap();
        is_placed();
    }
}
