//! Secrets become placeholders, once, where text enters.
//!
//! Whatever is journalled, shown or sent to a model has passed here first, so a journal holds what the model saw and a
//! replay is exact. A placeholder is `«secret:NAME»`. Only values that are known are replaced here; guessing by shape
//! belongs to screens and logs. A value is also known by the clothes it usually travels in: base64, also in the middle of
//! something longer, and percent-encoding.

mod forms;
mod names;
mod shape;

pub use names::{is_secret_name, secrets_in};
pub use shape::shape;

use std::borrow::Cow;

use aho_corasick::{AhoCorasick, MatchKind};

/// Values shorter than this would be found inside ordinary words.
const SHORTEST: usize = 6;

/// What base64 or a URL makes of a value must be longer to count.
const SHORTEST_FORM: usize = 8;

pub struct Redactor {
    finder: Option<AhoCorasick>,
    placeholders: Vec<String>,
    values: Vec<String>,
}

impl Redactor {
    /// Takes pairs of name and value. Short values are left alone.
    pub fn new(secrets: impl IntoIterator<Item = (String, String)>) -> Self {
        let long = |(_, value): &(String, String)| value.len() >= SHORTEST;
        let dressed = |(name, value): (String, String)| {
            let forms = forms::of(&value).into_iter();
            let forms = forms.filter(move |form| *form == value || form.len() >= SHORTEST_FORM);
            forms.map(move |form| (name.clone(), form))
        };
        let secrets: Vec<(String, String)> = secrets.into_iter().filter(long).flat_map(dressed).collect();
        let finder = if secrets.is_empty() {
            None
        } else {
            let values = secrets.iter().map(|(_, value)| value.as_str());
            AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(values).ok()
        };
        let (placeholders, values) =
            secrets.into_iter().map(|(name, value)| (format!("«secret:{name}»"), value)).unzip();
        Self { finder, placeholders, values }
    }

    /// Where the last bytes begin that may be the beginning of a secret.
    fn begun(&self, bytes: &[u8]) -> usize {
        let begins = |at: &usize| {
            let end = &bytes[*at..];
            self.values.iter().any(|value| end.len() < value.len() && value.as_bytes().starts_with(end))
        };
        let longest = self.values.iter().map(String::len).max().unwrap_or(0);
        (bytes.len().saturating_sub(longest)..bytes.len()).find(begins).unwrap_or(bytes.len())
    }

    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match &self.finder {
            Some(finder) if finder.is_match(text) => Cow::Owned(finder.replace_all(text, &self.placeholders)),
            Some(_) | None => Cow::Borrowed(text),
        }
    }

    pub fn bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        match &self.finder {
            Some(finder) if finder.is_match(bytes) => {
                Cow::Owned(finder.replace_all_bytes(bytes, &self.placeholders))
            }
            Some(_) | None => Cow::Borrowed(bytes),
        }
    }

    /// For text that comes in pieces: see [`Stream`].
    pub fn stream(&self) -> Stream<'_> {
        Stream { redactor: self, held: Vec::new() }
    }
}

/// Holds back the end of what came so far only if it may be the beginning of a secret: everything else is given out at once.
pub struct Stream<'a> {
    redactor: &'a Redactor,
    held: Vec<u8>,
}

impl Stream<'_> {
    /// What may be shown now.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let Some(finder) = &self.redactor.finder else {
            return bytes.to_vec();
        };
        self.held.extend_from_slice(bytes);
        let mut cut = self.redactor.begun(&self.held);
        // A secret is not cut in two by what may be the beginning of another.
        if let Some(over) =
            finder.find_iter(&self.held).find(|found| found.start() < cut && cut < found.end())
        {
            cut = over.start();
        }
        let rest = self.held.split_off(cut);
        let out = std::mem::replace(&mut self.held, rest);
        self.redactor.bytes(&out).into_owned()
    }

    /// The rest, when nothing more comes.
    pub fn finish(self) -> Vec<u8> {
        self.redactor.bytes(&self.held).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor() -> Redactor {
        Redactor::new([("KEY".to_owned(), "sk-12345678".to_owned()), ("PIN".to_owned(), "1234".to_owned())])
    }

    #[test]
    fn known_values_become_placeholders_and_short_ones_stay() {
        assert_eq!(redactor().text("key sk-12345678, pin 1234"), "key «secret:KEY», pin 1234");
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
            assert_eq!(String::from_utf8(out).unwrap(), redactor.text(text));
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
            let clean = redactor.text(text);
            assert!(clean.contains("«secret:KEY»"), "{text}: {clean}");
        }
        assert_eq!(redactor.text("c2stMTIvMzQ"), "c2stMTIvMzQ", "a part of it is not it");
    }

    #[test]
    fn nothing_known_costs_nothing() {
        assert!(matches!(Redactor::new([]).text("anything"), Cow::Borrowed(_)));
    }
}
