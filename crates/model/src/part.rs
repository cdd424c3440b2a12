//! One piece of a request body: in memory, or, if a conversation has grown large, in a file.
//!
//! The file has no name and is removed with the process. The operating system keeps or drops its pages, so a
//! conversation of a hundred megabytes costs no more memory than one of thirty.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;

#[derive(Debug, Clone)]
pub enum Part {
    Held(Bytes),
    Spilled { file: Arc<File>, at: u64, len: usize },
}

impl Part {
    pub fn len(&self) -> usize {
        match self {
            Part::Held(bytes) => bytes.len(),
            Part::Spilled { len, .. } => *len,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn bytes(&self) -> std::io::Result<Bytes> {
        match self {
            Part::Held(bytes) => Ok(bytes.clone()),
            Part::Spilled { file, at, len } => {
                let mut bytes = vec![0; *len];
                file.read_exact_at(&mut bytes, *at)?;
                Ok(Bytes::from(bytes))
            }
        }
    }
}

/// The storage for parts that are not held in memory.
pub(crate) struct Spill {
    held: usize,
    file: Option<(Arc<File>, u64)>,
}

impl Spill {
    /// The number of bytes of one conversation that are held in memory.
    const HELD: usize = 32 << 20;

    pub(crate) fn new() -> Self {
        Self { held: 0, file: None }
    }

    /// Keeps a part. If no file can be created, it stays in memory, which is better than failing.
    pub(crate) fn keep(&mut self, bytes: Bytes) -> Part {
        if self.held < Self::HELD {
            self.held += bytes.len();
            return Part::Held(bytes);
        }
        match self.spill(&bytes) {
            Ok(part) => part,
            Err(_) => Part::Held(bytes),
        }
    }

    fn spill(&mut self, bytes: &Bytes) -> std::io::Result<Part> {
        let (file, end) = match self.file.take() {
            Some(open) => open,
            None => (Arc::new(tempfile::tempfile()?), 0),
        };
        let written = file.write_all_at(bytes, end);
        let part = Part::Spilled { file: Arc::clone(&file), at: end, len: bytes.len() };
        // A partial write is overwritten by the next.
        let end = if written.is_ok() { end + bytes.len() as u64 } else { end };
        self.file = Some((file, end));
        written.map(|()| part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spilled_reads_back_as_it_was() {
        let mut spill = Spill { held: Spill::HELD, file: None };
        let parts: Vec<Part> =
            (0..5_u8).map(|n| spill.keep(Bytes::from(vec![n; 1000 + usize::from(n)]))).collect();
        for (n, part) in (0..5_u8).zip(&parts) {
            assert!(matches!(part, Part::Spilled { .. }));
            assert_eq!(part.bytes().unwrap(), vec![n; 1000 + usize::from(n)]);
        }
    }

    #[test]
    fn a_usual_conversation_is_held() {
        assert!(matches!(Spill::new().keep(Bytes::from_static(b"x")), Part::Held(_)));
    }
}
