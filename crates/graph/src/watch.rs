//! Tells whether anything can have changed since the last walk, for a process that lives long enough to ask twice.
//!
//! It uses inotify on every folder that was walked; the events wait in the kernel until a question comes, so no
//! thread is needed. It is only trusted to narrow the check: written files are checked; every other event (folders,
//! ignore files, a queue that overflowed) leads to a walk, which finds the details. It gives no guarantee where it
//! may be blind: too many folders, files that other machines can write, a walk long ago (a file can have a second
//! name outside of the root, and changes through that name are not reported).

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::layout::{outside_rules, rule_stamp as stamp};
use crate::scan::Stamp;

/// The time after which a walk is due in any case.
const TRUSTED: Duration = Duration::from_secs(10);

pub struct TreeWatch {
    system: system::SystemWatcher,
    /// Ignore files that count although they are outside of the root.
    outside: Vec<(PathBuf, Option<Stamp>)>,
    /// The start of the walk after which everything was known.
    walked: Option<Instant>,
    /// Files read at the moment they were written, which must be checked again.
    again: Vec<String>,
}

/// The changes that are possible since the last check.
#[derive(Debug, PartialEq, Eq)]
pub enum WatchResult {
    Nothing,
    /// Something happened to the files at these paths, and to nothing else.
    Files(Vec<String>),
    Unknown,
}

/// With more files than this, a walk is as good.
const FEW: usize = 64;

/// Tells whether other machines can write to the files here.
pub fn is_shared(root: &Path) -> bool {
    system::is_shared(root)
}

impl TreeWatch {
    /// None where the watch could not be relied on.
    pub fn start(root: &Path) -> Option<Self> {
        let system = system::SystemWatcher::start(root)?;
        let outside = outside_rules(root).into_iter().map(|path| (path, None)).collect();
        Some(Self { system, outside, walked: None, again: Vec::new() })
    }

    /// Prepares for a walk, which will see everything that has happened until now.
    pub fn begin(&mut self) {
        self.walked = None;
        self.system.restart();
        for (path, seen) in &mut self.outside {
            *seen = stamp(path);
        }
    }

    /// Adds a folder by its path, and by its path relative to the root.
    pub fn add(&self, folder: &Path, rel: &str) {
        self.system.add(folder, rel);
    }

    /// Notes that everything a walk saw has been read, if one began at this time. `unsettled` are files that may have
    /// been read too early.
    pub fn mark_read(&mut self, walk: Option<Instant>, unsettled: Vec<String>) {
        self.walked = walk.or(self.walked);
        self.again = unsettled;
    }

    pub fn changes(&mut self) -> WatchResult {
        let recent = self.walked.is_some_and(|walked| walked.elapsed() < TRUSTED);
        if !recent || self.again.len() > FEW || self.outside.iter().any(|(path, seen)| stamp(path) != *seen) {
            return WatchResult::Unknown;
        }
        let Some(mut files) = self.system.drain() else { return WatchResult::Unknown };
        files.extend(self.again.iter().cloned());
        match files.len() {
            0 => WatchResult::Nothing,
            1..=FEW => WatchResult::Files(files.into_iter().collect()),
            _ => WatchResult::Unknown,
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

    /// `IN_MODIFY` reports a file that is still open, `IN_CLOSE_WRITE` one that was written through a mapping.
    const ALL: Flag = Flag::IN_CREATE
        .union(Flag::IN_DELETE)
        .union(Flag::IN_MOVED_FROM)
        .union(Flag::IN_MOVED_TO)
        .union(Flag::IN_ATTRIB)
        .union(Flag::IN_MODIFY)
        .union(Flag::IN_CLOSE_WRITE)
        .union(Flag::IN_ONLYDIR)
        .union(Flag::IN_DONT_FOLLOW);

    /// The watches of a user are few and are shared with all programs.
    const FOLDERS: usize = 20_000;

    /// File systems that others can write to: NFS, SMB, CIFS, SMB2, FUSE, 9P, AFS, Ceph.
    const SHARED: [i64; 8] =
        [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x6573_5546, 0x0102_1997, 0x5346_414f, 0x00c3_6400];

    pub struct SystemWatcher {
        inotify: Inotify,
        /// Paths relative to the root.
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

    impl SystemWatcher {
        pub fn start(root: &Path) -> Option<Self> {
            if is_shared(root) {
                return None;
            }
            let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).ok()?;
            Some(Self { inotify, folders: Mutex::default(), blind: false.into() })
        }

        /// Discards the events. The folders are about to be added again, which costs nothing.
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
                    // One folder under two paths: its events are reported for one of them only.
                    if twice || folders.len() > FOLDERS {
                        self.blind.store(true, Ordering::Relaxed);
                    }
                }
                // It is gone, or is not a folder any more: the folder above reports it. A folder that cannot be read
                // is not walked.
                Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP | Errno::EACCES) => {}
                Err(_) => self.blind.store(true, Ordering::Relaxed),
            }
        }

        /// Source files that something happened to since the last call. None if that is not everything.
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

    /// False if the event is not about a file.
    fn take(
        event: &InotifyEvent,
        folders: &HashMap<WatchDescriptor, String>,
        files: &mut BTreeSet<String>,
    ) -> bool {
        let Some(name) = &event.name else { return false };
        // A folder that was moved out of the root is no longer watched here.
        let Some(folder) = folders.get(&event.wd) else { return true };
        if event.mask.contains(Flag::IN_ISDIR) {
            return false;
        }
        // A name that is not UTF-8 cannot be asked for.
        let Some(name) = name.to_str() else { return true };
        if is_source(name) {
            files.insert(if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") });
        }
        !name.ends_with("ignore")
    }
}

/// On other systems every question walks.
#[cfg(not(target_os = "linux"))]
mod system {
    use std::path::Path;

    pub struct SystemWatcher;

    /// Unknown file systems are not relied on.
    pub fn is_shared(_root: &Path) -> bool {
        true
    }

    impl SystemWatcher {
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
