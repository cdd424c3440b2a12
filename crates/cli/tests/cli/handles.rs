//! Outputs of earlier calls, read again by `@STEP.CALL` in every toolset, by commands and as files.

use lathe_testkit::{FakeAnswer, FakeModel, Lathe, Script, TempRepo, call, done};
use serde_json::{Value, json};

use crate::{lathe, result};

/// More than any toolset shows.
const MUCH: &str = "seq 1 200000";

fn bash(id: &str, command: &str) -> FakeAnswer {
    call(id, "bash", json!({ "command": command }))
}

/// A run of these answers in plan mode; its temporary folder is next to the workspace.
fn run(repo: &TempRepo, lathe: &Lathe, toolset: &str, answers: Vec<FakeAnswer>) -> Vec<Value> {
    let script = answers.into_iter().fold(Script::new(), Script::answer).answer(done("ok"));
    let model = FakeModel::serving(script);
    let words = ["run", "go", "--mode", "plan", "--toolset", toolset, "--output", "stream-json"];
    let ran = lathe.clone().in_dir(repo.join("work")).args(words).with_model(&model).run();
    ran.events()
}

fn place() -> (TempRepo, Lathe) {
    let repo = TempRepo::new(&[("work/a.txt", "a\n"), ("tmp/.keep", "")]);
    let lathe = lathe().env("TMPDIR", repo.join("tmp"));
    (repo, lathe)
}

#[test]
fn an_output_that_was_cut_is_read_whole_by_its_handle() {
    let (repo, lathe) = place();
    let file = format!("{}/lathe-*/@1.2", repo.join("tmp").display());
    let lines = format!("view @1.2 | wc -l; search -c '^1999..$' @1.2; grep -c 7 {file}; view nosuch/@1.2");
    let answers = vec![
        bash("c1", "echo first").call("c2", "bash", json!({ "command": MUCH })),
        call("v", "view", json!({ "path": "@1.2", "offset": 150_000, "limit": 1 })).call(
            "s",
            "search",
            json!({ "pattern": "^19999[0-9]$", "path": "@1.2" }),
        ),
        bash("l", &lines),
        call("none", "view", json!({ "path": "@7.1" })).call("small", "view", json!({ "path": "@1.1" })),
        // Permission to read its own folder does not cover the folders next to it.
        bash("beside", &format!("cat {}/.keep", repo.join("tmp").display())),
    ];
    let events = run(&repo, &lathe, "lathe", answers);
    let told = result(&events, "c2");
    assert!(told.contains("[The whole output is @1.2: read it by that name, or as "), "{told}");
    assert!(result(&events, "v").contains("150000"), "{}", result(&events, "v"));
    assert!(result(&events, "s").contains("199999"), "{}", result(&events, "s"));
    let lines = result(&events, "l");
    assert!(lines.contains("200000\n") && lines.contains("File does not exist"), "{lines}");
    // Files of the handles' folder are for plain programs too.
    assert!(lines.contains("\n81902\n"), "{lines}");
    assert!(result(&events, "none").contains("does not exist"), "{}", result(&events, "none"));
    assert!(result(&events, "small").contains("first"), "{}", result(&events, "small"));
    assert!(result(&events, "beside").contains("denied"), "{}", result(&events, "beside"));
    let left: Vec<_> =
        std::fs::read_dir(repo.join("tmp")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left, [repo.join("tmp/.keep")]);
}

#[test]
fn every_toolset_reads_by_handles() {
    for (toolset, shell, answers) in [
        (
            "gemini",
            "run_shell_command",
            vec![
                call("r", "read_file", json!({ "file_path": "@1.1", "offset": 150_000, "limit": 1 })),
                call("s", "search_file_content", json!({ "pattern": "^150001$", "path": "@1.1" })),
            ],
        ),
        (
            "trae",
            "bash",
            vec![call(
                "r",
                "str_replace_based_edit_tool",
                json!({ "command": "view", "path": "@1.1", "view_range": [150_001, 150_001] }),
            )],
        ),
        (
            "bash",
            "Bash",
            vec![call("r", "Bash", json!({ "command": "view @1.1 --offset 150001 --limit 1" }))],
        ),
    ] {
        let (repo, lathe) = place();
        let first = call("c1", shell, json!({ "command": MUCH }));
        let names: Vec<&str> = if answers.len() == 2 { vec!["r", "s"] } else { vec!["r"] };
        let events = run(&repo, &lathe, toolset, std::iter::once(first).chain(answers).collect());
        for name in names {
            let read = result(&events, name);
            assert!(read.contains("150001"), "{toolset} {name}: {read}");
        }
    }
}

#[test]
fn a_long_output_in_geminis_words_names_the_file_and_shows_both_ends() {
    let (repo, lathe) = place();
    let command = "head -c 50000 /dev/zero | tr '\\0' x";
    let answers = vec![call("c1", "run_shell_command", json!({ "command": command }))];
    let told = result(&run(&repo, &lathe, "gemini", answers), "c1").to_owned();
    let (first, rest) = told.split_once('\n').unwrap();
    let (words, file) = first.split_once("For full output see: ").unwrap();
    assert_eq!(words, "Output too large. Showing first 8,000 and last 32,000 characters. ");
    assert!(file.ends_with("/@1.1"), "{file}");
    let (head, rest) = rest.split_once("\n\n... [").unwrap();
    let (_, tail) = rest.split_once(" characters omitted] ...\n\n").unwrap();
    assert_eq!((head.len(), tail.len()), (8000, 32000));
    assert!(head.starts_with("Command: head") && tail.contains("Exit Code: 0"), "{tail}");
}

#[test]
fn a_session_that_is_gone_on_with_has_its_outputs() {
    let (repo, lathe) = place();
    let events = run(&repo, &lathe, "lathe", vec![bash("c1", MUCH)]);
    let id = events[0]["session"].as_str().or(events[0]["body"]["session"].as_str()).unwrap().to_owned();
    let read = call("v", "view", json!({ "path": "@1.1", "offset": 150_000, "limit": 1 }));
    let model = FakeModel::serving(
        [done(""), done(""), read, done("ok")].into_iter().fold(Script::new(), Script::answer),
    );
    let words = ["resume", &id, "and now", "--output", "stream-json"];
    let ran = lathe.clone().in_dir(repo.join("work")).args(words).with_model(&model).run();
    let events = ran.expect_code(0).events();
    assert!(result(&events, "v").contains("150000"), "{}", result(&events, "v"));
}
