//! From a path that may have changed to what changed, with the content of both sides kept.
//!
//! Securing, taking over and comparing are one act: read what is there, keep it, and remember where. They differ in
//! where the content goes ([`Keep`]) and in whether the side before is kept too. A worker holds one file of each side in
//! memory at a time, so the need for memory is bounded by the limit for one file, not by the tree.

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
use crate::change::State;
use crate::git::Objects;
use crate::links::Names;
use crate::manifest::{Entry, Known, Manifest, Oids, Preimage, hex};
use crate::pack::Packs;
use crate::references::is_named;
use crate::stat::{Kind, Since, Stat};
use crate::walk::Seen;
use crate::whole::digest_of;
use crate::{ChangesError, TreeChange, Why, links};

/// How many work at once. Each has a pack of its own.
pub(crate) const WORKERS: u8 = 2;

/// From this many paths on a second worker is worth its thread.
const MANY: usize = 64;

/// A path to look at: what is there now, or that nothing is.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub rel: Rel,
    pub now: Option<Seen>,
    /// The object of git's that has to be compared with what is there: its times do not prove that it is the same.
    pub object: Option<u32>,
}

impl Candidate {
    pub fn new(rel: Rel, now: Option<Seen>) -> Self {
        Self { rel, now, object: None }
    }
}

/// Where content goes.
#[derive(Clone, Copy)]
pub(crate) enum Keep<'a> {
    /// It becomes the new baseline, and nothing more.
    Copies,
    /// Both sides are kept for good. The number counts what was taken, against the limit for all.
    Blobs { batch: &'a Batch, taken: &'a AtomicU64 },
}

#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub rel: Rel,
    /// What the manifest says from now on; none: it stays as it is.
    pub entry: Option<Option<Entry>>,
    pub change: Option<TreeChange>,
    /// Content or mode became another one. Only then there is a change.
    pub changed: bool,
    pub not_undoable: Option<Why>,
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
    /// Where git's objects are, if the repository is gone.
    pub git_copy: Option<&'a Path>,
}

struct Worker<'a> {
    shared: &'a Examine<'a>,
    number: u8,
    objects: Option<Objects>,
    names: &'a Names<'a>,
    /// Folders that are looked at and give what is made in them a group or an access control list.
    passing: &'a HashSet<&'a [u8]>,
    before: Vec<u8>,
    after: Vec<u8>,
}

/// One side of a change.
#[derive(Default)]
struct Side<'a> {
    state: Option<State>,
    attributes: Option<&'a Attributes>,
}

/// What is there now: bytes are in the worker's `after`.
struct Current {
    stat: Stat,
    content: Result<(), Why>,
}

impl Examine<'_> {
    pub fn run(&self, candidates: &[Candidate]) -> Result<Vec<Outcome>, ChangesError> {
        let next = AtomicUsize::new(0);
        let names = Names::of(self.manifest, candidates);
        let passes = |one: &&Candidate| {
            one.now.as_ref().is_some_and(|now| is_passing(&now.stat, now.attributes.as_ref()))
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
        let before = self.shared.manifest.get(&candidate.rel).map(Known::entry);
        let outcome = match (&before, &candidate.now) {
            (None, None) => None,
            (Some(before), None) => Some(self.removed(&candidate.rel, before)?),
            (None, Some(now)) => self.made(now, candidate.object)?,
            (Some(before), Some(now)) => self.both(before, now)?,
        };
        Ok(outcome.map(|outcome| Outcome { rel: candidate.rel.clone(), ..outcome }))
    }

    fn removed(&mut self, rel: &Rel, before: &Entry) -> Result<Outcome, ChangesError> {
        let mut outcome = Outcome { entry: Some(None), changed: true, ..Outcome::default() };
        match self.state_before(rel, before)? {
            Ok(state) => {
                let side = Side { state, attributes: before.attributes.as_deref() };
                outcome.change = self.change(rel, side, Side::default())?;
                let lost = self.names.beyond(before).or_else(|| privilege(before, None));
                outcome.not_undoable = before.pre.why_unkept().or(lost);
            }
            Err(why) => outcome.not_undoable = Some(why),
        }
        Ok(outcome)
    }

    /// `object` is the one of git's that may be its content.
    fn made(&mut self, now: &Seen, object: Option<u32>) -> Result<Option<Outcome>, ChangesError> {
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

    fn both(&mut self, before: &Entry, now: &Seen) -> Result<Option<Outcome>, ChangesError> {
        if let Preimage::Skipped(_) = before.pre
            && now.skipped.is_some()
        {
            return Ok(None);
        }
        if !before.racy && before.stat.same(&now.stat) && now.skipped.is_none() {
            // A second name may have come or gone, which is no change.
            let entry = Entry { stat: now.stat, ..before.clone() };
            let outcome = Outcome { entry: Some(Some(entry)), ..Outcome::default() };
            return Ok((before.stat.names != now.stat.names).then_some(outcome));
        }
        if let Some(why) = now.skipped {
            return self.closed(before, now, why).map(Some);
        }
        let Some(current) = self.read_current(now)? else { return Ok(None) };
        let same_kind = before.stat.kind() == current.stat.kind();
        if let (Preimage::Lost(_) | Preimage::Unkept(..), true) =
            (&before.pre, before.stat.same(&current.stat))
        {
            return Ok(None);
        }
        let same_content = same_kind && current.content.is_ok() && self.is_same_content(before, &current)?;
        // What may not be read is taken to be as it was.
        let attributes = now.attributes.clone().or_else(|| before.attributes.clone());
        let same_attributes = before.attributes.is_none() || before.attributes == attributes;
        let relinked = same_kind
            && (before.stat.linked() || current.stat.linked())
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
        // The limits are for what is kept. What was there can come back, whatever took its place.
        if let (Ok(Some(_)), Err(why)) = (&side, &after)
            && let Some(digest) = self.unkept(now, &current)
        {
            if same && before.pre.unkept() == Some(&digest) {
                let entry = self.entry(current.stat, before.pre.clone(), attributes);
                return Ok(Some(Outcome { entry: Some(Some(entry)), ..Outcome::default() }));
            }
            pre = Preimage::Unkept(*why, Box::new(digest.clone()));
            let links = self.keep_links(self.names.now(&now.rel, &current.stat))?;
            after = Ok(Some(State { links, ..State::new(digest, current.stat.mode) }));
        }
        match (side, after) {
            (Ok(side), Ok(after)) => {
                let side = Side { state: side, attributes: before.attributes.as_deref() };
                let after = Side { state: after, attributes: attributes.as_deref() };
                let lost = self.names.beyond(before).or_else(|| privilege(before, attributes.as_deref()));
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

    /// Tells whether what `read_current` read is this object, where only copies are made.
    fn is_object(&self, current: &Current, number: u32) -> bool {
        let is_file = current.stat.kind() == Kind::File && current.content.is_ok();
        let oid =
            self.shared.oids.get(number).filter(|_| is_file && matches!(self.shared.keep, Keep::Copies));
        oid.is_some_and(|oid| is_named(&self.after, oid))
    }

    /// Something known is now what is not looked into. A folder that merely cannot be read any more keeps what is known
    /// of it, for the day on which it can: its mode is a change like any other.
    fn closed(&mut self, before: &Entry, now: &Seen, why: Why) -> Result<Outcome, ChangesError> {
        let mut outcome = Outcome { changed: true, not_undoable: Some(why), ..Outcome::default() };
        if let Preimage::Folder = before.pre {
            if before.stat.mode != now.stat.mode {
                let folder = |mode| Side { state: Some(State::new(Digest::of(b""), mode)), attributes: None };
                outcome.change = self.change(&now.rel, folder(before.stat.mode), folder(now.stat.mode))?;
            }
            outcome.entry = Some(Some(self.entry(now.stat, Preimage::Folder, before.attributes.clone())));
        } else {
            outcome.entry = Some(Some(self.entry(now.stat, Preimage::Skipped(why), None)));
        }
        Ok(outcome)
    }

    fn entry(&self, stat: Stat, pre: Preimage, attributes: Option<Arc<Attributes>>) -> Entry {
        Entry { stat, racy: self.shared.since.touched(&stat), pre, attributes }
    }

    fn change<'a>(
        &self,
        rel: &Rel,
        mut before: Side<'a>,
        mut after: Side<'a>,
    ) -> Result<Option<TreeChange>, ChangesError> {
        let Keep::Blobs { batch, .. } = self.shared.keep else { return Ok(None) };
        let is_plain = |side: &Side<'_>| side.attributes.is_none_or(Attributes::is_plain);
        // What every new file here has need not be written down.
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

    /// Tells whether what is made in the folder of a path gets a group or an access control list from the folder.
    fn is_inherited(&self, rel: &Rel) -> bool {
        let folder = split(rel).0;
        let was = self.shared.manifest.get(folder);
        was.is_some_and(|was| is_passing(&was.stat(), was.attributes())) || self.passing.contains(folder)
    }

    /// The other names of a file, kept in the store.
    fn keep_links(&self, names: Vec<&Rel>) -> Result<Option<Digest>, ChangesError> {
        match self.shared.keep {
            Keep::Blobs { batch, .. } if !names.is_empty() => Ok(Some(batch.put(&links::list(&names))?)),
            Keep::Blobs { .. } | Keep::Copies => Ok(None),
        }
    }

    /// None if it is gone, or another kind of thing than a moment ago: the next look tells.
    fn read_current(&mut self, now: &Seen) -> Result<Option<Current>, ChangesError> {
        let root = self.shared.root;
        self.after.clear();
        let (stat, content) = match now.stat.kind() {
            Kind::Folder => (now.stat, Ok(())),
            Kind::Special => (now.stat, Err(Why::Special)),
            Kind::Link => match root.read_link(&now.rel) {
                Ok(target) => {
                    self.after = target;
                    (now.stat, Ok(()))
                }
                Err(_) => return Ok(None),
            },
            Kind::File if now.stat.size > self.shared.file_bytes => (now.stat, Err(Why::TooLarge)),
            Kind::File => match root.open_file(&now.rel) {
                Ok((file, stat)) => match read_into(file, self.shared.file_bytes, &mut self.after) {
                    Ok(()) if self.after.len() as u64 > self.shared.file_bytes => (stat, Err(Why::TooLarge)),
                    Ok(()) => (stat, Ok(())),
                    Err(_) => (stat, Err(Why::Unreadable)),
                },
                Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => return Ok(None),
                Err(_) => (now.stat, Err(Why::Unreadable)),
            },
        };
        Ok(Some(Current { stat, content }))
    }

    /// Keeps what `read_current` read, and says what it is.
    #[allow(clippy::type_complexity)]
    fn keep_current(
        &mut self,
        rel: &Rel,
        current: &Current,
    ) -> Result<(Preimage, Result<Option<State>, Why>), ChangesError> {
        if let Err(why) = current.content {
            return Ok((Preimage::Lost(why), Err(why)));
        }
        let is_folder = current.stat.kind() == Kind::Folder;
        match self.shared.keep {
            Keep::Copies if is_folder => Ok((Preimage::Folder, Ok(None))),
            Keep::Copies => match self.shared.packs.append(self.number, &self.after) {
                Ok(Some(place)) => Ok((Preimage::Pack(place), Ok(None))),
                Ok(None) => Ok((Preimage::Lost(Why::OverTotal), Err(Why::OverTotal))),
                Err(source) => Err(ChangesError::Scratch { scratch: self.shared.scratch.to_owned(), source }),
            },
            Keep::Blobs { batch, taken } => {
                let len = self.after.len() as u64;
                if taken.fetch_add(len, Ordering::Relaxed) + len > self.shared.total_bytes {
                    return Ok((Preimage::Lost(Why::OverTotal), Err(Why::OverTotal)));
                }
                let digest = batch.put(&self.after)?;
                let links = self.keep_links(self.names.now(rel, &current.stat))?;
                let state = State { links, ..State::new(digest.clone(), current.stat.mode) };
                let pre = if is_folder { Preimage::Folder } else { Preimage::Blob(Box::new(digest)) };
                Ok((pre, Ok(Some(state))))
            }
        }
    }

    /// The digest of what is there now and is not kept. None for what cannot be read.
    fn unkept(&self, now: &Seen, current: &Current) -> Option<Digest> {
        match current.stat.kind() {
            Kind::File => digest_of(self.shared.root.open_file(&now.rel).ok()?.0).ok(),
            // It has no content.
            Kind::Special => Some(Digest::of(b"")),
            Kind::Folder | Kind::Link => None,
        }
    }

    /// What was there, kept for good if this is a comparison.
    fn state_before(
        &mut self,
        rel: &Rel,
        before: &Entry,
    ) -> Result<Result<Option<State>, Why>, ChangesError> {
        let Keep::Blobs { batch, .. } = self.shared.keep else { return Ok(Ok(None)) };
        let digest = match before.pre.unkept() {
            Some(digest) => digest.clone(),
            None => match self.load(before) {
                Ok(()) => batch.put(&self.before)?,
                Err(why) => return Ok(Err(why)),
            },
        };
        let links = self.keep_links(self.names.before(rel, &before.stat))?;
        Ok(Ok(Some(State { links, ..State::new(digest, before.stat.mode) })))
    }

    fn is_same_content(&mut self, before: &Entry, current: &Current) -> Result<bool, ChangesError> {
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

    /// Brings the content as it was into `before`.
    fn load(&mut self, entry: &Entry) -> Result<(), Why> {
        let shared = self.shared;
        self.before.clear();
        match &entry.pre {
            Preimage::Folder => Ok(()),
            Preimage::Lost(why) | Preimage::Unkept(why, _) | Preimage::Skipped(why) => Err(*why),
            Preimage::Pack(place) => shared.packs.read(*place, &mut self.before).map_err(|_| Why::CopyGone),
            Preimage::Blob(digest) => match shared.blobs.get(digest) {
                Ok(Some(bytes)) => {
                    self.before = bytes;
                    Ok(())
                }
                Ok(None) | Err(_) => Err(Why::CopyGone),
            },
            Preimage::Git(number) => {
                let oid = shared.oids.get(*number).map(hex).ok_or(Why::ObjectGone)?;
                if self.objects.is_none() {
                    self.objects = Objects::open(&shared.root.path, shared.git_copy);
                }
                let objects = self.objects.as_mut().ok_or(Why::ObjectGone)?;
                objects.read(&oid, entry.stat.size, &mut self.before)
            }
        }
    }
}

/// Tells whether it is a folder that gives what is made in it a group or an access control list.
fn is_passing(stat: &Stat, attributes: Option<&Arc<Attributes>>) -> bool {
    let listed = attributes.is_some_and(|attributes| attributes.is_passed_on());
    stat.kind() == Kind::Folder && (stat.mode & 0o2000 != 0 || listed)
}

/// The reason why owner or capabilities cannot be given back, if somebody else's file became another one.
fn privilege(before: &Entry, now: Option<&Attributes>) -> Option<Why> {
    let before = before.attributes.as_deref()?;
    let changed = now.is_none_or(|now| before.needs_more_than(now));
    (changed && !before.can_be_given()).then_some(Why::Privilege)
}
