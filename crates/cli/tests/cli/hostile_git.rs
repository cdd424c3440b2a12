//! Programs that a repository's own configuration names are run by no line of git that was allowed without a user, in
//! any toolset.

use std::os::unix::fs::PermissionsExt as _;

use lathe_testkit::{FakeModel, Script, TempRepo, call, done};
use serde_json::{Value, json};

use crate::{bodies, lathe};

/// Settings that make git run a program, each with what makes it do so; `%` is the program.
const TRICKS: [(&str, &str, &str); 7] = [
    ("core.fsmonitor", "%", ""),
    ("diff.external", "%", ""),
    ("diff.x.textconv", "%", "* diff=x\n"),
    ("diff.x.command", "%", "* diff=x\n"),
    ("filter.x.clean", "%", "* filter=x\n"),
    ("filter.x.process", "%", "* filter=x\n"),
    ("core.hooksPath", "hooks", ""),
];

const LINES: [&str; 10] = [
    "git status",
    "git status --short | head -5",
    "git diff",
    "git diff HEAD~1",
    "git log -p -1",
    "git show HEAD",
    "git blame a.txt",
    "git stash show -p",
    "git ls-files -m",
    "git reflog -p",
];

/// Always writes the index, and so runs a hook: asked about.
const WRITES: &str = "git describe --always --dirty";

/// A repository with a trick in it. A program that is tricked creates the file `fell`.
fn hostile(setting: &str, value: &str, attributes: &str) -> TempRepo {
    let repo = TempRepo::with_git(&[("a.txt", "one\n"), ("same.txt", "same\n")]);
    repo.write("a.txt", "two\n");
    repo.commit("second");
    repo.write("a.txt", "stashed\n");
    repo.git(&["stash", "-q"]);
    let program = format!("#!/bin/sh\necho fell >> '{}'\ncat 2>/dev/null\n", repo.join("fell").display());
    for name in ["evil.sh", "hooks/post-index-change", "hooks/post-checkout"] {
        repo.write(name, &program);
        std::fs::set_permissions(repo.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    repo.write(".gitattributes", attributes);
    repo.write("a.txt", "changed\n");
    repo.git(&["config", setting, &value.replace('%', &repo.join("evil.sh").display().to_string())]);
    let _ = std::fs::remove_file(repo.join("fell"));
    // Another time and the same content: git would like to write that down.
    let soon = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    std::fs::File::options().write(true).open(repo.join("same.txt")).unwrap().set_modified(soon).unwrap();
    repo
}

#[test]
fn nothing_that_a_repository_names_is_run_by_an_allowed_line_of_git() {
    for (setting, value, attributes) in TRICKS {
        // The trick works on a program that takes no care; if it did not, the test would show nothing.
        let repo = hostile(setting, value, attributes);
        for words in [["status", "-s"], ["diff", "HEAD"]] {
            let _ = std::process::Command::new("git").args(words).current_dir(repo.path()).output().unwrap();
        }
        assert!(repo.exists("fell"), "{setting} does nothing");

        for (toolset, tool) in
            [("lathe", "bash"), ("trae", "bash"), ("gemini", "run_shell_command"), ("bash", "Bash")]
        {
            let repo = hostile(setting, value, attributes);
            let mut answer = call("c0", tool, json!({ "command": LINES[0] }));
            for (at, line) in LINES.iter().enumerate().skip(1) {
                answer = answer.call(&format!("c{at}"), tool, json!({ "command": line }));
            }
            answer = answer.call("writes", tool, json!({ "command": WRITES }));
            let model = FakeModel::serving(Script::new().answer(answer).answer(done("ok")));
            let words = ["run", "go", "--mode", "default", "--toolset", toolset, "--output", "stream-json"];
            let events = lathe().in_dir(repo.path()).args(words).with_model(&model).run().events();
            assert!(!repo.exists("fell"), "{setting} by {toolset}");
            let decided = bodies(&events, "call_decided");
            let verdict = |decided: &Value| decided["decision"]["verdict"].as_str().unwrap().to_owned();
            let allowed = decided.iter().filter(|decided| verdict(decided) == "allow").count();
            // A setting that the environment switches off is not a reason to ask.
            let harmless = setting.starts_with("core.");
            assert!((allowed >= LINES.len()) == harmless, "{setting} by {toolset}: {decided:#?}");
        }
    }
}

/// Other ways to write a section than git's own.
#[test]
fn a_setting_is_found_however_the_file_is_written() {
    for text in [
        "\u{feff}[diff \"x\"]\n\ttextconv = %\n",
        "[diff\t\"x\"]\n\ttextconv = %\n",
        "[core] [diff \"x\"] textconv = %\n",
        "[core][diff.x]textconv=%\n",
    ] {
        let repo = hostile("core.bare", "false", "* diff=x\n");
        let config = repo.read(".git/config");
        let text = text.replace('%', &repo.join("evil.sh").display().to_string());
        repo.write(".git/config", text + &config);
        let _ = std::process::Command::new("git").arg("diff").current_dir(repo.path()).output().unwrap();
        assert!(repo.exists("fell"), "the trick does nothing");
        std::fs::remove_file(repo.join("fell")).unwrap();
        let decided = bodies(&lines(&repo, &["git diff"]), "call_decided");
        assert!(!repo.exists("fell"), "{decided:#?}");
        assert_ne!(decided[0]["decision"]["verdict"], "allow", "{decided:#?}");
    }
}

/// A setting alone makes what sorts or formats check signatures.
#[test]
fn a_program_for_signatures_is_not_run_by_what_lists() {
    for (setting, value, line) in [
        ("tag.sort", "signature:grade", "git tag"),
        ("branch.sort", "signature:grade", "git branch -a"),
        ("pretty.p", "%G?", "git rev-list --pretty=p HEAD"),
        ("pretty.p", "%G?", "git shortlog --format=p HEAD"),
        ("pretty.p", "%G?", "git reflog --pretty=p"),
    ] {
        let repo = hostile("gpg.program", "%", "");
        repo.git(&["config", setting, value]);
        let decided = bodies(&lines(&repo, &[line]), "call_decided");
        assert!(!repo.exists("fell"), "{line}");
        assert_ne!(decided[0]["decision"]["verdict"], "allow", "{line}: {decided:#?}");
    }
}

#[test]
fn a_folder_that_looks_like_a_repository_is_none() {
    let repo = TempRepo::with_git(&[("a.txt", "one\n")]);
    repo.git(&["init", "-q", "--bare", "sub"]);
    repo.write("evil.sh", format!("#!/bin/sh\necho fell >> '{}'\n", repo.join("fell").display()));
    std::fs::set_permissions(repo.join("evil.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let evil = repo.join("evil.sh").display().to_string();
    repo.git(&["-C", "sub", "config", "core.fsmonitor", &evil]);
    repo.git(&["-C", "sub", "config", "core.worktree", "/"]);
    let ran = lathe().in_dir(repo.path()).args(["shell", "-c", "cd sub && git status"]).run();
    assert!(ran.code != 0 && !repo.exists("fell"), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_repository_inside_the_work_tree_is_looked_into_before_git_is() {
    let repo = TempRepo::with_git(&[("a.txt", "one\n")]);
    let evil = repo.join("evil.sh");
    repo.write("evil.sh", format!("#!/bin/sh\necho fell >> '{}'\ncat\n", repo.join("fell").display()));
    std::fs::set_permissions(&evil, std::fs::Permissions::from_mode(0o755)).unwrap();
    repo.git(&["init", "-q", "inner"]);
    repo.write("inner/b.txt", "two\n");
    let person = ["-C", "inner", "-c", "user.name=x", "-c", "user.email=x@x"];
    repo.git(&["-C", "inner", "add", "b.txt"]);
    repo.git(&[&person[..], &["commit", "-qm", "inner"]].concat());
    let decide = || {
        let ran = lathe().in_dir(repo.path()).args(["policy", "check", "git status"]).run();
        ran.stdout
    };
    repo.git(&["add", "inner"]);
    assert!(decide().contains("allow"), "{}", decide());
    repo.write("inner/.git/info/attributes", "* filter=x\n");
    repo.git(&["-C", "inner", "config", "filter.x.clean", &evil.display().to_string()]);
    assert!(!decide().contains("allow"), "{}", decide());
    let model = FakeModel::serving(
        Script::new()
            .answer(call("c0", "bash", json!({ "command": "git status; git diff" })))
            .answer(done("ok")),
    );
    repo.write("inner/b.txt", "other\n");
    let words = ["run", "go", "--mode", "default", "--output", "stream-json"];
    lathe().in_dir(repo.path()).args(words).with_model(&model).run();
    assert!(!repo.exists("fell"));
}

/// A program that leaves the file `fell`, as a path.
fn planted(repo: &TempRepo) -> String {
    let evil = repo.join("evil.sh");
    repo.write("evil.sh", format!("#!/bin/sh\necho fell >> '{}'\ncat\n", repo.join("fell").display()));
    std::fs::set_permissions(&evil, std::fs::Permissions::from_mode(0o755)).unwrap();
    evil.display().to_string()
}

/// Lines that may be allowed, all in one session; gives its events.
fn lines(repo: &TempRepo, lines: &[&str]) -> Vec<Value> {
    let mut answer = call("c0", "bash", json!({ "command": lines[0] }));
    for (at, line) in lines.iter().enumerate().skip(1) {
        answer = answer.call(&format!("c{at}"), "bash", json!({ "command": line }));
    }
    let model = FakeModel::serving(Script::new().answer(answer).answer(done("ok")));
    let words = ["run", "go", "--mode", "default", "--output", "stream-json"];
    lathe().in_dir(repo.path()).args(words).with_model(&model).run().events()
}

#[test]
fn an_object_that_is_missing_is_not_fetched_by_what_only_reads() {
    let repo = TempRepo::with_git(&[("a.txt", "one\n")]);
    repo.git(&["branch", "side"]);
    repo.write("a.txt", "two\n");
    repo.commit("second");
    let missing = repo.git(&["rev-parse", "side^{tree}"]);
    let evil = planted(&repo);
    // It says nothing and does not wait for anything to be said.
    repo.write("evil.sh", repo.read("evil.sh").replace("cat\n", ""));
    let dir = repo.path().display().to_string();
    for (key, value) in [
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "o"),
        ("remote.o.promisor", "true"),
        ("remote.o.url", dir.as_str()),
        ("remote.o.uploadpack", evil.as_str()),
    ] {
        repo.git(&["config", key, value]);
    }
    let commit = repo.git(&["rev-parse", "side"]);
    for oid in [missing.trim(), commit.trim()] {
        std::fs::remove_file(repo.join(&format!(".git/objects/{}/{}", &oid[..2], &oid[2..]))).unwrap();
    }
    // The trick works on a program that takes no care.
    let branch = ["branch", "-vv"];
    let _ = std::process::Command::new("git").args(branch).current_dir(repo.path()).output().unwrap();
    assert!(repo.exists("fell"), "it does nothing");
    std::fs::remove_file(repo.join("fell")).unwrap();
    let reading = [
        "git branch -vv",
        "git branch --merged",
        "git for-each-ref --format='%(subject)'",
        "git show-ref -d",
        "git rev-parse side^{tree}",
        "git rev-list --objects --all",
        "git name-rev HEAD",
        "git ls-tree -l side",
        "git log --all -p",
        "git status",
    ];
    let events = lines(&repo, &reading);
    assert!(!repo.exists("fell"), "{:#?}", bodies(&events, "call_decided"));
    let ran = lathe().in_dir(repo.path()).args(["policy", "check", "git log --all"]).run();
    assert!(!ran.stdout.contains("allow") && ran.stdout.contains("artialclone"), "{}", ran.stdout);
}

#[test]
fn a_repository_inside_is_looked_into_wherever_its_git_leads() {
    for way in ["file", "file with a blank", "commondir", "inside an inner one"] {
        let repo = TempRepo::with_git(&[("a.txt", "one\n")]);
        let evil = planted(&repo);
        let inner = if way == "inside an inner one" { "outer/inner" } else { "inner" };
        let person = ["-c", "user.name=x", "-c", "user.email=x@x"];
        let make = |folder: &str, file: &str| {
            repo.git(&["init", "-q", folder]);
            repo.write(&format!("{folder}/{file}"), "two\n");
            repo.git(&["-C", folder, "add", file]);
            repo.git(&[&["-C", folder], &person[..], &["commit", "-qm", "inner"]].concat());
        };
        make(inner, "b.txt");
        if way == "inside an inner one" {
            make("outer", "c.txt");
            repo.git(&["-C", "outer", "add", "inner"]);
            repo.git(&[&["-C", "outer"], &person[..], &["commit", "-qm", "more"]].concat());
            repo.git(&["add", "outer"]);
        } else {
            repo.git(&["add", inner]);
        }
        let config = repo.join(inner).join(".git");
        std::fs::write(config.join("info/attributes"), "* filter=x\n").unwrap();
        repo.git(&["-C", inner, "config", "filter.x.clean", &evil]);
        match way {
            "file" | "file with a blank" => {
                let name = if way == "file" { "gg" } else { "gg " };
                std::fs::rename(&config, repo.join(name)).unwrap();
                std::fs::write(&config, format!("gitdir: ../{name}\n")).unwrap();
            }
            "commondir" => {
                std::fs::rename(&config, repo.join("gg")).unwrap();
                std::fs::create_dir(&config).unwrap();
                std::fs::write(config.join("commondir"), "../../gg\n").unwrap();
                for name in ["HEAD", "index"] {
                    std::fs::copy(repo.join("gg").join(name), config.join(name)).unwrap();
                }
            }
            _ => {}
        }
        repo.write(&format!("{inner}/b.txt"), "six\n");
        let _ = std::process::Command::new("git").arg("status").current_dir(repo.path()).output().unwrap();
        assert!(repo.exists("fell"), "{way} does nothing");
        std::fs::remove_file(repo.join("fell")).unwrap();
        lines(&repo, &["git status", "git diff"]);
        assert!(!repo.exists("fell"), "{way}");
    }
}
