//! Hard links: the groups of names that share a file, before and after a scan.

use std::collections::{HashMap, HashSet};

use crate::NotUndoableReason;
use crate::beneath::Rel;
use crate::examine::Candidate;
use crate::manifest::{Manifest, ManifestEntry};
use crate::stat::{PathKind, Stat};

/// The names of every file that has more than one.
#[derive(Debug, Default)]
pub(crate) struct LinkGroups<'a> {
    before: HashMap<u64, Vec<&'a Rel>>,
    now: HashMap<u64, Vec<&'a Rel>>,
}

impl<'a> LinkGroups<'a> {
    pub fn of(manifest: &'a Manifest, candidates: &'a [Candidate]) -> Self {
        let linked_now = |one: &Candidate| one.now.as_ref().is_some_and(|now| now.stat.is_linked());
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
            if let Some(now) = one.now.as_ref().filter(|now| now.stat.kind() == PathKind::File) {
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

    /// The reason why a file cannot become what it was, if it had names outside of the tree.
    pub fn outside_names(&self, before: &ManifestEntry) -> Option<NotUndoableReason> {
        let inside = self.before.get(&before.stat.inode).map_or(0, Vec::len);
        let names = usize::try_from(before.stat.names).unwrap_or(usize::MAX);
        (before.stat.is_linked() && names > inside).then_some(NotUndoableReason::OtherNames)
    }
}

fn others<'a>(groups: &HashMap<u64, Vec<&'a Rel>>, rel: &Rel, stat: &Stat) -> Vec<&'a Rel> {
    if !stat.is_linked() {
        return Vec::new();
    }
    let group = groups.get(&stat.inode).into_iter().flatten();
    group.copied().filter(|other| *other != rel).collect()
}

/// Encodes names for the store. The separator is a zero byte, which no name contains.
pub(crate) fn list(names: &[&Rel]) -> Vec<u8> {
    names.iter().map(|rel| &***rel).collect::<Vec<&[u8]>>().join(&0)
}

/// Decodes such a list.
pub(crate) fn from_list(list: &[u8]) -> Vec<Rel> {
    list.split(|byte| *byte == 0).filter(|rel| !rel.is_empty()).map(Rel::from).collect()
}
