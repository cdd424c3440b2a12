//! What a line deletes and nothing else keeps.
//!
//! Before the line every file it may delete gets a second name here, so that its content outlives the first: that costs no
//! copy, however large it is. After the line the names of what is still there are dropped again. What is left can be put
//! back, and is removed after some days. A hard link does not help against what writes into a file in its place; for that
//! there are the copies of the tracker, whose changes are part of an entry where no session has them.

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
use crate::begun::{self, Begun, Folder, Taken, Watched};
use crate::health;
use crate::parts;
use crate::putback::{PutBack, behind_link, put_tree};
use crate::refs::{self, KeptRef, Names};
use crate::repository::{self, Broken, Repositories};
use crate::restore::{self, Step};
use crate::{ChangesError, TreeChange, net};

pub(crate) const ENTRY: &str = "entry.json";

/// Files that one line may have kept, and bytes that are copied where a second name is not possible.
const MOST_FILES: u64 = 500_000;
const MOST_COPIED: u64 = 2 << 30;

/// The folder of what was kept.
#[derive(Debug, Clone)]
pub struct Quarantine {
    pub(crate) folder: PathBuf,
}

/// What one line took away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    pub id: String,
    /// Seconds since 1970.
    pub at: u64,
    pub line: String,
    /// The folder worked in.
    #[serde(with = "anypath::one")]
    pub folder: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    pub call: String,
    /// Where each tree was; the tree itself lies beside, by its number.
    #[serde(default, with = "anypath::many")]
    pub trees: Vec<PathBuf>,
    pub files: u64,
    pub bytes: u64,
    /// What else changed, where no session knows it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refs: Vec<KeptRef>,
    /// Repositories that the line broke, whole as they were before it; each lies beside, by its number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repositories: Vec<KeptRepository>,
    /// The acts of its session that put it back and took it away again, in turn: by the last event before each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acts: Vec<u64>,
}

/// A repository that a line broke.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptRepository {
    #[serde(with = "anypath::one")]
    pub path: PathBuf,
    /// What is wrong with it.
    pub why: String,
    /// Files that the line left otherwise than they were, by their path in it, with what tells them from any other.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left: BTreeMap<String, String>,
}

/// Whose line it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Note {
    pub line: String,
    #[serde(with = "anypath::one")]
    pub folder: PathBuf,
    pub session: Option<String>,
    pub call: String,
}

/// Something that could not be kept, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotKept {
    pub path: PathBuf,
    pub why: String,
}

/// Being kept, before and while a line runs.
#[derive(Debug)]
pub struct Keeping {
    folder: PathBuf,
    id: String,
    trees: Vec<PathBuf>,
    files: u64,
    bytes: u64,
    copied: u64,
    names: Option<(PathBuf, Names)>,
    repositories: Vec<KeptRepository>,
    /// What was replaced is let go: only what is gone is kept.
    only_gone: bool,
    watched: Watched,
    /// The note of what is kept, locked while the line runs.
    begun: Option<fs::File>,
}

impl Quarantine {
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Begins to keep things for one line.
    pub fn begin(&self) -> io::Result<Keeping> {
        fs::DirBuilder::new().mode(0o700).recursive(true).create(&self.folder)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let id = format!("{}-{:05}", now.as_secs(), std::process::id() % 100_000);
        // Two lines of one second.
        let ids = std::iter::once(id.clone()).chain((1..100).map(|n| format!("{id}-{n}")));
        for id in ids {
            let folder = self.folder.join(&id);
            match fs::DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => {
                    return Ok(Keeping::new(folder, id));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// The copies of repositories that are held beside.
    pub fn repositories(&self) -> Repositories {
        Repositories::new(self.folder.join(repository::FOLDER))
    }

    /// What is kept, the oldest first. What a killed process left unfinished is not listed.
    pub fn entries(&self) -> Vec<Kept> {
        let folders = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let read = |folder: PathBuf| -> Option<Kept> {
            serde_json::from_slice(&fs::read(folder.join(ENTRY)).ok()?).ok()
        };
        let mut entries: Vec<Kept> = folders.filter_map(|entry| read(entry.path())).collect();
        entries.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
        entries
    }

    /// The paths that are gone and that an entry holds: files, and whole folders.
    pub fn held(&self, kept: &Kept) -> Vec<PathBuf> {
        let mut held: Vec<PathBuf> = kept.repositories.iter().map(|one| one.path.clone()).collect();
        held.extend(self.places(kept).into_iter().map(|(_, path)| path));
        held.sort();
        held.dedup();
        held
    }

    /// The place of each thing in an entry, and where it was: repositories that are gone as a whole, files and folders.
    pub(crate) fn places(&self, kept: &Kept) -> Vec<(PathBuf, PathBuf)> {
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

    /// Puts everything back that is not in somebody's way. An entry of which nothing is left is removed.
    pub fn restore(&self, kept: &Kept, blobs: &Blobs) -> Result<PutBack, ChangesError> {
        let back = self.put_back(kept, blobs)?;
        if back.left.is_empty() {
            self.remove(kept).map_err(|error| ChangesError::io("remove", &self.folder, error))?;
        }
        Ok(back)
    }

    /// The same; the entry stays.
    pub(crate) fn put_back(&self, kept: &Kept, blobs: &Blobs) -> Result<PutBack, ChangesError> {
        let mut back = PutBack::default();
        // First, for names of git's are put back by git.
        for (at, one) in kept.repositories.iter().enumerate() {
            let copy = self.folder.join(&kept.id).join(repository_name(at));
            if let Some(why) = behind_link(&one.path) {
                back.left.push((one.path.display().to_string(), why));
                continue;
            }
            let whole = one.path.symlink_metadata().is_err();
            if one.path.is_dir() && health::is_other(&one.path, &copy) {
                self.set_aside(&one.path, kept);
            }
            let before = back.done.len();
            repository::put_back(&copy, &one.path, &one.left, &mut back);
            if whole && back.done.len() > before && !copy.exists() {
                back.moved.push((copy, one.path.clone()));
            } else if back.done.len() > before {
                back.stays.push(one.path.display().to_string());
            }
        }
        // What is gone goes first: something of it may lie in the place of another.
        let (there, gone): (Vec<_>, Vec<_>) =
            kept.trees.iter().enumerate().partition(|(_, path)| path.symlink_metadata().is_ok());
        for (at, path) in gone.into_iter().chain(there) {
            match behind_link(path) {
                Some(why) => back.left.push((path.display().to_string(), why)),
                None => put_tree(&self.tree(kept, at), path, &mut back),
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
                    Step::AlreadyThere => {}
                    Step::Restore if !is_left(&planned.wanted.path) => back.done.push(path),
                    Step::Restore | Step::Conflict { .. } | Step::FolderInUse => {
                        back.left.push((path, "somebody changed it meanwhile".to_owned()));
                    }
                    Step::MissingBlob { .. } => {
                        back.left.push((path, "its content is no longer stored".to_owned()));
                    }
                    Step::Refused => back.left.push((path, "it is not a path that is put back".to_owned())),
                    Step::Failed { why } => back.left.push((path, why.clone())),
                }
            }
        }
        let (done, left) = refs::restore(&kept.folder, &kept.refs);
        back.done.extend(done);
        back.left.extend(left);
        Ok(back)
    }

    /// Throws an entry away.
    pub fn remove(&self, kept: &Kept) -> io::Result<()> {
        refs::unpin_all(kept);
        remove_tree(&self.folder.join(&kept.id))
    }

    /// Entries, and what killed processes left, that are older than this. With `really` they are removed. Gives how many,
    /// and the bytes they hold.
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

    /// Makes room for a repository where another one is by now. That one is kept as an entry of its own.
    fn set_aside(&self, path: &Path, kept: &Kept) {
        let Ok(mut keeping) = self.begin() else { return };
        if fs::rename(path, keeping.folder.join("0")).is_err() {
            return keeping.forget();
        }
        keeping.trees.push(path.to_owned());
        let line = format!("the repository that was there when {} was put back", kept.id);
        let note = Note { line, folder: kept.folder.clone(), session: None, call: "restore".to_owned() };
        let back = keeping.folder.join("0");
        if keeping.finish(note, Vec::new()).is_err() {
            let _ = fs::rename(back, path);
        }
    }

    fn tree(&self, kept: &Kept, at: usize) -> PathBuf {
        self.folder.join(&kept.id).join(at.to_string())
    }
}

impl Keeping {
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
            watched: Watched::default(),
            begun: None,
        }
    }

    /// As a process that is gone had it.
    pub(crate) fn left(folder: PathBuf, id: String, begun: Begun, taken: Taken) -> Self {
        let Begun { trees, only_gone, names, watched, .. } = begun;
        let names = names.map(|(folder, names)| (folder.0, names));
        let repositories = taken.repositories;
        Self { trees, only_gone, names, watched, repositories, ..Self::new(folder, id) }
    }

    /// The repositories of which there are copies while the line runs. With `programs`, what it leaves for git to run is
    /// set aside.
    pub fn watch(&mut self, watched: Watched, programs: bool) {
        self.watched = Watched { programs, ..watched };
    }

    /// Writes down what is kept, so that it is found after the death of this process. The line may run then.
    /// `scratch` names the copies of the tracker, where no session has them.
    pub fn begin(&mut self, note: &Note, scratch: Option<String>) -> io::Result<()> {
        let begun = Begun {
            note: note.clone(),
            trees: self.trees.clone(),
            only_gone: self.only_gone,
            names: self.names.clone().map(|(folder, names)| (Folder(folder), names)),
            scratch,
            watched: self.watched.clone(),
        };
        self.begun = Some(begun::write(&self.folder, &begun)?);
        Ok(())
    }

    /// The repositories were looked at once the process was gone.
    pub(crate) fn settled(&self) {
        self.write_taken(true);
    }

    fn write_taken(&self, settled: bool) {
        let repositories = self.repositories.clone();
        let _ = begun::write_taken(&self.folder, &Taken { repositories, settled });
    }

    /// Keeps a file, or a folder with all that is in it. What is not there needs no keeping.
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

    /// For a line of which nobody knows what it does: a build may replace a large file each time.
    pub fn only_gone(&mut self) {
        self.only_gone = true;
    }

    /// After the line: takes over the copies of what it broke.
    pub fn keep_repositories(&mut self, broken: &[Broken]) {
        for one in broken {
            let to = self.folder.join(repository_name(self.repositories.len()));
            let left = match one.parts.as_slice() {
                [] => repository::left(&one.copy, &one.path),
                parts => repository::left_parts(&one.path, parts),
            };
            self.repositories.push(KeptRepository { path: one.path.clone(), why: one.why.clone(), left });
            // First, so that a copy which was moved is known after a kill.
            self.write_taken(false);
            let taken = match one.parts.as_slice() {
                [] => fs::rename(&one.copy, &to),
                // The rest is as it should be, and stays as it is.
                parts => parts::take(&one.copy, parts, &to),
            };
            if taken.is_err() {
                self.repositories.pop();
            }
        }
    }

    /// Keeps every commit that has a name in the repository around a folder.
    pub fn keep_names(&mut self, root: &Path) {
        if let Some(names) = Names::look(root).filter(|names| names.pin(root, &self.id)) {
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
                // The mode is needed when it is put back; until then we have to get in.
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

    /// After the line: keeps what is really lost, and writes it down. None if nothing is.
    pub fn finish(mut self, note: Note, changes: Vec<Change>) -> io::Result<Option<Kept>> {
        let mut refs = Vec::new();
        if let Some((root, names)) = self.names.take() {
            refs = Names::look(&root).map(|now| names.lost(&now)).unwrap_or_default();
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
        let Note { line, folder, session, call } = note;
        let id = self.id.clone();
        let acts = Vec::new();
        let kept = Kept {
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
        begun::remove(&self.folder);
        Ok(Some(kept))
    }

    /// Nothing ran: nothing is kept.
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

/// Drops the second names of what is still where it was. Gives how much is left: entries that are gone, and their bytes.
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
        // Only empty folders go; the others hold what is lost.
        let _ = fs::remove_dir(kept);
        return (files, bytes);
    }
    (files + 1, bytes)
}

/// Whether a copy is still the same as what it was made of.
fn is_copy(kept: &Path, path: &Path, ours: &fs::Metadata, theirs: &fs::Metadata) -> bool {
    if ours.file_type().is_symlink() {
        return fs::read_link(kept).ok() == fs::read_link(path).ok();
    }
    ours.len() == theirs.len() && ours.dev() != theirs.dev() && fs::read(kept).ok() == fs::read(path).ok()
}

/// Also where folders in it may not be written.
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
