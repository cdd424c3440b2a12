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
    /// Has other names, through which it may change without a word from the watcher.
    pub linked: bool,
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
            linked: Kind::of(mode) == Kind::File && found.st_nlink > 1,
            inode: found.st_ino as u64,
            size: u64::try_from(found.st_size).unwrap_or_default(),
            modified: nanoseconds(found.st_mtime as i64, found.st_mtime_nsec as i64),
            changed: nanoseconds(found.st_ctime as i64, found.st_ctime_nsec as i64),
        }
    }

    pub fn kind(&self) -> Kind {
        Kind::of(self.mode)
    }

    /// Whether a look at the content can be spared. The times and the size of a folder only tell of its entries,
    /// which are looked at themselves.
    pub fn same(&self, other: &Self) -> bool {
        match (self.kind(), other.kind()) {
            (Kind::Folder, Kind::Folder) => self.mode == other.mode,
            _ => Self { linked: false, ..*self } == Self { linked: false, ..*other },
        }
    }
}

/// The moment from which on a time stamp proves nothing: the clock behind time stamps goes in ticks of up to 10 ms, and
/// a file written twice in one tick looks untouched by its second writing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Since(i64);

impl Since {
    /// Nanoseconds that leave room for the tick, and for a file system with a coarse clock of its own.
    const MARGIN: i64 = 50_000_000;

    pub fn now() -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Self(i64::try_from(now.as_nanos()).unwrap_or(i64::MAX).saturating_sub(Self::MARGIN))
    }

    pub fn touched(self, stat: &Stat) -> bool {
        stat.changed >= self.0
    }
}
