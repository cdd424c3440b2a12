//! The only ways in which text of a journal gets into a page.
//!
//! Text of a model, a file or a command is hostile: it may hold markup, quotes, terminal codes, or characters that
//! change the reading direction so that a reader sees another text than there is. [`Text`] and [`Attr`] make all of
//! it plain. Markup is made by literals of this crate only; no link is ever made from content.

use std::fmt::{self, Write as _};

/// Text between tags. Invisible characters are shown as marks.
pub(super) struct EscapedText<'a>(pub &'a str);

/// Text in an attribute or a `<title>`, where there can be no marks: one line, with the names of invisible characters.
pub(super) struct Attr<'a>(pub &'a str);

impl fmt::Display for EscapedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '\n' | '\t' => f.write_char(c)?,
                c if is_hidden(c) => write!(f, "<b class=\"hidden\">{}</b>", Name(c))?,
                c => plain(c, f)?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Attr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '\n' | '\t' | '\r' => f.write_char(' ')?,
                c if is_hidden(c) => write!(f, "[{}]", Name(c))?,
                c => plain(c, f)?,
            }
        }
        Ok(())
    }
}

fn plain(c: char, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match c {
        '&' => f.write_str("&amp;"),
        '<' => f.write_str("&lt;"),
        '>' => f.write_str("&gt;"),
        '"' => f.write_str("&quot;"),
        '\'' => f.write_str("&#39;"),
        c => f.write_char(c),
    }
}

/// The picture of an old control character, the number of any other.
struct Name(char);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = u32::from(self.0);
        match code {
            0..0x20 => f.write_char(char::from_u32(0x2400 + code).unwrap_or('?')),
            0x7f => f.write_char('\u{2421}'),
            code => write!(f, "U+{code:04X}"),
        }
    }
}

/// Controls, and format characters that change how the text around them is read. The joiners that scripts and emoji need
/// are left alone.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{115f}'
                | '\u{1160}'
                | '\u{180e}'
                | '\u{200b}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e01ef}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_becomes_text() {
        assert_eq!(
            EscapedText("<script>alert('1' & \"2\")</script>").to_string(),
            "&lt;script&gt;alert(&#39;1&#39; &amp; &quot;2&quot;)&lt;/script&gt;"
        );
        assert_eq!(Attr("\"onload=x\n").to_string(), "&quot;onload=x ");
    }

    #[test]
    fn what_cannot_be_seen_is_shown() {
        assert_eq!(
            EscapedText("a\u{202e}b\u{1b}[1m\r\n\u{feff}").to_string(),
            "a<b class=\"hidden\">U+202E</b>b<b class=\"hidden\">\u{241b}</b>[1m<b class=\"hidden\">\u{240d}</b>\n<b class=\"hidden\">U+FEFF</b>"
        );
        assert_eq!(Attr("a\u{202e}\u{7f}").to_string(), "a[U+202E][\u{2421}]");
    }

    #[test]
    fn ordinary_text_of_any_script_stays() {
        let text = "naïve 中文 עברית 👩\u{200d}💻\tx";
        assert_eq!(EscapedText(text).to_string(), text);
    }
}
