//! `str_replace` and `insert` of Trae's edit tool, to the letter, without its defects.

use lathe_protocol::ToolErrorKind;
use serde_json::{Value, json};

use crate::bench::{Bench, trae};

const TOOL: &str = "str_replace_based_edit_tool";

fn replace(bench: &Bench, old: &str, new: &str) -> Value {
    json!({ "command": "str_replace", "path": bench.path("a"), "old_str": old, "new_str": new })
}

fn insert(bench: &Bench, line: i64, new: &str) -> Value {
    json!({ "command": "insert", "path": bench.path("a"), "insert_line": line, "new_str": new })
}

#[tokio::test]
async fn a_replacement_is_told_with_a_snippet_and_keeps_tabs_and_line_endings() {
    let mut bench = trae();
    bench.put("a", "all:\r\n\tcc\r\n\tld\r\n");
    let call = replace(&bench, "cc", "gcc $&");
    assert_eq!(
        bench.told(TOOL, call).await,
        "The file /W/a has been edited. Here's the result of running `cat -n` on a snippet of /W/a:\n     1\tall:\n     2\t\tgcc $&\n     3\t\tld\n     4\t\nReview the changes and make sure they are as expected. Edit the file again if necessary."
    );
    assert_eq!(bench.get("a"), "all:\r\n\tgcc $&\r\n\tld\r\n");
}

#[tokio::test]
async fn a_snippet_has_four_lines_around_the_change() {
    let mut bench = trae();
    let numbers: String = (1..=20).map(|number| format!("{number}\n")).collect();
    for (old, new, lines) in [
        (
            "10",
            "ten",
            "     6\t6\n     7\t7\n     8\t8\n     9\t9\n    10\tten\n    11\t11\n    12\t12\n    13\t13\n    14\t14",
        ),
        (
            "10\n",
            "",
            "     6\t6\n     7\t7\n     8\t8\n     9\t9\n    10\t11\n    11\t12\n    12\t13\n    13\t14\n    14\t15",
        ),
    ] {
        bench.put("a", &numbers);
        bench.seen.clear();
        let text = bench.told(TOOL, replace(&bench, old, new)).await;
        assert!(text.contains(&format!(" a snippet of /W/a:\n{lines}\nReview")), "{text}");
    }
}

#[tokio::test]
async fn a_missing_new_text_deletes() {
    let mut bench = trae();
    for new in [json!({}), json!({ "new_str": null })] {
        bench.put("a", "one two\n");
        bench.seen.clear();
        let mut call = json!({ "command": "str_replace", "path": bench.path("a"), "old_str": " two" });
        call.as_object_mut().unwrap().extend(new.as_object().unwrap().clone());
        bench.told(TOOL, call).await;
        assert_eq!(bench.get("a"), "one\n");
    }
}

#[tokio::test]
async fn an_insertion_is_told_with_a_snippet() {
    let mut bench = trae();
    bench.put("a", "1\n2\n3\n4\n5\n6\n7\n8\n");
    let call = insert(&bench, 5, "new");
    assert_eq!(
        bench.told(TOOL, call).await,
        "The file /W/a has been edited. Here's the result of running `cat -n` on a snippet of the edited file:\n     2\t2\n     3\t3\n     4\t4\n     5\t5\n     6\tnew\n     7\t6\n     8\t7\n     9\t8\n    10\t\nReview the changes and make sure they are as expected (correct indentation, no duplicate lines, etc). Edit the file again if necessary."
    );
    for (line, after) in [(0, "new\n1\n2\n"), (1, "1\nnew\n2\n"), (2, "1\n2\nnew\n"), (3, "1\n2\nnew\n")] {
        bench.put("a", "1\n2\n");
        bench.seen.clear();
        let call = insert(&bench, line, "new");
        bench.told(TOOL, call).await;
        assert_eq!(bench.get("a"), after);
    }
}

#[tokio::test]
async fn a_looser_match_is_told_after_traes_words() {
    let mut bench = trae();
    bench.put("a", "a\r\nb\r\n");
    let text = bench.told(TOOL, replace(&bench, "a\nb", "a\nc")).await;
    assert!(
        text.ends_with("if necessary. Note: old_str matched after line endings were made equal."),
        "{text}"
    );
    assert_eq!(bench.get("a"), "a\r\nc\r\n");
}

#[tokio::test]
async fn what_does_not_match_once_is_refused() {
    let mut bench = trae();
    bench.put("a", "x = 1\ny = 2\n\nx = 1\ny = 2\n");
    for (old, kind, expected) in [
        (
            "x = 3",
            ToolErrorKind::EditNoOccurrenceFound,
            "No replacement was performed, old_str `x = 3` did not appear verbatim in /W/a.",
        ),
        (
            "x = 1",
            ToolErrorKind::EditExpectedOccurrenceMismatch,
            "No replacement was performed. Multiple occurrences of old_str `x = 1` in lines [1, 4]. Please ensure it is unique",
        ),
        (
            "x = 1\ny = 2",
            ToolErrorKind::EditExpectedOccurrenceMismatch,
            "No replacement was performed. Multiple occurrences of old_str `x = 1\ny = 2` in lines [1, 4]. Please ensure it is unique",
        ),
    ] {
        let call = replace(&bench, old, "z");
        assert_eq!(bench.refused(TOOL, call).await, (kind, expected.to_owned()));
    }
}

#[tokio::test]
async fn a_line_outside_the_file_is_refused() {
    let mut bench = trae();
    bench.put("a", "one\ntwo\n");
    for line in [-1, 4] {
        let call = insert(&bench, line, "new");
        assert_eq!(
            bench.refused(TOOL, call).await,
            (
                ToolErrorKind::InvalidToolParams,
                format!(
                    "Invalid `insert_line` parameter: {line}. It should be within the range of lines of the file: [0, 3]"
                )
            )
        );
    }
}

#[tokio::test]
async fn parameters_that_are_missing_or_wrong_are_named() {
    let mut bench = trae();
    let path = bench.put("a", "one\n");
    for (call, expected) in [
        (json!({}), "No command provided for the str_replace_based_edit_tool tool"),
        (json!({ "path": path }), "No command provided for the str_replace_based_edit_tool tool"),
        (json!({ "command": "view" }), "No path provided for the str_replace_based_edit_tool tool"),
        (
            json!({ "command": "view", "path": "src/a.rs" }),
            "The path src/a.rs is not an absolute path, it should start with `/`. Maybe you meant /src/a.rs?",
        ),
        (
            json!({ "command": "undo_edit", "path": path }),
            "Unrecognized command undo_edit. The allowed commands for the str_replace_based_edit_tool tool are: view, create, str_replace, insert",
        ),
        (
            json!({ "command": "str_replace", "path": path, "new_str": "b" }),
            "Parameter `old_str` is required and should be a string for command: str_replace",
        ),
        (
            json!({ "command": "str_replace", "path": path, "old_str": "a", "new_str": 1 }),
            "Parameter `new_str` should be a string or null for command: str_replace",
        ),
        (
            json!({ "command": "insert", "path": path, "new_str": "b" }),
            "Parameter `insert_line` is required and should be integer for command: insert",
        ),
        (
            json!({ "command": "insert", "path": path, "insert_line": "one", "new_str": "b" }),
            "Parameter `insert_line` is required and should be integer for command: insert",
        ),
        (
            json!({ "command": "insert", "path": path, "insert_line": 1 }),
            "Parameter `new_str` is required for command: insert",
        ),
    ] {
        assert_eq!(
            bench.refused(TOOL, call.clone()).await,
            (ToolErrorKind::InvalidToolParams, expected.to_owned()),
            "{call}"
        );
    }
}

#[tokio::test]
async fn a_wrong_path_is_reported_before_wrong_parameters() {
    let mut bench = trae();
    let (file, missing) = (bench.put("a", "one\n"), bench.path("missing"));
    let folder = bench.root.display().to_string();
    let not_there = "The path /W/missing does not exist. Please provide a valid path.";
    let is_folder = "The path /W is a directory and only the `view` command can be used on directories";
    for (call, kind, expected) in [
        (json!({ "command": "bogus", "path": missing }), ToolErrorKind::FileNotFound, not_there),
        (json!({ "command": "str_replace", "path": missing }), ToolErrorKind::FileNotFound, not_there),
        (
            json!({ "command": "str_replace", "path": missing, "old_str": "a" }),
            ToolErrorKind::FileNotFound,
            not_there,
        ),
        (json!({ "command": "insert", "path": folder }), ToolErrorKind::TargetIsDirectory, is_folder),
        (
            json!({ "command": "insert", "path": folder, "insert_line": 0, "new_str": "a" }),
            ToolErrorKind::TargetIsDirectory,
            is_folder,
        ),
        (
            json!({ "command": "create", "path": file }),
            ToolErrorKind::AttemptToCreateExistingFile,
            "File already exists at: /W/a. Cannot overwrite files using command `create`.",
        ),
    ] {
        assert_eq!(bench.refused(TOOL, call.clone()).await, (kind, expected.to_owned()), "{call}");
    }
}
