//! Files over HTTP: what a person may do with them, and that no route has a way around the guard.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lathe_protocol::Mode;
use lathe_testkit::sample;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::kit::{Server, cassette, done};
use crate::paths_table::{Is, TABLE};
use crate::paths_world::{CANARY, World, picture};

async fn server() -> Server {
    Server::start(cassette([json!([done("c1", "done")])]), Mode::Default).await
}

/// A value of a query, every byte that is not a plain letter encoded once.
pub fn encoded(text: impl AsRef<[u8]>) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric();
    let each = |byte: &u8| if plain(byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") };
    text.as_ref().iter().map(each).collect()
}

impl Server {
    async fn send(&self, path: &str, headers: &str, body: &[u8]) -> (u16, Value) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n{headers}Connection: close\r\n\r\n",
            self.address, self.token
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        // A server that has said no does not read on.
        let _ = stream.write_all(body).await;
        let mut answer = Vec::new();
        let _ =
            tokio::time::timeout(Duration::from_secs(120), stream.read_to_end(&mut answer)).await.unwrap();
        let text = String::from_utf8_lossy(&answer).into_owned();
        let status = text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        let body = text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default();
        (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
    }

    pub async fn upload(&self, query: &str, content: &[u8]) -> (u16, Value) {
        let headers =
            format!("Content-Type: application/octet-stream\r\nContent-Length: {}\r\n", content.len());
        self.send(&format!("/files/upload?{query}"), &headers, content).await
    }

    async fn delete(&self, path: &str) -> (u16, Value) {
        self.ask_as(&self.token, "DELETE", path, None).await
    }

    async fn put(&self, path: &str, body: Value) -> (u16, Value) {
        self.ask_as(&self.token, "PUT", path, Some(&body)).await
    }
}

/// Every way to a file that a client can name.
const ROUTES: [&str; 16] = [
    "list",
    "tree",
    "read",
    "part",
    "download",
    "search",
    "watch",
    "save new",
    "save over",
    "upload",
    "upload over",
    "rename from",
    "rename to",
    "folder",
    "delete",
    "git",
];

async fn ask(server: &Server, route: &str, root: &Path, path: &[u8], content: &str) -> (u16, Value) {
    let text = String::from_utf8_lossy(path).into_owned();
    let place = format!("workspace={}", encoded(root.display().to_string()));
    let (name, folder) = (encoded(path), root.display().to_string());
    let version = lathe_protocol::Digest::of(content.as_bytes()).to_string();
    let (method, path, body) = match route {
        "list" => ("GET", format!("/api/files?{place}&relative_dir={name}"), None),
        "tree" => ("GET", format!("/files/list?{place}&relative_dir={name}&depth=9"), None),
        "read" => ("GET", format!("/api/file?{place}&file={name}"), None),
        "part" => ("GET", format!("/files/read?{place}&file={name}&offset=0&length=9"), None),
        "download" => ("GET", format!("/api/file/download?{place}&file={name}"), None),
        "search" => ("GET", format!("/api/files/search?{place}&q=CANARY&relative_dir={name}"), None),
        // The folder itself is what a client names here.
        "watch" => {
            ("GET", format!("/api/files?workspace={}", encoded(root.join(&text).display().to_string())), None)
        }
        "save new" => {
            let body = json!({ "workspace": folder, "file": text, "content": "written\n" });
            ("POST", "/api/file".to_owned(), Some(body))
        }
        "save over" => {
            let body =
                json!({ "workspace": folder, "file": text, "content": "written\n", "version": version });
            ("PUT", "/api/file".to_owned(), Some(body))
        }
        "upload" => {
            return server.upload(&format!("{place}&relative_path={name}"), b"written\n").await;
        }
        "upload over" => {
            let query = format!("{place}&relative_path={name}&overwrite=true");
            return server.upload(&query, b"written\n").await;
        }
        "rename from" => {
            let body = json!({ "workspace": folder, "file": text, "to": "moved.txt" });
            ("POST", "/api/file/rename".to_owned(), Some(body))
        }
        "rename to" => {
            let body = json!({ "workspace": folder, "file": "hard", "to": text });
            ("POST", "/api/file/rename".to_owned(), Some(body))
        }
        "folder" => ("POST", "/api/folder".to_owned(), Some(json!({ "workspace": folder, "folder": text }))),
        "delete" => ("DELETE", format!("/api/file?{place}&file={name}"), None),
        "git" => ("POST", "/api/git/diff".to_owned(), Some(json!({ "workspace": folder, "path": text }))),
        other => panic!("{other}"),
    };
    server.ask_as(&server.token, method, &path, body.as_ref()).await
}

fn is_writing(route: &str) -> bool {
    !matches!(route, "list" | "tree" | "read" | "part" | "download" | "search" | "watch" | "git")
}

#[tokio::test(flavor = "multi_thread")]
async fn no_route_reads_writes_or_removes_anything_outside_whatever_the_path() {
    let server = server().await;
    let mut wrong: Vec<String> = Vec::new();
    let mut count = 0;
    let make = |count: usize| {
        let base = server.root.join(format!("w{count}"));
        std::fs::create_dir(&base).unwrap();
        World::at(base)
    };
    let mut world = make(count);
    let mut outside = world.outside();
    let (mut git, mut whole) = (picture(&world.root.join(".git")), picture(&world.root));
    for case in sample(TABLE, 3) {
        for route in ROUTES {
            let path = std::os::unix::ffi::OsStringExt::into_vec(world.path(case.path).into_os_string());
            let content = match case.is {
                Is::File(text, _) | Is::Protected(text, _) => text,
                _ => "",
            };
            let mut answer = Box::pin(ask(&server, route, &world.root, &path, content)).await;
            // The test asks faster than a client may.
            while answer.0 == 429 {
                tokio::time::sleep(Duration::from_millis(200)).await;
                answer = Box::pin(ask(&server, route, &world.root, &path, content)).await;
            }
            let (status, body) = answer;
            let mut say = |what: &str| {
                wrong.push(format!("{} {:?} {route}: {what}: {status} {body}", case.name, case.path))
            };
            if status == 0 || status >= 500 {
                say("no answer");
            }
            // The folder around it is served too, so it may be read as a workspace of its own.
            if body.to_string().contains(CANARY) {
                say("it tells what lies outside");
            }
            // These act on the name itself, not on what a link of that name leads to.
            let names = ["delete", "rename from", "rename to", "upload", "upload over"];
            let is = if names.contains(&route) { case.removed } else { case.is };
            let is_text = !case.path.contains("{FF}");
            match is {
                // A name that is taken is refused, even if it is a link that leads outside.
                Is::Outside if status == 409 && matches!(route, "upload" | "upload over" | "rename to") => {}
                Is::Outside if !matches!(route, "git" | "watch") && status != 403 => say("not refused"),
                Is::Protected(..) | Is::ProtectedFolder(_) | Is::ProtectedMissing
                    if is_writing(route) && status != 403 =>
                {
                    // Upload checks first that it may write, and so do all routes.
                    say("not protected");
                }
                Is::File(text, _) | Is::Protected(text, _)
                    if route == "read" && is_text && (status != 200 || body["content"] != text) =>
                {
                    say("not read");
                }
                Is::File(..) if route == "save over" && is_text && status != 200 => say("not saved"),
                Is::Missing(_) if route == "save new" && status != 200 => say("not made"),
                Is::Bad(_) | Is::Loop | Is::Special(_)
                    if !matches!(
                        route,
                        "git" | "watch" | "delete" | "rename from" | "rename to" | "search" | "list" | "tree"
                    ) && status < 400 =>
                {
                    say("taken");
                }
                _ => {}
            }
            // Looking changes nothing that could be seen here.
            if !is_writing(route) && route != "git" {
                continue;
            }
            if world.outside() != outside {
                say("something outside was changed");
            }
            if picture(&world.root.join(".git")) != git {
                say("something of git was changed");
            }
            if is_writing(route) && picture(&world.root) != whole {
                count += 1;
                world = make(count);
                outside = world.outside();
                (git, whole) = (picture(&world.root.join(".git")), picture(&world.root));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of them:\n{}",
        wrong.len(),
        wrong.iter().take(40).cloned().collect::<Vec<_>>().join("\n")
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_saved_over_the_version_that_was_read_and_no_other() {
    let server = server().await;
    let (status, read) = server.get("/api/file?file=a.txt").await;
    assert_eq!((status, &read["content"], &read["binary"]), (200, &json!("one\n"), &json!(false)));
    let version = read["version"].as_str().unwrap();
    let save = |content: &str, version: Option<&str>| json!({ "file": "a.txt", "content": content, "version": version });
    // Another program was faster.
    std::fs::write(server.root.join("a.txt"), "theirs\r\n").unwrap();
    let (status, body) = server.put("/api/file", save("mine\n", Some(version))).await;
    assert_eq!((status, &body["code"]), (409, &json!("conflict")));
    let (status, _) = server.post("/api/file", save("mine\n", None)).await;
    assert_eq!(status, 409);
    assert_eq!(std::fs::read(server.root.join("a.txt")).unwrap(), b"theirs\r\n");
    std::fs::set_permissions(server.root.join("a.txt"), std::fs::Permissions::from_mode(0o751)).unwrap();
    let (_, read) = server.get("/api/file?file=a.txt").await;
    let (status, saved) = server.put("/api/file", save("mine\r\n", read["version"].as_str())).await;
    assert_eq!((status, &saved["created"]), (200, &json!(false)));
    assert_eq!(std::fs::read(server.root.join("a.txt")).unwrap(), b"mine\r\n");
    assert_eq!(std::fs::metadata(server.root.join("a.txt")).unwrap().mode() & 0o777, 0o751);
    // The version that a save gives is the one to save over next.
    let (status, _) = server.put("/api/file", save("again\n", saved["version"].as_str())).await;
    assert_eq!(status, 200);
    let (status, made) = server.post("/api/file", json!({ "file": "n/e/w.txt", "content": "new\n" })).await;
    assert_eq!((status, &made["path"]), (200, &json!("n/e/w.txt")));
    // Content that is not text is marked as such, and text is cut between characters.
    std::fs::write(server.root.join("b.bin"), b"\0\x01\xff").unwrap();
    let (status, read) = server.get("/api/file?file=b.bin").await;
    assert_eq!((status, &read["binary"], &read["content"]), (200, &json!(true), &Value::Null));
    std::fs::write(server.root.join("u.txt"), "aéé").unwrap();
    let (_, read) = server.get("/api/file?file=u.txt&offset=2&length=3").await;
    assert_eq!((&read["content"], &read["offset"], &read["length"]), (&json!("é"), &json!(3), &json!(2)));
    std::fs::write(server.root.join("large"), vec![b'x'; 5 << 20]).unwrap();
    let (status, _) = server.get("/api/file?file=large").await;
    assert_eq!(status, 413);
    let (status, read) = server.get("/api/file?file=large&offset=5242870").await;
    assert_eq!((status, &read["content"]), (200, &json!("x".repeat(10))));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_removed_can_be_brought_back_and_names_change_without_loss() {
    let server = server().await;
    std::fs::create_dir_all(server.root.join("d/e")).unwrap();
    std::fs::write(server.root.join("d/e/x.txt"), "x\n").unwrap();
    std::os::unix::fs::symlink("../a.txt", server.root.join("d/link")).unwrap();
    let before = picture(&server.root);
    let (status, removed) = server.delete("/api/file?file=d").await;
    assert_eq!(status, 200, "{removed}");
    assert!(!server.root.join("d").exists());
    let (_, list) = server.get("/api/files/removed").await;
    assert_eq!((&list[0]["path"], &list[0]["kind"]), (&json!("d"), &json!("directory")));
    // A folder that was made meanwhile stays.
    std::fs::create_dir(server.root.join("d")).unwrap();
    let restore = json!({ "id": removed["quarantine"] });
    assert_eq!(server.post("/api/file/restore", restore.clone()).await.0, 409);
    std::fs::remove_dir(server.root.join("d")).unwrap();
    assert_eq!(server.post("/api/file/restore", restore.clone()).await.0, 200);
    assert_eq!(picture(&server.root), before);
    assert_eq!(server.post("/api/file/restore", restore).await.0, 404);
    for id in ["", "..", "../sessions", "/etc", "x\0"] {
        assert_eq!(server.post("/api/file/restore", json!({ "id": id })).await.0, 404, "{id}");
    }
    let rename = |file: &str, to: &str| json!({ "file": file, "to": to });
    assert_eq!(server.post("/api/file/rename", rename("d/e", "f/g/h")).await.0, 200);
    assert_eq!(std::fs::read_to_string(server.root.join("f/g/h/x.txt")).unwrap(), "x\n");
    // Nothing is replaced, and nothing becomes what other programs obey.
    assert_eq!(server.post("/api/file/rename", rename("a.txt", "f/g/h/x.txt")).await.0, 409);
    assert_eq!(server.post("/api/file/rename", rename("none", "b")).await.0, 404);
    assert_eq!(server.post("/api/file/rename", rename("f", ".git")).await.0, 403);
    assert_eq!(server.post("/api/file/rename", rename(".", "b")).await.0, 403);
    assert_eq!(server.delete("/api/file?file=.").await.0, 403);
    std::fs::create_dir(server.root.join("plain")).unwrap();
    std::fs::write(server.root.join("plain/tasks.json"), "{}").unwrap();
    assert_eq!(server.post("/api/file/rename", rename("plain", ".vscode")).await.0, 403);
    assert_eq!(server.post("/api/folder", json!({ "folder": "new/one" })).await.0, 200);
    assert_eq!(server.post("/api/folder", json!({ "folder": "new/one" })).await.0, 409);
    assert!(server.root.join("new/one").is_dir());
    // A viewer looks and does no more.
    let viewer = lathe_server::Tokens::add(&server.home, "eyes", lathe_server::Role::Viewer).unwrap();
    assert_eq!(server.ask_as(&viewer, "GET", "/api/file?file=a.txt", None).await.0, 200);
    assert_eq!(server.ask_as(&viewer, "DELETE", "/api/file?file=a.txt", None).await.0, 403);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_come_and_go_in_pieces_and_too_large_ones_not_at_all() {
    let server = server().await;
    let content: Vec<u8> = (0..3_000_000u32).map(|n| (n * 7 % 251) as u8).collect();
    let (status, up) = server.upload("relative_path=up%2Fbig.bin", &content).await;
    assert_eq!((status, &up["size"], &up["path"]), (200, &json!(3_000_000), &json!("up/big.bin")), "{up}");
    assert_eq!(std::fs::read(server.root.join("up/big.bin")).unwrap(), content);
    assert_eq!(server.upload("relative_path=up%2Fbig.bin", b"x").await.0, 409);
    assert_eq!(server.upload("relative_path=up%2Fbig.bin&overwrite=true", b"x").await.0, 200);
    assert_eq!(std::fs::read(server.root.join("up/big.bin")).unwrap(), b"x");
    let (_, removed) = server.get("/api/files/removed").await;
    assert_eq!(removed[0]["path"], "up/big.bin");
    // In a form, as browsers send it.
    let form = "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"../../f.txt\"\r\n\r\nform\r\n--B--\r\n";
    let headers =
        format!("Content-Type: multipart/form-data; boundary=B\r\nContent-Length: {}\r\n", form.len());
    let (status, up) = server.send("/files/upload", &headers, form.as_bytes()).await;
    assert_eq!((status, &up["path"]), (200, &json!("f.txt")), "{up}");
    assert_eq!(std::fs::read(server.root.join("f.txt")).unwrap(), b"form");
    // A gigabyte that is announced is refused before anything of it is read.
    let headers = format!("Content-Type: application/octet-stream\r\nContent-Length: {}\r\n", 1u64 << 30);
    let (status, body) = server.send("/files/upload?relative_path=huge", &headers, b"").await;
    assert_eq!((status, &body["code"]), (413, &json!("too_large")));
    // One that is not announced is refused on the way, and nothing of it stays.
    let before = memory();
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "POST /files/upload?relative_path=new%2Fhuge HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
        server.address, server.token
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let piece = [b"100000\r\n".as_slice(), &vec![b'z'; 1 << 20], b"\r\n"].concat();
    let mut sent = 0u64;
    while sent < 1 << 10 && stream.write_all(&piece).await.is_ok() {
        sent += 1;
    }
    assert!((100..1 << 10).contains(&sent), "{sent} MiB were taken");
    let grown = memory().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes were held for it");
    let mut left = Vec::new();
    lathe_testkit_eventually(|| {
        left = names(&server.root);
        !left.iter().any(|name| name.contains(".lathe-"))
    });
    assert!(!left.iter().any(|name| name.contains("huge") || name == "new"), "{left:?}");
    // What goes out is to be kept, not shown.
    std::fs::write(server.root.join("p \"1\".html"), "<script>").unwrap();
    let request = format!(
        "GET /api/file/download?file={} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
        encoded("p \"1\".html"),
        server.address,
        server.token
    );
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let lower = answer.to_lowercase();
    assert!(
        lower.contains("content-disposition: attachment; filename*=utf-8''p%20%221%22.html\r\n"),
        "{answer}"
    );
    assert!(
        lower.contains("content-type: application/octet-stream") && lower.contains("nosniff"),
        "{answer}"
    );
    assert!(answer.ends_with("\r\n\r\n<script>"), "{answer}");
    server.stop().await;
}

fn lathe_testkit_eventually(holds: impl FnMut() -> bool) {
    lathe_testkit::eventually(Duration::from_secs(30), "nothing of it is left", holds);
}

/// Names of everything below.
fn names(folder: &Path) -> Vec<String> {
    picture(folder)
        .into_iter()
        .map(|(path, ..)| path.strip_prefix(folder).unwrap().display().to_string())
        .collect()
}

/// Bytes of memory that this process holds.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) << 10
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_is_searched_and_watched() {
    let server = server().await;
    std::fs::create_dir(server.root.join("src")).unwrap();
    std::fs::write(server.root.join("src/m.rs"), "fn one() {}\nfn Two() {}\n").unwrap();
    let (status, found) = server.get("/api/files/search?q=two").await;
    assert_eq!(status, 200);
    assert_eq!(found["hits"], json!([{ "path": "src/m.rs", "line": 2, "text": "fn Two() {}" }]));
    let (_, found) = server.get("/api/files/search?q=m.rs&names=true").await;
    assert_eq!(found["hits"], json!([{ "path": "src/m.rs" }]));
    assert_eq!(server.get("/api/files/search?q=(&regex=true").await.0, 400);
    assert_eq!(server.get("/workspaces").await.1, json!([server.root]));
    let (_, tree) = server.get("/api/files?depth=5").await;
    let paths: Vec<&str> =
        tree["items"].as_array().unwrap().iter().map(|item| item["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["a.txt", "src", "src/m.rs"]);
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request = format!(
        "GET /api/files/watch HTTP/1.1\r\nAccept: text/event-stream\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        server.address, server.token
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut told = String::new();
    let mut until = async |word: &str| {
        let mut piece = vec![0; 4096];
        while !told.contains(word) {
            let read = tokio::time::timeout(Duration::from_secs(120), stream.read(&mut piece))
                .await
                .unwrap()
                .unwrap();
            assert!(read > 0, "{told}");
            told.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
    };
    until("event: ready").await;
    std::fs::create_dir_all(server.root.join("new")).unwrap();
    until("\"path\":\"new\"").await;
    std::fs::write(server.root.join("new/file.txt"), "x").unwrap();
    until("new/file.txt").await;
    std::fs::remove_file(server.root.join("a.txt")).unwrap();
    until("{\"path\":\"a.txt\",\"kind\":\"removed\"}").await;
    drop(stream);
    server.stop().await;
}

/// Changes in a folder after it was moved out of the root are not reported, and a watch of the folder itself ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_moved_away_is_not_watched_any_more() {
    let server = server().await;
    let outside = server.root.parent().unwrap().join("away");
    for folder in [server.root.join("sub/deep"), server.root.join("own/deep"), outside.clone()] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let bench = lathe_workbench::Workbench::new(lathe_host::Home::at(outside.join("home")));
    let mut watching = bench.browse(&server.root).unwrap().watch().unwrap();
    std::fs::rename(server.root.join("sub"), outside.join("sub")).unwrap();
    for name in ["before.txt", "deep/before.txt"] {
        std::fs::write(outside.join("sub").join(name), "x").unwrap();
    }
    let mut told: Vec<String> = Vec::new();
    let mut until = async |name: &str| {
        while !told.iter().any(|path| path == name) {
            told.extend(watching.next().await.unwrap().into_iter().map(|happened| happened.path));
        }
    };
    until("sub").await;
    for name in ["after.txt", "deep/after.txt"] {
        std::fs::write(outside.join("sub").join(name), "x").unwrap();
    }
    std::fs::write(server.root.join("last"), "x").unwrap();
    until("last").await;
    assert_eq!(told, ["sub", "last"]);
    // A folder that comes back is watched again.
    std::fs::rename(outside.join("sub"), server.root.join("sub")).unwrap();
    let mut told: Vec<String> = Vec::new();
    while !told.iter().any(|path| path == "sub") {
        told.extend(watching.next().await.unwrap().into_iter().map(|happened| happened.path));
    }
    std::fs::write(server.root.join("sub/deep/again.txt"), "x").unwrap();
    while !told.iter().any(|path| path == "sub/deep/again.txt") {
        told.extend(watching.next().await.unwrap().into_iter().map(|happened| happened.path));
    }
    // The watched folder itself, and one above it.
    for moved in ["own/deep", "own"] {
        let mut watching = bench.browse(&server.root.join("own/deep")).unwrap().watch().unwrap();
        std::fs::rename(server.root.join(moved), outside.join("own")).unwrap();
        let file = if moved == "own" { outside.join("own/deep/x") } else { outside.join("own/x") };
        std::fs::write(file, "x").unwrap();
        assert!(watching.next().await.is_err(), "{moved}");
        std::fs::rename(outside.join("own"), server.root.join(moved)).unwrap();
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_holds_lathes_own_shows_nothing_of_it() {
    // The folder of the tests holds both, so a server of that folder would.
    let server = server().await;
    let base: PathBuf = server.root.parent().unwrap().to_owned();
    let bench = lathe_workbench::Workbench::new(lathe_host::Home::at(base.join("home")));
    std::fs::create_dir_all(base.join("home/server")).unwrap();
    std::fs::write(base.join("home/server/secret"), "TOPSECRET").unwrap();
    let browser = bench.browse(&base).unwrap();
    for path in ["home/server/secret", "repo/../home/server/secret", "./home//server/secret"] {
        assert!(browser.read(path, None, None).await.is_err(), "{path}");
        assert!(browser.write(path, "x".to_owned(), None).await.is_err(), "{path}");
        assert!(browser.remove(path).await.is_err(), "{path}");
    }
    assert!(browser.list("home").await.is_err());
    assert!(browser.remove("home").await.is_err() && browser.rename("home", "h2").await.is_err());
    assert!(browser.make_folder("home/x").await.is_err());
    let wish = lathe_workbench::SearchWish { pattern: "TOPSECRET".to_owned(), ..Default::default() };
    assert_eq!(browser.search(wish).await.unwrap().hits, []);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_tells_the_size_of_each_file() {
    let server = Server::start(cassette([]), Mode::Default).await;
    std::fs::create_dir_all(server.root.join("sub/deep")).unwrap();
    std::fs::write(server.root.join("sub/deep/b.txt"), "12345").unwrap();
    let (status, tree) = server.get("/api/files?depth=3").await;
    assert_eq!(status, 200, "{tree}");
    let sizes: Vec<(&str, u64)> = tree["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|item| item["is_dir"] == false)
        .map(|item| (item["path"].as_str().unwrap(), item["size"].as_u64().unwrap()))
        .collect();
    assert_eq!(sizes, [("a.txt", 4), ("sub/deep/b.txt", 5)]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listing_and_a_tree_tell_the_same_names_and_times() {
    let server = Server::start(cassette([]), Mode::Default).await;
    for name in [".env", ".git/config", "sub/.hidden", "sub/b.txt"] {
        std::fs::create_dir_all(server.root.join(name).parent().unwrap()).unwrap();
        std::fs::write(server.root.join(name), "x").unwrap();
    }
    let then = std::time::UNIX_EPOCH + std::time::Duration::from_millis(1_700_000_000_250);
    std::fs::File::open(server.root.join("a.txt")).unwrap().set_modified(then).unwrap();
    let (_, listed) = server.get("/api/files").await;
    let (_, tree) = server.get("/api/files?depth=3").await;
    let named = |items: &Value| -> Vec<(String, String)> {
        let text = |item: &Value, key: &str| item[key].as_str().unwrap_or_default().to_owned();
        let items = items["items"].as_array().unwrap().iter();
        items.map(|item| (text(item, "path"), text(item, "modified_at"))).collect()
    };
    let (listed, tree) = (named(&listed), named(&tree));
    let names: Vec<&str> = tree.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, [".env", ".git", "a.txt", "sub", "sub/.hidden", "sub/b.txt"]);
    let above: Vec<(String, String)> = tree.iter().filter(|(name, _)| !name.contains('/')).cloned().collect();
    assert_eq!(listed, above);
    assert!(tree.contains(&("a.txt".to_owned(), "2023-11-14T22:13:20.250Z".to_owned())), "{tree:?}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_sends_the_bytes_that_were_asked_for() {
    let server = Server::start(cassette([]), Mode::Default).await;
    std::fs::write(server.root.join("ten.txt"), "0123456789").unwrap();
    let whole = "HTTP/1.1 200";
    for (query, header, start, body) in [
        ("", "", whole, "0123456789"),
        ("&length=3", "", whole, "012"),
        ("&offset=7", "", whole, "789"),
        ("&offset=2&length=3", "", whole, "234"),
        ("&offset=99", "", whole, ""),
        ("&offset=2&length=3", "Range: bytes=0-0\r\n", whole, "234"),
        ("", "Range: bytes=2-4\r\n", "HTTP/1.1 206", "234"),
        ("", "Range: bytes=7-\r\n", "HTTP/1.1 206", "789"),
        ("", "Range: bytes=-2\r\n", "HTTP/1.1 206", "89"),
        ("", "Range: bytes=5-999\r\n", "HTTP/1.1 206", "56789"),
        ("", "Range: bytes=0-1,4-5\r\n", whole, "0123456789"),
        ("", "Range: lines=1\r\n", whole, "0123456789"),
        ("", "Range: bytes=10-\r\n", "HTTP/1.1 416", ""),
    ] {
        let request = format!(
            "GET /api/file/download?file=ten.txt{query} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n{header}Connection: close\r\n\r\n",
            server.address, server.token
        );
        let answer = server.whole(&request).await;
        let (head, sent) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with(start), "{query} {header}: {answer}");
        match start {
            "HTTP/1.1 416" => assert!(head.contains("content-range: bytes */10"), "{head}"),
            _ => assert_eq!(sent, body, "{query} {header}"),
        }
        if header == "Range: bytes=2-4\r\n" {
            assert!(head.contains("content-range: bytes 2-4/10"), "{head}");
        }
    }
    server.stop().await;
}
