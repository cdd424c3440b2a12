//! Little of what the system gives: open files, sizes of files, processes; and answers that come compressed.

use std::process::Command;

use lathe_testkit::{FakeModel, Lathe, Script, TempRepo, call, done};
use serde_json::json;

use crate::{lathe, run_in};

/// Runs a command of Lathe under limits of `prlimit`.
fn under(limits: &[&str], lathe: &Lathe, args: &[&str]) -> std::process::Output {
    Command::new("prlimit")
        .args(limits)
        .arg(env!("CARGO_BIN_EXE_lathe"))
        .args(args)
        .env("LATHE_HOME", lathe.home())
        .env("LATHE_SANDBOX", "off")
        .env("NO_COLOR", "1")
        .output()
        .unwrap()
}

fn said(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn too_few_open_files_are_told_before_anything_begins() {
    let lathe = lathe();
    for most in [6, 16, 63] {
        let ran = under(&[&format!("--nofile={most}")], &lathe, &["demo"]);
        assert_eq!(ran.status.code(), Some(1), "{most}: {}", said(&ran));
        assert!(
            said(&ran).starts_with(&format!("error[limits]: only {most} files")),
            "{most}: {}",
            said(&ran)
        );
    }
    let ran = under(&["--nofile=20:256"], &lathe, &["demo"]);
    assert_eq!(ran.status.code(), Some(0), "a limit that can be raised is raised: {}", said(&ran));
}

#[test]
fn too_little_memory_is_told_before_anything_begins() {
    let lathe = lathe();
    let ran = under(&["--as=400000000"], &lathe, &["demo"]);
    assert_eq!(ran.status.code(), Some(1), "{}", said(&ran));
    assert!(said(&ran).starts_with("error[limits]: only 381 MB of memory"), "{}", said(&ran));
    let ran = under(&["--as=200000000:4000000000"], &lathe, &["demo"]);
    assert_eq!(ran.status.code(), Some(0), "a limit that can be raised is raised: {}", said(&ran));
}

/// The system limits the threads of a user, but never those of root: root tries it as a user without other processes.
#[test]
fn too_few_threads_are_told_and_are_no_fault_of_lathe() {
    use std::os::unix::fs::PermissionsExt as _;
    const NOBODY: &str = "61234";
    let place = TempRepo::new(&[]);
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let is_root = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap()) == 0;
    // The folder of the build may be one that only root reads.
    let program = place.join("lathe");
    if !is_root || std::fs::hard_link(env!("CARGO_BIN_EXE_lathe"), &program).is_err() {
        std::fs::copy(env!("CARGO_BIN_EXE_lathe"), &program).unwrap();
    }
    for most in 0..6 {
        let user = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"];
        let words: Vec<&str> = if is_root { user.to_vec() } else { vec!["env"] };
        let ran = Command::new(words[0])
            .args(&words[1..])
            .args(["prlimit", &format!("--nproc={most}")])
            .arg(&program)
            .arg("demo")
            .env("LATHE_HOME", place.join(&format!("home{most}")))
            .env("LATHE_SANDBOX", "off")
            .env("HOME", place.path())
            .env("TMPDIR", place.path())
            .current_dir(place.path())
            .output()
            .unwrap();
        let said = said(&ran);
        assert!(!said.contains("error[panic]"), "{most}: {said}");
        // A user with few threads may still have enough of them at the time.
        if ran.status.code() != Some(0) {
            assert_eq!(ran.status.code(), Some(1), "{most}: {said}");
            assert!(said.contains("error[limits]: the system gives no further thread"), "{most}: {said}");
        }
        assert!(most > 1 || ran.status.code() == Some(1), "{most}: {said}");
    }
}

#[test]
fn a_limit_on_the_size_of_files_ends_as_a_full_disk_does() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let script = Script::repeat(40, |k| call(&format!("c{k}"), "bash", json!({ "command": "seq 3000" })));
    let model = FakeModel::serving(script.answer(done("ok")));
    let home = run_in(repo.path(), &model);
    let url = model.base_url();
    let args = [
        "run",
        "do it",
        "--mode",
        "full-auto",
        "--model-base-url",
        &url,
        "--model",
        "fake",
        "--api-key",
        "k",
    ];
    let ran = Command::new("prlimit")
        .arg("--fsize=200000")
        .arg(env!("CARGO_BIN_EXE_lathe"))
        .args(args)
        .current_dir(repo.path())
        .env("LATHE_HOME", home.home())
        .env("LATHE_SANDBOX", "off")
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(54), "{}{}", String::from_utf8_lossy(&ran.stdout), said(&ran));
    home.clone().args(["sessions"]).run();
}

/// Answers one request with a compressed stream.
const COMPRESSED: &str = r#"
import gzip, http.server, json, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *words): pass
    def do_POST(self):
        self.rfile.read(int(self.headers['content-length']))
        assert 'gzip' in self.headers.get('accept-encoding', ''), self.headers
        call = {'index': 0, 'id': 'c1', 'type': 'function', 'function': {'name': 'task_done', 'arguments': '{"summary":"unpacked"}'}}
        events = [{'choices': [{'index': 0, 'delta': {'tool_calls': [call]}}]}, {'choices': [{'index': 0, 'delta': {}, 'finish_reason': 'tool_calls'}]}]
        text = ''.join(f'data: {json.dumps(event)}\n\n' for event in events) + 'data: [DONE]\n\n'
        body = gzip.compress(text.encode())
        self.send_response(200)
        for name, value in [('content-type', 'text/event-stream'), ('content-encoding', 'gzip'), ('content-length', str(len(body)))]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
server = http.server.HTTPServer(('127.0.0.1', 0), Handler)
print(server.server_port, flush=True)
server.handle_request()
"#;

#[test]
fn a_compressed_answer_is_understood() {
    use std::io::{BufRead as _, BufReader};
    let repo = TempRepo::new(&[]);
    let mut server = Command::new("python3")
        .args(["-c", COMPRESSED])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut port = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let url = format!("http://127.0.0.1:{}/v1", port.trim());
    let args = ["run", "do it", "--model-base-url", &url, "--model", "m", "--api-key", "k"];
    let ran = lathe().in_dir(repo.path()).args(args).run();
    server.wait().unwrap();
    let ran = ran.expect_code(0);
    assert!(ran.stdout.contains("unpacked"), "{}", ran.stdout);
}
