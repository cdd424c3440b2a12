//! Differences for git to apply: unchanged bytes, and binary content in git's own form.
//!
//! [`unified_diff`](crate::unified_diff) is for display. A patch must contain every byte, so lines are compared as
//! bytes, and content with a zero byte is written whole on both sides, so that the patch works in both directions.
//! The bytes are stored, not compressed: that is a valid form too, and needs no library.

use sha1::{Digest as _, Sha1};
use similar::{DiffOp, group_diff_ops};

use crate::compare::compare;
use crate::diff::{CONTEXT, lines, span};

/// The bytes in which git searches for a zero byte.
const PROBE: usize = 8000;

/// Bytes of binary content in one line.
const WIDTH: usize = 52;

/// The most that one stored block of a zlib stream holds.
const BLOCK: usize = 65_535;

const DIGITS: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

/// The lines of a patch below `diff --git` and the modes. Empty where the contents are equal.
pub fn raw_hunks(old: Option<&[u8]>, new: Option<&[u8]>, path: &[u8]) -> Vec<u8> {
    let (before, after) = (old.unwrap_or_default(), new.unwrap_or_default());
    if before == after {
        return Vec::new();
    }
    if is_binary(before) || is_binary(after) {
        return binary(old, new);
    }
    let name = |prefix: &str, side: Option<&[u8]>| match side {
        None => b"/dev/null".to_vec(),
        Some(_) => {
            let tab: &[u8] = if path.contains(&b' ') { b"\t" } else { b"" };
            [&raw_name(prefix, path), tab].concat()
        }
    };
    let mut out = [b"--- ", &*name("a", old), b"\n+++ ", &*name("b", new), b"\n"].concat();
    let (before, after) = (lines(before), lines(after));
    for hunk in group_diff_ops(compare(&before, &after), CONTEXT) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { continue };
        let removed = first.old_range().start..last.old_range().end;
        let added = first.new_range().start..last.new_range().end;
        out.extend(format!("@@ -{} +{} @@\n", span(removed), span(added)).into_bytes());
        for op in &hunk {
            let (gone, come) = (before.get(op.old_range()), after.get(op.new_range()));
            if let DiffOp::Equal { .. } = op {
                write(&mut out, b' ', gone.unwrap_or_default());
            } else {
                write(&mut out, b'-', gone.unwrap_or_default());
                write(&mut out, b'+', come.unwrap_or_default());
            }
        }
    }
    out
}

/// A name after `a/` or `b/`, in git's quotes if it needs them.
pub fn raw_name(prefix: &str, path: &[u8]) -> Vec<u8> {
    let is_text = std::str::from_utf8(path).is_ok();
    let is_special = |byte: &u8| byte.is_ascii_control() || matches!(byte, b'"' | b'\\');
    let name = [prefix.as_bytes(), b"/", path].concat();
    if is_text && !name.iter().any(is_special) {
        return name;
    }
    let mut out = vec![b'"'];
    for byte in name {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', byte]),
            byte if byte.is_ascii_control() || !byte.is_ascii() => {
                out.extend(format!("\\{byte:03o}").into_bytes());
            }
            byte => out.push(byte),
        }
    }
    out.push(b'"');
    out
}

fn is_binary(content: &[u8]) -> bool {
    content.get(..content.len().min(PROBE)).unwrap_or_default().contains(&0)
}

fn write(out: &mut Vec<u8>, mark: u8, lines: &[&[u8]]) {
    for line in lines {
        out.push(mark);
        out.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            out.extend_from_slice(b"\n\\ No newline at end of file\n");
        }
    }
}

fn binary(old: Option<&[u8]>, new: Option<&[u8]>) -> Vec<u8> {
    let mut out = format!("index {}..{}\nGIT binary patch\n", object(old), object(new)).into_bytes();
    for side in [new, old] {
        let content = side.unwrap_or_default();
        out.extend(format!("literal {}\n", content.len()).into_bytes());
        for line in stored(content).chunks(WIDTH) {
            out.push(match line.len() as u8 {
                len @ ..=26 => b'A' + len - 1,
                len => b'a' + len - 27,
            });
            line.chunks(4).for_each(|four| out.extend(base85(four)));
            out.push(b'\n');
        }
        out.push(b'\n');
    }
    out
}

/// The name that git gives to content; all zeros where there is none.
fn object(content: Option<&[u8]>) -> String {
    let Some(content) = content else { return "0".repeat(40) };
    let mut hasher = Sha1::new();
    hasher.update(format!("blob {}\0", content.len()));
    hasher.update(content);
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A zlib stream with the content in stored blocks.
fn stored(content: &[u8]) -> Vec<u8> {
    let mut out = vec![0x78, 0x01];
    let count = content.len().div_ceil(BLOCK).max(1);
    for at in 0..count {
        let block = content.get(at * BLOCK..content.len().min((at + 1) * BLOCK)).unwrap_or_default();
        let len = block.len() as u16;
        out.push(u8::from(at + 1 == count));
        out.extend(len.to_le_bytes());
        out.extend((!len).to_le_bytes());
        out.extend_from_slice(block);
    }
    let (mut low, mut high) = (1_u32, 0_u32);
    for byte in content {
        low = (low + u32::from(*byte)) % 65_521;
        high = (high + low) % 65_521;
    }
    out.extend((high << 16 | low).to_be_bytes());
    out
}

fn base85(four: &[u8]) -> [u8; 5] {
    let byte = |at: usize| u32::from(four.get(at).copied().unwrap_or_default());
    let mut number = byte(0) << 24 | byte(1) << 16 | byte(2) << 8 | byte(3);
    let mut out = [0; 5];
    for digit in out.iter_mut().rev() {
        *digit = DIGITS.get((number % 85) as usize).copied().unwrap_or(b'0');
        number /= 85;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_named_and_packed_as_git_does_it() {
        assert_eq!(object(Some(b"")), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(stored(b"a").len(), 2 + 5 + 1 + 4);
        assert_eq!(base85(&[0, 0, 0, 0]), *b"00000");
        assert_eq!(base85(&[0xff; 4]), *b"|NsC0");
    }

    #[test]
    fn lines_are_bytes_and_names_are_quoted() {
        let patch = raw_hunks(Some(b"a\r\n"), Some(b"caf\xe9\r\n"), b"x y");
        assert_eq!(patch, b"--- a/x y\t\n+++ b/x y\t\n@@ -1 +1 @@\n-a\r\n+caf\xe9\r\n");
        assert_eq!(raw_name("a", b"n\xff"), b"\"a/n\\377\"");
    }
}
