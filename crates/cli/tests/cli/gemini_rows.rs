//! Differences that an audit of Gemini CLI's tools found, tried through the real binary.

use std::os::unix::fs::PermissionsExt as _;

use lathe_testkit::{FakeModel, FinishedLathe, Lathe, Script, TempRepo, call, done, say};
use serde_json::{Value, json};

use crate::approvals::{Terminal, events};
use crate::{bodies, lathe, result};

fn run(repo: &TempRepo, script: Script, flags: &[&str]) -> FinishedLathe {
    let model = FakeModel::serving(script);
    let args = ["run", "do it", "--toolset", "gemini", "--output", "stream-json"];
    lathe().in_dir(repo.path()).args(args).args(flags.iter().copied()).with_model(&model).run()
}

#[test]
fn row_13_allowed_tools_and_commands_are_not_asked_about() {
    let script = || {
        Script::new()
            .answer(call("write", "write_file", json!({ "file_path": "a.txt", "content": "x\n" })))
            .answer(call("touch", "run_shell_command", json!({ "command": "touch b" })))
            .answer(call("other", "run_shell_command", json!({ "command": "touch c && mkdir d" })))
            .answer(say("done"))
            .answer(done("done"))
    };
    let repo = TempRepo::new(&[]);
    run(&repo, script(), &[]);
    assert!(!repo.exists("a.txt") && !repo.exists("b"));
    let ran = run(&repo, script(), &["--allowed-tools", "WriteFileTool,ShellTool(touch b)"]);
    assert!(repo.exists("a.txt") && repo.exists("b") && !repo.exists("c"), "{}", ran.stdout);
    let decided = bodies(&ran.events(), "call_decided");
    assert_eq!(decided[0]["decision"]["rule"], "tools.allowed", "{}", decided[0]);
    // Every command would be another mode.
    for entry in ["ShellTool", "bash"] {
        let ran = run(&repo, script(), &["--allowed-tools", entry]).expect_code(2);
        assert!(ran.stderr.contains("would allow every command: name them"), "{}", ran.stderr);
    }
    let ran = run(&repo, script(), &["--allowed-tools", "WriteFileTol"]).expect_code(2);
    assert!(ran.stderr.contains("did you mean"), "{}", ran.stderr);
    // A project allows itself nothing.
    let repo = TempRepo::new(&[(".lathe/config.toml", "[tools]\nallowed = [\"write_file\"]\n")]);
    run(&repo, script(), &[]);
    assert!(!repo.exists("a.txt"));
}

#[test]
fn row_123_scripts_for_gemini_cli_find_its_variable() {
    let repo = TempRepo::new(&[]);
    for (toolset, tool, words) in
        [("gemini", "run_shell_command", "[1]"), ("lathe", "bash", "[]"), ("bash", "Bash", "[]")]
    {
        let arguments = json!({ "command": "echo [$GEMINI_CLI]" }).to_string();
        let args = ["tool", "run", tool, "--toolset", toolset, "--json", &arguments];
        let ran = lathe().in_dir(repo.path()).env("GEMINI_CLI", "").args(args).run().expect_code(0);
        assert!(ran.stdout.contains(words), "{toolset}: {}", ran.stdout);
    }
    let script = Script::new()
        .answer(call("c", "run_shell_command", json!({ "command": "echo [$GEMINI_CLI]" })))
        .answer(say("done"))
        .answer(done("done"));
    let events = run(&repo, script, &["--mode", "full-auto"]).events();
    assert!(result(&events, "c").contains("Output: [1]"), "{}", result(&events, "c"));
}

#[test]
fn rows_2_and_44_nameless_and_repeated_tools_are_told() {
    let repo = TempRepo::new(&[(
        "offers.sh",
        r#"echo '[{"name": "add"}, {"name": "add"}, {"description": "nameless"}]'"#,
    )]);
    let lathe = lathe();
    std::fs::create_dir_all(lathe.home()).unwrap();
    let text = "[tools]\ndiscovery_command = \"sh offers.sh\"\ncall_command = \"true\"\n";
    std::fs::write(lathe.home().join("config.toml"), text).unwrap();
    let ran = lathe.clone().in_dir(repo.path()).args(["tools", "--json"]).run().expect_code(0);
    for words in [
        "warning: more than one tool has the name `discovered_tool_add`; the first one keeps it",
        "warning: the tool discovery command declares a function without a name: 1 passed over",
    ] {
        assert_eq!(ran.stderr.matches(words).count(), 1, "{}", ran.stderr);
    }
    let listed: Value = serde_json::from_str(&ran.stdout).unwrap();
    let names = listed.as_array().unwrap().iter().filter(|tool| tool["name"] == "discovered_tool_add");
    assert_eq!(names.count(), 1);
    let model = FakeModel::serving(Script::new().answer(done("ok")));
    let ran = lathe.in_dir(repo.path()).args(["run", "do it"]).with_model(&model).run().expect_code(0);
    assert!(ran.stderr.contains("warning: more than one tool has the name"), "{}", ran.stderr);
}

#[test]
fn row_203_a_rule_about_arguments_holds_for_a_tool_and_for_its_command_in_the_shell() {
    let repo = TempRepo::new(&[]);
    let rules = concat!(
        "[[rule]]\ndecision = \"deny\"\ntool = [\"write\"]\nargs_pattern = '\"content\":.*password'\n",
        "[[rule]]\ndecision = \"deny\"\ncommand_regex = '^touch .*[.]key$'\n",
    );
    let ask = |toolset: &str, tool: &str, arguments: Value| {
        let lathe: Lathe = lathe();
        std::fs::create_dir_all(lathe.home().join("policy")).unwrap();
        std::fs::write(lathe.home().join("policy/mine.toml"), rules).unwrap();
        let arguments = arguments.to_string();
        let args = ["tool", "run", tool, "--toolset", toolset, "--mode", "full-auto", "--json", &arguments];
        lathe.in_dir(repo.path()).args(args).run().stdout
    };
    for (toolset, tool, arguments, file) in [
        ("gemini", "write_file", json!({ "file_path": "a.txt", "content": "a password" }), "a.txt"),
        ("lathe", "write", json!({ "path": "b.txt", "content": "a password" }), "b.txt"),
        ("lathe", "bash", json!({ "command": "write c.txt 'a password'" }), "c.txt"),
        ("lathe", "bash", json!({ "command": "echo a; touch d.key" }), "d.key"),
    ] {
        let told = ask(toolset, tool, arguments);
        assert!(told.contains("mine.toml") && !repo.exists(file), "{file}: {told}");
    }
    ask("lathe", "write", json!({ "path": "e.txt", "content": "text" }));
    ask("lathe", "bash", json!({ "command": "write f.txt text; touch g.txt" }));
    assert!(["e.txt", "f.txt", "g.txt"].iter().all(|file| repo.exists(file)));
}

#[test]
fn rows_31_and_71_a_question_tells_what_a_command_is_for_and_gives_the_proposed_text_to_edit() {
    let repo = TempRepo::new(&[("b.txt", "one\ntwo\n"), ("c.txt", "old\n")]);
    let home = tempfile::tempdir().unwrap();
    let editor = home.path().join("editor");
    // The editor gets the text of the file, not the arguments, under a name with the file's ending. While the third
    // file is edited, another program writes it.
    let script = format!(
        "#!/bin/sh\ncase $1 in *.txt) ;; *) exit 1;; esac\n\
         grep -qx tres \"$1\" && echo theirs > '{}'\ngrep -q '{{' \"$1\" || echo mine >> \"$1\"\n",
        repo.join("c.txt").display()
    );
    std::fs::write(&editor, script).unwrap();
    std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o755)).unwrap();
    let about = "Makes the file a";
    let script = Script::new()
        .answer(call("line", "run_shell_command", json!({ "command": "touch a", "description": about })))
        .answer(call("write", "write_file", json!({ "file_path": "new.txt", "content": "uno\n" })))
        .answer(call(
            "edit",
            "replace",
            json!({ "file_path": "b.txt", "old_string": "one", "new_string": "uno" }),
        ))
        .answer(call("late", "write_file", json!({ "file_path": "c.txt", "content": "tres\n" })))
        .answer(say("All done."));
    let model = FakeModel::serving(script);
    let line = format!(
        "exec {} interactive --toolset gemini --model-base-url {} --model fake --api-key {}",
        env!("CARGO_BIN_EXE_lathe"),
        model.base_url(),
        model.key()
    );
    let mut terminal = Terminal::start(repo.path(), home.path(), &line, Some(&editor));
    terminal.sees("Task: ", 1);
    terminal.types("go\n");
    terminal.sees("“Makes the file a”", 1);
    terminal.sees("[e]dit it first", 1);
    terminal.types("y\n");
    for edits in 1..=3 {
        terminal.sees("[e]dit it first", 2 * edits);
        terminal.types("e\n");
        // The changed text is shown before it counts, and is asked about again.
        terminal.sees("+mine", edits);
        terminal.sees("[e]dit it first", 2 * edits + 1);
        terminal.types("y\n");
    }
    terminal.sees("All done.", 1);
    terminal.leaves();
    assert!(repo.exists("a"));
    assert_eq!(repo.read("new.txt"), "uno\nmine\n");
    assert_eq!(repo.read("b.txt"), "uno\ntwo\nmine\n");
    assert_eq!(repo.read("c.txt"), "theirs\n");
    let events = events(home.path());
    assert!(result(&events, "late").contains("was changed since"), "{}", result(&events, "late"));
    for id in ["write", "edit"] {
        let told = result(&events, id);
        let begin = "The proposed text was changed by the user before the call:\n<diff>\n";
        assert!(told.starts_with(begin) && told.contains("+mine\n"), "{told}");
    }
    let given = bodies(&events, "approval_given");
    assert_eq!(given[1]["edited"]["ai_proposed_content"], "uno\n", "{}", given[1]);
    assert_eq!(given[1]["edited"]["modified_by_user"], true);
}

#[test]
fn rows_135_and_136_a_fact_loses_its_dashes_and_a_changed_file_is_told_as_one() {
    let repo = TempRepo::new(&[("mine", "# Mine\n")]);
    let arguments = json!({ "fact": "- -- - tabs" }).to_string();
    let save = ["tool", "run", "save_memory", "--toolset", "gemini", "--json", &arguments];
    let lathe = lathe();
    let ran = lathe.clone().in_dir(repo.path()).args(save).run().expect_code(0);
    assert!(ran.stdout.contains("remembered that: \\\"tabs\\\""), "{}", ran.stdout);
    let saved = std::fs::read_to_string(lathe.home().join("memory.md")).unwrap();
    assert_eq!(saved, "## Gemini Added Memories\n- tabs\n");
    let ran = lathe.clone().in_dir(repo.path()).args(save).args(["--proposed", "mine"]).run().expect_code(0);
    assert!(ran.stdout.contains("updated the memory file with your modifications"), "{}", ran.stdout);
}
