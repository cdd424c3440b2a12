//! Reader for the entries of an index, one after the other, in git's format.
//!
//! A reader holds one entry, not the file: the index of a large repository takes as much memory as all other
//! knowledge of its tree.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The mode of a regular file, without its permissions.
const FILE_MODE: u32 = 0o100_000;

/// The flag bits with more than the length of the path: assumed unchanged, and the stage of a conflict.
const UNUSUAL: u16 = 0x8000 | 0x3000;

/// The flag bit for additional flags.
const EXTENDED: u16 = 0x4000;

/// Among those, the bits for files outside of the work tree, and for files to be added later.
const UNUSUAL_EXTENDED: u16 = 0x4000 | 0x2000;

/// The `stat` of a file when git last compared it with its object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IndexStat {
    /// Seconds and nanoseconds. A build of git that does not record nanoseconds writes zero.
    pub changed: (u32, u32),
    pub modified: (u32, u32),
    /// The low half of the inode number.
    pub inode: u32,
    pub uid: u32,
    pub gid: u32,
    /// The low half of the size.
    pub size: u32,
}

/// An entry of an index.
#[derive(Debug, Clone, Default)]
pub struct IndexEntry {
    pub path: Vec<u8>,
    pub mode: u32,
    /// The name of the object, as bytes.
    pub oid: Vec<u8>,
    pub stat: IndexStat,
    flags: u16,
    extended: u16,
}

impl IndexEntry {
    /// Tells whether it is a regular file that git tracks in the ordinary way: not in conflict, and checked for
    /// changes.
    pub fn is_ordinary_file(&self) -> bool {
        self.mode & 0o170_000 == FILE_MODE
            && self.flags & UNUSUAL == 0
            && self.extended & UNUSUAL_EXTENDED == 0
            && !self.path.is_empty()
    }
}

/// The index of a repository, opened for one pass. Git replaces the file and never writes into it, so a pass reads
/// one state of it.
#[derive(Debug)]
pub struct IndexFile {
    reader: IndexReader<BufReader<File>>,
    head: IndexHeader,
    left: u32,
    length: u64,
    modified: SystemTime,
    entry: IndexEntry,
}

/// An index that git would not read either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DamagedIndex;

impl IndexFile {
    pub(crate) fn new(file: File, hash: usize) -> Result<Self, DamagedIndex> {
        let found = file.metadata().map_err(|_| DamagedIndex)?;
        let modified = found.modified().map_err(|_| DamagedIndex)?;
        let mut reader = IndexReader::new(BufReader::with_capacity(1 << 16, file));
        let (head, left) = IndexHeader::read(&mut reader, hash).ok_or(DamagedIndex)?;
        if !(2..=4).contains(&head.version) {
            return Err(DamagedIndex);
        }
        Ok(Self { reader, head, left, length: found.len(), modified, entry: IndexEntry::default() })
    }

    /// The time when it was written, in nanoseconds since 1970. The times of a file that is as young prove nothing.
    pub fn written(&self) -> i64 {
        let since = self.modified.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    }

    /// The next entry, in the order of the paths. None after the last one.
    pub fn next_entry(&mut self) -> Result<Option<&IndexEntry>, DamagedIndex> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        self.reader.entry(self.head, &mut self.entry).ok_or(DamagedIndex)?;
        Ok(Some(&self.entry))
    }

    /// Tells whether the file has only the differences from a shared index. To be called after the last entry.
    pub fn is_split(mut self) -> Result<bool, DamagedIndex> {
        let body = self.length.checked_sub(self.head.hash as u64).ok_or(DamagedIndex)?;
        while body.saturating_sub(self.reader.at as u64) >= 8 {
            let (kind, content) = self.reader.extension().ok_or(DamagedIndex)?;
            if kind == *b"link" && content.iter().take(self.head.hash).any(|byte| *byte != 0) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The properties of an index that the format of its entries depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IndexHeader {
    pub version: u32,
    /// The number of bytes of an object's name.
    pub hash: usize,
}

impl IndexHeader {
    /// Reads the header of an index, with the number of its entries.
    pub fn read<R: BufRead>(reader: &mut IndexReader<R>, hash: usize) -> Option<(Self, u32)> {
        let sign: [u8; 4] = reader.array()?;
        let (version, count) = (reader.number()?, reader.number()?);
        (sign == *b"DIRC").then_some((Self { version, hash }, count))
    }
}

pub(crate) struct IndexReader<R> {
    source: R,
    pub at: usize,
}

impl<R> std::fmt::Debug for IndexReader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IndexReader").field("at", &self.at).finish_non_exhaustive()
    }
}

impl<R: BufRead> IndexReader<R> {
    pub fn new(source: R) -> Self {
        Self { source, at: 0 }
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let mut taken = [0; N];
        self.source.read_exact(&mut taken).ok()?;
        self.at += N;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// Reads the name and the content of an extension. A size beyond the end of the file allocates nothing.
    pub fn extension(&mut self) -> Option<([u8; 4], Vec<u8>)> {
        let (kind, size) = (self.array()?, u64::from(self.number()?));
        let mut content = Vec::new();
        let read = (&mut self.source).take(size).read_to_end(&mut content).ok()?;
        self.at += read;
        (read as u64 == size).then_some((kind, content))
    }

    /// Reads an entry into `entry`, which must hold the previous one: a path may be encoded relative to it.
    pub fn entry(&mut self, head: IndexHeader, entry: &mut IndexEntry) -> Option<()> {
        let begin = self.at;
        let fixed: [u8; 40] = self.array()?;
        let mut numbers = fixed.chunks_exact(4).map(|four| four.try_into().map_or(0, u32::from_be_bytes));
        let mut number = || numbers.next();
        let changed = (number()?, number()?);
        let modified = (number()?, number()?);
        let (_device, inode) = (number()?, number()?);
        entry.mode = number()?;
        entry.stat = IndexStat { changed, modified, inode, uid: number()?, gid: number()?, size: number()? };
        entry.oid.resize(head.hash, 0);
        self.source.read_exact(&mut entry.oid).ok()?;
        self.at += head.hash;
        entry.flags = u16::from_be_bytes(self.array()?);
        entry.extended = if entry.flags & EXTENDED != 0 { u16::from_be_bytes(self.array()?) } else { 0 };
        // In version 4 a path is encoded by its difference from the previous one.
        let path = &mut entry.path;
        let kept = if head.version == 4 { path.len().checked_sub(self.offset()?)? } else { 0 };
        path.truncate(kept);
        self.at += self.source.read_until(0, path).ok()?;
        path.pop_if(|last| *last == 0)?;
        // Git trusts the length, and would read a longer name as a different one.
        let length = usize::from(entry.flags & 0xfff);
        if length != path.len().min(0xfff) {
            return None;
        }
        // The first byte of the padding, which ends the path, was read already.
        if head.version != 4 {
            for _ in 0..7 - (self.at - 1 - begin) % 8 {
                let [_] = self.array()?;
            }
        }
        Some(())
    }

    /// Reads a number in groups of seven bits, in git's encoding.
    fn offset(&mut self) -> Option<usize> {
        let mut value = 0_usize;
        loop {
            let [byte] = self.array()?;
            value = value.checked_mul(128)?.checked_add(usize::from(byte & 127))?;
            if byte & 128 == 0 {
                return Some(value);
            }
            value = value.checked_add(1)?;
        }
    }
}
