//! The output of a command, and the part of it that the model is shown.

use lathe_redact::{Redactor, cut_after, cut_before};
use lathe_shell::Spool;

/// One stream of a command: the kept bytes, redacted.
pub(crate) struct CapturedStream {
    pub(crate) bytes: Vec<u8>,
    /// Includes the bytes that were not kept, which are missing in the middle of `bytes`.
    pub(crate) total: u64,
}

/// Bytes that are inspected to decide whether a stream is text.
const LOOKED_AT: usize = 8 << 10;

/// The part of a stream that is shown.
pub(crate) struct CutStream {
    pub(crate) text: String,
    /// Bytes of the stream in it.
    pub(crate) shown: u64,
}

impl CapturedStream {
    pub(crate) fn take(spool: &Spool, redactor: &Redactor) -> Self {
        let kept = match spool.read_all() {
            Ok(kept) => kept,
            Err(error) => format!("[the output could not be read back: {error}]").into_bytes(),
        };
        let bytes = match redactor.redact_bytes(&kept) {
            std::borrow::Cow::Borrowed(_) => kept,
            std::borrow::Cow::Owned(clean) => clean,
        };
        Self { total: spool.omitted() + bytes.len() as u64, bytes }
    }

    /// Output that was never in a file.
    pub(crate) fn of(bytes: Vec<u8>, redactor: &Redactor) -> Self {
        let bytes = redactor.redact_bytes(&bytes).into_owned();
        Self { total: bytes.len() as u64, bytes }
    }

    /// Both ends, together at most `cap` bytes, with a note on what is missing in between.
    pub(crate) fn cut(&self, cap: usize) -> CutStream {
        if self.is_binary() {
            let text = format!(
                "[{} bytes that are no text are not shown; send them to a file or a program]",
                self.total
            );
            return CutStream { text, shown: 0 };
        }
        let kept = self.bytes.len();
        if kept as u64 == self.total && kept <= cap {
            return CutStream { text: String::from_utf8_lossy(&self.bytes).into_owned(), shown: self.total };
        }
        // Half of a secret's shape would not look like a secret, and would be shown where the whole is not.
        let head = cut_before(&self.bytes, kept.min(cap - cap / 2));
        let tail = cut_after(&self.bytes, kept.saturating_sub(cap / 2).max(head));
        let omitted = self.total - head as u64 - (kept - tail) as u64;
        let text = |range: std::ops::Range<usize>| {
            String::from_utf8_lossy(self.bytes.get(range).unwrap_or_default()).into_owned()
        };
        CutStream {
            text: format!(
                "{}\n[... {omitted} of {} bytes left out; narrow the command down to see them ...]\n{}",
                text(0..head).trim_end_matches('\n'),
                self.total,
                text(tail..kept),
            ),
            shown: self.total - omitted,
        }
    }

    /// Tells whether it is something other than text: many bytes that no text has, and a zero among them.
    fn is_binary(&self) -> bool {
        let head = self.bytes.get(..self.bytes.len().min(LOOKED_AT)).unwrap_or_default();
        let is_odd = |byte: &&u8| matches!(byte, 0..=8 | 14..=26 | 28..=31 | 127..=255);
        head.contains(&0) && head.iter().filter(is_odd).count() * 10 > head.len() * 3
    }
}

/// The part of `cap` that each of two streams gets: half, and what the other does not need.
pub(crate) fn split_cap(stdout: &CapturedStream, stderr: &CapturedStream, cap: usize) -> (usize, usize) {
    let wanted = |printed: &CapturedStream| usize::try_from(printed.total).unwrap_or(usize::MAX).min(cap);
    let out = (cap / 2).max(cap - wanted(stderr));
    (out, cap - out.min(wanted(stdout)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &str) -> CapturedStream {
        CapturedStream { bytes: text.as_bytes().to_vec(), total: text.len() as u64 }
    }

    #[test]
    fn a_stream_gets_half_and_what_the_other_leaves() {
        for (out, err, expected) in [
            (10, 10, (90, 90)),
            (1000, 0, (100, 0)),
            (0, 1000, (50, 100)),
            (1000, 10, (90, 10)),
            (10, 1000, (50, 90)),
            (1000, 1000, (50, 50)),
        ] {
            let (out, err) = (printed(&"o".repeat(out)), printed(&"e".repeat(err)));
            assert_eq!(split_cap(&out, &err, 100), expected);
        }
    }

    #[test]
    fn what_is_no_text_is_told_and_not_shown() {
        let binary = CapturedStream { bytes: (0..=255).collect(), total: 256 };
        assert_eq!((binary.cut(1000).shown, binary.cut(1000).text.len() < 100), (0, true));
        for text in ["a\0b\0longer name\0", "äöü€🙂", "\u{1b}[31mred\u{1b}[0m"] {
            assert_eq!(printed(text).cut(1000).text, text);
        }
    }

    #[test]
    fn no_character_is_cut_in_two() {
        for cap in 0..20 {
            let cut = printed("äöü€🙂äöü€🙂").cut(cap);
            assert!(!cut.text.contains('\u{fffd}'), "{cap}: {}", cut.text);
            assert!(cut.shown <= cap as u64, "{cap}");
        }
    }

    #[test]
    fn nothing_that_looks_like_a_secret_is_cut_in_two() {
        for secret in [
            "ghp_aB3dE6gH9aB3dE6gH9aB3dE6gH9aB3dE6gH9",
            "sk-ant-api03-Zq9Zq9Zq9Zq9Zq9Zq9Zq9Zq9Zq9",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJabcdefghijkl0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV",
            "password=Hunter2Hunter2Hunter2XYZ",
        ] {
            let lines = printed(&format!("{secret}\n").repeat(50));
            let masked = lathe_redact::mask_shapes(secret).into_owned();
            for cap in 0..300 {
                let text = lines.cut(cap).text;
                let shown = lathe_redact::mask_shapes(&text).into_owned();
                let known = |line: &str| line == masked || line.is_empty() || line.starts_with("[... ");
                assert!(shown.lines().all(known), "{cap}: {shown}");
            }
        }
    }

    #[test]
    fn what_is_missing_is_counted_and_what_fits_is_whole() {
        let whole = printed("0123456789").cut(10);
        assert_eq!((whole.text.as_str(), whole.shown), ("0123456789", 10));
        let cut = printed("0123456789").cut(4);
        assert_eq!(cut.shown, 4);
        assert_eq!(cut.text, "01\n[... 6 of 10 bytes left out; narrow the command down to see them ...]\n89");
    }

    #[test]
    fn bytes_that_were_not_kept_count_as_left_out() {
        let gap = CapturedStream { bytes: b"headtail".to_vec(), total: 100 };
        assert!(gap.cut(8).text.starts_with("head\n[... 92 of 100 bytes"));
        assert!(gap.cut(8).text.ends_with("tail"));
    }
}
