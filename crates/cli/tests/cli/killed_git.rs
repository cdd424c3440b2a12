//! A repository that a killed line broke is repaired by the next command there, whichever it is, and files that the
//! line left for git to run are set aside before any git runs them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use lathe_testkit::{FakeModel, Lathe, Script, Signal, TempRepo, call, done, eventually};
use serde_json::json;

use crate::{lathe, run_in};

const LONG: Duration = Duration::from_secs(60);

/// A place with a repository, or a work tree whose repository is elsewhere in it, and a decoy.
struct Place {
    top: TempRepo,
    ws: PathBuf,
}

fn git_in(folder: &Path, words: &[&str]) -> Result<String, String> {
    let own = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"];
    let ran = Command::new("git").args(own).args(words).current_dir(folder).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if ran.status.success() { Ok(text(&ran.stdout)) } else { Err(text(&ran.stderr)) }
}

impl Place {
    fn new(layout: &str) -> Self {
        let top = TempRepo::new(&[("decoy/HEAD", "ref: refs/heads/main\n")]);
        std::fs::create_dir_all(top.join("decoy/objects")).unwrap();
        std::fs::create_dir_all(top.join("decoy/refs")).unwrap();
        let git = |folder: &str, words: &[&str]| git_in(&top.join(folder), words).unwrap();
        let make = |folder: &str, more: &[&str]| {
            std::fs::create_dir_all(top.join(folder)).unwrap();
            git(folder, &[&["init", "-q", "-b", "main"], more].concat());
            std::fs::write(top.join(folder).join("f"), "orig\n").unwrap();
            git(folder, &["add", "-A"]);
            git(folder, &["commit", "-qm", "first"]);
            git(folder, &["branch", "side"]);
        };
        let ws = match layout {
            "work tree" => {
                make("main", &[]);
                git("main", &["worktree", "add", "-q", "../ws", "-b", "tree"]);
                "ws"
            }
            "submodule" => {
                make("lib", &[]);
                make("super", &[]);
                git("super", &["submodule", "--quiet", "add", "../lib", "ws"]);
                git("super", &["commit", "-qm", "module"]);
                git("super/ws", &["branch", "side"]);
                "super/ws"
            }
            "separate" => {
                let place = format!("--separate-git-dir={}", top.join("gd").display());
                make("ws", &[&place]);
                "ws"
            }
            "borrowed" => {
                make("main", &[]);
                git("", &["clone", "-q", "-s", "main", "ws"]);
                "ws"
            }
            "empty" => {
                git("", &["init", "-q", "ws"]);
                "ws"
            }
            "nowhere" => {
                top.write("ws/.git", "gitdir: /nowhere\n");
                "ws"
            }
            _ => {
                make("ws", &[]);
                "ws"
            }
        };
        let ws = top.join(ws);
        Self { top, ws }
    }

    /// All that git knows.
    fn known(&self) -> Vec<Result<String, String>> {
        [
            &["log", "--all", "--format=%H %s"][..],
            &["for-each-ref"],
            &["symbolic-ref", "HEAD"],
            &["ls-files", "-s"],
        ]
        .into_iter()
        .map(|words| git_in(&self.ws, words))
        .collect()
    }

    /// Runs a script in a session and kills Lathe when it has done its work. `d` is the repository, `c` where its settings are.
    fn killed(&self, work: &str) -> Lathe {
        let script = format!(
            "import os, shutil, sys\n\
             assert os.path.exists('x.py') and os.path.exists('../decoy') or os.path.exists('../../decoy')\n\
             decoy = os.path.abspath('../decoy' if os.path.exists('../decoy') else '../../decoy')\n\
             d = '.git'\n\
             if os.path.isfile(d): d = os.path.join(os.getcwd(), open(d).read().split(': ', 1)[1].strip())\n\
             c = os.path.join(d, open(d + '/commondir').read().strip()) if os.path.exists(d + '/commondir') else d\n\
             {work}\nopen('begun', 'w').close()\n"
        );
        std::fs::write(self.ws.join("x.py"), script).unwrap();
        let line = "python3 x.py; sleep 98650";
        let model = FakeModel::serving(
            Script::new().answer(call("c1", "bash", json!({ "command": line }))).answer(done("ok")),
        );
        let run = run_in(&self.ws, &model);
        let running = run.spawn();
        eventually(LONG, "the line runs", || self.ws.join("begun").exists());
        running.kill(Signal::Kill);
        let _ = running.wait();
        run
    }

    fn at(&self, run: &Lathe, words: &[&str]) -> String {
        let home = lathe().env("LATHE_HOME", run.home());
        let ran = home.in_dir(&self.ws).args(words).run().expect_code(0);
        ran.stdout + &ran.stderr
    }

    /// One line of another session in the same folder.
    fn another(&self, run: &Lathe) {
        let line = json!({ "command": "python3 -c pass; ls" });
        let model = FakeModel::serving(Script::new().answer(call("c1", "bash", line)).answer(done("ok")));
        run_in(&self.ws, &model).env("LATHE_HOME", run.home()).run().expect_code(0);
    }

    fn session(&self, run: &Lathe) -> String {
        let listed = self.at(run, &["sessions", "--json"]);
        let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
        let first =
            listed.as_array().or_else(|| listed["sessions"].as_array()).unwrap().last().unwrap().clone();
        first["session"].as_str().or_else(|| first["id"].as_str()).unwrap().to_owned()
    }
}

const LOSSES: [(&str, &str); 5] = [
    ("deleted", "shutil.rmtree(d)"),
    (
        "repointed",
        "shutil.rmtree('.git') if d == '.git' else os.remove('.git')\nopen('.git', 'w').write('gitdir: ' + decoy)",
    ),
    ("branches", "shutil.rmtree(c + '/refs/heads')"),
    ("HEAD", "open(d + '/HEAD', 'w').write('x')"),
    ("objects", "shutil.rmtree(c + '/objects')"),
];

#[test]
fn a_repository_that_a_killed_line_broke_comes_back_whoever_works_there_first() {
    for (name, work) in LOSSES {
        for second in ["session", "shell", "nobody"] {
            let place = Place::new("plain");
            let before = place.known();
            let run = place.killed(work);
            let id = place.session(&run);
            assert_ne!(place.known(), before, "{name}");
            match second {
                "session" => place.another(&run),
                "shell" => drop(place.at(&run, &["shell", "-c", "python3 -c pass"])),
                _ => {}
            }
            let listed = place.at(&run, &["quarantine", "list"]);
            assert!(listed.contains("ws/.git"), "{name}, {second}: {listed}");
            let undone = place.at(&run, &["undo", &id]);
            assert_eq!(place.known(), before, "{name}, {second}: {undone}");
        }
    }
}

#[test]
fn the_same_for_a_repository_behind_a_git_file() {
    for layout in ["work tree", "submodule", "separate"] {
        for (name, work) in [LOSSES[0], LOSSES[1], ("file", "os.remove('.git')")] {
            for second in ["session", "nobody"] {
                let place = Place::new(layout);
                let before = place.known();
                let run = place.killed(work);
                let id = place.session(&run);
                if second == "session" {
                    place.another(&run);
                }
                let undone = place.at(&run, &["undo", &id]);
                assert_eq!(place.known(), before, "{layout}, {name}, {second}: {undone}");
                assert!(!undone.contains("never touched"), "{layout}, {name}: {undone}");
            }
        }
    }
}

#[test]
fn what_a_killed_line_left_for_git_to_run_is_set_aside_by_the_next_look() {
    let mark = |place: &Place| place.top.join("RAN").display().to_string();
    for (layout, next) in [
        ("plain", "undo"),
        ("plain", "session"),
        ("plain", "list"),
        ("work tree", "undo"),
        ("work tree", "session"),
        ("submodule", "undo"),
        ("separate", "undo"),
    ] {
        for kind in ["hook", "setting"] {
            let place = Place::new(layout);
            let work = match kind {
                "hook" => format!(
                    "h = c + '/hooks/pre-commit'\nos.makedirs(c + '/hooks', exist_ok=True)\n\
                     open(h, 'w').write('#!/bin/sh\\ntouch {}\\n'); os.chmod(h, 0o755)",
                    mark(&place)
                ),
                _ => format!(
                    "open(c + '/config', 'a').write('[core]\\n\\tfsmonitor = \"touch {}; false\"\\n')",
                    mark(&place)
                ),
            };
            let run = place.killed(&work);
            match next {
                "undo" => drop(place.at(&run, &["undo"])),
                "list" => drop(place.at(&run, &["quarantine", "list"])),
                _ => place.another(&run),
            }
            let _ = git_in(&place.ws, &["status"]);
            git_in(&place.ws, &["commit", "-q", "--allow-empty", "-m", "mine"]).unwrap();
            assert!(!place.top.exists("RAN"), "{layout}, {kind}, {next}");
            if next != "session" {
                let shown = place.at(&run, &["show"]);
                assert!(shown.contains("set-aside-by-lathe"), "{layout}, {kind}, {next}: {shown}");
            }
        }
    }
}

/// Lets a script end, in a folder with this `.git`, and takes it back.
fn ended(place: &Place, work: &str) -> String {
    let line = json!({ "command": "python3 x.py" });
    std::fs::write(place.ws.join("x.py"), format!("import os, shutil\n{work}\n")).unwrap();
    let model = FakeModel::serving(Script::new().answer(call("c1", "bash", line)).answer(done("ok")));
    let run = run_in(&place.ws, &model);
    run.run().expect_code(0);
    place.at(&run, &["undo"])
}

#[test]
fn a_repository_without_objects_of_its_own_is_missed() {
    let decoy = "shutil.rmtree('.git'); open('.git', 'w').write('gitdir: ' + os.path.abspath('../decoy'))";
    for borrows in [false, true] {
        let place = Place::new("borrowed");
        if borrows {
            let other = place.top.join("main/.git/objects").display().to_string();
            place.top.write("decoy/objects/info/alternates", format!("{other}\n"));
        }
        let before = place.known();
        let undone = ended(&place, decoy);
        assert_eq!(place.known(), before, "{borrows}: {undone}");
        assert!(place.ws.join(".git").is_dir());
    }
    // One that was only made.
    let place = Place::new("empty");
    let undone = ended(&place, decoy);
    assert!(place.ws.join(".git/config").is_file(), "{undone}");
}

#[test]
fn a_git_file_that_leads_nowhere_comes_back_like_any_file() {
    let works = [
        "os.remove('.git')",
        "open('.git', 'w').write('gitdir: /nowhere/else')",
        "open('.git', 'w').write('gitdir: ' + os.path.abspath('../decoy'))",
    ];
    for work in works {
        let place = Place::new("nowhere");
        let undone = ended(&place, work);
        let text = std::fs::read_to_string(place.ws.join(".git")).unwrap_or_default();
        assert_eq!(text, "gitdir: /nowhere\n", "{work}: {undone}");
    }
    // A plain line next to it reports nothing about it.
    let place = Place::new("nowhere");
    let undone = ended(&place, "open('n', 'w').close()");
    assert!(!undone.contains(".git"), "{undone}");
}
