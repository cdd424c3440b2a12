//! Checks of the user's own: what is new reaches the model in the same result, what is old does not.

use std::sync::Arc;
use std::time::Duration;

use lathe_protocol::Toolset;
use lathe_tools::{CheckRule, Checks, Toolbox};
use serde_json::json;

use crate::bench::Bench;

/// A type checker of one rule: `x: int = "text"` is wrong.
const CHECKER: &str = r#"#!/bin/sh
echo run >> runs
for file in "$@"; do
  grep -n ': int = "' "$file" | while IFS=: read -r line rest; do
    echo "$file:$line: error: str is no int:$rest"
  done
done
! grep -q ': int = "' "$@"
"#;

fn bench(toolset: Toolset, rules: &[(&str, &str)], seconds: u64) -> Bench {
    let rules = rules.iter().map(|(glob, command)| CheckRule {
        glob: (*glob).into(),
        command: (*command).into(),
        pins: Vec::new(),
    });
    let checks = Checks::new(rules.collect(), Duration::from_secs(seconds)).unwrap();
    let bench = Bench::with(|services| Toolbox::new(toolset, Arc::new(services.with_checks(checks))));
    bench.put("check.sh", CHECKER);
    bench
}

fn runs(bench: &Bench) -> usize {
    if bench.exists("runs") { bench.get("runs").lines().count() } else { 0 }
}

#[tokio::test]
async fn a_type_error_made_by_an_edit_is_told_in_its_result_and_an_old_one_is_not() {
    let mut bench = bench(Toolset::Lathe, &[("*.py", "sh check.sh {file}")], 60);
    bench.put("sub/a b.py", "old: int = \"was here\"\nx: int = 1\nend\n");
    let edit = |old: &str, new: &str| json!({ "path": "sub/a b.py", "old_str": old, "new_str": new });
    let text = bench.told("edit", edit("x: int = 1", "more\nx: int = \"one\"")).await;
    assert!(
        text.ends_with(
            "\n\nNew since this change, from the check `sh check.sh {file}`:\n<check>\n/W/sub/a b.py:3: error: str is no int:x: int = \"one\"\n</check>"
        ),
        "{text}"
    );
    assert_eq!(runs(&bench), 2, "once before the first edit, once after");
    // The same errors lower down are the same errors.
    let text = bench.told("edit", edit("old: int", "# a line above\nold: int")).await;
    assert!(!text.contains("<check>"), "{text}");
    assert_eq!(runs(&bench), 3, "what is known is not asked again");
    // What is put right is not told.
    let text = bench.told("edit", edit("x: int = \"one\"", "x: int = 1")).await;
    assert!(!text.contains("<check>"), "{text}");
}

#[tokio::test]
async fn every_file_tool_is_checked_once_for_its_files() {
    let mut bench =
        bench(Toolset::Lathe, &[("src/**/*.py", "sh check.sh {files}"), ("*.rs", "echo never")], 60);
    let bad = "x: int = \"no\"\n";
    let text = bench.told("write", json!({ "path": "src/new.py", "content": bad })).await;
    assert!(text.contains("/W/src/new.py:1: error: str is no int"), "{text}");
    assert_eq!(runs(&bench), 1, "nothing is asked about a file that is not there");
    bench.put("src/a.py", "a\n");
    bench.put("src/b.py", "b\n");
    let patch = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-a\n+x: int = \"a\"\n*** Update File: src/b.py\n@@\n-b\n+x: int = \"b\"\n*** End Patch\n";
    let text = bench.told("apply_patch", json!({ "patch": patch })).await;
    assert!(text.contains("/W/src/a.py:1: error") && text.contains("/W/src/b.py:1: error"), "{text}");
    assert_eq!(runs(&bench), 3);
    let text = bench.told("write", json!({ "path": "other.py", "content": bad })).await;
    assert!(!text.contains("<check>"), "{text}");
    assert_eq!(runs(&bench), 3);
}

#[tokio::test]
async fn the_words_of_other_toolsets_carry_it_too() {
    let mut bench = bench(Toolset::Trae, &[("*.py", "sh check.sh {file}"), ("*.json", "cat {file}")], 60);
    let path = bench.path("a.py");
    let call = json!({ "command": "create", "path": path, "file_text": "x: int = \"no\"\n" });
    let text = bench.told("str_replace_based_edit_tool", call).await;
    assert!(text.starts_with("File created successfully at: /W/a.py\n\nNew since"), "{text}");
    let path = bench.put("a.json", "{\"a\": 1}");
    let call = json!({ "operation": "set", "file_path": path, "json_path": "$.a", "value": "new" });
    let text = bench.told("json_edit_tool", call).await;
    assert!(text.contains("{\"a\": \"new\"}"), "{text}");
}

#[tokio::test]
async fn a_check_that_cannot_run_is_told_once_and_never_fails_the_edit() {
    let mut bench = bench(Toolset::Lathe, &[("*.py", "/no/such/checker {file}"), ("*.c", "sleep 98330")], 1);
    let text = bench.told("write", json!({ "path": "a.py", "content": "x\n" })).await;
    assert!(
        text.contains("\n\nThe check `/no/such/checker {file}` could not be run and is left out from now on: exit code 127: "),
        "{text}"
    );
    let text = bench.told("edit", json!({ "path": "a.py", "old_str": "x", "new_str": "y" })).await;
    assert!(!text.contains("check"), "{text}");
    let text = bench.told("write", json!({ "path": "a.c", "content": "x\n" })).await;
    assert!(text.ends_with("is left out from now on: it took longer than 1 seconds."), "{text}");
}

#[test]
fn a_glob_that_is_none_is_refused() {
    let rule = CheckRule { glob: "[".into(), command: "true".into(), pins: Vec::new() };
    assert!(Checks::new(vec![rule], Duration::ZERO).is_err());
}

/// File names that would do harm as the text of a command: a command in them leaves a file `PWNED`.
pub fn hostile_names() -> Vec<String> {
    let payload = "touch PWNED";
    let mut names: Vec<String> = [
        "x{file};P;",
        "x{files};P;",
        "{file}",
        "{files}",
        "{file}{file};P;",
        "'{file}';P;",
        "\"{files}\";P;",
        "';P;'",
        "\";P;\"",
        "'$(P)'",
        "\"$(P)\"",
        "$(P)",
        "`P`",
        "${x:-$(P)}",
        "$((a[$(P)]))",
        ";P",
        "&P",
        "&&P",
        "|P",
        "||P",
        "\nP\n",
        "\rP\r",
        "a\nP #",
        "#\nP",
        ">PWNED",
        ">>PWNED",
        "<(P)",
        ">(P)",
        "<<E\nE\nP",
        "-",
        "--",
        "-c",
        "-eP",
        "--rcfile=PWNED",
        "-oPWNED",
        "--output=PWNED",
        "-exec P ;",
        "$PATH",
        "$HOME",
        "~",
        "~+",
        "*",
        "?",
        "[a]",
        "{a,b}",
        "{a..c}",
        "!!",
        "!P",
        "a b",
        " ",
        "\t",
        "\\",
        "\\';P;'",
        "a\\",
        "a\\\nb",
        "$'\\n';P",
        "é';P;'",
        "\u{202e}';P;'",
        "\u{1b}[2J';P;'",
        "%n%s",
        "$1;P",
        "$@;P",
        "\"$1\";P",
        "a=b",
        "a=(P)",
        "eval P",
        "P\u{0}".trim_end_matches('\u{0}'),
    ]
    .iter()
    .map(|name| format!("{}.py", name.replace('P', payload).replace("touch touch", "touch")))
    .collect();
    names.sort();
    names.dedup();
    names
}

#[tokio::test]
async fn the_name_of_a_file_never_runs() {
    let templates = [
        "cat {file} >/dev/null",
        "cat {files} >/dev/null",
        "echo {file} {files}",
        "sh -c 'wc -l \"$@\"' x {files}",
        "env F=1 cat {file}",
        "echo --path={file} --files={files}",
    ];
    let rules: Vec<(&str, &str)> = templates.iter().map(|template| ("*.py", *template)).collect();
    let names = hostile_names();
    assert!(names.len() >= 60, "{}", names.len());
    let mut bench = bench(Toolset::Lathe, &rules, 120);
    for name in &names {
        bench.told("write", json!({ "path": format!("./{name}"), "content": "x\n" })).await;
        for found in std::fs::read_dir(&bench.root).unwrap() {
            assert_ne!(found.unwrap().file_name(), "PWNED", "{name:?}");
        }
    }
    // The names were taken as they are, so the checks saw them.
    let made = std::fs::read_dir(&bench.root).unwrap().count();
    assert!(made >= names.len(), "{made} of {}", names.len());
}
