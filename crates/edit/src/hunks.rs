//! The places where two texts differ, and a text with some of them undone.
//!
//! Lines are bytes with their endings, so any line ending stays as it is.

use std::ops::Range;

use similar::DiffOp;

use crate::compare::compare;

/// Lines that were replaced by others, counted from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    pub old: Range<usize>,
    pub new: Range<usize>,
}

/// The hunks in which the lines differ, in order. `None` if either is not a text of single bytes or UTF-8.
pub fn hunks(old: &[u8], new: &[u8]) -> Option<Vec<Hunk>> {
    // In wide encodings, lines cannot be split by bytes.
    if old.contains(&0) || new.contains(&0) {
        return None;
    }
    let ops = compare(&lines(old), &lines(new));
    let mut found: Vec<Hunk> = Vec::new();
    for op in ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. })) {
        let (old, new) = (op.old_range(), op.new_range());
        match found.last_mut() {
            // A deletion and an insertion at one place are one hunk.
            Some(last) if last.old.end == old.start && last.new.end == new.start => {
                last.old.end = old.end;
                last.new.end = new.end;
            }
            Some(_) | None => found.push(Hunk { old, new }),
        }
    }
    Some(found)
}

/// The new text with these hunks undone, which must be in order.
pub fn without_hunks(old: &[u8], new: &[u8], taken_back: &[Hunk]) -> Vec<u8> {
    let (old, new) = (lines(old), lines(new));
    let mut out = Vec::new();
    let mut at = 0;
    for hunk in taken_back {
        out.extend(new.get(at..hunk.new.start).unwrap_or_default().concat());
        out.extend(old.get(hunk.old.clone()).unwrap_or_default().concat());
        at = hunk.new.end;
    }
    out.extend(new.get(at..).unwrap_or_default().concat());
    out
}

fn lines(content: &[u8]) -> Vec<&[u8]> {
    content.split_inclusive(|&byte| byte == b'\n').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hunk_can_be_taken_back_alone_and_all_of_them_give_the_old_text() {
        let old = b"a\r\nb\r\nc\r\nd\r\ne\r\nf".as_slice();
        let new = b"a\r\nB\r\nc\r\nd\r\nnew\r\ne\r\n".as_slice();
        let found = hunks(old, new).unwrap();
        assert_eq!(found.len(), 3);
        assert_eq!(without_hunks(old, new, &found), old);
        assert_eq!(without_hunks(old, new, &[]), new);
        assert_eq!(without_hunks(old, new, &found[1..2]), b"a\r\nB\r\nc\r\nd\r\ne\r\n");
    }

    #[test]
    fn what_is_no_text_has_no_hunks() {
        assert_eq!(hunks(b"a\0\x01\x02", b"b"), None);
        assert_eq!(hunks(b"", b"").unwrap(), []);
    }
}
