//! The names of a file that has several (hard links): the current and the wanted ones.

use lathe_blobs::Blobs;

use super::disk::found_at;
use crate::beneath::{Rel, Root};
use crate::change::PathState;
use crate::hard_links::from_list;
use crate::stat::PathKind;

/// The names of the file at one path, except that path.
pub(super) struct LinkNames<'a> {
    root: &'a Root,
    /// The inode of the file at the path.
    inode: Option<u64>,
    /// The names that the changes left, and the wanted ones.
    now: Vec<Rel>,
    want: Vec<Rel>,
}

impl<'a> LinkNames<'a> {
    pub fn of(
        root: &'a Root,
        blobs: &Blobs,
        rel: &Rel,
        now: Option<&PathState>,
        want: Option<&PathState>,
    ) -> Self {
        let of = |state: Option<&PathState>| state.map(|state| listed(blobs, state)).unwrap_or_default();
        Self { root, inode: inode(root, rel), now: of(now), want: of(want) }
    }

    /// Adds names whose own records list this one. A record lists the names at the moment when it was made: of two
    /// names of a file the one that did not change may still list a third that is gone.
    pub fn wanting(mut self, partners: Option<&Vec<Rel>>) -> Self {
        self.want.extend(partners.into_iter().flatten().cloned());
        self
    }

    /// Tells whether the file at the path already has one of the wanted names.
    pub fn wanted_one_is_same(&self) -> bool {
        self.want.iter().any(|rel| self.is_same(rel))
    }

    /// Tells whether the names need no work: the file has a wanted one, or none that it should not have and none to
    /// adopt.
    pub fn are_as_wanted(&self) -> bool {
        if self.wanted_one_is_same() {
            return true;
        }
        let is_there = |rel: &Rel| inode(self.root, rel).is_some();
        !self.want.iter().any(is_there) && !self.now.iter().any(|rel| self.is_same(rel))
    }

    /// A wanted name that leads to the wanted file.
    pub fn other(&self, want: &PathState) -> Option<Rel> {
        let is_wanted = |rel: &&Rel| {
            inode(self.root, rel).is_some()
                && found_at(self.root, rel).ok().flatten().is_some_and(|found| found.agrees(want))
        };
        self.want.iter().find(is_wanted).cloned()
    }

    fn is_same(&self, rel: &Rel) -> bool {
        self.inode.is_some() && inode(self.root, rel) == self.inode
    }
}

/// Tells whether the names of the file at a path are the wanted ones.
pub(super) fn are_as_wanted(
    root: &Root,
    blobs: &Blobs,
    rel: &Rel,
    now: Option<&PathState>,
    want: Option<&PathState>,
) -> bool {
    let links = |state: Option<&PathState>| state.and_then(|state| state.links.clone());
    if links(now).is_none() && links(want).is_none() {
        return true;
    }
    let names = LinkNames::of(root, blobs, rel, now, want);
    let available = want.is_some_and(|want| names.other(want).is_some());
    names.are_as_wanted() || names.now.is_empty() && !available
}

/// The names that a state lists besides its own.
pub(super) fn listed(blobs: &Blobs, state: &PathState) -> Vec<Rel> {
    let list = state.links.as_ref().and_then(|digest| blobs.get(digest).ok().flatten());
    list.map(|bytes| from_list(&bytes)).unwrap_or_default()
}

fn inode(root: &Root, rel: &[u8]) -> Option<u64> {
    let stat = root.lstat(rel).ok().flatten()?;
    (stat.kind() == PathKind::File).then_some(stat.inode)
}
