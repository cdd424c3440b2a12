//! Lines over the features of bash, and shell scripts of Debian's packages, do in Lathe's shell what they do in bash
//! alone: the same bytes, the same exit code, the same files. `docs/shell.md` lists the differences, and the last
//! test here checks that list.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use lathe_testkit::TempRepo;

use crate::lathe;

const LINES: &str = include_str!("../lines/bash.txt");
const SCRIPTS: &str = include_str!("../lines/scripts.txt");

/// A line and the heading it stands below.
struct Row {
    about: &'static str,
    line: String,
}

/// Rows of a table: `== heading`, then lines of bash with `--` between them.
fn rows(table: &'static str) -> Vec<Row> {
    let (mut rows, mut about) = (Vec::new(), "");
    let mut line: Vec<&str> = Vec::new();
    for text in table.lines().chain(["--"]) {
        let heading = text.strip_prefix("== ");
        if heading.is_none() && text != "--" {
            line.push(text);
            continue;
        }
        if !line.is_empty() {
            rows.push(Row { about, line: line.join("\n") });
            line.clear();
        }
        about = heading.unwrap_or(about);
    }
    rows
}

/// Everything that a line leaves behind.
#[derive(Debug, PartialEq, Eq)]
struct Left {
    code: Option<i32>,
    stdout: String,
    stderr: String,
    /// Mode and content by path; git's own data is not looked into.
    files: BTreeMap<String, (u32, Vec<u8>)>,
}

fn files(folder: &Path, below: &str, found: &mut BTreeMap<String, (u32, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{below}{}", entry.file_name().display());
        let meta = entry.path().symlink_metadata().unwrap();
        let content = if meta.is_symlink() {
            std::fs::read_link(entry.path()).unwrap().display().to_string().into_bytes()
        } else if meta.is_file() {
            std::fs::read(entry.path()).unwrap()
        } else {
            Vec::new()
        };
        found.insert(path.clone(), (meta.permissions().mode(), content));
        if meta.is_dir() && entry.file_name() != ".git" {
            files(&entry.path(), &format!("{path}/"), found);
        }
    }
}

/// Runs a line in an empty folder, which is the same for both shells.
fn left(folder: &Path, mut command: Command) -> Left {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir(folder).unwrap();
    let ran = command.current_dir(folder).stdin(Stdio::null()).output().unwrap();
    let mut found = BTreeMap::new();
    files(folder, "", &mut found);
    let text = |bytes: Vec<u8>| bytes.escape_ascii().to_string().replace("\\n", "\n");
    Left { code: ran.status.code(), stdout: text(ran.stdout), stderr: text(ran.stderr), files: found }
}

/// The line in bash alone and in Lathe's shell.
fn both(line: &str) -> (Left, Left) {
    let place = TempRepo::new(&[]);
    let folder = place.join("w");
    let lathe = lathe().args(["shell", "-c", line]);
    let mut alone = Command::new("bash");
    alone.args(["-c", line]).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    alone.env("LANG", "C.UTF-8").env("NO_COLOR", "1").env("TERM", "dumb");
    alone.env("HOME", lathe.home().parent().unwrap().join("user"));
    (left(&folder, alone), left(&folder, lathe.command()))
}

/// Takes out what docs/shell.md says of messages: the name of a place, the depth of a trace, and Lathe's own notes.
fn as_documented((mut alone, mut ours): (Left, Left)) -> (Left, Left) {
    alone.stderr = alone.stderr.replace("bash: -c: line ", "bash: eval: line ");
    alone.stderr = alone.stderr.replace("environment: line ", "bash: line ");
    let is_note =
        |line: &str| line.starts_with("kept: `lathe quarantine restore ") || line.starts_with("not kept: ");
    let lines = ours.stderr.split_inclusive('\n').filter(|line| !is_note(line));
    ours.stderr =
        lines.map(|line| line.replacen("++ ", "+ ", usize::from(line.starts_with("++ ")))).collect();
    (alone, ours)
}

/// Compares every row, several at a time. The rows that differ are reported together.
fn compare(rows: &[Row]) {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut differ = Vec::new();
        while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (alone, ours) = as_documented(both(&row.line));
            if alone != ours {
                differ.push(format!("{}: {}\n  bash:  {alone:?}\n  lathe: {ours:?}", row.about, row.line));
            }
        }
        differ
    };
    let differ: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(differ.is_empty(), "{} of {} differ:\n{}", differ.len(), rows.len(), differ.join("\n"));
}

fn headings(rows: &[Row]) -> Vec<&'static str> {
    let mut headings: Vec<&str> = rows.iter().map(|row| row.about).collect();
    headings.dedup();
    headings
}

#[test]
fn issue_16_lines_over_the_features_of_bash_do_what_they_do_in_bash_alone() {
    let rows = rows(LINES);
    assert!(rows.len() >= 150 && headings(&rows).len() >= 30, "{} lines", rows.len());
    compare(&rows);
}

#[test]
fn issue_16_scripts_of_debian_do_what_they_do_in_bash_alone() {
    let is_script = |path: &str| {
        let text = std::fs::read(path).unwrap_or_default();
        let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
        first.starts_with(b"#!") && first.windows(2).any(|word| word == b"sh")
    };
    let mut rows = rows(SCRIPTS);
    let all = headings(&rows).len();
    rows.retain(|row| is_script(row.about));
    let found = headings(&rows);
    assert!(found.len() >= 30, "only {} of {all} scripts are on this machine: {found:?}", found.len());
    compare(&rows);
}

/// A line that differs: the line, and code and text of bash alone and of Lathe's shell. The text is of both outputs.
type Differs = (&'static str, (i32, &'static str), (i32, &'static str));

const DIFFERS: &[Differs] = &[
    ("`break` and `continue`", (0, "x"), (1, "the rest of the line did not run")),
    ("`set -n`", (0, ""), (0, "set -n")),
    ("`EXIT` trap", (0, "hi\nbye"), (0, "hi")),
    ("`jobs` without an option", (0, "Running"), (0, "Earlier lines left nothing running.")),
    ("`trap -p`", (0, ""), (0, "SIGSTKFLT")),
    ("`bash: eval: line N:`", (2, "bash: -c: line 1:"), (2, "bash: eval: line 1:")),
    ("`environment: line N:`", (127, "environment: line 1:"), (127, "bash: line 1:")),
    ("`set -u`", (127, "unbound variable"), (1, "unbound variable")),
    ("`${x:?}`", (127, "parameter null or not set"), (1, "parameter null or not set")),
    ("`set -x`", (0, "\n+ echo a"), (0, "\n++ echo a")),
    ("`TERM`", (0, "[vt100]"), (0, "[dumb]")),
];

/// The line for a difference that docs/shell.md names.
fn line_of(named: &str) -> &'static str {
    match named {
        "`break` and `continue`" => "break; echo x",
        "`set -n`" => "set -n; echo x",
        "`EXIT` trap" => "trap 'echo bye' EXIT; echo hi",
        "`jobs` without an option" => "sleep 60 & jobs; kill $!",
        "`trap -p`" => "trap -p",
        "`bash: eval: line N:`" => "echo )",
        "`environment: line N:`" => "f() { nosuch_command_x; }; f",
        "`set -u`" => "set -u; echo $none",
        "`${x:?}`" => "echo ${none:?}",
        "`set -x`" => "echo; set -x; echo a",
        "`TERM`" => "echo [$TERM]",
        other => panic!("{other}"),
    }
}

#[test]
fn issue_16_the_docs_name_each_difference_and_each_is_one() {
    let docs =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/shell.md")).unwrap();
    let list = docs.split_once("## Where a line differs from bash alone").unwrap().1;
    let list = list.split_once("\n## ").unwrap().0;
    for (named, alone, ours) in DIFFERS {
        assert!(list.contains(named), "{named} is not in docs/shell.md");
        let line = line_of(named);
        let shells = [("bash", *alone), ("lathe", *ours)];
        for (shell, (code, text)) in shells {
            let place = TempRepo::new(&[]);
            let mut command = match shell {
                "bash" => {
                    let mut command = Command::new("bash");
                    command.args(["-c", line]);
                    command
                }
                _ => lathe().args(["shell", "-c", line]).command(),
            };
            let left = left(&place.join("w"), {
                command.env("TERM", "vt100");
                command
            });
            // In the order of a screen, as far as it can be told.
            let said = format!("{}\n{}", left.stdout, left.stderr);
            assert!(left.code == Some(code) && said.contains(text), "{shell}: {line}: {left:?}");
        }
        assert!(alone != ours, "{named}");
    }
    for note in ["kept: `lathe quarantine restore", "not kept:"] {
        assert!(list.contains(note), "{note}");
    }
}
