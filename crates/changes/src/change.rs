//! One changed path, and what a sequence of them amounts to.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use lathe_protocol::{CallId, Change, Digest};

use crate::Why;
use crate::stat::{FILE_BITS, Kind};

/// A changed path, in the meaning of protocol's `Change`, with the path as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeChange {
    pub path: PathBuf,
    /// None: there was nothing. The content of a link is its target, that of a folder is empty.
    pub before: Option<Digest>,
    pub after: Option<Digest>,
    /// The whole `st_mode` afterwards, or of what is gone.
    pub mode: u32,
    /// The mode before, where it was another one.
    pub mode_before: Option<u32>,
    /// Owner and extended attributes afterwards, or of what is gone. None where they are those of any file of the user's,
    /// or not known.
    pub attributes: Option<Digest>,
    /// The ones before, where they were others.
    pub attributes_before: Option<Digest>,
    /// The other names that the file has afterwards (hard links), as a list in the store.
    pub links: Option<Digest>,
    pub links_before: Option<Digest>,
}

/// A path that changed, or may change, and cannot be brought back.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NotUndoable {
    pub path: PathBuf,
    pub why: Why,
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    pub digest: Digest,
    /// The whole `st_mode`.
    pub mode: u32,
    /// Owner and extended attributes. None where they are not known, or those of any file of the user's.
    pub attributes: Option<Digest>,
    /// The file's other names.
    pub links: Option<Digest>,
}

impl State {
    /// Modes of older records have no type, and mean files.
    pub fn new(digest: Digest, mode: u32) -> Self {
        let mode = if Kind::of(mode) == Kind::File { mode | FILE_BITS } else { mode };
        Self { digest, mode, attributes: None, links: None }
    }

    /// Tells whether content, mode and what is known of the attributes are the same. Other names may come and go.
    pub fn agrees(&self, other: &Self) -> bool {
        let same_attributes = match (&self.attributes, &other.attributes) {
            (Some(own), Some(other)) => own == other,
            (None, _) | (_, None) => true,
        };
        self.digest == other.digest && self.mode == other.mode && same_attributes
    }
}

/// The same for what may be nothing.
pub(crate) fn agree(a: Option<&State>, b: Option<&State>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.agrees(b),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// A path that should be as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub path: PathBuf,
    /// What the changes left there: only that may be replaced.
    pub now: Option<State>,
    pub want: Option<State>,
    /// Somebody else changed the path between two of the changes. Going back would undo that too.
    pub foreign: bool,
}

impl Wanted {
    /// The change that going there is.
    pub fn as_change(&self) -> TreeChange {
        TreeChange::new(self.path.clone(), self.now.clone(), self.want.clone())
    }

    /// The other way round.
    pub fn of(change: &TreeChange) -> Self {
        let path = change.path.clone();
        Self { path, now: change.state_before(), want: change.state_after(), foreign: false }
    }
}

impl TreeChange {
    pub(crate) fn new(path: PathBuf, before: Option<State>, after: Option<State>) -> Self {
        let mode_before = before.as_ref().map(|state| state.mode);
        let mode = after.as_ref().map(|state| state.mode).or(mode_before).unwrap_or_default();
        let of = |state: &Option<State>| state.as_ref().and_then(|state| state.attributes.clone());
        let (attributes_before, attributes) = (of(&before), of(&after));
        let attributes = attributes.or_else(|| attributes_before.clone());
        let links = |state: &Option<State>| state.as_ref().and_then(|state| state.links.clone());
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

    /// The part of the change by which what was there went away. None if there was nothing.
    pub fn removal(&self) -> Option<Self> {
        let before = self.state_before()?;
        Some(Self::new(self.path.clone(), Some(before), None))
    }

    pub fn state_before(&self) -> Option<State> {
        let mode = self.mode_before.unwrap_or(self.mode);
        let attributes = self.attributes_before.as_ref().or(self.attributes.as_ref()).cloned();
        let links = self.links_before.clone();
        self.before.clone().map(|digest| State { attributes, links, ..State::new(digest, mode) })
    }

    pub fn state_after(&self) -> Option<State> {
        let (attributes, links) = (self.attributes.clone(), self.links.clone());
        self.after.clone().map(|digest| State { attributes, links, ..State::new(digest, self.mode) })
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

/// What the way back through `changes`, newest last, amounts to: for each path that is not where it began, the earliest
/// state and the latest. Ordered by path.
pub fn net(changes: &[TreeChange]) -> Vec<Wanted> {
    let mut paths: BTreeMap<&Path, Wanted> = BTreeMap::new();
    for change in changes {
        let (before, after) = (change.state_before(), change.state_after());
        match paths.get_mut(change.path.as_path()) {
            Some(wanted) => {
                wanted.foreign |= !agree(wanted.now.as_ref(), before.as_ref());
                wanted.now = after;
            }
            None => {
                let path = change.path.clone();
                paths.insert(&change.path, Wanted { path, now: after, want: before, foreign: false });
            }
        }
    }
    paths.into_values().filter(|wanted| wanted.now != wanted.want).collect()
}
