//! What stands around a piece of a data file: blanks, comments, commas, line ends.

use super::Kind;

pub(super) fn newline(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        Some(_) | None => "\n",
    }
}

/// Where the line of `at` begins.
pub(super) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |end| end + 1)
}

/// Where the line of `at` ends, before its line break.
pub(super) fn line_end(text: &str, at: usize) -> usize {
    let end = text[at..].find('\n').map_or(text.len(), |ahead| at + ahead);
    if text[at..end].ends_with('\r') && end < text.len() { end - 1 } else { end }
}

/// After the line break of the line of `at`.
pub(super) fn next_line(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |ahead| at + ahead + 1)
}

/// The blanks at the start of the line of `at`.
pub(super) fn indent(text: &str, at: usize) -> &str {
    let line = &text[line_start(text, at)..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Whether only blanks stand before `at` in its line.
pub(super) fn begins_line(text: &str, at: usize) -> bool {
    text[line_start(text, at)..at].chars().all(|c| c == ' ' || c == '\t')
}

/// The end of the comment that begins at `at`, where one does.
fn comment_end(text: &str, at: usize, kind: Kind) -> Option<usize> {
    let rest = &text[at..];
    match kind {
        Kind::Json if rest.starts_with("//") => Some(line_end(text, at)),
        Kind::Json if rest.starts_with("/*") => Some(rest.find("*/").map_or(text.len(), |end| at + end + 2)),
        Kind::Toml | Kind::Yaml if rest.starts_with('#') => Some(line_end(text, at)),
        Kind::Json | Kind::Toml | Kind::Yaml => None,
    }
}

/// The end of the line of `at`, before its break, if only blanks and comments that
/// end with the line stand between.
pub(super) fn rest_of_line(text: &str, at: usize, kind: Kind) -> Option<usize> {
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
pub(super) fn comma_between(text: &str, from: usize, to: usize, kind: Kind) -> Option<usize> {
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

/// The indentation one level adds, by the first line that has any.
pub(super) fn unit(text: &str) -> &str {
    text.lines()
        .map(|line| &line[..line.len() - line.trim_start_matches([' ', '\t']).len()])
        .find(|indent| !indent.is_empty())
        .unwrap_or("  ")
}
