//! Raw copies of files, one after the other, in files that have no name.
//!
//! Most copies are never looked at: they exist for the one line that deletes the file. So they are not compressed, not
//! hashed and not synced, and they die with the process, as does the knowledge of where in the pack they are. Only what
//! a line changed goes on into the blobs. Every thread has a pack of its own, so none waits for another.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

const BUFFER: usize = 1 << 20;

/// Where a copy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    offset: u64,
    len: u32,
    pack: u8,
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
    /// What the file holds; the buffer comes after it.
    written: u64,
    buffer: Vec<u8>,
}

impl Packs {
    /// `total` is the most that all copies together may take.
    pub fn new(scratch: &Path, number: u8, total: u64) -> io::Result<Self> {
        let pack = || {
            let file = tempfile::tempfile_in(scratch)?;
            Ok(Mutex::new(Pack { file, written: 0, buffer: Vec::new() }))
        };
        let packs = (0..number).map(|_| pack()).collect::<io::Result<_>>()?;
        Ok(Self { packs, live: AtomicU64::new(0), total })
    }

    /// None if there is no room.
    pub fn append(&self, number: u8, bytes: &[u8]) -> io::Result<Option<Place>> {
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
        } else {
            pack.buffer.extend_from_slice(bytes);
            if pack.buffer.len() >= BUFFER {
                pack.flush()?;
            }
        }
        Ok(Some(Place { offset, len, pack: number }))
    }

    pub fn read(&self, place: Place, into: &mut Vec<u8>) -> io::Result<()> {
        let mut pack = self.lock(place.pack)?;
        pack.flush()?;
        into.resize(usize::try_from(place.len).unwrap_or(usize::MAX), 0);
        pack.file.read_exact_at(into, place.offset)
    }

    /// Whether it is as long as this.
    pub fn has_len(place: Place, len: u64) -> bool {
        u64::from(place.len) == len
    }

    /// Gives the room of a copy back that nothing refers to any more.
    pub fn release(&self, place: Place) {
        self.live.fetch_sub(u64::from(place.len), Ordering::Relaxed);
        #[cfg(target_os = "linux")]
        if let (Ok(pack), Ok(offset)) = (self.lock(place.pack), i64::try_from(place.offset)) {
            use nix::fcntl::{FallocateFlags, fallocate};
            let hole = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
            // What is still in the buffer will be written behind this hole. A file system without holes keeps the
            // bytes until the session ends.
            if place.len > 0 && place.offset < pack.written {
                let _ = fallocate(&pack.file, hole, offset, i64::from(place.len));
            }
        }
    }

    /// Writes out what is buffered and gives the buffers back.
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
        Ok(pack.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Pack {
    fn flush(&mut self) -> io::Result<()> {
        if !self.buffer.is_empty() {
            self.file.write_all_at(&self.buffer, self.written)?;
            self.written += self.buffer.len() as u64;
            self.buffer.clear();
        }
        Ok(())
    }
}
