//! Looking at files and folders, in Lathe's words.

use lathe_protocol::{Digest, SeenFile, ToolErrorKind};
use serde_json::{Value, json};

use crate::bench::{fifo, lathe};

fn view(path: &str) -> Value {
    json!({ "path": path })
}

fn file(lines: &str) -> String {
    format!("<file path=\"/W/a\">\n{lines}\n</file>")
}

#[tokio::test]
async fn files_are_shown_as_they_are_with_numbers() {
    for (content, lines) in [
        ("one\ntwo\n", "     1\tone\n     2\ttwo"),
        ("one\ntwo", "     1\tone\n     2\ttwo"),
        ("one\n\n\n", "     1\tone\n     2\t\n     3\t"),
        ("\n", "     1\t"),
        ("\tx\ty\n", "     1\t\tx\ty"),
        ("one\r\ntwo\r\n", "     1\tone\n     2\ttwo"),
        ("one\r\ntwo", "     1\tone\n     2\ttwo"),
        ("\u{feff}one\n", "     1\tone"),
        ("grün\u{2028}中文 🙂\n", "     1\tgrün\u{2028}中文 🙂"),
    ] {
        let mut bench = lathe();
        bench.put("a", content);
        assert_eq!(bench.told("view", view("a")).await, file(lines), "{content:?}");
    }
}

#[tokio::test]
async fn text_in_an_old_encoding_is_read_and_stray_bytes_are_marked() {
    let mut bench = lathe();
    bench.put("a", b"caf\xe9\n");
    assert_eq!(
        bench.told("view", view("a")).await,
        "<file path=\"/W/a\" encoding=\"windows-1252\">\n     1\tcafé\n</file>"
    );
    bench.put("a", b"na\xc3\xafve \xff end\n");
    assert_eq!(bench.told("view", view("a")).await, file("     1\tnaïve \u{fffd} end"));
}

#[tokio::test]
async fn a_part_is_shown_with_what_is_left() {
    let mut bench = lathe();
    bench.put("a", "1\r\n2\r\n3\r\n4\r\n");
    let more = |part, next| format!("\nLines {part} of 4 shown; give offset {next} for more.");
    for (offset, limit, expected) in [
        (Some(2), Some(2), file("     2\t2\n     3\t3") + &more("2-3", 4)),
        (None, Some(1), file("     1\t1") + &more("1-1", 2)),
        (Some(3), None, file("     3\t3\n     4\t4")),
        (Some(4), Some(100), file("     4\t4")),
        (Some(4), Some(1), file("     4\t4")),
        (Some(4), Some(i64::MAX), file("     4\t4")),
        (Some(5), None, "/W/a ends with line 4.".to_owned()),
    ] {
        let call = json!({ "path": "a", "offset": offset, "limit": limit });
        assert_eq!(bench.told("view", call).await, expected, "{offset:?} {limit:?}");
    }
    for offset in [0, -1, 6, i64::MAX] {
        let (kind, text) = bench.refused("view", json!({ "path": "a", "offset": offset })).await;
        assert_eq!(kind, ToolErrorKind::InvalidToolParams);
        assert_eq!(text, format!("Line {offset} is not in the file, which has 4 lines."));
    }
}

#[tokio::test]
async fn without_a_limit_2000_lines_are_shown() {
    let mut bench = lathe();
    let content: String = (1..=2500).map(|number| format!("{number}\n")).collect();
    bench.put("a", content);
    let text = bench.told("view", view("a")).await;
    assert!(
        text.ends_with("  2000\t2000\n</file>\nLines 1-2000 of 2500 shown; give offset 2001 for more."),
        "{}",
        &text[text.len() - 200..]
    );
    let text = bench.told("view", json!({ "path": "a", "limit": 2400 })).await;
    assert!(text.ends_with("  2400\t2400\n</file>\nLines 1-2400 of 2500 shown; give offset 2401 for more."));
}

#[tokio::test]
async fn long_text_is_cut_at_a_line_and_a_long_line_is_told() {
    let mut bench = lathe();
    bench.put("a", format!("{}\n", "x".repeat(99)).repeat(1000));
    let text = bench.told("view", view("a")).await;
    assert!(
        text.ends_with("x\n</file>\nLines 1-480 of 1000 shown; give offset 481 for more."),
        "{}",
        &text[text.len() - 200..]
    );
    bench.put("a", "first\n".to_owned() + &"€".repeat(20_000) + "\nlast\n");
    let text = bench.told("view", view("a")).await;
    assert_eq!(text, file("     1\tfirst") + "\nLines 1-1 of 3 shown; give offset 2 for more.");
    let text = bench.told("view", json!({ "path": "a", "offset": 2 })).await;
    assert_eq!(
        text,
        file(&format!("     2\t{}", "€".repeat(16_000)))
            + "\nLine 2 is too long to be shown whole; see more of it with bash (`sed -n 2p`, `cut -c`)."
            + "\nLines 2-2 of 3 shown; give offset 3 for more."
    );
}

#[tokio::test]
async fn what_cannot_be_shown_is_told_at_once() {
    let mut bench = lathe();
    bench.put("empty", "");
    bench.put("mark", "\u{feff}");
    bench.put("binary", b"\x7fELF\0\0");
    fifo(&bench.root.join("fifo"));
    for name in ["empty", "mark"] {
        assert_eq!(bench.told("view", view(name)).await, format!("/W/{name} is empty."));
    }
    let huge = std::fs::File::create(bench.root.join("huge")).unwrap();
    huge.set_len((64 << 20) + 1).unwrap();
    for (name, kind, expected) in [
        (
            "binary",
            ToolErrorKind::ReadContentFailure,
            "/W/binary is a binary file (ELF program or library); look at it with bash (`file`, `xxd`).",
        ),
        ("missing", ToolErrorKind::FileNotFound, "/W/missing does not exist."),
        ("fifo", ToolErrorKind::ReadContentFailure, "Cannot read /W/fifo: a FIFO, socket or device."),
        (
            "huge",
            ToolErrorKind::ReadContentFailure,
            "/W/huge is a binary file; look at it with bash (`file`, `xxd`).",
        ),
        (
            "empty/below",
            ToolErrorKind::ReadContentFailure,
            "Cannot read /W/empty/below: Not a directory (os error 20).",
        ),
    ] {
        assert_eq!(bench.refused("view", view(name)).await, (kind, expected.to_owned()));
    }
}

#[tokio::test]
async fn a_folder_is_shown_two_levels_deep_without_hidden_names() {
    let mut bench = lathe();
    for name in ["b.txt", "a/x", "a/deep/y", ".git/config", "a/.hidden", "a; touch pwned/z"] {
        bench.put(name, "");
    }
    std::fs::create_dir(bench.root.join("void")).unwrap();
    assert_eq!(
        bench.told("view", view(".")).await,
        "<folder path=\"/W\">\na/\na/deep/\na/x\na; touch pwned/\na; touch pwned/z\nb.txt\nvoid/\n</folder>"
    );
    assert_eq!(
        bench.told("view", view("void")).await,
        "/W/void is an empty folder (hidden names are left out)."
    );
    assert_eq!(
        bench.refused("view", json!({ "path": "a", "limit": 3 })).await,
        (
            ToolErrorKind::InvalidToolParams,
            "A folder has no lines: leave `offset` and `limit` out.".to_owned()
        )
    );
}

#[tokio::test]
async fn a_long_folder_is_cut_and_told() {
    let mut bench = lathe();
    for number in 0..600 {
        bench.put(&format!("{number:03}-{}", "n".repeat(95)), "");
    }
    let text = bench.told("view", view(".")).await;
    assert!(text.ends_with("n\n</folder>\n120 more entries are not shown."), "{}", &text[text.len() - 100..]);
}

#[tokio::test]
async fn a_view_records_the_hash_of_the_whole_file() {
    let mut bench = lathe();
    let path = bench.put("a", "one\ntwo\n");
    let finished = bench.call("view", json!({ "path": "./a", "limit": 1 })).await;
    assert_eq!(finished.seen, [SeenFile { path, hash: Digest::of(b"one\ntwo\n") }]);
    assert_eq!(
        finished.data.map(|data| bench.short(data.get())).as_deref(),
        Some(r#"{"path":"/W/a","lines":2}"#)
    );
}
