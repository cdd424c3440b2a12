//! One changed path, and the net effect of a sequence of changes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use lathe_protocol::{CallId, Change, Digest};

use crate::NotUndoableReason;
use crate::stat::{FILE_BITS, PathKind};

/// A changed path: protocol's `Change`, with the path in its own bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeChange {
    pub path: PathBuf,
    /// None if nothing was there. The content of a link is its target, that of a folder is empty.
    pub before: Option<Digest>,
    pub after: Option<Digest>,
    /// The whole `st_mode` after the change, or before it if the path is gone.
    pub mode: u32,
    /// The mode before, if it was another one.
    pub mode_before: Option<u32>,
    /// Owner and extended attributes after the change, or before it if the path is gone. None if they are those of an
    /// ordinary file of the user, or not known.
    pub attributes: Option<Digest>,
    /// The attributes before, if they were others.
    pub attributes_before: Option<Digest>,
    /// The other names of the file after the change (hard links), as a list in the store.
    pub links: Option<Digest>,
    pub links_before: Option<Digest>,
}

/// A path that changed, or may change, and cannot be restored.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NotUndoable {
    pub path: PathBuf,
    pub why: NotUndoableReason,
}

/// The state of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathState {
    pub digest: Digest,
    /// The whole `st_mode`.
    pub mode: u32,
    /// Owner and extended attributes. None if they are not known, or those of an ordinary file of the user.
    pub attributes: Option<Digest>,
    /// The other names of the file, as a list in the store.
    pub links: Option<Digest>,
}

impl PathState {
    /// Modes of older records have no file type, and mean regular files.
    pub fn new(digest: Digest, mode: u32) -> Self {
        let mode = if PathKind::of(mode) == PathKind::File { mode | FILE_BITS } else { mode };
        Self { digest, mode, attributes: None, links: None }
    }

    /// Tells whether content, mode and the known attributes are equal. Other names of the file may differ.
    pub fn agrees(&self, other: &Self) -> bool {
        let same_attributes = match (&self.attributes, &other.attributes) {
            (Some(own), Some(other)) => own == other,
            (None, _) | (_, None) => true,
        };
        self.digest == other.digest && self.mode == other.mode && same_attributes
    }
}

/// [`PathState::agrees`] for paths at which nothing may be. Two missing paths agree.
pub(crate) fn agree(a: Option<&PathState>, b: Option<&PathState>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.agrees(b),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// A path that is to be restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreTarget {
    pub path: PathBuf,
    /// The state that the changes left: only this may be replaced.
    pub now: Option<PathState>,
    pub want: Option<PathState>,
    /// True if the path was changed by others between two of the changes. Restoring would undo that too.
    pub foreign: bool,
}

impl RestoreTarget {
    /// The change that restoring amounts to.
    pub fn as_change(&self) -> TreeChange {
        TreeChange::new(self.path.clone(), self.now.clone(), self.want.clone())
    }

    /// The target that makes a change once more.
    pub fn of(change: &TreeChange) -> Self {
        let path = change.path.clone();
        Self { path, now: change.state_before(), want: change.state_after(), foreign: false }
    }
}

impl TreeChange {
    pub(crate) fn new(path: PathBuf, before: Option<PathState>, after: Option<PathState>) -> Self {
        let mode_before = before.as_ref().map(|state| state.mode);
        let mode = after.as_ref().map(|state| state.mode).or(mode_before).unwrap_or_default();
        let of = |state: &Option<PathState>| state.as_ref().and_then(|state| state.attributes.clone());
        let (attributes_before, attributes) = (of(&before), of(&after));
        let attributes = attributes.or_else(|| attributes_before.clone());
        let links = |state: &Option<PathState>| state.as_ref().and_then(|state| state.links.clone());
        Self {
            path,
            links_before: links(&before),
            links: links(&after),
            before: before.map(|state| state.digest),
            mode_before: mode_before.filter(|before| *before != mode),
            after: after.map(|state| state.digest),
            mode,
            attributes_before: attributes_before.filter(|before| Some(before) != attributes.as_ref()),
            attributes,
        }
    }

    /// The part of the change that removed what was there. None if nothing was there.
    pub fn removal(&self) -> Option<Self> {
        let before = self.state_before()?;
        Some(Self::new(self.path.clone(), Some(before), None))
    }

    pub fn state_before(&self) -> Option<PathState> {
        let mode = self.mode_before.unwrap_or(self.mode);
        let attributes = self.attributes_before.as_ref().or(self.attributes.as_ref()).cloned();
        let links = self.links_before.clone();
        self.before.clone().map(|digest| PathState { attributes, links, ..PathState::new(digest, mode) })
    }

    pub fn state_after(&self) -> Option<PathState> {
        let (attributes, links) = (self.attributes.clone(), self.links.clone());
        self.after.clone().map(|digest| PathState { attributes, links, ..PathState::new(digest, self.mode) })
    }

    /// The record for the journal.
    pub fn into_change(self, by: CallId) -> Change {
        let raw_path = self.path.to_str().is_none().then(|| to_hex(&self.path));
        Change {
            path: self.path.to_string_lossy().into_owned(),
            before: self.before,
            after: self.after,
            mode: self.mode,
            mode_before: self.mode_before,
            attributes: self.attributes,
            attributes_before: self.attributes_before,
            links: self.links,
            links_before: self.links_before,
            raw_path,
            by,
        }
    }
}

impl From<&Change> for TreeChange {
    fn from(change: &Change) -> Self {
        let raw = change.raw_path.as_deref().and_then(from_hex);
        Self {
            path: raw.unwrap_or_else(|| Path::new(&change.path).to_owned()),
            before: change.before.clone(),
            after: change.after.clone(),
            mode: change.mode,
            mode_before: change.mode_before,
            attributes: change.attributes.clone(),
            attributes_before: change.attributes_before.clone(),
            links: change.links.clone(),
            links_before: change.links_before.clone(),
        }
    }
}

pub(crate) fn to_hex(path: &Path) -> String {
    path.as_os_str().as_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn from_hex(hex: &str) -> Option<PathBuf> {
    let pairs = hex.as_bytes().chunks(2);
    let bytes = pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    Some(OsString::from_vec(bytes.collect::<Option<_>>()?).into())
}

/// The net effect of undoing `changes`, newest last: for each path that is not in its first state, the earliest and
/// the latest state. Ordered by path.
pub fn net(changes: &[TreeChange]) -> Vec<RestoreTarget> {
    let mut paths: BTreeMap<&Path, RestoreTarget> = BTreeMap::new();
    for change in changes {
        let (before, after) = (change.state_before(), change.state_after());
        match paths.get_mut(change.path.as_path()) {
            Some(wanted) => {
                wanted.foreign |= !agree(wanted.now.as_ref(), before.as_ref());
                wanted.now = after;
            }
            None => {
                let path = change.path.clone();
                paths.insert(&change.path, RestoreTarget { path, now: after, want: before, foreign: false });
            }
        }
    }
    paths.into_values().filter(|wanted| wanted.now != wanted.want).collect()
}
