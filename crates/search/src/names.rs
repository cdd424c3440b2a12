//! Finds files by name.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use globset::GlobSet;
use ignore::WalkState;
use parking_lot::Mutex;

use crate::SearchError;
use crate::beneath::Beneath;
use crate::globs::{GlobStyle, glob_set};
use crate::ignored::{IgnoreOptions, IgnoreRules};
use crate::scope::Scope;

/// Files changed within this time come first.
const RECENT: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Debug, Clone)]
pub struct NameQuery {
    pub glob: String,
    pub case_sensitive: bool,
    pub most: usize,
    /// True if files that match and are ignored are counted, which costs a second walk.
    pub count_ignored: bool,
    /// The current time, from the caller.
    pub now: SystemTime,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFile {
    pub path: PathBuf,
    pub modified: SystemTime,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundFiles {
    /// Files changed within a day, newest first, then the rest by name.
    pub files: Vec<FoundFile>,
    /// The number of all files that match, kept or not.
    pub total: usize,
    /// The number of files that match and are ignored, if they were to be counted.
    pub ignored: usize,
}

/// Files below the start of the scope whose path from there matches. A pattern without a slash matches at every depth
/// only with `**/`, as in shells.
pub fn find_files(scope: &Scope, query: &NameQuery, cancel: &AtomicBool) -> Result<FoundFiles, SearchError> {
    let glob = glob(query)?;
    let mut found = collect(scope, &glob, cancel)?;
    let ignored = if query.count_ignored && scope.ignored != IgnoreOptions::INCLUDED {
        let all = Scope { ignored: IgnoreOptions::INCLUDED, ..scope.clone() };
        collect(&all, &glob, cancel)?.len().saturating_sub(found.len())
    } else {
        0
    };
    // A folder that was swapped for a link while it was walked is neither reported nor counted.
    let mut beneath = Beneath::new(&scope.root);
    found.sort_unstable_by(|a, b| bytes(a).cmp(bytes(b)));
    found.retain(|file| beneath.has(&file.path));
    let total = found.len();
    let recent = |file: &FoundFile| query.now.duration_since(file.modified).is_ok_and(|age| age < RECENT);
    let (mut newest, rest): (Vec<FoundFile>, Vec<FoundFile>) = found.into_iter().partition(recent);
    newest.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| bytes(a).cmp(bytes(b))));
    let found: Vec<FoundFile> = newest.into_iter().chain(rest).take(query.most).collect();
    Ok(FoundFiles { files: found, total, ignored })
}

/// Names are compared as bytes: comparing paths part by part would take longer than finding them.
fn bytes(file: &FoundFile) -> &[u8] {
    file.path.as_os_str().as_encoded_bytes()
}

fn glob(query: &NameQuery) -> Result<GlobSet, SearchError> {
    let style = GlobStyle { literal_separator: true, case_insensitive: !query.case_sensitive };
    glob_set(&[query.glob.trim_start_matches("./")], style)
}

fn collect(scope: &Scope, glob: &GlobSet, cancel: &AtomicBool) -> Result<Vec<FoundFile>, SearchError> {
    if scope.starts_ignored() {
        return Ok(Vec::new());
    }
    let found = Mutex::new(Vec::new());
    scope.walk()?.run(|| {
        let mut mine = ThreadFiles { files: Vec::new(), all: &found };
        Box::new(move |entry| {
            if cancel.load(Ordering::Relaxed) {
                return WalkState::Quit;
            }
            let Ok(entry) = entry else { return WalkState::Continue };
            if entry.file_type().is_none_or(|kind| kind.is_dir()) {
                return WalkState::Continue;
            }
            let inside = entry.path().strip_prefix(&scope.start).unwrap_or(entry.path());
            if !glob.is_match(inside) {
                return WalkState::Continue;
            }
            let modified = entry.metadata().ok().and_then(|found| found.modified().ok());
            let file =
                FoundFile { path: entry.into_path(), modified: modified.unwrap_or(SystemTime::UNIX_EPOCH) };
            mine.files.push(file);
            WalkState::Continue
        })
    });
    if cancel.load(Ordering::Relaxed) {
        return Err(SearchError::Cancelled);
    }
    let mut found = found.into_inner();
    let mut rules = IgnoreRules::own(scope);
    found.retain(|file: &FoundFile| !rules.excludes(&file.path));
    Ok(found)
}

/// The files that one thread found, handed over when it ends.
struct ThreadFiles<'a> {
    files: Vec<FoundFile>,
    all: &'a Mutex<Vec<FoundFile>>,
}

impl Drop for ThreadFiles<'_> {
    fn drop(&mut self) {
        self.all.lock().append(&mut self.files);
    }
}
