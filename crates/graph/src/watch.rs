//! Whether anything can have changed since the last walk, for a process that lives long enough to ask twice.
//!
//! Inotify on every folder that was walked; the events wait in the kernel until somebody asks, so no thread is needed.
//! It is only trusted to say "nothing happened": whatever it tells of leads to a walk, which finds out what. It does not
//! vouch at all where it may be blind: too many folders, files that other machines can write, a look long ago (a file can
//! have a second name outside of the root, whose changes are not told).

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::scan::Stamp;

/// After so long a walk is due in any case.
const TRUSTED: Duration = Duration::from_secs(10);

pub struct Watch {
    system: system::Watcher,
    /// Ignore files that count here though they lie outside of the root.
    outside: Vec<(PathBuf, Option<Stamp>)>,
    /// When all was last seen to be up to date.
    looked: Option<Instant>,
}

fn stamp(path: &Path) -> Option<Stamp> {
    std::fs::metadata(path).ok().map(|metadata| Stamp::of(&metadata))
}

fn outside(root: &Path) -> Vec<PathBuf> {
    let above =
        root.ancestors().skip(1).flat_map(|folder| [".gitignore", ".ignore"].map(|name| folder.join(name)));
    let excluded = root.ancestors().map(|folder| folder.join(".git/info/exclude"));
    above.chain(excluded).chain(ignore::gitignore::gitconfig_excludes_path()).collect()
}

impl Watch {
    /// Nothing where it could not be relied on.
    pub fn start(root: &Path) -> Option<Self> {
        let system = system::Watcher::start(root)?;
        let outside = outside(root).into_iter().map(|path| (path, None)).collect();
        Some(Self { system, outside, looked: None })
    }

    /// Before a walk: what happened until now it will see.
    pub fn begin(&mut self) {
        self.looked = None;
        self.system.restart();
        for (path, seen) in &mut self.outside {
            *seen = stamp(path);
        }
    }

    pub fn add(&self, folder: &Path) {
        self.system.add(folder);
    }

    /// All that the walk since [`Self::begin`] saw has been read.
    pub fn all_read(&mut self, at: Instant) {
        self.looked = Some(at);
    }

    /// Whether nothing has changed since.
    pub fn vouches(&mut self) -> bool {
        let fine = self.looked.is_some_and(|looked| looked.elapsed() < TRUSTED)
            && self.system.quiet()
            && self.outside.iter().all(|(path, seen)| stamp(path) == *seen);
        if !fine {
            self.looked = None;
        }
        fine
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use nix::errno::Errno;
    use nix::sys::inotify::{AddWatchFlags as Flag, InitFlags, Inotify, InotifyEvent};

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
        folders: AtomicUsize,
        blind: AtomicBool,
    }

    impl Watcher {
        pub fn start(root: &Path) -> Option<Self> {
            let kind = nix::sys::statfs::statfs(root).ok()?.filesystem_type();
            // The type's width differs between C libraries.
            #[allow(clippy::unnecessary_cast, clippy::cast_lossless)]
            let kind = kind.0 as i64;
            if SHARED.contains(&kind) {
                return None;
            }
            let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).ok()?;
            Some(Self { inotify, folders: 0.into(), blind: false.into() })
        }

        /// Forgets what happened; the folders are about to be added again, which costs nothing.
        pub fn restart(&self) {
            self.quiet();
            self.folders.store(0, Ordering::Relaxed);
        }

        pub fn add(&self, folder: &Path) {
            if self.blind.load(Ordering::Relaxed) {
                return;
            }
            let full = self.folders.fetch_add(1, Ordering::Relaxed) >= FOLDERS;
            match if full { Err(Errno::ENOSPC) } else { self.inotify.add_watch(folder, ALL) } {
                // It is gone, or no folder any more: the folder above tells. One that cannot be read is not walked.
                Ok(_) | Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP | Errno::EACCES) => {}
                Err(_) => self.blind.store(true, Ordering::Relaxed),
            }
        }

        /// Whether nothing that matters has happened since the last time.
        pub fn quiet(&self) -> bool {
            let mut quiet = !self.blind.load(Ordering::Relaxed);
            loop {
                match self.inotify.read_events() {
                    Ok(events) => quiet &= !events.iter().any(matters),
                    Err(Errno::EAGAIN) => break,
                    Err(Errno::EINTR) => {}
                    Err(_) => {
                        self.blind.store(true, Ordering::Relaxed);
                        return false;
                    }
                }
            }
            quiet
        }
    }

    fn matters(event: &InotifyEvent) -> bool {
        let Some(name) = &event.name else { return true };
        event.mask.contains(Flag::IN_ISDIR)
            || name.to_str().is_some_and(|name| is_source(name) || name.ends_with("ignore"))
    }
}

/// Elsewhere every question walks.
#[cfg(not(target_os = "linux"))]
mod system {
    use std::path::Path;

    pub struct Watcher;

    impl Watcher {
        pub fn start(_root: &Path) -> Option<Self> {
            None
        }

        pub fn restart(&self) {}

        pub fn add(&self, _folder: &Path) {}

        pub fn quiet(&self) -> bool {
            false
        }
    }
}
