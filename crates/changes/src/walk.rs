//! Every path of the tree with what `lstat` says of it.
//!
//! Two threads take folders from one list. A folder is watched before it is read, so that whatever comes after the
//! reading is told by the watcher. What a folder is, tracked or not, is decided when it is first met and kept: a
//! `CACHEDIR.TAG` that a line puts into a tracked folder must not make the files in it look deleted.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;

use nix::dir::Dir;
use nix::errno::Errno;
use parking_lot::{Condvar, Mutex};

use crate::Why;
use crate::attributes::Attributes;
use crate::beneath::{Rel, Root, is_git, join, lstat_at, split};
use crate::manifest::{Known, Manifest};
use crate::stat::{Kind, Stat};
use crate::watch::Watcher;

/// Folders whose content is made from something else, by the name that tools give them.
const MADE_AGAIN: [&[u8]; 5] = [b"node_modules", b"__pycache__", b".venv", b".tox", b".gradle"];

#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub rel: Rel,
    pub stat: Stat,
    /// Why it is not looked into.
    pub skipped: Option<Why>,
    /// None where they are as they were, or may not be read.
    pub attributes: Option<Arc<Attributes>>,
}

pub(crate) struct Walk<'a> {
    pub root: &'a Root,
    pub manifest: &'a Manifest,
    pub watcher: Option<&'a Watcher>,
    /// Folders that are kept out.
    pub excluded: &'a [Rel],
    /// The most entries there may be.
    pub limit: usize,
}

#[derive(Default)]
struct List {
    folders: Vec<(Rel, Option<Stat>)>,
    busy: usize,
    seen: Vec<Seen>,
}

impl Walk<'_> {
    /// The whole tree, ordered by path.
    pub fn all(&self) -> Vec<Seen> {
        self.run(Rel::default(), None, self.limit)
    }

    /// A path and everything inside it, ordered by path. Nothing there is an empty list.
    pub fn from(&self, rel: &[u8]) -> Result<Vec<Seen>, Errno> {
        let Some(stat) = self.root.lstat(rel)? else { return Ok(Vec::new()) };
        Ok(match self.sort_out(rel.into(), stat) {
            Ok(seen) => vec![self.with_attributes(seen)],
            Err((rel, stat)) => {
                let mut inside = 0;
                self.manifest.inside(&rel, |_, _| inside += 1);
                let elsewhere = self.manifest.len() - inside;
                self.run(rel, Some(stat), self.limit.saturating_sub(elsewhere))
            }
        })
    }

    /// One path, not what is inside it.
    pub fn only(&self, rel: &[u8]) -> Result<Option<Seen>, Errno> {
        let Some(stat) = self.root.lstat(rel)? else { return Ok(None) };
        Ok(Some(match self.sort_out(rel.into(), stat) {
            Ok(seen) => self.with_attributes(seen),
            Err((rel, stat)) => self.with_attributes(Seen { rel, stat, skipped: None, attributes: None }),
        }))
    }

    /// What needs no look inside; a folder that does comes back as the error.
    fn sort_out(&self, rel: Rel, stat: Stat) -> Result<Seen, (Rel, Stat)> {
        let (_, name) = split(&rel);
        let skipped = if is_git(name) {
            Some(Why::Git)
        } else if stat.kind() != Kind::Folder {
            None
        } else if let Some(known) = self.manifest.get(&rel) {
            match known.why_skipped() {
                Some(why) => Some(why),
                None if known.stat().kind() == Kind::Folder => return Err((rel, stat)),
                None => self.rule(&rel, name),
            }
        } else {
            self.rule(&rel, name)
        };
        match (skipped, stat.kind()) {
            (None, Kind::Folder) => Err((rel, stat)),
            (skipped, _) => Ok(Seen { rel, stat, skipped, attributes: None }),
        }
    }

    fn with_attributes(&self, seen: Seen) -> Seen {
        let (parent, name) = split(&seen.rel);
        let folder = self.root.open_folder(parent).ok();
        let attributes = folder.and_then(|folder| self.attributes(&seen, folder.as_fd(), name));
        Seen { attributes, ..seen }
    }

    /// The attributes of what may be another thing than before.
    fn attributes(&self, seen: &Seen, folder: BorrowedFd<'_>, name: &[u8]) -> Option<Arc<Attributes>> {
        let is_known = |known: Known<'_>| {
            let stat = known.stat();
            !known.racy() && stat.same(&seen.stat) && stat.names == seen.stat.names
        };
        let known = seen.skipped.is_some() || self.manifest.get(&seen.rel).is_some_and(is_known);
        if known { None } else { Attributes::read(folder, name, &seen.stat) }
    }

    fn rule(&self, rel: &Rel, name: &[u8]) -> Option<Why> {
        if self.excluded.contains(rel) {
            Some(Why::Excluded)
        } else if MADE_AGAIN.contains(&name) {
            Some(Why::Cache)
        } else {
            None
        }
    }

    /// `limit` is how many entries may be found.
    fn run(&self, rel: Rel, stat: Option<Stat>, limit: usize) -> Vec<Seen> {
        // A thread costs more than the walk of a small subtree; only the whole tree is known to be worth it.
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

    /// One folder, what is in it, and the folders to go on with. Only the root has no `stat`, and no place in the list
    /// unless it is skipped.
    fn folder(&self, rel: Rel, stat: Option<Stat>, room: usize) -> (Vec<Seen>, Vec<(Rel, Option<Stat>)>) {
        if let Some(watcher) = self.watcher {
            watcher.add(&self.root.folder_path(&rel), &rel);
        }
        let skip = |rel: Rel, why: Why| {
            let stat = stat.or_else(|| {
                let folder = self.root.open_folder(&rel).ok()?;
                lstat_at(folder.as_fd(), b".").ok()
            });
            let seen = stat.map(|stat| Seen { rel, stat, skipped: Some(why), attributes: None });
            (seen.into_iter().collect(), Vec::new())
        };
        let (folder, names) = match self.names(&rel) {
            Ok(read) => read,
            // It was there a moment ago, and is no folder any more: the watcher tells, or the next walk.
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => return (Vec::new(), Vec::new()),
            Err(_) => return skip(rel, Why::Unreadable),
        };
        let is_new =
            stat.is_some() && self.manifest.get(&rel).is_none_or(|known| known.stat().kind() != Kind::Folder);
        if is_new && names.iter().any(|name| **name == *b"CACHEDIR.TAG") {
            return skip(rel, Why::Cache);
        }
        if names.len() > room {
            return skip(rel, Why::TooMany);
        }
        let mut seen = Vec::with_capacity(names.len() + 1);
        let mut folders = Vec::new();
        for name in names {
            let stat = match lstat_at(folder.as_fd(), &name) {
                Ok(stat) => stat,
                Err(Errno::ENOENT) => continue,
                // A folder that may be listed but not entered.
                Err(_) => return skip(rel, Why::Unreadable),
            };
            match self.sort_out(join(&rel, &name), stat) {
                Ok(one) => {
                    let attributes = self.attributes(&one, folder.as_fd(), &name);
                    seen.push(Seen { attributes, ..one });
                }
                Err((rel, stat)) => folders.push((rel, Some(stat))),
            }
        }
        seen.extend(stat.map(|stat| {
            let one = Seen { rel, stat, skipped: None, attributes: None };
            Seen { attributes: self.attributes(&one, folder.as_fd(), b"."), ..one }
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
