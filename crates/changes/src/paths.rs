//! Sorted paths with shared prefixes: each is stored as its difference from the previous one.
//!
//! The first of every [`BLOCK`] paths is complete, so a path is found by binary search over those and by steps inside
//! of a block. A path of a usual tree takes about a dozen bytes, where a separate one takes fifty.

/// The number of paths in a block.
const BLOCK: usize = 16;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Paths {
    bytes: Vec<u8>,
    /// The begin of each block.
    blocks: Vec<u32>,
    len: usize,
}

/// A path cannot be added: there is no room for more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Crowded;

impl Paths {
    /// Adds a path, which must come after all others. `last` is the previous path, and becomes this one.
    pub fn push(&mut self, path: &[u8], last: &mut Vec<u8>) -> Result<(), Crowded> {
        let begin = u32::try_from(self.bytes.len()).map_err(|_| Crowded)?;
        let shared = if self.len.is_multiple_of(BLOCK) {
            self.blocks.push(begin);
            0
        } else {
            common(path, last)
        };
        let rest = path.get(shared..).unwrap_or_default();
        put_number(&mut self.bytes, shared as u64);
        put_number(&mut self.bytes, rest.len() as u64);
        self.bytes.extend_from_slice(rest);
        last.truncate(shared);
        last.extend_from_slice(rest);
        self.len += 1;
        Ok(())
    }

    /// Releases unused memory.
    pub fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.blocks.shrink_to_fit();
    }

    /// The number of a path. The error is the number of the first path after it.
    pub fn find(&self, path: &[u8]) -> Result<usize, usize> {
        let block = self.blocks.partition_point(|at| {
            let mut rest = self.at(*at);
            part(&mut rest).is_some_and(|(_, head)| head <= path)
        });
        // Smaller than all paths.
        let Some(block) = block.checked_sub(1) else { return Err(0) };
        let mut rest = self.blocks.get(block).map(|at| self.at(*at)).unwrap_or_default();
        let first = block * BLOCK;
        // The number of bytes that `path` shares with the previous path, which is smaller.
        let mut same = 0;
        for number in first..self.len.min(first + BLOCK) {
            let Some((shared, bytes)) = part(&mut rest) else { return Err(number) };
            // This path differs from `path` at the same byte as the previous one, and so is smaller too.
            if shared > same {
                continue;
            }
            if shared < same {
                return Err(number);
            }
            let wanted = path.get(same..).unwrap_or_default();
            match bytes.cmp(wanted) {
                std::cmp::Ordering::Less => same += common(bytes, wanted),
                std::cmp::Ordering::Equal => return Ok(number),
                std::cmp::Ordering::Greater => return Err(number),
            }
        }
        Err(self.len.min(first + BLOCK))
    }

    /// A reader that starts with the path of this number.
    pub fn from(&self, number: usize) -> PathReader<'_> {
        let block = number / BLOCK;
        let rest = self.blocks.get(block).map(|at| self.at(*at)).unwrap_or_default();
        let mut reader = PathReader { rest, path: Vec::new() };
        for _ in 0..number % BLOCK {
            reader.next();
        }
        reader
    }

    fn at(&self, at: u32) -> &[u8] {
        usize::try_from(at).ok().and_then(|at| self.bytes.get(at..)).unwrap_or_default()
    }
}

/// Reads paths in order.
#[derive(Debug)]
pub(crate) struct PathReader<'a> {
    rest: &'a [u8],
    path: Vec<u8>,
}

impl PathReader<'_> {
    pub fn next(&mut self) -> Option<&[u8]> {
        let (shared, bytes) = part(&mut self.rest)?;
        self.path.truncate(shared);
        self.path.extend_from_slice(bytes);
        Some(&self.path)
    }
}

/// The length of the prefix shared with the previous path, and the bytes after it.
fn part<'a>(rest: &mut &'a [u8]) -> Option<(usize, &'a [u8])> {
    let shared = usize::try_from(take_number(rest)?).ok()?;
    let len = usize::try_from(take_number(rest)?).ok()?;
    let (bytes, after) = rest.split_at_checked(len)?;
    *rest = after;
    Some((shared, bytes))
}

/// The length of the common prefix of two paths.
pub(crate) fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Appends a number in groups of seven bits, the lowest first.
pub(crate) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 128 {
        out.push(number as u8 | 128);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads such a number from the beginning.
pub(crate) fn take_number(from: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        number |= u64::from(byte & 127) << shift;
        if byte & 128 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_path_is_found_and_told_in_order() {
        let mut all: BTreeSet<Vec<u8>> = BTreeSet::new();
        for folder in 0..40 {
            all.insert(format!("f{folder}").into_bytes());
            for file in 0..folder {
                all.insert(format!("f{folder}/file{file}").into_bytes());
                all.insert(format!("f{folder}/file{file}.txt").into_bytes());
            }
        }
        all.insert(vec![0xff, b'/', 0xfe]);
        let (mut paths, mut last) = (Paths::default(), Vec::new());
        all.iter().for_each(|path| paths.push(path, &mut last).unwrap());
        assert_eq!(paths.len, all.len());
        for (number, path) in all.iter().enumerate() {
            assert_eq!(paths.find(path), Ok(number));
            assert_eq!(paths.from(number).next(), Some(&path[..]));
            for other in [[path, &b"\0"[..]].concat(), path[..path.len() - 1].to_vec()] {
                let place = all.range::<Vec<u8>, _>(..&other).count();
                let expected = if all.contains(&other) { Ok(place) } else { Err(place) };
                assert_eq!(paths.find(&other), expected, "{}", String::from_utf8_lossy(&other));
            }
        }
        assert_eq!(paths.find(b""), Err(0));
        assert_eq!(Paths::default().find(b"x"), Err(0));
        let mut reader = paths.from(0);
        assert!(all.iter().all(|path| reader.next() == Some(&path[..])));
        assert_eq!(reader.next(), None);
    }

    #[test]
    fn a_number_is_read_as_it_was_written() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            put_number(&mut bytes, number);
            assert_eq!(take_number(&mut &bytes[..]), Some(number));
            assert_eq!(take_number(&mut &bytes[..bytes.len() - 1]), None);
        }
    }
}
