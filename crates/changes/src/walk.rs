//! Traversal of the tree: every path with its `lstat`.
//!
//! Two threads take folders from one list. A folder is watched before it is read, so that the watcher reports
//! everything that happens after the reading. The decision to track a folder is made once and kept: a `CACHEDIR.TAG`
//! that a line puts into a tracked folder must not make the files in it look deleted.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;

use nix::dir::Dir;
use nix::errno::Errno;
use parking_lot::{Condvar, Mutex};

use crate::NotUndoableReason;
use crate::attributes::Attributes;
use crate::beneath::{Rel, Root, is_git, join, lstat_at, split};
use crate::manifest::{KnownEntry, Manifest};
use crate::stat::{PathKind, Stat};
use crate::watch::TreeWatcher;

/// Folders whose content can be made again, by the names that tools give them.
const MADE_AGAIN: [&[u8]; 5] = [b"node_modules", b"__pycache__", b".venv", b".tox", b".gradle"];

#[derive(Debug, Clone)]
pub(crate) struct SeenPath {
    pub rel: Rel,
    pub stat: Stat,
    /// The reason why it is not entered.
    pub skipped: Option<NotUndoableReason>,
    /// None if they are unchanged, or cannot be read.
    pub attributes: Option<Arc<Attributes>>,
}

pub(crate) struct Walk<'a> {
    pub root: &'a Root,
    pub manifest: &'a Manifest,
    pub watcher: Option<&'a TreeWatcher>,
    /// Excluded folders.
    pub excluded: &'a [Rel],
    /// The maximum number of entries.
    pub limit: usize,
}

#[derive(Default)]
struct List {
    folders: Vec<(Rel, Option<Stat>)>,
    busy: usize,
    seen: Vec<SeenPath>,
}

impl Walk<'_> {
    /// The whole tree, ordered by path.
    pub fn all(&self) -> Vec<SeenPath> {
        self.run(Rel::default(), None, self.limit)
    }

    /// A path and everything inside it, ordered by path. An empty list if nothing is at the path.
    pub fn from(&self, rel: &[u8]) -> Result<Vec<SeenPath>, Errno> {
        let Some(stat) = self.root.lstat(rel)? else { return Ok(Vec::new()) };
        Ok(match self.classify(rel.into(), stat) {
            Ok(seen) => vec![self.with_attributes(seen)],
            Err((rel, stat)) => {
                let mut inside = 0;
                self.manifest.inside(&rel, |_, _| inside += 1);
                let elsewhere = self.manifest.len() - inside;
                self.run(rel, Some(stat), self.limit.saturating_sub(elsewhere))
            }
        })
    }

    /// One path, without its content.
    pub fn single(&self, rel: &[u8]) -> Result<Option<SeenPath>, Errno> {
        let Some(stat) = self.root.lstat(rel)? else { return Ok(None) };
        Ok(Some(match self.classify(rel.into(), stat) {
            Ok(seen) => self.with_attributes(seen),
            Err((rel, stat)) => self.with_attributes(SeenPath { rel, stat, skipped: None, attributes: None }),
        }))
    }

    /// Finishes a path that need not be entered. A folder to enter is returned as the error.
    fn classify(&self, rel: Rel, stat: Stat) -> Result<SeenPath, (Rel, Stat)> {
        let (_, name) = split(&rel);
        let skipped = if is_git(name) {
            Some(NotUndoableReason::Git)
        } else if stat.kind() != PathKind::Folder {
            None
        } else if let Some(known) = self.manifest.get(&rel) {
            match known.why_skipped() {
                Some(why) => Some(why),
                None if known.stat().kind() == PathKind::Folder => return Err((rel, stat)),
                None => self.skip_reason(&rel, name),
            }
        } else {
            self.skip_reason(&rel, name)
        };
        match (skipped, stat.kind()) {
            (None, PathKind::Folder) => Err((rel, stat)),
            (skipped, _) => Ok(SeenPath { rel, stat, skipped, attributes: None }),
        }
    }

    fn with_attributes(&self, seen: SeenPath) -> SeenPath {
        let (parent, name) = split(&seen.rel);
        let folder = self.root.open_folder(parent).ok();
        let attributes = folder.and_then(|folder| self.attributes(&seen, folder.as_fd(), name));
        SeenPath { attributes, ..seen }
    }

    /// The attributes of a path that may have changed. None for an unchanged one.
    fn attributes(&self, seen: &SeenPath, folder: BorrowedFd<'_>, name: &[u8]) -> Option<Arc<Attributes>> {
        let is_known = |known: KnownEntry<'_>| {
            let stat = known.stat();
            !known.is_racy() && stat.is_same(&seen.stat) && stat.names == seen.stat.names
        };
        let known = seen.skipped.is_some() || self.manifest.get(&seen.rel).is_some_and(is_known);
        if known { None } else { Attributes::read(folder, name, &seen.stat) }
    }

    fn skip_reason(&self, rel: &Rel, name: &[u8]) -> Option<NotUndoableReason> {
        if self.excluded.contains(rel) {
            Some(NotUndoableReason::Excluded)
        } else if MADE_AGAIN.contains(&name) {
            Some(NotUndoableReason::Cache)
        } else {
            None
        }
    }

    /// `limit` is the maximum number of entries to find.
    fn run(&self, rel: Rel, stat: Option<Stat>, limit: usize) -> Vec<SeenPath> {
        // A thread costs more than the walk of a small subtree. Only the whole tree is known to be worth it.
        let threads = if stat.is_none() { 2 } else { 1 };
        let list = Mutex::new(List { folders: vec![(rel, stat)], ..List::default() });
        let ready = Condvar::new();
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|| self.work(&list, &ready, limit));
            }
            self.work(&list, &ready, limit);
        });
        let mut seen = list.into_inner().seen;
        seen.sort_unstable_by(|a, b| a.rel.cmp(&b.rel));
        seen
    }

    fn work(&self, list: &Mutex<List>, ready: &Condvar, limit: usize) {
        let mut held = list.lock();
        loop {
            if let Some((rel, stat)) = held.folders.pop() {
                held.busy += 1;
                let room = limit.saturating_sub(held.seen.len());
                drop(held);
                let (seen, folders) = self.folder(rel, stat, room);
                held = list.lock();
                held.busy -= 1;
                held.seen.extend(seen);
                held.folders.extend(folders);
                ready.notify_all();
            } else if held.busy == 0 {
                return;
            } else {
                ready.wait(&mut held);
            }
        }
    }

    /// Lists one folder: the entries in it and itself, and the folders to enter next. Only the root has no `stat`; it
    /// is not in the list unless it is skipped.
    fn folder(&self, rel: Rel, stat: Option<Stat>, room: usize) -> (Vec<SeenPath>, Vec<(Rel, Option<Stat>)>) {
        if let Some(watcher) = self.watcher {
            watcher.add(&self.root.folder_path(&rel), &rel);
        }
        let skip = |rel: Rel, why: NotUndoableReason| {
            let stat = stat.or_else(|| {
                let folder = self.root.open_folder(&rel).ok()?;
                lstat_at(folder.as_fd(), b".").ok()
            });
            let seen = stat.map(|stat| SeenPath { rel, stat, skipped: Some(why), attributes: None });
            (seen.into_iter().collect(), Vec::new())
        };
        let (folder, names) = match self.names(&rel) {
            Ok(read) => read,
            // It existed a moment ago, and is not a folder any more: the watcher or the next walk reports that.
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => return (Vec::new(), Vec::new()),
            Err(_) => return skip(rel, NotUndoableReason::Unreadable),
        };
        let is_new = stat.is_some()
            && self.manifest.get(&rel).is_none_or(|known| known.stat().kind() != PathKind::Folder);
        if is_new && names.iter().any(|name| **name == *b"CACHEDIR.TAG") {
            return skip(rel, NotUndoableReason::Cache);
        }
        if names.len() > room {
            return skip(rel, NotUndoableReason::TooMany);
        }
        let mut seen = Vec::with_capacity(names.len() + 1);
        let mut folders = Vec::new();
        for name in names {
            let stat = match lstat_at(folder.as_fd(), &name) {
                Ok(stat) => stat,
                Err(Errno::ENOENT) => continue,
                // A folder that can be listed but not entered.
                Err(_) => return skip(rel, NotUndoableReason::Unreadable),
            };
            match self.classify(join(&rel, &name), stat) {
                Ok(one) => {
                    let attributes = self.attributes(&one, folder.as_fd(), &name);
                    seen.push(SeenPath { attributes, ..one });
                }
                Err((rel, stat)) => folders.push((rel, Some(stat))),
            }
        }
        seen.extend(stat.map(|stat| {
            let one = SeenPath { rel, stat, skipped: None, attributes: None };
            SeenPath { attributes: self.attributes(&one, folder.as_fd(), b"."), ..one }
        }));
        (seen, folders)
    }

    fn names(&self, rel: &[u8]) -> Result<(Dir, Vec<Rel>), Errno> {
        let mut folder = Dir::from_fd(self.root.open_folder(rel)?)?;
        let mut names = Vec::new();
        for entry in folder.iter() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(Rel::from(name));
            }
        }
        Ok((folder, names))
    }
}
