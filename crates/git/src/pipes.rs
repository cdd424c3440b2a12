//! Pipes and devices in place of files that git reads: git would wait for a writer without end.

use std::fs::FileType;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use crate::GitError;

/// The maximum number of checked entries of a work tree. Later entries are not seen; the time limit of a call still
/// ends it.
const MOST: usize = 200_000;

/// Files that git reads in each folder of a work tree.
const NAMES: [&str; 4] = [".gitignore", ".gitattributes", ".gitmodules", ".mailmap"];

/// Files of a repository that git reads for every command.
const OF_REPOSITORY: [&str; 3] = [".git/info/exclude", ".git/info/attributes", ".git/index"];

/// Tells whether git would block: a file that it reads in this folder, or in one above, is a pipe or a device.
pub fn git_would_wait(folder: &Path) -> bool {
    let is_odd =
        |path: PathBuf| std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir());
    let has_odd = |folder: &Path| NAMES.iter().chain(&OF_REPOSITORY).any(|name| is_odd(folder.join(name)));
    folder.ancestors().any(has_odd)
}

/// Refuses a work tree with a pipe or a device in place of a file that git reads.
pub fn check_pipes(top: &Path) -> Result<(), GitError> {
    let mut open = vec![(top.to_owned(), false)];
    let mut left = MOST;
    while let Some((folder, in_repository)) = open.pop() {
        // A folder that cannot be listed is not read by git either.
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
            // The many objects of a repository are checked with its layout.
            if kind.is_dir() && !(in_repository && name == "objects") {
                open.push((entry.path(), in_repository || name == ".git"));
            }
        }
    }
    Ok(())
}

/// Tells whether opening a file of this kind may block. A socket of a monitor is never opened.
fn would_wait(kind: FileType) -> bool {
    kind.is_fifo() || kind.is_char_device() || kind.is_block_device()
}
