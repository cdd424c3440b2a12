//! Issue 15: a denied command does not run under another name, and what a name means is not changed for later lines.

use lathe_policy::{Gate, OwnCommand, Rulebook, Tier};
use lathe_protocol::{Actor, Mode, ToolKind, Verdict};

use crate::corpus::gate as anywhere;

fn gate() -> Gate {
    Gate { here: Some("/w".into()), user_home: Some("/home/me".into()), ..anywhere() }
}

fn verdict(rules: &Rulebook, actor: Actor, line: &str) -> (Verdict, String) {
    let decided = gate().decide_line(rules, actor, Mode::FullAuto, line).decision;
    (decided.verdict, decided.rule)
}

/// Lines that could run `git push`.
const PUSHES: &str = r#"
/usr/bin/g?t push
/usr/bin/g[[:alpha:]]t push
/usr/bin/gi* push origin main
/usr/bi?/git push
g=/usr/bin/g?t; $g push
BASH_CMDS[zz]=/usr/bin/git; zz push
BASH_CMDS[zz]=/usr/bin/git
BASH_ALIASES[g]='git push'; g
BASH_ALIASES[g]=git
declare -A BASH_CMDS=([zz]=/usr/bin/git)
git for-each-repo --config=x.repos push
git for-each-repo --config x.repos push origin
X='git push' awk 'BEGIN{system(ENVIRON["X"])}'
export X='git push'; awk 'BEGIN{system(ENVIRON["X"])}'
X='git push'; ./run.sh
X='true; git push origin' ./run.sh
cat /usr/bin/git > zz; ./zz push
cat < /usr/bin/git > zz; ./zz push
dd if=/usr/bin/git of=g; ./g push
tee zz < /usr/bin/git; ./zz push
rsync /usr/bin/git zz; ./zz push
cd /usr/bin; cp git /tmp/zz; /tmp/zz push
ln -s /usr/lib/git-core/git-push zz; ./zz
cp /usr/libexec/git-core/git-push zz; ./zz
go test -exec 'git push' ./...
go build -toolexec='git push' ./...
GOFLAGS='-toolexec=git push' go build
GOFLAGS=-toolexec=git\ push go build
CARGO_BUILD_RUSTC='git push' cargo build
CARGO_BUILD_RUSTC_WRAPPER='git push' cargo build
CARGO_TARGET_X_RUNNER='git push' cargo test
RUSTC='git push' cargo build
python3 -c 'import subprocess; subprocess.run("git push".split())'
python3 -c "import subprocess; subprocess.run('git push origin'.split())"
split --filter='git push' a
mapfile -C 'git push;:' -c 1 < a
alias zz=git
alias zz='git -C sub'
alias zz='/usr/bin/git'
hash -p /usr/bin/git zz
zz() { git "$@"; }
zz() { git "$1"; }; zz status
function zz { git -C sub "$@"; }
"#;

/// Lines that run other commands, or only speak of this one.
const OTHERS: &str = r#"
git status
git commit -m 'do not git push'
msg='please do not git push'; git commit -m "$msg"
alias gs='git status'
alias ll='ls -la'
cat /usr/bin/env > /dev/null
cp a b
/usr/bin/l? a
git for-each-repo --config=x.repos fetch
X='make test' ./run.sh
go test ./...
GOFLAGS=-mod=mod go build
CARGO_TARGET_DIR=out cargo build
python3 -c 'print("push".split())'
f() { make "$@"; }; f test
git stash push
"#;

#[test]
fn a_denied_command_does_not_run_by_another_name() {
    let rule = "[[rule]]\ndecision = \"deny\"\ncommand = [\"git push\"]\n";
    let rules = Rulebook::builtin().with_file(Tier::User, "f.toml", rule).unwrap();
    let mut wrong = Vec::new();
    for line in PUSHES.lines().filter(|line| !line.is_empty()) {
        let (verdict, rule) = verdict(&rules, Actor::Model, line);
        if verdict != Verdict::Deny {
            wrong.push(format!("{line}: {rule}"));
        }
    }
    for line in OTHERS.lines().filter(|line| !line.is_empty()) {
        let (verdict, rule) = verdict(&rules, Actor::Model, line);
        if verdict == Verdict::Deny {
            wrong.push(format!("denied: {line}: {rule}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_a_name_means_is_not_changed_for_later_lines() {
    let own = OwnCommand {
        name: "view".to_owned(),
        tool: "view".to_owned(),
        also: Vec::new(),
        kind: ToolKind::Read,
    };
    let rules = Rulebook::builtin().with_own_commands([own]);
    for line in [
        "ls() { rm -f a; }",
        "ls() { rm -f a; }; ls",
        "function cat { rm -f a; }",
        "function grep() ( rm -f a )",
        "git() { echo x; }",
        "cargo() { echo x; }",
        "view() { echo x; }",
        "true && head() { echo x; }",
        "alias ls='rm -f a'",
        "alias x=y cat='rm -f a'",
        "shopt -s expand_aliases; alias git=./x",
        "hash -p ./x ls",
        "enable -f ./x.so ls",
        "BASH_ALIASES[ls]=x",
        "BASH_CMDS[ls]=./x",
        "PATH=$PWD/sub:$PATH",
        "export PATH=$PWD/sub:$PATH",
        "PATH=sub:$PATH",
        "PATH=.:$PATH; ls",
        "PATH=/w/sub:$PATH",
        "PATH=/usr/../w/sub:$PATH",
        "PATH=$PATH:/tmp/x",
        "PATH=:$PATH",
        "PATH=$x:$PATH",
        "declare -x PATH=sub:$PATH",
        "read PATH <<< sub",
        "printf -v PATH sub",
        "unset PATH",
    ] {
        let (decided, rule) = verdict(&rules, Actor::Model, line);
        assert_eq!((decided, rule.as_str()), (Verdict::Deny, "guard.meaning"), "{line}");
        assert_eq!(verdict(&rules, Actor::Person, line).0, Verdict::Allow, "{line}");
    }
    for line in [
        "run() { make; }; run",
        "alias ll='ls -la'",
        "hash -r",
        "hash ls",
        "export PATH=\"$HOME/.cargo/bin:$PATH\"",
        "export PATH=$PATH:/usr/local/go/bin",
        "PATH=~/.local/bin:$PATH",
        "PATH=sub:$PATH make",
        "env PATH=sub:$PATH make",
        "echo $PATH",
    ] {
        let (decided, rule) = verdict(&rules, Actor::Model, line);
        assert_eq!(decided, Verdict::Allow, "{line}: {rule}");
    }
}

#[test]
fn more_programs_fetch_and_delete() {
    let book = |kind: &str| {
        let rule = format!("[[rule]]\ndecision = \"deny\"\nkind = [\"{kind}\"]\n");
        Rulebook::builtin().with_file(Tier::User, "f.toml", &rule).unwrap()
    };
    for (kind, denied, left) in [
        (
            "fetch",
            &[
                "psql -h db",
                "psql --host=db -c 'select 1'",
                "mysql -h db",
                "redis-cli -h db ping",
                "mongosh db",
                "pg_dump -h db x",
                "mount -t nfs db:/x /mnt",
                "mount db:/x /mnt",
                "mount //db/x /mnt",
                "go run x@latest",
                "go install x/y@latest",
                "pip list -o",
                "pip3 list --outdated",
            ][..],
            &["psql --version", "go version", "pip list", "mount", "go fmt ./..."][..],
        ),
        (
            "delete",
            &[
                "> x",
                ": > x",
                "true > x",
                "cat /dev/null > x",
                "echo -n > x",
                "cp /dev/null x",
                "mv x /dev/null",
                "dd if=/dev/null of=x",
                "ln -sf /dev/null x",
                "install /dev/null x",
                "git replace -d x",
                "git repack -ad",
                "git prune-packed",
            ],
            &[
                "echo x > x",
                "cat a > x",
                "cp a b",
                "git repack",
                "git replace a b",
                "ls > /dev/null",
                "cat < a",
            ],
        ),
    ] {
        let rules = book(kind);
        for line in denied {
            assert_eq!(verdict(&rules, Actor::Model, line).0, Verdict::Deny, "{kind}: {line}");
        }
        for line in left {
            let (decided, rule) = verdict(&rules, Actor::Model, line);
            assert_ne!(decided, Verdict::Deny, "{kind}: {line} {rule}");
        }
    }
}

#[test]
fn many_empty_files_are_not_endless() {
    let rules = Rulebook::builtin();
    for line in ["touch {a..z}{a..z}{a..z}.txt", "mkdir -p out/{a..z}{a..z}{a..z}"] {
        assert_eq!(verdict(&rules, Actor::Model, line).0, Verdict::Allow, "{line}");
    }
    for line in [
        "rm -rf .{a..z}{a..z}{a..z}",
        "{f..z}{i..z}{n..z}{d..z} / -delete",
        "touch {a..z}{a..z}{a..z} > {a..z}{a..z}{a..z}",
    ] {
        assert_eq!(verdict(&rules, Actor::Model, line).0, Verdict::Deny, "{line}");
    }
}
