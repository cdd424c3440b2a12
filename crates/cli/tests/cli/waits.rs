//! Nothing blocks a run without end: no pipe in place of a file that git reads, and no git that does not reply.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::Duration;

use lathe_testkit::{FakeModel, Script, Signal, TempRepo, call, done, eventually};
use serde_json::json;

use crate::{bodies, run_in};

fn fifo(repo: &TempRepo, path: &str) {
    std::fs::create_dir_all(repo.join(path).parent().unwrap()).unwrap();
    assert!(Command::new("mkfifo").arg(repo.join(path)).status().unwrap().success());
}

fn writes() -> lathe_testkit::FakeAnswer {
    call("w", "write", json!({ "path": "new.txt", "content": "new\n" }))
}

#[test]
fn a_pipe_where_git_reads_a_file_holds_no_run_with_a_patch() {
    for path in
        ["deep/er/.gitignore", "deep/.gitattributes", ".mailmap", "deep/inner/.git/HEAD", "deep/.gitmodules"]
    {
        let repo = TempRepo::with_git(&[("a.txt", "one\n"), ("deep/er/b.txt", "two\n")]);
        let outside = TempRepo::new(&[]);
        fifo(&repo, path);
        let model = FakeModel::serving(Script::new().answer(writes()).answer(done("ok")));
        let run = run_in(repo.path(), &model).arg("--must-patch").arg("--patch-path").arg(outside.join("p"));
        // Without git's view the recorded changes are the patch.
        let events = run.run().expect_code(0).events();
        assert_eq!(bodies(&events, "task_finished")[0]["ending"], "done", "{path}");
        assert!(outside.read("p").contains("+new"), "{path}: {}", outside.read("p"));
    }
}

#[test]
fn a_pipe_that_is_made_meanwhile_is_named() {
    let repo = TempRepo::with_git(&[("a.txt", "one\n"), ("deep/b.txt", "two\n")]);
    let outside = TempRepo::new(&[]);
    let make = call("m", "bash", json!({ "command": "mkfifo deep/.gitignore" }));
    let clean = call("r", "bash", json!({ "command": "rm deep/.gitignore" }));
    let script = Script::new().answer(make).answer(writes()).answer(done("early")).answer(clean);
    let model = FakeModel::serving(script.answer(done("ok")));
    let run = run_in(repo.path(), &model).arg("--must-patch").arg("--patch-path").arg(outside.join("p"));
    let events = run.run().expect_code(0).events();
    let told = bodies(&events, "call_finished").iter().map(ToString::to_string).collect::<String>();
    assert!(told.contains("deep/.gitignore is a pipe or a device where git reads a file"), "{told}");
    assert!(outside.read("p").contains("+new"), "{}", outside.read("p"));
}

/// A git that does not answer to `add` ends with the run, and the run with its signal.
#[test]
fn a_run_ends_with_its_signal_while_git_does_not_answer() {
    for signal in [Signal::Terminate, Signal::Interrupt] {
        let repo = TempRepo::with_git(&[("a.txt", "one\n")]);
        let tools = TempRepo::new(&[]);
        let git = Command::new("sh").args(["-c", "command -v git"]).output().unwrap().stdout;
        let git = String::from_utf8(git).unwrap();
        let script = format!(
            "#!/bin/sh\ncase \" $* \" in\n*\" add \"*) echo $$ > {}; exec sleep 98765;;\nesac\nexec {} \"$@\"\n",
            tools.join("waits").display(),
            git.trim()
        );
        std::fs::create_dir(tools.join("bin")).unwrap();
        std::fs::write(tools.join("bin/git"), script).unwrap();
        std::fs::set_permissions(tools.join("bin/git"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let model = FakeModel::serving(Script::new().answer(writes()).answer(done("ok")));
        let path = format!("{}:{}", tools.join("bin").display(), std::env::var("PATH").unwrap());
        let run = run_in(repo.path(), &model).arg("--must-patch").env("PATH", path).spawn();
        let waits = || std::fs::read_to_string(tools.join("waits")).unwrap_or_default();
        eventually(Duration::from_secs(60), "git waits", || waits().trim().parse::<i32>().is_ok());
        run.kill(signal);
        // The process is waited for no longer than any run of these tests.
        run.wait();
        let pid = waits();
        eventually(Duration::from_secs(60), "git is gone", || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
            stat.is_empty() || stat.contains(") Z")
        });
        assert!(model.requests().is_empty());
    }
}
