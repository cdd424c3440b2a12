//! Rows of the audit against Trae that users of Trae would stumble over: words of tools, defaults of its files, exit codes.

use lathe_testkit::{FakeModel, Lathe, Script, TempRepo, Wire, call, done};
use serde_json::{Value, json};

use crate::lathe;
use crate::trae_user::trae_config;

/// Runs one tool of Trae's and gives its exit code and what it says.
fn tool(lathe: &Lathe, name: &str, arguments: &Value) -> (i32, String) {
    let run =
        lathe.clone().args(["tool", "run", "--toolset", "trae", name, "--json", &arguments.to_string()]);
    let ran = run.run();
    (ran.code, ran.stdout)
}

#[test]
fn a_tool_that_ran_a_failing_command_ends_with_a_failure() {
    let repo = TempRepo::new(&[]);
    let lathe = lathe().in_dir(repo.path());
    for (command, code) in [("true", 0), ("nosuch_command_x", 1), ("exit 3", 1)] {
        assert_eq!(tool(&lathe, "bash", &json!({ "command": command })).0, code, "{command}");
    }
    let own = lathe.clone().args(["tool", "run", "bash", "--json", "{\"command\": \"false\"}"]).run();
    assert_eq!((own.code, own.stdout.as_str()), (1, "exit code 1\n"));
    // The time of a line is the one that the configuration says.
    std::fs::create_dir_all(lathe.home()).unwrap();
    std::fs::write(lathe.home().join("config.toml"), "[run]\nline_seconds = 1\n").unwrap();
    let (code, said) = tool(&lathe, "bash", &json!({ "command": "sleep 971235" }));
    assert!(code == 1 && said.contains("has not returned in 1.0 seconds"), "{code} {said}");
}

#[test]
fn words_of_traes_tools_are_right_where_they_were_not() {
    let java = "class K {\n    private int f = 1;\n    static final String A = \"a\", B;\n}\n";
    let repo = TempRepo::new(&[("t.txt", "a b a\nx\na\n"), ("j.json", "{\"a\": 1}\n"), ("K.java", java)]);
    let outside = TempRepo::new(&[("o.py", "def q(): pass\n")]);
    let root = repo.path().canonicalize().unwrap().display().to_string();
    let lathe = lathe().in_dir(repo.path());
    let edit = "str_replace_based_edit_tool";
    let replace = |old: &str| {
        let path = format!("{root}/t.txt");
        json!({ "command": "str_replace", "path": path, "old_str": old, "new_str": "b" })
    };
    let (code, said) = tool(&lathe, edit, &replace("a"));
    assert!(code == 1 && said.contains("in lines [1, 3]."), "{said}");
    let (code, said) = tool(&lathe, edit, &replace(""));
    assert!(code == 1 && said.contains("use the command `insert`"), "{said}");
    let remove = json!({ "operation": "remove", "file_path": format!("{root}/j.json"), "json_path": "$" });
    let (code, said) = tool(&lathe, "json_edit_tool", &remove);
    assert!(code == 1 && said.contains("the root itself cannot be added or removed"), "{said}");
    let search = |command: &str, path: &str, name: &str| {
        let given = json!({ "command": command, "path": path, "identifier": name, "print_body": false });
        tool(&lathe, "ckg", &given)
    };
    let (code, said) = search("search_function", &outside.path().display().to_string(), "q");
    assert!(code == 1 && said.contains("is not in the workspace") && !said.contains("exist"), "{said}");
    let (_, said) = search("search_class", &root, "K");
    for field in ["- private int f = 1", "- static final String A = \"a\"", "- static final String B"] {
        assert!(said.contains(field), "{field}: {said}");
    }
}

#[test]
fn a_trae_file_brings_traes_tools_and_what_cannot_work_is_told() {
    let model = FakeModel::serving(Script::new().answer(done("ok")));
    let with_tools = trae_config(&model);
    let list = "    tools: [bash, str_replace_based_edit_tool, sequentialthinking, task_done]\n";
    let old = json!({ "default_provider": "openai", "model_providers": { "openai": { "model": "m", "api_key": "k" } } });
    let unknown = with_tools.replace("provider: openai", "provider: nosuch");
    let unknown: String =
        unknown.lines().filter(|line| !line.contains("base_url")).map(|line| format!("{line}\n")).collect();
    let repo = TempRepo::new(&[
        ("with.yaml", &with_tools),
        ("without.yaml", &with_tools.replace(list, "")),
        ("old.json", &old.to_string()),
        ("unknown.yaml", &unknown),
    ]);
    let lathe = lathe().in_dir(repo.path());
    for file in ["with.yaml", "without.yaml", "old.json"] {
        let tools = lathe.clone().args(["tools", "--config-file", file]).run().expect_code(0).stdout;
        assert!(
            tools.contains("str_replace_based_edit_tool") && !tools.contains("apply_patch"),
            "{file}: {tools}"
        );
        let shown = lathe.clone().args(["config", "show", "--json", "--config-file", file]).run();
        let rows: Vec<Value> = serde_json::from_str(&shown.expect_code(0).stdout).unwrap();
        let row = rows.iter().find(|row| row["key"] == "run.toolset").unwrap();
        assert_eq!(row["value"], "trae", "{file}");
        assert!(row["source"].as_str().unwrap().contains(file), "{file}: {row}");
    }
    let own = lathe.clone().args(["run", "x", "--config-file", "without.yaml", "--toolset", "lathe"]);
    let own = own.args(["--show-request"]).run().expect_code(0).stdout;
    assert!(own.contains("apply_patch") && !own.contains("str_replace_based_edit_tool"), "{own}");
    let checked = lathe.clone().args(["config", "check", "--config-file", "unknown.yaml"]).run();
    let said = format!("{}{}", checked.stdout, checked.stderr);
    assert!(said.contains("`nosuch` is not a provider that Lathe knows"), "{said}");

    std::fs::create_dir_all(lathe.home()).unwrap();
    let discovery = "[tools]\ndiscovery_command = \"echo []\"\ncall_command = \"true\"\n";
    std::fs::write(lathe.home().join("config.toml"), discovery).unwrap();
    let ran = lathe.clone().args(["tools", "--config-file", "with.yaml"]).run();
    assert!(ran.stderr.contains("leaves out the tools of `tools.discovery_command`"), "{}", ran.stderr);
    let ran = lathe.clone().args(["tools", "--config-file", "without.yaml"]).run();
    assert!(!ran.stderr.contains("leaves out"), "{}", ran.stderr);
}

#[test]
fn the_status_of_a_session_names_its_folder() {
    let repo = TempRepo::new(&[]);
    let model = FakeModel::serving(Script::new());
    let talk = lathe().in_dir(repo.path()).arg("interactive").with_model(&model);
    let ran = talk.stdin("status\nexit\n").run().expect_code(0);
    let folder = repo.path().canonicalize().unwrap().display().to_string();
    assert!(ran.stdout.contains(&format!("folder: {folder}")), "{}", ran.stdout);
}

#[test]
fn issue_16_traes_example_file_works_after_the_command_that_is_printed() {
    let model = FakeModel::serving(Script::new().answer(call("c1", "task_done", json!({}))));
    let example = include_str!("../../../config/tests/config/samples/example.yaml");
    let key = format!("api_key: {}\n        base_url: {}\n", model.key(), model.base_url_for(Wire::Messages));
    let text = example
        .replace("api_key: sk-ant-of-the-example\n", &key)
        .replace("enable_lakeview: true", "enable_lakeview: false");
    let repo = TempRepo::new(&[("trae_config.yaml", &text)]);
    let lathe = lathe().in_dir(repo.path());
    let run = || lathe.clone().args(["run", "Create a hello world Python script"]).run();
    let told = run();
    let lines: Vec<&str> = told.stderr.lines().filter(|line| line.contains("trae_config")).collect();
    assert!(told.code != 0 && lines.len() == 1, "{}", told.stderr);
    let command = lines[0].rsplit_once(": lathe ").unwrap().1;
    assert_eq!((command, model.requests().len()), ("trust add trae_config.yaml", 0));
    // No question can be asked here, so nothing is trusted without an explicit flag.
    let asked = lathe.clone().args(command.split(' ')).run().expect_code(2);
    assert!(asked.stderr.contains("give --yes") && asked.stderr.contains("base_url"), "{}", asked.stderr);
    assert!(run().code != 0 && model.requests().is_empty());
    lathe.clone().args(command.split(' ')).arg("--yes").run().expect_code(0);
    let worked = run().expect_code(0);
    assert_eq!(model.requests().len(), 1, "{}{}", worked.stdout, worked.stderr);
    assert_eq!(model.violations(), Vec::<String>::new());
}

#[test]
fn issue_16_the_providers_of_traes_readme_are_reached_by_their_flags() {
    for (provider, name, wire) in [
        ("openai", "gpt-4o", Wire::Responses),
        ("anthropic", "claude-sonnet-4-20250514", Wire::Messages),
        ("google", "gemini-2.5-flash", Wire::Gemini),
        ("openrouter", "anthropic/claude-3-5-sonnet", Wire::Chat),
        ("openrouter", "openai/gpt-4o", Wire::Chat),
        ("doubao", "doubao-seed-1.6", Wire::Chat),
        ("ollama", "qwen3", Wire::Ollama),
    ] {
        let model = FakeModel::serving(Script::new().answer(done("ok")));
        let repo = TempRepo::new(&[]);
        let variable = |what: &str| format!("{}_{what}", provider.to_uppercase());
        let run = lathe().in_dir(repo.path()).args(["run", "Fix the bug in main.py"]);
        let run = run.args(["--provider", provider, "--model", name]);
        let run =
            run.env(variable("API_KEY"), model.key()).env(variable("BASE_URL"), model.base_url_for(wire));
        let ran = run.run();
        assert_eq!((ran.code, model.requests().len()), (0, 1), "{provider} {name}: {}", ran.stderr);
    }
}

#[test]
fn the_prompt_names_only_tools_of_the_list_and_show_tells_what_commands_printed() {
    let script = Script::new()
        .answer(call(
            "c1",
            "bash",
            json!({ "command": "echo printed-by-it; exit_code_is() { return 3; }; exit_code_is" }),
        ))
        .answer(call("c2", "task_done", json!({})));
    let model = FakeModel::serving(script);
    let repo = TempRepo::new(&[("t.yaml", &trae_config(&model))]);
    let lathe = lathe().in_dir(repo.path());
    let run = lathe.clone().args(["run", "x", "--mode", "full-auto", "--config-file", "t.yaml"]);
    let shown = run.run().expect_code(0).stdout;
    let request = String::from_utf8(model.bodies()[0].clone()).unwrap();
    assert!(
        request.contains("str_replace_based_edit_tool") && !request.contains("json_edit_tool"),
        "{request}"
    );
    let again = lathe.args(["show"]).run().expect_code(0).stdout;
    for text in [&shown, &again] {
        assert!(text.contains("printed-by-it\n"), "{text}");
        assert_eq!(text.matches("exit code 3").count() + text.matches("exit 3").count(), 1, "{text}");
    }
}
