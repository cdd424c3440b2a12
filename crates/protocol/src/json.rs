//! The one way in which JSON is written for a reader outside: a terminal, a file, a client.
//!
//! JSON may carry any character as it is. C1 control characters, bidirectional marks and characters of no width would
//! then act on the terminal or editor that shows it, so they are written as numbers. A reader of JSON gets the same
//! text.

use std::fmt::Write as _;

use serde::Serialize;

/// A value as JSON in one line, with every character escaped that acts without being seen.
pub fn json_text(value: &impl Serialize) -> String {
    escape_unseen(serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned()))
}

/// JSON with every character escaped that acts without being seen. Such characters are only in strings.
pub fn escape_unseen(json: String) -> String {
    if !json.chars().any(acts_unseen) {
        return json;
    }
    let mut out = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        if acts_unseen(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// Line breaks and tabs between values are JSON's own; inside of strings they are escaped already.
fn acts_unseen(c: char) -> bool {
    match c {
        '\n' | '\r' | '\t' => false,
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => true,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' => true,
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' => true,
        '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' => true,
        '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_that_acts_unseen_stands_in_json_and_none_is_lost() {
        let text: String = (0..0x11_0000).filter_map(char::from_u32).filter(|c| acts_unseen(*c)).collect();
        let value = serde_json::json!({ "a\u{202e}": format!("x{text}é日\u{1f600}\n") });
        let written = json_text(&value);
        assert!(!written.chars().any(acts_unseen));
        assert!(written.contains("é日\u{1f600}\\n"));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&written).unwrap(), value);
    }
}
