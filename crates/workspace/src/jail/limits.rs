//! Limits of what the processes of a jail use together.

use std::fmt;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::libc;

use super::group;

const MB: u64 = 1 << 20;
const GB: u64 = 1 << 30;
/// The share of the machine's memory that a jail may use, in percent.
const MEMORY_SHARE: u64 = 75;

/// Limits of a jail. All but `file` are about its processes together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JailLimits {
    /// Bytes of memory.
    pub memory: u64,
    /// Processes and threads that exist at one time.
    pub processes: u64,
    /// Bytes by which the used space of a disk may grow while a line runs.
    pub disk: u64,
    /// Files and folders by which a disk may grow while a line runs.
    pub files: u64,
    /// Bytes of one file.
    pub file: u64,
}

impl Default for JailLimits {
    fn default() -> Self {
        let memory = usable_memory().map_or(u64::MAX, |bytes| bytes / 100 * MEMORY_SHARE);
        Self { memory, processes: 4096, disk: 20 * GB, files: 2_000_000, file: 8 * GB }
    }
}

/// The memory of this machine, or of the container around this process.
fn usable_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kilobytes = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let bytes = kilobytes.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024;
    Some(group::memory_limit().map_or(bytes, |limit| limit.min(bytes)))
}

/// The limit for the kernel, which is a little higher: the watch can then stop a line and give the reason before
/// the kernel refuses anything.
pub(super) fn kernel_limit(limit: u64) -> u64 {
    limit.saturating_add(limit / 8).saturating_add(16)
}

/// Tells whether the kernel counts the processes of a user in each user namespace, as it does since 5.14.
pub(super) fn counts_by_namespace() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    version(&release).is_some_and(|version| version >= (5, 14))
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Makes a process, and all that it starts, the first to be ended when the machine has no memory left.
pub(super) fn die_first(command: &mut Command) {
    const SCORE: &[u8] = b"800";
    let set = || {
        // SAFETY: system calls with constant strings. Without /proc the order is the kernel's.
        unsafe {
            let file = libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
            if file >= 0 {
                libc::write(file, SCORE.as_ptr().cast(), SCORE.len());
                libc::close(file);
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec only system calls are made: nothing is allocated or locked.
    unsafe { command.pre_exec(set) };
}

/// A limit that the processes of a jail passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breach {
    Memory {
        limit: u64,
    },
    Processes {
        limit: u64,
    },
    /// Growth of the used space of a disk.
    Disk {
        limit: u64,
    },
    /// Growth of the number of files of a disk.
    Files {
        limit: u64,
    },
    /// The size of one file.
    File {
        limit: u64,
    },
    /// Little space is left on a disk.
    FullDisk {
        left: u64,
    },
    /// Few files can still be made on a disk.
    FewFilesLeft {
        left: u64,
    },
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory { limit } => {
                write!(f, "it used more than {} of memory (limit `sandbox.memory`)", size(*limit))
            }
            Self::Processes { limit } => {
                write!(
                    f,
                    "it had more than {limit} processes and threads at one time (limit `sandbox.processes`)"
                )
            }
            Self::Disk { limit } => {
                write!(f, "it filled the disk by more than {} (limit `sandbox.disk`)", size(*limit))
            }
            Self::Files { limit } => write!(f, "it made more than {limit} files and folders"),
            Self::File { limit } => {
                write!(f, "it wrote a file of more than {} (limit `sandbox.file`)", size(*limit))
            }
            Self::FullDisk { left } => write!(f, "it filled the disk, where only {} are left", size(*left)),
            Self::FewFilesLeft { left } => {
                write!(f, "it made so many files that only {left} more can be made on this disk")
            }
        }
    }
}

fn size(bytes: u64) -> String {
    if bytes >= 10 * GB || (bytes >= GB && bytes.is_multiple_of(GB)) {
        format!("{} GB", bytes / GB)
    } else {
        format!("{} MB", bytes / MB)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_breach_names_the_limit_and_the_option() {
        let words = |breach: Breach| breach.to_string();
        assert_eq!(
            words(Breach::Memory { limit: 4 * GB }),
            "it used more than 4 GB of memory (limit `sandbox.memory`)"
        );
        assert_eq!(
            words(Breach::Disk { limit: 200 * MB }),
            "it filled the disk by more than 200 MB (limit `sandbox.disk`)"
        );
        assert_eq!(size(4 * GB + 300 * MB), "4396 MB");
        assert_eq!(size(18 * GB + 300 * MB), "18 GB");
    }

    #[test]
    fn a_release_is_compared_by_its_numbers() {
        let found = ["6.18.44-fc-v669", "5.4.0", "5.14.0-70.el9", "6.1-rc1"].map(version);
        assert_eq!(found, [Some((6, 18)), Some((5, 4)), Some((5, 14)), Some((6, 1))]);
        assert_eq!(version("next"), None);
    }

    #[test]
    fn a_large_build_is_far_below_the_default_limits() {
        let limits = JailLimits::default();
        assert!(limits.processes >= 64 * 16 && limits.disk >= 10 * GB && limits.memory > 0);
        assert!(kernel_limit(limits.processes) > limits.processes);
        assert_eq!(kernel_limit(u64::MAX), u64::MAX);
    }
}
