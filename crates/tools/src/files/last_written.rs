//! The content that a file tool wrote last, with its digest.
//!
//! The next change of the same file must verify by digest that the content is still what the model saw. Comparing it
//! with the content written last takes a tenth of the time of hashing, and edits of one file tend to follow each
//! other.

use std::sync::Arc;

use lathe_protocol::Digest;
use lathe_workspace::Content;
use parking_lot::Mutex;

/// Below this size hashing is quick; above it the memory is worth more.
const WORTH_KEEPING: std::ops::RangeInclusive<usize> = 64 * 1024..=4 << 20;

#[derive(Debug, Default)]
pub(crate) struct LastWritten(Mutex<Option<(Content, Digest)>>);

impl LastWritten {
    pub(crate) fn keep(&self, content: &Content, digest: &Digest) {
        if WORTH_KEEPING.contains(&content.len()) {
            *self.0.lock() = Some((Arc::clone(content), digest.clone()));
        }
    }

    /// Tells whether these bytes are known to have this digest. If not, they may still have it.
    pub(crate) fn is(&self, content: &[u8], digest: &Digest) -> bool {
        let known = self.0.lock();
        known.as_ref().is_some_and(|(bytes, named)| named == digest && **bytes == *content)
    }
}
