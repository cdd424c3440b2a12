//! Changes inside files, in Lathe's words.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use lathe_protocol::{Digest, SeenFile, ToolErrorKind};
use serde_json::{Value, json};

use crate::bench::{fifo, lathe};

fn replace(old: &str, new: &str) -> Value {
    json!({ "path": "a", "old_str": old, "new_str": new })
}

fn insert(line: i64, new: &str) -> Value {
    json!({ "path": "a", "insert_line": line, "new_str": new })
}

fn now(first: &str, lines: &str) -> String {
    format!("{first} It now reads:\n<file path=\"/W/a\">\n{lines}\n</file>")
}

#[tokio::test]
async fn everything_that_is_not_named_stays_as_it_is() {
    let mut bench = lathe();
    let before = "\u{feff}all:\r\n\tcc -o a a.c\r\n\techo done";
    let path = bench.put("a", before);
    std::fs::set_permissions(&path, Permissions::from_mode(0o751)).unwrap();
    let finished = bench.call("edit", replace("a a.c", "b $& \\1 $1 a.c")).await;
    let after = "\u{feff}all:\r\n\tcc -o b $& \\1 $1 a.c\r\n\techo done";
    assert_eq!(bench.get("a"), after);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o751);
    assert_eq!(
        bench.short(&finished.text),
        now("Edited /W/a.", "     1\tall:\n     2\t\tcc -o b $& \\1 $1 a.c\n     3\t\techo done")
    );
    assert_eq!(finished.changes[0].mode, 0o100_751);
    assert_eq!(
        bench.change(&finished.changes[0]),
        ("/W/a".to_owned(), Some(before.to_owned()), Some(after.to_owned()))
    );
    assert_eq!(finished.seen, [SeenFile { path, hash: Digest::of(after.as_bytes()) }]);
}

#[tokio::test]
async fn the_result_shows_four_lines_around_the_change() {
    let mut bench = lathe();
    let numbers: String = (1..=20).map(|number| format!("{number}\r\n")).collect();
    for (call, expected) in [
        (
            replace("10", "ten\nand more"),
            now(
                "Edited /W/a.",
                "     6\t6\n     7\t7\n     8\t8\n     9\t9\n    10\tten\n    11\tand more\n    12\t11\n    13\t12\n    14\t13\n    15\t14",
            ),
        ),
        (
            replace("20", "end"),
            now("Edited /W/a.", "    16\t16\n    17\t17\n    18\t18\n    19\t19\n    20\tend"),
        ),
        (
            insert(0, "zero\n"),
            now("Inserted into /W/a.", "     1\tzero\n     2\t1\n     3\t2\n     4\t3\n     5\t4"),
        ),
    ] {
        bench.put("a", &numbers);
        bench.seen.clear();
        assert_eq!(bench.told("edit", call).await, expected);
    }
    // An empty last line of the window is a line.
    bench.put("a", "1\n2\n3\n4\n5\n\n7\n");
    bench.seen.clear();
    assert_eq!(
        bench.told("edit", replace("2", "two")).await,
        now("Edited /W/a.", "     1\t1\n     2\ttwo\n     3\t3\n     4\t4\n     5\t5\n     6\t")
    );
}

#[tokio::test]
async fn an_ambiguous_text_is_refused_with_its_lines() {
    let mut bench = lathe();
    let content = "x = 1\ny = 2\n\nx = 1\ny = 2\nx = 1\n";
    bench.put("a", content);
    for (old, lines) in
        [("x = 1", "1, 4, 6"), ("x = 1\ny = 2\n", "1, 4"), ("y = 2", "2, 5"), ("= 2\n", "2, 5")]
    {
        assert_eq!(
            bench.refused("edit", replace(old, "z")).await,
            (
                ToolErrorKind::EditExpectedOccurrenceMismatch,
                format!(
                    "old_str is not unique in /W/a: it stands at lines {lines}. Add lines around it, or set replace_all."
                )
            )
        );
    }
    assert_eq!(bench.get("a"), content);
    bench.put("a", "x\n".repeat(10_000));
    let (_, text) = bench.refused("edit", replace("x", "y")).await;
    assert!(text.contains("19, 20, .... Add") && text.len() < 300, "{text}");
}

#[tokio::test]
async fn every_place_is_replaced_where_that_is_asked_for() {
    let mut bench = lathe();
    let mut call = replace("x", "yy");
    call["replace_all"] = json!(true);
    bench.put("a", "x\nx x\n");
    assert_eq!(
        bench.told("edit", call.clone()).await,
        now("Edited /W/a in 3 places.", "     1\tyy\n     2\tyy yy")
    );
    let far: String = (1..=100).map(|number| if number % 20 == 0 { "x\n" } else { "-\n" }).collect();
    bench.put("a", far);
    bench.seen.clear();
    let text = bench.told("edit", call).await;
    assert!(text.starts_with("Edited /W/a in 5 places."), "{text}");
    assert_eq!(text.matches("yy").count(), 3);
    assert!(
        text.contains("    24\t-\n  ...\n    36\t-\n") && text.ends_with("    64\t-\n  ...\n</file>"),
        "{text}"
    );
    assert_eq!(bench.get("a").matches("yy").count(), 5);
}

#[tokio::test]
async fn a_text_that_is_not_there_is_answered_with_the_nearest_place() {
    let mut bench = lathe();
    bench.put("a", "fn one() {}\nfn compute_total(items: &[Item]) -> u64 {\n}\n");
    assert_eq!(
        bench.refused("edit", replace("fn compute_totals(item: &[Item]) -> u64 {", "x")).await,
        (
            ToolErrorKind::EditNoOccurrenceFound,
            "old_str was not found in /W/a. The nearest place is at line 2:\nfn compute_total(items: &[Item]) -> u64 {"
                .to_owned()
        )
    );
    assert_eq!(
        bench.refused("edit", replace("zzzzqqqq", "x")).await,
        (
            ToolErrorKind::EditNoOccurrenceFound,
            "old_str was not found in /W/a. View the file and copy the text exactly.".to_owned()
        )
    );
}

#[tokio::test]
async fn a_looser_match_is_made_and_told() {
    for (content, old, new, after, told) in [
        (
            "a\r\nb\r\nc\r\n",
            "a\nb\n",
            "a\nB\n",
            "a\r\nB\r\nc\r\n",
            "old_str matched after line endings were made equal.",
        ),
        (
            "a  \nb\nc\n",
            "a\nb\n",
            "a\nB\n",
            "a  \nB\nc\n",
            "old_str matched after blanks at line ends were left out.",
        ),
        (
            "if x:\n\tone()\n\ttwo()\n",
            "    one()\n    two()\n",
            "    one()\n    three()\n",
            "if x:\n\tone()\n\tthree()\n",
            "old_str matched with another indentation; new_str was indented to fit.",
        ),
    ] {
        let mut bench = lathe();
        bench.put("a", content);
        let text = bench.told("edit", replace(old, new)).await;
        assert!(text.starts_with(&format!("Edited /W/a. {told} It now reads:\n")), "{text}");
        assert_eq!(bench.get("a"), after);
    }
}

#[tokio::test]
async fn lines_are_inserted_at_the_start_in_the_middle_and_at_the_end() {
    for (line, new, after) in [
        (0, "new", "new\none\ntwo\n"),
        (1, "new\n", "one\nnew\ntwo\n"),
        (2, "new", "one\ntwo\nnew\n"),
        (3, "new", "one\ntwo\nnew\n"),
    ] {
        let mut bench = lathe();
        bench.put("a", "one\ntwo\n");
        let text = bench.told("edit", insert(line, new)).await;
        assert!(text.starts_with("Inserted into /W/a. It now reads:"), "{text}");
        assert_eq!(bench.get("a"), after, "{line}");
    }
    let mut bench = lathe();
    bench.put("a", "one\ntwo\n");
    for line in [-1, 4, i64::MAX, i64::MIN] {
        assert_eq!(
            bench.refused("edit", insert(line, "new")).await,
            (ToolErrorKind::InvalidToolParams, format!("insert_line {line} is outside of 0 to 3."))
        );
    }
}

#[tokio::test]
async fn a_file_that_changed_since_it_was_seen_is_refused() {
    let mut bench = lathe();
    bench.put("a", "one\ntwo\n");
    bench.told("view", json!({ "path": "./a" })).await;
    bench.put("a", "one\ntwo\nthree\n");
    for call in [replace("two", "2"), insert(0, "x")] {
        assert_eq!(
            bench.refused("edit", call).await,
            (
                ToolErrorKind::FileChanged,
                "/W/a was changed since you viewed it. View it again first.".to_owned()
            )
        );
    }
    bench.told("view", json!({ "path": "a" })).await;
    bench.told("edit", replace("two", "2")).await;
    // What an edit left is seen.
    bench.told("edit", replace("three", "3")).await;
    assert_eq!(bench.get("a"), "one\n2\n3\n");
}

#[tokio::test]
async fn what_cannot_be_edited_is_told() {
    let mut bench = lathe();
    bench.put("a", "one\n");
    bench.put("binary", b"\0\x01");
    std::fs::create_dir(bench.root.join("folder")).unwrap();
    fifo(&bench.root.join("fifo"));
    let mut refused = async |name: &str, old: &str, new: &str| {
        let call = json!({ "path": name, "old_str": old, "new_str": new });
        bench.refused("edit", call).await
    };
    for (name, old, new, kind, expected) in [
        (
            "a",
            "",
            "x",
            ToolErrorKind::InvalidToolParams,
            "old_str is empty. To add text, give insert_line instead.",
        ),
        ("a", "one", "one", ToolErrorKind::EditNoChange, "The edit would leave /W/a as it is."),
        ("missing", "a", "b", ToolErrorKind::FileNotFound, "/W/missing does not exist."),
        (
            "folder",
            "a",
            "b",
            ToolErrorKind::TargetIsDirectory,
            "/W/folder is a folder; only `view` works on folders.",
        ),
        (
            "binary",
            "a",
            "b",
            ToolErrorKind::ReadContentFailure,
            "/W/binary is a binary file; look at it with bash (`file`, `xxd`).",
        ),
        (
            "fifo",
            "a",
            "b",
            ToolErrorKind::ReadContentFailure,
            "Cannot read /W/fifo: a FIFO, socket or device.",
        ),
    ] {
        assert_eq!(refused(name, old, new).await, (kind, expected.to_owned()));
    }
}

#[tokio::test]
async fn a_large_new_text_is_not_told_back_whole() {
    let mut bench = lathe();
    bench.put("a", "one\n");
    let new: String = (0..20_000).map(|number| format!("line {number}\n")).collect();
    let text = bench.told("edit", replace("one\n", &new)).await;
    assert!(text.len() < 16_200 && text.ends_with("\n  ...\n</file>"), "{}", text.len());
    assert_eq!(bench.get("a"), new);
}

#[tokio::test]
async fn a_link_stays_a_link() {
    let mut bench = lathe();
    bench.put("real", "one\n");
    std::os::unix::fs::symlink("real", bench.root.join("a")).unwrap();
    bench.told("edit", replace("one", "two")).await;
    assert_eq!(bench.get("real"), "two\n");
    assert!(bench.root.join("a").is_symlink());
}
