//! Putting kept things back where they were, beside what is there.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::ChangesError;
use crate::beneath::Root;

/// The result of a restore: what was put back, a path or a name of git's each, and what was not with the reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PutBack {
    pub done: Vec<String>,
    pub left: Vec<(String, String)>,
    /// The paths that were moved out of an entry, and to where.
    pub(crate) moved: Vec<(PathBuf, PathBuf)>,
    /// Paths that are not taken away again: repositories that were put together from what was there and what was kept, and files in
    /// the place of which a line had moved others.
    pub stays: Vec<String>,
}

/// Puts a tree back where it was, beside what is there.
pub(crate) fn put_tree(kept: &Path, path: &Path, back: &mut PutBack) {
    let Ok(ours) = fs::symlink_metadata(kept) else { return };
    let shown = || path.display().to_string();
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => match move_back(kept, path, &ours) {
            Ok(()) => {
                back.done.push(shown());
                back.moved.push((kept.to_owned(), path.to_owned()));
            }
            Err(error) => back.left.push((shown(), error.to_string())),
        },
        Err(error) => back.left.push((shown(), error.to_string())),
        Ok(theirs) if theirs.is_dir() && ours.is_dir() => {
            for entry in fs::read_dir(kept).into_iter().flatten().flatten() {
                put_tree(&entry.path(), &path.join(entry.file_name()), back);
            }
            let _ = fs::remove_dir(kept);
        }
        Ok(theirs) if (theirs.ino(), theirs.dev()) == (ours.ino(), ours.dev()) => {
            let _ = fs::remove_file(kept);
        }
        // A line moved one kept thing over another: that is where it was again.
        Ok(theirs) if !ours.is_dir() && !theirs.is_dir() && is_moved(&theirs, back) => {
            match move_back(kept, path, &ours) {
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

/// Tells whether something was put back to its own place and still has a second name.
fn is_moved(found: &fs::Metadata, back: &PutBack) -> bool {
    let is_same = |to: &Path| {
        to.symlink_metadata().is_ok_and(|one| (one.ino(), one.dev()) == (found.ino(), found.dev()))
    };
    back.moved.iter().any(|(_, to)| is_same(to))
}

/// The reason why a path is not the place it was when something was kept of it: that was written down without links.
pub(crate) fn behind_link(path: &Path) -> Option<String> {
    match Root::open_or_gone(path.parent()?) {
        Err(ChangesError::Root { source, .. }) if source.kind() == io::ErrorKind::InvalidInput => {
            Some(source.to_string())
        }
        Ok(_) | Err(_) => None,
    }
}

/// Moves something kept to its path, whose folder is made if it is gone, and never reached by a link.
pub(crate) fn move_back(kept: &Path, path: &Path, ours: &fs::Metadata) -> io::Result<()> {
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

/// Moves what is at a path into an entry. No link is followed on the way to it.
pub(crate) fn take_from(path: &Path, to: &Path) -> io::Result<()> {
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
