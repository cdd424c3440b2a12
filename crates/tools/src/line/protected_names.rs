//! Protected names after a line: what it wrote to them is reverted, unless git put a content there that the user's
//! own commits have, and what it left for git to run in new repositories is set aside.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use lathe_blobs::Blobs;
use lathe_changes::restore::{self, RestoreStep};
use lathe_changes::{
    Compared, GitPaths, NotUndoableReason, ObjectsBefore, PathState, Repositories, SetAside, Tracker,
    TreeChange, remove_beneath,
};
use lathe_protocol::Digest;

/// The maximum number of entries of a new folder of caches that are searched for protected names.
const MOST: usize = 200_000;

/// Folders of installed packages. Nobody works in them, and packages bring settings of editors.
const PACKAGES: [&str; 5] = ["node_modules", "__pycache__", ".venv", ".tox", ".gradle"];

/// A protected path that a line wrote, and the reason if its former state could not be restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RevertedPath {
    pub(crate) path: PathBuf,
    pub(crate) failure: Option<String>,
}

/// The guard of a tree's protected names.
#[derive(Debug)]
pub(crate) struct ProtectedNames {
    /// The store with the content of changed paths.
    blobs: Blobs,
    root: PathBuf,
    /// Git's objects from before the first line.
    objects: Option<ObjectsBefore>,
    /// States that protected paths had before a line.
    former: HashSet<(PathBuf, Digest, u32)>,
}

/// The findings at protected names after a line.
#[derive(Debug, Default)]
pub(crate) struct ProtectedFindings {
    pub(crate) reverted: Vec<RevertedPath>,
    pub(crate) aside: Vec<SetAside>,
}

impl ProtectedNames {
    pub(crate) fn new(blobs: Blobs, root: PathBuf) -> Self {
        Self { blobs, root, objects: None, former: HashSet::new() }
    }

    /// Lists git's objects before the first line.
    pub(crate) fn note_objects(&mut self, repositories: &Repositories) {
        self.objects.get_or_insert_with(|| repositories.objects_now());
    }

    /// Compares new repositories with an inert one. `before` are the `.git` paths from before the line,
    /// and `unkept` are new paths that the tracker did not keep.
    pub(crate) fn look_at_new_repositories(
        &self,
        tracker: &mut Tracker,
        repositories: &Repositories,
        before: &[PathBuf],
        (compared, unkept): (&mut Compared, &[PathBuf]),
    ) -> Vec<SetAside> {
        let mut after = tracker.git_paths();
        after.extend(
            unkept
                .iter()
                .flat_map(|path| paths_in(path, |path| path.file_name().is_some_and(|name| name == ".git"))),
        );
        let paths = GitPaths { before, after: &after };
        let content = |state: &PathState| self.blobs.get(&state.digest).ok().flatten();
        let aside = repositories.set_new_programs_aside(&self.root, paths, &compared.changes, content);
        let is_tracked = |one: &SetAside| !one.path.iter().any(|part| part == ".git");
        if aside.iter().any(is_tracked)
            && let Ok(more) = tracker.compare()
        {
            compared.changes.extend(more.changes);
            compared.not_undoable.extend(more.not_undoable);
        }
        aside
    }

    /// Reverts what a line wrote to protected paths, and takes that out of its changes. `unkept` are new paths that
    /// the tracker did not keep. Git's own data has another guard: git writes it all the time.
    pub(crate) fn revert(&mut self, compared: &mut Compared, unkept: &[PathBuf]) -> Vec<RevertedPath> {
        let mut reverted = self.revert_changes(compared);
        for path in unkept {
            for name in self.protected_in(path) {
                let failure = remove_beneath(&self.root, &name).err().map(|error| error.to_string());
                reverted.push(RevertedPath { path: name, failure });
            }
        }
        let removed: HashSet<&PathBuf> = reverted.iter().map(|one| &one.path).collect();
        compared.not_undoable.retain(|lost| !removed.contains(&lost.path));
        let kept_out = compared.not_undoable.iter().filter(|lost| {
            lost.why != NotUndoableReason::Git
                && !unkept.contains(&lost.path)
                && self.is_protected(&lost.path)
        });
        let kept_out: Vec<RevertedPath> = kept_out
            .map(|lost| RevertedPath { path: lost.path.clone(), failure: Some(lost.why.to_string()) })
            .collect();
        reverted.extend(kept_out);
        reverted
    }

    fn is_protected(&self, path: &Path) -> bool {
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        let is_git = below.iter().any(|part| part.eq_ignore_ascii_case(".git"));
        !is_git && lathe_workspace::is_protected_in(&self.root, below)
    }

    /// The protected paths at and in a new path.
    fn protected_in(&self, path: &Path) -> Vec<PathBuf> {
        paths_in(path, |path| self.is_protected(path))
    }

    fn revert_changes(&mut self, compared: &mut Compared) -> Vec<RevertedPath> {
        let (meant, others) = std::mem::take(&mut compared.changes)
            .into_iter()
            .partition(|change: &TreeChange| self.is_protected(&change.path));
        let meant: Vec<TreeChange> = meant;
        compared.changes = others;
        let mut accepted: Vec<bool> = meant.iter().map(|change| self.is_accepted(change)).collect();
        for (at, change) in meant.iter().enumerate().filter(|(_, change)| is_folder(change)) {
            let below = || {
                (0..meant.len()).filter(|other| *other != at && meant[*other].path.starts_with(&change.path))
            };
            let files = || below().filter(|other| !is_folder(&meant[*other]));
            // A folder is there, or gone, because of the files in it.
            let is_by_files =
                change.before.is_some() != change.after.is_some() && files().any(|file| accepted[file]);
            let is_all = change.after.is_some() || files().all(|file| accepted[file]);
            accepted[at] = is_by_files && is_all;
        }
        let former = meant.iter().filter_map(|change| Some((change.path.clone(), change.state_before()?)));
        self.former.extend(former.map(|(path, state)| (path, state.digest, state.mode)));
        let (fine, wrong): (Vec<_>, Vec<_>) =
            meant.into_iter().zip(accepted).partition(|(_, accepted)| *accepted);
        compared.changes.extend(fine.into_iter().map(|(change, _)| change));
        let wrong: Vec<TreeChange> = wrong.into_iter().map(|(change, _)| change).collect();
        let (blobs, root) = (&self.blobs, &self.root);
        let restored = restore::plan(&lathe_changes::net(&wrong), blobs, root)
            .and_then(|plan| restore::apply(&plan, blobs, root));
        let failure = |path: &PathBuf| match &restored {
            Ok(outcome) => {
                let left = outcome.left.iter().find(|left| left.wanted.path == *path);
                left.map(|left| match &left.step {
                    RestoreStep::Failed { why } => why.clone(),
                    RestoreStep::MissingBlob { .. } => "its former content is not stored".to_owned(),
                    RestoreStep::FolderInUse => "the folder holds other files".to_owned(),
                    RestoreStep::Conflict { .. } => "it was changed meanwhile".to_owned(),
                    RestoreStep::Refused | RestoreStep::Restore | RestoreStep::AlreadyThere => {
                        "it cannot be restored".to_owned()
                    }
                })
            }
            Err(error) => Some(error.to_string()),
        };
        let (done, left): (Vec<_>, Vec<_>) = wrong
            .into_iter()
            .map(|change| {
                (RevertedPath { failure: failure(&change.path), path: change.path.clone() }, change)
            })
            .partition(|(path, _)| path.failure.is_none());
        // What is still there is a change of the line.
        compared.changes.extend(left.iter().map(|(_, change)| change.clone()));
        compared.changes.sort_by(|a, b| a.path.cmp(&b.path));
        done.into_iter().chain(left).map(|(path, _)| path).collect()
    }

    /// Tells whether a change needs no revert: the path has a state again that it had before, or git brought it from
    /// a commit of the user's.
    fn is_accepted(&self, change: &TreeChange) -> bool {
        let is_former = |state: &PathState| {
            self.former.contains(&(change.path.clone(), state.digest.clone(), state.mode)) && is_file(state)
        };
        let content =
            |state: &PathState| self.blobs.get(&state.digest).ok().flatten().filter(|_| is_file(state));
        let Some(objects) = &self.objects else {
            return change.state_after().is_some_and(|state| is_former(&state));
        };
        match (change.state_before(), change.state_after()) {
            // Only its mode was changed.
            (Some(before), Some(after))
                if before.digest == after.digest && is_file(&before) == is_file(&after) =>
            {
                is_former(&after)
            }
            (_, Some(after)) => {
                is_former(&after)
                    || content(&after).is_some_and(|content| objects.has_at(&change.path, &content))
            }
            (Some(before), None) => {
                content(&before).is_some_and(|content| objects.has_at(&change.path, &content))
                    && objects.lacks(&change.path)
            }
            (None, None) => true,
        }
    }
}

/// The nearest paths at and in a new path that are meant. No link is followed.
fn paths_in(path: &Path, is_meant: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let (mut open, mut found, mut left) = (vec![path.to_owned()], Vec::new(), MOST);
    while let Some(path) = open.pop() {
        if is_meant(&path) {
            found.push(path);
            continue;
        }
        let is_closed = |name: &std::ffi::OsStr| name == ".git" || PACKAGES.iter().any(|one| name == *one);
        let is_folder = path.symlink_metadata().is_ok_and(|found| found.is_dir());
        if !is_folder || path.file_name().is_some_and(is_closed) {
            continue;
        }
        for entry in std::fs::read_dir(&path).into_iter().flatten().flatten() {
            let Some(less) = left.checked_sub(1) else { return found };
            left = less;
            open.push(entry.path());
        }
    }
    found
}

const KIND: u32 = 0o170_000;

fn is_file(state: &PathState) -> bool {
    state.mode & KIND == 0o100_000
}

fn is_folder(change: &TreeChange) -> bool {
    change.mode & KIND == 0o040_000 && change.mode_before.is_none_or(|mode| mode & KIND == 0o040_000)
}
