//! Files that a line leaves for git to run later are set aside, however their names were made.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use lathe_testkit::{FakeModel, Script, TempRepo, call, done};
use serde_json::json;

use crate::lost::Place;
use crate::{lathe, result};

/// Does to a part of the repository what its words say. No word of the line names the folder.
const LEAVE_PY: &str = "\
import os, sys, time
git = chr(46) + 'git/'
what, part = sys.argv[1:3]
text = ''.join(sys.argv[3:4]).encode().decode('unicode_escape')
if what == 'late':
    while not os.path.exists('go'):
        time.sleep(0.01)
if what in ('write', 'late'):
    os.makedirs(os.path.dirname(git + part), exist_ok=True)
    with open(git + part, 'w') as out:
        out.write(text)
    os.chmod(git + part, 0o755)
    if what == 'late':
        open('written', 'w').close()
elif what == 'add':
    with open(git + part, 'a') as out:
        out.write(text)
elif what == 'chmod':
    os.chmod(git + part, 0o755)
elif what == 'link':
    os.makedirs('mine', exist_ok=True)
    os.rename(git + part, 'mine/' + part)
    os.symlink('../mine/' + part, git + part)
elif what == 'move':
    os.rename(git[:-1], 'gd')
    if part == 'file':
        with open(git[:-1], 'w') as out:
            out.write('gitdir: gd\\n')
    else:
        os.symlink('gd', git[:-1])
    with open('gd/config', 'a') as out:
        out.write(text)
    with open('gd/hooks/pre-commit', 'w') as out:
        out.write('exit 1')
    os.chmod('gd/hooks/pre-commit', 0o755)
elif what == 'copy':
    os.rename(git + part, git + sys.argv[3])
";

/// Lines, and the parts that must be what they were.
const LEFT: [(&str, &str); 16] = [
    ("python3 leave.py write hooks/pre-commit 'exit 1'", "hooks/pre-commit"),
    ("python3 leave.py write hooks/old 'changed'", "hooks/old"),
    ("python3 leave.py chmod hooks/off", "hooks/off"),
    ("python3 leave.py copy hooks/x.sample hooks/post-merge", "hooks/post-merge"),
    ("python3 leave.py link hooks", "hooks"),
    ("python3 leave.py add config '[core]\\n\\tpager = evil\\n'", "config"),
    ("python3 leave.py add config '[Core]\\nhooksPath = mine\\n'", "config"),
    ("python3 leave.py add config '[alias]\\n\\tst = !evil\\n'", "config"),
    ("python3 leave.py add config '[include]\\n\\tpath = ../mine\\n'", "config"),
    ("python3 leave.py add config '[filter \"x\"]\\n\\tclean = evil\\n'", "config"),
    ("python3 leave.py add config '[submodule \"x\"]\\n\\tupdate = !evil\\n'", "config"),
    ("python3 leave.py add config '[unheard-of]\\n\\tthing = evil\\n'", "config"),
    ("python3 leave.py add config '[core\\n'", "config"),
    ("python3 leave.py link config", "config"),
    ("python3 leave.py write config.worktree '[core]\\n\\tpager = evil\\n'", "config.worktree"),
    ("python3 leave.py write commondir '../mine'", "commondir"),
];

fn place() -> Place {
    let place = Place::new();
    place.write("leave.py", LEAVE_PY);
    for (name, mode) in [("old", 0o755), ("off", 0o644), ("x.sample", 0o755)] {
        let hook = format!(".git/hooks/{name}");
        place.write(&hook, "exit 0\n");
        fs::set_permissions(place.repo().join(hook), fs::Permissions::from_mode(mode)).unwrap();
    }
    place
}

/// A part as git has it: its kind, its mode and its content.
fn seen(place: &Place, part: &str) -> Option<(bool, u32, Option<Vec<u8>>)> {
    let path = place.repo().join(".git").join(part);
    let found = path.symlink_metadata().ok()?;
    Some((found.is_symlink(), found.permissions().mode() & 0o111, fs::read(path).ok()))
}

#[test]
fn what_a_line_leaves_for_git_to_run_is_set_aside() {
    for (line, part) in LEFT {
        let place = place();
        let before = seen(&place, part);
        let (_, events) = place.run("full-auto", &[line]);
        assert_eq!(seen(&place, part), before, "{line}: {events:#?}");
        let told = result(&events, "c0");
        assert!(told.contains("may make git run a program later"), "{line}: {told}");
        let aside = place.repo().join(".git").join(format!("{part}.set-aside-by-lathe"));
        assert!(aside.symlink_metadata().is_ok(), "{line}: nothing is lost");
    }
}

/// Parts that stand outside of the repository because its configuration names them, or a link leads there.
const LEFT_OUTSIDE: [(&str, &str); 7] = [
    ("python3 leave.py write ../hh/pre-push 'exit 1'", "../hh/pre-push"),
    ("python3 leave.py write ../hh/old 'changed'", "../hh/old"),
    ("python3 leave.py chmod ../hh/off", "../hh/off"),
    ("python3 leave.py write ../shared/old 'changed'", "../shared/old"),
    ("python3 leave.py write ../team.cfg '[core]\\n\\tpager = evil\\n'", "../team.cfg"),
    ("python3 leave.py write ../later.cfg '[alias]\\n\\tst = !evil\\n'", "../later.cfg"),
    (
        "python3 leave.py write rebase-merge/git-rebase-todo 'pick 1\\nx evil\\n'",
        "rebase-merge/git-rebase-todo",
    ),
];

#[test]
fn what_a_line_leaves_where_the_configuration_leads_is_set_aside() {
    let config = "[core]\n\thooksPath = hh\n[include]\n\tpath = ../team.cfg\n[includeIf \"onbranch:x\"]\n\tpath = ../later.cfg\n";
    for (line, part) in LEFT_OUTSIDE {
        let place = place();
        let known = fs::read_to_string(place.repo().join(".git/config")).unwrap();
        place.write(".git/config", &format!("{known}{config}"));
        place.write("team.cfg", "[user]\n\tname = team\n");
        fs::rename(place.repo().join(".git/hooks"), place.repo().join("shared")).unwrap();
        std::os::unix::fs::symlink("../shared", place.repo().join(".git/hooks")).unwrap();
        for (name, mode) in [("old", 0o755), ("off", 0o644)] {
            place.write(&format!("hh/{name}"), "exit 0\n");
            fs::set_permissions(place.repo().join("hh").join(name), fs::Permissions::from_mode(mode))
                .unwrap();
        }
        let before = seen(&place, part);
        let inert = "python3 leave.py add ../team.cfg '[push]\\n\\tdefault = current\\n'";
        let (_, events) = place.run("full-auto", &["python3 leave.py write ../src/a 'free'", line, inert]);
        assert!(!result(&events, "c0").contains("aside"), "{events:#?}");
        let told = result(&events, "c1");
        assert!(told.contains("may make git run a program later"), "{line}: {told}");
        assert!(!result(&events, "c2").contains("aside"), "{events:#?}");
        if part != "../team.cfg" {
            assert_eq!(seen(&place, part), before, "{line}: {events:#?}");
        }
        let aside = place.repo().join(".git").join(format!("{part}.set-aside-by-lathe"));
        assert!(aside.symlink_metadata().is_ok(), "{line}: nothing is lost");
    }
}

#[test]
fn what_a_process_writes_after_its_line_is_set_aside_with_the_next_line() {
    let place = place();
    let late = "python3 leave.py late hooks/pre-commit 'exit 1' > /dev/null 2>&1 &";
    let wait = "touch go; while ! test -e written; do sleep 0.01; done";
    let (_, events) = place.run("full-auto", &[late, wait, "true"]);
    assert_eq!(seen(&place, "hooks/pre-commit"), None, "{events:#?}");
    assert!(result(&events, "c1").contains("set aside"), "{events:#?}");
}

#[test]
fn a_repository_that_is_moved_is_looked_at_where_it_is_now() {
    for how in ["file", "link"] {
        let place = place();
        let before = fs::read(place.repo().join(".git/config")).unwrap();
        let line = format!("python3 leave.py move {how} '[core]\\n\\tfsmonitor = evil\\n'");
        let (_, events) = place.run("full-auto", &[&line]);
        let told = result(&events, "c0");
        assert_eq!(told.matches("may make git run a program later").count(), 2, "{how}: {told}");
        let config = fs::read(place.repo().join("gd/config")).unwrap();
        assert_eq!(config, before, "{how}: {events:#?}");
        assert!(!place.repo().join("gd/hooks/pre-commit").exists(), "{how}");
    }
}

#[test]
fn what_a_process_writes_after_the_last_line_is_set_aside_when_the_session_ends() {
    let place = place();
    let line = "python3 leave.py late hooks/pre-commit 'exit 1' > /dev/null 2>&1 & touch go";
    let (_, events) = place.run("full-auto", &[line]);
    // The process may have been ended before it came to it; what it wrote is not there in any case.
    assert_eq!(seen(&place, "hooks/pre-commit"), None, "{events:#?}");
}

#[test]
fn settings_that_name_no_program_stay() {
    let place = place();
    let lines = [
        "git config user.name other",
        "git remote add up ../beside",
        "git checkout -q -b topic && git config branch.topic.remote up",
        "python3 leave.py add config '[push]\\n\\tdefault = current\\n'",
    ];
    let (_, events) = place.run("full-auto", &lines);
    for (at, line) in lines.iter().enumerate() {
        let told = result(&events, &format!("c{at}"));
        assert!(!told.contains("set aside"), "{line}: {told}");
    }
    let known = place.git(&["config", "--local", "--list"]);
    for setting in
        ["user.name=other", "remote.up.url=../beside", "branch.topic.remote=up", "push.default=current"]
    {
        assert!(known.contains(setting), "{setting}: {known}");
    }
}

fn git(folder: &Path, words: &[&str]) {
    let own = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"];
    let ran = Command::new("git").args(own).args(words).current_dir(folder).output().unwrap();
    assert!(ran.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// Kind, mode and content of everything below a folder, git's own data too.
fn all_below(folder: &Path, found: &mut BTreeMap<PathBuf, (u32, Vec<u8>)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let meta = path.symlink_metadata().unwrap();
        let content = if meta.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        if meta.is_dir() {
            all_below(&path, found);
        }
        found.insert(path, (meta.permissions().mode(), content));
    }
}

/// Folders with a `.git` file, as git and users make them: a name, and the way to make one in `tree`, next to
/// `other`.
type Pointer = (&'static str, fn(&Path, &Path));

const POINTERS: [Pointer; 5] = [
    ("a linked work tree", |tree, other| git(other, &["worktree", "add", "-q", &tree.to_string_lossy()])),
    ("a folder of its own for git", |tree, other| {
        let at = format!("--separate-git-dir={}", other.join("apart").display());
        git(tree.parent().unwrap(), &["init", "-q", &at, &tree.to_string_lossy()]);
    }),
    ("a submodule", |tree, other| {
        git(tree.parent().unwrap(), &["init", "-q", &tree.to_string_lossy()]);
        git(tree, &["submodule", "--quiet", "add", &other.to_string_lossy(), "sub"]);
    }),
    ("a file that leads elsewhere", |tree, other| {
        fs::create_dir_all(tree.join("sub")).unwrap();
        fs::write(tree.join("sub/.git"), format!("gitdir: {}\n", other.join(".git").display())).unwrap();
    }),
    ("a link that leads elsewhere", |tree, other| {
        fs::create_dir_all(tree.join("sub")).unwrap();
        std::os::unix::fs::symlink(other.join(".git"), tree.join("sub/.git")).unwrap();
    }),
];

#[test]
fn a_line_that_only_looks_leaves_what_a_git_file_leads_to_as_it_was() {
    for (name, make) in POINTERS {
        for mode in ["full-auto", "plan"] {
            let base = TempRepo::new(&[("other/a.txt", "a\n")]);
            let (tree, other) = (base.join("tree"), base.join("other"));
            git(&other, &["init", "-q", "-b", "main"]);
            git(&other, &["add", "."]);
            git(&other, &["commit", "-qm", "first"]);
            make(&tree, &other);
            let mut before = BTreeMap::new();
            all_below(base.path(), &mut before);
            let look = |id: &str| call(id, "bash", json!({ "command": "ls" }));
            let script = Script::new().answer(look("c0")).answer(look("c1")).answer(done("ok"));
            let model = FakeModel::serving(script);
            let words = ["run", "go", "--mode", mode, "--output", "stream-json"];
            let ran = lathe().in_dir(&tree).args(words).with_model(&model).run().expect_code(0);
            assert!(!ran.stdout.contains("aside") && !ran.stdout.contains("no repository"), "{}", ran.stdout);
            let mut after = BTreeMap::new();
            all_below(base.path(), &mut after);
            let differ: Vec<&PathBuf> = before
                .keys()
                .chain(after.keys())
                .filter(|path| before.get(*path) != after.get(*path))
                // Names that keep commits, and git's own notes about its files.
                .filter(|path| !path.to_string_lossy().contains("refs/lathe") && !path.ends_with("index"))
                .collect();
            assert_eq!(differ, Vec::<&PathBuf>::new(), "{name}, {mode}");
        }
    }
}
