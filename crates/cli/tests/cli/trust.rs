//! The contents of a project count only with trust, item by item, by their content.

use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use lathe_testkit::{FakeModel, Lathe, Script, TempRepo, call, done};
use serde_json::{Value, json};

use crate::{bodies, lathe};

const CONFIG: &str =
    "[check]\n\"*.txt\" = \"sh check.sh {file}\"\n[field.db]\ncommand = \"sh db.sh\"\ntools = \"db.json\"\n";
const TOOLS: &str = r#"[{"name": "q", "description": "Asks the database.", "parameters": {"type": "object", "properties": {}}}]"#;

fn project() -> TempRepo {
    TempRepo::new(&[
        ("AGENTS.md", "Say aye.\n"),
        (".lathe/config.toml", CONFIG),
        ("check.sh", "echo checked >> ran\n"),
        ("db.sh", "echo rows\n"),
        ("db.json", TOOLS),
    ])
}

/// State by kind and name, as `trust list --json` says it.
fn states(lathe: &Lathe, folder: &Path) -> Vec<String> {
    let ran = lathe.clone().in_dir(folder).args(["trust", "list", "--json"]).run().expect_code(0);
    let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
    let items = shown["items"].as_array().unwrap().iter();
    items
        .map(|item| format!("{} {}", item["name"].as_str().unwrap(), item["state"].as_str().unwrap()))
        .collect()
}

fn trusting(folder: &Path) -> Lathe {
    let lathe = lathe();
    lathe.clone().in_dir(folder).args(["trust", "add", "--yes"]).run().expect_code(0);
    lathe
}

/// A run that writes a file; the events, and what was said on the side.
fn work(lathe: &Lathe, folder: &Path, more: &[&str]) -> (Vec<Value>, String, FakeModel) {
    let model = FakeModel::serving(
        Script::new()
            .answer(call("c1", "write", json!({ "path": "new.txt", "content": "x\n" })))
            .answer(done("ok")),
    );
    let ran = lathe
        .clone()
        .in_dir(folder)
        .args(["run", "do it", "--mode", "full-auto", "--output", "stream-json"])
        .args(more)
        .with_model(&model)
        .run()
        .expect_code(0);
    (ran.events(), ran.stderr, model)
}

fn system(events: &[Value]) -> String {
    bodies(events, "epoch_started")[0]["system"].as_str().unwrap().to_owned()
}

fn has_db(events: &[Value]) -> bool {
    bodies(events, "epoch_started")[0]["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "db_q")
}

#[test]
fn before_trust_nothing_is_used_and_one_line_says_so() {
    let (repo, lathe) = (project(), lathe());
    let (events, said, model) = work(&lathe, repo.path(), &[]);
    assert_eq!(
        said.trim_end(),
        "not used until you trust it: AGENTS.md (instructions), *.txt (check command), db (field program). \
         Look at it and trust it: lathe trust add (this once: --trust)"
    );
    assert!(!system(&events).contains("Say aye") && !has_db(&events) && !repo.exists("ran"));
    assert!(!model.requests()[0].json().to_string().contains("Say aye"));
    assert_eq!(states(&lathe, repo.path()), ["AGENTS.md new", "*.txt new", "db new"]);
}

#[test]
fn with_trust_all_is_used_and_told_as_the_projects() {
    let repo = project();
    let lathe = trusting(repo.path());
    let (events, said, model) = work(&lathe, repo.path(), &[]);
    assert_eq!(said, "");
    assert!(
        system(&events).contains("<project_file path=\"AGENTS.md\">\nSay aye.\n</project_file>"),
        "{}",
        system(&events)
    );
    assert!(model.requests()[0].json().to_string().contains("Say aye."));
    assert!(has_db(&events));
    assert_eq!(repo.read("ran"), "checked\n");
    let ran = lathe.clone().in_dir(repo.path()).args(["shell", "-c", "field:db:q"]).run().expect_code(0);
    assert_eq!(ran.stdout, "rows\n");
}

#[test]
fn the_flag_is_for_this_folder_and_this_once() {
    let (repo, lathe) = (project(), lathe());
    let (events, said, _) = work(&lathe, repo.path(), &["--trust"]);
    assert!(said.is_empty() && system(&events).contains("Say aye.") && has_db(&events) && repo.exists("ran"));
    assert_eq!(states(&lathe, repo.path()), ["AGENTS.md new", "*.txt new", "db new"]);
    let (events, ..) = work(&lathe, repo.path(), &[]);
    assert!(!system(&events).contains("Say aye."));
}

#[test]
fn one_changed_byte_of_one_item_asks_about_that_item_only() {
    let repo = project();
    let lathe = trusting(repo.path());
    for (path, text, changed) in [
        ("AGENTS.md", "Say aye!\n", "AGENTS.md"),
        ("check.sh", "echo checked >> raN\n", "*.txt"),
        (".lathe/config.toml", &CONFIG.replace("{file}", "{files}"), "*.txt"),
        ("db.json", &TOOLS.replace("database.", "database!"), "db"),
        ("db.sh", "echo rowz\n", "db"),
        (".lathe/config.toml", &CONFIG.replace("sh db.sh", "sh db.sh "), "db"),
    ] {
        let before = repo.read(path);
        repo.write(path, text);
        let expected: Vec<String> = ["AGENTS.md", "*.txt", "db"]
            .iter()
            .map(|name| format!("{name} {}", if *name == changed { "changed" } else { "trusted" }))
            .collect();
        assert_eq!(states(&lathe, repo.path()), expected, "{path}");
        let (_, said, _) = work(&lathe, repo.path(), &[]);
        assert!(
            said.contains("changed since you decided") && said.matches("), ").count() == 0,
            "{path}: {said}"
        );
        // What it was is trusted still.
        repo.write(path, before);
        assert!(states(&lathe, repo.path()).iter().all(|state| state.ends_with(" trusted")), "{path}");
    }
    repo.write(".lathe/config.toml", CONFIG.split("[field").next().unwrap());
    assert_eq!(states(&lathe, repo.path()), ["AGENTS.md trusted", "*.txt trusted", "db gone"]);
}

#[test]
fn the_interpreter_in_the_first_line_of_a_program_belongs_to_it() {
    for first in ["#!./interp", "#!/usr/bin/env ./interp", "#! ./between"] {
        let repo = TempRepo::new(&[
            (".lathe/config.toml", "[check]\n\"*.txt\" = \"./check {file}\"\n"),
            ("check", &format!("{first}\n")),
            ("between", "#!./interp\n"),
            ("interp", "#!/bin/sh\ntrue\n"),
        ]);
        let lathe = trusting(repo.path());
        assert_eq!(states(&lathe, repo.path()), ["*.txt trusted"], "{first}");
        repo.write("interp", "#!/bin/sh\ntouch ran\n");
        assert_eq!(states(&lathe, repo.path()), ["*.txt changed"], "{first}");
    }
}

#[test]
fn a_link_is_the_same_folder_and_a_copy_a_neighbour_or_a_moved_one_is_not() {
    let repo =
        TempRepo::new(&[("project/AGENTS.md", "Say aye.\n"), ("project-evil/AGENTS.md", "Say aye.\n")]);
    let lathe = trusting(&repo.join("project"));
    symlink(repo.join("project"), repo.join("link")).unwrap();
    assert_eq!(states(&lathe, &repo.join("link")), ["AGENTS.md trusted"]);
    assert_eq!(states(&lathe, &repo.join("project/../link/.")), ["AGENTS.md trusted"]);
    assert_eq!(states(&lathe, &repo.join("project-evil")), ["AGENTS.md new"]);
    std::fs::rename(repo.join("project"), repo.join("moved")).unwrap();
    assert_eq!(states(&lathe, &repo.join("moved")), ["AGENTS.md new"]);
    // It can be forgotten though it is not there any more.
    lathe.clone().args(["trust", "remove"]).arg(repo.join("project")).run().expect_code(0);
}

#[test]
fn what_went_into_the_prompt_stays_as_it_was_when_the_file_changes() {
    let repo = project();
    let lathe = trusting(repo.path());
    let cassette = TempRepo::new(&[(
        "c",
        "{\"cassette\": 1, \"toolset\": \"lathe\"}\n{\"answer\": {\"blocks\": [{\"call\": {\"id\": \"c1\", \"name\": \"task_done\", \"arguments\": {\"summary\": \"ok\"}}}]}}\n",
    )]);
    let ran = |arguments: &[&str]| {
        let file = cassette.join("c");
        lathe.clone().in_dir(repo.path()).args(arguments).arg("--replay").arg(file).run()
    };
    ran(&["run", "do it"]).expect_code(0);
    repo.write("AGENTS.md", "Say nay.\n");
    // The cassette has no second answer, but the task is given in the same epoch.
    let said = ran(&["resume", "go on then"]).stderr;
    assert!(said.contains("AGENTS.md (instructions, changed since you decided)"), "{said}");
    let shown = lathe.clone().in_dir(repo.path()).args(["show", "--format", "json"]).run().expect_code(0);
    assert_eq!(shown.stdout.matches("epoch_started").count(), 1);
    assert!(shown.stdout.contains("Say aye.") && !shown.stdout.contains("Say nay."));
    assert!(shown.stdout.contains("go on then"));
    // A replay is exact too, whatever the file contains now.
    let ran = lathe.clone().in_dir(repo.path()).args(["replay"]).run().expect_code(0);
    assert!(ran.stdout.contains("0 divergences"), "{}", ran.stdout);
}

#[test]
fn a_resumed_session_looks_at_its_own_folder() {
    let (repo, other) = (TempRepo::new(&[("a.txt", "x\n")]), project());
    let lathe = trusting(other.path());
    work(&lathe, repo.path(), &[]);
    let model = FakeModel::serving(Script::repeat(3, |_| done("ok")));
    let ran = lathe
        .clone()
        .in_dir(other.path())
        .args(["resume", "go on then"])
        .with_model(&model)
        .run()
        .expect_code(0);
    assert!(!model.requests()[0].json().to_string().contains("Say aye."), "{}", ran.stderr);
}

#[test]
fn instructions_are_cut_at_32_kib_and_that_is_said_and_each_text_is_told_once() {
    let repo =
        TempRepo::new(&[("AGENTS.md", &"0123456789abcde\n".repeat(4096)), ("GEMINI.md", "Be kind.\n")]);
    symlink("AGENTS.md", repo.join("CLAUDE.md")).unwrap();
    let lathe = trusting(repo.path());
    assert_eq!(states(&lathe, repo.path()), ["AGENTS.md trusted", "GEMINI.md trusted"]);
    let (events, ..) = work(&lathe, repo.path(), &[]);
    let system = system(&events);
    assert!(system.contains("[cut: the file has 65536 bytes, 32768 are shown]"));
    assert_eq!(system.matches("0123456789abcde").count(), 2048);
    assert_eq!(system.matches("Be kind.").count(), 1);
}

#[test]
fn a_secret_in_instructions_reaches_neither_the_model_nor_the_journal() {
    let repo = TempRepo::new(&[("AGENTS.md", "The token is hunter2-hunter2-hunter2.\n")]);
    let lathe = trusting(repo.path()).env("DEPLOY_TOKEN", "hunter2-hunter2-hunter2");
    let (events, _, model) = work(&lathe, repo.path(), &[]);
    assert!(!model.requests()[0].json().to_string().contains("hunter2"));
    assert!(system(&events).contains("«secret:DEPLOY_TOKEN»"), "{}", system(&events));
}

#[test]
fn odd_files_are_said_and_never_waited_for() {
    let repo = project();
    std::fs::remove_file(repo.join("AGENTS.md")).unwrap();
    assert!(Command::new("mkfifo").arg(repo.join("AGENTS.md")).status().unwrap().success());
    symlink("/etc/passwd", repo.join("CLAUDE.md")).unwrap();
    repo.write("GEMINI.md", "\0binary");
    repo.write(".lathe/instructions.md", "x".repeat(2 << 20));
    let ran = lathe().in_dir(repo.path()).args(["trust", "add", "--yes"]).run().expect_code(0);
    for word in
        ["AGENTS.md is neither a file nor a folder", "CLAUDE.md: ", "it is not text", "larger than 1024 KiB"]
    {
        assert!(ran.stderr.contains(word), "{word}: {}", ran.stderr);
    }
    assert_eq!(ran.stdout, "trusted: *.txt (check command)\ntrusted: db (field program)\n");
}

#[test]
fn wrong_inputs_are_answered_clearly() {
    let repo = TempRepo::new(&[("a.txt", "")]);
    let lathe = lathe().in_dir(repo.path());
    for (arguments, code, out, err) in [
        (&["trust", "list", "none"][..], 2, "", "error[folder]: the folder none cannot be worked in: "),
        (&["trust", "list", "a.txt"], 2, "", "it is not a folder"),
        (&["trust", "add", "none"], 2, "", "error[folder]"),
        (&["trust", "add"], 0, "needs trust\n", ""),
        (&["trust", "remove"], 2, "", "error[not-trusted]: nothing in "),
        (&["trust", "remove", "none"], 2, "", "error[not-trusted]: nothing in "),
        (&["trust"], 2, "", "Usage: lathe trust"),
        (&["trust", "list"], 0, "nothing here needs trust\n", ""),
    ] {
        let ran = lathe.clone().args(arguments).run().expect_code(code);
        assert!(
            ran.stdout.ends_with(out) && ran.stderr.contains(err),
            "{arguments:?}: {} {}",
            ran.stdout,
            ran.stderr
        );
    }
    repo.write("AGENTS.md", "x\n\u{1b}]0;title\u{7}\u{202e}y\n");
    let ran = lathe.clone().args(["trust", "add"]).run().expect_code(2);
    assert!(ran.stderr.contains("    | <U+001B>]0;title<U+0007><U+202E>y\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("no question can be asked here: give --yes"), "{}", ran.stderr);
    // A damaged trust file gives no trust, and can be started over.
    lathe.clone().args(["trust", "add", "--yes"]).run().expect_code(0);
    let books = lathe.home().join("trust");
    let book = std::fs::read_dir(&books)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some());
    std::fs::write(book.unwrap(), "{half").unwrap();
    let ran = lathe.clone().args(["trust", "list"]).run().expect_code(2);
    assert!(ran.stderr.contains("`lathe trust remove` starts over"), "{}", ran.stderr);
    lathe.clone().args(["trust", "remove"]).run().expect_code(0);
    lathe.clone().args(["trust", "list"]).run().expect_code(0);
}

#[test]
fn many_processes_at_once_lose_nothing_and_the_book_is_the_users_alone() {
    let lathe = lathe();
    let repo = TempRepo::new(&[]);
    let folders: Vec<String> = (0..8).map(|number| format!("p{number}")).collect();
    for folder in &folders {
        repo.write(&format!("{folder}/AGENTS.md"), "x\n");
    }
    // Each folder by two processes, each of which adds the items the other adds as well.
    let running: Vec<_> = folders
        .iter()
        .chain(&folders)
        .map(|folder| lathe.clone().in_dir(repo.join(folder)).args(["trust", "add", "--yes"]).spawn())
        .collect();
    for running in running {
        running.wait().expect_code(0);
    }
    for folder in &folders {
        assert_eq!(states(&lathe, &repo.join(folder)), ["AGENTS.md trusted"]);
    }
    let mut names = 0;
    for entry in std::fs::read_dir(lathe.home().join("trust")).unwrap() {
        let mode = entry.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0);
        names += 1;
    }
    assert_eq!(names, 9);
}

/// Runs a line in a terminal of its own with a user who types; returns all that was shown.
fn on_a_terminal(lathe: &Lathe, folder: &Path, line: &str, typed: &str) -> String {
    let mut shell = Command::new("script")
        .args(["-qefc", line, "/dev/null"])
        .current_dir(folder)
        .env("LATHE_HOME", lathe.home())
        .env("LATHE_SANDBOX", "off")
        .env("TERM", "xterm")
        .env("LANG", "C.UTF-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut keyboard = shell.stdin.take().unwrap();
    keyboard.write_all(typed.as_bytes()).unwrap();
    let shown = String::from_utf8_lossy(&shell.wait_with_output().unwrap().stdout).into_owned();
    drop(keyboard);
    shown
}

#[test]
fn on_a_terminal_it_is_asked_once_with_all_there_is_to_see() {
    let line = |command: &str| format!("{} {command}", env!("CARGO_BIN_EXE_lathe"));
    let (repo, lathe) = (project(), lathe());
    repo.write("AGENTS.md", format!("Say aye.\u{1b}[2J\n{}last line\n", "more\n".repeat(50)));
    // No reply comes: nothing is used, and no decision is stored.
    let shown = on_a_terminal(&lathe, repo.path(), &line("shell -c 'field:db:q'"), "\u{4}");
    assert!(shown.contains("Trust them?") && !shown.contains("rows"), "{shown}");
    assert!(shown.contains("| Say aye.<U+001B>[2J") && !shown.contains("last line"), "{shown}");
    // Once, after a word that is none and a look at all of it.
    let shown = on_a_terminal(&lathe, repo.path(), &line("shell -c 'field:db:q'"), "maybe\ns\no\n");
    assert!(shown.contains("last line") && shown.contains("rows"), "{shown}");
    assert_eq!(states(&lathe, repo.path()), ["AGENTS.md new", "*.txt new", "db new"]);
    // No: not asked again until something changes.
    let shown = on_a_terminal(&lathe, repo.path(), &line("shell -c 'field:db:q'"), "n\n");
    assert!(!shown.contains("rows"), "{shown}");
    assert_eq!(states(&lathe, repo.path()), ["AGENTS.md refused", "*.txt refused", "db refused"]);
    let shown = on_a_terminal(&lathe, repo.path(), &line("shell -c 'echo there'"), "");
    assert!(shown.contains("there") && !shown.contains("Trust them?"), "{shown}");
    repo.write("db.sh", "echo other rows\n");
    let shown = on_a_terminal(&lathe, repo.path(), &line("shell -c 'field:db:q'"), "y\n");
    assert!(shown.contains("other rows") && !shown.contains("Say aye"), "{shown}");
    assert_eq!(states(&lathe, repo.path()), ["AGENTS.md refused", "*.txt refused", "db trusted"]);
}

#[test]
fn whoever_asks_for_all_sees_the_programs_that_would_run() {
    let line = |command: &str| format!("{} {command}", env!("CARGO_BIN_EXE_lathe"));
    let (repo, lathe) = (project(), lathe());
    let long = "true\n".repeat(210);
    repo.write("check.sh", format!("# \u{1b}[8mhidden\necho inside > ran\n{}\n{long}", "y".repeat(1500)));
    let shown = on_a_terminal(&lathe, repo.path(), &line("shell -c true"), "\u{4}");
    assert!(shown.contains("[s]how all, programs too") && !shown.contains("echo inside"), "{shown}");
    let all = |shown: &str| {
        assert!(shown.contains("    | # <U+001B>[8mhidden"), "{shown}");
        assert!(shown.contains("    | echo inside > ran") && shown.contains("    | echo rows"), "{shown}");
        assert!(shown.contains("… 13 more lines") && shown.contains("… 500 more characters"), "{shown}");
    };
    all(&on_a_terminal(&lathe, repo.path(), &line("shell -c true"), "s\n\u{4}"));
    // Without a terminal `trust add` shows the same, and trusts nothing.
    let told = lathe.clone().in_dir(repo.path()).args(["trust", "add"]).run().expect_code(2);
    all(&told.stderr);
    repo.write("db.sh", b"\x7fELF\0\0");
    let told = lathe.clone().in_dir(repo.path()).args(["trust", "add"]).run().expect_code(2);
    assert!(told.stderr.contains("! it is not text; it has 6 bytes"), "{}", told.stderr);
}

#[test]
fn a_projects_rules_tighten_and_never_loosen() {
    let repo = TempRepo::new(&[("a.txt", "x\n")]);
    let check = |line: &str| {
        let ran = lathe().in_dir(repo.path()).args(["policy", "check", line]).run().expect_code(0);
        ran.stdout.split_whitespace().next().unwrap().to_owned()
    };
    let lines = ["ls", "make deploy", "cargo test", "git push", "sh a.txt", "curl http://x"];
    let before = lines.map(check);
    repo.write(
        ".lathe/policy.toml",
        "default = \"allow\"\n[[rule]]\ndecision = \"allow\"\ncommand = [\"make\", \"git\", \"sh\", \"curl\"]\n",
    );
    assert_eq!(lines.map(check), before);
    repo.write(
        ".lathe/policy.toml",
        "[[rule]]\ndecision = \"deny\"\ncommand = \"ls\"\n[[rule]]\ndecision = \"ask\"\ncommand = \"cargo test\"\n",
    );
    assert_eq!((check("ls").as_str(), check("cargo test").as_str()), ("deny", "ask"));
    // In a session too, without any trust.
    let model = FakeModel::serving(
        Script::new().answer(call("c1", "bash", json!({ "command": "ls" }))).answer(done("ok")),
    );
    let ran = lathe()
        .in_dir(repo.path())
        .args(["run", "do it", "--mode", "full-auto", "--output", "stream-json"])
        .with_model(&model)
        .run();
    assert_eq!(bodies(&ran.events(), "call_finished")[0]["error"]["kind"], "policy_violation");
    repo.write(".lathe/policy.toml", "default =\n");
    let ran = lathe().in_dir(repo.path()).args(["policy", "check", "ls"]).run().expect_code(2);
    assert!(ran.stderr.contains(".lathe/policy.toml:1"), "{}", ran.stderr);
}

#[test]
fn issue_15_a_trusted_field_program_is_the_file_that_was_hashed_whatever_the_folder() {
    for (command, path) in [
        ("sh tools/run.sh", "tools/run.sh"),
        ("tools/run.sh", "tools/run.sh"),
        ("sh run.sh", "run.sh"),
        ("./run.sh", "run.sh"),
        ("sh ./tools/../run.sh", "run.sh"),
        ("env sh 'run.sh'", "run.sh"),
    ] {
        let config = format!("[field.db]\ncommand = \"{command}\"\ntools = \"db.json\"\n");
        let repo = TempRepo::new(&[
            (".lathe/config.toml", &config),
            ("db.json", TOOLS),
            (path, "#!/bin/sh\necho trusted\n"),
            (&format!("sub/{path}"), "#!/bin/sh\ntouch \"$PWD/PWNED\"\necho another\n"),
            ("sub/tools/x", ""),
            ("tools/x", ""),
        ]);
        if !command.starts_with("env") {
            repo.write("sh", "touch PWNED\n");
            std::fs::set_permissions(repo.path().join("sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        for file in [path.to_owned(), format!("sub/{path}")] {
            let all = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(repo.path().join(file), all).unwrap();
        }
        let lathe = trusting(repo.path());
        let shell = |line: &str| lathe.clone().in_dir(repo.path()).args(["shell", "-c", line]).run();
        for line in ["field:db:q", "cd sub && field:db:q", "cd sub/tools && field:db:q"] {
            let ran = shell(line).expect_code(0);
            assert_eq!(ran.stdout, "trusted\n", "{command}: {line}");
        }
        // What changes while a session runs is not what was trusted.
        let line = format!("field:db:q; echo 'echo changed' > {path}; field:db:q");
        let ran = shell(&line);
        assert!(!ran.stdout.contains("changed"), "{command}: {}", ran.stdout);
        assert!(ran.stderr.contains("changed since it was trusted"), "{command}: {}", ran.stderr);
        assert!(!repo.exists("PWNED") && !repo.exists("sub/PWNED"), "{command}");
    }
}

#[test]
fn issue_15_a_word_that_is_a_file_and_a_program_is_refused() {
    let config = "[field.db]\ncommand = \"env sh run.sh\"\ntools = \"db.json\"\n";
    let repo = TempRepo::new(&[
        (".lathe/config.toml", config),
        ("db.json", TOOLS),
        ("run.sh", "echo trusted\n"),
        ("sh", "touch PWNED\n"),
    ]);
    let ran = lathe().in_dir(repo.path()).args(["trust", "list"]).run();
    assert!(
        ran.stderr.contains("`sh` is a file of the project and a program: write `./sh`"),
        "{}",
        ran.stderr
    );
}

#[test]
fn issue_15_a_check_is_tied_to_its_files_however_their_names_are_spelled() {
    for command in [
        "sh check.sh {file}",
        "sh c\\\\heck.sh {file}",
        "sh 'che'ck.sh {file}",
        "sh $'check.sh' {file}",
        "bash -c 'sh check.sh' x {file}",
        "sh < check.sh",
        "sh -- ./check.sh {file}",
        "S=check.sh make {file}",
        "make --file=check.sh",
    ] {
        let config = format!("[check]\n\"*.txt\" = \"{command}\"\n");
        let repo = TempRepo::new(&[(".lathe/config.toml", &config), ("check.sh", "true\n")]);
        let lathe = trusting(repo.path());
        repo.write("check.sh", "touch PWNED\n");
        assert_eq!(states(&lathe, repo.path()), ["*.txt changed"], "{command}");
    }
    // A word that only bash can complete is said to be one.
    for (command, word) in [
        ("sh check[.]sh", "check[.]sh"),
        ("sh ~+/check.sh", "~+/check.sh"),
        ("sh $D/check.sh", "$D/check.sh"),
        ("find tools -name check.sh -exec sh {} +", "find (it runs what its words do not name)"),
        ("find tools -name check.sh | xargs sh", "xargs (it runs what its words do not name)"),
        ("make -C tools", "make (it runs what its words do not name)"),
        ("npm --prefix tools run x", "npm (it runs what its words do not name)"),
        ("python3 -m tools.check {file}", "python3 (it runs what its words do not name)"),
        ("cd tools && sh check.sh", "cd (it runs what its words do not name)"),
        ("env -C tools sh check.sh", "env (it runs what its words do not name)"),
        ("python3 tools", "tools (a folder)"),
        ("timeout 9 cargo clippy", "cargo (it runs what its words do not name)"),
    ] {
        let config = format!("[check]\n\"*.txt\" = \"{command}\"\n");
        let repo = TempRepo::new(&[(".lathe/config.toml", &config), ("check.sh", "true\n")]);
        repo.write("tools/check.sh", "true\n");
        let ran = lathe().in_dir(repo.path()).args(["trust", "add"]).run();
        let said = format!("cannot be tied to the content of a file: {word}");
        assert!(ran.stderr.contains(&said), "{command}: {}", ran.stderr);
        let ran = lathe().in_dir(repo.path()).args(["trust", "add", "--yes"]).run().expect_code(0);
        assert!(ran.stdout.contains(&said), "{command}: {}", ran.stdout);
    }
}

#[test]
fn issue_15_a_trusted_check_that_the_model_changes_is_not_run() {
    let repo = project();
    let lathe = trusting(repo.path());
    let model = FakeModel::serving(
        Script::new()
            .answer(call("c0", "view", json!({ "path": "check.sh" })))
            .answer(call("c1", "write", json!({ "path": "check.sh", "content": "touch PWNED\n" })))
            .answer(call("c2", "write", json!({ "path": "new.txt", "content": "x\n" })))
            .answer(done("ok")),
    );
    let args = ["run", "do it", "--mode", "auto-edit", "--output", "stream-json"];
    let ran = lathe.clone().in_dir(repo.path()).args(args).with_model(&model).run().expect_code(0);
    let told = crate::result(&ran.events(), "c2");
    assert!(told.contains("changed since it was trusted"), "{told}");
    assert!(!repo.exists("PWNED"));
}
