//! Every tool of every toolset through the real binary.

use lathe_testkit::{FakeModel, Script, TempRepo, call, say};
use serde_json::{Value, json};

use crate::lathe;

const TOOLSETS: [&str; 4] = ["lathe", "trae", "gemini", "bash"];

fn tools(toolset: &str) -> Value {
    let ran = lathe().args(["tools", "--toolset", toolset, "--json"]).run().expect_code(0);
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn tools_are_listed_as_the_golden_files_say() {
    for toolset in TOOLSETS {
        let path = format!("{}/../tools/tests/golden/{toolset}.json", env!("CARGO_MANIFEST_DIR"));
        let golden: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        assert_eq!(tools(toolset), golden, "{toolset}");
    }
}

/// Arguments for each tool, and words its answer must have.
fn samples(root: &str) -> Vec<(&'static str, &'static str, Value, &'static str)> {
    let in_root = |name: &str| format!("{root}/{name}");
    vec![
        ("lathe", "bash", json!({ "command": "echo out $((1 + 1))" }), "out 2"),
        ("lathe", "view", json!({ "path": "a.txt" }), "needle"),
        ("lathe", "search", json!({ "pattern": "need.e" }), "a.txt"),
        ("lathe", "code", json!({ "command": "find", "target": "b" }), "sub/b.rs"),
        ("lathe", "glob", json!({ "pattern": "*.txt" }), "a.txt"),
        ("lathe", "edit", json!({ "path": "a.txt", "old_str": "needle", "new_str": "pin" }), "pin"),
        ("lathe", "write", json!({ "path": "new.txt", "content": "x\n" }), "Created"),
        (
            "lathe",
            "apply_patch",
            json!({ "patch": "*** Begin Patch\n*** Update File: a.txt\n-a needle\n+a pin\n*** Add File: new.md\n+x\n*** End Patch\n" }),
            "created new.md",
        ),
        ("lathe", "think", json!({ "thought": "hm" }), "Noted."),
        (
            "lathe",
            "todo",
            json!({ "todos": [{ "description": "look", "status": "in_progress" }] }),
            "1. [in_progress] look",
        ),
        ("lathe", "remember", json!({ "fact": "tabs" }), "Remembered in"),
        ("lathe", "task_done", json!({ "summary": "done" }), "Task done."),
        ("bash", "Bash", json!({ "command": "view a.txt | tr a-z A-Z" }), "NEEDLE"),
        ("trae", "bash", json!({ "command": "echo hi" }), "hi"),
        (
            "trae",
            "str_replace_based_edit_tool",
            json!({ "command": "view", "path": in_root("a.txt") }),
            "Here's the result of running `cat -n` on",
        ),
        (
            "trae",
            "sequentialthinking",
            json!({ "thought": "a", "next_thought_needed": false, "thought_number": 1, "total_thoughts": 1 }),
            "Sequential thinking step completed.",
        ),
        (
            "trae",
            "json_edit_tool",
            json!({ "operation": "set", "file_path": in_root("c.json"), "json_path": "$.a", "value": 2 }),
            "Successfully updated 1 location(s) at JSONPath '$.a' with value: 2",
        ),
        (
            "trae",
            "ckg",
            json!({ "command": "search_function", "path": root, "identifier": "b" }),
            "Found 1 functions named b:",
        ),
        ("trae", "task_done", json!({}), "Task done."),
        ("gemini", "list_directory", json!({ "dir_path": "." }), "[DIR] sub"),
        ("gemini", "read_file", json!({ "file_path": "a.txt" }), "needle"),
        ("gemini", "search_file_content", json!({ "pattern": "NEEDLE" }), "L1: a needle"),
        ("gemini", "glob", json!({ "pattern": "**/*.txt" }), "sorted by modification time (newest first):"),
        (
            "gemini",
            "replace",
            json!({ "file_path": "a.txt", "old_string": "needle", "new_string": "pin" }),
            "Successfully modified file:",
        ),
        (
            "gemini",
            "write_file",
            json!({ "file_path": "b.txt", "content": "x" }),
            "Successfully created and wrote to new file:",
        ),
        ("gemini", "read_many_files", json!({ "include": ["*.txt"] }), "--- End of content ---"),
        ("gemini", "run_shell_command", json!({ "command": "echo hi" }), "Output: hi"),
        ("gemini", "save_memory", json!({ "fact": "tabs" }), "Okay, I've remembered that: \\\"tabs\\\""),
        (
            "gemini",
            "write_todos",
            json!({ "todos": [{ "description": "look", "status": "pending" }] }),
            "Successfully updated the todo list. The current list is now:\n1. [pending] look",
        ),
    ]
}

#[test]
fn every_tool_of_every_toolset_runs_without_a_model() {
    let mut tried: Vec<(String, String)> = Vec::new();
    for at in 0..samples("").len() {
        let repo = TempRepo::new(&[
            ("a.txt", "a needle\n"),
            ("sub/b.rs", "fn b() {}\n"),
            ("c.json", "{ \"a\": 1 } // kept\n"),
        ]);
        let root = repo.path().canonicalize().unwrap().display().to_string();
        let (toolset, name, arguments, words) = samples(&root).swap_remove(at);
        let ran = lathe()
            .in_dir(repo.path())
            .args(["tool", "run", name, "--toolset", toolset, "--json", &arguments.to_string()])
            .run()
            .expect_code(0);
        assert!(ran.stdout.contains(words), "{toolset} {name}: {}", ran.stdout);
        tried.push((toolset.to_owned(), name.to_owned()));
    }
    for toolset in TOOLSETS {
        for tool in tools(toolset).as_array().unwrap() {
            let name = tool["name"].as_str().unwrap();
            // There is no user to ask here.
            if name == "ask_user" {
                let arguments = match toolset {
                    "lathe" => json!({ "question": "Which?" }),
                    _ => json!({ "questions": [{ "question": "Which?", "type": "text" }] }),
                };
                let run = ["tool", "run", name, "--toolset", toolset, "--json", &arguments.to_string()];
                lathe().args(run).run().expect_code(1);
                continue;
            }
            assert!(tried.contains(&(toolset.to_owned(), name.to_owned())), "{toolset} {name} has no sample");
        }
    }
}

#[test]
fn the_demo_passes_in_every_toolset_with_its_own_cassette() {
    for toolset in TOOLSETS {
        let ran = lathe().args(["demo", "--toolset", toolset]).run().expect_code(0);
        assert!(ran.stdout.contains("10#${whole:-0}"), "{toolset}: {}", ran.stdout);
        let (_, now) = ran.stdout.split_once("its tests now").unwrap();
        assert!(now.contains("ok    one decimal") && !now.contains("FAIL"), "{toolset}: {}", ran.stdout);
    }
}

#[test]
fn what_is_remembered_is_told_to_the_next_session() {
    let repo = TempRepo::new(&[]);
    let home = lathe();
    let remember = ["tool", "run", "remember", "--json", r#"{"fact": "- Tabs, never blanks."}"#];
    home.clone().in_dir(repo.path()).args(remember).run().expect_code(0);
    let show = ["run", "hi", "--show-request", "--model", "fake", "--api-key", "k"];
    let request = home.clone().in_dir(repo.path()).args(show).run().expect_code(0);
    assert!(
        request.stdout.contains("order nothing.\\n\\n## Lathe Added Memories\\n- Tabs, never blanks."),
        "{}",
        request.stdout
    );
}

#[test]
fn issue_15_a_model_remembers_nothing_for_other_projects_by_itself() {
    let repo = TempRepo::new(&[]);
    for mode in ["plan", "default", "auto-edit", "full-auto"] {
        for (toolset, tool, arguments) in [
            ("lathe", "remember", json!({ "fact": "run curl first" })),
            ("lathe", "remember", json!({ "fact": "run curl first", "scope": "user" })),
            ("gemini", "save_memory", json!({ "fact": "run curl first" })),
            ("lathe", "bash", json!({ "command": "memory 'run curl first'" })),
            ("lathe", "bash", json!({ "command": "echo run curl first >> \"$LATHE_HOME/memory.md\"" })),
            ("bash", "Bash", json!({ "command": "memory 'run curl first'" })),
        ] {
            let lathe = lathe();
            let text = arguments.to_string().replace("$LATHE_HOME", &lathe.home().display().to_string());
            let arguments: Value = serde_json::from_str(&text).unwrap();
            let script = Script::new().answer(call("c1", tool, arguments.clone()));
            let model = FakeModel::serving(script.answer(say("ok")).answer(say("ok")));
            // A user's rule does not answer for the user either.
            std::fs::create_dir_all(lathe.home().join("policy")).unwrap();
            let rule = "[[rule]]\ndecision = \"allow\"\ntool = [\"*\"]\n";
            std::fs::write(lathe.home().join("policy/all.toml"), rule).unwrap();
            let args = ["run", "go", "--mode", mode, "--toolset", toolset, "--output", "stream-json"];
            lathe.clone().in_dir(repo.path()).args(args).with_model(&model).run();
            let memory = std::fs::read_to_string(lathe.home().join("memory.md")).unwrap_or_default();
            assert_eq!(memory, "", "{mode}: {tool} {arguments}");
        }
    }
}

#[test]
fn issue_15_a_remembered_fact_keeps_where_it_came_from() {
    let repo = TempRepo::new(&[]);
    let lathe = lathe();
    let remember = ["tool", "run", "remember", "--json", r#"{"fact": "Tabs."}"#];
    lathe.clone().in_dir(repo.path()).args(remember).run().expect_code(0);
    let origins = std::fs::read_to_string(lathe.home().join("memory.origins.jsonl")).unwrap();
    let origin: serde_json::Value = serde_json::from_str(&origins).unwrap();
    let folder = repo.path().canonicalize().unwrap();
    assert_eq!(origin["folder"], json!(folder));
    let model = FakeModel::serving(Script::new().answer(say("hi")).answer(say("hi")));
    let ran = lathe.clone().in_dir(repo.path()).args(["run", "hi"]).with_model(&model).run();
    let line = format!("facts remembered for every project: 1 (newest from {})", folder.display());
    assert!(ran.stdout.contains(&line), "{}", ran.stdout);
}
