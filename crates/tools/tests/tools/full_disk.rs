//! A full disk: a small file system, unmounted however the test ends.

use lathe_protocol::{ToolErrorKind, Toolset};
use lathe_testkit::SmallDisk;
use serde_json::json;

use crate::bench::Bench;

#[tokio::test]
async fn a_full_disk_is_told_and_the_old_file_stays() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap().join("disk");
    let blobs = folder.path().join("blobs");
    let Some(disk) = SmallDisk::mount(&root, "256k") else { return };
    // What a command of the shell says is text, not an error of the call.
    for toolset in Toolset::ALL.into_iter().filter(|toolset| *toolset != Toolset::Bash) {
        let folder = tempfile::tempdir().unwrap();
        let mut bench = Bench::at(toolset, &[], root.clone(), blobs.clone(), folder);
        let old = "old\n".repeat(1000);
        let path = bench.put("a", format!("first\n{old}"));
        disk.fill();
        let (tool, edit, new, words) = match toolset {
            Toolset::Lathe => (
                "edit",
                json!({ "path": path, "old_str": "first", "new_str": "1st" }),
                ("write", json!({ "path": "b", "content": old })),
                "No space left on the disk for /W/",
            ),
            Toolset::Trae => (
                "str_replace_based_edit_tool",
                json!({ "command": "str_replace", "path": path, "old_str": "first", "new_str": "1st" }),
                (
                    "str_replace_based_edit_tool",
                    json!({ "command": "create", "path": bench.path("b"), "file_text": old }),
                ),
                "Ran into no space left on the disk while trying to write to /W/",
            ),
            Toolset::Gemini => (
                "replace",
                json!({ "file_path": path, "old_string": "first", "new_string": "1st" }),
                ("write_file", json!({ "file_path": "b", "content": old })),
                "No space left on",
            ),
            Toolset::Bash => continue,
        };
        let (kind, text) = bench.refused(tool, edit).await;
        assert_eq!(kind, ToolErrorKind::NoSpaceLeft, "{text}");
        assert!(text.starts_with(words), "{text}");
        assert_eq!(bench.get("a"), format!("first\n{old}"));
        let (kind, text) = bench.refused(new.0, new.1).await;
        assert_eq!(kind, ToolErrorKind::NoSpaceLeft, "{text}");
        assert!(!bench.exists("b"));
        let left: Vec<_> =
            std::fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left.len(), 2, "{left:?}");
        disk.free();
    }
}

#[tokio::test]
async fn a_change_that_cannot_be_recorded_is_made_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap().join("work");
    std::fs::create_dir(&root).unwrap();
    let blobs = folder.path().join("blobs");
    let Some(disk) = SmallDisk::mount(&blobs, "256k") else { return };
    disk.fill();
    let mut bench = Bench::at(Toolset::Lathe, &[], root, blobs, folder);
    bench.put("a", "one\n");
    let finished = bench.call("edit", json!({ "path": "a", "old_str": "one", "new_str": "two" })).await;
    assert_eq!(bench.get("a"), "two\n");
    let error = finished.error.unwrap();
    assert_eq!(error.kind, ToolErrorKind::NoSpaceLeft);
    assert!(
        error
            .message
            .starts_with("The change was made, but its content could not be recorded (not undoable): "),
        "{}",
        error.message
    );
    assert!(
        finished.text.starts_with("Edited ") && finished.text.ends_with(&error.message),
        "{}",
        finished.text
    );
    drop(disk);
}
