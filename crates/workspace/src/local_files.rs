//! Files on this machine.
//!
//! Every path goes through the guard, which never leaves the roots and opens only regular files and folders, so
//! reading cannot block. Writing is the transaction in `apply`.

mod apply;
mod attributes;
mod intent;
mod name_changes;
mod transaction_folder;

pub use self::name_changes::Incoming;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::guard::{FileMeta, Guard, GuardedPath, Last, kind};
use crate::naming_lock::run_in_turn;
use crate::{
    Applied, Boxed, ConfigPaths, FileInfo, FileKind, FileOp, Files, FolderEntry, WalkEntry, WorkspaceError,
};

/// Up to this size a file is read on the caller's thread: handing the work to another thread would take longer than
/// the work.
const READ_INLINE: u64 = 256 * 1024;
/// The number of bytes compared at a time.
const COMPARED: usize = 64 * 1024;
const PERMISSIONS: u32 = 0o7777;

/// The files of this machine, beneath one root or several. A relative path begins at the first.
#[derive(Debug, Clone)]
pub struct LocalFiles {
    guard: Arc<Guard>,
    /// The folder of the notes about transactions.
    notes: Option<PathBuf>,
    recovered: Vec<PathBuf>,
    /// One `apply` at a time: two that roll back each other could restore a state that never existed.
    writing: Arc<Mutex<()>>,
}

impl LocalFiles {
    pub fn new(root: PathBuf) -> Self {
        Self::with_roots(root, Vec::new())
    }

    /// Adds folders that may be read and written like the root. A folder that does not exist yet is used once it
    /// does.
    pub fn with_roots(root: PathBuf, more: Vec<PathBuf>) -> Self {
        let guard = Arc::new(Guard::new(root, more));
        Self { guard, notes: None, recovered: Vec::new(), writing: Arc::default() }
    }

    /// The files of a root whose path has no links: if a link is put on the way to it later, nothing is found. No
    /// path leads into the closed folder (Lathe's own) either, by any name, link or mount.
    pub fn confined(root: PathBuf, closed: &Path) -> Self {
        let guard = Arc::new(Guard::confined(root, closed));
        Self { guard, notes: None, recovered: Vec::new(), writing: Arc::default() }
    }

    /// Protects the paths that the configuration of repositories names, in addition.
    pub fn with_config_paths(self, named: ConfigPaths) -> Self {
        self.guard.set_config_paths(named);
        self
    }

    /// The first root, under its given name.
    pub fn root(&self) -> &Path {
        self.guard.first_root()
    }

    /// The real path of the closed folder.
    pub fn closed(&self) -> Option<&Path> {
        self.guard.closed()
    }

    /// Opens a regular file for a reader on a thread of its own, such as search. Opening it by its path instead would
    /// follow a link that was put there meanwhile.
    pub fn open(&self, path: &Path) -> Result<File, WorkspaceError> {
        self.guard.file(path).map(|(file, _)| file)
    }

    /// Tells whether the root exists.
    pub fn is_there(&self) -> bool {
        self.guard.is_there()
    }

    /// The size of a file or folder, and the time of the last write to its content: seconds since 1970, and
    /// nanoseconds.
    pub fn size_and_time(&self, path: &Path) -> Result<(u64, (i64, i64)), WorkspaceError> {
        let found = self.guard.metadata(path)?;
        Ok((found.len, found.modified))
    }

    /// The real path of an existing file or folder.
    pub fn real_place(&self, path: &Path) -> Result<PathBuf, WorkspaceError> {
        let place = self.guard.locate(path, Last::Followed)?;
        match place.missing {
            0 => Ok(self.guard.real(&place)),
            _ => Err(WorkspaceError::NotFound(path.to_owned())),
        }
    }

    /// The first entries below a folder, like [`walk`](Files::walk), and also names that begin with a dot. The
    /// content of a `.git` is left out.
    pub fn walk_hidden(
        &self,
        path: &Path,
        depth: usize,
        bounds: WalkBounds<'_>,
    ) -> Result<Vec<WalkEntry>, WorkspaceError> {
        Walk { guard: &self.guard, dotted: Dotted::Shown, bounds, entries: Vec::new() }.all(path, depth)
    }

    /// Opens the folder at exactly this absolute path in a root, for listing: no link on the way is followed.
    pub fn exact_folder(&self, path: &Path) -> Result<OwnedFd, WorkspaceError> {
        self.guard.exact_folder(path)
    }

    /// Notes each transaction in this folder while it runs. If the process dies in the middle of a transaction, the
    /// next one that opens the same root with the same folder rolls it back; this call does so for earlier deaths.
    /// The folder is made, for its owner only. It must be the same for all sessions of a user, on a local disk, and
    /// outside of every root. Without it a transaction of several files is atomic unless the process dies in the
    /// middle of it.
    pub fn recovering(mut self, folder: PathBuf) -> Result<Self, WorkspaceError> {
        self.recovered = intent::recover(&self.guard, &folder)?;
        self.notes = Some(folder);
        Ok(self)
    }

    /// Files whose old content was restored when this was opened.
    pub fn recovered(&self) -> &[PathBuf] {
        &self.recovered
    }

    /// Disables `openat2` and `renameat2`, as on systems without them. For tests of that case.
    #[doc(hidden)]
    pub fn stepwise(root: PathBuf) -> Self {
        let guard = Arc::new(Guard::new(root, Vec::new()).stepwise());
        Self { guard, notes: None, recovered: Vec::new(), writing: Arc::default() }
    }
}

impl Files for LocalFiles {
    fn stat<'a>(&'a self, path: &'a Path) -> Boxed<'a, Result<FileInfo, WorkspaceError>> {
        Box::pin(async move {
            let found = self.guard.metadata(path)?;
            Ok(FileInfo { kind: kind(&found), bytes: found.len, mode: found.mode & PERMISSIONS })
        })
    }

    fn read<'a>(
        &'a self,
        path: &'a Path,
        range: Option<Range<u64>>,
    ) -> Boxed<'a, Result<Vec<u8>, WorkspaceError>> {
        Box::pin(async move {
            let (file, found) = self.guard.file(path)?;
            let range = range.unwrap_or(0..u64::MAX);
            if found.len.min(range.end).saturating_sub(range.start) <= READ_INLINE {
                return read_range(&file, &found, range).map_err(|error| WorkspaceError::io(path, error));
            }
            blocking(path, {
                let path = path.to_owned();
                move || read_range(&file, &found, range).map_err(|error| WorkspaceError::io(path, error))
            })
            .await
        })
    }

    fn walk<'a>(&'a self, path: &'a Path, depth: usize) -> Boxed<'a, Result<Vec<WalkEntry>, WorkspaceError>> {
        Box::pin(async move {
            let (guard, given) = (Arc::clone(&self.guard), path.to_owned());
            blocking(path, move || {
                let bounds = WalkBounds { most: usize::MAX, stop: &AtomicBool::new(false) };
                let walk = Walk { guard: &guard, dotted: Dotted::LeftOut, bounds, entries: Vec::new() };
                walk.all(&given, depth)
            })
            .await
        })
    }

    fn list<'a>(&'a self, path: &'a Path) -> Boxed<'a, Result<Vec<FolderEntry>, WorkspaceError>> {
        Box::pin(async move {
            let (guard, given) = (Arc::clone(&self.guard), path.to_owned());
            blocking(path, move || {
                let (folder, place) = guard.folder(&given)?;
                let names = read_names(folder).map_err(|error| WorkspaceError::io(given, error))?;
                let open = names.into_iter().filter(|(_, found)| !guard.is_closed(found));
                let named = open.map(|(name, found)| {
                    let found = resolved(&guard, &place.join(&name), found);
                    let (kind, bytes) =
                        found.map_or((FileKind::Special, 0), |found| (kind(&found), found.len));
                    FolderEntry { name, kind, bytes }
                });
                Ok(named.collect())
            })
            .await
        })
    }

    /// Once started it runs to its end, even if the caller stops waiting.
    fn apply_with_umask<'a>(
        &'a self,
        ops: Vec<FileOp>,
        umask: Option<u32>,
    ) -> Boxed<'a, Result<Vec<Applied>, WorkspaceError>> {
        Box::pin(async move {
            let (guard, writing) = (Arc::clone(&self.guard), Arc::clone(&self.writing));
            let notes = self.notes.clone();
            let applied = run_in_turn(move || {
                let _one = writing.lock();
                let apply = || apply::apply(&guard, notes.as_deref(), ops);
                match umask {
                    Some(umask) => under_umask(umask, guard.first_root(), apply),
                    None => apply(),
                }
            });
            let (applied, olds) = ended(self.guard.first_root(), applied.await)?;
            if !olds.is_empty() {
                // No caller waits for this task, and nothing is lost if it never runs: then the system closes the
                // files.
                drop(tokio::task::spawn_blocking(move || drop(olds)));
            }
            Ok(applied)
        })
    }

    fn real<'a>(&'a self, path: &'a Path) -> Boxed<'a, Result<PathBuf, WorkspaceError>> {
        Box::pin(async move { self.real_place(path) })
    }

    fn target<'a>(&'a self, path: &'a Path) -> Boxed<'a, Result<PathBuf, WorkspaceError>> {
        Box::pin(async move {
            let place = self.guard.locate(path, Last::Followed)?;
            Ok(self.guard.real(&place))
        })
    }
}

/// Runs work under another umask than the process has: on a thread of its own, because all others share one.
#[cfg(target_os = "linux")]
fn under_umask<T: Send>(
    umask: u32,
    root: &Path,
    work: impl FnOnce() -> Result<T, WorkspaceError> + Send,
) -> Result<T, WorkspaceError> {
    use nix::sched::{CloneFlags, unshare};
    use nix::sys::stat::{Mode, umask as set_umask};
    let working = || {
        unshare(CloneFlags::CLONE_FS).map_err(|error| WorkspaceError::io(root, error.into()))?;
        set_umask(Mode::from_bits_truncate(umask));
        work()
    };
    let ended = std::thread::scope(|scope| {
        std::thread::Builder::new().spawn_scoped(scope, working).map(std::thread::ScopedJoinHandle::join)
    });
    match ended {
        Ok(Ok(done)) => done,
        Ok(Err(_)) => Err(WorkspaceError::io(root, io::Error::other("writing failed inside; this is a bug"))),
        Err(error) => Err(WorkspaceError::io(root, error)),
    }
}

/// On other systems a thread has no umask of its own.
#[cfg(not(target_os = "linux"))]
fn under_umask<T: Send>(
    _: u32,
    _: &Path,
    work: impl FnOnce() -> Result<T, WorkspaceError> + Send,
) -> Result<T, WorkspaceError> {
    work()
}

async fn blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> Result<T, WorkspaceError> + Send + 'static,
) -> Result<T, WorkspaceError> {
    ended(path, tokio::task::spawn_blocking(work).await)
}

fn ended<T>(
    path: &Path,
    ended: Result<Result<T, WorkspaceError>, tokio::task::JoinError>,
) -> Result<T, WorkspaceError> {
    ended.unwrap_or_else(|gone| Err(WorkspaceError::io(path, io::Error::other(gone))))
}

/// The existing bytes of the range. Files of /proc report size 0 although they have content, so the size is only a
/// hint for the allocation, which may fail.
fn read_range(mut file: &File, found: &FileMeta, range: Range<u64>) -> io::Result<Vec<u8>> {
    let wanted = range.end.saturating_sub(range.start);
    let hint = found.len.min(range.end).saturating_sub(range.start);
    let mut bytes = Vec::new();
    let refused = |_| io::Error::from(io::ErrorKind::OutOfMemory);
    bytes.try_reserve_exact(usize::try_from(hint).unwrap_or(usize::MAX)).map_err(refused)?;
    file.seek(SeekFrom::Start(range.start))?;
    file.take(wanted).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Tells whether a file has exactly these bytes, without a second copy of them in memory.
fn has_content(mut file: &File, content: &[u8]) -> io::Result<bool> {
    let mut piece = [0; COMPARED];
    file.seek(SeekFrom::Start(0))?;
    let mut rest = content;
    loop {
        let read = match file.read(&mut piece) {
            Ok(0) => return Ok(rest.is_empty()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        match (piece.get(..read), rest.split_at_checked(read)) {
            (Some(here), Some((there, after))) if here == there => rest = after,
            (_, _) => return Ok(false),
        }
    }
}

/// The names in an open folder, sorted by their bytes.
struct SortedNames {
    folder: nix::dir::Dir,
    names: Vec<Vec<u8>>,
}

impl SortedNames {
    /// Reads the names until `ended` returns true, because nothing needs more of them.
    fn of(folder: OwnedFd, ended: impl Fn() -> bool) -> io::Result<Self> {
        let mut folder = nix::dir::Dir::from_fd(folder)?;
        let mut names = Vec::new();
        for entry in folder.iter() {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(name);
            }
            if ended() {
                break;
            }
        }
        names.sort();
        Ok(Self { folder, names })
    }
}

/// All names in a folder, sorted by their bytes, with the metadata of links themselves. Names that are gone by now
/// are left out.
fn read_names(folder: OwnedFd) -> io::Result<Vec<(std::ffi::OsString, FileMeta)>> {
    let SortedNames { folder, names } = SortedNames::of(folder, || false)?;
    let found = names.iter().filter_map(|name| {
        let name = OsStr::from_bytes(name);
        Some((name.to_owned(), FileMeta::at(&folder, Path::new(name)).ok()?))
    });
    Ok(found.collect())
}

/// The metadata of a name's target, if that is inside.
fn resolved(guard: &Guard, place: &GuardedPath, found: FileMeta) -> Option<FileMeta> {
    if found.is_link() { guard.metadata(&guard.real(place)).ok() } else { Some(found) }
}

/// The treatment of names that begin with a dot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dotted {
    Shown,
    LeftOut,
}

/// The limits of a walk.
#[derive(Debug, Clone, Copy)]
pub struct WalkBounds<'a> {
    /// The maximum number of entries.
    pub most: usize,
    /// Becomes true when no caller waits for the walk any more.
    pub stop: &'a AtomicBool,
}

/// Entries in the order of a tree: the names of a folder by their bytes, and the content of a folder right after it.
/// A link is listed with the kind of its target and never entered; a link that leads nowhere, or outside, is special.
/// Unreadable folders are listed without content, except for the first.
struct Walk<'a> {
    guard: &'a Guard,
    dotted: Dotted,
    bounds: WalkBounds<'a>,
    entries: Vec<WalkEntry>,
}

impl Walk<'_> {
    fn all(mut self, path: &Path, depth: usize) -> Result<Vec<WalkEntry>, WorkspaceError> {
        let (folder, place) = self.guard.folder(path)?;
        if depth > 0 {
            self.inside(folder, (&place, Path::new("")), depth)
                .map_err(|error| WorkspaceError::io(path, error))?;
        }
        Ok(self.entries)
    }

    fn has_ended(&self) -> bool {
        self.entries.len() >= self.bounds.most || self.bounds.stop.load(Ordering::Relaxed)
    }

    /// Lists the names of the folder `below`, relative to the folder of the walk, and their content. The folder is
    /// closed before its subfolders are opened: a tree may be deeper than a process has descriptors.
    fn inside(
        &mut self,
        opened: OwnedFd,
        (first, below): (&GuardedPath, &Path),
        depth: usize,
    ) -> io::Result<()> {
        for (name, found) in self.shown_in(opened)? {
            if self.has_ended() {
                return Ok(());
            }
            let path = below.join(&name);
            let place = first.join(&path);
            let led = resolved(self.guard, &place, found);
            let kind = led.map_or(FileKind::Special, |led| kind(&led));
            self.entries.push(WalkEntry { path: path.clone(), kind });
            if found.is_folder() && depth > 1 && name != ".git" {
                // A subfolder that cannot be read, or is gone by now, does not end the walk.
                if let Ok(opened) = self.guard.open_folder(&place) {
                    let _ = self.inside(opened, (first, &path), depth - 1);
                }
            }
        }
        Ok(())
    }

    /// The names in a folder that are shown, up to the limit.
    fn shown_in(&self, opened: OwnedFd) -> io::Result<Vec<(std::ffi::OsString, FileMeta)>> {
        let SortedNames { folder, names } = SortedNames::of(opened, || self.has_ended())?;
        let shown = names.iter().take_while(|_| !self.has_ended()).filter_map(|name| {
            if name.starts_with(b".") && self.dotted == Dotted::LeftOut {
                return None;
            }
            let name = OsStr::from_bytes(name);
            let found = FileMeta::at(&folder, Path::new(name)).ok()?;
            (!self.guard.is_closed(&found)).then(|| (name.to_owned(), found))
        });
        Ok(shown.take(self.bounds.most - self.entries.len()).collect())
    }
}
