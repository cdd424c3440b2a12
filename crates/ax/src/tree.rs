//! The processes below this one, read from /proc.

use std::collections::HashSet;
use std::ffi::c_int;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A process id with its start time, since ids are reused.
pub type Process = (c_int, u64);

pub struct Live {
    pub process: Process,
    pub parent: c_int,
    /// The letter of /proc/pid/stat.
    state: char,
}

impl Live {
    pub fn is_halted(&self) -> bool {
        is_halt(self.state)
    }
}

/// All live descendants of this process without `shell` itself, and without the trees in `skip`.
/// Parents come before their children, so that a killed parent cannot fork replacements.
pub fn live(shell: c_int, skip: &HashSet<Process>) -> Vec<Live> {
    let mut found = Vec::new();
    let mut parents = vec![std::process::id() as c_int];
    while let Some(parent) = parents.pop() {
        for pid in children(parent) {
            if pid == shell {
                parents.push(pid);
            } else if let Some((state, start)) = alive(pid)
                && !skip.contains(&(pid, start))
            {
                found.push(Live { process: (pid, start), parent, state });
                parents.push(pid);
            }
        }
    }
    found
}

/// Like [`live`], but an empty result is certain. One pass can miss a process that changes its parent at that moment.
pub fn live_for_certain(shell: c_int, skip: &HashSet<Process>) -> Vec<Live> {
    let found = live(shell, skip);
    if found.is_empty() { live(shell, skip) } else { found }
}

pub fn descendants(shell: c_int, skip: &HashSet<Process>) -> Vec<Process> {
    live(shell, skip).iter().map(|live| live.process).collect()
}

fn children(parent: c_int) -> Vec<c_int> {
    let tasks = format!("/proc/{parent}/task");
    let Ok(main) = fs::read_to_string(format!("{tasks}/{parent}/children")) else {
        // A kernel that does not list children, or a process that has just exited.
        return if Path::new("/proc/thread-self/children").exists() { Vec::new() } else { scan(parent) };
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
    text.split_ascii_whitespace().filter_map(|number| number.parse().ok()).collect()
}

fn scan(parent: c_int) -> Vec<c_int> {
    let parent = parent.to_string();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<c_int>().ok());
    pids.filter(|pid| stat_fields(*pid).is_some_and(|fields| fields.get(1) == Some(&parent))).collect()
}

/// State and start time. None if the process is dead or a zombie.
fn alive(pid: c_int) -> Option<(char, u64)> {
    let fields = stat_fields(pid)?;
    let state = fields.first()?.chars().next()?;
    match state {
        'Z' | 'X' => None,
        _ => Some((state, fields.get(19)?.parse().ok()?)),
    }
}

/// The fields of /proc/pid/stat after the name, which may contain any byte: state, parent, ...
fn stat_fields(pid: c_int) -> Option<Vec<String>> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    Some(fields.split_ascii_whitespace().map(str::to_owned).collect())
}

/// Stopped, or deep in the kernel, from where it returns into the stop.
fn is_halt(state: char) -> bool {
    matches!(state, 'T' | 't' | 'D')
}

/// Tells whether a process is halted. One that has exited is halted too.
pub fn is_halted(pid: c_int) -> bool {
    alive(pid).is_none_or(|(state, _)| is_halt(state))
}

pub fn is_asleep(pid: c_int) -> bool {
    alive(pid).is_some_and(|(state, _)| state == 'S')
}

/// Tells whether the process has a handler for the signal. True if the kernel does not provide that.
pub fn catches(pid: c_int, signal: c_int) -> bool {
    is_in(pid, "SigCgt:", signal).unwrap_or(true)
}

pub fn ignores(pid: c_int, signal: c_int) -> bool {
    is_in(pid, "SigIgn:", signal).unwrap_or(false)
}

fn is_in(pid: c_int, mask: &str, signal: c_int) -> Option<bool> {
    let status = fs::read(format!("/proc/{pid}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    let mask = status.lines().find_map(|line| line.strip_prefix(mask))?;
    let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
    Some(mask & (1 << (signal - 1)) != 0)
}

/// The identity of the program that a process runs.
pub fn program(pid: c_int) -> Option<(u64, u64)> {
    let file = fs::metadata(format!("/proc/{pid}/exe")).ok()?;
    Some((file.dev(), file.ino()))
}

/// Tells whether `reader` holds a pipe that one of the others holds too, and does not just wait for a child.
pub fn may_read_from(reader: c_int, others: &[Live]) -> bool {
    if fs::read(format!("/proc/{reader}/wchan")).is_ok_and(|place| place == b"do_wait") {
        return false;
    }
    let held = pipes(reader);
    let holds = |other: &Live| pipes(other.process.0).iter().any(|pipe| held.contains(pipe));
    !held.is_empty() && others.iter().any(holds)
}

fn pipes(pid: c_int) -> HashSet<PathBuf> {
    let fds = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
    fds.flatten()
        .filter_map(|fd| fs::read_link(fd.path()).ok())
        .filter(|target| target.as_os_str().as_encoded_bytes().starts_with(b"pipe:"))
        .collect()
}
