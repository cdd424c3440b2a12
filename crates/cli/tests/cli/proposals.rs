//! The effect of a call can be previewed, and the call runs with the user's edit of it.

use lathe_testkit::{FinishedLathe, TempRepo};
use serde_json::{Value, json};

use crate::lathe;

fn tool(repo: &TempRepo, toolset: &str, name: &str, arguments: &Value, more: &[&str]) -> FinishedLathe {
    let arguments = arguments.to_string();
    lathe()
        .in_dir(repo.path())
        .args(["tool", "run", name, "--toolset", toolset, "--json", &arguments])
        .args(more.iter().copied())
        .run()
}

#[test]
fn a_preview_is_json_and_changes_nothing() {
    let repo = TempRepo::new(&[("a.txt", "one\ntwo\n")]);
    let path = repo.join("a.txt").canonicalize().unwrap().display().to_string();
    let edit = json!({ "path": "a.txt", "old_str": "two", "new_str": "2" });
    let replace = json!({ "file_path": "a.txt", "old_string": "two", "new_string": "2" });
    let trae = json!({ "command": "str_replace", "path": path, "old_str": "two", "new_str": "2" });
    for (toolset, name, arguments) in [
        ("lathe", "edit", &edit),
        ("gemini", "replace", &replace),
        ("trae", "str_replace_based_edit_tool", &trae),
    ] {
        let ran = tool(&repo, toolset, name, arguments, &["--preview"]).expect_code(0);
        let preview: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(preview["type"], "edit", "{name}");
        assert_eq!((&preview["current"], &preview["proposed"]), (&json!("one\ntwo\n"), &json!("one\n2\n")));
        assert_eq!(preview["path"], path);
        assert!(preview["diff"].as_str().unwrap().contains("-two\n+2"), "{preview}");
    }
    let ran =
        tool(&repo, "lathe", "bash", &json!({ "command": "touch pwned" }), &["--preview"]).expect_code(0);
    assert_eq!(
        serde_json::from_str::<Value>(&ran.stdout).unwrap(),
        json!({ "type": "exec", "command": "touch pwned" })
    );
    let ran = tool(&repo, "lathe", "view", &json!({ "path": "a.txt" }), &["--preview"]).expect_code(0);
    assert_eq!(
        serde_json::from_str::<Value>(&ran.stdout).unwrap(),
        json!({ "type": "info", "text": "view a.txt" })
    );
    let ran = tool(&repo, "lathe", "edit", &json!({ "path": "a.txt" }), &["--preview"]).expect_code(1);
    assert!(ran.stdout.starts_with("The arguments are wrong"), "{}", ran.stdout);
    assert_eq!(repo.read("a.txt"), "one\ntwo\n");
    assert!(!repo.exists("pwned"));
}

#[test]
fn what_a_person_makes_of_a_proposal_is_what_is_written() {
    let edit = json!({ "path": "a.txt", "old_str": "two", "new_str": "2" });
    let insert = json!({ "path": "a.txt", "insert_line": 1, "new_str": "more" });
    let write = json!({ "path": "a.txt", "content": "new\n" });
    let replace = json!({ "file_path": "a.txt", "old_string": "two", "new_string": "2" });
    let write_file = json!({ "file_path": "a.txt", "content": "new\n" });
    for (toolset, name, arguments) in [
        ("lathe", "edit", &edit),
        ("lathe", "edit", &insert),
        ("lathe", "write", &write),
        ("gemini", "replace", &replace),
        ("gemini", "write_file", &write_file),
    ] {
        let repo = TempRepo::new(&[("a.txt", "one\ntwo\n"), ("mine", "one\nTWO\nthree\n")]);
        let ran = tool(&repo, toolset, name, arguments, &["--proposed", "mine"]).expect_code(0);
        assert!(
            ran.stdout.starts_with("The proposed text was changed by the user before the call:\n<diff>\n"),
            "{name}: {}",
            ran.stdout
        );
        assert!(ran.stdout.contains("+three"), "{name}: {}", ran.stdout);
        assert_eq!(repo.read("a.txt"), "one\nTWO\nthree\n", "{name}");
    }
    let repo = TempRepo::new(&[("a.txt", "one\n"), ("mine", "1\n")]);
    let path = repo.join("a.txt").canonicalize().unwrap().display().to_string();
    let call = json!({ "command": "str_replace", "path": path, "old_str": "one", "new_str": "1" });
    let ran =
        tool(&repo, "trae", "str_replace_based_edit_tool", &call, &["--proposed", "mine"]).expect_code(0);
    assert!(ran.stdout.starts_with("The proposed text was taken as it is.\nThe file "), "{}", ran.stdout);
    assert_eq!(repo.read("a.txt"), "1\n");
}

#[test]
fn a_remembered_fact_can_be_changed_before_it_is_saved() {
    for (toolset, name, arguments) in [
        ("lathe", "remember", json!({ "fact": "tests use nextest", "scope": "project" })),
        ("gemini", "save_memory", json!({ "fact": "tests use nextest" })),
    ] {
        let repo = TempRepo::new(&[("mine", "# Mine\n- my own words\n")]);
        let lathe = lathe()
            .in_dir(repo.path())
            .args(["tool", "run", name, "--toolset", toolset, "--json", &arguments.to_string()])
            .args(["--proposed", "mine"]);
        let ran = lathe.run().expect_code(0);
        assert!(ran.stdout.contains("+- my own words"), "{}", ran.stdout);
        let path = if toolset == "lathe" { repo.join("AGENTS.md") } else { lathe.home().join("memory.md") };
        let saved = std::fs::read_to_string(&path).unwrap_or_else(|_| panic!("{}", path.display()));
        assert_eq!(saved, "# Mine\n- my own words\n");
    }
}

#[test]
fn what_proposes_no_text_cannot_be_changed() {
    let repo = TempRepo::new(&[("a.txt", "x"), ("mine", "y")]);
    let ran =
        tool(&repo, "lathe", "view", &json!({ "path": "a.txt" }), &["--proposed", "mine"]).expect_code(2);
    assert!(ran.stderr.contains("it proposes no text"), "{}", ran.stderr);
    tool(&repo, "lathe", "view", &json!({ "path": "a.txt" }), &["--proposed", "mine", "--preview"])
        .expect_code(2);
    tool(&repo, "lathe", "write", &json!({ "path": "b", "content": "x" }), &["--proposed", "none"])
        .expect_code(2);
    assert!(!repo.exists("b"));
}
