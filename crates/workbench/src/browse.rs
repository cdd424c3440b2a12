//! The files of one folder, for a user who reads and edits from elsewhere.
//!
//! The guard is the same as for every tool: nothing outside of the folder is read, written or removed, and names that
//! other programs obey are never written. A file is saved over the version that was read and no other; what is
//! removed can be restored.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lathe_host::{FileProblem, HostError, Removals, RemovedItem};
use lathe_protocol::{Digest, DigestBuilder};
use lathe_search::{CaseMode, IgnoreOptions, NameQuery, Scope, TextQuery, find_files, find_text};
use lathe_workspace::{
    Expect, FileKind, FileOp, Files, Incoming, LocalTree, Processes, WalkBounds, WalkEntry, Workspace,
    WorkspaceError, run_in_turn,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Workbench;
use crate::slot::keeping_slot;

/// Bytes of a file that one request reads; larger files are read in parts.
pub const READ_MAX: u64 = 4 << 20;
/// Bytes of an upload.
pub const UPLOAD_MAX: u64 = 100 << 20;
/// Entries of a tree.
const TREE_MAX: usize = 20_000;
const TREE_DEPTH: u32 = 32;
/// Lines or names of a search.
const FOUND_MAX: u32 = 5_000;
/// Characters of a search pattern. An address has room for more, but users do not type more.
const PATTERN_MAX: usize = 1_000;

/// One name in a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileItem {
    pub name: String,
    /// Relative to the workspace.
    pub path: String,
    pub is_dir: bool,
    /// `file`, `directory` or `special`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub size: u64,
    /// The time of the last write, in UTC; null for a dangling link.
    pub modified_at: Option<String>,
}

/// One level of a folder, or everything below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Listing {
    pub directory: String,
    pub items: Vec<FileItem>,
    pub count: usize,
    /// True if there are more entries than are listed.
    pub more: bool,
}

/// A file or a part of one. `content` is null where it is not UTF-8 text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileContent {
    pub path: String,
    pub content: Option<String>,
    pub binary: bool,
    pub size: u64,
    /// The hash of the whole content, to be sent with a save. Left out for a part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The offset of the content, in bytes.
    pub offset: u64,
    /// The number of bytes in the content.
    pub length: u64,
}

/// The result of a save.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Saved {
    pub success: bool,
    pub path: String,
    pub version: String,
    pub created: bool,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SearchFound {
    pub hits: Vec<SearchHit>,
    /// The number of all matches, listed or not.
    pub total: usize,
    pub more: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SearchHit {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// The query of a search.
#[derive(Debug, Clone, Default)]
pub struct SearchWish {
    pub pattern: String,
    /// Search the names of files instead of their text.
    pub names: bool,
    /// The pattern is a regular expression, not text.
    pub regex: bool,
    pub case_sensitive: bool,
    /// The folder to search.
    pub below: Option<String>,
    pub most: Option<u32>,
}

/// A folder that a user reads and edits.
#[derive(Clone)]
pub struct Browser {
    workspace: Workspace,
    /// The same as a tree of this machine: a user's folder is one.
    tree: LocalTree,
    removals: Arc<Removals>,
}

impl Workbench {
    /// The folder of exactly this path, which has no links. A folder that was swapped for a link after it was checked
    /// counts as missing. Lathe's own folder is closed, independent of its place.
    pub fn browse(&self, folder: &Path) -> Result<Browser, HostError> {
        let refused = |reason: &str| HostError::Folder { path: folder.to_owned(), reason: reason.to_owned() };
        let workspace = self.home().workspace(folder);
        let tree = workspace.local().cloned().ok_or_else(|| refused("it is not a folder of this machine"))?;
        if !tree.is_there() {
            return Err(refused("there is no such folder, or a link stands on the way to it"));
        }
        let removals = Arc::new(Removals::new(self.home()));
        Ok(Browser { workspace, tree, removals })
    }
}

impl Browser {
    pub fn root(&self) -> &Path {
        self.workspace.root()
    }

    pub(crate) fn files(&self) -> &dyn Files {
        &**self.workspace.files()
    }

    pub(crate) fn local(&self) -> &LocalTree {
        &self.tree
    }

    pub(crate) fn processes(&self) -> &dyn Processes {
        &**self.workspace.processes()
    }

    /// The names in one folder.
    pub async fn list(&self, folder: &str) -> Result<Listing, HostError> {
        self.listing(folder, 1, usize::MAX).await
    }

    /// The first names below a folder, including those that begin with a dot and those that git ignores. A `.git` is
    /// listed without its content.
    pub async fn tree(&self, folder: &str, depth: Option<u32>) -> Result<Listing, HostError> {
        self.listing(folder, depth.unwrap_or(TREE_DEPTH).min(TREE_DEPTH), TREE_MAX).await
    }

    async fn listing(&self, folder: &str, depth: u32, most: usize) -> Result<Listing, HostError> {
        let (browser, folder) = (self.clone(), PathBuf::from(or_current(folder)));
        until_dropped(move |stop| {
            let shown = browser.relative_name(&browser.tree.real_place(&folder)?);
            // One more than is listed shows that there is more.
            let bounds = WalkBounds { most: most.saturating_add(1), stop };
            let mut entries = browser.tree.walk_hidden(&folder, depth as usize, bounds)?;
            let more = entries.len() > most;
            entries.truncate(most);
            let waited_for = entries.iter().take_while(|_| !stop.load(Ordering::Relaxed));
            let items: Vec<FileItem> =
                waited_for.map(|entry| browser.item(&shown, &folder.join(&entry.path), entry)).collect();
            Ok(Listing { directory: shown, count: items.len(), items, more })
        })
        .await
    }

    /// The entry for what is `at` a path, in a listing of the folder `shown`. A file that is gone by now has no size
    /// and no time.
    fn item(&self, shown: &str, at: &Path, entry: &WalkEntry) -> FileItem {
        let found = self.tree.size_and_time(at).ok();
        let size = match entry.kind {
            FileKind::File => found.map_or(0, |(size, _)| size),
            FileKind::Directory | FileKind::Special => 0,
        };
        let written = found.and_then(|(_, (seconds, fraction))| {
            jiff::Timestamp::new(seconds, i32::try_from(fraction).unwrap_or_default()).ok()
        });
        let kind = match entry.kind {
            FileKind::File => "file",
            FileKind::Directory => "directory",
            FileKind::Special => "special",
        };
        FileItem {
            name: entry.path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            path: join(shown, &entry.path.to_string_lossy()),
            is_dir: kind == "directory",
            kind,
            size,
            modified_at: written.map(|at| format!("{at:.3}")),
        }
    }

    /// A whole file, or `length` bytes of it from `offset` on.
    pub async fn read(
        &self,
        file: &str,
        offset: Option<u64>,
        length: Option<u64>,
    ) -> Result<FileContent, HostError> {
        let path = Path::new(file);
        let stat = self.files().stat(path).await?;
        if stat.kind == FileKind::Directory {
            return Err(WorkspaceError::IsDirectory(path.to_owned()).into());
        }
        let whole = offset.is_none() && length.is_none();
        if whole && stat.bytes > READ_MAX {
            return Err(HostError::File {
                problem: FileProblem::TooLarge,
                reason: format!(
                    "{file} has {} bytes: ask for parts of it with `offset` and `length`, or download it",
                    stat.bytes
                ),
            });
        }
        let start = offset.unwrap_or(0);
        let end = start.saturating_add(length.unwrap_or(READ_MAX).min(READ_MAX));
        let bytes = self.files().read(path, Some(start..end)).await?;
        let version = whole.then(|| Digest::of(&bytes).to_string());
        let (start, bytes) = if whole { (0, bytes) } else { whole_characters(start, bytes) };
        let length = bytes.len() as u64;
        let content = if bytes.contains(&0) { None } else { String::from_utf8(bytes).ok() };
        Ok(FileContent {
            path: self.relative_name(&self.files().real(path).await?),
            binary: content.is_none(),
            content,
            size: stat.bytes,
            version,
            offset: start,
            length,
        })
    }

    /// Writes a file: over the version that was read, or a new one if none is named.
    pub async fn write(
        &self,
        file: &str,
        content: String,
        version: Option<&str>,
    ) -> Result<Saved, HostError> {
        let expect = match version {
            None => Expect::Absent,
            Some(version) => Expect::Hash(Digest::parse(version).ok_or_else(|| HostError::File {
                problem: FileProblem::Bad,
                reason: "`version` is the one that came with the content: 64 hex digits".to_owned(),
            })?),
        };
        let digest = Digest::of(content.as_bytes());
        let op = FileOp::Write { path: file.into(), expect, content: Arc::new(content.into_bytes()) };
        self.files().apply(vec![op]).await.map_err(|error| match error {
            WorkspaceError::Exists(path) if version.is_none() => HostError::File {
                problem: FileProblem::Exists,
                reason: format!(
                    "{} exists already: read it, and save with the `version` it had",
                    path.display()
                ),
            },
            other => other.into(),
        })?;
        let path = self.relative_name(&self.files().real(Path::new(file)).await?);
        Ok(Saved { success: true, path, version: digest.to_string(), created: version.is_none() })
    }

    pub async fn make_folder(&self, folder: &str) -> Result<(), HostError> {
        let (tree, path) = (self.tree.clone(), PathBuf::from(folder));
        creating_names(move || Ok(tree.make_folder(&path)?)).await
    }

    pub async fn rename(&self, from: &str, to: &str) -> Result<(), HostError> {
        let (tree, from, to) = (self.tree.clone(), PathBuf::from(from), PathBuf::from(to));
        creating_names(move || Ok(tree.rename(&from, &to)?)).await
    }

    /// Removes a file or folder to a place from which it can be restored.
    pub async fn remove(&self, path: &str) -> Result<RemovedItem, HostError> {
        let (browser, path) = (self.clone(), PathBuf::from(path));
        on_pool(move || browser.remove_here(&path)).await
    }

    /// The same, on this thread.
    pub(crate) fn remove_here(&self, path: &Path) -> Result<RemovedItem, HostError> {
        self.removals.remove_path(&self.tree, self.root(), path)
    }

    /// Files that were removed from this folder, newest first.
    pub async fn removed(&self) -> Result<Vec<RemovedItem>, HostError> {
        let browser = self.clone();
        on_pool(move || Ok(browser.removals.list(Some(browser.root())))).await
    }

    /// Restores what was removed from this folder.
    pub async fn restore(&self, id: &str) -> Result<RemovedItem, HostError> {
        let (browser, id) = (self.clone(), id.to_owned());
        creating_names(move || browser.restore_here(&id)).await
    }

    /// The same, on this thread.
    pub(crate) fn restore_here(&self, id: &str) -> Result<RemovedItem, HostError> {
        self.removals.restore_path(&self.tree, self.root(), id)
    }

    /// A new file that is received in pieces.
    pub async fn receive(&self, file: &str) -> Result<Upload, HostError> {
        let (tree, path) = (self.tree.clone(), PathBuf::from(file));
        let incoming = on_pool(move || Ok(tree.receive(&path)?)).await?;
        let path = file.to_owned();
        Ok(Upload { browser: self.clone(), path, incoming, size: 0, digest: DigestBuilder::default() })
    }

    /// A file that is sent in pieces: its name, its size and a reader of it.
    pub async fn send(&self, file: &str) -> Result<(String, u64, Download), HostError> {
        let path = Path::new(file);
        let real = self.files().real(path).await?;
        let opened = self.tree.open(path)?;
        let size = opened.metadata().map_err(|error| WorkspaceError::io(path, error))?.len();
        let name = real.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok((name, size, Download { file: opened, left: size }))
    }

    pub async fn search(&self, wish: SearchWish) -> Result<SearchFound, HostError> {
        let below = or_current(wish.below.as_deref().unwrap_or_default());
        let start = self.files().real(Path::new(below)).await?;
        let (root, closed) = (self.root().to_owned(), self.tree.closed().map(Path::to_owned));
        until_dropped(move |stop| search(root, start, closed, &wish, stop)).await
    }

    /// A path as users name it: relative to the workspace.
    pub(crate) fn relative_name(&self, real: &Path) -> String {
        real.strip_prefix(self.root()).unwrap_or(real).to_string_lossy().into_owned()
    }
}

/// Ends work in another thread once its caller no longer waits for it.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A file that is being received. It is not a file of the folder before it is complete.
pub struct Upload {
    browser: Browser,
    path: String,
    incoming: Incoming,
    size: u64,
    digest: DigestBuilder,
}

impl Upload {
    /// Takes a piece; false when that is more than an upload may have.
    pub fn add(&mut self, piece: &[u8]) -> Result<bool, HostError> {
        self.size += piece.len() as u64;
        if self.size > UPLOAD_MAX {
            return Ok(false);
        }
        self.digest.add(piece);
        self.incoming.write(piece)?;
        Ok(true)
    }

    /// Gives the file its name. A file that had this name is removed so that it can be restored, if it may be
    /// replaced.
    pub async fn finish(self, replace: bool) -> Result<(Saved, u64), HostError> {
        let Self { browser, path, incoming, size, digest } = self;
        let mut replaced = None;
        if replace
            && browser.files().stat(Path::new(&path)).await.is_ok_and(|stat| stat.kind == FileKind::File)
        {
            replaced = Some(browser.remove(&path).await?);
        }
        let created = replaced.is_none();
        if let Err(error) = creating_names(move || Ok(incoming.finish()?)).await {
            // The old file must not be lost if the new one was not created. If restoring it fails, it is still among
            // the removed.
            if let Some(old) = replaced {
                let _ = browser.restore(&old.id).await;
            }
            return Err(error);
        }
        let shown = browser.relative_name(&browser.files().real(Path::new(&path)).await?);
        Ok((Saved { success: true, path: shown, version: digest.finish().to_string(), created }, size))
    }
}

/// A file that is being sent.
pub struct Download {
    file: std::fs::File,
    left: u64,
}

impl Download {
    /// Sends only these bytes of the file.
    pub fn only(&mut self, bytes: std::ops::Range<u64>) -> std::io::Result<()> {
        std::io::Seek::seek(&mut self.file, std::io::SeekFrom::Start(bytes.start))?;
        self.left = self.left.min(bytes.end.saturating_sub(bytes.start));
        Ok(())
    }

    /// The next piece; none at the end. A file that grows meanwhile is sent up to its former length.
    pub fn next_piece(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        const PIECE: u64 = 64 * 1024;
        let mut piece = Vec::new();
        let read = (&mut self.file).take(self.left.min(PIECE)).read_to_end(&mut piece)?;
        self.left -= read as u64;
        match (read, self.left) {
            (0, 0) => Ok(None),
            (0, _) => Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof)),
            _ => Ok(Some(piece)),
        }
    }
}

fn search(
    root: PathBuf,
    start: PathBuf,
    closed: Option<PathBuf>,
    wish: &SearchWish,
    stop: &AtomicBool,
) -> Result<SearchFound, HostError> {
    let wrong = |error: lathe_search::SearchError| HostError::File {
        problem: FileProblem::Bad,
        reason: error.to_string(),
    };
    let length = wish.pattern.chars().count();
    if length > PATTERN_MAX {
        let reason = format!("the pattern has {length} characters, and may have {PATTERN_MAX} at most");
        return Err(HostError::File { problem: FileProblem::Bad, reason });
    }
    let most = wish.most.unwrap_or(200).min(FOUND_MAX) as usize;
    let shown = |path: &Path| path.strip_prefix(&root).unwrap_or(path).to_string_lossy().into_owned();
    let scope = Scope {
        ignored: IgnoreOptions::RESPECTED,
        excluded_folder: closed,
        ..Scope::new(root.clone(), start)
    };
    if wish.names {
        // A word is searched for anywhere in the path, a pattern is used as it is.
        let is_glob = wish.pattern.contains(['*', '?', '[', '{']);
        let glob = if is_glob { wish.pattern.clone() } else { format!("**/*{}*", wish.pattern) };
        let query = NameQuery {
            glob,
            case_sensitive: wish.case_sensitive,
            most,
            count_ignored: false,
            now: std::time::SystemTime::now(),
        };
        let found = find_files(&scope, &query, stop).map_err(wrong)?;
        let hits =
            found.files.iter().map(|file| SearchHit { path: shown(&file.path), line: None, text: None });
        let hits: Vec<SearchHit> = hits.collect();
        return Ok(SearchFound { more: found.total > hits.len(), total: found.total, hits });
    }
    let query = TextQuery {
        pattern: wish.pattern.clone(),
        literal: !wish.regex,
        case: if wish.case_sensitive { CaseMode::Sensitive } else { CaseMode::Insensitive },
        most,
        ..TextQuery::default()
    };
    let found = find_text(&scope, &query, stop).map_err(wrong)?;
    let hits = found.files.iter().flat_map(|file| {
        let path = shown(&file.path);
        file.lines.iter().map(move |line| SearchHit {
            path: path.clone(),
            line: Some(line.number),
            text: Some(line.text.clone()),
        })
    });
    Ok(SearchFound { hits: hits.collect(), total: found.matches, more: found.left_out > 0 })
}

/// The bytes without partial characters at both ends of a part.
fn whole_characters(start: u64, bytes: Vec<u8>) -> (u64, Vec<u8>) {
    let is_inner = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
    let skip = if start == 0 { 0 } else { bytes.iter().take(3).take_while(|byte| is_inner(byte)).count() };
    let body = bytes.get(skip..).unwrap_or_default();
    let end = match std::str::from_utf8(body) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Ok(_) | Err(_) => body.len(),
    };
    (start + skip as u64, body.get(..end).unwrap_or_default().to_vec())
}

fn or_current(folder: &str) -> &str {
    if folder.is_empty() { "." } else { folder }
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Runs work that waits for the disk on a thread of its own, so that other requests need not wait.
pub(crate) async fn on_pool<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, HostError> + Send + 'static,
) -> Result<T, HostError> {
    lathe_host::on_pool(keeping_slot(work)).await
}

/// The same for work that checks whether it is still wanted: a client that disconnects drops this future, and the
/// work ends with it.
pub(crate) async fn until_dropped<T: Send + 'static>(
    work: impl FnOnce(&AtomicBool) -> Result<T, HostError> + Send + 'static,
) -> Result<T, HostError> {
    let stop = Arc::new(AtomicBool::new(false));
    let _stopped = StopOnDrop(Arc::clone(&stop));
    on_pool(move || work(&stop)).await
}

/// The same for work that creates names in a tree, when its turn to wait for that has come.
async fn creating_names<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, HostError> + Send + 'static,
) -> Result<T, HostError> {
    match run_in_turn(keeping_slot(work)).await {
        Ok(done) => done,
        Err(error) => Err(HostError::Crashed(error.to_string())),
    }
}
