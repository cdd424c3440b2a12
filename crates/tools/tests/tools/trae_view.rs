//! `view` of Trae's edit tool, to the letter.

use lathe_protocol::ToolErrorKind;
use serde_json::{Value, json};

use crate::bench::{Bench, fifo, trae};

const TOOL: &str = "str_replace_based_edit_tool";
const CLIPPED: &str = "<response clipped><NOTE>To save on context only part of this file has been shown to you. You should retry this tool after you have searched inside the file with `grep -n` in order to find the line numbers of what you are looking for.</NOTE>";

fn view(bench: &Bench, name: &str, range: Value) -> Value {
    json!({ "command": "view", "path": bench.path(name), "view_range": range })
}

fn cat_n(lines: &str) -> String {
    format!("Here's the result of running `cat -n` on /W/a:\n{lines}\n")
}

#[tokio::test]
async fn files_are_shown_with_a_line_for_what_follows_the_last_newline() {
    for (content, lines) in [
        ("one\ntwo\n", "     1\tone\n     2\ttwo\n     3\t"),
        ("one\ntwo", "     1\tone\n     2\ttwo"),
        ("", "     1\t"),
        ("\tx\r\n\ty\r\n", "     1\t\tx\n     2\t\ty\n     3\t"),
        ("\u{feff}one", "     1\tone"),
    ] {
        let mut bench = trae();
        bench.put("a", content);
        let call = json!({ "command": "view", "path": bench.path("a") });
        assert_eq!(bench.told(TOOL, call).await, cat_n(lines), "{content:?}");
    }
}

#[tokio::test]
async fn ranges_are_shown_and_their_end_may_be_past_the_file() {
    let mut bench = trae();
    bench.put("a", "1\n2\n3\n");
    for (range, lines) in [
        (json!([2, 3]), "     2\t2\n     3\t3"),
        (json!([2, 2]), "     2\t2"),
        (json!([2, -1]), "     2\t2\n     3\t3\n     4\t"),
        (json!([4, -1]), "     4\t"),
        (json!([3, 99]), "     3\t3\n     4\t"),
        (json!([]), "     1\t1\n     2\t2\n     3\t3\n     4\t"),
        (json!(null), "     1\t1\n     2\t2\n     3\t3\n     4\t"),
    ] {
        let call = view(&bench, "a", range.clone());
        assert_eq!(bench.told(TOOL, call).await, cat_n(lines), "{range}");
    }
}

#[tokio::test]
async fn a_range_that_cannot_be_is_refused() {
    let mut bench = trae();
    bench.put("a", "1\n2\n3\n");
    let first = |range: &str, first: &str| {
        format!(
            "Invalid `view_range`: {range}. Its first element `{first}` should be within the range of lines of the file: [1, 4]"
        )
    };
    for (range, expected) in [
        (json!([0, 2]), first("[0, 2]", "0")),
        (json!([5, -1]), first("[5, -1]", "5")),
        (json!([9, 2]), first("[9, 2]", "9")),
        (
            json!([3, 2]),
            "Invalid `view_range`: [3, 2]. Its second element `2` should be larger or equal than its first `3`"
                .to_owned(),
        ),
        (
            json!([1]),
            "Invalid `view_range`. It should be a list of two integers.".to_owned(),
        ),
        (
            json!([1, 2, 3]),
            "Invalid `view_range`. It should be a list of two integers.".to_owned(),
        ),
        (
            json!(["1", 2]),
            "Parameter `view_range` should be a list of integers.".to_owned(),
        ),
        (
            json!("1-2"),
            "Parameter `view_range` should be a list of integers.".to_owned(),
        ),
    ] {
        let call = view(&bench, "a", range);
        assert_eq!(
            bench.refused(TOOL, call).await,
            (ToolErrorKind::InvalidToolParams, expected)
        );
    }
}

#[tokio::test]
async fn long_files_are_clipped_before_they_are_numbered() {
    let mut bench = trae();
    bench.put("a", "abc\n".repeat(5000));
    let text = bench.told(TOOL, view(&bench, "a", json!(null))).await;
    assert!(text.ends_with(&format!("  4000\tabc\n  4001\t{CLIPPED}\n")), "{}", &text[text.len() - 400..]);
    bench.put("a", "€".repeat(16_001));
    assert_eq!(
        bench.told(TOOL, view(&bench, "a", json!(null))).await,
        cat_n(&format!("     1\t{}{CLIPPED}", "€".repeat(16_000)))
    );
    bench.put("a", "\n".repeat(4000));
    let text = bench.told(TOOL, view(&bench, "a", json!([1, -1]))).await;
    assert!(text.ends_with("  4001\t\n"), "-1 is the end");
}

#[tokio::test]
async fn a_folder_is_listed_as_find_does() {
    let mut bench = trae();
    for name in ["b.txt", "a/x", "a/deep/y", ".git/config", "a; touch pwned/z"] {
        bench.put(name, "");
    }
    let path = bench.root.display().to_string();
    let text = bench.told(TOOL, json!({ "command": "view", "path": path })).await;
    assert_eq!(
        text,
        "Here's the files and directories up to 2 levels deep in /W, excluding hidden items:\n/W\n/W/a\n/W/a/deep\n/W/a/x\n/W/a; touch pwned\n/W/a; touch pwned/z\n/W/b.txt\n"
    );
    bench.told(TOOL, json!({ "command": "view", "path": bench.path("a; touch pwned") })).await;
    assert!(!bench.exists("pwned"));
    let call = view(&bench, "", json!([1, 2]));
    assert_eq!(
        bench.refused(TOOL, call).await,
        (
            ToolErrorKind::InvalidToolParams,
            "The `view_range` parameter is not allowed when `path` points to a directory.".to_owned()
        )
    );
}

#[tokio::test]
async fn a_long_folder_is_clipped() {
    let mut bench = trae();
    for number in 0..300 {
        bench.put(&format!("{number:03}-{}", "n".repeat(200)), "");
    }
    let path = bench.root.display().to_string();
    let text = bench.told(TOOL, json!({ "command": "view", "path": path })).await;
    assert!(text.len() < 17_000);
    assert!(text.ends_with(" more entries are not shown.</NOTE>\n"), "{}", &text[text.len() - 100..]);
}

#[tokio::test]
async fn what_cannot_be_shown_is_told_at_once() {
    let mut bench = trae();
    bench.put("binary", b"\x7fELF\0\0");
    fifo(&bench.root.join("fifo"));
    for (name, kind, expected) in [
        (
            "missing",
            ToolErrorKind::FileNotFound,
            "The path /W/missing does not exist. Please provide a valid path.",
        ),
        (
            "binary",
            ToolErrorKind::ReadContentFailure,
            "Ran into binary content while trying to read /W/binary",
        ),
        (
            "fifo",
            ToolErrorKind::ReadContentFailure,
            "Ran into a FIFO, socket or device while trying to read /W/fifo",
        ),
    ] {
        let call = view(&bench, name, json!(null));
        assert_eq!(bench.refused(TOOL, call).await, (kind, expected.to_owned()));
    }
}
