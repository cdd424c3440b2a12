//! Git over HTTP stays in the roots and out of Lathe's own folder, and starts nothing inside of submodules.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use lathe_host::{Home, HostError};
use lathe_protocol::Mode;
use serde_json::{Value, json};

use crate::kit::{Server, cassette, done};

async fn server() -> Server {
    Server::start(cassette([json!([done("c1", "done")])]), Mode::Default).await
}

/// The machine's own git, for what a person did before.
pub(crate) fn git(folder: &Path, arguments: &[&str]) -> String {
    let who = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];
    let ran = Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .envs(who.map(|name| (name, "x")))
        .output()
        .unwrap();
    assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8_lossy(&ran.stdout).trim().to_owned()
}

/// A repository with one file in its one commit.
fn repository(folder: &Path, text: &str) {
    std::fs::create_dir_all(folder).unwrap();
    git(folder, &["init", "-q", "-b", "main"]);
    std::fs::write(folder.join("a.txt"), text).unwrap();
    git(folder, &["add", "a.txt"]);
    git(folder, &["commit", "-q", "-m", text.trim()]);
}

/// A program that leaves a mark.
fn marker(folder: &Path) -> (String, PathBuf) {
    let (program, mark) = (folder.join("evil.sh"), folder.join("ran"));
    std::fs::write(&program, format!("#!/bin/sh\necho ran >> {}\ncat\n", mark.display())).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    (program.display().to_string(), mark)
}

const LOOKS: [&str; 4] = ["status", "diff", "log", "show"];

async fn look(server: &Server, what: &str, folder: &str) -> (u16, Value) {
    let body =
        json!({ "workspace": folder, "path": if what == "show" { json!("a.txt") } else { Value::Null } });
    server.post(&format!("/api/git/{what}"), body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_at_a_folder_runs_no_program_of_that_folder_or_of_one_inside() {
    let server = server().await;
    let (program, mark) = marker(server.root.parent().unwrap());
    repository(&server.root.join("repo"), "one\n");
    let inner = server.root.join("repo/inner");
    repository(&inner, "inner\n");
    git(&server.root.join("repo"), &["add", "inner"]);
    git(&server.root.join("repo"), &["commit", "-q", "-m", "inner"]);
    for key in ["diff.evil.command", "diff.evil.textconv", "core.fsmonitor", "filter.evil.clean"] {
        git(&inner, &["config", key, &program]);
    }
    std::fs::write(inner.join(".gitattributes"), "* diff=evil filter=evil\n").unwrap();
    std::fs::write(inner.join("a.txt"), "changed\n").unwrap();
    for (key, value) in
        [("diff.submodule", "diff"), ("diff.ignoreSubmodules", "none"), ("status.submoduleSummary", "true")]
    {
        git(&server.root.join("repo"), &["config", key, value]);
    }
    // The same as a folder that only looks like a repository, as it comes with a clone.
    let docs = server.root.join("clone/docs");
    std::fs::create_dir_all(docs.parent().unwrap()).unwrap();
    assert!(
        Command::new("cp").arg("-a").arg(server.root.join("repo")).arg(&docs).status().unwrap().success()
    );
    for entry in std::fs::read_dir(docs.join(".git")).unwrap() {
        let entry = entry.unwrap();
        std::fs::rename(entry.path(), docs.join(entry.file_name())).unwrap();
    }
    std::fs::remove_dir(docs.join(".git")).unwrap();
    git(&docs, &["config", "--file", "config", "core.worktree", "."]);
    git(&docs, &["config", "--file", "config", "core.bare", "false"]);
    for what in LOOKS {
        assert_eq!(look(&server, what, "repo").await.0, 200, "{what}");
        assert_eq!(look(&server, what, "clone/docs").await.0, 409, "{what}");
        assert_eq!(look(&server, what, "repo/inner").await.0, 200, "{what}");
    }
    for files in [json!(["inner"]), json!(["a.txt", "inner"])] {
        let body = json!({ "workspace": "repo", "files": files });
        assert_eq!(server.post("/api/git/add", body.clone()).await.0, 200, "{body}");
    }
    assert!(!mark.exists());
    // The trick works for a git without these precautions.
    let _ = Command::new("git").args(["diff", "HEAD"]).current_dir(server.root.join("repo")).output();
    assert!(mark.exists());
    server.stop().await;
}

/// A commit inside is what is staged of a repository inside.
#[tokio::test(flavor = "multi_thread")]
async fn the_commit_of_a_repository_inside_is_seen_and_staged() {
    let server = server().await;
    let (root, inner) = (server.root.clone(), server.root.join("inner"));
    repository(&root, "one\n");
    repository(&inner, "inner\n");
    let status = async || server.post("/api/git/status", json!({})).await.1["files"].clone();
    assert_eq!(status().await, json!([{ "path": "inner/", "status": "??" }]));
    assert_eq!(server.post("/api/git/add", json!({ "files": ["inner"] })).await.0, 200);
    assert_eq!(status().await, json!([{ "path": "inner", "status": "A " }]));
    git(&root, &["commit", "-q", "-m", "inner"]);
    git(&inner, &["commit", "-q", "--allow-empty", "-m", "next"]);
    assert_eq!(status().await, json!([{ "path": "inner", "status": " M" }]));
    let (_, body) = server.post("/api/git/diff", json!({})).await;
    let next = git(&inner, &["rev-parse", "HEAD"]);
    assert!(body["diff"].as_str().unwrap().contains(&format!("+Subproject commit {next}")), "{body}");
    std::fs::write(root.join("a.txt"), "two\n").unwrap();
    assert_eq!(server.post("/api/git/add", json!({ "files": ["inner", "a.txt"] })).await.0, 200);
    assert_eq!(
        status().await,
        json!([{ "path": "a.txt", "status": "M " }, { "path": "inner", "status": "M " }])
    );
    server.stop().await;
}

/// Nothing of a repository outside of the roots comes over the wire.
#[tokio::test(flavor = "multi_thread")]
async fn a_repository_outside_of_the_roots_is_not_used() {
    let server = server().await;
    let private = server.root.parent().unwrap().join("private");
    repository(&private, "OUTSIDE SECRET\n");
    let secret = git(&private, &["rev-parse", "HEAD"]);
    let elsewhere = private.join(".git");
    std::fs::create_dir_all(server.root.join("file")).unwrap();
    std::fs::write(server.root.join("file/.git"), format!("gitdir: {}\n", elsewhere.display())).unwrap();
    std::fs::create_dir_all(server.root.join("link")).unwrap();
    symlink(&elsewhere, server.root.join("link/.git")).unwrap();
    git(&private, &["worktree", "add", "-q", server.root.join("tree").to_str().unwrap()]);
    repository(&server.root.join("borrows"), "one\n");
    std::fs::write(
        server.root.join("borrows/.git/objects/info/alternates"),
        format!("{}\n", elsewhere.join("objects").display()),
    )
    .unwrap();
    repository(&server.root.join("refs"), "one\n");
    symlink(private.join("a.txt"), server.root.join("refs/.git/packed-refs")).unwrap();
    for folder in ["file", "link", "tree", "borrows", "refs"] {
        for what in LOOKS {
            let (status, body) = look(&server, what, folder).await;
            assert_eq!(status, 409, "{what} {folder}: {body}");
            let text = body.to_string();
            assert!(!text.contains("SECRET") && !text.contains(&secret), "{what} {folder}: {text}");
            assert!(!text.contains(private.to_str().unwrap()), "{what} {folder}: {text}");
        }
        // Nor is it made a repository, which would write into the one outside.
        let before = std::fs::read_to_string(elsewhere.join("config")).unwrap();
        if folder != "borrows" && folder != "refs" {
            assert_eq!(server.post("/api/git/init", json!({ "workspace": folder })).await.0, 409, "{folder}");
        }
        assert_eq!(std::fs::read_to_string(elsewhere.join("config")).unwrap(), before);
    }
    // A repository inside whose `.git` leads out does not tell the commit it is at, and is not staged.
    repository(&server.root.join("outer"), "one\n");
    repository(&server.root.join("outer/inner"), "inner\n");
    git(&server.root.join("outer"), &["add", "inner"]);
    git(&server.root.join("outer"), &["commit", "-q", "-m", "inner"]);
    std::fs::remove_dir_all(server.root.join("outer/inner/.git")).unwrap();
    let lead = format!("gitdir: {}\n", elsewhere.display());
    std::fs::write(server.root.join("outer/inner/.git"), &lead).unwrap();
    std::fs::create_dir(server.root.join("outer/new")).unwrap();
    std::fs::write(server.root.join("outer/new/.git"), &lead).unwrap();
    for what in LOOKS {
        let (status, body) = look(&server, what, "outer").await;
        assert!(status == 200 && !body.to_string().contains(&secret), "{what}: {body}");
    }
    for file in ["inner", "new", "."] {
        let (status, body) =
            server.post("/api/git/add", json!({ "workspace": "outer", "files": [file] })).await;
        assert!(status == 409 || (file == "." && status == 403), "{file}: {status} {body}");
    }
    let (_, staged) = server.post("/api/git/diff", json!({ "workspace": "outer", "staged": true })).await;
    assert!(!staged.to_string().contains(&secret), "{staged}");
    server.stop().await;
}

/// Links deep in a repository, in what it borrows and in repositories inside.
#[tokio::test(flavor = "multi_thread")]
async fn links_deep_in_a_repository_are_refused_and_named() {
    let server = server().await;
    let private = server.root.parent().unwrap().join("private");
    repository(&private, "OUTSIDE SECRET\n");
    let secret = git(&private, &["rev-parse", "HEAD"]);
    let foreign = private.join(".git/objects");
    let (first, rest) = secret.split_at(2);
    let object = foreign.join(first).join(rest);
    // Objects of its own, and references to what lies outside.
    let own = |name: &str| {
        let folder = server.root.join(name);
        repository(&folder, "one\n");
        std::fs::write(folder.join(".git/refs/heads/main"), format!("{secret}\n")).unwrap();
        folder.join(".git/objects")
    };
    let borrowing = |name: &str, far: usize| {
        let mut from = own(name);
        for at in 1..=far {
            let next = server.root.join(format!("store/{name}{at}/objects"));
            std::fs::create_dir_all(from.join("info")).unwrap();
            std::fs::write(from.join("info/alternates"), format!("{}\n", next.display())).unwrap();
            std::fs::create_dir_all(&next).unwrap();
            from = next;
        }
        from
    };
    let objects = own("single");
    std::fs::create_dir_all(objects.join(first)).unwrap();
    symlink(&object, objects.join(first).join(rest)).unwrap();
    let objects = borrowing("folders", 1);
    for entry in std::fs::read_dir(&foreign).unwrap() {
        let entry = entry.unwrap();
        symlink(entry.path(), objects.join(entry.file_name())).unwrap();
    }
    let objects = borrowing("objects", 2);
    std::fs::create_dir(objects.join(first)).unwrap();
    symlink(&object, objects.join(first).join(rest)).unwrap();
    git(&private, &["repack", "-adq"]);
    let objects = own("packs");
    for entry in std::fs::read_dir(foreign.join("pack")).unwrap() {
        let entry = entry.unwrap();
        symlink(entry.path(), objects.join("pack").join(entry.file_name())).unwrap();
    }
    symlink(foreign.join("pack"), borrowing("far", 3).join("pack")).unwrap();
    for folder in ["single", "folders", "objects", "packs", "far"] {
        for what in LOOKS {
            let (status, body) = look(&server, what, folder).await;
            let text = body.to_string();
            assert!(status == 409 && text.contains("symbolic link"), "{what} {folder}: {status} {text}");
            assert!(!text.contains("SECRET") && !text.contains(&secret), "{what} {folder}: {text}");
            assert!(!text.contains(private.to_str().unwrap()), "{what} {folder}: {text}");
        }
    }
    // A repository inside with references outside is neither read nor staged.
    repository(&server.root.join("outer"), "one\n");
    let inner = server.root.join("outer/inner");
    repository(&inner, "inner\n");
    git(&server.root.join("outer"), &["add", "inner"]);
    git(&server.root.join("outer"), &["commit", "-q", "-m", "inner"]);
    std::fs::remove_dir_all(inner.join(".git/refs")).unwrap();
    symlink(private.join(".git/refs"), inner.join(".git/refs")).unwrap();
    for what in LOOKS {
        let (status, body) = look(&server, what, "outer").await;
        assert!(status == 200 && !body.to_string().contains(&secret), "{what}: {body}");
        let (status, body) = look(&server, what, "outer/inner").await;
        assert!(status == 409 && !body.to_string().contains(&secret), "{what}: {body}");
    }
    let add = json!({ "workspace": "outer", "files": ["inner"] });
    let (status, body) = server.post("/api/git/add", add).await;
    assert!(status == 409 && body.to_string().contains("symbolic link"), "{status} {body}");
    server.stop().await;
}

/// No route waits for a pipe.
#[tokio::test(flavor = "multi_thread")]
async fn a_pipe_in_the_place_of_a_file_that_git_reads_is_named() {
    let server = server().await;
    for (at, path) in
        ["sub/deep/.gitignore", "sub/.gitattributes", ".mailmap", "sub/inner/.git/HEAD"].iter().enumerate()
    {
        let name = format!("piped{at}");
        let folder = server.root.join(&name);
        repository(&folder, "one\n");
        let pipe = folder.join(path);
        std::fs::create_dir_all(pipe.parent().unwrap()).unwrap();
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let files = json!({ "workspace": name, "files": ["a.txt"] });
        let wish = json!({ "workspace": name, "message": "m", "author_name": "a", "author_email": "b" });
        let mut answers = Vec::new();
        for what in ["status", "diff"] {
            answers.push((what, look(&server, what, &name).await));
        }
        for what in ["add", "reset", "checkout"] {
            answers.push((what, server.post(&format!("/api/git/{what}"), files.clone()).await));
        }
        answers.push(("commit", server.post("/api/git/commit", wish).await));
        for (what, (status, body)) in answers {
            assert!(status == 409 && body.to_string().contains("pipe"), "{what} {path}: {status} {body}");
        }
        for what in ["log", "show"] {
            let (status, body) = look(&server, what, &name).await;
            assert!(status == 200 || *path == ".mailmap" && status == 409, "{what} {path}: {status} {body}");
        }
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn work_trees_and_modules_inside_of_the_roots_work() {
    let server = server().await;
    repository(&server.root.join("main"), "one\n");
    git(&server.root.join("main"), &["worktree", "add", "-q", "../tree"]);
    repository(&server.root.join("main/inner"), "inner\n");
    std::fs::create_dir_all(server.root.join("main/.git/modules")).unwrap();
    std::fs::rename(server.root.join("main/inner/.git"), server.root.join("main/.git/modules/inner"))
        .unwrap();
    std::fs::write(server.root.join("main/inner/.git"), "gitdir: ../.git/modules/inner\n").unwrap();
    for folder in ["tree", "main/inner"] {
        std::fs::write(server.root.join(folder).join("a.txt"), "two\n").unwrap();
        let (_, body) = server.post("/api/git/status", json!({ "workspace": folder })).await;
        assert_eq!(body["files"], json!([{ "path": "a.txt", "status": " M" }]), "{folder}");
        let add = json!({ "workspace": folder, "files": ["a.txt"] });
        assert_eq!(server.post("/api/git/add", add).await.0, 200);
        let wish =
            json!({ "workspace": folder, "message": "by us", "author_name": "a", "author_email": "b" });
        let (status, made) = server.post("/api/git/commit", wish).await;
        assert_eq!(status, 200, "{made}");
        assert_eq!(git(&server.root.join(folder), &["rev-parse", "HEAD"]), made["hash"].as_str().unwrap());
        assert_eq!(git(&server.root.join(folder), &["status", "--porcelain"]), "");
    }
    // From a folder inside, paths are taken from there.
    std::fs::create_dir(server.root.join("tree/sub")).unwrap();
    std::fs::write(server.root.join("tree/sub/b.txt"), "b\n").unwrap();
    std::fs::write(server.root.join("tree/a.txt"), "three\n").unwrap();
    let (_, body) = server.post("/api/git/status", json!({ "workspace": "tree/sub" })).await;
    assert_eq!(body["files"], json!([{ "path": "b.txt", "status": "??" }]));
    let add = json!({ "workspace": "tree/sub", "files": ["b.txt"] });
    assert_eq!(server.post("/api/git/add", add).await.0, 200);
    let (_, body) = server.post("/api/git/diff", json!({ "workspace": "tree/sub" })).await;
    assert!(body["diff"].as_str().unwrap().contains("+++ b/b.txt"), "{body}");
    assert!(!body["diff"].as_str().unwrap().contains("a.txt"), "{body}");
    server.stop().await;
}

/// Lathe's own folder in a served repository.
#[tokio::test(flavor = "multi_thread")]
async fn lathes_own_folder_is_not_seen_staged_or_brought_back() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    repository(&root, "one\n");
    let home = root.join(".local/share/lathe");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join("auth.json"), "SECRET-KEY\n").unwrap();
    std::fs::write(home.join("kept.json"), "SECRET-OLD\n").unwrap();
    git(&root, &["add", ".local/share/lathe/kept.json"]);
    git(&root, &["commit", "-q", "-m", "by mistake"]);
    std::fs::write(home.join("kept.json"), "SECRET-NEW\n").unwrap();
    symlink(".local/share/lathe", root.join("way")).unwrap();
    let bench = lathe_workbench::Workbench::new(Home::at(home.clone()));
    let git_here = bench.git(&root, std::slice::from_ref(&root)).await.unwrap();
    let status = git_here.status().await.unwrap();
    // The link that leads into it is not shown either.
    assert_eq!(status.files, []);
    assert!(!git_here.diff(None, 3, false).await.unwrap().contains("SECRET"));
    for path in [
        ".local/share/lathe/auth.json",
        "./.local/share/lathe/kept.json",
        ".local/share/lathe",
        "way/auth.json",
    ] {
        let files = [path.to_owned()];
        assert_forbidden(path, git_here.diff(Some(path), 3, false).await);
        assert_forbidden(path, git_here.diff(Some(path), 3, true).await);
        assert_forbidden(path, git_here.show(path, "HEAD").await);
        assert_forbidden(path, git_here.add(&files).await);
        assert_forbidden(path, git_here.reset(&files).await);
        assert_forbidden(path, git_here.checkout(&files).await);
    }
    // A folder above it is staged without it.
    git_here.add(&[".local".to_owned()]).await.ok();
    assert!(!git_here.diff(None, 3, true).await.unwrap().contains("SECRET"));
    assert_eq!(git(&root, &["diff", "--cached", "--name-only"]), "");
    for inside in [home.clone(), home.join("deep")] {
        std::fs::create_dir_all(&inside).unwrap();
        assert_forbidden("git", bench.git(&inside, std::slice::from_ref(&root)).await);
        assert_forbidden("init", bench.git_init(&inside, std::slice::from_ref(&root)).await);
    }
}

#[track_caller]
fn assert_forbidden<T>(what: &str, done: Result<T, HostError>) {
    match done {
        Err(HostError::File { problem: lathe_host::FileProblem::Forbidden, .. }) => {}
        Err(error) => panic!("{what}: {error}"),
        Ok(_) => panic!("{what} was done"),
    }
}

/// Git does not check the paths of an index that it reads.
#[tokio::test(flavor = "multi_thread")]
async fn an_index_with_paths_out_of_the_folder_is_refused_by_every_route_that_uses_it() {
    let server = server().await;
    let outside = server.root.parent().unwrap().join("outside");
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::write(outside.join("secret.txt"), "OUTSIDE SECRET\n").unwrap();
    let folder = server.root.join("repo");
    repository(&folder, "one\n");
    let whole = outside.join("secret.txt").display().to_string();
    for path in [
        "../../outside/secret.txt",
        "../../outside/nothing.txt",
        &whole,
        ".git/config",
        "x/../../../outside/y",
    ] {
        let mut entry = [&[0; 24][..], &0o100_644_u32.to_be_bytes(), &[0; 12], &[0xaa; 20]].concat();
        entry.extend((path.len() as u16).to_be_bytes());
        entry.extend(path.as_bytes());
        entry.extend(vec![0; 8 - entry.len() % 8]);
        let index = [&b"DIRC\0\0\0\x02\0\0\0\x01"[..], &entry, &[0; 20]].concat();
        std::fs::write(folder.join(".git/index"), &index).unwrap();
        for (what, more) in [
            ("status", json!({})),
            ("diff", json!({})),
            ("diff", json!({ "staged": true })),
            ("diff", json!({ "path": "a.txt" })),
            ("add", json!({ "files": ["a.txt"] })),
            ("reset", json!({ "files": ["a.txt"] })),
            ("checkout", json!({ "files": ["a.txt"] })),
            ("commit", json!({ "message": "m", "author_name": "x", "author_email": "y" })),
        ] {
            let mut body = more.clone();
            body["workspace"] = json!("repo");
            let (code, said) = server.post(&format!("/api/git/{what}"), body).await;
            assert_eq!(code, 409, "{path} {what}: {said}");
            let said = said.to_string();
            assert!(
                said.contains("not a path of the work tree") && !said.contains("SECRET"),
                "{path} {what}: {said}"
            );
            assert_eq!(std::fs::read(folder.join(".git/index")).unwrap(), index, "{path} {what}");
        }
        let (code, log) = look(&server, "log", "repo").await;
        assert_eq!((code, log.to_string().contains("one")), (200, true), "{log}");
    }
}
