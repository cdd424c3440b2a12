//! Files that git writes, by the rule for all who give names: together they make no folder a repository.

use std::ffi::OsString;
use std::path::PathBuf;

use lathe_workspace::{WorkspaceError, landing, makes_repository};

use super::GitPlace;
use crate::browse::blocking;
use crate::error::HostError;

impl GitPlace {
    /// Has git write these files, while nobody else gives names: git would make a repository as anybody would.
    pub(super) async fn write_out(&self, named: &[PathBuf], specs: &[OsString]) -> Result<(), HostError> {
        let one = blocking(|| Ok(landing())).await?;
        self.check_layout(named)?;
        let done = self.run(&["checkout", "--quiet", "--no-recurse-submodules"], specs).await;
        drop(one);
        done.map(drop)
    }

    /// Refuses files that make a folder a repository, all of them together.
    pub(super) fn check_layout(&self, named: &[PathBuf]) -> Result<(), HostError> {
        let root = self.browser.root();
        let written: Vec<PathBuf> = named.iter().map(|plain| root.join(plain)).collect();
        match makes_repository(root, &written) {
            Some(path) => {
                let plain = path.strip_prefix(root).unwrap_or(path);
                Err(WorkspaceError::Protected(plain.to_owned()).into())
            }
            None => Ok(()),
        }
    }
}
