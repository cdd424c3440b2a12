//! Replaces secrets by placeholders, once, where text enters.
//!
//! All text that is journalled, shown or sent to a model has passed here first, so a journal holds what the model saw
//! and a replay is exact. A placeholder is `«secret:NAME»`. Only known values are replaced here; guessing by shape is
//! for screens and logs. A value is also recognised in the forms in which it usually occurs (base64, also in the
//! middle of longer text, hex, and its forms in URLs, JSON, HTML and shells), and with invisible characters in its
//! middle.

mod command_words;
mod cut;
mod escapes;
mod files;
mod forms;
mod names;
mod shadow;
mod shape;
mod shape_stream;
mod stream;

pub use command_words::{mask_command, mask_words};
pub use cut::{beginning, cut_after, cut_before, first_chars, masked_beginning};
pub use files::keys_in_file;
pub use names::{is_secret_name, secrets_in, secrets_in_address};
pub use shape::mask_shapes;
pub use shape_stream::ShapeStream;
pub use stream::Stream;

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use crate::shadow::{BreakHandling, ControlHandling, Shadow};

/// Shorter values are not redacted: they would be found inside ordinary words.
const SHORTEST: usize = 6;

pub struct Redactor {
    finder: Option<AhoCorasick>,
    /// The forms that are searched for, sorted, each once.
    forms: Vec<String>,
    /// The placeholder of each form.
    placeholders: Vec<String>,
    longest: usize,
}

/// A secret in a text.
struct SecretMatch {
    range: Range<usize>,
    form: usize,
}

struct ScanResult {
    /// In order, without overlaps.
    found: Vec<SecretMatch>,
    /// The position of the last bytes that may be the beginning of a secret.
    begun: usize,
    /// The visible part of these bytes.
    rest: Vec<u8>,
}

impl Redactor {
    /// Makes a redactor for pairs of name and value. Short values are ignored.
    ///
    /// The cost is linear in the size of the values, and the first ones are recognised in the most forms.
    pub fn new(secrets: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut known: HashSet<String> = HashSet::new();
        let mut forms: Vec<(String, String)> = Vec::new();
        let mut room = forms::ROOM;
        for (name, value) in secrets {
            if value.len() < SHORTEST || !known.insert(value.clone()) {
                continue;
            }
            let placeholder = format!("«secret:{name}»");
            let dressed = forms::value_forms(&value, room);
            room = room.saturating_sub(dressed.iter().map(String::len).sum());
            let pieces = dressed.iter().flat_map(|form| forms::pieces(form));
            forms.extend(pieces.map(|piece| (piece.to_owned(), placeholder.clone())));
        }
        // The first name of a value counts.
        forms.sort_by(|(one, _), (other, _)| one.cmp(other));
        forms.dedup_by(|(next, _), (first, _)| next == first);
        let (forms, placeholders): (Vec<String>, Vec<String>) = forms.into_iter().unzip();
        // A table of all states costs kilobytes for every byte of a value, and far more time for one that repeats
        // itself.
        let build = || {
            let mut builder = AhoCorasick::builder();
            builder.match_kind(MatchKind::LeftmostLongest).kind(Some(AhoCorasickKind::ContiguousNFA));
            builder.build(&forms).ok()
        };
        let finder = if forms.is_empty() { None } else { build() };
        let longest = forms.iter().map(String::len).max().unwrap_or(0);
        Self { finder, forms, placeholders, longest }
    }

    pub fn redact_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.redact_bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(clean) => Cow::Owned(String::from_utf8_lossy(&clean).into_owned()),
        }
    }

    pub fn redact_bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let found = self.scan(bytes, false).found;
        if found.is_empty() {
            return Cow::Borrowed(bytes);
        }
        Cow::Owned(self.replaced(bytes, 0..bytes.len(), &found))
    }

    /// A redactor for text that comes in pieces: see [`Stream`].
    pub fn stream(&self) -> Stream<'_> {
        Stream::new(self)
    }

    /// The secrets in a text, and with `open`, a possible beginning of one at its end.
    fn scan(&self, bytes: &[u8], open: bool) -> ScanResult {
        let mut looked = ScanResult { found: Vec::new(), begun: bytes.len(), rest: Vec::new() };
        let Some(finder) = &self.finder else { return looked };
        let as_found = |found: aho_corasick::Match| (found.range(), found.pattern().as_usize());
        let plain = finder.find_iter(bytes).map(as_found);
        looked.found.extend(plain.map(|(range, form)| SecretMatch { range, form }));
        if open {
            looked.begun = self.possible_start(bytes);
            looked.rest = bytes.get(looked.begun..).unwrap_or_default().to_vec();
        }
        let mut read = |reading: ControlHandling| {
            let found = &mut looked.found;
            let shadow = Shadow::cast(bytes, reading, BreakHandling::Base64Joined, self.longest, |shadow| {
                let seen = finder.find_iter(shadow.seen()).map(as_found);
                found.extend(seen.map(|(seen, form)| SecretMatch { range: shadow.range(seen), form }));
            })?;
            let begun = if open { self.possible_start(shadow.seen()) } else { shadow.seen().len() };
            if begun < shadow.seen().len() {
                let place = shadow.range(begun..begun + 1).start;
                if place < looked.begun {
                    looked.begun = place;
                    looked.rest = shadow.seen().get(begun..).unwrap_or_default().to_vec();
                }
            }
            Some(shadow.is_ambiguous)
        };
        if let Some(is_ambiguous) = read(ControlHandling::Dropped) {
            if is_ambiguous {
                read(ControlHandling::ByLine);
                read(ControlHandling::Terminal);
            }
            looked.found = merged(looked.found);
        }
        looked
    }

    /// The position of the last bytes that may be the beginning of a secret.
    fn possible_start(&self, bytes: &[u8]) -> usize {
        let begins = |at: &usize| {
            let end = bytes.get(*at..).unwrap_or_default();
            let first = self.forms.partition_point(|form| form.as_bytes() < end);
            // The first of these two may be the end itself.
            let mut near = self.forms.iter().skip(first).take(2);
            near.any(|form| end.len() < form.len() && form.as_bytes().starts_with(end))
        };
        (bytes.len().saturating_sub(self.longest)..bytes.len()).find(begins).unwrap_or(bytes.len())
    }

    /// A part of a text, redacted; the part must not end inside a secret.
    fn replaced(&self, bytes: &[u8], part: Range<usize>, found: &[SecretMatch]) -> Vec<u8> {
        let mut out = Vec::with_capacity(part.len());
        let mut from = part.start;
        for SecretMatch { range, form } in found.iter().filter(|found| found.range.end <= part.end) {
            if range.end <= from {
                continue;
            }
            out.extend_from_slice(bytes.get(from..range.start).unwrap_or_default());
            out.extend_from_slice(self.placeholders.get(*form).map_or(b"", |text| text.as_bytes()));
            // Line breaks that are not part of the secret stay, so that lines keep their numbers.
            let breaks = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count();
            let whole = bytes.get(from.max(range.start)..range.end).map_or(0, breaks);
            let own = self.forms.get(*form).map_or(0, |form| breaks(form.as_bytes()));
            out.extend(std::iter::repeat_n(b'\n', whole.saturating_sub(own)));
            from = range.end;
        }
        out.extend_from_slice(bytes.get(from..part.end).unwrap_or_default());
        out
    }
}

/// Overlapping secrets become one, with the name of the longest.
fn merged(mut all: Vec<SecretMatch>) -> Vec<SecretMatch> {
    all.sort_by_key(|found| (found.range.start, std::cmp::Reverse(found.range.end)));
    let mut merged: Vec<SecretMatch> = Vec::with_capacity(all.len());
    for found in all {
        match merged.last_mut() {
            Some(last) if found.range.start < last.range.end => {
                if found.range.len() > last.range.len() {
                    last.form = found.form;
                }
                last.range.end = last.range.end.max(found.range.end);
            }
            Some(_) | None => merged.push(found),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor() -> Redactor {
        Redactor::new([("KEY".to_owned(), "sk-12345678".to_owned()), ("PIN".to_owned(), "1234".to_owned())])
    }

    #[test]
    fn known_values_become_placeholders_and_short_ones_stay() {
        assert_eq!(redactor().redact_text("key sk-12345678, pin 1234"), "key «secret:KEY», pin 1234");
    }

    #[test]
    fn a_secret_cut_in_two_by_the_stream_is_found() {
        let redactor = redactor();
        for cut in 0..19 {
            let text = b"key sk-12345678 end";
            let mut stream = redactor.stream();
            let mut out = stream.push(&text[..cut]);
            out.extend(stream.push(&text[cut..]));
            out.extend(stream.finish());
            assert_eq!(String::from_utf8(out).unwrap(), "key «secret:KEY» end", "cut at {cut}");
        }
    }

    #[test]
    fn ordinary_text_is_not_held_back() {
        let redactor = redactor();
        let mut stream = redactor.stream();
        assert_eq!(stream.push(b"hello"), b"hello");
        assert_eq!(stream.push(b" sk-1"), b" ");
        assert_eq!(stream.push(b"9"), b"sk-19");
    }

    #[test]
    fn a_secret_that_begins_like_another_is_found_whole() {
        let long = ("B".to_owned(), "sk-12345678-long".to_owned());
        let redactor = Redactor::new([("A".to_owned(), "sk-12345678".to_owned()), long]);
        for text in ["x sk-12345678-long y", "x sk-12345678 y"] {
            let mut stream = redactor.stream();
            let mut out: Vec<u8> = text.bytes().flat_map(|byte| stream.push(&[byte])).collect();
            out.extend(stream.finish());
            assert_eq!(String::from_utf8(out).unwrap(), redactor.redact_text(text));
        }
    }

    #[test]
    fn a_secret_is_known_in_its_usual_clothes() {
        let redactor = Redactor::new([("KEY".to_owned(), "sk-12/345+67 8".to_owned())]);
        for text in [
            "sk-12/345+67 8",
            "c2stMTIvMzQ1KzY3IDg=",
            "dXNlcjpzay0xMi8zNDUrNjcgODp4",
            "YTpzay0xMi8zNDUrNjcgOA==",
            "url?k=sk-12%2F345%2B67%208&x",
            "url?k=sk-12%2f345%2b67%208&x",
            "url?k=sk-12%2F345%2B67+8&x",
            "url?k=%73%6b%2d%31%32%2f%33%34%35%2b%36%37%20%38&x",
            "url?k=%73%6B%2D%31%32%2F%33%34%35%2B%36%37%20%38&x",
        ] {
            let clean = redactor.redact_text(text);
            assert!(clean.contains("«secret:KEY»"), "{text}: {clean}");
        }
        assert_eq!(redactor.redact_text("c2stMTIvMzQ"), "c2stMTIvMzQ", "a part of it is not it");
    }

    /// A value without a pattern in it.
    fn random(length: usize) -> String {
        let mut state = 7_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            char::from(b'a' + u8::try_from(state >> 24).unwrap() % 26)
        };
        (0..length).map(|_| next()).collect()
    }

    #[test]
    fn what_is_looked_for_stays_small_whatever_the_values() {
        let many = |count: usize| (0..count).map(|at| format!("{at:05}{}", random(40))).collect::<Vec<_>>();
        for values in [
            vec![random(500)],
            vec![random(4000)],
            vec!["a/".repeat(2000)],
            vec!["A".repeat(500)],
            vec!["<\"&'\u{1}".repeat(4000)],
            vec![random(1 << 17)],
            many(200),
        ] {
            let own: usize = values.iter().map(String::len).sum();
            let redactor = Redactor::new(values.into_iter().map(|value| ("KEY".to_owned(), value)));
            let size: usize = redactor.forms.iter().map(String::len).sum();
            assert!(redactor.longest <= forms::PIECE, "{}", redactor.longest);
            assert!(size <= forms::ROOM + 2 * own, "{size} of {own}");
            let memory = redactor.finder.as_ref().unwrap().memory_usage();
            assert!(memory <= 32 * size, "{memory} for {size}");
        }
    }

    #[test]
    fn a_long_value_is_hidden_piece_by_piece() {
        let value = random(3 * forms::PIECE + 100);
        let redactor = Redactor::new([("KEY".to_owned(), value.clone())]);
        assert_eq!(
            redactor.redact_text(&format!("x {value} y")),
            format!("x {} y", "«secret:KEY»".repeat(4))
        );
        let in_two = redactor.redact_text(&value[100..2 * forms::PIECE]).into_owned();
        assert!(in_two.ends_with("«secret:KEY»"), "a whole piece is known alone");
    }

    #[test]
    fn the_first_values_are_known_in_every_form_whatever_comes_behind() {
        let own = "sk-own-0123456789abcdef";
        let behind = (0..100).map(|at| ("BEHIND".to_owned(), format!("{at:05}{}", random(200))));
        let redactor = Redactor::new(std::iter::once(("OWN".to_owned(), own.to_owned())).chain(behind));
        let backwards: String = own.chars().rev().collect();
        assert_eq!(redactor.redact_text(&backwards), "«secret:OWN»");
        assert_eq!(redactor.redact_text(&format!("00099{}", random(200))), "«secret:BEHIND»");
    }

    #[test]
    fn nothing_known_costs_nothing() {
        assert!(matches!(Redactor::new([]).redact_text("anything"), Cow::Borrowed(_)));
    }
}
