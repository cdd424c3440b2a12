//! The user sees what will happen, and what happens is what was shown.

use std::path::Path;
use std::process::Command;

use lathe_testkit::{FakeAnswer, FakeModel, Script, TempRepo, call, done, say};
use serde_json::{Value, json};

use crate::approvals::{Terminal, events};
use crate::{bodies, lathe, result};

const ASKED: &str = "[y]es once";

fn bash(id: &str, line: &str) -> FakeAnswer {
    call(id, "bash", json!({ "command": line }))
}

/// A terminal in which a task was given whose model says these answers.
fn working(repo: &TempRepo, home: &Path, answers: Vec<FakeAnswer>) -> (Terminal, FakeModel) {
    let script = answers.into_iter().fold(Script::new(), Script::answer).answer(say("All said."));
    let model = FakeModel::serving(script);
    let mut terminal = Terminal::open(repo.path(), home, &model, "--trust");
    terminal.sees("Task: ", 1);
    terminal.types("go\n");
    (terminal, model)
}

fn patch(text: &str) -> Value {
    json!({ "patch": format!("*** Begin Patch\n{text}*** End Patch\n") })
}

#[test]
fn the_whole_diff_of_every_kind_of_edit_is_shown_before_the_answer() {
    let long: String = (1..=200).map(|n| format!("line {n}\n")).collect();
    let repo = TempRepo::new(&[("a.py", "a = 1\n"), ("d.json", "{\"k\": 1}\n"), ("AGENTS.md", "# Notes\n")]);
    let home = tempfile::tempdir().unwrap();
    let two = "*** Update File: a.py\n@@\n-a = 1\n+a = 2\n*** Add File: conftest.py\n+PAYLOAD_ONE\n";
    let (mut terminal, model) = working(
        &repo,
        home.path(),
        vec![
            call("patch", "apply_patch", patch(two)),
            call("write", "write", json!({ "path": "long.py", "content": format!("{long}PAYLOAD_TWO\n") })),
            call("edit", "edit", json!({ "path": "a.py", "old_str": "a = 2", "new_str": "PAYLOAD_THREE" })),
            bash("json", "json_edit set d.json '$.k' PAYLOAD_FOUR"),
            call("fact", "remember", json!({ "fact": "PAYLOAD_FIVE", "scope": "project" })),
            bash("line", "write w.txt PAYLOAD_SIX"),
        ],
    );
    terminal.sees(ASKED, 1);
    let screen = terminal.screen();
    assert!(
        screen.contains("+PAYLOAD_ONE") && screen.contains("-a = 1") && screen.contains("+a = 2"),
        "{screen}"
    );
    terminal.types("y\n");
    terminal.sees("v = show the", 1);
    assert!(!terminal.screen().contains("PAYLOAD_TWO"), "{}", terminal.screen());
    terminal.types("v\n");
    terminal.sees("+PAYLOAD_TWO", 1);
    terminal.sees("+line 137", 1);
    terminal.types("y\n");
    for (number, payload) in ["THREE", "FOUR", "FIVE"].iter().enumerate() {
        terminal.sees(&format!("PAYLOAD_{payload}"), 1);
        terminal.sees(ASKED, number + 4);
        terminal.types("y\n");
    }
    terminal.sees("+PAYLOAD_SIX", 1);
    terminal.types("y\n");
    terminal.sees("All said.", 1);
    terminal.leaves();
    assert_eq!(model.violations(), Vec::<String>::new());
    assert_eq!(repo.read("w.txt"), "PAYLOAD_SIX");
    assert_eq!(repo.read("a.py"), "PAYLOAD_THREE\n");
}

#[test]
fn a_call_that_cannot_be_done_is_answered_and_not_asked_about() {
    let repo = TempRepo::new(&[("a.py", "a = 1\n"), ("d.json", "{\"k\": 1}\n"), ("seen.py", "x\n")]);
    let home = tempfile::tempdir().unwrap();
    let (terminal, _model) = working(
        &repo,
        home.path(),
        vec![
            call("edit", "edit", json!({ "path": "a.py", "old_str": "not there", "new_str": "EVIL" })),
            call("gone", "edit", json!({ "path": "gone.py", "old_str": "x", "new_str": "EVIL" })),
            call("unseen", "write", json!({ "path": "seen.py", "content": "EVIL" })),
            call("patch", "apply_patch", patch("*** Update File: a.py\n@@\n-b = 1\n+EVIL\n")),
            bash("json", "json_edit remove d.json '$.nothing'"),
            bash("line", "edit a.py --old-string 'not there' --new-string EVIL"),
        ],
    );
    terminal.sees("All said.", 1);
    let screen = terminal.leaves();
    assert!(!screen.contains(ASKED), "{screen}");
    let events = events(home.path());
    for id in ["edit", "gone", "unseen", "patch", "json", "line"] {
        let text = result(&events, id);
        assert!(!text.contains("Denied"), "{id}: {text}");
    }
    assert!(bodies(&events, "approval_asked").is_empty());
}

/// Every file tool says in the same words which file it was.
#[test]
fn a_file_that_changed_while_the_question_stood_is_not_touched() {
    let before = "one\ntwo\nthree\n";
    let data = "{\"k\": 1}\n";
    let more = "one\ntwo\nthree\nMEANWHILE\n";
    // What the change adds to, and what it takes away: the text to replace, or the place of a new file.
    let other = "OTHER\n";
    for (answer, name) in [
        (call("c", "edit", json!({ "path": "f.txt", "old_str": "two", "new_str": "2" })), "f.txt"),
        (call("c", "edit", json!({ "path": "f.txt", "insert_line": 2, "new_str": "new\n" })), "f.txt"),
        (
            call(
                "c",
                "edit",
                json!({ "path": "f.txt", "old_str": "t", "new_str": "T", "replace_all": true }),
            ),
            "f.txt",
        ),
        (call("c", "apply_patch", patch("*** Update File: f.txt\n@@\n-two\n+2\n")), "f.txt"),
        (call("c", "apply_patch", patch("*** Delete File: f.txt\n")), "f.txt"),
        (
            call("c", "apply_patch", patch("*** Update File: f.txt\n*** Move to: g.txt\n@@\n-two\n+2\n")),
            "f.txt",
        ),
        (call("c", "apply_patch", patch("*** Add File: fresh.txt\n+new\n")), "fresh.txt"),
        (call("c", "remember", json!({ "fact": "x", "scope": "project" })), "AGENTS.md"),
        (bash("c", "edit f.txt --old-string two --new-string 2"), "f.txt"),
        (bash("c", "json_edit remove d.json '$.k'"), "d.json"),
        (bash("c", "write f.txt other"), "f.txt"),
        (bash("c", "write fresh.txt other"), "fresh.txt"),
        (call("c", "write", json!({ "path": "fresh.txt", "content": "other\n" })), "fresh.txt"),
    ] {
        for after in [more, other] {
            let repo = TempRepo::new(&[("f.txt", before), ("AGENTS.md", before), ("d.json", data)]);
            let home = tempfile::tempdir().unwrap();
            let case = format!("{answer:?} {after}");
            let (mut terminal, _model) = working(&repo, home.path(), vec![answer.clone()]);
            terminal.sees(ASKED, 1);
            let names = ["f.txt", "fresh.txt", "AGENTS.md", "d.json"];
            names.iter().for_each(|name| repo.write(name, after));
            terminal.types("y\n");
            terminal.sees("All said.", 1);
            terminal.leaves();
            for name in names {
                assert_eq!(repo.read(name), after, "{case}: {name}");
            }
            let told = result(&events(home.path()), "c");
            let (file, _) = told
                .split_once(" was changed while the user was asked")
                .unwrap_or_else(|| panic!("{case}: {told}"));
            assert!(file.contains(name), "{case}: {told}");
        }
    }
}

#[test]
fn a_name_that_leads_elsewhere_since_the_question_is_not_followed() {
    for (number, answer) in [
        call("c", "edit", json!({ "path": "f.txt", "old_str": "two", "new_str": "2" })),
        call("c", "apply_patch", patch("*** Update File: f.txt\n@@\n-two\n+2\n")),
        bash("c", "edit f.txt --old-string two --new-string 2"),
        call("c", "write", json!({ "path": "d/new.txt", "content": "other\n" })),
        bash("c", "write d/new.txt other"),
    ]
    .into_iter()
    .enumerate()
    {
        let before = "one\ntwo\nthree\n";
        let repo = TempRepo::new(&[("f.txt", before), ("g.txt", before), ("d/x", ""), ("sub/x", "")]);
        let home = tempfile::tempdir().unwrap();
        let (mut terminal, _model) = working(&repo, home.path(), vec![answer]);
        terminal.sees(ASKED, 1);
        std::fs::remove_file(repo.join("f.txt")).unwrap();
        std::os::unix::fs::symlink("g.txt", repo.join("f.txt")).unwrap();
        std::fs::remove_dir_all(repo.join("d")).unwrap();
        std::os::unix::fs::symlink("sub", repo.join("d")).unwrap();
        terminal.types("y\n");
        terminal.sees("All said.", 1);
        terminal.leaves();
        assert_eq!(repo.read("g.txt"), before, "{number}");
        assert!(!repo.exists("sub/new.txt"), "{number}");
    }
}

#[test]
fn an_answer_for_the_session_holds_for_the_file_it_was_given_for() {
    let repo = TempRepo::new(&[("conftest.py", "mine\n")]);
    let home = tempfile::tempdir().unwrap();
    let write = |id: &str, text: &str| call(id, "write", json!({ "path": "notes.txt", "content": text }));
    let answers = vec![
        write("c1", "one\n"),
        bash("c2", "ln -sf conftest.py notes.txt"),
        call("c3", "view", json!({ "path": "notes.txt" })),
        write("c4", "two\n"),
    ];
    let (mut terminal, _model) = working(&repo, home.path(), answers);
    terminal.sees(ASKED, 1);
    terminal.types("s\n");
    terminal.sees(ASKED, 2);
    terminal.types("y\n");
    terminal.sees(ASKED, 3);
    terminal.types("n\n");
    terminal.sees("All said.", 1);
    terminal.leaves();
    assert_eq!(repo.read("conftest.py"), "mine\n");
}

/// The calls of one answer, one after the other.
fn in_one_answer(lines: &[&str]) -> FakeAnswer {
    lines.iter().enumerate().fold(FakeAnswer::new(Vec::new()), |answer, (at, line)| {
        answer.call(&format!("c{at}"), "bash", json!({ "command": line }))
    })
}

#[test]
fn a_call_is_decided_in_the_folder_it_runs_in() {
    for lines in [
        &["cd sub", "touch x"][..],
        &["cd sub", "cd .", "touch x"],
        &["pushd sub", "touch x"],
        &["cd sub && true", "touch ./x"],
    ] {
        let repo = TempRepo::new(&[("sub/a", ""), ("a", "")]);
        let lathe = lathe();
        std::fs::create_dir_all(lathe.home().join("policy")).unwrap();
        let folder = repo.path().canonicalize().unwrap().join("sub");
        let rule = format!("[[rule]]\ndecision = \"deny\"\ncommand = [\"touch\"]\nfolder = [{folder:?}]\n");
        std::fs::write(lathe.home().join("policy/mine.toml"), rule).unwrap();
        let model = FakeModel::serving(Script::new().answer(in_one_answer(lines)).answer(done("ok")));
        let args = ["run", "go", "--mode", "full-auto", "--output", "stream-json"];
        let ran = lathe.clone().in_dir(repo.path()).args(args).with_model(&model).run().expect_code(5);
        let told = result(&ran.events(), &format!("c{}", lines.len() - 1));
        assert!(told.starts_with("Tool execution denied by policy."), "{lines:?}: {told}");
        assert!(!repo.exists("sub/x") && !repo.exists("x"), "{lines:?}");
    }
}

#[test]
fn a_remembered_answer_and_a_question_are_for_the_folder_they_run_in() {
    let repo = TempRepo::new(&[("sub/build.sh", "touch ran\n"), ("build.sh", "true\n")]);
    let home = tempfile::tempdir().unwrap();
    let (mut terminal, _model) = working(
        &repo,
        home.path(),
        vec![bash("first", "touch k"), in_one_answer(&["cd sub", "touch k", "sh build.sh"])],
    );
    terminal.sees(ASKED, 1);
    terminal.types("s\n");
    // The same words in another folder are another question, which names the folder.
    terminal.sees("/sub] touch k", 1);
    terminal.types("n\n");
    terminal.sees("/sub] sh build.sh", 1);
    terminal.types("n\n");
    terminal.sees("All said.", 1);
    terminal.leaves();
    assert!(repo.exists("k") && !repo.exists("sub/k") && !repo.exists("sub/ran"));
}

#[test]
fn an_edited_answer_does_not_go_around_a_rule() {
    let repo = TempRepo::new(&[]);
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(home.path().join("policy")).unwrap();
    let rule = "[[rule]]\ndecision = \"deny\"\ncommand = [\"touch denied\"]\n";
    std::fs::write(home.path().join("policy/mine.toml"), rule).unwrap();
    let (mut terminal, _model) = working(&repo, home.path(), vec![bash("c", "touch fine")]);
    terminal.sees(ASKED, 1);
    terminal.types("e\n");
    terminal.sees("New text", 1);
    terminal.types("touch denied\n");
    terminal.sees("denied by", 1);
    terminal.types("n\n");
    terminal.sees("All said.", 1);
    terminal.leaves();
    assert!(!repo.exists("denied") && !repo.exists("fine"));
}

#[test]
fn control_characters_are_written_out_in_diffs_questions_and_show() {
    let hidden = "x = \"\u{1b}]\"; exec('EVIL');\u{9b}8m\u{202e}\n";
    let repo = TempRepo::new(&[("a.js", "x = 1;\n")]);
    let home = tempfile::tempdir().unwrap();
    let (mut terminal, _model) = working(
        &repo,
        home.path(),
        vec![
            call("view", "view", json!({ "path": "a.js" })),
            call("write", "write", json!({ "path": "a.js", "content": hidden })),
            bash("cat", "cat a.js"),
        ],
    );
    terminal.sees("+x = \"<U+001B>]\"; exec('EVIL');<U+009B>8m<U+202E>", 1);
    terminal.types("y\n");
    terminal.sees("All said.", 1);
    let screen = terminal.leaves();
    let spelled = "x = \"<U+001B>]\"; exec('EVIL');<U+009B>8m<U+202E>";
    assert!(!screen.contains("\u{9b}") && !screen.contains("\u{202e}"), "{screen:?}");
    for words in [&["show"][..], &["diff"]] {
        let line = format!("{} {}", env!("CARGO_BIN_EXE_lathe"), words.join(" "));
        let shown = Command::new("script")
            .args(["-qefc", &line, "/dev/null"])
            .current_dir(repo.path())
            .env("LATHE_HOME", home.path())
            .env("LATHE_SANDBOX", "off")
            .env("NO_COLOR", "1")
            .output()
            .unwrap();
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(shown.contains(spelled), "{words:?}: {shown}");
    }
}

#[test]
fn a_line_with_control_characters_lists_each_command_once() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let home = tempfile::tempdir().unwrap();
    for (line, echo) in [
        ("echo ok\u{b}; touch made", "echo ok<U+000B>"),
        ("echo ok\u{1b}[2K; touch made", "echo ok<U+001B>[2K"),
        ("echo ok\rnot; touch made", "echo ok<U+000D>not"),
    ] {
        let (mut terminal, _model) = working(&repo, home.path(), vec![bash("c", line)]);
        terminal.sees(ASKED, 1);
        terminal.types("n\n");
        terminal.sees("All said.", 1);
        let screen = terminal.leaves();
        let (_, question) = screen.split_once("May this").unwrap_or(("", &screen));
        let (question, _) = question.split_once(ASKED).unwrap();
        let listed: Vec<&str> =
            question.lines().map(str::trim).filter(|line| line.starts_with("- ")).collect();
        assert_eq!(listed, [format!("- {echo}"), "- touch made  [writes made]".to_owned()], "{question}");
    }
}

/// Calls that are asked about, each with the files it changes.
fn thirty_kinds() -> Vec<FakeAnswer> {
    let mut calls = Vec::new();
    let crlf = "a\r\nb\r\n";
    for (at, (tool, arguments)) in [
        ("write", json!({ "path": "n1.txt", "content": "plain\n" })),
        ("write", json!({ "path": "n2.txt", "content": "no end" })),
        ("write", json!({ "path": "n3.txt", "content": crlf })),
        ("write", json!({ "path": "dir/n4.txt", "content": "\u{feff}bom\n" })),
        ("write", json!({ "path": "n5.txt", "content": "" })),
        ("write", json!({ "path": "n 6.txt", "content": "blank in the name\n" })),
        ("edit", json!({ "path": "e1.txt", "old_str": "two", "new_str": "2" })),
        ("edit", json!({ "path": "e1.txt", "old_str": "three\n", "new_str": "" })),
        ("edit", json!({ "path": "e2.txt", "old_str": "x", "new_str": "y", "replace_all": true })),
        ("edit", json!({ "path": "crlf.txt", "old_str": "b", "new_str": "b1\nb2" })),
        ("edit", json!({ "path": "e1.txt", "insert_line": 0, "new_str": "top\n" })),
        ("edit", json!({ "path": "e3.py", "old_str": "if a:\n  b", "new_str": "if a:\n  c" })),
        ("apply_patch", patch("*** Update File: p1.txt\n@@\n-one\n+1\n")),
        ("apply_patch", patch("*** Add File: p2.txt\n+new\n")),
        ("apply_patch", patch("*** Delete File: p3.txt\n")),
        ("apply_patch", patch("*** Update File: p4.txt\n*** Move to: p5.txt\n@@\n-one\n+1\n")),
        (
            "apply_patch",
            patch(
                "*** Update File: p6.txt\n@@\n-one\n+1\n*** Add File: p7.txt\n+x\n*** Delete File: p8.txt\n",
            ),
        ),
        ("remember", json!({ "fact": "tabs", "scope": "project" })),
    ]
    .into_iter()
    .enumerate()
    {
        calls.push(call(&format!("k{at}"), tool, arguments));
    }
    let lines = [
        "touch t1",
        "mkdir m1 && touch m1/x",
        "printf 'a\\nb' > s1.txt",
        "rm e2.txt",
        "mv p1.txt moved.txt",
        "sed -i s/plain/fancy/ n1.txt",
        "for i in 1 2; do touch l$i; done",
        "cp n1.txt c1.txt",
        "ln -s n1.txt link",
        "chmod +x n1.txt",
        "cat <<'END' > h.txt\nhere\nEND",
        "json_edit set d.json '$.a' 2",
        "json_edit add d.json '$.b' '[1]'",
        "json_edit remove d.json '$.a'",
        "write by-command.txt 'some words'",
        "edit e3.py --old-string c --new-string d",
    ];
    calls.extend(lines.iter().enumerate().map(|(at, line)| bash(&format!("l{at}"), line)));
    calls
}

#[test]
fn what_was_shown_is_what_ran_byte_for_byte() {
    let calls = thirty_kinds();
    assert!(calls.len() >= 30);
    let files = [
        ("e1.txt", "one\ntwo\nthree\n"),
        ("e2.txt", "x\nx\n"),
        ("e3.py", "def f():\n    if a:\n      b\n"),
        ("crlf.txt", "a\r\nb\r\nc\r\n"),
        ("d.json", "{\n  \"a\": 1\n}\n"),
        ("AGENTS.md", "# N\n"),
        ("p1.txt", "one\n"),
        ("p3.txt", "gone\n"),
        ("p4.txt", "one\n"),
        ("p6.txt", "one\n"),
        ("p8.txt", "gone\n"),
    ];
    let repo = TempRepo::new(&files);
    let replica = TempRepo::new(&files);
    let home = tempfile::tempdir().unwrap();
    let count = calls.len();
    let (mut terminal, model) = working(&repo, home.path(), calls);
    for number in 1..=count {
        terminal.sees(ASKED, number);
        terminal.types("y\n");
    }
    terminal.sees("All said.", 1);
    terminal.leaves();
    assert_eq!(model.violations(), Vec::<String>::new());
    let events = events(home.path());
    let asked = bodies(&events, "approval_asked");
    assert_eq!(asked.len(), count);
    // A user who does the shown edit by hand gets the same files.
    for (at, question) in asked.iter().enumerate() {
        let what = &question["what"];
        let ran = match what["type"].as_str().unwrap() {
            "edit" => apply(replica.path(), what["diff"].as_str().unwrap()),
            "line" => {
                // A line feed is shown as a sign on one line.
                let line = what["line"].as_str().unwrap().replace('\u{23ce}', "\n");
                Command::new("bash")
                    .args(["-c", &line])
                    .current_dir(replica.path())
                    .status()
                    .unwrap()
                    .success()
            }
            "command" => apply(replica.path(), what["about"].as_str().unwrap()),
            other => panic!("{at}: {other}: {question}"),
        };
        assert!(ran, "{at}: {question}");
    }
    let listing = "find . -type f -o -type l | sort | while read -r f; do echo \"$f\"; cat \"$f\" | od -c; stat -c %A \"$f\"; done";
    let tree = |folder: &Path| {
        let ran = Command::new("bash").args(["-c", listing]).current_dir(folder).output().unwrap();
        String::from_utf8_lossy(&ran.stdout).into_owned()
    };
    assert_eq!(tree(repo.path()), tree(replica.path()));
}

/// Applies a diff as a reader of it would. What does not show was written out, and is put back.
fn apply(folder: &Path, diff: &str) -> bool {
    // A new file without a line is only its name.
    if let Some(name) = diff.strip_prefix("--- /dev/null\n+++ b/").filter(|rest| !rest.contains("@@")) {
        return std::fs::write(folder.join(name.trim_end()), "").is_ok();
    }
    let diff = diff.replace("<U+000D>", "\r").replace("<U+FEFF>", "\u{feff}");
    let file = folder.join("../").join(format!("{}.diff", folder.file_name().unwrap().to_string_lossy()));
    std::fs::write(&file, diff).unwrap();
    let args = ["apply", "--whitespace=nowarn", "--unidiff-zero", "-p1"];
    let ran = Command::new("git").args(args).arg(&file).current_dir(folder).output().unwrap();
    std::fs::remove_file(&file).unwrap();
    if !ran.status.success() {
        eprintln!("{}", String::from_utf8_lossy(&ran.stderr));
    }
    ran.status.success()
}

#[test]
fn a_call_after_another_is_decided_by_what_that_one_left() {
    // A branch brings links that lead out; the call after the checkout was harmless when it was proposed.
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join(".ssh")).unwrap();
    std::fs::write(home.path().join(".ssh/id_rsa"), "KEYTEXT\n").unwrap();
    let lathe = lathe();
    std::fs::create_dir_all(lathe.home()).unwrap();
    std::fs::write(lathe.home().join("notes.txt"), "HOMETEXT\n").unwrap();
    let repo = TempRepo::new(&[("kk/id_rsa", "plain\n"), ("ll/notes.txt", "plain\n")]);
    let swap = format!(
        "rm -r kk ll; ln -s {} kk; ln -s {} ll",
        home.path().join(".ssh").display(),
        lathe.home().display()
    );
    let answer = in_one_answer(&[&swap, "cat kk/id_rsa", "cat ll/notes.txt", "head -1 kk/*"]);
    let model = FakeModel::serving(Script::new().answer(answer).answer(done("ok")));
    let args = ["run", "go", "--mode", "full-auto", "--output", "stream-json"];
    let ran = lathe.clone().in_dir(repo.path()).env("HOME", home.path()).args(args).with_model(&model).run();
    let events = ran.events();
    for at in 1..=3 {
        let told = result(&events, &format!("c{at}"));
        assert!(!told.contains("KEYTEXT") && !told.contains("HOMETEXT"), "{at}: {told}");
    }
}
