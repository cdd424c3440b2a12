//! A type error made by an edit reaches the model in the same step's result; an old one does not.

use lathe_testkit::{FakeModel, Script, TempRepo, call, done};
use serde_json::json;

use crate::{lathe, result, run_in};

const CHECKER: &str = r#"
import re, sys
bad = 0
for number, line in enumerate(open(sys.argv[1]), 1):
    if re.search(r': int = "', line):
        print(f"{sys.argv[1]}:{number}: error: {line.strip()}")
        bad = 1
sys.exit(bad)
"#;

#[test]
fn a_type_error_made_by_an_edit_reaches_the_model_in_the_same_step() {
    let repo = TempRepo::new(&[("a.py", "old: int = \"x\"\nnew: int = 1\n"), ("check.py", CHECKER)]);
    let edit = json!({ "path": "a.py", "old_str": "new: int = 1", "new_str": "new: int = \"y\"" });
    let model = FakeModel::serving(Script::new().answer(call("c1", "edit", edit.clone())).answer(done("ok")));
    let lathe = run_in(repo.path(), &model);
    std::fs::create_dir_all(lathe.home()).unwrap();
    std::fs::write(lathe.home().join("config.toml"), "[check]\n\"*.py\" = \"python3 check.py {file}\"\n")
        .unwrap();
    let events = lathe.run().expect_code(0).events();
    let told = result(&events, "c1");
    let (_, check) = told.split_once("<check>\n").expect(&told);
    assert!(check.contains("a.py:2: error: new: int = \"y\"") && !check.contains("old"), "{told}");
    // And so it stands in the next request.
    let sent = String::from_utf8(model.bodies()[1].clone()).unwrap();
    assert!(sent.contains("a.py:2: error"), "{sent}");
}

#[test]
fn a_project_cannot_name_a_check_by_itself() {
    let repo =
        TempRepo::new(&[("a.py", "x\n"), (".lathe/config.toml", "[check]\n\"*\" = \"touch pwned\"\n")]);
    let edit = json!({ "path": "a.py", "old_str": "x", "new_str": "y" });
    let model = FakeModel::serving(Script::new().answer(call("c1", "edit", edit)).answer(done("ok")));
    let ran = run_in(repo.path(), &model).run().expect_code(0);
    assert!(ran.stderr.contains("not used until you trust it: * (check command)"), "{}", ran.stderr);
    assert!(!repo.exists("pwned"));
}

#[test]
fn a_check_that_cannot_be_used_is_named_with_its_line() {
    let lathe = lathe();
    let file = lathe.home().join("config.toml");
    std::fs::create_dir_all(lathe.home()).unwrap();
    for (rule, said) in
        [("\"[\" = \"true\"", "unclosed character class"), ("\"*.py\" = \"echo 'a\"", "unclosed '")]
    {
        std::fs::write(&file, format!("[check]\n\"*.rs\" = \"echo \\\"it's\\\" {{file}}\"\n{rule}\n"))
            .unwrap();
        let ran = lathe.clone().args(["config", "check"]).run().expect_code(2);
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
        assert!(ran.stderr.contains("config.toml:3: `check`"), "{}", ran.stderr);
    }
}

#[test]
fn a_check_in_which_a_file_name_would_run_is_refused() {
    let lathe = lathe();
    let file = lathe.home().join("config.toml");
    std::fs::create_dir_all(lathe.home()).unwrap();
    let (evaluated, runs) = ("a variable or an expression", "runs a file it is given");
    for (check, said) in [
        ("test -v {file}", evaluated),
        ("test {file} -eq 1", evaluated),
        ("printf -v {file} x", evaluated),
        ("unset {file}", evaluated),
        ("make -f {file}", runs),
        ("vim -S {file}", runs),
        ("bash {file}", "would run the file"),
        ("awk -f {file} x", "would run the file"),
        ("perl -c {file}", "read as code"),
        ("prove {file}", runs),
        ("pytest {file}", runs),
        ("python3 -m unittest {file}", "that module runs the file"),
        ("python3 -E -m mypy {file}", "write `-I`"),
        ("groff -U {file}", "starts what the file names"),
        ("eslint --config={file}", "has to be a whole word"),
        ("eslint --config {file}", "read as code"),
    ] {
        std::fs::write(&file, format!("[check]\n\"*.rs\" = {check:?}\n")).unwrap();
        let ran = lathe.clone().args(["config", "check"]).run().expect_code(2);
        assert!(ran.stderr.contains("config.toml:2: `check`"), "{check}: {}", ran.stderr);
        assert!(ran.stderr.contains(said), "{check}: {}", ran.stderr);
        assert!(ran.stderr.contains("Put it into a script of yours"), "{check}: {}", ran.stderr);
    }
    for check in ["python3 -m py_compile {file}", "bash -n {file}", "test -s {file}", "ruff check {file}"] {
        std::fs::write(&file, format!("[check]\n\"*.rs\" = {check:?}\n")).unwrap();
        lathe.clone().args(["config", "check"]).run().expect_code(0);
    }
    std::fs::write(&file, "[check]\n\"*.rs\" = \"make -f {file}\"\n").unwrap();
    let model = ["--provider", "openrouter", "--model", "x/y", "--api-key", "none"];
    lathe
        .clone()
        .args(["run", "x", "--model-base-url", "http://127.0.0.1:9/v1"])
        .args(model)
        .run()
        .expect_code(2);
    let listed = lathe.args(["sessions"]).run().expect_code(0).stdout;
    assert!(!listed.contains("new"), "no session is left by a run that never began: {listed}");
}

/// Python from 3.11 on knows how to leave the workspace out of what it imports.
fn has_safe_python() -> bool {
    let asked = ["-c", "import sys; sys.exit(sys.version_info < (3, 11))"];
    std::process::Command::new("python3").args(asked).status().is_ok_and(|ended| ended.success())
}

#[test]
fn a_check_in_python_imports_nothing_of_the_workspace() {
    if !has_safe_python() {
        return;
    }
    let evil = "open('pwned', 'w')\n";
    for (check, planted) in [
        ("python3 -m tabnanny {file}", "tabnanny.py"),
        ("python3 tools/c.py {file}", "tools/json.py"),
        ("python3 -c 'import json' {file}", "json.py"),
    ] {
        let repo = TempRepo::new(&[("tools/c.py", "import json\nprint('looked at it')\n")]);
        let script = Script::new()
            .answer(call("c1", "write", json!({ "path": planted, "content": evil })))
            .answer(call("c2", "write", json!({ "path": "a.py", "content": "x = 1\n" })));
        let model = FakeModel::serving(script.answer(done("ok")));
        let lathe = lathe().in_dir(repo.path());
        std::fs::create_dir_all(lathe.home()).unwrap();
        std::fs::write(lathe.home().join("config.toml"), format!("[check]\n\"*.py\" = \"{check}\"\n"))
            .unwrap();
        let args = ["run", "do it", "--mode", "auto-edit", "--output", "stream-json"];
        let events = lathe.args(args).with_model(&model).run().expect_code(0).events();
        assert!(!repo.exists("pwned"), "{check}");
        let told = result(&events, "c2");
        assert!(!told.contains("could not be run"), "{check}: {told}");
        assert_eq!(told.contains("looked at it"), check.contains("c.py"), "{check}: {told}");
        assert!(!repo.exists("tools/__pycache__") && !repo.exists("__pycache__"), "{check}");
    }
}

#[test]
fn what_stops_every_run_is_found_before_one() {
    let lathe = lathe();
    let repo = TempRepo::new(&[]);
    std::fs::create_dir_all(lathe.home()).unwrap();
    for (text, said, stops_shell) in [
        ("[secrets]\nfiles = [\"nowhere.txt\"]\n", "nowhere.txt", true),
        ("[field.u]\ncommand = \"x\"\n", "`tools` is missing", true),
        ("[field.u]\ncommand = \"x\"\ntools = \"no.json\"\n", "no.json", true),
        ("[tools]\ndiscovery_command = \"true\"\n", "needs `tools.call_command`", true),
        ("[secrets]\nfiles = []\n", "", false),
    ] {
        std::fs::write(lathe.home().join("config.toml"), text).unwrap();
        let lathe = lathe.clone().in_dir(repo.path());
        let checked = lathe.clone().args(["config", "check"]).run();
        assert_eq!(
            (checked.code, checked.stderr.contains(said)),
            (if stops_shell { 2 } else { 0 }, true),
            "{}",
            checked.stderr
        );
        let doctor = lathe.clone().args(["doctor"]).run();
        assert_eq!(doctor.stdout.contains("settings"), stops_shell, "{}", doctor.stdout);
        assert!(doctor.stdout.contains(said), "{}", doctor.stdout);
        let shell = lathe.clone().args(["shell", "-c", "true"]).run();
        assert_eq!(shell.code != 0, stops_shell, "{text}: {}", shell.stderr);
    }
}
