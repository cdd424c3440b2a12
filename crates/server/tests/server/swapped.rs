//! A folder that is swapped for a link while the server works in it: nothing outside is read or written.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use lathe_protocol::Mode;
use lathe_testkit::size;
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use serde_json::{Value, json};

use crate::files::encoded;
use crate::git_bounds::git;
use crate::kit::{Server, call, cassette, done};
use crate::paths_world::picture;

const CANARY: &str = "CANARY";
const BEFORE: &str = "before\n";
const LEFT: &str = "left by the agent\n";

/// A server of a root with the folder `p`, in which a session changed two files, and a folder outside that looks like it.
struct World {
    server: Server,
    session: String,
    folder: PathBuf,
    link: PathBuf,
    outside: PathBuf,
}

async fn world() -> World {
    let write = |path: &str| json!({ "command": format!("printf 'left by the agent\\n' > {path}") });
    let answers = [
        json!([call("a", "bash", write("b.txt")), call("b", "bash", write("sub/a.txt"))]),
        json!([done("d", "done")]),
    ];
    let server = Server::start(cassette(answers), Mode::FullAuto).await;
    let (folder, link) = (server.root.join("p"), server.root.join("l"));
    let outside = server.root.parent().unwrap().join("outside");
    for (place, text) in [(&folder, BEFORE), (&outside, LEFT)] {
        fs::create_dir_all(place.join("sub")).unwrap();
        for file in ["b.txt", "sub/a.txt"] {
            fs::write(place.join(file), text).unwrap();
        }
    }
    // What only the outside has, by content and by name.
    for name in ["secret.txt", "CANARY.txt", "sub/CANARY.txt"] {
        fs::write(outside.join(name), format!("{CANARY}\n")).unwrap();
    }
    symlink(&outside, &link).unwrap();
    let mut socket = server.socket("").await;
    socket.say(&json!({ "task": "change it", "working_dir": folder })).await;
    let frames = socket.until("end").await;
    let session = frames.iter().find_map(|frame| frame["session_id"].as_str()).unwrap().to_owned();
    assert_eq!(fs::read_to_string(folder.join("sub/a.txt")).unwrap(), LEFT, "{frames:?}");
    World { server, session, folder, link, outside }
}

fn exchange(one: &Path, other: &Path) {
    let _ = renameat2(AT_FDCWD, one, AT_FDCWD, other, RenameFlags::RENAME_EXCHANGE);
}

/// Exchanges the folder and the link until it is dropped.
struct Swapper {
    stop: Arc<AtomicBool>,
    swaps: Arc<AtomicUsize>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Swapper {
    fn start(one: PathBuf, other: PathBuf) -> Self {
        let (stop, swaps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let thread = std::thread::spawn({
            let (stop, swaps) = (Arc::clone(&stop), Arc::clone(&swaps));
            move || {
                while !stop.load(Ordering::Relaxed) {
                    exchange(&one, &other);
                    swaps.fetch_add(1, Ordering::Relaxed);
                    std::thread::yield_now();
                }
            }
        });
        Self { stop, swaps, thread: Some(thread) }
    }
}

impl Drop for Swapper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(|thread| thread.join());
    }
}

const ROUTES: [&str; 21] = [
    "list",
    "tree",
    "read",
    "secret",
    "download",
    "text",
    "names",
    "rewind",
    "undo",
    "save",
    "over",
    "upload",
    "rename",
    "folder",
    "delete",
    "removed",
    "restore",
    "reject",
    "session files",
    "git status",
    "git diff",
];

async fn ask(world: &World, route: &str, round: usize, removed: &mut Option<String>) -> (u16, Value) {
    let (server, id) = (&world.server, &world.session);
    let folder = world.folder.display().to_string();
    let place = format!("workspace={}", encoded(&folder));
    let get = |path: String| ("GET", path, None);
    let post = |path: &str, body: Value| ("POST", path.to_owned(), Some(body));
    let (method, path, body) = match route {
        "list" => get(format!("/api/files?{place}&relative_dir=sub")),
        "tree" => get(format!("/files/list?{place}&depth=9")),
        "read" => get(format!("/api/file?{place}&file=sub/a.txt")),
        "secret" => get(format!("/api/file?{place}&file=secret.txt")),
        "download" => get(format!("/api/file/download?{place}&file=secret.txt")),
        "text" => get(format!("/api/files/search?{place}&q={CANARY}")),
        "names" => get(format!("/api/files/search?{place}&q=txt&names=true")),
        "rewind" => post(&format!("/api/sessions/{id}/rewind"), json!({ "to": 0, "files": true })),
        "undo" => post(&format!("/api/sessions/{id}/undo"), json!({})),
        "save" => post(
            "/api/file",
            json!({ "workspace": folder, "file": format!("new{round}.txt"), "content": "x" }),
        ),
        "over" => {
            let version = lathe_protocol::Digest::of(LEFT.as_bytes()).to_string();
            let body = json!({ "workspace": folder, "file": "b.txt", "content": "x", "version": version });
            ("PUT", "/api/file".to_owned(), Some(body))
        }
        "upload" => {
            return server.upload(&format!("{place}&relative_path=sub/up{round}.txt"), b"x").await;
        }
        "rename" => post(
            "/api/file/rename",
            json!({ "workspace": folder, "file": "sub/CANARY.txt", "to": format!("sub/r{round}") }),
        ),
        "folder" => post("/api/folder", json!({ "workspace": folder, "folder": format!("made{round}") })),
        "delete" => ("DELETE", format!("/api/file?{place}&file=b.txt"), None),
        "removed" => get(format!("/api/files/removed?{place}")),
        "restore" => match removed.take() {
            Some(kept) => post("/api/file/restore", json!({ "workspace": folder, "id": kept })),
            None => return (200, Value::Null),
        },
        "reject" => post(&format!("/api/sessions/{id}/changes/reject"), json!({ "all": true })),
        "session files" => get(format!("/agent/session/{id}/files?path=sub")),
        "git status" => post("/api/git/status", json!({ "workspace": folder })),
        "git diff" => post("/api/git/diff", json!({ "workspace": folder })),
        other => panic!("{other}"),
    };
    let answer = server.ask_as(&server.token, method, &path, body.as_ref()).await;
    if route == "delete" && answer.0 == 200 {
        *removed = answer.1["quarantine"].as_str().map(str::to_owned);
    }
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_swapped_for_a_link_in_a_loop_leads_nowhere() {
    let world = world().await;
    let outside = picture(&world.outside);
    let rounds = size(420, 10_000);
    let swapper = Swapper::start(world.folder.clone(), world.link.clone());
    let (mut removed, mut answered) = (None, 0);
    let mut wrong: Vec<String> = Vec::new();
    for round in 0..rounds {
        let route = ROUTES[round % ROUTES.len()];
        let mut answer = Box::pin(ask(&world, route, round, &mut removed)).await;
        // The test asks faster than a client may.
        while answer.0 == 429 {
            tokio::time::sleep(Duration::from_millis(50)).await;
            answer = Box::pin(ask(&world, route, round, &mut removed)).await;
        }
        let (status, body) = answer;
        answered += usize::from(status == 200);
        // What is looked for is named in no answer of these.
        if body.to_string().contains(CANARY) && route != "rename" {
            wrong.push(format!("{route} in round {round}: {status} {body}"));
        }
    }
    let swaps = swapper.swaps.load(Ordering::Relaxed);
    drop(swapper);
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(picture(&world.outside), outside, "the outside was changed");
    // The loop swapped, and the server still worked between.
    assert!(swaps > rounds / 10 && answered > 0, "{swaps} swaps, {answered} answers");
    world.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn undo_rewind_and_reject_refuse_a_workspace_that_is_a_link_now() {
    let world = world().await;
    let outside = picture(&world.outside);
    exchange(&world.folder, &world.link);
    for (route, body) in [
        ("changes/reject", json!({ "all": true })),
        ("undo", json!({})),
        ("rewind", json!({ "to": 0, "files": true })),
    ] {
        let (status, body) =
            world.server.post(&format!("/api/sessions/{}/{route}", world.session), body).await;
        assert!(status >= 400, "{route}: {status} {body}");
        assert!(body.to_string().contains("link"), "{route}: {body}");
    }
    assert_eq!(picture(&world.outside), outside);
    // With the folder back in its place they work.
    exchange(&world.folder, &world.link);
    let (status, body) = world
        .server
        .post(&format!("/api/sessions/{}/changes/reject", world.session), json!({ "all": true }))
        .await;
    assert_eq!(status, 200, "{body}");
    assert_eq!(fs::read_to_string(world.folder.join("sub/a.txt")).unwrap(), BEFORE);
    world.server.stop().await;
}

/// A repository with two commits, whose newest is not packed.
fn repository(folder: &Path, text: &str) {
    fs::create_dir_all(folder).unwrap();
    git(folder, &["init", "-q", "-b", "main"]);
    for (at, text) in [text, "second\n"].into_iter().enumerate() {
        fs::write(folder.join(if at == 0 { "a.txt" } else { "b.txt" }), text).unwrap();
        git(folder, &["add", "."]);
        git(folder, &["commit", "-q", "-m", text.trim()]);
        if at == 0 {
            git(folder, &["gc", "-q"]);
        }
    }
}

/// Asks a git route about a folder. `init` is asked about the folder `new` of the root.
async fn ask_git(server: &Server, route: &str, folder: &str, round: usize) -> (u16, Value) {
    let mut body = json!({ "workspace": folder });
    let more = match route {
        "show" => json!({ "path": "a.txt" }),
        "add" => json!({ "files": ["a.txt"] }),
        "commit" => json!({ "message": format!("round {round}"), "author_name": "a", "author_email": "b" }),
        "init" => json!({ "workspace": "new" }),
        "status" | "log" | "diff" => json!({}),
        other => panic!("{other}"),
    };
    let (Some(body), Some(more)) = (body.as_object_mut(), more.as_object()) else { panic!() };
    body.extend(more.clone());
    loop {
        let answer = server.post(&format!("/api/git/{route}"), json!(body)).await;
        // The test asks faster than a client may.
        if answer.0 != 429 {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

const GIT_ROUTES: [&str; 7] = ["log", "show", "diff", "status", "add", "commit", "init"];

/// A part of a repository is swapped for a link to the same part of one outside, while git runs.
#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_a_repository_swapped_for_a_link_in_a_loop_leads_nowhere() {
    let server = Server::start(cassette([json!([done("d", "done")])]), Mode::FullAuto).await;
    let (repo, outside) = (server.root.join("repo"), server.root.parent().unwrap().join("outside"));
    repository(&repo, "inside\n");
    repository(&outside, &format!("{CANARY}\n"));
    git(&repo, &["worktree", "add", "-q", "-b", "side", "../tree"]);
    for folder in [server.root.join("new"), outside.join("empty")] {
        fs::create_dir(folder).unwrap();
    }
    let secret = git(&outside, &["rev-parse", "HEAD"]);
    let before = picture(&outside);
    let parts = [
        ("repo", "repo/.git", outside.join(".git")),
        ("repo", "repo/.git/objects", outside.join(".git/objects")),
        ("repo", "repo/.git/objects/pack", outside.join(".git/objects/pack")),
        ("repo", "repo/.git/refs", outside.join(".git/refs")),
        ("repo", "repo/.git/index", outside.join(".git/index")),
        ("repo", "repo/.git/HEAD", outside.join(".git/HEAD")),
        ("tree", "repo/.git", outside.join(".git")),
        ("tree", "tree", outside.clone()),
        ("repo", "new", outside.join("empty")),
    ];
    let rounds = size(378, 10_000);
    let mut wrong: Vec<String> = Vec::new();
    let (mut swaps, mut answered) = (0, 0);
    for (at, (folder, part, lead)) in parts.iter().enumerate() {
        let link = server.root.join(format!("link{at}"));
        symlink(lead, &link).unwrap();
        let swapper = Swapper::start(server.root.join(part), link.clone());
        for round in 0..rounds / parts.len() {
            let route = GIT_ROUTES[round % GIT_ROUTES.len()];
            let (status, body) = Box::pin(ask_git(&server, route, folder, round)).await;
            answered += usize::from(status == 200);
            let text = body.to_string();
            if text.contains(CANARY) || text.contains(&secret) || status >= 500 {
                wrong.push(format!("{route} with {part} in round {round}: {status} {text}"));
            }
        }
        swaps += swapper.swaps.load(Ordering::Relaxed);
        drop(swapper);
        if link.symlink_metadata().is_ok_and(|found| !found.is_symlink()) {
            exchange(&server.root.join(part), &link);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(picture(&outside), before, "the outside was changed");
    assert!(swaps > rounds / 10 && answered > 0, "{swaps} swaps, {answered} answers");
    server.stop().await;
}
