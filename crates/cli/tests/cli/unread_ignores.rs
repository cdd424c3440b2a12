//! A `.latheignore` that cannot be read: the files it hides from the model are unknown, so its whole folder is hidden
//! from the model, by every tool; the user is informed, and the model once.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use lathe_testkit::{FakeModel, Script, TempRepo, call, done};
use serde_json::{Value, json};

use crate::{lathe, results};

/// Ways in which the file cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Odd {
    NotText,
    Pipe,
    Folder,
    LinkToNowhere,
    LinkToFile,
    NoPattern,
    Huge,
    Forbidden,
}

impl Odd {
    const ALL: [Odd; 8] = [
        Odd::NotText,
        Odd::Pipe,
        Odd::Folder,
        Odd::LinkToNowhere,
        Odd::LinkToFile,
        Odd::NoPattern,
        Odd::Huge,
        Odd::Forbidden,
    ];

    /// Makes the file. False where this user can read it all the same.
    fn make(self, at: &Path) -> bool {
        match self {
            Odd::NotText => std::fs::write(at, b"kept.py\n\xff\n").unwrap(),
            Odd::Pipe => assert!(Command::new("mkfifo").arg(at).status().unwrap().success()),
            Odd::Folder => std::fs::create_dir(at).unwrap(),
            Odd::LinkToNowhere => symlink("nowhere", at).unwrap(),
            Odd::LinkToFile => symlink("rules.txt", at).unwrap(),
            Odd::NoPattern => std::fs::write(at, "kept[z-a].py\nother\n").unwrap(),
            Odd::Huge => std::fs::File::create(at).unwrap().set_len(1 << 30).unwrap(),
            Odd::Forbidden => {
                std::fs::write(at, "kept.py\n").unwrap();
                std::fs::set_permissions(at, std::fs::Permissions::from_mode(0o000)).unwrap();
                return std::fs::read(at).is_err();
            }
        }
        true
    }
}

/// Tools that read or name files, each in a toolset that has it; `.` is the folder of the ignore file.
fn readers(folder: &str) -> Vec<(&'static str, &'static str, Value)> {
    let file = format!("{folder}kept.py");
    let here = if folder.is_empty() { "." } else { folder };
    vec![
        ("lathe", "search", json!({ "pattern": "needle" })),
        ("lathe", "search", json!({ "pattern": "needle", "path": here, "all": true })),
        ("lathe", "glob", json!({ "pattern": "**/*.py" })),
        ("lathe", "view", json!({ "path": here })),
        ("lathe", "view", json!({ "path": file })),
        ("lathe", "code", json!({ "command": "find", "target": "needle" })),
        ("gemini", "list_directory", json!({ "dir_path": here })),
        ("gemini", "read_many_files", json!({ "include": ["**/*.py"] })),
        ("gemini", "search_file_content", json!({ "pattern": "needle" })),
        ("gemini", "read_file", json!({ "file_path": file })),
    ]
}

#[test]
fn no_tool_shows_a_file_of_a_folder_whose_ignore_file_cannot_be_read() {
    for odd in Odd::ALL {
        for folder in ["", "sub/"] {
            let repo = TempRepo::new(&[
                ("rules.txt", "kept.py\n"),
                ("kept.py", "def needle():\n    return 'hidden-content'\n"),
                ("sub/rules.txt", "kept.py\n"),
                ("sub/kept.py", "def needle():\n    return 'hidden-content'\n"),
                ("seen/open.py", "def other():\n    return 'needle'\n"),
            ]);
            if !folder.is_empty() {
                std::fs::remove_file(repo.join("kept.py")).unwrap();
            }
            if !odd.make(&repo.join(&format!("{folder}.latheignore"))) {
                continue;
            }
            for (toolset, name, arguments) in readers(folder) {
                let call = ["tool", "run", name, "--toolset", toolset, "--mode", "default", "--json"];
                let ran = lathe().in_dir(repo.path()).args(call).arg(arguments.to_string()).run();
                let case = format!("{odd:?} {folder:?} {name} {arguments}: {}{}", ran.stdout, ran.stderr);
                let names_file = arguments.to_string().contains("kept.py");
                assert!(!ran.stdout.contains("hidden-content"), "{case}");
                assert!(names_file || !ran.stdout.contains("kept.py"), "{case}");
                // The graph is about the whole folder; what it leaves out below is not told.
                if name != "code" || folder.is_empty() {
                    let told = format!("{folder}.latheignore cannot be read: ");
                    assert_eq!(ran.stdout.matches(&told).count(), 1, "{case}");
                }
                if folder.is_empty() {
                    assert!(ran.stderr.contains(".latheignore cannot be read"), "{case}");
                } else if name == "search" && arguments.get("path").is_none() {
                    assert!(ran.stdout.contains("seen/open.py"), "{case}");
                }
            }
        }
    }
}

#[test]
fn the_model_is_told_once_of_an_ignore_file_that_cannot_be_read() {
    let repo = TempRepo::new(&[("a.py", "needle\n"), ("sub/b.py", "needle\n")]);
    std::fs::create_dir(repo.join("sub/.latheignore")).unwrap();
    let search = |id: &str| call(id, "search", json!({ "pattern": "needle" }));
    let glob = call("c", "glob", json!({ "pattern": "**/*.py" }));
    let script = Script::new().answer(search("a")).answer(search("b")).answer(glob).answer(done("x"));
    let model = FakeModel::serving(script);
    let run = lathe().in_dir(repo.path()).args(["run", "x", "--output", "stream-json"]).with_model(&model);
    let results = results(&run.run().expect_code(0).events());
    for (id, text) in &results {
        assert!(!text.contains("b.py"), "{id}: {text}");
        assert_eq!(
            text.contains("sub/.latheignore cannot be read: it is a folder"),
            id == "a",
            "{id}: {text}"
        );
    }
}

/// The other ignore files can be lifted by a parameter, so one that cannot be read hides nothing.
#[test]
fn a_geminiignore_that_cannot_be_read_is_passed_over() {
    let repo = TempRepo::new(&[("a.py", "needle\n")]);
    std::fs::write(repo.join(".geminiignore"), b"a.py\n\xff\n").unwrap();
    let call = ["tool", "run", "read_file", "--toolset", "gemini", "--json", "{\"file_path\": \"a.py\"}"];
    let ran = lathe().in_dir(repo.path()).args(call).run().expect_code(0);
    assert!(ran.stdout.contains("needle") && ran.stderr.is_empty(), "{} {}", ran.stdout, ran.stderr);
}
