//! The text of a word. Nearly every word is short, and to allocate it and free it again would cost more than to read it.

use std::fmt;
use std::ops::Deref;

/// As long as makes a word no larger than its other pieces do.
const SHORT: usize = 30;

/// Text that is kept in place while it is short.
#[derive(Clone)]
pub struct Text(Kept);

#[derive(Clone)]
enum Kept {
    /// The bytes are text up to the length: only whole text is ever put there.
    Short(u8, [u8; SHORT]),
    Long(String),
}

impl Text {
    pub(crate) fn push_str(&mut self, more: &str) {
        match &mut self.0 {
            Kept::Long(text) => text.push_str(more),
            Kept::Short(length, bytes) => {
                let (from, to) = (usize::from(*length), usize::from(*length) + more.len());
                if let (Some(free), Ok(to)) = (bytes.get_mut(from..to), u8::try_from(to)) {
                    free.copy_from_slice(more.as_bytes());
                    *length = to;
                } else {
                    let mut text = String::with_capacity(to * 2);
                    text.push_str(self);
                    text.push_str(more);
                    self.0 = Kept::Long(text);
                }
            }
        }
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        match &self.0 {
            Kept::Long(text) => text,
            Kept::Short(length, bytes) => {
                let bytes = bytes.get(..usize::from(*length)).unwrap_or(bytes);
                std::str::from_utf8(bytes).unwrap_or("")
            }
        }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        let mut short = Self(Kept::Short(0, [0; SHORT]));
        short.push_str(text);
        short
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        if text.len() <= SHORT { Self::from(text.as_str()) } else { Self(Kept::Long(text)) }
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Text {}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::{SHORT, Text};

    #[test]
    fn text_is_the_same_short_and_long() {
        for unit in ["a", "é", "日", "🙂"] {
            let (mut grown, mut wanted) = (Text::from(""), String::new());
            for _ in 0..=SHORT {
                assert_eq!(*grown, *wanted);
                assert_eq!(grown, Text::from(wanted.clone()));
                assert_eq!(grown, Text::from(wanted.as_str()));
                grown.push_str(unit);
                wanted.push_str(unit);
            }
            assert_eq!(format!("{grown} {grown:?}"), format!("{wanted} {wanted:?}"));
        }
    }

    #[test]
    fn the_pieces_of_a_word_are_no_larger_for_it() {
        assert_eq!(size_of::<crate::pieces::Pieces>(), size_of::<Text>());
        assert_eq!(size_of::<Text>(), 32);
    }
}
