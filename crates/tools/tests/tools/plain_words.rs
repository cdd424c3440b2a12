//! Tests texts that once told a model less than was the case, or something wrong.

use lathe_protocol::Toolset;
use serde_json::json;

use crate::bench::Bench;

#[tokio::test]
async fn a_timeout_that_cannot_be_had_is_said() {
    let mut bench = Bench::new(Toolset::Lathe, &[]);
    for (asked, said) in
        [(99_999, Some("99999 is not from 1 to 3600")), (0, Some("0 is not from 1")), (5, None)]
    {
        let told = bench.call("bash", json!({ "command": "true", "timeout": asked })).await.text;
        assert_eq!(told.contains("the timeout was"), said.is_some(), "{told}");
        assert!(said.is_none_or(|said| told.contains(said)), "{told}");
    }
}

#[tokio::test]
async fn geminis_shell_names_the_folder_it_was_given() {
    let mut bench = Bench::new(Toolset::Gemini, &[]);
    bench.put("sub/a", "");
    let told = bench.call("run_shell_command", json!({ "command": "ls", "dir_path": "sub" })).await.text;
    assert!(told.contains(&format!("Directory: {}\n", bench.root.join("sub").display())), "{told}");
}

#[tokio::test]
async fn a_search_says_why_it_cannot_be_made() {
    let mut bench = Bench::new(Toolset::Lathe, &[]);
    bench.put("one\nname", "needle\n");
    assert!(std::process::Command::new("mkfifo").arg(bench.root.join("pipe")).status().unwrap().success());
    for (arguments, said) in [
        (json!({ "pattern": "x", "limit": 0 }), "limit: it must be at least 1."),
        (json!({ "pattern": "x", "path": "pipe" }), "pipe is a FIFO, socket or device, not a regular file."),
        (json!({ "pattern": "needle" }), "1 matching line in 1 file"),
        (json!({ "pattern": "needle" }), "one\\nname\n"),
        (json!({ "pattern": "x", "pth": "." }), "there is no parameter `pth`."),
        (json!({ "pattern": "x", "limit": "many" }), "expected a whole number, 0 or more."),
    ] {
        let told = bench.call("search", arguments).await.text;
        assert!(told.contains(said), "{told}");
        assert!(!told.contains("folder_only") && !told.contains("usize"), "{told}");
    }
}

#[tokio::test]
async fn a_link_that_leads_nowhere_is_not_meant_by_its_own_name() {
    let mut bench = Bench::new(Toolset::Lathe, &[]);
    std::os::unix::fs::symlink("nowhere", bench.root.join("link.txt")).unwrap();
    let told = bench.call("view", json!({ "path": "link.txt" })).await.text;
    assert!(!told.contains("Did you mean link.txt"), "{told}");
}

#[tokio::test]
async fn a_patch_that_does_not_fit_is_told_by_its_hunk() {
    let mut bench = Bench::new(Toolset::Lathe, &[]);
    bench.put("a.txt", "one\ntwo\nthree\n");
    let patch = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-zwei\n+2\n";
    let told = bench.call("apply_patch", json!({ "patch": patch })).await.text;
    assert!(
        told.contains("Hunk 1 (line 3 of the patch) does not fit") && !told.contains("old_str"),
        "{told}"
    );
}

#[tokio::test]
async fn a_number_that_only_the_grammar_does_not_know_is_no_error() {
    let mut bench = Bench::new(Toolset::Lathe, &[]);
    bench.put("a.json", "{\"a\": 1}\n");
    let edit = |old: &str, new: &str| json!({ "path": "a.json", "old_str": old, "new_str": new });
    let told = bench.call("edit", edit("1}", "1e+20}")).await.text;
    assert!(!told.contains("Syntax"), "{told}");
    bench.put("a.json", "{\"a\": 1}\n");
    bench.seen.clear();
    let told = bench.call("edit", edit("1}", "1e+}")).await.text;
    assert!(told.contains("Syntax"), "{told}");
}
