//! Files that a request names by their path.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use lathe_policy::{Depth, Region};
use lathe_workspace::Files as _;

use crate::error::{FileProblem, HostError};
use crate::session::Host;

impl Host {
    /// The text of an ordinary file below one of these roots; a relative path begins at the first. Places of keys and
    /// Lathe's own folder are refused, wherever they lie and whatever link leads there.
    pub fn named_text(&self, roots: &[PathBuf], path: &Path, most: u64) -> Result<String, HostError> {
        let first = roots.first().map(PathBuf::as_path).unwrap_or(Path::new("/"));
        let path = first.join(path);
        let refused =
            |problem: FileProblem, reason: &str| HostError::File { problem, reason: reason.to_owned() };
        let root = roots.iter().find(|root| path.starts_with(root)).ok_or_else(|| {
            refused(FileProblem::Forbidden, "it is outside of the folders that this server serves")
        })?;
        self.check_place(roots, &path)?;
        let inside = path.strip_prefix(root).unwrap_or(&path);
        let file = self.browse(root)?.files().open_local(inside)?;
        let about = file.metadata().map_err(|error| refused(FileProblem::Bad, &error.to_string()))?;
        if about.len() > most {
            return Err(refused(FileProblem::Bad, &format!("it may have {most} bytes")));
        }
        let mut text = String::new();
        let read = file.take(most).read_to_string(&mut text);
        read.map_err(|error| refused(FileProblem::Bad, &error.to_string()))?;
        Ok(text)
    }

    /// Refuses a path that names, or leads by links to, a place of keys or Lathe's own folder.
    /// A root that lies in such a place itself was chosen by the owner.
    pub fn check_place(&self, roots: &[PathBuf], path: &Path) -> Result<(), HostError> {
        let root = roots.iter().find(|root| path.starts_with(root)).or(roots.first());
        let gate = self.gate(root.map_or(Path::new("/nowhere"), PathBuf::as_path));
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let strictest = gate.region(path, Depth::One).max(gate.region(&real, Depth::One));
        let reason = match strictest {
            Region::Inside | Region::Public | Region::Elsewhere => return Ok(()),
            Region::Keys => "it lies where keys and passwords are kept",
            Region::LatheHome => "it lies in Lathe's own folder",
        };
        Err(HostError::File { problem: FileProblem::Forbidden, reason: reason.to_owned() })
    }
}
