//! Places where a text may be cut without splitting something that looks like a secret.
//!
//! A shape is recognised by its beginning, or by the name before it: the rest after a cut looks harmless. So code
//! that cuts a text which is masked later asks here for the place.

use std::borrow::Cow;
use std::ops::Range;

use crate::mask_shapes;
use crate::shape::find_shapes;

/// Bytes around a cut that are examined, besides the words that reach into them.
const AROUND: usize = 16 << 10;
const KEY_BEGINS: &[u8] = b"-----BEGIN ";
/// The most shapes that are passed in a row; shapes may touch each other.
const ROUNDS: usize = 64;

/// The last place up to `at` that is not inside of a shape or a character; the part before it is shown.
pub fn cut_before(text: &[u8], at: usize) -> usize {
    let mut at = at.min(text.len());
    for _ in 0..ROUNDS {
        match across(text, at) {
            Some(shape) => at = shape.start,
            None => break,
        }
    }
    (at.saturating_sub(3)..=at).rev().find(|at| is_char_start(text, *at)).unwrap_or(at)
}

/// The first place from `at` on that is not inside of a shape or a character; the part after it is shown.
pub fn cut_after(text: &[u8], at: usize) -> usize {
    let mut at = at.min(text.len());
    for _ in 0..ROUNDS {
        match across(text, at) {
            Some(shape) => at = shape.end,
            None => break,
        }
    }
    (at..=at + 3).find(|at| is_char_start(text, *at)).unwrap_or(at)
}

/// The beginning of a text, at most `most` bytes of it.
pub fn beginning(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    text.get(..cut_before(text.as_bytes(), most)).unwrap_or_default()
}

/// The beginning of a text, at most `most` characters of it; `None` if that is all.
pub fn first_chars(text: &str, most: usize) -> Option<&str> {
    let (at, _) = text.char_indices().nth(most)?;
    Some(beginning(text, at))
}

/// The first `most` characters of a text, masked by shape, and true if there are more of them. Only the part of the
/// text that may be shown is read.
pub fn masked_beginning(text: &str, most: usize) -> (Cow<'_, str>, bool) {
    let end = text.char_indices().nth(most).map_or(text.len(), |(at, _)| at);
    // A shape that begins in the shown part is recognised by its beginning.
    let near = text.get(..text.ceil_char_boundary(end.saturating_add(AROUND))).unwrap_or(text);
    let masked = mask_shapes(near);
    match masked.char_indices().nth(most) {
        Some((at, _)) => (Cow::Owned(masked.get(..at).unwrap_or_default().to_owned()), true),
        None => {
            let is_cut = near.len() < text.len();
            (masked, is_cut)
        }
    }
}

fn is_char_start(text: &[u8], at: usize) -> bool {
    text.get(at).is_none_or(|byte| byte & 0b1100_0000 != 0b1000_0000)
}

/// The shape on both sides of a place.
fn across(text: &[u8], at: usize) -> Option<Range<usize>> {
    let is_blank = |byte: &u8| byte.is_ascii_whitespace();
    let (before, behind) = text.split_at_checked(at)?;
    // Whole words: a token that is longer than all of this is still recognised by its beginning.
    let near = before.len().saturating_sub(AROUND);
    let from = before.get(..near)?.iter().rposition(is_blank).map_or(0, |blank| blank + 1);
    let far = behind.len().min(AROUND);
    let to = at + behind.get(far..)?.iter().position(is_blank).map_or(behind.len(), |blank| far + blank);
    let window = text.get(from..to)?;
    let is_across = |shape: &Range<usize>| {
        (shape.start + 1..shape.end).contains(&(at - from))
            && !is_open_key(window.get(shape.clone()).unwrap_or_default())
    };
    let found = find_shapes(window).into_iter().map(|found| found.whole).filter(is_across);
    let found = found.reduce(|one, other| one.start.min(other.start)..one.end.max(other.end))?;
    Some(from + found.start..from + found.end)
}

/// Tells whether a shape is a private key without an end nearby; it reaches to the end of any text, and is masked so.
fn is_open_key(shape: &[u8]) -> bool {
    let ends = |part: &[u8]| part == b"-----END ";
    shape.starts_with(KEY_BEGINS) && !shape.windows(9).any(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRETS: [&str; 10] = [
        "ghp_aB3dE6gH9aB3dE6gH9aB3dE6gH9aB3dE6gH9",
        "sk-ant-api03-Zq9Zq9Zq9Zq9Zq9Zq9Zq9Zq9Zq9Zq9Zq9",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJabcdefghijkl0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV",
        "\u{1b}[1mghp_aB3dE6\u{1b}[0mgH9aB3dE6gH9aB3dE6gH9aB3dE6gH9",
        r#"{"a":"b\nghp_aB3dE6gH9aB3dE6gH9aB3dE6gH9aB3dE6gH9"}"#,
        "mysql -uroot -pHunter2Hunter2Hunter2XYZ",
        "password=Hunter2Hunter2Hunter2XYZ",
        "password: Hunter2Hunter2Hunter2XYZ",
        "Authorization: Bearer abcdefghijklmnop0123",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIabcdef\nMIIghijkl\n-----END RSA PRIVATE KEY-----",
    ];

    /// Cuts a text in two at every place, and expects that the masked parts hold nothing of the secret.
    #[test]
    fn no_cut_leaves_half_of_a_secret() {
        for secret in SECRETS {
            let text = format!("ä begin\n{secret}\n{secret} end ö\n");
            let whole = mask_shapes(&text).into_owned();
            for at in 0..=text.len() {
                let head = cut_before(text.as_bytes(), at);
                let tail = cut_after(text.as_bytes(), at);
                assert!(head <= at && at <= tail, "{at}: {head} {tail}");
                for part in [&text[..head], &text[tail..]] {
                    let masked = mask_shapes(part);
                    let known = |word: &str| whole.contains(word);
                    assert!(masked.split_whitespace().all(known), "{at}: {masked:?} of {text:?}");
                }
            }
        }
    }

    #[test]
    fn the_beginning_is_masked_and_the_rest_is_not_read() {
        let text = format!("x {} {}", SECRETS[0], "word ".repeat(10_000));
        assert_eq!(masked_beginning(&text, 12), ("x «secret» w".into(), true));
        assert_eq!(masked_beginning(&text, 4), ("x «s".into(), true));
        assert_eq!(masked_beginning("日本", 2), ("日本".into(), false));
        assert_eq!(masked_beginning("日本", 1), ("日".into(), true));
        // A value that reaches beyond the part that is read is hidden as far as it is read.
        let long = format!("x token={}", "aB3".repeat(30_000));
        assert_eq!(masked_beginning(&long, 1_000), ("x token=«secret»".into(), true));
    }

    #[test]
    fn ordinary_text_is_cut_where_it_was_asked_for() {
        let text = "0123456789 and words, token by token; ä";
        for at in 0..text.len() - 1 {
            assert_eq!((cut_before(text.as_bytes(), at), cut_after(text.as_bytes(), at)), (at, at));
        }
        assert_eq!(cut_before(text.as_bytes(), text.len() - 1), text.len() - 2);
        assert_eq!(cut_after(text.as_bytes(), text.len() - 1), text.len());
        assert_eq!(
            (beginning("日本", 4), first_chars("日本", 1), first_chars("日本", 2)),
            ("日", Some("日"), None)
        );
    }

    #[test]
    fn a_token_longer_than_all_that_is_looked_at_is_known_by_its_beginning() {
        let text = format!("x token={} end", "aB3".repeat(30_000));
        assert_eq!(cut_before(text.as_bytes(), 60_000), 2);
        assert_eq!(cut_after(text.as_bytes(), 60_000), text.len() - 4);
    }

    #[test]
    fn a_private_key_without_an_end_hides_no_text_that_is_far_from_it() {
        let text = format!("-----BEGIN RSA PRIVATE KEY-----\n{}", "words of text\n".repeat(100));
        assert_eq!(cut_after(text.as_bytes(), 1_000), 1_000);
        // Nor does it hide another secret from the cut.
        let text = format!("{text}{}\nend", SECRETS[0]);
        assert_eq!(cut_after(text.as_bytes(), text.len() - 20), text.len() - 4);
    }
}
