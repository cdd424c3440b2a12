//! What is known of the tree: one small entry per path, and never the content.
//!
//! One flat map ordered by path bytes, because everything under a folder is then one range, and git's index, which is
//! ordered the same way, can be laid beside it. A tree of maps was rejected: it takes more memory for the usual folder
//! of ten files than the repeated prefixes do.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::ops::Bound;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use lathe_protocol::Digest;

use crate::Why;
use crate::attributes::Attributes;
use crate::beneath::Rel;
use crate::pack::Place;
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

#[derive(Debug, Default)]
pub(crate) struct Manifest {
    entries: BTreeMap<Rel, Entry>,
    /// Files with more than one name: the watcher does not tell of a change through another name, so they are
    /// looked at every time.
    linked: BTreeSet<Rel>,
    /// Every `.git`.
    git: BTreeSet<Rel>,
}

impl Manifest {
    /// From entries in order.
    pub fn new(entries: Vec<(Rel, Entry)>) -> Self {
        let linked =
            entries.iter().filter(|(_, entry)| entry.stat.linked()).map(|(rel, _)| rel.clone()).collect();
        let git = entries.iter().filter(|(_, entry)| entry.is_git()).map(|(rel, _)| rel.clone()).collect();
        Self { entries: entries.into_iter().collect(), linked, git }
    }

    pub fn get(&self, rel: &[u8]) -> Option<&Entry> {
        self.entries.get(rel)
    }

    /// Puts the entry in the place of the one before, which is returned.
    pub fn set(&mut self, rel: &[u8], entry: Option<Entry>) -> Option<Entry> {
        if entry.as_ref().is_some_and(Entry::is_git) {
            self.git.insert(rel.into());
        } else {
            self.git.remove(rel);
        }
        match entry {
            Some(entry) => {
                if entry.stat.linked() {
                    self.linked.insert(rel.into());
                } else {
                    self.linked.remove(rel);
                }
                self.entries.insert(rel.into(), entry)
            }
            None => {
                self.linked.remove(rel);
                self.entries.remove(rel)
            }
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Rel, &Entry)> {
        self.entries.iter()
    }

    /// Everything inside a folder, at any depth.
    pub fn inside(&self, folder: &[u8]) -> impl Iterator<Item = (&Rel, &Entry)> {
        let bound = |end: u8| -> Rel { folder.iter().copied().chain([end]).collect() };
        let range: (Bound<Rel>, Bound<Rel>) = if folder.is_empty() {
            (Bound::Excluded(Rel::default()), Bound::Unbounded)
        } else {
            (Bound::Excluded(bound(b'/')), Bound::Excluded(bound(b'/' + 1)))
        };
        self.entries.range(range)
    }

    pub fn linked(&self) -> impl Iterator<Item = &Rel> {
        self.linked.iter()
    }

    /// The names of every file that has more than one, by the file's number.
    pub fn groups(&self) -> HashMap<u64, Vec<&Rel>> {
        let mut groups: HashMap<u64, Vec<&Rel>> = HashMap::new();
        for rel in &self.linked {
            if let Some(entry) = self.entries.get(rel) {
                groups.entry(entry.stat.inode).or_default().push(rel);
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
        let leads_on = |entry: &Entry| {
            entry.stat.kind() == Kind::Link
                || entry.stat.linked()
                || matches!(entry.pre, Preimage::Skipped(_))
        };
        let is_named = |rel: &Rel| {
            let last = rel.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            names.iter().any(|name| name.as_bytes() == last)
        };
        self.entries.iter().any(|(rel, entry)| leads_on(entry) && is_named(rel))
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }
}

/// Names of git objects, side by side in hex: an entry holds four bytes instead of forty.
#[derive(Debug, Default)]
pub(crate) struct Oids {
    width: usize,
    hex: Vec<u8>,
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
        let number = u32::try_from(self.hex.len() / self.width).ok()?;
        self.hex.extend_from_slice(oid);
        Some(number)
    }

    pub fn get(&self, number: u32) -> Option<&[u8]> {
        let at = usize::try_from(number).ok()?.checked_mul(self.width)?;
        self.hex.get(at..at + self.width)
    }
}
