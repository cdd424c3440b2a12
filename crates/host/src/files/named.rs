//! Files that a request names by their path.

use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use lathe_policy::{Depth, Region};
use lathe_workspace::{LocalTree, content_of, open_regular};

use crate::error::{FileProblem, HostError};
use crate::rules::Rules;

impl Rules {
    /// The text of an ordinary file below one of these roots; a relative path begins at the first. Places of keys and
    /// Lathe's own folder are refused, even below a root or through a link.
    pub fn named_text(&self, roots: &[PathBuf], path: &Path, most: u64) -> Result<String, HostError> {
        let first = roots.first().map(PathBuf::as_path).unwrap_or(Path::new("/"));
        let path = first.join(path);
        let root = roots.iter().find(|root| path.starts_with(root)).ok_or_else(|| {
            refused(FileProblem::Forbidden, "it is outside of the folders that this server serves")
        })?;
        let inside = path.strip_prefix(root).unwrap_or(&path);
        self.check_names(roots, &[&path])?;
        let file = LocalTree::at(root.clone(), Some(self.home().path())).open(inside)?;
        self.checked_text(roots, &path, file, most)
    }

    /// The text of an ordinary file anywhere, named by an admin. Places of keys and Lathe's own folder are refused,
    /// even through a link.
    pub fn named_config(&self, roots: &[PathBuf], path: &Path, most: u64) -> Result<String, HostError> {
        // A file that is refused by its name alone is not even opened, so the reply does not reveal whether it
        // exists.
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        self.check_names(roots, &[path, &real])?;
        self.checked_text(roots, path, open_regular(path).map_err(bad)?, most)
    }

    /// The text of an open file. Every check is made on the open file itself, because its name may lead elsewhere by
    /// now.
    fn checked_text(
        &self,
        roots: &[PathBuf],
        path: &Path,
        file: File,
        most: u64,
    ) -> Result<String, HostError> {
        let real = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).map_err(bad)?;
        self.check_names(roots, &[path, &real])?;
        let (open, there) = (file.metadata().map_err(bad)?, real.symlink_metadata().map_err(bad)?);
        // The path reported for a moved or removed file says nothing about it.
        if (open.dev(), open.ino()) != (there.dev(), there.ino()) {
            return Err(refused(FileProblem::Bad, "it was moved while it was opened: try again"));
        }
        let bytes = content_of(file, most).map_err(|error| match error.kind() {
            ErrorKind::FileTooLarge => refused(FileProblem::Bad, &format!("it may have {most} bytes")),
            _ => bad(error),
        })?;
        String::from_utf8(bytes).map_err(|_| refused(FileProblem::Bad, "it is not UTF-8 text"))
    }

    /// Refuses names of places of keys and of Lathe's own folder. A root that lies in such a place was chosen by the
    /// owner.
    fn check_names(&self, roots: &[PathBuf], names: &[&Path]) -> Result<(), HostError> {
        let named = names.iter().find_map(|name| roots.iter().find(|root| name.starts_with(root)));
        let root = named.or(roots.first()).map_or(Path::new("/nowhere"), PathBuf::as_path);
        let gate = self.gate(&self.home().workspace(root));
        let strictest = names.iter().map(|name| gate.region(name, Depth::One)).max();
        match strictest.unwrap_or(Region::Keys) {
            Region::Inside | Region::Public | Region::Elsewhere => Ok(()),
            Region::Keys => Err(refused(FileProblem::Forbidden, "it lies where keys and passwords are kept")),
            Region::LatheHome => Err(refused(FileProblem::Forbidden, "it lies in Lathe's own folder")),
        }
    }
}

fn refused(problem: FileProblem, reason: &str) -> HostError {
    HostError::File { problem, reason: reason.to_owned() }
}

fn bad(error: std::io::Error) -> HostError {
    refused(FileProblem::Bad, &error.to_string())
}
