//! The requirement on bash's folder before it gets a line.
//!
//! Bash changes to a folder by its name, and a link that replaces it at that moment leads elsewhere. The kernel's
//! record of bash's current folder cannot be swapped.

use std::ffi::c_int;
use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::system::O_PATH;

pub enum Expected {
    Any,
    /// The folder at exactly this path, without links on the way.
    Path,
    /// This folder at the start, and the previous folder of bash when it is started again elsewhere.
    Folder {
        device: u64,
        inode: u64,
    },
}

impl Expected {
    /// Parses the text of a `Start` frame. A malformed text matches no folder.
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

    /// Tells whether the process is in the required folder, which has this name. `last` is the previous folder of
    /// bash.
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

/// The previous folder of bash, held by a handle: a later folder with the same name is another one, and its inode
/// number is not reused while it is held.
pub struct HeldFolder {
    handle: File,
    name: PathBuf,
}

impl HeldFolder {
    /// The current folder of a process. The name is read from the handle, so both belong to the same folder.
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
