//! Known secrets reach neither the model nor the journal nor a screen, and placeholders reach no file.

use lathe_protocol::{OutputStream, ToolErrorKind, Toolset};
use serde_json::json;

use crate::bench::Bench;

const SECRET: &str = "sk-live-0123456789";

fn bench(toolset: Toolset) -> Bench {
    Bench::new(toolset, &[("KEY", SECRET)])
}

#[tokio::test]
async fn output_is_cleaned_also_where_a_secret_comes_in_pieces() {
    let (begin, end) = SECRET.split_at(9);
    for toolset in Toolset::ALL {
        let mut bench = bench(toolset);
        let command = format!("printf 'key {begin}'; sleep 0.2; echo '{end}.'; echo {begin}{end} >&2");
        let tool = match toolset {
            Toolset::Lathe | Toolset::Trae => "bash",
            Toolset::Gemini => "run_shell_command",
            Toolset::Bash => "Bash",
        };
        let text = bench.told(tool, json!({ "command": command })).await;
        // What the model itself wrote is shown again by one toolset.
        let text = text.lines().filter(|line| !line.starts_with("Command: ")).collect::<Vec<_>>().join("\n");
        assert!(text.contains("key «secret:KEY».") && !text.contains("sk-live"), "{text}");
        assert_eq!(bench.shown(OutputStream::Stdout), "key «secret:KEY».\n");
        assert_eq!(bench.shown(OutputStream::Stderr), "«secret:KEY»\n");
    }
}

#[tokio::test]
async fn output_is_cleaned_also_where_a_secret_is_written_otherwise() {
    let (begin, end) = SECRET.split_at(9);
    let mut bench = bench(Toolset::Lathe);
    for (command, expected) in [
        (
            format!("printf 'a {begin}\\033[1m'; sleep 0.2; printf '{end}\\033[0m.\\n'"),
            "a «secret:KEY»\u{1b}[0m.\n",
        ),
        (format!("printf 'a {begin}\\033]0;t\\007{end}.\\n'"), "a «secret:KEY».\n"),
        (format!("printf 'a {begin}\\r{end}.\\n'"), "a «secret:KEY».\n"),
        (format!("printf {SECRET} | base64 | base64"), "«secret:KEY»"),
        (format!("printf {SECRET} | od -An -v -tx1 | tr -d ' \\n'"), "«secret:KEY»"),
    ] {
        let text = bench.told("bash", json!({ "command": command })).await;
        assert!(text.contains(expected.trim_end()) && !text.contains(end), "{command}: {text}");
        let shown = bench.shown(OutputStream::Stdout);
        assert!(shown.contains(expected) && !shown.contains(end), "{command}: {shown}");
    }
    let command = format!("{{ head -c 50 /dev/zero; printf {SECRET}; head -c 50 /dev/zero; }} | base64");
    let text = bench.told("bash", json!({ "command": command })).await;
    assert!(text.contains("AAB«secret:KEY»\nkAA"), "{text}");
}

#[tokio::test]
async fn a_secret_where_the_output_is_cut_leaks_no_half() {
    let mut bench = bench(Toolset::Lathe);
    for place in [14_985, 14_995, 15_000] {
        let command = format!(
            "head -c {place} /dev/zero | tr '\\0' a; printf {SECRET}; head -c 40000 /dev/zero | tr '\\0' b; printf {SECRET}; head -c {place} /dev/zero | tr '\\0' c"
        );
        let finished = bench.call("bash", json!({ "command": command })).await;
        assert!(!finished.text.contains("sk-") && !finished.text.contains("6789"), "{place}");
        let blob = bench.blob(&finished.truncated.unwrap().blob);
        let blob = String::from_utf8(blob).unwrap();
        assert!(blob.contains("a«secret:KEY»b") && !blob.contains("sk-live"));
    }
}

#[tokio::test]
async fn files_and_nearest_places_are_cleaned_before_they_are_cut() {
    for (toolset, cap) in
        [(Toolset::Lathe, 48_000), (Toolset::Trae, 16_000), (Toolset::Gemini, 2_000), (Toolset::Bash, 48_000)]
    {
        let mut bench = bench(toolset);
        let path = bench.put("long", "x".repeat(cap - 9) + SECRET);
        let call = match toolset {
            Toolset::Lathe => ("view", json!({ "path": path })),
            Toolset::Trae => ("str_replace_based_edit_tool", json!({ "command": "view", "path": path })),
            Toolset::Gemini => ("read_file", json!({ "file_path": path })),
            Toolset::Bash => ("Bash", json!({ "command": format!("view '{path}'") })),
        };
        let text = bench.told(call.0, call.1).await;
        assert!(!text.contains("sk-"), "{}", &text[text.len() - 300..]);
    }
    let mut bench = bench(Toolset::Lathe);
    bench.put("env", format!("KEY={SECRET}\nother\n"));
    assert_eq!(
        bench.told("view", json!({ "path": "env" })).await,
        "<file path=\"/W/env\">\n     1\tKEY=«secret:KEY»\n     2\tother\n</file>"
    );
    let edit = json!({ "path": "env", "old_str": "KEY=sk-live-9999999999", "new_str": "x" });
    let (_, text) = bench.refused("edit", edit).await;
    assert!(text.ends_with("The nearest place is at line 1:\nKEY=«secret:KEY»"), "{text}");
}

#[tokio::test]
async fn an_edit_beside_a_secret_keeps_it_and_shows_it_cleaned() {
    let mut bench = bench(Toolset::Lathe);
    bench.put("env", format!("KEY={SECRET}\nother\n"));
    let edit = json!({ "path": "env", "old_str": "other", "new_str": "new" });
    assert_eq!(
        bench.told("edit", edit).await,
        "Edited /W/env. It now reads:\n<file path=\"/W/env\">\n     1\tKEY=«secret:KEY»\n     2\tnew\n</file>"
    );
    assert_eq!(bench.get("env"), format!("KEY={SECRET}\nnew\n"));
}

#[tokio::test]
async fn a_placeholder_is_never_written_or_run() {
    let mut bench = bench(Toolset::Lathe);
    bench.put("env", format!("KEY={SECRET}\n"));
    let words = "The arguments hold «secret:KEY», which stands for a secret you are not shown. Placeholders are never written to files or given to commands: leave that text as it is and change only what is around it. A program that needs the secret has to read it where it is kept: its variable reaches programs only if the user passes it on.";
    for (name, arguments) in [
        ("write", json!({ "path": "new", "content": "KEY=«secret:KEY»\n" })),
        ("edit", json!({ "path": "env", "old_str": "KEY=«secret:KEY»", "new_str": "KEY=" })),
        ("edit", json!({ "path": "env", "insert_line": 0, "new_str": "«secret:KEY»" })),
        ("bash", json!({ "command": "curl -H 'auth: «secret:KEY»' localhost" })),
    ] {
        assert_eq!(
            bench.refused(name, arguments).await,
            (ToolErrorKind::InvalidToolParams, words.to_owned())
        );
    }
    assert_eq!(bench.get("env"), format!("KEY={SECRET}\n"));
    assert!(!bench.exists("new"));
    bench.told("think", json!({ "thought": "«secret:KEY» is set" })).await;
    bench.told("task_done", json!({ "summary": "«secret:KEY» is set" })).await;
}

#[tokio::test]
async fn the_data_of_a_result_is_cleaned_too() {
    let mut bench = bench(Toolset::Lathe);
    let command = format!("mkdir {SECRET}; cd {SECRET}");
    let finished = bench.call("bash", json!({ "command": command })).await;
    assert_eq!(bench.short(&finished.text), "exit code 0; now in /W/«secret:KEY»");
    let data = finished.data.unwrap();
    assert!(data.get().contains("«secret:KEY»") && !data.get().contains("sk-live"), "{data:?}");
}

#[tokio::test]
async fn many_files_and_notebooks_are_cleaned_before_they_are_cut() {
    let mut bench = bench(Toolset::Gemini);
    // A secret is at every place of the last two mebibytes where the cut may be.
    let filler = format!("{SECRET}{}", "x".repeat(7));
    bench.put("long.txt", filler.repeat(200_000));
    let text = bench.told("read_many_files", json!({ "include": ["long.txt"] })).await;
    assert!(text.contains("«secret:KEY»") && !text.contains("sk-live"), "{}", &text[text.len() - 200..]);
    let output = filler.repeat(20_000);
    let cell = json!({ "cell_type": "code", "source": "1", "outputs": [{ "output_type": "stream", "text": output }] });
    let path = bench.put("n.ipynb", json!({ "cells": [cell], "nbformat": 4 }).to_string());
    let text = bench.told("read_file", json!({ "absolute_path": path, "file_path": path })).await;
    assert!(text.contains("«secret:KEY»") && !text.contains("sk-live"), "{text}");
}
