//! Lines that use too much inside a jail are stopped, the result names the cause, and nothing is left of them. Each
//! runs as root and as another user. All scripts are bounded and small.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use lathe_shell::{LineEnd, LineExit, LineLimits, Shell, ShellOptions, StartFolder, place_ax};
use lathe_workspace::{
    Breach, CaptureLimits, Fence, Jail, JailLimits, JailPlan, JailProfile, Level, Spawn, WorkspaceError,
    capture, find_program, find_walls,
};
use tokio_util::sync::CancellationToken;

use crate::harness::{eventually, pids, text};

/// The user of the second round.
const NOBODY: u32 = 65534;
/// The variable with the folder for worlds of another user.
const PARENT: &str = "LATHE_TEST_WORLDS";
/// The variable by which the processes of a test are found.
const MARK: &str = "LATHE_TEST_MARK";
const MB: u64 = 1 << 20;
/// No test gets near it.
const LONG: Duration = Duration::from_secs(600);

/// A folder that a jail shows as it is: not below `/tmp`, which it replaces.
fn place() -> std::io::Result<tempfile::TempDir> {
    let make = |parent: &str| tempfile::Builder::new().prefix("lathe-world-").tempdir_in(parent);
    match std::env::var(PARENT) {
        Ok(parent) => make(&parent),
        Err(_) => make("/srv").or_else(|_| make("/opt")).or_else(|_| make(env!("CARGO_TARGET_TMPDIR"))),
    }
}

struct World {
    folder: tempfile::TempDir,
    root: PathBuf,
    mark: String,
}

impl World {
    fn new() -> Self {
        let folder = place().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["ws", "other", "lathe"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        let mark = root.file_name().unwrap().to_str().unwrap().to_owned();
        Self { folder, root, mark }
    }

    async fn jail(&self, workspace: &str, limits: JailLimits) -> Arc<Jail> {
        self.jail_of(Level::Walls, workspace, limits).await
    }

    async fn jail_of(&self, level: Level, workspace: &str, limits: JailLimits) -> Arc<Jail> {
        let ax = place_ax(&self.root.join("lathe")).unwrap();
        let root = self.root.join(workspace);
        let bubblewrap = find_program("bwrap", &root);
        assert!(bubblewrap.is_some(), "bubblewrap is not installed: scripts/test installs it");
        let found = find_walls(&ax, bubblewrap.filter(|_| level == Level::Walls)).await;
        assert_eq!(found.level, level, "{:?}", found.missing);
        let plan = JailPlan {
            profile: JailProfile::Workspace,
            root,
            ax,
            writable: Vec::new(),
            hidden: vec![self.root.join("lathe")],
            home: None,
            layer: None,
        };
        Arc::new(Jail::new(plan, found).unwrap().limited_to(limits))
    }

    fn env(&self) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
        let path = std::env::var("PATH").unwrap();
        let variables =
            [("PATH", path.as_str()), ("HOME", "/tmp"), ("LC_ALL", "C.UTF-8"), (MARK, &self.mark)];
        variables.map(|(name, value)| (name.into(), value.into())).to_vec()
    }

    async fn shell(&self, workspace: &str, jail: &Arc<Jail>) -> Shell {
        let options = ShellOptions {
            cwd: self.root.join(workspace),
            start: StartFolder::Any,
            env: self.env(),
            ax: place_ax(&self.root.join("lathe")).unwrap(),
            shell: "/bin/bash".into(),
            commands: None,
        };
        Shell::start(jail.clone(), options).await.unwrap()
    }

    /// The live processes of this test.
    fn processes(&self) -> usize {
        let wanted = format!("{MARK}={}", self.mark);
        let has = |pid: &i32| {
            let variables = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            variables.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
        };
        pids().into_iter().filter(has).count()
    }
}

/// Groups of jails that this process made.
fn groups() -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut left = vec![(PathBuf::from("/sys/fs/cgroup"), 0)];
    while let Some((folder, depth)) = left.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let own = format!("lathe-jail.{}.", std::process::id());
            if entry.file_name().to_string_lossy().starts_with(&own) {
                found.insert(entry.path());
            } else if depth < 6 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                left.push((entry.path(), depth + 1));
            }
        }
    }
    found
}

/// Room for what is not tested.
fn limits() -> JailLimits {
    JailLimits { memory: 8192 * MB, processes: 2000, disk: 8192 * MB, files: 1_000_000, file: 8192 * MB }
}

async fn run(shell: &mut Shell, line: &str) -> LineEnd {
    let limits = LineLimits { timeout: LONG, ..LineLimits::default() };
    shell.run(line.as_bytes(), limits, None, &CancellationToken::new()).await.unwrap()
}

/// Runs a line that has to be stopped for this reason, while another jail works; then nothing is left of it.
async fn stopped_for(limits: JailLimits, line: &str, breach: Breach) {
    let world = World::new();
    let jail = world.jail("ws", limits).await;
    let other = world.jail("other", self::limits()).await;
    let mut shell = world.shell("ws", &jail).await;
    let mut neighbour = world.shell("other", &other).await;
    assert_eq!(run(&mut shell, "echo before").await.exit, LineExit::Code(0));
    // It works until the other line has been stopped.
    let waiting = "echo working; until [ -e done ]; do sleep 0.1; done; echo finished";
    let done = world.root.join("other/done");
    let stopping = async {
        let end = run(&mut shell, line).await;
        fs::write(&done, "").unwrap();
        end
    };
    let (end, worked) = tokio::join!(stopping, run(&mut neighbour, waiting));
    assert_eq!(end.exit, LineExit::Limited { code: 137, breach }, "{:?}", text(&end));
    assert_eq!((worked.exit, text(&worked).0.as_str()), (LineExit::Code(0), "working\nfinished\n"));
    // The next line has a shell, in the same folder, and sees no process of the last one.
    let next = run(&mut shell, "rm -rf filled many; pwd; jobs; ls /proc | grep -c '^[0-9]'").await;
    assert_eq!(next.exit, LineExit::Code(0), "{:?}", text(&next));
    let said = text(&next).0;
    let (folder, processes) = said.trim().split_once('\n').unwrap();
    assert_eq!(Path::new(folder), world.root.join("ws"));
    assert!(processes.parse::<usize>().unwrap() < 20, "{processes}");
    shell.close().await;
    neighbour.close().await;
    eventually("the processes are gone", || world.processes() == 0).await;
    let temporary = jail.temporary_folder();
    drop((jail, other));
    assert!(!temporary.exists());
    eventually("the groups are gone", || groups().is_empty()).await;
    let left: Vec<String> = fs::read_dir(world.root.join("ws"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(left, Vec::<String>::new());
    world.folder.close().unwrap();
}

/// Runs a test of this binary as another user. Only root can become another user; any other user is one already.
fn as_nobody(test: &str) {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let folder = place().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let binary = folder.path().join("tests");
    fs::copy(std::env::current_exe().unwrap(), &binary).unwrap();
    fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).unwrap();
    let user = NOBODY.to_string();
    let done = Command::new("setpriv")
        .args(["--reuid", &user, "--regid", &user, "--clear-groups"])
        .arg(&binary)
        .args(["--exact", &format!("jail_limits::{test}"), "--nocapture"])
        .env("HOME", folder.path())
        .env(PARENT, folder.path())
        .current_dir("/")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.contains("1 passed"), "as nobody: {said}");
}

/// At most 3,000 sleeps, and none lives longer than the test.
const BURST: &str =
    "burst() { local i; for ((i = 0; i < 3000; i++)); do sleep 300 & done; wait; }; burst 2> /dev/null";

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_of_processes_is_stopped() {
    stopped_for(JailLimits { processes: 200, ..limits() }, BURST, Breach::Processes { limit: 200 }).await;
}

#[test]
fn a_burst_of_processes_of_another_user_is_stopped() {
    as_nobody("a_burst_of_processes_is_stopped");
}

/// At most 800 MB.
const HOG: &str = "python3 -c '
import time
held = bytearray()
for step in range(50):
    held += bytes([1]) * (16 << 20)
    time.sleep(0.02)
time.sleep(300)'";

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_takes_too_much_memory_is_stopped() {
    let breach = Breach::Memory { limit: 300 * MB };
    stopped_for(JailLimits { memory: 300 * MB, ..limits() }, HOG, breach).await;
}

#[test]
fn a_line_of_another_user_that_takes_too_much_memory_is_stopped() {
    as_nobody("a_line_that_takes_too_much_memory_is_stopped");
}

/// Files in memory are memory. At most 480 MB.
const FILES_IN_MEMORY: &str =
    "for i in {1..30}; do head -c 16M /dev/zero > /dev/shm/filled$i; sleep 0.02; done; sleep 300";

#[tokio::test(flavor = "multi_thread")]
async fn files_in_memory_count_as_memory() {
    let breach = Breach::Memory { limit: 200 * MB };
    stopped_for(JailLimits { memory: 200 * MB, ..limits() }, FILES_IN_MEMORY, breach).await;
}

#[test]
fn files_in_memory_of_another_user_count_as_memory() {
    as_nobody("files_in_memory_count_as_memory");
}

/// At most 800 MB.
const FILLER: &str = "mkdir filled; for i in {1..50}; do dd if=/dev/zero of=filled/$i bs=16M count=1 status=none; sleep 0.02; done; sleep 300";

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_fills_the_disk_is_stopped() {
    let breach = Breach::Disk { limit: 200 * MB };
    stopped_for(JailLimits { disk: 200 * MB, ..limits() }, FILLER, breach).await;
}

#[test]
fn a_line_of_another_user_that_fills_the_disk_is_stopped() {
    as_nobody("a_line_that_fills_the_disk_is_stopped");
}

/// At most 50,000 files.
const MANY: &str = "mkdir many; for ((i = 0; i < 50000; i++)); do > many/$i; done; sleep 300";

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_makes_very_many_files_is_stopped() {
    stopped_for(JailLimits { files: 5000, ..limits() }, MANY, Breach::Files { limit: 5000 }).await;
}

#[test]
fn a_line_of_another_user_that_makes_very_many_files_is_stopped() {
    as_nobody("a_line_that_makes_very_many_files_is_stopped");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_grows_too_large_ends_its_writer_and_the_cause_is_told() {
    let world = World::new();
    let jail = world.jail("ws", JailLimits { file: 8 * MB, ..limits() }).await;
    let mut shell = world.shell("ws", &jail).await;
    let end = run(&mut shell, "head -c 32M /dev/zero > large").await;
    assert_eq!(end.exit, LineExit::Limited { code: 153, breach: Breach::File { limit: 8 * MB } });
    assert!(!end.respawned, "the shell goes on");
    assert_eq!(fs::metadata(world.root.join("ws/large")).unwrap().len(), 8 * MB);
    shell.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_background_process_that_passes_a_limit_is_stopped_between_lines() {
    let world = World::new();
    let jail = world.jail("ws", JailLimits { processes: 200, ..limits() }).await;
    let mut shell = world.shell("ws", &jail).await;
    let line = format!("(until [ -e go ]; do sleep 0.1; done; {BURST}) > /dev/null 2>&1 &");
    let end = run(&mut shell, &line).await;
    assert_eq!((end.exit, end.jobs > 0, end.background), (LineExit::Code(0), true, None));
    fs::write(world.root.join("ws/go"), "").unwrap();
    eventually("the shell ended with its processes", || world.processes() == 0).await;
    let next = run(&mut shell, "echo here").await;
    assert_eq!((next.exit, next.respawned), (LineExit::Code(0), true));
    assert_eq!(next.background, Some(Breach::Processes { limit: 200 }));
    assert_eq!(run(&mut shell, "echo here").await.background, None);
    shell.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_captured_program_that_passes_a_limit_is_an_error_with_the_cause() {
    let world = World::new();
    let jail = world.jail("ws", JailLimits { processes: 200, ..limits() }).await;
    let what = Spawn {
        argv: ["/bin/bash", "-c", BURST].map(Into::into).to_vec(),
        cwd: world.root.join("ws"),
        env: world.env(),
        fence: Fence::default(),
        shown: Vec::new(),
    };
    let limits = CaptureLimits { time: LONG, keep: 1 << 16 };
    let ran = capture(&*jail, what, b"", limits, std::future::pending()).await;
    assert!(matches!(ran, Err(WorkspaceError::Limit(Breach::Processes { limit: 200 }))), "{ran:?}");
    eventually("the processes are gone", || world.processes() == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_of_processes_is_stopped_without_namespaces_too() {
    let world = World::new();
    let jail = world.jail_of(Level::Filters, "ws", JailLimits { processes: 200, ..limits() }).await;
    let mut shell = world.shell("ws", &jail).await;
    let end = run(&mut shell, BURST).await;
    assert_eq!(end.exit, LineExit::Limited { code: 137, breach: Breach::Processes { limit: 200 } });
    let next = run(&mut shell, "echo here").await;
    assert_eq!((next.exit, text(&next).0.as_str()), (LineExit::Code(0), "here\n"));
    shell.close().await;
    eventually("the processes are gone", || world.processes() == 0).await;
}

#[test]
fn a_burst_of_processes_of_another_user_is_stopped_without_namespaces_too() {
    as_nobody("a_burst_of_processes_is_stopped_without_namespaces_too");
}

/// A build starts many processes, and each has memory, for a short time.
#[tokio::test(flavor = "multi_thread")]
async fn work_within_the_limits_is_not_stopped() {
    let world = World::new();
    let jail = world.jail("ws", limits()).await;
    let mut shell = world.shell("ws", &jail).await;
    let line = "for i in {1..40}; do sleep 1 & done; wait; head -c 32M /dev/zero > file; rm file; echo done";
    let end = run(&mut shell, line).await;
    assert_eq!((end.exit, end.respawned, text(&end).0.as_str()), (LineExit::Code(0), false, "done\n"));
    shell.close().await;
}
