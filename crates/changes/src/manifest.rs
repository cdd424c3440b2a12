//! The known state of the tree: one small entry per path, never the content.
//!
//! The entries are flat rows ordered by path bytes ([`Rows`]), because everything under a folder is then one range,
//! and git's index, which has the same order, can be merged with it. Rows never change: the changes of a line form an
//! overlay, until there are so many that new rows are written. So the sessions of a workspace in one process share
//! rows, and a file takes about seventy bytes. Rejected: a map with an entry for each path takes four times as much,
//! and a tree of maps still more for the usual folder of ten files.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::ops::Bound;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use lathe_protocol::Digest;

use crate::NotUndoableReason;
use crate::attributes::Attributes;
use crate::beneath::{Rel, split};
use crate::pack::CopyLocation;
use crate::rows::{self, Rows};
use crate::stat::{PathKind, Stat};

/// The location of a path's earlier content.
#[derive(Debug, Clone)]
pub(crate) enum Preimage {
    /// A folder has no content.
    Folder,
    /// The object of this number in [`Oids`].
    Git(u32),
    Pack(CopyLocation),
    Blob(Box<Digest>),
    /// The path is known, but its content is not.
    Lost(NotUndoableReason),
    /// The path is known, with the digest of its content, which is not kept.
    Unkept(NotUndoableReason, Box<Digest>),
    /// A folder that is not entered.
    Skipped(NotUndoableReason),
}

impl Preimage {
    /// The digest of content that is not kept, if it is known.
    pub fn unkept(&self) -> Option<&Digest> {
        match self {
            Self::Unkept(_, digest) => Some(digest),
            Self::Folder
            | Self::Git(_)
            | Self::Pack(_)
            | Self::Blob(_)
            | Self::Lost(_)
            | Self::Skipped(_) => None,
        }
    }

    /// The reason why content with a known digest is not kept.
    pub fn why_unkept(&self) -> Option<NotUndoableReason> {
        match self {
            Self::Unkept(why, _) => Some(*why),
            Self::Folder
            | Self::Git(_)
            | Self::Pack(_)
            | Self::Blob(_)
            | Self::Lost(_)
            | Self::Skipped(_) => None,
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct ManifestEntry {
    pub stat: Stat,
    /// Touched so shortly before it was read that its time stamps prove nothing: the next scan compares its content.
    pub racy: bool,
    pub pre: Preimage,
    /// None if they are not known.
    pub attributes: Option<Arc<Attributes>>,
}

impl ManifestEntry {
    fn is_git(&self) -> bool {
        matches!(self.pre, Preimage::Skipped(NotUndoableReason::Git))
    }
}

/// A known entry, in the rows or in the overlay.
#[derive(Debug, Clone, Copy)]
pub(crate) enum KnownEntry<'a> {
    Row(&'a Manifest, usize),
    Over(&'a ManifestEntry),
}

impl<'a> KnownEntry<'a> {
    pub fn stat(self) -> Stat {
        match self {
            Self::Row(manifest, at) => manifest.rows.stat(at),
            Self::Over(entry) => entry.stat,
        }
    }

    pub fn is_racy(self) -> bool {
        match self {
            Self::Row(manifest, at) => manifest.pres.get(at).is_some_and(|pre| pre.is_racy()),
            Self::Over(entry) => entry.racy,
        }
    }

    pub fn attributes(self) -> Option<&'a Arc<Attributes>> {
        match self {
            Self::Row(manifest, at) => manifest.rows.attributes(at),
            Self::Over(entry) => entry.attributes.as_ref(),
        }
    }

    pub fn pre(self) -> Preimage {
        match self {
            Self::Row(manifest, at) => manifest.pre(at),
            Self::Over(entry) => entry.pre.clone(),
        }
    }

    /// The reason why its content cannot be restored, if it cannot.
    pub fn why_lost(self) -> Option<NotUndoableReason> {
        let of = |pre: &Preimage| match pre {
            Preimage::Lost(why) | Preimage::Unkept(why, _) | Preimage::Skipped(why) => Some(*why),
            Preimage::Folder | Preimage::Git(_) | Preimage::Pack(_) | Preimage::Blob(_) => None,
        };
        self.map_preimage(of)
    }

    /// The reason why it is not entered, if it is not.
    pub fn why_skipped(self) -> Option<NotUndoableReason> {
        let of = |pre: &Preimage| match pre {
            Preimage::Skipped(why) => Some(*why),
            Preimage::Folder
            | Preimage::Git(_)
            | Preimage::Pack(_)
            | Preimage::Blob(_)
            | Preimage::Lost(_)
            | Preimage::Unkept(..) => None,
        };
        self.map_preimage(of)
    }

    /// Tells whether git has its content.
    pub fn is_reference(self) -> bool {
        match self {
            Self::Row(manifest, at) => manifest.pres.get(at).is_some_and(|pre| pre.kind() == GIT),
            Self::Over(entry) => matches!(entry.pre, Preimage::Git(_)),
        }
    }

    pub fn entry(self) -> ManifestEntry {
        let attributes = self.attributes().cloned();
        ManifestEntry { stat: self.stat(), racy: self.is_racy(), pre: self.pre(), attributes }
    }

    fn map_preimage<T>(self, of: impl Fn(&Preimage) -> Option<T>) -> Option<T> {
        match self {
            Self::Row(manifest, at) => of(manifest.other(at)?),
            Self::Over(entry) => of(&entry.pre),
        }
    }
}

/// The location of a row's content in four bytes: the kind of location, the racy flag, and a number.
#[derive(Debug, Clone, Copy)]
struct Pre(u32);

const FOLDER: u32 = 0;
const GIT: u32 = 1;
const OTHER: u32 = 2;

impl Pre {
    /// None if the number is too large.
    fn new(kind: u32, racy: bool, number: u32) -> Option<Self> {
        (number < 1 << 29).then_some(Self(number << 3 | u32::from(racy) << 2 | kind))
    }

    fn kind(self) -> u32 {
        self.0 & 3
    }

    fn is_racy(self) -> bool {
        self.0 & 4 != 0
    }

    fn number(self) -> u32 {
        self.0 >> 3
    }
}

#[derive(Debug, Default)]
pub(crate) struct Manifest {
    /// The state of the tree at the last full scan.
    rows: Arc<Rows>,
    /// The content location of each row.
    pres: Vec<Pre>,
    /// The locations that are neither folders nor objects of git.
    others: Vec<Preimage>,
    /// The overlay: entries that differ from their rows. None: the path is gone.
    over: BTreeMap<Rel, Option<ManifestEntry>>,
    len: usize,
    /// Files with more than one name. The watcher does not report a change through another name, so every scan
    /// includes them.
    linked: BTreeSet<Rel>,
    /// Every `.git`.
    git: BTreeSet<Rel>,
}

/// The size of the overlay from which new rows are worth writing.
const MANY_OVER: usize = 4096;

impl Manifest {
    /// An empty manifest, to be filled with entries in order.
    pub fn with_room(entries: usize) -> ManifestBuilder {
        let mut builder = ManifestBuilder::default();
        builder.rows.reserve(entries);
        builder.manifest.pres.reserve_exact(entries);
        builder
    }

    pub fn get(&self, rel: &[u8]) -> Option<KnownEntry<'_>> {
        if let Some(over) = self.over.get(rel) {
            return over.as_ref().map(KnownEntry::Over);
        }
        self.rows.find(rel).ok().map(|at| KnownEntry::Row(self, at))
    }

    /// Replaces an entry, and returns the earlier one.
    pub fn set(&mut self, rel: &[u8], entry: Option<ManifestEntry>) -> Option<ManifestEntry> {
        self.note(rel, entry.as_ref());
        let before = self.get(rel).map(KnownEntry::entry);
        self.len = self.len + usize::from(entry.is_some()) - usize::from(before.is_some());
        match entry {
            None if self.rows.find(rel).is_err() => drop(self.over.remove(rel)),
            entry => drop(self.over.insert(rel.into(), entry)),
        }
        before
    }

    /// Writes new rows if the overlay is large.
    pub fn settle(&mut self) {
        if self.over.len() < MANY_OVER.max(self.rows.len() / 4) {
            return;
        }
        let mut builder = Self::with_room(self.len);
        self.visit(|rel, known| builder.push(rel, known.entry()));
        *self = builder.finish();
    }

    /// Adopts the rows of another manifest of the same root, as far as they are equal. Differences go to the overlay.
    pub fn share(&mut self, root: &Path) {
        let shared = rows::shared(root, &self.rows);
        if Arc::ptr_eq(&shared, &self.rows) {
            return;
        }
        let (mut theirs, mut number) = (shared.paths(), 0);
        let mut wanted = theirs.next();
        let mut pres = Vec::with_capacity(shared.len());
        let mut over: BTreeMap<Rel, Option<ManifestEntry>> = BTreeMap::new();
        let mut ours = self.rows.paths();
        for at in 0..self.rows.len() {
            let Some(rel) = ours.next() else { break };
            while let Some(gone) = wanted.filter(|wanted| *wanted < rel) {
                over.insert(gone.into(), None);
                pres.push(Pre(FOLDER));
                (wanted, number) = (theirs.next(), number + 1);
            }
            let is_known = wanted == Some(rel);
            if is_known && shared.is_same(number, &self.rows, at) {
                pres.extend(self.pres.get(at));
            } else {
                over.insert(rel.into(), Some(KnownEntry::Row(self, at).entry()));
                pres.extend(is_known.then_some(Pre(FOLDER)));
            }
            if is_known {
                (wanted, number) = (theirs.next(), number + 1);
            }
        }
        while let Some(gone) = wanted {
            over.insert(gone.into(), None);
            pres.push(Pre(FOLDER));
            wanted = theirs.next();
        }
        (self.rows, self.pres, self.over) = (shared, pres, over);
    }

    /// Visits every entry, in order.
    pub fn visit<'a>(&'a self, act: impl FnMut(&[u8], KnownEntry<'a>)) {
        self.between(0, self.rows.len(), self.over.iter(), act);
    }

    /// Visits every entry inside a folder, at any depth, in order.
    pub fn inside<'a>(&'a self, folder: &[u8], act: impl FnMut(&[u8], KnownEntry<'a>)) {
        if folder.is_empty() {
            return self.visit(act);
        }
        let bound = |end: u8| -> Rel { folder.iter().copied().chain([end]).collect() };
        let (begin, end) = (bound(b'/'), bound(b'/' + 1));
        let place = |bound: &Rel| match self.rows.find(bound) {
            Ok(at) | Err(at) => at,
        };
        let (first, last) = (place(&begin), place(&end));
        self.between(
            first,
            last,
            self.over.range::<Rel, _>((Bound::Excluded(&begin), Bound::Excluded(&end))),
            act,
        );
    }

    fn between<'a>(
        &'a self,
        first: usize,
        last: usize,
        over: impl Iterator<Item = (&'a Rel, &'a Option<ManifestEntry>)>,
        mut act: impl FnMut(&[u8], KnownEntry<'a>),
    ) {
        let mut over = over.peekable();
        let mut paths = self.rows.paths_from(first);
        for at in first..last {
            let Some(rel) = paths.next() else { break };
            while let Some((other, entry)) = over.next_if(|(other, _)| ***other < *rel) {
                entry.iter().for_each(|entry| act(other, KnownEntry::Over(entry)));
            }
            match over.next_if(|(other, _)| ***other == *rel) {
                Some((_, entry)) => entry.iter().for_each(|entry| act(rel, KnownEntry::Over(entry))),
                None => act(rel, KnownEntry::Row(self, at)),
            }
        }
        for (other, entry) in over {
            entry.iter().for_each(|entry| act(other, KnownEntry::Over(entry)));
        }
    }

    pub fn linked(&self) -> impl Iterator<Item = &Rel> {
        self.linked.iter()
    }

    /// The names of every file that has more than one, by inode number.
    pub fn groups(&self) -> HashMap<u64, Vec<&Rel>> {
        let mut groups: HashMap<u64, Vec<&Rel>> = HashMap::new();
        for rel in &self.linked {
            if let Some(known) = self.get(rel) {
                groups.entry(known.stat().inode).or_default().push(rel);
            }
        }
        groups
    }

    pub fn git_paths(&self) -> impl Iterator<Item = &Rel> {
        self.git.iter()
    }

    /// Tells whether something in the tree has one of these names and may lead elsewhere: a link, a file with several
    /// names, or a folder that is not entered.
    pub fn is_alias(&self, names: &[&OsStr]) -> bool {
        let mut found = false;
        self.visit(|rel, known| {
            let stat = known.stat();
            let leads_on = stat.kind() == PathKind::Link || stat.is_linked() || known.why_skipped().is_some();
            found |= leads_on && names.iter().any(|name| name.as_bytes() == split(rel).1);
        });
        found
    }

    pub fn len(&self) -> usize {
        self.len
    }

    fn pre(&self, at: usize) -> Preimage {
        match self.pres.get(at) {
            Some(pre) if pre.kind() == FOLDER => Preimage::Folder,
            Some(pre) if pre.kind() == GIT => Preimage::Git(pre.number()),
            // An unknown number stands for lost content.
            Some(_) | None => self.other(at).cloned().unwrap_or(Preimage::Lost(NotUndoableReason::CopyGone)),
        }
    }

    fn other(&self, at: usize) -> Option<&Preimage> {
        let pre = self.pres.get(at).filter(|pre| pre.kind() == OTHER)?;
        self.others.get(usize::try_from(pre.number()).ok()?)
    }

    fn note(&mut self, rel: &[u8], entry: Option<&ManifestEntry>) {
        let put = |set: &mut BTreeSet<Rel>, is_in: bool| match is_in {
            true => drop(set.insert(rel.into())),
            false => drop(set.remove(rel)),
        };
        put(&mut self.git, entry.is_some_and(ManifestEntry::is_git));
        put(&mut self.linked, entry.is_some_and(|entry| entry.stat.is_linked()));
    }
}

/// A manifest that receives its entries in order.
#[derive(Debug, Default)]
pub(crate) struct ManifestBuilder {
    manifest: Manifest,
    rows: rows::RowsBuilder,
}

impl ManifestBuilder {
    /// Adds an entry. Its path must come after all others.
    pub fn push(&mut self, rel: &[u8], entry: ManifestEntry) {
        let manifest = &mut self.manifest;
        if entry.is_git() || entry.stat.is_linked() {
            manifest.note(rel, Some(&entry));
        }
        manifest.len += 1;
        let number = u32::try_from(manifest.others.len()).unwrap_or(u32::MAX);
        let pre = match entry.pre {
            Preimage::Folder => Pre::new(FOLDER, entry.racy, 0),
            Preimage::Git(number) => Pre::new(GIT, entry.racy, number),
            Preimage::Pack(_)
            | Preimage::Blob(_)
            | Preimage::Lost(_)
            | Preimage::Unkept(..)
            | Preimage::Skipped(_) => Pre::new(OTHER, entry.racy, number),
        };
        let added = pre.filter(|_| self.rows.push(rel, &entry.stat, entry.attributes.as_ref()).is_ok());
        let Some(pre) = added else {
            manifest.over.insert(rel.into(), Some(entry));
            return;
        };
        manifest.pres.push(pre);
        if pre.kind() == OTHER {
            manifest.others.push(entry.pre);
        }
    }

    pub fn finish(mut self) -> Manifest {
        self.manifest.rows = Arc::new(self.rows.finish());
        self.manifest
    }
}

/// The names of git objects in one buffer: an entry holds four bytes instead of forty.
#[derive(Debug, Default)]
pub(crate) struct Oids {
    width: usize,
    bytes: Vec<u8>,
}

impl Oids {
    /// None if the name has another length than the others, or if the numbers are used up.
    pub fn add(&mut self, oid: &[u8]) -> Option<u32> {
        if self.width == 0 {
            self.width = oid.len();
        }
        if oid.is_empty() || oid.len() != self.width {
            return None;
        }
        let number = u32::try_from(self.bytes.len() / self.width).ok()?;
        self.bytes.extend_from_slice(oid);
        Some(number)
    }

    pub fn get(&self, number: u32) -> Option<&[u8]> {
        let at = usize::try_from(number).ok()?.checked_mul(self.width)?;
        self.bytes.get(at..at + self.width)
    }

    /// Releases unused memory.
    pub fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
    }
}

/// The name of an object as git writes it.
pub(crate) fn hex(oid: &[u8]) -> Vec<u8> {
    oid.iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| b"0123456789abcdef"[usize::from(digit)])
        .collect()
}

/// The bytes of a name that git wrote. None if the text is not such a name.
pub(crate) fn from_hex(hex: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = hex.chunks(2).map(|pair| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    });
    pairs.collect()
}
