//! Git over HTTP: what people do with it, and that neither arguments nor the repository itself run anything.

use std::path::Path;
use std::process::Command;

use lathe_protocol::Mode;
use serde_json::{Value, json};

use crate::kit::{Server, cassette, done};

async fn server() -> Server {
    Server::start(cassette([json!([done("c1", "done")])]), Mode::Default).await
}

/// The machine's own git, for what a person did before.
fn git(folder: &Path, arguments: &[&str]) -> String {
    let ran = Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output();
    let ran = ran.unwrap();
    assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8_lossy(&ran.stdout).trim().to_owned()
}

async fn repository() -> Server {
    let server = server().await;
    git(&server.root, &["init", "-q", "-b", "main"]);
    git(&server.root, &["config", "user.name", "A Person"]);
    git(&server.root, &["config", "user.email", "person@example.com"]);
    git(&server.root, &["add", "."]);
    git(&server.root, &["commit", "-q", "-m", "first"]);
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_seen_staged_committed_and_found_in_the_log() {
    let server = server().await;
    assert_eq!(server.post("/api/git/status", json!({})).await.0, 409);
    assert_eq!(server.post("/api/git/init", json!({})).await.0, 200);
    let (status, body) = server.post("/api/git/log", json!({})).await;
    assert_eq!((status, body), (200, json!({ "commits": [] })));
    let (_, body) = server.post("/api/git/status", json!({})).await;
    assert_eq!(body["files"], json!([{ "path": "a.txt", "status": "??" }]));
    assert_eq!(server.post("/api/git/add", json!({ "files": ["a.txt"] })).await.0, 200);
    let who = json!({ "message": "-m first\n\n# no comment", "author_name": "Me", "author_email": "me@example.com" });
    let (status, made) = server.post("/api/git/commit", who.clone()).await;
    assert_eq!(status, 200, "{made}");
    // Nothing is staged, so there is nothing to commit.
    assert_eq!(server.post("/api/git/commit", who).await.0, 409);
    let (_, log) = server.post("/api/git/log", json!({})).await;
    let commit = &log["commits"][0];
    assert_eq!((&commit["hash"], &commit["author"]), (&made["hash"], &json!("Me")));
    assert_eq!(commit["message"], "-m first\n\n# no comment");
    std::fs::write(server.root.join("a.txt"), "two\n").unwrap();
    std::fs::write(server.root.join("ü .txt"), "new\n").unwrap();
    let (_, diff) = server.post("/api/git/diff", json!({ "path": "a.txt", "request_id": "r7" })).await;
    assert!(diff["diff"].as_str().unwrap().contains("-one\n+two\n"), "{diff}");
    assert_eq!(diff["request_id"], "r7");
    let (_, diff) = server.post("/api/git/diff", json!({ "path": "ü .txt" })).await;
    assert!(
        diff["diff"].as_str().unwrap().contains("--- /dev/null\n+++ b/ü .txt\t\n@@ -0,0 +1 @@\n+new\n"),
        "{diff}"
    );
    let (_, shown) = server.post("/api/git/show", json!({ "path": "a.txt" })).await;
    assert_eq!(shown["content"], "one\n");
    server.post("/api/git/add", json!({ "files": ["a.txt", "ü .txt"] })).await;
    server.post("/api/git/reset", json!({ "files": ["ü .txt"] })).await;
    let (_, body) = server.post("/api/git/status", json!({})).await;
    assert_eq!(
        body["files"],
        json!([{ "path": "a.txt", "status": "M " }, { "path": "ü .txt", "status": "??" }])
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_goes_back_to_what_git_has_and_what_it_was_can_be_brought_back() {
    let server = repository().await;
    std::fs::write(server.root.join("a.txt"), "mine\n").unwrap();
    std::fs::write(server.root.join("other.txt"), "untracked\n").unwrap();
    let (status, body) = server.post("/api/git/checkout", json!({ "files": ["a.txt", "other.txt"] })).await;
    assert_eq!(status, 409, "{body}");
    assert_eq!(std::fs::read_to_string(server.root.join("a.txt")).unwrap(), "mine\n");
    let (status, body) = server.post("/api/git/checkout", json!({ "files": ["a.txt"] })).await;
    assert_eq!(status, 200, "{body}");
    assert_eq!(std::fs::read_to_string(server.root.join("a.txt")).unwrap(), "one\n");
    std::fs::remove_file(server.root.join("a.txt")).unwrap();
    let (status, _) = server.post("/api/file/restore", json!({ "id": body["removed"][0]["id"] })).await;
    assert_eq!(status, 200);
    assert_eq!(std::fs::read_to_string(server.root.join("a.txt")).unwrap(), "mine\n");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_begins_with_a_dash_or_leads_out_is_never_an_option() {
    let server = repository().await;
    let out = server.root.parent().unwrap().join("written");
    let option = format!("--output={}", out.display());
    let bad: Vec<(&str, Value)> = vec![
        ("show", json!({ "path": "a.txt", "revision": option })),
        ("show", json!({ "path": option })),
        ("show", json!({ "path": "a.txt", "revision": "-h" })),
        ("show", json!({ "path": "a.txt", "revision": "HEAD:a.txt" })),
        ("show", json!({ "path": "a.txt", "revision": "" })),
        ("show", json!({ "path": "../repo/a.txt" })),
        ("diff", json!({ "path": "../home" })),
        ("diff", json!({ "path": "/etc/passwd" })),
        ("add", json!({ "files": ["--all"] })),
        ("add", json!({ "files": ["-A"] })),
        ("add", json!({ "files": [] })),
        ("add", json!({ "files": [":/"] })),
        ("add", json!({ "files": ["../home"] })),
        ("add", json!({ "files": ["a\0b"] })),
        ("reset", json!({ "files": [] })),
        ("checkout", json!({ "files": ["--force"] })),
        ("checkout", json!({ "files": ["."] })),
        ("checkout", json!({ "files": [".git/config"] })),
        ("commit", json!({ "message": "" })),
        ("commit", json!({ "message": "x", "author_name": "a\nb", "author_email": "x" })),
        ("status", json!({ "workspace": "--help" })),
        ("status", json!({ "workspace": ".." })),
    ];
    for (what, body) in bad {
        let (status, answer) = server.post(&format!("/api/git/{what}"), body.clone()).await;
        assert!((400..500).contains(&status), "{what} {body}: {status} {answer}");
        assert!(!out.exists(), "{what} {body}");
    }
    // As names of files they are only names.
    std::fs::write(server.root.join("--all"), "x\n").unwrap();
    std::fs::write(server.root.join("b.txt"), "x\n").unwrap();
    let (status, _) = server.post("/api/git/add", json!({ "files": ["--all"] })).await;
    assert_eq!(status, 200);
    let (_, body) = server.post("/api/git/status", json!({})).await;
    assert_eq!(
        body["files"],
        json!([{ "path": "--all", "status": "A " }, { "path": "b.txt", "status": "??" }])
    );
    let (status, diff) = server.post("/api/git/diff", json!({ "path": "--all" })).await;
    assert!(status == 200 && diff["diff"].as_str().unwrap().contains("+x"), "{diff}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_the_repository_names_is_run() {
    let server = repository().await;
    let (root, mark) = (&server.root, server.root.parent().unwrap().join("ran"));
    std::fs::write(root.join("x.ab"), "one\n").unwrap();
    git(root, &["add", "x.ab"]);
    git(root, &["commit", "-q", "-m", "a=b"]);
    let script = root.parent().unwrap().join("run.sh");
    std::fs::write(&script, format!("#!/bin/sh\necho \"$0\" >> {}\ncat\nexit 0\n", mark.display())).unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let run = script.display().to_string();
    for (key, value) in [
        ("core.fsmonitor", run.as_str()),
        ("diff.external", &run),
        ("diff.evil.textconv", &run),
        ("diff.evil.command", &run),
        ("filter.evil.clean", &run),
        ("filter.evil.smudge", &run),
        ("gpg.program", &run),
        ("commit.gpgSign", "true"),
        ("core.pager", &run),
        ("core.editor", &run),
        ("core.sshCommand", &run),
        ("log.showSignature", "true"),
        ("diff.submodule", "diff"),
        ("diff.a=b.command", &run),
        ("filter.a=b.clean", &run),
        ("hook.evil.command", &run),
        ("hook.evil.event", "pre-commit"),
    ] {
        git(root, &["config", key, value]);
    }
    for hook in ["pre-commit", "commit-msg", "post-commit", "post-checkout", "post-index-change"] {
        std::fs::copy(&script, root.join(".git/hooks").join(hook)).unwrap();
    }
    std::fs::write(
        root.join(".gitattributes"),
        "*.evil filter=evil diff=evil\na.txt diff=evil\n*.ab filter=a=b diff=a=b\n",
    )
    .unwrap();
    std::fs::write(root.join("a.txt"), "two\n").unwrap();
    std::fs::write(root.join("x.evil"), "x\n").unwrap();
    std::fs::write(root.join("x.ab"), "two\n").unwrap();
    let post = async |what: &str, body: Value| {
        let (status, answer) = server.post(&format!("/api/git/{what}"), body).await;
        (status, answer)
    };
    assert_eq!(post("status", json!({})).await.0, 200);
    assert_eq!(post("diff", json!({ "path": "a.txt" })).await.0, 200);
    assert_eq!(post("diff", json!({})).await.0, 200);
    assert_eq!(post("add", json!({ "files": ["a.txt"] })).await.0, 200);
    // Without its filter other content would be staged.
    assert_eq!(post("add", json!({ "files": ["x.evil"] })).await.0, 409);
    let (status, answer) = post("commit", json!({ "message": "second" })).await;
    assert_eq!(status, 200, "{answer}");
    std::fs::write(root.join("a.txt"), "three\n").unwrap();
    assert_eq!(post("checkout", json!({ "files": ["a.txt"] })).await.0, 200);
    assert_eq!(post("log", json!({})).await.1["commits"][0]["author"], "A Person");
    assert_eq!(post("show", json!({ "path": "a.txt" })).await.1["content"], "two\n");
    assert!(!mark.exists(), "{}", std::fs::read_to_string(&mark).unwrap_or_default());
    // Running hooks needs the role admin.
    std::fs::write(root.join("a.txt"), "four\n").unwrap();
    post("add", json!({ "files": ["a.txt"] })).await;
    let operator = lathe_server::Tokens::add(&server.home, "op", lathe_server::Role::Operator).unwrap();
    let wish = json!({ "message": "third", "run_hooks": true });
    assert_eq!(server.ask_as(&operator, "POST", "/api/git/commit", Some(&wish)).await.0, 403);
    assert_eq!(post("commit", wish).await.0, 200);
    assert!(std::fs::read_to_string(&mark).unwrap().contains("pre-commit"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_around_what_is_served_is_none_of_ours() {
    let server = server().await;
    let around = server.root.parent().unwrap();
    git(around, &["init", "-q"]);
    assert_eq!(server.post("/api/git/status", json!({})).await.0, 409);
    std::fs::create_dir(server.root.join("sub")).unwrap();
    assert_eq!(server.post("/api/git/status", json!({ "workspace": "sub" })).await.0, 409);
    server.stop().await;
}
