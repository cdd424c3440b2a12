//! Names that other programs obey, behind walls: what lines write to them in ways that reading cannot see is not
//! there afterwards, in the repository and in those that a line makes.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use lathe_testkit::{FakeModel, FinishedLathe, Lathe, Script, Signal, TempRepo, call, done, eventually};
use serde_json::json;

use crate::lathe;

/// The names that are tested, each with what a line writes there.
const NAMES: [&str; 17] = [
    ".gitmodules",
    ".lathe/notes.md",
    ".mcp.json",
    ".claude/settings.json",
    ".claude/new/deep",
    ".gemini/settings.json",
    ".cursor/mcp.json",
    ".codex/config.toml",
    ".vscode/settings.json",
    ".idea/workspace.xml",
    ".devcontainer/devcontainer.json",
    ".husky/pre-commit",
    ".envrc",
    ".bashrc",
    ".profile",
    ".zshrc",
    ".ENVRC.d/../.EnvRc",
];

/// Parts of a repository that make git run something, each with what a line writes there.
const PARTS: [(&str, &str); 4] = [
    (".git/hooks/pre-commit", "#!/bin/sh\npoison\n"),
    (".git/config", "[core]\n\tfsmonitor = poison\n\thooksPath = poison\n"),
    (".git/info/attributes", "* filter=poison\n"),
    (".git/config.worktree", "[core]\n\tsshCommand = poison\n"),
];

/// A line that runs a script which reading it does not show.
fn hidden(script: &str) -> String {
    let hex: String = script.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "python3 - <<'P'\nimport subprocess\nsubprocess.run(['bash', '-ec', bytes.fromhex('{hex}').decode()], check=True)\nP"
    )
}

/// A script that writes to a path.
fn writes(path: &str, text: &str) -> String {
    format!("mkdir -p \"$(dirname '{path}')\"; printf '%s' '{text}' >> '{path}'; chmod 755 '{path}'\n")
}

/// Runs hidden scripts, each in a line of its own.
fn run(folder: &Path, scripts: &[String]) -> FinishedLathe {
    run_as(&lathe(), folder, scripts)
}

fn run_as(home: &Lathe, folder: &Path, scripts: &[String]) -> FinishedLathe {
    let mut script = Script::new();
    for (at, one) in scripts.iter().enumerate() {
        script = script.answer(call(&format!("c{at}"), "bash", json!({ "command": hidden(one) })));
    }
    let model = FakeModel::serving(script.answer(done("ok")));
    let ran = home
        .clone()
        .behind_walls()
        .in_dir(folder)
        .args(["run", "do it", "--output", "stream-json"])
        .with_model(&model)
        .run()
        .expect_code(0);
    for event in ran.events().iter().filter(|event| event["kind"] == "call_finished") {
        let text = event["body"]["text"].as_str().unwrap();
        assert!(!text.contains("CalledProcessError"), "{text}");
    }
    ran
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let user = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"];
    let done = Command::new("git").args(user).args(arguments).current_dir(folder).output().unwrap();
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

fn commit_all(folder: &Path) {
    git(folder, &["init", "-q", "-b", "main"]);
    git(folder, &["add", "-A", "-f"]);
    git(folder, &["commit", "-qm", "x", "--allow-empty"]);
}

/// Names of everything in a folder, with the text of files.
fn tree(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(one) = open.pop() {
        for entry in std::fs::read_dir(&one).unwrap() {
            let path = entry.unwrap().path();
            let kind = path.symlink_metadata().unwrap();
            let text = if kind.is_file() {
                String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned()
            } else {
                String::new()
            };
            found.push((path.strip_prefix(folder).unwrap().display().to_string(), text));
            if kind.is_dir() {
                open.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Everything that has poison in it and that a program would obey.
fn poisoned(folder: &Path) -> Vec<String> {
    let bad = tree(folder).into_iter().filter(|(name, text)| {
        text.contains("poison")
            && !name.contains("set-aside-by-lathe")
            && !name.contains("/objects/")
            && !name.ends_with("fine.txt")
    });
    bad.map(|(name, _)| name).collect()
}

#[test]
fn each_protected_name_that_was_not_there_is_not_there_after_the_line() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    commit_all(repo.path());
    let mut script = String::from("mkdir made; git init -q made; echo fine > fine.txt\n");
    for folder in ["", "made/", "deep/er/"] {
        NAMES.iter().for_each(|name| script.push_str(&writes(&format!("{folder}{name}"), "poison")));
    }
    for folder in ["", "made/"] {
        PARTS.iter().for_each(|(name, text)| script.push_str(&writes(&format!("{folder}{name}"), text)));
    }
    let home = lathe();
    let ran = run_as(&home, repo.path(), &[script]);
    assert_eq!(poisoned(repo.path()), Vec::<String>::new(), "{}", ran.stdout);
    let diff = home.in_dir(repo.path()).arg("diff").run().expect_code(0).stdout;
    assert!(diff.contains("fine.txt") && !diff.contains("poison") && !diff.contains("lathe-"), "{diff}");
    for name in NAMES {
        assert!(!repo.path().join(name).exists() && !repo.path().join("made").join(name).exists(), "{name}");
    }
    assert_eq!(git(repo.path(), &["status", "--porcelain", "--ignored"]), "?? fine.txt\n?? made/\n");
    assert_eq!(git(&repo.path().join("made"), &["status", "--porcelain", "--ignored"]), "");
    assert!(
        ran.stdout.contains("made/.git/hooks/pre-commit: this may make git run a program"),
        "{}",
        ran.stdout
    );
}

#[test]
fn each_protected_name_that_was_there_is_as_it_was_after_the_line() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    for folder in [repo.path().to_owned(), repo.path().join("inner")] {
        for name in NAMES {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::create_dir_all(folder.join(".ENVRC.d")).unwrap();
            std::fs::write(path, if name == ".gitmodules" { "" } else { "former\n" }).unwrap();
        }
        commit_all(&folder);
        std::fs::write(folder.join(".git/hooks/pre-commit"), "#!/bin/sh\n").unwrap();
    }
    let before = |folder: &str| {
        let all = tree(&repo.path().join(folder));
        all.into_iter()
            .filter(|(name, _)| {
                !name.contains(".git/")
                    || name.ends_with("config")
                    || name.ends_with("pre-commit")
                    || name.ends_with("attributes")
            })
            .collect::<Vec<_>>()
    };
    let was = before("");
    let mut script = String::new();
    for folder in ["", "inner/"] {
        NAMES.iter().for_each(|name| script.push_str(&writes(&format!("{folder}{name}"), "poison")));
        PARTS.iter().for_each(|(name, text)| script.push_str(&writes(&format!("{folder}{name}"), text)));
    }
    let removed = "rm -rf .claude .envrc inner/.vscode inner/.mcp.json\n".to_owned();
    let ran = run(repo.path(), &[script, removed]);
    assert_eq!(poisoned(repo.path()), Vec::<String>::new(), "{}", ran.stdout);
    assert_eq!(before(""), was, "{}", ran.stdout);
    assert_eq!(git(&repo.path().join("inner"), &["status", "--porcelain", "--ignored"]), "");
}

#[test]
fn repositories_that_a_line_makes_in_any_way_run_nothing_afterwards() {
    let repo = TempRepo::new(&[("a.txt", "one\n"), ("source/b.txt", "two\n")]);
    commit_all(&repo.path().join("source"));
    commit_all(repo.path());
    let poison = |dot: &str| {
        let parts = PARTS.iter().map(|(name, text)| writes(&name.replace(".git", dot), text));
        parts.collect::<String>()
    };
    let away = "/tmp/away";
    let make = format!("rm -rf {away}; mkdir -p {away}; cd {away}; git init -q; cd - >/dev/null\n");
    let made_away: String = make + &poison(&format!("{away}/.git")).replace('\'', "\"");
    for (what, script) in [
        ("clone", format!("git clone -q source y\n{}", poison("y/.git"))),
        ("copy", format!("{made_away}cp -r {away} y\n")),
        (
            "archive",
            format!("{made_away}tar -C {away} -cf y.tar .git; mkdir y; tar -C y -xf y.tar; rm y.tar\n"),
        ),
        ("bare", format!("git init -q --bare y\n{}", poison("y"))),
        ("worktree", format!("git worktree add -q y\n{}", poison(".git/worktrees/y"))),
        ("elsewhere", format!("git init -q --separate-git-dir other y\n{}", poison("other"))),
        (
            "linked",
            format!("git init -q other; mkdir y; ln -s ../other/.git y/.git\n{}", poison("other/.git")),
        ),
        (
            "module",
            format!(
                "git -c protocol.file.allow=always submodule --quiet add ./source y\n{}",
                poison(".git/modules/y")
            ),
        ),
        (
            "file behind a link",
            format!(
                "git init -q other; mkdir y; echo gitdir: ../other/.git > other/file; ln -s ../other/file y/.git\n{}",
                poison("other/.git")
            ),
        ),
        (
            "cache",
            format!(
                "mkdir y; echo Signature: 8a477f597d28d172789f06886806bc55 > y/CACHEDIR.TAG; git init -q y/z\n{}",
                poison("y/z/.git")
            ),
        ),
        (
            "common",
            format!(
                "git init -q y; git init -q --bare evil; echo ../../evil > y/.git/commondir\n{}",
                poison("evil")
            ),
        ),
    ] {
        let ran = run(repo.path(), &[script]);
        assert_eq!(poisoned(repo.path()), Vec::<String>::new(), "{what}: {}", ran.stdout);
        assert!(ran.stdout.contains("set aside as"), "{what}: {}", ran.stdout);
        git(repo.path(), &["worktree", "prune"]);
        for left in ["y", "other", "evil"] {
            let _ = std::fs::remove_dir_all(repo.path().join(left));
        }
    }
}

#[test]
fn clean_repositories_and_gits_own_writes_are_left_alone() {
    let repo = TempRepo::new(&[
        ("a.txt", "one\n"),
        ("source/b.txt", "two\n"),
        ("source/.vscode/settings.json", "{}\n"),
    ]);
    commit_all(&repo.path().join("source"));
    git(repo.path(), &["init", "-q", "-b", "main"]);
    git(repo.path(), &["add", "a.txt"]);
    git(repo.path(), &["commit", "-qm", "x"]);
    let lines = [
        "git init -q sub; git init -q --bare bare.git; git clone -q source y; git clone -q --bare source z.git",
        "git config user.name me; git config user.email me@x; git remote add origin /nowhere; git checkout -q -b topic",
        "echo two > a.txt; git commit -qam y; git worktree add -q tree; cd y; git config user.name me; git config user.email a@b; git commit -q --allow-empty -m z",
        "git -c protocol.file.allow=always submodule --quiet add -f ./source module || git status --short",
    ];
    let ran = run(repo.path(), &lines.map(str::to_owned));
    assert!(!ran.stdout.contains("set aside") && !ran.stdout.contains("may make git run"), "{}", ran.stdout);
    let config = std::fs::read_to_string(repo.path().join(".git/config")).unwrap();
    assert!(config.contains("name = me") && config.contains("[remote \"origin\"]"), "{config}");
    assert_eq!(git(&repo.path().join("y"), &["remote"]), "origin\n");
    assert_eq!(git(&repo.path().join("y"), &["status", "--porcelain"]), "", "{}", ran.stdout);
}

#[test]
fn what_git_brings_from_earlier_commits_stays_and_what_a_line_committed_does_not() {
    let repo = TempRepo::new(&[("a.txt", "one\n"), (".envrc", "main\n"), ("fixture", "poison\n")]);
    commit_all(repo.path());
    git(repo.path(), &["checkout", "-q", "-b", "other"]);
    std::fs::write(repo.path().join(".envrc"), "other\n").unwrap();
    std::fs::create_dir(repo.path().join(".claude")).unwrap();
    std::fs::write(repo.path().join(".claude/settings.json"), "{}\n").unwrap();
    commit_all(repo.path());
    git(repo.path(), &["checkout", "-q", "main"]);
    let read = |name: &str| std::fs::read_to_string(repo.path().join(name)).unwrap_or_default();
    for (script, envrc, settings) in [
        ("git checkout -q other", "other\n", "{}\n"),
        ("git checkout -q main", "main\n", ""),
        ("git reset -q --hard other", "other\n", "{}\n"),
        ("git reset -q --hard HEAD~1", "main\n", ""),
        ("git restore --source=other .envrc", "other\n", ""),
        ("git checkout -q .", "main\n", ""),
        ("git merge -q other", "other\n", "{}\n"),
    ] {
        let ran = run(repo.path(), &[script.to_owned()]);
        assert_eq!(
            (read(".envrc").as_str(), read(".claude/settings.json").as_str()),
            (envrc, settings),
            "{script}: {}",
            ran.stdout
        );
        assert!(!ran.stdout.contains("is protected"), "{script}: {}", ran.stdout);
    }
}

#[test]
fn content_that_no_commit_of_the_users_has_at_the_name_does_not_come_from_git() {
    let repo = TempRepo::new(&[("a.txt", "one\n"), (".envrc", "main\n"), ("fixture", "poison\n")]);
    commit_all(repo.path());
    std::fs::write(repo.path().join(".envrc"), "mine\n").unwrap();
    let user = "git config user.name a; git config user.email a@b";
    let forged = "b=$(echo poison > /tmp/x; git hash-object -w /tmp/x); git update-index --add --cacheinfo 100644,$b,.envrc";
    let lines = [
        format!("{user}; git stash -q"),
        "git stash pop -q".to_owned(),
        "cp fixture .envrc; git add .envrc".to_owned(),
        "git checkout -q -b evil; git commit -qam evil; git checkout -q main; git checkout -q evil"
            .to_owned(),
        format!("{forged}; git commit -qm forged; git reset -q --hard"),
        "chmod 755 .envrc; rm -f .envrc; git rm -q --cached .envrc; git commit -qm gone".to_owned(),
    ];
    let ran = run(repo.path(), &lines);
    let text = std::fs::read_to_string(repo.path().join(".envrc")).unwrap();
    assert_eq!(text, "mine\n", "{}", ran.stdout);
    let noted: Vec<bool> = ran
        .events()
        .iter()
        .filter(|event| event["kind"] == "call_finished")
        .map(|event| event["body"]["text"].as_str().unwrap().contains("is protected"))
        .collect();
    assert_eq!(noted[..3], [false, false, true], "{}", ran.stdout);
}

#[test]
fn links_pipes_and_folders_in_place_of_protected_names_are_reverted() {
    let repo = TempRepo::new(&[
        ("a.txt", "one\n"),
        (".mcp.json", "former\n"),
        (".claude/settings.json", "former\n"),
        (".gitignore", ".codex/\n"),
    ]);
    commit_all(repo.path());
    let huge = "head -c 70000000 /dev/zero > .profile";
    let lines = [
        "echo poison > x; ln -s x .envrc; ln -s . .gemini; mkfifo .zshrc; ln x .bashrc",
        "ln .mcp.json y; echo poison >> y",
        "mv .claude old; mkdir .claude; echo poison > .claude/settings.json",
        "mkdir -p .codex .cursor sub; echo poison > .codex/x; tag='Signature: 8a477f597d28d172789f06886806bc55'; echo $tag > .cursor/CACHEDIR.TAG; echo poison > .cursor/mcp.json; echo $tag > sub/CACHEDIR.TAG; echo poison > sub/.envrc",
        huge,
    ];
    let ran = run(repo.path(), &lines.map(str::to_owned));
    for name in [".envrc", ".gemini", ".zshrc", ".bashrc", ".codex", ".cursor", "sub/.envrc", ".profile"] {
        assert!(repo.path().join(name).symlink_metadata().is_err(), "{name}: {}", ran.stdout);
    }
    for name in [".mcp.json", ".claude/settings.json"] {
        assert_eq!(
            std::fs::read_to_string(repo.path().join(name)).unwrap(),
            "former\n",
            "{name}: {}",
            ran.stdout
        );
    }
}

#[test]
fn no_file_gets_the_rights_of_its_owner_and_the_line_goes_on() {
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let script = "cp /bin/true t; chmod 755 t\n(chmod u+s t; chmod 2755 t; mknod n c 1 3) 2>/dev/null || true\n\
        python3 - <<'E'\nimport io, tarfile\nwith tarfile.open('t.tar', 'w') as archive:\n    for name, mode, kind in [('plain', 0o644, tarfile.REGTYPE), ('su', 0o4755, tarfile.REGTYPE), ('null', 0o666, tarfile.CHRTYPE)]:\n        \
        one = tarfile.TarInfo(name)\n        one.mode, one.type, one.devmajor, one.devminor = mode, kind, 1, 3\n        archive.addfile(one, io.BytesIO(b''))\nE\n\
        tar -xpf t.tar || true\ncp -p /usr/bin/passwd p || true\necho on > on.txt";
    let ran = run(repo.path(), &[script.to_owned()]);
    assert!(repo.path().join("on.txt").exists() && repo.path().join("plain").exists(), "{}", ran.stdout);
    for entry in std::fs::read_dir(repo.path()).unwrap() {
        let found = entry.unwrap();
        let kind = found.metadata().unwrap();
        let is_device = kind.file_type().is_char_device() || kind.file_type().is_block_device();
        assert!(kind.mode() & 0o6000 == 0 && !is_device, "{:?}", found.path());
    }
}

#[test]
fn after_a_kill_nothing_of_ours_is_left_and_protected_names_are_shown() {
    let repo = TempRepo::new(&[("a.txt", "one\n"), (".mcp.json", "former\n")]);
    commit_all(repo.path());
    let script = "echo poison > .envrc; echo poison > .mcp.json; mkdir .claude; echo poison > .claude/x; touch begun; sleep 98630";
    let model = FakeModel::serving(
        Script::new().answer(call("c1", "bash", json!({ "command": hidden(script) }))).answer(done("ok")),
    );
    let run = lathe().behind_walls().in_dir(repo.path()).args(["run", "do it"]).with_model(&model);
    let running = run.spawn();
    eventually(Duration::from_secs(60), "the line runs", || repo.exists("begun"));
    running.kill(Signal::Kill);
    let _ = running.wait();
    assert_eq!(
        git(repo.path(), &["status", "--porcelain", "--ignored"]),
        " M .mcp.json\n?? .claude/\n?? .envrc\n?? begun\n"
    );
    let at = |words: &[&str]| {
        let command = lathe().env("LATHE_HOME", run.home()).in_dir(repo.path()).args(words);
        command.run().expect_code(0).stdout
    };
    let shown = at(&["show"]);
    for name in [".envrc", ".mcp.json", ".claude/x"] {
        assert!(shown.contains(&format!("{name} is protected")), "{name}: {shown}");
    }
    at(&["undo"]);
    assert_eq!(poisoned(repo.path()), Vec::<String>::new());
    assert_eq!(git(repo.path(), &["status", "--porcelain", "--ignored"]), "");
}
