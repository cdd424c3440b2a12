//! The surroundings of a piece of a data file: blanks, comments, commas, line ends.

use super::DataLanguage;

pub(super) fn newline(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        Some(_) | None => "\n",
    }
}

/// The beginning of the line of `at`.
pub(super) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |end| end + 1)
}

/// The end of the line of `at`, before its line break.
pub(super) fn line_end(text: &str, at: usize) -> usize {
    let end = text[at..].find('\n').map_or(text.len(), |ahead| at + ahead);
    if text[at..end].ends_with('\r') && end < text.len() { end - 1 } else { end }
}

/// The position after the line break of the line of `at`.
pub(super) fn next_line(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |ahead| at + ahead + 1)
}

/// The blanks at the start of the line of `at`.
pub(super) fn indent(text: &str, at: usize) -> &str {
    let line = &text[line_start(text, at)..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Tells whether only blanks stand before `at` in its line.
pub(super) fn begins_line(text: &str, at: usize) -> bool {
    text[line_start(text, at)..at].chars().all(|c| c == ' ' || c == '\t')
}

/// The end of the comment that begins at `at`, if one does.
fn comment_end(text: &str, at: usize, kind: DataLanguage) -> Option<usize> {
    let rest = &text[at..];
    match kind {
        DataLanguage::Json if rest.starts_with("//") => Some(line_end(text, at)),
        DataLanguage::Json if rest.starts_with("/*") => {
            Some(rest.find("*/").map_or(text.len(), |end| at + end + 2))
        }
        DataLanguage::Toml | DataLanguage::Yaml if rest.starts_with('#') => Some(line_end(text, at)),
        DataLanguage::Json | DataLanguage::Toml | DataLanguage::Yaml => None,
    }
}

/// The end of the line of `at`, before its break, if only blanks and comments that end with the line are in between.
pub(super) fn rest_of_line(text: &str, at: usize, kind: DataLanguage) -> Option<usize> {
    let end = line_end(text, at);
    let mut at = at;
    while at < end {
        if text[at..].starts_with([' ', '\t']) {
            at += 1;
        } else {
            at = comment_end(text, at, kind).filter(|comment| *comment <= end)?;
        }
    }
    Some(end)
}

/// The first comma between two offsets that is not in a comment.
pub(super) fn comma_between(text: &str, from: usize, to: usize, kind: DataLanguage) -> Option<usize> {
    let mut at = from;
    while at < to {
        if let Some(end) = comment_end(text, at, kind) {
            at = end;
        } else if text[at..].starts_with(',') {
            return Some(at);
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    None
}

/// The indentation that one level adds, by the first line that has any.
pub(super) fn unit(text: &str) -> &str {
    text.lines()
        .map(|line| &line[..line.len() - line.trim_start_matches([' ', '\t']).len()])
        .find(|indent| !indent.is_empty())
        .unwrap_or("  ")
}
