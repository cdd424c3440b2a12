//! The path guard: the only way from a path to a file, for every file tool.
//!
//! Roots are canonicalised once and held open. A path is first given to the kernel as it is spelled, to be resolved
//! beneath its root. That refuses absolute links and links that leave and come back, most of which are harmless.
//! Those are resolved here, name by name, and the resulting real path is opened beneath the root with links
//! forbidden: a swap between the two steps is detected, never followed. Rejected: comparing strings, and checking
//! before opening by path; both have led to break-ins elsewhere.
//!
//! Invariants: content is read and written only through descriptors of a root; a path is compared by components; `..`
//! is applied after the link before it is resolved, as the kernel does; only regular files and folders are opened.

mod beneath;
mod closed;
pub(crate) mod layout;
mod root;
mod steps;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, readlinkat};

pub(crate) use self::beneath::FileMeta;
use self::beneath::{LOOK, Links, Resolution};
use self::closed::Closed;
use self::layout::{Together, Top};
pub use self::root::open_exact;
use self::root::{GuardRoot, HeldRoot};
use self::steps::{StepError, Steps};
use crate::protected_targets::ProtectedTargets;
use crate::{ConfigPaths, FileKind, WorkspaceError, is_protected, is_protected_in};

/// The longest accepted path, the same as the kernel's.
const MAX_PATH: usize = 4096;
/// The number of attempts to resolve a path that others change at the same time.
pub(crate) const ROUNDS: usize = 16;

#[derive(Debug)]
pub(crate) struct Guard {
    /// Relative paths begin at the first.
    roots: Vec<GuardRoot>,
    how: Resolution,
    /// True if two files may be exchanged in one step, on systems that support it.
    pub(crate) exchanges: bool,
    /// The folder that no path may lead into.
    closed: Option<Closed>,
    led: ProtectedTargets,
}

/// The treatment of a link in the last name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last {
    Followed,
    Kept,
}

/// A path in a root, without links as far as it exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GuardedPath {
    root: usize,
    pub(crate) below: PathBuf,
    /// The number of names at the end that do not exist.
    pub(crate) missing: usize,
    /// True if it is spelled as a folder, with a slash at the end.
    folder: bool,
}

impl GuardedPath {
    /// The path without its last name, and that name.
    pub(crate) fn parent(&self) -> Option<(GuardedPath, &OsStr)> {
        let name = self.below.file_name()?;
        let below = self.below.parent()?.to_owned();
        let missing = self.missing.saturating_sub(1);
        Some((GuardedPath { root: self.root, below, missing, folder: true }, name))
    }

    /// Tells whether the path is spelled as a folder: no file can be made there.
    pub(crate) fn is_for_folder(&self) -> bool {
        self.folder
    }

    pub(crate) fn join(&self, name: impl AsRef<Path>) -> GuardedPath {
        GuardedPath { below: self.below.join(name), folder: false, ..self.clone() }
    }
}

/// The reason why a path was not opened, without the path as the caller knows it.
#[derive(Debug)]
pub(crate) enum NotOpened {
    Directory,
    Special,
    Io(io::Error),
}

impl NotOpened {
    pub(crate) fn at(self, path: &Path) -> WorkspaceError {
        match self {
            Self::Directory => WorkspaceError::IsDirectory(path.to_owned()),
            Self::Special => WorkspaceError::Special(path.to_owned()),
            Self::Io(error) => WorkspaceError::io(path, error),
        }
    }

    /// Converts the error after the path was resolved: then a link on it was put there by others.
    pub(crate) fn or_stale(self, path: &Path) -> WorkspaceError {
        if self.is_redirected() { WorkspaceError::Stale(path.to_owned()) } else { self.at(path) }
    }

    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }

    /// Tells whether the kernel met a link or a way out that it was told to refuse, or a rename at the same moment.
    pub(crate) fn is_redirected(&self) -> bool {
        let Self::Io(error) = self else { return false };
        let code = error.raw_os_error().map(Errno::from_raw);
        matches!(code, Some(Errno::EXDEV | Errno::ELOOP | Errno::EAGAIN))
    }
}

impl From<io::Error> for NotOpened {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Errno> for NotOpened {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

pub(crate) fn kind(found: &FileMeta) -> FileKind {
    if found.is_file() {
        FileKind::File
    } else if found.is_folder() {
        FileKind::Directory
    } else {
        FileKind::Special
    }
}

/// The parameters for opening one path beneath a root.
struct Way<'a> {
    how: Resolution,
    root: Arc<HeldRoot>,
    below: &'a Path,
    links: Links,
}

impl Way<'_> {
    fn open(&self, flags: OFlag) -> Result<OwnedFd, NotOpened> {
        Ok(beneath::open(self.how, self.root.folder.as_fd(), self.below, flags, self.links)?)
    }

    fn metadata(&self) -> Result<FileMeta, NotOpened> {
        Ok(beneath::metadata(self.how, self.root.folder.as_fd(), self.below, self.links)?)
    }

    /// Opens a regular file. The check before opening keeps devices untouched. Opening without blocking, and the
    /// check afterwards, cover a file that changed its kind in between.
    fn file(&self) -> Result<(File, FileMeta), NotOpened> {
        only_regular(&self.metadata()?)?;
        let file = self.open(OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY)?;
        let found = FileMeta::of(&file)?;
        only_regular(&found)?;
        Ok((file.into(), found))
    }
}

pub(crate) fn only_regular(found: &FileMeta) -> Result<(), NotOpened> {
    match kind(found) {
        FileKind::File => Ok(()),
        FileKind::Directory => Err(NotOpened::Directory),
        FileKind::Special => Err(NotOpened::Special),
    }
}

impl Guard {
    pub(crate) fn new(root: PathBuf, more: Vec<PathBuf>) -> Self {
        let how = Resolution::probe();
        let roots = std::iter::once(root).chain(more).map(|root| GuardRoot::new(root, how)).collect();
        Self { roots, how, exchanges: true, closed: None, led: ProtectedTargets::default() }
    }

    /// A guard of one root whose path has no links: if a link is put on the way later, nothing is found. No path
    /// leads into the closed folder.
    pub(crate) fn confined(root: PathBuf, closed: &Path) -> Self {
        let how = Resolution::probe();
        let roots = vec![GuardRoot::exact(root, how)];
        let closed = Some(Closed::new(closed, roots.iter().map(|root| root.path.as_path())));
        Self { roots, how, exchanges: true, closed, led: ProtectedTargets::default() }
    }

    /// Tells whether a folder with the first root's name exists.
    pub(crate) fn is_there(&self) -> bool {
        self.refresh().is_ok()
    }

    /// Tells whether this is the closed folder.
    pub(crate) fn is_closed(&self, found: &FileMeta) -> bool {
        self.closed.as_ref().is_some_and(|closed| closed.is(found))
    }

    /// The real path of the closed folder.
    pub(crate) fn closed(&self) -> Option<&Path> {
        self.closed.as_ref().map(|closed| closed.real.as_path())
    }

    /// Opens the folder at exactly this absolute path in a root, for listing. A link on the way is not followed.
    pub(crate) fn exact_folder(&self, path: &Path) -> Result<OwnedFd, WorkspaceError> {
        self.refresh()?;
        let named = self.roots.iter().enumerate().find_map(|(root, known)| {
            let below = path.strip_prefix(&known.path).ok()?.to_owned();
            Some(GuardedPath { root, below, missing: 0, folder: true })
        });
        let place = named.ok_or_else(|| WorkspaceError::Outside(path.to_owned()))?;
        let folder = self.open_folder(&place).map_err(|error| error.or_stale(path))?;
        let is_closed = self.closed.as_ref().is_some_and(|closed| closed.is_near && closed.holds(path))
            || FileMeta::of(&folder).is_ok_and(|found| self.is_closed(&found));
        if is_closed { Err(WorkspaceError::Outside(path.to_owned())) } else { Ok(folder) }
    }

    /// Disables `openat2` and `renameat2`, as on systems without them.
    pub(crate) fn stepwise(self) -> Self {
        Self { how: Resolution::Stepwise, exchanges: false, ..self }
    }

    pub(crate) fn first_root(&self) -> &Path {
        self.roots.first().map_or(Path::new("/"), |root| &root.path)
    }

    /// The guarded path for a canonical root and a path below it that came from our own notes.
    pub(crate) fn path_from_note(&self, root: &Path, below: PathBuf) -> Option<GuardedPath> {
        let plain = below.components().all(|part| matches!(part, Component::Normal(_)));
        let root = self.roots.iter().position(|known| known.path == root)?;
        plain.then_some(GuardedPath { root, below, missing: 0, folder: false })
    }

    pub(crate) fn real(&self, place: &GuardedPath) -> PathBuf {
        self.root_of(place).map_or_else(|| place.below.clone(), |root| join(&root.path, &place.below))
    }

    pub(crate) fn root_path(&self, place: &GuardedPath) -> &Path {
        self.root_of(place).map_or(Path::new("/"), |root| &root.path)
    }

    fn root_of(&self, place: &GuardedPath) -> Option<&GuardRoot> {
        self.roots.get(place.root)
    }

    pub(crate) fn metadata(&self, path: &Path) -> Result<FileMeta, WorkspaceError> {
        self.open_through_kernel(path, |way| way.metadata())
    }

    pub(crate) fn file(&self, path: &Path) -> Result<(File, FileMeta), WorkspaceError> {
        let (file, found) = self.open_through_kernel(path, |way| way.file())?;
        match self.is_own_file(&found) {
            true => Err(WorkspaceError::Outside(path.to_owned())),
            false => Ok((file, found)),
        }
    }

    /// Opens a folder for listing, and returns its guarded path.
    pub(crate) fn folder(&self, path: &Path) -> Result<(OwnedFd, GuardedPath), WorkspaceError> {
        self.settle(path, Last::Followed, |place| Ok((self.open_folder(place)?, place.clone())))
    }

    /// Opens the folder at a path for reading, so that it can be listed and synced.
    pub(crate) fn open_folder(&self, place: &GuardedPath) -> Result<OwnedFd, NotOpened> {
        self.way(place)?.open(OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NONBLOCK)
    }

    /// Opens the folder at a path, even if it is not readable.
    pub(crate) fn hold_folder(&self, place: &GuardedPath) -> Result<OwnedFd, NotOpened> {
        match self.open_folder(place) {
            Err(NotOpened::Io(error)) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.way(place)?.open(LOOK | OFlag::O_DIRECTORY)
            }
            opened => opened,
        }
    }

    pub(crate) fn file_at(&self, place: &GuardedPath) -> Result<(File, FileMeta), NotOpened> {
        let (file, found) = self.way(place)?.file()?;
        if self.is_own_file(&found) { Err(Errno::EACCES.into()) } else { Ok((file, found)) }
    }

    /// Tells whether a file is a file of the closed folder under another name.
    fn is_own_file(&self, found: &FileMeta) -> bool {
        self.closed.as_ref().is_some_and(|closed| closed.has_file(found))
    }

    /// Opens the target of the link at a path.
    pub(crate) fn link_target(&self, place: &GuardedPath) -> Result<(File, FileMeta), NotOpened> {
        match self.locate(&self.real(place), Last::Followed) {
            Ok(led) if led.missing == 0 => self.file_at(&led),
            Ok(_) => Err(Errno::ENOENT.into()),
            Err(_) => Err(Errno::EXDEV.into()),
        }
    }

    fn way<'a>(&'a self, place: &'a GuardedPath) -> io::Result<Way<'a>> {
        let root = self.root_of(place).and_then(GuardRoot::held).ok_or(Errno::ENOENT)?;
        Ok(Way { how: self.how, root, below: &place.below, links: Links::Refused })
    }

    /// Refuses to remove a folder that contains the closed one.
    pub(crate) fn may_take(&self, path: &Path, place: &GuardedPath) -> Result<(), WorkspaceError> {
        let real = self.real(place);
        match self.closed().is_some_and(|closed| closed.starts_with(&real)) {
            true => Err(WorkspaceError::Denied(path.to_owned())),
            false => Ok(()),
        }
    }

    /// Refuses names that are never written, both as spelled below the root and by the whole real path.
    pub(crate) fn may_write(&self, path: &Path, place: &GuardedPath) -> Result<(), WorkspaceError> {
        let spelled = match self.below_spelled(path) {
            Some((_, below)) => is_protected(below),
            // The path enters a root by a link from elsewhere; only its target counts.
            None => false,
        };
        match spelled || self.is_protected(place) || self.makes_repository(place, &Together::of(&[])) {
            true => Err(WorkspaceError::Protected(path.to_owned())),
            false => Ok(()),
        }
    }

    /// Tells whether no file tool may write this path.
    pub(crate) fn is_protected(&self, place: &GuardedPath) -> bool {
        is_protected_in(self.root_path(place), &place.below) || {
            let real = self.real(place);
            self.led.places(self.root_path(place), &real).iter().any(|led| real.starts_with(led))
        }
    }

    /// The real paths below a folder, or above it, that are targets of protected names.
    pub(crate) fn targets_near(&self, place: &GuardedPath) -> Vec<PathBuf> {
        let real = self.real(place);
        let mut places = self.led.places(self.root_path(place), &real);
        places.retain(|led| led.starts_with(&real) || real.starts_with(led));
        places
    }

    /// Protects the paths that the configuration of repositories names, in addition.
    pub(crate) fn set_config_paths(&self, named: ConfigPaths) {
        self.led.set_config_paths(named);
    }

    /// Tells whether writing a path makes a folder a repository, together with other real paths that are written with
    /// it.
    pub(crate) fn makes_repository(&self, place: &GuardedPath, with: &Together<'_>) -> bool {
        layout::makes_repository(Top::of(self.root_path(place)), &self.real(place), with)
    }

    /// Resolves a path. Names at its end may be missing.
    pub(crate) fn locate(&self, path: &Path, last: Last) -> Result<GuardedPath, WorkspaceError> {
        let failed = |source| WorkspaceError::Io { path: path.to_owned(), source };
        check_text(path).map_err(failed)?;
        let first = self.refresh()?;
        let (at, rest) = match self.below_spelled(path) {
            Some((root, below)) => (root.path.clone(), below),
            None if path.is_absolute() => (PathBuf::from("/"), path),
            None => (first.path.clone(), path),
        };
        let mut steps = Steps::new(self, at, rest);
        let folder = is_spelled_as_folder(path);
        let walked = steps.walk(if folder { Last::Followed } else { last }, folder);
        let Some((root, below)) = self.beneath(&steps.at) else {
            return Err(WorkspaceError::Outside(path.to_owned()));
        };
        if self.closed.as_ref().is_some_and(|closed| closed.is_near && closed.holds(&steps.at)) {
            return Err(WorkspaceError::Outside(path.to_owned()));
        }
        match walked {
            Ok(()) => Ok(GuardedPath { root, below, missing: steps.missing, folder }),
            Err(StepError::Magic | StepError::Closed) => Err(WorkspaceError::Outside(path.to_owned())),
            Err(StepError::Io(error)) => Err(WorkspaceError::io(path, error)),
        }
    }

    /// Opens a path by the kernel's resolution if that suffices, otherwise by ours.
    fn open_through_kernel<T>(
        &self,
        path: &Path,
        act: impl Fn(&Way<'_>) -> Result<T, NotOpened>,
    ) -> Result<T, WorkspaceError> {
        check_text(path).map_err(|source| WorkspaceError::Io { path: path.to_owned(), source })?;
        if self.how == Resolution::Kernel
            && let Some(links) = self.kernel_links()
            && !is_spelled_as_folder(path)
            && self.refresh().is_ok()
            && let Some((root, below)) = self.below_spelled(path)
            && let Some(root) = root.held()
        {
            match act(&Way { how: self.how, root, below, links }) {
                Err(error) if error.is_redirected() => {}
                done => return done.map_err(|error| error.at(path)),
            }
        }
        self.settle(path, Last::Followed, |place| act(&self.way(place)?))
    }

    /// The links that the kernel may follow by itself. None if that could lead into the closed folder.
    fn kernel_links(&self) -> Option<Links> {
        match &self.closed {
            None => Some(Links::Followed),
            // Only another mount leads into a folder outside of the roots.
            Some(closed) => (!closed.is_near).then_some(Links::OnOneMount),
        }
    }

    /// Resolves a path that must exist and acts on it, and repeats that if it changed between the two.
    pub(crate) fn settle<T>(
        &self,
        path: &Path,
        last: Last,
        act: impl Fn(&GuardedPath) -> Result<T, NotOpened>,
    ) -> Result<T, WorkspaceError> {
        for _ in 0..ROUNDS {
            let place = self.locate(path, last)?;
            if place.missing > 0 {
                return Err(WorkspaceError::NotFound(path.to_owned()));
            }
            match act(&place) {
                Err(error) if error.is_redirected() => {}
                done => return done.map_err(|error| error.at(path)),
            }
        }
        Err(WorkspaceError::Stale(path.to_owned()))
    }

    /// Makes sure that the held folders are those of the roots' names. An error if the first root is missing.
    fn refresh(&self) -> Result<&GuardRoot, WorkspaceError> {
        for root in &self.roots {
            root.refresh(self.how);
        }
        match self.roots.first() {
            Some(first) if first.held().is_some() => Ok(first),
            Some(first) => Err(WorkspaceError::NotFound(first.path.clone())),
            None => Err(WorkspaceError::NotFound(PathBuf::from("/"))),
        }
    }

    /// The root in which a path is spelled, and the rest of the path.
    fn below_spelled<'a>(&self, path: &'a Path) -> Option<(&GuardRoot, &'a Path)> {
        if path.is_relative() {
            return self.roots.first().map(|root| (root, path));
        }
        let within = |root: &'_ GuardRoot| {
            let below = path.strip_prefix(&root.path).or_else(|_| path.strip_prefix(&root.spelled));
            below.ok()
        };
        self.roots.iter().find_map(|root| within(root).map(|below| (root, below)))
    }

    /// The root of a real path: by its name, or because a folder on the way is the root under another name, as with
    /// bind mounts and case-insensitive file systems.
    fn beneath(&self, real: &Path) -> Option<(usize, PathBuf)> {
        let named = |(at, root): (usize, &GuardRoot)| {
            real.strip_prefix(&root.path).ok().map(|below| (at, below.to_owned()))
        };
        if let Some(inside) = self.roots.iter().enumerate().find_map(named) {
            return Some(inside);
        }
        real.ancestors().find_map(|folder| {
            let found = FileMeta::at(AT_FDCWD, folder).ok()?;
            let same = |root: &GuardRoot| root.held().is_some_and(|held| held.found.is_same(&found));
            let at = self.roots.iter().position(same)?;
            Some((at, real.strip_prefix(folder).ok()?.to_owned()))
        })
    }

    /// The file at a path whose folder is real (the link itself if it is one), and the target of a link.
    fn step(&self, at: &Path) -> io::Result<(FileMeta, Option<OsString>)> {
        let named = self.roots.iter().find_map(|root| {
            let below = at.strip_prefix(&root.path).ok()?;
            (!below.as_os_str().is_empty()).then_some((root.held()?, below))
        });
        let (folder, path) = match &named {
            Some((root, below)) => (root.folder.as_fd(), *below),
            None => (AT_FDCWD, at),
        };
        let found = FileMeta::at(folder, path)?;
        let leads = if found.is_link() { Some(readlinkat(folder, path)?) } else { None };
        Ok((found, leads))
    }
}

fn check_text(path: &Path) -> io::Result<()> {
    let text = path.as_os_str().as_bytes();
    let wrong = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    if text.is_empty() {
        return wrong("the path is empty");
    }
    if text.contains(&0) {
        return wrong("a path cannot hold a NUL byte");
    }
    if text.len() >= MAX_PATH {
        return Err(Errno::ENAMETOOLONG.into());
    }
    Ok(())
}

fn is_spelled_as_folder(path: &Path) -> bool {
    let text = path.as_os_str().as_bytes();
    text.ends_with(b"/") || text.ends_with(b"/.") || text.ends_with(b"/..")
}

/// Joins without the trailing slash that an empty path would add.
fn join(root: &Path, below: &Path) -> PathBuf {
    if below.as_os_str().is_empty() { root.to_owned() } else { root.join(below) }
}
