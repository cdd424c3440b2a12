//! The tree as it was before a line, kept current from line to line.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use lathe_blobs::Blobs;

use crate::beneath::{Rel, Root};
use crate::book::Book;
use crate::examine::{Candidate, Examine, Keep, Outcome, WORKERS};
use crate::manifest::{KnownEntry, Manifest, ManifestEntry, Oids, Preimage};
use crate::pack::{CopyLocation, Packs};
use crate::pledge::Pledges;
use crate::references::{Reference, ReferenceFinder};
use crate::stat::Since;
use crate::walk::{SeenPath, Walk};
use crate::watch::{Depth, TreeWatcher};
use crate::{ChangesError, NotUndoable, TreeChange};

/// Limits of what is kept. Changes beyond them are reported as not undoable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrackerLimits {
    /// The largest file. It is held in memory while it is examined.
    pub file_bytes: u64,
    /// The size of all copies together, and of all new content of one comparison.
    pub total_bytes: u64,
    /// The number of files, links and folders.
    pub files: usize,
}

impl Default for TrackerLimits {
    fn default() -> Self {
        Self { file_bytes: 64 << 20, total_bytes: 2 << 30, files: 500_000 }
    }
}

/// The number of paths examined at once when the tree is secured.
const AT_ONCE: usize = 4096;

/// Tells whether the kernel reports changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Watch {
    #[default]
    On,
    /// Every scan covers the whole tree.
    Off,
}

#[derive(Debug, Clone)]
pub struct TrackerOptions {
    /// The folder to track, absolute.
    pub root: PathBuf,
    /// The permanent store of changed content.
    pub blobs: Blobs,
    /// A private folder for copies, outside of the tree or in `exclude`. It is made if it does not exist.
    pub scratch: PathBuf,
    pub limits: TrackerLimits,
    /// Absolute folders that are not tracked, like Lathe's home. `scratch` and the blobs never are.
    pub exclude: Vec<PathBuf>,
    pub watch: Watch,
}

/// The changes in the tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Compared {
    /// Ordered by path.
    pub changes: Vec<TreeChange>,
    /// Other changes, which cannot be undone. Ordered by path.
    pub not_undoable: Vec<NotUndoable>,
}

/// A summary of what is secured, for people and the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Secured {
    pub entries: usize,
    /// Files whose content git has.
    pub by_reference: usize,
    /// Bytes copied.
    pub copied_bytes: u64,
    /// True if the watcher narrows the comparison.
    pub watched: bool,
}

/// Knows the tree as it was, and finds what changed since.
#[derive(Debug)]
pub struct Tracker {
    pub(crate) options: TrackerOptions,
    excluded: Vec<Rel>,
    pub(crate) root: Root,
    pub(crate) inode: u64,
    pub(crate) manifest: Manifest,
    packs: Packs,
    oids: Oids,
    pub(crate) watcher: Option<TreeWatcher>,
    /// Set while a scan is in progress: if it fails, the next one covers everything.
    pub(crate) unsettled: bool,
    /// A copy of the repository, if the repository itself is gone.
    git_copy: Option<PathBuf>,
    /// The record for recovery after a crash. None before the first line.
    book: Option<Book>,
    /// True if packs and book were left by another process, and stay.
    left: bool,
    /// Entries that differ from the book. They are written to it when the next line begins, because until then the
    /// journal may not have the changes of the last one.
    pending: BTreeSet<Rel>,
    /// Copies that the book may still need.
    released: Vec<CopyLocation>,
    /// Paths that are new since the scan before the last one, and are not kept.
    new_unkept: Vec<PathBuf>,
}

/// The changes of a line whose process was killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// The mark that the line was given when it began.
    pub line: String,
    pub compared: Compared,
}

/// The changes so far of the last line of a killed process, computed from what the process left in `scratch`. None if
/// no line had begun. This may be repeated: only [`Tracker::secure`] removes anything.
pub fn recover(options: TrackerOptions) -> Result<Option<Recovered>, ChangesError> {
    let folder = tree_folder(&options.scratch);
    let failed = |source| ChangesError::Scratch { scratch: options.scratch.clone(), source };
    let Some(read) = Book::read_whole(&folder).map_err(failed)? else { return Ok(None) };
    let Some(line) = read.line else { return Ok(None) };
    let root = Root::open_or_gone(&options.root)?;
    let inode = root.inode().map_err(|error| ChangesError::io("inspect", &root.path, error))?;
    let mut tracker = Tracker {
        excluded: excluded(&options),
        root,
        inode,
        manifest: read.manifest,
        packs: Packs::left(&folder, WORKERS).map_err(failed)?,
        oids: read.oids,
        watcher: None,
        unsettled: false,
        git_copy: None,
        book: None,
        left: true,
        pending: BTreeSet::new(),
        released: Vec::new(),
        new_unkept: Vec::new(),
        options,
    };
    let compared = tracker.full_check()?;
    Ok(Some(Recovered { line, compared }))
}

/// The minimum free space for copies before a line may run: room to record its changes.
const ROOM: u64 = 8 << 20;

// The numbers have other types on other systems.
#[allow(clippy::useless_conversion)]
fn room(folder: &Path) -> std::io::Result<u64> {
    let found = nix::sys::statvfs::statvfs(folder)?;
    Ok(u64::from(found.blocks_available()).saturating_mul(u64::from(found.fragment_size())))
}

/// Removes what a killed process left in `scratch`, once it was recovered or is of no use.
pub fn discard(scratch: &Path) {
    let _ = Book::discard(&tree_folder(scratch));
    Pledges::of(scratch).discard();
}

/// The folder of packs and book. Other files of a session lie next to it.
fn tree_folder(scratch: &Path) -> PathBuf {
    scratch.join("tree")
}

/// The extent of a scan.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ScanScope {
    /// The paths that the watcher reports.
    Touched,
    Everything,
}

impl Tracker {
    /// Secures everything in the tree, within the limits, so that it can be restored. Takes seconds for a large tree.
    /// The tree may change meanwhile: [`refresh`](Self::refresh) adopts such changes.
    pub fn secure(options: TrackerOptions) -> Result<Self, ChangesError> {
        let since = Since::now();
        let root = Root::open(&options.root)?;
        let inode = root.inode().map_err(|error| ChangesError::io("inspect", &root.path, error))?;
        let packs = make_packs(&options)
            .map_err(|source| ChangesError::Scratch { scratch: options.scratch.clone(), source })?;
        let mut tracker = Self {
            excluded: excluded(&options),
            root,
            inode,
            manifest: Manifest::default(),
            packs,
            oids: Oids::default(),
            watcher: start_watcher(options.watch),
            unsettled: false,
            git_copy: None,
            book: None,
            left: false,
            pending: BTreeSet::new(),
            released: Vec::new(),
            new_unkept: Vec::new(),
            options,
        };
        let (seen, asked) = std::thread::scope(|scope| {
            let asked = scope.spawn(|| ReferenceFinder::open(&tracker.root.path));
            let seen = tracker.walk().all();
            (seen, asked.join().ok().flatten())
        });
        tracker.check_watcher();
        let references = match asked {
            Some(asked) => asked.references(&seen, &mut tracker.oids),
            None => vec![Reference::None; seen.len()],
        };
        tracker.fill(seen, references, since)?;
        Ok(tracker)
    }

    /// Adopts the changes that others made since the last scan as the state before the next line. Returns their
    /// paths.
    pub fn refresh(&mut self) -> Result<Vec<PathBuf>, ChangesError> {
        let since = Since::now();
        let candidates = self.scan(ScanScope::Touched)?;
        let outcomes = self.examine(Keep::Copies, since).run(&candidates)?;
        let changed = outcomes.iter().filter(|outcome| outcome.changed);
        let mut paths: Vec<PathBuf> = changed.map(|outcome| self.root.absolute(&outcome.rel)).collect();
        self.settle(outcomes)?;
        paths.sort();
        Ok(paths)
    }

    /// Does the same for these paths alone, with the folders above them. Other changes stay for the next comparison.
    pub fn refresh_only(&mut self, paths: &[PathBuf]) -> Result<(), ChangesError> {
        let since = Since::now();
        let rels = paths.iter().filter_map(|path| path.strip_prefix(&self.root.path).ok());
        let mut wanted: BTreeMap<Rel, Depth> = BTreeMap::new();
        for rel in rels {
            let above = rel.ancestors().filter(|path| !path.as_os_str().is_empty());
            wanted.extend(above.map(|path| (Rel::from(path.as_os_str().as_bytes()), Depth::One)));
        }
        let only: BTreeSet<Rel> = wanted.keys().cloned().collect();
        // A path that cannot be reached now is found by the next comparison.
        let Ok(candidates) = self.scan_paths(wanted) else { return Ok(()) };
        let mut outcomes = self.examine(Keep::Copies, since).run(&candidates)?;
        outcomes.retain(|outcome| only.contains(&outcome.rel));
        let unsettled = self.unsettled;
        self.settle(outcomes)?;
        self.unsettled = unsettled;
        Ok(())
    }

    /// Writes the book ahead of the first line. For a large tree this takes a while, and the line would have to wait
    /// for it.
    pub fn write_book(&mut self) -> Result<(), ChangesError> {
        self.write_down(None)
    }

    /// Makes the current state durable as the state before a line. To be called after [`refresh`](Self::refresh) or
    /// [`secure`](Self::secure), before the line runs; `line` is its name for [`recover`].
    pub fn begin_line(&mut self, line: &str) -> Result<(), ChangesError> {
        self.write_down(Some(line))
    }

    fn write_down(&mut self, line: Option<&str>) -> Result<(), ChangesError> {
        let folder = tree_folder(&self.options.scratch);
        let mut written = || -> std::io::Result<()> {
            if line.is_some() && room(&folder)? < ROOM {
                return Err(std::io::ErrorKind::StorageFull.into());
            }
            // The book names locations in the packs, so the packs are made durable first.
            self.packs.sync()?;
            let book = match self.book.take().filter(|book| !book.has_outgrown()) {
                Some(mut book) => {
                    let entries =
                        self.pending.iter().map(|rel| (rel, self.manifest.get(rel).map(KnownEntry::entry)));
                    book.append(entries, &self.oids).map(|()| book)?
                }
                None => Book::write(&folder, &self.manifest, &self.oids)?,
            };
            self.pending.clear();
            let book = self.book.insert(book);
            match line {
                Some(line) => book.begin(&folder, line),
                None => book.sync(),
            }
        };
        let failed = |source| ChangesError::Scratch { scratch: self.options.scratch.clone(), source };
        written().map_err(failed)?;
        for place in self.released.drain(..) {
            self.packs.release(place);
        }
        Ok(())
    }

    /// True if the last scan failed: then the next one finds the changes that it missed.
    pub fn is_unsettled(&self) -> bool {
        self.unsettled
    }

    /// The changes since the last scan. The current state becomes the state before the next line.
    pub fn compare(&mut self) -> Result<Compared, ChangesError> {
        self.compare_within(ScanScope::Touched)
    }

    /// Does the same, with git's objects read from a copy of the repository.
    pub fn compare_with_git_copy(&mut self, git_copy: Option<PathBuf>) -> Result<Compared, ChangesError> {
        self.git_copy = git_copy;
        let compared = self.compare();
        self.git_copy = None;
        compared
    }

    /// The paths that were not there before the last comparison and that it did not keep, such as folders of caches.
    pub fn take_new_unkept(&mut self) -> Vec<PathBuf> {
        std::mem::take(&mut self.new_unkept)
    }

    /// Every `.git` in the tree that was scanned.
    pub fn git_paths(&self) -> Vec<PathBuf> {
        self.manifest.git_paths().map(|rel| self.root.absolute(rel)).collect()
    }

    /// Tells whether one of these names may lead to a file of the tree by another path.
    pub fn is_alias(&self, names: &[&OsStr]) -> bool {
        self.manifest.is_alias(names)
    }

    /// The changes without trust in the watcher, for the end of a task. The watcher does not report writes through a
    /// memory mapping that outlives its file descriptor, through a hard link that lies outside of the tree or came and
    /// went since the last scan, or by other machines on a shared file system. A walk finds them.
    pub fn full_check(&mut self) -> Result<Compared, ChangesError> {
        self.compare_within(ScanScope::Everything)
    }

    /// The paths in the tree that cannot be restored if a line changes them. Ordered by path.
    pub fn not_undoable(&self) -> Vec<NotUndoable> {
        let mut found = Vec::new();
        self.manifest.visit(|rel, known| {
            found.extend(known.why_lost().map(|why| NotUndoable { path: self.root.absolute(rel), why }));
        });
        found.sort();
        found
    }

    pub fn secured(&self) -> Secured {
        let mut by_reference = 0;
        self.manifest.visit(|_, known| by_reference += usize::from(known.is_reference()));
        Secured {
            entries: self.manifest.len(),
            by_reference,
            copied_bytes: self.packs.live(),
            watched: self.watcher.is_some(),
        }
    }

    fn compare_within(&mut self, scope: ScanScope) -> Result<Compared, ChangesError> {
        let since = Since::now();
        let candidates = self.scan(scope)?;
        let batch = self.options.blobs.batch();
        let keep = Keep::Blobs { batch: &batch, taken: &AtomicU64::new(0) };
        let mut outcomes = self.examine(keep, since).run(&candidates)?;
        // The changes name blobs, so the blobs are made durable first.
        batch.finish()?;
        let mut compared = Compared::default();
        let is_new_unkept =
            |one: &&Outcome| one.not_undoable.is_some() && self.manifest.get(&one.rel).is_none();
        self.new_unkept =
            outcomes.iter().filter(is_new_unkept).map(|one| self.root.absolute(&one.rel)).collect();
        for outcome in &mut outcomes {
            compared.changes.extend(outcome.change.take());
            let path = || self.root.absolute(&outcome.rel);
            compared.not_undoable.extend(outcome.not_undoable.map(|why| NotUndoable { path: path(), why }));
        }
        self.settle(outcomes)?;
        compared.changes.sort_by(|a, b| a.path.cmp(&b.path));
        compared.not_undoable.sort();
        Ok(compared)
    }

    /// Writes the first entries: references to git's objects where they are proven, copies of the rest.
    fn fill(
        &mut self,
        seen: Vec<SeenPath>,
        references: Vec<Reference>,
        since: Since,
    ) -> Result<(), ChangesError> {
        let mut builder = Manifest::with_room(seen.len());
        let mut rest = seen.into_iter().zip(references).peekable();
        while rest.peek().is_some() {
            // This bounds the number of paths held besides the entries, even if git has nothing of the tree.
            let mut references = Vec::new();
            let mut candidates = Vec::new();
            while candidates.len() < AT_ONCE
                && let Some((one, reference)) = rest.next()
            {
                let is_small = one.stat.size <= self.options.limits.file_bytes;
                match reference {
                    // A file touched since git was queried may differ from what git read.
                    Reference::Proven(number) if is_small && !since.is_racy(&one.stat) => {
                        let (stat, attributes) = (one.stat, one.attributes);
                        let entry =
                            ManifestEntry { stat, racy: false, pre: Preimage::Git(number), attributes };
                        match candidates.is_empty() {
                            true => builder.push(&one.rel, entry),
                            false => references.push((one.rel, entry)),
                        }
                    }
                    Reference::Proven(number) | Reference::Likely(number) => {
                        let object = Some(number).filter(|_| is_small);
                        candidates.push(Candidate { object, ..Candidate::new(one.rel.clone(), Some(one)) });
                    }
                    Reference::None => candidates.push(Candidate::new(one.rel.clone(), Some(one))),
                }
            }
            let outcomes = self.examine(Keep::Copies, since).run(&candidates)?;
            drop(candidates);
            let mut entries = references;
            entries.extend(outcomes.into_iter().filter_map(|outcome| Some((outcome.rel, outcome.entry??))));
            entries.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
            entries.into_iter().for_each(|(rel, entry)| builder.push(&rel, entry));
        }
        self.manifest = builder.finish();
        self.manifest.share(&self.options.root);
        self.oids.shrink();
        self.flush()
    }

    /// Moves the baseline.
    fn settle(&mut self, outcomes: Vec<Outcome>) -> Result<(), ChangesError> {
        for outcome in outcomes {
            let Some(entry) = outcome.entry else { continue };
            let kept = match entry.as_ref().map(|entry| &entry.pre) {
                Some(Preimage::Pack(place)) => Some(*place),
                _ => None,
            };
            if let Some(ManifestEntry { pre: Preimage::Pack(place), .. }) =
                self.manifest.set(&outcome.rel, entry)
                && kept != Some(place)
            {
                self.released.push(place);
            }
            self.pending.insert(outcome.rel);
        }
        self.manifest.settle();
        self.flush()?;
        self.unsettled = false;
        Ok(())
    }

    fn flush(&self) -> Result<(), ChangesError> {
        let scratch = || self.options.scratch.clone();
        self.packs.settle().map_err(|source| ChangesError::Scratch { scratch: scratch(), source })
    }

    /// Drops a watcher that does not see every folder, because it is of no use.
    pub(crate) fn check_watcher(&mut self) {
        if self.watcher.as_ref().is_some_and(|watcher| !watcher.is_complete()) {
            self.watcher = None;
        }
    }

    pub(crate) fn walk(&self) -> Walk<'_> {
        Walk {
            root: &self.root,
            manifest: &self.manifest,
            watcher: self.watcher.as_ref(),
            excluded: &self.excluded,
            limit: self.options.limits.files,
        }
    }

    fn examine<'a>(&'a self, keep: Keep<'a>, since: Since) -> Examine<'a> {
        Examine {
            root: &self.root,
            manifest: &self.manifest,
            packs: &self.packs,
            oids: &self.oids,
            blobs: &self.options.blobs,
            scratch: &self.options.scratch,
            file_bytes: self.options.limits.file_bytes.min(u64::from(u32::MAX)),
            total_bytes: self.options.limits.total_bytes,
            since,
            keep,
            git_copy: self.git_copy.as_deref(),
        }
    }
}

impl Drop for Tracker {
    /// A process that ends in order needs the copies no longer.
    fn drop(&mut self) {
        if !self.left {
            let _ = Book::discard(&tree_folder(&self.options.scratch));
        }
    }
}

pub(crate) fn start_watcher(watch: Watch) -> Option<TreeWatcher> {
    match watch {
        Watch::On => TreeWatcher::start(),
        Watch::Off => None,
    }
}

fn make_packs(options: &TrackerOptions) -> std::io::Result<Packs> {
    use std::os::unix::fs::DirBuilderExt as _;
    let folder = tree_folder(&options.scratch);
    // Leftovers of a killed process were recovered, or are of no use.
    Book::discard(&folder)?;
    std::fs::DirBuilder::new().mode(0o700).recursive(true).create(&folder)?;
    Packs::new(&folder, WORKERS, options.limits.total_bytes)
}

fn excluded(options: &TrackerOptions) -> Vec<Rel> {
    let own = [options.scratch.as_path(), options.blobs.dir()];
    let all = options.exclude.iter().map(PathBuf::as_path).chain(own);
    // Both as written and as resolved: either may go through a link that the other does not.
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let real_root = real(&options.root);
    let beneath = all.flat_map(|path| {
        let written = path.strip_prefix(&options.root).ok().map(Path::to_owned);
        let resolved = real(path).strip_prefix(&real_root).ok().map(Path::to_owned);
        written.into_iter().chain(resolved)
    });
    beneath.map(|rel| Rel::from(rel.as_os_str().as_bytes())).collect()
}
