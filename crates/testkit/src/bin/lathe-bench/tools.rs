//! The cost of the tools: searching compared with ripgrep, editing compared with the bare writes, and finding what
//! shell lines changed.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use lathe_testkit::{FakeModel, Lathe, Options, Script, call, done};
use serde_json::{Value, json};

use super::Effort;
use super::samples::{Samples, time_program};
use super::table::{BenchTable, Goal};

/// Files of the tree whose changes are watched.
const FILES: usize = 50_000;
/// Lines or edits of one run.
const CALLS: usize = 20;

pub fn measure(binary: &Path, effort: &Effort, table: &mut BenchTable) {
    measure_search(binary, effort, table);
    measure_tracking(binary, table);
    measure_window(binary, effort, table);
}

fn tool(binary: &Path, folder: &Path, name: &str, arguments: &Value) -> Command {
    let lathe = Lathe::new(binary).in_dir(folder);
    let mut command = lathe.args(["tool", "run", name, "--json", &arguments.to_string()]).command();
    command.stdout(std::process::Stdio::null());
    command
}

/// A tree that is on every machine that built this: the sources of the dependencies.
fn real_tree() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")))?;
    let registry = home.join("registry/src");
    std::fs::read_dir(registry).ok()?.flatten().map(|entry| entry.path()).find(|path| path.is_dir())
}

fn measure_search(binary: &Path, effort: &Effort, table: &mut BenchTable) {
    let Some(tree) = real_tree() else {
        return table.note("no sources of dependencies here: search was not measured".to_owned());
    };
    if Command::new("rg").arg("--version").output().is_err() {
        return table.note("ripgrep is not installed: search was not measured".to_owned());
    }
    eprintln!("searches in {}", tree.display());
    let rg = |arguments: &[&str]| {
        let mut command = Command::new("rg");
        command.args(arguments).arg("--no-require-git").arg(".").current_dir(&tree);
        command.stdout(std::process::Stdio::null());
        command
    };
    type BenchRow<'a> = (&'a str, &'a str, Value, &'a [&'a str]);
    let rows: [BenchRow<'_>; 3] = [
        (
            "search of a rare text",
            "search",
            json!({ "pattern": "forward_to_deserialize_any_helper" }),
            &["-n", "forward_to_deserialize_any_helper"],
        ),
        (
            "search of a common pattern",
            "search",
            json!({ "pattern": "impl<T> \\w+ for" }),
            &["-n", "impl<T> \\w+ for"],
        ),
        ("glob of all Rust files", "glob", json!({ "pattern": "**/*.rs" }), &["--files", "-g", "*.rs"]),
    ];
    for (what, name, arguments, beside) in rows {
        let (mut ours, mut theirs) = (Samples::default(), Samples::default());
        for _ in 0..effort.runs.max(10) {
            theirs.push(time_program(&mut rg(beside)));
            ours.push(time_program(&mut tool(binary, &tree, name, &arguments)));
        }
        table.time(what, &ours, ("rg", theirs.median()), &Goal::Ratio(1.2));
    }
}

/// The first lines of a file of 1 GB.
fn measure_window(binary: &Path, effort: &Effort, table: &mut BenchTable) {
    eprintln!("a window of a file of 1 GB");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("big.txt");
    let mut file = std::fs::File::create(&path).expect("a file");
    let line = "all work and no play makes a long file, and a longer one still\n".repeat(1000);
    while file.metadata().expect("its size").len() < 1 << 30 {
        file.write_all(line.as_bytes()).expect("room for 1 GB");
    }
    let arguments = json!({ "path": "big.txt", "offset": 20, "limit": 50 });
    if !tool(binary, folder.path(), "view", &arguments).status().is_ok_and(|status| status.success()) {
        return table.note("a window of a file of 1 GB cannot be viewed".to_owned());
    }
    let (mut ours, mut theirs) = (Samples::default(), Samples::default());
    for _ in 0..effort.runs {
        theirs.push(time_program(
            Command::new("head").args(["-n", "50"]).arg(&path).stdout(std::process::Stdio::null()),
        ));
        ours.push(time_program(&mut tool(binary, folder.path(), "view", &arguments)));
    }
    table.time(
        "view of 50 lines of 1 GB",
        &ours,
        ("head -n 50", theirs.median()),
        &Goal::Time(Duration::from_millis(100)),
    );
}

/// The time of the calls of a run, in milliseconds.
fn call_times(binary: &Path, folder: &Path, script: Script) -> Vec<f64> {
    let model =
        FakeModel::start(script.answer(done("ok")), Options { keep_bodies: false, ..Options::default() });
    let lathe = Lathe::new(binary).in_dir(folder);
    let ran = lathe
        .args(["run", "hi", "--mode", "full-auto", "--max-steps", "200", "--output", "stream-json"])
        .with_model(&model)
        .run();
    let events = ran.expect_code(0).events();
    let finished = events.iter().filter(|event| event["kind"] == "call_finished");
    finished.filter_map(|event| event["body"]["took_ms"].as_f64()).collect()
}

fn median(mut values: Vec<f64>) -> Duration {
    values.sort_by(f64::total_cmp);
    Duration::from_secs_f64(values.get(values.len() / 2).copied().unwrap_or_default() / 1000.0)
}

fn samples(values: &[f64]) -> Samples {
    let mut samples = Samples::default();
    values.iter().for_each(|ms| samples.push(Duration::from_secs_f64(ms / 1000.0)));
    samples
}

/// A line that changes one file, in a tree of 50,000 and in one of ten; and the first line, which waits until all is secured.
fn measure_tracking(binary: &Path, table: &mut BenchTable) {
    eprintln!("shell lines in a tree of {FILES} files");
    let lines = || {
        Script::repeat(CALLS, |k| {
            call(&format!("c{k}"), "bash", json!({ "command": format!("echo {k} > changed.txt") }))
        })
    };
    let small = tempfile::tempdir().expect("a folder");
    let bare = call_times(binary, small.path(), lines());
    for git in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        for n in 0..FILES {
            let inside = folder.path().join(format!("d{}", n % 500));
            if n < 500 {
                std::fs::create_dir(&inside).expect("a folder");
            }
            std::fs::write(inside.join(format!("f{n}.txt")), format!("file {n}\n").repeat(20))
                .expect("a file");
        }
        if git {
            for arguments in [
                vec!["init", "-q"],
                vec!["add", "."],
                vec!["-c", "user.name=a", "-c", "user.email=b", "commit", "-qm", "x"],
            ] {
                let _ = Command::new("git").args(arguments).current_dir(folder.path()).status();
            }
        }
        let ours = call_times(binary, folder.path(), lines());
        let (first, rest) =
            ours.split_first().map_or((0.0, Vec::new()), |(first, rest)| (*first, rest.to_vec()));
        let (what, limit) = if git { ("with git", 500) } else { ("without git", 2500) };
        let beside = ("in ten files", median(bare.clone()));
        table.time(
            &format!("first line in 50,000 files {what}"),
            &samples(&[first]),
            beside,
            &Goal::Time(Duration::from_millis(limit)),
        );
        let rest = rest.get(..CALLS - 1).unwrap_or(&rest).to_vec();
        let goal = Goal::Time(median(bare.clone()) + Duration::from_millis(30));
        table.time(&format!("line that changes one file {what}"), &samples(&rest), beside, &goal);
    }
}
