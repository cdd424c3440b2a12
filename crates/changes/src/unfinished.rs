//! Lines that were never finished because their process was killed.
//!
//! Before a line runs, a note in its quarantine entry records what is kept for it. The file of the note stays locked
//! as long as the process lives. The next scan finishes an entry whose note is not locked, as its own process would
//! have done: second names of files that are still there are dropped, and the rest becomes an ordinary entry. The
//! note also records names of git (branches, tags, stashes), so that dropped ones are found, and the repositories of
//! which there is a copy.
//!
//! The copies cannot wait for a scan of the quarantine: the next line in the same repository would update them with
//! the state that the killed line left. So the first process that gets there settles the repository: it sets aside
//! what the line left for git to run, and moves the copy of what the line broke into its entry.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use lathe_blobs::{Durable, replace};
use serde::{Deserialize, Serialize};

use crate::anypath;
use crate::programs::SetAside;
use crate::quarantine::{ENTRY, KeptRepository, LineOrigin, OpenEntry, Quarantine, repository_name};
use crate::refs::RefNames;

/// The file that records what an unfinished line may remove.
const BEGUN: &str = "begun.json";

/// The file that records which copies of repositories are in the entry already.
const TAKEN: &str = "taken.json";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct BegunNote {
    pub(crate) note: LineOrigin,
    #[serde(with = "anypath::many")]
    pub(crate) trees: Vec<PathBuf>,
    pub(crate) only_gone: bool,
    /// The folder of a repository and what git named in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) names: Option<(RepositoryPath, RefNames)>,
    /// The folder beneath `baselines` with the copies of the tracker, if no session has them.
    pub(crate) scratch: Option<String>,
    /// Repositories of which there is a copy from before the line.
    #[serde(default)]
    pub(crate) watched: WatchedRepositories,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RepositoryPath(#[serde(with = "anypath::one")] pub(crate) PathBuf);

/// The repositories of which copies are held while a line runs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct WatchedRepositories {
    #[serde(with = "anypath::many")]
    pub(crate) paths: Vec<PathBuf>,
    /// The paths among these that are files or links which lead to no repository.
    #[serde(default, with = "anypath::many")]
    pub(crate) loose: Vec<PathBuf>,
    /// True if programs that the line leaves for git are set aside, because the line is not the user's own.
    pub(crate) programs: bool,
}

/// The copies of repositories that are in an entry already.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct TakenNote {
    pub(crate) repositories: Vec<KeptRepository>,
    /// True once the repositories of a killed line were settled: from then on their state is not that line's doing
    /// alone.
    pub(crate) settled: bool,
}

/// Writes the note of a line. The file is locked until it is dropped.
pub(crate) fn write(folder: &Path, begun: &BegunNote) -> io::Result<File> {
    let mut file = File::options().write(true).create_new(true).open(folder.join(BEGUN))?;
    // A process that reads the file meanwhile finds it empty, and skips it.
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

/// Records which copies are in an entry, or will be moved there next.
pub(crate) fn write_taken(folder: &Path, taken: &TakenNote) -> io::Result<()> {
    replace(&folder.join(TAKEN), &serde_json::to_vec(taken).map_err(io::Error::other)?, Durable::Content)
}

/// The copies that really are in the entry: the last one recorded may not have been moved.
fn read_taken(folder: &Path) -> TakenNote {
    let read = || serde_json::from_slice::<TakenNote>(&fs::read(folder.join(TAKEN)).ok()?).ok();
    let mut taken = read().unwrap_or_default();
    let is_there = |at: usize| folder.join(repository_name(at)).symlink_metadata().is_ok();
    let there = (0..taken.repositories.len()).take_while(|at| is_there(*at)).count();
    taken.repositories.truncate(there);
    taken
}

/// A line whose process is gone before the line was finished.
#[derive(Debug)]
pub struct UnfinishedLine {
    pub keeping: OpenEntry,
    pub note: LineOrigin,
    pub scratch: Option<String>,
    /// Programs that the line left for git, now set aside.
    pub aside: Vec<SetAside>,
    /// Held while the entry is being finished.
    _lock: File,
}

impl WatchedRepositories {
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }
}

impl Quarantine {
    /// Entries that killed processes left, with their repositories settled. The caller finishes each of them before
    /// it reads the entries.
    pub fn unfinished(&self) -> Vec<UnfinishedLine> {
        let left = self.abandoned().filter_map(|(folder, begun, lock)| {
            let BegunNote { note, scratch, .. } = begun.clone();
            let (keeping, aside) = self.settle(&folder, begun)?;
            Some(UnfinishedLine { keeping, note, scratch, aside, _lock: lock })
        });
        left.collect()
    }

    /// Settles the repositories of killed lines for which `is_meant` returns true. Returns the programs that were set
    /// aside.
    pub(crate) fn settle_where(&self, is_meant: impl Fn(&Path) -> bool) -> Vec<SetAside> {
        let is_meant = |begun: &BegunNote| begun.watched.paths.iter().any(|path| is_meant(path));
        let meant = self.abandoned().filter(|(_, begun, _)| is_meant(begun));
        let settled = meant.filter_map(|(folder, begun, _lock)| self.settle(&folder, begun));
        settled.flat_map(|(_, aside)| aside).collect()
    }

    /// The repositories of other lines whose copies are not settled, even if the processes of these lines live.
    pub(crate) fn unsettled_paths(&self) -> Vec<PathBuf> {
        let folders = fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let read = folders.filter_map(|folder| {
            let begun: BegunNote = serde_json::from_slice(&fs::read(folder.join(BEGUN)).ok()?).ok()?;
            (!read_taken(&folder).settled).then_some(begun.watched.paths)
        });
        read.flatten().collect()
    }

    /// The notes of processes that are gone, each locked.
    fn abandoned(&self) -> impl Iterator<Item = (PathBuf, BegunNote, File)> {
        let folders = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        folders.filter_map(|entry| {
            let (folder, path) = (entry.path(), entry.path().join(BEGUN));
            let file = File::open(&path).ok()?;
            file.try_lock().ok()?;
            // Another process may have finished the entry before this one got the lock.
            let begun: BegunNote = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
            if folder.join(ENTRY).exists() {
                remove(&folder);
                return None;
            }
            Some((folder, begun, file))
        })
    }

    /// Sets aside what a killed line left for git to run, and moves the copies of what it broke into its entry. Does
    /// so once.
    fn settle(&self, folder: &Path, begun: BegunNote) -> Option<(OpenEntry, Vec<SetAside>)> {
        let id = folder.file_name()?.to_str()?.to_owned();
        let taken = read_taken(folder);
        let is_settled = taken.settled;
        let watched = begun.watched.clone();
        let mut keeping = OpenEntry::recovered(folder.to_owned(), id, begun, taken);
        let mut aside = Vec::new();
        if !is_settled && !watched.paths.is_empty() {
            let repositories = self.repositories().with_copies_of(&watched);
            if watched.programs {
                aside = repositories.set_programs_aside();
            }
            keeping.keep_repositories(&repositories.broken());
            keeping.mark_settled();
        }
        Some((keeping, aside))
    }
}
