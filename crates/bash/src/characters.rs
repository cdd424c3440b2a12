//! Characters that bash, the grammar and a person's eye read differently.

use lathe_protocol::is_odd;

use crate::script::{Floor, FloorRule};

/// One floor for each kind of such a character in the text. NUL is not a kind of its own here: bash cuts the text at
/// it or drops it, so the caller refuses to read on.
pub(crate) fn odd(text: &str) -> Vec<Floor> {
    // Nearly all text is plain, and a byte is cheaper to check than a character.
    if text.bytes().all(|byte| matches!(byte, b'\t' | b'\n' | b' '..=b'~')) {
        return Vec::new();
    }
    let mut seen: Vec<char> = Vec::new();
    for c in text.chars().filter(|c| is_odd(*c)) {
        if !seen.contains(&c) && seen.len() < 8 {
            seen.push(c);
        }
    }
    seen.iter()
        .map(|c| match *c {
            char::REPLACEMENT_CHARACTER => {
                Floor::new(FloorRule::Character, "it contains bytes that are not text")
            }
            c => Floor::new(
                FloorRule::Character,
                format!("the character U+{:04X} does not show", u32::from(c)),
            ),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::odd;

    #[test]
    fn text_that_shows_is_not_odd() {
        for text in ["ls -la\n\tcat x", "echo 日本語 é ü ñ", "grep '→' x", "echo 🙂", ""] {
            assert!(odd(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn what_does_not_show_is_odd() {
        for c in [
            '\0',
            '\r',
            '\u{b}',
            '\u{c}',
            '\u{1b}',
            '\u{7f}',
            '\u{85}',
            '\u{a0}',
            '\u{200b}',
            '\u{200d}',
            '\u{202e}',
            '\u{2066}',
            '\u{feff}',
            '\u{e0041}',
            '\u{ad}',
            '\u{3000}',
            '\u{2028}',
            '\u{fe0f}',
            '\u{3164}',
            '\u{fffd}',
        ] {
            assert_eq!(odd(&format!("ls {c}x")).len(), 1, "{c:?}");
        }
    }
}
