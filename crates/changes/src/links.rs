//! Files with several names (hard links) in the tree: which names belong together before and after a look.

use std::collections::{HashMap, HashSet};

use crate::Why;
use crate::beneath::Rel;
use crate::examine::Candidate;
use crate::manifest::{Entry, Manifest};
use crate::stat::{Kind, Stat};

/// The names of every file that has more than one.
#[derive(Debug, Default)]
pub(crate) struct Names<'a> {
    before: HashMap<u64, Vec<&'a Rel>>,
    now: HashMap<u64, Vec<&'a Rel>>,
}

impl<'a> Names<'a> {
    pub fn of(manifest: &'a Manifest, candidates: &'a [Candidate]) -> Self {
        let linked_now = |one: &Candidate| one.now.as_ref().is_some_and(|now| now.stat.linked());
        let mut names = Self { before: manifest.groups(), now: HashMap::new() };
        if names.before.is_empty() && !candidates.iter().any(linked_now) {
            return names;
        }
        let looked_at: HashSet<&Rel> = candidates.iter().map(|one| &one.rel).collect();
        for (inode, group) in &names.before {
            let same = group.iter().filter(|rel| !looked_at.contains(*rel)).copied();
            names.now.entry(*inode).or_default().extend(same);
        }
        for one in candidates {
            if let Some(now) = one.now.as_ref().filter(|now| now.stat.kind() == Kind::File) {
                names.now.entry(now.stat.inode).or_default().push(&one.rel);
            }
        }
        names.now.values_mut().for_each(|group| group.sort());
        names
    }

    /// The other names that a file had.
    pub fn before(&self, rel: &Rel, stat: &Stat) -> Vec<&'a Rel> {
        others(&self.before, rel, stat)
    }

    /// The other names that a file has.
    pub fn now(&self, rel: &Rel, stat: &Stat) -> Vec<&'a Rel> {
        others(&self.now, rel, stat)
    }

    /// The reason why a file cannot be what it was if it had names that are not in the tree.
    pub fn beyond(&self, before: &Entry) -> Option<Why> {
        let inside = self.before.get(&before.stat.inode).map_or(0, Vec::len);
        let names = usize::try_from(before.stat.names).unwrap_or(usize::MAX);
        (before.stat.linked() && names > inside).then_some(Why::OtherNames)
    }
}

fn others<'a>(groups: &HashMap<u64, Vec<&'a Rel>>, rel: &Rel, stat: &Stat) -> Vec<&'a Rel> {
    if !stat.linked() {
        return Vec::new();
    }
    let group = groups.get(&stat.inode).into_iter().flatten();
    group.copied().filter(|other| *other != rel).collect()
}

/// A list of names for the store: no name holds a zero byte.
pub(crate) fn list(names: &[&Rel]) -> Vec<u8> {
    names.iter().map(|rel| &***rel).collect::<Vec<&[u8]>>().join(&0)
}

/// The names of a list.
pub(crate) fn from_list(list: &[u8]) -> Vec<Rel> {
    list.split(|byte| *byte == 0).filter(|rel| !rel.is_empty()).map(Rel::from).collect()
}
