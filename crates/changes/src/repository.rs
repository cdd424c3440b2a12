//! Copies of repositories, so that a line that removes `.git` loses nothing.
//!
//! The effects of a script or an expansion cannot be predicted, so before any line that is not known to be harmless
//! the repository gets a second set of names, like the files of the quarantine. Objects and packs never change in
//! place: a hard link keeps them and costs nothing. Everything else in `.git` is small and is copied. The copy stays
//! from line to line and from session to session and describes itself: a copied file has the time of its original,
//! and so has a folder of links, so checking an unchanged repository is a few hundred `lstat`s. A file that is too
//! young for its time to prove anything gets no time, and is checked again.
//!
//! Rejected: `git bundle` and a second clone (both read every object), and a copy inside of `.git` (it would be
//! removed with it).

use std::collections::{BTreeMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lathe_protocol::Digest;

use crate::health;
use crate::layout::{is_loose, led_to, repository_around, repository_of, repository_paths};
use crate::linked_parts;
use crate::lost_parts;
use crate::outside_parts;
use crate::programs::SetAside;
use crate::quarantine::{NotKept, Quarantine, remove_tree};
use crate::restore_files::{RestoreReport, move_to_place};
use crate::unfinished::WatchedRepositories;

/// The maximum number of entries of one repository, and the maximum number of bytes copied from it.
const MOST: u64 = 300_000;
const MOST_COPIED: u64 = 2 << 30;

/// The age below which the time of a file does not prove that it stayed the same.
const YOUNG: Duration = Duration::from_millis(100);

/// The time since 1970 that proves nothing. It is not zero, because git takes zero for proof.
const UNPROVEN: Duration = Duration::from_secs(1);

/// The folder of copies, next to the entries of the quarantine.
pub(crate) const FOLDER: &str = ".repositories";

/// The name of the copy in its folder.
const COPY: &str = "copy";

/// The repositories of a workspace, each with its copy.
#[derive(Debug)]
pub struct Repositories {
    folder: PathBuf,
    copies: Vec<Copied>,
    not_kept: Vec<NotKept>,
    /// The `.git` that the root belongs to, and the repository that it leads to.
    around: Option<(PathBuf, PathBuf)>,
    /// Every repository that was there at the last update, also those without a copy.
    seen: Vec<PathBuf>,
}

/// A `.git`, a module in one, or the repository of a work tree elsewhere.
#[derive(Debug, Clone)]
struct Copied {
    path: PathBuf,
    copy: PathBuf,
    /// True for a file or a link that leads to no repository.
    loose: bool,
}

impl Copied {
    fn broken(&self) -> Option<BrokenRepository> {
        let (path, copy) = (self.path.clone(), self.copy.clone());
        if self.loose {
            // A repository at this path may hold more than the file did.
            let (is_changed, now) = (!is_same(&copy, &path), path.symlink_metadata());
            let why = if now.is_ok() { "was changed" } else { "is gone" }.to_owned();
            let broken = BrokenRepository { path, copy, why, parts: Vec::new() };
            return (is_changed && !now.is_ok_and(|now| now.is_dir())).then_some(broken);
        }
        if let Some(why) = health::find_damage(&path, &copy) {
            return Some(BrokenRepository { path, copy, why, parts: Vec::new() });
        }
        if !copy.is_dir() || !path.is_dir() {
            return None;
        }
        let mut parts = lost_parts::find_lost(&path, &copy);
        let why = match parts.as_slice() {
            [] => return None,
            [one] => format!("has lost {one}"),
            [one, rest @ ..] => format!("has lost {one} and {} more", rest.len()),
        };
        if lost_parts::is_dangling(&path, &copy, &parts) {
            parts.clear();
        }
        Some(BrokenRepository { path, copy, why, parts })
    }
}

/// A repository that was whole before a line, and is damaged now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenRepository {
    pub path: PathBuf,
    /// The path of the copy.
    pub copy: PathBuf,
    /// A description of the damage, for people.
    pub why: String,
    /// The lost or damaged parts, if the rest is whole.
    pub(crate) parts: Vec<String>,
}

impl Repositories {
    /// `folder` is the folder of the copies.
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, copies: Vec::new(), not_kept: Vec::new(), around: None, seen: Vec::new() }
    }

    /// Updates the copies before a line. `found` are paths of `.git`; the repository around `root` is found in
    /// addition.
    pub fn secure(&mut self, root: &Path, found: &[PathBuf]) {
        let known: Vec<Copied> = std::mem::take(&mut self.copies);
        self.not_kept.clear();
        let around = repository_around(root).and_then(|dot| Some((repository_of(&dot)?, dot)));
        self.around = around.map(|(repository, dot)| (dot, repository)).or(self.around.take());
        let in_use = self.folder.parent().map(|folder| Quarantine::new(folder.to_owned()).unsettled_paths());
        let in_use = in_use.unwrap_or_default();
        let paths = repository_paths(root, found);
        self.seen = found.iter().filter_map(|dot| repository_of(dot)).chain(paths.iter().cloned()).collect();
        for path in paths {
            let copy = self.copy_of(&path);
            let loose = is_loose(&path);
            let one = Copied { path: path.clone(), copy: copy.clone(), loose };
            // A repository that broke since the last line keeps its earlier copy, and so does one that a line of
            // another process is breaking.
            let was_whole = known.iter().any(|known| known.path == path) && copy.symlink_metadata().is_ok();
            if (was_whole && health::find_damage(&path, &copy).is_some())
                || (in_use.contains(&path) && one.broken().is_some())
            {
                self.copies.push(one);
                continue;
            }
            match update_copy(&path, &copy) {
                Ok(true) => self.copies.push(one),
                Ok(false) => {}
                Err(error) => self.not_kept.push(NotKept { path, why: error.to_string() }),
            }
        }
        // Repositories that are gone are not found any more.
        let gone = known.into_iter().filter(|known| known.path.symlink_metadata().is_err());
        let gone: Vec<Copied> = gone.filter(|known| known.copy.symlink_metadata().is_ok()).collect();
        self.copies.extend(gone);
        self.copies.sort_by(|a, b| a.path.cmp(&b.path));
        self.copies.dedup_by(|a, b| a.path == b.path);
    }

    /// Settles the repositories in which killed lines left something, so that their copies are not updated with it.
    /// To be called before a line, and before any git process is started. Returns the programs that were set aside.
    pub fn settle(&self, root: &Path) -> Vec<SetAside> {
        let Some(quarantine) = self.folder.parent() else { return Vec::new() };
        let here = repository_paths(root, &[]);
        let is_around = |path: &Path| path.parent().is_some_and(|folder| root.starts_with(folder));
        let is_meant =
            |path: &Path| path.starts_with(root) || is_around(path) || here.iter().any(|one| one == path);
        Quarantine::new(quarantine.to_owned()).settle_where(is_meant)
    }

    /// Selects the copies of these repositories, as far as they exist.
    pub(crate) fn with_copies_of(mut self, watched: &WatchedRepositories) -> Self {
        let held = watched.paths.iter().map(|path| {
            let loose = watched.loose.contains(path);
            Copied { path: path.clone(), copy: self.copy_of(path), loose }
        });
        self.copies = held.filter(|one| one.copy.symlink_metadata().is_ok()).collect();
        self
    }

    /// Every repository of which there is a copy.
    pub fn watched(&self) -> WatchedRepositories {
        let loose = self.copies.iter().filter(|one| one.loose).map(|one| one.path.clone()).collect();
        let paths = self.copies.iter().map(|one| one.path.clone()).collect();
        WatchedRepositories { paths, loose, ..WatchedRepositories::default() }
    }

    fn copy_of(&self, path: &Path) -> PathBuf {
        self.folder.join(Digest::of(path.as_os_str().as_encoded_bytes()).short()).join(COPY)
    }

    /// The repositories that a line damaged, outer ones first.
    pub fn broken(&self) -> Vec<BrokenRepository> {
        self.copies.iter().filter_map(Copied::broken).collect()
    }

    /// The folder with the objects of the repository around the root, if git does not find them itself.
    pub fn objects_copy(&self, broken: &[BrokenRepository]) -> Option<PathBuf> {
        let (dot, repository) = self.around.as_ref()?;
        let mut broken = broken.iter().filter(|one| one.parts.is_empty());
        let copy = broken.clone().find(|one| one.path == *repository).map(|one| one.copy.clone());
        copy.or_else(|| broken.any(|one| one.path == *dot).then(|| repository.clone()))
    }

    /// Each repository with its copy.
    pub(crate) fn copies(&self) -> impl Iterator<Item = (&Path, &Path)> {
        self.copies.iter().filter(|one| !one.loose).map(|one| (one.path.as_path(), one.copy.as_path()))
    }

    /// Every repository that was there before the line.
    pub(crate) fn seen(&self) -> impl Iterator<Item = &PathBuf> {
        self.seen.iter()
    }

    /// The folders of the repositories that were there before the line.
    pub(crate) fn folders(&self) -> impl Iterator<Item = &Path> {
        self.seen.iter().map(PathBuf::as_path).filter(|path| health::is_repository(path))
    }

    /// The copies of repositories that are no longer at their paths.
    pub(crate) fn gone_copies(&self) -> Vec<PathBuf> {
        let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_dir());
        let gone = self.copies().filter(|(path, copy)| is_folder(copy) && !is_folder(path));
        gone.map(|(_, copy)| copy.to_owned()).collect()
    }

    /// The repositories without a copy, with the reason.
    pub fn not_kept(&self) -> &[NotKept] {
        &self.not_kept
    }
}

/// Removes copies that were not used for some time. Returns their number.
pub(crate) fn collect(folder: &Path, limit: SystemTime, really: bool) -> u64 {
    let mut count = 0;
    for one in fs::read_dir(folder).into_iter().flatten().flatten() {
        if one.metadata().and_then(|found| found.modified()).is_ok_and(|at| at < limit) {
            count += 1;
            if really {
                let _ = remove_tree(&one.path());
            }
        }
    }
    count
}

/// The files that a line changed, except objects: the path in the repository, and a mark that tells the file from any
/// other.
pub(crate) fn changed_files(copy: &Path, path: &Path) -> BTreeMap<String, String> {
    let (mut left, mut open) = (BTreeMap::new(), vec![PathBuf::new()]);
    while let Some(rel) = open.pop() {
        for entry in fs::read_dir(copy.join(&rel)).into_iter().flatten().flatten() {
            let rel = rel.join(entry.file_name());
            if rel == Path::new("objects") {
                continue;
            }
            let Ok(theirs) = path.join(&rel).symlink_metadata() else { continue };
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && theirs.is_dir() {
                open.push(rel);
            } else if !is_same(&copy.join(&rel), &path.join(&rel))
                && let Some(name) = rel.to_str()
            {
                left.insert(name.to_owned(), mark(&theirs));
            }
        }
    }
    // A file or a link that replaced a folder was left by the line too; a folder that replaced a file may hold more
    // than that.
    if let (Ok(ours), Ok(theirs)) = (copy.symlink_metadata(), path.symlink_metadata())
        && (ours.is_file() || !theirs.is_dir())
        && !is_same(copy, path)
    {
        left.insert(String::new(), mark(&theirs));
    }
    left
}

/// The marks of these parts as a line left them.
pub(crate) fn left_parts(path: &Path, parts: &[String]) -> BTreeMap<String, String> {
    let look = |part: &String| Some((part.clone(), mark(&path.join(part).symlink_metadata().ok()?)));
    parts.iter().filter_map(look).collect()
}

fn mark(found: &fs::Metadata) -> String {
    format!("{}:{}:{}.{:09}", found.ino(), found.len(), found.mtime(), found.mtime_nsec())
}

pub(crate) fn is_same(ours: &Path, theirs: &Path) -> bool {
    let (Ok(a), Ok(b)) = (ours.symlink_metadata(), theirs.symlink_metadata()) else { return false };
    if (a.ino(), a.dev()) == (b.ino(), b.dev()) {
        return true;
    }
    if a.is_symlink() && b.is_symlink() {
        return fs::read_link(ours).ok() == fs::read_link(theirs).ok();
    }
    a.is_file() && b.is_file() && a.len() == b.len() && fs::read(ours).ok() == fs::read(theirs).ok()
}

/// Restores a repository: missing files return, files that the line changed are replaced, and files that others
/// changed since then stay.
pub(crate) fn restore_repository(
    copy: &Path,
    path: &Path,
    left: &BTreeMap<String, String>,
    back: &mut RestoreReport,
) {
    let mut putting = Putting { copy, path, left, moved: 0, stayed: Vec::new() };
    putting.entry(Path::new(""));
    if putting.moved > 0 {
        back.done.push(path.display().to_string());
    }
    back.left.extend(putting.stayed);
}

struct Putting<'a> {
    copy: &'a Path,
    path: &'a Path,
    left: &'a BTreeMap<String, String>,
    moved: u64,
    stayed: Vec<(String, String)>,
}

impl Putting<'_> {
    fn entry(&mut self, rel: &Path) {
        let at = |base: &Path| if rel.as_os_str().is_empty() { base.to_owned() } else { base.join(rel) };
        let (ours, theirs) = (at(self.copy), at(self.path));
        let Ok(kept) = ours.symlink_metadata() else { return };
        let now = theirs.symlink_metadata().ok();
        let moved = match now {
            None => move_to_place(&ours, &theirs, &kept),
            Some(now) if kept.is_dir() && now.is_dir() => {
                for entry in fs::read_dir(&ours).into_iter().flatten().flatten() {
                    self.entry(&rel.join(entry.file_name()));
                }
                let _ = fs::remove_dir(&ours);
                return;
            }
            Some(_) if is_same(&ours, &theirs) => {
                let _ = fs::remove_file(&ours);
                return;
            }
            // An object with the same name has the same content; a damaged one is replaced.
            Some(now) if self.is_left(rel, &now) || rel.starts_with("objects") => {
                clear(&theirs, Some(&now)).and_then(|()| move_to_place(&ours, &theirs, &kept))
            }
            Some(_) => {
                self.stayed.push((theirs.display().to_string(), "somebody changed it meanwhile".to_owned()));
                return;
            }
        };
        match moved {
            Ok(()) => self.moved += 1,
            Err(error) => self.stayed.push((theirs.display().to_string(), error.to_string())),
        }
    }

    fn is_left(&self, rel: &Path, now: &fs::Metadata) -> bool {
        rel.to_str().and_then(|name| self.left.get(name)).is_some_and(|left| *left == mark(now))
    }
}

/// Updates the copy to the state of the repository. Returns false if nothing is there, or nothing whole.
fn update_copy(path: &Path, copy: &Path) -> io::Result<bool> {
    let Ok(found) = path.symlink_metadata() else { return Ok(false) };
    // A repository that was not whole before a line cannot be broken by it.
    if !health::is_repository(path) && (found.is_dir() || !(is_loose(path) || led_to(path).is_some())) {
        return Ok(false);
    }
    let folder = copy.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::DirBuilder::new().mode(0o700).recursive(true).create(folder)?;
    // Two sessions may work in one repository.
    let lock = fs::File::options().create(true).truncate(false).write(true).open(folder.join("lock"))?;
    lock.lock()?;
    // The time of the last use, for the removal of old copies.
    let _ = set_time(folder, SystemTime::now());
    let mut copying = Copying { now: SystemTime::now(), seen: 0, copied: 0 };
    copying.entry(path, copy, CopyMode::Top)?;
    outside_parts::keep(path, folder)?;
    linked_parts::keep(path, folder)?;
    Ok(true)
}

/// The ways to copy a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CopyMode {
    /// The repository itself.
    Top,
    Copy,
    /// A folder of git's names. One of them may be called like a folder of objects.
    Names,
    Link,
}

impl CopyMode {
    fn inside(self, name: &OsStr) -> Self {
        match (self, name.as_encoded_bytes()) {
            (Self::Top | Self::Copy, b"objects") => Self::Link,
            (Self::Top, b"refs" | b"logs" | b"worktrees") | (Self::Names, _) => Self::Names,
            // Files there are rewritten.
            (Self::Link, b"info") => Self::Copy,
            (Self::Link, _) => Self::Link,
            (Self::Top | Self::Copy, _) => Self::Copy,
        }
    }

    /// Tells whether a file is skipped: it belongs to an operation in progress, or is a module, which has a copy of
    /// its own.
    fn skips(self, name: &OsStr) -> bool {
        let name = name.as_encoded_bytes();
        name.ends_with(b".lock")
            || (self == Self::Link && name.starts_with(b"tmp_"))
            || (self == Self::Top && matches!(name, b"modules" | b"gc.pid"))
    }
}

struct Copying {
    now: SystemTime,
    seen: u64,
    copied: u64,
}

impl Copying {
    fn entry(&mut self, from: &Path, to: &Path, how: CopyMode) -> io::Result<()> {
        self.seen += 1;
        if self.seen > MOST {
            return Err(io::Error::other(format!("it has more than {MOST} files")));
        }
        let Some(found) = gone(from.symlink_metadata())? else { return Ok(()) };
        let ours = gone(to.symlink_metadata())?;
        if found.is_dir() {
            self.folder(from, to, how, &found, ours)
        } else if found.is_file() {
            self.file(from, to, how, &found, ours)
        } else if found.is_symlink() {
            let target = fs::read_link(from)?;
            if ours.is_some() && fs::read_link(to).ok().as_ref() == Some(&target) {
                return Ok(());
            }
            clear(to, ours.as_ref())?;
            std::os::unix::fs::symlink(target, to)
        } else {
            Ok(())
        }
    }

    fn folder(
        &mut self,
        from: &Path,
        to: &Path,
        how: CopyMode,
        found: &fs::Metadata,
        ours: Option<fs::Metadata>,
    ) -> io::Result<()> {
        let ours = match ours {
            Some(ours) if ours.is_dir() => Some(ours),
            other => {
                clear(to, other.as_ref())?;
                fs::DirBuilder::new().mode(0o700).create(to)?;
                None
            }
        };
        // No entry came or went, and no subfolder could have changed.
        if how == CopyMode::Link
            && found.nlink() == 2
            && ours.as_ref().is_some_and(|ours| same_time(found, ours))
        {
            return Ok(());
        }
        let mut present: HashSet<OsString> = HashSet::new();
        let Some(entries) = gone(fs::read_dir(from))? else { return Ok(()) };
        for entry in entries {
            let name = entry?.file_name();
            if !how.skips(&name) {
                let inside = how.inside(&name);
                self.entry(&from.join(&name), &to.join(&name), inside)?;
                present.insert(name);
            }
        }
        for entry in fs::read_dir(to)? {
            let entry = entry?;
            if !present.contains(&entry.file_name()) {
                clear(&entry.path(), Some(&entry.metadata()?))?;
            }
        }
        if ours.is_none_or(|ours| ours.mode() & 0o7777 != found.mode() & 0o7777 | 0o700) {
            fs::set_permissions(to, fs::Permissions::from_mode(found.mode() & 0o7777 | 0o700))?;
            owner(to, found);
        }
        if how == CopyMode::Link { set_time(to, self.time(found)) } else { Ok(()) }
    }

    fn file(
        &mut self,
        from: &Path,
        to: &Path,
        how: CopyMode,
        found: &fs::Metadata,
        ours: Option<fs::Metadata>,
    ) -> io::Result<()> {
        let is_same = |ours: &fs::Metadata| {
            let linked = (ours.ino(), ours.dev()) == (found.ino(), found.dev());
            linked
                || (ours.is_file()
                    && ours.len() == found.len()
                    && ours.mode() == found.mode()
                    && same_time(found, ours))
        };
        if ours.as_ref().is_some_and(is_same) {
            return Ok(());
        }
        clear(to, ours.as_ref())?;
        if how == CopyMode::Link && fs::hard_link(from, to).is_ok() {
            return Ok(());
        }
        self.copied += found.len();
        if self.copied > MOST_COPIED {
            return Err(io::Error::other("it is on another disk, and too much to copy"));
        }
        if gone(fs::copy(from, to))?.is_none() {
            return Ok(());
        }
        owner(to, found);
        set_time(to, if how == CopyMode::Link { modified(found) } else { self.time(found) })
    }

    /// The time of the original, or [`UNPROVEN`] if it proves nothing yet.
    fn time(&self, found: &fs::Metadata) -> SystemTime {
        let at = modified(found);
        let is_old = self.now.duration_since(at).is_ok_and(|age| age > YOUNG);
        if is_old { at } else { UNIX_EPOCH + UNPROVEN }
    }
}

/// None if another process removed the file since it was listed.
fn gone<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn clear(path: &Path, found: Option<&fs::Metadata>) -> io::Result<()> {
    match found {
        None => Ok(()),
        Some(found) if found.is_dir() => remove_tree(path),
        Some(_) => fs::remove_file(path),
    }
}

fn modified(found: &fs::Metadata) -> SystemTime {
    found.modified().unwrap_or(UNIX_EPOCH)
}

pub(crate) fn same_time(a: &fs::Metadata, b: &fs::Metadata) -> bool {
    (a.mtime(), a.mtime_nsec()) == (b.mtime(), b.mtime_nsec())
}

fn set_time(path: &Path, at: SystemTime) -> io::Result<()> {
    match fs::File::open(path) {
        Ok(file) => file.set_times(fs::FileTimes::new().set_modified(at)),
        // A file without read permission is kept without its time: it is copied each time.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Err(error) => Err(error),
    }
}

/// Keeps the owner of the original, which only root can set.
fn owner(path: &Path, found: &fs::Metadata) {
    let _ = std::os::unix::fs::lchown(path, Some(found.uid()), Some(found.gid()));
}
