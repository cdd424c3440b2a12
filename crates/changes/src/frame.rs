//! Frames of an append-only file, each with its length and a checksum: a torn or damaged frame is never mistaken for
//! a whole one.

use std::io;

/// The number of digest bytes that check a frame.
const CHECK: usize = 8;

/// Appends a frame.
pub(crate) fn push(out: &mut Vec<u8>, payload: &[u8]) -> io::Result<()> {
    let len = u32::try_from(payload.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&check(payload));
    out.extend_from_slice(payload);
    Ok(())
}

/// The payload of the first frame, and the bytes after it. None if the frame is not whole.
pub(crate) fn next(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk::<4>()?;
    let (wanted, rest) = rest.split_first_chunk::<CHECK>()?;
    let (payload, rest) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*len)).ok()?)?;
    (check(payload) == *wanted).then_some((payload, rest))
}

fn check(payload: &[u8]) -> [u8; CHECK] {
    use sha2::Digest as _;
    let mut check = [0; CHECK];
    let hash = sha2::Sha256::digest(payload);
    check.iter_mut().zip(hash).for_each(|(to, from)| *to = from);
    check
}

/// Appends bytes with their length before them.
pub(crate) fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Reads a payload from its beginning.
pub(crate) struct Cursor<'a>(pub(crate) &'a [u8]);

impl<'a> Cursor<'a> {
    pub(crate) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(u32::from_le_bytes(self.take()?)).ok()?;
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }
}
