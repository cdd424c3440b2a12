//! Texts at the length that people read.

/// Cuts a text to so many characters; a sign at its end shows that there is more.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_text_stays_and_a_long_one_ends_at_a_whole_character() {
        assert_eq!((shortened("äöü", 3), shortened("äöü", 2)), ("äöü".to_owned(), "äö…".to_owned()));
    }
}
