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

use crate::begun::{self, Unfinished};
use crate::beneath::Root;
use crate::health;
use crate::parts;
use crate::refs::{self, KeptRef, Names};
use crate::repository::{self, Broken, Repositories};
use crate::restore::{self, Step};
use crate::{ChangesError, TreeChange, net};

const ENTRY: &str = "entry.json";

/// Files that one line may have kept, and bytes that are copied where a second name is not possible.
const MOST_FILES: u64 = 500_000;
const MOST_COPIED: u64 = 2 << 30;

/// The folder of what was kept.
#[derive(Debug, Clone)]
pub struct Quarantine {
    folder: PathBuf,
}

/// What one line took away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    pub id: String,
    /// Seconds since 1970.
    pub at: u64,
    pub line: String,
    /// The folder worked in.
    pub folder: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    pub call: String,
    /// Where each tree was; the tree itself lies beside, by its number.
    #[serde(default)]
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
}

/// A repository that a line broke.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptRepository {
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

/// What was put back: a path or a name of git's each, and what was not with the reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PutBack {
    pub done: Vec<String>,
    pub left: Vec<(String, String)>,
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
                    return Ok(Keeping::left(folder, id, Vec::new(), false));
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

    /// What killed processes left. Each is to be finished before the entries are read.
    pub fn unfinished(&self) -> Vec<Unfinished> {
        let folders = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        folders.filter_map(|entry| begun::left(&entry.path())).collect()
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

    /// Puts everything back that is not in somebody's way. An entry of which nothing is left is removed.
    pub fn restore(&self, kept: &Kept, blobs: &Blobs) -> Result<PutBack, ChangesError> {
        let mut back = PutBack::default();
        // First, for names of git's are put back by git.
        for (at, one) in kept.repositories.iter().enumerate() {
            let copy = self.folder.join(&kept.id).join(repository_name(at));
            if let Some(why) = behind_link(&one.path) {
                back.left.push((one.path.display().to_string(), why));
                continue;
            }
            if one.path.is_dir() && health::is_other(&one.path, &copy) {
                self.set_aside(&one.path, kept);
            }
            repository::put_back(&copy, &one.path, &one.left, &mut back);
        }
        for (at, path) in kept.trees.iter().enumerate() {
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
        if back.left.is_empty() {
            self.remove(kept).map_err(|error| ChangesError::io("remove", &self.folder, error))?;
        }
        Ok(back)
    }

    /// Throws an entry away.
    pub fn remove(&self, kept: &Kept) -> io::Result<()> {
        if !kept.refs.is_empty() {
            refs::unpin(&kept.folder, &kept.id);
        }
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
    pub(crate) fn left(folder: PathBuf, id: String, trees: Vec<PathBuf>, only_gone: bool) -> Self {
        let repositories = Vec::new();
        Self {
            folder,
            id,
            trees,
            files: 0,
            bytes: 0,
            copied: 0,
            names: None,
            repositories,
            only_gone,
            begun: None,
        }
    }

    /// Writes down what is kept, so that it is found after the death of this process. The line may run then.
    /// `scratch` names the copies of the tracker, where no session has them.
    pub fn begin(&mut self, note: &Note, scratch: Option<String>) -> io::Result<()> {
        let kept = (self.trees.as_slice(), self.only_gone);
        self.begun = Some(begun::write(&self.folder, note, kept, scratch)?);
        Ok(())
    }

    /// Keeps a file, or a folder with all that is in it. What is not there needs no keeping.
    pub fn keep(&mut self, path: &Path) -> Result<(), NotKept> {
        let not = |why: String| NotKept { path: path.to_owned(), why };
        if path.to_str().is_none() {
            return Err(not("its name is no text".to_owned()));
        }
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
        if path.to_str().is_some() && fs::hard_link(path, &to).is_ok() {
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
            let (left, taken) = if one.parts.is_empty() {
                (repository::left(&one.copy, &one.path), fs::rename(&one.copy, &to))
            } else {
                // The rest is as it should be, and stays as it is.
                (repository::left_parts(&one.path, &one.parts), parts::take(&one.copy, &one.parts, &to))
            };
            if one.path.to_str().is_some() && taken.is_ok() {
                let (path, why) = (one.path.clone(), one.why.clone());
                self.repositories.push(KeptRepository { path, why, left });
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
        let kept =
            Kept { id, at, line, folder, session, call, trees, files, bytes, changes, refs, repositories };
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
fn repository_name(at: usize) -> String {
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

/// Puts a tree back where it was, beside what is there.
fn put_tree(kept: &Path, path: &Path, back: &mut PutBack) {
    let Ok(ours) = fs::symlink_metadata(kept) else { return };
    let shown = || path.display().to_string();
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => match move_back(kept, path, &ours) {
            Ok(()) => back.done.push(shown()),
            Err(error) => back.left.push((shown(), error.to_string())),
        },
        Err(error) => back.left.push((shown(), error.to_string())),
        Ok(theirs) if theirs.is_dir() && ours.is_dir() => {
            for entry in fs::read_dir(kept).into_iter().flatten().flatten() {
                put_tree(&entry.path(), &path.join(entry.file_name()), back);
            }
            let _ = fs::remove_dir(kept);
        }
        Ok(theirs) if (theirs.ino(), theirs.dev()) == (ours.ino(), ours.dev()) => {
            let _ = fs::remove_file(kept);
        }
        Ok(_) => back.left.push((shown(), "something else is there now".to_owned())),
    }
}

/// Why a path is not the place it was when something was kept of it: that was written down without links.
fn behind_link(path: &Path) -> Option<String> {
    match Root::open_or_gone(path.parent()?) {
        Err(ChangesError::Root { source, .. }) if source.kind() == io::ErrorKind::InvalidInput => {
            Some(source.to_string())
        }
        Ok(_) | Err(_) => None,
    }
}

/// Moves something kept to its path, whose folder is made if it is gone, and never reached by a link.
pub(crate) fn move_back(kept: &Path, path: &Path, ours: &fs::Metadata) -> io::Result<()> {
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let above = Root::open_or_make(above).map_err(|error| match error {
        ChangesError::Root { source, .. } => source,
        error => io::Error::other(error.to_string()),
    })?;
    let path = above.by_handle().join(name);
    match fs::rename(kept, &path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => copy_tree(kept, &path, ours),
        Err(error) => Err(error),
    }
}

fn copy_tree(from: &Path, to: &Path, found: &fs::Metadata) -> io::Result<()> {
    if found.is_dir() {
        fs::create_dir(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy_tree(&entry.path(), &to.join(entry.file_name()), &entry.metadata()?)?;
        }
        fs::set_permissions(to, found.permissions())?;
        fs::remove_dir(from)
    } else if found.file_type().is_symlink() {
        std::os::unix::fs::symlink(fs::read_link(from)?, to)?;
        fs::remove_file(from)
    } else {
        fs::copy(from, to)?;
        fs::remove_file(from)
    }
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
