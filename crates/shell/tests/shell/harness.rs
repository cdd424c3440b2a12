//! A shell with short names, and what /proc says about processes.

use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lathe_shell::{LineEnd, LineLimits, Shell, ShellError, ShellOptions, place_ax};
use lathe_workspace::LocalProcesses;
use tokio_util::sync::CancellationToken;

/// Far beyond what anything here takes, far below what a hang would take.
pub const SOON: Duration = Duration::from_secs(150);

pub fn options(cwd: &Path) -> ShellOptions {
    let env = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", "/tmp"), ("LC_ALL", "C.UTF-8")];
    ShellOptions {
        cwd: cwd.to_owned(),
        start: lathe_shell::StartFolder::Any,
        env: env.map(|(name, value)| (name.into(), value.into())).to_vec(),
        ax: place_ax(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap(),
        shell: "/bin/bash".into(),
        commands: None,
    }
}

pub struct TestShell {
    pub shell: Shell,
    pub folder: tempfile::TempDir,
}

impl Deref for TestShell {
    type Target = Shell;
    fn deref(&self) -> &Shell {
        &self.shell
    }
}

impl DerefMut for TestShell {
    fn deref_mut(&mut self) -> &mut Shell {
        &mut self.shell
    }
}

pub async fn shell() -> TestShell {
    let folder = tempfile::tempdir().unwrap();
    let shell = Shell::start(Arc::new(LocalProcesses), options(folder.path())).await.unwrap();
    TestShell { shell, folder }
}

impl TestShell {
    pub fn folder(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    /// Closes the shell; the folder lives on for as long as the caller keeps it.
    pub async fn close(self) -> tempfile::TempDir {
        self.shell.close().await;
        self.folder
    }

    pub async fn try_run(&mut self, line: &[u8], timeout: Duration) -> Result<LineEnd, ShellError> {
        let limits = LineLimits { timeout, ..LineLimits::default() };
        self.shell.run(line, limits, None, &CancellationToken::new()).await
    }

    /// Runs a line that has no business taking long.
    pub async fn run(&mut self, line: &str) -> LineEnd {
        let end = self.try_run(line.as_bytes(), SOON * 2).await.unwrap();
        assert!(end.elapsed < SOON, "{line}: {:?}", end.elapsed);
        end
    }

    /// Runs a line that has to be stopped.
    pub async fn run_for(&mut self, line: &str, timeout: Duration) -> LineEnd {
        let end = self.try_run(line.as_bytes(), timeout).await.unwrap();
        assert!(end.elapsed < SOON, "{line}: {:?}", end.elapsed);
        end
    }

    pub async fn out(&mut self, line: &str) -> String {
        text(&self.run(line).await).0
    }
}

pub fn text(end: &LineEnd) -> (String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(end.stdout.read_all().unwrap()), text(end.stderr.read_all().unwrap()))
}

/// Exit code, stdout and stderr.
pub fn all(end: &LineEnd) -> (i32, String, String) {
    let (out, err) = text(end);
    (end.exit.code(), out, err)
}

fn read(pid: i32, file: &str) -> Vec<u8> {
    std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default()
}

pub fn pids() -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Live processes with this argument.
pub fn with_argument(argument: &str) -> Vec<i32> {
    let has = |pid: &i32| read(*pid, "cmdline").split(|byte| *byte == 0).any(|a| a == argument.as_bytes());
    pids().into_iter().filter(has).collect()
}

pub async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < SOON, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub async fn started(argument: &str) {
    eventually(argument, || !with_argument(argument).is_empty()).await;
}

pub fn parent(pid: i32) -> i32 {
    stat(pid).1
}

/// State letter and parent.
pub fn stat(pid: i32) -> (String, i32) {
    let stat = String::from_utf8_lossy(&read(pid, "stat")).into_owned();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_ascii_whitespace().collect();
    match fields[..] {
        [state, parent, ..] => (state.to_owned(), parent.parse().unwrap()),
        _ => (String::new(), 0),
    }
}

/// The supervisor of a shell.
pub async fn ax_of(shell: &mut TestShell) -> i32 {
    parent(shell.out("echo $$").await.trim().parse().unwrap())
}

pub fn descriptors(pid: i32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}
