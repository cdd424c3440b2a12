//! Tests whole files: created, or replaced by a caller that has seen them.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use lathe_protocol::{Digest, SeenFile, ToolErrorKind};
use serde_json::{Value, json};

use crate::bench::{Bench, fifo, lathe, trae};

const TOOL: &str = "str_replace_based_edit_tool";

fn write(path: &str, content: &str) -> Value {
    json!({ "path": path, "content": content })
}

fn create(bench: &Bench, name: &str, text: &str) -> Value {
    json!({ "command": "create", "path": bench.path(name), "file_text": text })
}

#[tokio::test]
async fn a_new_file_is_made_with_its_folders_and_recorded() {
    let mut bench = lathe();
    let finished = bench.call("write", write("new/deep/a.txt", "one\r\ntwo\n")).await;
    assert_eq!(finished.error, None);
    assert_eq!(bench.short(&finished.text), "Created /W/new/deep/a.txt (2 lines).");
    assert_eq!(bench.get("new/deep/a.txt"), "one\r\ntwo\n");
    let changes: Vec<_> = finished.changes.iter().map(|change| bench.change(change)).collect();
    let made = |path: &str, what: &str| (path.to_owned(), None, Some(what.to_owned()));
    assert_eq!(
        changes,
        [
            made("/W/new", "a folder"),
            made("/W/new/deep", "a folder"),
            made("/W/new/deep/a.txt", "one\r\ntwo\n")
        ]
    );
    assert_eq!(
        finished.seen,
        [SeenFile { path: bench.path("new/deep/a.txt"), hash: Digest::of(b"one\r\ntwo\n") }]
    );
    for (name, content, lines) in [("b", "", "0 lines"), ("c", "x", "1 line"), ("d", "a\0b\n", "1 line")] {
        assert_eq!(bench.told("write", write(name, content)).await, format!("Created /W/{name} ({lines})."));
        assert_eq!(bench.get(name), content);
    }
}

#[tokio::test]
async fn a_file_that_was_not_seen_is_not_replaced() {
    let mut bench = lathe();
    bench.put("a", "old\n");
    assert_eq!(
        bench.refused("write", write("a", "new\n")).await,
        (
            ToolErrorKind::FileChanged,
            "/W/a exists and you have not viewed it. View it first, or use `edit`.".to_owned()
        )
    );
    assert_eq!(bench.get("a"), "old\n");
}

#[tokio::test]
async fn a_file_that_was_seen_is_replaced_and_keeps_its_mode() {
    let mut bench = lathe();
    let path = bench.put("a", "old\n");
    std::fs::set_permissions(&path, Permissions::from_mode(0o751)).unwrap();
    bench.told("view", json!({ "path": "a" })).await;
    let finished = bench.call("write", write("a", "new\n")).await;
    assert_eq!(bench.short(&finished.text), "Replaced /W/a (1 line).");
    assert_eq!(bench.get("a"), "new\n");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o751);
    let change = &finished.changes[0];
    assert_eq!(change.mode, 0o100_751);
    assert_eq!(bench.change(change), ("/W/a".to_owned(), Some("old\n".to_owned()), Some("new\n".to_owned())));
    // What one has written oneself is seen.
    assert_eq!(bench.told("write", write("a", "newer\n")).await, "Replaced /W/a (1 line).");
}

#[tokio::test]
async fn a_file_that_changed_since_it_was_seen_is_not_replaced() {
    let mut bench = lathe();
    bench.put("a", "old\n");
    bench.told("view", json!({ "path": "a" })).await;
    bench.put("a", "theirs\n");
    assert_eq!(
        bench.refused("write", write("a", "new\n")).await,
        (ToolErrorKind::FileChanged, "/W/a was changed since you viewed it. View it again first.".to_owned())
    );
    assert_eq!(bench.get("a"), "theirs\n");
}

#[tokio::test]
async fn what_is_no_file_is_not_replaced() {
    let mut bench = lathe();
    bench.put("file", "");
    std::fs::create_dir(bench.root.join("folder")).unwrap();
    fifo(&bench.root.join("fifo"));
    for (name, kind, expected) in [
        ("folder", ToolErrorKind::TargetIsDirectory, "/W/folder is a folder; only `view` works on folders."),
        ("fifo", ToolErrorKind::FileWriteFailure, "Cannot write /W/fifo: a FIFO, socket or device."),
        (
            "file/below",
            ToolErrorKind::FileWriteFailure,
            "Cannot write /W/file/below: Not a directory (os error 20).",
        ),
    ] {
        assert_eq!(bench.refused("write", write(name, "x")).await, (kind, expected.to_owned()));
    }
}

#[tokio::test]
async fn trae_creates_new_files_only() {
    let mut bench = trae();
    let call = create(&bench, "deep/a", "one\n");
    let finished = bench.call(TOOL, call.clone()).await;
    assert_eq!(bench.short(&finished.text), "File created successfully at: /W/deep/a");
    let changes: Vec<_> = finished.changes.iter().map(|change| bench.change(change)).collect();
    let made = |path: &str, what: &str| (path.to_owned(), None, Some(what.to_owned()));
    assert_eq!(changes, [made("/W/deep", "a folder"), made("/W/deep/a", "one\n")]);
    // Even though it was seen.
    for name in ["deep/a", "deep"] {
        let call = create(&bench, name, "two\n");
        assert_eq!(
            bench.refused(TOOL, call).await,
            (
                ToolErrorKind::AttemptToCreateExistingFile,
                format!("File already exists at: /W/{name}. Cannot overwrite files using command `create`.")
            )
        );
    }
    assert_eq!(bench.get("deep/a"), "one\n");
    let call = json!({ "command": "create", "path": bench.path("b"), "file_text": 5 });
    assert_eq!(
        bench.refused(TOOL, call).await,
        (
            ToolErrorKind::InvalidToolParams,
            "Parameter `file_text` is required and must be a string for command: create".to_owned()
        )
    );
}
