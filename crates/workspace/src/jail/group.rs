//! The control group of a jail, where this user may make one: the kernel then holds the limits of memory and
//! processes by itself. What is left in the group when the jail ends is killed.
//!
//! A group is made where nothing is taken from others:
//!
//! - In version 2 it is made in the nearest folder around this process's group that belongs to this user and gives its
//!   groups controllers, if no group below that folder limits the memory of this process: the jail must not escape
//!   such a limit.
//! - In version 1 it is made only for a controller for which nobody put this process into a group. The owner of
//!   such a group counts and ends the processes in it.
//!
//! Everywhere else the watch and the limits of single processes hold alone. A group that cannot be made or entered is
//! no error for the same reason.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};

use super::limits::{JailLimits, kernel_limit};

const PREFIX: &str = "lathe-jail.";
/// The pause between attempts to remove a group, and the number of attempts: at once, and in the background.
const REMOVE_WAIT: Duration = Duration::from_millis(5);
const REMOVE_TRIES: u32 = 20;
const LATE_TRIES: u32 = 2000;
/// A memory limit above this is none: version 1 has a large number for it.
const UNLIMITED: u64 = 1 << 60;

/// The groups of one jail: one in version 2, one for each controller in version 1.
pub(super) struct Group {
    folders: Vec<PathBuf>,
    /// The files through which a process enters.
    doors: Arc<Vec<File>>,
}

/// The number of times that the kernel acted on a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct GroupEvents {
    pub(super) killed_for_memory: u64,
    pub(super) refused_processes: u64,
}

impl Group {
    /// A group with these limits. None where this user cannot have one.
    pub(super) fn make(limits: &JailLimits) -> Option<Self> {
        let hierarchies = hierarchies();
        let places: Vec<PathBuf> = match hierarchies.iter().find_map(place_in_version_2) {
            Some(place) => vec![place],
            None => hierarchies.iter().filter_map(place_in_version_1).collect(),
        };
        Self::make_in(&places, limits)
    }

    fn make_in(places: &[PathBuf], limits: &JailLimits) -> Option<Self> {
        let name = format!("{PREFIX}{}.{:08x}", std::process::id(), lathe_protocol::random_number() as u32);
        let (mut folders, mut doors) = (Vec::new(), Vec::new());
        for place in places {
            sweep(place);
            let folder = place.join(&name);
            if fs::create_dir(&folder).is_err() {
                continue;
            }
            let memory = kernel_limit(limits.memory).to_string();
            let processes = kernel_limit(limits.processes).to_string();
            // Each controller has some of these files.
            for (file, value) in [
                ("memory.max", memory.as_str()),
                ("memory.limit_in_bytes", &memory),
                ("memory.oom.group", "1"),
                ("pids.max", &processes),
            ] {
                let file = folder.join(file);
                if file.exists() {
                    let _ = fs::write(file, value);
                }
            }
            doors.extend(File::options().write(true).open(folder.join("cgroup.procs")));
            folders.push(folder);
        }
        (!doors.is_empty()).then(|| Self { folders, doors: Arc::new(doors) })
    }

    /// Lets the process of a command enter before its program begins.
    pub(super) fn enter(&self, command: &mut Command) {
        let doors = Arc::clone(&self.doors);
        let enter = move || {
            for door in doors.iter() {
                // SAFETY: an open descriptor and one constant byte. Without the group the other limits hold.
                unsafe { libc::write(door.as_raw_fd(), c"0".as_ptr().cast(), 1) };
            }
            Ok(())
        };
        // SAFETY: between fork and exec only system calls are made: nothing is allocated or locked.
        unsafe { command.pre_exec(enter) };
    }

    pub(super) fn events(&self) -> GroupEvents {
        let count = |file: &str, key: &str| {
            let texts = self.folders.iter().filter_map(|folder| fs::read_to_string(folder.join(file)).ok());
            texts.filter_map(|text| count_of(&text, key)).sum::<u64>()
        };
        GroupEvents {
            killed_for_memory: count("memory.events", "oom_kill") + count("memory.oom_control", "oom_kill"),
            refused_processes: count("pids.events", "max"),
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let mut left = std::mem::take(&mut self.folders);
        // Where there are no namespaces, a daemon could outlive the jail.
        left.iter().for_each(|folder| end_processes(folder));
        if !remove(&mut left, REMOVE_TRIES) {
            // Its processes are still ending. What is left after all attempts is removed by the next jail.
            let remove = move || {
                remove(&mut left, LATE_TRIES);
            };
            let _ = std::thread::Builder::new().name("jail-group".to_owned()).spawn(remove);
        }
    }
}

/// Kills the processes of a group. Those of another namespace have the number 0 here and are left alone.
fn end_processes(folder: &Path) {
    if File::options()
        .write(true)
        .open(folder.join("cgroup.kill"))
        .is_ok_and(|mut file| file.write_all(b"1").is_ok())
    {
        return;
    }
    // A process may start another one meanwhile.
    for _ in 0..REMOVE_TRIES {
        let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
        let pids: Vec<i32> = text.lines().filter_map(|pid| pid.parse().ok()).filter(|pid| *pid > 0).collect();
        if pids.is_empty() {
            return;
        }
        for pid in pids {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

/// Removes these groups, whose processes may be ending. Returns false if one is left.
fn remove(left: &mut Vec<PathBuf>, tries: u32) -> bool {
    for attempt in 0..tries {
        if attempt > 0 {
            std::thread::sleep(REMOVE_WAIT);
        }
        left.retain(|folder| fs::remove_dir(folder).is_err() && folder.exists());
        if left.is_empty() {
            return true;
        }
    }
    false
}

fn count_of(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

/// Removes groups whose process is gone. The kernel refuses to remove one that still has processes.
fn sweep(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('.').next()?.parse().ok());
        if owner.is_some_and(|pid| kill(Pid::from_raw(pid), None) == Err(nix::errno::Errno::ESRCH)) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// A mounted hierarchy of groups.
struct Hierarchy {
    mount: PathBuf,
    /// The folder of this process's group.
    own: PathBuf,
    /// None for version 2, which has all controllers.
    controller: Option<Controller>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Controller {
    Memory,
    Processes,
}

/// The hierarchies with the controllers that matter here.
fn hierarchies() -> Vec<Hierarchy> {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    parse(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"))
}

fn parse(mounts: &str, groups: &str) -> Vec<Hierarchy> {
    let group_of = |controller: &str| {
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let controllers = parts.next()?;
            controllers.split(',').any(|one| one == controller).then(|| parts.next())?
        })
    };
    let hierarchy = |line: &str| {
        let (front, back) = line.split_once(" - ")?;
        let (mut front, mut back) = (front.split(' ').skip(3), back.split(' '));
        let (root, mount) = (Path::new(front.next()?), PathBuf::from(front.next()?));
        let (controller, group) = match back.next()? {
            "cgroup2" => (None, group_of("")?),
            "cgroup" => {
                let of = |name| back.clone().any(|options| options.split(',').any(|one| one == name));
                if of("memory") {
                    (Some(Controller::Memory), group_of("memory")?)
                } else if of("pids") {
                    (Some(Controller::Processes), group_of("pids")?)
                } else {
                    return None;
                }
            }
            _ => return None,
        };
        let own = match Path::new(group).strip_prefix(root) {
            Ok(below) if below.as_os_str().is_empty() => mount.clone(),
            Ok(below) => mount.join(below),
            // It is outside of what is mounted here.
            Err(_) => return None,
        };
        Some(Hierarchy { mount, own, controller })
    };
    mounts.lines().filter_map(hierarchy).collect()
}

fn place_in_version_1(hierarchy: &Hierarchy) -> Option<PathBuf> {
    (hierarchy.controller.is_some() && hierarchy.own == hierarchy.mount).then(|| hierarchy.mount.clone())
}

fn place_in_version_2(hierarchy: &Hierarchy) -> Option<PathBuf> {
    if hierarchy.controller.is_some() {
        return None;
    }
    let gives = |folder: &Path| {
        let given = fs::read_to_string(folder.join("cgroup.subtree_control")).unwrap_or_default();
        given.split_whitespace().any(|controller| controller == "memory" || controller == "pids")
    };
    let around = hierarchy.own.ancestors().take_while(|folder| folder.starts_with(&hierarchy.mount));
    for folder in around {
        if gives(folder) {
            let is_own = folder.metadata().is_ok_and(|found| found.uid() == geteuid().as_raw());
            let may_move = File::options().write(true).open(folder.join("cgroup.procs")).is_ok();
            return (is_own && may_move).then(|| folder.to_owned());
        }
        if limit_in(&folder.join("memory.max")).is_some() {
            return None;
        }
    }
    None
}

fn limit_in(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok().filter(|limit| *limit < UNLIMITED)
}

/// The lowest limit of memory of the groups that this process is in.
pub(super) fn memory_limit() -> Option<u64> {
    let limit = |hierarchy: &Hierarchy| {
        let file = match hierarchy.controller {
            None => OsString::from("memory.max"),
            Some(Controller::Memory) => "memory.limit_in_bytes".into(),
            Some(Controller::Processes) => return None,
        };
        let around = hierarchy.own.ancestors().take_while(|folder| folder.starts_with(&hierarchy.mount));
        around.filter_map(|folder| limit_in(&folder.join(&file))).min()
    };
    hierarchies().iter().filter_map(limit).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: JailLimits = JailLimits { memory: 800, processes: 80, disk: 1, files: 1, file: 1 };

    fn hierarchy(world: &Path, own: &str) -> Hierarchy {
        Hierarchy { mount: world.to_owned(), own: world.join(own), controller: None }
    }

    /// Folders that look like groups of version 2: `app` gives its groups controllers.
    fn version_2() -> tempfile::TempDir {
        let world = tempfile::tempdir().unwrap();
        let app = world.path().join("user/app");
        for name in ["scope", "lathe-jail.1073741824.1", &format!("lathe-jail.{}.1", std::process::id())] {
            fs::create_dir_all(app.join(name)).unwrap();
        }
        fs::write(app.join("cgroup.subtree_control"), "memory pids\n").unwrap();
        fs::write(app.join("cgroup.procs"), "").unwrap();
        fs::write(app.join("scope/cgroup.subtree_control"), "\n").unwrap();
        fs::write(app.join("scope/memory.max"), "max\n").unwrap();
        world
    }

    #[test]
    fn the_nearest_folder_that_gives_controllers_is_the_place() {
        let world = version_2();
        let app = world.path().join("user/app");
        assert_eq!(place_in_version_2(&hierarchy(world.path(), "user/app/scope")), Some(app.clone()));
        fs::write(app.join("scope/memory.max"), "4096\n").unwrap();
        assert_eq!(
            place_in_version_2(&hierarchy(world.path(), "user/app/scope")),
            None,
            "it would escape a limit"
        );
        assert_eq!(place_in_version_2(&hierarchy(world.path(), "other")), None);
    }

    #[test]
    fn groups_of_ended_processes_are_removed() {
        let world = version_2();
        let app = world.path().join("user/app");
        sweep(&app);
        assert!(!app.join("lathe-jail.1073741824.1").exists());
        assert!(app.join(format!("lathe-jail.{}.1", std::process::id())).exists());
    }

    #[test]
    fn a_place_without_a_door_gives_no_group() {
        let world = tempfile::tempdir().unwrap();
        assert!(Group::make_in(&[world.path().to_owned(), "/no/such".into()], &LIMITS).is_none());
    }

    #[test]
    fn only_the_top_of_a_version_1_hierarchy_is_used() {
        let mounts = "30 25 0:26 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n\
            31 25 0:27 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
            32 25 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
            33 25 0:29 /box /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
            34 25 0:30 / /proc rw - proc proc rw\n";
        let found = parse(mounts, "8:pids:/\n4:memory:/session/1\n0::/box/inner\n");
        let places: Vec<PathBuf> = found.iter().filter_map(place_in_version_1).collect();
        assert_eq!(places, [PathBuf::from("/sys/fs/cgroup/pids")]);
        let own: Vec<&Path> = found.iter().map(|hierarchy| hierarchy.own.as_path()).collect();
        let expected =
            ["/sys/fs/cgroup/memory/session/1", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/unified/inner"];
        assert_eq!(own, expected.map(Path::new));
    }

    #[test]
    fn counters_are_found_by_their_whole_name() {
        assert_eq!(count_of("oom 3\noom_kill 2\n", "oom_kill"), Some(2));
        assert_eq!(count_of("oom_kill_disable 0\nunder_oom 0\n", "oom_kill"), None);
    }
}
