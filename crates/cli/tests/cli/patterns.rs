//! Patterns of the model and lines of ignore files that nest without end: the call fails or goes on, and the process lives.

use lathe_testkit::TempRepo;
use serde_json::{Value, json};

use crate::lathe;

/// As deep as an argument of a program may be long.
fn deep() -> [String; 5] {
    let nested =
        |open: &str, close: &str, deep: usize| format!("{}a{}", open.repeat(deep), close.repeat(deep));
    [
        nested("{", "}", 50_000),
        nested("{a,", "}", 25_000),
        nested("[", "", 100_000),
        nested("(", ")", 50_000),
        nested("!", "", 100_000),
    ]
}

#[test]
fn every_tool_that_takes_a_pattern_survives_one_without_bound() {
    let repo = TempRepo::new(&[("a.txt", "needle\n")]);
    for pattern in deep() {
        let calls: [(&str, &str, Value); 7] = [
            ("lathe", "glob", json!({ "pattern": pattern })),
            ("lathe", "search", json!({ "pattern": "needle", "glob": pattern })),
            ("lathe", "search", json!({ "pattern": pattern })),
            ("gemini", "list_directory", json!({ "dir_path": ".", "ignore": [pattern] })),
            ("gemini", "read_many_files", json!({ "include": [pattern] })),
            ("gemini", "read_many_files", json!({ "include": ["*.txt"], "exclude": [pattern] })),
            ("gemini", "search_file_content", json!({ "pattern": "needle", "include": pattern })),
        ];
        for (toolset, name, arguments) in calls {
            let call = ["tool", "run", name, "--toolset", toolset, "--mode", "default", "--json"];
            let ran = lathe().in_dir(repo.path()).args(call).arg(arguments.to_string()).run();
            let said = format!("{}{}", ran.stdout, ran.stderr);
            let case = format!("{name} {arguments:.60}: {} {said:.400}", ran.code);
            assert!((0..=2).contains(&ran.code), "{case}");
            assert!(said.len() < 20_000, "{case}");
            if name == "glob" || name == "search" {
                assert!(said.contains(" at most"), "{case}");
            }
        }
    }
}

#[test]
fn ignore_files_without_bound_end_no_tool() {
    for line in deep() {
        let repo = TempRepo::new(&[("kept.py", "def needle(): pass\n"), ("out.py", "def needle(): pass\n")]);
        for file in [".gitignore", ".ignore", ".geminiignore", ".git/info/exclude"] {
            repo.write(file, format!("{line}\nout.*\n"));
        }
        let calls = [
            ("lathe", "glob", json!({ "pattern": "**/*.py" })),
            ("lathe", "search", json!({ "pattern": "needle" })),
            ("lathe", "code", json!({ "command": "find", "target": "needle" })),
            ("gemini", "list_directory", json!({ "dir_path": "." })),
            ("gemini", "read_many_files", json!({ "include": ["**/*.py"] })),
        ];
        for (toolset, name, arguments) in calls {
            let call = ["tool", "run", name, "--toolset", toolset, "--mode", "default", "--json"];
            let ran = lathe().in_dir(repo.path()).args(call).arg(arguments.to_string()).run();
            let case = format!("{name}: {} {:.400} {:.400}", ran.code, ran.stdout, ran.stderr);
            assert_eq!(ran.code, 0, "{case}");
            assert!(ran.stdout.contains("kept.py") && !ran.stdout.contains("out.py"), "{case}");
        }
    }
}
