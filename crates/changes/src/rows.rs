//! The `lstat` and the attributes of every path of a tree, in rows of one size.
//!
//! Rows are written once and then only read, so the sessions of a workspace in one process share them.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::attributes::Attributes;
use crate::paths::{Crowded, PathReader, Paths};
use crate::stat::Stat;

#[derive(Debug, Default)]
pub(crate) struct Rows {
    paths: Paths,
    rows: Vec<PathRow>,
    /// The values that many rows share.
    classes: Vec<Class>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PathRow {
    inode: u64,
    modified: i64,
    changed: i64,
    /// The size, and in the lowest bits the number of the class.
    size_and_class: u64,
}

/// The number of bits for the class number.
const CLASS: u32 = 16;

/// Kind and permissions, owner, and other values that most files share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Class {
    mode: u32,
    uid: u32,
    gid: u32,
    names: u32,
    attributes: Option<Arc<Attributes>>,
}

impl PathRow {
    fn size(self) -> u64 {
        self.size_and_class >> CLASS
    }

    fn class(self) -> usize {
        usize::from(self.size_and_class as u16)
    }
}

impl Rows {
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn paths(&self) -> PathReader<'_> {
        self.paths.from(0)
    }

    pub fn paths_from(&self, at: usize) -> PathReader<'_> {
        self.paths.from(at)
    }

    /// The number of a path. The error is the number of the first path after it.
    pub fn find(&self, rel: &[u8]) -> Result<usize, usize> {
        self.paths.find(rel)
    }

    /// The `stat` of a row. All zeros for an unknown row.
    pub fn stat(&self, at: usize) -> Stat {
        let (inode, size, modified, changed) =
            self.rows.get(at).map_or((0, 0, 0, 0), |row| (row.inode, row.size(), row.modified, row.changed));
        let (mode, uid, gid, names) =
            self.class(at).map_or((0, 0, 0, 1), |class| (class.mode, class.uid, class.gid, class.names));
        Stat { mode, uid, gid, names, inode, size, modified, changed }
    }

    pub fn attributes(&self, at: usize) -> Option<&Arc<Attributes>> {
        self.class(at)?.attributes.as_ref()
    }

    /// Tells whether two rows of the same path are equal.
    pub fn is_same(&self, at: usize, other: &Self, there: usize) -> bool {
        self.stat(at) == other.stat(there) && self.attributes(at) == other.attributes(there)
    }

    fn class(&self, at: usize) -> Option<&Class> {
        self.classes.get(self.rows.get(at)?.class())
    }

    /// The number of paths that differ between both, counted only to just above `most`.
    fn differing(&self, other: &Self, most: usize) -> usize {
        let (mut theirs, mut there) = (other.paths(), 0);
        let mut wanted = theirs.next();
        let (mut ours, mut count) = (self.paths(), 0);
        for at in 0..self.len() {
            let Some(rel) = ours.next() else { break };
            while wanted.is_some_and(|wanted| wanted < rel) {
                (wanted, there, count) = (theirs.next(), there + 1, count + 1);
            }
            if wanted == Some(rel) {
                count += usize::from(!self.is_same(at, other, there));
                (wanted, there) = (theirs.next(), there + 1);
            } else {
                count += 1;
            }
            if count > most {
                return count;
            }
        }
        count + (other.len() - there.min(other.len()))
    }
}

/// The rows in use, by their folder.
static IN_USE: Mutex<BTreeMap<PathBuf, Weak<Rows>>> = Mutex::new(BTreeMap::new());

/// One in so many rows may differ; above that sharing is not worth it.
const FEW: usize = 16;

/// The rows that are in use for this folder, if they are almost equal to these. Otherwise these, for others to share.
pub(crate) fn shared(root: &Path, rows: &Arc<Rows>) -> Arc<Rows> {
    let held = IN_USE.lock().get(root).and_then(Weak::upgrade);
    if let Some(held) = held {
        let most = rows.len() / FEW;
        if held.differing(rows, most) <= most {
            return held;
        }
    }
    let mut in_use = IN_USE.lock();
    in_use.retain(|_, held| held.strong_count() > 0);
    in_use.insert(root.to_owned(), Arc::downgrade(rows));
    Arc::clone(rows)
}

/// Writes rows in the order of their paths.
#[derive(Debug, Default)]
pub(crate) struct RowsBuilder {
    rows: Rows,
    last: Vec<u8>,
    numbers: HashMap<Class, u16>,
}

impl RowsBuilder {
    pub fn reserve(&mut self, rows: usize) {
        self.rows.rows.reserve_exact(rows);
    }

    /// Adds a row. The error means that it does not fit, and was left out.
    pub fn push(
        &mut self,
        rel: &[u8],
        stat: &Stat,
        attributes: Option<&Arc<Attributes>>,
    ) -> Result<(), Crowded> {
        let class = self.class(stat, attributes)?;
        let size = stat.size.checked_shl(CLASS).filter(|size| size >> CLASS == stat.size).ok_or(Crowded)?;
        self.rows.paths.push(rel, &mut self.last)?;
        let (modified, changed) = (stat.modified, stat.changed);
        let row = PathRow { inode: stat.inode, modified, changed, size_and_class: size | u64::from(class) };
        self.rows.rows.push(row);
        Ok(())
    }

    fn class(&mut self, stat: &Stat, attributes: Option<&Arc<Attributes>>) -> Result<u16, Crowded> {
        let Stat { mode, uid, gid, names, .. } = *stat;
        let class = Class { mode, uid, gid, names, attributes: attributes.cloned() };
        if let Some(number) = self.numbers.get(&class) {
            return Ok(*number);
        }
        let number = u16::try_from(self.rows.classes.len()).map_err(|_| Crowded)?;
        self.rows.classes.push(class.clone());
        self.numbers.insert(class, number);
        Ok(number)
    }

    pub fn finish(mut self) -> Rows {
        self.rows.paths.shrink();
        self.rows.rows.shrink_to_fit();
        self.rows
    }
}
