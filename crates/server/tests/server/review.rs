//! Edits accepted and rejected, hunk by hunk, over HTTP.

use lathe_protocol::Mode;
use serde_json::{Value, json};

use crate::kit::{Server, Socket, call, cassette, done};

fn numbered(ending: &str) -> String {
    (1..=30).map(|n| format!("line {n}{ending}")).collect()
}

/// A session that has changed three places of one file, made one and removed one.
async fn edited(ending: &str) -> (Server, Socket, String) {
    let answers = [
        json!([
            call("v", "view", json!({ "path": "long.txt" })),
            call("w", "view", json!({ "path": "gone.txt" }))
        ]),
        json!([call("e1", "edit", json!({ "path": "long.txt", "old_str": "line 5", "new_str": "LINE 5" }))]),
        json!([call(
            "s1",
            "bash",
            json!({ "command": format!(
            "sed -i 's/line 15/LINE 15/; s/line 28/LINE 28/' long.txt && rm gone.txt && printf 'new\\n' > made.txt" ) })
        )]),
        json!([done("d", "done")]),
    ];
    let server = Server::start(cassette(answers), Mode::FullAuto).await;
    std::fs::write(server.root.join("long.txt"), numbered(ending)).unwrap();
    std::fs::write(server.root.join("gone.txt"), format!("it was here{ending}")).unwrap();
    std::fs::set_permissions(
        server.root.join("gone.txt"),
        std::os::unix::fs::PermissionsExt::from_mode(0o750),
    )
    .unwrap();
    let mut socket = server.run("change it").await;
    let frames = socket.until("end").await;
    let id = frames.iter().find_map(|frame| frame["session_id"].as_str()).unwrap().to_owned();
    let failed: Vec<&Value> = frames.iter().filter(|frame| frame["type"] == "error").collect();
    assert!(failed.is_empty(), "{failed:?}");
    let watching = server.socket(&format!("?session_id={id}")).await;
    (server, watching, id)
}

async fn changes(server: &Server, id: &str) -> Vec<Value> {
    let (status, body) = server.get(&format!("/api/sessions/{id}/changes")).await;
    assert_eq!(status, 200, "{body}");
    body.as_array().unwrap().clone()
}

fn of<'a>(files: &'a [Value], path: &str) -> &'a Value {
    files.iter().find(|file| file["path"] == path).unwrap_or_else(|| panic!("no {path} in {files:?}"))
}

fn states(file: &Value) -> Vec<&str> {
    file["hunks"].as_array().unwrap().iter().map(|hunk| hunk["state"].as_str().unwrap()).collect()
}

fn id_of(file: &Value, hunk: usize) -> String {
    file["hunks"][hunk]["id"].as_str().unwrap().to_owned()
}

async fn review(server: &Server, id: &str, word: &str, body: Value) -> (u16, Value) {
    server.post(&format!("/api/sessions/{id}/changes/{word}"), body).await
}

async fn one_of_three(ending: &str) {
    let (server, mut watching, id) = edited(ending).await;
    let files = changes(&server, &id).await;
    let long = of(&files, "long.txt");
    assert_eq!(states(long), ["pending", "pending", "pending"], "{long}");
    assert_eq!((&long["hunks"][1]["old_start"], &long["hunks"][1]["new_lines"]), (&json!(15), &json!(1)));
    let lines: Vec<&str> =
        long["hunks"][1]["lines"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    let shown = ending.trim_end_matches('\n');
    let wanted: Vec<String> =
        [" line 12", " line 13", " line 14", "-line 15", "+LINE 15", " line 16", " line 17", " line 18"]
            .iter()
            .map(|line| format!("{line}{shown}"))
            .collect();
    assert_eq!(lines, wanted);
    let (status, body) = review(&server, &id, "accept", json!({ "hunks": [id_of(long, 0)] })).await;
    assert_eq!(status, 200, "{body}");
    let (status, body) = review(&server, &id, "reject", json!({ "hunks": [id_of(long, 1)] })).await;
    assert_eq!(status, 200, "{body}");
    let files = changes(&server, &id).await;
    assert_eq!(states(of(&files, "long.txt")), ["accepted", "rejected", "pending"]);
    let wanted = numbered(ending).replace(&format!("line 5{ending}"), &format!("LINE 5{ending}"));
    let wanted = wanted.replace("line 28", "LINE 28");
    assert_eq!(std::fs::read_to_string(server.root.join("long.txt")).unwrap(), wanted);
    // Every watching client is notified.
    let frames = watching.until("restored").await;
    let said: Vec<&Value> = frames.iter().filter(|frame| frame["type"] == "reviewed").collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert_eq!((&said[0]["data"]["accepted"], &said[1]["data"]["accepted"]), (&json!(true), &json!(false)));
    // A rejection is a change like any other: it can be undone, and the hunk waits again.
    let (status, undone) = server.post(&format!("/api/sessions/{id}/undo"), json!({})).await;
    assert_eq!((status, &undone["about"]), (200, &json!("the rejection of edits")), "{undone}");
    let files = changes(&server, &id).await;
    assert_eq!(states(of(&files, "long.txt")), ["accepted", "pending", "pending"]);
    assert!(std::fs::read_to_string(server.root.join("long.txt")).unwrap().contains("LINE 15"));
    // Now the session is not open here any more: all that is left goes back, what was accepted stays.
    let (status, body) = review(&server, &id, "reject", json!({ "all": true })).await;
    assert_eq!(status, 200, "{body}");
    let text = std::fs::read_to_string(server.root.join("long.txt")).unwrap();
    assert_eq!(text, numbered(ending).replace(&format!("line 5{ending}"), &format!("LINE 5{ending}")));
    assert_eq!(
        std::fs::read_to_string(server.root.join("gone.txt")).unwrap(),
        format!("it was here{ending}")
    );
    assert!(!server.root.join("made.txt").exists());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_three_hunks_is_accepted_one_rejected_and_the_third_stays() {
    one_of_three("\n").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_that_end_as_on_windows_stay_so() {
    one_of_three("\r\n").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_changed_meanwhile_is_a_conflict_and_nothing_is_touched() {
    let (server, _watching, id) = edited("\n").await;
    let files = changes(&server, &id).await;
    let hunk = id_of(of(&files, "long.txt"), 2);
    let mine = std::fs::read_to_string(server.root.join("long.txt")).unwrap() + "mine\n";
    std::fs::write(server.root.join("long.txt"), &mine).unwrap();
    let (status, body) = review(&server, &id, "reject", json!({ "hunks": [hunk] })).await;
    assert_eq!((status, &body["code"]), (409, &json!("conflict")), "{body}");
    // All or none: the other files are not touched either.
    let (status, _) = review(&server, &id, "reject", json!({ "all": true })).await;
    assert_eq!(status, 409);
    assert_eq!(std::fs::read_to_string(server.root.join("long.txt")).unwrap(), mine);
    assert!(server.root.join("made.txt").exists() && !server.root.join("gone.txt").exists());
    let (status, _) = review(&server, &id, "reject", json!({ "hunks": ["000000000000"] })).await;
    assert_eq!(status, 409);
    assert_eq!(review(&server, &id, "accept", json!({})).await.0, 400);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_were_made_and_removed_are_one_hunk_each() {
    let (server, _watching, id) = edited("\n").await;
    let files = changes(&server, &id).await;
    let (made, gone) = (of(&files, "made.txt"), of(&files, "gone.txt"));
    assert_eq!((&made["change"], &made["hunks"][0]["lines"]), (&json!("created"), &json!(["+new"])));
    assert_eq!((&gone["change"], &gone["hunks"][0]["lines"]), (&json!("deleted"), &json!(["-it was here"])));
    assert_eq!(review(&server, &id, "reject", json!({ "path": "gone.txt" })).await.0, 200);
    let back = std::fs::metadata(server.root.join("gone.txt")).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&back.permissions()) & 0o777, 0o750);
    assert_eq!(review(&server, &id, "accept", json!({ "path": "made.txt" })).await.0, 200);
    assert!(server.root.join("made.txt").exists());
    let files = changes(&server, &id).await;
    assert_eq!(states(of(&files, "made.txt")), ["accepted"]);
    assert_eq!(states(of(&files, "gone.txt")), ["rejected"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn words_that_contradict_each_other_and_runs_that_are_not_there_are_refused() {
    let (server, _watching, id) = edited("\n").await;
    let files = changes(&server, &id).await;
    let hunk = id_of(of(&files, "long.txt"), 0);
    for word in ["accept", "reject"] {
        for (body, wanted) in [
            (json!({ "all": true, "path": "made.txt" }), 422),
            (json!({ "all": true, "hunks": [hunk] }), 422),
            (json!({ "path": "made.txt", "hunks": [hunk] }), 422),
            (json!({ "all": true, "run": 9 }), 404),
            (json!({ "all": false }), 400),
        ] {
            let (status, answer) = review(&server, &id, word, body.clone()).await;
            assert_eq!(status, wanted, "{word} {body}: {answer}");
        }
    }
    assert_eq!(changes(&server, &id).await, files);
    for (run, wanted) in [(0, 404), (1, 200), (2, 404), (9, 404)] {
        let (status, answer) = server.get(&format!("/api/sessions/{id}/changes?run={run}")).await;
        assert_eq!(status, wanted, "{run}: {answer}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hunks_with_their_headers_are_a_patch_of_the_file() {
    let (server, _watching, id) = edited("\n").await;
    let files = changes(&server, &id).await;
    let long = of(&files, "long.txt");
    assert_eq!(long["hunks"][0]["header"], "@@ -2,7 +2,7 @@");
    // What the agent left, taken back by a program that knows nothing of Lathe.
    let mut patch = "--- a/long.txt\n+++ b/long.txt\n".to_owned();
    for hunk in long["hunks"].as_array().unwrap() {
        assert_eq!(hunk["left_out"], 0);
        patch.push_str(&format!("{}\n", hunk["header"].as_str().unwrap()));
        for line in hunk["lines"].as_array().unwrap() {
            patch.push_str(&format!("{}\n", line.as_str().unwrap()));
        }
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &patch).unwrap();
    let args = ["apply", "--reverse", "-p1"];
    let ran =
        std::process::Command::new("git").args(args).arg(file.path()).current_dir(&server.root).output();
    let ran = ran.unwrap();
    assert!(ran.status.success(), "{patch}\n{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(std::fs::read_to_string(server.root.join("long.txt")).unwrap(), numbered("\n"));
    server.stop().await;
}
