//! Ends, lists and messages that say what is so.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use lathe_testkit::{FakeModel, Lathe, Script, TempRepo, call, done, eventually};
use serde_json::{Value, json};

use crate::{bodies, lathe};

fn run(home: &Lathe, repo: &TempRepo, script: Script, words: &[&str]) -> lathe_testkit::FinishedLathe {
    let model = FakeModel::serving(script);
    home.clone().in_dir(repo.path()).args(["run", "go"]).args(words).with_model(&model).run()
}

#[test]
fn a_denied_line_that_only_reads_is_no_denied_change() {
    for (line, code) in [
        ("cat /var/log/dpkg.log", 0),
        ("head -3 /var/log/dpkg.log | wc -l", 0),
        ("ls /var/log; cat /var/log/dpkg.log > mine.txt", 5),
        ("touch /var/log/x", 5),
    ] {
        let repo = TempRepo::new(&[("a.txt", "a\n")]);
        let script = Script::new().answer(call("c1", "bash", json!({ "command": line }))).answer(done("ok"));
        let ran = run(&lathe(), &repo, script, &["--mode", "default"]);
        assert_eq!(ran.code, code, "{line}: {}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn a_run_whose_process_was_killed_was_interrupted_and_not_cancelled() {
    let (repo, home) = (TempRepo::new(&[("a.txt", "a\n")]), lathe());
    let line = "touch begun; sleep 60";
    let model = FakeModel::serving(Script::new().answer(call("c1", "bash", json!({ "command": line }))));
    let words = ["run", "go", "--mode", "full-auto"];
    let running = home.clone().in_dir(repo.path()).args(words).with_model(&model).spawn();
    eventually(Duration::from_secs(60), "the line", || repo.exists("begun"));
    running.kill9();
    running.wait();
    let script = Script::new().answer(call("c1", "bash", json!({ "command": line }))).answer(done("ok"));
    let model = FakeModel::serving(script);
    let words = ["resume", "carry on then", "--mode", "full-auto", "--output", "stream-json"];
    let ran = home.clone().in_dir(repo.path()).args(words).with_model(&model).run().expect_code(0);
    let finished = bodies(&ran.events(), "task_finished");
    assert!(finished[0].to_string().contains("Interrupted: the process that ran it ended."), "{finished:?}");
    let shown = home.clone().in_dir(repo.path()).args(["show", "--format", "json"]).run();
    assert!(!shown.stdout.contains("Cancelled by the user"), "{}", shown.stdout);
}

#[test]
fn what_cannot_be_meant_is_an_error_of_usage() {
    let (repo, home) = (TempRepo::new(&[("a.txt", "a\n")]), lathe());
    let script = || Script::new().answer(done("ok"));
    let model = FakeModel::serving(script());
    let words = ["run", "go", "--model", "", "--model-base-url", &model.base_url(), "--api-key", model.key()];
    let ran = home.clone().in_dir(repo.path()).args(words).run().expect_code(2);
    assert!(ran.stderr.contains("no model name") && model.requests().is_empty(), "{}", ran.stderr);
    run(&home, &repo, script(), &[]).expect_code(0);
    for words in [&["rewind", "--to", "-1"][..], &["fork", "2", "--at", "-1"]] {
        let ran = home.clone().in_dir(repo.path()).args(words).run().expect_code(2);
        assert!(ran.stderr.contains("invalid value '-1'") && !ran.stderr.contains("-- -1"), "{}", ran.stderr);
    }
    let ran =
        home.clone().in_dir(repo.path()).env("LATHE_HOME", "/proc/x").arg("sessions").run().expect_code(2);
    assert!(ran.stderr.contains("cannot be used"), "{}", ran.stderr);
    let ran = home.clone().args(["serve", "token", "add", "viewer"]).run();
    assert!(ran.code != 0 && ran.stderr.contains("is the name of a role"), "{}", ran.stderr);
}

#[test]
fn a_cap_of_nothing_allows_nothing() {
    let (repo, home) = (TempRepo::new(&[("a.txt", "a\n")]), lathe());
    std::fs::create_dir_all(home.home()).unwrap();
    let prices = r#"{"fake": {"input": 3, "output": 15}}"#;
    std::fs::write(home.home().join("prices.json"), prices).unwrap();
    let model = FakeModel::serving(Script::new().answer(done("ok")));
    let words = ["run", "go", "--max-cost", "0"];
    let ran = home.clone().in_dir(repo.path()).args(words).with_model(&model).run();
    assert_eq!((ran.code, model.requests().len()), (4, 0), "{}{}", ran.stdout, ran.stderr);
}

/// The status and the body of a request to a server.
fn get(address: &str, token: &str, path: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let json = body.find(['[', '{']).and_then(|at| {
        let end = body.rfind([']', '}'])?;
        serde_json::from_str(body.get(at..=end)?).ok()
    });
    (status, json.unwrap_or_default())
}

#[test]
fn a_server_tells_of_a_damaged_session() {
    let (repo, home) = (TempRepo::new(&[("a.txt", "a\n")]), lathe());
    let script = Script::new().answer(call("c1", "bash", json!({ "command": "echo x > a.txt" })));
    run(&home, &repo, script.answer(done("ok")), &["--mode", "full-auto"]).expect_code(0);
    let journal = std::fs::read_dir(home.home().join("sessions")).unwrap().map(|entry| entry.unwrap().path());
    let mut journal = journal.filter(|path| path.extension().is_some_and(|end| end == "db"));
    let journal = journal.next().unwrap();
    let id = journal.file_stem().unwrap().to_str().unwrap().to_owned();
    let whole = std::fs::read(&journal).unwrap();
    for at in [0, whole.len() / 2, whole.len() - 3000] {
        let mut broken = whole.clone();
        broken[at..at + 1500].fill(0xaa);
        std::fs::write(&journal, broken).unwrap();
        let served = home.clone().in_dir(repo.path()).args(["serve", "--port", "0", "--json"]).spawn();
        served.wait_for_stdout("\"token\"", Duration::from_secs(60));
        eventually(Duration::from_secs(60), "the line", || served.stdout_so_far().contains('\n'));
        let said: Value = serde_json::from_str(served.stdout_so_far().lines().next().unwrap()).unwrap();
        let (address, token) = (said["address"].as_str().unwrap(), said["token"].as_str().unwrap());
        let listed = home.clone().in_dir(repo.path()).args(["sessions", "--json"]).run();
        let is_damaged = listed.stdout.contains("\"damaged\"");
        let (status, row) = get(address, token, &format!("/api/sessions/{id}"));
        let (_, rows) = get(address, token, "/api/sessions");
        served.kill9();
        served.wait();
        if is_damaged {
            assert_eq!(status, 500, "{at}: {row}");
            assert!(rows[0]["damaged"].is_string(), "{at}: {rows}");
        } else {
            assert!(status != 404, "{at}: {row}");
        }
    }
}
