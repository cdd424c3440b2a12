//! The cost of shell lines in a large repository, compared with a plain walk of it and with the same lines in an
//! empty folder.
//!
//! Four lines are run, two of which change a file. Cold means that the kernel's caches were dropped before, which
//! only root can do. At the end a line removes half of the tree and `lathe undo` restores it.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use lathe_testkit::{FakeModel, Fault, FinishedLathe, Lathe, Options, Script, call, done};
use serde_json::{Value, json};

use super::binary::kilobytes;
use super::samples::{Samples, time, time_program};
use super::table::{BenchTable, Goal, mb};

/// Files in each of the innermost folders.
const FILES_OF_A_FOLDER: usize = 100;
/// Innermost folders below each folder of the root.
const FOLDERS_OF_A_FOLDER: usize = 50;
const LINES: [&str; 4] =
    ["ls | head -n 3", "echo one > first.txt", "cat d0/s0/f0.txt | wc -l", "echo two >> second.txt"];
/// The time that a repository may add to a run, up to a hundred thousand files.
const ADDED_GOAL: Duration = Duration::from_millis(300);
const PEAK_GOAL: u64 = 50_000_000;
/// A cold run against a cold walk.
const COLD_GOAL: f64 = 1.5;

pub fn measure(binary: &Path, sizes: &[usize], rounds: usize, table: &mut BenchTable) {
    for files in sizes {
        eprintln!("a repository of {files} files");
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        repository(folder.path(), *files);
        measure_lines(binary, folder.path(), *files, rounds, table);
        measure_removal(binary, folder.path(), *files, table);
    }
}

/// Makes a repository whose work tree is clean. The objects are one pack, as after a clone.
fn repository(root: &Path, files: usize) {
    git(root, &["init", "--quiet", "--initial-branch=main"]);
    let mut import = Command::new("git")
        .args(["fast-import", "--quiet"])
        .current_dir(root)
        .stdin(Stdio::piped())
        .spawn()
        .expect("git can be started");
    let mut stream = std::io::BufWriter::new(import.stdin.take().expect("stdin is a pipe"));
    writeln!(stream, "commit refs/heads/main\ncommitter a <b> 1767225600 +0000\ndata 1\nx")
        .expect("git reads");
    for number in 0..files {
        let text = format!("line of {number}\n").repeat(5);
        let path = path_of(number);
        write!(stream, "M 644 inline {path}\ndata {}\n{text}\n", text.len()).expect("git reads");
    }
    drop(stream.into_inner().expect("git reads"));
    assert!(import.wait().expect("git ends").success(), "git fast-import failed");
    git(root, &["reset", "--quiet", "--hard"]);
}

fn path_of(number: usize) -> String {
    let folder = number / FILES_OF_A_FOLDER;
    format!("d{}/s{}/f{number}.txt", folder / FOLDERS_OF_A_FOLDER, folder % FOLDERS_OF_A_FOLDER)
}

fn git(root: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git").args(arguments).current_dir(root).output().expect("git can be started");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn measure_lines(binary: &Path, root: &Path, files: usize, rounds: usize, table: &mut BenchTable) {
    let empty = tempfile::tempdir().expect("a temporary folder can be made");
    std::fs::create_dir_all(empty.path().join("d0/s0")).expect("a folder can be made");
    std::fs::write(empty.path().join("d0/s0/f0.txt"), "x\n").expect("a file can be written");
    let (mut warm, mut bare, mut walk) = (Samples::default(), Samples::default(), Samples::default());
    assert!(count_files(root) > 0);
    for _ in 0..rounds {
        bare.push(run_lines(binary, empty.path()));
        walk.push(time(|| assert!(count_files(root) > 0)));
        warm.push(run_lines(binary, root));
    }
    let goal = Goal::Time(bare.median() + ADDED_GOAL);
    table.time(
        &format!("four lines, {files} files, warm"),
        &warm,
        ("in an empty folder", bare.median()),
        &goal,
    );
    table.time(
        "  the same",
        &warm,
        ("a plain walk of the tree", walk.median()),
        &Goal::Time(bare.median() + ADDED_GOAL),
    );
    let (peak, shares) = peak_and_shares(binary, root);
    table.amount(
        "  peak memory of lathe",
        mb(peak),
        ("in an empty folder", mb(peak_and_shares(binary, empty.path()).0)),
        mb(PEAK_GOAL),
        Some(peak <= PEAK_GOAL),
    );
    table.note(format!("{files} files, proportional shares of memory after the lines: {shares}"));
    measure_cold(binary, root, empty.path(), files, rounds, table);
}

/// Adds the rows with caches dropped; the time of the same run in an empty folder is taken off.
fn measure_cold(
    binary: &Path,
    root: &Path,
    empty: &Path,
    files: usize,
    rounds: usize,
    table: &mut BenchTable,
) {
    if !drop_caches() {
        return table.note("only root can drop the kernel's caches: nothing cold was measured".to_owned());
    }
    let (mut run, mut bare, mut walk) = (Samples::default(), Samples::default(), Samples::default());
    for _ in 0..rounds.min(3) {
        drop_caches();
        bare.push(run_lines(binary, empty));
        drop_caches();
        walk.push(time(|| assert!(count_files(root) > 0)));
        drop_caches();
        run.push(run_lines(binary, root));
    }
    let mut added = Samples::default();
    added.push(run.median().saturating_sub(bare.median()));
    table.time(
        &format!("four lines, {files} files, cold, less an empty folder"),
        &added,
        ("a cold walk of the tree", walk.median()),
        &Goal::Ratio(COLD_GOAL),
    );
}

fn drop_caches() -> bool {
    Command::new("sync").status().is_ok_and(|status| status.success())
        && std::fs::write("/proc/sys/vm/drop_caches", "3").is_ok()
}

/// Reads the metadata of everything, in one thread, and counts it.
fn count_files(folder: &Path) -> usize {
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("a folder can be read").flatten() {
        count += 1;
        if entry.metadata().is_ok_and(|metadata| metadata.is_dir()) && entry.file_name() != ".git" {
            count += count_files(&entry.path());
        }
    }
    count
}

fn script() -> Script {
    LINES.iter().enumerate().fold(Script::new(), |script, (number, line)| {
        script.answer(call(&format!("c{number}"), "bash", json!({ "command": line })))
    })
}

fn run_command(binary: &Path, root: &Path, model: &FakeModel) -> Lathe {
    Lathe::new(binary)
        .in_dir(root)
        .args(["run", "hi", "--mode", "full-auto"])
        .with_model(model)
        .timeout(Duration::from_secs(1800))
}

fn run_lines(binary: &Path, root: &Path) -> Duration {
    let model =
        FakeModel::start(script().answer(done("ok")), Options { keep_bodies: false, ..Options::default() });
    time_program(&mut run_command(binary, root, &model).command())
}

/// Returns the peak of the program's own resident memory, and the shares of all its processes in words.
fn peak_and_shares(binary: &Path, root: &Path) -> (u64, String) {
    let last = done("ok").fails(1, Fault::Stall(Duration::from_secs(2)));
    let model = FakeModel::start(script().answer(last), Options { keep_bodies: false, ..Options::default() });
    let running = run_command(binary, root, &model).spawn();
    model.wait_for_requests(LINES.len() + 1, Duration::from_secs(600));
    std::thread::sleep(Duration::from_millis(200));
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.pid())).unwrap_or_default();
    let mut shares = Vec::new();
    for pid in lathe_testkit::descendants_of(running.pid()) {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        if let Some(bytes) = kilobytes(&rollup, "Pss:") {
            shares.push(format!("{} {}", name.trim(), mb(bytes)));
        }
    }
    running.wait().expect_code(0);
    (kilobytes(&status, "VmHWM:").unwrap_or_default(), shares.join(", "))
}

/// Removes half of the tree by a line, and brings it back.
fn measure_removal(binary: &Path, root: &Path, files: usize, table: &mut BenchTable) {
    git(root, &["clean", "-fdq"]);
    let folders = std::fs::read_dir(root).expect("a folder can be read").count() - 1;
    let names: Vec<String> = (0..folders / 2).map(|number| format!("d{number}")).collect();
    let line = format!("rm -rf {}", names.join(" "));
    let script = Script::new().answer(call("c0", "bash", json!({ "command": line }))).answer(done("ok"));
    let model = FakeModel::start(script, Options { keep_bodies: false, ..Options::default() });
    let lathe = Lathe::new(binary).in_dir(root).timeout(Duration::from_secs(1800));
    let run = lathe
        .clone()
        .args(["run", "hi", "--mode", "full-auto", "--output", "stream-json"])
        .with_model(&model);
    let (mut removed, mut undone) = (Samples::default(), Samples::default());
    let mut ran: Option<FinishedLathe> = None;
    removed.push(time(|| ran = Some(run.run().expect_code(0))));
    let told = not_undoable(&ran.expect("it ran").events());
    let gone = git(root, &["status", "--porcelain"]).lines().count();
    undone.push(time(|| drop(lathe.clone().arg("undo").run())));
    let missing = git(root, &["status", "--porcelain"]).lines().count();
    let goal = Goal::Time(Duration::from_secs(600));
    table.time(
        &format!("rm -rf of {gone} of {files} files, whole run"),
        &removed,
        ("lathe undo of it", undone.median()),
        &goal,
    );
    table.amount(
        "  not brought back by undo",
        missing.to_string(),
        ("told beforehand as not undoable", told),
        "0".to_owned(),
        (files <= 500_000).then_some(missing == 0),
    );
    git(root, &["reset", "--quiet", "--hard"]);
}

/// Returns what the events name as not undoable; a long list ends in the number of the rest.
fn not_undoable(events: &[Value]) -> String {
    let lists = events.iter().filter_map(|event| event["body"]["not_undoable"].as_array());
    let last = lists.flatten().filter_map(Value::as_str).next_back();
    last.unwrap_or("nothing").to_owned()
}
