//! Problems that a first-time user ran into, through the real binary.

use lathe_testkit::{FakeModel, Lathe, Script, TempRepo, call, done};
use serde_json::{Value, json};

use crate::{lathe, result};

fn configured(text: &str) -> Lathe {
    let lathe = lathe();
    std::fs::create_dir_all(lathe.home()).unwrap();
    std::fs::write(lathe.home().join("config.toml"), text).unwrap();
    lathe
}

#[test]
fn a_list_of_tools_that_means_nothing_stops_everything() {
    for (key, entry, said) in [
        ("[tools]\nexclude", "bashh(git push)", "did you mean `bash`?"),
        ("[tools]\nexclude", "viewx", "did you mean `view`?"),
        ("[tools]\nexclude", "Tool", "there is no tool `Tool`"),
        ("[tools]\nexclude", "view(secret)", "only the shell has commands"),
        ("[tools]\nexclude", "bash(*)", "names no command"),
        ("[run]\ntools", "viewx", "did you mean `view`?"),
    ] {
        let lathe = configured(&format!("{key} = [\"bash(git status)\", {entry:?}]\n"));
        let repo = TempRepo::with_git(&[("a.txt", "one\n")]);
        for args in [
            &["config", "check"] as &[&str],
            &["run", "x"],
            &["tool", "run", "bash", "--json", "{\"command\": \"touch ran\"}"],
        ] {
            let ran = lathe.clone().in_dir(repo.path()).args(args.iter().copied()).run();
            assert_eq!(ran.code, 2, "{entry} {args:?}: {}", ran.stderr);
            assert!(
                ran.stderr.contains("config.toml:2: ") && ran.stderr.contains(said),
                "{args:?}: {}",
                ran.stderr
            );
        }
        assert!(!repo.exists("ran"));
    }
    // Tools that come and go are reported by the doctor.
    let lathe = configured("[tools]\nexclude = [\"mcp_git_push\", \"zz*\"]\n");
    let repo = TempRepo::with_git(&[]);
    lathe.clone().in_dir(repo.path()).args(["config", "check"]).run().expect_code(0);
    let ran = lathe.clone().in_dir(repo.path()).args(["doctor", "--json"]).run();
    let rows: Vec<Value> = serde_json::from_str(&ran.stdout).unwrap();
    let row = rows.iter().find(|row| row["name"] == "policy").unwrap();
    assert_eq!(row["state"], "note", "{row}");
    let detail = row["detail"].to_string();
    assert!(detail.contains("`mcp_git_push` (tools.exclude)") && detail.contains("`zz*`"), "{detail}");
}

/// The word that only an ignored file holds.
const HIDDEN: &str = "quince-of-the-hedge";

#[test]
fn what_latheignore_names_is_shown_and_changed_by_no_tool() {
    let secret = json!({ "word": HIDDEN }).to_string();
    let files = [
        (".latheignore", "secret.json\nhidden/\n*.ipynb\n"),
        ("secret.json", secret.as_str()),
        ("hidden/a.txt", HIDDEN),
        (
            "b.ipynb",
            "{\"cells\": [{\"cell_type\": \"code\", \"source\": [\"quince-of-the-hedge\"], \"outputs\": [], \"metadata\": {}}], \"metadata\": {}, \"nbformat\": 4, \"nbformat_minor\": 5}",
        ),
        ("plain.txt", "plain\n"),
    ];
    let patch = "*** Begin Patch\n*** Update File: secret.json\n@@\n-{\"word\":\"quince-of-the-hedge\"}\n+{}\n*** End Patch";
    let gone = "*** Begin Patch\n*** Delete File: hidden/a.txt\n*** End Patch";
    let new = "*** Begin Patch\n*** Add File: hidden/new.txt\n+x\n*** End Patch";
    let calls: Vec<(&str, &str, Value)> = vec![
        ("lathe", "view", json!({ "path": "secret.json" })),
        ("lathe", "view", json!({ "path": "b.ipynb" })),
        ("lathe", "edit", json!({ "path": "secret.json", "old_str": "word", "new_str": "x" })),
        ("lathe", "edit", json!({ "path": "hidden/a.txt", "insert_line": 0, "new_str": "x" })),
        ("lathe", "edit", json!({ "path": "link.json", "old_str": "word", "new_str": "x" })),
        ("lathe", "write", json!({ "path": "secret.json", "content": "x" })),
        ("lathe", "write", json!({ "path": "hidden/new.txt", "content": "x" })),
        ("lathe", "write", json!({ "path": ".latheignore", "content": "x" })),
        ("lathe", "write", json!({ "path": "hidden/.latheignore", "content": "!a.txt" })),
        ("lathe", "apply_patch", json!({ "patch": patch })),
        ("lathe", "apply_patch", json!({ "patch": gone })),
        ("lathe", "apply_patch", json!({ "patch": new })),
        ("trae", "json_edit_tool", json!({ "operation": "view", "file_path": "/R/secret.json" })),
        (
            "trae",
            "json_edit_tool",
            json!({ "operation": "set", "file_path": "/R/secret.json", "json_path": "$.word", "value": 1 }),
        ),
        ("trae", "str_replace_based_edit_tool", json!({ "command": "view", "path": "/R/secret.json" })),
        (
            "trae",
            "str_replace_based_edit_tool",
            json!({ "command": "str_replace", "path": "/R/secret.json", "old_str": "word", "new_str": "x" }),
        ),
        (
            "trae",
            "str_replace_based_edit_tool",
            json!({ "command": "insert", "path": "/R/secret.json", "insert_line": 0, "new_str": "x" }),
        ),
        (
            "trae",
            "str_replace_based_edit_tool",
            json!({ "command": "create", "path": "/R/hidden/new.txt", "file_text": "x" }),
        ),
        ("gemini", "replace", json!({ "file_path": "secret.json", "old_string": "word", "new_string": "x" })),
        ("gemini", "write_file", json!({ "file_path": "secret.json", "content": "x" })),
        ("gemini", "read_file", json!({ "file_path": "secret.json" })),
    ];
    let repo = TempRepo::with_git(&files);
    std::os::unix::fs::symlink("secret.json", repo.path().join("link.json")).unwrap();
    let all = || files.map(|(name, _)| repo.read(name));
    let before = all();
    let root = repo.path().display().to_string();
    for (toolset, name, arguments) in calls {
        let arguments = arguments.to_string().replace("/R/", &format!("{root}/"));
        for preview in [false, true] {
            let run = lathe().in_dir(repo.path()).args(["tool", "run", name, "--toolset", toolset]);
            let run = run.args(["--json", &arguments]).args(preview.then_some("--preview"));
            let ran = run.run();
            let told = format!("{}{}", ran.stdout, ran.stderr);
            assert!(!told.contains(HIDDEN), "{name} {arguments}: {told}");
            let is_write_of_rules = arguments.contains(".latheignore");
            if !preview {
                assert_ne!(ran.code, 0, "{name} {arguments}: {told}");
                let clear = told.contains("ignore") || (is_write_of_rules && told.contains("never written"));
                assert!(clear, "{name} {arguments}: {told}");
            }
            assert_eq!(all(), before, "{name} {arguments}");
            assert!(
                !repo.exists("hidden/new.txt") && !repo.exists("hidden/.latheignore"),
                "{name} {arguments}"
            );
        }
    }
    // The same tools as commands of the shell.
    for line in
        ["edit secret.json word x", "view secret.json", "write secret.json x", "json_edit view secret.json"]
    {
        let ran = lathe().in_dir(repo.path()).args(["shell", "--mode", "full-auto", "-c", line]).run();
        assert!(!format!("{}{}", ran.stdout, ran.stderr).contains(HIDDEN), "{line}");
        assert_eq!(all(), before, "{line}");
    }
}

#[test]
fn files_that_lathe_writes_for_the_user_are_no_patch() {
    let repo = TempRepo::with_git(&[("a.txt", "one\n")]);
    std::fs::create_dir(repo.path().join("home")).unwrap();
    let play = |script: Script, home: bool| {
        for name in ["c.cassette", "t.json", "p.diff"] {
            let _ = std::fs::remove_file(repo.path().join(name));
        }
        let model = FakeModel::serving(script);
        let run = lathe().in_dir(repo.path());
        let run =
            if home { run.env("LATHE_HOME", repo.path().join("home").display().to_string()) } else { run };
        let outputs = ["--record", "c.cassette", "--trajectory-file", "t.json", "--patch-path", "p.diff"];
        let run = run.args(["run", "fix it", "--must-patch", "--output", "stream-json"]).args(outputs);
        let ran = run.with_model(&model).run();
        (ran, std::fs::read_to_string(repo.path().join("p.diff")).unwrap_or_default())
    };
    for home in [false, true] {
        let (ran, patch) = play(Script::repeat(9, |_| done("ok")), home);
        assert!(ran.code != 0 && patch.is_empty(), "{home}: {} {patch}", ran.code);
        assert!(ran.stdout.contains("Your Patch is empty"), "{home}");
        assert!(repo.exists("c.cassette") && repo.exists("t.json"), "{home}");
    }
    // Next to a real change, the patch has only that change.
    let script = Script::repeat(9, |k| match k {
        0 => call("c", "bash", json!({ "command": "echo two >> a.txt" })),
        _ => done("ok"),
    });
    let (ran, patch) = play(script, true);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let heads: Vec<&str> = patch.lines().filter(|line| line.starts_with("diff --git")).collect();
    assert_eq!(heads, ["diff --git a/a.txt b/a.txt"]);
    let _ = result(&ran.events(), "c");
    let home = repo.path().join("home").display().to_string();
    lathe().env("LATHE_HOME", home).in_dir(repo.path()).args(["undo"]).run();
    assert_eq!(repo.read("a.txt"), "one\n");
    for name in ["c.cassette", "t.json", "p.diff"] {
        assert!(repo.exists(name), "{name} is not the model's work");
    }
}

#[test]
fn a_check_whose_placeholder_may_run_is_an_error_of_the_configuration() {
    for (command, said) in [
        ("make --eval={file}", "not a plain argument"),
        ("timeout 5 {file}", "not a plain argument"),
        ("python3 {file}", "not a plain argument"),
        ("mypy {fle}", "no such placeholder"),
    ] {
        let ran = configured(&format!("[check]\n\"*.py\" = {command:?}\n")).args(["config", "check"]).run();
        assert_eq!(ran.code, 2, "{command}: {}", ran.stderr);
        assert!(
            ran.stderr.contains(said) && ran.stderr.contains("config.toml:2"),
            "{command}: {}",
            ran.stderr
        );
    }
}

#[test]
fn words_say_what_happened() {
    // A denial that no other mode would lift does not name one.
    let lathe = configured("");
    std::fs::create_dir_all(lathe.home().join("policy")).unwrap();
    let rule = "[[rule]]\ndecision = \"deny\"\ncommand = [\"git push\"]\n";
    std::fs::write(lathe.home().join("policy/mine.toml"), rule).unwrap();
    let repo = TempRepo::with_git(&[("a.txt", "one\n")]);
    let script = Script::new().answer(call("c", "bash", json!({ "command": "git push" }))).answer(done("ok"));
    let model = FakeModel::serving(script);
    let run = lathe.in_dir(repo.path()).args(["run", "x", "--mode", "full-auto"]);
    let ran = run.with_model(&model).run();
    assert!(ran.stdout.contains("1 call was denied by policy; see above for the rule\n"), "{}", ran.stdout);
    // A missing key is not a fault of a model.
    let ran = crate::lathe().args(["auth", "login", "nosuch"]).stdin("").run();
    let said = "no key was stored for nosuch: the standard input is empty";
    assert!(ran.code == 2 && ran.stderr.contains(said), "{} {}", ran.code, ran.stderr);
    // The heads of a diff have one slash.
    let arguments =
        json!({ "path": repo.path().join("a.txt"), "old_str": "one", "new_str": "two" }).to_string();
    let run =
        crate::lathe().in_dir(repo.path()).args(["tool", "run", "edit", "--preview", "--json", &arguments]);
    let ran = run.run();
    assert!(ran.stdout.contains("+two"), "{}", ran.stdout);
}
