//! A protected folder that a client names as its workspace: files that cannot be written from above cannot be written
//! from within.

use std::path::Path;
use std::process::Command;

use lathe_protocol::Mode;
use serde_json::{Value, json};

use crate::files::encoded;
use crate::kit::{Server, call, cassette, done};

const NINE: [(&str, &str); 9] = [
    (".git/hooks", "pre-commit"),
    (".git/info", "attributes"),
    (".git/refs/heads", "x"),
    (".git/objects/info", "alternates"),
    (".git", "config2"),
    (".vscode", "launch.json"),
    (".lathe", "config.toml"),
    (".claude", "settings.local.json"),
    (".husky", "pre-commit"),
];

fn git(folder: &Path, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=A", "-c", "user.email=a@example.com"]).args(arguments);
    let ran = git.current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
    assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// A served repository with all of these folders.
async fn repository(answers: String) -> Server {
    let server = Server::start(answers, Mode::AutoEdit).await;
    git(&server.root, &["init", "-q", "-b", "main"]);
    for (folder, name) in NINE {
        std::fs::create_dir_all(server.root.join(folder)).unwrap();
        let _ = std::fs::remove_file(server.root.join(folder).join(name));
        // A name in there would be a broken branch.
        if !folder.contains("refs") {
            std::fs::write(server.root.join(folder).join("spare"), "x\n").unwrap();
        }
    }
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn a_protected_folder_as_the_workspace_is_no_way_to_write_in_it() {
    let server = repository(cassette([json!([done("c1", "done")])])).await;
    for (folder, name) in NINE {
        let (place, file) = (server.root.join(folder), server.root.join(folder).join(name));
        let workspace = place.display().to_string();
        let body = json!({ "workspace": workspace, "file": name, "content": "#!/bin/sh\n" });
        let mut said = Vec::new();
        for method in ["PUT", "POST"] {
            said.push((method, server.ask_as(&server.token, method, "/api/file", Some(&body)).await));
        }
        let body = json!({ "workspace": workspace, "file": "spare", "to": name });
        said.push(("rename", server.post("/api/file/rename", body).await));
        let body = json!({ "workspace": workspace, "folder": name });
        said.push(("folder", server.post("/api/folder", body).await));
        let query = format!("workspace={}&relative_path={}", encoded(&workspace), encoded(name));
        said.push(("upload", server.upload(&query, b"#!/bin/sh\n").await));
        // A repository of its own would make the folder ordinary ground.
        said.push(("init", server.post("/api/git/init", json!({ "workspace": workspace })).await));
        assert!(!place.join(".git").exists(), "{folder}");
        for (way, (status, body)) in said {
            assert_eq!(status, 403, "{way} {folder}/{name}: {body}");
            assert!(!file.exists(), "{way} {folder}/{name}");
        }
        assert!(folder.contains("refs") || place.join("spare").exists());
    }
    // A work tree of its own is an ordinary folder, even below a protected one.
    git(&server.root, &["commit", "-q", "--allow-empty", "-m", "first"]);
    git(&server.root, &["worktree", "add", "-q", ".claude/worktrees/one", "-b", "one"]);
    let workspace = server.root.join(".claude/worktrees/one").display().to_string();
    let body = json!({ "workspace": workspace, "file": "a.txt", "content": "one\n" });
    let (status, said) = server.post("/api/file", body).await;
    assert!(status < 300, "{status} {said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_checkout_brings_a_protected_file_back_from_within_its_folder() {
    let server = repository(cassette([json!([done("c1", "done")])])).await;
    for (folder, name) in [(".vscode", "launch.json"), (".husky", "pre-commit"), (".claude", "settings.json")]
    {
        let file = server.root.join(folder).join(name);
        std::fs::write(&file, "planted\n").unwrap();
        git(&server.root, &["add", "-f", &format!("{folder}/{name}")]);
        git(&server.root, &["commit", "-q", "-m", "planted"]);
        for now in [None, Some("mine\n")] {
            match now {
                None => std::fs::remove_file(&file).unwrap(),
                Some(text) => std::fs::write(&file, text).unwrap(),
            }
            let workspace = server.root.join(folder).display().to_string();
            let body = json!({ "workspace": workspace, "files": [name] });
            let (status, said) = server.post("/api/git/checkout", body).await;
            assert_eq!(status, 403, "{folder}/{name}: {said}");
            assert_eq!(std::fs::read_to_string(&file).ok().as_deref(), now);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_in_a_protected_folder_writes_nothing_there() {
    for (folder, name) in [
        (".vscode", "mcp.json"),
        (".lathe", "y.toml"),
        (".claude", "hooks.json"),
        (".git/hooks", "post-merge"),
    ] {
        let answers = cassette([
            json!([call("a1", "write", json!({ "path": name, "content": "{}\n" }))]),
            json!([done("d1", "done")]),
        ]);
        let server = repository(answers).await;
        let mut socket = server.socket("").await;
        let place = server.root.join(folder);
        socket.say(&json!({ "task": "write", "working_dir": place })).await;
        let mut frames: Vec<Value> = Vec::new();
        while let Some(frame) = socket.next().await {
            let last = ["end", "error", "approval"].iter().any(|kind| frame["type"] == **kind);
            frames.push(frame);
            if last {
                break;
            }
        }
        assert!(frames.iter().all(|frame| frame["type"] != "file_changed"), "{folder}: {frames:?}");
        assert!(!place.join(name).exists(), "{folder}: {frames:?}");
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_parts_of_a_bare_repository_are_no_workspace() {
    let server = Server::start(cassette([json!([done("c1", "done")])]), Mode::AutoEdit).await;
    git(&server.root, &["init", "-q", "--bare", "bare.git"]);
    for (folder, name) in [
        ("hooks", "pre-receive"),
        ("info", "attributes"),
        ("refs", "x"),
        ("refs/heads", "main"),
        ("objects", "x"),
        ("objects/info", "alternates"),
        ("", "config"),
        ("hooks/new", "x"),
    ] {
        let place = server.root.join("bare.git").join(folder);
        std::fs::create_dir_all(&place).unwrap();
        let (workspace, file) = (place.display().to_string(), place.join(name));
        let before = std::fs::read(&file).ok();
        let (status, said) = server.post("/api/git/init", json!({ "workspace": workspace })).await;
        assert_eq!(status, 403, "init {folder}: {said}");
        // As one was made there before this was refused.
        if !folder.is_empty() {
            git(&place, &["init", "-q", "."]);
        }
        let body = json!({ "workspace": workspace, "file": name, "content": "#!/bin/sh\n" });
        for method in ["PUT", "POST"] {
            let (status, said) = server.ask_as(&server.token, method, "/api/file", Some(&body)).await;
            assert_eq!(status, 403, "{method} {folder}/{name}: {said}");
        }
        assert_eq!(std::fs::read(&file).ok(), before, "{folder}/{name}");
        let _ = std::fs::remove_dir_all(place.join(".git"));
        for method in ["PUT", "POST"] {
            let (status, said) = server.ask_as(&server.token, method, "/api/file", Some(&body)).await;
            assert_eq!(status, 403, "{method} {folder}/{name}, without a repository: {said}");
        }
    }
}
