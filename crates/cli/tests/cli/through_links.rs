//! Changes that reach a file by another way than its own name: links to files and folders, hard links, `..`. The file
//! is the same by every way, so an undo restores it.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;

use lathe_testkit::{FakeModel, Script, TempRepo, call, done, say};
use serde_json::{Value, json};

use crate::lathe;

fn place() -> TempRepo {
    let repo = TempRepo::with_git(&[
        ("f", "orig\n"),
        ("q", "other\n"),
        ("h0", "hard\n"),
        ("deep/f", "deep\n"),
        ("deep/er/f3", "deeper\n"),
        ("sub/keep", "sub\n"),
    ]);
    symlink("f", repo.path().join("alias")).unwrap();
    symlink("alias", repo.path().join("twice")).unwrap();
    symlink("deep/er", repo.path().join("lnk")).unwrap();
    std::fs::hard_link(repo.path().join("h0"), repo.path().join("hard")).unwrap();
    repo
}

/// Every path below a folder with what it holds: text, where a link leads, or that it is a folder.
fn tree(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in std::fs::read_dir(&at).unwrap().map(Result::unwrap) {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            if path.ends_with(".git") {
                continue;
            }
            let held = if kind.is_symlink() {
                format!("-> {}", std::fs::read_link(&path).unwrap().display())
            } else if kind.is_dir() {
                folders.push(path.clone());
                "folder".to_owned()
            } else {
                let mode = path.metadata().unwrap().mode();
                format!("{mode:o} {}", std::fs::read_to_string(&path).unwrap())
            };
            found.insert(path.strip_prefix(folder).unwrap().display().to_string(), held);
        }
    }
    found
}

fn is_taken_back(toolset: &str, tool: &str, arguments: Value) {
    let (repo, home) = (place(), lathe());
    let about = format!("{toolset} {tool} {arguments}");
    let before = tree(repo.path());
    let answer = call("c1", tool, arguments);
    let model = FakeModel::serving(Script::new().answer(answer).answer(done("ok")));
    let words = ["run", "go", "--mode", "full-auto", "--toolset", toolset, "--output", "stream-json"];
    let ran = home.clone().in_dir(repo.path()).args(words).with_model(&model).run().expect_code(0);
    assert_ne!(tree(repo.path()), before, "{about} changed nothing: {}", ran.stdout);
    assert!(!ran.stdout.contains("Changed by somebody else"), "{about}: {}", ran.stdout);
    let ran = home.in_dir(repo.path()).args(["undo"]).run().expect_code(0);
    assert_eq!(tree(repo.path()), before, "{about}: {}{}", ran.stdout, ran.stderr);
    let inode = |name: &str| repo.path().join(name).metadata().unwrap().ino();
    assert_eq!(inode("h0"), inode("hard"), "{about}: two names of one file");
}

#[test]
fn a_file_tool_that_writes_through_a_link_is_taken_back() {
    for path in ["alias", "twice", "lnk/f3", "lnk/../f"] {
        let old = match path {
            "lnk/f3" => "deeper",
            "lnk/../f" => "deep",
            _ => "orig",
        };
        let patch = format!("*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+new\n*** End Patch\n");
        is_taken_back("lathe", "edit", json!({ "path": path, "old_str": old, "new_str": "new" }));
        is_taken_back("lathe", "apply_patch", json!({ "patch": patch }));
    }
    for path in ["lnk/new", "lnk/made/new", "sub/../new", "lnk/../new"] {
        is_taken_back("lathe", "write", json!({ "path": path, "content": "x\n" }));
    }
}

/// A toolset, a tool of it, and the arguments by the folder worked in.
type Case = (&'static str, &'static str, fn(&Path) -> Value);

#[test]
fn a_file_tool_of_another_toolset_that_writes_through_a_link_is_taken_back() {
    // Both name files from the root of the machine.
    let cases: [Case; 4] = [
        ("gemini", "write_file", |at| json!({ "file_path": at.join("alias"), "content": "x\n" })),
        (
            "gemini",
            "replace",
            |at| json!({ "file_path": at.join("twice"), "old_string": "orig", "new_string": "x" }),
        ),
        (
            "trae",
            "str_replace_based_edit_tool",
            |at| json!({ "command": "str_replace", "path": at.join("alias"), "old_str": "orig", "new_str": "x" }),
        ),
        (
            "trae",
            "str_replace_based_edit_tool",
            |at| json!({ "command": "create", "path": at.join("lnk/new"), "file_text": "x\n" }),
        ),
    ];
    for (toolset, tool, arguments) in cases {
        let (repo, home) = (place(), lathe());
        let before = tree(repo.path());
        let answer = call("c1", tool, arguments(&repo.path().canonicalize().unwrap()));
        let last = if toolset == "gemini" { say("ok") } else { done("ok") };
        let model = FakeModel::serving(Script::new().answer(answer).answer(last));
        let words = ["run", "go", "--mode", "full-auto", "--toolset", toolset, "--output", "stream-json"];
        let ran = home.clone().in_dir(repo.path()).args(words).with_model(&model).run().expect_code(0);
        assert_ne!(tree(repo.path()), before, "{toolset} {tool}: {}", ran.stdout);
        let ran = home.in_dir(repo.path()).args(["undo"]).run().expect_code(0);
        assert_eq!(tree(repo.path()), before, "{toolset} {tool}: {}", ran.stdout);
    }
}

#[test]
fn a_line_that_writes_what_it_does_not_name_is_taken_back() {
    for line in [
        "echo x > alias",
        "echo x >> twice",
        "cp q alias",
        "echo x | tee alias",
        "truncate -s 0 alias",
        "chmod 600 alias",
        "cat q > \"alias\"",
        "rm -r lnk/",
        "uniq q f",
        "xxd q f || cp q f",
        "cp -b q f",
        "cp --backup=numbered q f",
        "mv -S .bak -b q f",
        "echo x > hard",
        "echo x > lnk/new",
        "mkdir -p lnk/a/b",
        "ln -s f other; echo x > other; rm other",
        "echo x > alias; rm alias",
        "mv alias b; echo x > b",
        "write alias x",
        "write lnk/../f x",
        "write lnk/new x",
        "cd sub && write ../new x",
        "cd lnk && write ../new x",
        "cd sub && edit ../alias --old orig --new x || write ../alias x",
    ] {
        is_taken_back("lathe", "bash", json!({ "command": line }));
    }
}
