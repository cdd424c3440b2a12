//! Watches the tree for paths to scan after a line.
//!
//! Inotify watches every tracked folder. It is only trusted to narrow the scan: whenever it may have missed something
//! (its queue overflowed, the limit of watches is reached, two paths lead to one folder), everything is scanned. The
//! events wait in the kernel until they are read; no thread of ours is needed. The changes that it cannot report are
//! listed in [`Tracker::full_check`](crate::Tracker::full_check).

use std::collections::BTreeMap;

use crate::beneath::Rel;

/// The depth of a scan at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Depth {
    /// The path alone.
    One,
    /// A folder came or went: the path and everything inside it.
    Tree,
}

#[derive(Debug)]
pub(crate) enum Touched {
    Paths(BTreeMap<Rel, Depth>),
    /// The changes are unknown. The watcher has to be replaced.
    Unknown,
}

pub(crate) use system::TreeWatcher;

#[cfg(target_os = "linux")]
mod system {
    use parking_lot::Mutex;
    use std::collections::{BTreeMap, HashMap};
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};

    use nix::errno::Errno;
    use nix::sys::inotify::{AddWatchFlags as Flag, InitFlags, Inotify, InotifyEvent, WatchDescriptor};

    use super::{Depth, Touched};
    use crate::beneath::{Rel, is_inside, join};

    const COMES_OR_GOES: Flag =
        Flag::IN_CREATE.union(Flag::IN_DELETE).union(Flag::IN_MOVED_FROM).union(Flag::IN_MOVED_TO);

    /// `IN_MODIFY` reports a file that is still open, `IN_CLOSE_WRITE` one written through a mapping.
    const ALL: Flag = COMES_OR_GOES
        .union(Flag::IN_ATTRIB)
        .union(Flag::IN_MODIFY)
        .union(Flag::IN_CLOSE_WRITE)
        .union(Flag::IN_ONLYDIR)
        .union(Flag::IN_DONT_FOLLOW);

    #[derive(Debug)]
    pub(crate) struct TreeWatcher {
        inotify: Inotify,
        folders: Mutex<HashMap<WatchDescriptor, Rel>>,
        /// One folder was found under two paths.
        doubtful: AtomicBool,
        /// A folder could not be watched.
        blind: AtomicBool,
    }

    impl TreeWatcher {
        pub fn start() -> Option<Self> {
            let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).ok()?;
            Some(Self { inotify, folders: Mutex::default(), doubtful: false.into(), blind: false.into() })
        }

        pub fn add(&self, path: &Path, rel: &Rel) {
            match self.inotify.add_watch(path, ALL) {
                Ok(watch) => {
                    let mut folders = self.folders.lock();
                    let before = folders.insert(watch, rel.clone());
                    if before.is_some_and(|before| before != *rel) {
                        self.doubtful.store(true, Ordering::Relaxed);
                    }
                }
                // The folder is gone, or is not a folder any more: the folder above reports that. An unreadable one
                // is skipped.
                Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP | Errno::EACCES) => {}
                Err(_) => self.blind.store(true, Ordering::Relaxed),
            }
        }

        /// Tells whether it sees every folder.
        pub fn is_complete(&self) -> bool {
            !self.blind.load(Ordering::Relaxed)
        }

        /// The changes since the last call.
        pub fn drain(&self) -> Touched {
            let mut paths = BTreeMap::new();
            let mut known = !self.doubtful.load(Ordering::Relaxed) && self.is_complete();
            loop {
                match self.inotify.read_events() {
                    Ok(events) => {
                        for event in events {
                            known &= self.take(event, &mut paths);
                        }
                    }
                    Err(Errno::EAGAIN) => break,
                    Err(Errno::EINTR) => {}
                    Err(_) => return Touched::Unknown,
                }
            }
            if known { Touched::Paths(paths) } else { Touched::Unknown }
        }

        /// Returns false if the event means that something was missed.
        fn take(&self, event: InotifyEvent, paths: &mut BTreeMap<Rel, Depth>) -> bool {
            if event.mask.intersects(Flag::IN_Q_OVERFLOW | Flag::IN_UNMOUNT) {
                return false;
            }
            let mut folders = self.folders.lock();
            if event.mask.contains(Flag::IN_IGNORED) {
                folders.remove(&event.wd);
                return true;
            }
            // A watch that was removed below, or an event about the folder itself, which the folder above reports
            // too.
            let (Some(folder), Some(name)) = (folders.get(&event.wd), &event.name) else { return true };
            let rel = join(folder, name.as_bytes());
            let is_folder = event.mask.contains(Flag::IN_ISDIR);
            if is_folder && event.mask.contains(Flag::IN_MOVED_FROM) {
                // These watches would report paths that no longer exist. At its new path the folder is a new one, and
                // gets new watches.
                folders.retain(|watch, path| {
                    let gone = **path == *rel || is_inside(path, &rel);
                    if gone {
                        let _ = self.inotify.rm_watch(*watch);
                    }
                    !gone
                });
            }
            let depth =
                if is_folder && event.mask.intersects(COMES_OR_GOES) { Depth::Tree } else { Depth::One };
            let known = paths.entry(rel).or_insert(depth);
            *known = (*known).max(depth);
            true
        }
    }
}

/// On other systems everything is scanned.
#[cfg(not(target_os = "linux"))]
mod system {
    use std::path::Path;

    use super::Touched;
    use crate::beneath::Rel;

    #[derive(Debug)]
    pub(crate) struct TreeWatcher;

    impl TreeWatcher {
        pub fn start() -> Option<Self> {
            None
        }

        pub fn add(&self, _path: &Path, _rel: &Rel) {}

        pub fn is_complete(&self) -> bool {
            false
        }

        pub fn drain(&self) -> Touched {
            Touched::Unknown
        }
    }
}
