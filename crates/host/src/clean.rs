//! Text of files, commands and models as it can be given to a terminal.

use lathe_policy::is_stray_mark;

/// Text of files, commands and models made harmless: every character that does not show but line breaks and tabs is written
/// out (`<U+001B>`), so that it can neither move the cursor nor set the title, and nothing that stands after it is hidden. A
/// carriage return before a line feed is a part of the line's end.
pub fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut before = None;
    while let Some(c) = chars.next() {
        match c {
            '\r' if chars.peek() == Some(&'\n') => {}
            c => push_visible(&mut out, before, c),
        }
        before = Some(c);
    }
    out
}

/// One character of it, after the one before.
pub fn push_visible(out: &mut String, before: Option<char>, c: char) {
    match c {
        '\n' | '\t' | ' '..='~' => out.push(c),
        c if c.is_control() || is_hidden(c) || is_stray_mark(before, c) => {
            out.push_str(&format!("<U+{:04X}>", u32::from(c)))
        }
        c => out.push(c),
    }
}

/// Bidirectional controls and other characters that change how text reads without being seen.
pub fn is_hidden(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{feff}' | '\u{fdd0}'..='\u{fdef}' | '\u{20d0}'..='\u{20ff}' | '\u{1d159}' | '\u{16fe4}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
    )
}
