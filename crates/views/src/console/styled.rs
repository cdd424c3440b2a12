//! Text with marks of its style. A surface decides what a mark becomes: a colour, a class, nothing.

/// The look of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
    Cyan,
    /// The head of a step: bold and cyan.
    Head,
}

/// Text in pieces, each with its look, in order. A piece without a look is plain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Styled(Vec<(Option<Style>, String)>);

impl Styled {
    pub fn new(text: impl Into<String>) -> Self {
        Self::default().and(text)
    }

    pub fn of(style: Style, text: impl Into<String>) -> Self {
        Self::default().styled(style, text)
    }

    /// Adds plain text.
    #[must_use]
    pub fn and(mut self, text: impl Into<String>) -> Self {
        let text = text.into();
        match self.0.last_mut() {
            _ if text.is_empty() => {}
            Some((None, last)) => last.push_str(&text),
            Some((Some(_), _)) | None => self.0.push((None, text)),
        }
        self
    }

    /// Adds text with a look.
    #[must_use]
    pub fn styled(mut self, style: Style, text: impl Into<String>) -> Self {
        self.0.push((Some(style), text.into()));
        self
    }

    /// Adds another text.
    #[must_use]
    pub fn then(self, other: Self) -> Self {
        other.0.into_iter().fold(self, |text, (style, piece)| match style {
            Some(style) => text.styled(style, piece),
            None => text.and(piece),
        })
    }

    /// The pieces in order.
    pub fn pieces(&self) -> impl Iterator<Item = (Option<Style>, &str)> {
        self.0.iter().map(|(style, text)| (*style, text.as_str()))
    }

    /// The text alone.
    pub fn plain(&self) -> String {
        self.0.iter().map(|(_, text)| text.as_str()).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|(_, text)| text.is_empty())
    }

    /// A unified diff, added and removed lines with their looks.
    pub fn diff(diff: &str) -> Self {
        diff.split_terminator('\n').fold(Self::default(), |out, line| {
            let line = clean_line(line);
            let style = match line.as_bytes().first() {
                Some(b'+') if !line.starts_with("+++") => Some(Style::Green),
                Some(b'-') if !line.starts_with("---") => Some(Style::Red),
                Some(b'@') => Some(Style::Cyan),
                _ => None,
            };
            match style {
                Some(style) => out.styled(style, line).and("\n"),
                None => out.and(line).and("\n"),
            }
        })
    }
}

/// A line of a diff, made harmless: a carriage return at its end is written out too, because a diff may be about it.
fn clean_line(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut before = None;
    for c in line.chars() {
        lathe_protocol::push_visible(&mut out, before, c);
        before = Some(c);
    }
    out
}

/// A name, or a path, within a line: what breaks lines is written out too.
pub fn name_text(text: &str) -> String {
    // First, for a carriage return before a line feed is dropped elsewhere.
    let text = text.replace('\r', "<U+000D>").replace('\n', "<U+000A>");
    lathe_protocol::clean(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_stay_apart_and_a_diff_writes_out_what_does_not_show() {
        let text = Styled::new("a").and("b").styled(Style::Red, "c").then(Styled::new("d").and("")).and("e");
        let pieces: Vec<_> = text.pieces().collect();
        assert_eq!(pieces, [(None, "ab"), (Some(Style::Red), "c"), (None, "de")]);
        assert_eq!(text.plain(), "abcde");
        assert_eq!(Styled::diff("+a\r\n-b\u{1b}]c\n").plain(), "+a<U+000D>\n-b<U+001B>]c\n");
        assert_eq!(name_text("a\r\nb"), "a<U+000D><U+000A>b");
    }
}
