//! The decisions of the gate in each mode, by every route, with the real binary. Every line that is denied here would
//! touch only the folder that the test made.

use std::collections::BTreeMap;
use std::path::Path;

use lathe_testkit::{FakeModel, Script, TempRepo, call, done};
use serde_json::{Value, json};

use crate::{bodies, lathe, result, run_in};

const FILES: [(&str, &str); 2] = [("a.txt", "one\ntwo\n"), ("sub/b.txt", "bee\n")];

/// Every file below a folder with its bytes; `.git` counts too.
fn tree(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.insert(format!("{}/", path.display()), Vec::new());
                folders.push(path);
            } else {
                found.insert(path.display().to_string(), std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// Lines, and the exit code in the modes plan, default and full-auto, without a user who could be asked.
const LINES: [(&str, [i32; 3]); 14] = [
    ("ls", [0, 0, 0]),
    ("cat a.txt | head -1 2>/dev/null", [0, 0, 0]),
    ("git status --short", [0, 0, 0]),
    ("grep -c one a.txt", [0, 0, 0]),
    ("view a.txt | head -1", [0, 0, 0]),
    ("x=a.txt; view $x", [126, 126, 0]),
    ("for f in a.txt sub/b.txt; do view $f; done", [0, 0, 0]),
    ("search one", [0, 0, 0]),
    ("write new.txt x", [126, 126, 0]),
    ("write new.txt x || echo refused", [0, 0, 0]),
    ("echo x > new.txt", [126, 126, 0]),
    ("cd sub && ls", [0, 0, 0]),
    ("sh -c 'echo x'", [126, 126, 0]),
    ("touch new.txt", [126, 126, 0]),
];

#[test]
fn a_line_is_judged_for_what_it_is_in_each_mode() {
    for (line, codes) in LINES {
        for (mode, code) in ["plan", "default", "full-auto"].into_iter().zip(codes) {
            let repo = TempRepo::with_git(&FILES);
            let before = tree(repo.path());
            let ran = lathe().in_dir(repo.path()).args(["shell", "--mode", mode, "-c", line]).run();
            assert_eq!(ran.code, code, "{mode}: {line}\n{}{}", ran.stdout, ran.stderr);
            if mode != "full-auto" {
                assert_eq!(tree(repo.path()), before, "{mode}: {line}");
            }
        }
    }
}

#[test]
fn a_person_is_held_by_the_guard_and_by_nothing_else() {
    let repo = TempRepo::with_git(&FILES);
    lathe().in_dir(repo.path()).args(["shell", "-c", "touch new.txt && write f x"]).run().expect_code(0);
    assert!(repo.exists("new.txt") && repo.exists("f"));
    let config = repo.read(".git/config");
    for line in ["rm -rf .git", "echo x >> .git/config", "r=rm; $r -rf ./.git"] {
        for mode in [None, Some("plan"), Some("default"), Some("auto-edit"), Some("full-auto")] {
            let mode = mode.map_or(Vec::new(), |mode| vec!["--mode", mode]);
            let ran = lathe().in_dir(repo.path()).arg("shell").args(&mode).args(["-c", line]).run();
            assert_eq!(ran.code, 126, "{mode:?} {line}: {}", ran.stderr);
            assert!(ran.stderr.contains("denied"), "{}", ran.stderr);
        }
        let arguments = json!({ "command": line }).to_string();
        let ran = lathe().in_dir(repo.path()).args(["tool", "run", "bash", "--json", &arguments]).run();
        assert!(ran.code != 0 && ran.stdout.contains("denied by policy"), "{}", ran.stdout);
    }
    assert_eq!((repo.exists(".git/HEAD"), repo.read(".git/config")), (true, config));
}

fn run(repo: &TempRepo, mode: &str, toolset: &str, script: Script) -> Vec<Value> {
    let model = FakeModel::serving(script);
    let ran = lathe()
        .in_dir(repo.path())
        .args(["run", "do it", "--mode", mode, "--toolset", toolset, "--output", "stream-json"])
        .with_model(&model)
        .run();
    assert_eq!(model.violations(), Vec::<String>::new());
    ran.events()
}

#[test]
fn without_a_person_a_run_reads_and_is_told_why_the_rest_is_denied() {
    let repo = TempRepo::with_git(&FILES);
    let line = |id: &str, line: &str| call(id, "bash", json!({ "command": line }));
    let script = Script::new()
        .answer(line("reads", "git status --short && view a.txt | head -1"))
        .answer(line("denied", "ls && make deploy"))
        .answer(done("ok"));
    let events = run(&repo, "default", "lathe", script);
    assert!(result(&events, "reads").contains("one"), "{}", result(&events, "reads"));
    let told = result(&events, "denied");
    for words in ["denied by policy", "`make deploy`", "(default)", "--mode full-auto"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let decided = bodies(&events, "call_decided");
    assert_eq!(decided[0]["each"][1]["words"], json!(["view", "a.txt"]));
    assert_eq!(decided[0]["each"][1]["decision"]["rule"], "builtin.agent");
    assert_eq!(decided[1]["decision"]["verdict"], "deny");
    assert_eq!(decided[1]["each"][0]["decision"]["verdict"], "allow");
    assert_eq!(
        decided[1]["each"][1]["decision"],
        json!({
            "verdict": "ask", "rule": "default", "reason": "no rule speaks about it"
        })
    );
}

#[test]
fn plan_changes_nothing_by_any_route() {
    let repo = TempRepo::with_git(&FILES);
    let before = tree(repo.path());
    let path = |name: &str| repo.join(name).display().to_string();
    let mut all = call("reads", "bash", json!({ "command": "ls && view a.txt | tail -1" }))
        .call("tool-write", "write", json!({ "path": path("n"), "content": "x" }))
        .call("tool-edit", "edit", json!({ "path": path("a.txt"), "old_str": "one", "new_str": "1" }));
    for (id, line) in [
        ("direct", "write n x"),
        ("inner", "cat a.txt | write n"),
        ("inner-or", "write n x || view a.txt"),
        ("shell", "echo x > n"),
        ("program", "touch n"),
        ("hidden", "ls | xargs touch"),
    ] {
        all = all.call(id, "bash", json!({ "command": line }));
    }
    let script = Script::new().answer(all).answer(done("ok"));
    let events = run(&repo, "plan", "lathe", script);
    assert!(result(&events, "reads").contains("two"), "{}", result(&events, "reads"));
    assert!(result(&events, "inner-or").contains("one"), "{}", result(&events, "inner-or"));
    assert!(result(&events, "direct").starts_with("exit code 126"), "{}", result(&events, "direct"));
    for id in ["shell", "program", "hidden"] {
        assert!(result(&events, id).contains("mode plan changes nothing"), "{}", result(&events, id));
    }
    assert_eq!(tree(repo.path()), before);
}

#[test]
fn auto_edit_edits_inside_the_workspace_and_does_nothing_else() {
    let repo = TempRepo::new(&FILES);
    let outside = TempRepo::new(&[]);
    let away = outside.join("away.txt").display().to_string();
    let script = Script::new()
        .answer(call("inside", "write", json!({ "path": "new.txt", "content": "x" })))
        .answer(call("away", "write", json!({ "path": away, "content": "x" })))
        .answer(call("line", "bash", json!({ "command": "touch made" })))
        .answer(call("inner", "bash", json!({ "command": "write inner.txt x" })))
        .answer(done("ok"));
    let events = run(&repo, "auto-edit", "lathe", script);
    assert!(repo.exists("new.txt") && repo.exists("inner.txt"));
    assert!(!repo.exists("made") && !outside.exists("away.txt"), "{events:?}");
}

#[test]
fn rules_of_the_user_are_held_by_runs_and_shells() {
    let repo = TempRepo::with_git(&FILES);
    let lathe = lathe().in_dir(repo.path());
    std::fs::create_dir_all(lathe.home().join("policy")).unwrap();
    let rules = "[[rule]]\ndecision = \"allow\"\ncommand = [\"touch ok\"]\n\n[[rule]]\ndecision = \"deny\"\ncommand = [\"ls\"]\nreason = \"not here\"\n";
    std::fs::write(lathe.home().join("policy/mine.toml"), rules).unwrap();
    let shell = |mode: &str, line: &str| lathe.clone().args(["shell", "--mode", mode, "-c", line]).run();
    shell("default", "touch ok").expect_code(0);
    assert!(repo.exists("ok"));
    for mode in ["default", "full-auto"] {
        let ran = shell(mode, "ls");
        assert!(ran.code == 126 && ran.stderr.contains("not here"), "{}", ran.stderr);
    }
    std::fs::write(lathe.home().join("policy/mine.toml"), "nonsense").unwrap();
    shell("default", "true").expect_code(2);
}

#[test]
fn work_that_git_throws_away_can_be_brought_back() {
    let repo = TempRepo::with_git(&[("a.txt", "one\n"), (".gitignore", "ignored.txt\n")]);
    repo.write("a.txt", "not committed\n");
    repo.write("untracked.txt", "mine\n");
    repo.write("ignored.txt", "mine too\n");
    let before = tree(repo.path());
    let model = FakeModel::serving(
        Script::new()
            .answer(call(
                "c",
                "bash",
                json!({ "command": "git reset -q --hard && git clean -qfdx && ls -A" }),
            ))
            .answer(done("ok")),
    );
    let run = lathe().in_dir(repo.path()).args(["run", "go", "--mode", "full-auto"]).with_model(&model);
    run.run().expect_code(0);
    assert!(!repo.exists("untracked.txt") && !repo.exists("ignored.txt"));
    lathe().in_dir(repo.path()).env("LATHE_HOME", run.home()).arg("undo").run().expect_code(0);
    let files = |tree: &BTreeMap<String, Vec<u8>>| -> BTreeMap<String, Vec<u8>> {
        let kept = tree.iter().filter(|(path, _)| !path.contains("/.git/"));
        kept.map(|(path, bytes)| (path.clone(), bytes.clone())).collect()
    };
    assert_eq!(files(&tree(repo.path())), files(&before));
}

/// A test may need a file that the model must not read.
#[test]
fn a_variable_that_the_user_passes_on_reaches_programs_and_shows_nowhere() {
    let repo = TempRepo::new(&[]);
    let line = "test ${#DATABASE_URL} = 34 && echo \"it is $DATABASE_URL\"";
    let model = FakeModel::serving(
        Script::new().answer(call("a1", "bash", json!({ "command": line }))).answer(done("x")),
    );
    let run = run_in(repo.path(), &model).env("DATABASE_URL", "postgres://me:Fluffy-8812@db/house");
    std::fs::create_dir_all(run.home()).unwrap();
    std::fs::write(run.home().join("config.toml"), "[secrets]\npass = [\"DATABASE_URL\"]\n").unwrap();
    let ran = run.run().expect_code(0);
    let shown = result(&ran.events(), "a1");
    assert!(shown.contains("it is postgres://") && !ran.stdout.contains("Fluffy-8812"), "{shown}");
}

#[test]
fn programs_of_a_session_get_no_variable_that_is_named_like_a_secret() {
    let repo = TempRepo::new(&[]);
    let model = FakeModel::serving(
        Script::new()
            .answer(call("a1", "bash", json!({ "command": "env | cut -d= -f1 | sort" })))
            .answer(done("x")),
    );
    let planted = ["GITHUB_TOKEN", "MY_PASSWORD", "SOME_SECRET", "DB_PASS", "MY_API_KEY"];
    let mut run = run_in(repo.path(), &model).env("PLAIN_WORD", "stays");
    for name in planted {
        run = run.env(name, "a-value-nobody-should-see");
    }
    let events = run.run().expect_code(0).events();
    let shown = result(&events, "a1");
    for name in planted {
        assert!(!shown.lines().any(|line| line == name), "{name} in {shown}");
    }
    for name in ["PATH", "HOME", "PLAIN_WORD"] {
        assert!(shown.lines().any(|line| line == name), "no {name} in {shown}");
    }
}
