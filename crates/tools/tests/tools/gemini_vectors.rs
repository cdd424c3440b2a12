//! Tests cases of Gemini CLI's own tests that once had another result here.

use lathe_protocol::ToolErrorKind;
use serde_json::json;

use crate::bench::gemini;

#[tokio::test]
async fn a_pattern_that_is_the_name_of_a_file_is_taken_for_it() {
    let mut bench = gemini();
    let path = bench.put("src/app/[test]/(dashboard)/page.tsx", "x\n");
    let told = bench.call("glob", json!({ "pattern": "src/app/[test]/(dashboard)/page.tsx" })).await.text;
    assert!(told.contains("Found 1 file(s)") && told.contains(&path), "{told}");
}

#[tokio::test]
async fn a_folder_is_no_file_and_a_large_svg_is_no_text() {
    let mut bench = gemini();
    bench.put("sub/a", "");
    let read = bench.call("read_file", json!({ "file_path": "sub" })).await;
    assert_eq!(read.error.map(|error| error.kind), Some(ToolErrorKind::TargetIsDirectory), "{}", read.text);
    assert!(read.text.contains("the provided path is a directory"), "{}", read.text);
    bench.put("small.svg", "<svg/>\n");
    assert_eq!(bench.call("read_file", json!({ "file_path": "small.svg" })).await.text, "<svg/>\n");
    bench.put("large.svg", "<svg/>\n".repeat(200_000));
    let read = bench.call("read_file", json!({ "file_path": "large.svg" })).await;
    assert!(read.text.starts_with("Cannot display content of SVG file larger than 1MB"), "{}", read.text);
}

#[tokio::test]
async fn a_replacement_leaves_the_end_of_a_file_as_it_was() {
    let mut bench = gemini();
    for (before, old, new, after) in [
        ("a\nb\n", "b\n", "c", "a\nc\n"),
        ("a\nb", "b", "c\n", "a\nc"),
        ("a\r\nb\r\n", "b\r\n", "c", "a\r\nc\r\n"),
        ("a\nb\n", "a", "c", "c\nb\n"),
    ] {
        bench.seen.clear();
        let path = bench.put("f.txt", before);
        let call = json!({ "file_path": "f.txt", "old_string": old, "new_string": new });
        let told = bench.call("replace", call).await.text;
        assert_eq!(std::fs::read_to_string(&path).unwrap(), after, "{before:?}: {told}");
    }
}

#[tokio::test]
async fn a_replacement_of_nothing_makes_a_file() {
    let mut bench = gemini();
    let call = json!({ "file_path": "new.txt", "old_string": "", "new_string": "one\r\n" });
    let told = bench.call("replace", call).await.text;
    assert_eq!(told, format!("Created new file: {} with provided content.", bench.path("new.txt")));
    assert_eq!(std::fs::read(bench.root.join("new.txt")).unwrap(), b"one\r\n");
}

#[tokio::test]
async fn a_command_names_the_processes_it_leaves_and_stays_in_the_workspace() {
    let mut bench = gemini();
    let told = bench.call("run_shell_command", json!({ "command": "sleep 1000 & echo $!" })).await.text;
    let line = |name: &str| {
        let line = told.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_default().trim().to_owned()
    };
    assert_eq!(line("Background PIDs:"), line("Output:"), "{told}");
    let told = bench.call("run_shell_command", json!({ "command": "pwd", "dir_path": "/etc" })).await.text;
    assert!(told.contains("Directory '/etc' is not within any of the registered workspace"), "{told}");
    let told = bench.call("run_shell_command", json!({ "command": "head -c 3000 /dev/urandom" })).await.text;
    assert!(told.contains("bytes that are no text are not shown"), "{told}");
}
