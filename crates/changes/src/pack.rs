//! Raw copies of files, one after the other.
//!
//! Most copies are never read: they exist for the one line that deletes the file. So they are not compressed, and
//! have a checksum instead of a digest. They are synced before a line begins, and outlive the process together with
//! the book that records their location, so that the losses from a killed line can still be found. The content that a
//! line changed is stored in the blobs. Every thread has a pack of its own, so that none waits for another.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};

const BUFFER: usize = 1 << 20;

/// The location of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CopyLocation {
    offset: u64,
    len: u32,
    pack: u8,
    /// None for a copy of an older version.
    sum: Option<u32>,
}

#[derive(Debug)]
pub(crate) struct Packs {
    packs: Vec<Mutex<Pack>>,
    live: AtomicU64,
    total: u64,
}

#[derive(Debug)]
struct Pack {
    file: File,
    /// The length of the file; the buffer comes after it.
    written: u64,
    buffer: Vec<u8>,
    /// True if something was written since the last sync.
    dirty: bool,
}

impl CopyLocation {
    pub fn to_bytes(self) -> Vec<u8> {
        let parts = self.offset.to_le_bytes().into_iter().chain(self.len.to_le_bytes()).chain([self.pack]);
        parts.chain(self.sum.into_iter().flat_map(u32::to_le_bytes)).collect()
    }

    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (offset, rest) = bytes.split_first_chunk()?;
        let (len, rest) = rest.split_first_chunk()?;
        let (pack, sum) = rest.split_first()?;
        let sum = match sum {
            [] => None,
            sum => Some(u32::from_le_bytes(sum.try_into().ok()?)),
        };
        Some(Self { offset: u64::from_le_bytes(*offset), len: u32::from_le_bytes(*len), pack: *pack, sum })
    }
}

impl Packs {
    /// `total` is the maximum size of all copies together.
    pub fn new(folder: &Path, number: u8, total: u64) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.create(true).truncate(true).read(true).write(true).mode(0o600);
        Self::open(folder, number, total, &options)
    }

    /// Opens the packs that another process left, for reading.
    pub fn left(folder: &Path, number: u8) -> io::Result<Self> {
        Self::open(folder, number, 0, OpenOptions::new().read(true))
    }

    fn open(folder: &Path, number: u8, total: u64, options: &OpenOptions) -> io::Result<Self> {
        let pack = |number: u8| {
            let file = options.open(folder.join(format!("pack-{number}")))?;
            let written = file.metadata()?.len();
            Ok(Mutex::new(Pack { file, written, buffer: Vec::new(), dirty: false }))
        };
        let packs = (0..number).map(pack).collect::<io::Result<_>>()?;
        Ok(Self { packs, live: AtomicU64::new(0), total })
    }

    /// Makes every copy durable.
    pub fn sync(&self) -> io::Result<()> {
        for number in (0..).take(self.packs.len()) {
            let mut pack = self.lock(number)?;
            pack.flush()?;
            if std::mem::take(&mut pack.dirty) {
                pack.file.sync_data()?;
            }
        }
        Ok(())
    }

    /// None if there is no room.
    pub fn append(&self, number: u8, bytes: &[u8]) -> io::Result<Option<CopyLocation>> {
        let Ok(len) = u32::try_from(bytes.len()) else { return Ok(None) };
        if self.live.fetch_add(u64::from(len), Ordering::Relaxed) + u64::from(len) > self.total {
            self.live.fetch_sub(u64::from(len), Ordering::Relaxed);
            return Ok(None);
        }
        let mut pack = self.lock(number)?;
        let offset = pack.written + pack.buffer.len() as u64;
        if bytes.len() >= BUFFER {
            pack.flush()?;
            pack.file.write_all_at(bytes, pack.written)?;
            pack.written += u64::from(len);
            pack.dirty = true;
        } else {
            pack.buffer.extend_from_slice(bytes);
            if pack.buffer.len() >= BUFFER {
                pack.flush()?;
            }
        }
        Ok(Some(CopyLocation { offset, len, pack: number, sum: Some(crc32fast::hash(bytes)) }))
    }

    pub fn read(&self, place: CopyLocation, into: &mut Vec<u8>) -> io::Result<()> {
        let mut pack = self.lock(place.pack)?;
        pack.flush()?;
        into.resize(usize::try_from(place.len).unwrap_or(usize::MAX), 0);
        pack.file.read_exact_at(into, place.offset)?;
        match place.sum {
            Some(sum) if sum != crc32fast::hash(into) => Err(io::ErrorKind::InvalidData.into()),
            Some(_) | None => Ok(()),
        }
    }

    /// Tells whether a copy has this length.
    pub fn has_len(place: CopyLocation, len: u64) -> bool {
        u64::from(place.len) == len
    }

    /// Releases the room of a copy that nothing refers to any more.
    pub fn release(&self, place: CopyLocation) {
        self.live.fetch_sub(u64::from(place.len), Ordering::Relaxed);
        #[cfg(target_os = "linux")]
        if let (Ok(pack), Ok(offset)) = (self.lock(place.pack), i64::try_from(place.offset)) {
            use nix::fcntl::{FallocateFlags, fallocate};
            let hole = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
            // The buffered bytes will be written after this hole. A file system without holes keeps the bytes until
            // the session ends.
            if place.len > 0 && place.offset < pack.written {
                let _ = fallocate(&pack.file, hole, offset, i64::from(place.len));
            }
        }
    }

    /// Writes out the buffered bytes and frees the buffers.
    pub fn settle(&self) -> io::Result<()> {
        for number in (0..).take(self.packs.len()) {
            let mut pack = self.lock(number)?;
            pack.flush()?;
            pack.buffer = Vec::new();
        }
        Ok(())
    }

    pub fn live(&self) -> u64 {
        self.live.load(Ordering::Relaxed)
    }

    fn lock(&self, number: u8) -> io::Result<MutexGuard<'_, Pack>> {
        let pack = self.packs.get(usize::from(number)).ok_or(io::ErrorKind::NotFound)?;
        Ok(pack.lock())
    }
}

impl Pack {
    fn flush(&mut self) -> io::Result<()> {
        if !self.buffer.is_empty() {
            self.file.write_all_at(&self.buffer, self.written)?;
            self.written += self.buffer.len() as u64;
            self.buffer.clear();
            self.dirty = true;
        }
        Ok(())
    }
}
