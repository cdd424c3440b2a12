//! The transaction of [`Files::apply`](crate::Files::apply):
//!
//! 1. every path goes through the guard, every expectation is checked and the pre-images are read;
//! 2. the planned changes are noted, if the host named a folder for such notes (`intent`);
//! 3. every new content is written and synced under a private name next to its file; meanwhile the hashes of
//!    pre-images that are not known yet are computed;
//! 4. the expectations are checked once more, right before the first change;
//! 5. each new file is exchanged with the old one in a single step, and the old one, now under the private name, is
//!    checked again: if others changed it at that moment, it is not lost but restored;
//! 6. the folders are synced, then the note is removed, and then the old files.
//!
//! A failure at any point restores the exchanged files, the old files themselves and not copies of them. A death at
//! any point leaves the note, and the next process that opens the folder rolls back or finishes. Invariant: under its
//! own name a file is at every moment either completely old or completely new. Owner, mode, access control list and
//! extended attributes are those of the old file. A file with several hard links becomes a file of its own, which the
//! result of the call reports.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lathe_protocol::Digest;
use nix::fcntl::readlinkat;

use super::intent::{Intent, Noted};
use super::transaction_folder::{Hold, Like, Private, TransactionFolder, is_unsupported, private_name};
use super::{PERMISSIONS, has_content, read_range};
use crate::guard::layout::Together;
use crate::guard::{FileMeta, Guard, GuardedPath, Last, NotOpened, ROUNDS};
use crate::naming_lock::lock_naming;
use crate::{Applied, Content, Expect, FileOp, WorkspaceError};

/// The maximum number of folders held open in one transaction.
const HELD: usize = 200;

/// Applies all operations, or none. The caller makes sure that only one runs at a time.
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
        let hashing = plans.iter().any(Plan::has_to_hash).then(|| scope.spawn(|| hash_mismatch(&plans)));
        for plan in &plans {
            staged.push(plan.stage(&mut folders).map_err(|error| NotOpened::Io(error).or_stale(&plan.path))?);
        }
        let other = match hashing {
            Some(hashing) => hashing.join().unwrap_or_else(|_| hash_mismatch(&plans)),
            None => None,
        };
        other.map_or(Ok(()), |plan| Err(WorkspaceError::Stale(plan.path.clone())))
    })?;
    for (plan, staged) in plans.iter().zip(&staged) {
        plan.check_again(guard, staged)?;
    }
    // Others may have given names since; from here on no other thread of this process does.
    let landing = lock_naming();
    lays_out()?;
    if let Some(intent) = &mut intent {
        intent.commit()?;
    }
    let mut done = Vec::with_capacity(plans.len());
    for (plan, staged) in plans.iter().zip(staged) {
        match plan.commit(staged) {
            Ok(undo) => done.push(undo),
            Err(error) => return Err(roll_back(done, error)),
        }
    }
    drop(landing);
    if let Err(error) = folders.sync() {
        return Err(roll_back(done, error));
    }
    folders.keep();
    let modes: Vec<u32> = done.iter().map(|undo| undo.mode).collect();
    let olds = Olds(done.iter_mut().filter_map(|undo| undo.old.take()).collect());
    // First the old files, then the note: so no death leaves an old file.
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

/// The old files, whose names are gone already. Closing one frees its space on the disk, which no caller has to wait
/// for.
pub(super) struct Olds(Vec<File>);

impl Olds {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Smaller files are freed faster than another thread can be given the work.
const SLOW_TO_FREE: u64 = 256 * 1024;

/// The first plan whose earlier content has another hash than expected.
fn hash_mismatch(plans: &[Plan]) -> Option<&Plan> {
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
        // For one file the note is only needed to clean up after a death.
        Err(_) if !many => Ok(None),
        Err(error) => Err(error),
    }
}

/// The file before the operation.
struct Before {
    content: Content,
    found: FileMeta,
    /// The target of a link that is to be removed.
    link: Option<OsString>,
}

/// One operation after its first check.
struct Plan {
    /// The path as the caller gave it.
    path: PathBuf,
    /// The path that will change: for a write with all links followed, for a removal the name itself, so that a link
    /// is removed and not its target.
    place: GuardedPath,
    before: Option<Before>,
    after: Option<Content>,
    /// The required hash of the earlier content, if it is not known yet.
    hash: Option<(Content, Digest)>,
    /// The private name of the new file, and of the old one after the exchange.
    new_name: OsString,
    /// The private name of the old file if files cannot be exchanged.
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
            // The two are the same value only if the content on disk was found to be equal.
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
        // Reached by another way, or leading elsewhere: the checked file is not the one that would change.
        let last = if self.after.is_some() { Last::Followed } else { Last::Kept };
        let now = guard.locate(&self.path, last)?;
        if now.below != self.place.below {
            return Err(WorkspaceError::Stale(self.path.clone()));
        }
        if let Some(before @ Before { link: Some(_), .. }) = &self.before {
            let same = before.is_same_link(folder, name) && before.is_same(&guard.link_target(&self.place));
            return if same { Ok(()) } else { Err(WorkspaceError::Stale(self.path.clone())) };
        }
        let now = folder.file(name);
        match (&self.before, now) {
            // The clock may be too coarse to show a change at this moment; the check of the old file after the
            // exchange finds it.
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
            // It existed a moment ago.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(WorkspaceError::Stale(self.path.clone()));
            }
            Err(error) => return Err(failed(error)),
        };
        // The removed file must be the expected one, otherwise it is restored.
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
        Err(roll_back(vec![undo], WorkspaceError::Stale(self.path.clone())))
    }
}

impl Before {
    /// Resolves a path and reads the file there; repeats that while others change the way to it. If the content
    /// equals `held`, that value is used.
    fn find(
        guard: &Guard,
        path: &Path,
        last: Last,
        held: Option<&Content>,
    ) -> Result<(GuardedPath, Option<Self>), WorkspaceError> {
        for _ in 0..ROUNDS {
            let place = guard.locate(path, last)?;
            guard.may_write(path, &place)?;
            if place.missing > 0 {
                return Ok((place, None));
            }
            match Self::read(guard, &place, last, held) {
                Ok(before) => return Ok((place, Some(before))),
                Err(error) if error.is_redirected() => {}
                Err(error) if error.is_absent() => {}
                Err(error) => return Err(error.at(path)),
            }
            // A link that leads nowhere, or outside: there is no content to expect.
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

    fn read(
        guard: &Guard,
        place: &GuardedPath,
        last: Last,
        held: Option<&Content>,
    ) -> Result<Self, NotOpened> {
        let link = match (last, place.parent()) {
            (Last::Kept, Some((parent, name))) => readlinkat(&guard.hold_folder(&parent)?, name).ok(),
            (Last::Kept | Last::Followed, _) => None,
        };
        let (file, found) = match link {
            Some(_) => guard.link_target(place)?,
            None => guard.file_at(place)?,
        };
        let content = match held {
            Some(held) if has_content(&file, held)? => Arc::clone(held),
            Some(_) | None => Arc::new(read_range(&file, &found, 0..u64::MAX)?),
        };
        Ok(Self { content, found, link })
    }

    fn is_same(&self, now: &Result<(File, FileMeta), NotOpened>) -> bool {
        now.as_ref().is_ok_and(|(file, found)| {
            found.len == self.found.len && has_content(file, &self.content).unwrap_or(false)
        })
    }

    fn is_same_link(&self, folder: &TransactionFolder, name: &OsStr) -> bool {
        folder.link(name).ok() == self.link
    }
}

/// An operation that only needs its last step, with its folder and its name there.
enum Staged<'a> {
    Nothing,
    /// The old file is removed.
    Away(Arc<TransactionFolder>, OsString, &'a Before),
    /// A file where none was.
    New(Private, OsString, u32),
    /// A file that replaces the old one.
    Instead(Private, OsString, u32, &'a Before),
}

/// The way to roll back a finished operation. Dropping it makes the operation final: the old file is removed with its
/// private name.
struct Undo {
    path: PathBuf,
    mode: u32,
    /// The old file, held open if it is large.
    old: Option<File>,
    back: Back,
}

enum Back {
    Nothing,
    Unlink(Arc<TransactionFolder>, OsString),
    Rename(Private, OsString),
}

/// Rolls back operations, the last first, and returns the error to report: the given one, or the location of an old
/// file that could not be restored.
fn roll_back(done: Vec<Undo>, error: WorkspaceError) -> WorkspaceError {
    let mut report = error;
    for undo in done.into_iter().rev() {
        let taken = match undo.back {
            Back::Nothing => Ok(()),
            Back::Unlink(folder, name) => folder.unlink(&name),
            Back::Rename(old, name) => {
                match old.folder.rename(&old.name, &name) {
                    // Two names of one file are not renamed; then the private one is removed with `old`.
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

/// Exchanges a new file with the old one and returns the old one's private name. On a file system without exchange,
/// the old one gets a second name first, or is copied if there are no hard links.
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
            // The replaced file must be the one that was kept: here a change in between could not be restored.
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

/// The folders of a transaction. Those made for new files are removed again unless kept.
struct Folders<'a> {
    guard: &'a Arc<Guard>,
    open: BTreeMap<PathBuf, Arc<TransactionFolder>>,
    made: Vec<(Arc<TransactionFolder>, OsString)>,
}

impl Folders<'_> {
    /// The folder of a path, made if it is missing, and the path's name in it.
    fn of(&mut self, place: &GuardedPath) -> io::Result<(Arc<TransactionFolder>, OsString)> {
        let Some((parent, name)) = place.parent() else {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        };
        Ok((self.at(parent)?, name.to_owned()))
    }

    fn at(&mut self, place: GuardedPath) -> io::Result<Arc<TransactionFolder>> {
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
        let folder = Arc::new(TransactionFolder::open(self.guard, place, hold)?);
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
            // A folder that others use by now is not empty and stays.
            let _ = folder.remove_folder(name);
        }
    }
}
