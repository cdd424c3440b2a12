//! Folders made to run a program, or to have the user asked a question, as soon as Lathe inspects them.
//!
//! Every bait leaves a mark outside of the folder when it is taken, and every address in one is that of a listener
//! here. So no privileges are needed to see that a bait was taken. Where processes may be traced, every program that
//! is started and every address that is connected to is compared with a list as well; where not, the test says so and
//! checks only the marks.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lathe_testkit::{TempRepo, sample};

use crate::hostile_layouts::{LAYOUTS, SETTINGS};
use crate::hostile_table::CASES;

/// Every command that may be run in an untrusted folder, one on each line. `$L` is the program.
const LOOKS: &str = r#"
$L run look --replay "$CASSETTES/end"
$L run look --replay "$CASSETTES/read" --patch-path "$OUT/patch"
$L resume "and now" --replay "$CASSETTES/end"
$L graph build
$L graph query impact ""
$L config show
$L sessions
$L doctor
$L diff
$L tools
$L tool run view --json '{"path":"."}'
$L tool run write --json '{"path":"new.txt","content":"x"}'
$L shell -c 'field:db:q; true'
$L trust list
$L trust add
"#;

/// A model that does as the folder says: it reads everything, and tries to run the bait.
const READ: &str = r#"{"cassette": 1, "toolset": "lathe"}
{"answer": {"blocks": [{"call": {"id": "c1", "name": "view", "arguments": {"path": "."}}}, {"call": {"id": "c2", "name": "search", "arguments": {"pattern": "bait"}}}, {"call": {"id": "c3", "name": "glob", "arguments": {"pattern": "**/*"}}}, {"call": {"id": "c4", "name": "view", "arguments": {"path": "AGENTS.md"}}}]}}
{"answer": {"blocks": [{"call": {"id": "d1", "name": "bash", "arguments": {"command": "git status"}}}]}}
{"answer": {"blocks": [{"call": {"id": "d2", "name": "bash", "arguments": {"command": "git diff; git log -p -1"}}}]}}
{"answer": {"blocks": [{"call": {"id": "d3", "name": "bash", "arguments": {"command": "ls"}}}, {"call": {"id": "d4", "name": "bash", "arguments": {"command": "sh bait.sh model"}}}]}}
{"answer": {"blocks": [{"call": {"id": "d5", "name": "bash", "arguments": {"command": "git show HEAD"}}}]}}
{"answer": {"blocks": [{"call": {"id": "e1", "name": "task_done", "arguments": {"summary": "looked"}}}]}}
"#;

/// A model that changes the folder, so that everything that keeps and brings back is used.
const EDIT: &str = r#"{"cassette": 1, "toolset": "lathe"}
{"answer": {"blocks": [{"call": {"id": "c1", "name": "write", "arguments": {"path": "made.txt", "content": "made\n"}}}]}}
{"answer": {"blocks": [{"call": {"id": "c2", "name": "bash", "arguments": {"command": "rm src/a.txt"}}}]}}
{"answer": {"blocks": [{"call": {"id": "c3", "name": "bash", "arguments": {"command": "echo more > more.txt"}}}]}}
{"answer": {"blocks": [{"call": {"id": "e1", "name": "task_done", "arguments": {"summary": "changed"}}}]}}
"#;

/// Everything for which Lathe starts git itself.
const GIT_LOOKS: &str = r#"
$L run change --mode full-auto --replay "$CASSETTES/edit" --patch-path "$OUT/patch"
$L run change --mode full-auto --must-patch --base-commit HEAD --replay "$CASSETTES/edit"
$L diff
$L show
$L undo
$L rewind --to 0 --files
$L graph query impact ""
$L replay --tools live --mode full-auto
$L quarantine list
$L doctor
"#;

const END: &str = r#"{"cassette": 1, "toolset": "lathe"}
{"answer": {"blocks": [{"text": {"text": "done"}}]}}
{"answer": {"blocks": [{"text": {"text": "done"}}]}}
"#;

/// The contents that a case puts into its folder.
pub(crate) struct Bait {
    pub(crate) marks: PathBuf,
    pub(crate) port: u16,
}

impl Bait {
    /// A command that leaves a mark of this name.
    pub(crate) fn line(&self, name: &str) -> String {
        format!("touch {}/{name}", self.marks.display())
    }

    /// An address that must not be asked.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }
}

/// A hostile folder.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) make: fn(&TempRepo, &Bait),
    /// More of the environment, with `ROOT` for the folder.
    pub(crate) env: &'static [(&'static str, &'static str)],
}

/// Writes an executable.
pub(crate) fn program(repo: &TempRepo, path: &str, line: &str) {
    repo.write(path, format!("#!/bin/sh\n{line}\n"));
    std::fs::set_permissions(repo.join(path), std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A listener that counts who comes.
struct Trap {
    port: u16,
    caught: Arc<AtomicUsize>,
}

impl Trap {
    fn set() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let caught = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&caught);
        std::thread::spawn(move || {
            for _ in listener.incoming() {
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        Self { port, caught }
    }
}

pub(crate) fn can_trace() -> bool {
    let traced = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "/bin/true"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    traced.is_ok_and(|status| status.success())
}

/// The outcome of inspecting a folder.
struct Seen {
    marks: Vec<String>,
    connections: usize,
    /// Programs that were started and addresses that were connected to, where that can be known.
    traced: Option<Traced>,
    printed: String,
}

#[derive(Default, Debug)]
pub(crate) struct Traced {
    pub(crate) programs: Vec<String>,
    addresses: Vec<String>,
}

/// Makes the folder, looks at it in every way, and gives what happened.
fn look(case: &Case, lines: &str) -> Seen {
    let outside = tempfile::tempdir().unwrap();
    let (marks, out, cassettes) =
        (outside.path().join("marks"), outside.path().join("out"), outside.path().join("cassettes"));
    for folder in [&marks, &out, &cassettes, &outside.path().join("user")] {
        std::fs::create_dir(folder).unwrap();
    }
    std::fs::write(cassettes.join("read"), READ).unwrap();
    std::fs::write(cassettes.join("edit"), EDIT).unwrap();
    std::fs::write(cassettes.join("end"), END).unwrap();
    let trap = Trap::set();
    let repo = TempRepo::with_git(&[("README.md", "# bait\n"), ("src/a.txt", "one\n")]);
    let bait = Bait { marks: marks.clone(), port: trap.port };
    program(&repo, "bait.sh", &bait.line("${1:-bait}"));
    (case.make)(&repo, &bait);

    let binary = std::path::absolute(env!("CARGO_BIN_EXE_lathe")).unwrap();
    let mut script = String::new();
    for line in lines.lines().filter(|line| !line.trim().is_empty()) {
        script
            .push_str(&format!("echo '== {}'\n{line} < /dev/null\necho \"-- $?\"\n", line.replace('\'', "")));
    }
    let driver = outside.path().join("driver");
    std::fs::write(&driver, script).unwrap();
    let traced = can_trace();
    let mut command = if traced {
        let mut command = Command::new("strace");
        command.args([
            "-ff",
            "-qq",
            "-s",
            "400",
            "--seccomp-bpf",
            "-e",
            "trace=execve,execveat,connect,sendto,bind",
            "-o",
        ]);
        command.arg(out.join("trace")).arg("/bin/bash");
        command
    } else {
        eprintln!("processes cannot be traced here: only the marks of {} are looked at", case.name);
        Command::new("/bin/bash")
    };
    let root = repo.path().canonicalize().unwrap();
    command
        .arg(&driver)
        .current_dir(&root)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("LANG", "C.UTF-8")
        .env("HOME", outside.path().join("user"))
        .env("LATHE_HOME", outside.path().join("home"))
        .env("LATHE_SANDBOX", "off")
        .env("L", &binary)
        .env("OUT", &out)
        .env("CASSETTES", &cassettes)
        .envs(case.env.iter().map(|(name, value)| {
            let path = std::env::var("PATH").unwrap_or_default();
            (name, value.replace("ROOT", root.to_str().unwrap()).replace("PATH", &path))
        }));
    command.process_group(0);
    let printed = out.join("printed");
    let file = std::fs::File::create(&printed).unwrap();
    let mut child =
        command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > Duration::from_secs(120) {
            // All of them: what is traced goes on when only the tracer is ended.
            let group = format!("kill -KILL -- -{}", child.id());
            let _ = Command::new("sh").args(["-c", &group]).status();
            panic!("{}: still at it:\n{}", case.name, std::fs::read_to_string(&printed).unwrap_or_default());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    // Every connection made before this one has been counted by now.
    let before = trap.caught.load(Ordering::SeqCst);
    TcpStream::connect(("127.0.0.1", trap.port)).unwrap().flush().unwrap();
    while trap.caught.load(Ordering::SeqCst) == before {
        std::thread::sleep(Duration::from_millis(1));
    }
    let names =
        std::fs::read_dir(&marks).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    Seen {
        marks: names.collect(),
        connections: trap.caught.load(Ordering::SeqCst) - 1,
        traced: traced.then(|| read_trace(&out)),
        printed: String::from_utf8_lossy(&std::fs::read(&printed).unwrap()).into_owned(),
    }
}

pub(crate) fn read_trace(folder: &Path) -> Traced {
    let mut traced = Traced::default();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if !path.file_name().unwrap().to_string_lossy().starts_with("trace") {
            continue;
        }
        for line in String::from_utf8_lossy(&std::fs::read(path).unwrap()).lines() {
            if line.starts_with("exec") && line.ends_with(" = 0") {
                traced.programs.push(line.to_owned());
            } else if !line.starts_with("exec") && line.contains("sa_family=") {
                traced.addresses.push(line.to_owned());
            }
        }
    }
    traced
}

/// The program an `execve` line starts.
fn started(line: &str) -> &str {
    line.split('"').nth(1).unwrap_or_default()
}

/// Programs that Lathe and the lines of the cassette start themselves, by their whole paths.
pub(crate) fn is_expected(line: &str) -> bool {
    let path = Path::new(started(line));
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let folder = path.parent().unwrap_or(Path::new("")).display().to_string();
    let of_system = [
        "/bin",
        "/usr/bin",
        "/usr/local/bin",
        "/usr/lib/git-core",
        "/usr/local/libexec/git-core",
        "/usr/libexec/git-core",
    ];
    // Its own program and supervisor, and bash, git, bwrap, ls, rm and cp of the system. A shell named `sh` is what git runs a bait with.
    path == std::path::absolute(env!("CARGO_BIN_EXE_lathe")).unwrap()
        || (name.starts_with("ax") || folder.contains("/home/ax"))
        || (of_system.contains(&folder.as_str())
            && ["bash", "git", "ls", "rm", "cp", "bwrap"].contains(&name.as_str()))
}

/// A socket of this machine, or a look whether a model's server is on one of the usual ports, which no project chooses.
fn is_local(line: &str) -> bool {
    let usual = ["11434", "1234", "8000", "8080"]
        .map(|port| format!("htons({port}), sin_addr=inet_addr(\"127.0.0.1\")"));
    // Bubblewrap brings up the loopback of a new network over netlink.
    line.contains("sa_family=AF_UNIX")
        || line.contains("sa_family=AF_NETLINK")
        || line.contains("sa_family=AF_UNSPEC")
        || usual.iter().any(|usual| line.starts_with("connect") && line.contains(usual.as_str()))
}

#[track_caller]
fn nothing_is_taken(case: &Case, looks: &str) {
    let seen = look(case, looks);
    let name = case.name;
    assert_eq!(seen.marks, Vec::<String>::new(), "{name}: a bait was taken\n{}", seen.printed);
    assert_eq!(seen.connections, 0, "{name}: an address of the project was asked\n{}", seen.printed);
    // A crash, or a command that had to be killed, does not count as a refusal.
    for code in seen.printed.lines().filter_map(|line| line.strip_prefix("-- ")) {
        assert!(["0", "1", "2", "5"].contains(&code), "{name}: exit code {code}\n{}", seen.printed);
    }
    assert_eq!(
        seen.printed.matches("\n-- ").count(),
        looks.lines().filter(|line| !line.is_empty()).count(),
        "{name}"
    );
    if let Some(traced) = seen.traced {
        let odd: Vec<&String> = traced.programs.iter().filter(|line| !is_expected(line)).collect();
        assert!(odd.is_empty(), "{name} had these started: {odd:#?}");
        let odd: Vec<&String> = traced.addresses.iter().filter(|line| !is_local(line)).collect();
        assert!(odd.is_empty(), "{name} had these connected: {odd:#?}");
        // Each look is at least one program: Lathe.
        assert!(traced.programs.len() >= looks.lines().count(), "{name}: nothing was traced");
    }
}

/// A part of the table, so that the parts can run in parallel.
fn part(number: usize, of: usize) {
    for case in sample(CASES.iter().skip(number).step_by(of), 2) {
        nothing_is_taken(case, LOOKS);
    }
}

/// The layouts, and the settings that name programs, a few in each folder.
fn git_part(number: usize, of: usize) {
    for case in sample(LAYOUTS.iter().chain(&SETTINGS).skip(number).step_by(of), 2) {
        nothing_is_taken(case, GIT_LOOKS);
    }
}

#[test]
fn no_git_of_ours_runs_what_a_repository_names_1_of_3() {
    git_part(0, 3);
}

#[test]
fn no_git_of_ours_runs_what_a_repository_names_2_of_3() {
    git_part(1, 3);
}

#[test]
fn no_git_of_ours_runs_what_a_repository_names_3_of_3() {
    git_part(2, 3);
}

#[test]
fn no_hostile_folder_has_anything_run_or_asked_1_of_4() {
    assert!(CASES.len() >= 30, "{}", CASES.len());
    part(0, 4);
}

#[test]
fn no_hostile_folder_has_anything_run_or_asked_2_of_4() {
    part(1, 4);
}

#[test]
fn no_hostile_folder_has_anything_run_or_asked_3_of_4() {
    part(2, 4);
}

#[test]
fn no_hostile_folder_has_anything_run_or_asked_4_of_4() {
    part(3, 4);
}

/// The same folder with trust: the bait is taken, and that is seen in every way there is.
#[test]
fn with_trust_the_bait_is_taken_so_the_test_can_fail() {
    let case = Case {
        name: "control",
        make: |repo, bait| {
            repo.write(
                ".lathe/config.toml",
                "[field.db]\ncommand = \"sh bait.sh field\"\ntools = \"db.json\"\n",
            );
            repo.write("db.json", r#"[{"name": "q", "description": "", "parameters": {"type": "object"}}]"#);
            repo.write("ask.sh", format!(": > /dev/tcp/127.0.0.1/{}\n", bait.port));
        },
        env: &[],
    };
    let lines = "$L shell -c 'field:db:q'\n$L trust add --yes\n$L shell -c 'field:db:q; bash ask.sh'\n";
    let seen = look(&case, lines);
    assert_eq!(seen.marks, ["field"], "{}", seen.printed);
    assert_eq!(seen.connections, 1, "{}", seen.printed);
    assert!(seen.printed.contains("not used until you trust it: db (field program)"), "{}", seen.printed);
    if let Some(traced) = seen.traced {
        assert!(
            traced.programs.iter().any(|line| !is_expected(line) && line.contains("bait.sh")),
            "{traced:#?}"
        );
        assert!(traced.addresses.iter().any(|line| !is_local(line)), "{traced:#?}");
    }
}
