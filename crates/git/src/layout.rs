//! Check of a repository's files: nothing that git would wait for, and below roots nothing that leads elsewhere.
//!
//! With a link in place of `packed-refs` git prints a foreign file in an error, with one in place of an object folder
//! it writes there, and with one in place of an object it shows an object of a foreign repository.

use std::os::unix::fs::MetadataExt as _;

use nix::sys::stat::SFlag;

use crate::folder::RepositoryFolder;
use crate::{Boundary, GitError};

/// The maximum number of checked entries of one repository, including the folders that it borrows from.
pub(crate) const MOST: usize = 1_000_000;

/// Folders of a repository in which every name is checked; with true, also in all their subfolders.
const FOLDERS: [(&str, bool); 5] =
    [("", false), ("info", false), ("refs", true), ("logs", true), ("reftable", false)];

/// The same for an object folder.
const OF_OBJECTS: [(&str, bool); 3] = [("", false), ("info", true), ("pack", false)];

/// A check of the names in a repository.
#[derive(Debug)]
pub(crate) struct LayoutCheck<'a> {
    boundary: &'a Boundary,
    left: usize,
}

impl<'a> LayoutCheck<'a> {
    pub(crate) fn new(boundary: &'a Boundary) -> Self {
        Self { boundary, left: MOST }
    }

    pub(crate) fn boundary(&self) -> &'a Boundary {
        self.boundary
    }

    /// Refuses a repository's folder with parts of the wrong kind.
    pub(crate) fn repository(&mut self, folder: &RepositoryFolder) -> Result<(), GitError> {
        for (name, deep) in FOLDERS {
            // The user does not swap folders for links, and checking every name is slow: so without roots only the
            // names of the first folders are checked.
            if !self.is_below_roots() && !["", "info"].contains(&name) {
                continue;
            }
            self.folder(folder, name, deep)?;
        }
        Ok(())
    }

    /// Refuses an object folder with parts of the wrong kind.
    pub(crate) fn objects(&mut self, folder: &RepositoryFolder) -> Result<(), GitError> {
        if !self.is_below_roots() {
            return self.folder(folder, "info", true);
        }
        for (name, deep) in OF_OBJECTS {
            self.folder(folder, name, deep)?;
        }
        for first in 0..=u8::MAX {
            self.folder(folder, &format!("{first:02x}"), false)?;
        }
        Ok(())
    }

    fn is_below_roots(&self) -> bool {
        matches!(self.boundary, Boundary::Roots(_))
    }

    fn folder(&mut self, folder: &RepositoryFolder, name: &str, deep: bool) -> Result<(), GitError> {
        let found = if name.is_empty() { Some(folder.clone()) } else { folder.below(name)? };
        found.map_or(Ok(()), |found| self.entries(&found, deep))
    }

    fn entries(&mut self, folder: &RepositoryFolder, deep: bool) -> Result<(), GitError> {
        let listed = match folder.list(self.left + 1) {
            Ok(listed) => listed,
            // The user may have parts that only other users can list.
            Err(_) if !self.is_below_roots() => return Ok(()),
            Err(error) => return Err(GitError::refused(&folder.name, format!("cannot be listed: {error}"))),
        };
        let too_many = || GitError::refused(&folder.name, "has too many entries");
        self.left = self.left.checked_sub(listed.len()).ok_or_else(too_many)?;
        for entry in listed {
            let shown = folder.name.join(&entry.name);
            let seen = match entry.kind == SFlag::S_IFLNK {
                true if self.is_below_roots() => return Err(GitError::refused(shown, "is a symbolic link")),
                true => shown.metadata().map(|found| SFlag::from_bits_truncate(found.mode())).ok(),
                false => Some(entry.kind),
            };
            if seen.is_some_and(|kind| would_wait(kind & SFlag::S_IFMT)) {
                return Err(GitError::refused(shown, "is not a file or a folder"));
            }
            if deep
                && entry.kind == SFlag::S_IFDIR
                && let Some(inner) = folder.below(&entry.name)?
            {
                self.entries(&inner, deep)?;
            }
        }
        Ok(())
    }
}

/// Tells whether opening a file of this kind may block. A socket of a monitor is never opened.
pub(crate) fn would_wait(kind: SFlag) -> bool {
    [SFlag::S_IFIFO, SFlag::S_IFCHR, SFlag::S_IFBLK].contains(&kind)
}
