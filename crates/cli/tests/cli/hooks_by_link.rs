//! Hooks that are links, as teams keep them in their work tree, and repositories in which Lathe's own git cannot be used.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::Command;

use lathe_testkit::{FakeModel, Script, TempRepo, call, done};
use serde_json::json;

use crate::lost::Place;
use crate::{lathe, result};

const HOOK: &str = ".git/hooks/pre-commit";

/// Writes what its words say. No word of the line names the file.
const WRITE_PY: &str = "import sys\nopen('scripts/pre-' + 'commit', 'w').write(sys.argv[1])\n";

fn place() -> Place {
    let place = Place::new();
    place.write("write.py", WRITE_PY);
    place.write("scripts/pre-commit", "#!/bin/sh\ntouch before\n");
    let script = place.repo().join("scripts/pre-commit");
    fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
    symlink("../../scripts/pre-commit", place.repo().join(HOOK)).unwrap();
    place
}

/// The names in the folder of hooks, with where they lead.
fn hooks(place: &Place) -> Vec<(PathBuf, Option<PathBuf>)> {
    let listed = fs::read_dir(place.repo().join(".git/hooks")).unwrap();
    let mut hooks: Vec<_> = listed
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), fs::read_link(path).ok()))
        .collect();
    hooks.sort();
    hooks
}

#[test]
fn a_hook_that_is_a_link_is_left_alone_by_lines_that_do_not_change_it() {
    for mode in ["plan", "default", "full-auto"] {
        let place = place();
        let before = hooks(&place);
        let (_, events) = place.run(mode, &["ls", "git status -s", "ls scripts"]);
        for id in ["c0", "c1", "c2"] {
            assert!(!result(&events, id).contains("aside"), "{mode}: {}", result(&events, id));
        }
        assert_eq!(hooks(&place), before, "{mode}");
        assert_eq!(place.git(&["status", "-s", "scripts"]), "?? scripts/\n", "{mode}");
    }
}

#[test]
fn git_runs_what_a_linked_hook_led_to_before_the_line() {
    let place = place();
    let before = hooks(&place);
    let (_, events) = place.run("full-auto", &["python3 write.py '#!/bin/sh\ntouch after\n'", "true"]);
    let told = result(&events, "c0");
    assert!(told.contains("scripts/pre-commit: this may make git run a program later"), "{told}");
    assert!(!result(&events, "c1").contains("aside"), "{events:#?}");
    assert_eq!(hooks(&place), before);
    place.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
    assert!(place.repo().join("before").exists() && !place.repo().join("after").exists());
    let aside = place.repo().join("scripts/pre-commit.set-aside-by-lathe");
    assert_eq!(fs::read_to_string(aside).unwrap(), "#!/bin/sh\ntouch after\n");
}

#[test]
fn no_file_tool_writes_what_a_link_in_a_protected_folder_leads_to() {
    let links = [
        (HOOK, "../../scripts/pre-commit", "scripts/pre-commit"),
        (".claude/hooks/x.sh", "../../scripts/chook", "scripts/chook"),
        (".claude/settings.json", "../shared/claude.json", "shared/claude.json"),
        (".husky/pre-commit", "../scripts/hus", "scripts/hus"),
        (".devcontainer/devcontainer.json", "../shared/later.json", "shared/later.json"),
        (".ssh/config", "../shared/sshconf", "shared/sshconf"),
    ];
    let repo = TempRepo::with_git(&[("scripts/pre-commit", "kept\n"), ("shared/claude.json", "kept\n")]);
    let mut script = Script::new();
    for (at, (name, leads, file)) in links.into_iter().enumerate() {
        let link = repo.path().join(name);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(leads, link).unwrap();
        script = script
            .answer(call(&format!("w{at}"), "write", json!({ "path": file, "content": "x\n" })))
            .answer(call(
                &format!("f{at}"),
                "write",
                json!({ "path": format!("scripts/free{at}"), "content": "x\n" }),
            ));
    }
    let edit = json!({ "path": "scripts/pre-commit", "old_str": "kept", "new_str": "x" });
    let model = FakeModel::serving(script.answer(call("e", "edit", edit)).answer(done("ok")));
    let words = ["run", "go", "--mode", "auto-edit", "--output", "stream-json"];
    lathe().in_dir(repo.path()).args(words).with_model(&model).run();
    for (at, (name, _, file)) in links.into_iter().enumerate() {
        let kept = fs::read_to_string(repo.path().join(file)).ok();
        assert!(kept.as_deref().is_none_or(|kept| kept == "kept\n"), "{name}: {file}: {kept:?}");
        assert!(repo.exists(&format!("scripts/free{at}")), "{name}: what is beside is free");
    }
}

/// The commit of a line, and an undo after it.
fn commit_and_undo(name: &str, place: &Place, git: &str, path: Option<PathBuf>) {
    let line = format!("{git} commit -q --allow-empty -m of-the-line");
    let model = FakeModel::serving(
        Script::new().answer(call("c0", "bash", json!({ "command": line }))).answer(done("ok")),
    );
    let words = ["run", "go", "--mode", "full-auto", "--output", "stream-json"];
    let with_path = |lathe: lathe_testkit::Lathe| match &path {
        Some(path) => lathe.env("PATH", path),
        None => lathe,
    };
    let run = with_path(place.lathe()).args(words).with_model(&model);
    let events = run.run().events();
    let told = result(&events, "c0");
    assert!(!told.contains("leads to no object") && !told.contains("is kept"), "{name}: {told}");
    let log = || place.git(&["log", "--format=%s", "-1"]);
    assert_eq!(log(), "of-the-line\n", "{name}: {events:#?}");
    with_path(place.lathe()).env("LATHE_HOME", run.home()).arg("undo").run();
    assert_eq!(log(), "of-the-line\n", "{name}: commits stay");
}

#[test]
fn commits_stay_where_lathes_git_cannot_be_used() {
    let place = Place::new();
    symlink("../../not-there", place.repo().join(".git/info/attributes")).unwrap();
    commit_and_undo("a link that leads nowhere", &place, "git", None);

    let place = Place::new();
    assert!(Command::new("mkfifo").arg(place.repo().join(".git/pipe")).status().unwrap().success());
    commit_and_undo("a pipe", &place, "git", None);

    let find = |name: &str| {
        let path = std::env::var_os("PATH").unwrap();
        std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file()).unwrap()
    };
    let place = Place::new();
    let programs = place.base.join("programs");
    fs::create_dir(&programs).unwrap();
    for name in ["bash", "sh", "env", "ls", "cat"] {
        symlink(find(name), programs.join(name)).unwrap();
    }
    commit_and_undo("no git", &place, &find("git").display().to_string(), Some(programs));
}
