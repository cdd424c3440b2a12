//! Repositories in the workspace that lead to another one outside of it: git would print what is there.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use lathe_testkit::TempRepo;
use serde_json::Value;

use crate::lathe;

const READERS: [&str; 5] = [
    "git log -p",
    "git show HEAD",
    "git cat-file --batch-all-objects --batch",
    "git ls-tree -r HEAD",
    "git config --list",
];

fn git(folder: &Path, words: &[&str]) {
    let own = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"];
    let ran = Command::new("git").args(own).args(words).current_dir(folder).output().unwrap();
    assert!(ran.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// A folder with a repository `other` and an empty folder `ws`.
fn base() -> TempRepo {
    let base = TempRepo::new(&[("other/s.txt", "PRIVATE\n")]);
    fs::create_dir(base.join("ws")).unwrap();
    git(&base.join("other"), &["init", "-q", "-b", "main"]);
    git(&base.join("other"), &["add", "."]);
    git(&base.join("other"), &["commit", "-qm", "first"]);
    base
}

/// The decisions about lines in a folder.
fn decided(folder: &Path, mode: &str, lines: &[&str]) -> Vec<String> {
    let input: String = lines.iter().map(|line| format!("{}\n", Value::from(*line))).collect();
    let words = ["policy", "check", "--json", "--mode", mode];
    let ran = lathe().in_dir(folder).args(words).stdin(input).run().expect_code(0);
    let answers = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    answers.map(|answer| answer["decision"].as_str().unwrap().to_owned()).collect()
}

/// A way to make `ws`, next to `other`.
type Made = (&'static str, fn(&Path, &Path));

/// Makes a repository `sub` that the index knows as one commit.
fn inner(ws: &Path) {
    fs::create_dir(ws.join("sub")).unwrap();
    own(&ws.join("sub"));
    git(ws, &["add", "sub"]);
    git(ws, &["commit", "-qm", "inner"]);
}

fn own(ws: &Path) {
    git(ws, &["init", "-q", "-b", "main"]);
    git(ws, &["commit", "-q", "--allow-empty", "-m", "own"]);
}

const ELSEWHERE: [Made; 19] = [
    ("names in a file that may be run", |ws, other| {
        own(ws);
        fs::remove_dir_all(ws.join(".git/refs")).unwrap();
        fs::write(ws.join(".git/refs"), "").unwrap();
        fs::set_permissions(ws.join(".git/refs"), fs::Permissions::from_mode(0o755)).unwrap();
        let line = format!("{}\n", other.join(".git/objects").display());
        fs::write(ws.join(".git/objects/info/alternates"), line).unwrap();
    }),
    ("borrowed packs by a link", |ws, other| {
        own(ws);
        fs::create_dir_all(ws.join("store")).unwrap();
        fs::write(ws.join(".git/objects/info/alternates"), "../../store\n").unwrap();
        symlink(other.join(".git/objects/pack"), ws.join("store/pack")).unwrap();
    }),
    ("an object by a link", |ws, other| {
        own(ws);
        fs::create_dir_all(ws.join(".git/objects/aa")).unwrap();
        symlink(other.join("s.txt"), ws.join(".git/objects/aa/bb")).unwrap();
    }),
    ("a repository inside", |ws, other| {
        own(ws);
        inner(ws);
        fs::rename(ws.join("sub/.git"), ws.join("kept")).unwrap();
        fs::write(ws.join("sub/.git"), format!("gitdir: {}\n", other.join(".git").display())).unwrap();
    }),
    ("the list of alternates", |ws, other| {
        own(ws);
        symlink(other.join("s.txt"), ws.join(".git/objects/info/alternates")).unwrap();
    }),
    ("the lock of a work tree", |ws, other| {
        own(ws);
        git(ws, &["worktree", "add", "-q", "wt"]);
        symlink(other.join("s.txt"), ws.join(".git/worktrees/wt/locked")).unwrap();
    }),
    ("the plan of a rebase", |ws, other| {
        own(ws);
        fs::create_dir_all(ws.join(".git/rebase-merge")).unwrap();
        symlink(other.join("s.txt"), ws.join(".git/rebase-merge/done")).unwrap();
    }),
    ("the start of a search", |ws, other| {
        own(ws);
        symlink(other.join("s.txt"), ws.join(".git/BISECT_START")).unwrap();
    }),
    ("grafts", |ws, other| {
        own(ws);
        symlink(other.join("s.txt"), ws.join(".git/info/grafts")).unwrap();
    }),
    ("an included file", |ws, other| {
        own(ws);
        git(ws, &["config", "include.path", &other.join("s.txt").to_string_lossy()]);
    }),
    ("a file that an included one includes", |ws, other| {
        own(ws);
        git(ws, &["config", "includeIf.gitdir:x.path", "../more"]);
        fs::write(ws.join("more"), format!("[include]\npath = {}\n", other.join("s.txt").display())).unwrap();
    }),
    ("a file", |ws, other| {
        fs::write(ws.join(".git"), format!("gitdir: {}\n", other.join(".git").display())).unwrap();
    }),
    ("a link", |ws, other| symlink(other.join(".git"), ws.join(".git")).unwrap()),
    ("alternates", |ws, other| {
        own(ws);
        let line = format!("{}\n", other.join(".git/objects").display());
        fs::write(ws.join(".git/objects/info/alternates"), line).unwrap();
    }),
    ("a common folder", |ws, other| {
        own(ws);
        fs::write(ws.join(".git/commondir"), format!("{}\n", other.join(".git").display())).unwrap();
    }),
    ("objects by a link", |ws, other| {
        own(ws);
        fs::remove_dir_all(ws.join(".git/objects")).unwrap();
        symlink(other.join(".git/objects"), ws.join(".git/objects")).unwrap();
    }),
    ("packs by a link", |ws, other| {
        own(ws);
        fs::remove_dir_all(ws.join(".git/objects/pack")).unwrap();
        symlink(other.join(".git/objects/pack"), ws.join(".git/objects/pack")).unwrap();
    }),
    ("the work tree of somebody else", |ws, other| {
        let theirs = ws.with_file_name("theirs");
        git(other, &["worktree", "add", "-q", &theirs.to_string_lossy()]);
        fs::copy(theirs.join(".git"), ws.join(".git")).unwrap();
    }),
    ("borrowed twice", |ws, other| {
        own(ws);
        fs::create_dir_all(ws.join("middle/info")).unwrap();
        fs::write(ws.join(".git/objects/info/alternates"), "../../middle\n").unwrap();
        let line = format!("{}\n", other.join(".git/objects").display());
        fs::write(ws.join("middle/info/alternates"), line).unwrap();
    }),
];

#[test]
fn git_that_would_read_another_repository_is_asked_about() {
    for (name, make) in ELSEWHERE {
        let base = base();
        make(&base.join("ws"), &base.join("other"));
        for (mode, expected) in [("default", "ask"), ("plan", "deny")] {
            let all = decided(&base.join("ws"), mode, &READERS);
            assert_eq!(all, [expected; READERS.len()], "{name}, {mode}");
        }
        assert_eq!(decided(&base.join("ws"), "default", &["git --version"]), ["allow"], "{name}");
    }
}

#[test]
fn a_repository_inside_that_leads_out_is_asked_about_from_above() {
    let base = base();
    let ws = base.join("ws");
    own(&ws);
    fs::create_dir(ws.join("sub")).unwrap();
    symlink(base.join("other/.git"), ws.join("sub/.git")).unwrap();
    let lines = ["git log", "git -C sub log -p", "cd sub && git log -p"];
    assert_eq!(decided(&ws, "default", &lines), ["allow", "ask", "ask"]);
}

#[test]
fn ordinary_layouts_stay_as_they_are() {
    let layouts: [Made; 5] = [
        ("a repository", |ws, _| own(ws)),
        ("a linked work tree", |ws, other| {
            git(other, &["worktree", "add", "-q", &ws.to_string_lossy()]);
        }),
        ("a submodule as workspace", |ws, other| {
            let top = ws.with_file_name("top");
            fs::create_dir(&top).unwrap();
            own(&top);
            git(&top, &["submodule", "--quiet", "add", &other.to_string_lossy(), "sub"]);
            fs::remove_dir(ws).unwrap();
            symlink(top.join("sub"), ws).unwrap();
        }),
        ("a folder for git inside", |ws, _| {
            git(ws, &["init", "-q", "--separate-git-dir=apart", "tree"]);
        }),
        ("objects borrowed inside", |ws, other| {
            git(ws, &["clone", "-q", "--bare", &other.to_string_lossy(), "store"]);
            git(ws, &["clone", "-q", "--shared", "store", "tree"]);
        }),
    ];
    for (name, make) in layouts {
        let base = base();
        let ws = base.join("ws");
        make(&ws, &base.join("other"));
        for mode in ["default", "plan"] {
            let lines = ["git log -p", "git status", "git show HEAD"];
            assert_eq!(decided(&ws, mode, &lines), ["allow"; 3], "{name}, {mode}");
        }
        if ws.join("tree").exists() {
            let inside = decided(&ws, "default", &["cd tree && git log -p", "cd src && git log -p"]);
            assert_eq!(inside[0], inside[1], "{name}");
        }
    }
}

const TEXTCONV: &str = "[diff \"x\"]\n\ttextconv = echo\n[filter \"x\"]\n\tclean = echo\n";

/// A way to make `ws`, with a line to judge there.
type Taken = (&'static str, fn(&Path), &'static str);

/// Ways to make git use other settings than those of the nearest `.git`, each with a line that reads.
const TAKEN: [Taken; 7] = [
    (
        "an empty folder below",
        |ws| {
            fs::write(ws.join(".git/config"), format!("{TEXTCONV}{}", settings(ws))).unwrap();
            fs::create_dir_all(ws.join("sub/.git")).unwrap();
        },
        "cd sub && git diff",
    ),
    (
        "a HEAD that names nothing",
        |ws| {
            fs::write(ws.join(".git/config"), format!("{TEXTCONV}{}", settings(ws))).unwrap();
            own_in(ws, "sub");
            fs::write(ws.join("sub/.git/HEAD"), "nothing\n").unwrap();
        },
        "cd sub && git log -p",
    ),
    (
        "a long file that names the repository",
        |ws| {
            inner(ws);
            fs::rename(ws.join("sub/.git"), ws.join("real")).unwrap();
            fs::write(ws.join("real/config"), TEXTCONV).unwrap();
            fs::write(ws.join("sub/.git"), format!("gitdir: ../real{}", "\n".repeat(70_000))).unwrap();
        },
        "git status",
    ),
    (
        "a long name of the common folder",
        |ws| {
            inner(ws);
            fs::create_dir(ws.join("common")).unwrap();
            for part in ["objects", "refs", "config"] {
                fs::rename(ws.join("sub/.git").join(part), ws.join("common").join(part)).unwrap();
            }
            fs::write(ws.join("common/config"), TEXTCONV).unwrap();
            fs::write(ws.join("sub/.git/commondir"), format!("../../common{}", "\n".repeat(70_000))).unwrap();
        },
        "git status",
    ),
    (
        "a name that is too long to be read",
        |ws| {
            inner(ws);
            fs::rename(ws.join("sub/.git"), ws.join("real")).unwrap();
            fs::write(ws.join("sub/.git"), format!("gitdir: ../real{}", "\n".repeat(2 << 20))).unwrap();
        },
        "git status",
    ),
    (
        "the settings of a work tree",
        |ws| {
            git(ws, &["config", "extensions.worktreeConfig", "true"]);
            git(ws, &["worktree", "add", "-q", "wt"]);
            fs::write(ws.join(".git/worktrees/wt/config.worktree"), TEXTCONV).unwrap();
        },
        "cd .git/worktrees/wt && git show HEAD",
    ),
    (
        "the settings of a module's work tree",
        |ws| {
            inner(ws);
            fs::create_dir_all(ws.join(".git/modules")).unwrap();
            fs::rename(ws.join("sub/.git"), ws.join(".git/modules/m")).unwrap();
            fs::write(ws.join(".git/modules/m/config.worktree"), TEXTCONV).unwrap();
        },
        "cd .git/modules/m && git log -p",
    ),
];

fn settings(ws: &Path) -> String {
    fs::read_to_string(ws.join(".git/config")).unwrap()
}

fn own_in(ws: &Path, name: &str) {
    fs::create_dir_all(ws.join(name)).unwrap();
    own(&ws.join(name));
}

#[test]
fn git_is_judged_by_the_repository_that_it_takes() {
    for (name, make, line) in TAKEN {
        let base = base();
        let ws = base.join("ws");
        own(&ws);
        assert_eq!(decided(&ws, "default", &["git status", "git log -p"]), ["allow", "allow"], "{name}");
        make(&ws);
        for mode in ["default", "plan"] {
            assert_ne!(decided(&ws, mode, &[line]), ["allow"], "{name}, {mode}");
        }
    }
    // The workspace itself is the folder that git passes over.
    let base = base();
    let ws = base.join("ws");
    own(&ws);
    fs::write(ws.join(".git/config"), format!("{TEXTCONV}{}", settings(&ws))).unwrap();
    fs::create_dir_all(ws.join("inner/.git")).unwrap();
    assert_eq!(decided(&ws.join("inner"), "default", &["git diff"]), ["ask"]);
}
