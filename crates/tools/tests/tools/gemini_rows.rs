//! Tests behaviours of Gemini CLI's tools, one row each.

use std::sync::Arc;

use lathe_protocol::{BoxFuture, Lane, Raw, ToolChoice, ToolErrorKind, ToolKind, Toolset};
use lathe_tools::{Domain, Layer, OutsideTool, ToolProvider, Toolbox};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::bench::{Bench, gemini};

fn line<'a>(told: &'a str, name: &str) -> &'a str {
    told.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim()
}

#[tokio::test]
async fn row_109_lines_that_match_a_second_pattern_are_no_hits() {
    let mut bench = gemini();
    bench.put("a.txt", "let a = 1;\nlet b = 2; // old\nlet c = 3;\n");
    bench.put("b.txt", "let old = 1;\n");
    let call = json!({ "pattern": "let", "exclude_pattern": "OLD" });
    let told = bench.call("grep_search", call).await.text;
    assert!(told.starts_with("Found 2 matches"), "{told}");
    assert!(told.contains("L1: let a") && told.contains("L3: let c") && !told.contains("b.txt"), "{told}");
    let call = json!({ "pattern": "let", "exclude_pattern": "let . = 1", "names_only": true });
    let told = bench.call("grep_search", call).await.text;
    assert!(told.contains("a.txt") && told.contains("b.txt"), "{told}");
    let refused = bench.call("grep_search", json!({ "pattern": "let", "exclude_pattern": "(" })).await;
    assert!(refused.text.contains("Invalid regular expression"), "{}", refused.text);
    let told = bench.call("grep_search", json!({ "pattern": "let", "max_matches_per_file": 1 })).await.text;
    assert!(told.contains("results limited to 2 matches"), "{told}");
}

#[tokio::test]
async fn row_159_a_call_can_wait_for_those_before_it() {
    let bench = gemini();
    bench.put("a.txt", "x\n");
    let lane = |waits: Value| {
        let call = json!({ "file_path": "a.txt", "wait_for_previous": waits });
        bench.prepare("read_file", call).ok().map(|prepared| prepared.lane)
    };
    assert_eq!(lane(json!(false)), Some(Lane::Reader));
    assert_eq!(lane(json!(true)), Some(Lane::Alone));
    // A tool that refuses unknown parameters is given none.
    let call = json!({ "todos": [], "wait_for_previous": true });
    assert!(bench.prepare("write_todos", call).is_ok());
}

#[tokio::test]
async fn row_121_what_is_left_running_has_a_group_and_a_background_command_is_told_as_one() {
    let mut bench = gemini();
    let command = json!({ "command": "sleep 1000 & echo $(ps -o pgid= -p $!)" });
    let told = bench.call("run_shell_command", command).await.text;
    let words =
        format!("{} (shared with the shell: end the processes by their PIDs)", line(&told, "Output:"));
    assert_eq!(line(&told, "Process Group PGID:"), words, "{told}");
    let command = json!({ "command": "set -m; sleep 1000 & set +m; echo $!" });
    let told = bench.call("run_shell_command", command).await.text;
    assert_eq!(line(&told, "Process Group PGID:"), line(&told, "Output:"), "{told}");
    let told = bench.call("run_shell_command", json!({ "command": "true" })).await.text;
    assert_eq!(line(&told, "Process Group PGID:"), "(none)", "{told}");
    let call = json!({ "command": "sleep 1000", "is_background": true });
    let told = bench.call("run_shell_command", call).await.text;
    assert!(told.starts_with("Command is running in background. PID: "), "{told}");
    assert!(told.ends_with("Initial output:\n(empty)"), "{told}");
}

#[tokio::test]
async fn row_128_a_command_that_prints_nothing_for_too_long_is_ended() {
    let mut bench = gemini();
    bench.silent_seconds = Some(1);
    let ended = bench.call("run_shell_command", json!({ "command": "sleep 1000" })).await;
    let words = "exceeded the timeout of 0.0 minutes without output. There was no output before it";
    assert!(ended.text.contains(words), "{}", ended.text);
    assert_eq!(ended.error.map(|error| error.kind), Some(ToolErrorKind::TimedOut));
    let ended = bench.call("run_shell_command", json!({ "command": "echo begun; sleep 1000" })).await;
    assert!(ended.text.contains("Below is the output before it was cancelled:\nbegun"), "{}", ended.text);
    // A limit on silence is none on the whole.
    bench.silent_seconds = Some(600);
    let ended = bench.call("run_shell_command", json!({ "command": "echo done" })).await;
    assert_eq!(line(&ended.text, "Exit Code:"), "0", "{}", ended.text);
}

#[tokio::test]
async fn row_125_a_cancelled_command_is_told_in_its_words() {
    let mut bench = gemini();
    bench.cancel_at = Some("begun");
    let ended = bench.call("run_shell_command", json!({ "command": "echo begun; sleep 1000" })).await;
    let words = "Command was cancelled by user before it could complete. Below is the output before it was";
    assert!(ended.text.starts_with(words), "{}", ended.text);
    assert_eq!(ended.error.map(|error| error.kind), Some(ToolErrorKind::Cancelled));
}

#[tokio::test]
async fn row_84_a_bitmap_is_shown_as_a_picture_that_models_take() {
    let mut bench = gemini();
    let mut bitmap = b"BM\0\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\x18\0".to_vec();
    bitmap.extend([0; 24]);
    bitmap.extend(b"\xff\0\0\0");
    std::fs::write(bench.root.join("a.bmp"), &bitmap).unwrap();
    for (name, call) in
        [("read_file", json!({ "file_path": "a.bmp" })), ("read_many_files", json!({ "include": ["a.bmp"] }))]
    {
        let read = bench.call(name, call).await;
        let [attached] = read.attachments.as_slice() else { panic!("{name}: {}", read.text) };
        assert_eq!(attached.mime, "image/png", "{name}");
        let shown = bench.toolbox.services().blobs.get(&attached.blob).unwrap().unwrap();
        assert!(shown.starts_with(b"\x89PNG"), "{name}");
    }
    bench.put("not.bmp", "BM is a text\n");
    let read = bench.call("read_file", json!({ "file_path": "not.bmp" })).await;
    assert_eq!(read.text, "BM is a text\n");
}

#[tokio::test]
async fn row_104_words_are_by_the_names_the_model_knows() {
    let mut bench = gemini();
    bench.put("a.py", "if x:\n    y = 1\n    z = 2\n");
    let call = json!({ "file_path": "a.py", "old_string": "y = 1 \nz = 2", "new_string": "y = 2\nz = 3" });
    let told = bench.call("replace", call).await.text;
    assert!(told.contains("old_string matched") && !told.contains("old_str "), "{told}");
    bench.put("sub/a", "");
    let call = json!({ "file_path": "sub", "old_string": "a", "new_string": "b" });
    let refused = bench.call("replace", call).await;
    assert_eq!(refused.error.map(|error| error.kind), Some(ToolErrorKind::TargetIsDirectory));
    assert!(!refused.text.contains("`view`"), "{}", refused.text);
    for call in [json!({ "file_path": "a.py", "offset": 900, "limit": 1 }), json!({ "file_path": "" })] {
        let refused = bench.call("read_file", call).await.text;
        assert!(refused.starts_with("Error: Invalid parameters provided. Reason: "), "{refused}");
    }
}

/// Prints more than a model is shown.
struct Long;

impl ToolProvider for Long {
    fn call<'a>(
        &'a self,
        _: &'a str,
        arguments: Raw,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<String, String>> {
        let count = arguments.to_value().ok().and_then(|given| given["n"].as_u64()).unwrap_or_default();
        Box::pin(async move { Ok("x".repeat(count as usize)) })
    }

    fn program(&self) -> String {
        "long".to_owned()
    }
}

#[tokio::test]
async fn rows_27_and_50_a_tool_of_somebody_else_speaks_as_the_toolset_does() {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let tool = || OutsideTool {
        name: "discovered_tool_long".to_owned(),
        original: "long".to_owned(),
        description: "A tool.".to_owned(),
        schema: Raw::from_serialize(&schema).unwrap(),
        kind: ToolKind::Other,
        failure: ToolErrorKind::DiscoveredToolExecutionError,
        provider: Arc::new(Long),
        domain: Domain { layer: Layer::Field, name: "tools".to_owned(), about: String::new() },
    };
    let mut bench = Bench::with(|services| {
        Toolbox::for_session(Toolset::Gemini, Arc::new(services), ToolChoice::default(), vec![tool()])
    });
    let told = bench.call("discovered_tool_long", json!({ "n": 3 })).await;
    assert_eq!((told.text.as_str(), told.truncated), ("xxx", None));
    let refused = bench.call("discovered_tool_long", json!({})).await.text;
    let words = "Error: Invalid parameters provided. Reason: params must have required property 'n'";
    assert!(refused.starts_with(words), "{refused}");
    let told = bench.call("discovered_tool_long", json!({ "n": 50_000 })).await;
    let cut = told.truncated.expect("all of it is kept");
    assert_eq!((cut.total, cut.kept), (50_000, 50_000));
    assert_eq!(bench.toolbox.services().blobs.get(&cut.blob).unwrap().unwrap().len(), 50_000);
    let about = Toolbox::about_session(Toolset::Gemini, ToolChoice::default(), vec![tool()]);
    let said = |name: &str| {
        let tool = about.iter().find(|about| about.spec.name == name).unwrap();
        (tool.display_name.clone(), tool.markdown)
    };
    assert_eq!(said("discovered_tool_long"), ("discovered_tool_long".to_owned(), false));
    assert_eq!(said("save_memory").0, "Save Memory");
    assert!(said("read_file").1);
}
