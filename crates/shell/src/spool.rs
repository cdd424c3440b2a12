//! Output of which the head and the tail are kept.
//!
//! The kept bytes are stored in one space of `keep` bytes: the head in the first half, a ring for the tail in the
//! second. As long as nothing is omitted the two halves simply follow each other. The space is memory while it is
//! small and becomes an unnamed temporary file when it grows, so memory is bounded for any amount of output. If no
//! file can be created, the space shrinks to the memory; nothing fails.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Output stays in memory up to this size.
const IN_MEMORY: u64 = 64 * 1024;

enum Space {
    Memory(Vec<u8>),
    File(File),
}

/// The output of one stream of one line.
pub struct Spool {
    space: Space,
    keep: u64,
    /// The number of all bytes received.
    total: u64,
    /// The number of bytes offered to the space; smaller than `total` only if the disk failed.
    stored: u64,
}

/// The two ends of an output, cut to a size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadTail {
    pub head: Vec<u8>,
    pub tail: Vec<u8>,
    /// The number of bytes of the whole output between the two.
    pub omitted: u64,
}

impl Spool {
    pub fn new(keep: u64) -> Self {
        Self { space: Space::Memory(Vec::new()), keep, total: 0, stored: 0 }
    }

    /// The number of bytes received.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The number of bytes not kept; they are missing between head and tail.
    pub fn omitted(&self) -> u64 {
        self.total - self.kept()
    }

    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// The kept bytes: all of them if nothing was omitted, else head and tail without a mark between.
    pub fn read_all(&self) -> io::Result<Vec<u8>> {
        self.read(0, self.kept())
    }

    /// Both ends, at most `cap` bytes together. An output that fits is entirely in the head.
    pub fn head_tail(&self, cap: usize) -> io::Result<HeadTail> {
        let kept = self.kept();
        let cap = cap as u64;
        if self.omitted() == 0 && kept <= cap {
            return Ok(HeadTail { head: self.read_all()?, tail: Vec::new(), omitted: 0 });
        }
        let head = (cap - cap / 2).min(self.head_size()).min(kept);
        let tail = (cap / 2).min(kept - head);
        Ok(HeadTail {
            head: self.read(0, head)?,
            tail: self.read(kept - tail, tail)?,
            omitted: self.total - head - tail,
        })
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        if self.keep == 0 || self.stored + (bytes.len() as u64) < self.total {
            return;
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let (at, room) = self.place(self.stored);
            let size = room.min(rest.len() as u64);
            let (now, later) = rest.split_at(size as usize);
            match self.write(at, now) {
                Ok(()) => {
                    self.stored += size;
                    rest = later;
                }
                // Everything so far is in memory and small: it is the beginning of a smaller space.
                Err(_) if matches!(self.space, Space::Memory(_)) => self.keep = IN_MEMORY,
                Err(_) => return,
            }
        }
    }

    fn kept(&self) -> u64 {
        self.stored.min(self.keep)
    }

    fn head_size(&self) -> u64 {
        self.keep - self.keep / 2
    }

    /// The position of the byte `index` of the stream, and the number of bytes that may follow it in one piece.
    fn place(&self, index: u64) -> (u64, u64) {
        let head = self.head_size();
        let ring = self.keep / 2;
        match index.checked_sub(head) {
            None => (index, head - index),
            // A space of one byte has no ring: the byte itself is overwritten.
            Some(_) if ring == 0 => (0, 1),
            Some(beyond) => (head + beyond % ring, ring - beyond % ring),
        }
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let end = at + bytes.len() as u64;
        if let Space::Memory(memory) = &mut self.space {
            if end <= IN_MEMORY {
                memory.resize(memory.len().max(end as usize), 0);
                memory[at as usize..end as usize].copy_from_slice(bytes);
                return Ok(());
            }
            let file = tempfile::tempfile()?;
            file.write_all_at(memory, 0)?;
            self.space = Space::File(file);
        }
        match &self.space {
            Space::File(file) => file.write_all_at(bytes, at),
            Space::Memory(_) => Ok(()),
        }
    }

    /// Reads kept bytes by their position among the kept ones.
    fn read(&self, from: u64, size: u64) -> io::Result<Vec<u8>> {
        let lost = self.stored - self.kept();
        let mut bytes = vec![0; size as usize];
        let mut done = 0;
        while done < size {
            let position = from + done;
            let in_head = position < self.head_size();
            let (at, mut room) = self.place(if in_head { position } else { position + lost });
            room = room.min(size - done);
            let piece = &mut bytes[done as usize..(done + room) as usize];
            match &self.space {
                Space::Memory(memory) => piece.copy_from_slice(&memory[at as usize..(at + room) as usize]),
                Space::File(file) => file.read_exact_at(piece, at)?,
            }
            done += room;
        }
        Ok(bytes)
    }
}

impl fmt::Debug for Spool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spool").field("total", &self.total).field("omitted", &self.omitted()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(count: usize) -> Vec<u8> {
        (0..count).map(|i| (i % 251) as u8).collect()
    }

    fn filled(keep: u64, all: &[u8], piece: usize) -> Spool {
        let mut spool = Spool::new(keep);
        all.chunks(piece).for_each(|chunk| spool.push(chunk));
        spool
    }

    #[test]
    fn everything_is_kept_up_to_the_limit() {
        for size in [0, 1, 999, 65_536, 65_537, 200_000] {
            let all = bytes(size);
            let spool = filled(200_000, &all, 1000);
            assert_eq!((spool.total(), spool.omitted()), (size as u64, 0));
            assert_eq!(spool.read_all().unwrap(), all, "{size}");
        }
    }

    #[test]
    fn beyond_the_limit_head_and_tail_are_kept_exactly() {
        for (keep, size, piece) in [
            (10, 11, 1),
            (10, 100, 7),
            (11, 100, 100),
            (2, 9, 4),
            (100_000, 1_000_003, 4096),
            (1000, 5_000_000, 65_536),
        ] {
            let all = bytes(size);
            let spool = filled(keep, &all, piece);
            let (head, tail) = ((keep - keep / 2) as usize, (keep / 2) as usize);
            assert_eq!(spool.omitted(), size as u64 - keep);
            assert_eq!(
                spool.read_all().unwrap(),
                [&all[..head], &all[size - tail..]].concat(),
                "{keep} {size}"
            );
        }
    }

    #[test]
    fn both_ends_are_cut_to_the_size_asked_for() {
        let all = bytes(100);
        let whole = HeadTail { head: all.clone(), tail: Vec::new(), omitted: 0 };
        assert_eq!(filled(1000, &all, 9).head_tail(100).unwrap(), whole);
        let cut = HeadTail { head: all[..5].to_vec(), tail: all[95..].to_vec(), omitted: 90 };
        assert_eq!(filled(1000, &all, 9).head_tail(10).unwrap(), cut);
        assert_eq!(filled(20, &all, 9).head_tail(10).unwrap(), cut);
        let kept = HeadTail { head: all[..10].to_vec(), tail: all[90..].to_vec(), omitted: 80 };
        assert_eq!(filled(20, &all, 9).head_tail(1000).unwrap(), kept);
    }

    #[test]
    fn nothing_may_be_kept() {
        let spool = filled(0, &bytes(10), 3);
        assert_eq!((spool.total(), spool.omitted(), spool.read_all().unwrap()), (10, 10, Vec::new()));
        assert_eq!(filled(1, &bytes(10), 3).omitted(), 9);
    }
}
