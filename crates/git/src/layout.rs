//! The files of a repository: nothing that git would wait for, and below roots nothing that leads elsewhere.
//!
//! A link in the place of `packed-refs` would have git print a foreign file in an error, one in the place of a folder of
//! objects would have it write there.

use std::fs::FileType;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use crate::{Boundary, GitError};

/// Entries of one repository that are looked at.
const MOST: usize = 200_000;

/// Folders in which every name is looked at, and below those with true every folder.
const FOLDERS: [(&str, bool); 8] = [
    ("", false),
    ("info", false),
    ("objects", false),
    ("objects/info", true),
    ("objects/pack", false),
    ("refs", true),
    ("logs", true),
    ("reftable", false),
];

/// Refuses a repository's folder with parts that are not what they should be. `shown` is its name in errors.
pub(crate) fn check(folder: &Path, shown: &Path, boundary: &Boundary) -> Result<(), GitError> {
    let mut left = MOST;
    for (name, deep) in FOLDERS {
        // What nobody swaps for a link of their own costs a look at every name, so only those of the first folders.
        if matches!(boundary, Boundary::Anywhere) && !["", "info", "objects/info"].contains(&name) {
            continue;
        }
        entries(&folder.join(name), &shown.join(name), deep, boundary, &mut left)?;
    }
    Ok(())
}

fn entries(
    folder: &Path,
    shown: &Path,
    deep: bool,
    boundary: &Boundary,
    left: &mut usize,
) -> Result<(), GitError> {
    let Ok(listed) = std::fs::read_dir(folder) else { return Ok(()) };
    for entry in listed.flatten() {
        *left = left.checked_sub(1).ok_or_else(|| GitError::refused(shown, "has too many entries"))?;
        let name = entry.file_name();
        let Ok(kind) = entry.file_type() else { continue };
        let seen = match kind.is_symlink() {
            true if matches!(boundary, Boundary::Roots(_)) => {
                return Err(GitError::refused(shown.join(name), "is a symbolic link"));
            }
            true => entry.path().metadata().map(|found| found.file_type()).ok(),
            false => Some(kind),
        };
        if seen.is_some_and(would_wait) {
            return Err(GitError::refused(shown.join(name), "is not a file or a folder"));
        }
        if deep && kind.is_dir() {
            entries(&entry.path(), &shown.join(name), deep, boundary, left)?;
        }
    }
    Ok(())
}

/// A socket of a monitor is never opened.
fn would_wait(kind: FileType) -> bool {
    kind.is_fifo() || kind.is_char_device() || kind.is_block_device()
}
