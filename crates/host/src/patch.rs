//! The patch of a run: by git where there is one, from the recorded changes elsewhere.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lathe_agent::Patcher;
use lathe_git::{GitError, Snapshots};
use lathe_protocol::{Boxed, Event, Fact, RunNo, SessionId};
use lathe_workspace::LocalProcesses;

use crate::error::HostError;
use crate::outfile::{output_path, write_output};
use crate::place::{opened_in, same_folder};
use crate::report::run_report;
use crate::session::Host;

/// The list of files that a session's processes write for the user, each name ended by a zero byte.
const OUTPUTS: &str = "outputs";

fn kept_outputs(scratch: &Path) -> Vec<PathBuf> {
    let names = std::fs::read(scratch.join(OUTPUTS)).unwrap_or_default();
    let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect()
}

pub(crate) struct GitPatcher {
    pub(crate) folder: PathBuf,
    pub(crate) scratch: PathBuf,
    /// Lathe's own folder, which is nobody's work.
    home: PathBuf,
}

impl GitPatcher {
    fn git(&self) -> Result<Snapshots, GitError> {
        let mut without = kept_outputs(&self.scratch);
        without.push(self.home.canonicalize().unwrap_or_else(|_| self.home.clone()));
        let found = Snapshots::find(Arc::new(LocalProcesses), &self.folder, self.scratch.clone())?;
        Ok(found.without(&without))
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
                    None => match git.snapshot().await {
                        // The same for an index with a path out of the work tree.
                        Err(GitError::Refused { .. }) => return Ok(None),
                        made => made,
                    },
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
        GitPatcher {
            folder: folder.to_owned(),
            scratch: self.scratch(id),
            home: self.home().path().to_owned(),
        }
    }

    /// Writes down the files that this process writes for the user, and gives all that a session ever had: they are part of
    /// no patch and of no change.
    pub(crate) fn keep_outputs(
        &self,
        id: &SessionId,
        root: &Path,
        outputs: &[PathBuf],
    ) -> Result<Vec<PathBuf>, HostError> {
        let scratch = self.patcher(id, root).scratch;
        let mut all = kept_outputs(&scratch);
        let known = all.len();
        for path in outputs.iter().filter_map(|path| output_path(path, root).ok()) {
            if !all.contains(&path) {
                all.push(path);
            }
        }
        if all.len() > known {
            let failed = |error: std::io::Error| HostError::Patch(format!("{}: {error}", scratch.display()));
            std::fs::create_dir_all(&scratch).map_err(failed)?;
            let names: Vec<u8> =
                all.iter().flat_map(|path| [path.as_os_str().as_bytes(), b"\0"].concat()).collect();
            std::fs::write(scratch.join(OUTPUTS), names).map_err(failed)?;
        }
        Ok(all)
    }

    /// Whether a commit of this name is in the repository around `folder`.
    pub async fn check_commit(&self, folder: &Path, name: &str) -> Result<(), HostError> {
        let scratch = self.home().store().join("baselines");
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
