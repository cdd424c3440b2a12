//! The patch of a run: by git where there is one, from the recorded changes elsewhere.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lathe_agent::Patcher;
use lathe_changes::{State, TreeChange, net};
use lathe_edit::unified_diff;
use lathe_git::{GitError, Snapshots};
use lathe_protocol::{Boxed, Event, Fact, RunNo, SessionId};
use lathe_workspace::LocalProcesses;

use crate::archive::Archive;
use crate::archive::report::{below, lost_diff};
use crate::error::HostError;
use crate::outfile::{output_path, write_output};
use crate::place::{opened_in, same_folder};

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

impl Archive {
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
            let failed = |error: std::io::Error| {
                HostError::of_disk(&error, format!("{}: {error}", scratch.display()), HostError::Patch)
            };
            std::fs::create_dir_all(&scratch).map_err(failed)?;
            let names: Vec<u8> =
                all.iter().flat_map(|path| [path.as_os_str().as_bytes(), b"\0"].concat()).collect();
            std::fs::write(scratch.join(OUTPUTS), names).map_err(failed)?;
        }
        Ok(all)
    }

    /// Whether a commit of this name is in the repository around `folder`.
    pub async fn check_commit(&self, folder: &Path, name: &str) -> Result<(), HostError> {
        let scratch = self.home().baselines();
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
        self.recorded_patch(&events, &opened.workspace)
    }

    /// The recorded changes of the last run, in git's own form.
    fn recorded_patch(&self, events: &[Event], workspace: &str) -> Result<Vec<u8>, HostError> {
        let run = last_run(events);
        let of_run = events.iter().filter(|event| event.place.run == run);
        let changes: Vec<TreeChange> =
            of_run.flat_map(|event| event.fact.changes()).map(TreeChange::from).collect();
        let blobs = self.home().blobs()?;
        let mut patch = Vec::new();
        for wanted in net(&changes) {
            let path = below(workspace, &wanted.path.display().to_string()).to_owned();
            let side = |state: &Option<State>| -> Result<Option<(u32, Vec<u8>)>, HostError> {
                let Some(was) = state.as_ref().filter(|was| was.mode & KIND != FOLDER) else {
                    return Ok(None);
                };
                let content = blobs.get(&was.digest).ok().flatten();
                // A patch with something left out would take it away where it is applied.
                let content =
                    content.ok_or_else(|| HostError::Review(lost_diff(&path).trim_end().to_owned()))?;
                Ok(Some((git_mode(was.mode), content)))
            };
            patch.extend(git_diff(&path, side(&wanted.want)?, side(&wanted.now)?).into_bytes());
        }
        Ok(patch)
    }
}

/// The kind of a thing in its mode, and that of a folder and of a link.
const KIND: u32 = 0o170_000;
const FOLDER: u32 = 0o040_000;
const LINK: u32 = 0o120_000;

/// The mode as git has it: a link, a file, or a file that can be run.
fn git_mode(mode: u32) -> u32 {
    match mode {
        link if link & KIND == LINK => LINK,
        program if program & 0o100 != 0 => 0o100_755,
        _ => 0o100_644,
    }
}

/// One file of a patch, with the lines that say whether it is new, gone or of another mode.
fn git_diff(path: &str, before: Option<(u32, Vec<u8>)>, after: Option<(u32, Vec<u8>)>) -> String {
    let is_link = |side: &Option<(u32, Vec<u8>)>| side.as_ref().is_some_and(|(mode, _)| *mode == LINK);
    let both = before.is_some() && after.is_some();
    if both && is_link(&before) != is_link(&after) {
        // Git takes a link in the place of a file for two things.
        return format!("{}{}", git_diff(path, before, None), git_diff(path, None, after));
    }
    let mode = match (&before, &after) {
        (None, None) => return String::new(),
        (None, Some((mode, _))) => format!("new file mode {mode:06o}\n"),
        (Some((mode, _)), None) => format!("deleted file mode {mode:06o}\n"),
        (Some((old, was)), Some((new, is))) if old == new && was == is => return String::new(),
        (Some((old, _)), Some((new, _))) if old == new => String::new(),
        (Some((old, _)), Some((new, _))) => format!("old mode {old:06o}\nnew mode {new:06o}\n"),
    };
    let text = |side: &Option<(u32, Vec<u8>)>| side.as_ref().map(|(_, content)| content.clone());
    let (before, after) = (text(&before), text(&after));
    let hunks = match before == after {
        true => String::new(),
        false => unified_diff(before.as_deref(), after.as_deref(), path),
    };
    // An empty file has no lines to show, and needs none.
    let is_empty = [&before, &after].iter().all(|side| side.as_ref().is_none_or(Vec::is_empty));
    format!("diff --git a/{path} b/{path}\n{mode}{}", if is_empty { "" } else { hunks.as_str() })
}

fn last_run(events: &[Event]) -> RunNo {
    events.iter().map(|event| event.place.run).max().unwrap_or(RunNo(0))
}

/// What the last run is compared with.
fn baseline(events: &[Event]) -> Option<String> {
    let run = last_run(events);
    let mut taken =
        events.iter().filter(|event| event.place.run == run).filter_map(|event| match &event.fact {
            Fact::BaselineTaken(taken) => Some(taken.tree.clone()),
            _ => None,
        });
    taken.next_back().flatten()
}
