//! Signals that ask for an end, at every stage: SIGTERM, SIGHUP and SIGQUIT end the program, Ctrl-C the run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lathe_testkit::{FakeAnswer, FakeModel, Fault, Script, TempRepo, call, eventually, processes_with, say};
use serde_json::json;

use crate::approvals::{Terminal, events};
use crate::{bodies, lathe};

const ENDS: [&str; 3] = ["TERM", "HUP", "QUIT"];

/// The stage at which the signal comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    FirstPrompt,
    LaterPrompt,
    Approval,
    Question,
    NewText,
    Editor,
    SilentModel,
    RunningLine,
}

const PLACES: [At; 8] = [
    At::FirstPrompt,
    At::LaterPrompt,
    At::Approval,
    At::Question,
    At::NewText,
    At::Editor,
    At::SilentModel,
    At::RunningLine,
];

impl At {
    fn answer(self) -> FakeAnswer {
        let bash = |line: &str| call("c", "bash", json!({ "command": line }));
        match self {
            At::FirstPrompt | At::LaterPrompt => say("fine"),
            At::Approval | At::NewText | At::Editor => bash("touch made"),
            At::Question => {
                let question = json!({ "question": "Which one?" });
                call("c", "ask_user", question)
            }
            At::SilentModel => say("never").always_fails(Fault::SilenceFirst(Duration::from_secs(600))),
            At::RunningLine => bash("echo begun; sleep 600"),
        }
    }

    fn flags(self) -> &'static str {
        if self == At::RunningLine { "--mode full-auto" } else { "--mode default" }
    }
}

/// A session on a terminal, brought to a place.
fn standing(at: At, repo: &TempRepo, home: &Path, editor: &Path, model: &FakeModel) -> Terminal {
    let line = format!(
        "exec {} interactive {} --model-base-url {} --model fake --api-key {}",
        env!("CARGO_BIN_EXE_lathe"),
        at.flags(),
        model.base_url(),
        model.key()
    );
    let mut terminal = Terminal::start(repo.path(), home, &line, (at == At::Editor).then_some(editor));
    terminal.sees("Task: ", 1);
    if at == At::FirstPrompt {
        return terminal;
    }
    terminal.types("go\n");
    match at {
        At::FirstPrompt => {}
        At::LaterPrompt => terminal.sees("Task: ", 2),
        At::Approval => terminal.sees("[e]dit it first", 1),
        At::Question => terminal.sees("Which one?", 1),
        At::NewText | At::Editor => {
            terminal.sees("[e]dit it first", 1);
            terminal.types("e\n");
            terminal.sees(if at == At::Editor { "editing" } else { "New text" }, 1);
        }
        At::SilentModel => {
            eventually(Duration::from_secs(30), "a request", || !model.requests().is_empty());
        }
        At::RunningLine => terminal.sees("begun", 2),
    }
    terminal
}

/// An editor that says that it is there and does not end by itself.
fn endless_editor(folder: &Path) -> PathBuf {
    let editor = folder.join("endless-editor");
    std::fs::write(&editor, "#!/bin/sh\necho editing\nexec sleep 600\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&editor, mode).unwrap();
    editor
}

#[test]
fn a_signal_ends_the_program_wherever_a_person_stands() {
    for at in PLACES {
        for signal in ENDS {
            let (repo, home) = (TempRepo::new(&[]), tempfile::tempdir().unwrap());
            let tools = tempfile::tempdir().unwrap();
            let model = FakeModel::serving(Script::new().answer(at.answer()).answer(say("never")));
            let editor = endless_editor(tools.path());
            let terminal = standing(at, &repo, home.path(), &editor, &model);
            terminal.signal(signal);
            let (code, screen) = terminal.ended();
            assert_eq!(code, Some(130), "{at:?} {signal}\n{screen}");
            assert!(screen.contains("Goodbye!"), "{at:?} {signal}\n{screen}");
            assert!(!repo.exists("made"), "{at:?} {signal}");
            assert_eq!(processes_with(&tools.path().display().to_string()), [], "{at:?} {signal}");
            let events = events(home.path());
            let ends: Vec<_> =
                bodies(&events, "task_finished").iter().map(|end| end["ending"].clone()).collect();
            match at {
                At::FirstPrompt => assert!(ends.is_empty(), "{signal}: {ends:?}"),
                At::LaterPrompt => assert_eq!(ends, ["answered"], "{signal}"),
                _ => assert_eq!(ends, ["cancelled"], "{at:?} {signal}"),
            }
        }
    }
}

#[test]
fn ctrl_c_stops_the_run_at_every_question_and_the_prompt_comes_back() {
    for at in [At::Approval, At::Question, At::NewText, At::SilentModel, At::RunningLine] {
        let (repo, home) = (TempRepo::new(&[]), tempfile::tempdir().unwrap());
        let model = FakeModel::serving(Script::new().answer(at.answer()).answer(say("never")));
        let mut terminal = standing(at, &repo, home.path(), Path::new("none"), &model);
        terminal.types("\x03");
        terminal.sees("Task: ", 2);
        terminal.leaves();
        let events = events(home.path());
        assert_eq!(bodies(&events, "task_finished")[0]["ending"], "cancelled", "{at:?}");
        assert_eq!(model.requests().len(), 1, "{at:?}");
    }
}

#[test]
fn ctrl_c_in_an_editor_is_the_editors_and_the_question_stays() {
    let (repo, home) = (TempRepo::new(&[]), tempfile::tempdir().unwrap());
    let tools = tempfile::tempdir().unwrap();
    let script = Script::new().answer(At::Editor.answer()).answer(say("fine"));
    let model = FakeModel::serving(script);
    let editor = endless_editor(tools.path());
    let mut terminal = standing(At::Editor, &repo, home.path(), &editor, &model);
    terminal.types("\x03");
    terminal.sees("[e]dit it first", 2);
    terminal.types("y\n");
    terminal.sees("Task: ", 2);
    terminal.leaves();
    assert!(repo.exists("made"));
}

#[test]
fn a_closed_terminal_ends_the_program_and_closes_the_history() {
    for at in [At::LaterPrompt, At::Approval, At::Question, At::SilentModel] {
        let (repo, home) = (TempRepo::new(&[]), tempfile::tempdir().unwrap());
        let model = FakeModel::serving(Script::new().answer(at.answer()).answer(say("never")));
        let mut terminal = standing(at, &repo, home.path(), Path::new("none"), &model);
        terminal.close();
        // The address of this model is in the command line of this one process only.
        eventually(Duration::from_secs(30), "the end of it", || processes_with(&model.base_url()).is_empty());
        let ends = bodies(&events(home.path()), "task_finished").len();
        assert_eq!(ends, 1, "{at:?}");
        assert!(!repo.exists("made"), "{at:?}");
    }
}

#[test]
fn a_signal_ends_a_run_that_asks_about_trust_and_a_shell_at_its_prompt() {
    for (line, seen) in [("run go", "AGENTS.md"), ("shell", " $ ")] {
        for signal in ENDS {
            let repo = TempRepo::new(&[("AGENTS.md", "Be brief.\n")]);
            let home = tempfile::tempdir().unwrap();
            if line == "shell" {
                std::fs::remove_file(repo.path().join("AGENTS.md")).unwrap();
            }
            let line = format!("exec {} {line}", env!("CARGO_BIN_EXE_lathe"));
            let terminal = Terminal::start(repo.path(), home.path(), &line, None);
            terminal.sees(seen, 1);
            terminal.signal(signal);
            let (code, screen) = terminal.ended();
            assert!(code.is_some_and(|code| code > 128), "{line} {signal}: {code:?}\n{screen}");
        }
    }
}

#[test]
fn nohup_keeps_a_run_alive_after_a_hangup() {
    let repo = TempRepo::new(&[]);
    let script = Script::new()
        .answer(call(
            "c",
            "bash",
            json!({ "command": "touch begun; while [ ! -e go ]; do sleep 0.02; done" }),
        ))
        .answer(call("d", "task_done", json!({ "summary": "all done" })));
    let model = FakeModel::serving(script);
    let run = lathe().in_dir(repo.path());
    std::fs::create_dir_all(run.home()).unwrap();
    let mut child = std::process::Command::new("nohup")
        .args([env!("CARGO_BIN_EXE_lathe"), "run", "go", "--mode", "full-auto"])
        .args(["--model-base-url", &model.base_url(), "--model", "fake", "--api-key", model.key()])
        .current_dir(repo.path())
        .env("LATHE_HOME", run.home())
        .env("LATHE_SANDBOX", "off")
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    eventually(Duration::from_secs(30), "the line", || repo.exists("begun"));
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-s", "HUP", &pid]).status().unwrap().success());
    std::fs::write(repo.path().join("go"), "").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
