//! The commands around a run.

use lathe_testkit::{TempRepo, golden};
use serde_json::{Value, json};

use crate::lathe;

#[test]
fn version_is_answered_first_thing() {
    assert_eq!(
        lathe().arg("--version").run().expect_code(0).stdout,
        concat!("lathe ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

#[test]
fn every_command_has_help_with_examples() {
    let help = lathe().arg("--help").run().expect_code(0).stdout;
    for command in [
        "run",
        "demo",
        "interactive",
        "sessions",
        "show",
        "resume",
        "fork",
        "watch",
        "replay",
        "tools",
        "tool",
        "policy",
        "cost",
        "gc",
        "config",
        "show-config",
        "doctor",
        "completions",
    ] {
        assert!(help.contains(&format!("  {command} ")), "{command}\n{help}");
        let own = lathe().args([command, "--help"]).run().expect_code(0).stdout;
        assert!(own.contains("Examples:"), "{command}\n{own}");
    }
    assert!(lathe().args(["tool", "run", "--help"]).run().expect_code(0).stdout.contains("Examples:"));
}

#[test]
fn wrong_usage_is_exit_2_with_a_hint() {
    let ran = lathe().args(["run", "x", "--mod", "y"]).run().expect_code(2);
    assert!(ran.stderr.contains("--mode") || ran.stderr.contains("--model"), "{}", ran.stderr);
    lathe().arg("rnu").run().expect_code(2);
    let ran = lathe().arg("run").run().expect_code(2);
    assert!(ran.stderr.contains("what should be done?"), "{}", ran.stderr);
    let ran = lathe().args(["run", "x", "-f", "y"]).run().expect_code(2);
    assert!(ran.stderr.contains("either a task or --file"), "{}", ran.stderr);
    let ran = lathe().args(["show", "nope"]).run().expect_code(2);
    assert!(ran.stderr.contains("error[no-such-session]"), "{}", ran.stderr);
    let ran = lathe().arg("resume").run().expect_code(2);
    assert!(ran.stderr.contains("error[no-sessions]"), "{}", ran.stderr);
}

#[test]
fn tools_are_listed_for_people_and_as_the_model_sees_them() {
    let said = lathe().arg("tools").run().expect_code(0).stdout;
    assert!(said.contains("bash\n") && said.contains("task_done\n"));
    let listed: Value = serde_json::from_str(
        &lathe().args(["tools", "--toolset", "trae", "--json"]).run().expect_code(0).stdout,
    )
    .unwrap();
    let names: Vec<&str> =
        listed.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["bash", "str_replace_based_edit_tool", "json_edit_tool", "sequentialthinking", "ckg", "task_done"]
    );
}

#[test]
fn the_tools_are_those_that_a_run_with_the_same_configuration_would_have() {
    let agent = "agents:\n  trae_agent:\n    model: m\n    tools: [bash, task_done]\nmodel_providers:\n  p: {api_key: k, provider: openai}\nmodels:\n  m: {model_provider: p, model: x}\n";
    let repo = TempRepo::new(&[("conf/trae.yaml", agent)]);
    let names = |flags: &[&str]| {
        let run = lathe().in_dir(repo.path()).args(["tools", "--json"]).args(flags.iter().copied());
        let specs: Value = serde_json::from_str(&run.run().expect_code(0).stdout).unwrap();
        specs
            .as_array()
            .unwrap()
            .iter()
            .map(|spec| spec["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&["--config-file", "conf/trae.yaml"]), ["bash", "task_done"]);
    assert_eq!(names(&["--toolset", "trae"]).len(), 6);
    let ran = lathe().args(["tools", "--config-file", "none.yaml"]).run().expect_code(2);
    assert!(ran.stderr.contains("Config file not found"), "{}", ran.stderr);
}

#[test]
fn one_tool_runs_without_a_model() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let tool = |name: &str, arguments: Value| {
        lathe().in_dir(repo.path()).args(["tool", "run", name, "--json", &arguments.to_string()])
    };
    let ran = tool("view", json!({ "path": "a.txt" })).run().expect_code(0);
    assert!(ran.stdout.contains("     1\tone"), "{}", ran.stdout);
    let ran = tool("bash", json!({ "command": "echo hi; exit 3" })).run().expect_code(1);
    assert!(ran.stdout.starts_with("exit code 3"), "{}", ran.stdout);
    let path = repo.path().canonicalize().unwrap().join("a.txt");
    let edit = json!({ "command": "str_replace", "path": path, "old_str": "one", "new_str": "two" });
    tool("str_replace_based_edit_tool", edit).run().expect_code(0);
    assert_eq!(repo.read("a.txt"), "two\n");
    let ran =
        tool("edit", json!({ "path": "a.txt", "old_str": "nine", "new_str": "x" })).run().expect_code(1);
    assert!(ran.stdout.contains("old_str was not found"), "{}", ran.stdout);
    let ran = tool("bash", json!({ "command": "touch x" })).args(["--mode", "plan"]).run().expect_code(1);
    assert!(ran.stdout.contains("denied by policy") && !repo.exists("x"), "{}", ran.stdout);
    let ran = tool("nope", json!({})).run().expect_code(2);
    assert!(ran.stderr.contains("error[no-such-tool]") && ran.stderr.contains("bash"), "{}", ran.stderr);
    let ran = lathe().args(["tool", "run", "bash", "--json", "{oops"]).run().expect_code(2);
    assert!(ran.stderr.contains("error[tool-arguments]"), "{}", ran.stderr);
}

#[test]
fn the_doctor_finds_a_working_shell() {
    let ran = lathe().args(["doctor", "--json"]).run().expect_code(0);
    let checks: Value = serde_json::from_str(&ran.stdout).unwrap();
    let shell = checks.as_array().unwrap().iter().find(|check| check["name"] == "shell").unwrap();
    assert_eq!(shell["state"], "ok", "{shell}");
}

#[test]
fn the_doctor_goes_on_where_the_configuration_is_broken() {
    let lathe = lathe();
    std::fs::create_dir_all(lathe.home()).unwrap();
    std::fs::write(lathe.home().join("config.toml"), "[[[").unwrap();
    let ran = lathe.args(["doctor", "--json"]).run().expect_code(1);
    assert!(ran.stderr.contains("config.toml:1: syntax error"), "{}", ran.stderr);
    let checks: Value = serde_json::from_str(&ran.stdout).unwrap();
    let state = |name: &str| {
        let found = checks.as_array().unwrap().iter().find(|check| check["name"] == name);
        found.map(|check| check["state"].as_str().unwrap().to_owned())
    };
    assert_eq!(state("config").as_deref(), Some("broken"), "{checks}");
    assert_eq!(state("shell").as_deref(), Some("ok"), "{checks}");
}

#[test]
fn completions_come_for_the_usual_shells() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(lathe().args(["completions", shell]).run().expect_code(0).stdout.contains("lathe"));
    }
}

#[test]
fn the_first_request_can_be_looked_at_and_its_head_is_under_4000_tokens() {
    for toolset in ["lathe", "trae", "gemini", "bash"] {
        let repo = TempRepo::new(&[]);
        let run =
            lathe().in_dir(repo.path()).args(["run", "the task", "--show-request", "--toolset", toolset]);
        let ran = run.run().expect_code(0);
        let body: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(body["messages"][1]["content"].as_str().map(|text| text.contains("the task")), Some(true));
        let tokens: usize = ran.stderr.split(' ').nth(1).unwrap().parse().unwrap();
        assert!(tokens < 4000, "{tokens}");
        let counted = [&body["messages"][0]["content"].to_string(), &body["tools"].to_string()]
            .map(|text| text.chars().count() / 4);
        assert!(tokens <= counted.iter().sum(), "{tokens} {counted:?}");
    }
}

#[test]
fn the_system_prompt_is_what_it_was() {
    for toolset in ["lathe", "trae", "gemini", "bash"] {
        let repo = TempRepo::with_git(&[("a", "")]);
        let run = lathe().in_dir(repo.path()).args(["run", "x", "--show-request", "--toolset", toolset]);
        let body: Value = serde_json::from_str(&run.run().expect_code(0).stdout).unwrap();
        let system = body["messages"][0]["content"].as_str().unwrap();
        // Facts of the machine are not part of the golden text.
        let lines: Vec<String> = system
            .lines()
            .map(|line| match line.split_once(": ") {
                Some((key @ ("- System" | "- Workspace" | "- Git" | "- Date"), _)) => format!("{key}: …"),
                _ => line.to_owned(),
            })
            .collect();
        golden(
            format!("{}/tests/golden/system-{toolset}.md", env!("CARGO_MANIFEST_DIR")),
            &(lines.join("\n") + "\n"),
        );
        assert!(system.contains("- Git: repository, on branch "), "{system}");
    }
}

#[test]
fn the_console_speaks_chinese_where_it_is_wanted() {
    let ran = lathe().env("LATHE_LANG", "zh").arg("demo").run().expect_code(0);
    assert!(ran.stdout.contains("步骤 1") && ran.stdout.contains("✔ 完成"), "{}", ran.stdout);
}

#[test]
fn a_closed_pipe_is_no_panic() {
    let script = format!("{} demo | head -n 1", env!("CARGO_BIN_EXE_lathe"));
    let home = tempfile::tempdir().unwrap();
    let output = std::process::Command::new("bash")
        .args(["-c", &script])
        .env("LATHE_HOME", home.path())
        .env("LATHE_SANDBOX", "off")
        .output()
        .unwrap();
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panic"), "{output:?}");
}
