//! What is known of the tree: one small entry per path, and never the content.
//!
//! Flat rows ordered by path bytes ([`Rows`]), because everything under a folder is then one range, and git's index, which is
//! ordered the same way, can be laid beside it. Rows never change: what a line changed lies over them, until there is so
//! much of it that new ones are written. So the sessions of a workspace in one process share rows, and a file takes some
//! seventy bytes. Rejected: a map with an entry for each path takes four times as much, and a tree of maps more still for the
//! usual folder of ten files.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::ops::Bound;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use lathe_protocol::Digest;

use crate::Why;
use crate::attributes::Attributes;
use crate::beneath::{Rel, split};
use crate::pack::Place;
use crate::rows::{self, Rows};
use crate::stat::{Kind, Stat};

/// Where the content of a path can be had as it was.
#[derive(Debug, Clone)]
pub(crate) enum Preimage {
    /// A folder has none.
    Folder,
    /// The object of this number in [`Oids`].
    Git(u32),
    Pack(Place),
    Blob(Box<Digest>),
    /// Known to be there, but not what it held.
    Lost(Why),
    /// Known to be there, with the digest of what it held: that is not kept.
    Unkept(Why, Box<Digest>),
    /// A folder that is not looked into.
    Skipped(Why),
}

impl Preimage {
    /// The digest of content that is not kept, where it is known.
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

    /// The reason why content whose digest is known is not kept.
    pub fn why_unkept(&self) -> Option<Why> {
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
pub(crate) struct Entry {
    pub stat: Stat,
    /// Touched so shortly before it was read that its time stamps prove nothing: its content is compared next time.
    pub racy: bool,
    pub pre: Preimage,
    /// None if they are not known.
    pub attributes: Option<Arc<Attributes>>,
}

impl Entry {
    fn is_git(&self) -> bool {
        matches!(self.pre, Preimage::Skipped(Why::Git))
    }
}

/// An entry that is known, where it lies.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Known<'a> {
    Row(&'a Manifest, usize),
    Over(&'a Entry),
}

impl<'a> Known<'a> {
    pub fn stat(self) -> Stat {
        match self {
            Self::Row(manifest, at) => manifest.rows.stat(at),
            Self::Over(entry) => entry.stat,
        }
    }

    pub fn racy(self) -> bool {
        match self {
            Self::Row(manifest, at) => manifest.pres.get(at).is_some_and(|pre| pre.racy()),
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

    /// The reason why its content cannot be brought back, if it cannot.
    pub fn why_lost(self) -> Option<Why> {
        let of = |pre: &Preimage| match pre {
            Preimage::Lost(why) | Preimage::Unkept(why, _) | Preimage::Skipped(why) => Some(*why),
            Preimage::Folder | Preimage::Git(_) | Preimage::Pack(_) | Preimage::Blob(_) => None,
        };
        self.looked_at(of)
    }

    /// The reason why it is not looked into, if it is not.
    pub fn why_skipped(self) -> Option<Why> {
        let of = |pre: &Preimage| match pre {
            Preimage::Skipped(why) => Some(*why),
            Preimage::Folder
            | Preimage::Git(_)
            | Preimage::Pack(_)
            | Preimage::Blob(_)
            | Preimage::Lost(_)
            | Preimage::Unkept(..) => None,
        };
        self.looked_at(of)
    }

    /// Tells whether git has its content.
    pub fn is_reference(self) -> bool {
        match self {
            Self::Row(manifest, at) => manifest.pres.get(at).is_some_and(|pre| pre.kind() == GIT),
            Self::Over(entry) => matches!(entry.pre, Preimage::Git(_)),
        }
    }

    pub fn entry(self) -> Entry {
        let attributes = self.attributes().cloned();
        Entry { stat: self.stat(), racy: self.racy(), pre: self.pre(), attributes }
    }

    fn looked_at<T>(self, of: impl Fn(&Preimage) -> Option<T>) -> Option<T> {
        match self {
            Self::Row(manifest, at) => of(manifest.other(at)?),
            Self::Over(entry) => of(&entry.pre),
        }
    }
}

/// Where the content of a row is to be had, in four bytes: what kind of place, whether the entry is racy, and a number.
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

    fn racy(self) -> bool {
        self.0 & 4 != 0
    }

    fn number(self) -> u32 {
        self.0 >> 3
    }
}

#[derive(Debug, Default)]
pub(crate) struct Manifest {
    /// How the tree was when it was last looked at as a whole.
    rows: Arc<Rows>,
    /// Where the content of each row is.
    pres: Vec<Pre>,
    /// What is neither a folder nor an object of git's.
    others: Vec<Preimage>,
    /// What is another one than its row says. None: it is gone.
    over: BTreeMap<Rel, Option<Entry>>,
    len: usize,
    /// Files with more than one name: the watcher does not tell of a change through another name, so they are
    /// looked at every time.
    linked: BTreeSet<Rel>,
    /// Every `.git`.
    git: BTreeSet<Rel>,
}

/// From so many entries beside the rows on it is worth to write new rows.
const MANY_OVER: usize = 4096;

impl Manifest {
    /// The empty one, to be filled with entries in order.
    pub fn with_room(entries: usize) -> Builder {
        let mut builder = Builder::default();
        builder.rows.reserve(entries);
        builder.manifest.pres.reserve_exact(entries);
        builder
    }

    pub fn get(&self, rel: &[u8]) -> Option<Known<'_>> {
        if let Some(over) = self.over.get(rel) {
            return over.as_ref().map(Known::Over);
        }
        self.rows.find(rel).ok().map(|at| Known::Row(self, at))
    }

    /// Puts the entry in the place of the one before, which is returned.
    pub fn set(&mut self, rel: &[u8], entry: Option<Entry>) -> Option<Entry> {
        self.note(rel, entry.as_ref());
        let before = self.get(rel).map(Known::entry);
        self.len = self.len + usize::from(entry.is_some()) - usize::from(before.is_some());
        match entry {
            None if self.rows.find(rel).is_err() => drop(self.over.remove(rel)),
            entry => drop(self.over.insert(rel.into(), entry)),
        }
        before
    }

    /// Writes new rows if much is another one than they say.
    pub fn settle(&mut self) {
        if self.over.len() < MANY_OVER.max(self.rows.len() / 4) {
            return;
        }
        let mut builder = Self::with_room(self.len);
        self.visit(|rel, known| builder.push(rel, known.entry()));
        *self = builder.finish();
    }

    /// Uses the rows that another one of the same root has, as far as they are the same. What differs is beside them.
    pub fn share(&mut self, root: &Path) {
        let shared = rows::shared(root, &self.rows);
        if Arc::ptr_eq(&shared, &self.rows) {
            return;
        }
        let (mut theirs, mut number) = (shared.paths(), 0);
        let mut wanted = theirs.next();
        let mut pres = Vec::with_capacity(shared.len());
        let mut over: BTreeMap<Rel, Option<Entry>> = BTreeMap::new();
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
                over.insert(rel.into(), Some(Known::Row(self, at).entry()));
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

    /// Everything, in order.
    pub fn visit<'a>(&'a self, act: impl FnMut(&[u8], Known<'a>)) {
        self.between(0, self.rows.len(), self.over.iter(), act);
    }

    /// Everything inside a folder, at any depth, in order.
    pub fn inside<'a>(&'a self, folder: &[u8], act: impl FnMut(&[u8], Known<'a>)) {
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
        over: impl Iterator<Item = (&'a Rel, &'a Option<Entry>)>,
        mut act: impl FnMut(&[u8], Known<'a>),
    ) {
        let mut over = over.peekable();
        let mut paths = self.rows.paths_from(first);
        for at in first..last {
            let Some(rel) = paths.next() else { break };
            while let Some((other, entry)) = over.next_if(|(other, _)| ***other < *rel) {
                entry.iter().for_each(|entry| act(other, Known::Over(entry)));
            }
            match over.next_if(|(other, _)| ***other == *rel) {
                Some((_, entry)) => entry.iter().for_each(|entry| act(rel, Known::Over(entry))),
                None => act(rel, Known::Row(self, at)),
            }
        }
        for (other, entry) in over {
            entry.iter().for_each(|entry| act(other, Known::Over(entry)));
        }
    }

    pub fn linked(&self) -> impl Iterator<Item = &Rel> {
        self.linked.iter()
    }

    /// The names of every file that has more than one, by the file's number.
    pub fn groups(&self) -> HashMap<u64, Vec<&Rel>> {
        let mut groups: HashMap<u64, Vec<&Rel>> = HashMap::new();
        for rel in &self.linked {
            if let Some(known) = self.get(rel) {
                groups.entry(known.stat().inode).or_default().push(rel);
            }
        }
        groups
    }

    pub fn git(&self) -> impl Iterator<Item = &Rel> {
        self.git.iter()
    }

    /// Tells whether something has one of these names and leads on: a link, a file with several names, or a folder that
    /// is not looked into.
    pub fn is_alias(&self, names: &[&OsStr]) -> bool {
        let mut found = false;
        self.visit(|rel, known| {
            let stat = known.stat();
            let leads_on = stat.kind() == Kind::Link || stat.linked() || known.why_skipped().is_some();
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
            // A number that means nothing is no content at all.
            Some(_) | None => self.other(at).cloned().unwrap_or(Preimage::Lost(Why::CopyGone)),
        }
    }

    fn other(&self, at: usize) -> Option<&Preimage> {
        let pre = self.pres.get(at).filter(|pre| pre.kind() == OTHER)?;
        self.others.get(usize::try_from(pre.number()).ok()?)
    }

    fn note(&mut self, rel: &[u8], entry: Option<&Entry>) {
        let put = |set: &mut BTreeSet<Rel>, is_in: bool| match is_in {
            true => drop(set.insert(rel.into())),
            false => drop(set.remove(rel)),
        };
        put(&mut self.git, entry.is_some_and(Entry::is_git));
        put(&mut self.linked, entry.is_some_and(|entry| entry.stat.linked()));
    }
}

/// A manifest that gets its entries in order.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    manifest: Manifest,
    rows: rows::Builder,
}

impl Builder {
    /// Adds an entry, whose path comes after all others.
    pub fn push(&mut self, rel: &[u8], entry: Entry) {
        let manifest = &mut self.manifest;
        if entry.is_git() || entry.stat.linked() {
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

/// Names of git objects, side by side: an entry holds four bytes instead of forty.
#[derive(Debug, Default)]
pub(crate) struct Oids {
    width: usize,
    bytes: Vec<u8>,
}

impl Oids {
    /// None if the name has another length than the others, or there is no room for one more.
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

    /// Gives room back that is not needed.
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

/// The bytes of a name that git wrote. None if it is no such name.
pub(crate) fn from_hex(hex: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = hex.chunks(2).map(|pair| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    });
    pairs.collect()
}
