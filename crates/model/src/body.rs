//! A request body made of shared byte strings, with its exact length known.
//!
//! A stream body would be sent chunked, which some servers refuse; joining the parts would copy the history.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::part::Part;

pub(crate) struct ChainedBody {
    parts: VecDeque<Part>,
    left: u64,
}

impl ChainedBody {
    pub(crate) fn new(parts: Vec<Part>) -> Self {
        let left = parts.iter().map(|part| part.len() as u64).sum();
        Self { parts: parts.into(), left }
    }
}

impl Body for ChainedBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let part = self.parts.pop_front();
        self.left -= part.as_ref().map_or(0, |part| part.len() as u64);
        Poll::Ready(part.map(|part| part.bytes().map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.parts.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
