//! The graph of a repository, brought up to date before every answer.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::error::GraphError;
use crate::facts::{Facts, Gap};
use crate::hash::QuickMap;
use crate::read::{Hash, Text, facts_of, hash_of, text_of};
use crate::scan::{Limits, Seen, Stamp, real_root, scan};
use crate::snapshot::{FileFacts, Snapshot};
use crate::store::{FileRow, Known, Store, damaged};

/// Files are committed in portions, so a build that is killed has not worked for nothing.
const PORTION: usize = 1000;

/// From this many changed files on, one process reads them and others wait for it.
const WORTH_WAITING: usize = 64;

/// What bringing the graph up to date took.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Refreshed {
    pub files: usize,
    pub parsed: usize,
    /// Changed files whose content was known already.
    pub reused: usize,
    pub removed: usize,
    pub walk: Duration,
    pub total: Duration,
}

pub struct Graph {
    root: PathBuf,
    limits: Limits,
    store: Store,
    snapshot: Option<Arc<Snapshot>>,
    version: i64,
    beyond: usize,
}

/// Told how many of how many files have been read.
pub type Progress<'a> = &'a (dyn Fn(usize, usize) + Sync);

enum Read {
    Known { content: i64, gap: Gap },
    New { hash: Hash, language: u8, source: String, facts: Facts },
    Out(Gap),
    Gone,
}

fn now_nanos() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i64)
}

impl Graph {
    /// Opens the graph of the folder `root`, whose database lies in `folder`. Nothing is read yet.
    pub fn open(root: &Path, folder: &Path, limits: Limits) -> Result<Self, GraphError> {
        let root = real_root(root).map_err(|source| GraphError::Root { path: root.to_owned(), source })?;
        let store = Store::open(&root, folder)?;
        Ok(Self { root, limits, store, snapshot: None, version: 0, beyond: 0 })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn database(&self) -> &Path {
        &self.store.path
    }

    pub fn size(&self) -> u64 {
        self.store.size()
    }

    /// What the person should know since the last time.
    pub fn take_words(&mut self) -> Vec<String> {
        std::mem::take(&mut self.store.words)
    }

    /// Looks at the files and reads those that changed.
    pub fn refresh(&mut self, progress: Progress<'_>) -> Result<Refreshed, GraphError> {
        match self.try_refresh(progress) {
            Err(GraphError::Database(error)) if damaged(&error) => {
                self.store.rollback();
                self.snapshot = None;
                self.store.start_again(&self.root, &error)?;
                self.try_refresh(progress)
            }
            other => other,
        }
    }

    fn try_refresh(&mut self, progress: Progress<'_>) -> Result<Refreshed, GraphError> {
        let started = Instant::now();
        let (seen, beyond) = scan(&self.root, &self.limits);
        self.beyond = beyond;
        let mut refreshed = Refreshed { files: seen.len(), walk: started.elapsed(), ..Refreshed::default() };
        let (mut changed, mut removed) = self.compare(&seen)?;
        let mut lock = None;
        if changed.len() > WORTH_WAITING {
            lock = self.wait_for_builders()?;
            if lock.is_some() {
                (changed, removed) = self.compare(&seen)?;
            }
        }
        if !changed.is_empty() || !removed.is_empty() {
            self.read_changed(&changed, &removed, &mut refreshed, progress)?;
            self.snapshot = None;
        }
        drop(lock);
        self.store.expire()?;
        refreshed.removed = removed.len();
        refreshed.total = started.elapsed();
        Ok(refreshed)
    }

    /// Indices of what is new or looks different, and paths that are gone.
    fn compare(&self, seen: &[Seen]) -> Result<(Vec<Seen>, Vec<String>), GraphError> {
        let rows = self.store.files()?;
        let (mut changed, mut removed) = (Vec::new(), Vec::new());
        let mut had = rows.iter().peekable();
        for file in seen {
            while let Some(row) = had.next_if(|row| row.path < file.path) {
                removed.push(row.path.clone());
            }
            match had.next_if(|row| row.path == file.path) {
                Some(row) if row.settled && row.stamp == file.stamp => {}
                _ => changed.push(file.clone()),
            }
        }
        removed.extend(had.map(|row| row.path.clone()));
        Ok((changed, removed))
    }

    /// Holds the builders' lock, waiting for another process that has it; without it after a while, because a stuck
    /// process must not stop this one. Writing is safe either way.
    fn wait_for_builders(&self) -> Result<Option<File>, GraphError> {
        let path = self.store.path.with_extension("db.lock");
        let file = File::create(&path).map_err(|source| GraphError::Folder { path, source })?;
        let until = Instant::now() + Duration::from_secs(20);
        while Instant::now() < until {
            if file.try_lock().is_ok() {
                return Ok(Some(file));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(None)
    }

    fn read_changed(
        &mut self,
        changed: &[Seen],
        removed: &[String],
        refreshed: &mut Refreshed,
        progress: Progress<'_>,
    ) -> Result<(), GraphError> {
        let known = self.store.known()?;
        let next = AtomicUsize::new(0);
        let (root, limits) = (&self.root, &self.limits);
        let store = &self.store;
        let threads = limits.threads.min(changed.len()).max(1);
        std::thread::scope(|scope| -> Result<(), GraphError> {
            let (sender, receiver) = sync_channel(256);
            for _ in 0..threads {
                let (sender, next, known) = (sender.clone(), &next, &known);
                scope.spawn(move || {
                    while let Some(file) = changed.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let read = read_file(root, file, known, limits);
                        // The writer has given up: so do we.
                        if sender.send((file, read)).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            store.begin()?;
            for path in removed {
                store.remove_file(path)?;
            }
            let mut fresh: QuickMap<(Hash, u8), i64> = QuickMap::default();
            for (done, (file, (read, stamp, settled))) in receiver.iter().enumerate() {
                if done % PORTION == PORTION - 1 {
                    store.commit()?;
                    store.begin()?;
                }
                if done % 64 == 0 {
                    progress(done, changed.len());
                }
                let (content, gap) = match read {
                    Read::Known { content, gap } => {
                        refreshed.reused += 1;
                        (Some(content), gap)
                    }
                    Read::New { hash, language, source, facts } => {
                        refreshed.parsed += 1;
                        let id = match fresh.get(&(hash, language)) {
                            Some(id) => *id,
                            None => store.add_content(&hash, language, &source, &facts)?,
                        };
                        fresh.insert((hash, language), id);
                        (Some(id), facts.gap)
                    }
                    Read::Out(gap) => (None, gap),
                    Read::Gone => {
                        store.remove_file(&file.path)?;
                        continue;
                    }
                };
                store.put_file(&FileRow { path: file.path.clone(), content, gap, stamp, settled })?;
            }
            store.make_indexes()?;
            store.commit()?;
            progress(changed.len(), changed.len());
            Ok(())
        })
        .inspect_err(|_| store.rollback())
    }

    /// The facts of all files, after looking at them.
    pub fn fresh(&mut self, progress: Progress<'_>) -> Result<(Arc<Snapshot>, Refreshed), GraphError> {
        let refreshed = self.refresh(progress)?;
        Ok((self.trusted()?, refreshed))
    }

    /// The facts as they were last read: for a caller that knows nothing has changed, or that would rather have
    /// part of the answer than wait.
    pub fn trusted(&mut self) -> Result<Arc<Snapshot>, GraphError> {
        match self.load() {
            Err(GraphError::Database(error)) if damaged(&error) => {
                self.snapshot = None;
                self.store.start_again(&self.root, &error)?;
                self.try_refresh(&|_, _| ())?;
                self.load()
            }
            other => other,
        }
    }

    fn load(&mut self) -> Result<Arc<Snapshot>, GraphError> {
        let version = self.store.data_version()?;
        if let Some(snapshot) = self.snapshot.clone().filter(|_| version == self.version) {
            return Ok(snapshot);
        }
        let mut seen: QuickMap<i64, Arc<Facts>> = QuickMap::default();
        let mut files = Vec::new();
        let mut out: Vec<(String, Gap)> = Vec::new();
        for row in self.store.files()? {
            if row.gap.left_out() {
                out.push((row.path.clone(), row.gap));
            }
            let Some(content) = row.content else { continue };
            let facts = match seen.get(&content) {
                Some(facts) => facts.clone(),
                None => match self.store.facts(content)? {
                    Some(facts) => seen.entry(content).or_insert(Arc::new(facts)).clone(),
                    None => {
                        // Unreadable facts: forget them, the file is read again next time.
                        self.store.drop_content(content)?;
                        continue;
                    }
                },
            };
            files.push(FileFacts { path: row.path.into(), content, facts });
        }
        if self.beyond > 0 {
            out.push((format!("{} files", self.beyond), Gap::TooMany));
        }
        let snapshot = Arc::new(Snapshot::new(self.root.clone(), files, out));
        self.version = self.store.data_version()?;
        self.snapshot = Some(snapshot.clone());
        Ok(snapshot)
    }

    pub fn source(&self, content: i64) -> Option<String> {
        self.store.source(content).ok().flatten()
    }
}

fn read_file(root: &Path, file: &Seen, known: &Known, limits: &Limits) -> (Read, Stamp, bool) {
    if file.stamp.size > limits.file_bytes {
        return (Read::Out(Gap::TooLarge), file.stamp, true);
    }
    let path = root.join(&file.path);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) if bytes.len() as u64 <= limits.file_bytes => bytes,
        Ok(_) => return (Read::Out(Gap::TooLarge), file.stamp, false),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return (Read::Gone, file.stamp, false),
        Err(_) => return (Read::Out(Gap::Unreadable), file.stamp, false),
    };
    // What was written during the last clock tick can be written again without looking different.
    let after = std::fs::symlink_metadata(&path).map(|metadata| Stamp::of(&metadata)).ok();
    let recent = now_nanos() - file.stamp.mtime.max(file.stamp.ctime) < 50_000_000;
    let settled = after == Some(file.stamp) && !recent;
    let hash = hash_of(&bytes);
    let text = text_of(&file.path, bytes);
    let Text::Source(language, _) = &text else {
        let Text::Nothing(gap) = text else { return (Read::Gone, file.stamp, false) };
        return (Read::Out(gap), file.stamp, settled);
    };
    let language = *language as u8;
    if let Some((content, gap)) = known.get(&(hash, language)) {
        return (Read::Known { content: *content, gap: *gap }, file.stamp, settled);
    }
    let facts = facts_of(&text);
    let Text::Source(_, source) = text else { return (Read::Gone, file.stamp, false) };
    (Read::New { hash, language, source, facts }, file.stamp, settled)
}
