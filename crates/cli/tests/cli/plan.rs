//! In mode `plan` nothing changes, by any route. Everything is tried in a folder that the test made, and would do no
//! more than create or change a file there.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use lathe_testkit::{FakeModel, Script, TempRepo, call, done};
use serde_json::{Value, json};

use crate::{bodies, lathe};

const FILES: [(&str, &str); 9] = [
    ("a.txt", "one\n"),
    ("b.txt", "two\n"),
    ("sub/c.txt", "three\n"),
    ("data.json", "{\"x\": 1}\n"),
    ("s.sh", "touch made\n"),
    (
        "Cargo.toml",
        "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[lib]\npath = \"x.rs\"\n",
    ),
    ("x.rs", ""),
    ("package.json", "{}\n"),
    (".npmrc", "cache=./cache\nlogs-dir=./logs\n"),
];

/// Lines that would make or change something, each by another way to hide it.
const LINES: [&str; 60] = [
    "xxd ./[ab].txt",
    "xxd a.txt b.txt",
    "xxd -r a.txt made",
    "uniq ./[ab].txt",
    "uniq a.txt b.txt",
    "sort -o b.txt a.txt",
    "sort a.txt -ob.txt",
    "sed -i s/one/1/ a.txt",
    "sed -n 'w made' a.txt",
    "sed 's/one/x/w made' a.txt",
    "awk '{ print > \"made\" }' a.txt",
    "find . -name a.txt -fprint made",
    "find . -name a.txt -exec touch made ';'",
    "git diff --output=made HEAD",
    "git log --output=made",
    "git branch made",
    "git config made.x y",
    "git stash",
    "git add -A",
    "git tag made",
    "git grep -O'touch made' one",
    "rg --pre ./s.sh one",
    "tee made < a.txt",
    "cat a.txt | tee made",
    "cp a.txt made",
    "mv a.txt made",
    "ln -s a.txt made",
    "dd if=a.txt of=made",
    "tar cf made a.txt",
    "touch made",
    ": > made",
    "echo x >> a.txt",
    "cat a.txt >| made",
    "exec 3> made",
    "ls $(touch made)",
    "cat <(tee made < a.txt)",
    "x=`touch made`",
    "echo ${x:=$(touch made)}",
    "coproc touch made",
    ". ./s.sh",
    "bash s.sh",
    "env touch made",
    "ls | xargs touch",
    "eval 'touch made'",
    "trap 'touch made' EXIT",
    "f() { touch made; }; f",
    "python3 -c 'open(\"made\", \"w\")'",
    "perl -e 'open F, \">made\"'",
    "bash <<< 'touch made'",
    "PAGER='touch made' git -p log",
    "GIT_EXTERNAL_DIFF='touch made' git diff --ext-diff HEAD",
    "printf 'touch made' | sh",
    "echo \"$\\\n(touch made)\"",
    "cat <<EF\nx\nE\\\nF\ntouch made\nEF",
    // Git reads files again that have another time, and cargo and npm write their findings.
    "git diff",
    "git diff --stat",
    "git --no-pager diff --quiet",
    "cargo metadata --format-version 1",
    "cargo tree",
    "npm ls",
];

/// Commands of the agent in a line: alone (which needs no bash), in a pipe, in a loop, after another.
const INNER: [&str; 9] = [
    "write made x",
    "edit a.txt one 1",
    "cat a.txt | write made",
    "write made x || true",
    "for f in a.txt b.txt; do write $f x; done",
    "view a.txt && write made x",
    "echo x | (write made)",
    "n=made; write $n x",
    "(cd sub && write made x)",
];

/// Path, kind and mode of everything, and what is in it; `.git` counts too.
fn tree(root: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let content = if meta.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
            found.insert(path.display().to_string(), (meta.permissions().mode(), content));
            if meta.is_dir() {
                folders.push(path);
            }
        }
    }
    found
}

fn repo() -> TempRepo {
    let repo = TempRepo::with_git(&FILES);
    repo.write("a.txt", "one\nnot committed\n");
    // Another time, and a hook that tells when the index is written.
    repo.write("b.txt", "two\n");
    let soon = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    std::fs::File::options().write(true).open(repo.join("b.txt")).unwrap().set_modified(soon).unwrap();
    let hook = ".git/hooks/post-index-change";
    repo.write(hook, "#!/bin/sh\ntouch made\n");
    std::fs::set_permissions(repo.join(hook), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::set_permissions(repo.join("s.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    repo
}

/// One answer with all calls, in one session.
fn run(repo: &TempRepo, toolset: &str, calls: &[(&str, Value)]) -> Vec<Value> {
    let mut answer = call("c0", calls[0].0, calls[0].1.clone());
    for (at, (name, arguments)) in calls.iter().enumerate().skip(1) {
        answer = answer.call(&format!("c{at}"), name, arguments.clone());
    }
    let model = FakeModel::serving(Script::new().answer(answer).answer(done("ok")));
    let words = ["run", "do it", "--mode", "plan", "--toolset", toolset, "--output", "stream-json"];
    lathe().in_dir(repo.path()).args(words).with_model(&model).run().events()
}

#[test]
fn plan_changes_nothing_by_any_line() {
    let repo = repo();
    let before = tree(repo.path());
    for (toolset, tool) in
        [("lathe", "bash"), ("trae", "bash"), ("gemini", "run_shell_command"), ("bash", "Bash")]
    {
        let lines = LINES.iter().chain(&INNER);
        let calls: Vec<(&str, Value)> = lines.map(|line| (tool, json!({ "command": line }))).collect();
        let events = run(&repo, toolset, &calls);
        assert!(bodies(&events, "call_finished").len() >= calls.len(), "{toolset}: all were tried");
        assert!(tree(repo.path()) == before, "{toolset}: {:?}", changed(&before, repo.path()));
    }
}

#[test]
fn plan_changes_nothing_in_a_persons_shell() {
    let repo = repo();
    let before = tree(repo.path());
    // Each in a shell of its own, so that a refused line hides no other.
    for line in LINES.iter().step_by(4).chain(&INNER) {
        lathe().in_dir(repo.path()).args(["shell", "--mode", "plan", "-c", line]).run();
        assert!(tree(repo.path()) == before, "{line}: {:?}", changed(&before, repo.path()));
    }
}

#[test]
fn plan_changes_nothing_by_any_tool() {
    let repo = repo();
    let before = tree(repo.path());
    let path = |name: &str| repo.join(name).display().to_string();
    let patch =
        "*** Begin Patch\n*** Add File: made\n+x\n*** Update File: b.txt\n@@\n-two\n+2\n*** End Patch\n";
    let own = [
        ("view", json!({ "path": "a.txt" })),
        ("write", json!({ "path": path("made"), "content": "x" })),
        ("write", json!({ "path": path("a.txt"), "content": "x" })),
        ("edit", json!({ "path": "a.txt", "old_str": "one", "new_str": "1" })),
        ("edit", json!({ "path": "a.txt", "new_str": "x", "insert_line": 0 })),
        ("apply_patch", json!({ "patch": patch })),
        ("remember", json!({ "fact": "x is y", "scope": "project" })),
        ("remember", json!({ "fact": "x is y" })),
        ("bash", json!({ "restart": true })),
        ("todo", json!({ "todos": [{ "description": "x", "status": "pending" }] })),
    ];
    let edit = "str_replace_based_edit_tool";
    let trae = [
        (edit, json!({ "command": "view", "path": path("a.txt") })),
        (edit, json!({ "command": "create", "path": path("made"), "file_text": "x" })),
        (edit, json!({ "command": "str_replace", "path": path("a.txt"), "old_str": "one", "new_str": "1" })),
        (edit, json!({ "command": "insert", "path": path("a.txt"), "insert_line": 0, "new_str": "x" })),
        (
            "json_edit_tool",
            json!({ "operation": "set", "file_path": path("data.json"), "json_path": "$.x", "value": 2 }),
        ),
    ];
    let gemini = [
        ("read_file", json!({ "file_path": path("a.txt") })),
        ("write_file", json!({ "file_path": path("made"), "content": "x" })),
        ("replace", json!({ "file_path": path("a.txt"), "old_string": "one", "new_string": "1" })),
        ("save_memory", json!({ "fact": "x is y" })),
        ("run_shell_command", json!({ "command": "touch made", "dir_path": path("sub") })),
    ];
    for (toolset, calls) in [("lathe", &own[..]), ("trae", &trae), ("gemini", &gemini)] {
        let events = run(&repo, toolset, calls);
        let denied =
            bodies(&events, "call_decided").iter().filter(|one| one["decision"]["verdict"] == "deny").count();
        assert!(denied >= calls.len() - 3, "{toolset}: {denied} of {}: {events:#?}", calls.len());
        assert!(tree(repo.path()) == before, "{toolset}: {:?}", changed(&before, repo.path()));
    }
    // A tool without a model.
    for (name, arguments) in own.iter().skip(1) {
        let words = ["tool", "run", name, "--mode", "plan", "--json", &arguments.to_string()];
        lathe().in_dir(repo.path()).args(words).run();
        assert!(tree(repo.path()) == before, "{name}: {:?}", changed(&before, repo.path()));
    }
}

fn changed(before: &BTreeMap<String, (u32, Vec<u8>)>, root: &Path) -> Vec<String> {
    let now = tree(root);
    let all = before.keys().chain(now.keys());
    let mut changed: Vec<String> = all.filter(|path| before.get(*path) != now.get(*path)).cloned().collect();
    changed.dedup();
    changed
}
