//! The things a Trae user brings along: configuration, flags, patches, trajectories.

use lathe_testkit::{FakeModel, Lathe, Script, TempRepo, call, done, say};
use serde_json::{Value, json};

use crate::{bodies, lathe};

pub(crate) fn trae_config(model: &FakeModel) -> String {
    format!(
        "agents:
  trae_agent:
    enable_lakeview: false
    model: trae_agent_model
    max_steps: 7
    tools: [bash, str_replace_based_edit_tool, sequentialthinking, task_done]
model_providers:
  local:
    api_key: {}
    provider: openai
    base_url: {}
models:
  trae_agent_model:
    model_provider: local
    model: fake
    max_tokens: 4096
    temperature: 0.5
",
        model.key(),
        model.base_url()
    )
}

#[test]
fn a_script_for_trae_works_with_only_the_name_changed() {
    let repo = TempRepo::with_git(&[("src/a.py", "x = 1\n"), ("tests/test_a.py", "pass\n")]);
    let path = repo.path().canonicalize().unwrap().join("src/a.py");
    let edit = json!({ "command": "str_replace", "path": path, "old_str": "x = 1", "new_str": "x = 2" });
    let script = Script::new()
        .answer(call("c1", "task_done", json!({})))
        .answer(call("c2", "str_replace_based_edit_tool", edit).call(
            "c3",
            "bash",
            json!({ "command": "printf new > new.txt" }),
        ))
        .answer(say("Fixed.").call("c4", "task_done", json!({})));
    let model = FakeModel::serving(script);
    repo.write("trae_config.yaml", trae_config(&model));
    let outside = TempRepo::new(&[]);
    let (patch, trajectory) = (outside.join("p.patch"), outside.join("t.json"));
    let run = lathe().in_dir(repo.path()).args(["run", "fix x", "-mp", "-ct", "simple", "-at", "trae_agent"]);
    let run = run.args(["--config-file", "trae_config.yaml", "--working-dir"]).arg(repo.path());
    let ran = run.arg("-pp").arg(&patch).arg("-t").arg(&trajectory).run().expect_code(0);
    assert_eq!(model.violations(), Vec::<String>::new());
    let first = ran.stdout.lines().next().unwrap();
    assert!(
        first.contains("mode full-auto because of --must-patch") && first.contains("`--mode default`"),
        "{first}"
    );
    assert!(
        ran.stdout.contains("at most 7 steps") && ran.stdout.contains("Trajectory saved to: "),
        "{}",
        ran.stdout
    );
    // The first task_done was refused in Trae's words.
    let second = model.requests()[1].messages();
    assert!(second.iter().any(|message| message["output"]
        == "ERROR! Your Patch is empty. Please provide a patch that fixes the problem."));
    let patch = std::fs::read_to_string(patch).unwrap();
    assert!(
        patch.contains("+x = 2") && patch.contains("b/new.txt") && !patch.contains("trae_config.yaml"),
        "{patch}"
    );
    let trajectory: Value = serde_json::from_str(&std::fs::read_to_string(trajectory).unwrap()).unwrap();
    assert_eq!((&trajectory["success"], &trajectory["final_result"]), (&json!(true), &json!("Fixed.")));
    assert_eq!(trajectory["agent_steps"].as_array().unwrap().len(), 3);
    assert_eq!(trajectory["agent_steps"][1]["tool_results"][0]["name"], "str_replace_based_edit_tool");
}

/// `run TASK --must-patch --patch-path p --trajectory-file t` is the whole line; the model is in the environment.
#[test]
fn must_patch_on_the_command_line_is_an_order_to_change_files_and_nothing_else_is() {
    let line = |flags: &[&str], config: &str| {
        let repo = TempRepo::with_git(&[("a.txt", "one\n")]);
        let outside = TempRepo::new(&[]);
        let model = FakeModel::serving(Script::repeat(9, |k| match k {
            0 => call("c", "bash", json!({ "command": "echo two >> a.txt" })),
            _ => done("ok"),
        }));
        let run = lathe().in_dir(repo.path()).args(["run", "fix it"]).args(flags.iter().copied());
        let run =
            run.arg("--patch-path").arg(outside.join("p")).arg("--trajectory-file").arg(outside.join("t"));
        std::fs::create_dir_all(run.home()).unwrap();
        std::fs::write(run.home().join("config.toml"), config).unwrap();
        let ran = run
            .env("OPENAI_API_KEY", model.key())
            .env("OPENAI_BASE_URL", model.base_url())
            .env("LATHE_MODEL", "fake")
            .run();
        let patch = std::fs::read_to_string(outside.join("p")).unwrap_or_default();
        assert!(outside.join("t").exists());
        (ran, repo.read("a.txt"), patch)
    };
    let (ran, file, patch) = line(&["--must-patch"], "");
    assert!(ran.stdout.contains("mode full-auto because of --must-patch"), "{}", ran.stdout);
    assert_eq!((ran.code, file.as_str(), patch.contains("+two")), (0, "one\ntwo\n", true));
    // Programs that read the output are not in the way of being told.
    let (ran, file, _) = line(&["--must-patch", "--output", "json"], "");
    assert!(ran.stderr.starts_with("mode full-auto because of --must-patch"), "{}", ran.stderr);
    assert_eq!((ran.code, file.as_str()), (0, "one\ntwo\n"));
    for (flags, config, first) in [
        (&["--mode", "default", "--must-patch"] as &[&str], "", "mode default · "),
        (&["--must-patch"], "[run]\nmode = \"default\"\n", "mode default · "),
        (&[], "", "mode default · "),
        // A file may ask for a patch, but it does not give leave.
        (&[], "[run]\nmust_patch = true\n", "mode default · "),
    ] {
        let (ran, file, patch) = line(flags, config);
        assert!(ran.stdout.lines().next().unwrap().contains(first), "{}", ran.stdout);
        assert!(ran.stdout.contains("✘ denied"), "{}", ran.stdout);
        assert_eq!((file.as_str(), patch.as_str()), ("one\n", ""), "{flags:?} {config}");
    }
}

#[test]
fn traes_flags_for_containers_are_said_to_come_later() {
    for flag in [
        "--docker-image",
        "--docker-container-id",
        "--dockerfile-path",
        "--docker-image-file",
        "--docker-keep",
    ] {
        let ran = lathe().args(["run", "fix it", flag, "x"]).run().expect_code(2);
        let said = format!(
            "error[usage]: {flag} does not work yet: running in a container comes with a later version"
        );
        assert!(ran.stderr.starts_with(&said) && ran.stderr.lines().count() == 1, "{}", ran.stderr);
    }
}

fn run(repo: &TempRepo, script: Script, flags: &[&str]) -> (Lathe, lathe_testkit::FinishedLathe) {
    let model = FakeModel::serving(script);
    let run =
        lathe().in_dir(repo.path()).args(["run", "do it", "--mode", "full-auto", "--output", "stream-json"]);
    let run = run.with_model(&model).args(flags.iter().copied());
    let ran = run.run();
    assert_eq!(model.violations(), Vec::<String>::new());
    (run, ran)
}

#[test]
fn a_run_that_only_adds_files_satisfies_must_patch_and_its_patch_applies_to_a_clean_clone() {
    let repo = TempRepo::with_git(&[("a.txt", "one\n")]);
    let outside = TempRepo::new(&[]);
    let patch = outside.join("p.patch");
    let command = "head -c 3000 /dev/urandom > image.bin; printf '#!/bin/sh\\necho hi\\n' > run.sh; chmod 755 run.sh; mkdir -p d; printf 'no newline' > d/x.txt; rm a.txt; ln -s run.sh link";
    let script = Script::new().answer(call("c1", "bash", json!({ "command": command }))).answer(done("ok"));
    run(&repo, script, &["--must-patch", "--patch-path", patch.to_str().unwrap()]).1.expect_code(0);
    let clone = outside.join("clone");
    repo.git(&["clone", "-q", ".", clone.to_str().unwrap()]);
    let applied =
        std::process::Command::new("git").arg("-C").arg(&clone).arg("apply").arg(&patch).output().unwrap();
    assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
    for file in ["image.bin", "run.sh", "d/x.txt"] {
        assert_eq!(
            std::fs::read(clone.join(file)).unwrap(),
            std::fs::read(repo.join(file)).unwrap(),
            "{file}"
        );
    }
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(std::fs::metadata(clone.join("run.sh")).unwrap().permissions().mode() & 0o111, 0o111);
    assert!(!clone.join("a.txt").exists() && clone.join("link").is_symlink());
    // The user's index and objects are as they were.
    assert!(repo.git(&["status", "--porcelain"]).contains("?? image.bin"));
}

#[test]
fn a_tree_that_was_dirty_before_or_a_change_of_tests_does_not_count() {
    let repo = TempRepo::with_git(&[("a.txt", "one\n"), ("tests/t.py", "pass\n")]);
    repo.write("a.txt", "dirty before\n");
    repo.write("untracked.txt", "also before\n");
    let script = Script::new()
        .answer(call("c1", "bash", json!({ "command": "echo more >> tests/t.py; echo x > test_new.py" })))
        .answer(done("one"))
        .answer(done("two"))
        .answer(say("I give up."))
        .answer(say("I give up."));
    let (_, ran) = run(&repo, script, &["--must-patch"]);
    let events = ran.expect_code(1).events();
    let finished = &bodies(&events, "task_finished")[0];
    assert_eq!(finished["ending"], "failed");
    assert!(finished["result"].as_str().unwrap().contains("Your Patch is empty"), "{finished}");
}

#[test]
fn without_git_the_recorded_changes_are_the_patch() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let outside = TempRepo::new(&[]);
    let patch = outside.join("p.patch");
    let script = Script::new()
        .answer(done("too early"))
        .answer(call("c1", "edit", json!({ "path": "a.txt", "old_str": "one", "new_str": "two" })))
        .answer(done("ok"));
    run(&repo, script, &["--must-patch", "--patch-path", patch.to_str().unwrap()]).1.expect_code(0);
    let patch = std::fs::read_to_string(patch).unwrap();
    assert!(
        patch.starts_with("diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n")
            && patch.contains("-one\n+two\n"),
        "{patch}"
    );
}

#[test]
fn a_base_commit_is_compared_with_and_a_wrong_one_is_said() {
    let repo = TempRepo::with_git(&[("a.txt", "one\n")]);
    let base = repo.git(&["rev-parse", "HEAD"]).trim().to_owned();
    repo.write("a.txt", "two\n");
    repo.commit("second");
    let outside = TempRepo::new(&[]);
    let patch = outside.join("p.patch");
    let flags = ["--base-commit", &base, "--patch-path", patch.to_str().unwrap(), "--must-patch"];
    run(&repo, Script::new().answer(done("nothing new, but not since the base")), &flags).1.expect_code(0);
    assert!(std::fs::read_to_string(patch).unwrap().contains("-one\n+two\n"));
    let (_, ran) = run(&repo, Script::new(), &["--base-commit", "nope"]);
    assert!(ran.expect_code(2).stderr.contains("error[base-commit]: no commit `nope`"));
}

#[test]
fn the_users_own_git_settings_do_not_spoil_the_patch() {
    let repo = TempRepo::with_git(&[("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n")]);
    for (key, value) in [
        ("diff.noprefix", "true"),
        ("diff.context", "0"),
        ("diff.orderFile", "/nope"),
        ("diff.mnemonicPrefix", "true"),
        ("core.fileMode", "false"),
        ("color.ui", "always"),
        ("diff.relative", "true"),
    ] {
        repo.git(&["config", key, value]);
    }
    let outside = TempRepo::new(&[]);
    let patch = outside.join("p.patch");
    // A repository without a commit inside this one is left out; the patch has the rest.
    let command = "sed -i s/5/five/ a.txt; printf x > run.sh; chmod 755 run.sh; mkdir inner; git -C inner init -q; echo z > inner/z";
    let script = Script::new().answer(call("c1", "bash", json!({ "command": command }))).answer(done("ok"));
    run(&repo, script, &["--must-patch", "--patch-path", patch.to_str().unwrap()]).1.expect_code(0);
    let clone = outside.join("clone");
    repo.git(&["clone", "-q", ".", clone.to_str().unwrap()]);
    let applied =
        std::process::Command::new("git").arg("-C").arg(&clone).arg("apply").arg(&patch).output().unwrap();
    assert!(
        applied.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&applied.stderr),
        std::fs::read_to_string(&patch).unwrap()
    );
    assert!(std::fs::read_to_string(clone.join("a.txt")).unwrap().contains("five"));
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(std::fs::metadata(clone.join("run.sh")).unwrap().permissions().mode() & 0o111, 0o111);
}

#[test]
fn a_hostile_repository_runs_nothing_when_its_patch_is_made() {
    let repo = TempRepo::with_git(&[("a.txt", "one\n"), (".gitattributes", "*.txt filter=evil diff=evil\n")]);
    let marker = repo.join("../ran-by-git").with_file_name(format!("ran-{}", std::process::id()));
    let evil = format!("touch {}", marker.display());
    for (key, value) in [
        ("core.fsmonitor", &evil),
        ("filter.evil.clean", &evil),
        ("filter.evil.smudge", &evil),
        ("diff.evil.textconv", &evil),
        ("diff.evil.command", &evil),
        ("diff.external", &evil),
        ("core.pager", &evil),
    ] {
        repo.git(&["config", key, value]);
    }
    std::fs::write(repo.join(".git/info/attributes"), "*.txt filter=evil diff=evil\n").unwrap();
    let script = Script::new()
        .answer(call("c1", "edit", json!({ "path": "a.txt", "old_str": "one", "new_str": "two" })))
        .answer(done("ok"));
    let patch = repo.join("../p").with_file_name(format!("p-{}.patch", std::process::id()));
    run(&repo, script, &["--must-patch", "--patch-path", patch.to_str().unwrap()]).1.expect_code(0);
    assert!(!marker.exists(), "git ran a program of the repository");
    assert!(std::fs::read_to_string(&patch).unwrap().contains("+two"));
    std::fs::remove_file(patch).unwrap();
}

#[test]
fn every_flag_of_traes_run_means_what_it_meant() {
    let repo = TempRepo::with_git(&[("task.txt", "from a file\n")]);
    let model = FakeModel::serving(Script::repeat(9, |k| match k {
        0 => call("c", "bash", json!({ "command": "pwd; echo x >> changed.txt" })),
        _ => done("ok"),
    }));
    let outside = TempRepo::new(&[]);
    let (patch, trajectory) = (outside.join("p"), outside.join("t"));
    let text = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let common = || lathe().env("LATHE_MODE", "full-auto").in_dir(outside.path()).arg("run");
    let forms: [Vec<String>; 2] = [
        [
            "--file",
            &text(&repo.join("task.txt")),
            "--provider",
            "openai",
            "--model",
            "fake",
            "--model-base-url",
            &model.base_url(),
            "--api-key",
            model.key(),
            "--max-steps",
            "3",
            "--working-dir",
            &text(repo.path()),
            "--must-patch",
            "--patch-path",
            &text(&patch),
            "--trajectory-file",
            &text(&trajectory),
            "--console-type",
            "SIMPLE",
            "--agent-type",
            "trae_agent",
        ]
        .map(str::to_owned)
        .to_vec(),
        [
            "-f",
            &text(&repo.join("task.txt")),
            "-p",
            "openai",
            "-m",
            "fake",
            "--model-base-url",
            &model.base_url(),
            "-k",
            model.key(),
            "--max-steps",
            "3",
            "-w",
            &text(repo.path()),
            "-mp",
            "-pp",
            &text(&patch),
            "-t",
            &text(&trajectory),
            "-ct",
            "rich",
            "-at",
            "trae_agent",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    for form in forms {
        let ran = common().args(&form).run().expect_code(0);
        assert!(
            ran.stdout.contains("at most 3 steps") && ran.stdout.contains("from a file"),
            "{}",
            ran.stdout
        );
        assert!(ran.stdout.contains(text(&repo.path().canonicalize().unwrap()).as_str()), "{}", ran.stdout);
        assert!(std::fs::read_to_string(&patch).unwrap().contains("changed.txt"));
        let json: Value = serde_json::from_str(&std::fs::read_to_string(&trajectory).unwrap()).unwrap();
        assert_eq!(
            (&json["max_steps"], &json["provider"], &json["model"]),
            (&json!(3), &json!("openai"), &json!("fake"))
        );
        std::fs::remove_file(&patch).unwrap();
        std::fs::remove_file(&trajectory).unwrap();
    }
    assert_eq!(model.violations(), Vec::<String>::new());
    let shown = lathe()
        .args(["show-config", "-p", "openai", "-m", "gpt", "-k", "sk-abcdefghijklmnop", "--max-steps", "8"])
        .run();
    let shown = shown.expect_code(0).stdout;
    assert!(
        shown.contains("gpt") && shown.contains('8') && !shown.contains("sk-abcdefghijklmnop"),
        "{shown}"
    );
    let wrong = common().args(["x", "--agent-type", "other"]).run().expect_code(2);
    assert!(wrong.stderr.contains("trae_agent"), "{}", wrong.stderr);
    let both = common().args(["x", "-f", &text(&repo.join("task.txt"))]).run().expect_code(2);
    assert!(both.stderr.contains("not both"), "{}", both.stderr);
}

#[test]
fn configuration_shows_every_value_with_its_source_and_no_key() {
    let repo = TempRepo::new(&[(
        ".lathe/config.toml",
        "[run]\nmax_steps = 9\nmode = \"full-auto\"\n[model]\nbase_url = \"http://evil\"\n",
    )]);
    let lathe = lathe();
    std::fs::create_dir_all(lathe.home()).unwrap();
    std::fs::write(lathe.home().join("config.toml"), "[model]\nprovider = \"openai\"\nname = \"gpt\"\napi_key = \"sk-abcdefghijklmnop\"\n[run]\nmax_steps = 50\n").unwrap();
    let shown = lathe
        .clone()
        .in_dir(repo.path())
        .args(["config", "show", "--json"])
        .env("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
        .run()
        .expect_code(0);
    let rows: Vec<Value> = serde_json::from_str(&shown.stdout).unwrap();
    let row =
        |key: &str| rows.iter().find(|row| row["key"] == key).unwrap_or_else(|| panic!("{key}")).clone();
    assert_eq!(row("run.max_steps")["value"], "9");
    assert!(row("run.max_steps")["source"].as_str().unwrap().contains(".lathe/config.toml"));
    assert!(row("model.base_url")["source"].as_str().unwrap().contains("OPENAI_BASE_URL"));
    assert!(row("model.name")["source"].as_str().unwrap().contains("config.toml"));
    assert!(!shown.stdout.contains("sk-abcdefghijklmnop"));
    assert!(rows.iter().all(|row| row["key"] != "run.mode" || row["value"] != "full-auto"));
    assert!(
        shown.stderr.contains("warning: ")
            && shown.stderr.contains("run.mode")
            && shown.stderr.contains("base_url"),
        "{}",
        shown.stderr
    );
}

#[test]
fn another_provider_of_an_old_trae_file_brings_its_own_model_and_parameters() {
    let old = r#"{"default_provider": "openai", "model_providers": {
        "openai": {"model": "gpt", "api_key": "key-of-openai", "max_tokens": 111, "top_p": 0.25, "base_url": "http://o"},
        "doubao": {"model": "seed", "api_key": "key-of-doubao", "max_tokens": 222, "base_url": "http://d"}}}"#;
    let repo = TempRepo::new(&[("old.json", old)]);
    let rows = |flags: &[&str], variables: &[(&str, &str)]| {
        let run = lathe().in_dir(repo.path()).args(["show-config", "--config-file", "old.json"]);
        let run = variables.iter().fold(run, |run, (name, value)| run.env(name, value));
        let shown = run.args(flags.iter().copied()).run().expect_code(0).stdout;
        ["Model", "Base URL", "Max Tokens", "Top P"].map(|row| {
            let line = shown
                .lines()
                .find(|line| line.trim_start().starts_with(row) && !line.contains("Configuration"));
            line.unwrap_or_else(|| panic!("{row}\n{shown}")).split_whitespace().last().unwrap().to_owned()
        })
    };
    assert_eq!(rows(&[], &[]), ["gpt", "http://o", "111", "0.25"]);
    assert_eq!(rows(&["-p", "doubao"], &[]), ["seed", "http://d", "222", "1"]);
    assert_eq!(rows(&["-p", "doubao", "-m", "other"], &[]), ["other", "http://d", "222", "1"]);
    assert_eq!(rows(&[], &[("LATHE_PROVIDER", "doubao")]), ["seed", "http://d", "222", "1"]);
    assert_eq!(rows(&["-p", "doubao"], &[("LATHE_MODEL", "mine")]), ["mine", "http://d", "222", "1"]);
}

#[test]
fn a_config_file_that_is_not_there_is_named_and_so_is_who_named_it() {
    let traes = "Error: Config file not found. Please specify a valid config file in the command line option --config-file\n";
    let ran = lathe().args(["run", "x", "--config-file", "none/a.yaml"]).run().expect_code(2);
    assert_eq!(ran.stderr, format!("{traes}  none/a.yaml is not there; --config-file names it\n"));
    let ran = lathe().args(["config", "show"]).env("TRAE_CONFIG_FILE", "none/b.yaml").run().expect_code(2);
    assert_eq!(ran.stderr, format!("{traes}  none/b.yaml is not there; TRAE_CONFIG_FILE names it\n"));
}

#[test]
fn a_misspelt_key_names_file_line_and_suggestion() {
    let lathe = lathe();
    std::fs::create_dir_all(lathe.home()).unwrap();
    std::fs::write(lathe.home().join("config.toml"), "[run]\n\nmax_step = 5\n").unwrap();
    let ran = lathe.clone().args(["config", "check"]).run().expect_code(2);
    assert!(ran.stderr.contains("config.toml:3") && ran.stderr.contains("max_steps"), "{}", ran.stderr);
}

#[test]
fn the_task_takes_files_and_piped_input() {
    let repo = TempRepo::new(&[("notes.md", "remember the milk\n")]);
    let model = FakeModel::serving(Script::new().answer(done("ok")));
    let run = lathe().in_dir(repo.path()).args(["run", "read @notes.md and fix this"]).with_model(&model);
    run.stdin("error: line 3\n").run().expect_code(0);
    let task = model.requests()[0].messages()[1]["content"].as_str().unwrap().to_owned();
    assert_eq!(
        task,
        "read @notes.md and fix this\n\n<file path=\"notes.md\">\nremember the milk\n</file>\n\n<input>\nerror: line 3\n</input>"
    );
}

#[test]
fn old_sessions_are_collected_and_the_rest_stays_whole() {
    let lathe = lathe();
    lathe.clone().args(["demo", "--output", "json"]).run().expect_code(0);
    lathe.clone().args(["demo", "--output", "json"]).run().expect_code(0);
    let listed: Value =
        serde_json::from_str(&lathe.clone().args(["sessions", "--json"]).run().expect_code(0).stdout)
            .unwrap();
    let old = listed[1]["id"].as_str().unwrap();
    for ending in ["db", "lock"] {
        let path = lathe.home().join("sessions").join(format!("{old}.{ending}"));
        let file = std::fs::File::options().append(true).open(&path).unwrap();
        file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(100 * 24 * 3600))
            .unwrap();
    }
    let planned: Value =
        serde_json::from_str(&lathe.clone().args(["gc", "--dry-run", "--json"]).run().expect_code(0).stdout)
            .unwrap();
    assert_eq!((&planned["sessions"], &planned["kept_sessions"]), (&json!([old]), &json!(1)));
    lathe.clone().arg("gc").run().expect_code(0);
    let left: Value =
        serde_json::from_str(&lathe.clone().args(["sessions", "--json"]).run().expect_code(0).stdout)
            .unwrap();
    assert_eq!(left.as_array().unwrap().len(), 1);
    let shown = lathe.clone().arg("show").run().expect_code(0);
    assert!(shown.stdout.contains("lib/money.sh  +3 -1"), "{}", shown.stdout);
}
