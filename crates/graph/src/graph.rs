//! The graph of a repository, brought up to date before every answer.

mod load;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::error::GraphError;
use crate::facts::{Facts, Gap};
use crate::hash::{QuickMap, QuickSet};
use crate::index::Index;
use crate::index_build::IndexBuild;
use crate::layout::{Layout, read_regular};
use crate::scan::{FileScan, GraphLimits, SourceFile, Stamp, real_root, scan};
use crate::snapshot::Snapshot;
use crate::source_text::{Hash, SourceText, facts_of, hash_of, text_of};
use crate::store::{FileRow, KnownContents, Store, is_database_damage};
use crate::watch::{TreeWatch, WatchResult};

/// Files are written in portions: a killed build has not worked in vain, a question meanwhile can be answered from
/// the portions written, others get to write between them, and memory stays small.
const PORTION_FILES: usize = 500;
const PORTION_BYTES: usize = 4 << 20;

/// The number of read files that wait for the writer.
const WAITING: usize = 32;

/// From this number of changed files on, one process reads them and others wait for it.
const WORTH_WAITING: usize = 64;

/// The time that a build waits for another build.
const PATIENCE: Duration = Duration::from_secs(20);

/// The time that a question waits for a build before it is answered from what is there.
const GRACE: Duration = Duration::from_millis(200);

/// The work of bringing the graph up to date.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct RefreshReport {
    pub files: usize,
    pub parsed: usize,
    /// The number of changed files whose content was known already.
    pub reused: usize,
    pub removed: usize,
    /// The number of files that another builder is reading at this moment, and that are not in the answer.
    pub pending: usize,
    pub walk: Duration,
    pub total: Duration,
}

impl RefreshReport {
    /// A note for an answer that was given while the index is being built.
    pub fn partial(&self) -> Option<String> {
        (self.pending > 0).then(|| {
            let read = self.files.saturating_sub(self.pending);
            format!(
                "the index is still being built: {read} of {} files; this answer is from what is there",
                self.files
            )
        })
    }
}

pub struct Graph {
    root: PathBuf,
    limits: GraphLimits,
    store: Store,
    snapshot: Option<Arc<Snapshot>>,
    /// The previous snapshot: most facts of the next one are in it.
    previous: Option<Arc<Snapshot>>,
    version: i64,
    beyond: usize,
    /// Files that another builder is reading: the known facts about them are too old to answer from.
    pending: QuickSet<String>,
    watch: Option<TreeWatch>,
    /// The last index. A check whether it is still valid happens when a snapshot is made.
    index: Option<Arc<Index>>,
    making: Option<IndexBuild>,
    layout: Option<Layout>,
    /// The files as the database has them, with its version at that time. None after a write of our own.
    rows: Option<(i64, Arc<Vec<FileRow>>)>,
    stop: Arc<AtomicBool>,
}

/// The purposes for which the files are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wants {
    Facts,
    /// Only the database is to be up to date.
    Order,
}

/// The options while another builder is at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Busy {
    Wait,
    Answer,
}

/// A callback that gets the number of files read and the number of all files.
pub type Progress<'a> = &'a (dyn Fn(usize, usize) + Sync);

enum FileRead {
    Known { content: i64, gap: Gap },
    New { hash: Hash, language: u8, source: String, facts: Facts },
    Out(Gap),
    Gone,
}

impl FileRead {
    fn bytes(&self) -> usize {
        match self {
            Self::New { source, .. } => source.len(),
            Self::Known { .. } | Self::Out(_) | Self::Gone => 0,
        }
    }
}

fn now_nanos() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i64)
}

impl Graph {
    /// Opens the graph of the folder `root`, whose database is in `folder`. Nothing is read yet.
    pub fn open(root: &Path, folder: &Path, limits: GraphLimits) -> Result<Self, GraphError> {
        let root = real_root(root).map_err(|source| GraphError::Root { path: root.to_owned(), source })?;
        let store = Store::open(&root, folder)?;
        Ok(Self {
            root,
            limits,
            store,
            snapshot: None,
            previous: None,
            version: 0,
            beyond: 0,
            pending: QuickSet::default(),
            watch: None,
            index: None,
            making: None,
            layout: None,
            rows: None,
            stop: Arc::default(),
        })
    }

    /// Watches the folders, so that the files need not be checked for a question if nothing has happened. For
    /// processes that ask more than once.
    pub fn watching(mut self) -> Self {
        self.watch = TreeWatch::start(&self.root);
        self
    }

    /// Stops reading at the next file once this is set. Files that were read are kept.
    pub(crate) fn stopped_by(mut self, stop: Arc<AtomicBool>) -> Self {
        self.stop = stop;
        self
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

    /// The new messages for the user since the last call.
    pub fn take_messages(&mut self) -> Vec<String> {
        std::mem::take(&mut self.store.messages)
    }

    /// Checks the files and reads those that changed, waiting for other builders.
    pub fn refresh(&mut self, progress: Progress<'_>) -> Result<RefreshReport, GraphError> {
        self.refresh_when(Busy::Wait, Wants::Order, progress)
    }

    fn refresh_when(
        &mut self,
        busy: Busy,
        wants: Wants,
        progress: Progress<'_>,
    ) -> Result<RefreshReport, GraphError> {
        match self.try_refresh(busy, wants, progress) {
            Err(GraphError::Database(error)) if is_database_damage(&error) => {
                self.store.rollback();
                self.start_again(&error)?;
                self.try_refresh(busy, wants, progress)
            }
            other => other,
        }
    }

    fn try_refresh(
        &mut self,
        busy: Busy,
        wants: Wants,
        progress: Progress<'_>,
    ) -> Result<RefreshReport, GraphError> {
        let started = Instant::now();
        let happened = self.watch.as_mut().map_or(WatchResult::Unknown, TreeWatch::changes);
        let narrowed = match happened {
            WatchResult::Nothing => Some((Vec::new(), Vec::new())),
            WatchResult::Files(paths) => self.check_paths(paths),
            WatchResult::Unknown => None,
        };
        if let (Some((changed, removed)), Some(snapshot)) = (narrowed, &self.snapshot) {
            let files = snapshot.files.len() + snapshot.left_out.len();
            let mut refreshed = RefreshReport { files, removed: removed.len(), ..RefreshReport::default() };
            self.read_changes(&changed, &removed, None, &mut refreshed, progress)?;
            refreshed.total = started.elapsed();
            return Ok(refreshed);
        }
        let Some((FileScan { files: seen, beyond, layout }, walk)) = self.walk(wants) else {
            return Ok(RefreshReport { total: started.elapsed(), ..RefreshReport::default() });
        };
        self.beyond = beyond;
        let mut refreshed = RefreshReport { files: seen.len(), walk, ..RefreshReport::default() };
        let (mut changed, mut removed) = self.compare(&seen)?;
        let mut lock = None;
        if changed.len() > WORTH_WAITING {
            lock = self.wait_for_builders(if busy == Busy::Wait { PATIENCE } else { GRACE })?;
            (changed, removed) = self.compare(&seen)?;
            if lock.is_none() && busy == Busy::Answer && changed.len() > WORTH_WAITING {
                refreshed.pending = changed.len();
                refreshed.total = started.elapsed();
                self.pending = changed.into_iter().map(|file| file.path).chain(removed).collect();
                self.set_snapshot_aside();
                return Ok(refreshed);
            }
        }
        if !self.pending.is_empty() {
            self.pending.clear();
            self.set_snapshot_aside();
        }
        self.read_changes(&changed, &removed, Some(started), &mut refreshed, progress)?;
        drop(lock);
        if let Some(layout) = layout.filter(|layout| Some(layout) != self.layout.as_ref()) {
            // Without the layout the next check only takes longer.
            let _ = self.store.put_layout(&layout);
            self.layout = Some(layout);
        }
        self.store.expire()?;
        refreshed.removed = removed.len();
        refreshed.total = started.elapsed();
        Ok(refreshed)
    }

    /// Checks the files, and returns the time that took. When facts are wanted for the first time, the list of files
    /// is loaded concurrently, because mostly nothing has changed.
    fn walk(&mut self, wants: Wants) -> Option<(FileScan, Duration)> {
        let mut watch = self.watch.take();
        if let Some(watch) = &mut watch {
            watch.begin();
        }
        // An error of the database occurs again, and is reported, when the files are compared.
        let layout = self.layout.take().or_else(|| self.store.layout().ok().flatten());
        let (root, limits, stop) = (self.root.clone(), self.limits, Arc::clone(&self.stop));
        let look = || {
            let started = Instant::now();
            let known = layout.as_ref().filter(|layout| layout.files.len() <= limits.files);
            let walked = known
                .and_then(|layout| layout.rescan(&root, limits.threads, watch.as_ref(), &stop))
                .or_else(|| scan(&root, &limits, watch.as_ref(), &stop));
            walked.map(|walked| (walked, started.elapsed()))
        };
        let walked = if wants == Wants::Facts && self.snapshot.is_none() && self.previous.is_none() {
            std::thread::scope(|scope| {
                let looking = scope.spawn(look);
                let _ = self.load();
                looking.join().ok().flatten()
            })
        } else {
            look()
        };
        (self.watch, self.layout) = (watch, layout);
        walked
    }

    /// Reads what changed, and informs the watcher that everything is known that a walk at this time saw.
    fn read_changes(
        &mut self,
        changed: &[SourceFile],
        removed: &[String],
        walk: Option<Instant>,
        refreshed: &mut RefreshReport,
        progress: Progress<'_>,
    ) -> Result<(), GraphError> {
        let mut unsettled = Vec::new();
        if !changed.is_empty() || !removed.is_empty() {
            unsettled = self.read_changed(changed, removed, refreshed, progress)?;
            self.set_snapshot_aside();
        }
        if let Some(watch) = &mut self.watch {
            watch.mark_read(walk, unsettled);
        }
        Ok(())
    }

    /// The state of files that the watcher reported. None if one of them is new, because it may be ignored.
    fn check_paths(&self, paths: Vec<String>) -> Option<(Vec<SourceFile>, Vec<String>)> {
        let snapshot = self.snapshot.as_ref()?;
        let (mut changed, mut removed) = (Vec::new(), Vec::new());
        for path in paths {
            let known =
                snapshot.file(&path).is_some() || snapshot.left_out.iter().any(|(out, _)| *out == path);
            match std::fs::symlink_metadata(self.root.join(&path)) {
                Ok(metadata) if known && metadata.is_file() => {
                    changed.push(SourceFile { path, stamp: Stamp::of(&metadata) });
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    removed.extend(known.then_some(path))
                }
                Ok(_) | Err(_) => return None,
            }
        }
        Some((changed, removed))
    }

    /// The files that are new or look different, and the paths that are gone.
    fn compare(&mut self, seen: &[SourceFile]) -> Result<(Vec<SourceFile>, Vec<String>), GraphError> {
        let rows = self.rows()?;
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

    /// Takes the builders' lock, waiting for another process that has it. After a while it continues without the
    /// lock, because a stuck process must not stop this one. Writing is safe either way.
    fn wait_for_builders(&self, patience: Duration) -> Result<Option<File>, GraphError> {
        let path = self.store.path.with_extension("db.lock");
        let file = File::create(&path).map_err(|source| GraphError::Folder { path, source })?;
        let until = Instant::now() + patience;
        while !self.stop.load(Ordering::Relaxed) {
            if file.try_lock().is_ok() {
                return Ok(Some(file));
            }
            if Instant::now() > until {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(None)
    }

    /// Reads the changed files. Returns those that may have been written at the moment they were read.
    fn read_changed(
        &mut self,
        changed: &[SourceFile],
        removed: &[String],
        refreshed: &mut RefreshReport,
        progress: Progress<'_>,
    ) -> Result<Vec<String>, GraphError> {
        self.rows = None;
        let known = self.store.known()?;
        let next = AtomicUsize::new(0);
        let (root, limits, stop) = (&self.root, &self.limits, &self.stop);
        let store = &self.store;
        let threads = limits.threads.min(changed.len()).max(1);
        std::thread::scope(|scope| -> Result<Vec<String>, GraphError> {
            let (sender, receiver) = sync_channel(WAITING);
            for _ in 0..threads {
                let (sender, next, known) = (sender.clone(), &next, &known);
                scope.spawn(move || {
                    while let Some(file) = changed.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if stop.load(Ordering::Relaxed) {
                            return;
                        }
                        let read = read_file(root, file, known, limits);
                        // The writer has given up, so the readers stop.
                        if sender.send((file, read)).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            let mut writing =
                FactsWriter { store, refreshed, fresh: QuickMap::default(), unsettled: Vec::new() };
            let mut portion = Vec::new();
            let mut bytes = 0;
            let mut gone = removed;
            for (done, one) in receiver.iter().enumerate() {
                if done % 64 == 0 {
                    progress(done, changed.len());
                }
                bytes += one.1.0.bytes();
                portion.push(one);
                if portion.len() >= PORTION_FILES || bytes >= PORTION_BYTES {
                    writing.write(std::mem::take(&mut gone), std::mem::take(&mut portion))?;
                    bytes = 0;
                }
            }
            writing.write(gone, portion)?;
            let unsettled = writing.unsettled;
            if !stop.load(Ordering::Relaxed) {
                progress(changed.len(), changed.len());
            }
            Ok(unsettled)
        })
    }

    pub fn source(&self, content: i64) -> Option<String> {
        self.store.source(content).ok().flatten().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    pub(crate) fn bytes(&self, content: i64) -> Vec<u8> {
        self.store.source(content).ok().flatten().unwrap_or_default()
    }
}

/// The writer of a build.
struct FactsWriter<'a> {
    store: &'a Store,
    refreshed: &'a mut RefreshReport,
    /// Contents that this build has met, by hash and language.
    fresh: QuickMap<(Hash, u8), i64>,
    unsettled: Vec<String>,
}

impl FactsWriter<'_> {
    /// Writes one portion, completely or not at all.
    fn write(
        &mut self,
        gone: &[String],
        portion: Vec<(&SourceFile, (FileRead, Stamp, bool))>,
    ) -> Result<(), GraphError> {
        if gone.is_empty() && portion.is_empty() {
            return Ok(());
        }
        self.store.begin()?;
        let written = self.put_all(gone, portion).and_then(|()| Ok(self.store.commit()?));
        written.inspect_err(|_| self.store.rollback())
    }

    fn put_all(
        &mut self,
        gone: &[String],
        portion: Vec<(&SourceFile, (FileRead, Stamp, bool))>,
    ) -> Result<(), GraphError> {
        for path in gone {
            self.store.remove_file(path)?;
        }
        for (file, (read, stamp, settled)) in portion {
            if !settled {
                self.unsettled.push(file.path.clone());
            }
            let (content, gap) = match read {
                FileRead::Known { content, gap } => {
                    self.refreshed.reused += 1;
                    (Some(content), gap)
                }
                FileRead::New { hash, language, source, facts } => {
                    self.refreshed.parsed += 1;
                    let id = match self.fresh.get(&(hash, language)) {
                        Some(id) => *id,
                        None => self.store.add_content(&hash, language, &source, &facts)?,
                    };
                    self.fresh.insert((hash, language), id);
                    (Some(id), facts.gap)
                }
                FileRead::Out(gap) => (None, gap),
                FileRead::Gone => {
                    self.store.remove_file(&file.path)?;
                    continue;
                }
            };
            self.store.put_file(&FileRow { path: file.path.clone(), content, gap, stamp, settled })?;
        }
        Ok(())
    }
}

fn read_file(
    root: &Path,
    file: &SourceFile,
    known: &KnownContents,
    limits: &GraphLimits,
) -> (FileRead, Stamp, bool) {
    if file.stamp.size > limits.file_bytes {
        return (FileRead::Out(Gap::TooLarge), file.stamp, true);
    }
    let path = root.join(&file.path);
    let bytes = match read_regular(&path, limits.file_bytes) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => {
            return (FileRead::Out(Gap::TooLarge), file.stamp, false);
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return (FileRead::Gone, file.stamp, false);
        }
        Err(_) => return (FileRead::Out(Gap::Unreadable), file.stamp, false),
    };
    // A file written during the last clock tick can be written again without looking different.
    let after = std::fs::symlink_metadata(&path).map(|metadata| Stamp::of(&metadata)).ok();
    let recent = now_nanos() - file.stamp.mtime.max(file.stamp.ctime) < 50_000_000;
    let settled = after == Some(file.stamp) && !recent;
    let hash = hash_of(&bytes);
    let text = text_of(&file.path, bytes);
    let SourceText::Source(language, _) = &text else {
        let SourceText::Nothing(gap) = text else { return (FileRead::Gone, file.stamp, false) };
        return (FileRead::Out(gap), file.stamp, settled);
    };
    let language = *language as u8;
    if let Some((content, gap)) = known.get(&(hash, language)) {
        return (FileRead::Known { content: *content, gap: *gap }, file.stamp, settled);
    }
    let facts = facts_of(&text);
    let SourceText::Source(_, source) = text else { return (FileRead::Gone, file.stamp, false) };
    (FileRead::New { hash, language, source, facts }, file.stamp, settled)
}
