//! Text of files, commands and models in a form that is safe for a terminal, or for a person who decides about it.

/// Makes text of files, commands and models harmless: every invisible character except line breaks and tabs is
/// written out (`<U+001B>`), so that it can neither move the cursor nor set the title, and nothing after it is
/// hidden. A carriage return before a line feed is part of the line's end.
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

/// Adds one character of such a text; `before` is the one before it.
pub fn push_visible(out: &mut String, before: Option<char>, c: char) {
    match c {
        '\n' | '\t' | ' '..='~' => out.push(c),
        c if c.is_control() || is_hidden(c) || is_stray_mark(before, c) => {
            out.push_str(&format!("<U+{:04X}>", u32::from(c)))
        }
        c => out.push(c),
    }
}

/// Tells whether a character is a bidirectional control or another one that changes the reading of text without being
/// seen.
pub fn is_hidden(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{feff}' | '\u{fdd0}'..='\u{fdef}' | '\u{20d0}'..='\u{20ff}' | '\u{1d159}' | '\u{16fe4}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
    )
}

/// The text on one line as it really is, for a person who decides about it: invisible characters are written out, and
/// blanks that would push the rest out of sight are counted.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut blanks = 0_usize;
    let mut before = None;
    for c in text.chars().chain(['\0']) {
        if c == ' ' {
            blanks += 1;
            continue;
        }
        match blanks {
            0..=8 => out.extend(std::iter::repeat_n(' ', blanks)),
            _ => out.push_str(&format!(" <{blanks} blanks> ")),
        }
        blanks = 0;
        match c {
            '\n' => out.push('\u{23ce}'),
            c if c == '\t' || is_odd(c) || is_stray_mark(before, c) => {
                out.push_str(&format!("<U+{:04X}>", u32::from(c)))
            }
            c => out.push(c),
        }
        before = Some(c);
    }
    // The NUL at the end was only there to flush the last blanks.
    out.truncate(out.len() - "<U+0000>".len());
    out
}

/// Tells whether a mark is drawn over a character that is not a letter: over a blank or a sign it makes another sign
/// of it, and on a mark it hides the characters around.
fn is_stray_mark(before: Option<char>, c: char) -> bool {
    is_mark(c) && before.is_none_or(|before| before.is_ascii_digit() || !before.is_alphanumeric())
}

fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}' | '\u{302a}'..='\u{302f}' | '\u{fe20}'..='\u{fe2f}')
}

/// Tells whether a character is invisible, or read differently by bash than by a person.
pub fn is_odd(c: char) -> bool {
    match c {
        '\t' | '\n' | ' '..='~' => false,
        c if c.is_control() => true,
        // Spaces that are not blanks to bash, and line ends that are not line ends to bash.
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{2028}' | '\u{2029}' => true,
        '\u{202f}' | '\u{205f}' | '\u{3000}' => true,
        // Soft hyphen, joiners, marks of direction, fillers.
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' => true,
        '\u{600}'..='\u{605}' | '\u{6dd}' | '\u{70f}' | '\u{890}' | '\u{891}' | '\u{8e2}' => true,
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' => true,
        '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' => true,
        '\u{fe00}'..='\u{fe0f}' | '\u{fff0}'..='\u{fffc}' => true,
        // Stands for bytes that are not text.
        char::REPLACEMENT_CHARACTER => true,
        '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' => true,
        '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => true,
        // Noncharacters, marks that enclose the character before them, and fillers without a picture.
        '\u{fdd0}'..='\u{fdef}' | '\u{20d0}'..='\u{20ff}' | '\u{1d159}' | '\u{16fe4}' => true,
        c if u32::from(c) & 0xfffe == 0xfffe => true,
        // Private use: no meaning, often no picture.
        '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn what_does_not_show_is_made_visible() {
        assert_eq!(visible("ls -la"), "ls -la");
        assert_eq!(visible("a\u{202e}b\nc\0"), "a<U+202E>b\u{23ce}c<U+0000>");
        assert_eq!(visible(&format!("ls{}rm", " ".repeat(300))), "ls <300 blanks> rm");
        assert_eq!(visible("a  "), "a  ");
        // A letter carries one mark, as many languages write it; no other character does.
        assert_eq!(visible("e\u{301}"), "e\u{301}");
        assert_eq!(visible("a =\u{338} b"), "a =<U+0338> b");
        assert_eq!(visible(" \u{301}"), " <U+0301>");
        assert_eq!(visible("e\u{301}\u{301}"), "e\u{301}<U+0301>");
    }
}
