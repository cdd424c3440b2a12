//! The repositories that git reads when it works in a folder, found by git's own rules.
//!
//! A check of the effects of git must inspect the repository that git uses. So this search is neither looser nor
//! stricter than git: a `.git` that is not a repository is skipped, and anything that git could parse differently is
//! an error.

use std::path::{Path, PathBuf};

use lathe_workspace::read_regular;

use crate::GitError;
use crate::discover::{Boundary, FoundRepository, dot_git, in_folder};
use crate::index::commits_in;

/// The maximum number of inspected repositories.
const MOST: usize = 256;

/// The maximum size of an index.
const LONGEST_INDEX: u64 = 256 << 20;

/// The repositories around and inside a folder.
#[derive(Debug, Default)]
pub struct ReachableRepositories {
    /// The repository around the folder first, then those that an index lists as a commit: git reads them as well.
    pub repositories: Vec<FoundRepository>,
    /// Configuration files that git may read in one of them.
    pub settings: Vec<PathBuf>,
}

/// The repository around a folder, found as git finds it from there. None if there is none.
pub fn repository_around(folder: &Path) -> Result<Option<FoundRepository>, GitError> {
    let Ok(folder) = folder.canonicalize() else { return Ok(None) };
    for above in folder.ancestors() {
        if let Some(found) = dot_git(above, &Boundary::Anywhere)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Everything that git reaches from a folder. The error names the part that could not be determined.
pub fn reachable_repositories(folder: &Path) -> Result<ReachableRepositories, GitError> {
    let mut reached = ReachableRepositories::default();
    let Ok(folder) = folder.canonicalize() else { return Ok(reached) };
    let mut open = Vec::new();
    for above in folder.ancestors() {
        // In the folder of a repository git works without a work tree: `cd .git/worktrees/x`, `cd .git/modules/x`.
        if above.join("HEAD").symlink_metadata().is_ok() {
            match in_folder(above) {
                Ok(found) => open.push(found),
                Err(GitError::NoRepository) => {}
                Err(error) => return Err(error),
            }
        }
        if let Some(found) = dot_git(above, &Boundary::Anywhere)? {
            open.push(found);
            break;
        }
    }
    while let Some(found) = open.pop() {
        if reached.repositories.len() >= MOST {
            return Err(GitError::refused(found.git_dir, "is one repository more than are looked at"));
        }
        if reached.repositories.contains(&found) {
            continue;
        }
        reached.settings_of(&found)?;
        for index in indexes(&found.git_dir) {
            let unclear = || GitError::refused(&index, "cannot be read");
            let bytes = read_regular(&index, LONGEST_INDEX).map_err(|_| unclear())?.unwrap_or_default();
            for inner in commits_in(&bytes).ok_or_else(unclear)? {
                open.extend(dot_git(&found.top.join(inner), &Boundary::Anywhere)?);
            }
        }
        reached.repositories.push(found);
    }
    Ok(reached)
}

impl ReachableRepositories {
    fn settings_of(&mut self, found: &FoundRepository) -> Result<(), GitError> {
        let folders = [&found.git_dir, &found.common];
        let own = folders.into_iter().flat_map(|folder| settings_in(folder));
        self.settings.extend(own);
        self.modules(&found.common.join("modules"))
    }

    /// Adds the configuration files of submodules, even of those that are not checked out now.
    fn modules(&mut self, folder: &Path) -> Result<(), GitError> {
        let (mut open, mut looked) = (vec![folder.to_owned()], 0);
        while let Some(folder) = open.pop() {
            looked += 1;
            if looked > MOST {
                return Err(GitError::refused(folder, "is one folder of submodules more than are looked at"));
            }
            for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
                let settings = settings_in(&path);
                if settings.iter().any(|file| file.symlink_metadata().is_ok()) {
                    self.settings.extend(settings);
                    open.push(path.join("modules"));
                } else if path.is_dir() {
                    open.push(path);
                }
            }
        }
        Ok(())
    }
}

fn settings_in(git_dir: &Path) -> [PathBuf; 2] {
    ["config", "config.worktree"].map(|name| git_dir.join(name))
}

/// The index of a repository, and those that it may share entries with.
fn indexes(git_dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(git_dir).into_iter().flatten().flatten();
    let shared = |name: &std::ffi::OsStr| name.as_encoded_bytes().starts_with(b"sharedindex.");
    let shared = entries.filter(|entry| shared(&entry.file_name())).map(|entry| entry.path());
    std::iter::once(git_dir.join("index")).chain(shared).collect()
}
