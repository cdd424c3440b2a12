//! What `lstat` says of a path, as much of it as tells one state from another.

use nix::sys::stat::FileStat;

// The types in a mode are the same numbers everywhere, but not the same Rust type.
const TYPE_BITS: u32 = 0o170_000;
pub(crate) const FILE_BITS: u32 = 0o100_000;
pub(crate) const FOLDER_BITS: u32 = 0o040_000;
const LINK_BITS: u32 = 0o120_000;

/// Equal values mean an untouched file, unless it was touched in the same tick of the clock: see
/// [`Entry::racy`](crate::manifest::Entry).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    /// The number of a file's names: through another one it may change without a word from the watcher. 1 for what is
    /// no file.
    pub names: u32,
    pub inode: u64,
    pub size: u64,
    pub modified: i64,
    pub changed: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Link,
    Folder,
    Special,
}

impl Kind {
    /// Records of older versions have permissions only, and mean files.
    pub fn of(mode: u32) -> Self {
        match mode & TYPE_BITS {
            0 | FILE_BITS => Self::File,
            LINK_BITS => Self::Link,
            FOLDER_BITS => Self::Folder,
            _ => Self::Special,
        }
    }
}

impl Stat {
    // The fields of a FileStat have other types on other systems.
    #[allow(clippy::useless_conversion, clippy::unnecessary_cast)]
    pub fn new(found: &FileStat) -> Self {
        let nanoseconds =
            |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
        let mode = u32::from(found.st_mode);
        Self {
            mode,
            uid: found.st_uid,
            gid: found.st_gid,
            names: if Kind::of(mode) == Kind::File {
                u32::try_from(found.st_nlink).unwrap_or(u32::MAX)
            } else {
                1
            },
            inode: found.st_ino as u64,
            size: u64::try_from(found.st_size).unwrap_or_default(),
            modified: nanoseconds(found.st_mtime as i64, found.st_mtime_nsec as i64),
            changed: nanoseconds(found.st_ctime as i64, found.st_ctime_nsec as i64),
        }
    }

    pub fn kind(&self) -> Kind {
        Kind::of(self.mode)
    }

    /// Tells whether it has other names.
    pub fn linked(&self) -> bool {
        self.names > 1
    }

    /// Tells whether a look at content and attributes can be spared. The size of a folder and the time it was modified
    /// only tell of its entries, which are looked at themselves.
    pub fn same(&self, other: &Self) -> bool {
        match (self.kind(), other.kind()) {
            (Kind::Folder, Kind::Folder) => {
                let of = |stat: &Self| (stat.mode, stat.uid, stat.gid, stat.changed);
                of(self) == of(other)
            }
            _ => Self { names: 1, ..*self } == Self { names: 1, ..*other },
        }
    }
}

/// The clock that files are stamped by. It may stand still for longer than a tick, while a machine is held back by its host;
/// the precise clock goes on meanwhile, and a moment of that would pass a file for settled that is written again with the
/// same stamp.
#[cfg(target_os = "linux")]
fn file_clock() -> Option<std::time::Duration> {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_REALTIME_COARSE).ok()?;
    Some(now.into())
}

#[cfg(not(target_os = "linux"))]
fn file_clock() -> Option<std::time::Duration> {
    None
}

/// The moment from which on a time stamp proves nothing: the clock behind time stamps goes in ticks of up to 10 ms, and
/// a file written twice in one tick looks untouched by its second writing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Since(i64);

impl Since {
    /// Nanoseconds that leave room for the tick, and for a file system with a coarse clock of its own.
    const MARGIN: i64 = 50_000_000;

    pub fn now() -> Self {
        let now = file_clock().unwrap_or_else(|| {
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
        });
        Self(i64::try_from(now.as_nanos()).unwrap_or(i64::MAX).saturating_sub(Self::MARGIN))
    }

    pub fn touched(self, stat: &Stat) -> bool {
        stat.changed >= self.0
    }
}
