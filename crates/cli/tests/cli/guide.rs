//! The guide is true: every command in it is run.

use std::path::Path;

use lathe_testkit::{FakeModel, Script, TempRepo, call, done, golden};
use serde_json::{Value, json};

use crate::lathe;

fn docs(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

#[test]
fn every_command_of_the_guide_works() {
    let guide = std::fs::read_to_string(docs("guide.md")).unwrap();
    let lines: Vec<&str> = guide.lines().filter_map(|line| line.strip_prefix("    $ ")).collect();
    assert!(lines.len() > 25);
    let repo = TempRepo::with_git(&[("README.md", "# sample\n"), ("task.md", "say hello\n")]);
    // Stateless: the first answer of a conversation changes a file, the next ends it, and so on.
    let model = FakeModel::serving(Script::repeat(60, |k| match k % 2 {
        0 => call(&format!("c{k}"), "bash", json!({ "command": format!("date +%N%N > made-{k}") })),
        _ => done("hello"),
    }));
    // A live replay that differs keeps its copy.
    let temporary = TempRepo::new(&[]);
    let lathe = lathe();
    let binary = Path::new(env!("CARGO_BIN_EXE_lathe"));
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let _ = std::fs::remove_file("/tmp/lathe-guide.cassette");
    for line in lines {
        let newest = lathe.clone().args(["sessions", "--json", "--limit", "1"]).run();
        let sessions: Value = serde_json::from_str(&newest.stdout).unwrap_or_default();
        let id = sessions[0]["id"].as_str().unwrap_or_default().to_owned();
        let output = std::process::Command::new("bash")
            .args(["-c", line])
            .current_dir(repo.path())
            .env("PATH", &path)
            .env("LATHE_HOME", lathe.home())
            .env("LATHE_SANDBOX", "off")
            .env("OPENAI_API_KEY", model.key())
            .env("OPENAI_BASE_URL", model.base_url())
            .env("LATHE_MODEL", "fake")
            // The model always changes something, and where that is denied the task is not done (exit 5).
            .env("LATHE_MODE", "full-auto")
            .env("NO_COLOR", "1")
            .env("TMPDIR", temporary.path())
            .env("ID", id)
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        // A replay with live tools is asked whether the world differs; here it may.
        let fine =
            output.status.success() || (line.contains("--tools live") && output.status.code() == Some(1));
        assert!(fine, "{line}\n{}\n{}", text(&output.stdout), text(&output.stderr));
    }
    assert_eq!(model.violations(), Vec::<String>::new());
    for left in ["patch", "json", "html", "cassette"] {
        std::fs::remove_file(format!("/tmp/lathe-guide.{left}")).unwrap();
    }
}

#[test]
fn the_configuration_reference_is_what_the_program_says() {
    let said = lathe().args(["config", "reference"]).run().expect_code(0).stdout;
    golden(docs("configuration.md"), &said);
}

/// The block of code that follows a line with just this file's name.
fn block(text: &str, name: &str) -> String {
    let (_, after) = text.split_once(&format!("\n`{name}`\n")).unwrap();
    let (_, code) = after.split_once("```").and_then(|(_, rest)| rest.split_once('\n')).unwrap();
    code.split_once("```").unwrap().0.to_owned()
}

#[test]
fn the_domain_of_the_docs_works_as_they_say() {
    let page = std::fs::read_to_string(docs("shell.md")).unwrap();
    let (lathe, repo) = (lathe(), TempRepo::new(&[]));
    let home = lathe.home().display().to_string();
    std::fs::create_dir_all(lathe.home()).unwrap();
    for name in ["config.toml", "units.json", "units.py"] {
        std::fs::write(lathe.home().join(name), block(&page, name).replace("{home}", &home)).unwrap();
    }
    let binary = Path::new(env!("CARGO_BIN_EXE_lathe"));
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut lines = page.lines().peekable();
    let mut tried = 0;
    while let Some(line) = lines.next() {
        let Some(command) = line.strip_prefix("    $ ") else { continue };
        let mut expected = String::new();
        while let Some(said) = lines.next_if(|line| line.starts_with("    ") && !line.starts_with("    $ ")) {
            expected.push_str(said.trim_start());
            expected.push('\n');
        }
        let run = std::process::Command::new("bash")
            .args(["-c", command])
            .current_dir(repo.path())
            .env("PATH", &path)
            .env("LATHE_HOME", lathe.home())
            .env("LATHE_SANDBOX", "off")
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&run.stdout), expected, "{command}\n{run:?}");
        tried += 1;
    }
    assert_eq!(tried, 6);
    // The model has it too, as a tool and as a command.
    let listed = lathe.clone().in_dir(repo.path()).args(["tools", "--json"]).run().expect_code(0);
    assert!(listed.stdout.contains("units_length"), "{}", listed.stdout);
}
