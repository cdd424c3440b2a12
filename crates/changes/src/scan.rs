//! Selection of the paths to examine after a line: as few as the watcher allows.

use std::collections::{BTreeMap, HashSet};

use nix::errno::Errno;

use crate::beneath::{Rel, Root, is_inside, split};
use crate::examine::Candidate;
use crate::manifest::KnownEntry;
use crate::stat::{PathKind, Stat};
use crate::tracker::{ScanScope, start_watcher};
use crate::walk::{SeenPath, Walk};
use crate::watch::{Depth, Touched};
use crate::{ChangesError, Tracker};

impl Tracker {
    /// The paths to examine.
    pub(crate) fn scan(&mut self, scope: ScanScope) -> Result<Vec<Candidate>, ChangesError> {
        let settled = !std::mem::replace(&mut self.unsettled, true);
        // A line may have removed the root itself: then everything is gone.
        self.root = Root::open_or_gone(&self.options.root)?;
        let inode = self.root.inode().map_err(|error| ChangesError::io("inspect", &self.root.path, error))?;
        let same_root = std::mem::replace(&mut self.inode, inode) == inode;
        let touched = match &self.watcher {
            Some(watcher) => watcher.drain(),
            None => Touched::Unknown,
        };
        match (scope, touched) {
            (ScanScope::Touched, Touched::Paths(paths)) if settled && same_root => {
                // A path that cannot be reached is explained only by a scan of the folders above it.
                Ok(self.scan_paths(paths).unwrap_or_else(|_| self.scan_all()))
            }
            (_, touched) => {
                if self.watcher.is_some() && (matches!(touched, Touched::Unknown) || !same_root) {
                    self.watcher = start_watcher(self.options.watch);
                }
                let candidates = self.scan_all();
                self.check_watcher();
                Ok(candidates)
            }
        }
    }

    fn scan_all(&self) -> Vec<Candidate> {
        self.changed_at(self.walk().all(), &[])
    }

    pub(crate) fn scan_paths(&self, mut paths: BTreeMap<Rel, Depth>) -> Result<Vec<Candidate>, Errno> {
        for rel in self.manifest.linked() {
            paths.entry(rel.clone()).or_insert(Depth::One);
        }
        let walk = self.walk();
        let mut candidates: BTreeMap<Rel, Candidate> = BTreeMap::new();
        for (rel, depth) in &paths {
            if has_ancestor(&paths, rel) {
                continue;
            }
            let is_folder = |kind: PathKind| kind == PathKind::Folder;
            let known_folder = self.manifest.get(rel).is_some_and(|known| is_folder(known.stat().kind()));
            let now = walk.single(rel)?;
            let now_folder = now.as_ref().is_some_and(|now| is_folder(now.stat.kind()));
            if *depth == Depth::Tree || known_folder != now_folder {
                let found = self.changed_at(walk.from(rel)?, rel);
                candidates.extend(found.into_iter().map(|one| (one.rel.clone(), one)));
            } else {
                candidates.entry(rel.clone()).or_insert_with(|| Candidate::new(rel.clone(), now));
            }
        }
        self.add_other_names(&walk, &mut candidates)?;
        Ok(candidates.into_values().collect())
    }

    /// Adds the other names of files that got a second name: such a file may have been changed through it, and the
    /// kernel reports nothing of that at the first.
    fn add_other_names(&self, walk: &Walk<'_>, to: &mut BTreeMap<Rel, Candidate>) -> Result<(), Errno> {
        let is_known = |rel: &Rel, now: &Stat| {
            let stat = self.manifest.get(rel).map(KnownEntry::stat);
            stat.is_some_and(|stat| stat.is_linked() && stat.inode == now.inode)
        };
        let stats = to.values().filter_map(|one| Some((&one.rel, one.now.as_ref()?.stat)));
        let inodes: HashSet<u64> = stats
            .filter(|(rel, stat)| stat.is_linked() && !is_known(rel, stat))
            .map(|(_, stat)| stat.inode)
            .collect();
        if inodes.is_empty() {
            return Ok(());
        }
        let mut others: Vec<Rel> = Vec::new();
        self.manifest.visit(|rel, known| {
            let stat = known.stat();
            if inodes.contains(&stat.inode) && stat.kind() == PathKind::File && !to.contains_key(rel) {
                others.push(rel.into());
            }
        });
        for rel in others {
            let now = walk.single(&rel)?;
            to.insert(rel.clone(), Candidate::new(rel, now));
        }
        Ok(())
    }

    /// The changed paths seen at `scope` and inside it, and the known paths there that were not seen.
    fn changed_at(&self, seen: Vec<SeenPath>, scope: &[u8]) -> Vec<Candidate> {
        let is_changed = |one: &SeenPath| {
            self.manifest.get(&one.rel).is_none_or(|known| {
                let stat = known.stat();
                known.is_racy()
                    || !stat.is_same(&one.stat)
                    || stat.names != one.stat.names
                    || one.skipped.is_some() != known.why_skipped().is_some()
            })
        };
        // Paths in a folder that is no longer entered are not known to be gone.
        let closed: Vec<&Rel> = seen.iter().filter(|one| one.skipped.is_some()).map(|one| &one.rel).collect();
        let mut gone: Vec<Candidate> = Vec::new();
        let mut look_for = |rel: &[u8]| {
            let is_seen = seen.binary_search_by(|one| (*one.rel).cmp(rel)).is_ok();
            if !is_seen && !closed.iter().any(|folder| is_inside(rel, folder)) {
                gone.push(Candidate::new(rel.into(), None));
            }
        };
        if self.manifest.get(scope).is_some() {
            look_for(scope);
        }
        self.manifest.inside(scope, |rel, _| look_for(rel));
        let changed = seen.into_iter().filter(is_changed);
        gone.extend(changed.map(|one| Candidate::new(one.rel.clone(), Some(one))));
        gone
    }
}

/// Tells whether a scan of a folder above covers this path.
fn has_ancestor(paths: &BTreeMap<Rel, Depth>, rel: &[u8]) -> bool {
    let mut above = split(rel).0;
    while !above.is_empty() {
        if paths.get(above) == Some(&Depth::Tree) {
            return true;
        }
        above = split(above).0;
    }
    false
}
