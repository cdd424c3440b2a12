//! Differences between two contents, in git's form.

use std::borrow::Cow;
use std::fmt::Write as _;

use similar::{DiffOp, group_diff_ops};

use crate::compare::compare;
use crate::{Encoding, TextContent};

pub(crate) const CONTEXT: usize = 3;

/// The numbers of lines that an edit added and removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiffStat {
    pub added: usize,
    pub removed: usize,
}

/// The difference in the form of `diff --git`, below its first line; empty where the contents are equal. An absent
/// side is `/dev/null`. Invalid UTF-8 is shown as U+FFFD and another encoding is decoded, so this is for people and
/// models; only for valid UTF-8 is it a patch.
pub fn unified_diff(old: Option<&[u8]>, new: Option<&[u8]>, path: &str) -> String {
    if old == new {
        return String::new();
    }
    let (before, after) = (side("a", old, path), side("b", new, path));
    let readable = (readable(old.unwrap_or_default()), readable(new.unwrap_or_default()));
    let (Some(old), Some(new)) = &readable else {
        return format!("Binary files {before} and {after} differ\n");
    };
    // The same text in another encoding is a difference that no line shows.
    if old == new && !old.is_empty() {
        return format!("Binary files {before} and {after} differ\n");
    }
    // git ends a name that contains a blank with a tab, so that it can be distinguished from a date.
    let tab = |name: &str| if name.contains(' ') { "\t" } else { "" };
    let mut out = format!("--- {before}{}\n+++ {after}{}\n", tab(&before), tab(&after));
    let (old, new) = (lines(old), lines(new));
    for hunk in group_diff_ops(compare(&old, &new), CONTEXT) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else {
            continue;
        };
        let removed = first.old_range().start..last.old_range().end;
        let added = first.new_range().start..last.new_range().end;
        // Writing to a String cannot fail.
        let _ = writeln!(out, "@@ -{} +{} @@", span(removed), span(added));
        for op in &hunk {
            if let DiffOp::Equal { .. } = op {
                show(&mut out, ' ', &old[op.old_range()]);
            } else {
                show(&mut out, '-', &old[op.old_range()]);
                show(&mut out, '+', &new[op.new_range()]);
            }
        }
    }
    out
}

/// The lines added and removed; zero for binary content, which has none.
pub fn diff_stat(old: Option<&[u8]>, new: Option<&[u8]>) -> DiffStat {
    let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
    let mut stat = DiffStat::default();
    let (Some(old), Some(new)) = (readable(old), readable(new)) else {
        return stat;
    };
    for op in compare(&lines(&old), &lines(&new)) {
        if !matches!(op, DiffOp::Equal { .. }) {
            stat.removed += op.old_range().len();
            stat.added += op.new_range().len();
        }
    }
    stat
}

/// The content as UTF-8 if it is text: of a UTF-8 file with its mark and its invalid bytes, of another decoded.
fn readable(content: &[u8]) -> Option<Cow<'_, [u8]>> {
    match Encoding::detect(content)? {
        (Encoding::Utf8, _) => Some(Cow::Borrowed(content)),
        (encoding, mark) => Some(Cow::Owned(TextContent::decode_as(content, encoding, mark).body().to_vec())),
    }
}

pub(crate) fn lines(content: &[u8]) -> Vec<&[u8]> {
    content.split_inclusive(|&byte| byte == b'\n').collect()
}

/// A range of lines in the form of a hunk header: an empty one is named by the line before it, and a length of one is
/// left out.
pub(crate) fn span(range: std::ops::Range<usize>) -> String {
    match range.len() {
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        len => format!("{},{len}", range.start + 1),
    }
}

fn show(out: &mut String, mark: char, lines: &[&[u8]]) {
    for line in lines {
        out.push(mark);
        out.push_str(&String::from_utf8_lossy(line));
        if !line.ends_with(b"\n") {
            out.push_str("\n\\ No newline at end of file\n");
        }
    }
}

fn side<'a>(prefix: &str, content: Option<&[u8]>, path: &'a str) -> Cow<'a, str> {
    match content {
        None => Cow::Borrowed("/dev/null"),
        // A path from the root of the system has its slash already.
        Some(_) => Cow::Owned(quoted(format!("{prefix}/{}", path.trim_start_matches('/')))),
    }
}

/// A name, in git's quotes if a line break or quote in it could be taken for part of the difference.
fn quoted(name: String) -> String {
    if !name.chars().any(|c| c.is_ascii_control() || c == '"' || c == '\\') {
        return name;
    }
    let mut out = String::from('"');
    for c in name.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_ascii_control() => {
                let _ = write!(out, "\\{:03o}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_from_the_root_of_the_system_has_one_slash() {
        let diff = unified_diff(Some(b"a\n"), Some(b"b\n"), "/work/x.txt");
        assert!(diff.starts_with("--- a/work/x.txt\n+++ b/work/x.txt\n"), "{diff}");
    }
}
