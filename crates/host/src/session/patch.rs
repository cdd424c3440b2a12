//! The patch of a run: made by git in a repository, otherwise from the recorded changes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lathe_agent::Patcher;
use lathe_changes::{PathState, TreeChange, net};
use lathe_edit::{raw_hunks, raw_name};
use lathe_git::{GitError, Snapshots};
use lathe_journal::SessionReader;
use lathe_protocol::{BoxFuture, Event, Fact, RunNo, SessionId};
use lathe_workspace::{LocalTree, Workspace};

use crate::archive::Archive;
use crate::archive::run_report::lost_diff;
use crate::error::HostError;
use crate::files::output::{output_path, write_output};
use crate::session::folder::{current_opening, same_folder};
use crate::session::secrets::redacted_content;

/// The list of files that a session's processes write for the user, each name ended by a zero byte.
const OUTPUTS: &str = "outputs";

fn recorded_outputs(scratch: &Path) -> Vec<PathBuf> {
    let names = std::fs::read(scratch.join(OUTPUTS)).unwrap_or_default();
    let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect()
}

pub(crate) struct GitPatcher {
    workspace: Workspace,
    pub(crate) scratch: PathBuf,
    /// Lathe's own folder, whose files are not part of any work.
    home: PathBuf,
}

impl GitPatcher {
    /// The snapshots of git, which reads real paths. For a tree that has none the patch is made from the recorded
    /// changes.
    fn git(&self) -> Result<Snapshots, GitError> {
        let folder = self.workspace.local().map(LocalTree::root).ok_or(GitError::NoRepository)?;
        let mut without = recorded_outputs(&self.scratch);
        without.push(self.home.canonicalize().unwrap_or_else(|_| self.home.clone()));
        let found =
            Snapshots::find(Arc::clone(self.workspace.own_processes()), folder, self.scratch.clone())?;
        Ok(found.without(&without))
    }
}

impl Patcher for GitPatcher {
    fn baseline(&self, base: Option<String>) -> BoxFuture<'_, Result<Option<String>, String>> {
        Box::pin(async move {
            let found = match self.git() {
                // A repository that cannot be used does not count: the patch is made from the recorded changes.
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
                        // The same for an index with a path outside of the work tree.
                        Err(GitError::Refused { .. }) => return Ok(None),
                        made => made,
                    },
                },
            };
            found.map(Some).map_err(|error| error.to_string())
        })
    }

    fn changed(&self, tree: String) -> BoxFuture<'_, Result<Vec<String>, String>> {
        Box::pin(async move {
            let git = self.git().map_err(|error| error.to_string())?;
            git.changed(&tree).await.map_err(|error| error.to_string())
        })
    }
}

impl Archive {
    pub(crate) fn patcher(&self, id: &SessionId, workspace: Workspace) -> GitPatcher {
        GitPatcher { workspace, scratch: self.scratch(id), home: self.home().path().to_owned() }
    }

    /// Records the files that this process writes for the user, and returns all that the session ever had: they are
    /// not part of any patch or change.
    pub(crate) fn record_outputs(
        &self,
        id: &SessionId,
        root: &Path,
        outputs: &[PathBuf],
    ) -> Result<Vec<PathBuf>, HostError> {
        let scratch = self.scratch(id);
        let mut all = recorded_outputs(&scratch);
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

    /// Checks that a commit of this name is in the repository around `folder`.
    pub async fn check_commit(&self, folder: &Path, name: &str) -> Result<(), HostError> {
        let scratch = self.home().baselines();
        let wrong =
            |error: GitError| HostError::BaseCommit { name: name.to_owned(), reason: error.to_string() };
        let processes = Arc::clone(self.home().workspace(folder).own_processes());
        let git = Snapshots::find(processes, folder, scratch).map_err(wrong)?;
        git.commit(name).await.map(|_| ()).map_err(wrong)
    }

    /// Writes the patch of a session's last run to a file. The inner error is the file's.
    pub async fn write_patch(&self, id: &SessionId, path: &Path) -> Result<std::io::Result<()>, HostError> {
        let patch = self.patch(id).await?;
        Ok(write_output(path, &self.workspace(id)?, &patch))
    }

    /// The changes of a session's last run, as a patch that `git apply` accepts.
    pub async fn patch(&self, id: &SessionId) -> Result<Vec<u8>, HostError> {
        let events = self.events(id)?;
        let opened = current_opening(&events)?;
        if let Some(tree) = baseline(&events) {
            let git = self.patcher(id, self.home().workspace(&same_folder(&opened)?)).git();
            let patch = match git {
                Ok(git) => git.patch(&tree).await,
                Err(error) => Err(error),
            };
            return patch.map_err(|error| HostError::Patch(error.to_string()));
        }
        self.recorded_patch(&events, &opened.workspace)
    }

    /// The recorded changes of the last run, in git's own format.
    fn recorded_patch(&self, events: &[Event], workspace: &str) -> Result<Vec<u8>, HostError> {
        let run = last_run(events);
        let of_run = events.iter().filter(|event| event.place.run == run);
        let changes: Vec<TreeChange> =
            of_run.flat_map(|event| event.fact.changes()).map(TreeChange::from).collect();
        let blobs = self.home().blobs()?;
        let mut patch = Vec::new();
        for wanted in net(&changes) {
            let path = relative(workspace, &wanted.path);
            let side = |state: &Option<PathState>| -> Result<Option<(u32, Vec<u8>)>, HostError> {
                let Some(was) = state.as_ref().filter(|was| was.mode & KIND != FOLDER) else {
                    return Ok(None);
                };
                let content = blobs.get(&was.digest).ok().flatten();
                // Leaving a file out of the patch would remove it where the patch is applied.
                let content = content
                    .ok_or_else(|| HostError::Review(lost_diff(&shown(&path)).trim_end().to_owned()))?;
                Ok(Some((git_mode(was.mode), content)))
            };
            patch.extend(git_diff(path.as_os_str().as_bytes(), side(&wanted.want)?, side(&wanted.now)?));
        }
        Ok(patch)
    }

    /// Changes of a session from its beginning to now, as a patch that `git apply -R` accepts.
    pub fn session_patch(&self, id: &SessionId) -> Result<SessionPatch, HostError> {
        self.repair_leftovers(id)?;
        let events = SessionReader::open(&self.home().sessions(), id, self.home().blobs()?)?.all()?;
        let workspace = current_opening(&events)?.workspace;
        let changes: Vec<TreeChange> =
            events.iter().flat_map(|event| event.fact.changes()).map(TreeChange::from).collect();
        let (screen, blobs) = (self.display_redactor(), self.home().blobs()?);
        let mut patch = SessionPatch::default();
        for wanted in net(&changes) {
            let path = relative(&workspace, &wanted.path);
            let name = screen.redact_text(&shown(&path)).into_owned();
            let is_hidden = name != shown(&path);
            let mut notes = Vec::new();
            let mut side = |state: &Option<PathState>| -> Option<(u32, Vec<u8>)> {
                let was = state.as_ref().filter(|was| was.mode & KIND != FOLDER)?;
                let Some(content) = blobs.get(&was.digest).ok().flatten() else {
                    notes.push(lost_diff(&name).trim_end().to_owned());
                    return None;
                };
                let clean = redacted_content(Some(&screen), Some(content.clone())).unwrap_or_default();
                if clean != content {
                    notes.push(format!("{name}: a secret in it is left out, so this part cannot be applied"));
                }
                Some((git_mode(was.mode), clean))
            };
            let (before, after) = (side(&wanted.want), side(&wanted.now));
            let is_lost = notes.iter().any(|note| note.starts_with(&format!("{name}: it changed")));
            let path = if is_hidden { name.as_bytes() } else { path.as_os_str().as_bytes() };
            if !is_lost {
                patch.bytes.extend(git_diff(path, before, after));
            }
            notes.dedup();
            patch.notes.extend(notes);
        }
        Ok(patch)
    }
}

/// A patch, with notes about what it does not contain.
#[derive(Debug, Default)]
pub struct SessionPatch {
    pub bytes: Vec<u8>,
    pub notes: Vec<String>,
}

/// A path as a patch names it.
fn relative(workspace: &str, path: &Path) -> PathBuf {
    path.strip_prefix(workspace).or_else(|_| path.strip_prefix("/")).unwrap_or(path).to_owned()
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// The bits of a mode that hold the type, and the types of a folder and of a link.
const KIND: u32 = 0o170_000;
const FOLDER: u32 = 0o040_000;
const LINK: u32 = 0o120_000;

/// The mode as git has it: a link, a file, or an executable file.
fn git_mode(mode: u32) -> u32 {
    match mode {
        link if link & KIND == LINK => LINK,
        program if program & 0o100 != 0 => 0o100_755,
        _ => 0o100_644,
    }
}

/// One file of a patch, with the lines that mark it as new, deleted or of another mode.
fn git_diff(path: &[u8], before: Option<(u32, Vec<u8>)>, after: Option<(u32, Vec<u8>)>) -> Vec<u8> {
    let is_link = |side: &Option<(u32, Vec<u8>)>| side.as_ref().is_some_and(|(mode, _)| *mode == LINK);
    let both = before.is_some() && after.is_some();
    if both && is_link(&before) != is_link(&after) {
        // Git treats a link in place of a file as two changes.
        return [git_diff(path, before, None), git_diff(path, None, after)].concat();
    }
    let mode = match (&before, &after) {
        (None, None) => return Vec::new(),
        (None, Some((mode, _))) => format!("new file mode {mode:06o}\n"),
        (Some((mode, _)), None) => format!("deleted file mode {mode:06o}\n"),
        (Some((old, was)), Some((new, is))) if old == new && was == is => return Vec::new(),
        (Some((old, _)), Some((new, _))) if old == new => String::new(),
        (Some((old, _)), Some((new, _))) => format!("old mode {old:06o}\nnew mode {new:06o}\n"),
    };
    let text = |side: &Option<(u32, Vec<u8>)>| side.as_ref().map(|(_, content)| content.clone());
    let (before, after) = (text(&before), text(&after));
    // An empty file has no lines to show, and needs none.
    let hunks = raw_hunks(before.as_deref(), after.as_deref(), path);
    let (a, b) = (raw_name("a", path), raw_name("b", path));
    [b"diff --git ", &*a, b" ", &*b, b"\n", mode.as_bytes(), &*hunks].concat()
}

fn last_run(events: &[Event]) -> RunNo {
    events.iter().map(|event| event.place.run).max().unwrap_or(RunNo(0))
}

/// The tree that the last run is compared with.
fn baseline(events: &[Event]) -> Option<String> {
    let run = last_run(events);
    let mut taken =
        events.iter().filter(|event| event.place.run == run).filter_map(|event| match &event.fact {
            Fact::BaselineTaken(taken) => Some(taken.tree.clone()),
            _ => None,
        });
    taken.next_back().flatten()
}
