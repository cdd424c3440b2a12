//! The path guard: the one way from a path to a file, for every file tool.
//!
//! Roots are canonicalised once and held open. A path is first given to the kernel as it is spelled, to be resolved
//! beneath its root. That refuses absolute links and links that leave and come back, most of which are harmless, so those
//! are resolved here, name by name, and the real path found is opened beneath the root with links forbidden: whatever is
//! swapped between the two is caught, never followed. Comparing strings, and looking before opening by path, were
//! rejected; both are how others were broken into.
//!
//! Invariants: content is read and written only through descriptors of a root; a path is compared by components; `..` is
//! taken after the link before it is resolved, as the kernel does; nothing but a regular file or a folder is opened.

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

pub(crate) use self::beneath::Found;
use self::beneath::{How, LOOK, Links};
use self::closed::Closed;
use self::layout::{Together, Top};
pub use self::root::open_exact;
use self::root::{Held, Root};
use self::steps::{Steps, Stop};
use crate::led::Led;
use crate::{ConfigPlaces, FileKind, WorkspaceError, is_protected, is_protected_in};

/// Longest path that is looked at, as the kernel has it.
const MAX_PATH: usize = 4096;
/// How often a path is resolved anew when it changed under our hands.
pub(crate) const ROUNDS: usize = 16;

#[derive(Debug)]
pub(crate) struct Guard {
    /// Relative paths begin at the first.
    roots: Vec<Root>,
    how: How,
    /// Whether files can be asked to change places in one step, where the system knows how.
    pub(crate) exchanges: bool,
    /// The folder that no path may lead into.
    closed: Option<Closed>,
    led: Led,
}

/// What to do with a link in the last name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last {
    Followed,
    Kept,
}

/// A place in a root: a path without links, as far as it exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    root: usize,
    pub(crate) below: PathBuf,
    /// So many of the last names do not exist.
    pub(crate) missing: usize,
    /// Spelled as a folder, with a slash at the end.
    folder: bool,
}

impl Place {
    /// The same place without its last name.
    pub(crate) fn parent(&self) -> Option<(Place, &OsStr)> {
        let name = self.below.file_name()?;
        let below = self.below.parent()?.to_owned();
        let missing = self.missing.saturating_sub(1);
        Some((Place { root: self.root, below, missing, folder: true }, name))
    }

    /// A file cannot be made where a folder is spelled.
    pub(crate) fn is_for_folder(&self) -> bool {
        self.folder
    }

    pub(crate) fn join(&self, name: impl AsRef<Path>) -> Place {
        Place { below: self.below.join(name), folder: false, ..self.clone() }
    }
}

/// Why something was not opened, before it has the name the caller knows it by.
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

    /// After a path was resolved, a link on it is somebody else's doing.
    pub(crate) fn or_stale(self, path: &Path) -> WorkspaceError {
        if self.is_turned() { WorkspaceError::Stale(path.to_owned()) } else { self.at(path) }
    }

    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }

    /// The kernel met a link or a way out that it was told to refuse, or a rename in that very moment.
    pub(crate) fn is_turned(&self) -> bool {
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

pub(crate) fn kind(found: &Found) -> FileKind {
    if found.is_file() {
        FileKind::File
    } else if found.is_folder() {
        FileKind::Directory
    } else {
        FileKind::Special
    }
}

/// A way to open one path beneath a root.
struct Way<'a> {
    how: How,
    root: Arc<Held>,
    below: &'a Path,
    links: Links,
}

impl Way<'_> {
    fn open(&self, flags: OFlag) -> Result<OwnedFd, NotOpened> {
        Ok(beneath::open(self.how, self.root.folder.as_fd(), self.below, flags, self.links)?)
    }

    fn look(&self) -> Result<Found, NotOpened> {
        Ok(beneath::look(self.how, self.root.folder.as_fd(), self.below, self.links)?)
    }

    /// Opens a regular file. Looking first keeps devices untouched; opening without blocking and looking again covers a
    /// file that became something else between.
    fn file(&self) -> Result<(File, Found), NotOpened> {
        only_regular(&self.look()?)?;
        let file = self.open(OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY)?;
        let found = Found::of(&file)?;
        only_regular(&found)?;
        Ok((file.into(), found))
    }
}

pub(crate) fn only_regular(found: &Found) -> Result<(), NotOpened> {
    match kind(found) {
        FileKind::File => Ok(()),
        FileKind::Directory => Err(NotOpened::Directory),
        FileKind::Special => Err(NotOpened::Special),
    }
}

impl Guard {
    pub(crate) fn new(root: PathBuf, more: Vec<PathBuf>) -> Self {
        let how = How::probe();
        let roots = std::iter::once(root).chain(more).map(|root| Root::new(root, how)).collect();
        Self { roots, how, exchanges: true, closed: None, led: Led::default() }
    }

    /// A guard of one root whose path has no links, so that a link put on the way later leads nowhere. No path leads into
    /// the folder that is closed.
    pub(crate) fn confined(root: PathBuf, closed: &Path) -> Self {
        let how = How::probe();
        let roots = vec![Root::exact(root, how)];
        let closed = Some(Closed::new(closed, roots.iter().map(|root| root.path.as_path())));
        Self { roots, how, exchanges: true, closed, led: Led::default() }
    }

    /// Whether there is a folder of the first root's name.
    pub(crate) fn is_there(&self) -> bool {
        self.refresh().is_ok()
    }

    /// Whether this is the folder that is closed.
    pub(crate) fn is_closed(&self, found: &Found) -> bool {
        self.closed.as_ref().is_some_and(|closed| closed.is(found))
    }

    /// The real path of the folder that is closed.
    pub(crate) fn closed(&self) -> Option<&Path> {
        self.closed.as_ref().map(|closed| closed.real.as_path())
    }

    /// The folder of exactly this absolute path in a root, open for listing. A link on the way is not followed.
    pub(crate) fn exact_folder(&self, path: &Path) -> Result<OwnedFd, WorkspaceError> {
        self.refresh()?;
        let named = self.roots.iter().enumerate().find_map(|(root, known)| {
            let below = path.strip_prefix(&known.path).ok()?.to_owned();
            Some(Place { root, below, missing: 0, folder: true })
        });
        let place = named.ok_or_else(|| WorkspaceError::Outside(path.to_owned()))?;
        let folder = self.open_folder(&place).map_err(|error| error.or_stale(path))?;
        let is_closed = self.closed.as_ref().is_some_and(|closed| closed.is_near && closed.holds(path))
            || Found::of(&folder).is_ok_and(|found| self.is_closed(&found));
        if is_closed { Err(WorkspaceError::Outside(path.to_owned())) } else { Ok(folder) }
    }

    /// Does without `openat2` and `renameat2`, as systems that have none.
    pub(crate) fn stepwise(self) -> Self {
        Self { how: How::Stepwise, exchanges: false, ..self }
    }

    pub(crate) fn first_root(&self) -> &Path {
        self.roots.first().map_or(Path::new("/"), |root| &root.path)
    }

    /// The place of a canonical root and a path below it that came from our own notes.
    pub(crate) fn known(&self, root: &Path, below: PathBuf) -> Option<Place> {
        let plain = below.components().all(|part| matches!(part, Component::Normal(_)));
        let root = self.roots.iter().position(|known| known.path == root)?;
        plain.then_some(Place { root, below, missing: 0, folder: false })
    }

    pub(crate) fn real(&self, place: &Place) -> PathBuf {
        self.root_of(place).map_or_else(|| place.below.clone(), |root| join(&root.path, &place.below))
    }

    pub(crate) fn root_path(&self, place: &Place) -> &Path {
        self.root_of(place).map_or(Path::new("/"), |root| &root.path)
    }

    fn root_of(&self, place: &Place) -> Option<&Root> {
        self.roots.get(place.root)
    }

    pub(crate) fn look(&self, path: &Path) -> Result<Found, WorkspaceError> {
        self.reach(path, |way| way.look())
    }

    pub(crate) fn file(&self, path: &Path) -> Result<(File, Found), WorkspaceError> {
        let (file, found) = self.reach(path, |way| way.file())?;
        match self.is_own_file(&found) {
            true => Err(WorkspaceError::Outside(path.to_owned())),
            false => Ok((file, found)),
        }
    }

    /// A folder, open for listing, and where it is.
    pub(crate) fn folder(&self, path: &Path) -> Result<(OwnedFd, Place), WorkspaceError> {
        self.settle(path, Last::Followed, |place| Ok((self.open_folder(place)?, place.clone())))
    }

    /// The folder at a place, open for reading, so that it can be listed and synced.
    pub(crate) fn open_folder(&self, place: &Place) -> Result<OwnedFd, NotOpened> {
        self.way(place)?.open(OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NONBLOCK)
    }

    /// The folder at a place, also if it may not be read.
    pub(crate) fn hold_folder(&self, place: &Place) -> Result<OwnedFd, NotOpened> {
        match self.open_folder(place) {
            Err(NotOpened::Io(error)) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.way(place)?.open(LOOK | OFlag::O_DIRECTORY)
            }
            opened => opened,
        }
    }

    pub(crate) fn file_at(&self, place: &Place) -> Result<(File, Found), NotOpened> {
        let (file, found) = self.way(place)?.file()?;
        if self.is_own_file(&found) { Err(Errno::EACCES.into()) } else { Ok((file, found)) }
    }

    /// Tells whether a file is one of the closed folder, by another name.
    fn is_own_file(&self, found: &Found) -> bool {
        self.closed.as_ref().is_some_and(|closed| closed.has_file(found))
    }

    /// The file that a link at a place leads to.
    pub(crate) fn behind(&self, place: &Place) -> Result<(File, Found), NotOpened> {
        match self.locate(&self.real(place), Last::Followed) {
            Ok(led) if led.missing == 0 => self.file_at(&led),
            Ok(_) => Err(Errno::ENOENT.into()),
            Err(_) => Err(Errno::EXDEV.into()),
        }
    }

    fn way<'a>(&'a self, place: &'a Place) -> io::Result<Way<'a>> {
        let root = self.root_of(place).and_then(Root::held).ok_or(Errno::ENOENT)?;
        Ok(Way { how: self.how, root, below: &place.below, links: Links::Refused })
    }

    /// Refuses to take a folder away that holds the closed one.
    pub(crate) fn may_take(&self, path: &Path, place: &Place) -> Result<(), WorkspaceError> {
        let real = self.real(place);
        match self.closed().is_some_and(|closed| closed.starts_with(&real)) {
            true => Err(WorkspaceError::Denied(path.to_owned())),
            false => Ok(()),
        }
    }

    /// Refuses names that are never written, as spelled below the root and by the whole real path.
    pub(crate) fn may_write(&self, path: &Path, place: &Place) -> Result<(), WorkspaceError> {
        let spelled = match self.below_spelled(path) {
            Some((_, below)) => is_protected(below),
            // It enters a root by a link from elsewhere; only where that leads counts.
            None => false,
        };
        match spelled || self.is_protected(place) || self.makes_repository(place, &Together::of(&[])) {
            true => Err(WorkspaceError::Protected(path.to_owned())),
            false => Ok(()),
        }
    }

    /// Whether a place is one that no file tool may write.
    pub(crate) fn is_protected(&self, place: &Place) -> bool {
        is_protected_in(self.root_path(place), &place.below) || {
            let real = self.real(place);
            self.led.places(self.root_path(place), &real).iter().any(|led| real.starts_with(led))
        }
    }

    /// The real places below a folder, or holding it, that protected names lead to.
    pub(crate) fn led_near(&self, place: &Place) -> Vec<PathBuf> {
        let real = self.real(place);
        let mut places = self.led.places(self.root_path(place), &real);
        places.retain(|led| led.starts_with(&real) || real.starts_with(led));
        places
    }

    /// Protects the places that the configuration of repositories names, in addition.
    pub(crate) fn naming(&self, named: ConfigPlaces) {
        self.led.naming(named);
    }

    /// Whether writing a place makes a folder a repository, together with other real paths that are written with it.
    pub(crate) fn makes_repository(&self, place: &Place, with: &Together<'_>) -> bool {
        layout::makes_repository(Top::of(self.root_path(place)), &self.real(place), with)
    }

    /// Where a path leads. Names that do not exist may stand at the end.
    pub(crate) fn locate(&self, path: &Path, last: Last) -> Result<Place, WorkspaceError> {
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
            Ok(()) => Ok(Place { root, below, missing: steps.missing, folder }),
            Err(Stop::Magic | Stop::Closed) => Err(WorkspaceError::Outside(path.to_owned())),
            Err(Stop::Io(error)) => Err(WorkspaceError::io(path, error)),
        }
    }

    /// Opens by the kernel's own resolving where that suffices, and by ours where it does not.
    fn reach<T>(
        &self,
        path: &Path,
        act: impl Fn(&Way<'_>) -> Result<T, NotOpened>,
    ) -> Result<T, WorkspaceError> {
        check_text(path).map_err(|source| WorkspaceError::Io { path: path.to_owned(), source })?;
        if self.how == How::Kernel
            && let Some(links) = self.followed()
            && !is_spelled_as_folder(path)
            && self.refresh().is_ok()
            && let Some((root, below)) = self.below_spelled(path)
            && let Some(root) = root.held()
        {
            match act(&Way { how: self.how, root, below, links }) {
                Err(error) if error.is_turned() => {}
                done => return done.map_err(|error| error.at(path)),
            }
        }
        self.settle(path, Last::Followed, |place| act(&self.way(place)?))
    }

    /// How far the kernel may resolve a path by itself: not at all where that could lead into the closed folder.
    fn followed(&self) -> Option<Links> {
        match &self.closed {
            None => Some(Links::Followed),
            // Into a folder outside of the roots leads only another mount.
            Some(closed) => (!closed.is_near).then_some(Links::OnOneMount),
        }
    }

    /// Resolves a path to a place that exists and acts on it, anew if it changed between the two.
    pub(crate) fn settle<T>(
        &self,
        path: &Path,
        last: Last,
        act: impl Fn(&Place) -> Result<T, NotOpened>,
    ) -> Result<T, WorkspaceError> {
        for _ in 0..ROUNDS {
            let place = self.locate(path, last)?;
            if place.missing > 0 {
                return Err(WorkspaceError::NotFound(path.to_owned()));
            }
            match act(&place) {
                Err(error) if error.is_turned() => {}
                done => return done.map_err(|error| error.at(path)),
            }
        }
        Err(WorkspaceError::Stale(path.to_owned()))
    }

    /// Sees to it that the folders held are those the roots' names stand for. Without the first root there is nothing.
    fn refresh(&self) -> Result<&Root, WorkspaceError> {
        for root in &self.roots {
            root.refresh(self.how);
        }
        match self.roots.first() {
            Some(first) if first.held().is_some() => Ok(first),
            Some(first) => Err(WorkspaceError::NotFound(first.path.clone())),
            None => Err(WorkspaceError::NotFound(PathBuf::from("/"))),
        }
    }

    /// The root a path is spelled in, and the rest of it.
    fn below_spelled<'a>(&self, path: &'a Path) -> Option<(&Root, &'a Path)> {
        if path.is_relative() {
            return self.roots.first().map(|root| (root, path));
        }
        let within = |root: &'_ Root| {
            let below = path.strip_prefix(&root.path).or_else(|_| path.strip_prefix(&root.spelled));
            below.ok()
        };
        self.roots.iter().find_map(|root| within(root).map(|below| (root, below)))
    }

    /// The root a real path lies in: by its name, or because a folder on the way is the root under another name, as with
    /// bind mounts and file systems without case.
    fn beneath(&self, real: &Path) -> Option<(usize, PathBuf)> {
        let named = |(at, root): (usize, &Root)| {
            real.strip_prefix(&root.path).ok().map(|below| (at, below.to_owned()))
        };
        if let Some(inside) = self.roots.iter().enumerate().find_map(named) {
            return Some(inside);
        }
        real.ancestors().find_map(|folder| {
            let found = Found::at(AT_FDCWD, folder).ok()?;
            let same = |root: &Root| root.held().is_some_and(|held| held.found.is_same(&found));
            let at = self.roots.iter().position(same)?;
            Some((at, real.strip_prefix(folder).ok()?.to_owned()))
        })
    }

    /// What stands at a path whose folder is real, the link itself if it is one, and where a link leads.
    fn step(&self, at: &Path) -> io::Result<(Found, Option<OsString>)> {
        let named = self.roots.iter().find_map(|root| {
            let below = at.strip_prefix(&root.path).ok()?;
            (!below.as_os_str().is_empty()).then_some((root.held()?, below))
        });
        let (folder, path) = match &named {
            Some((root, below)) => (root.folder.as_fd(), *below),
            None => (AT_FDCWD, at),
        };
        let found = Found::at(folder, path)?;
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

/// Without the slash that joining nothing would add.
fn join(root: &Path, below: &Path) -> PathBuf {
    if below.as_os_str().is_empty() { root.to_owned() } else { root.join(below) }
}
