//! Whether anything can have changed since the last walk, for a process that lives long enough to ask twice.
//!
//! Inotify on every folder that was walked; the events wait in the kernel until somebody asks, so no thread is needed.
//! It is only trusted to narrow: when files were written, these are looked at; whatever else it tells of (folders, ignore
//! files, a queue that ran over) leads to a walk, which finds out what. It does not vouch at all where it may be blind: too
//! many folders, files that other machines can write, a walk long ago (a file can have a second name outside of the root,
//! whose changes are not told).

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::layout::{outside, rule_stamp as stamp};
use crate::scan::Stamp;

/// After so long a walk is due in any case.
const TRUSTED: Duration = Duration::from_secs(10);

pub struct Watch {
    system: system::Watcher,
    /// Ignore files that count here though they lie outside of the root.
    outside: Vec<(PathBuf, Option<Stamp>)>,
    /// When the walk began after which all was known.
    walked: Option<Instant>,
    /// Files read in the moment they were written: to be looked at again.
    again: Vec<String>,
}

/// What can have changed since the last look.
#[derive(Debug, PartialEq, Eq)]
pub enum Happened {
    Nothing,
    /// Something at these paths, and nothing else.
    Files(Vec<String>),
    Unknown,
}

/// More files than this are as well walked for.
const FEW: usize = 64;

/// Whether other machines can write to the files here.
pub fn is_shared(root: &Path) -> bool {
    system::is_shared(root)
}

impl Watch {
    /// Nothing where it could not be relied on.
    pub fn start(root: &Path) -> Option<Self> {
        let system = system::Watcher::start(root)?;
        let outside = outside(root).into_iter().map(|path| (path, None)).collect();
        Some(Self { system, outside, walked: None, again: Vec::new() })
    }

    /// Before a walk: what happened until now it will see.
    pub fn begin(&mut self) {
        self.walked = None;
        self.system.restart();
        for (path, seen) in &mut self.outside {
            *seen = stamp(path);
        }
    }

    /// A folder by its path, and by its path from the root.
    pub fn add(&self, folder: &Path, rel: &str) {
        self.system.add(folder, rel);
    }

    /// All that a walk saw has been read, if one began at this time; these files perhaps too early.
    pub fn all_read(&mut self, walk: Option<Instant>, unsettled: Vec<String>) {
        self.walked = walk.or(self.walked);
        self.again = unsettled;
    }

    pub fn happened(&mut self) -> Happened {
        let recent = self.walked.is_some_and(|walked| walked.elapsed() < TRUSTED);
        if !recent || self.again.len() > FEW || self.outside.iter().any(|(path, seen)| stamp(path) != *seen) {
            return Happened::Unknown;
        }
        let Some(mut files) = self.system.drain() else { return Happened::Unknown };
        files.extend(self.again.iter().cloned());
        match files.len() {
            0 => Happened::Nothing,
            1..=FEW => Happened::Files(files.into_iter().collect()),
            _ => Happened::Unknown,
        }
    }
}

#[cfg(target_os = "linux")]
mod system {
    use parking_lot::Mutex;
    use std::collections::{BTreeSet, HashMap};
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};

    use nix::errno::Errno;
    use nix::sys::inotify::{AddWatchFlags as Flag, InitFlags, Inotify, InotifyEvent, WatchDescriptor};

    use crate::scan::is_source;

    /// `IN_MODIFY` tells of a file that is still open, `IN_CLOSE_WRITE` of one written through a mapping.
    const ALL: Flag = Flag::IN_CREATE
        .union(Flag::IN_DELETE)
        .union(Flag::IN_MOVED_FROM)
        .union(Flag::IN_MOVED_TO)
        .union(Flag::IN_ATTRIB)
        .union(Flag::IN_MODIFY)
        .union(Flag::IN_CLOSE_WRITE)
        .union(Flag::IN_ONLYDIR)
        .union(Flag::IN_DONT_FOLLOW);

    /// The watches of a user are few and shared with all programs.
    const FOLDERS: usize = 20_000;

    /// File systems that others can write to: NFS, SMB, CIFS, SMB2, FUSE, 9P, AFS, Ceph.
    const SHARED: [i64; 8] =
        [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x6573_5546, 0x0102_1997, 0x5346_414f, 0x00c3_6400];

    pub struct Watcher {
        inotify: Inotify,
        /// Paths from the root.
        folders: Mutex<HashMap<WatchDescriptor, String>>,
        blind: AtomicBool,
    }

    pub fn is_shared(root: &Path) -> bool {
        let Ok(found) = nix::sys::statfs::statfs(root) else { return true };
        // The type's width differs between C libraries.
        #[allow(clippy::unnecessary_cast, clippy::cast_lossless)]
        let kind = found.filesystem_type().0 as i64;
        SHARED.contains(&kind)
    }

    impl Watcher {
        pub fn start(root: &Path) -> Option<Self> {
            if is_shared(root) {
                return None;
            }
            let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).ok()?;
            Some(Self { inotify, folders: Mutex::default(), blind: false.into() })
        }

        /// Forgets what happened; the folders are about to be added again, which costs nothing.
        pub fn restart(&self) {
            self.drain();
            self.folders.lock().clear();
        }

        pub fn add(&self, folder: &Path, rel: &str) {
            if self.blind.load(Ordering::Relaxed) {
                return;
            }
            match self.inotify.add_watch(folder, ALL) {
                Ok(watch) => {
                    let mut folders = self.folders.lock();
                    let twice = folders.insert(watch, rel.to_owned()).is_some_and(|had| had != rel);
                    // One folder under two paths: its events are told for one of them only.
                    if twice || folders.len() > FOLDERS {
                        self.blind.store(true, Ordering::Relaxed);
                    }
                }
                // It is gone, or no folder any more: the folder above tells. One that cannot be read is not walked.
                Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP | Errno::EACCES) => {}
                Err(_) => self.blind.store(true, Ordering::Relaxed),
            }
        }

        /// Source files to which something happened since the last time; nothing if that is not all.
        pub fn drain(&self) -> Option<BTreeSet<String>> {
            let folders = self.folders.lock();
            let mut files = BTreeSet::new();
            let mut all = !self.blind.load(Ordering::Relaxed);
            loop {
                match self.inotify.read_events() {
                    Ok(events) => all &= events.iter().all(|event| take(event, &folders, &mut files)),
                    Err(Errno::EAGAIN) => return all.then_some(files),
                    Err(Errno::EINTR) => {}
                    Err(_) => {
                        self.blind.store(true, Ordering::Relaxed);
                        return None;
                    }
                }
            }
        }
    }

    /// False if the event is of something else than a file.
    fn take(
        event: &InotifyEvent,
        folders: &HashMap<WatchDescriptor, String>,
        files: &mut BTreeSet<String>,
    ) -> bool {
        let Some(name) = &event.name else { return false };
        // A folder that was moved out of the root is not ours any more.
        let Some(folder) = folders.get(&event.wd) else { return true };
        if event.mask.contains(Flag::IN_ISDIR) {
            return false;
        }
        // A name that is not text cannot be asked for.
        let Some(name) = name.to_str() else { return true };
        if is_source(name) {
            files.insert(if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") });
        }
        !name.ends_with("ignore")
    }
}

/// Elsewhere every question walks.
#[cfg(not(target_os = "linux"))]
mod system {
    use std::path::Path;

    pub struct Watcher;

    /// What is not known is not relied on.
    pub fn is_shared(_root: &Path) -> bool {
        true
    }

    impl Watcher {
        pub fn start(_root: &Path) -> Option<Self> {
            None
        }

        pub fn restart(&self) {}

        pub fn add(&self, _folder: &Path, _rel: &str) {}

        pub fn drain(&self) -> Option<std::collections::BTreeSet<String>> {
            None
        }
    }
}
