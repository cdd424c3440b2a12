//! Reads a window of a file that is too large to be read whole: chunks are scanned for line breaks, only as far as
//! needed, and no more is kept than can be shown.
//!
//! Up to [`COUNTED`] bytes the rest of the file is scanned as well, because that is cheap: its lines are counted and
//! its content is hashed, so that an edit knows what was seen. In a larger file the count is not worth the wait.

use std::path::Path;

use lathe_edit::Encoding;
use lathe_protocol::{Digest, DigestBuilder};
use lathe_workspace::Files;

use crate::problem::{FileAccess, Problem};
use crate::tool::RunContext;

/// Bytes by which a file's encoding is detected.
const HEAD: u64 = 64 << 10;

/// Bytes read at a time, a multiple of the unit of every encoding.
const CHUNK: u64 = 1 << 20;

/// Up to this size all lines are counted.
const COUNTED: u64 = 64 << 20;

/// Bytes kept of a text whose encoding has units of one byte: more than any toolset shows.
const KEEP: usize = 1 << 20;

/// Lines kept if the call gives no limit: one more than any toolset shows.
const LINES: usize = 2001;

/// The part of a file that was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) text: String,
    pub(super) first: usize,
    /// The number of lines as people count them.
    pub(super) lines: usize,
    /// The number of lines as `split('\n')` counts them.
    pub(super) pieces: usize,
    /// True if the file continues after what was counted.
    pub(super) open: bool,
    pub(super) encoding: Encoding,
    /// The digest of the whole content, if it was read.
    pub(super) hash: Option<Digest>,
}

/// Reads lines `first` to `last`, counted from 1, of a file of that many bytes.
pub(super) async fn window(
    context: &RunContext,
    (files, path): (&dyn Files, &Path),
    bytes: u64,
    first: usize,
    last: Option<usize>,
) -> Result<Option<Window>, Problem> {
    let wrong = |error| Problem::from_workspace(error, path, FileAccess::Reading);
    let head = files.read(path, Some(0..HEAD)).await.map_err(wrong)?;
    let Some((encoding, mark)) = Encoding::detect(whole_characters(&head)) else {
        return Ok(None);
    };
    let counts = bytes <= COUNTED;
    let mut hasher = counts.then(DigestBuilder::default);
    if let Some(hasher) = &mut hasher {
        hasher.add(head.get(..mark).unwrap_or_default());
    }
    let mut scan = Scan::new(encoding, first, last);
    let mut at = u64::try_from(mark).unwrap_or_default();
    let mut ended = false;
    while !ended && (counts || !scan.is_done()) {
        if context.cancel.is_cancelled() {
            return Err(Problem::Cancelled("Cancelled by the user.".to_owned()));
        }
        let chunk = files.read(path, Some(at..at + CHUNK)).await.map_err(wrong)?;
        let read = u64::try_from(chunk.len()).unwrap_or_default();
        at += read;
        ended = read < CHUNK;
        scan.feed(&chunk);
        if let Some(hasher) = &mut hasher {
            hasher.add(&chunk);
        }
    }
    let hash = hasher.map(DigestBuilder::finish);
    Ok(Some(Window { hash, ..scan.window(!ended) }))
}

/// The beginning of a file without a character that is cut off at its end.
fn whole_characters(head: &[u8]) -> &[u8] {
    let end = if head.contains(&0) {
        head.len() - head.len() % 4
    } else {
        head.iter().rposition(u8::is_ascii).map_or(head.len(), |at| at + 1)
    };
    head.get(..end).unwrap_or(head)
}

/// Scans for line breaks and keeps the content of the window. Chunks hold whole units.
struct Scan {
    encoding: Encoding,
    first: usize,
    /// The last line that is kept.
    last: usize,
    /// True if the call gave a last line.
    limited: bool,
    /// The line that is being read, from 1.
    line: usize,
    /// True if nothing of that line has been read.
    fresh: bool,
    kept: Vec<u8>,
    /// The end of the last whole line in `kept`.
    whole: usize,
    full: bool,
}

impl Scan {
    fn new(encoding: Encoding, first: usize, last: Option<usize>) -> Self {
        Self {
            encoding,
            first,
            last: last.unwrap_or_else(|| first.saturating_add(LINES - 1)),
            limited: last.is_some(),
            line: 1,
            fresh: true,
            kept: Vec::new(),
            whole: 0,
            full: false,
        }
    }

    fn is_done(&self) -> bool {
        self.full || self.line > self.last
    }

    /// The fewest bytes of a character in the encoding.
    fn unit(&self) -> usize {
        match self.encoding {
            Encoding::Utf8 | Encoding::Legacy(_) => 1,
            Encoding::Utf16Le | Encoding::Utf16Be => 2,
            Encoding::Utf32Le | Encoding::Utf32Be => 4,
        }
    }

    /// The end of the line break whose line feed byte is at `at`, if it is one.
    fn end_of_break(&self, chunk: &[u8], at: usize) -> Option<usize> {
        let unit = self.unit();
        let start = at - at % unit;
        let one = chunk.get(start..start + unit)?;
        let zeros = |bytes: &[u8]| bytes.iter().all(|&byte| byte == 0);
        let is_break = match self.encoding {
            Encoding::Utf8 | Encoding::Legacy(_) => true,
            Encoding::Utf16Le | Encoding::Utf32Le => one.starts_with(b"\n") && zeros(&one[1..]),
            Encoding::Utf16Be | Encoding::Utf32Be => one.ends_with(b"\n") && zeros(&one[..unit - 1]),
        };
        is_break.then_some(start + unit)
    }

    fn feed(&mut self, chunk: &[u8]) {
        if self.unit() == 1 && !chunk.is_empty() {
            // A chunk that lies wholly before or after the window is only counted, which is as fast as reading.
            let breaks = memchr::memchr_iter(b'\n', chunk).count();
            if self.line + breaks < self.first || self.line > self.last {
                self.line += breaks;
                self.fresh = chunk.ends_with(b"\n");
                return;
            }
        }
        let mut start = 0;
        for at in memchr::memchr_iter(b'\n', chunk) {
            let Some(end) = self.end_of_break(chunk, at) else { continue };
            self.keep(chunk.get(start..end).unwrap_or_default());
            if (self.first..=self.last).contains(&self.line) && !self.full {
                self.whole = self.kept.len();
            }
            self.line += 1;
            self.fresh = true;
            start = end;
        }
        let rest = chunk.get(start..).unwrap_or_default();
        self.keep(rest);
        self.fresh &= rest.is_empty();
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.full || !(self.first..=self.last).contains(&self.line) {
            return;
        }
        let most = KEEP * self.unit();
        let room = most.saturating_sub(self.kept.len());
        self.full = bytes.len() > room;
        self.kept.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }

    fn window(mut self, open: bool) -> Window {
        // A line of which only a part was kept is shown alone or not at all.
        if self.full && self.whole > 0 {
            self.kept.truncate(self.whole);
        }
        let mut text = String::from_utf8_lossy(&self.encoding.decode(&self.kept)).into_owned();
        // A limited window ends without its last line break.
        if self.limited && (self.line > self.last || self.full) && text.ends_with('\n') {
            text.pop();
            if text.ends_with('\r') {
                text.pop();
            }
        }
        let pieces = self.line;
        let lines = if self.fresh { pieces - 1 } else { pieces };
        Window { text, first: self.first, lines, pieces, open, encoding: self.encoding, hash: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(encoding: Encoding, chunks: &[&[u8]], first: usize, last: Option<usize>) -> Window {
        let mut scan = Scan::new(encoding, first, last);
        for chunk in chunks {
            scan.feed(chunk);
        }
        scan.window(false)
    }

    #[test]
    fn lines_are_found_across_chunks() {
        for (first, last, text) in [
            (1, None, "one\ntwo\r\nthree\n"),
            (2, Some(2), "two"),
            (2, Some(9), "two\r\nthree\n"),
            (3, Some(3), "three"),
            (4, None, ""),
        ] {
            let found = scan(Encoding::Utf8, &[b"on", b"e\ntwo\r", b"\nthr", b"ee\n"], first, last);
            assert_eq!((found.text.as_str(), found.lines, found.pieces), (text, 3, 4), "{first} {last:?}");
        }
    }

    #[test]
    fn what_lies_before_and_after_the_window_is_counted() {
        let chunks: Vec<String> = (1..=300).map(|number| format!("{number}\n{number}'\n")).collect();
        let chunks: Vec<&[u8]> = chunks.iter().map(String::as_bytes).collect();
        for (first, last, text) in
            [(1, 1, "1"), (2, 3, "1'\n2"), (301, 301, "151"), (599, 600, "300\n300'"), (600, 700, "300'\n")]
        {
            let found = scan(Encoding::Utf8, &chunks, first, Some(last));
            assert_eq!((found.text.as_str(), found.lines, found.pieces), (text, 600, 601), "{first}-{last}");
        }
        let found = scan(Encoding::Utf8, &[b"a\n", b"b\n", b"c"], 1, Some(1));
        assert_eq!((found.text.as_str(), found.lines, found.pieces), ("a", 3, 3));
    }

    #[test]
    fn wide_units_are_lines_only_where_they_are_aligned() {
        let wide = |encoding: Encoding| encoding.encode("a\u{0a0a}\n\u{0a00}b").unwrap();
        for encoding in [Encoding::Utf16Le, Encoding::Utf16Be, Encoding::Utf32Le, Encoding::Utf32Be] {
            let found = scan(encoding, &[&wide(encoding)], 2, None);
            assert_eq!((found.text.as_str(), found.lines), ("\u{0a00}b", 2), "{encoding:?}");
        }
    }

    #[test]
    fn no_more_is_kept_than_can_be_shown() {
        let line = vec![b'x'; KEEP];
        let found = scan(Encoding::Utf8, &[b"a\n", &line, &line, b"\nend"], 1, Some(3));
        assert_eq!(found.text, "a");
        let found = scan(Encoding::Utf8, &[b"a\n", &line, &line, b"\nend"], 2, Some(3));
        assert_eq!((found.text.len(), found.lines), (KEEP, 3));
    }
}
