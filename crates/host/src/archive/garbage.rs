//! Garbage: sessions that were not used for long, and all that no session needs any more.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use lathe_journal::{Index, SessionReader, is_held, session_ids};
use lathe_protocol::{Digest, Fact, SessionId};

use crate::archive::Archive;
use crate::error::HostError;

/// The garbage that `gc` would remove, or has removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Garbage {
    pub sessions: Vec<SessionId>,
    pub blobs: u64,
    pub other: u64,
    pub bytes: u64,
    /// The number of sessions that stay, and the bytes that stay in Lathe's folder.
    pub kept_sessions: usize,
    pub kept_bytes: u64,
}

impl Archive {
    /// Removes sessions, entries of the quarantine and removed files that were not touched for `older`; code graphs
    /// that were not queried for `older`, or for a month if that is shorter; then every blob, baseline and leftover
    /// that no session needs. With `really` false nothing is removed: it only reports what would be.
    pub fn collect_garbage(&self, older: Duration, really: bool) -> Result<Garbage, HostError> {
        let sessions = self.home().sessions();
        let limit = SystemTime::now().checked_sub(older).unwrap_or(SystemTime::UNIX_EPOCH);
        let mut garbage = Garbage::default();
        let mut needed: HashSet<String> = HashSet::new();
        // Nothing is removed before every session was read: one that cannot be read ends the collection.
        let mut doomed: Vec<PathBuf> = Vec::new();
        for id in self.ids()? {
            let files = session_files(&sessions, &id);
            // Every reader makes an empty log and a shared-memory file, so those do not count.
            let written = files.iter().take(2).filter(|path| size(path) > 0);
            let touched = written.filter_map(|path| path.metadata().ok()?.modified().ok()).max();
            if touched.is_some_and(|touched| touched < limit) && !is_held(&sessions, &id) {
                garbage.bytes += files.iter().map(|path| size(path)).sum::<u64>();
                doomed.extend(files);
                garbage.sessions.push(id);
            } else {
                garbage.kept_sessions += 1;
                // A session that cannot be read might need any blob: then the collection fails and no blob is
                // removed.
                let reader = SessionReader::open(&sessions, &id, self.home().blobs()?)?;
                let named = reader.all()?.iter().flat_map(|event| blobs_of(&event.fact)).collect::<Vec<_>>();
                needed.extend(named.iter().chain(&reader.body_blobs()?).map(Digest::to_string));
            }
        }
        // A removed session can be restored, until it is old.
        let old_removals = self.old_removals(limit);
        let is_old = |folder: &Path| old_removals.iter().any(|place| folder.starts_with(place));
        for folder in self.removed_session_folders().into_iter().filter(|folder| !is_old(folder)) {
            for id in session_ids(&folder)? {
                let reader = SessionReader::open(&folder, &id, self.home().blobs()?)?;
                let named = reader.all()?.iter().flat_map(|event| blobs_of(&event.fact)).collect::<Vec<_>>();
                needed.extend(named.iter().chain(&reader.body_blobs()?).map(Digest::to_string));
            }
        }
        if really {
            doomed.iter().for_each(|path| drop(std::fs::remove_file(path)));
        }
        let (kept, bytes) = self.quarantine().collect(older, really);
        garbage.other += kept;
        garbage.bytes += bytes;
        needed.extend(self.quarantine_blobs().iter().map(Digest::to_string));
        for place in &old_removals {
            garbage.other += 1;
            garbage.bytes += folder_size(place);
            if really {
                let _ = std::fs::remove_dir_all(place);
            }
        }
        self.collect_blobs(&needed, limit, really, &mut garbage);
        self.collect_baselines(really, &mut garbage);
        for graph in self.old_graphs(older) {
            garbage.other += 1;
            garbage.bytes += graph.files.iter().map(|path| size(path)).sum::<u64>();
            if really {
                graph.remove();
            }
        }
        garbage.kept_bytes = folder_size(self.home().path()) - if really { 0 } else { garbage.bytes };
        if really && let Ok(mut index) = Index::open(self.home().path()) {
            let _ = index.rebuild(&sessions, &self.home().blobs()?);
        }
        Ok(garbage)
    }

    fn collect_blobs(
        &self,
        needed: &HashSet<String>,
        limit: SystemTime,
        really: bool,
        garbage: &mut Garbage,
    ) {
        for path in files_below(&self.home().blob_folder()) {
            // The first digits of the digest are the folder, the rest is the file.
            let parts: Vec<_> = path.iter().rev().take(2).map(|part| part.to_string_lossy()).collect();
            let known = needed.contains(&parts.into_iter().rev().collect::<String>());
            // A blob is written before the event that names it: a young one may be needed in a moment.
            let young =
                path.metadata().and_then(|meta| meta.modified()).is_ok_and(|at| at >= limit.max(hour_ago()));
            if !known && !young {
                garbage.blobs += 1;
                garbage.bytes += size(&path);
                if really {
                    let _ = std::fs::remove_file(&path);
                }
            }
        }
    }

    /// Removes trees recorded for patches, of sessions that no longer exist.
    fn collect_baselines(&self, really: bool, garbage: &mut Garbage) {
        let Ok(entries) = std::fs::read_dir(self.home().baselines()) else { return };
        for entry in entries.flatten() {
            let id = entry.file_name().to_string_lossy().into_owned();
            let gone = garbage.sessions.iter().any(|session| session.as_str() == id)
                || !self.home().sessions().join(format!("{id}.db")).exists();
            if gone {
                garbage.other += 1;
                garbage.bytes += folder_size(&entry.path());
                if really {
                    let _ = std::fs::remove_dir_all(entry.path());
                }
            }
        }
    }
}

fn hour_ago() -> SystemTime {
    SystemTime::now().checked_sub(Duration::from_secs(3600)).unwrap_or(SystemTime::UNIX_EPOCH)
}

pub(crate) fn session_files(sessions: &Path, id: &SessionId) -> Vec<PathBuf> {
    ["db", "db-wal", "db-shm", "lock", "mark"]
        .iter()
        .map(|ending| sessions.join(format!("{id}.{ending}")))
        .collect()
}

/// The blobs that an event names.
pub(crate) fn blobs_of(fact: &Fact) -> Vec<Digest> {
    fact.blobs().into_iter().cloned().collect()
}

fn size(path: &Path) -> u64 {
    path.metadata().map_or(0, |meta| meta.len())
}

fn folder_size(folder: &Path) -> u64 {
    files_below(folder).iter().map(|path| size(path)).sum()
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(kind) if kind.is_file() => found.push(entry.path()),
                Ok(_) | Err(_) => {}
            }
        }
    }
    found
}
