//! The terminal: output that survives a closed pipe, colours, and text made harmless.

pub(crate) mod approval;
pub(crate) mod editor;
pub(crate) mod input;
pub(crate) mod output;
pub(crate) mod stops;

use std::io::{IsTerminal, Write};
use std::sync::OnceLock;

pub(crate) use lathe_protocol::clean;
pub(crate) use lathe_views::name_text as name;
use lathe_views::{Language, Style, Styled};

/// The error of standard output, if it could not be written for another reason than a reader that went away.
static LOST: OnceLock<String> = OnceLock::new();

/// Writes to standard output. A reader that went away is not an error: it has read all it wanted.
pub(crate) fn out(text: &str) {
    out_bytes(text.as_bytes());
}

/// Writes a message and a line break to standard output.
pub(crate) fn out_line(message: &str) {
    out(&format!("{message}\n"));
}

/// Writes bytes unchanged, for the output of a user's own commands.
pub(crate) fn out_bytes(bytes: &[u8]) {
    let mut stdout = std::io::stdout().lock();
    if let Err(error) = stdout.write_all(bytes).and_then(|()| stdout.flush())
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        let _ = LOST.set(error.to_string());
    }
}

/// Text of files and commands that another program may want unchanged: harmless on a terminal, unchanged in a pipe.
pub(crate) fn clean_on_terminal(text: &str) -> std::borrow::Cow<'_, str> {
    if std::io::stdout().is_terminal() { clean(text).into() } else { text.into() }
}

/// The reason for which printed output is lost, if some is.
pub(crate) fn lost_output() -> Option<&'static str> {
    LOST.get().map(String::as_str)
}

pub(crate) fn err(text: &str) {
    err_bytes(text.as_bytes());
}

/// Writes a message and a line break to standard error.
pub(crate) fn err_line(message: &str) {
    err(&format!("{message}\n"));
}

pub(crate) fn err_bytes(bytes: &[u8]) {
    // If standard error is closed, there is no place left to report that.
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(bytes).and_then(|()| stderr.flush());
}

pub(crate) fn is_terminal() -> bool {
    let set = |name: &str| std::env::var_os(name).unwrap_or_default();
    std::io::stdout().is_terminal() && set("NO_COLOR").is_empty() && set("TERM") != "dumb"
}

/// The language of the user: `LATHE_LANG`, else the locale.
pub(crate) fn language() -> Language {
    let set = ["LATHE_LANG", "LC_ALL", "LC_MESSAGES", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    set.map_or(Language::English, |name| Language::of(&name))
}

/// The text, filled up with spaces to a number of columns. A Chinese character takes two.
pub(crate) fn padded(text: &str, columns: usize) -> String {
    let wide = text.chars().filter(|sign| ('\u{2e80}'..='\u{ffef}').contains(sign)).count();
    let spaces = columns.saturating_sub(text.chars().count() + wide);
    format!("{text}{}", " ".repeat(spaces))
}

/// Lathe's own colours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    pub(crate) fn new(on: bool) -> Self {
        Self { on }
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.on { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.with("31", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.with("32", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.with("33", text)
    }

    fn cyan(self, text: &str) -> String {
        self.with("36", text)
    }

    /// The text with its styles as colours.
    pub(crate) fn show(self, text: &Styled) -> String {
        let pieces = text.pieces().map(|(style, text)| match style {
            None => text.to_owned(),
            Some(Style::Bold) => self.bold(text),
            Some(Style::Dim) => self.dim(text),
            Some(Style::Red) => self.red(text),
            Some(Style::Green) => self.green(text),
            Some(Style::Yellow) => self.yellow(text),
            Some(Style::Cyan) => self.cyan(text),
            Some(Style::Head) => self.bold(&self.cyan(text)),
        });
        pieces.collect()
    }
}

#[cfg(test)]
mod tests {
    use lathe_protocol::is_hidden;

    use super::{Paint, Styled, clean, padded};

    #[test]
    fn of_ten_thousand_made_up_texts_no_control_gets_through() {
        let pieces = [
            "\u{1b}",
            "[",
            "]",
            "31m",
            "0;t",
            "\u{7}",
            "\\",
            "P",
            "_",
            "^",
            "X",
            "c",
            "(0",
            "\u{9b}",
            "\u{9d}",
            "\u{90}",
            "\r",
            "\u{8}",
            "\u{b}",
            "\u{c}",
            "\0",
            "\u{7f}",
            "\u{85}",
            "\u{202e}",
            "\u{200b}",
            "\u{2066}",
            "\u{feff}",
            "\u{e0041}",
            "a",
            "é",
            "中",
            "\n",
            "\t",
            " ",
            "~",
            "@",
            "\u{fffd}",
        ];
        let mut state: u64 = 42;
        let mut roll = |sides: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % sides
        };
        for _ in 0..10_000 {
            let count = 1 + roll(30);
            let text: String = (0..count).map(|_| pieces[roll(pieces.len())]).collect();
            let wrong = |c: char| (c.is_control() && !matches!(c, '\n' | '\t')) || is_hidden(c);
            assert_eq!(clean(&text).chars().find(|c| wrong(*c)), None, "{text:?}");
        }
    }

    #[test]
    fn nothing_that_moves_the_cursor_gets_through_and_nothing_is_swallowed() {
        for (dirty, cleaned) in [
            ("a\u{1b}[31mred\u{1b}[0m b", "a<U+001B>[31mred<U+001B>[0m b"),
            ("\u{1b}]0;title\u{7}x", "<U+001B>]0;title<U+0007>x"),
            ("x = \"\u{1b}]\"; exec('EVIL');", "x = \"<U+001B>]\"; exec('EVIL');"),
            ("\u{1b}]8;;http://evil\u{1b}\\link", "<U+001B>]8;;http://evil<U+001B>\\link"),
            ("one\r\ntwo\u{8}", "one\ntwo<U+0008>"),
            ("10%\r20%", "10%<U+000D>20%"),
            ("tab\tstays", "tab\tstays"),
            ("\u{202e}evil\u{200b}", "<U+202E>evil<U+200B>"),
            ("\u{9b}31m", "<U+009B>31m"),
            ("中文 é", "中文 é"),
        ] {
            assert_eq!(clean(dirty), cleaned);
        }
    }

    #[test]
    fn a_column_is_as_wide_in_chinese() {
        assert_eq!(
            [padded("new", 8), padded("新增", 8), padded("completed", 3)],
            ["new     ", "新增    ", "completed"]
        );
    }

    #[test]
    fn marks_become_colours_where_there_are_some() {
        let diff = Styled::diff("@@\n+a\r\n-b\u{1b}]c\n");
        assert_eq!(Paint::new(false).show(&diff), "@@\n+a<U+000D>\n-b<U+001B>]c\n");
        let colours =
            "\u{1b}[36m@@\u{1b}[0m\n\u{1b}[32m+a<U+000D>\u{1b}[0m\n\u{1b}[31m-b<U+001B>]c\u{1b}[0m\n";
        assert_eq!(Paint::new(true).show(&diff), colours);
        let head = Styled::of(super::Style::Head, "step 1");
        assert_eq!(Paint::new(true).show(&head), "\u{1b}[1m\u{1b}[36mstep 1\u{1b}[0m\u{1b}[0m");
    }
}
