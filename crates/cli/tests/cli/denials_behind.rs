//! A denied file is not read through git, by another name or through another program, in one call or across several.
//! Through the real binary.

use lathe_testkit::{FakeModel, Lathe, Script, TempRepo, call, say};
use serde_json::json;

use crate::{lathe, result};

/// Text that must never be printed.
pub(crate) const SECRET: &str = "hunter-two-of-seventy";

pub(crate) fn with_rule(field: &str, value: &str) -> Lathe {
    let lathe = lathe();
    std::fs::create_dir_all(lathe.home().join("policy")).unwrap();
    let rule = format!("[[rule]]\ndecision = \"deny\"\n{field} = [{value:?}]\n");
    std::fs::write(lathe.home().join("policy/mine.toml"), rule).unwrap();
    lathe
}

/// A repository with two commits, and a file that git does not know.
fn repo() -> TempRepo {
    let repo = TempRepo::with_git(&[("a.txt", "one\ntwo\n"), ("sub/b.txt", "bee\n")]);
    repo.write("a.txt", "one\nthree\n");
    repo.git(&["commit", "--quiet", "-am", "second"]);
    repo.write("secret.txt", format!("{SECRET}\n"));
    repo
}

fn shell(lathe: &Lathe, repo: &TempRepo, line: &str) -> String {
    let ran = lathe.clone().in_dir(repo.path()).args(["shell", "--mode", "full-auto", "-c", line]).run();
    format!("{}{}", ran.stdout, ran.stderr)
}

/// The results of the calls of one session, each call in an answer of its own.
pub(crate) fn session(lathe: &Lathe, repo: &TempRepo, lines: &[&str]) -> Vec<String> {
    let script = lines.iter().enumerate().fold(Script::new(), |script, (index, line)| {
        script.answer(call(&format!("c{index}"), "bash", json!({ "command": line })))
    });
    let model = FakeModel::serving(script.answer(say("ok")));
    let ran = lathe
        .clone()
        .in_dir(repo.path())
        .args(["run", "do it", "--mode", "full-auto", "--output", "stream-json"])
        .with_model(&model)
        .run();
    let events = ran.events();
    (0..lines.len()).map(|index| result(&events, &format!("c{index}"))).collect()
}

#[test]
fn a_denied_file_does_not_come_out_of_git() {
    let lathe = with_rule("path", "secret.txt");
    for lines in [
        &["git add . && git diff --cached"][..],
        &["git add .", "git diff --cached"],
        &[
            "git add -A; git commit -m x; git show",
            "git log -p",
            "git archive HEAD",
            "git format-patch --stdout --root HEAD",
        ],
        &["git stash -u && git stash show -p --include-untracked", "git stash show -p -u"],
        &["git add -f s*", "git cat-file --batch-all-objects --batch"],
        &["git hash-object -w *", "git cat-file --batch-all-objects --batch"],
        &["ls | git hash-object -w --stdin-paths", "git cat-file --batch-all-objects --batch"],
        &["git-add .", "git diff --cached"],
        &["git grep --untracked hunter", "git grep --no-index hunter", "git diff --no-index a.txt ."],
        &["git --work-tree=. add .", "git -c x.y=z diff --cached"],
        &["git stage .", "git commit -v --dry-run", "git status -v"],
    ] {
        let repo = repo();
        let told = session(&lathe, &repo, lines);
        for (line, told) in lines.iter().zip(&told) {
            assert!(!told.contains(SECRET), "{line}: {told}");
        }
        assert!(told[0].contains("denied"), "{lines:?}: {told:?}");
        assert!(repo.exists("secret.txt"), "{lines:?}");
    }
    // What is ignored is not taken in, so the rest may be.
    let repo = repo();
    repo.write(".gitignore", "secret.txt\n");
    repo.write("new.txt", "new\n");
    let told = shell(&lathe, &repo, "git add . && git diff --cached --name-only");
    assert!(told.contains("new.txt") && !told.contains("denied"), "{told}");
    let told = shell(&lathe, &repo, "rm .gitignore; git add .");
    assert!(told.contains("denied"), "{told}");
    // A file that the user tracks.
    repo.git(&["add", "-f", "secret.txt"]);
    for line in [
        "git diff --cached",
        "git status -v",
        "git checkout-index --prefix=x/ -a",
        "git add .",
        "git stash show -p",
    ] {
        let told = shell(&lathe, &repo, line);
        assert!(told.contains("denied") && !told.contains(SECRET), "{line}: {told}");
    }
    repo.git(&["commit", "--quiet", "-m", "third"]);
    for line in [
        "git show",
        "git log -p",
        "git log -1 --word-diff",
        "git archive HEAD",
        "git cat-file -p HEAD:secret.txt",
        "git blame secret.txt",
        "git worktree add ../t && cat ../t/*",
        "git clone . ../c",
        "git bundle create - HEAD",
        "git grep hunter",
        "git checkout HEAD~1 && git show main",
        "git reset -q HEAD~1",
        "git revert --no-edit HEAD",
        "git switch --detach HEAD~1",
        "cd sub && git show HEAD:secret.txt",
    ] {
        let told = shell(&lathe, &repo, line);
        assert!(told.contains("denied") && !told.contains(SECRET), "{line}: {told}");
    }
    let told = shell(&lathe, &repo, "git log --oneline && git show HEAD:a.txt && git status --short");
    assert!(told.contains("third") && told.contains("three"), "{told}");
}

#[test]
fn a_denied_file_is_not_read_by_another_name_a_list_or_a_variable() {
    let lathe = with_rule("path", "secret.txt");
    let repo = repo();
    std::fs::hard_link(repo.join("secret.txt"), repo.join("sub/hard")).unwrap();
    std::fs::hard_link(repo.join("a.txt"), repo.join("sub/soft")).unwrap();
    for line in [
        "cat sub/hard",
        "cat sub/*",
        "grep -r hunter sub",
        "tar cf - sub",
        "view sub/hard",
        "search hunter",
        "search hunter sub/hard",
        "git add sub",
        "find . -type f | tar cf - -T -",
        "ls | cpio -o",
        "BASH_ENV=secret.txt bash -xc true",
        "ENV=secret.txt sh -i < /dev/null",
        "shopt -s nocaseglob; cat SECRET*",
        "shopt -s extglob; eval 'cat @(secret).txt'",
        "shopt -s globstar; cat **",
    ] {
        let told = shell(&lathe, &repo, line);
        assert!(!told.contains(SECRET), "{line}: {told}");
        assert!(
            told.contains("denied") || told.contains("left out") || line.starts_with("search"),
            "{line}: {told}"
        );
    }
    assert!(shell(&lathe, &repo, "cat sub/soft").contains("three"));
    // What an earlier call left in the shell.
    for lines in [
        &["shopt -s nocaseglob", "cat SECRET*"][..],
        &["shopt -s extglob", "cat @(secret).txt", "eval 'cat +(secret).txt'"],
        &["export BASH_ENV=secret.txt", "bash -xc true"],
        &["x=secret.txt", "cat $x"],
        &["ln secret.txt b", "cat b"],
        &["shopt -s globstar", "cat **"],
    ] {
        for (line, told) in lines.iter().zip(session(&lathe, &repo, lines)) {
            assert!(!told.contains(SECRET), "{lines:?}: {line}: {told}");
        }
    }
}

#[test]
fn a_denied_command_does_not_run_behind_another_program() {
    let lathe = with_rule("command", "git push");
    let repo = repo();
    let far = TempRepo::new(&[]);
    far.git(&["init", "--quiet", "--bare"]);
    repo.git(&["remote", "add", "origin", &far.path().display().to_string()]);
    repo.git(&["config", "push.default", "current"]);
    repo.git(&["config", "alias.mine", "push"]);
    for line in [
        "git push origin main",
        "git mine origin main",
        "git -c alias.p=push p origin main",
        "git-push origin main",
        "\"$(git --exec-path)\"/git-push origin main",
        "git rebase -x 'git push origin main' HEAD~1",
        "git submodule foreach git push",
        "git config alias.x '!git push origin main'; git x",
        "sed '1e git push origin main' a.txt",
        "awk 'BEGIN{system(\"git push origin main\")}'",
        "perl -e 'system(\"git push origin main\")'",
        "python3 -c 'import subprocess; subprocess.run([\"git\",\"push\",\"origin\",\"main\"])'",
        "make --eval='x:;git push origin main' x",
        "env -S 'git push origin main'",
        "printf 'git push origin main' > s.sh && sh s.sh",
        "PROMPT_COMMAND='git push origin main'",
        "GIT_EDITOR='git push origin main; true' git commit --allow-empty",
        "ln -s \"$(command -v git)\" g && ./g push origin main",
        "git send-pack origin main",
    ] {
        let told = shell(&lathe, &repo, line);
        assert!(told.contains("denied"), "{line}: {told}");
    }
    for lines in [
        &["x=push", "git $x origin main"][..],
        &["g=git", "$g push origin main"],
        &["alias p='git push origin main'", "p"],
        &["trap 'git push origin main' EXIT", "true"],
    ] {
        session(&lathe, &repo, lines);
    }
    assert_eq!(far.git(&["for-each-ref"]).trim(), "", "something was pushed");
    let told = shell(
        &lathe,
        &repo,
        "git -c user.name=me -c user.email=me@example.org commit --allow-empty -qm 'do not git push' && git log --oneline -1",
    );
    assert!(told.contains("do not git push"), "{told}");
}

#[test]
fn a_denied_kind_has_no_effect_by_any_program() {
    for (kind, lines) in [
        (
            "edit",
            &[
                "perl -pi -e s/one/ONE/ a.txt",
                "python3 -c 'open(\"a.txt\",\"w\")'",
                "printf '1s/one/ONE/\\nw\\n' | ed -s a.txt",
                "git checkout HEAD~1 -- a.txt",
                "sed '1w a.txt' sub/b.txt",
                "awk '{print > \"a.txt\"}' sub/b.txt",
                "rsync sub/b.txt a.txt",
            ][..],
        ),
        (
            "delete",
            &[
                "gzip a.txt",
                "git rm -q a.txt",
                "tar cf x.tar a.txt --remove-files",
                "truncate -s0 a.txt",
                "find . -name a.txt -delete",
                "perl -e 'unlink \"a.txt\"'",
                "git reset -q --hard HEAD~1",
                "env unlink a.txt",
                "sed '1e rm a.txt' sub/b.txt",
            ],
        ),
        (
            "move",
            &[
                "git mv a.txt b.txt",
                "mv a.txt b.txt",
                "python3 -c 'import os; os.rename(\"a.txt\",\"b.txt\")'",
            ],
        ),
        (
            "fetch",
            &[
                "git fetch .",
                "git clone . x",
                "pip install --no-index nothing",
                "npm install",
                "git submodule update",
            ],
        ),
    ] {
        let lathe = with_rule("kind", kind);
        let repo = repo();
        for line in lines {
            let told = shell(&lathe, &repo, line);
            assert!(told.contains("denied"), "{kind}: {line}: {told}");
            assert_eq!(repo.read("a.txt"), "one\nthree\n", "{kind}: {line}");
        }
        let told = shell(&lathe, &repo, "cat a.txt && git log --oneline");
        assert!(told.contains("three") && told.contains("second"), "{kind}: {told}");
    }
}

#[test]
fn the_code_graph_names_the_rule_and_no_file_that_it_denies() {
    let lathe = with_rule("path", "private/**");
    let repo = TempRepo::with_git(&[("open.py", "def seen(): pass\n")]);
    repo.write("private/ledger.py", format!("def f(): return '{SECRET}'\n"));
    let script = ["seen", "ledger.py", "private/ledger.py"].iter().enumerate();
    let script = script.fold(Script::new(), |script, (index, target)| {
        let asked = json!({ "command": "refs", "target": target });
        script.answer(call(&format!("c{index}"), "code", asked))
    });
    let model = FakeModel::serving(script.answer(say("ok")));
    let run = ["run", "do it", "--mode", "full-auto", "--output", "stream-json"];
    let ran = lathe.clone().in_dir(repo.path()).args(run).with_model(&model).run();
    let told = result(&ran.events(), "c0");
    assert!(told.contains("a rule does not let `private/**` be read"), "{told}");
    for index in 0..3 {
        let told = result(&ran.events(), &format!("c{index}"));
        assert!(!told.contains(SECRET) && (index > 0 || !told.contains("ledger")), "{told}");
    }
}
