//! The watch over what the processes of a jail use together, while they run.
//!
//! It looks a few times each second: at the processes that descend from the jail's first one, and at the disks that
//! they can write. It works for every user and on every machine, and it knows the cause, so it is the usual way in
//! which a line meets a limit. The kernel's own limits (`group.rs`, limits of single processes) are a little higher
//! and hold between two looks.
//!
//! The growth of a disk is measured as a whole, since a count of all files of a workspace would cost more than the
//! lines. So that a session does not answer for what another one writes, growth counts against a jail only if its
//! processes wrote a good part of the limit themselves. A nearly full disk stops every line during which it grew.
//!
//! Rejected: limits of address space for single processes. The runtimes of Go, Java and JavaScript reserve far more
//! than they use.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use nix::libc;
use nix::time::{ClockId, clock_gettime};
use rustix::fs::{stat, statvfs};
use tokio::task::{JoinHandle, spawn_blocking};

use super::group::{Group, GroupEvents};
use super::limits::{Breach, JailLimits};

/// The time between two looks.
const TICK: Duration = Duration::from_millis(200);
const LONGEST_TICK: Duration = Duration::from_secs(1);
/// The watch takes at most one part in this many of a processor's time.
const SHARE: u32 = 10;
/// The part of the limit of a disk that a jail must have written itself.
const OWN_PART: u64 = 4;
/// The space and the number of files that are left on every disk, unless a fiftieth or a twentieth of it is less.
const SPACE_LEFT: u64 = 512 << 20;
const FILES_LEFT: u64 = 100_000;
/// Growth that counts on a nearly full disk.
const GROWTH: u64 = 16 << 20;
const FILES_GROWTH: u64 = 1000;
/// The exit code of a shell for a program that wrote more than the limit of a file.
const FILE_TOO_LARGE: i32 = 128 + libc::SIGXFSZ;
/// Looks until memory is counted exactly again, which takes long for many large processes.
const PATIENCE: u32 = 5;

/// The watch over one jail, or over nothing.
#[derive(Clone)]
pub struct JailWatch(Arc<Watched>);

struct Watched {
    /// The process on this machine that all others descend from.
    root: i32,
    limits: JailLimits,
    /// Places on the disks that can be written.
    places: Vec<PathBuf>,
    /// It lives as long as the jail, whatever becomes of a child.
    group: Option<Weak<Group>>,
}

/// A span of time in which processes are watched, such as that of a line.
pub struct WatchedSpan {
    watched: Arc<Watched>,
    disks: Option<JoinHandle<Vec<DiskUse>>>,
    events: GroupEvents,
}

/// The use of a disk at the beginning of a span.
struct DiskUse {
    place: PathBuf,
    space: u64,
    files: u64,
}

impl JailWatch {
    pub(super) fn over(
        root: i32,
        limits: JailLimits,
        places: Vec<PathBuf>,
        group: Option<Weak<Group>>,
    ) -> Self {
        Self(Arc::new(Watched { root, limits, places, group }))
    }

    /// Begins a span. The use of the disks is read in the background.
    pub fn begin(&self) -> WatchedSpan {
        let watched = Arc::clone(&self.0);
        let events = watched.events();
        let disks = spawn_blocking(move || watched.disks());
        WatchedSpan { watched: Arc::clone(&self.0), disks: Some(disks), events }
    }
}

impl WatchedSpan {
    /// Waits until a limit is passed, which may be never.
    pub async fn breach(&mut self) -> Breach {
        let disks = match self.disks.take() {
            Some(disks) => disks.await.unwrap_or_default(),
            None => Vec::new(),
        };
        let (disks, mut skipped, mut took) = (Arc::new(disks), PATIENCE, Duration::ZERO);
        loop {
            tokio::time::sleep((took * SHARE).clamp(TICK, LONGEST_TICK)).await;
            let (watched, before) = (Arc::clone(&self.watched), Arc::clone(&disks));
            let look = move || {
                let began = processor_time();
                let passed = watched.passed(&before, &mut skipped);
                (passed, skipped, processor_time().saturating_sub(began))
            };
            // A look that broke down is made again.
            let Ok((passed, count, time)) = spawn_blocking(look).await else { continue };
            if let Some(breach) = passed {
                return breach;
            }
            (skipped, took) = (count, time);
        }
    }

    /// The limit that the kernel enforced in this span, if the end of the processes shows that one did.
    pub fn enforced(&self, code: i32) -> Option<Breach> {
        let JailLimits { memory, processes, file, .. } = self.watched.limits;
        let events = self.watched.events();
        match code {
            0 => None,
            _ if events.killed_for_memory > self.events.killed_for_memory => {
                Some(Breach::Memory { limit: memory })
            }
            _ if events.refused_processes > self.events.refused_processes => {
                Some(Breach::Processes { limit: processes })
            }
            FILE_TOO_LARGE => Some(Breach::File { limit: file }),
            _ => None,
        }
    }

    /// Tells whether the processes that are left still pass a limit. The author of what is on a disk is not known.
    pub async fn still_passes(&self, breach: Breach) -> bool {
        match breach {
            Breach::Memory { .. } | Breach::Processes { .. } => {
                let watched = Arc::clone(&self.watched);
                spawn_blocking(move || watched.passed(&[], &mut { PATIENCE }).is_some()).await.unwrap_or(true)
            }
            Breach::Disk { .. }
            | Breach::Files { .. }
            | Breach::File { .. }
            | Breach::FullDisk { .. }
            | Breach::FewFilesLeft { .. } => true,
        }
    }
}

/// The time that a processor spent on this thread.
fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// Waits until a limit is passed; for ever if nothing is watched.
pub async fn breach_of(span: &mut Option<WatchedSpan>) -> Breach {
    match span {
        Some(span) => span.breach().await,
        None => std::future::pending().await,
    }
}

impl Watched {
    fn events(&self) -> GroupEvents {
        let group = self.group.as_ref().and_then(Weak::upgrade);
        group.map_or_else(GroupEvents::default, |group| group.events())
    }

    /// The use of each disk.
    fn disks(&self) -> Vec<DiskUse> {
        let mut found = BTreeMap::new();
        for place in &self.places {
            if let Ok(device) = stat(place).map(|found| found.st_dev) {
                found.entry(device).or_insert_with(|| place.clone());
            }
        }
        let used = |place: PathBuf| {
            let disk = statvfs(&place).ok()?;
            let space = disk.f_blocks.saturating_sub(disk.f_bfree).saturating_mul(disk.f_frsize);
            Some(DiskUse { place, space, files: disk.f_files.saturating_sub(disk.f_ffree) })
        };
        found.into_values().filter_map(used).collect()
    }

    /// The first limit that is passed. `skipped` is the number of looks since memory was counted exactly.
    fn passed(&self, before: &[DiskUse], skipped: &mut u32) -> Option<Breach> {
        let JailLimits { memory, processes, .. } = self.limits;
        let tree = Tree::below(self.root, processes);
        if tree.threads > processes {
            return Some(Breach::Processes { limit: processes });
        }
        *skipped = skipped.saturating_add(1);
        if tree.memory(Count::Quick) > memory && *skipped > PATIENCE {
            if tree.memory(Count::Exact) > memory {
                return Some(Breach::Memory { limit: memory });
            }
            *skipped = 0;
        }
        before.iter().find_map(|disk| self.passed_on(disk, &tree))
    }

    fn passed_on(&self, before: &DiskUse, tree: &Tree) -> Option<Breach> {
        let JailLimits { disk, files, .. } = self.limits;
        let now = statvfs(&before.place).ok()?;
        let space = now.f_blocks.saturating_sub(now.f_bfree).saturating_mul(now.f_frsize);
        let (grown, made) = (
            space.saturating_sub(before.space),
            now.f_files.saturating_sub(now.f_ffree).saturating_sub(before.files),
        );
        let left = now.f_bavail.saturating_mul(now.f_frsize);
        let whole = now.f_blocks.saturating_mul(now.f_frsize);
        if grown >= GROWTH && left < SPACE_LEFT.min(whole / 50) {
            return Some(Breach::FullDisk { left });
        }
        if made >= FILES_GROWTH && now.f_favail < FILES_LEFT.min(now.f_files / 20) {
            return Some(Breach::FewFilesLeft { left: now.f_favail });
        }
        if grown > disk && tree.written().is_none_or(|bytes| bytes > disk / OWN_PART) {
            return Some(Breach::Disk { limit: disk });
        }
        (made > files).then_some(Breach::Files { limit: files })
    }
}

/// The ways to count memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Count {
    /// Memory that processes share after a fork counts for each of them.
    Quick,
    /// Memory that processes share counts once.
    Exact,
}

/// The processes below one, itself included.
struct Tree {
    processes: Vec<i32>,
    threads: u64,
}

impl Tree {
    /// Stops soon after `most` threads, so that a look at very many processes takes no longer.
    fn below(root: i32, most: u64) -> Self {
        let mut tree = Self { processes: vec![root], threads: 0 };
        let mut parents = None;
        let mut next = 0;
        while let Some(pid) = tree.processes.get(next).copied()
            && tree.threads <= most
        {
            next += 1;
            for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
                tree.threads += 1;
                match fs::read_to_string(task.path().join("children")) {
                    Ok(children) => {
                        tree.processes
                            .extend(children.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
                    }
                    // The kernel has no such file, or the thread has ended.
                    Err(_) if fs::exists("/proc/thread-self/children").unwrap_or(true) => {}
                    Err(_) => {
                        let children = parents.get_or_insert_with(children_of_all).remove(&pid);
                        tree.processes.extend(children.into_iter().flatten());
                    }
                }
            }
        }
        tree
    }

    /// Bytes of memory that only these processes hold.
    fn memory(&self, count: Count) -> u64 {
        let of = |pid: &i32| match count {
            Count::Exact => exact_memory(*pid).or_else(|| quick_memory(*pid)),
            Count::Quick => quick_memory(*pid),
        };
        let held: u64 = self.processes.iter().filter_map(of).sum();
        held + self.processes.last().map_or(0, |pid| files_in_memory(*pid))
    }

    /// Bytes that these processes and their ended children wrote to disks. None if the kernel does not count them.
    fn written(&self) -> Option<u64> {
        let of = |pid: &i32| {
            let text = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
            let value = |key: &str| -> Option<u64> {
                text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok())
            };
            Some(value("write_bytes:")?.saturating_sub(value("cancelled_write_bytes:")?))
        };
        let counts: Vec<u64> = self.processes.iter().filter_map(of).collect();
        (!counts.is_empty()).then(|| counts.iter().sum())
    }
}

/// The processes of this machine, by their parent.
fn children_of_all() -> BTreeMap<i32, Vec<i32>> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(line) = fs::read_to_string(entry.path().join("stat")) else { continue };
        // The name may have any character; the state and the parent follow its last bracket.
        let parent = line.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok());
        parent.into_iter().for_each(|parent| children.entry(parent).or_default().push(pid));
    }
    children
}

/// The sum of some rows of a file of /proc, in bytes.
fn kilobytes(text: &str, keys: &[&str]) -> u64 {
    let value = |line: &str| -> Option<u64> {
        let rest = keys.iter().find_map(|key| line.strip_prefix(key)?.strip_prefix(':'))?;
        rest.trim().strip_suffix("kB")?.trim().parse().ok()
    };
    text.lines().filter_map(value).sum::<u64>().saturating_mul(1024)
}

fn quick_memory(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(kilobytes(&text, &["RssAnon", "RssShmem", "VmSwap"]))
}

fn exact_memory(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    Some(kilobytes(&text, &["Pss_Anon", "Pss_Shmem", "SwapPss"]))
}

/// Bytes of files that a process sees in folders which are memory and which only its jail has.
fn files_in_memory(pid: i32) -> u64 {
    let of = |name: &str| {
        let place = PathBuf::from(format!("/proc/{pid}/root{name}"));
        let (theirs, ours) = (stat(&place).ok()?.st_dev, stat(name).ok()?.st_dev);
        let found = statvfs(&place).ok().filter(|_| theirs != ours)?;
        Some(found.f_blocks.saturating_sub(found.f_bfree).saturating_mul(found.f_frsize))
    };
    ["/dev", "/run"].iter().filter_map(|name| of(name)).sum()
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    const NONE: JailLimits =
        JailLimits { memory: u64::MAX, processes: u64::MAX, disk: u64::MAX, files: u64::MAX, file: u64::MAX };

    fn watched(root: i32, limits: JailLimits) -> Watched {
        Watched { root, limits, places: vec!["/".into(), "/".into(), "/no/such".into()], group: None }
    }

    /// A shell with three naps below it.
    fn naps() -> (Child, i32) {
        use std::io::BufRead as _;
        let script = "sleep 97.5 & sleep 97.5 & (sleep 97.5; true) & echo begun; wait";
        let mut child = Command::new("/bin/sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        (child, pid)
    }

    fn end(mut child: Child, pid: i32) {
        for pid in Tree::below(pid, 100).processes {
            let _ =
                nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL);
        }
        child.wait().unwrap();
    }

    #[test]
    fn all_descendants_are_counted() {
        let (child, pid) = naps();
        let tree = Tree::below(pid, 100);
        assert!((4..=5).contains(&tree.processes.len()), "{:?}", tree.processes);
        assert_eq!(tree.threads, tree.processes.len() as u64);
        let others = children_of_all();
        assert_eq!(others.get(&pid).map(Vec::len), Some(3));
        assert!(tree.memory(Count::Quick) > 0 && tree.memory(Count::Exact) <= tree.memory(Count::Quick));
        assert_eq!(Tree::below(pid, 2).processes.len().min(4), 4, "it sees the children of what it counted");
        end(child, pid);
    }

    #[test]
    fn the_limit_that_is_passed_is_found() {
        let (child, pid) = naps();
        let passed = |limits| {
            let watched = watched(pid, limits);
            watched.passed(&watched.disks(), &mut { PATIENCE })
        };
        assert_eq!(passed(NONE), None);
        assert_eq!(passed(JailLimits { processes: 3, ..NONE }), Some(Breach::Processes { limit: 3 }));
        assert_eq!(passed(JailLimits { memory: 4096, ..NONE }), Some(Breach::Memory { limit: 4096 }));
        end(child, pid);
    }

    #[test]
    fn each_disk_is_looked_at_once() {
        let disks = watched(1, NONE).disks();
        assert_eq!(disks.len(), 1);
        let whole = disks.into_iter().map(|disk| DiskUse { space: 0, files: 0, ..disk }).next().unwrap();
        let limits = JailLimits { disk: 1, files: 1, ..NONE };
        let own = std::process::id() as i32;
        let wrote_nothing = Tree { processes: Vec::new(), threads: 0 };
        assert!(watched(own, limits).passed_on(&whole, &wrote_nothing).is_some());
        assert_eq!(watched(own, NONE).passed_on(&whole, &wrote_nothing), None);
    }

    #[test]
    fn the_growth_of_a_disk_by_others_does_not_count() {
        let mut disk = watched(1, NONE).disks().pop().unwrap();
        let limits = JailLimits { disk: disk.space / 2, ..NONE };
        disk.space = 0;
        let own = std::process::id() as i32;
        let innocent = Tree { processes: vec![own], threads: 1 };
        assert!(innocent.written().is_some_and(|bytes| bytes < limits.disk / OWN_PART));
        assert_eq!(watched(own, limits).passed_on(&disk, &innocent), None);
    }

    #[test]
    fn an_exit_code_alone_names_only_the_limit_of_a_file() {
        let watched = Arc::new(watched(1, JailLimits { file: 7, ..NONE }));
        let span = WatchedSpan { watched, disks: None, events: GroupEvents::default() };
        assert_eq!(
            [0, 1, 137, FILE_TOO_LARGE].map(|code| span.enforced(code)),
            [None, None, None, Some(Breach::File { limit: 7 })]
        );
    }
}
