//! Every example that the model is shown, collected from the texts themselves, runs in each mode in which its effect is
//! allowed: a line that Lathe teaches must not end a run by denial.

use std::collections::BTreeSet;

use lathe_testkit::{FakeModel, Script, TempRepo, call, done};
use serde_json::{Value, json};

use crate::{lathe, result};

/// The word in capitals that examples look for.
const MARK: &str = concat!("TO", "DO");

/// The effect of an example, which decides in which modes it may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    Read,
    Test,
    Edit,
}

impl Does {
    /// By its commands.
    fn of(example: &str) -> Self {
        let first = example.lines().next().unwrap_or_default();
        let words: Vec<&str> = first.split([' ', '|', ';', '&']).filter(|word| !word.is_empty()).collect();
        let changes = |word: &&str| matches!(*word, "write" | "edit" | "apply_patch");
        let data = words.first() == Some(&"json_edit") && words.get(1) != Some(&"view");
        if words.iter().any(changes) || data {
            Self::Edit
        } else if words.iter().any(|word| matches!(*word, "cargo" | "npm")) {
            Self::Test
        } else {
            Self::Read
        }
    }

    fn modes(self) -> &'static [&'static str] {
        match self {
            Self::Read => &["plan", "default", "auto-edit", "full-auto"],
            Self::Test => &["default", "auto-edit", "full-auto"],
            Self::Edit => &["auto-edit", "full-auto"],
        }
    }
}

/// Indented lines below `Examples:`, with the texts of their here-documents.
fn below_examples(help: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut is_below = false;
    let mut is_text = false;
    for line in help.lines() {
        if line.trim_end().ends_with("Examples:") || line.trim_end().ends_with("Example:") {
            is_below = true;
        } else if is_below {
            let Some(line) = line.strip_prefix("  ") else {
                is_below = false;
                continue;
            };
            match found.last_mut().filter(|_| is_text) {
                Some(example) => *example += &format!("\n{line}"),
                None => found.push(line.to_owned()),
            }
            is_text = if is_text { line != "EOF" } else { line.contains("<<'EOF'") };
        }
    }
    found
}

/// Pieces of a text in backquotes that are whole commands: a program and at least one operand, and no word in capitals that
/// stands for something.
fn quoted_commands(text: &str) -> Vec<String> {
    let pieces = text.split('`').skip(1).step_by(2);
    let stands = |word: &str| word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let is_command = |piece: &&str| {
        let words: Vec<&str> = piece.split(' ').collect();
        words.iter().skip(1).any(|word| !word.starts_with('-'))
            && !piece.contains(['<', '…'])
            && words[0].chars().all(|c| c.is_ascii_lowercase() || c == '_')
            && !words.iter().any(|word| stands(word) && *word != MARK)
            && !words.contains(&"N")
            && !words.contains(&"[PATTERN]")
    };
    pieces.filter(is_command).map(str::to_owned).collect()
}

/// Commands of a text that take a here-document, with it. They cannot stand in backquotes.
fn with_documents(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut is_text = false;
    for line in text.lines() {
        match found.last_mut().filter(|_| is_text) {
            Some(example) => *example += &format!("\n{line}"),
            None if line.ends_with("<<'EOF'") && !line.contains('`') => found.push(line.to_owned()),
            None => continue,
        }
        is_text = line != "EOF";
    }
    found
}

fn texts() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for toolset in ["lathe", "trae", "gemini", "bash"] {
        let words = ["run", "x", "--show-request", "--toolset", toolset];
        let model = FakeModel::serving(Script::new());
        let request = lathe().args(words).with_model(&model).run();
        let request: Value = serde_json::from_str(&request.stdout).unwrap_or_else(|_| panic!("{request:?}"));
        for text in strings(&request) {
            found.extend(quoted_commands(&text));
            found.extend(with_documents(&text));
        }
    }
    let names = lathe().args(["shell", "-c", "commands"]).run().expect_code(0).stdout;
    for name in names.lines().filter_map(|row| row.split_once(':')).map(|(name, _)| name) {
        let help = lathe().args(["shell", "-c", &format!("{name} --help")]).run().stdout;
        found.extend(below_examples(&help));
    }
    found
}

fn strings(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(all) => all.iter().flat_map(strings).collect(),
        Value::Object(all) => all.values().flat_map(strings).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// A place in which every example has what it speaks of.
fn place() -> TempRepo {
    let repo = TempRepo::with_git(&[
        ("src/main.rs", concat!("fn main() {}\n// old\nfn parse_line() {} // fn parse\n// TO", "DO\n")),
        ("src/lib.rs", "// old text\n// remove me\nfn old() {}\n"),
        ("config.py", "import os\nDEBUG = 1\nprint(DEBUG)\n# todo\n"),
        ("package.json", "{\"version\": \"1.0.0\", \"private\": true, \"scripts\": {\"test\": \"true\"}}\n"),
        ("Cargo.toml", "[dependencies]\n"),
        ("web/package.json", "{\"scripts\": {\"test\": \"true\"}}\n"),
        ("names.txt", "b\na\n"),
        ("a.txt", concat!("TO", "DO\n")),
        ("b.txt", "b\n"),
        ("Makefile", "all:\n\techo\n"),
        ("fixed.txt", "wrong\n"),
        ("other.txt", "wrong\n"),
    ]);
    repo.git(&["checkout", "-q", "-b", "fix"]);
    repo.write("other.txt", "right\n");
    repo.commit("fix");
    repo.git(&["checkout", "-q", "-"]);
    repo.write("fixed.txt", "right\n");
    let diff = repo.git(&["diff"]);
    repo.git(&["checkout", "-q", "fixed.txt"]);
    repo.write("fix.diff", diff);
    repo.write("src/main.rs", repo.read("src/main.rs") + "fn more() {}\n" + &"//\n".repeat(200));
    repo
}

#[test]
fn every_example_runs_in_every_mode_in_which_its_effect_is_allowed() {
    let examples = texts();
    assert!(examples.len() >= 25, "{examples:#?}");
    assert!(examples.contains(concat!("search -l TO", "DO | xargs view")), "{examples:#?}");
    assert!(examples.contains("cd web && npm test"), "{examples:#?}");
    assert!(examples.iter().any(|example| example.starts_with("write notes.md <<'EOF'\n")), "{examples:#?}");
    // Programs that the examples mention; their effects are not checked here.
    let programs = TempRepo::new(&[]);
    for name in ["cargo", "npm"] {
        programs.write(name, "#!/bin/sh\necho ran\n");
        let status = std::process::Command::new("chmod").arg("755").arg(programs.join(name)).status();
        assert!(status.unwrap().success());
    }
    let path = format!("{}:{}", programs.path().display(), std::env::var("PATH").unwrap());
    for (number, mode) in ["plan", "default", "auto-edit", "full-auto"].into_iter().enumerate() {
        let mut chosen: Vec<&String> =
            examples.iter().filter(|example| Does::of(example).modes().contains(&mode)).collect();
        // What ends the task comes last, and another one in each mode.
        let ends: Vec<&String> = chosen.extract_if(.., |example| example.starts_with("task_done")).collect();
        chosen.push(ends[number % ends.len()]);
        let repo = place();
        let root = repo.path().canonicalize().unwrap().display().to_string();
        let mut script = Script::new();
        for (at, example) in chosen.iter().enumerate() {
            let line = json!({ "command": example });
            script = script.answer(call(&format!("c{at}"), "Bash", line));
            if example.starts_with("cd ") {
                let back = json!({ "command": format!("cd {root}") });
                script = script.answer(call("back", "Bash", back));
            }
        }
        let model = FakeModel::serving(script.answer(done("ok")));
        let words = ["run", "x", "--mode", mode, "--toolset", "bash", "--output", "stream-json"];
        let ran = lathe().in_dir(repo.path()).env("PATH", &path).args(words).with_model(&model).run();
        let events = ran.events();
        for (at, example) in chosen.iter().enumerate() {
            let told = result(&events, &format!("c{at}"));
            let failed =
                ["denied", "exit code", "not found", "Usage:"].iter().find(|word| told.contains(**word));
            assert_eq!(failed, None, "{mode}: `{example}`: {told}");
        }
    }
}

/// A line up to its first pipe or redirection.
fn outside_of_quotes(line: &str) -> &str {
    let mut quote = None;
    for (at, character) in line.char_indices() {
        match (quote, character) {
            (Some(open), close) if open == close => quote = None,
            (None, '\'' | '"') => quote = Some(character),
            (None, '|' | '<' | '>') => return &line[..at],
            _ => {}
        }
    }
    line
}

/// Lines of examples in the help of the program, as bash would split them: without the words that explain them.
fn program_examples(help: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for line in below_examples(help).iter().filter_map(|line| line.strip_prefix("lathe ")) {
        let line = outside_of_quotes(line.split("  ").next().unwrap_or_default());
        let quoted = format!("printf '%s\\0' {line}");
        let split = std::process::Command::new("bash").args(["-c", &quoted]).output().unwrap();
        assert!(split.status.success(), "{line}");
        let words = String::from_utf8(split.stdout).unwrap();
        found.push(words.split_terminator('\0').map(str::to_owned).collect());
    }
    found
}

#[test]
fn every_example_in_the_help_of_the_program_is_understood() {
    let help = lathe().arg("--help").run().expect_code(0).stdout;
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let commands = commands.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let commands: Vec<&str> = commands.filter_map(|line| line.split_whitespace().next()).collect();
    let helps = commands
        .iter()
        .filter(|command| **command != "help")
        .map(|command| lathe().args([*command, "--help"]).run().expect_code(0).stdout);
    let mut examples = program_examples(&help);
    examples.extend(helps.flat_map(|help| program_examples(&help)));
    examples.sort();
    examples.dedup();
    assert!(examples.len() >= 40, "{} examples", examples.len());
    for example in examples {
        // Where every word is understood, the help is shown.
        let ran = lathe().args(&example).arg("--help").run();
        assert_eq!(ran.code, 0, "{example:?}: {}", ran.stderr);
    }
}
