//! Files that a line deletes and that nothing else keeps.
//!
//! Before a line every file that it may delete gets a second name here, so that its content outlives the first name.
//! That costs no copy, however large the file is. After the line the second names of files that are still there are
//! dropped. The rest can be restored, and is removed after some days. A hard link does not protect a file that is
//! overwritten in place; the copies of the tracker do, and their changes are part of an entry if no session has them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lathe_blobs::Blobs;
use lathe_protocol::Change;
use serde::{Deserialize, Serialize};

use crate::anypath;
use crate::health;
use crate::lost_parts;
use crate::refs::{self, KeptRef, RefNames};
use crate::repository::{self, BrokenRepository, Repositories};
use crate::restore::{self, RestoreStep};
use crate::restore_files::{RestoreReport, redirected, restore_tree};
use crate::unfinished::{self, BegunNote, RepositoryPath, TakenNote, WatchedRepositories};
use crate::{ChangesError, TreeChange, net};

pub(crate) const ENTRY: &str = "entry.json";

/// The maximum number of files kept for one line, and the maximum number of bytes copied if a second name is not
/// possible.
const MOST_FILES: u64 = 500_000;
const MOST_COPIED: u64 = 2 << 30;

/// The folder of all entries.
#[derive(Debug, Clone)]
pub struct Quarantine {
    pub(crate) folder: PathBuf,
}

/// The losses of one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantineEntry {
    pub id: String,
    /// Seconds since 1970.
    pub at: u64,
    pub line: String,
    /// The working folder.
    #[serde(with = "anypath::one")]
    pub folder: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    pub call: String,
    /// The original path of each tree. The tree itself lies in the entry under its number.
    #[serde(default, with = "anypath::many")]
    pub trees: Vec<PathBuf>,
    pub files: u64,
    pub bytes: u64,
    /// The other changes of the line, if no session has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refs: Vec<KeptRef>,
    /// Repositories that the line broke, complete as they were before it. Each lies in the entry under its number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repositories: Vec<KeptRepository>,
    /// The acts of the session that restored the entry and undid that, in turn. Each is named by the last event
    /// before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acts: Vec<u64>,
}

/// A repository that a line broke.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptRepository {
    #[serde(with = "anypath::one")]
    pub path: PathBuf,
    /// A description of the damage.
    pub why: String,
    /// Files that the line changed, by their path in the repository, each with a mark that tells it from any other.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left: BTreeMap<String, String>,
}

/// The origin of a line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LineOrigin {
    pub line: String,
    #[serde(with = "anypath::one")]
    pub folder: PathBuf,
    pub session: Option<String>,
    pub call: String,
}

/// A path that could not be kept, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotKept {
    pub path: PathBuf,
    pub why: String,
}

/// The entry of a line, before and while the line runs.
#[derive(Debug)]
pub struct OpenEntry {
    folder: PathBuf,
    id: String,
    trees: Vec<PathBuf>,
    files: u64,
    bytes: u64,
    copied: u64,
    names: Option<(PathBuf, RefNames)>,
    repositories: Vec<KeptRepository>,
    /// True if only files that are gone stay in the entry, and files that were replaced do not.
    only_gone: bool,
    watched: WatchedRepositories,
    /// The note about this entry, locked while the line runs.
    begun: Option<fs::File>,
}

impl Quarantine {
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Creates the entry of one line.
    pub fn begin(&self) -> io::Result<OpenEntry> {
        fs::DirBuilder::new().mode(0o700).recursive(true).create(&self.folder)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let id = format!("{}-{:05}", now.as_secs(), std::process::id() % 100_000);
        // Two lines may begin in one second.
        let ids = std::iter::once(id.clone()).chain((1..100).map(|n| format!("{id}-{n}")));
        for id in ids {
            let folder = self.folder.join(&id);
            match fs::DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => {
                    return Ok(OpenEntry::new(folder, id));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// The copies of repositories in this quarantine.
    pub fn repositories(&self) -> Repositories {
        Repositories::new(self.folder.join(repository::FOLDER))
    }

    /// All entries, the oldest first. Entries that a killed process left unfinished are not listed.
    pub fn entries(&self) -> Vec<QuarantineEntry> {
        let folders = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let read = |folder: PathBuf| -> Option<QuarantineEntry> {
            serde_json::from_slice(&fs::read(folder.join(ENTRY)).ok()?).ok()
        };
        let mut entries: Vec<QuarantineEntry> = folders.filter_map(|entry| read(entry.path())).collect();
        entries.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
        entries
    }

    /// The lost paths that an entry holds: files, and whole folders.
    pub fn missing_paths(&self, kept: &QuarantineEntry) -> Vec<PathBuf> {
        let mut held: Vec<PathBuf> = kept.repositories.iter().map(|one| one.path.clone()).collect();
        held.extend(self.slots(kept).into_iter().map(|(_, path)| path));
        held.sort();
        held.dedup();
        held
    }

    /// The location of each kept thing in an entry, and its original path: repositories that are gone as a whole,
    /// files and folders.
    pub(crate) fn slots(&self, kept: &QuarantineEntry) -> Vec<(PathBuf, PathBuf)> {
        let copy = |at: usize| self.folder.join(&kept.id).join(repository_name(at));
        let repositories = kept.repositories.iter().enumerate();
        let whole = repositories.filter(|(at, one)| copy(*at).exists() && !one.path.exists());
        let mut places: Vec<_> = whole.map(|(at, one)| (copy(at), one.path.clone())).collect();
        let mut open: Vec<(PathBuf, PathBuf)> =
            kept.trees.iter().enumerate().map(|(at, path)| (self.tree(kept, at), path.clone())).collect();
        while let Some((ours, path)) = open.pop() {
            let Ok(found) = fs::symlink_metadata(&ours) else { continue };
            if found.is_dir() && path.is_dir() {
                let inside = fs::read_dir(&ours).into_iter().flatten().flatten();
                open.extend(inside.map(|entry| (entry.path(), path.join(entry.file_name()))));
            } else {
                places.push((ours, path));
            }
        }
        places
    }

    /// Restores everything whose path is free. An entry that is restored completely is removed.
    pub fn restore(&self, kept: &QuarantineEntry, blobs: &Blobs) -> Result<RestoreReport, ChangesError> {
        let back = self.restore_keeping(kept, blobs)?;
        if back.left.is_empty() {
            self.remove(kept).map_err(|error| ChangesError::io("remove", &self.folder, error))?;
        }
        Ok(back)
    }

    /// Like [`restore`](Self::restore), but the entry stays.
    pub(crate) fn restore_keeping(
        &self,
        kept: &QuarantineEntry,
        blobs: &Blobs,
    ) -> Result<RestoreReport, ChangesError> {
        let mut back = RestoreReport::default();
        // Repositories come first, because git itself restores its names.
        for (at, one) in kept.repositories.iter().enumerate() {
            let copy = self.folder.join(&kept.id).join(repository_name(at));
            if let Some(why) = redirected(&one.path) {
                back.left.push((one.path.display().to_string(), why));
                continue;
            }
            let whole = one.path.symlink_metadata().is_err();
            if one.path.is_dir() && health::is_other(&one.path, &copy) {
                self.set_aside(&one.path, kept);
            }
            let before = back.done.len();
            repository::restore_repository(&copy, &one.path, &one.left, &mut back);
            if whole && back.done.len() > before && !copy.exists() {
                back.moved.push((copy, one.path.clone()));
            } else if back.done.len() > before {
                back.stays.push(one.path.display().to_string());
            }
        }
        // Paths that are gone come first: a part of one may lie at the path of another.
        let (there, gone): (Vec<_>, Vec<_>) =
            kept.trees.iter().enumerate().partition(|(_, path)| path.symlink_metadata().is_ok());
        for (at, path) in gone.into_iter().chain(there) {
            match redirected(path) {
                Some(why) => back.left.push((path.display().to_string(), why)),
                None => restore_tree(&self.tree(kept, at), path, &mut back),
            }
        }
        if !kept.changes.is_empty() {
            let changes: Vec<TreeChange> = kept.changes.iter().map(TreeChange::from).collect();
            let plan = restore::plan(&net(&changes), blobs, &kept.folder)?;
            let applied = restore::apply(&plan, blobs, &kept.folder)?;
            let is_left = |path: &Path| applied.left.iter().any(|left| left.wanted.path == path);
            for planned in &plan {
                let path = planned.wanted.path.display().to_string();
                match &planned.step {
                    RestoreStep::AlreadyThere => {}
                    RestoreStep::Restore if !is_left(&planned.wanted.path) => back.done.push(path),
                    RestoreStep::Restore | RestoreStep::Conflict { .. } | RestoreStep::FolderInUse => {
                        back.left.push((path, "somebody changed it meanwhile".to_owned()));
                    }
                    RestoreStep::MissingBlob { .. } => {
                        back.left.push((path, "its content is no longer stored".to_owned()));
                    }
                    RestoreStep::Refused => {
                        back.left.push((path, "it is not a path that is put back".to_owned()))
                    }
                    RestoreStep::Failed { why } => back.left.push((path, why.clone())),
                }
            }
        }
        let (done, left) = refs::restore(&kept.folder, &kept.refs);
        back.done.extend(done);
        back.left.extend(left);
        Ok(back)
    }

    /// Removes an entry.
    pub fn remove(&self, kept: &QuarantineEntry) -> io::Result<()> {
        refs::unpin_all(kept);
        remove_tree(&self.folder.join(&kept.id))
    }

    /// Finds entries, and leftovers of killed processes, that are older than `older`. With `really` they are removed.
    /// Returns their number and size in bytes.
    pub fn collect(&self, older: Duration, really: bool) -> (u64, u64) {
        let limit = SystemTime::now().checked_sub(older).unwrap_or(UNIX_EPOCH);
        let (mut count, mut bytes) = (0, 0);
        let entries = self.entries();
        count += repository::collect(&self.folder.join(repository::FOLDER), limit, really);
        for folder in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let old = folder.metadata().and_then(|found| found.modified()).is_ok_and(|at| at < limit);
            if !old || folder.file_name() == repository::FOLDER {
                continue;
            }
            let id = folder.file_name();
            let known = entries.iter().find(|kept| *kept.id == *id);
            count += 1;
            bytes += known.map_or(0, |kept| kept.bytes);
            if really {
                let _ = known.map_or_else(|| remove_tree(&folder.path()), |kept| self.remove(kept));
            }
        }
        (count, bytes)
    }

    /// Makes room for a repository whose path another one has taken. The other one is kept as an entry of its own.
    fn set_aside(&self, path: &Path, kept: &QuarantineEntry) {
        let Ok(mut keeping) = self.begin() else { return };
        if fs::rename(path, keeping.folder.join("0")).is_err() {
            return keeping.forget();
        }
        keeping.trees.push(path.to_owned());
        let line = format!("the repository that was there when {} was put back", kept.id);
        let note =
            LineOrigin { line, folder: kept.folder.clone(), session: None, call: "restore".to_owned() };
        let back = keeping.folder.join("0");
        if keeping.finish(note, Vec::new()).is_err() {
            let _ = fs::rename(back, path);
        }
    }

    fn tree(&self, kept: &QuarantineEntry, at: usize) -> PathBuf {
        self.folder.join(&kept.id).join(at.to_string())
    }
}

impl OpenEntry {
    fn new(folder: PathBuf, id: String) -> Self {
        Self {
            folder,
            id,
            trees: Vec::new(),
            files: 0,
            bytes: 0,
            copied: 0,
            names: None,
            repositories: Vec::new(),
            only_gone: false,
            watched: WatchedRepositories::default(),
            begun: None,
        }
    }

    /// The entry as a process that is gone left it.
    pub(crate) fn recovered(folder: PathBuf, id: String, begun: BegunNote, taken: TakenNote) -> Self {
        let BegunNote { trees, only_gone, names, watched, .. } = begun;
        let names = names.map(|(folder, names)| (folder.0, names));
        let repositories = taken.repositories;
        Self { trees, only_gone, names, watched, repositories, ..Self::new(folder, id) }
    }

    /// Sets the repositories of which there are copies while the line runs. With `programs`, what the line leaves for
    /// git to run is set aside.
    pub fn watch(&mut self, watched: WatchedRepositories, programs: bool) {
        self.watched = WatchedRepositories { programs, ..watched };
    }

    /// Records what is kept, so that it is found after the death of this process. Only then the line may run.
    /// `scratch` names the copies of the tracker, if no session has them.
    pub fn begin(&mut self, note: &LineOrigin, scratch: Option<String>) -> io::Result<()> {
        let begun = BegunNote {
            note: note.clone(),
            trees: self.trees.clone(),
            only_gone: self.only_gone,
            names: self.names.clone().map(|(folder, names)| (RepositoryPath(folder), names)),
            scratch,
            watched: self.watched.clone(),
        };
        self.begun = Some(unfinished::write(&self.folder, &begun)?);
        Ok(())
    }

    /// Records that the repositories were settled after the death of the process.
    pub(crate) fn mark_settled(&self) {
        self.write_taken(true);
    }

    fn write_taken(&self, settled: bool) {
        let repositories = self.repositories.clone();
        let _ = unfinished::write_taken(&self.folder, &TakenNote { repositories, settled });
    }

    /// Keeps a file, or a folder with its content. A missing path needs no keeping.
    pub fn keep(&mut self, path: &Path) -> Result<(), NotKept> {
        let not = |why: String| NotKept { path: path.to_owned(), why };
        let found = match fs::symlink_metadata(path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(not(error.to_string())),
        };
        let to = self.folder.join(self.trees.len().to_string());
        self.trees.push(path.to_owned());
        self.take(path, &to, &found).map_err(not)
    }

    /// Gives a file a second name, if that costs no copy.
    pub fn link(&mut self, path: &Path) {
        let to = self.folder.join(self.trees.len().to_string());
        if fs::hard_link(path, &to).is_ok() {
            self.trees.push(path.to_owned());
        }
    }

    /// Keeps only files that are gone. For a line with unknown effects: a build may replace a large file each time.
    pub fn keep_only_gone(&mut self) {
        self.only_gone = true;
    }

    /// Takes over the copies of the repositories that the line broke.
    pub fn keep_repositories(&mut self, broken: &[BrokenRepository]) {
        for one in broken {
            let to = self.folder.join(repository_name(self.repositories.len()));
            let left = match one.parts.as_slice() {
                [] => repository::changed_files(&one.copy, &one.path),
                parts => repository::left_parts(&one.path, parts),
            };
            self.repositories.push(KeptRepository { path: one.path.clone(), why: one.why.clone(), left });
            // Recorded first, so that a moved copy is known after a kill.
            self.write_taken(false);
            let taken = match one.parts.as_slice() {
                [] => fs::rename(&one.copy, &to),
                // The rest of the repository is whole, and stays as it is.
                parts => lost_parts::move_parts(&one.copy, parts, &to),
            };
            if taken.is_err() {
                self.repositories.pop();
            }
        }
    }

    /// Keeps every commit that has a name in the repository around a folder.
    pub fn keep_names(&mut self, root: &Path) {
        if let Some(names) = RefNames::read(root).filter(|names| names.pin(root, &self.id)) {
            self.names = Some((root.to_owned(), names));
        }
    }

    fn take(&mut self, path: &Path, to: &Path, found: &fs::Metadata) -> Result<(), String> {
        let words = |error: io::Error| error.to_string();
        let mut open = vec![(path.to_owned(), to.to_owned(), found.clone())];
        while let Some((path, to, found)) = open.pop() {
            self.files += 1;
            if self.files > MOST_FILES {
                return Err(format!("there are more than {MOST_FILES} files"));
            }
            let kind = found.file_type();
            if kind.is_dir() {
                fs::DirBuilder::new().mode(0o700).create(&to).map_err(words)?;
                let mut names = Vec::new();
                for entry in fs::read_dir(&path).map_err(words)? {
                    names.push(entry.map_err(words)?);
                }
                for entry in names {
                    let found = entry.metadata().map_err(words)?;
                    open.push((entry.path(), to.join(entry.file_name()), found));
                }
                // The mode is needed for the restore; until then we need access.
                fs::set_permissions(&to, fs::Permissions::from_mode(found.mode() & 0o7777 | 0o700))
                    .map_err(words)?;
            } else if kind.is_symlink() {
                let target = fs::read_link(&path).map_err(words)?;
                std::os::unix::fs::symlink(target, &to).map_err(words)?;
            } else if kind.is_file() {
                self.bytes += found.len();
                if fs::hard_link(&path, &to).is_err() {
                    self.copied += found.len();
                    if self.copied > MOST_COPIED {
                        return Err("it is on another disk, and too much to copy".to_owned());
                    }
                    fs::copy(&path, &to).map_err(words)?;
                }
            }
        }
        Ok(())
    }

    /// Keeps what is really lost after the line, and writes the entry. None if nothing is lost.
    pub fn finish(mut self, note: LineOrigin, changes: Vec<Change>) -> io::Result<Option<QuarantineEntry>> {
        let mut refs = Vec::new();
        if let Some((root, names)) = self.names.take() {
            refs = RefNames::read(&root).map(|now| names.lost(&now)).unwrap_or_default();
            if refs.is_empty() {
                refs::unpin(&root, &self.id);
            }
        }
        let (mut files, mut bytes, mut lost) = (0, 0, false);
        let mut trees = Vec::new();
        for (at, path) in std::mem::take(&mut self.trees).into_iter().enumerate() {
            let kept = self.folder.join(at.to_string());
            if self.only_gone && path.symlink_metadata().is_ok() {
                remove_tree(&kept)?;
                continue;
            }
            let (more, size) = drop_present(&kept, &path);
            files += more;
            bytes += size;
            lost |= more > 0;
            if at != trees.len() {
                let _ = fs::rename(&kept, self.folder.join(trees.len().to_string()));
            }
            trees.push(path);
        }
        let repositories = std::mem::take(&mut self.repositories);
        if !lost && changes.is_empty() && refs.is_empty() && repositories.is_empty() {
            remove_tree(&self.folder)?;
            return Ok(None);
        }
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let LineOrigin { line, folder, session, call } = note;
        let id = self.id.clone();
        let acts = Vec::new();
        let kept = QuarantineEntry {
            id,
            at,
            line,
            folder,
            session,
            call,
            trees,
            files,
            bytes,
            changes,
            refs,
            repositories,
            acts,
        };
        let text = serde_json::to_vec_pretty(&kept).map_err(io::Error::other)?;
        fs::write(self.folder.join(ENTRY), text)?;
        unfinished::remove(&self.folder);
        Ok(Some(kept))
    }

    /// Discards the entry, because the line did not run.
    pub fn forget(self) {
        if let Some((root, _)) = &self.names {
            refs::unpin(root, &self.id);
        }
        let _ = remove_tree(&self.folder);
    }
}

/// The name of a repository's copy in an entry.
pub(crate) fn repository_name(at: usize) -> String {
    format!("repository-{at}")
}

/// Drops the second names of files that are still at their path. Returns the number of lost entries, files and
/// folders, and their bytes.
fn drop_present(kept: &Path, path: &Path) -> (u64, u64) {
    let Ok(ours) = fs::symlink_metadata(kept) else { return (0, 0) };
    let theirs = fs::symlink_metadata(path).ok();
    if !ours.is_dir() {
        let same = theirs.is_some_and(|theirs| {
            theirs.file_type() == ours.file_type()
                && ((theirs.ino(), theirs.dev()) == (ours.ino(), ours.dev())
                    || is_copy(kept, path, &ours, &theirs))
        });
        if same {
            let _ = fs::remove_file(kept);
            return (0, 0);
        }
        return (1, ours.len());
    }
    let (mut files, mut bytes) = (0, 0);
    for entry in fs::read_dir(kept).into_iter().flatten().flatten() {
        let (more, size) = drop_present(&entry.path(), &path.join(entry.file_name()));
        files += more;
        bytes += size;
    }
    if theirs.is_some_and(|theirs| theirs.is_dir()) {
        // Only empty folders go; the others hold lost files.
        let _ = fs::remove_dir(kept);
        return (files, bytes);
    }
    (files + 1, bytes)
}

/// Tells whether a copy still equals the file that it was made from.
fn is_copy(kept: &Path, path: &Path, ours: &fs::Metadata, theirs: &fs::Metadata) -> bool {
    if ours.file_type().is_symlink() {
        return fs::read_link(kept).ok() == fs::read_link(path).ok();
    }
    ours.len() == theirs.len() && ours.dev() != theirs.dev() && fs::read(kept).ok() == fs::read(path).ok()
}

/// Removes a folder, even if folders in it are not writable.
pub(crate) fn remove_tree(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => fs::remove_file(folder),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let mut open = vec![folder.to_owned()];
            while let Some(one) = open.pop() {
                let _ = fs::set_permissions(&one, fs::Permissions::from_mode(0o700));
                let entries = fs::read_dir(&one).into_iter().flatten().flatten();
                open.extend(
                    entries
                        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                        .map(|entry| entry.path()),
                );
            }
            fs::remove_dir_all(folder)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
