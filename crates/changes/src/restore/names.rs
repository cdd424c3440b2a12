//! The names of a file that has several (hard links), as they are and as they should be.

use lathe_blobs::Blobs;

use super::disk::found_at;
use crate::beneath::{Rel, Root};
use crate::change::State;
use crate::links::from_list;
use crate::stat::Kind;

/// The names beside one path.
pub(super) struct Names<'a> {
    root: &'a Root,
    /// The file that is at the path.
    inode: Option<u64>,
    /// The names that the changes left, and those that are wanted.
    now: Vec<Rel>,
    want: Vec<Rel>,
}

impl<'a> Names<'a> {
    pub fn of(root: &'a Root, blobs: &Blobs, rel: &Rel, now: Option<&State>, want: Option<&State>) -> Self {
        let of = |state: Option<&State>| state.map(|state| listed(blobs, state)).unwrap_or_default();
        Self { root, inode: inode(root, rel), now: of(now), want: of(want) }
    }

    /// Adds names that are wanted because their own records name this one. A record tells the names of the moment it was made
    /// at: of two names of a file the one that did not change may still list a third that is gone.
    pub fn wanting(mut self, partners: Option<&Vec<Rel>>) -> Self {
        self.want.extend(partners.into_iter().flatten().cloned());
        self
    }

    /// Tells whether the file that is there has one of the wanted names already.
    pub fn wanted_one_is_same(&self) -> bool {
        self.want.iter().any(|rel| self.is_same(rel))
    }

    /// Tells whether nothing has to be done about names: it has them, or none that it should not have and none to take.
    pub fn are_as_wanted(&self) -> bool {
        if self.wanted_one_is_same() {
            return true;
        }
        let is_there = |rel: &Rel| inode(self.root, rel).is_some();
        !self.want.iter().any(is_there) && !self.now.iter().any(|rel| self.is_same(rel))
    }

    /// A wanted name at which the wanted file is.
    pub fn other(&self, want: &State) -> Option<Rel> {
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

/// Tells whether the names of what is at a path are those that are wanted.
pub(super) fn fit(root: &Root, blobs: &Blobs, rel: &Rel, now: Option<&State>, want: Option<&State>) -> bool {
    let links = |state: Option<&State>| state.and_then(|state| state.links.clone());
    if links(now).is_none() && links(want).is_none() {
        return true;
    }
    let names = Names::of(root, blobs, rel, now, want);
    let available = want.is_some_and(|want| names.other(want).is_some());
    names.are_as_wanted() || names.now.is_empty() && !available
}

/// The names that a state lists beside its own.
pub(super) fn listed(blobs: &Blobs, state: &State) -> Vec<Rel> {
    let list = state.links.as_ref().and_then(|digest| blobs.get(digest).ok().flatten());
    list.map(|bytes| from_list(&bytes)).unwrap_or_default()
}

fn inode(root: &Root, rel: &[u8]) -> Option<u64> {
    let stat = root.lstat(rel).ok().flatten()?;
    (stat.kind() == Kind::File).then_some(stat.inode)
}
