//! No program that a repository's configuration names is run, under any setting.

use std::path::Path;
use std::process::Command;

use lathe_git::{Boundary, CallFolder, ContentRules, IndexUse, Repository};
use lathe_testkit::{PROGRAM_SETTINGS, TempRepo, plant_setting};

/// Commands of every caller, readers and writers.
const CALLS: [&[&str]; 22] = [
    &["checkout", "--quiet", "--", "b.txt"],
    &["status", "--porcelain=v1", "--ignore-submodules=dirty"],
    &["diff", "HEAD"],
    &["diff", "--cached", "HEAD"],
    &["diff-files", "--name-only", "--ignore-submodules=all"],
    &["ls-files", "-s", "-v"],
    &["ls-files", "--others", "--exclude-standard"],
    &["check-attr", "--all", "a.txt"],
    &["log", "--format=%H %an %B", "-p"],
    &["log", "-g", "--format=%H %gs", "HEAD"],
    &["show", "HEAD"],
    &["cat-file", "blob", "HEAD:a.txt"],
    &["rev-parse", "--verify", "HEAD^{commit}"],
    &["for-each-ref"],
    &["add", "--all"],
    &["write-tree"],
    &["commit", "--quiet", "--no-edit", "--message=x"],
    &["update-ref", "refs/lathe/kept/x", "HEAD"],
    &["reset", "--quiet", "--", "a.txt"],
    &["fsck", "--connectivity-only"],
    &["read-tree", "HEAD"],
    &["symbolic-ref", "HEAD"],
];

fn marks(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.to_string_lossy().into_owned()).collect()
}

fn hostile(setting: (&str, &str), marks: &Path) -> TempRepo {
    let repo = TempRepo::with_git(&[("a.txt", "one\n"), ("b.txt", "two\n")]);
    repo.write("a.txt", "changed\n");
    repo.write("c.txt", "new\n");
    std::fs::remove_file(repo.join("b.txt")).unwrap();
    plant_setting(&repo, setting, marks);
    repo
}

#[test]
fn no_call_runs_what_one_of_sixty_settings_names() {
    let folder = tempfile::tempdir().unwrap();
    for setting in PROGRAM_SETTINGS {
        let repo = hostile(setting, folder.path());
        let repository = Repository::find(repo.path(), &Boundary::Anywhere).unwrap();
        let ways = [
            (ContentRules::Tree, CallFolder::Top),
            (ContentRules::Bytes, CallFolder::Folder),
            (ContentRules::User, CallFolder::Folder),
        ];
        for (content, place) in ways {
            for words in CALLS {
                // Calls with the user's configuration only look things up.
                if content == ContentRules::User && words[0] != "check-attr" {
                    continue;
                }
                let _ = repository
                    .indexed(IndexUse::Write, content, place)
                    .unwrap()
                    .args(words)
                    .command()
                    .output()
                    .unwrap();
                assert_eq!(marks(folder.path()), Vec::<String>::new(), "{} by git {words:?}", setting.0);
            }
        }
        let committed = repo.git(&["-c", "core.fsmonitor=false", "--git-dir=.git", "rev-parse", "HEAD"]);
        assert_eq!(committed.trim().len(), 40, "{}", setting.0);
    }
}

/// The settings do work where git reads them, or the test above would show nothing.
#[test]
fn the_settings_do_run_programs_where_git_reads_them() {
    let folder = tempfile::tempdir().unwrap();
    let biting = [
        "fsmonitor",
        "hooks-path",
        "textconv",
        "driver",
        "driver a=b",
        "clean",
        "smudge",
        "process",
        "clean a=b",
        "process a=b",
        "external-diff",
        "gpg",
        "include",
        "include-if-gitdir",
        "include-if-branch",
        "worktree-config",
        "attributes-file",
        "required",
    ];
    for setting in PROGRAM_SETTINGS.into_iter().filter(|(name, _)| biting.contains(name)) {
        let repo = hostile(setting, folder.path());
        for words in CALLS.iter().filter(|words| words[0] != "fsck") {
            let mut command = Command::new("git");
            command.args(*words).current_dir(repo.path()).env("GIT_CONFIG_GLOBAL", "/dev/null");
            let who = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];
            command.envs(who.map(|name| (name, "x"))).stdin(std::process::Stdio::null()).output().unwrap();
        }
    }
    let ran = marks(folder.path());
    for name in biting.map(|name| name.replace([' ', '='], "-")) {
        assert!(ran.contains(&name), "{name} does nothing; these do: {ran:?}");
    }
}

#[test]
fn what_git_sees_is_our_configuration_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    for setting in PROGRAM_SETTINGS {
        let repo = hostile(setting, folder.path());
        let repository = Repository::find(repo.path(), &Boundary::Anywhere).unwrap();
        let call = repository.indexed(IndexUse::Write, ContentRules::Tree, CallFolder::Top).unwrap().args([
            "config",
            "--list",
            "--show-scope",
            "--name-only",
        ]);
        let listed = String::from_utf8(call.output().unwrap()).unwrap();
        let local: Vec<&str> = listed.lines().filter_map(|line| line.strip_prefix("local\t")).collect();
        let usual = [
            "core.bare",
            "core.repositoryformatversion",
            "core.filemode",
            "core.logallrefupdates",
            "user.name",
            "user.email",
            "core.ignorecase",
            "core.precomposeunicode",
            "core.symlinks",
        ];
        let odd: Vec<&&str> = local.iter().filter(|key| !usual.contains(key)).collect();
        assert!(odd.is_empty(), "{}: {odd:?}", setting.0);
    }
}

/// Git would end with an error if it opened the file.
#[test]
fn git_never_opens_the_configuration_of_the_repository() {
    let repo = TempRepo::with_git(&[("a.txt", "one\n"), ("b.txt", "two\n")]);
    repo.git(&["config", "user.name", "x"]);
    repo.git(&["config", "user.email", "x"]);
    repo.git(&["config", "extensions.worktreeConfig", "true"]);
    repo.write("a.txt", "changed\n");
    let repository = Repository::find(repo.path(), &Boundary::Anywhere).unwrap();
    for file in [".git/config", ".git/config.worktree"] {
        repo.write(file, "[broken");
    }
    for (content, place) in [(ContentRules::Tree, CallFolder::Top), (ContentRules::Bytes, CallFolder::Folder)]
    {
        for words in CALLS {
            repo.write("a.txt", format!("{content:?}\n"));
            let done = repository
                .indexed(IndexUse::Write, content, place)
                .unwrap()
                .args(words)
                .command()
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "git {words:?}: {said}");
        }
    }
    assert!(!Command::new("git").arg("status").current_dir(repo.path()).output().unwrap().status.success());
}

/// A submodule with a configuration of its own, inside another.
#[test]
fn git_is_not_started_in_repositories_inside() {
    let folder = tempfile::tempdir().unwrap();
    let line = format!("touch {}/inner", folder.path().display());
    let repo = TempRepo::with_git(&[("a.txt", "one\n")]);
    for inner in ["sub/deep", "sub", "embedded"] {
        repo.write(&format!("{inner}/x.txt"), "x\n");
        repo.git(&["init", "-q", inner]);
        repo.git(&["-C", inner, "add", "x.txt"]);
        repo.git(&["-C", inner, "commit", "-q", "-m", "x"]);
    }
    repo.git(&["-C", "sub", "add", "deep"]);
    repo.git(&["-C", "sub", "commit", "-q", "-m", "deep"]);
    repo.git(&["add", "sub"]);
    repo.git(&["commit", "-q", "-m", "sub"]);
    for inner in ["sub/deep", "sub", "embedded"] {
        let config = format!(
            "[core]\nfsmonitor = \"{line}; false\"\n[diff \"x\"]\ncommand = \"{line}\"\n[filter \"x\"]\nclean = \"{line}; cat\"\n"
        );
        let before = repo.read(&format!("{inner}/.git/config"));
        repo.write(&format!("{inner}/.git/config"), before + &config);
        repo.write(&format!("{inner}/.git/info/attributes"), "* diff=x filter=x\n");
        repo.write(&format!("{inner}/x.txt"), "changed\n");
    }
    let config = "[diff]\nsubmodule = diff\nignoreSubmodules = none\n[status]\nsubmoduleSummary = true\n[submodule]\nrecurse = true\n";
    let before = repo.read(".git/config");
    repo.write(".git/config", before + config);
    let repository = Repository::find(repo.path(), &Boundary::Anywhere).unwrap();
    for words in [
        &["status", "--porcelain=v1", "--ignore-submodules=dirty", "--untracked-files=all"][..],
        &["diff", "--submodule=short", "--ignore-submodules=dirty", "HEAD"],
        &["diff-files", "--ignore-submodules=all"],
        &["update-index", "--remove", "--", "sub"],
        &["reset", "--quiet", "--", "sub"],
        &["checkout", "--quiet", "--no-recurse-submodules", "--", "a.txt"],
    ] {
        repository
            .indexed(IndexUse::Write, ContentRules::Tree, CallFolder::Top)
            .unwrap()
            .args(words)
            .command()
            .output()
            .unwrap();
        assert_eq!(marks(folder.path()), Vec::<String>::new(), "git {words:?}");
    }
    // The trick works without these precautions.
    let _ = Command::new("git").args(["diff", "HEAD"]).current_dir(repo.path()).output().unwrap();
    assert_eq!(marks(folder.path()), ["inner"]);
}
