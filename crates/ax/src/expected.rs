//! The folder that bash must be in before it gets a line.
//!
//! Bash goes to a folder by its name, and a link that is put in its place in that moment leads elsewhere. What the kernel
//! says about the folder that bash is in cannot be swapped.

use std::ffi::c_int;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

pub enum Expected {
    Any,
    /// The folder of exactly this path, without links on the way.
    Path,
    /// This folder at the start, and one of exactly its path when bash is started again elsewhere.
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

    /// Whether the process is in the folder that it should be in, which has this name.
    pub fn is_met(&self, pid: c_int, name: &Path, at_start: bool) -> bool {
        let place = format!("/proc/{pid}/cwd");
        match self {
            Self::Any => true,
            Self::Folder { device, inode } if at_start => {
                fs::metadata(place).is_ok_and(|found| (found.dev(), found.ino()) == (*device, *inode))
            }
            Self::Path | Self::Folder { .. } => fs::read_link(place).is_ok_and(|real| real == name),
        }
    }
}
