//! The shell's own commands: found by words, misused and misspelt.

use lathe_testkit::{FakeModel, Lathe, Script, TempRepo, call, done};
use serde_json::{Value, json};

use crate::{lathe, result};

const UNITS: &str = r#"[{"name": "length", "description": "Convert a length.", "parameters": {"type": "object",
  "properties": {"value": {"type": "number"}, "to": {"type": "string"}}, "required": ["value", "to"]}}]"#;

fn with_units() -> Lathe {
    let lathe = lathe();
    std::fs::create_dir_all(lathe.home()).unwrap();
    std::fs::write(lathe.home().join("units.json"), UNITS).unwrap();
    std::fs::write(
        lathe.home().join("config.toml"),
        "[field.units]\nabout = \"Convert units\"\ntools = \"units.json\"\ncommand = \"sh -c cat\"\n",
    )
    .unwrap();
    lathe
}

#[test]
fn commands_are_found_and_misuse_is_told() {
    let repo = TempRepo::new(&[("a.txt", "one\n"), ("p.py", "x\n"), ("sub/~/a.txt", "not this\n")]);
    let lathe = with_units().in_dir(repo.path());
    for (line, code, said, not_said) in [
        ("commands convert length", 0, "field:units:length: Convert a length.", "view"),
        ("commands grep", 0, "search: Find lines", "view:"),
        ("commands read", 0, "view: Show files", "write:"),
        ("commands TodoWrite", 0, "todo: Keep the list", "view:"),
        (
            "TodoWrite '[{\"content\": \"read it\", \"status\": \"pending\", \"activeForm\": \"Reading\"}]'",
            0,
            "1. [pending] read it",
            "wrong",
        ),
        ("commands viw", 1, "no command matches \"viw\". Did you mean view?", "Usage"),
        ("commands nothing_like_it", 1, "no command matches", "Did you mean"),
        ("commands -h", 0, "commands: List the commands", "PATTERN is"),
        ("commands --help", 0, "PATTERN is a part of a name", "Unknown"),
        ("field", 0, "field:units (1 tool): Convert units", "Usage"),
        ("field -h", 0, "field: List the domains", "units"),
        ("field --help", 0, "Usage: field [DOMAIN [TOOL [WORDS...]]]", "units"),
        ("field units", 0, "field:units:length: Convert a length.", "Usage"),
        ("field units length 1 feet", 0, "{\"value\":1.0,\"to\":\"feet\"}", "Usage"),
        ("field units length --help", 0, "Usage: field:units:length <value> <to>", "Unknown"),
        ("field units nosuch 1", 127, "Unknown tool: field:units:nosuch.", "Did you mean"),
        ("field:units:lengt 1 feet", 127, "Did you mean field:units:length?", "there is no domain"),
        ("mcp:git:commit", 127, "Unknown tool: mcp:git:commit. Try: commands", "Did you mean"),
        ("mcp:units", 127, "there is no domain units", "field:units:length"),
        (
            "edit p.py",
            2,
            "Validation errors:\nMissing required parameter: old_string\nUsage: edit",
            "are wrong",
        ),
        ("edit a.txt '' x", 1, "old_string is empty. To add text, give --insert_line instead.", "old_str "),
        ("edit a.txt nothing x", 1, "String not found in file: nothing\nold_string", "old_str "),
        ("printf 'a\\na\\n' > two; edit two a b", 1, "or give --replace-all.", "set replace_all"),
        ("search --help", 0, "the current folder if left out", "the workspace"),
        ("apply_patch --help", 0, "relative to the current folder", "the workspace"),
        ("HOME=$PWD; read '~/a.txt'", 0, "one", "not this"),
    ] {
        let ran = lathe.clone().args(["shell", "-c", line]).run();
        let text = format!("{}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.code, code, "{line}: {text}");
        assert!(text.contains(said) && !text.contains(not_said), "{line}: {text}");
    }
}

#[test]
fn an_output_of_a_field_command_that_was_cut_is_a_failure() {
    let lathe = with_units();
    let config =
        "[field.units]\ntools = 'units.json'\ncommand = '''python3 -c \"print('x' * 68000000)\"'''\n";
    std::fs::write(lathe.home().join("config.toml"), config).unwrap();
    let line = "field:units:length 1 feet | wc -c; echo ${PIPESTATUS[0]}";
    let ran = lathe.args(["shell", "-c", line]).run();
    assert_eq!(ran.stdout, format!("{}\n1\n", 64 << 20), "{}", ran.stderr);
    assert!(ran.stderr.contains("only 64 MiB of each stream are kept"), "{}", ran.stderr);
}

#[test]
fn a_rule_about_a_field_command_holds_for_both_of_its_spellings() {
    let lathe = with_units();
    std::fs::create_dir_all(lathe.home().join("policy")).unwrap();
    let rule = "[[rule]]\ndecision = \"deny\"\ncommand = [\"field:units:length\"]\n";
    std::fs::write(lathe.home().join("policy/mine.toml"), rule).unwrap();
    for line in ["field:units:length 1 feet", "field units length 1 feet", "x=units; field $x length 1 feet"]
    {
        let ran = lathe.clone().args(["shell", "--mode", "full-auto", "-c", line]).run();
        assert!(ran.code == 126 || ran.code == 5, "{line}: {ran:?}");
        assert!(!ran.stdout.contains("feet"), "{line}: {}", ran.stdout);
    }
}

#[test]
fn the_one_tool_tells_its_domains_its_jobs_and_what_is_no_command() {
    let repo = TempRepo::new(&[]);
    let line = |id: &str, line: &str| call(id, "Bash", json!({ "command": line }));
    let script = Script::new()
        .answer(line("c1", "sleep 971234 & echo begun"))
        .answer(line("c2", "jobs kill 1"))
        .answer(call("c3", "no_such_tool", json!({})))
        .answer(call("c4", "view", json!({ "file_path": "x" })))
        .answer(call("c5", "ls", json!({})))
        .answer(line("c6", "task_done ok"))
        .answer(done("ok"));
    let model = FakeModel::serving(script);
    let words = ["run", "x", "--mode", "full-auto", "--toolset", "bash", "--output", "stream-json"];
    let ran = with_units().in_dir(repo.path()).args(words).with_model(&model).run();
    let events = ran.events();
    let said = |id: &str| result(&events, id);
    assert!(said("c1").contains("this command left job 1: `jobs read 1`"), "{}", said("c1"));
    assert!(said("c2").contains("Job 1 was ended."), "{}", said("c2"));
    assert!(said("c3").contains("There is no command no_such_tool either."), "{}", said("c3"));
    assert!(said("c4").contains("Bash(command=\"view <args>\")"), "{}", said("c4"));
    assert!(said("c5").contains("Bash(command=\"ls <args>\")"), "{}", said("c5"));
    let request: Value = serde_json::from_slice(&model.bodies()[0]).unwrap();
    let text = request["tools"].to_string();
    assert!(text.contains("Field domains of this session: `field:units` (Convert units)."), "{text}");
    assert!(text.contains("120 seconds") && text.contains("`ckg`"), "{text}");
}
