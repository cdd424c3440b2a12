//! Running processes, from `/proc`.

use std::fs;

/// The process ids and command lines that contain `marker`, this process aside. Zombies have none.
pub fn processes_with(marker: &str) -> Vec<(u32, String)> {
    pids()
        .into_iter()
        .filter(|pid| *pid != std::process::id())
        .filter_map(|pid| {
            let bytes = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let line = String::from_utf8_lossy(&bytes).replace('\0', " ");
            line.contains(marker).then_some((pid, line))
        })
        .collect()
}

/// Tells whether no process has `marker` in its command line.
pub fn no_process_with(marker: &str) -> bool {
    processes_with(marker).is_empty()
}

/// A process and everything below it.
pub fn descendants_of(root: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> =
        pids().into_iter().filter_map(|pid| Some((pid, parent_of(pid)?))).collect();
    let mut found = vec![root];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(parents.iter().filter(|(_, above)| *above == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found
}

fn pids() -> Vec<u32> {
    fs::read_dir("/proc")
        .expect("/proc can be read")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may itself contain some; the parent is the second word after it.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_is_found_by_its_marker_until_it_is_gone() {
        let marker = format!("sleep 86{}", std::process::id());
        assert!(no_process_with(&marker));
        let mut child = Command::new("sh").args(["-c", &format!("{marker}; true")]).spawn().unwrap();
        crate::eventually(std::time::Duration::from_secs(5), "sh and sleep", || {
            descendants_of(child.id()).len() == 2 && !no_process_with(&marker)
        });
        for pid in descendants_of(child.id()) {
            Command::new("sh").args(["-c", &format!("kill -9 {pid}")]).status().unwrap();
        }
        child.wait().unwrap();
        crate::eventually(std::time::Duration::from_secs(5), "the end of both", || no_process_with(&marker));
    }
}
