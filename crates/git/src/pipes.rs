//! Pipes and devices in the place of files that git reads: it would wait for a writer for ever.

use std::fs::FileType;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use crate::GitError;

/// Entries of a work tree that are looked at. What lies behind them is not seen; the time of a call still ends it.
const MOST: usize = 200_000;

/// Files that git reads in each folder of a work tree.
const NAMES: [&str; 4] = [".gitignore", ".gitattributes", ".gitmodules", ".mailmap"];

/// Files of a repository that git reads whatever it is asked for.
const OF_REPOSITORY: [&str; 3] = [".git/info/exclude", ".git/info/attributes", ".git/index"];

/// Whether git would wait for a writer before it answers: a file that it reads in this folder, or in one above, is a pipe or a
/// device.
pub fn git_would_wait(folder: &Path) -> bool {
    let is_odd =
        |path: PathBuf| std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir());
    let has_odd = |folder: &Path| NAMES.iter().chain(&OF_REPOSITORY).any(|name| is_odd(folder.join(name)));
    folder.ancestors().any(has_odd)
}

/// Refuses a work tree in which git would wait: somewhere in it is a pipe or a device in the place of a file that git reads.
pub fn check_pipes(top: &Path) -> Result<(), GitError> {
    let mut open = vec![(top.to_owned(), false)];
    let mut left = MOST;
    while let Some((folder, in_repository)) = open.pop() {
        // What cannot be listed is not read by git either.
        let Ok(listed) = std::fs::read_dir(&folder) else { continue };
        for entry in listed.flatten() {
            left -= 1;
            if left == 0 {
                return Ok(());
            }
            let Ok(kind) = entry.file_type() else { continue };
            let name = entry.file_name();
            let is_read = in_repository || NAMES.iter().any(|read| name == *read);
            if would_wait(kind) && is_read {
                return Err(GitError::refused(
                    entry.path(),
                    "is a pipe or a device where git reads a file; remove it",
                ));
            }
            // The many objects of a repository are looked at with its layout.
            if kind.is_dir() && !(in_repository && name == "objects") {
                open.push((entry.path(), in_repository || name == ".git"));
            }
        }
    }
    Ok(())
}

/// A socket of a monitor is never opened.
fn would_wait(kind: FileType) -> bool {
    kind.is_fifo() || kind.is_char_device() || kind.is_block_device()
}
