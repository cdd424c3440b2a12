//! A denied kind, and a denied command, by every program that does it and through every program that runs it (issue
//! 15).

use lathe_policy::{Gate, Rulebook, Tier};
use lathe_protocol::{Actor, Mode, Verdict};

use crate::corpus::gate as anywhere;
use crate::kind_lines::{FETCH, READ, SEARCH};

fn gate() -> Gate {
    Gate { here: Some("/w".into()), user_home: Some("/home/me".into()), ..anywhere() }
}

fn book(rule: &str) -> Rulebook {
    let rule = format!("[[rule]]\ndecision = \"deny\"\n{rule}\n");
    Rulebook::builtin().with_file(Tier::User, "f.toml", &rule).unwrap()
}

/// The lines of a kind that are not decided so.
fn wrong<'l>(rules: &Rulebook, verdict: Verdict, lines: &[&'l str]) -> Vec<&'l str> {
    let decided = |line: &&&str| {
        gate().decide_line(rules, Actor::Model, Mode::FullAuto, line).decision.verdict != verdict
    };
    lines.iter().filter(decided).copied().collect()
}

const EDIT: [&str; 74] = [
    "patch -p1 < x.diff",
    "patch a x.diff",
    "perl -pi -e s/a/b/ f",
    "perl -i.bak -pe 1 f",
    "ruby -i -pe 1 f",
    "rsync -a a/ b/",
    "ed f",
    "ed -s f <<< w",
    "ex f",
    "vim f",
    "vim -es +wq f",
    "nvim f",
    "gofmt -w f.go",
    "goimports -w .",
    "rustfmt src/a.rs",
    "black .",
    "black f.py",
    "prettier --write .",
    "npx prettier --write .",
    "eslint --fix .",
    "ruff check --fix",
    "ruff check --fix-only .",
    "ruff format",
    "isort .",
    "clang-format -i a.c",
    "cargo fmt",
    "cargo fmt --all",
    "cargo fix",
    "cargo clippy --fix",
    "cargo add serde",
    "gcc -o x a.c",
    "gcc a.c",
    "cc -c a.c",
    "rustc a.rs",
    "git clone u d",
    "git init",
    "git init x",
    "git config a.b c",
    "git apply x.diff",
    "git am x",
    "git mv a b",
    "git checkout main",
    "git checkout -- a",
    "git merge x",
    "git pull",
    "git rebase x",
    "git stash",
    "git add .",
    "git commit -m x",
    "git restore a",
    "git switch x",
    "git-apply x",
    "go fmt ./...",
    "go mod tidy",
    "npm install",
    "pip install x",
    "sponge f",
    "dd of=f",
    "tar xf a.tar",
    "tar cf a.tar b",
    "unzip a.zip",
    "sd a b f",
    "yq -i .a=1 f.yml",
    "dos2unix f",
    "pandoc -o a.pdf a.md",
    "foo --in-place f",
    "foo --output=x",
    "python3 -c 'open(\"a\",\"w\")'",
    "python3 - <<< 'x'",
    "echo x | python3",
    "node -e 1",
    "awk '{print > \"x\"}' f",
    "sed -n 'w x' f",
    "$x a",
];

const DELETE: [&str; 66] = [
    "git reset --hard",
    "git checkout -- .",
    "git checkout a",
    "git restore .",
    "git clean -fd",
    "git stash -u",
    "git stash drop",
    "git stash clear",
    "git rm a",
    "git branch -D x",
    "git branch -d x",
    "git tag -d x",
    "git push --delete origin x",
    "git push origin :x",
    "git worktree remove x",
    "git remote remove x",
    "git update-ref -d refs/heads/x",
    "git reflog expire --all",
    "git gc",
    "gzip a",
    "gzip -9 a",
    "gunzip a.gz",
    "bzip2 a",
    "xz a",
    "zip -m x.zip a",
    "zip -rm x.zip a",
    "tar --remove-files -cf x.tar a",
    "tar cf x.tar a --remove-files",
    "rsync -a --delete a/ b/",
    "rsync --remove-source-files a b",
    "truncate -s0 a",
    "find . -delete",
    "find . -name x -delete",
    "find . -exec rm {} +",
    "find . | xargs rm",
    "shred -u a",
    "unlink a",
    "rmdir x",
    "zstd --rm a",
    "7z a -sdel x.7z a",
    "trash a",
    "npx rimraf x",
    "docker rm x",
    "docker system prune -f",
    "npm uninstall x",
    "pip uninstall x",
    "cargo clean",
    "make clean",
    "kubectl delete pod x",
    "aws s3 rm s3://x/y",
    "gio trash a",
    "cmake -E rm a",
    "python3 -c 'import os; os.remove(\"a\")'",
    "perl -e 'unlink \"a\"'",
    "perl -ne 1",
    "ruby -e 'File.delete(\"a\")'",
    "node -e 'fs.unlinkSync(\"a\")'",
    "php -r 'unlink(\"a\");'",
    "awk 'BEGIN{system(\"rm a\")}'",
    "sed '1e rm a' f",
    "tmux new 'rm a'",
    "docker run -v .:/w x rm /w/a",
    "at now <<< 'rm a'",
    "echo rm a | at now",
    "git -c alias.x='!rm a' x",
    "ln -s /bin/rm x",
];

const MOVE: [&str; 16] = [
    "mv a b",
    "git mv a b",
    "rename s/a/b/ f",
    "prename x f",
    "mmv a b",
    "rsync --remove-source-files a b",
    "rclone move a b",
    "gio move a b",
    "cmake -E rename a b",
    "zip -m x.zip a",
    "git branch -m x",
    "aws s3 mv a b",
    "env mv a b",
    "sh -c 'mv a b'",
    "tmux new 'mv a b'",
    "python3 -c 'import shutil'",
];

#[test]
fn a_denied_kind_is_denied_by_every_program_that_is_of_it() {
    for (kind, lines) in [
        ("edit", &EDIT[..]),
        ("delete", &DELETE[..]),
        ("move", &MOVE[..]),
        ("fetch", FETCH),
        ("search", SEARCH),
        ("read", READ),
    ] {
        let rules = book(&format!("kind = [\"{kind}\"]"));
        assert_eq!(wrong(&rules, Verdict::Deny, lines), [""; 0], "{kind}");
    }
}

#[test]
fn what_is_not_of_a_denied_kind_is_left_alone() {
    let reads = [
        "ls",
        "cat a",
        "make",
        "make test",
        "git log",
        "git status",
        "git diff",
        "git show",
        "git branch",
        "git stash list",
        "git -c color.ui=never log",
        "grep -rn rm src",
        "sed -n 1,5p a",
        "sed s/a/b/ a",
        "awk '{print $1}' a",
        "cargo fmt --check",
        "npm test",
        "npm run build",
        "pytest -k remove",
        "python3 x.py",
        "python3 --version",
        "node x.js",
        "black --check .",
        "ruff check",
        "prettier --check .",
        "gofmt -l .",
        "echo rm -rf x",
        "./run.sh",
        "find . -name rm",
        "git log --grep=push",
        "jq . a.json",
        "tsc --noEmit",
        "python3 -m pytest",
        "docker ps",
    ];
    // These download what is missing, unless an option forbids it.
    let builds =
        ["cargo test", "cargo test rm", "cargo test curl", "cargo build", "cargo clippy", "go test ./..."];
    for kind in ["edit", "delete", "move", "fetch"] {
        let rules = book(&format!("kind = [\"{kind}\"]"));
        assert_eq!(wrong(&rules, Verdict::Allow, &reads), [""; 0], "{kind}");
        let verdict = if kind == "fetch" { Verdict::Deny } else { Verdict::Allow };
        assert_eq!(wrong(&rules, verdict, &builds), [""; 0], "{kind}");
    }
    for (kind, lines) in [
        (
            "delete",
            &[
                "git commit -m rm",
                "git checkout -b x",
                "git switch x",
                "gzip -k a",
                "gzip -c a",
                "mv a b",
                "touch a",
                "git mv a b",
                "git tag v1",
                "npm install",
                "curl u",
            ][..],
        ),
        ("move", &["cp a b", "rm a", "git add .", "curl u"]),
        (
            "fetch",
            &[
                "git commit -m curl",
                "rm a",
                "mv a b",
                "git add .",
                "cargo fmt",
                "touch a",
                "git stash",
                "git remote -v",
                "cargo test --offline",
                "cargo test --offline rm",
                "cargo build --frozen",
                "cargo +nightly build --offline",
                "cargo fmt --check",
                "cargo --version",
                "cargo clean",
                "go fmt ./...",
                "go version",
                "mvn -o install",
                "mvn install --offline",
                "mvn --version",
                "gradle --offline build",
                "./gradlew build --offline",
                "dotnet build --no-restore",
                "bundle exec rspec",
                "poetry run pytest",
                "stack --version",
                "ugrep x",
                "dd if=a of=b",
            ],
        ),
        ("edit", &["git fetch", "git push", "curl u", "ssh h ls"]),
        ("search", &["pgrep x", "cat a", "git log --oneline", "git log --grep=x", "echo grep", "dd if=a"]),
        ("read", &["dd of=b", "echo a", "pwd", "git log --oneline"]),
    ] {
        let rules = book(&format!("kind = [\"{kind}\"]"));
        assert_eq!(wrong(&rules, Verdict::Allow, lines), [""; 0], "{kind}");
    }
}

const PUSH: [&str; 74] = [
    "git push",
    "git -c alias.p=push p",
    "git -c alias.p='!git push' p",
    "git p",
    "git-push",
    "git-push origin",
    "/usr/lib/git-core/git-push",
    "$(git --exec-path)/git-push",
    "\"$(git --exec-path)\"/git-push",
    "git send-pack u",
    "git rebase -x 'git push' HEAD~1",
    "git rebase -x'git push' HEAD~1",
    "git rebase --exec='git push' x",
    "git bisect run git push",
    "git submodule foreach git push",
    "git submodule foreach 'git push'",
    "git config alias.x push",
    "git config alias.x '!git push'; git x",
    "git config --global alias.x push",
    "git -c core.pager='git push' log",
    "git -c core.editor='git push' commit",
    "git -c core.sshCommand='git push' fetch",
    "git difftool -x 'git push'",
    "git filter-branch --tree-filter 'git push' HEAD",
    "git subtree push x y",
    "sed '1e git push' a",
    "sed '1egit push' a",
    "sed 's/a/git push/e' a",
    "awk 'BEGIN{system(\"git push\")}'",
    "awk 'BEGIN{\"git push\" | getline}'",
    "perl -e 'system(\"git push\")'",
    "perl -e 'exec qw(git push)'",
    "perl -e '`git push`'",
    "python3 -c 'import os; os.system(\"git push\")'",
    "python3 -c 'import subprocess as s; s.run([\"git\",\"push\"])'",
    "python3 - <<< 'import os; os.system(\"git push\")'",
    "ruby -e 'system(\"git\", \"push\")'",
    "node -e 'require(\"child_process\").execSync(\"git push\")'",
    "php -r 'system(\"git push\");'",
    "lua -e 'os.execute(\"git push\")'",
    "parallel git push ::: origin",
    "parallel ::: 'git push'",
    "echo 'git push' | parallel",
    "tmux new -d 'git push'",
    "tmux new git push",
    "tmux send-keys 'git push' Enter",
    "screen -dm git push",
    "screen -X stuff 'git push'",
    "at now <<< 'git push'",
    "echo 'git push' | at now",
    "batch <<< 'git push'",
    "at -f <(echo git push) now",
    "xargs git push < /dev/null",
    "echo push | xargs git",
    "watch git push",
    "script -c 'git push' /dev/null",
    "script -qc 'git push'",
    "find . -exec git push \\;",
    "env -S 'git push'",
    "make --eval='x:;git push' x",
    "make --eval 'x: ; @git push' x",
    "ssh h git push",
    "ssh h 'cd x && git push'",
    "docker run x git push",
    "docker run x sh -c 'git push'",
    "trap 'git push' EXIT",
    "PROMPT_COMMAND='git push'",
    "export PROMPT_COMMAND='git push'",
    "GIT_EDITOR='git push' git commit",
    "PAGER='git push' git log",
    "alias p='git push'; p",
    "hash -p /usr/bin/git g; g push",
    "ln -s /usr/bin/git g; ./g push",
    "git $x",
];

const PUSH_TOO: [&str; 24] = [
    "cat <<E | sh\ngit push\nE",
    "bash <<E\ngit push\nE",
    "at now <<E\ngit push\nE",
    "crontab <<< '* * * * * git push'",
    "echo '* * * * * git push' | crontab -",
    "$g push",
    "poetry run git push",
    "uv run git push",
    "npm exec -- git push",
    "npx -c 'git push'",
    "nix-shell --run 'git push'",
    "vim -c ':!git push' a",
    "ex -c '!git push' a",
    "ed <<< '!git push'",
    "gdb -ex 'shell git push'",
    "tar cf x --checkpoint-action=exec='git push' a",
    "expect -c 'spawn git push'",
    "kubectl exec p -- git push",
    "systemd-run git push",
    "su -c 'git push'",
    "busybox env git push",
    "python3 -c \"exec('git push')\"",
    "cp \"$(which git)\" g",
    "printf 'git push' | tee x | bash",
];

#[test]
fn a_denied_command_is_denied_behind_any_program() {
    let words = || [vec!["git".to_owned(), "push".to_owned()]];
    let excluded = Rulebook::builtin().without_commands("tools.exclude", words());
    for rules in [book("command = [\"git push\"]"), book("words = [[\"git\", \"push\"]]"), excluded] {
        assert_eq!(wrong(&rules, Verdict::Deny, &PUSH_TOO), [""; 0]);
    }
    for rules in [book("command = [\"git push\"]"), Rulebook::builtin().without_commands("x", words())] {
        assert_eq!(wrong(&rules, Verdict::Deny, &PUSH), [""; 0]);
        let left = [
            "git status",
            "git commit -m 'then git push'",
            "git log --grep='git push'",
            "git grep 'git push'",
            "echo git push",
            "grep -rn 'git push' docs",
            "cat <<E > x.md\ngit push\nE",
            "git pull",
            "git fetch",
            "git tag push",
            "printf 'git push' > notes.md",
            "cargo test push",
            "git add push.rs",
            "git checkout -b push",
            "python3 x.py push",
            "python3 -c 'print(1)'",
            "make push",
            "git branch push",
            "git stash push",
            "rg 'git push'",
            "sed -n /push/p a",
            "x=1; echo $x",
            "for f in a b; do cat $f; done",
            "npm run push",
            "git config user.name x",
        ];
        assert_eq!(wrong(&rules, Verdict::Allow, &left), [""; 0]);
    }
    // Other programs than git.
    let rules = book("command = [\"npm publish\", \"rm\"]");
    let lines = [
        "npm publish",
        "tmux new 'npm publish'",
        "docker run x npm publish",
        "python3 -c 'os.system(\"npm publish\")'",
        "npm $x",
        "git rebase -x 'npm publish'",
        "rm a",
        "tmux new rm a",
        "at now <<< 'rm a'",
        "PROMPT_COMMAND='rm a'",
        "ln -s /bin/rm x",
        "$x a",
        "parallel rm ::: a",
        "sed '1e rm a' f",
    ];
    assert_eq!(wrong(&rules, Verdict::Deny, &lines), [""; 0]);
    assert_eq!(
        wrong(&rules, Verdict::Allow, &["npm test", "git rm a", "make a", "git x", "echo rm"]),
        [""; 0]
    );
}
