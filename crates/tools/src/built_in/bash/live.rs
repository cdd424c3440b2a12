//! Live output, shown while it appears.

use lathe_protocol::OutputStream;
use lathe_redact::Stream as Clean;
use lathe_shell::{LiveChunk, Stream};
use tokio::sync::mpsc;

use crate::tool::RunContext;

/// Shows chunks until the command has ended, redacted and with whole characters, even where chunks cut them in two.
pub(super) async fn forward(mut chunks: mpsc::Receiver<LiveChunk>, context: &RunContext) {
    let stream =
        |kind| LiveStream { kind, clean: context.services.redactor.stream(), rest: Vec::new(), context };
    let (mut out, mut err) = (stream(OutputStream::Stdout), stream(OutputStream::Stderr));
    while let Some(chunk) = chunks.recv().await {
        match chunk.stream {
            Stream::Stdout => out.push(&chunk.bytes),
            Stream::Stderr => err.push(&chunk.bytes),
        }
    }
    out.finish();
    err.finish();
}

struct LiveStream<'a> {
    kind: OutputStream,
    clean: Clean<'a>,
    /// The beginning of an incomplete character.
    rest: Vec<u8>,
    context: &'a RunContext,
}

impl LiveStream<'_> {
    fn push(&mut self, bytes: &[u8]) {
        let clean = self.clean.push(bytes);
        self.rest.extend(clean);
        let whole = self.rest.len() - unfinished(&self.rest);
        let rest = self.rest.split_off(whole);
        let whole = std::mem::replace(&mut self.rest, rest);
        show(self.context, self.kind, &whole);
    }

    fn finish(self) {
        let rest = [self.rest, self.clean.finish()].concat();
        show(self.context, self.kind, &rest);
    }
}

fn show(context: &RunContext, kind: OutputStream, bytes: &[u8]) {
    if !bytes.is_empty() {
        (context.live)(kind, &String::from_utf8_lossy(bytes));
    }
}

/// Bytes at the end that may become a character with the bytes to come.
fn unfinished(bytes: &[u8]) -> usize {
    let last = bytes.utf8_chunks().last();
    // Only the last chunk can end in invalid bytes that are the beginning of something valid.
    last.map_or(0, |chunk| match std::str::from_utf8(chunk.invalid()) {
        Err(error) if error.error_len().is_none() => chunk.invalid().len(),
        Ok(_) | Err(_) => 0,
    })
}

#[cfg(test)]
mod tests {
    use super::unfinished;

    #[test]
    fn only_the_beginning_of_a_character_is_held_back() {
        for (bytes, expected) in [
            (&b""[..], 0),
            (b"abc", 0),
            ("ä".as_bytes(), 0),
            (b"a\xc3", 1),
            (b"a\xf0\x9f\x99", 3),
            (b"a\xff", 0),
            (b"\xffa", 0),
            (b"\x80", 0),
        ] {
            assert_eq!(unfinished(bytes), expected, "{bytes:?}");
        }
    }
}
