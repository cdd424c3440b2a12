//! Lines in full-auto through the real binary: denied paths reached through git's objects and writers, settings of
//! git and targets that only the running line knows, commands of Lathe itself, and questions about Lathe's own
//! folder.

use lathe_testkit::{Lathe, TempRepo};

use crate::denials_behind::{SECRET, with_rule};
use crate::{denials_behind, lathe};

/// The answer to each line. A session ends after a few denials in a row, so there are several.
fn session(lathe: &Lathe, repo: &TempRepo, lines: &[&str]) -> Vec<String> {
    lines.chunks(2).flat_map(|lines| denials_behind::session(lathe, repo, lines)).collect()
}

/// A repository with a denied folder that git tracks.
fn repo() -> TempRepo {
    let repo = TempRepo::with_git(&[("a.txt", "one\n"), ("docs/b.txt", "bee\n"), ("docs/plan.txt", "old\n")]);
    repo.write("docs/plan.txt", format!("{SECRET}\n"));
    repo.git(&["commit", "--quiet", "-am", "second"]);
    repo
}

#[test]
fn a_denied_path_is_not_read_behind_an_object_of_git() {
    let (repo, lathe) = (repo(), with_rule("path", "docs/plan.txt"));
    let tree = repo.git(&["rev-parse", "HEAD:docs"]);
    let blob = repo.git(&["rev-parse", "HEAD:docs/plan.txt"]);
    let (tree, blob) = (tree.trim(), blob.trim());
    let lines = [
        format!("git show {tree}:plan.txt"),
        format!("git cat-file -p {tree}:plan.txt"),
        format!("git --no-pager show {}:plan.txt", &tree[..8]),
        format!("git cat-file -p {blob}"),
        format!("git show {blob}"),
        format!("git tag t {tree}; git show t:plan.txt"),
        format!("git tag t {tree}"),
        "git show t:plan.txt".to_owned(),
        format!("c=$(git commit-tree {tree} -m x); git show $c~0:plan.txt"),
        format!("git replace -f $(git rev-parse HEAD:a.txt) {blob}"),
        "git show HEAD:a.txt".to_owned(),
        format!("git update-index --cacheinfo 100644,{blob},a.txt; git show :a.txt"),
        "git log -sp".to_owned(),
        "cp -r .git copy; git -C copy show HEAD:docs/plan.txt".to_owned(),
        format!("cat .git/objects/{}/{}", &blob[..2], &blob[2..]),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    for (line, told) in lines.iter().zip(session(&lathe, &repo, &lines)) {
        assert!(!told.contains(SECRET), "{line}: {told}");
    }
    let told = session(&lathe, &repo, &["git show HEAD:docs/b.txt", &format!("git show {tree}:b.txt")]);
    assert!(told.iter().all(|told| told.contains("bee")), "{told:?}");
}

#[test]
fn a_denied_path_is_not_written_by_git() {
    let (repo, lathe) = (repo(), with_rule("path", "docs/plan.txt"));
    repo.write("docs/plan.txt", "mine\n");
    let lines = [
        "git restore .",
        "git restore docs",
        "git restore -s HEAD~1 ':(glob)**/plan.txt'",
        "git checkout -- .",
        "git checkout HEAD~1 -- docs",
        "git checkout HEAD~1 --",
        "git stash",
        "git stash push -m x",
        "git reset --hard",
        "git reset --har HEAD~1",
        "git checkout -f",
        "git diff HEAD HEAD~1 > ../p; git apply ../p",
        "git revert --no-edit HEAD",
        "git read-tree -u --reset HEAD",
        "mkdir -p x && echo new > x/plan.tx && mv x/plan.tx x/plan.txt; cp x/plan.txt docs",
    ];
    for (line, told) in lines.iter().zip(session(&lathe, &repo, &lines)) {
        assert!(told.contains("denied by policy"), "{line}: {told}");
        assert_eq!(repo.read("docs/plan.txt"), "mine\n", "{line}: {told}");
    }
    let free = ["git restore --staged .", "git checkout -b x", "git stash list", "git clean -n"];
    for (line, told) in free.iter().zip(session(&lathe, &repo, &free)) {
        assert!(!told.contains("denied by policy"), "{line}: {told}");
    }
}

#[test]
fn a_denied_path_is_not_guessed_by_searches_of_git() {
    let (repo, lathe) = (repo(), with_rule("path", "docs/plan.txt"));
    let blob = repo.git(&["rev-parse", "HEAD:docs/plan.txt"]);
    let tree = repo.git(&["rev-parse", "HEAD:docs"]);
    let (blob, tree) = (blob.trim(), tree.trim());
    let lines = [
        format!("git log --oneline -S {SECRET}"),
        format!("git log --oneline -G{SECRET} -- docs"),
        format!("git rev-list --count -S {SECRET} HEAD"),
        format!("git diff --stat -S {SECRET} HEAD~1"),
        format!("git grep -c {SECRET}"),
        format!("git log --oneline --find-object={blob}"),
        "git diff --stat -I old HEAD~1".to_owned(),
        format!("git show -s {blob}"),
        format!("git show {blob} -- a.txt"),
        format!("git diff {blob} -- a.txt"),
        format!("git checkout {tree} -- plan.txt; cat plan.txt"),
        "git restore -s HEAD:docs plan.txt".to_owned(),
        "git log -C -p".to_owned(),
        "git diff HEAD~1 -- ':!a.txt'".to_owned(),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    for (line, told) in lines.iter().zip(session(&lathe, &repo, &lines)) {
        assert!(told.contains("denied by policy"), "{line}: {told}");
        assert!(!told.replace(line, "").contains("second"), "{line}: {told}");
    }
    assert!(!repo.exists("plan.txt"));
    repo.write("a.txt", "more\n");
    for (line, shown) in [
        ("git diff -- ':!docs'", "+more"),
        ("git diff -- ':(exclude)docs'", "+more"),
        ("git log -S one --format=found -- a.txt", "found"),
        ("git cat-file -p HEAD", "second"),
        ("git cat-file -p HEAD~1 | head -1", "tree "),
        ("git cat-file -t HEAD:docs/plan.txt", "blob"),
        ("git cat-file -p 'HEAD^{tree}'", "a.txt"),
    ] {
        let told = session(&lathe, &repo, &[line]).remove(0);
        assert!(told.contains(shown) && !told.contains(SECRET), "{line}: {told}");
    }
}

#[test]
fn a_denial_names_the_rule_and_its_pattern_to_the_model() {
    let (repo, lathe) = (repo(), with_rule("path", "docs/**"));
    for (line, cause) in [
        ("git restore .", "it may write docs/**, which "),
        ("git diff HEAD~1", "it may read docs/**, which "),
        ("cat docs/plan.txt", "it reads docs/**, which "),
    ] {
        let told = session(&lathe, &repo, &[line]).remove(0);
        let (_, rest) = told.split_once(cause).expect(&told);
        assert!(rest.contains("mine.toml:1 denies"), "{line}: {told}");
        assert!(!rest.contains("plan.txt"), "{line}: {told}");
    }
}

#[test]
fn settings_targets_and_lathe_itself_are_out_of_a_lines_reach() {
    let (repo, lathe) = (TempRepo::with_git(&[("a.txt", "one\n")]), lathe());
    std::fs::create_dir_all(lathe.home()).unwrap();
    std::fs::write(lathe.home().join("planted"), SECRET).unwrap();
    repo.write("key", "core.pager ./x\n");
    repo.write("name", "core.pager");
    repo.write("to", ".git/hooks/zz\n");
    let config = repo.read(".git/config");
    let home = lathe.home().canonicalize().unwrap();
    let lines = [
        "xargs git config core.pager < name".to_owned(),
        "xargs -a key git config".to_owned(),
        "cat key | xargs -n2 git config".to_owned(),
        "find name -exec git config --add core.{} x \\;".to_owned(),
        "git config $(cat key)".to_owned(),
        "git config --comment --list core.pager ./x".to_owned(),
        "git config -- core.pager -x".to_owned(),
        "GIT_EDITOR='cp a.txt' git config --ed".to_owned(),
        "t=$(cat to); tee \"$t\" < .git/config".to_owned(),
        "ls .git; read t < to; echo x > \"$t\"".to_owned(),
        "find .git -name config -exec cp a.txt {} \\;".to_owned(),
        "python3 -c \"from pathlib import Path; Path('.git','config').write_text('x')\"".to_owned(),
        "ls a.txt | cpio -pd .git/hooks".to_owned(),
        "lathe serve".to_owned(),
        "$(which lathe) auth login x".to_owned(),
        "echo gc | xargs lathe".to_owned(),
        "/proc/$PPID/exe run x".to_owned(),
        format!("[ -f {}/planted ] && echo it-is-there", home.display()),
        format!("[[ -e {}/planted ]] && echo it-is-there", home.display()),
        "[ -f \"$LATHE_HOME/planted\" ] && echo it-is-there".to_owned(),
        "cat $LATHE_HOME/planted".to_owned(),
        format!("for f in {}/*; do echo \"$f\"; done", home.display()),
        format!("cat /proc/self/root{}/planted", home.display()),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    for (line, told) in lines.iter().zip(session(&lathe, &repo, &lines)) {
        assert!(told.contains("denied by policy"), "{line}: {told}");
        assert!(!told.contains(SECRET) && !told.contains("it-is-there\n"), "{line}: {told}");
    }
    assert_eq!(repo.read(".git/config"), config);
    assert!(!repo.exists(".git/hooks/zz") && !repo.exists(".git/hooks/a.txt"));
    let told = session(&lathe, &repo, &["cat /proc/self/cwd/a.txt", "cat /proc/$$/cwd/a.txt"]);
    assert!(told.iter().all(|told| told.contains("one")), "{told:?}");
}
