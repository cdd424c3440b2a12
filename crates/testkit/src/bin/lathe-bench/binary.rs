//! The cost of the binary before it does anything: start, memory, size, relocations.

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use lathe_testkit::Lathe;

use super::Effort;
use super::samples::{Samples, time_program};
use super::table::{BenchTable, Goal, mb};

/// The limit for parts one to eleven.
const SIZE_GOAL: u64 = 60_000_000;
const PEAK_GOAL: u64 = 5_000_000;
const RELOCATIONS_GOAL: u64 = 50_000;

pub fn measure(binary: &Path, effort: &Effort, table: &mut BenchTable) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let empty = compile(folder.path(), "empty", "fn main() {}");
    let printing = compile(folder.path(), "printing", "fn main() { println!(\"0.0.0\"); }");
    let lathe = Lathe::new(binary).arg("--version");

    eprintln!("lathe --version, {} times", effort.starts);
    let (mut version, mut bare) = (Samples::default(), Samples::default());
    for _ in 0..effort.starts {
        bare.push(time_program(&mut Command::new(&empty)));
        version.push(time_program(&mut lathe.command()));
    }
    table.time("lathe --version", &version, ("an empty Rust program", bare.median()), &Goal::Ratio(2.0));

    let shown = |peak: Option<u64>| peak.map_or("unknown".to_owned(), mb);
    let soon = Duration::from_millis(100);
    let peak = peak_memory(&mut lathe.command(), soon);
    table.amount(
        "  its peak memory",
        shown(peak),
        ("a Rust program that prints", shown(peak_memory(&mut Command::new(&printing), soon))),
        mb(PEAK_GOAL),
        peak.map(|peak| peak <= PEAK_GOAL),
    );

    let size = std::fs::metadata(binary).expect("the binary is there").len();
    table.count("size of the binary", size);
    table.count("dynamic relocations", relocations(binary).unwrap_or_default());
    table.count("peak memory of lathe --version", peak.unwrap_or_default());
    table.amount("size of the binary", mb(size), ("", String::new()), mb(SIZE_GOAL), Some(size <= SIZE_GOAL));

    let count = |path: &Path| relocations(path).map_or("unknown".to_owned(), |count| count.to_string());
    table.amount(
        "dynamic relocations",
        count(binary),
        ("an empty Rust program", count(&empty)),
        RELOCATIONS_GOAL.to_string(),
        relocations(binary).map(|count| count <= RELOCATIONS_GOAL),
    );
}

fn compile(folder: &Path, name: &str, text: &str) -> PathBuf {
    let source = folder.join(format!("{name}.rs"));
    let program = folder.join(name);
    std::fs::write(&source, text).expect("a file can be written");
    let status = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args(["-O", "-C", "strip=symbols", "--edition", "2024", "-o"])
        .arg(&program)
        .arg(&source)
        .status()
        .expect("rustc can be run");
    assert!(status.success(), "rustc failed");
    program
}

/// The peak resident memory of a program that prints, at the latest after `busy`, and ends.
///
/// The kernel's figure for a dead child would need `wait4`, and would count this process's own pages too (the child
/// shares them until it execs). So the program is held alive: where it prints is a pipe that is already full.
pub fn peak_memory(command: &mut Command, busy: Duration) -> Option<u64> {
    let (mut reader, writer): (PipeReader, PipeWriter) = std::io::pipe().ok()?;
    let mut filler = writer.try_clone().ok()?;
    // The size of a pipe is not known here; the bytes that do not fit stay with this thread until the pipe is read.
    let fill = std::thread::spawn(move || filler.write_all(&[b'.'; 64 * 1024]));
    std::thread::sleep(Duration::from_millis(20));
    let errors = writer.try_clone().ok()?;
    let mut child = command.stdout(Stdio::from(writer)).stderr(Stdio::from(errors)).spawn().ok()?;
    // `command` keeps a copy of the writing end, which would keep the reader below from ever seeing the end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    std::thread::sleep(busy);
    let peak = status_bytes(child.id(), "VmHWM:");
    reader.read_to_end(&mut Vec::new()).ok()?;
    child.wait().ok()?;
    fill.join().ok()?.ok()?;
    peak
}

fn status_bytes(pid: u32, field: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    kilobytes(&status, field)
}

/// The bytes of a `Field:   123 kB` line.
pub fn kilobytes(text: &str, field: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    let count: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(count * 1024)
}

/// The number of places the loader must relocate before `main`.
fn relocations(binary: &Path) -> Option<u64> {
    let output =
        Command::new("readelf").args(["--relocs", "--wide"]).arg(binary).env("LC_ALL", "C").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let counts = text.lines().filter(|line| line.starts_with("Relocation section")).filter_map(|line| {
        // "… contains 9 entries:", and for packed ones "… contains 9 entries which relocate 99 locations:".
        let after = line.split_once(" relocate ").or_else(|| line.split_once(" contains "))?.1;
        after.split(' ').next()?.parse::<u64>().ok()
    });
    Some(counts.sum())
}
