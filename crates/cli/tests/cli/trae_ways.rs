//! The settings of a Trae configuration for `run` and `interactive` besides the model: summaries of steps,
//! trajectories where Trae keeps them, and messages about missing tools.

use lathe_testkit::{FakeModel, Lathe, Script, TempRepo, call, say};
use serde_json::{Value, json};

use crate::trae_user::trae_config;
use crate::{bodies, lathe};

fn working(repo: &TempRepo) -> FakeModel {
    let path = repo.path().canonicalize().unwrap().join("new.txt");
    let create = json!({ "command": "create", "path": path, "file_text": "new\n" });
    FakeModel::serving(Script::new().answer(call("c1", "str_replace_based_edit_tool", create)).answer(call(
        "c2",
        "task_done",
        json!({}),
    )))
}

fn with_lakeview(model: &FakeModel, lake: &FakeModel) -> String {
    trae_config(model)
        .replace("enable_lakeview: false", "enable_lakeview: true")
        .replace(
            "model_providers:\n",
            &format!(
                "lakeview: {{model: lake}}\nmodel_providers:\n  lake: {{provider: openrouter, api_key: {}, base_url: '{}'}}\n",
                lake.key(),
                lake.base_url()
            ),
        )
        .replace("models:\n", "models:\n  lake: {model_provider: lake, model: small}\n")
}

fn lake() -> FakeModel {
    let said = "<task>makes a file</task><details>Writes new.txt.</details><tags>WRITE_FIX</tags>";
    FakeModel::serving(Script::new().answer(say(said)))
}

fn only_session(lathe: &Lathe) -> String {
    let listed = lathe.clone().args(["sessions", "--json"]).run().expect_code(0).stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    listed[0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn lakeview_of_the_configuration_works_in_run_and_interactive() {
    for command in [&["run", "do it"][..], &["interactive"]] {
        let repo = TempRepo::new(&[]);
        let (model, lake) = (working(&repo), lake());
        repo.write("trae_config.yaml", with_lakeview(&model, &lake));
        let lathe = lathe().in_dir(repo.path());
        let run =
            lathe.clone().args(command).args(["--config-file", "trae_config.yaml", "--mode", "full-auto"]);
        let ran = run.stdin("do it\nexit\n").run().expect_code(0);
        // Each step is asked about twice: what it is about, and its tags.
        assert_eq!(lake.requests().len(), 4, "{}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.stdout.matches("makes a file — Writes new.txt.").count(), 2, "{}", ran.stdout);
        let id = only_session(&lathe);
        let shown = lathe.clone().args(["show", &id]).run().expect_code(0).stdout;
        assert_eq!(shown.matches("makes a file — Writes new.txt.").count(), 2, "{shown}");
        let cost = lathe.clone().args(["cost", "--json"]).run().expect_code(0).stdout;
        let total = serde_json::from_str::<Value>(&cost).unwrap()["total"].clone();
        assert_eq!(total["lakeview"]["answers"], 2, "{total}");
        assert_eq!((model.violations(), lake.violations()), (Vec::new(), Vec::new()));
    }
}

#[test]
fn summaries_are_events_of_the_run_with_what_they_took() {
    let repo = TempRepo::new(&[]);
    let (model, lake) = (working(&repo), lake());
    repo.write("trae_config.yaml", with_lakeview(&model, &lake));
    let run = lathe().in_dir(repo.path()).args(["run", "do it", "--config-file", "trae_config.yaml"]);
    let ran = run.args(["--mode", "full-auto", "--output", "stream-json"]).run().expect_code(0);
    let events = ran.events();
    let summaries = bodies(&events, "step_summarised");
    assert_eq!(summaries.len(), 2);
    assert!(summaries.iter().all(|summary| summary["usage"]["input_tokens"].as_u64().unwrap() > 0));
}

#[test]
fn a_trae_configuration_leaves_trajectories_where_trae_does_and_in_no_change() {
    let repo = TempRepo::with_git(&[("a.py", "x = 1\n")]);
    let earlier = "trajectories/trajectory_20250101_010203.json";
    repo.write(earlier, "{}\n");
    repo.write("trajectories/own.txt", "mine\n");
    let model = working(&repo);
    repo.write("trae_config.yaml", trae_config(&model));
    let lathe = lathe().in_dir(repo.path());
    lathe.clone().args(["trust", "add", "trae_config.yaml", "--yes"]).run().expect_code(0);
    let outside = TempRepo::new(&[]);
    let patch = outside.join("p.patch");
    let run = lathe.clone().args(["run", "do it", "-mp", "--base-commit", "HEAD", "-pp"]).arg(&patch);
    let ran = run.run().expect_code(0);
    let names: Vec<String> = std::fs::read_dir(repo.join("trajectories"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "own.txt" && !earlier.ends_with(name))
        .collect();
    assert_eq!(names.len(), 1, "{names:?} {}", ran.stdout);
    let written = std::fs::read_to_string(repo.join("trajectories").join(&names[0])).unwrap();
    let trajectory: Value = serde_json::from_str(&written).unwrap();
    assert_eq!(trajectory["agent_steps"].as_array().unwrap().len(), 2);
    // `trajectory_YYYYMMDD_HHMMSS.json`
    let form: String = names[0].chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(form, "trajectory_00000000_000000.json");
    let patch = std::fs::read_to_string(patch).unwrap();
    assert!(patch.contains("b/new.txt") && patch.contains("own.txt"), "{patch}");
    assert!(!patch.contains("trajectory_"), "{patch}");
    let id = only_session(&lathe);
    let diff = lathe.clone().args(["diff", &id]).run().expect_code(0).stdout;
    assert!(diff.contains("new.txt") && !diff.contains("trajectory"), "{diff}");
    let undone = lathe.clone().arg("undo").run().expect_code(0);
    assert!(!undone.stdout.contains("trajectory"), "{}", undone.stdout);
    assert!(!repo.exists("new.txt") && repo.exists(&format!("trajectories/{}", names[0])));
    // A configuration of ours writes none.
    let plain = TempRepo::new(&[]);
    let model = FakeModel::serving(Script::new().answer(lathe_testkit::done("ok")));
    crate::lathe().in_dir(plain.path()).args(["run", "x"]).with_model(&model).run().expect_code(0);
    assert!(!plain.exists("trajectories"));
}

#[test]
fn the_folder_of_trajectories_is_no_change_of_a_run_either() {
    let repo = TempRepo::new(&[]);
    let line = json!({ "command": "ls -d trajectories && echo x > made.txt" });
    let script = Script::new().answer(call("c1", "bash", line)).answer(call("c2", "task_done", json!({})));
    let model = FakeModel::serving(script);
    let config = TempRepo::new(&[("t.yaml", &trae_config(&model))]);
    let lathe = lathe().in_dir(repo.path());
    let run = lathe.clone().args(["run", "do it", "--mode", "full-auto", "--config-file"]);
    run.arg(config.join("t.yaml")).run().expect_code(0);
    assert!(repo.exists("made.txt"), "the folder is there before the first call");
    let undone = lathe.clone().arg("undo").run().expect_code(0);
    assert!(!undone.stdout.contains("trajector"), "{}", undone.stdout);
    assert!(!repo.exists("made.txt"));
    assert_eq!(std::fs::read_dir(repo.join("trajectories")).unwrap().count(), 1);
}

#[test]
fn a_run_that_wrote_only_its_trajectory_has_changed_nothing() {
    let repo = TempRepo::with_git(&[("a.py", "x = 1\n")]);
    let model = FakeModel::serving(
        Script::new()
            .answer(call("c1", "task_done", json!({})))
            .answer(call("c2", "task_done", json!({})))
            .answer(call("c3", "task_done", json!({}))),
    );
    let config = TempRepo::new(&[("t.yaml", &trae_config(&model))]);
    let run = lathe().in_dir(repo.path()).args(["run", "do it", "-mp", "--max-steps", "3", "--config-file"]);
    let ran = run.arg(config.join("t.yaml")).run();
    assert!(repo.exists("trajectories"), "{}{}", ran.stdout, ran.stderr);
    let refused = model.requests()[1].messages();
    assert!(
        refused.iter().any(|message| message["output"].as_str().unwrap_or("").contains("Patch is empty"))
    );
}

#[test]
fn unknown_names_of_tools_are_told_and_stop_nothing() {
    let repo = TempRepo::new(&[]);
    let model = working(&repo);
    repo.write("trae_config.yaml", trae_config(&model).replace("task_done]", "task_done, nosuch_tool]"));
    let run = lathe().in_dir(repo.path()).args(["run", "do it", "--config-file", "trae_config.yaml"]);
    let ran = run.args(["--mode", "full-auto"]).run().expect_code(0);
    let told: Vec<&str> = ran.stderr.lines().filter(|line| line.contains("nosuch_tool")).collect();
    assert_eq!(told.len(), 1, "{}", ran.stderr);
    assert!(told[0].starts_with("warning: ") && told[0].contains("trae_config.yaml:6"), "{}", told[0]);
    assert_eq!(model.violations(), Vec::<String>::new());
}
