//! The processes below this one, read from /proc.

use std::collections::HashSet;
use std::ffi::c_int;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A process id with its start time, since ids are used again.
pub type Process = (c_int, u64);

/// All live descendants of this process without `shell` itself, and without the trees in `skip`.
/// Parents come before their children, so that a killed parent cannot fork replacements.
pub fn descendants(shell: c_int, skip: &HashSet<Process>) -> Vec<Process> {
    let mut found = Vec::new();
    let mut parents = vec![std::process::id() as c_int];
    while let Some(parent) = parents.pop() {
        for pid in children(parent) {
            if pid == shell {
                parents.push(pid);
            } else if let Some(start) = alive_since(pid)
                && !skip.contains(&(pid, start))
            {
                found.push((pid, start));
                parents.push(pid);
            }
        }
    }
    found
}

fn children(parent: c_int) -> Vec<c_int> {
    let tasks = format!("/proc/{parent}/task");
    let Ok(main) = fs::read_to_string(format!("{tasks}/{parent}/children")) else {
        // A kernel that does not list children, or a process that has just gone.
        return if Path::new("/proc/thread-self/children").exists() {
            Vec::new()
        } else {
            scan(parent)
        };
    };
    let mut found = numbers(&main);
    // Two links and one per thread: each thread has its own children.
    if fs::metadata(&tasks).is_ok_and(|tasks| tasks.nlink() > 3) {
        for task in fs::read_dir(&tasks).into_iter().flatten().flatten() {
            if task.file_name() != *parent.to_string() {
                let list = fs::read_to_string(task.path().join("children"));
                found.extend(numbers(&list.unwrap_or_default()));
            }
        }
    }
    found
}

fn numbers(text: &str) -> Vec<c_int> {
    text.split_ascii_whitespace()
        .filter_map(|number| number.parse().ok())
        .collect()
}

fn scan(parent: c_int) -> Vec<c_int> {
    let parent = parent.to_string();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<c_int>().ok());
    pids.filter(|pid| stat_fields(*pid).is_some_and(|fields| fields.get(1) == Some(&parent)))
        .collect()
}

/// The start time, unless the process is dead or only waits to be reaped.
fn alive_since(pid: c_int) -> Option<u64> {
    let fields = stat_fields(pid)?;
    match fields.first()?.as_str() {
        "Z" | "X" => None,
        _ => fields.get(19)?.parse().ok(),
    }
}

/// The fields of /proc/pid/stat after the name, which may hold any byte: state, parent, ...
fn stat_fields(pid: c_int) -> Option<Vec<String>> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    Some(fields.split_ascii_whitespace().map(str::to_owned).collect())
}
