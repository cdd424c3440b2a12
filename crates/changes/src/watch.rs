//! Which paths have to be looked at after a line.
//!
//! Inotify on every tracked folder. It is only ever trusted to narrow: whenever it may have missed something (its queue
//! ran over, the limit of watches is reached, two paths lead to one folder), everything is looked at. The events wait in
//! the kernel until they are asked for; no thread of ours is needed. What it cannot tell is written in
//! [`Tracker::full_check`](crate::Tracker::full_check).

use std::collections::BTreeMap;

use crate::beneath::Rel;

/// How far a look at a path has to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Depth {
    /// The path alone.
    One,
    /// A folder came or went: everything inside too.
    Tree,
}

#[derive(Debug)]
pub(crate) enum Touched {
    Paths(BTreeMap<Rel, Depth>),
    /// Nobody knows. The watcher has to be replaced.
    Unknown,
}

pub(crate) use system::Watcher;

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

    /// `IN_MODIFY` tells of a file that is still open, `IN_CLOSE_WRITE` of one written through a mapping.
    const ALL: Flag = COMES_OR_GOES
        .union(Flag::IN_ATTRIB)
        .union(Flag::IN_MODIFY)
        .union(Flag::IN_CLOSE_WRITE)
        .union(Flag::IN_ONLYDIR)
        .union(Flag::IN_DONT_FOLLOW);

    #[derive(Debug)]
    pub(crate) struct Watcher {
        inotify: Inotify,
        folders: Mutex<HashMap<WatchDescriptor, Rel>>,
        /// One folder was met under two paths.
        doubtful: AtomicBool,
        /// A folder could not be watched.
        blind: AtomicBool,
    }

    impl Watcher {
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
                // It is gone, or no folder any more: the folder above tells. One that cannot be read is skipped.
                Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP | Errno::EACCES) => {}
                Err(_) => self.blind.store(true, Ordering::Relaxed),
            }
        }

        /// Whether it sees every folder.
        pub fn sees(&self) -> bool {
            !self.blind.load(Ordering::Relaxed)
        }

        /// What happened since the last time.
        pub fn drain(&self) -> Touched {
            let mut paths = BTreeMap::new();
            let mut known = !self.doubtful.load(Ordering::Relaxed) && self.sees();
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

        /// False if the event says that something was missed.
        fn take(&self, event: InotifyEvent, paths: &mut BTreeMap<Rel, Depth>) -> bool {
            if event.mask.intersects(Flag::IN_Q_OVERFLOW | Flag::IN_UNMOUNT) {
                return false;
            }
            let mut folders = self.folders.lock();
            if event.mask.contains(Flag::IN_IGNORED) {
                folders.remove(&event.wd);
                return true;
            }
            // A watch that was given up below; or a word about the folder itself, of which the folder above tells too.
            let (Some(folder), Some(name)) = (folders.get(&event.wd), &event.name) else { return true };
            let rel = join(folder, name.as_bytes());
            let is_folder = event.mask.contains(Flag::IN_ISDIR);
            if is_folder && event.mask.contains(Flag::IN_MOVED_FROM) {
                // From here on these watches would tell of paths that are not there. Where the folder went to it is
                // new, and gets new ones.
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

/// Elsewhere everything is looked at.
#[cfg(not(target_os = "linux"))]
mod system {
    use std::path::Path;

    use super::Touched;
    use crate::beneath::Rel;

    #[derive(Debug)]
    pub(crate) struct Watcher;

    impl Watcher {
        pub fn start() -> Option<Self> {
            None
        }

        pub fn add(&self, _path: &Path, _rel: &Rel) {}

        pub fn sees(&self) -> bool {
            false
        }

        pub fn drain(&self) -> Touched {
            Touched::Unknown
        }
    }
}
