//! Patches of both forms, planned over files in memory.

use std::collections::BTreeMap;

use lathe_edit::MatchKind::{Exact, Indentation, LineEndings, TrailingBlanks};
use lathe_edit::patch::{FileChange, Loosened, Patch, PatchError, plan};
use lathe_edit::{EditError, MatchKind, Nearest};

use crate::encodings::bytes;

type Files = BTreeMap<String, Vec<u8>>;

fn files(given: &[(&str, &str)]) -> Files {
    given.iter().map(|(path, content)| ((*path).to_owned(), content.as_bytes().to_vec())).collect()
}

fn planned(patch: &str, files: &Files) -> Result<Vec<FileChange>, PatchError> {
    plan(&Patch::parse(patch)?, &|path| files.get(path).cloned())
}

/// The files after the patch.
fn applied(patch: &str, given: &[(&str, &str)]) -> Result<Vec<(String, String)>, PatchError> {
    let mut files = files(given);
    for change in planned(patch, &files)? {
        if let Some(from) = &change.moved_from {
            files.remove(from);
        }
        match change.after {
            Some(after) => files.insert(change.path, after),
            None => files.remove(&change.path),
        };
    }
    Ok(files.into_iter().map(|(path, content)| (path, String::from_utf8(content).unwrap())).collect())
}

/// A row: description, files, patch, files after it.
type Row = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
    &'static [(&'static str, &'static str)],
);

#[test]
fn a_patch_changes_what_it_says() {
    #[rustfmt::skip]
    let rows: &[Row] = &[
        ("one hunk", &[("x", "1\n2\n3\n")], "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n", &[("x", "1\ntwo\n3\n")]),
        ("no prefix", &[("x", "1\n")], "--- x\n+++ x\n@@ -1 +1 @@\n-1\n+2\n", &[("x", "2\n")]),
        ("dates after a tab", &[("x", "1\n")], "--- a/x\t2024-01-01\n+++ b/x\t2024-01-02\n@@ -1 +1 @@\n-1\n+2\n", &[("x", "2\n")]),
        ("a blank in the name", &[("x y", "1\n")], "--- a/x y\t\n+++ b/x y\t\n@@ -1 +1 @@\n-1\n+2\n", &[("x y", "2\n")]),
        ("a quoted name", &[("\u{e9}", "1\n")], "--- \"a/\\303\\251\"\n+++ \"b/\\303\\251\"\n@@ -1 +1 @@\n-1\n+2\n", &[("\u{e9}", "2\n")]),
        ("two hunks", &[("x", "1\n2\n3\n4\n5\n6\n7\n8\n9\n")], "--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n 1\n+a\n 2\n@@ -8,2 +9,1 @@\n 8\n-9\n", &[("x", "1\na\n2\n3\n4\n5\n6\n7\n8\n")]),
        ("two files", &[("x", "1\n"), ("y", "1\n")], "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\ndiff --git a/y b/y\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-1\n+3\n", &[("x", "2\n"), ("y", "3\n")]),
        ("new file", &[], "diff --git a/n b/n\nnew file mode 100644\nindex 000..111\n--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+a\n+b\n", &[("n", "a\nb\n")]),
        ("new empty file", &[], "diff --git a/n b/n\nnew file mode 100644\nindex 000..e69\n", &[("n", "")]),
        ("new file without newline", &[], "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n", &[("n", "a")]),
        ("deleted file", &[("x", "1\n2\n")], "diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-1\n-2\n", &[]),
        ("renamed", &[("old", "1\n")], "diff --git a/old b/new\nsimilarity index 100%\nrename from old\nrename to new\n", &[("new", "1\n")]),
        ("renamed and changed", &[("old", "1\n2\n")], "diff --git a/old b/new\nsimilarity index 60%\nrename from old\nrename to new\n--- a/old\n+++ b/new\n@@ -1,2 +1,2 @@\n 1\n-2\n+3\n", &[("new", "1\n3\n")]),
        ("copied", &[("old", "1\n")], "diff --git a/old b/new\nsimilarity index 100%\ncopy from old\ncopy to new\n", &[("new", "1\n"), ("old", "1\n")]),
        ("copied from what the patch changes", &[("x", "1\n")], "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\ndiff --git a/x b/y\nsimilarity index 100%\ncopy from x\ncopy to y\n", &[("x", "2\n"), ("y", "1\n")]),
        ("moved in a chain", &[("a", "1\n"), ("c", "3\n")], "diff --git a/c b/a\nrename from c\nrename to a\ndiff --git a/a b/b\nrename from a\nrename to b\n", &[("a", "3\n"), ("b", "1\n")]),
        ("names swapped", &[("a", "1\n"), ("b", "2\n")], "diff --git a/b b/a\nrename from b\nrename to a\ndiff --git a/a b/b\nrename from a\nrename to b\n", &[("a", "2\n"), ("b", "1\n")]),
        ("CR in a line added without context", &[("x", "1\n2\n")], "--- a/x\n+++ b/x\n@@ -1,0 +2 @@\n+a\r\n", &[("x", "1\na\r\n2\n")]),
        ("newline added", &[("x", "a\nb")], "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n", &[("x", "a\nb\n")]),
        ("newline removed", &[("x", "a\nb\n")], "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n", &[("x", "a\nb")]),
        ("no newline kept", &[("x", "a\nb")], "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n+c\n b\n\\ No newline at end of file\n", &[("x", "c\nb")]),
        ("CRLF", &[("x", "a\r\nb\r\n")], "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\r\n", &[("x", "a\r\nc\r\n")]),
        ("a removed line that looks like a header", &[("x", "-- a\n++ b\nc\n")], "--- a/x\n+++ b/x\n@@ -1,3 +1,2 @@\n--- a\n ++ b\n-c\n+d\n", &[("x", "++ b\nd\n")]),
        ("words around it", &[("x", "1\n")], "From abc\nSubject: x\n\n---\n x | 2 +-\n\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@ fn main\n-1\n+2\n-- \n2.40\n", &[("x", "2\n")]),
        ("into an empty file", &[("x", "")], "--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+a\n", &[("x", "a\n")]),
        ("no context", &[("x", "1\n2\n")], "--- a/x\n+++ b/x\n@@ -1,0 +2 @@\n+a\n", &[("x", "1\na\n2\n")]),
        ("one file twice", &[("x", "1\n2\n")], "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+a\n--- a/x\n+++ b/x\n@@ -2 +2 @@\n-2\n+b\n", &[("x", "a\nb\n")]),
        ("dollar and backslash", &[("x", "$& \\1\n")], "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-$& \\1\n+$1 \\\\ .*\n", &[("x", "$1 \\\\ .*\n")]),
        ("update", &[("x", "1\n2\n3\n")], "*** Begin Patch\n*** Update File: x\n@@\n 1\n-2\n+two\n 3\n*** End Patch\n", &[("x", "1\ntwo\n3\n")]),
        ("update without @@", &[("x", "1\n2\n3\n")], "*** Begin Patch\n*** Update File: x\n-2\n+two\n*** End Patch", &[("x", "1\ntwo\n3\n")]),
        ("heading", &[("x", "class A\n  f\n    pass\nclass B\n  f\n    pass\n")], "*** Begin Patch\n*** Update File: x\n@@ class B\n   f\n-    pass\n+    go\n*** End Patch", &[("x", "class A\n  f\n    pass\nclass B\n  f\n    go\n")]),
        ("two headings", &[("x", "class A\n  f\n    pass\nclass B\n  e\n    pass\n  f\n    pass\n")], "*** Begin Patch\n*** Update File: x\n@@ class B\n@@   f\n-    pass\n+    go\n*** End Patch", &[("x", "class A\n  f\n    pass\nclass B\n  e\n    pass\n  f\n    go\n")]),
        ("add", &[], "*** Begin Patch\n*** Add File: d/n\n+a\n+\n+b\n*** End Patch", &[("d/n", "a\n\nb\n")]),
        ("delete", &[("x", "1\n"), ("y", "2\n")], "*** Begin Patch\n*** Delete File: x\n*** End Patch", &[("y", "2\n")]),
        ("move", &[("x", "1\n2\n")], "*** Begin Patch\n*** Update File: x\n*** Move to: y\n@@\n 1\n-2\n+3\n*** End Patch", &[("y", "1\n3\n")]),
        ("move only", &[("x", "1\n")], "*** Begin Patch\n*** Update File: x\n*** Move to: y\n*** End Patch", &[("y", "1\n")]),
        ("end of file", &[("x", "a\nb\na\n")], "*** Begin Patch\n*** Update File: x\n@@\n-a\n+c\n*** End of File\n*** End Patch", &[("x", "a\nb\nc\n")]),
        ("only additions go to the end", &[("x", "a\n")], "*** Begin Patch\n*** Update File: x\n@@\n+b\n*** End Patch", &[("x", "a\nb\n")]),
        ("only additions, no newline", &[("x", "a")], "*** Begin Patch\n*** Update File: x\n@@\n+b\n*** End Patch", &[("x", "a\nb")]),
        ("three kinds at once", &[("x", "1\n"), ("y", "2\n")], "*** Begin Patch\n*** Add File: n\n+n\n*** Update File: x\n-1\n+one\n*** Delete File: y\n*** End Patch", &[("n", "n\n"), ("x", "one\n")]),
        ("added, then changed and moved", &[], "*** Begin Patch\n*** Add File: n\n+1\n*** Update File: n\n*** Move to: m\n-1\n+2\n*** End Patch", &[("m", "2\n")]),
    ];
    for (name, given, patch, wanted) in rows {
        let got = applied(patch, given).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        let wanted: Vec<(String, String)> =
            wanted.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        assert_eq!(got, wanted, "{name}");
    }
}

#[test]
fn every_looser_reading_is_told() {
    /// A row: description, content, patch of x, new content, line, rung, shift, miscounted.
    type Case = (&'static str, &'static str, &'static str, &'static str, usize, MatchKind, isize, bool);
    #[rustfmt::skip]
    let rows: &[Case] = &[
        ("shifted down", "0\n0\n1\n2\n3\n", "@@ -1,3 +1,3 @@\n 1\n-2\n+x\n 3\n", "0\n0\n1\nx\n3\n", 3, Exact, 2, false),
        ("shifted up", "1\n2\n3\n", "@@ -9,3 +9,3 @@\n 1\n-2\n+x\n 3\n", "1\nx\n3\n", 1, Exact, -8, false),
        ("wrong numbers", "1\n2\n3\n", "@@ -1,9 +1,2 @@\n 1\n-2\n+x\n 3\n", "1\nx\n3\n", 1, Exact, 0, true),
        ("LF for CRLF", "1\r\n2\r\n3\r\n", "@@ -1,3 +1,3 @@\n 1\n-2\n+x\n 3\n", "1\r\nx\r\n3\r\n", 1, LineEndings, 0, false),
        ("CRLF for LF", "1\n2\n", "@@ -1,2 +1,2 @@\n 1\r\n-2\r\n+x\r\n", "1\nx\n", 1, LineEndings, 0, false),
        ("no newline, not said", "1\n2", "@@ -1,2 +1,2 @@\n 1\n-2\n+x\n", "1\nx", 1, LineEndings, 0, false),
        ("blanks at ends", "1 \n2\t\n3\n", "@@ -1,3 +1,3 @@\n 1\n-2\n+x\n 3\n", "1 \nx\n3\n", 1, TrailingBlanks, 0, false),
        ("tabs for spaces", "{\n\ta;\n\tb;\n}\n", "@@ -2,2 +2,2 @@\n     a;\n-    b;\n+    c;\n", "{\n\ta;\n\tc;\n}\n", 2, Indentation, 0, false),
        ("a blank dropped from an empty line", "a\n\nb\n", "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", "a\n\nc\n", 1, Exact, 0, false),
    ];
    for (name, content, hunks, wanted, line, matched, shifted, miscounted) in rows {
        let changes = planned(&format!("--- a/x\n+++ b/x\n{hunks}"), &files(&[("x", content)]))
            .unwrap_or_else(|error| panic!("{name}: {error:?}"));
        assert_eq!(String::from_utf8_lossy(changes[0].after.as_ref().unwrap()), *wanted, "{name}");
        let told =
            Loosened { hunk: 1, line: *line, matched: *matched, shifted: *shifted, miscounted: *miscounted };
        let exact = *matched == Exact && *shifted == 0 && !miscounted;
        assert_eq!(changes[0].loosened, if exact { vec![] } else { vec![told] }, "{name}");
    }
}

#[test]
fn the_named_place_wins_over_others_and_hunks_keep_their_order() {
    let given = files(&[("x", "a\nb\na\nb\na\nb\n")]);
    let changes = planned("--- a/x\n+++ b/x\n@@ -3,2 +3,2 @@\n a\n-b\n+c\n", &given).unwrap();
    assert_eq!(changes[0].after.as_deref(), Some(&b"a\nb\na\nc\na\nb\n"[..]));
    // A hunk shifted by two brings the next one along.
    let given = files(&[("x", "0\n0\nk\na\nb\na\nb\n")]);
    let patch = "--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@\n-k\n+K\n@@ -2,2 +2,2 @@\n a\n-b\n+c\n";
    assert_eq!(planned(patch, &given).unwrap()[0].after.as_deref(), Some(&b"0\n0\nK\na\nc\na\nb\n"[..]));
}

#[test]
fn modes_moves_and_pre_images_are_in_the_plan() {
    let patch = "diff --git a/run b/run\nold mode 100644\nnew mode 100755\n";
    let given = files(&[("run", "x\n")]);
    let change = FileChange {
        path: "run".to_owned(),
        before: Some(b"x\n".to_vec()),
        after: Some(b"x\n".to_vec()),
        moved_from: None,
        mode: Some(0o100_755),
        loosened: vec![],
    };
    assert_eq!(planned(patch, &given), Ok(vec![change]));
    let parsed = Patch::parse("diff --git a/old b/new\nrename from old\nrename to new\n").unwrap();
    assert_eq!(parsed.paths(), ["old", "new"]);
    let patch = "diff --git a/n b/n\nnew file mode 120000\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+target\n\\ No newline at end of file\n";
    let changes = planned(patch, &files(&[])).unwrap();
    assert_eq!((changes[0].mode, changes[0].after.as_deref()), (Some(0o120_000), Some(&b"target"[..])));
}

/// A row: description, files, patch, refusal.
type RefusedRow = (&'static str, &'static [(&'static str, &'static str)], &'static str, PatchError);

#[test]
fn a_patch_that_cannot_be_applied_changes_nothing() {
    let path = || "x".to_owned();
    let none = |hunk, line| PatchError::NoMatch { path: path(), hunk, line, nearest: None };
    #[rustfmt::skip]
    let rows: Vec<RefusedRow> = vec![
        ("nothing", &[], "", PatchError::Empty),
        ("no patch", &[], "hello\nworld\n", PatchError::Empty),
        ("no such file", &[], "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n", PatchError::Missing { path: path() }),
        ("delete what is not there", &[], "*** Begin Patch\n*** Delete File: x\n*** End Patch", PatchError::Missing { path: path() }),
        ("create what is there", &[("x", "")], "*** Begin Patch\n*** Add File: x\n+a\n*** End Patch", PatchError::Exists { path: path() }),
        ("move onto another", &[("y", "1\n"), ("x", "2\n")], "*** Begin Patch\n*** Update File: y\n*** Move to: x\n*** End Patch", PatchError::Exists { path: path() }),
        ("context not found", &[("x", "a\n")], "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n", none(1, 3)),
        ("second hunk not found", &[("x", "1\nb\n")], "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n@@ -2 +2 @@\n-c\n+d\n", none(2, 6)),
        ("hunks out of order", &[("x", "1\n2\n")], "*** Begin Patch\n*** Update File: x\n@@\n-2\n+b\n@@\n-1\n+a\n*** End Patch", none(2, 6)),
        ("two places", &[("x", "a\nb\na\n")], "*** Begin Patch\n*** Update File: x\n@@\n-a\n+c\n*** End Patch", PatchError::Ambiguous { path: path(), hunk: 1, lines: vec![1, 3] }),
        ("two shifted places", &[("x", "0\na\nb\na\n")], "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+c\n", PatchError::Ambiguous { path: path(), hunk: 1, lines: vec![2, 4] }),
        ("heading not found", &[("x", "a\n")], "*** Begin Patch\n*** Update File: x\n@@ class B\n-a\n+c\n*** End Patch", none(1, 3)),
        ("not the end of the file", &[("x", "a\nb\n")], "*** Begin Patch\n*** Update File: x\n@@\n-a\n+c\n*** End of File\n*** End Patch", none(1, 3)),
        ("delete of other lines", &[("x", "1\n2\n3\n")], "--- a/x\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-1\n-2\n", PatchError::NotWhole { path: path() }),
        ("binary patch", &[], "diff --git a/x b/x\nindex 1..2 100644\nGIT binary patch\nliteral 3\n", PatchError::Binary { path: path() }),
        ("binary difference", &[], "diff --git a/x b/x\nBinary files a/x and b/x differ\n", PatchError::Binary { path: path() }),
        ("binary file", &[("x", "a\0b")], "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", PatchError::Binary { path: path() }),
        ("nothing changes", &[("x", "a\n")], "*** Begin Patch\n*** Update File: x\n@@\n-a\n+a\n*** End Patch", PatchError::Empty),
        ("no end", &[], "*** Begin Patch\n*** Delete File: x\n", PatchError::Syntax { line: 4, reason: "`*** End Patch` is missing".to_owned() }),
        ("unknown line", &[], "*** Begin Patch\n*** Rename File: x\n*** End Patch", PatchError::Syntax { line: 2, reason: "expected `*** Add File: `, `*** Update File: ` or `*** Delete File: `".to_owned() }),
        ("odd line in a hunk", &[("x", "a\n")], "*** Begin Patch\n*** Update File: x\n@@\n?a\n*** End Patch", PatchError::Syntax { line: 4, reason: "a line of a hunk begins with a blank, `+` or `-`".to_owned() }),
        ("a hunk without a file", &[], "@@ -1 +1 @@\n-a\n+b\n", PatchError::Syntax { line: 1, reason: "a hunk before any file name".to_owned() }),
        ("bad header", &[("x", "a\n")], "--- a/x\n+++ b/x\n@@ -x +1 @@\n-a\n+b\n", PatchError::Syntax { line: 3, reason: "the header of the hunk cannot be read".to_owned() }),
        // The first file would do; the second does not, so neither is changed.
        ("all or nothing", &[("y", "1\n"), ("x", "2\n")], "--- a/y\n+++ b/y\n@@ -1 +1 @@\n-1\n+2\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-9\n+8\n", none(1, 8)),
    ];
    for (name, given, patch, wanted) in rows {
        let got = applied(patch, given).map_err(|error| match error {
            PatchError::NoMatch { path, hunk, line, .. } => {
                PatchError::NoMatch { path, hunk, line, nearest: None }
            }
            other => other,
        });
        assert_eq!(got, Err(wanted), "{name}");
    }
    let patch = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-let total = sum(items);\n+x\n";
    let nearest = Some(Nearest { line: 2, text: "  let total = sum(item);".to_owned() });
    let wanted = PatchError::NoMatch { path: path(), hunk: 1, line: 3, nearest };
    assert_eq!(applied(patch, &[("x", "a\n  let total = sum(item);\n")]), Err(wanted));
}

#[test]
fn files_in_other_encodings_are_patched_in_them() {
    let mut files = Files::new();
    files.insert("x".to_owned(), bytes("utf-16le+bom", "a\r\n\u{e9}\r\nc\r\n"));
    let patch = "--- a/x\n+++ b/x\n@@ -1,3 +1,4 @@\n a\n-\u{e9}\n+\u{1f600}\n+b\n c\n";
    let changes = planned(patch, &files).unwrap();
    assert_eq!(changes[0].after, Some(bytes("utf-16le+bom", "a\r\n\u{1f600}\r\nb\r\nc\r\n")));
    files.insert("x".to_owned(), b"J\xfcrgen\nb\n".to_vec());
    let error = EditError::Unencodable { character: '\u{4e2d}', encoding: "windows-1252" };
    let patch = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n J\u{fc}rgen\n-b\n+\u{4e2d}\n";
    assert_eq!(planned(patch, &files), Err(PatchError::Edit { path: "x".to_owned(), error }));
}
