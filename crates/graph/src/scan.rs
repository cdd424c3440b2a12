//! Finds the present files of a repository, by names and times, without contents.
//!
//! Ignore files are honoured whether or not the folder is a git work tree, links are never followed (so they cannot
//! form cycles or lead out), and hidden files are left out, as in Trae.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use ignore::WalkState;
use lathe_grammars::Language;
use lathe_search::{IgnoreOptions, LATHE_IGNORE, TreeRules, plain_walk, unread_own_file};
use parking_lot::Mutex;

use crate::layout::{Layout, exclude_files, is_settled, outside_rules, rule_stamp, stamp};
use crate::watch::{TreeWatch, is_shared};

/// The limits of a scan.
#[derive(Debug, Clone, Copy)]
pub struct GraphLimits {
    pub file_bytes: u64,
    pub files: usize,
    /// The number of files and folders of any kind after which the scan gives up.
    pub entries: usize,
    pub threads: usize,
}

impl Default for GraphLimits {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(2, usize::from).min(8);
        Self { file_bytes: 2 << 20, files: 200_000, entries: usize::MAX, threads }
    }
}

/// The stamp of a file. If it is the same, so is the content, unless the file was read at the moment it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    pub size: u64,
    pub mtime: i64,
    pub ctime: i64,
    pub inode: u64,
}

impl Stamp {
    pub fn of(metadata: &std::fs::Metadata) -> Self {
        Self {
            size: metadata.len(),
            mtime: metadata.mtime().wrapping_mul(1_000_000_000).wrapping_add(metadata.mtime_nsec()),
            ctime: metadata.ctime().wrapping_mul(1_000_000_000).wrapping_add(metadata.ctime_nsec()),
            inode: metadata.ino(),
        }
    }
}

#[derive(Debug, Clone)]
pub struct SourceFile {
    /// The path relative to the root, with `/`.
    pub path: String,
    pub stamp: Stamp,
}

/// Folders of third-party code that are sometimes not ignored.
const NEVER: [&str; 3] = ["node_modules", "__pycache__", "bower_components"];

/// Tells whether a file of this name can be in the graph.
pub fn is_source(path: &str) -> bool {
    Language::of_path(path).is_some_and(|language| language.graph_rules().is_some())
}

/// The result of a walk.
pub struct FileScan {
    /// All source files beneath the root, sorted by path.
    pub files: Vec<SourceFile>,
    /// The number of files beyond the limit.
    pub beyond: usize,
    /// The layout for the next check, if no later change can go unnoticed.
    pub layout: Option<Layout>,
}

/// Walks the tree. None if it was stopped, or gave up: then nothing is known about missing files.
pub fn scan(
    root: &Path,
    limits: &GraphLimits,
    watch: Option<&TreeWatch>,
    stop: &AtomicBool,
) -> Option<FileScan> {
    // It is not known what an unusable `.latheignore` hides from the model, so its whole folder is left out.
    if unread_own_file(root).is_some() {
        return Some(FileScan { files: Vec::new(), beyond: 0, layout: None });
    }
    let rules = TreeRules::new(IgnoreOptions { git: true, gemini: false }).with_global(root);
    let mut builder = plain_walk(root);
    builder.threads(limits.threads).filter_entry(move |entry| {
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        let is_never = NEVER.iter().any(|name| entry.file_name() == *name);
        let is_left_out =
            || is_never || rules.excludes(entry) || (is_folder && unread_own_file(entry.path()).is_some());
        entry.depth() == 0 || !is_left_out()
    });
    let mut first = WalkRecord::default();
    outside_rules(root).iter().for_each(|rule| first.rule(rule));
    let all = Mutex::new(first);
    let entries = AtomicUsize::new(0);
    let ends = || stop.load(Ordering::Relaxed) || entries.load(Ordering::Relaxed) > limits.entries;
    builder.build_parallel().run(|| {
        let mut local = Local { sight: WalkRecord::default(), all: &all };
        let (entries, ends) = (&entries, &ends);
        Box::new(move |entry| {
            entries.fetch_add(1, Ordering::Relaxed);
            if ends() {
                return WalkState::Quit;
            }
            let Ok(entry) = entry else { return WalkState::Continue };
            if entry.file_type().is_some_and(|kind| kind.is_dir()) {
                let rel = entry.path().strip_prefix(root).ok().and_then(Path::to_str);
                // The watch is added before the folder is read, so that nothing that happens later is missed.
                if let (Some(watch), Some(rel)) = (watch, rel) {
                    watch.add(entry.path(), rel);
                }
                local.sight.folder(entry.path(), rel);
            }
            if entry.depth() == 0 || !entry.file_type().is_some_and(|kind| kind.is_file()) {
                return WalkState::Continue;
            }
            // A path that is not UTF-8 cannot be asked for.
            let Some(path) = entry.path().strip_prefix(root).ok().and_then(Path::to_str) else {
                return WalkState::Continue;
            };
            if !is_source(path) {
                return WalkState::Continue;
            }
            if let Ok(metadata) = entry.metadata() {
                local.sight.seen.push(SourceFile { path: path.to_owned(), stamp: Stamp::of(&metadata) });
            }
            WalkState::Continue
        })
    });
    if ends() {
        return None;
    }
    let WalkRecord { seen: mut files, folders, rules, odd } = all.into_inner();
    files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    let beyond = files.len().saturating_sub(limits.files);
    files.truncate(limits.files);
    let whole = beyond == 0 && !odd;
    let layout = (whole && !is_shared(root)).then(|| Layout::new(folders, &files, rules));
    Some(FileScan { files, beyond, layout })
}

/// The entries that a walk saw. Folders and rules are stamped before they are read.
#[derive(Default)]
struct WalkRecord {
    seen: Vec<SourceFile>,
    folders: Vec<(String, Stamp)>,
    /// The ignore files.
    rules: Vec<(String, Option<Stamp>)>,
    /// True if a folder or rule could not be stamped, has a name that cannot be stored, or was written just now.
    odd: bool,
}

impl WalkRecord {
    fn folder(&mut self, path: &Path, rel: Option<&str>) {
        let (Some(rel), Some(stamp)) = (rel, stamp(path)) else {
            self.odd = true;
            return;
        };
        self.odd |= !is_settled(&stamp);
        self.folders.push((rel.to_owned(), stamp));
        for rule in [".gitignore", ".ignore", LATHE_IGNORE].map(|name| path.join(name)) {
            if rule.symlink_metadata().is_ok() {
                self.rule(&rule);
            }
        }
        if !rel.is_empty() && path.join(".git").exists() {
            exclude_files(path).iter().for_each(|rule| self.rule(rule));
        }
    }

    fn rule(&mut self, path: &Path) {
        let stamp = rule_stamp(path);
        self.odd |= stamp.is_some_and(|stamp| !is_settled(&stamp));
        match path.to_str() {
            Some(path) => self.rules.push((path.to_owned(), stamp)),
            None => self.odd = true,
        }
    }
}

/// The entries that one thread saw, added to all when it ends.
struct Local<'a> {
    sight: WalkRecord,
    all: &'a Mutex<WalkRecord>,
}

impl Drop for Local<'_> {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        all.seen.append(&mut self.sight.seen);
        all.folders.append(&mut self.sight.folders);
        all.rules.append(&mut self.sight.rules);
        all.odd |= self.sight.odd;
    }
}

/// The real path of a folder.
pub fn real_root(root: &Path) -> std::io::Result<PathBuf> {
    let root = root.canonicalize()?;
    if !root.is_dir() {
        return Err(std::io::Error::new(std::io::ErrorKind::NotADirectory, "not a folder"));
    }
    Ok(root)
}
