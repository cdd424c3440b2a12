//! Examination of paths that may have changed: finds the changes and keeps the content of both sides.
//!
//! Securing, adopting and comparing are one act: read the current content, keep it, and remember where. They differ
//! in where the content goes ([`Keep`]) and in whether the side before is kept too. A worker holds one file of each
//! side in memory at a time, so memory is bounded by the limit for one file, not by the tree.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use lathe_blobs::{Batch, Blobs};
use lathe_protocol::Digest;
use nix::errno::Errno;
use parking_lot::Mutex;

use crate::attributes::Attributes;
use crate::beneath::{Rel, Root, read_into, split};
use crate::change::PathState;
use crate::git::Objects;
use crate::hard_links::LinkGroups;
use crate::manifest::{KnownEntry, Manifest, ManifestEntry, Oids, Preimage, hex};
use crate::pack::Packs;
use crate::references::is_named;
use crate::stat::{PathKind, Since, Stat};
use crate::walk::SeenPath;
use crate::whole_files::digest_of;
use crate::{ChangesError, NotUndoableReason, TreeChange, hard_links};

/// The number of concurrent workers. Each has a pack of its own.
pub(crate) const WORKERS: u8 = 2;

/// The number of paths from which a second worker is worth its thread.
const MANY: usize = 64;

/// A path to examine: its current state, or none if nothing is there.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub rel: Rel,
    pub now: Option<SeenPath>,
    /// The object of git to compare with the current content, because its times do not prove that it is the same.
    pub object: Option<u32>,
}

impl Candidate {
    pub fn new(rel: Rel, now: Option<SeenPath>) -> Self {
        Self { rel, now, object: None }
    }
}

/// The destination of content.
#[derive(Clone, Copy)]
pub(crate) enum Keep<'a> {
    /// The content becomes the new baseline, and nothing more.
    Copies,
    /// Both sides are stored permanently. The number counts the stored bytes, against the limit for all.
    Blobs { batch: &'a Batch, taken: &'a AtomicU64 },
}

#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub rel: Rel,
    /// The new entry of the manifest. None: it stays as it is. `Some(None)`: it is removed.
    pub entry: Option<Option<ManifestEntry>>,
    pub change: Option<TreeChange>,
    /// True if content or mode became another one. Only then there is a change.
    pub changed: bool,
    pub not_undoable: Option<NotUndoableReason>,
}

pub(crate) struct Examine<'a> {
    pub root: &'a Root,
    pub manifest: &'a Manifest,
    pub packs: &'a Packs,
    pub oids: &'a Oids,
    pub blobs: &'a Blobs,
    pub scratch: &'a Path,
    pub file_bytes: u64,
    pub total_bytes: u64,
    pub since: Since,
    pub keep: Keep<'a>,
    /// The folder with git's objects, if the repository is gone.
    pub git_copy: Option<&'a Path>,
}

struct Worker<'a> {
    shared: &'a Examine<'a>,
    number: u8,
    objects: Option<Objects>,
    names: &'a LinkGroups<'a>,
    /// Examined folders that give new entries in them a group or an access control list.
    passing: &'a HashSet<&'a [u8]>,
    before: Vec<u8>,
    after: Vec<u8>,
}

/// One side of a change.
#[derive(Default)]
struct Side<'a> {
    state: Option<PathState>,
    attributes: Option<&'a Attributes>,
}

/// The current state of a path. Its bytes are in the worker's `after`.
struct Current {
    stat: Stat,
    content: Result<(), NotUndoableReason>,
}

impl Examine<'_> {
    pub fn run(&self, candidates: &[Candidate]) -> Result<Vec<Outcome>, ChangesError> {
        let next = AtomicUsize::new(0);
        let names = LinkGroups::of(self.manifest, candidates);
        let passes = |one: &&Candidate| {
            one.now.as_ref().is_some_and(|now| passes_attributes_on(&now.stat, now.attributes.as_ref()))
        };
        let passing: HashSet<&[u8]> = candidates.iter().filter(passes).map(|one| &*one.rel).collect();
        let all = Mutex::new(Ok(Vec::with_capacity(candidates.len())));
        let work = |number: u8| {
            let (before, after) = (Vec::new(), Vec::new());
            let (names, passing) = (&names, &passing);
            let mut worker = Worker { shared: self, number, objects: None, names, passing, before, after };
            let mut outcomes = Vec::new();
            let mut result = Ok(());
            while let Some(candidate) = candidates.get(next.fetch_add(1, Ordering::Relaxed)) {
                match worker.examine(candidate) {
                    Ok(outcome) => outcomes.extend(outcome),
                    Err(error) => {
                        next.store(candidates.len(), Ordering::Relaxed);
                        result = Err(error);
                        break;
                    }
                }
            }
            let mut all = all.lock();
            match (&mut *all, result) {
                (Ok(all), Ok(())) => all.extend(outcomes),
                (Err(_), _) => {}
                (all, Err(error)) => *all = Err(error),
            }
        };
        std::thread::scope(|scope| {
            let work = &work;
            for number in 1..WORKERS {
                if candidates.len() >= MANY {
                    scope.spawn(move || work(number));
                }
            }
            work(0);
        });
        all.into_inner()
    }
}

impl Worker<'_> {
    fn examine(&mut self, candidate: &Candidate) -> Result<Option<Outcome>, ChangesError> {
        let before = self.shared.manifest.get(&candidate.rel).map(KnownEntry::entry);
        let outcome = match (&before, &candidate.now) {
            (None, None) => None,
            (Some(before), None) => Some(self.removed(&candidate.rel, before)?),
            (None, Some(now)) => self.made(now, candidate.object)?,
            (Some(before), Some(now)) => self.both(before, now)?,
        };
        Ok(outcome.map(|outcome| Outcome { rel: candidate.rel.clone(), ..outcome }))
    }

    fn removed(&mut self, rel: &Rel, before: &ManifestEntry) -> Result<Outcome, ChangesError> {
        let mut outcome = Outcome { entry: Some(None), changed: true, ..Outcome::default() };
        match self.state_before(rel, before)? {
            Ok(state) => {
                let side = Side { state, attributes: before.attributes.as_deref() };
                outcome.change = self.change(rel, side, Side::default())?;
                let lost = self.names.outside_names(before).or_else(|| missing_privilege(before, None));
                outcome.not_undoable = before.pre.why_unkept().or(lost);
            }
            Err(why) => outcome.not_undoable = Some(why),
        }
        Ok(outcome)
    }

    /// `object` is the number of the git object that may be its content.
    fn made(&mut self, now: &SeenPath, object: Option<u32>) -> Result<Option<Outcome>, ChangesError> {
        let mut outcome = Outcome { changed: true, ..Outcome::default() };
        if let Some(why) = now.skipped {
            outcome.entry = Some(Some(self.entry(now.stat, Preimage::Skipped(why), None)));
            outcome.not_undoable = Some(why);
            return Ok(Some(outcome));
        }
        let Some(current) = self.read_current(now)? else { return Ok(None) };
        if let Some(number) = object.filter(|number| self.is_object(&current, *number)) {
            let pre = Preimage::Git(number);
            outcome.entry = Some(Some(self.entry(current.stat, pre, now.attributes.clone())));
            return Ok(Some(outcome));
        }
        let (pre, after) = self.keep_current(&now.rel, &current)?;
        match after {
            Ok(state) => {
                let side = Side { state, attributes: now.attributes.as_deref() };
                outcome.change = self.change(&now.rel, Side::default(), side)?;
            }
            Err(why) => outcome.not_undoable = Some(why),
        }
        outcome.entry = Some(Some(self.entry(current.stat, pre, now.attributes.clone())));
        Ok(Some(outcome))
    }

    fn both(&mut self, before: &ManifestEntry, now: &SeenPath) -> Result<Option<Outcome>, ChangesError> {
        if let Preimage::Skipped(_) = before.pre
            && now.skipped.is_some()
        {
            return Ok(None);
        }
        if !before.racy && before.stat.is_same(&now.stat) && now.skipped.is_none() {
            // A second name may have appeared or vanished, which is not a change.
            let entry = ManifestEntry { stat: now.stat, ..before.clone() };
            let outcome = Outcome { entry: Some(Some(entry)), ..Outcome::default() };
            return Ok((before.stat.names != now.stat.names).then_some(outcome));
        }
        if let Some(why) = now.skipped {
            return self.closed(before, now, why).map(Some);
        }
        let Some(current) = self.read_current(now)? else { return Ok(None) };
        let same_kind = before.stat.kind() == current.stat.kind();
        if let (Preimage::Lost(_) | Preimage::Unkept(..), true) =
            (&before.pre, before.stat.is_same(&current.stat))
        {
            return Ok(None);
        }
        let same_content = same_kind && current.content.is_ok() && self.is_same_content(before, &current)?;
        // Unreadable attributes count as unchanged.
        let attributes = now.attributes.clone().or_else(|| before.attributes.clone());
        let same_attributes = before.attributes.is_none() || before.attributes == attributes;
        let relinked = same_kind
            && (before.stat.is_linked() || current.stat.is_linked())
            && before.stat.inode != current.stat.inode;
        let same = before.stat.mode == current.stat.mode && same_attributes && !relinked;
        if same_content && (same || matches!(self.shared.keep, Keep::Copies)) {
            // The content is where it was.
            let entry = self.entry(current.stat, before.pre.clone(), attributes);
            return Ok(Some(Outcome { entry: Some(Some(entry)), changed: !same, ..Outcome::default() }));
        }
        let mut outcome = Outcome { changed: true, ..Outcome::default() };
        let side = self.state_before(&now.rel, before)?;
        let (mut pre, mut after) = self.keep_current(&now.rel, &current)?;
        // The limits are for what is kept. The earlier content can be restored, whatever replaced it.
        if let (Ok(Some(_)), Err(why)) = (&side, &after)
            && let Some(digest) = self.unkept(now, &current)
        {
            if same && before.pre.unkept() == Some(&digest) {
                let entry = self.entry(current.stat, before.pre.clone(), attributes);
                return Ok(Some(Outcome { entry: Some(Some(entry)), ..Outcome::default() }));
            }
            pre = Preimage::Unkept(*why, Box::new(digest.clone()));
            let links = self.keep_links(self.names.now(&now.rel, &current.stat))?;
            after = Ok(Some(PathState { links, ..PathState::new(digest, current.stat.mode) }));
        }
        match (side, after) {
            (Ok(side), Ok(after)) => {
                let side = Side { state: side, attributes: before.attributes.as_deref() };
                let after = Side { state: after, attributes: attributes.as_deref() };
                let lost = self
                    .names
                    .outside_names(before)
                    .or_else(|| missing_privilege(before, attributes.as_deref()));
                outcome.not_undoable = before.pre.why_unkept().or(lost);
                outcome.change = self.change(&now.rel, side, after)?;
            }
            (Err(why), _) | (_, Err(why)) => outcome.not_undoable = Some(why),
        }
        // Equal content is where it was.
        let pre =
            if same_content && matches!(self.shared.keep, Keep::Copies) { before.pre.clone() } else { pre };
        outcome.entry = Some(Some(self.entry(current.stat, pre, attributes)));
        Ok(Some(outcome))
    }

    /// Tells whether the content that `read_current` read is this object. Always false in a comparison.
    fn is_object(&self, current: &Current, number: u32) -> bool {
        let is_file = current.stat.kind() == PathKind::File && current.content.is_ok();
        let oid =
            self.shared.oids.get(number).filter(|_| is_file && matches!(self.shared.keep, Keep::Copies));
        oid.is_some_and(|oid| is_named(&self.after, oid))
    }

    /// Records that a known path is no longer entered. A folder that merely became unreadable keeps its known entries
    /// until it is readable again: its mode is a change like any other.
    fn closed(
        &mut self,
        before: &ManifestEntry,
        now: &SeenPath,
        why: NotUndoableReason,
    ) -> Result<Outcome, ChangesError> {
        let mut outcome = Outcome { changed: true, not_undoable: Some(why), ..Outcome::default() };
        if let Preimage::Folder = before.pre {
            if before.stat.mode != now.stat.mode {
                let folder =
                    |mode| Side { state: Some(PathState::new(Digest::of(b""), mode)), attributes: None };
                outcome.change = self.change(&now.rel, folder(before.stat.mode), folder(now.stat.mode))?;
            }
            outcome.entry = Some(Some(self.entry(now.stat, Preimage::Folder, before.attributes.clone())));
        } else {
            outcome.entry = Some(Some(self.entry(now.stat, Preimage::Skipped(why), None)));
        }
        Ok(outcome)
    }

    fn entry(&self, stat: Stat, pre: Preimage, attributes: Option<Arc<Attributes>>) -> ManifestEntry {
        ManifestEntry { stat, racy: self.shared.since.is_racy(&stat), pre, attributes }
    }

    fn change<'a>(
        &self,
        rel: &Rel,
        mut before: Side<'a>,
        mut after: Side<'a>,
    ) -> Result<Option<TreeChange>, ChangesError> {
        let Keep::Blobs { batch, .. } = self.shared.keep else { return Ok(None) };
        let is_plain = |side: &Side<'_>| side.attributes.is_none_or(Attributes::is_plain);
        // Attributes that every new file here has are not recorded.
        if !is_plain(&before) || !is_plain(&after) || self.is_inherited(rel) {
            for side in [&mut before, &mut after] {
                if let (Some(state), Some(attributes)) = (&mut side.state, side.attributes) {
                    state.attributes = Some(batch.put(&attributes.to_bytes())?);
                }
            }
        }
        let path = self.shared.root.absolute(rel);
        Ok(Some(TreeChange::new(path, before.state, after.state)))
    }

    /// Tells whether the folder of a path gives new entries in it a group or an access control list.
    fn is_inherited(&self, rel: &Rel) -> bool {
        let folder = split(rel).0;
        let was = self.shared.manifest.get(folder);
        was.is_some_and(|was| passes_attributes_on(&was.stat(), was.attributes()))
            || self.passing.contains(folder)
    }

    /// Stores the other names of a file.
    fn keep_links(&self, names: Vec<&Rel>) -> Result<Option<Digest>, ChangesError> {
        match self.shared.keep {
            Keep::Blobs { batch, .. } if !names.is_empty() => Ok(Some(batch.put(&hard_links::list(&names))?)),
            Keep::Blobs { .. } | Keep::Copies => Ok(None),
        }
    }

    /// None if the path is gone, or became another kind of file a moment ago: the next scan finds that.
    fn read_current(&mut self, now: &SeenPath) -> Result<Option<Current>, ChangesError> {
        let root = self.shared.root;
        self.after.clear();
        let (stat, content) = match now.stat.kind() {
            PathKind::Folder => (now.stat, Ok(())),
            PathKind::Special => (now.stat, Err(NotUndoableReason::Special)),
            PathKind::Link => match root.read_link(&now.rel) {
                Ok(target) => {
                    self.after = target;
                    (now.stat, Ok(()))
                }
                Err(_) => return Ok(None),
            },
            PathKind::File if now.stat.size > self.shared.file_bytes => {
                (now.stat, Err(NotUndoableReason::TooLarge))
            }
            PathKind::File => match root.open_file(&now.rel) {
                Ok((file, stat)) => match read_into(file, self.shared.file_bytes, &mut self.after) {
                    Ok(()) if self.after.len() as u64 > self.shared.file_bytes => {
                        (stat, Err(NotUndoableReason::TooLarge))
                    }
                    Ok(()) => (stat, Ok(())),
                    Err(_) => (stat, Err(NotUndoableReason::Unreadable)),
                },
                Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => return Ok(None),
                Err(_) => (now.stat, Err(NotUndoableReason::Unreadable)),
            },
        };
        Ok(Some(Current { stat, content }))
    }

    /// Keeps the content that `read_current` read. Returns its location and state.
    #[allow(clippy::type_complexity)]
    fn keep_current(
        &mut self,
        rel: &Rel,
        current: &Current,
    ) -> Result<(Preimage, Result<Option<PathState>, NotUndoableReason>), ChangesError> {
        if let Err(why) = current.content {
            return Ok((Preimage::Lost(why), Err(why)));
        }
        let is_folder = current.stat.kind() == PathKind::Folder;
        match self.shared.keep {
            Keep::Copies if is_folder => Ok((Preimage::Folder, Ok(None))),
            Keep::Copies => match self.shared.packs.append(self.number, &self.after) {
                Ok(Some(place)) => Ok((Preimage::Pack(place), Ok(None))),
                Ok(None) => {
                    Ok((Preimage::Lost(NotUndoableReason::OverTotal), Err(NotUndoableReason::OverTotal)))
                }
                Err(source) => Err(ChangesError::Scratch { scratch: self.shared.scratch.to_owned(), source }),
            },
            Keep::Blobs { batch, taken } => {
                let len = self.after.len() as u64;
                if taken.fetch_add(len, Ordering::Relaxed) + len > self.shared.total_bytes {
                    return Ok((
                        Preimage::Lost(NotUndoableReason::OverTotal),
                        Err(NotUndoableReason::OverTotal),
                    ));
                }
                let digest = batch.put(&self.after)?;
                let links = self.keep_links(self.names.now(rel, &current.stat))?;
                let state = PathState { links, ..PathState::new(digest.clone(), current.stat.mode) };
                let pre = if is_folder { Preimage::Folder } else { Preimage::Blob(Box::new(digest)) };
                Ok((pre, Ok(Some(state))))
            }
        }
    }

    /// The digest of current content that is not kept. None if it cannot be read.
    fn unkept(&self, now: &SeenPath, current: &Current) -> Option<Digest> {
        match current.stat.kind() {
            PathKind::File => digest_of(self.shared.root.open_file(&now.rel).ok()?.0).ok(),
            // It has no content.
            PathKind::Special => Some(Digest::of(b"")),
            PathKind::Folder | PathKind::Link => None,
        }
    }

    /// The state before, stored permanently if this is a comparison.
    fn state_before(
        &mut self,
        rel: &Rel,
        before: &ManifestEntry,
    ) -> Result<Result<Option<PathState>, NotUndoableReason>, ChangesError> {
        let Keep::Blobs { batch, .. } = self.shared.keep else { return Ok(Ok(None)) };
        let digest = match before.pre.unkept() {
            Some(digest) => digest.clone(),
            None => match self.load(before) {
                Ok(()) => batch.put(&self.before)?,
                Err(why) => return Ok(Err(why)),
            },
        };
        let links = self.keep_links(self.names.before(rel, &before.stat))?;
        Ok(Ok(Some(PathState { links, ..PathState::new(digest, before.stat.mode) })))
    }

    fn is_same_content(&mut self, before: &ManifestEntry, current: &Current) -> Result<bool, ChangesError> {
        let sizes_differ = match before.pre {
            Preimage::Pack(place) => !Packs::has_len(place, self.after.len() as u64),
            Preimage::Git(_) => before.stat.size != current.stat.size,
            Preimage::Folder
            | Preimage::Blob(_)
            | Preimage::Lost(_)
            | Preimage::Unkept(..)
            | Preimage::Skipped(_) => false,
        };
        Ok(!sizes_differ && self.load(before).is_ok() && self.before == self.after)
    }

    /// Loads the earlier content into `before`.
    fn load(&mut self, entry: &ManifestEntry) -> Result<(), NotUndoableReason> {
        let shared = self.shared;
        self.before.clear();
        match &entry.pre {
            Preimage::Folder => Ok(()),
            Preimage::Lost(why) | Preimage::Unkept(why, _) | Preimage::Skipped(why) => Err(*why),
            Preimage::Pack(place) => {
                shared.packs.read(*place, &mut self.before).map_err(|_| NotUndoableReason::CopyGone)
            }
            Preimage::Blob(digest) => match shared.blobs.get(digest) {
                Ok(Some(bytes)) => {
                    self.before = bytes;
                    Ok(())
                }
                Ok(None) | Err(_) => Err(NotUndoableReason::CopyGone),
            },
            Preimage::Git(number) => {
                let oid = shared.oids.get(*number).map(hex).ok_or(NotUndoableReason::ObjectGone)?;
                if self.objects.is_none() {
                    self.objects = Objects::open(&shared.root.path, shared.git_copy);
                }
                let objects = self.objects.as_mut().ok_or(NotUndoableReason::ObjectGone)?;
                objects.read(&oid, entry.stat.size, &mut self.before)
            }
        }
    }
}

/// Tells whether it is a folder that gives new entries in it a group or an access control list.
fn passes_attributes_on(stat: &Stat, attributes: Option<&Arc<Attributes>>) -> bool {
    let listed = attributes.is_some_and(|attributes| attributes.passes_acl_on());
    stat.kind() == PathKind::Folder && (stat.mode & 0o2000 != 0 || listed)
}

/// The reason why owner or capabilities cannot be restored, if a file of another user changed.
fn missing_privilege(before: &ManifestEntry, now: Option<&Attributes>) -> Option<NotUndoableReason> {
    let before = before.attributes.as_deref()?;
    let changed = now.is_none_or(|now| before.needs_more_than(now));
    (changed && !before.can_be_given()).then_some(NotUndoableReason::Privilege)
}
