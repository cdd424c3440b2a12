//! The folder that bash must be in before it gets a line.
//!
//! Bash goes to a folder by its name, and a link that is put in its place in that moment leads elsewhere. What the kernel
//! says about the folder that bash is in cannot be swapped.

use std::ffi::c_int;
use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::system::O_PATH;

pub enum Expected {
    Any,
    /// The folder of exactly this path, without links on the way.
    Path,
    /// This folder at the start, and the one that bash was in when it is started again elsewhere.
    Folder {
        device: u64,
        inode: u64,
    },
}

impl Expected {
    /// Text that makes no sense is met by no folder.
    pub fn parse(text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text);
        match text.as_ref() {
            "" => Self::Any,
            "path" => Self::Path,
            text => {
                let numbers = text
                    .split_once(':')
                    .and_then(|(device, inode)| Some((device.parse().ok()?, inode.parse().ok()?)));
                let (device, inode) = numbers.unwrap_or((u64::MAX, u64::MAX));
                Self::Folder { device, inode }
            }
        }
    }

    /// Tells whether the process is in the folder that it should be in, which has this name. `last` is where bash was before.
    pub fn is_met(&self, pid: c_int, name: &Path, at_start: bool, last: Option<&HeldFolder>) -> bool {
        let place = format!("/proc/{pid}/cwd");
        match self {
            Self::Any => true,
            Self::Folder { device, inode } if at_start => {
                fs::metadata(&place).is_ok_and(|found| (found.dev(), found.ino()) == (*device, *inode))
            }
            Self::Path | Self::Folder { .. } => {
                let is_last = |last: &HeldFolder| last.name != name || last.is_gone() || last.is_at(&place);
                let is_named = fs::read_link(&place).is_ok_and(|real| real == name);
                is_named && (at_start || last.is_none_or(is_last))
            }
        }
    }
}

/// The folder that bash was in, held by its handle: whatever gets its name later is another one, and as long as it is held
/// its number is given to no other.
pub struct HeldFolder {
    handle: File,
    name: PathBuf,
}

impl HeldFolder {
    /// The folder that a process is in. Its name is that of the handle, so both are of one folder.
    pub fn of(pid: c_int) -> Option<Self> {
        let place = format!("/proc/{pid}/cwd");
        let handle = OpenOptions::new().read(true).custom_flags(O_PATH).open(place).ok()?;
        let name = fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd())).ok()?;
        Some(Self { handle, name })
    }

    pub fn name(&self) -> &Path {
        &self.name
    }

    fn is_gone(&self) -> bool {
        self.handle.metadata().is_ok_and(|found| found.nlink() == 0)
    }

    fn is_at(&self, place: &str) -> bool {
        let (Ok(held), Ok(there)) = (self.handle.metadata(), fs::metadata(place)) else { return false };
        (held.dev(), held.ino()) == (there.dev(), there.ino())
    }
}
