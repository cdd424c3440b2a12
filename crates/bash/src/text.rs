//! The text of a word. Nearly every word is short, and allocating and freeing it would cost more than reading it.

use std::fmt;
use std::ops::Deref;

/// The longest text that makes a word no larger than its other pieces do.
const SHORT: usize = 30;

/// Text that is kept in place while it is short.
#[derive(Clone)]
pub struct InlineText(TextStorage);

#[derive(Clone)]
enum TextStorage {
    /// The bytes are valid text up to the length: only whole text is ever put there.
    Short(u8, [u8; SHORT]),
    Long(String),
}

impl InlineText {
    pub(crate) fn push_str(&mut self, more: &str) {
        match &mut self.0 {
            TextStorage::Long(text) => text.push_str(more),
            TextStorage::Short(length, bytes) => {
                let (from, to) = (usize::from(*length), usize::from(*length) + more.len());
                if let (Some(free), Ok(to)) = (bytes.get_mut(from..to), u8::try_from(to)) {
                    free.copy_from_slice(more.as_bytes());
                    *length = to;
                } else {
                    let mut text = String::with_capacity(to * 2);
                    text.push_str(self);
                    text.push_str(more);
                    self.0 = TextStorage::Long(text);
                }
            }
        }
    }
}

impl Deref for InlineText {
    type Target = str;

    fn deref(&self) -> &str {
        match &self.0 {
            TextStorage::Long(text) => text,
            TextStorage::Short(length, bytes) => {
                let bytes = bytes.get(..usize::from(*length)).unwrap_or(bytes);
                std::str::from_utf8(bytes).unwrap_or("")
            }
        }
    }
}

impl From<&str> for InlineText {
    fn from(text: &str) -> Self {
        let mut short = Self(TextStorage::Short(0, [0; SHORT]));
        short.push_str(text);
        short
    }
}

impl From<String> for InlineText {
    fn from(text: String) -> Self {
        if text.len() <= SHORT { Self::from(text.as_str()) } else { Self(TextStorage::Long(text)) }
    }
}

impl PartialEq for InlineText {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for InlineText {}

impl fmt::Debug for InlineText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for InlineText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::{InlineText, SHORT};

    #[test]
    fn text_is_the_same_short_and_long() {
        for unit in ["a", "é", "日", "🙂"] {
            let (mut grown, mut wanted) = (InlineText::from(""), String::new());
            for _ in 0..=SHORT {
                assert_eq!(*grown, *wanted);
                assert_eq!(grown, InlineText::from(wanted.clone()));
                assert_eq!(grown, InlineText::from(wanted.as_str()));
                grown.push_str(unit);
                wanted.push_str(unit);
            }
            assert_eq!(format!("{grown} {grown:?}"), format!("{wanted} {wanted:?}"));
        }
    }

    #[test]
    fn the_pieces_of_a_word_are_no_larger_for_it() {
        assert_eq!(size_of::<crate::pieces::Pieces>(), size_of::<InlineText>());
        assert_eq!(size_of::<InlineText>(), 32);
    }
}
