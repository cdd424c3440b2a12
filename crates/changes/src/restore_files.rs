//! Restoring kept files to their paths without replacing what is there.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::ChangesError;
use crate::beneath::Root;

/// The result of a restore: the restored paths and git names, and those that were not restored with the reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestoreReport {
    pub done: Vec<String>,
    pub left: Vec<(String, String)>,
    /// The paths that were moved out of an entry, each with its destination.
    pub(crate) moved: Vec<(PathBuf, PathBuf)>,
    /// Paths that an undo of the restore does not remove: repositories that were assembled from the current and the
    /// kept files, and files that replaced others which a line had moved there.
    pub stays: Vec<String>,
}

/// Restores a tree to its path, and leaves everything that is there in place.
pub(crate) fn restore_tree(kept: &Path, path: &Path, back: &mut RestoreReport) {
    let Ok(ours) = fs::symlink_metadata(kept) else { return };
    let shown = || path.display().to_string();
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => match move_to_place(kept, path, &ours) {
            Ok(()) => {
                back.done.push(shown());
                back.moved.push((kept.to_owned(), path.to_owned()));
            }
            Err(error) => back.left.push((shown(), error.to_string())),
        },
        Err(error) => back.left.push((shown(), error.to_string())),
        Ok(theirs) if theirs.is_dir() && ours.is_dir() => {
            for entry in fs::read_dir(kept).into_iter().flatten().flatten() {
                restore_tree(&entry.path(), &path.join(entry.file_name()), back);
            }
            let _ = fs::remove_dir(kept);
        }
        Ok(theirs) if (theirs.ino(), theirs.dev()) == (ours.ino(), ours.dev()) => {
            let _ = fs::remove_file(kept);
        }
        // A line moved one kept file over another: this is its earlier path.
        Ok(theirs) if !ours.is_dir() && !theirs.is_dir() && is_moved(&theirs, back) => {
            match move_to_place(kept, path, &ours) {
                Ok(()) => {
                    back.done.push(shown());
                    back.stays.push(shown());
                }
                Err(error) => back.left.push((shown(), error.to_string())),
            }
        }
        Ok(_) => back.left.push((shown(), "something else is there now".to_owned())),
    }
}

/// Tells whether a file was restored to its own path and still has a second name.
fn is_moved(found: &fs::Metadata, back: &RestoreReport) -> bool {
    let is_same = |to: &Path| {
        to.symlink_metadata().is_ok_and(|one| (one.ino(), one.dev()) == (found.ino(), found.dev()))
    };
    back.moved.iter().any(|(_, to)| is_same(to))
}

/// The reason why a path no longer leads to its recorded location: paths are recorded without links.
pub(crate) fn redirected(path: &Path) -> Option<String> {
    match Root::open_or_gone(path.parent()?) {
        Err(ChangesError::Root { source, .. }) if source.kind() == io::ErrorKind::InvalidInput => {
            Some(source.to_string())
        }
        Ok(_) | Err(_) => None,
    }
}

/// Moves a kept file or folder to its path. The folder above is made if it is gone, and never reached through a link.
pub(crate) fn move_to_place(kept: &Path, path: &Path, ours: &fs::Metadata) -> io::Result<()> {
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let above = Root::open_or_make(above).map_err(|error| match error {
        ChangesError::Root { source, .. } => source,
        error => io::Error::other(error.to_string()),
    })?;
    let path = above.by_handle().join(name);
    match fs::rename(kept, &path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => copy_tree(kept, &path, ours),
        Err(error) => Err(error),
    }
}

fn copy_tree(from: &Path, to: &Path, found: &fs::Metadata) -> io::Result<()> {
    if found.is_dir() {
        fs::create_dir(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy_tree(&entry.path(), &to.join(entry.file_name()), &entry.metadata()?)?;
        }
        fs::set_permissions(to, found.permissions())?;
        fs::remove_dir(from)
    } else if found.file_type().is_symlink() {
        std::os::unix::fs::symlink(fs::read_link(from)?, to)?;
        fs::remove_file(from)
    } else {
        fs::copy(from, to)?;
        fs::remove_file(from)
    }
}

/// Moves the file or folder at a path into an entry. No link is followed on the way to it.
pub(crate) fn move_into_entry(path: &Path, to: &Path) -> io::Result<()> {
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let above = Root::open(above).map_err(|error| io::Error::other(error.to_string()))?;
    let path = above.by_handle().join(name);
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    match fs::rename(&path, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            copy_tree(&path, to, &path.symlink_metadata()?)
        }
        done => done,
    }
}
