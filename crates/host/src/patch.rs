//! The patch of a run: by git where there is one, from the recorded changes elsewhere.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lathe_agent::Patcher;
use lathe_git::{GitError, Snapshots};
use lathe_protocol::{Boxed, Event, Fact, RunNo, SessionId};
use lathe_workspace::LocalProcesses;

use crate::error::HostError;
use crate::outfile::write_output;
use crate::place::{opened_in, same_folder};
use crate::report::run_report;
use crate::session::Host;

pub(crate) struct GitPatcher {
    pub(crate) folder: PathBuf,
    pub(crate) scratch: PathBuf,
}

impl GitPatcher {
    fn git(&self) -> Result<Snapshots, GitError> {
        Snapshots::find(Arc::new(LocalProcesses), &self.folder, self.scratch.clone())
    }
}

impl Patcher for GitPatcher {
    fn baseline(&self, base: Option<String>) -> Boxed<'_, Result<Option<String>, String>> {
        Box::pin(async move {
            let found = match self.git() {
                // A repository that cannot be used is none: the patch is made from the recorded changes.
                Err(
                    GitError::NoRepository
                    | GitError::NoProgram
                    | GitError::Refused { .. }
                    | GitError::Config { .. },
                ) => return Ok(None),
                Err(error) => Err(error),
                Ok(git) => match base {
                    Some(name) => git.commit(&name).await,
                    None => git.snapshot().await,
                },
            };
            found.map(Some).map_err(|error| error.to_string())
        })
    }

    fn changed(&self, tree: String) -> Boxed<'_, Result<Vec<String>, String>> {
        Box::pin(async move {
            let git = self.git().map_err(|error| error.to_string())?;
            git.changed(&tree).await.map_err(|error| error.to_string())
        })
    }
}

impl Host {
    pub(crate) fn patcher(&self, id: &SessionId, folder: &Path) -> GitPatcher {
        GitPatcher { folder: folder.to_owned(), scratch: self.scratch(id) }
    }

    /// Whether a commit of this name is in the repository around `folder`.
    pub async fn check_commit(&self, folder: &Path, name: &str) -> Result<(), HostError> {
        let scratch = self.home().path().join("baselines");
        let wrong =
            |error: GitError| HostError::BaseCommit { name: name.to_owned(), reason: error.to_string() };
        let git = Snapshots::find(Arc::new(LocalProcesses), folder, scratch).map_err(wrong)?;
        git.commit(name).await.map(|_| ()).map_err(wrong)
    }

    /// Writes the patch of a session's last run to a file. The inner error is the file's.
    pub async fn write_patch(&self, id: &SessionId, path: &Path) -> Result<std::io::Result<()>, HostError> {
        let patch = self.patch(id).await?;
        Ok(write_output(path, &self.workspace(id)?, &patch))
    }

    /// What the last run of a session changed, as a patch that `git apply` takes.
    pub async fn patch(&self, id: &SessionId) -> Result<Vec<u8>, HostError> {
        let events = self.events(id)?;
        let opened = opened_in(&events)?;
        if let Some(tree) = baseline(&events) {
            let git = self.patcher(id, &same_folder(&opened)?).git();
            let patch = match git {
                Ok(git) => git.patch(&tree).await,
                Err(error) => Err(error),
            };
            return patch.map_err(|error| HostError::Patch(error.to_string()));
        }
        let diffs = self.true_diffs(&run_report(&events, None), None)?;
        let texts = diffs.iter().map(|diff| format!("diff --git a/{0} b/{0}\n{1}", diff.path, diff.diff));
        Ok(texts.collect::<String>().into_bytes())
    }
}

/// What the last run is compared with.
fn baseline(events: &[Event]) -> Option<String> {
    let run = events.iter().map(|event| event.place.run).max().unwrap_or(RunNo(0));
    let mut taken =
        events.iter().filter(|event| event.place.run == run).filter_map(|event| match &event.fact {
            Fact::BaselineTaken(taken) => Some(taken.tree.clone()),
            _ => None,
        });
    taken.next_back().flatten()
}
