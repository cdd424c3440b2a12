//! A request body made of shared byte strings, with its exact length known.
//!
//! A stream body would be sent chunked, which some servers refuse; joining the parts would copy the history.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::part::Part;

pub(crate) struct ChainedBody {
    /// The request's own list: a copy for each attempt would grow with the history.
    parts: Arc<Vec<Part>>,
    sent: usize,
    left: u64,
}

impl ChainedBody {
    pub(crate) fn new(parts: Arc<Vec<Part>>) -> Self {
        let left = parts.iter().map(|part| part.len() as u64).sum();
        Self { parts, sent: 0, left }
    }
}

impl Body for ChainedBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let Some(part) = self.parts.get(self.sent) else { return Poll::Ready(None) };
        let (length, bytes) = (part.len() as u64, part.bytes());
        self.sent += 1;
        self.left -= length;
        Poll::Ready(Some(bytes.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.sent == self.parts.len()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
