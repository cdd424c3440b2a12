//! The part of an `lstat` that tells one state of a path from another.

use nix::sys::stat::FileStat;

// The types in a mode are the same numbers everywhere, but not the same Rust type.
const TYPE_BITS: u32 = 0o170_000;
pub(crate) const FILE_BITS: u32 = 0o100_000;
pub(crate) const FOLDER_BITS: u32 = 0o040_000;
const LINK_BITS: u32 = 0o120_000;

/// Equal values mean an untouched file, unless it was touched in the same tick of the clock: see
/// [`ManifestEntry::racy`](crate::manifest::ManifestEntry).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    /// The number of a file's names: the watcher does not report a change through another name. 1 for anything but a
    /// file.
    pub names: u32,
    pub inode: u64,
    pub size: u64,
    pub modified: i64,
    pub changed: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathKind {
    File,
    Link,
    Folder,
    Special,
}

impl PathKind {
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
            names: if PathKind::of(mode) == PathKind::File {
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

    pub fn kind(&self) -> PathKind {
        PathKind::of(self.mode)
    }

    /// Tells whether it has other names.
    pub fn is_linked(&self) -> bool {
        self.names > 1
    }

    /// Tells whether content and attributes need not be read. The size and modification time of a folder depend only
    /// on its entries, which are examined themselves.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self.kind(), other.kind()) {
            (PathKind::Folder, PathKind::Folder) => {
                let of = |stat: &Self| (stat.mode, stat.uid, stat.gid, stat.changed);
                of(self) == of(other)
            }
            _ => Self { names: 1, ..*self } == Self { names: 1, ..*other },
        }
    }
}

/// The clock of time stamps in files. It may stand still for longer than a tick, while a virtual machine is held
/// back by its host. The precise clock runs on meanwhile: measured by it, a file would count as settled that is
/// written again with the same stamp.
#[cfg(target_os = "linux")]
fn file_clock() -> Option<std::time::Duration> {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_REALTIME_COARSE).ok()?;
    Some(now.into())
}

#[cfg(not(target_os = "linux"))]
fn file_clock() -> Option<std::time::Duration> {
    None
}

/// The moment from which a time stamp proves nothing: the clock of time stamps has ticks of up to 10 ms, and a file
/// written twice in one tick looks untouched by the second write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Since(i64);

impl Since {
    /// Nanoseconds that allow for the tick, and for a file system with a coarse clock of its own.
    const MARGIN: i64 = 50_000_000;

    pub fn now() -> Self {
        let now = file_clock().unwrap_or_else(|| {
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
        });
        Self(i64::try_from(now.as_nanos()).unwrap_or(i64::MAX).saturating_sub(Self::MARGIN))
    }

    pub fn is_racy(self, stat: &Stat) -> bool {
        stat.changed >= self.0
    }
}
