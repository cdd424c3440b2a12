//! The transaction behind [`Files::apply`](crate::Files::apply):
//!
//! 1. every path goes through the guard, every expectation is checked and the pre-images are read;
//! 2. what is about to happen is noted, where the host named a folder for such notes (`intent`);
//! 3. every new content is written and synced under a private name beside its file;
//!    while hashes of pre-images are worked out that nobody knows yet;
//! 4. the expectations are checked once more, right before the first change;
//! 5. each new file changes places with the old one in a single step, and the old one, now under the private name, is
//!    looked at again: if somebody changed it in that very moment, it is not lost but put back;
//! 6. the folders are synced, the note goes, and then the old files.
//!
//! A failure anywhere puts back what was exchanged, the old files themselves and not copies of them; a death anywhere
//! leaves the note, and whoever opens the folder next puts back or finishes. Invariant: under its own name a file is at
//! every moment either wholly old or wholly new. Owner, mode, access control list and extended attributes are the old
//! file's. A file with several hard links becomes a file of its own, which the result of the call tells.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lathe_protocol::Digest;
use nix::fcntl::readlinkat;

use super::intent::{Intent, Noted};
use super::spot::{Folder, Hold, Like, Private, is_unsupported, private_name};
use super::{PERMISSIONS, holds, read_range};
use crate::guard::layout::Together;
use crate::guard::{Found, Guard, Last, NotOpened, Place, ROUNDS};
use crate::landing::landing;
use crate::{Applied, Content, Expect, FileOp, WorkspaceError};

/// So many folders of one transaction are held open.
const HELD: usize = 200;

/// All operations, or none. The caller sees to it that only one runs at a time.
pub(super) fn apply(
    guard: &Arc<Guard>,
    notes: Option<&Path>,
    ops: Vec<FileOp>,
) -> Result<(Vec<Applied>, Olds), WorkspaceError> {
    let mut plans = Vec::with_capacity(ops.len());
    let mut targets = BTreeSet::new();
    for op in ops {
        let plan = Plan::check(guard, op)?;
        if !targets.insert(guard.real(&plan.place)) {
            let twice = io::Error::new(io::ErrorKind::InvalidInput, "named by two operations");
            return Err(WorkspaceError::io(plan.path, twice));
        }
        plans.push(plan);
    }
    let written: Vec<PathBuf> =
        plans.iter().filter(|plan| plan.after.is_some()).map(|plan| guard.real(&plan.place)).collect();
    let together = Together::of(&written);
    let lays_out = || match plans.iter().find(|plan| guard.makes_repository(&plan.place, &together)) {
        Some(plan) => Err(WorkspaceError::Protected(plan.path.clone())),
        None => Ok(()),
    };
    lays_out()?;
    let mut intent = note(guard, notes, &plans)?;
    let mut folders = Folders { guard, open: BTreeMap::new(), made: Vec::new() };
    let mut staged = Vec::with_capacity(plans.len());
    // Staging waits for the disk, hashing for the processor.
    std::thread::scope(|scope| {
        let hashing = plans.iter().any(Plan::has_to_hash).then(|| scope.spawn(|| other_hash(&plans)));
        for plan in &plans {
            staged.push(plan.stage(&mut folders).map_err(|error| NotOpened::Io(error).or_stale(&plan.path))?);
        }
        let other = match hashing {
            Some(hashing) => hashing.join().unwrap_or_else(|_| other_hash(&plans)),
            None => None,
        };
        other.map_or(Ok(()), |plan| Err(WorkspaceError::Stale(plan.path.clone())))
    })?;
    for (plan, staged) in plans.iter().zip(&staged) {
        plan.check_again(guard, staged)?;
    }
    // Others may have given names since; from here on nobody does.
    let landing = landing();
    lays_out()?;
    if let Some(intent) = &mut intent {
        intent.go()?;
    }
    let mut done = Vec::with_capacity(plans.len());
    for (plan, staged) in plans.iter().zip(staged) {
        match plan.commit(staged) {
            Ok(undo) => done.push(undo),
            Err(error) => return Err(put_back(done, error)),
        }
    }
    drop(landing);
    if let Err(error) = folders.sync() {
        return Err(put_back(done, error));
    }
    folders.keep();
    let modes: Vec<u32> = done.iter().map(|undo| undo.mode).collect();
    let olds = Olds(done.iter_mut().filter_map(|undo| undo.old.take()).collect());
    // First the old files, then the note: so no death leaves one of them behind.
    drop(done);
    drop(intent);
    let applied = plans.into_iter().zip(modes).map(|(plan, mode)| Applied {
        path: plan.path,
        before: plan.before.map(|before| before.content),
        after: plan.after,
        mode,
    });
    Ok((applied.collect(), olds))
}

/// The old files, whose names are gone already. To close one is to free what it held on the disk, for which nobody has to
/// wait.
pub(super) struct Olds(Vec<File>);

impl Olds {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Smaller files are freed in less time than it takes to leave them to another thread.
const SLOW_TO_FREE: u64 = 256 * 1024;

/// The first whose content before has another hash than it must have.
fn other_hash(plans: &[Plan]) -> Option<&Plan> {
    plans.iter().find(|plan| plan.hash.as_ref().is_some_and(|(content, hash)| Digest::of(content) != *hash))
}

fn note(guard: &Guard, notes: Option<&Path>, plans: &[Plan]) -> Result<Option<Intent>, WorkspaceError> {
    let Some(notes) = notes else { return Ok(None) };
    let changing: Vec<&Plan> = plans.iter().filter(|plan| plan.changes()).collect();
    let many = changing.len() > 1;
    let digest = |content: Option<&Content>| content.filter(|_| many).map(|content| Digest::of(content));
    let noted = changing.iter().map(|plan| Noted {
        root: guard.root_path(&plan.place).to_owned(),
        below: plan.place.below.clone(),
        new_name: plan.new_name.clone(),
        old_name: plan.old_name.clone(),
        old: digest(plan.before.as_ref().map(|before| &before.content)),
        new: digest(plan.after.as_ref()),
        had: plan.before.is_some(),
        has: plan.after.is_some(),
        folders: plan.place.missing.saturating_sub(1),
    });
    match Intent::begin(notes, &noted.collect::<Vec<_>>()) {
        Ok(intent) => Ok(Some(intent)),
        // One file needs its note only to be tidied up after a death.
        Err(_) if !many => Ok(None),
        Err(error) => Err(error),
    }
}

/// What stood there before.
struct Before {
    content: Content,
    found: Found,
    /// What a link that is to be removed says.
    link: Option<OsString>,
}

/// One operation after its first check.
struct Plan {
    /// As the caller wrote it.
    path: PathBuf,
    /// The name that will change: behind all links for a write, the name itself for a removal, which takes a link away and
    /// not what it leads to.
    place: Place,
    before: Option<Before>,
    after: Option<Content>,
    /// What the hash of the content before must be, where that is not known yet.
    hash: Option<(Content, Digest)>,
    /// The private name of the new file, and of the old one once they changed places.
    new_name: OsString,
    /// The private name of the old file where files cannot change places.
    old_name: OsString,
}

impl Plan {
    fn check(guard: &Guard, op: FileOp) -> Result<Self, WorkspaceError> {
        let (path, expect, after) = match op {
            FileOp::Write { path, expect, content } => (path, expect, Some(content)),
            FileOp::Remove { path, expect } => (path, expect, None),
        };
        let last = if after.is_some() { Last::Followed } else { Last::Kept };
        let held = match &expect {
            Expect::Held(content, _) => Some(content),
            Expect::Absent | Expect::Hash(_) => None,
        };
        let (place, before) = Before::find(guard, &path, last, held)?;
        if place.is_for_folder() || place.below.as_os_str().is_empty() {
            return Err(WorkspaceError::IsDirectory(path));
        }
        match (&expect, &before) {
            (Expect::Absent, Some(_)) => return Err(WorkspaceError::Exists(path)),
            (Expect::Hash(_) | Expect::Held(..), None) => return Err(WorkspaceError::Stale(path)),
            (Expect::Hash(hash), Some(before)) if Digest::of(&before.content) != *hash => {
                return Err(WorkspaceError::Stale(path));
            }
            // What is there is the same value only where it was found to be the same.
            (Expect::Held(content, _), Some(before)) if !Arc::ptr_eq(content, &before.content) => {
                return Err(WorkspaceError::Stale(path));
            }
            (Expect::Absent, None) | (Expect::Hash(_) | Expect::Held(..), Some(_)) => {}
        }
        let hash = match expect {
            Expect::Held(content, Some(hash)) => Some((content, hash)),
            Expect::Held(_, None) | Expect::Absent | Expect::Hash(_) => None,
        };
        let (new_name, old_name) = (private_name("tmp"), private_name("old"));
        Ok(Self { path, place, before, after, hash, new_name, old_name })
    }

    fn has_to_hash(&self) -> bool {
        self.hash.is_some()
    }

    fn changes(&self) -> bool {
        self.before.is_some() || self.after.is_some()
    }

    /// Prepares the operation without changing any name that others know.
    fn stage<'a>(&'a self, folders: &mut Folders<'_>) -> io::Result<Staged<'a>> {
        let content = match (&self.after, &self.before) {
            (None, None) => return Ok(Staged::Nothing),
            (None, Some(before)) => {
                let (folder, name) = folders.of(&self.place)?;
                return Ok(Staged::Away(folder, name, before));
            }
            (Some(content), _) => content,
        };
        let (folder, name) = folders.of(&self.place)?;
        let like = self.before.as_ref().map(|before| Like { found: &before.found, name: &name });
        let (new, mode) = folder.write_private(&self.new_name, content, like)?;
        Ok(match &self.before {
            None => Staged::New(new, name, mode),
            Some(before) => Staged::Instead(new, name, mode, before),
        })
    }

    fn check_again(&self, guard: &Guard, staged: &Staged<'_>) -> Result<(), WorkspaceError> {
        let (folder, name) = match staged {
            Staged::Nothing => return Ok(()),
            Staged::Away(folder, name, _) => (folder, name),
            Staged::New(new, name, _) | Staged::Instead(new, name, _, _) => (&new.folder, name),
        };
        // Reached by another way, or leading elsewhere: what was checked is not what would change.
        let last = if self.after.is_some() { Last::Followed } else { Last::Kept };
        let now = guard.locate(&self.path, last)?;
        if now.below != self.place.below {
            return Err(WorkspaceError::Stale(self.path.clone()));
        }
        if let Some(before @ Before { link: Some(_), .. }) = &self.before {
            let same = before.is_same_link(folder, name) && before.is_same(&guard.behind(&self.place));
            return if same { Ok(()) } else { Err(WorkspaceError::Stale(self.path.clone())) };
        }
        let now = folder.file(name);
        match (&self.before, now) {
            // The clock may be too coarse to tell a change in this very moment; the look at the old file after the exchange
            // is not.
            (Some(before), Ok((_, now))) if before.found == now => Ok(()),
            (Some(before), now) if before.is_same(&now) => Ok(()),
            (Some(_), _) => Err(WorkspaceError::Stale(self.path.clone())),
            (None, Err(error)) if error.is_absent() => Ok(()),
            (None, Ok(_)) => Err(WorkspaceError::Exists(self.path.clone())),
            (None, Err(error)) => Err(error.at(&self.path)),
        }
    }

    fn commit(&self, staged: Staged<'_>) -> Result<Undo, WorkspaceError> {
        let failed = |error| WorkspaceError::io(&self.path, error);
        let (folder, name, mode, old, before) = match staged {
            Staged::Nothing => {
                return Ok(Undo { path: self.path.clone(), mode: 0, old: None, back: Back::Nothing });
            }
            Staged::New(new, name, mode) => {
                let folder = Arc::clone(&new.folder);
                folder.rename_new(&new.name, &name).map_err(failed)?;
                new.keep();
                return Ok(Undo {
                    path: self.path.clone(),
                    mode,
                    old: None,
                    back: Back::Unlink(folder, name),
                });
            }
            Staged::Instead(new, name, mode, before) => {
                let folder = Arc::clone(&new.folder);
                let old = exchange(new, &name, &self.old_name, before);
                (folder, name, mode, old, before)
            }
            Staged::Away(folder, name, before) => {
                let moved = folder.rename_new(&name, &self.new_name);
                let old = moved.map(|()| Private::adopt(&folder, &self.new_name));
                (folder, name, before.found.mode & PERMISSIONS, old, before)
            }
        };
        let old = match old {
            Ok(old) => old,
            // It was there a moment ago.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(WorkspaceError::Stale(self.path.clone()));
            }
            Err(error) => return Err(failed(error)),
        };
        // What was taken away must be what was expected, or it comes back.
        let (expected, file) = match before.link {
            Some(_) => (before.is_same_link(&folder, &old.name), None),
            None => {
                let now = folder.file(&old.name);
                (before.is_same(&now), now.ok().filter(|(_, found)| found.len > SLOW_TO_FREE))
            }
        };
        let held = file.map(|(file, _)| file);
        let undo = Undo { path: self.path.clone(), mode, old: held, back: Back::Rename(old, name) };
        if expected {
            return Ok(undo);
        }
        Err(put_back(vec![undo], WorkspaceError::Stale(self.path.clone())))
    }
}

impl Before {
    /// Where a path leads and what stands there; resolved anew while somebody changes the way.
    /// `held` becomes its content where that is what stands there.
    fn find(
        guard: &Guard,
        path: &Path,
        last: Last,
        held: Option<&Content>,
    ) -> Result<(Place, Option<Self>), WorkspaceError> {
        for _ in 0..ROUNDS {
            let place = guard.locate(path, last)?;
            guard.may_write(path, &place)?;
            if place.missing > 0 {
                return Ok((place, None));
            }
            match Self::read(guard, &place, last, held) {
                Ok(before) => return Ok((place, Some(before))),
                Err(error) if error.is_turned() => {}
                Err(error) if error.is_absent() => {}
                Err(error) => return Err(error.at(path)),
            }
            // A link that leads nowhere, or out: there is no content to expect.
            if last == Last::Kept {
                match guard.file(path) {
                    Err(WorkspaceError::NotFound(_)) => return Ok((place, None)),
                    Err(error) => return Err(error),
                    Ok(_) => {}
                }
            }
        }
        Err(WorkspaceError::Stale(path.to_owned()))
    }

    fn read(guard: &Guard, place: &Place, last: Last, held: Option<&Content>) -> Result<Self, NotOpened> {
        let link = match (last, place.parent()) {
            (Last::Kept, Some((parent, name))) => readlinkat(&guard.hold_folder(&parent)?, name).ok(),
            (Last::Kept | Last::Followed, _) => None,
        };
        let (file, found) = match link {
            Some(_) => guard.behind(place)?,
            None => guard.file_at(place)?,
        };
        let content = match held {
            Some(held) if holds(&file, held)? => Arc::clone(held),
            Some(_) | None => Arc::new(read_range(&file, &found, 0..u64::MAX)?),
        };
        Ok(Self { content, found, link })
    }

    fn is_same(&self, now: &Result<(File, Found), NotOpened>) -> bool {
        now.as_ref().is_ok_and(|(file, found)| {
            found.len == self.found.len && holds(file, &self.content).unwrap_or(false)
        })
    }

    fn is_same_link(&self, folder: &Folder, name: &OsStr) -> bool {
        folder.link(name).ok() == self.link
    }
}

/// An operation that only needs its last step, in the folder and for the name it has.
enum Staged<'a> {
    Nothing,
    /// The old file goes.
    Away(Arc<Folder>, OsString, &'a Before),
    /// A file where none was.
    New(Private, OsString, u32),
    /// A file in the place of the old one.
    Instead(Private, OsString, u32, &'a Before),
}

/// How one finished operation is taken back. Dropping it makes the operation final: the old file goes with its private
/// name.
struct Undo {
    path: PathBuf,
    mode: u32,
    /// The old file, held open if it is large.
    old: Option<File>,
    back: Back,
}

enum Back {
    Nothing,
    Unlink(Arc<Folder>, OsString),
    Rename(Private, OsString),
}

/// Takes operations back, the last first, and returns the error to report: the given one, or where an old file now is if
/// it could not be put back.
fn put_back(done: Vec<Undo>, error: WorkspaceError) -> WorkspaceError {
    let mut report = error;
    for undo in done.into_iter().rev() {
        let taken = match undo.back {
            Back::Nothing => Ok(()),
            Back::Unlink(folder, name) => folder.unlink(&name),
            Back::Rename(old, name) => {
                match old.folder.rename(&old.name, &name) {
                    // Two names of one file are not renamed; then the private one goes with `old`.
                    Ok(()) => Ok(()),
                    Err(why) => {
                        let at = old.folder.real().join(&old.name);
                        old.keep();
                        let text = format!("not put back ({why}); its old content is in {}", at.display());
                        Err(io::Error::other(text))
                    }
                }
            }
        };
        if let Err(why) = taken {
            report = WorkspaceError::Io { path: undo.path, source: why };
        }
    }
    report
}

/// Exchanges a new file with the old one and returns the name the old one has then. Where the file system cannot, the old
/// one gets a second name first, or is copied where there are no hard links.
fn exchange(new: Private, name: &OsStr, old_name: &OsStr, before: &Before) -> io::Result<Private> {
    let folder = Arc::clone(&new.folder);
    match folder.exchange(&new.name, name) {
        Ok(()) => Ok(new),
        Err(error) if is_unsupported(&error) => {
            let old = match folder.hard_link(name, old_name) {
                Ok(()) => Private::adopt(&folder, old_name),
                Err(_) => {
                    let like = Like { found: &before.found, name };
                    folder.write_private(old_name, &before.content, Some(like))?.0
                }
            };
            // What will be lost must be what was kept: here nothing brings back what came between.
            if !folder.found(name)?.is_same(&before.found) {
                return Err(io::Error::from(io::ErrorKind::NotFound));
            }
            folder.rename(&new.name, name)?;
            new.keep();
            Ok(old)
        }
        Err(error) => Err(error),
    }
}

/// The folders of a transaction. Those made for new files go again unless kept.
struct Folders<'a> {
    guard: &'a Arc<Guard>,
    open: BTreeMap<PathBuf, Arc<Folder>>,
    made: Vec<(Arc<Folder>, OsString)>,
}

impl Folders<'_> {
    /// The folder of a place, made if it is missing, and the place's name in it.
    fn of(&mut self, place: &Place) -> io::Result<(Arc<Folder>, OsString)> {
        let Some((parent, name)) = place.parent() else {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        };
        Ok((self.at(parent)?, name.to_owned()))
    }

    fn at(&mut self, place: Place) -> io::Result<Arc<Folder>> {
        let real = self.guard.real(&place);
        if let Some(open) = self.open.get(&real) {
            return Ok(Arc::clone(open));
        }
        if place.missing > 0
            && let Some((parent, name)) = place.parent()
        {
            let parent = self.at(parent)?;
            match parent.make_folder(name) {
                Ok(()) => self.made.push((parent, name.to_owned())),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        let hold = if self.open.len() < HELD { Hold::Open } else { Hold::Closed };
        let folder = Arc::new(Folder::open(self.guard, place, hold)?);
        self.open.insert(real, Arc::clone(&folder));
        Ok(folder)
    }

    fn sync(&self) -> Result<(), WorkspaceError> {
        for (real, folder) in &self.open {
            folder.sync().map_err(|error| WorkspaceError::io(real, error))?;
        }
        Ok(())
    }

    fn keep(mut self) {
        self.made.clear();
    }
}

impl Drop for Folders<'_> {
    fn drop(&mut self) {
        for (folder, name) in self.made.iter().rev() {
            // One that somebody else uses by now is not empty and stays.
            let _ = folder.remove_folder(name);
        }
    }
}
