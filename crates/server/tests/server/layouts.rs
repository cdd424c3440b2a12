//! No way of a client to files completes a bare repository, whose settings and hooks git would run.

use std::path::Path;

use lathe_protocol::Mode;
use serde_json::{Value, json};

use crate::git_bounds::git;
use crate::kit::{Server, call, cassette, done};

const HEAD: &str = "ref: refs/heads/main\n";

/// A server on which a session has run this line, and the session.
async fn ran(line: &str, before: impl FnOnce(&Path)) -> (Server, String) {
    let answers =
        [json!([call("c1", "bash", json!({ "command": line }))]), json!([done("d1", "It is gone.")])];
    let server = Server::start(cassette(answers), Mode::FullAuto).await;
    before(&server.root);
    let frames = server.run("Remove it.").await.until("end").await;
    let session = frames.iter().find_map(|frame| frame["session_id"].as_str()).unwrap().to_owned();
    (server, session)
}

/// The content of `b`, a bare repository, without its `refs`.
fn half(root: &Path) {
    std::fs::create_dir_all(root.join("b/objects")).unwrap();
    std::fs::write(root.join("b/HEAD"), HEAD).unwrap();
}

/// The rest of it, as a client writes it while there is no `HEAD`.
async fn write_the_rest(server: &Server) {
    for (path, body) in [
        ("/api/folder", json!({ "folder": "b/refs" })),
        ("/api/file", json!({ "file": "b/config", "content": "[core]\n\tfsmonitor = x\n" })),
        ("/api/file", json!({ "file": "b/hooks/post-checkout", "content": "#!/bin/sh\n" })),
    ] {
        let (status, said) = server.post(path, body).await;
        assert_eq!(status, 200, "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkout_is_judged_by_all_its_files_together() {
    let server = Server::start(cassette([json!([done("d1", "done")])]), Mode::Default).await;
    let files = ["b/HEAD", "b/objects/k", "b/refs/k", "b/config", "b/hooks/post-checkout"];
    git(&server.root, &["init", "-q", "-b", "main"]);
    for file in files {
        let path = server.root.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, HEAD).unwrap();
    }
    git(&server.root, &["add", "-Af"]);
    git(&server.root, &["commit", "-q", "-m", "x"]);
    std::fs::remove_dir_all(server.root.join("b")).unwrap();
    let checkout = |files: &[&str]| {
        let body = json!({ "files": files });
        let server = &server;
        async move { server.post("/api/git/checkout", body).await }
    };
    let (status, said) = checkout(&files).await;
    assert_eq!(status, 403, "{said}");
    assert!(!server.root.join("b").exists());
    // Files that do not make a repository may be restored.
    let (status, said) = checkout(&["b/objects/k", "b/refs/k", "b/config"]).await;
    assert_eq!(status, 200, "{said}");
    let (status, said) = checkout(&["b/HEAD"]).await;
    assert_eq!(status, 403, "{said}");
    assert!(!server.root.join("b/HEAD").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_completes_no_repository_around_what_was_written_since() {
    let (server, session) = ran("rm b/HEAD a.txt", half).await;
    write_the_rest(&server).await;
    for preview in [true, false] {
        let body = json!({ "preview": preview });
        let (status, undone) = server.post(&format!("/api/sessions/{session}/undo"), body).await;
        assert_eq!(status, 200, "{undone}");
        let named = |list: &Value, path: &str| list.as_array().unwrap().iter().any(|act| act["path"] == path);
        assert!(named(&undone["conflicts"], "b/HEAD"), "{undone}");
        assert!(named(&undone["restored"], "a.txt"), "{undone}");
    }
    assert!(!server.root.join("b/HEAD").exists() && server.root.join("a.txt").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_edit_completes_no_repository_around_what_was_written_since() {
    let (server, session) = ran("rm b/HEAD", half).await;
    write_the_rest(&server).await;
    let (status, said) =
        server.post(&format!("/api/sessions/{session}/changes/reject"), json!({ "all": true })).await;
    assert_eq!(status, 409, "{said}");
    assert!(said["detail"].as_str().unwrap().contains("parts of a git repository"), "{said}");
    assert!(!server.root.join("b/HEAD").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_that_was_removed_as_a_whole_comes_back_as_a_whole() {
    let whole = |root: &Path| {
        half(root);
        std::fs::create_dir_all(root.join("b/refs/heads")).unwrap();
        std::fs::write(root.join("b/config"), "[core]\n\tbare = true\n").unwrap();
    };
    let (server, session) = ran("rm -r b", whole).await;
    assert!(!server.root.join("b").exists());
    let (status, undone) = server.post(&format!("/api/sessions/{session}/undo"), json!({})).await;
    assert_eq!(status, 200, "{undone}");
    for name in ["HEAD", "objects", "refs/heads", "config"] {
        assert!(server.root.join("b").join(name).exists(), "{name}: {undone}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_requests_at_once_complete_no_repository() {
    let server = Server::start(cassette([json!([done("d1", "done")])]), Mode::Default).await;
    for round in 0..60 {
        let folder = format!("r{round}");
        std::fs::create_dir_all(server.root.join(&folder).join("refs")).unwrap();
        let objects = json!({ "folder": format!("{folder}/objects") });
        let head = json!({ "file": format!("{folder}/HEAD"), "content": HEAD });
        let (one, other) = tokio::join!(server.post("/api/folder", objects), server.post("/api/file", head));
        let mut both = [one.0, other.0];
        both.sort_unstable();
        assert_eq!(both, [200, 403], "{folder}: {} {}", one.1, other.1);
    }
}
