//! Every kind of repository that people have works as git itself does.

use std::process::Command;
use std::sync::Arc;

use lathe_git::{
    Boundary, CallFolder, ContentRules, GitError, IndexUse, Init, Repository, Snapshots, prepare_init,
};
use lathe_testkit::TempRepo;
use lathe_workspace::LocalProcesses;

fn said(repository: &Repository, words: &[&str]) -> String {
    let mut call = repository.indexed(IndexUse::Write, ContentRules::Tree, CallFolder::Top).unwrap();
    for name in ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"] {
        call.variable(name, "x");
    }
    let done = call.args(words).command().output().unwrap();
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap().trim_end().to_owned()
}

/// Stages and commits through us, and looks at it with plain git.
#[track_caller]
fn commits(repo: &TempRepo, folder: &str) {
    let repository = Repository::find(&repo.join(folder), &Boundary::Roots(vec![root(repo)])).unwrap();
    repo.write(&format!("{folder}/a.txt"), "two\n");
    assert_eq!(said(&repository, &["status", "--porcelain"]), " M a.txt");
    said(&repository, &["add", "a.txt"]);
    said(&repository, &["commit", "-q", "-m", "by us"]);
    let plain = |words: &[&str]| repo.git(&[&["-C", folder], words].concat());
    assert_eq!(plain(&["log", "-1", "--format=%s"]).trim(), "by us");
    assert_eq!(plain(&["status", "--porcelain"]).trim(), "");
    assert_eq!(plain(&["log", "-g", "-1", "--format=%gs"]).trim(), "commit: by us");
    assert_eq!(said(&repository, &["rev-parse", "HEAD@{1}"]), plain(&["rev-parse", "HEAD~1"]).trim());
}

fn root(repo: &TempRepo) -> std::path::PathBuf {
    repo.path().canonicalize().unwrap()
}

#[test]
fn commits_land_in_every_kind_of_repository() {
    for flags in [&[][..], &["--object-format=sha256"], &["--ref-format=reftable"]] {
        let repo = TempRepo::new(&[]);
        let words = [&["init", "-q", "main"][..], flags].concat();
        repo.git(&words);
        repo.write("main/a.txt", "one\n");
        repo.git(&["-C", "main", "add", "."]);
        repo.git(&["-C", "main", "commit", "-q", "-m", "first"]);
        repo.git(&["-C", "main", "pack-refs", "--all"]);
        repo.git(&["-C", "main", "worktree", "add", "-q", "../linked"]);
        repo.git(&["-C", "main", "worktree", "add", "-q", "--detach", "../detached"]);
        repo.git(&["init", "-q", "--separate-git-dir=elsewhere", "separate"]);
        repo.write("separate/a.txt", "one\n");
        repo.git(&["-C", "separate", "add", "."]);
        repo.git(&["-C", "separate", "commit", "-q", "-m", "first"]);
        for folder in ["main", "linked", "detached", "separate"] {
            commits(&repo, folder);
        }
    }
}

#[test]
fn upstreams_shallow_clones_ignored_files_and_line_ends_are_known() {
    let repo = TempRepo::with_git(&[("a.txt", "one\n")]);
    repo.commit("second");
    let url = format!("file://{}", repo.path().display());
    repo.git(&["-c", "protocol.file.allow=always", "clone", "-q", "--depth=1", &url, "clone"]);
    let clone = Repository::find(&repo.join("clone"), &Boundary::Anywhere).unwrap();
    assert_eq!(said(&clone, &["log", "--format=%s"]), "second");
    assert_eq!(said(&clone, &["rev-parse", "@{upstream}"]), repo.git(&["rev-parse", "HEAD"]).trim());
    repo.write("clone/.git/info/exclude", "ignored\n");
    repo.write("clone/ignored", "x");
    repo.git(&["-C", "clone", "config", "core.autocrlf", "true"]);
    repo.write("clone/a.txt", "one\r\n");
    let clone = Repository::find(&repo.join("clone"), &Boundary::Anywhere).unwrap();
    assert_eq!(said(&clone, &["status", "--porcelain"]), " M a.txt");
    // With the line ends converted nothing is left of the change.
    assert_eq!(said(&clone, &["diff", "HEAD"]), "");
}

#[tokio::test]
async fn patches_are_made_where_a_path_holds_a_colon_or_a_quote() {
    for name in ["a:b", "a\"b", "a\\b", "a b"] {
        let repo = TempRepo::new(&[]);
        repo.git(&["init", "-q", name]);
        repo.write(&format!("{name}/a.txt"), "one\n");
        repo.git(&["-C", name, "add", "."]);
        repo.git(&["-C", name, "commit", "-q", "-m", "first"]);
        let git = Snapshots::find(Arc::new(LocalProcesses), &repo.join(name), repo.join("scratch")).unwrap();
        let before = git.snapshot().await.unwrap();
        repo.write(&format!("{name}/a.txt"), "two\n");
        let patch = String::from_utf8(git.patch(&before).await.unwrap()).unwrap();
        assert!(patch.contains("-one\n+two\n"), "{name}: {patch}");
        assert_eq!(git.changed(&before).await.unwrap(), ["a.txt"]);
        assert_eq!(repo.git(&["-C", name, "status", "--porcelain"]).trim(), "M a.txt");
    }
}

#[test]
fn a_folder_becomes_a_repository_once_and_nothing_that_is_there_is_written() {
    let repo = TempRepo::new(&[("new/x", ""), ("odd/.git/config", "[core]\nfsmonitor = x\n")]);
    let within = Boundary::Roots(vec![root(&repo)]);
    let Init::Call(made) = prepare_init(&repo.join("new"), &within).unwrap() else { panic!("it is new") };
    assert!(made.call.command().status().unwrap().success());
    assert!(repo.exists("new/.git/HEAD"));
    assert!(matches!(prepare_init(&repo.join("new"), &within).unwrap(), Init::Existed));
    assert!(matches!(prepare_init(&repo.join("odd"), &within), Err(GitError::Refused { .. })));
    assert_eq!(repo.read("odd/.git/config"), "[core]\nfsmonitor = x\n");
}

#[test]
fn a_configuration_that_git_cannot_read_is_an_error_that_names_file_and_line() {
    let repo = TempRepo::with_git(&[("a.txt", "one\n")]);
    let good = repo.read(".git/config");
    for (bad, why) in [
        ("[core\n", "the name of a section does not end"),
        ("[core]\nautocrlf = perhaps\n", "core.autocrlf"),
        ("[extensions]\nfuture = yes\n", "extension `future`"),
    ] {
        repo.write(".git/config", good.clone() + bad);
        let error = Repository::find(repo.path(), &Boundary::Anywhere).unwrap_err().to_string();
        assert!(error.contains(why) && error.contains(".git/config, line "), "{error}");
    }
}

#[test]
fn temporary_folders_are_gone_with_the_repository() {
    let repo = TempRepo::with_git(&[("a.txt", "one\n")]);
    let repository = Repository::find(repo.path(), &Boundary::Anywhere).unwrap();
    let env = repository.call(ContentRules::Bytes, CallFolder::Top).spawn().env;
    let common = env.iter().find(|(name, _)| name == "GIT_COMMON_DIR").unwrap().1.clone();
    assert!(std::path::Path::new(&common).join("config").exists());
    drop(repository);
    assert!(!std::path::Path::new(&common).exists());
}

#[test]
fn git_is_not_taken_from_the_work_tree_or_a_relative_part_of_path() {
    // PATH belongs to the process, so another one looks.
    if std::env::var_os("LATHE_TEST_TREE").is_some() {
        let tree = std::env::var_os("LATHE_TEST_TREE").unwrap();
        let repository = Repository::find(std::path::Path::new(&tree), &Boundary::Anywhere).unwrap();
        let spawn = repository.call(ContentRules::Bytes, CallFolder::Folder).spawn();
        let path =
            spawn.env.iter().find(|(name, _)| name == "PATH").unwrap().1.to_string_lossy().into_owned();
        println!("git={} path={path}", spawn.argv[0].display());
        return;
    }
    let repo = TempRepo::with_git(&[("a.txt", "one\n"), ("sub/x", "")]);
    for name in ["git", "bin/git", "sub/git"] {
        repo.write(name, "#!/bin/sh\n");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(repo.join(name), mode).unwrap();
    }
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(repo.join("git"), outside.path().join("git")).unwrap();
    // Nor from another work tree, of which this one may be a copy.
    let other = TempRepo::with_git(&[("git", "#!/bin/sh\n")]);
    std::fs::set_permissions(other.join("git"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!(
        ".::bin:{0}:{0}/bin:{1}:{3}:{2}",
        repo.path().display(),
        outside.path().display(),
        std::env::var("PATH").unwrap(),
        other.path().display()
    );
    let ran = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "kinds::git_is_not_taken_from_the_work_tree_or_a_relative_part_of_path",
            "--nocapture",
        ])
        .env("PATH", path)
        .env("LATHE_TEST_TREE", repo.join("sub"))
        .current_dir(repo.path())
        .output()
        .unwrap();
    let said = String::from_utf8(ran.stdout).unwrap();
    let line = said.lines().find(|line| line.contains("git=")).unwrap();
    let inside = repo.path().display().to_string();
    assert!(!line.contains(&inside) && !line.contains("path=.") && !line.contains("::"), "{line}");
    for folder in [outside.path(), other.path()] {
        assert!(!line.contains(&format!("git={}", folder.display())), "{line}");
    }
}
