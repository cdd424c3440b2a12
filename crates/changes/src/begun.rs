//! Lines that were never finished, because their process was killed.
//!
//! Before a line runs, what is kept for it is written down in its entry of the quarantine, and the file stays locked for as
//! long as the process lives. An entry with such a file that nobody holds is finished by the next look, as its own process
//! would have done: what is still there is let go, the rest is an entry like any other. Names of git's (branches, tags,
//! stashes) are written down too, so that those the line dropped are found, and the repositories of which a copy is held.
//!
//! The copies cannot wait for a look at the quarantine: the next line in the same repository would bring them up to date
//! with what the killed one left. So whoever comes first there settles it: what the line left for git to run is set aside,
//! and the copy of what it broke goes into its entry.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use lathe_blobs::{Durable, replace};
use serde::{Deserialize, Serialize};

use crate::anypath;
use crate::programs::SetAside;
use crate::quarantine::{ENTRY, Keeping, KeptRepository, Note, Quarantine, repository_name};
use crate::refs::Names;

/// The file that says what a line that has not ended may take away.
const BEGUN: &str = "begun.json";

/// The file that says which copies of repositories are in the entry already.
const TAKEN: &str = "taken.json";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Begun {
    pub(crate) note: Note,
    #[serde(with = "anypath::many")]
    pub(crate) trees: Vec<PathBuf>,
    pub(crate) only_gone: bool,
    /// The folder of a repository and what git named in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) names: Option<(Folder, Names)>,
    /// The folder beneath `baselines` with the copies of the tracker, where no session has them.
    pub(crate) scratch: Option<String>,
    /// Repositories of which there is a copy from before the line.
    #[serde(default)]
    pub(crate) watched: Watched,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Folder(#[serde(with = "anypath::one")] pub(crate) PathBuf);

/// The repositories of which copies are held while a line runs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Watched {
    #[serde(with = "anypath::many")]
    pub(crate) paths: Vec<PathBuf>,
    /// Those of them that are files or links which lead to no repository.
    #[serde(default, with = "anypath::many")]
    pub(crate) loose: Vec<PathBuf>,
    /// Programs that the line leaves for git are set aside: it is not a person's own.
    pub(crate) programs: bool,
}

/// The copies of repositories that are in an entry already.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Taken {
    pub(crate) repositories: Vec<KeptRepository>,
    /// The repositories of a killed line were looked at: how they are now is not its doing alone.
    pub(crate) settled: bool,
}

/// Writes down what is kept for a line. The file is locked until it is dropped.
pub(crate) fn write(folder: &Path, begun: &Begun) -> io::Result<File> {
    let mut file = File::options().write(true).create_new(true).open(folder.join(BEGUN))?;
    // Whoever looks at it meanwhile finds nothing in it, and lets it go.
    file.lock()?;
    file.write_all(&serde_json::to_vec(begun).map_err(io::Error::other)?)?;
    file.sync_data()?;
    Ok(file)
}

/// Removes the note of a line that has ended.
pub(crate) fn remove(folder: &Path) {
    let _ = fs::remove_file(folder.join(BEGUN));
    let _ = fs::remove_file(folder.join(TAKEN));
}

/// Writes down which copies are in an entry, or are moved there next.
pub(crate) fn write_taken(folder: &Path, taken: &Taken) -> io::Result<()> {
    replace(&folder.join(TAKEN), &serde_json::to_vec(taken).map_err(io::Error::other)?, Durable::Content)
}

/// Those that really are in the entry: the last one may not have been moved.
fn read_taken(folder: &Path) -> Taken {
    let read = || serde_json::from_slice::<Taken>(&fs::read(folder.join(TAKEN)).ok()?).ok();
    let mut taken = read().unwrap_or_default();
    let is_there = |at: usize| folder.join(repository_name(at)).symlink_metadata().is_ok();
    let there = (0..taken.repositories.len()).take_while(|at| is_there(*at)).count();
    taken.repositories.truncate(there);
    taken
}

/// A line that was begun by a process that is gone.
#[derive(Debug)]
pub struct Unfinished {
    pub keeping: Keeping,
    pub note: Note,
    pub scratch: Option<String>,
    /// Programs that it left for git.
    pub aside: Vec<SetAside>,
    /// Held while it is finished.
    _lock: File,
}

impl Watched {
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }
}

impl Quarantine {
    /// Entries that killed processes left, with their repositories settled. Each is to be finished before the entries are read.
    pub fn unfinished(&self) -> Vec<Unfinished> {
        let left = self.left().filter_map(|(folder, begun, lock)| {
            let Begun { note, scratch, .. } = begun.clone();
            let (keeping, aside) = self.settle(&folder, begun)?;
            Some(Unfinished { keeping, note, scratch, aside, _lock: lock })
        });
        left.collect()
    }

    /// Settles the repositories of killed lines that are meant. Gives the programs that were set aside.
    pub(crate) fn settle_meant(&self, is_meant: impl Fn(&Path) -> bool) -> Vec<SetAside> {
        let is_meant = |begun: &Begun| begun.watched.paths.iter().any(|path| is_meant(path));
        let meant = self.left().filter(|(_, begun, _)| is_meant(begun));
        let settled = meant.filter_map(|(folder, begun, _lock)| self.settle(&folder, begun));
        settled.flat_map(|(_, aside)| aside).collect()
    }

    /// The repositories that other lines have copies of which are not settled, whether their processes live or not.
    pub(crate) fn in_use(&self) -> Vec<PathBuf> {
        let folders = fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let read = folders.filter_map(|folder| {
            let begun: Begun = serde_json::from_slice(&fs::read(folder.join(BEGUN)).ok()?).ok()?;
            (!read_taken(&folder).settled).then_some(begun.watched.paths)
        });
        read.flatten().collect()
    }

    /// The notes of processes that are gone, each locked.
    fn left(&self) -> impl Iterator<Item = (PathBuf, Begun, File)> {
        let folders = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        folders.filter_map(|entry| {
            let (folder, path) = (entry.path(), entry.path().join(BEGUN));
            let file = File::open(&path).ok()?;
            file.try_lock().ok()?;
            // Another process may have finished it before the lock was had.
            let begun: Begun = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
            if folder.join(ENTRY).exists() {
                remove(&folder);
                return None;
            }
            Some((folder, begun, file))
        })
    }

    /// Sets aside what a killed line left for git to run, and puts the copies of what it broke into its entry. Once.
    fn settle(&self, folder: &Path, begun: Begun) -> Option<(Keeping, Vec<SetAside>)> {
        let id = folder.file_name()?.to_str()?.to_owned();
        let taken = read_taken(folder);
        let is_settled = taken.settled;
        let watched = begun.watched.clone();
        let mut keeping = Keeping::left(folder.to_owned(), id, begun, taken);
        let mut aside = Vec::new();
        if !is_settled && !watched.paths.is_empty() {
            let repositories = self.repositories().holding(&watched);
            if watched.programs {
                aside = repositories.set_programs_aside();
            }
            keeping.keep_repositories(&repositories.broken());
            keeping.settled();
        }
        Some((keeping, aside))
    }
}
