//! Every git route of a server that serves hostile folders, with a record of every program that is started.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lathe_testkit::{Lathe, PROGRAM_SETTINGS, TempRepo, descendants_of, eventually, plant_setting, sample};
use serde_json::{Value, json};

use crate::hostile::{Bait, can_trace, is_expected, program, read_trace};
use crate::hostile_layouts::LAYOUTS;
use crate::hostile_table::{CASES, change};

const WITHIN: Duration = Duration::from_secs(120);

/// Every git route, with bodies that make it look at files, differences and history, and write.
fn requests() -> Vec<(&'static str, Value)> {
    let who = json!({ "message": "m", "author_name": "a", "author_email": "a@example.invalid" });
    vec![
        ("status", json!({})),
        ("diff", json!({})),
        ("diff", json!({ "path": "README.md" })),
        ("show", json!({ "path": "README.md" })),
        ("log", json!({})),
        ("add", json!({ "files": ["README.md", "new.txt"] })),
        ("diff", json!({ "staged": true })),
        ("reset", json!({ "files": ["new.txt"] })),
        ("commit", who),
        ("checkout", json!({ "files": ["src/a.txt"] })),
        ("init", json!({})),
    ]
}

/// The same for folders and repositories inside.
fn requests_inside() -> Vec<(&'static str, Value)> {
    let add = |file: &str| ("add", json!({ "files": [file] }));
    let inside =
        [("diff", json!({ "path": "inner" })), add("inner"), add("outer"), add("docs"), add("x.txt")];
    requests().into_iter().chain(inside).collect()
}

/// Sends one request and gives the status.
fn post(address: &str, token: &str, path: &str, body: &Value) -> u16 {
    let body = body.to_string();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(WITHIN)).unwrap();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let text = String::from_utf8_lossy(&answer);
    text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("{text}"))
}

/// Hostile folders that one server serves.
struct Folders {
    outside: tempfile::TempDir,
    repos: Vec<(String, TempRepo)>,
}

impl Folders {
    fn new() -> Self {
        let outside = tempfile::tempdir().unwrap();
        for name in ["marks", "out"] {
            std::fs::create_dir(outside.path().join(name)).unwrap();
        }
        Self { outside, repos: Vec::new() }
    }

    fn marks(&self) -> PathBuf {
        self.outside.path().join("marks")
    }

    fn add(&mut self, name: &str, make: impl FnOnce(&TempRepo, &Bait)) {
        // Nothing listens there; programs are all that is looked for.
        let marks = self.marks().join(self.repos.len().to_string());
        std::fs::create_dir(&marks).unwrap();
        let bait = Bait { marks, port: 9 };
        let repo = TempRepo::with_git(&[("README.md", "# bait\n"), ("src/a.txt", "one\n")]);
        program(&repo, "bait.sh", &bait.line("${1:-bait}"));
        make(&repo, &bait);
        self.repos.push((name.to_owned(), repo));
    }

    fn taken(&self) -> Vec<String> {
        let names = |(at, (name, _)): (usize, &(String, TempRepo))| {
            let marks = std::fs::read_dir(self.marks().join(at.to_string())).unwrap();
            marks.map(|mark| format!("{name}: {:?}", mark.unwrap().file_name())).collect::<Vec<_>>()
        };
        self.repos.iter().enumerate().flat_map(names).collect()
    }
}

/// Serves the folders and asks for everything. Gives how many answers were good.
fn ask_everything(folders: &Folders) -> usize {
    let out = folders.outside.path().join("out");
    let binary = std::path::absolute(env!("CARGO_BIN_EXE_lathe")).unwrap();
    let traced = can_trace();
    let mut lathe = if traced {
        let options = ["-ff", "-qq", "-s", "400", "--seccomp-bpf", "-e", "trace=execve,execveat", "-o"];
        Lathe::new("/usr/bin/strace").args(options).arg(out.join("trace")).arg(&binary)
    } else {
        eprintln!("processes cannot be traced here: only marks are looked at");
        Lathe::new(&binary)
    };
    lathe = lathe.args(["serve", "--port", "0", "--json", "--replay"]).arg(out.join("cassette"));
    std::fs::write(out.join("cassette"), "{\"cassette\": 1, \"toolset\": \"lathe\"}\n").unwrap();
    for (_, repo) in &folders.repos {
        lathe = lathe.arg("--root").arg(repo.path());
    }
    // The server stands in a folder with a program named git, and PATH leads there.
    let stand = folders.repos.iter().find(|(_, repo)| repo.exists("git")).map(|(_, repo)| repo.path());
    let path = std::env::var("PATH").unwrap();
    if let Some(stand) = stand {
        lathe = lathe.in_dir(stand).env("PATH", format!(".::bin:{path}"));
    }
    let running = lathe.timeout(Duration::from_secs(900)).spawn();
    running.wait_for_stdout("\"token\"", WITHIN);
    eventually(WITHIN, "the whole line", || running.stdout_so_far().contains('\n'));
    let said: Value = serde_json::from_str(running.stdout_so_far().lines().next().unwrap()).unwrap();
    let (address, token) = (said["address"].as_str().unwrap(), said["token"].as_str().unwrap());
    let mut good = 0;
    for (name, repo) in &folders.repos {
        let inside = ["docs", "inner", "outer"].into_iter().filter(|below| repo.join(below).is_dir());
        let inside: Vec<&str> = inside.collect();
        for below in [""].iter().chain(&inside) {
            let folder = repo.join(below);
            let requests = if inside.is_empty() { requests() } else { requests_inside() };
            for (what, mut body) in requests {
                body["workspace"] = json!(folder.canonicalize().unwrap());
                let status = post(address, token, &format!("/api/git/{what}"), &body);
                assert!((200..500).contains(&status), "{name} {below} {what} {body}: {status}");
                good += usize::from(status == 200);
            }
        }
    }
    // The tracer would leave the server running.
    let server = descendants_of(running.pid()).into_iter().find(|pid| {
        std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == binary.canonicalize().unwrap())
    });
    let ended = std::process::Command::new("kill").args(["-TERM", &server.unwrap().to_string()]).status();
    assert!(ended.unwrap().success());
    running.wait();
    if traced {
        let odd: Vec<String> =
            read_trace(&out).programs.into_iter().filter(|line| !is_expected(line)).collect();
        assert!(odd.is_empty(), "these were started: {odd:#?}");
        assert!(read_trace(&out).programs.len() > good, "nothing was traced");
    }
    good
}

#[track_caller]
fn nothing_is_run(folders: &Folders) {
    let good = ask_everything(folders);
    assert_eq!(folders.taken(), Vec::<String>::new());
    // Most folders can be used: refusing everything would be no art.
    assert!(good >= folders.repos.len() * 5, "{good} good answers for {} folders", folders.repos.len());
}

#[test]
fn no_git_route_runs_what_a_hostile_folder_brings() {
    let mut folders = Folders::new();
    for case in sample(&CASES, 3) {
        folders.add(case.name, case.make);
    }
    nothing_is_run(&folders);
}

#[test]
fn no_git_route_runs_what_a_hostile_layout_brings() {
    let mut folders = Folders::new();
    for case in sample(&LAYOUTS, 3) {
        folders.add(case.name, case.make);
    }
    nothing_is_run(&folders);
}

fn settings(number: usize, of: usize) {
    let mut folders = Folders::new();
    for setting in sample(PROGRAM_SETTINGS.into_iter().skip(number).step_by(of), 3) {
        folders.add(setting.0, |repo, bait| {
            plant_setting(repo, setting, &bait.marks);
            change(repo);
        });
    }
    nothing_is_run(&folders);
}

#[test]
fn no_git_route_runs_a_program_that_a_setting_names_1_of_2() {
    assert!(PROGRAM_SETTINGS.len() >= 40);
    settings(0, 2);
}

#[test]
fn no_git_route_runs_a_program_that_a_setting_names_2_of_2() {
    settings(1, 2);
}

/// A folder whose program is run is seen, or the tests above would show nothing.
#[test]
fn a_program_that_runs_leaves_a_mark() {
    let mut folders = Folders::new();
    folders.add("control", |repo, bait| plant_setting(repo, PROGRAM_SETTINGS[0], &bait.marks));
    let run = |folder: &Path| std::process::Command::new("git").arg("status").current_dir(folder).output();
    run(folders.repos[0].1.path()).unwrap();
    assert_eq!(folders.taken(), ["control: \"fsmonitor\""]);
}
