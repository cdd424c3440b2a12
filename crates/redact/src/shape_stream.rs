//! Shapes of secrets in text that comes in pieces, for screens and wires.
//!
//! A shape is recognised only when its word has ended, so the last word is held back until then. The part of the same
//! line that was shown before is examined again with the next text, because a name (`password = `) decides about the
//! value after it. A private key spans many lines; nothing of it is shown until its end has come.

use crate::mask_shapes;
use crate::shadow::is_unseen;

/// The most bytes of a word that are held back, and of a line that are examined again.
const WORD: usize = 4096;
const LINE: usize = 512;

const KEY_BEGINS: &str = "-----BEGIN ";
const KEY_ENDS: &str = "PRIVATE KEY-----";

/// Masks text by shape that comes in pieces.
#[derive(Debug, Default)]
pub struct ShapeStream {
    /// The end of the line that was shown, in its unmasked form.
    context: String,
    /// Text that has come and was not shown yet.
    held: String,
}

impl ShapeStream {
    /// Adds text; returns the text that may be shown now.
    pub fn push(&mut self, text: &str) -> String {
        self.held.push_str(text);
        let end = self.ready();
        self.give(end)
    }

    /// Returns the rest, when nothing more comes.
    pub fn finish(&mut self) -> String {
        let out = self.give(self.held.len());
        self.context.clear();
        out
    }

    /// The length of the held text that can be shown: up to the last word, and up to a private key that has no end
    /// yet.
    fn ready(&self) -> usize {
        // A colour in the middle of a word does not end it.
        let is_in_word = |c: char| c.is_ascii_graphic() || is_unseen(c);
        let last = self.held.char_indices().rev().find(|(_, c)| !is_in_word(*c));
        let mut end = last.map_or(0, |(at, c)| at + c.len_utf8());
        if self.held.len() - end > WORD {
            end = self.held.len();
        }
        match self.held.rfind(KEY_BEGINS) {
            Some(key)
                if self.held.len() - key < 1 << 16
                    && is_open_key(self.held.get(key..).unwrap_or_default()) =>
            {
                end.min(key)
            }
            Some(_) | None => end,
        }
    }

    fn give(&mut self, end: usize) -> String {
        let rest = self.held.split_off(end);
        let new = std::mem::replace(&mut self.held, rest);
        if new.is_empty() {
            return String::new();
        }
        let known = mask_shapes(&self.context).into_owned();
        let whole = format!("{}{new}", self.context);
        let masked = mask_shapes(&whole);
        let out = match masked.strip_prefix(&known) {
            Some(out) => out.to_owned(),
            // A shape reaches into the text that was shown: its new part is masked alone.
            None => masked
                .get(masked.floor_char_boundary(known.len().min(masked.len()))..)
                .unwrap_or_default()
                .to_owned(),
        };
        let line = whole.rfind('\n').map_or(0, |at| at + 1).max(whole.len().saturating_sub(LINE));
        self.context = whole.get(whole.ceil_char_boundary(line)..).unwrap_or_default().to_owned();
        out
    }
}

/// Tells whether a text that begins like a private key may be one that has not ended.
fn is_open_key(text: &str) -> bool {
    let rest = text.get(KEY_BEGINS.len()..).unwrap_or_default();
    let first = rest.lines().next().unwrap_or_default();
    let may_be_key = first.contains(KEY_ENDS)
        || (!rest.contains('\n')
            && first.bytes().all(|byte| byte.is_ascii_uppercase() || b" -".contains(&byte)));
    may_be_key && !rest.get(first.len()..).unwrap_or_default().contains(KEY_ENDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRETS: [&str; 7] = [
        "sk-abcdefghijklmnop1234",
        "hunter22hunter22",
        "AKIAABCDEFGHIJKLMNOP",
        "ghp_abcdefghijklmnopqrstuvwxyz",
        "MIIsecretbody",
        "correct-horse",
        "S3cretS3cret",
    ];

    #[test]
    fn whatever_the_pieces_nothing_of_a_secret_is_shown_and_nothing_else_is_lost() {
        let text = "I use sk-abcdefghijklmnop1234 here.\npassword = 'hunter22hunter22' and AKIAABCDEFGHIJKLMNOP\n\
                    日本 ghp_abcdefghijklmnopqrstuvwxyz 语\n-----BEGIN RSA PRIVATE KEY-----\nMIIsecretbody\n\
                    -----END RSA PRIVATE KEY-----\npassphrase: correct-horse\ncurl -u admin:S3cretS3cret x\nthe end";
        for size in 1..60 {
            let mut stream = ShapeStream::default();
            let chars: Vec<char> = text.chars().collect();
            let mut out = String::new();
            for piece in chars.chunks(size) {
                out.push_str(&stream.push(&piece.iter().collect::<String>()));
            }
            out.push_str(&stream.finish());
            for secret in SECRETS {
                assert!(!out.contains(secret), "{size}: {secret} in {out}");
            }
            for word in
                ["I use ", " here.", "password = '", "' and ", "日本", "语", "the end", "passphrase: "]
            {
                assert!(out.contains(word), "{size}: no {word:?} in {out}");
            }
        }
    }

    #[test]
    fn a_word_with_a_colour_in_it_is_held_back_as_one() {
        for text in [
            "a \u{1b}[31mghp_abcdefghijklmnopqrstuvwxyz\u{1b}[0m b",
            "a ghp_\u{1b}[1mabcdefghijklmnopqrstuvwxyz b",
        ] {
            let mut stream = ShapeStream::default();
            let mut out: String = text.chars().map(|c| stream.push(&c.to_string())).collect();
            out.push_str(&stream.finish());
            assert!(!out.contains("ghp_") && out.contains("«secret»") && out.ends_with(" b"), "{out:?}");
        }
    }

    #[test]
    fn ordinary_text_comes_word_by_word() {
        let mut stream = ShapeStream::default();
        assert_eq!(stream.push("let me loo"), "let me ");
        assert_eq!(stream.push("k at 日本"), "look at 日本");
        assert_eq!(stream.push("end"), "");
        assert_eq!(stream.finish(), "end");
    }
}
