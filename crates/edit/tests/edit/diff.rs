use lathe_edit::{DiffStat, diff_stat, unified_diff};

/// Old, new, path, difference, lines added, lines removed.
type Row = (Option<&'static [u8]>, Option<&'static [u8]>, &'static str, &'static str, usize, usize);

#[test]
fn differences_are_written_as_git_writes_them() {
    let rows: &[Row] = &[
        (Some(b"a\n"), Some(b"a\n"), "x", "", 0, 0),
        (None, None, "x", "", 0, 0),
        (Some(b"a\n"), Some(b"b\n"), "x", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", 1, 1),
        (None, Some(b"a\nb\n"), "x", "--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+b\n", 2, 0),
        (Some(b"a\n"), None, "x", "--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", 0, 1),
        (None, Some(b""), "x", "--- /dev/null\n+++ b/x\n", 0, 0),
        (
            Some(b"a\n"),
            Some(b"a"),
            "x",
            "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n",
            1,
            1,
        ),
        (
            Some(b"a"),
            Some(b"a\nb"),
            "x",
            "--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-a\n\\ No newline at end of file\n+a\n+b\n\\ No newline at end of file\n",
            2,
            1,
        ),
        (
            Some(b"1\n2\n3\n4\n5\n6\n7\n8\n9\n"),
            Some(b"1\n2\n3\n4\nX\n6\n7\n8\n9\n"),
            "x",
            "--- a/x\n+++ b/x\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+X\n 6\n 7\n 8\n",
            1,
            1,
        ),
        (Some(b"a\r\n"), Some(b"b\r\n"), "x", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\r\n+b\r\n", 1, 1),
        (Some(b"\xff\n"), Some(b"a\n"), "x", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-\u{ff}\n+a\n", 1, 1),
        (Some(b"a\0"), Some(b"b\0"), "x", "Binary files a/x and b/x differ\n", 0, 0),
        (None, Some(b"b\0"), "x", "Binary files /dev/null and b/x differ\n", 0, 0),
        (Some(b"a\n"), Some(b"b\n"), "my x", "--- a/my x\t\n+++ b/my x\t\n@@ -1 +1 @@\n-a\n+b\n", 1, 1),
        (
            Some(b"a\n"),
            Some(b"b\n"),
            "x\n+y\"",
            "--- \"a/x\\n+y\\\"\"\n+++ \"b/x\\n+y\\\"\"\n@@ -1 +1 @@\n-a\n+b\n",
            1,
            1,
        ),
    ];
    for (old, new, path, wanted, added, removed) in rows {
        assert_eq!(&unified_diff(*old, *new, path), wanted, "{old:?} {new:?}");
        let stat = DiffStat { added: *added, removed: *removed };
        assert_eq!(diff_stat(*old, *new), stat, "{old:?} {new:?}");
    }
}

#[test]
fn two_far_changes_in_a_large_file_are_two_hunks() {
    // Every third line is the same, as in code.
    let line = |n: usize| {
        if n.is_multiple_of(3) { String::from("}\n") } else { format!("{n}\n") }
    };
    let old: String = (0..200_000).map(line).collect();
    let new = old.replacen("\n100\n", "\nX\n", 1).replacen("\n199000\n", "\nY\nZ\n", 1);
    let diff = unified_diff(Some(old.as_bytes()), Some(new.as_bytes()), "x");
    assert_eq!(diff.lines().filter(|line| line.starts_with("@@")).count(), 2);
    assert_eq!(diff_stat(Some(old.as_bytes()), Some(new.as_bytes())), DiffStat { added: 3, removed: 2 });
}

#[test]
fn unlike_huge_files_do_not_take_long() {
    // Two different orders of few distinct lines are the worst case for a shortest script.
    let shuffled = |mut seed: u32, lines: usize| -> String {
        let mut text = String::new();
        for n in 0..lines {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            text.push_str(["a\n", "b\n", "c\n"][(seed >> 20) as usize % 3]);
            if n.is_multiple_of(400) {
                text.push_str(&format!("{n}\n"));
            }
        }
        text
    };
    for lines in [9_900, 190_000, 3_000_000] {
        let (old, new) = (shuffled(1, lines), shuffled(2, lines));
        let stat = diff_stat(Some(old.as_bytes()), Some(new.as_bytes()));
        assert!(stat.added > 0 && stat.added == stat.removed);
    }
}

/// Applies a difference the way `patch` does, checking every line it names.
fn patched(old: &str, diff: &str) -> String {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let (mut out, mut at) = (String::new(), 0);
    let mut lines = diff.split_inclusive('\n').skip(2).peekable();
    while let Some(line) = lines.next() {
        let unended = lines.peek().is_some_and(|next| next.starts_with('\\'));
        let text = if unended { &line[1..line.len() - 1] } else { &line[1..] };
        match line.as_bytes()[0] {
            b'@' => {
                let span = line[4..].split(' ').next().unwrap();
                let (start, len) = span.split_once(',').unwrap_or((span, "1"));
                let start = start.parse::<usize>().unwrap() - usize::from(len != "0");
                out.extend(old[at..start].iter().copied());
                at = start;
            }
            b'+' => out.push_str(text),
            b'\\' => {}
            kept_or_removed => {
                assert_eq!(old[at], text);
                at += 1;
                out.push_str(if kept_or_removed == b' ' { text } else { "" });
            }
        }
    }
    out.extend(old[at..].iter().copied());
    out
}

#[test]
fn a_difference_of_long_files_leads_from_one_to_the_other() {
    // Blocks moved, lines changed, few distinct lines between the rare ones.
    let line = |n: usize| {
        if n.is_multiple_of(7) { format!("{n}\n") } else { format!("{}\n", n * n % 11) }
    };
    let old: String = (0..40_000).map(line).collect();
    let moved = (20_000..30_000).chain(0..15_000).chain(12_000..40_000);
    let new: String = moved.map(|n: usize| line(if n.is_multiple_of(97) { n + 1 } else { n })).collect();
    let diff = unified_diff(Some(old.as_bytes()), Some(new.as_bytes()), "x");
    assert!(patched(&old, &diff) == new);
}

proptest::proptest! {
    #[test]
    fn a_difference_leads_from_one_content_to_the_other(old in "([ab]?\n){0,30}[ab]?", new in "([ab]?\n){0,30}[ab]?") {
        let diff = unified_diff(Some(old.as_bytes()), Some(new.as_bytes()), "x");
        proptest::prop_assert_eq!(patched(&old, &diff), new);
    }
}
