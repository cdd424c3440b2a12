//! Roots that are protected folders themselves, or lie in one: they do not bypass the protection of names.

use std::fs;
use std::path::Path;

use lathe_workspace::{Expect, Files as _, LocalFiles, WorkspaceError};

use crate::support::write;

/// A repository in each of these folders, as far as git looks.
fn repositories(base: &Path) {
    for top in ["repo", "repo/.claude/worktrees/whole", "plain/.cursor/w", "home/.vim", "repo/.git/nested"] {
        fs::create_dir_all(base.join(top).join(".git")).unwrap();
        fs::write(base.join(top).join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    }
    fs::create_dir_all(base.join("repo/.claude/worktrees/linked")).unwrap();
    fs::write(base.join("repo/.claude/worktrees/linked/.git"), "gitdir: /nowhere\n").unwrap();
    for folder in ["bare/objects", "bare/refs", "bare/hooks"] {
        fs::create_dir_all(base.join(folder)).unwrap();
    }
    fs::write(base.join("bare/HEAD"), "ref: refs/heads/main\n").unwrap();
    // A repository of its own in git's part of another one, and a work tree next to those parts.
    for inner in ["bare/hooks", "bare/info", "bare/refs", "bare/objects/info"] {
        fs::create_dir_all(base.join(inner).join(".git")).unwrap();
        fs::write(base.join(inner).join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    }
    fs::create_dir_all(base.join("bare/feature")).unwrap();
    fs::write(base.join("bare/feature/.git"), "gitdir: ../worktrees/feature\n").unwrap();
}

#[tokio::test]
async fn the_whole_real_path_decides_from_the_top_of_the_repository_on() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    repositories(&base);
    fs::create_dir(base.join("first")).unwrap();
    let table = [
        // The root is a protected folder, or lies in one.
        ("repo/.git/hooks", "pre-commit", false),
        ("repo/.git/info", "attributes", false),
        ("repo/.git/refs/heads", "x", false),
        ("repo/.git/objects/info", "alternates", false),
        ("repo/.git", "config2", false),
        ("repo/.git", "a/b", false),
        ("repo/.vscode", "launch.json", false),
        ("repo/.vscode", "Tasks.JSON", false),
        ("repo/.idea", "runConfigurations/x.xml", false),
        ("repo/.idea/runConfigurations", "x.xml", false),
        ("repo/.lathe", "config.toml", false),
        ("repo/.claude", "settings.local.json", false),
        ("repo/.claude/hooks", "x", false),
        ("repo/.husky", "pre-commit", false),
        ("repo/.husky/_", "husky.sh", false),
        ("repo/sub/.GIT/hooks", "x", false),
        ("plain/.vscode", "tasks.json", false),
        ("plain/.claude/projects/x", "a.txt", false),
        ("home/.ssh", "authorized_keys", false),
        ("bare/hooks", "pre-commit", false),
        // What looks like a repository in a `.git` is none.
        ("repo/.git/nested", "x", false),
        ("bare/info", "attributes", false),
        ("bare/hooks/deeper", "x", false),
        ("bare/refs", "x", false),
        ("bare/refs/heads", "x", false),
        ("bare/objects/info", "alternates", false),
        ("bare/logs/refs", "x", false),
        ("bare/worktrees/feature", "config.worktree", false),
        ("bare/modules/lib/hooks", "post-checkout", false),
        // The folder is only half of the name.
        ("repo/.vscode", "extensions.json", true),
        ("repo/.vscode/sub", "launch.json", true),
        ("repo/.idea", "vcs.xml", true),
        // A repository of its own stands between.
        ("repo/.claude/worktrees/whole", "a.txt", true),
        ("repo/.claude/worktrees/whole/sub", "a.txt", true),
        ("repo/.claude/worktrees/linked", "a.txt", true),
        ("plain/.cursor/w", "src/a.txt", true),
        ("bare/feature", "hooks/a.txt", true),
        ("home/.vim", "vimrc", true),
        // And protects its own.
        ("repo/.claude/worktrees/whole", ".git/config", false),
        ("repo/.claude/worktrees/whole/.git", "config", false),
        ("repo/.claude/worktrees/whole", ".vscode/launch.json", false),
        ("repo/.claude/worktrees/whole/.vscode", "launch.json", false),
        ("repo/.claude/worktrees/linked", ".husky/pre-commit", false),
        // Ordinary ground.
        ("repo", "a.txt", true),
        ("repo/sub", "a.txt", true),
        ("repo/.github/workflows", "ci.yml", true),
        ("home/.config/nvim", "init.lua", true),
        ("home/.local/share/x", "a.txt", true),
        ("plain/hooks", "pre-commit", true),
    ];
    for (root, name, free) in table {
        let root = base.join(root);
        fs::create_dir_all(&root).unwrap();
        let link = base.join("link");
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(&root, &link).unwrap();
        let outside = base.join("no-home");
        for files in [
            LocalFiles::new(root.clone()),
            LocalFiles::new(link.clone()),
            LocalFiles::with_roots(base.join("first"), vec![root.clone()]),
            LocalFiles::confined(root.clone(), &outside),
        ] {
            let path = root.join(name);
            let done = files.apply(vec![write(&path, Expect::Absent, "x\n")]).await;
            match (&done, free) {
                (Ok(_), true) => fs::remove_file(&path).unwrap(),
                (Err(WorkspaceError::Protected(_)), false) => assert!(!path.exists()),
                _ => panic!("{} {name}: {done:?}", root.display()),
            }
        }
    }
}

#[test]
fn no_name_is_given_taken_or_received_in_a_protected_root() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    repositories(&base);
    let protected = |done: Result<(), WorkspaceError>| matches!(done, Err(WorkspaceError::Protected(_)));
    for folder in [".git/hooks", ".husky", ".claude"] {
        let root = base.join("repo").join(folder);
        fs::create_dir_all(&root).unwrap();
        fs::write(root.join("old"), "x\n").unwrap();
        let files = LocalFiles::new(root.clone());
        assert!(protected(files.rename(Path::new("old"), Path::new("new")).map(drop)), "{folder}");
        assert!(protected(files.receive(Path::new("new")).map(drop)), "{folder}");
        assert!(protected(files.move_out(Path::new("old"), &base.join("kept")).map(drop)), "{folder}");
        assert!(root.join("old").exists() && !root.join("new").exists());
    }
    // What is free in a folder that protects some names may not become one of them.
    let root = base.join("repo/.vscode");
    fs::create_dir_all(&root).unwrap();
    fs::write(root.join("x.json"), "{}\n").unwrap();
    let files = LocalFiles::new(root.clone());
    assert!(protected(files.rename(Path::new("x.json"), Path::new("launch.json")).map(drop)));
    files.rename(Path::new("x.json"), Path::new("y.json")).unwrap();
}

#[test]
fn no_repository_is_made_in_a_folder_that_is_laid_out_like_one() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    repositories(&base);
    for (folder, is_protected) in [
        ("bare", true),
        ("bare/hooks", true),
        ("bare/hooks/new", true),
        ("bare/info", true),
        ("bare/refs", true),
        ("bare/refs/heads", true),
        ("bare/objects", true),
        ("bare/objects/info", true),
        ("bare/plain", true),
        ("bare/feature", false),
        ("bare/feature/hooks", false),
        ("repo", false),
        ("repo/hooks", false),
        ("repo/.git/hooks", true),
        ("plain/refs/heads", false),
        ("", false),
    ] {
        let place = base.join(folder);
        fs::create_dir_all(&place).unwrap();
        assert_eq!(lathe_workspace::is_protected_ground(&place), is_protected, "{folder}");
    }
}

/// Makes links with what is on the way to them; one that stands there goes.
fn link(base: &Path, name: &str, leads: &str) {
    let path = base.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(leads, path).unwrap();
}

#[tokio::test]
async fn where_a_protected_name_leads_is_protected_from_every_root_and_before_it_is_there() {
    let table = [
        // Nothing there yet.
        (".envrc", "env.sh", "", "env.sh", false),
        (".claude", "claude.d", "", "claude.d/settings.json", false),
        (".bashrc", "later/x", "", "later/x", false),
        (".bashrc", "later/../x", "", "x", false),
        (".vscode/settings.json", "../vs.json", "", "vs.json", false),
        (".vscode", "ide", "", "ide/tasks.json", false),
        (".idea", "ide", "", "ide/runConfigurations/x.xml", false),
        (".git/hooks", "../hk", "", "hk/pre-commit", false),
        // In a folder below, and by a chain.
        ("sub/.bashrc", "../rc", "", "rc", false),
        ("sub/deeper/.bashrc", "../../rc", "", "rc", false),
        ("sub/.vscode", "../data", "", "data/settings.json", false),
        (".bashrc", "chain/first", "", "chain/last", false),
        (".bashrc", "chain/first", "", "chain/second", false),
        // From a root below the top of the repository.
        (".git/hooks", "../sub/hooks", "", "sub/hooks/pre-commit", false),
        (".git/hooks", "../sub/hooks", "sub", "hooks/pre-commit", false),
        (".git/hooks", "../sub/hooks", "sub/hooks", "pre-commit", false),
        (".claude", "data", "data", "launch2.json", false),
        // In a repository inside, and in one without a `.git`.
        ("nested/.git/hooks", "../nh", "", "nested/nh/pre-commit", false),
        ("nested/.git/hooks", "../../nh", "", "nh/pre-commit", false),
        ("bare/config", "../cfg", "", "cfg", false),
        // Inside of a folder that is protected as a whole, there or not there yet.
        (".git/hooks/pre-commit", "../../scripts/pc", "", "scripts/pc", false),
        (".git/hooks/pre-commit", "../../sub/pc", "sub", "pc", false),
        (".git/info/attributes", "../../attr", "", "attr", false),
        (".git/worktrees/w/config.worktree", "../../../cfg", "", "cfg", false),
        ("nested/.git/hooks/pre-push", "../../../pp", "", "pp", false),
        ("bare/hooks/update", "../../up", "", "up", false),
        (".claude/settings.json", "../data/c.json", "", "data/c.json", false),
        (".claude/hooks/x.sh", "../../scripts/chook", "", "scripts/chook", false),
        (".claude/hooks", "../data", "", "data/x.sh", false),
        (".husky/pre-commit", "../scripts/hus", "", "scripts/hus", false),
        ("sub/.husky/pre-commit", "../hus", "sub", "hus", false),
        (".devcontainer/devcontainer.json", "../later.json", "", "later.json", false),
        (".ssh/config", "../sshconf", "", "sshconf", false),
        (".idea/runConfigurations/x.xml", "../../rc.xml", "", "rc.xml", false),
        (".hg/hgrc", "../rc", "", "rc", false),
        ("x.code-workspace", "ws.json", "", "ws.json", false),
        // In a folder that a link leads to, and by a chain.
        (".claude", "chain/folder", "", "agent.sh", false),
        (".claude/x", "../chain/first", "", "chain/last", false),
        // What is not led to is free.
        (".claude/up", "..", "", "a.txt", true),
        (".claude/worktrees/w/link", "../../../a.txt", "", "a.txt", true),
        (".git/hooks/pre-commit", "../../scripts/pc", "", "scripts/other", true),
        (".vscode", "ide", "", "ide/other.json", true),
        (".claude", "data", "sub", "data/x", true),
        (".envrc", ".", "", "a.txt", true),
        ("sub/.envrc", "..", "", "a.txt", true),
        (".envrc", ".envrc", "", "a.txt", true),
        ("sub/.bashrc", "../rc", "", "rc2", true),
    ];
    for (name, leads, root, file, free) in table {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        for folder in [".git", "nested/.git", "bare/objects", "bare/refs", "chain", "sub/hooks", "data"] {
            fs::create_dir_all(base.join(folder)).unwrap();
        }
        for head in [".git/HEAD", "nested/.git/HEAD", "bare/HEAD"] {
            fs::write(base.join(head), "ref: refs/heads/main\n").unwrap();
        }
        link(&base, "chain/first", "second");
        link(&base, "chain/second", "last");
        link(&base, "chain/folder/x", "../../agent.sh");
        if name.contains("worktrees/w/link") {
            // A work tree of its own.
            fs::create_dir_all(base.join(".claude/worktrees/w")).unwrap();
            fs::write(base.join(".claude/worktrees/w/.git"), "gitdir: ../../../.git\n").unwrap();
        }
        link(&base, name, leads);
        let root = base.join(root);
        let files = LocalFiles::confined(root.clone(), &base.join("no-home"));
        let path = root.join(file);
        let done = files.apply(vec![write(&path, Expect::Absent, "x\n")]).await;
        match (&done, free) {
            (Ok(_), true) => {}
            (Err(WorkspaceError::Protected(_)), false) => assert!(!path.exists()),
            _ => panic!("{name} -> {leads}, {} {file}: {done:?}", root.display()),
        }
    }
}

#[tokio::test]
async fn a_link_that_is_made_between_two_writes_counts_for_the_second() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    fs::create_dir(base.join("sub")).unwrap();
    let files = LocalFiles::new(base.clone());
    files.apply(vec![write(&base.join("rc"), Expect::Absent, "x\n")]).await.unwrap();
    link(&base, "sub/.bashrc", "../rc2");
    let done = files.apply(vec![write(&base.join("rc2"), Expect::Absent, "x\n")]).await;
    assert!(matches!(done, Err(WorkspaceError::Protected(_))), "{done:?}");
}

#[test]
fn no_folder_gets_a_name_that_a_protected_name_leads_to() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    link(&base, ".bashrc", "new/deep/rc");
    fs::create_dir_all(base.join("old/deep")).unwrap();
    fs::create_dir_all(base.join("other/deep")).unwrap();
    fs::write(base.join("old/deep/rc"), "x\n").unwrap();
    let files = LocalFiles::new(base.clone());
    let done = files.rename(Path::new("old"), Path::new("new"));
    assert!(matches!(done, Err(WorkspaceError::Protected(_))), "{done:?}");
    files.rename(Path::new("other"), Path::new("new")).unwrap();
}

#[test]
fn a_device_that_is_led_to_stays_free() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    fs::create_dir(base.join(".git")).unwrap();
    link(&base, ".envrc", "/dev/null");
    let named = |_: &Path, _: &Path| vec!["/dev/null".into()];
    let places = lathe_workspace::protected_targets(&base, named);
    assert!(!places.contains(&"/dev/null".into()), "{places:?}");
    let named = |top: &Path, _: &Path| vec![top.join("hh")];
    assert!(lathe_workspace::protected_targets(&base, named).contains(&base.join("hh")));
}
