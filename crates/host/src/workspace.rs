//! The one constructor of workspaces, for sessions and for everything else that works in a folder.
//!
//! No other place names the types of files and processes of this machine. A jail or a container is chosen here.

use std::path::Path;
use std::sync::Arc;

use lathe_workspace::{LocalFiles, LocalProcesses, Workspace};

use crate::error::HostError;
use crate::home::Home;

impl Home {
    /// The workspace of a folder of this machine, whose path has no links. Lathe's own folder cannot be entered in
    /// it.
    pub fn workspace(&self, root: &Path) -> Workspace {
        let files =
            LocalFiles::confined(root.to_owned(), self.path()).with_config_paths(lathe_git::configured_paths);
        Workspace::on_this_machine(files, Arc::new(LocalProcesses))
    }

    /// The same workspace, after changes that an earlier crash cut off were finished or undone.
    pub(crate) fn recovered(&self, workspace: Workspace) -> Result<Workspace, HostError> {
        let root = workspace.root().to_owned();
        workspace.recovering(self.recovery()).map_err(|error| HostError::Folder {
            path: root,
            reason: format!("what an earlier crash left cannot be repaired: {error}"),
        })
    }
}
