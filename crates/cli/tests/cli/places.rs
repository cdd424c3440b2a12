//! Protected folders are guarded by their real path, however links and spellings lead there.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use lathe_testkit::{FakeModel, Script, TempRepo, call, done};
use serde_json::{Value, json};

use crate::lathe;

/// A repository with Lathe's folder in it, links to both guarded places, and a second name for the folder above.
fn place() -> TempRepo {
    let base = TempRepo::new(&[
        ("repo/a", "mine\n"),
        ("repo/src/x.txt", "x\n"),
        ("repo/data/lathe/config.toml", "# mine\n"),
        ("repo/data/lathe/policy/answers.toml", ""),
    ]);
    let repo = base.join("repo");
    let made = std::process::Command::new("git").args(["init", "-q"]).current_dir(&repo).status().unwrap();
    assert!(made.success());
    for (leads, link) in [
        (Path::new(".git/hooks"), "docs"),
        (Path::new(".git/hooks/pre-commit"), "hook"),
        (Path::new(".git"), "src/deep"),
        (Path::new("data/lathe"), "lnk"),
        (Path::new("data"), "above"),
        (Path::new("data/lathe/config.toml"), "settings"),
    ] {
        let leads = if link.contains('/') { Path::new("..").join(leads) } else { leads.to_owned() };
        symlink(leads, repo.join(link)).unwrap();
    }
    symlink(&repo, base.join("second")).unwrap();
    base
}

const MODES: [&str; 4] = ["plan", "default", "auto-edit", "full-auto"];

/// Lines that write a guarded place, with the rule that denies them.
const LINES: [(&str, &str); 18] = [
    ("echo x > docs/pre-commit", "guard.git"),
    ("echo x >> docs/new", "guard.git"),
    ("cp a docs/pre-commit", "guard.git"),
    ("cp a docs", "guard.git"),
    ("cp a docs/", "guard.git"),
    ("cp a do*/", "guard.git"),
    ("mv a docs/pre-commit", "guard.git"),
    ("tee docs/pre-commit < a", "guard.git"),
    ("ln a docs/pre-commit", "guard.git"),
    ("echo x > hook", "guard.git"),
    ("cd src && echo x > deep/config", "guard.git"),
    ("cp a src/deep/hooks/post-checkout", "guard.git"),
    ("echo x > lnk/config.toml", "guard.home"),
    ("cp a lnk/policy/answers.toml", "guard.home"),
    ("cp a above/lathe/config.toml", "guard.home"),
    ("echo x > settings", "guard.home"),
    ("cp a data/lathe/config.toml", "guard.home"),
    ("cd above && cp ../a lathe/config.toml", "guard.home"),
];

#[test]
fn a_line_that_writes_a_guarded_place_through_a_link_is_denied_in_every_mode() {
    let base = place();
    let asked: String = LINES.iter().map(|(line, _)| format!("{}\n", json!(line))).collect();
    // Lathe's folder is named by its real name, and through a link.
    for home in ["repo/data/lathe", "second/data/lathe", "repo/lnk"] {
        for mode in MODES {
            let ran = lathe()
                .in_dir(base.join("repo"))
                .env("LATHE_HOME", base.join(home))
                .args(["policy", "check", "--json", "--mode", mode])
                .stdin(asked.as_str())
                .run();
            let decided: Vec<Value> =
                ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!(decided.len(), LINES.len(), "{}{}", ran.stdout, ran.stderr);
            for (decided, (line, rule)) in decided.iter().zip(LINES) {
                let because = decided["because"].as_str().unwrap_or_default();
                let is_denied = decided["decision"] == "deny" && because.starts_with(rule);
                assert!(is_denied, "{home} {mode} {line}: {decided}");
            }
        }
    }
}

#[test]
fn neither_file_tools_nor_lines_reach_lathes_folder_or_git_by_a_link() {
    let base = place();
    let repo = base.join("repo");
    let write = |path: &str| ("write", json!({ "path": path, "content": "x\n" }));
    let view = |path: &str| ("view", json!({ "path": path }));
    let real = repo.join("data/lathe/config.toml").display().to_string();
    let calls: Vec<(&str, Value)> = vec![
        write("lnk/config.toml"),
        write("lnk/new.toml"),
        write("above/lathe/config.toml"),
        write("data/lathe/config.toml"),
        write(&real),
        write("settings"),
        write("docs/pre-commit"),
        view("lnk/config.toml"),
        view("settings"),
        view("lnk"),
        view("data/lathe"),
        view(&real),
        ("bash", json!({ "command": "echo x > docs/pre-commit" })),
        ("bash", json!({ "command": "cp a lnk/config.toml" })),
        ("bash", json!({ "command": "cat lnk/config.toml" })),
        ("search", json!({ "pattern": "mine", "path": "data" })),
        ("search", json!({ "pattern": "mine", "path": "lnk" })),
        ("glob", json!({ "pattern": "**/*.toml", "all": true })),
    ];
    for mode in ["auto-edit", "full-auto"] {
        let mut answer = call("c0", calls[0].0, calls[0].1.clone());
        for (at, (tool, arguments)) in calls.iter().enumerate().skip(1) {
            answer = answer.call(&format!("c{at}"), tool, arguments.clone());
        }
        let model = FakeModel::serving(Script::new().answer(answer).answer(done("ok")));
        // A home that is spelled through a link is the same home.
        let ran = lathe()
            .in_dir(&repo)
            .env("LATHE_HOME", base.join("second/data/lathe"))
            .args(["run", "go", "--mode", mode, "--output", "stream-json"])
            .with_model(&model)
            .run();
        let events = ran.events();
        let text = events.iter().filter(|event| event["kind"] == "call_finished").map(ToString::to_string);
        let text: Vec<String> = text.collect();
        // And the one that says it is done.
        assert_eq!(text.len(), calls.len() + 1, "{}", ran.stderr);
        for (text, (tool, arguments)) in text.iter().zip(&calls) {
            assert!(!text.contains("# mine"), "{mode} {tool} {arguments}: {text}");
            let lists = matches!(*tool, "glob" | "search") && text.contains("config.toml");
            assert!(!lists, "{mode} {tool} {arguments}: {text}");
        }
        let read = |path: &str| std::fs::read_to_string(repo.join(path)).unwrap();
        assert_eq!(read("data/lathe/config.toml"), "# mine\n", "{mode}");
        assert!(!repo.join("data/lathe/new.toml").exists() && !repo.join(".git/hooks/pre-commit").exists());
    }
}

#[test]
fn a_patch_and_a_trajectory_replace_a_link_of_the_repository_instead_of_following_it() {
    let base = TempRepo::new(&[("repo/a.txt", "one\n"), ("out/patch", "theirs"), ("out/traj", "theirs")]);
    let repo = base.join("repo");
    symlink(base.join("out/patch"), repo.join("p")).unwrap();
    symlink(base.join("out/traj"), repo.join("t")).unwrap();
    symlink(base.join("out"), repo.join("folder")).unwrap();
    let script = || {
        let edit = call("c", "bash", json!({ "command": "echo two >> a.txt" }));
        FakeModel::serving(Script::new().answer(edit).answer(done("ok")))
    };
    let model = script();
    let run = |model: &FakeModel, patch: &str, trajectory: &str| {
        lathe()
            .in_dir(&repo)
            .args([
                "run",
                "go",
                "--mode",
                "full-auto",
                "--patch-path",
                patch,
                "--trajectory-file",
                trajectory,
            ])
            .with_model(model)
            .run()
    };
    run(&model, "p", "t").expect_code(0);
    for name in ["p", "t"] {
        let found = repo.join(name).symlink_metadata().unwrap();
        assert!(found.is_file(), "{name}");
        assert_eq!(found.permissions().mode() & 0o777, 0o600, "{name}");
    }
    assert!(std::fs::read_to_string(repo.join("p")).unwrap().contains("+two"));
    let model = script();
    let ran = run(&model, "folder/patch", "folder/traj");
    assert!(ran.stderr.contains("leads out of the workspace"), "{}", ran.stderr);
    for name in ["patch", "traj"] {
        assert_eq!(std::fs::read_to_string(base.join("out").join(name)).unwrap(), "theirs", "{name}");
    }
}

#[test]
fn a_home_that_is_no_absolute_folder_is_refused() {
    let base = TempRepo::new(&[("repo/a", ""), ("repo/file", "")]);
    let repo = base.join("repo");
    let file = repo.join("file");
    for home in ["lh", "./lh", "../lh", " ", "  \t", file.to_str().unwrap()] {
        let ran = lathe().in_dir(&repo).env("LATHE_HOME", home).args(["sessions"]).run().expect_code(2);
        assert!(ran.stderr.contains("LATHE_HOME"), "{home:?}: {}", ran.stderr);
    }
    assert!(!repo.join("lh").exists() && !base.join("lh").exists());
}

#[test]
fn serve_refuses_a_root_that_holds_lathes_folder_or_lies_in_it() {
    let base = place();
    let serve = |root: &str, home: &str| {
        lathe()
            .in_dir(base.join("repo"))
            .env("LATHE_HOME", base.join(home))
            .args(["serve", "--port", "0", "--root"])
            .arg(base.join(root))
            .run()
            .expect_code(2)
    };
    for (root, home) in [
        ("repo", "repo/data/lathe"),
        ("second", "repo/data/lathe"),
        ("repo", "repo/lnk"),
        ("repo/data/lathe/policy", "repo/data/lathe"),
        ("repo/data/lathe", "second/data/lathe"),
    ] {
        let ran = serve(root, home);
        let home = base.join("repo/data/lathe").canonicalize().unwrap();
        for word in ["--root", "LATHE_HOME", home.to_str().unwrap()] {
            assert!(ran.stderr.contains(word), "{root}: {}", ran.stderr);
        }
    }
    // Without `--root` it is the folder it is started in.
    let ran = lathe()
        .in_dir(base.join("repo"))
        .env("LATHE_HOME", base.join("repo/data/lathe"))
        .args(["serve", "--port", "0"])
        .run()
        .expect_code(2);
    assert!(ran.stderr.contains("--root"), "{}", ran.stderr);
}

#[test]
fn undo_and_rewind_refuse_a_workspace_that_is_a_link_now() {
    let base = TempRepo::new(&[("repo/a.txt", "one\n"), ("out/a.txt", "two\n")]);
    let repo = base.join("repo");
    let edit = call("c", "bash", json!({ "command": "echo two > a.txt" }));
    let model = FakeModel::serving(Script::new().answer(edit).answer(done("ok")));
    let run = lathe().in_dir(&repo).args(["run", "go", "--mode", "full-auto"]).with_model(&model);
    run.run().expect_code(0);
    std::fs::rename(&repo, base.join("away")).unwrap();
    symlink(base.join("out"), &repo).unwrap();
    let sessions = std::fs::read_dir(run.home().join("sessions")).unwrap().flatten();
    let names = sessions.filter_map(|entry| entry.file_name().into_string().ok());
    let id = names.filter_map(|name| name.strip_suffix(".db").map(str::to_owned)).next().unwrap();
    for words in [vec!["undo", &id], vec!["rewind", &id, "--to", "0", "--files"]] {
        let ran = lathe().in_dir(base.path()).env("LATHE_HOME", run.home()).args(&words).run();
        assert_ne!(ran.code, 0, "{words:?}: {} {}", ran.stdout, ran.stderr);
        assert_eq!(std::fs::read_to_string(base.join("out/a.txt")).unwrap(), "two\n", "{words:?}");
    }
    std::fs::remove_file(&repo).unwrap();
    std::fs::rename(base.join("away"), &repo).unwrap();
    lathe().in_dir(&repo).env("LATHE_HOME", run.home()).args(["undo", &id]).run().expect_code(0);
    assert_eq!(std::fs::read_to_string(repo.join("a.txt")).unwrap(), "one\n");
}
