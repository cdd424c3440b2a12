//! The names of a file that has several (hard links), as they are and as they should be.

use lathe_blobs::Blobs;
use lathe_protocol::Digest;

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
        let list = |digest: &Digest| blobs.get(digest).ok().flatten().map(|bytes| from_list(&bytes));
        let of =
            |state: Option<&State>| state.and_then(|state| list(state.links.as_ref()?)).unwrap_or_default();
        Self { root, inode: inode(root, rel), now: of(now), want: of(want) }
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

fn inode(root: &Root, rel: &[u8]) -> Option<u64> {
    let stat = root.lstat(rel).ok().flatten()?;
    (stat.kind() == Kind::File).then_some(stat.inode)
}
