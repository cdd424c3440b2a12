//! `lathe connect`: a terminal elsewhere, against the real server.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lathe_testkit::{Lathe, RunningLathe, Signal, TempRepo, eventually};
use serde_json::{Value, json};

use crate::lathe;

const WITHIN: Duration = Duration::from_secs(60);

struct Server {
    running: RunningLathe,
    url: String,
    address: String,
    token: String,
    home: PathBuf,
    _outside: tempfile::TempDir,
}

/// A server whose model says these things, in this order.
fn serve(repo: &TempRepo, answers: &[Value]) -> Server {
    let outside = tempfile::tempdir().unwrap();
    let cassette = outside.path().join("answers.cassette");
    let head = json!({ "cassette": 1, "toolset": "lathe" });
    let lines = answers.iter().map(|blocks| json!({ "answer": { "blocks": blocks } }));
    let lines: Vec<String> = std::iter::once(head).chain(lines).map(|line| line.to_string()).collect();
    std::fs::write(&cassette, lines.join("\n")).unwrap();
    let program =
        lathe().in_dir(repo.path()).args(["serve", "--port", "0", "--json", "--replay"]).arg(&cassette);
    let running = program.spawn();
    eventually(WITHIN, "the server is there", || running.stdout_so_far().contains('\n'));
    let said: Value = serde_json::from_str(running.stdout_so_far().lines().next().unwrap()).unwrap();
    let text = |key: &str| said[key].as_str().unwrap().to_owned();
    let home = program.home();
    Server {
        url: text("url"),
        address: text("address"),
        token: text("token"),
        home,
        running,
        _outside: outside,
    }
}

fn call(id: &str, name: &str, arguments: Value) -> Value {
    json!({ "call": { "id": id, "name": name, "arguments": arguments } })
}

fn two_steps() -> Vec<Value> {
    vec![
        json!([{ "text": { "text": "I look." } }, call("a1", "view", json!({ "path": "a.txt" }))]),
        json!([call("d1", "task_done", json!({ "summary": "It is seen." }))]),
    ]
}

fn asking() -> Vec<Value> {
    vec![
        json!([call("b1", "bash", json!({ "command": "touch made" }))]),
        json!([call("d1", "task_done", json!({ "summary": "It is made." }))]),
    ]
}

fn connect(url: &str) -> Lathe {
    lathe().args(["connect", url])
}

#[test]
fn a_task_is_given_its_steps_are_printed_and_the_session_is_listed() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let server = serve(&repo, &two_steps());
    let ran = connect(&server.url).arg("Look at it.").run().expect_code(0);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(lines.contains(&"step 1") && lines.contains(&"  I look."), "{lines:?}");
    assert!(lines.contains(&"  ▸ view a.txt"), "{lines:?}");
    assert_eq!(lines.last(), Some(&"It is seen."));
    let listed = connect(&server.url).run().expect_code(0).stdout;
    assert!(listed.contains("completed") && listed.contains("Look at it."), "{listed}");
    // The token may come from the environment, and a session may be watched afterwards.
    let id = listed.split_whitespace().next().unwrap();
    let bare = format!("http://{}", server.address);
    let again = lathe().args(["connect", &bare, "--session", id]).env("LATHE_TOKEN", &server.token).run();
    assert_eq!(again.expect_code(0).stdout.lines().last(), Some("It is seen."));
    drop(server.running);
}

#[test]
fn a_wrong_token_a_wrong_address_and_no_server_are_said() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let server = serve(&repo, &two_steps());
    let wrong = format!("http://{}/#token={}", server.address, "0".repeat(64));
    let ran = connect(&wrong).arg("Look.").run().expect_code(1);
    assert!(ran.stderr.contains("(401)"), "{}", ran.stderr);
    let ran = connect(&wrong).run().expect_code(1);
    assert!(ran.stderr.contains("(401)"), "{}", ran.stderr);
    connect("http://example.com/#token=x").run().expect_code(2);
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let ran = connect(&format!("http://{nobody}/#token=x")).arg("Look.").run().expect_code(1);
    assert!(ran.stderr.contains("cannot be reached"), "{}", ran.stderr);
    drop(server.running);
}

#[test]
fn ctrl_c_cancels_the_run_and_a_typed_line_reaches_it() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let server = serve(&repo, &asking());
    let client = connect(&server.url).arg("Make it.").stdin("only that, please\n").spawn();
    client.wait_for_stdout("› only that, please", WITHIN);
    // There is no terminal here, so another client may answer.
    client.wait_for_stdout("touch made", WITHIN);
    client.wait_for_stdout("waits for an answer", WITHIN);
    client.kill(Signal::Interrupt);
    let ran = client.wait();
    assert_eq!(ran.code, 130, "{} {}", ran.stdout, ran.stderr);
    assert!(!repo.exists("made"));
    drop(server.running);
}

/// A client whose input stays open.
struct Typing {
    child: std::process::Child,
    keys: std::process::ChildStdin,
    seen: Arc<Mutex<Vec<u8>>>,
}

impl Typing {
    fn start(client: &Lathe) -> Self {
        Self::of(client.command())
    }

    fn of(mut command: Command) -> Self {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = piped.spawn().unwrap();
        let (keys, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let shown = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(read @ 1..) = screen.read(&mut piece) {
                shown.lock().unwrap().extend_from_slice(&piece[..read]);
            }
        });
        Self { child, keys, seen }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned()
    }

    fn see(&self, text: &str) {
        eventually(WITHIN, text, || self.text().contains(text));
    }

    fn end(mut self) -> (Option<i32>, String) {
        drop(self.keys);
        let code = self.child.wait().unwrap().code();
        // The reader may lag for a moment.
        std::thread::sleep(Duration::from_millis(200));
        let text = String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned();
        (code, text)
    }
}

#[test]
fn a_client_that_is_told_to_end_leaves_the_run_and_a_piped_yes_answers_what_it_left() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let server = serve(&repo, &asking());
    let client = connect(&server.url).arg("Make it.").spawn();
    client.wait_for_stdout("waits for an answer", WITHIN);
    client.kill(Signal::Terminate);
    let ran = client.wait();
    assert_eq!(ran.code, 143, "{} {}", ran.stdout, ran.stderr);
    assert!(
        ran.stderr.contains("the run continues. Return to it with: lathe connect URL --session "),
        "{}",
        ran.stderr
    );
    let listed = connect(&server.url).run().expect_code(0).stdout;
    assert!(listed.contains("running"), "{listed}");
    let id = listed.split_whitespace().next().unwrap();
    let ran = connect(&server.url).args(["--session", id]).stdin("y\n").run().expect_code(0);
    assert_eq!(ran.stdout.lines().last(), Some("It is made."), "{}", ran.stdout);
    assert!(repo.exists("made"));
    drop(server.running);
}

#[test]
fn a_piped_yes_that_comes_before_the_question_is_no_answer_and_one_that_comes_after_is() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    // Long enough for the line to come first.
    let looks = (0..25).map(|n| json!([call(&format!("v{n}"), "view", json!({ "path": "a.txt" }))]));
    let server = serve(&repo, &looks.chain(asking()).collect::<Vec<_>>());
    let early = connect(&server.url).arg("Make it.").stdin("y\n").spawn();
    early.wait_for_stdout("waits for an answer", WITHIN);
    assert!(early.stderr_so_far().contains("`y` is not taken as an answer"), "{}", early.stderr_so_far());
    std::thread::sleep(Duration::from_millis(300));
    assert!(!repo.exists("made"));
    early.kill(Signal::Terminate);
    early.wait();
    drop(server.running);
    let server = serve(&repo, &asking());
    let mut client = Typing::start(&connect(&server.url).arg("Make it."));
    client.see("waits for an answer");
    client.keys.write_all(b"only this once\nyes\n").unwrap();
    let (code, text) = client.end();
    assert_eq!(code, Some(0), "{text}");
    // A line that is not an answer still reaches the run.
    assert!(text.contains("› only this once") && text.contains("It is made."), "{text}");
    assert!(repo.exists("made"));
    drop(server.running);
}

#[test]
fn what_the_model_asks_is_shown_with_its_options_and_answered() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let ask = json!({ "question": "Tabs or spaces?", "options": ["tabs", "spaces"] });
    let answers = [
        json!([call("q1", "ask_user", ask)]),
        json!([call("d1", "task_done", json!({ "summary": "It is said." }))]),
    ];
    let server = serve(&repo, &answers);
    let mut client = Typing::start(&connect(&server.url).arg("Ask me."));
    client.see("Tabs or spaces?");
    client.see("1. tabs\n  2. spaces\n");
    client.keys.write_all(b"2\n").unwrap();
    let (code, text) = client.end();
    assert_eq!((code, text.lines().last()), (Some(0), Some("It is said.")), "{text}");
    let listed = connect(&server.url).run().expect_code(0).stdout;
    let id = listed.split_whitespace().next().unwrap();
    let trajectory = std::fs::read_to_string(server.home.join(format!("trajectories/{id}.json"))).unwrap();
    assert!(trajectory.contains("spaces"), "{trajectory}");
    drop(server.running);
}

#[test]
fn a_question_is_answered_at_the_terminal() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let server = serve(&repo, &asking());
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_lathe"));
    let line = format!("'{}' connect '{}' 'Make it.'", binary.display(), server.url);
    let home = tempfile::tempdir().unwrap();
    let mut shell = Command::new("script")
        .args(["-qefc", &line, "/dev/null"])
        .current_dir(repo.path())
        .env("LATHE_HOME", home.path())
        .env("LATHE_SANDBOX", "off")
        .env("TERM", "xterm")
        .env("LANG", "C.UTF-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut keys, mut screen) = (shell.stdin.take().unwrap(), shell.stdout.take().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let shown = Arc::clone(&seen);
    let reading = std::thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(read) = screen.read(&mut piece) {
            if read == 0 {
                break;
            }
            shown.lock().unwrap().extend_from_slice(&piece[..read]);
        }
    });
    let text = || String::from_utf8_lossy(&seen.lock().unwrap()).into_owned();
    eventually(WITHIN, "the question", || text().contains("a reason may follow"));
    keys.write_all(b"o\n").unwrap();
    let ended = shell.wait().unwrap();
    reading.join().unwrap();
    assert!(ended.success(), "{}", text());
    assert!(text().contains("It is made."), "{}", text());
    assert!(repo.exists("made"));
    drop(server.running);
}

/// Passes bytes on, and cuts the first connection after so many from the server.
fn cutting(to: String, after: usize) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let here = listener.local_addr().unwrap().to_string();
    let count = Arc::new(AtomicUsize::new(0));
    let (own, counted) = (here.clone(), Arc::clone(&count));
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let number = counted.fetch_add(1, Ordering::SeqCst);
            let Ok(server) = TcpStream::connect(&to) else { continue };
            let (mut up, mut into) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            let (own, to) = (own.clone(), to.clone());
            std::thread::spawn(move || {
                let mut piece = [0; 8192];
                while let Ok(read) = up.read(&mut piece) {
                    // The server knows itself by its own name only.
                    let text = piece[..read].to_vec();
                    let text = match String::from_utf8(text.clone()) {
                        Ok(head) if head.starts_with("GET ") => head.replace(&own, &to).into_bytes(),
                        _ => text,
                    };
                    if read == 0 || into.write_all(&text).is_err() {
                        break;
                    }
                }
                let _ = into.shutdown(Shutdown::Both);
            });
            let (mut down, mut out) = (server, client);
            std::thread::spawn(move || {
                let mut piece = [0; 256];
                let mut passed = 0;
                while let Ok(read) = down.read(&mut piece) {
                    passed += read;
                    if read == 0 || out.write_all(&piece[..read]).is_err() || (number == 0 && passed > after)
                    {
                        break;
                    }
                }
                let _ = out.shutdown(Shutdown::Both);
                let _ = down.shutdown(Shutdown::Both);
            });
        }
    });
    (here, count)
}

#[test]
fn a_lost_connection_comes_back_by_its_cursor_and_nothing_is_printed_twice() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let mut answers: Vec<Value> = (0..20)
        .map(|n| json!([call(&format!("v{n}"), "view", json!({ "path": "a.txt", "start_line": 1 }))]))
        .collect();
    answers.push(json!([call("d1", "task_done", json!({ "summary": "It is seen." }))]));
    let server = serve(&repo, &answers);
    // Far beyond the first frame, which holds all tools, and before the end.
    let (here, count) = cutting(server.address.clone(), 45_000);
    let ran = connect(&format!("http://{here}/#token={}", server.token)).arg("Look.").run().expect_code(0);
    assert!(ran.stderr.contains("connection lost") && ran.stderr.contains("reconnected"), "{}", ran.stderr);
    assert_eq!(count.load(Ordering::SeqCst), 2);
    let viewed = ran.stdout.lines().filter(|line| line.trim() == "✘ view").count();
    assert_eq!(viewed, 20, "{}", ran.stdout);
    assert_eq!(ran.stdout.lines().last(), Some("It is seen."));
    drop(server.running);
}

#[test]
fn what_was_begun_for_one_question_is_no_answer_to_the_next() {
    for at_terminal in [false, true] {
        let repo = TempRepo::new(&[("a.txt", "one\n")]);
        let mut answers = asking();
        answers.insert(1, json!([call("b2", "bash", json!({ "command": "touch second" }))]));
        let server = serve(&repo, &answers);
        let mut client = if at_terminal {
            let binary = PathBuf::from(env!("CARGO_BIN_EXE_lathe"));
            let line = format!("'{}' connect '{}' 'Make it.'", binary.display(), server.url);
            let mut shell = Command::new("script");
            shell.args(["-qefc", &line, "/dev/null"]).current_dir(repo.path());
            shell
                .env("LATHE_HOME", repo.join("home"))
                .env("LATHE_SANDBOX", "off")
                .env("TERM", "xterm")
                .env("LANG", "C.UTF-8");
            Typing::of(shell)
        } else {
            Typing::start(&connect(&server.url).arg("Make it."))
        };
        client.see("touch made");
        client.keys.write_all(b"y").unwrap();
        // The key has to be sent before another client answers.
        std::thread::sleep(Duration::from_millis(500));
        let listed = connect(&server.url).run().expect_code(0).stdout;
        let id = listed.split_whitespace().next().unwrap();
        let other = connect(&server.url).args(["--session", id]).stdin("y\n").spawn();
        eventually(WITHIN, "the other answer", || repo.exists("made"));
        client.see("touch second");
        std::thread::sleep(Duration::from_millis(300));
        client.keys.write_all(b"\n").unwrap();
        std::thread::sleep(Duration::from_millis(700));
        assert!(!repo.exists("second"), "at a terminal: {at_terminal}: {}", client.text());
        client.keys.write_all(b"y\n").unwrap();
        eventually(WITHIN, "the answer", || repo.exists("second"));
        client.see("It is made.");
        other.kill(Signal::Terminate);
        other.wait();
        client.end();
        drop(server.running);
    }
}
