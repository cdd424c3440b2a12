//! A `trae_config.yaml` that the user did not name works once it is trusted by its own name.

use lathe_testkit::{FakeModel, Lathe, Script, TempRepo, call, done};
use serde_json::{Value, json};

use crate::lathe;
use crate::trae_user::trae_config;

fn finishing() -> FakeModel {
    FakeModel::serving(Script::new().answer(call("c1", "task_done", json!({}))))
}

fn run(lathe: &Lathe, more: &[&str]) -> (String, String) {
    let ran = lathe.clone().args(["run", "do it", "--mode", "full-auto"]).args(more).run();
    (ran.stdout, ran.stderr)
}

fn state(lathe: &Lathe) -> String {
    let ran = lathe.clone().args(["trust", "list", "--json"]).run().expect_code(0);
    let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
    let items = shown["items"].as_array().unwrap().iter();
    let found = items.filter(|item| item["kind"] == "trae_config");
    found.map(|item| item["state"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
}

#[test]
fn one_line_says_which_command_makes_a_trae_file_work_and_it_does() {
    let model = finishing();
    let repo = TempRepo::new(&[("AGENTS.md", "Say aye.\n"), ("trae_config.yaml", &trae_config(&model))]);
    let lathe = lathe().in_dir(repo.path());
    let told = |said: &str| -> Vec<String> {
        said.lines().filter(|line| line.contains("trae_config.yaml")).map(str::to_owned).collect()
    };
    // Neither trust in the folder nor trust for once takes the file.
    lathe.clone().args(["trust", "add", "--yes"]).run().expect_code(0);
    for more in [&[][..], &["--trust"]] {
        let (_, said) = run(&lathe, more);
        assert_eq!(told(&said).len(), 1, "{said}");
        assert!(told(&said)[0].ends_with(": lathe trust add trae_config.yaml"), "{said}");
    }
    assert_eq!((state(&lathe).as_str(), model.requests().len()), ("new", 0));

    // The command of that line. No question can be asked here, so it needs `--yes` too.
    let (_, said) = run(&lathe, &[]);
    let command: Vec<String> =
        told(&said)[0].rsplit_once(": lathe ").unwrap().1.split(' ').map(str::to_owned).collect();
    let trusted = lathe.clone().args(&command).arg("--yes").run().expect_code(0);
    for shown in ["model_providers.local.base_url", &model.base_url(), "model_providers.local.api_key"] {
        assert!(trusted.stderr.contains(shown), "{shown}: {}", trusted.stderr);
    }
    assert!(!format!("{}{}", trusted.stdout, trusted.stderr).contains(model.key()), "{}", trusted.stderr);
    let (out, said) = run(&lathe, &[]);
    assert!(out.contains("at most 7 steps") && told(&said).is_empty(), "{out}{said}");
    assert_eq!((state(&lathe).as_str(), model.requests().len()), ("trusted", 1));
    assert_eq!(model.violations(), Vec::<String>::new());
}

#[test]
fn trust_holds_for_the_file_as_it_is_and_can_be_taken_back() {
    let model = finishing();
    let text = trae_config(&model);
    let repo = TempRepo::new(&[("trae_config.yaml", &text)]);
    let lathe = lathe().in_dir(repo.path());
    let add = |name: &str| lathe.clone().args(["trust", "add", name, "--yes"]).run();
    add("trae_config.json").expect_code(2);
    add("./trae_config.yaml").expect_code(0);
    assert_eq!(state(&lathe), "trusted");
    repo.write("trae_config.yaml", format!("{text}# one line more\n"));
    assert_eq!(state(&lathe), "changed");
    let (_, said) = run(&lathe, &[]);
    assert!(said.contains("it has changed since you trusted it"), "{said}");
    assert_eq!(model.requests().len(), 0);
    repo.write("trae_config.yaml", &text);
    assert_eq!(state(&lathe), "trusted");
    lathe.clone().args(["trust", "remove", "trae_config.yaml"]).run().expect_code(0);
    assert_eq!(state(&lathe), "new");
    // From elsewhere the line names the whole path.
    let elsewhere = TempRepo::new(&[]);
    let ran = lathe.clone().in_dir(elsewhere.path()).args(["run", "x", "-w"]).arg(repo.path()).run();
    let path = repo.path().canonicalize().unwrap().join("trae_config.yaml");
    assert!(ran.stderr.contains(&format!("lathe trust add {}", path.display())), "{}", ran.stderr);
}

#[test]
fn a_file_that_was_named_needs_no_trust_and_a_broken_one_gets_none() {
    let model = finishing();
    let repo = TempRepo::new(&[("trae_config.yaml", &trae_config(&model))]);
    let (_, said) = run(&lathe().in_dir(repo.path()), &["--config-file", "trae_config.yaml"]);
    assert!(!said.contains("trust"), "{said}");
    assert_eq!(model.requests().len(), 1);
    repo.write("trae_config.yaml", "agents: [\n");
    let ran = lathe().in_dir(repo.path()).args(["trust", "add", "trae_config.yaml", "--yes"]).run();
    ran.expect_code(2);
}

#[test]
fn programs_and_names_of_keys_are_shown_before_trust_and_no_value_of_a_key_is() {
    let repo = TempRepo::new(&[
        (
            "trae_config.yaml",
            "agents: {trae_agent: {model: m, max_steps: 3, tools: [bash]}}
model_providers: {p: {provider: openai, api_key: PLANTED-1, base_url: 'https://me:PLANTED-2@host/v1?key=PLANTED-3'}}
models: {m: {model_provider: p, model: x, max_tokens: 77}}
mcp_servers: {a: {command: some-program, args: [--fast, --password=PLANTED-4], env: {A_TOKEN: PLANTED-5}}}
",
        ),
        (".env", "OPENAI_API_KEY=PLANTED-6\nSTRIPE_API_KEY=PLANTED-7\n"),
    ]);
    let ran = lathe().in_dir(repo.path()).args(["trust", "add", "trae_config.yaml", "--yes"]).run();
    let shown = ran.expect_code(0).stderr;
    for part in [
        "https://host/v1",
        "some-program",
        "--fast",
        "mcp_servers.a.env.A_TOKEN",
        "model_providers.p.api_key",
        "of openai",
        "77",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("PLANTED") && !shown.contains("stripe"), "{shown}");
}

#[test]
fn lathes_own_toolset_can_still_be_chosen() {
    let model = FakeModel::serving(Script::new().answer(done("ok")));
    let text = trae_config(&model)
        .replace("    tools: [bash, str_replace_based_edit_tool, sequentialthinking, task_done]\n", "");
    let repo = TempRepo::new(&[("trae_config.yaml", &text)]);
    let lathe = lathe().in_dir(repo.path());
    lathe.clone().args(["trust", "add", "trae_config.yaml", "--yes"]).run().expect_code(0);
    run(&lathe, &["--toolset", "lathe"]);
    assert_eq!((model.requests().len(), model.violations()), (1, Vec::new()));
}

#[test]
fn the_commands_of_traes_readme_work_with_the_name_changed() {
    let model = finishing();
    let repo = TempRepo::new(&[("trae_config.yaml", &trae_config(&model))]);
    let outside = TempRepo::new(&[]);
    let lathe = lathe().in_dir(repo.path());
    lathe.clone().args(["trust", "add", "trae_config.yaml", "--yes"]).run().expect_code(0);
    let (work, trajectory) =
        (repo.path().display().to_string(), outside.join("t.json").display().to_string());
    let task = "Create a hello world Python script";
    for command in [
        &["run", task][..],
        &["run", task, "--provider", "local", "--model", "other"],
        &["run", task, "--working-dir", &work],
        &["run", task, "--trajectory-file", &trajectory],
        &["run", task, "--config-file", "trae_config.yaml", "--max-steps", "5"],
        &["interactive"],
        &["interactive", "--provider", "local", "--model", "other", "--max-steps", "30"],
    ] {
        let before = model.requests().len();
        let ran = lathe.clone().args(command).stdin("do it\nexit\n").run().expect_code(0);
        assert_eq!(model.requests().len(), before + 1, "{command:?}: {}{}", ran.stdout, ran.stderr);
    }
    let shown = lathe.clone().arg("show-config").run().expect_code(0).stdout;
    assert!(shown.contains(&model.base_url()) && !shown.contains(model.key()), "{shown}");
    let tools = lathe.clone().arg("tools").run().expect_code(0).stdout;
    assert!(tools.contains("sequentialthinking"), "{tools}");
    assert_eq!(model.violations(), Vec::<String>::new());
}
