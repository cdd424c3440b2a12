//! Every route with a valid request, by every kind of client.
//!
//! A row has the least role that is allowed. All clients that are not allowed are tried first, then that role; so a
//! missing check shows in the reply, and so does a check that refuses too much. Refusals that depend on the body
//! (fields for admins, the mode of a session) have rows of their own.

use std::collections::BTreeSet;

use lathe_protocol::Mode;
use lathe_server::{Role, Tokens};
use serde_json::{Value, json};

use crate::kit::{Server, call, cassette, done, say};

/// The least that a client needs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Least {
    Nothing,
    Viewer,
    Operator,
    Admin,
}
use Least::{Admin, Nothing, Operator, Viewer};

struct Row {
    method: &'static str,
    /// As the description of the server names it.
    route: &'static str,
    path: String,
    body: Value,
    least: Least,
    /// The status for a client that is allowed.
    good: u16,
}

/// A row whose path is the route itself, but for what follows it.
fn row(
    method: &'static str,
    route: &'static str,
    (path, body): (impl Into<String>, Value),
    least: Least,
) -> Row {
    Row { method, route, path: path.into(), body, least, good: 200 }
}

fn lane() -> String {
    let mut text = cassette([
        json!([call("a1", "bash", json!({ "command": "echo two >> a.txt; echo new > b.txt" }))]),
        json!([done("b1", "made")]),
    ]);
    for said in ["<task>writes</task><details>Two files.</details>", "<tags>WRITE_FIX</tags>"].repeat(4) {
        let line = json!({ "purpose": "lakeview", "answer": { "blocks": [say(said)] } });
        text.push('\n');
        text.push_str(&line.to_string());
    }
    text
}

struct World {
    server: Server,
    viewer: String,
    operator: String,
    admin: String,
    removed: String,
    /// The first token of a name that another has now.
    remade: String,
    /// A cookie of this server without its half.
    bare: (String, String),
    /// Both halves of another server's, under our name.
    foreign: (String, String),
    _other: Server,
}

impl World {
    async fn new() -> Self {
        let (server, other) =
            (Server::start(lane(), Mode::Default).await, Server::start(lane(), Mode::Default).await);
        let make = |name: &str, role| Tokens::add(&server.home, name, role).unwrap();
        let (viewer, operator, admin) =
            (make("eyes", Role::Viewer), make("hands", Role::Operator), make("chief", Role::Admin));
        let removed = make("gone", Role::Admin);
        let remade = make("again", Role::Admin);
        for name in ["gone", "again"] {
            Tokens::remove(&server.home, name).unwrap();
        }
        make("again", Role::Admin);
        let (cookie, _) = server.sign_in(&server.token).await;
        let (theirs, half) = other.sign_in(&other.token).await;
        let name = cookie.split_once('=').unwrap().0;
        let foreign = (format!("{name}={}", theirs.split_once('=').unwrap().1), half);
        Self {
            viewer,
            operator,
            admin,
            removed,
            remade,
            bare: (cookie, String::new()),
            foreign,
            _other: other,
            server,
        }
    }

    /// A session of the admin's in this mode that has done its task.
    async fn ran(&self, mode: &str) -> String {
        let (status, body) = self
            .server
            .ask_as(&self.admin, "POST", "/agent/run", Some(&json!({ "task": "x", "mode": mode })))
            .await;
        assert_eq!(status, 200, "{body}");
        body["session_id"].as_str().unwrap().to_owned()
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let (status, body) = self.server.ask_as(&self.admin, "POST", path, Some(&body)).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    async fn rows(&self) -> Vec<Row> {
        let server = &self.server;
        self.post("/api/git/init", json!({})).await;
        self.post("/api/git/add", json!({ "files": ["a.txt"] })).await;
        let author = json!({ "message": "first", "author_name": "A", "author_email": "a@b.c" });
        self.post("/api/git/commit", author.clone()).await;
        let (plan, full, closed) =
            (self.ran("plan").await, self.ran("full-auto").await, self.ran("full-auto").await);
        let (edited, unwanted, spare) =
            (self.ran("full-auto").await, self.ran("plan").await, self.ran("plan").await);
        let (twice, last) = (self.ran("full-auto").await, self.ran("full-auto").await);
        self.post(&format!("/agent/interactive/close?session_id={closed}"), json!({})).await;
        let document = self.post("/online/docs/create", json!({ "title": "t", "content": "c" })).await;
        let document = document["documentId"].as_str().unwrap();
        let of_plan = |more: Value| {
            let mut body = json!({ "session_id": plan });
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            body
        };
        std::fs::write(server.root.join("gone.txt"), "gone").unwrap();
        let (_, gone) = server.ask_as(&self.admin, "DELETE", "/api/file?file=gone.txt", None).await;
        let task = server.root.join("task.md");
        std::fs::write(&task, "do it").unwrap();
        let trajectory = server.home.join("trajectories").join(format!("{full}.json"));
        let none = || json!({});
        let mut rows = vec![
            // As long as the files are what the agent left.
            row(
                "POST",
                "/api/sessions/{id}/changes/reject",
                (format!("/api/sessions/{last}/changes/reject"), json!({ "path": "a.txt" })),
                Admin,
            ),
            row(
                "POST",
                "/api/sessions/{id}/changes/accept",
                (format!("/api/sessions/{edited}/changes/accept"), json!({ "path": "a.txt" })),
                Admin,
            ),
            // A session in plan mode has no edits; a client that is allowed gets that error.
            Row {
                good: 409,
                ..row(
                    "POST",
                    "/api/sessions/{id}/changes/reject",
                    (format!("/api/sessions/{plan}/changes/reject"), json!({ "all": true })),
                    Operator,
                )
            },
            Row {
                good: 409,
                ..row(
                    "POST",
                    "/api/sessions/{id}/changes/accept",
                    (format!("/api/sessions/{plan}/changes/accept"), json!({ "all": true })),
                    Operator,
                )
            },
            row("GET", "/health", ("/health", none()), Nothing),
            row("POST", "/auth", ("/auth", json!({ "token": self.viewer })), Nothing),
            row("GET", "/", ("/", none()), Nothing),
            row("GET", "/assets/{name}", ("/assets/page.js", none()), Nothing),
            row("DELETE", "/auth", ("/auth", none()), Viewer),
            row("GET", "/auth", ("/auth", none()), Viewer),
            row("GET", "/openapi.json", ("/openapi.json", none()), Viewer),
            row("GET", "/metrics", ("/metrics", none()), Viewer),
            // Without the headers of an upgrade; the connections themselves are in `roles.rs`.
            Row { good: 400, ..row("GET", "/ws/agent/run/stream", ("/ws/agent/run/stream", none()), Viewer) },
            Row {
                good: 400,
                ..row("GET", "/ws/agent/interactive/task", ("/ws/agent/interactive/task", none()), Viewer)
            },
            row(
                "GET",
                "/agent/interactive/status",
                (format!("/agent/interactive/status?session_id={plan}"), none()),
                Viewer,
            ),
            row(
                "POST",
                "/agent/interactive/close",
                (format!("/agent/interactive/close?session_id={spare}"), none()),
                Operator,
            ),
            row(
                "POST",
                "/agent/interactive/start",
                ("/agent/interactive/start", json!({ "mode": "plan" })),
                Operator,
            ),
            row(
                "POST",
                "/agent/interactive/start",
                ("/agent/interactive/start", json!({ "mode": "full-auto" })),
                Admin,
            ),
            row(
                "POST",
                "/agent/interactive/task",
                ("/agent/interactive/task", of_plan(json!({ "task": "x" }))),
                Operator,
            ),
            row(
                "POST",
                "/agent/interactive/task",
                ("/agent/interactive/task", of_plan(json!({ "file_path": task }))),
                Admin,
            ),
            row(
                "POST",
                "/agent/interactive/task",
                ("/agent/interactive/task", json!({ "session_id": full, "task": "x" })),
                Admin,
            ),
            row(
                "POST",
                "/agent/interactive/task",
                ("/agent/interactive/task", json!({ "session_id": closed, "task": "x" })),
                Admin,
            ),
        ];
        for route in ["/agent/run", "/api/agent/run"] {
            rows.push(row("POST", route, (route, json!({ "task": "x", "mode": "plan" })), Operator));
            for more in [
                json!({ "task": "x", "mode": "full-auto" }),
                json!({ "task": "x", "mode": "plan", "api_key": "an-admins-own-key-1234" }),
                json!({ "task": "x", "mode": "plan", "model_base_url": "http://127.0.0.1:1/v1" }),
                json!({ "task": "x", "mode": "plan", "config_file": task }),
                json!({ "mode": "plan", "file_path": task }),
            ] {
                rows.push(row("POST", route, (route, more), Admin));
            }
        }
        for route in ["/lakeview/summary", "/lakeview/summary/stream"] {
            rows.push(row("POST", route, (route, of_plan(none())), Operator));
            rows.push(row("POST", route, (route, json!({ "trajectory_file": trajectory })), Admin));
        }
        rows.extend([
            row("POST", "/online/docs/search", ("/online/docs/search", json!({ "keyword": "t" })), Viewer),
            row(
                "POST",
                "/online/docs/detail",
                ("/online/docs/detail", json!({ "documentId": document })),
                Viewer,
            ),
            row(
                "POST",
                "/online/docs/create",
                ("/online/docs/create", json!({ "title": "u", "content": "c" })),
                Operator,
            ),
            row(
                "POST",
                "/online/report/create",
                ("/online/report/create", json!({ "title": "v", "content": "c" })),
                Operator,
            ),
            row(
                "POST",
                "/online/report/edit",
                ("/online/report/edit", json!({ "documentId": document, "content": "d" })),
                Operator,
            ),
            row(
                "GET",
                "/online/docs/{id}/versions",
                (format!("/online/docs/{document}/versions"), none()),
                Viewer,
            ),
            row(
                "PUT",
                "/api/modes/{name}",
                ("/api/modes/mine", json!({ "mode_name": "mine", "system_prompt": "p" })),
                Operator,
            ),
            row("GET", "/api/modes", ("/api/modes", none()), Viewer),
            row("GET", "/api/modes/{name}", ("/api/modes/mine", none()), Viewer),
            row("DELETE", "/api/modes/{name}", ("/api/modes/mine", none()), Operator),
            row("GET", "/agent/prompt", ("/agent/prompt?name=lathe", none()), Viewer),
            row("GET", "/agent/tools", ("/agent/tools", none()), Viewer),
            row(
                "POST",
                "/agent/tools/config",
                ("/agent/tools/config", json!({ "tool": "bash", "name": "bash", "custom_name": "line" })),
                Operator,
            ),
            row(
                "PUT",
                "/api/models/{name}",
                (
                    "/api/models/mine",
                    json!({ "provider": "openai", "model": "m", "base_url": "http://127.0.0.1:1/v1" }),
                ),
                Admin,
            ),
            row("GET", "/api/models", ("/api/models", none()), Viewer),
            row("GET", "/api/models/{name}", ("/api/models/mine", none()), Viewer),
            row("POST", "/api/models/{name}/test", ("/api/models/mine/test", none()), Admin),
            row("DELETE", "/api/models/{name}", ("/api/models/mine", none()), Admin),
            row("GET", "/api/config", ("/api/config", none()), Viewer),
            row("GET", "/agent/config", ("/agent/config", none()), Viewer),
            row("GET", "/api/sessions", ("/api/sessions", none()), Viewer),
            row("GET", "/api/sessions/{id}", (format!("/api/sessions/{full}"), none()), Viewer),
            row(
                "GET",
                "/api/sessions/{id}/messages",
                (format!("/api/sessions/{full}/messages"), none()),
                Viewer,
            ),
            row("GET", "/api/sessions/{id}/export", (format!("/api/sessions/{full}/export"), none()), Viewer),
            row(
                "GET",
                "/api/sessions/{id}/trajectory",
                (format!("/api/sessions/{full}/trajectory"), none()),
                Viewer,
            ),
            Row {
                good: 404,
                ..row(
                    "GET",
                    "/api/sessions/{id}/blob/{digest}",
                    (format!("/api/sessions/{full}/blob/{}", "0".repeat(64)), none()),
                    Viewer,
                )
            },
            row(
                "GET",
                "/api/sessions/{id}/changes",
                (format!("/api/sessions/{edited}/changes"), none()),
                Viewer,
            ),
            row(
                "POST",
                "/api/sessions/{id}/rename",
                (format!("/api/sessions/{plan}/rename"), json!({ "title": "t" })),
                Operator,
            ),
            row(
                "POST",
                "/api/sessions/{id}/rename",
                (format!("/api/sessions/{full}/rename"), json!({ "title": "t" })),
                Admin,
            ),
            row("POST", "/api/sessions/{id}/fork", (format!("/api/sessions/{plan}/fork"), none()), Operator),
            row("POST", "/api/sessions/{id}/fork", (format!("/api/sessions/{full}/fork"), none()), Admin),
            row("POST", "/api/sessions/{id}/fork", (format!("/api/sessions/{closed}/fork"), none()), Admin),
            row(
                "POST",
                "/api/sessions/{id}/rewind",
                (format!("/api/sessions/{edited}/rewind"), json!({ "to": 1, "preview": true })),
                Operator,
            ),
            row(
                "POST",
                "/api/sessions/{id}/undo",
                (format!("/api/sessions/{edited}/undo"), json!({ "preview": true })),
                Operator,
            ),
            row(
                "POST",
                "/api/sessions/{id}/rewind",
                (format!("/api/sessions/{twice}/rewind"), json!({ "to": 1 })),
                Admin,
            ),
            row("POST", "/api/sessions/{id}/undo", (format!("/api/sessions/{twice}/undo"), json!({})), Admin),
            row("DELETE", "/api/sessions/{id}", (format!("/api/sessions/{twice}"), none()), Admin),
            row(
                "POST",
                "/api/sessions/{id}/restore",
                (format!("/api/sessions/{twice}/restore"), none()),
                Admin,
            ),
            row("DELETE", "/api/sessions/{id}", (format!("/api/sessions/{unwanted}"), none()), Operator),
            row(
                "POST",
                "/api/sessions/{id}/restore",
                (format!("/api/sessions/{unwanted}/restore"), none()),
                Operator,
            ),
            row("GET", "/agent/session/{id}/files", (format!("/agent/session/{plan}/files"), none()), Viewer),
            row("GET", "/workspaces", ("/workspaces", none()), Viewer),
            row("GET", "/api/files", ("/api/files", none()), Viewer),
            row("GET", "/files/list", ("/files/list", none()), Viewer),
            row("GET", "/api/file", ("/api/file?file=a.txt", none()), Viewer),
            row("GET", "/files/read", ("/files/read?file=a.txt", none()), Viewer),
            row("GET", "/api/file/download", ("/api/file/download?file=a.txt", none()), Viewer),
            row("GET", "/api/files/search", ("/api/files/search?q=one", none()), Viewer),
            row("GET", "/api/files/removed", ("/api/files/removed", none()), Viewer),
            // It has no end, so it is asked for without saying that this is known.
            Row { good: 400, ..row("GET", "/api/files/watch", ("/api/files/watch", none()), Viewer) },
            row("POST", "/api/file", ("/api/file", json!({ "file": "c.txt", "content": "c" })), Operator),
            row("PUT", "/api/file", ("/api/file", json!({ "file": "d.txt", "content": "d" })), Operator),
            row(
                "POST",
                "/api/file/rename",
                ("/api/file/rename", json!({ "file": "c.txt", "to": "e.txt" })),
                Operator,
            ),
            row("DELETE", "/api/file", ("/api/file?file=e.txt", none()), Operator),
            row(
                "POST",
                "/api/file/restore",
                ("/api/file/restore", json!({ "id": gone["quarantine"] })),
                Operator,
            ),
            row("POST", "/api/folder", ("/api/folder", json!({ "folder": "inner" })), Operator),
            row(
                "POST",
                "/files/upload",
                ("/files/upload?relative_path=up.json", json!({ "sent": true })),
                Operator,
            ),
            row("POST", "/api/git/status", ("/api/git/status", none()), Viewer),
            row("POST", "/api/git/diff", ("/api/git/diff", none()), Viewer),
            row("POST", "/api/git/show", ("/api/git/show", json!({ "path": "a.txt" })), Viewer),
            row("POST", "/api/git/log", ("/api/git/log", none()), Viewer),
            row("POST", "/api/git/add", ("/api/git/add", json!({ "files": ["up.json"] })), Operator),
            row("POST", "/api/git/reset", ("/api/git/reset", json!({ "files": ["up.json"] })), Operator),
            row("POST", "/api/git/checkout", ("/api/git/checkout", json!({ "files": ["a.txt"] })), Operator),
            Row {
                good: 409,
                ..row("POST", "/api/git/commit", ("/api/git/commit", author.clone()), Operator)
            },
            Row {
                good: 409,
                ..row(
                    "POST",
                    "/api/git/commit",
                    ("/api/git/commit", {
                        let mut with_hooks = author;
                        with_hooks["run_hooks"] = json!(true);
                        with_hooks
                    }),
                    Admin,
                )
            },
            row("POST", "/api/git/init", ("/api/git/init", json!({ "workspace": "inner" })), Operator),
        ]);
        rows
    }

    /// Everybody but the roles, each with what is sent to say who it is.
    fn strangers(&self) -> Vec<(&'static str, String)> {
        let cookie =
            |(cookie, half): &(String, String)| format!("Cookie: {cookie}\r\nX-Lathe-Page: {half}\r\n");
        let token = |token: &str| format!("Authorization: Bearer {token}\r\n");
        vec![
            ("no token", String::new()),
            ("a removed token", token(&self.removed)),
            ("the token before the one of the same name", token(&self.remade)),
            ("a cookie without its half", cookie(&self.bare)),
            ("a cookie of another server", cookie(&self.foreign)),
        ]
    }

    async fn ask(&self, row: &Row, who: &str) -> (u16, String) {
        let body = row.body.to_string();
        let request = format!(
            "{} {} HTTP/1.1\r\nHost: {}\r\n{who}Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            row.method,
            row.path,
            self.server.address,
            body.len()
        );
        self.server.raw(&request).await
    }
}

/// Tells whether a route changes the session that its path or its body names.
fn works_in_a_session(document: &Value, route: &str) -> bool {
    let (method, path) = route.split_once(' ').unwrap();
    // Files and git work in a folder, which a session only names. A client that may stop a run may close its session.
    let in_folders = ["/api/file", "/api/folder", "/files/", "/api/git/"];
    let is_folder = in_folders.iter().any(|prefix| path.starts_with(prefix));
    if method == "GET" || is_folder || path == "/agent/interactive/close" {
        return false;
    }
    let operation = &document["paths"][path][method.to_lowercase()];
    let body = &operation["requestBody"]["content"]["application/json"]["schema"]["$ref"];
    let body = body.as_str().and_then(|name| name.rsplit('/').next()).unwrap_or_default();
    let names_session = document["components"]["schemas"][body]["properties"].get("session_id").is_some();
    let asks_session =
        operation["parameters"].as_array().unwrap().iter().any(|one| one["name"] == "session_id");
    path.contains("/sessions/{id}") || names_session || asks_session
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_with_a_real_body_is_done_for_whoever_may_and_for_nobody_else() {
    let world = World::new().await;
    let rows = world.rows().await;
    let (_, document) = world.server.get("/openapi.json").await;
    let described: BTreeSet<String> = document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, item)| {
            item.as_object().unwrap().keys().map(move |method| format!("{} {path}", method.to_uppercase()))
        })
        .collect();
    let tried: BTreeSet<String> = rows.iter().map(|row| format!("{} {}", row.method, row.route)).collect();
    assert_eq!(tried, described);
    // What changes a session has a row of a session that only an admin may work in.
    let for_admins: BTreeSet<String> = rows
        .iter()
        .filter(|row| row.least == Admin)
        .map(|row| format!("{} {}", row.method, row.route))
        .collect();
    let unguarded: Vec<&String> = described
        .iter()
        .filter(|route| works_in_a_session(&document, route) && !for_admins.contains(*route))
        .collect();
    assert_eq!(unguarded, Vec::<&String>::new());
    let roles = [(Viewer, &world.viewer), (Operator, &world.operator), (Admin, &world.admin)];
    let mut wrong = Vec::new();
    let mut note = |row: &Row, who: &str, wanted: u16, (status, body): (u16, String)| {
        if status != wanted {
            let told: String = body.chars().take(200).collect();
            wrong.push(format!(
                "{} {} {} by {who}: {status}, not {wanted}: {told}",
                row.method, row.path, row.body
            ));
        }
    };
    for row in &rows {
        for (who, headers) in world.strangers() {
            let wanted = if row.least == Nothing { row.good } else { 401 };
            let answered = world.ask(row, &headers).await;
            // After thirty wrong tokens of an address the answer is another no.
            let is_no = headers.starts_with("Authorization") && answered.0 == 429;
            if !is_no {
                note(row, who, wanted, answered);
            }
        }
        for (role, token) in roles {
            if role < row.least {
                let headers = format!("Authorization: Bearer {token}\r\n");
                note(row, &format!("{role:?}"), 403, world.ask(row, &headers).await);
            }
        }
        let least = roles.iter().find(|(role, _)| *role >= row.least).unwrap();
        let headers = format!("Authorization: Bearer {}\r\n", least.1);
        note(row, &format!("{:?}", least.0), row.good, world.ask(row, &headers).await);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    world.server.stop().await;
}
