//! Tests that syntax errors introduced by a change are reported with its result, and no others.

use lathe_protocol::Toolset;
use serde_json::json;

use crate::bench::{Bench, gemini, lathe, trae};

const SAYS: &str = "Syntax: this edit introduced an error";

#[tokio::test]
async fn an_edit_that_breaks_the_syntax_is_told_where() {
    let mut bench = lathe();
    bench.put("a.py", "def f(x):\n    return x\n\ny = 1\n");
    let edit = |old: &str, new: &str| json!({ "path": "a.py", "old_str": old, "new_str": new });
    let text = bench.told("edit", edit("y = 1", "y = (1 +")).await;
    assert!(text.ends_with("\nSyntax: this edit introduced an error at line 4: near \"y = (1 +\""), "{text}");
    // What is broken already is not told again, and what is put right is not told at all.
    let text = bench.told("edit", edit("return x", "return x + 1")).await;
    assert!(!text.contains(SAYS), "{text}");
    let text = bench.told("edit", edit("y = (1 +", "y = 1")).await;
    assert!(!text.contains(SAYS), "{text}");
}

#[tokio::test]
async fn every_file_tool_tells_and_names_the_file_where_there_are_several() {
    let mut bench = lathe();
    let text =
        bench.told("write", json!({ "path": "a.rs", "content": "fn main() {\n    let x = ;\n}\n" })).await;
    assert!(text.contains("\nSyntax: this edit introduced an error at line 2: "), "{text}");
    bench.put("b.rs", "fn b() {}\n");
    bench.put("c.rs", "fn c() {}\n");
    let patch = "*** Begin Patch\n*** Update File: b.rs\n@@\n-fn b() {}\n+fn b( {}\n*** Update File: c.rs\n@@\n-fn c() {}\n+fn d() {}\n*** End Patch\n";
    let text = bench.told("apply_patch", json!({ "patch": patch })).await;
    assert!(text.contains("\nSyntax: this edit introduced an error in /W/b.rs at line 1: "), "{text}");
    assert!(!text.contains("c.rs at line"), "{text}");
    let mut bench = gemini();
    bench.put("a.json", "{\"a\": 1}\n");
    let call = json!({ "file_path": "a.json", "old_string": "1}", "new_string": "1" });
    assert!(bench.told("replace", call).await.contains(SAYS));
    let mut bench = trae();
    let path = bench.put("a.go", "package a\n");
    let call = json!({ "command": "insert", "path": path, "insert_line": 1, "new_str": "func f( {" });
    assert!(bench.told("str_replace_based_edit_tool", call).await.contains(SAYS));
}

#[tokio::test]
async fn nothing_is_told_of_what_no_grammar_knows_and_secrets_stay_out() {
    let mut bench = lathe();
    for (name, content) in
        [("a.txt", "def (((\n"), ("a.h", "class A { public: int b; };\n"), ("a.py", "x = 1\n"), ("b.py", "")]
    {
        let text = bench.told("write", json!({ "path": name, "content": content })).await;
        assert!(!text.contains(SAYS), "{text}");
    }
    let mut bench = Bench::new(Toolset::Lathe, &[("TOKEN", "tok-0123456789abcdef")]);
    bench.put("a.py", "x = 1\n# tok-0123456789abcdef\n");
    let text =
        bench.told("edit", json!({ "path": "a.py", "old_str": "x = 1\n# ", "new_str": "x = (\n" })).await;
    assert!(text.contains(SAYS) && !text.contains("tok-0123456789abcdef"), "{text}");
}
