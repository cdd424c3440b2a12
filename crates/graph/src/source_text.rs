//! Turns bytes into facts: decides what is source text, and what is not worth parsing.

use sha2::{Digest as _, Sha256};

use crate::extract::{extract, language_of};
use crate::facts::{Facts, Gap};
use lathe_grammars::Language;

pub type Hash = [u8; 32];

pub fn hash_of(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

/// A text as it is parsed and stored. Bytes that are not UTF-8 become `�`, so the line numbers stay right.
pub enum SourceText {
    Source(Language, String),
    Nothing(Gap),
}

pub fn text_of(path: &str, bytes: Vec<u8>) -> SourceText {
    if bytes.iter().take(8192).any(|byte| *byte == 0) {
        return SourceText::Nothing(Gap::Binary);
    }
    if is_minified(&bytes) {
        return SourceText::Nothing(Gap::Minified);
    }
    let text =
        String::from_utf8(bytes).unwrap_or_else(|bad| String::from_utf8_lossy(bad.as_bytes()).into_owned());
    match language_of(path, &text) {
        Some(language) => SourceText::Source(language, text),
        None => SourceText::Nothing(Gap::Binary),
    }
}

/// Tells whether more than half of the bytes are in lines that no person would write.
fn is_minified(bytes: &[u8]) -> bool {
    if bytes.len() < 8192 {
        return false;
    }
    let long: usize =
        bytes.split(|byte| *byte == b'\n').map(<[u8]>::len).filter(|length| *length > 1000).sum();
    long * 2 > bytes.len()
}

pub fn facts_of(text: &SourceText) -> Facts {
    match text {
        SourceText::Source(language, text) => extract(*language, text),
        SourceText::Nothing(gap) => Facts::empty(*gap),
    }
}
