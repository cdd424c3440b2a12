//! Approval requests on a terminal. Every proposal touches only the folder that the test made.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lathe_testkit::{FakeModel, Script, TempRepo, call, descendants_of, eventually, say};
use serde_json::{Value, json};

use crate::{bodies, lathe};

const ONE: &str = "[y]es once, [n]o";
const ALL: &str = "[y]es once, [s]ession";

/// `lathe interactive` in a terminal that `script` makes.
pub(crate) struct Terminal {
    child: Child,
    typing: ChildStdin,
    shown: Arc<Mutex<String>>,
}

impl Terminal {
    pub(crate) fn open(dir: &Path, home: &Path, model: &FakeModel, flags: &str) -> Self {
        let line = format!(
            "exec {} interactive {flags} --model-base-url {} --model fake --api-key {}",
            env!("CARGO_BIN_EXE_lathe"),
            model.base_url(),
            model.key()
        );
        Self::start(dir, home, &line, None)
    }

    /// Any line of a shell, with an editor if one is named.
    pub(crate) fn start(dir: &Path, home: &Path, line: &str, editor: Option<&Path>) -> Self {
        let mut child = Command::new("script")
            .args(["-qefc", line, "/dev/null"])
            .current_dir(dir)
            .env("LATHE_HOME", home)
            .env("LATHE_SANDBOX", "off")
            .env("NO_COLOR", "1")
            .env_remove("EDITOR")
            .env_remove("VISUAL")
            .envs(editor.map(|editor| ("EDITOR", editor)))
            .env("LANG", "C.UTF-8")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (typing, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let shown = Arc::new(Mutex::new(String::new()));
        let screen = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                screen.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Self { child, typing, shown }
    }

    pub(crate) fn screen(&self) -> String {
        self.shown.lock().unwrap().clone()
    }

    /// Waits until a text was shown so often.
    pub(crate) fn sees(&self, text: &str, times: usize) {
        let shown = || self.screen().matches(text).count() >= times;
        if !(0..7_500).any(|_| {
            shown() || {
                std::thread::sleep(Duration::from_millis(20));
                false
            }
        }) {
            panic!("not within 150 s: {text:?} {times} times on the terminal:\n{}", self.screen());
        }
    }

    pub(crate) fn types(&mut self, text: &str) {
        self.typing.write_all(text.as_bytes()).unwrap();
    }

    /// Sends a signal only to the program that the line became by `exec`.
    pub(crate) fn signal(&self, name: &str) {
        let mut below = descendants_of(self.child.id()).into_iter().skip(1);
        let is_lathe = |pid: &u32| {
            std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == "lathe")
        };
        let pid = below.find(is_lathe).expect("lathe runs").to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    /// Takes the terminal away, as closing its window does.
    pub(crate) fn close(&mut self) {
        self.child.kill().unwrap();
    }

    /// Tells whether the program on the terminal has ended by itself.
    pub(crate) fn ended(mut self) -> (Option<i32>, String) {
        for _ in 0..7_500 {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status.code(), self.screen());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let screen = self.screen();
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        panic!("still there after 150 s:\n{screen}");
    }

    pub(crate) fn leaves(mut self) -> String {
        self.types("exit\n");
        self.child.wait().unwrap();
        let screen = self.screen();
        assert!(screen.contains("Goodbye!"), "{screen}");
        screen
    }
}

pub(crate) fn events(home: &Path) -> Vec<Value> {
    let ran = lathe().env("LATHE_HOME", home).args(["show", "--format", "json"]).run().expect_code(0);
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    json["events"].as_array().unwrap().clone()
}

fn bash(id: &str, line: &str) -> lathe_testkit::FakeAnswer {
    call(id, "bash", json!({ "command": line }))
}

fn text_of(events: &[Value], id: &str) -> String {
    crate::result(events, id)
}

#[test]
fn a_person_is_asked_once_for_the_session_or_says_no_with_a_reason() {
    let repo = TempRepo::new(&[]);
    let home = tempfile::tempdir().unwrap();
    let script = Script::new()
        .answer(bash("once", "touch a"))
        .answer(bash("again", "touch a"))
        .answer(bash("session", "touch b"))
        .answer(bash("silent", "touch b"))
        .answer(bash("wider", "touch b c"))
        .answer(bash("odd", "touch d\u{200b}"))
        .answer(say("All said."));
    let model = FakeModel::serving(script);
    let mut terminal = Terminal::open(repo.path(), home.path(), &model, "");
    terminal.sees("Task: ", 1);
    terminal.types("make files\n");
    terminal.sees(ALL, 1);
    assert!(!repo.exists("a"), "it waits");
    terminal.types("maybe\ny\n");
    terminal.sees(ALL, 3);
    assert!(repo.exists("a"));
    terminal.types("y\n");
    terminal.sees(ALL, 4);
    terminal.types("s\n");
    terminal.sees(ALL, 5);
    terminal.types("no, c is not wanted\n");
    terminal.sees("touch d<U+200B>", 1);
    terminal.sees("[writes d<U+200B>]", 1);
    terminal.sees(ONE, 1);
    terminal.types("n\n");
    terminal.sees("All said.", 1);
    terminal.sees("Task: ", 2);
    terminal.leaves();
    assert_eq!(model.violations(), Vec::<String>::new());
    assert!(repo.exists("b") && !repo.exists("c"));
    let events = events(home.path());
    assert_eq!(text_of(&events, "wider"), "Denied by the user: c is not wanted");
    assert_eq!(text_of(&events, "odd"), "Denied by the user. Nothing was done.");
    let answers: Vec<Value> = bodies(&events, "approval_given");
    let answers: Vec<&str> = answers.iter().map(|given| given["answer"].as_str().unwrap()).collect();
    assert_eq!(answers, ["once", "once", "session", "no", "no"]);
    let shown = lathe().env("LATHE_HOME", home.path()).arg("show").run().expect_code(0).stdout;
    assert!(shown.contains("you answered 2 questions with no"), "{shown}");
    assert!(!shown.contains("denied by policy"), "{shown}");
    let asked = bodies(&events, "approval_asked");
    assert_eq!(asked[0]["what"]["commands"][0]["effects"]["writes"], json!(["a"]));
    let root = repo.path().canonicalize().unwrap();
    assert_eq!(asked[0]["remember"], json!([format!("touch a (in {})", root.display())]));
    assert_eq!(bodies(&events, "task_finished")[0]["ending"], "answered");
    let replayed = lathe().env("LATHE_HOME", home.path()).arg("replay").run();
    assert_eq!(replayed.code, 0, "{}{}", replayed.stdout, replayed.stderr);
}

#[test]
fn always_is_as_narrow_as_what_was_shown_and_can_be_revoked() {
    let repo = TempRepo::new(&[]);
    let home = tempfile::tempdir().unwrap();
    let path = repo.join("f.txt").display().to_string();
    let script = Script::new()
        .answer(bash("line", "touch kept"))
        .answer(call("edit", "write", json!({ "path": path, "content": "two\n" })))
        .answer(say("done"));
    let model = FakeModel::serving(script);
    let mut terminal = Terminal::open(repo.path(), home.path(), &model, "");
    terminal.sees("Task: ", 1);
    terminal.types("go\n");
    terminal.sees(ALL, 1);
    terminal.types("a\n");
    terminal.sees("+two", 1);
    terminal.sees(ALL, 2);
    terminal.types("a\n");
    terminal.sees("Task: ", 2);
    terminal.leaves();
    assert_eq!(repo.read("f.txt"), "two\n");
    let policy = |args: &[&str]| lathe().env("LATHE_HOME", home.path()).arg("policy").args(args).run();
    let listed = policy(&["list"]).expect_code(0).stdout;
    assert!(listed.contains("1. touch kept") && listed.contains("2. write "), "{listed}");
    let shell = |line: &str| {
        let shell = ["shell", "--mode", "default", "-c", line];
        lathe()
            .in_dir(repo.path())
            .env("LATHE_HOME", home.path())
            .env("LATHE_SANDBOX", "off")
            .args(shell)
            .run()
            .code
    };
    assert_eq!((shell("touch kept"), shell("touch kept more"), shell("touch other")), (0, 126, 126));
    let elsewhere = TempRepo::new(&[]);
    let ran = lathe().in_dir(elsewhere.path()).env("LATHE_HOME", home.path()).env("LATHE_SANDBOX", "off");
    ran.args(["shell", "--mode", "default", "-c", "touch kept"]).run().expect_code(126);
    // A file that was not seen is not overwritten, whatever the user would approve.
    let held = |line: &str| shell(line) == 126;
    assert_eq!((held("write f.txt x"), held("write g.txt x")), (false, true));
    policy(&["revoke", "3"]).expect_code(2);
    policy(&["revoke", "1"]).expect_code(0);
    assert_eq!((held("touch kept"), held("write f.txt y")), (true, false));
    policy(&["revoke", "1"]).expect_code(0);
    assert!(held("write f.txt z"));
    assert!(policy(&["list"]).stdout.contains("there are no standing approvals"));
}

#[test]
fn a_command_inside_a_running_line_asks_while_the_clock_stands_still() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let home = tempfile::tempdir().unwrap();
    let slow = json!({ "command": "cat a.txt | write copy.txt && view copy.txt", "timeout": 5 });
    let script = Script::new()
        .answer(call("allowed", "bash", slow))
        .answer(bash("denied", "write no.txt x || echo 'went on'"))
        .answer(say("Over."));
    let model = FakeModel::serving(script);
    let mut terminal = Terminal::open(repo.path(), home.path(), &model, "");
    terminal.sees("Task: ", 1);
    terminal.types("go\n");
    terminal.sees(ALL, 1);
    terminal.sees("+one", 1);
    // Longer than the line may take.
    std::thread::sleep(Duration::from_millis(5600));
    terminal.types("y\n");
    terminal.sees(ALL, 2);
    terminal.types("n not this one\n");
    terminal.sees("Over.", 1);
    terminal.leaves();
    assert_eq!(repo.read("copy.txt"), "one\n");
    assert!(!repo.exists("no.txt"));
    let events = events(home.path());
    assert!(text_of(&events, "allowed").starts_with("exit code 0"), "{}", text_of(&events, "allowed"));
    let denied = text_of(&events, "denied");
    assert!(denied.contains("went on") && denied.contains("Denied by the user: not this one"), "{denied}");
    let ran = bodies(&events, "command_ran");
    let refused = ran.iter().find(|ran| ran["argv"][1] == "no.txt").unwrap();
    assert_eq!((&refused["exit"], &refused["decision"]["rule"]), (&json!(126), &json!("approval")));
    assert_eq!(bodies(&events, "approval_asked")[0]["what"]["words"], json!(["write", "copy.txt"]));
}

#[test]
fn killed_while_it_asked_the_question_expires_and_the_history_is_valid() {
    let repo = TempRepo::new(&[]);
    let home = tempfile::tempdir().unwrap();
    let script = Script::new().answer(bash("asked", "touch a")).answer(say("Gave up."));
    let model = FakeModel::serving(script);
    let mut terminal = Terminal::open(repo.path(), home.path(), &model, "");
    terminal.sees("Task: ", 1);
    terminal.types("go\n");
    terminal.sees(ALL, 1);
    let pids = lathe_testkit::descendants_of(terminal.child.id());
    // The terminal last: one that closes is heard, and ends a run in order.
    for pid in pids.iter().rev() {
        let killed = Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
        assert!(killed.success());
    }
    terminal.child.wait().unwrap();
    // A process is killed before it has let go of its files.
    let gone = || pids.iter().all(|pid| !Path::new(&format!("/proc/{pid}")).exists());
    eventually(Duration::from_secs(20), "the processes are gone", gone);
    let resumed = lathe()
        .in_dir(repo.path())
        .env("LATHE_HOME", home.path())
        .env("LATHE_SANDBOX", "off")
        .arg("resume")
        .with_model(&model);
    let resumed = resumed.run();
    assert_eq!(model.violations(), Vec::<String>::new());
    let events = events(home.path());
    assert!(!bodies(&events, "approval_expired").is_empty(), "{} {}", resumed.stdout, resumed.stderr);
    let asked = events.iter().find(|event| event["kind"] == "approval_asked").unwrap();
    let expired = events.iter().find(|event| event["kind"] == "approval_expired").unwrap();
    assert_eq!(expired["cause"], asked["seq"]);
    assert!(text_of(&events, "asked").contains("stopped before this call began"));
    assert!(!repo.exists("a"));
}

#[test]
fn a_cancelled_question_is_closed_and_nothing_is_done() {
    // The call itself asks, and a command inside its line does.
    for line in ["touch a", "write a x || touch b"] {
        let repo = TempRepo::new(&[]);
        let home = tempfile::tempdir().unwrap();
        let model = FakeModel::serving(Script::new().answer(bash("asked", line)).answer(say("never")));
        let mut terminal = Terminal::open(repo.path(), home.path(), &model, "--mode default");
        terminal.sees("Task: ", 1);
        terminal.types("go\n");
        terminal.sees("[y]es once", 1);
        if line.starts_with("write") {
            terminal.types("y\n");
            terminal.sees("[y]es once", 2);
        }
        terminal.types("\x03");
        terminal.sees("Task: ", 2);
        terminal.leaves();
        let events = events(home.path());
        assert_eq!(bodies(&events, "approval_expired").len(), 1, "{line}");
        assert_eq!(bodies(&events, "task_finished")[0]["ending"], "cancelled", "{line}");
        assert!(text_of(&events, "asked").to_lowercase().contains("cancelled"), "{events:?}");
        assert!(!repo.exists("a") && !repo.exists("b"), "{line}");
    }
}

#[test]
fn a_proposal_is_changed_before_it_runs() {
    let (repo, home) = (TempRepo::new(&[]), tempfile::tempdir().unwrap());
    let script =
        Script::new().answer(call("c", "bash", json!({ "command": "touch theirs" }))).answer(say("fine"));
    let model = FakeModel::serving(script);
    let mut terminal = Terminal::open(repo.path(), home.path(), &model, "");
    terminal.sees("Task: ", 1);
    terminal.types("go\n");
    terminal.sees("[e]dit it first", 1);
    terminal.types("e\n");
    terminal.sees("New text", 1);
    terminal.types("touch mine\n");
    terminal.sees("Task: ", 2);
    terminal.leaves();
    assert!(repo.exists("mine") && !repo.exists("theirs"));
    let events = events(home.path());
    assert_eq!(bodies(&events, "approval_given")[0]["edited"], json!({ "command": "touch mine" }));
    let text = bodies(&events, "call_finished")[0]["text"].as_str().unwrap().to_owned();
    assert!(text.starts_with("The user changed this call before it ran:"), "{text}");
}

#[test]
fn an_answer_holds_in_the_folder_it_was_given_for_and_not_in_another() {
    let repo = TempRepo::new(&[("sub/x.txt", "")]);
    let home = tempfile::tempdir().unwrap();
    let script = Script::new()
        .answer(bash("first", "touch k"))
        .answer(bash("same", "touch k"))
        .answer(bash("go", "cd sub"))
        .answer(bash("there", "touch k"))
        .answer(bash("back", "cd .."))
        .answer(bash("line", "cd sub && touch k"))
        .answer(bash("again", "touch k"))
        .answer(say("Over."));
    let model = FakeModel::serving(script);
    let mut terminal = Terminal::open(repo.path(), home.path(), &model, "");
    terminal.sees("Task: ", 1);
    terminal.types("go\n");
    terminal.sees(ALL, 1);
    terminal.types("a\n");
    // Going to a folder of the workspace is not asked about; what is done there is.
    terminal.sees(ALL, 2);
    terminal.types("n not there\n");
    terminal.sees(ONE, 1);
    terminal.types("n nor so\n");
    terminal.sees("Over.", 1);
    terminal.leaves();
    let events = events(home.path());
    assert_eq!(text_of(&events, "there"), "Denied by the user: not there");
    assert_eq!(text_of(&events, "line"), "Denied by the user: nor so");
    assert!(text_of(&events, "same").starts_with("exit code 0"));
    assert!(text_of(&events, "again").starts_with("exit code 0"));
    assert!(repo.exists("k") && !repo.exists("sub/k"));
    let root = repo.path().canonicalize().unwrap();
    let asked = bodies(&events, "approval_asked");
    assert_eq!(asked[1]["remember"], json!([format!("touch k (in {}/sub)", root.display())]));
    let listed = lathe().env("LATHE_HOME", home.path()).args(["policy", "list"]).run().expect_code(0).stdout;
    assert_eq!(listed, format!("  1. touch k (in {})\n", root.display()));
}

#[test]
fn a_running_session_stops_honouring_what_was_revoked() {
    let repo = TempRepo::new(&[]);
    let home = tempfile::tempdir().unwrap();
    let path = repo.join("f.txt").display().to_string();
    let wait = "n=0; until [ -e go ] || [ $n -gt 300 ]; do sleep 0.1; n=$((n+1)); done; write f.txt inner";
    let script = Script::new()
        .answer(bash("first", "touch k"))
        .answer(call("edit", "write", json!({ "path": path, "content": "one\n" })))
        .answer(bash("held", "touch k"))
        .answer(bash("asked", "touch stop"))
        .answer(bash("revoked", "touch k"))
        .answer(bash("inner", wait))
        .answer(say("Over."));
    let model = FakeModel::serving(script);
    let mut terminal = Terminal::open(repo.path(), home.path(), &model, "");
    terminal.sees("Task: ", 1);
    terminal.types("go\n");
    terminal.sees(ALL, 1);
    terminal.types("a\n");
    terminal.sees(ALL, 2);
    terminal.types("a\n");
    terminal.sees("touch stop", 1);
    terminal.sees(ALL, 3);
    let policy = |args: &[&str]| lathe().env("LATHE_HOME", home.path()).arg("policy").args(args).run();
    let wrong = policy(&["revoke", "9"]).expect_code(2);
    assert!(
        wrong.stderr.contains("there is no answer 9; `lathe policy list` shows 1 to 2"),
        "{}",
        wrong.stderr
    );
    policy(&["revoke", "1"]).expect_code(0);
    terminal.types("y\n");
    terminal.sees(ALL, 4);
    terminal.types("n gone\n");
    // The line itself is asked about. A command in it has a standing approval, which is revoked while the line runs.
    terminal.sees("until [ -e go ]", 1);
    terminal.sees(ONE, 1);
    terminal.types("y\n");
    terminal.sees("Over.", 0);
    policy(&["revoke", "1"]).expect_code(0);
    std::fs::write(repo.join("go"), "").unwrap();
    terminal.sees(ALL, 5);
    terminal.types("n gone too\n");
    terminal.sees("Over.", 1);
    terminal.leaves();
    let events = events(home.path());
    assert!(text_of(&events, "held").starts_with("exit code 0"), "{}", text_of(&events, "held"));
    assert_eq!(text_of(&events, "revoked"), "Denied by the user: gone");
    assert!(
        text_of(&events, "inner").contains("Denied by the user: gone too"),
        "{}",
        text_of(&events, "inner")
    );
    assert_eq!(repo.read("f.txt"), "one\n");
    let none = policy(&["revoke", "1"]).expect_code(2);
    assert!(none.stderr.contains("nothing was allowed for ever"), "{}", none.stderr);
}

#[test]
fn a_changed_proposal_that_the_guard_refuses_is_asked_about_again() {
    let (repo, home) = (TempRepo::with_git(&[("a.txt", "")]), tempfile::tempdir().unwrap());
    let config = repo.read(".git/config");
    let script =
        Script::new().answer(call("c", "bash", json!({ "command": "touch theirs" }))).answer(say("fine"));
    let model = FakeModel::serving(script);
    let mut terminal = Terminal::open(repo.path(), home.path(), &model, "");
    terminal.sees("Task: ", 1);
    terminal.types("go\n");
    terminal.sees("[e]dit it first", 1);
    terminal.types("e\n");
    terminal.sees("New text", 1);
    terminal.types("echo x >> .git/config\n");
    terminal.sees("[e]dit it first", 2);
    terminal.types("e\n");
    terminal.sees("New text", 2);
    terminal.types("touch mine\n");
    terminal.sees("Task: ", 2);
    terminal.leaves();
    assert_eq!((repo.exists("mine"), repo.read(".git/config")), (true, config));
}
