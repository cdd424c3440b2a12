//! The number of the last event, kept outside of the database.
//!
//! SQLite reads its write-ahead log up to the first frame with a wrong checksum and treats the rest as a commit that
//! was never finished. So damage in a log that a killed process left would cut off the newest events silently. The
//! mark is a small file with their number: the writer's number after each commit, and the syncer's after each sync,
//! because a loss of power may take events that were not synced. The boot in which the writer wrote decides which of
//! the two counts. A mark that is itself lost or damaged has no effect.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use crc32fast::Hasher;

/// The number of bytes of one record.
const SLOT: usize = 64;

/// The owner of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Writer,
    Syncer,
}

impl By {
    fn offset(self) -> u64 {
        match self {
            Self::Writer => 0,
            Self::Syncer => SLOT as u64,
        }
    }
}

/// Writes the number of the writer or the syncer.
#[derive(Debug)]
pub(crate) struct Mark {
    file: Option<File>,
    boot: [u8; 36],
}

impl Mark {
    /// Opens the mark. Without room or permission for the file there is no mark, and less damage is noticed.
    pub fn open(path: &Path) -> Self {
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).read(true).write(true).mode(0o600);
        options.custom_flags(nix::libc::O_NOFOLLOW);
        let file = options.open(path).ok();
        // Room for both numbers, so that neither fails on a full disk later.
        if let Some(file) = file.as_ref().filter(|file| file.metadata().is_ok_and(|found| found.len() == 0)) {
            let _ = file.write_all_at(&[0; 2 * SLOT], 0);
        }
        Self { file, boot: boot() }
    }

    /// Records that an event is committed.
    pub fn record_committed(&self, last: i64) {
        self.put(By::Writer, last);
    }

    /// The last event that the writer recorded, for [`record_synced`](Self::record_synced).
    pub fn last_committed(&self) -> i64 {
        self.file.as_ref().and_then(|file| get(file, By::Writer)).map_or(0, |(last, _)| last)
    }

    /// Records that events up to this one survive the loss of power.
    pub fn record_synced(&self, last: i64) {
        self.put(By::Syncer, last);
    }

    fn put(&self, by: By, last: i64) {
        let Some(file) = &self.file else { return };
        let mut slot = [0; SLOT];
        let said = last.to_le_bytes().into_iter().chain(self.boot);
        slot.iter_mut().zip(said).for_each(|(to, from)| *to = from);
        let sum = sum(by, &slot[..SUMMED]).to_le_bytes();
        slot[SUMMED..].iter_mut().zip(sum).for_each(|(to, from)| *to = from);
        let _ = file.write_all_at(&slot, by.offset());
    }
}

/// The number of bytes of a slot that its checksum covers.
const SUMMED: usize = 8 + 36;

/// The minimum number of events that must be there.
pub(crate) fn minimum_events(path: &Path) -> i64 {
    let Ok(file) = OpenOptions::new().read(true).custom_flags(nix::libc::O_NOFOLLOW).open(path) else {
        return 0;
    };
    let synced = get(&file, By::Syncer).map_or(0, |(last, _)| last);
    match get(&file, By::Writer) {
        // The machine has not stopped since: every committed event is there.
        Some((last, written)) if written == boot() => last.max(synced),
        Some(_) | None => synced,
    }
}

fn get(file: &File, by: By) -> Option<(i64, [u8; 36])> {
    let mut slot = [0; SLOT];
    file.read_exact_at(&mut slot, by.offset()).ok()?;
    let (said, rest) = slot.split_at_checked(SUMMED)?;
    let (last, boot) = said.split_first_chunk::<8>()?;
    let holds = rest.first_chunk::<4>().is_some_and(|check| *check == sum(by, said).to_le_bytes());
    let last = i64::from_le_bytes(*last);
    let boot: [u8; 36] = boot.try_into().ok()?;
    holds.then_some((last, boot)).filter(|(last, _)| *last > 0)
}

fn sum(by: By, said: &[u8]) -> u32 {
    let mut sum = Hasher::new();
    sum.update(&by.offset().to_le_bytes());
    sum.update(said);
    sum.finalize()
}

/// The id of this boot of the machine. Zeros if the system does not provide it.
fn boot() -> [u8; 36] {
    let mut boot = [0; 36];
    let id = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    boot.iter_mut().zip(id).for_each(|(to, from)| *to = from);
    boot
}
