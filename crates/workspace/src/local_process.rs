//! Processes of this machine.

use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::Command;

use crate::jail::Served;
use crate::{Boxed, Child, Ended, JailWatch, Pipes, Processes, Spawn, WorkspaceError};

/// A program written a moment ago is "busy" for as long as another thread's fork holds the descriptor
/// that wrote it, which is until that fork has become its own program.
const BUSY_RETRIES: u32 = 20;
const BUSY_WAIT: Duration = Duration::from_millis(2);

/// Programs run on this machine, each in its own process group.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalProcesses;

impl Processes for LocalProcesses {
    fn spawn(&self, what: Spawn) -> Boxed<'_, Result<Box<dyn Child>, WorkspaceError>> {
        Box::pin(async move {
            let child: Box<dyn Child> = Box::new(started(prepare(&what)?, &what).await?);
            Ok(child)
        })
    }
}

/// The error of a process that could not be started.
pub(crate) fn failure(what: &Spawn, source: std::io::Error) -> WorkspaceError {
    let program = what.argv.first().map(|name| name.display().to_string()).unwrap_or_default();
    WorkspaceError::Spawn { program, source }
}

/// The command for a process of its own group, with three pipes.
pub(crate) fn prepare(what: &Spawn) -> Result<Command, WorkspaceError> {
    let parts = what.argv.split_first().ok_or_else(|| failure(what, ErrorKind::InvalidInput.into()));
    let (program, arguments) = parts?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(&what.cwd).env_clear().envs(what.env.iter().map(|(k, v)| (k, v)));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    what.fence.apply(command.as_std_mut());
    Ok(command)
}

pub(crate) async fn started(mut command: Command, what: &Spawn) -> Result<LocalChild, WorkspaceError> {
    let mut tries = 0;
    let child = loop {
        match command.spawn() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy && tries < BUSY_RETRIES => {
                tries += 1;
                tokio::time::sleep(BUSY_WAIT).await;
            }
            result => break result.map_err(|error| failure(what, error))?,
        }
    };
    Ok(LocalChild::of(child, false))
}

pub(crate) struct LocalChild {
    child: tokio::process::Child,
    has_own_numbers: bool,
    watch: Option<JailWatch>,
    _served: Option<Served>,
    /// The process group, whose number is that of its first process.
    group: Option<Pid>,
}

impl LocalChild {
    pub(crate) fn of(child: tokio::process::Child, has_own_numbers: bool) -> Self {
        let group = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        Self { child, has_own_numbers, watch: None, _served: None, group }
    }

    /// With the way out of its network, which lives as long as the child.
    pub(crate) fn served(mut self, served: Option<Served>) -> Self {
        self._served = served;
        self
    }

    pub(crate) fn watched_by(mut self, watch: Option<JailWatch>) -> Self {
        self.watch = watch;
        self
    }

    /// The group may outlive its first process; as long as it does, its number is not reused.
    fn kill_group(&self) {
        if let Some(group) = self.group {
            // The only failure is that nothing of the group is left.
            let _ = killpg(group, Signal::SIGKILL);
        }
    }
}

impl Child for LocalChild {
    fn pipes(&mut self) -> Option<Pipes> {
        Some(Pipes {
            stdin: Box::new(self.child.stdin.take()?),
            stdout: Box::new(self.child.stdout.take()?),
            stderr: Box::new(self.child.stderr.take()?),
        })
    }

    fn wait(&mut self) -> Boxed<'_, Result<Ended, WorkspaceError>> {
        // tokio would close an untaken stdin first; only the caller decides when its input ends.
        Box::pin(async move {
            let stdin = self.child.stdin.take();
            let status = self.child.wait().await;
            self.child.stdin = stdin;
            status.map(ended).map_err(|source| WorkspaceError::io("", source))
        })
    }

    fn pid(&self) -> Option<i32> {
        self.group.map(Pid::as_raw)
    }

    fn has_own_numbers(&self) -> bool {
        self.has_own_numbers
    }

    fn watch(&self) -> Option<JailWatch> {
        self.watch.clone()
    }

    fn kill_tree(&mut self) -> Boxed<'_, Result<(), WorkspaceError>> {
        self.kill_group();
        Box::pin(async move { self.wait().await.map(|_| ()) })
    }
}

impl Drop for LocalChild {
    fn drop(&mut self) {
        // A child that was waited for ended by itself; its remaining processes are not ours to kill.
        if self.child.id().is_some() {
            self.kill_group();
        }
    }
}

fn ended(status: ExitStatus) -> Ended {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Code(code),
        (None, signal) => Ended::Signal(signal.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::Fence;

    fn script(text: &str) -> Spawn {
        Spawn {
            argv: ["/bin/sh", "-c", text].map(OsString::from).to_vec(),
            cwd: "/".into(),
            env: vec![("ONLY".into(), "this".into())],
            fence: Fence::default(),
            shown: Vec::new(),
        }
    }

    #[tokio::test]
    async fn a_child_gets_the_given_folder_environment_and_pipes() {
        let mut child = LocalProcesses.spawn(script("cat; pwd; env; echo err >&2; exit 3")).await.unwrap();
        let mut pipes = child.pipes().unwrap();
        pipes.stdin.write_all(b"in\n").await.unwrap();
        drop(pipes.stdin);
        let (mut out, mut err) = (String::new(), String::new());
        pipes.stdout.read_to_string(&mut out).await.unwrap();
        pipes.stderr.read_to_string(&mut err).await.unwrap();
        assert_eq!(child.wait().await.unwrap(), Ended::Code(3));
        assert!(out.starts_with("in\n/\n") && out.contains("ONLY=this") && !out.contains("HOME="), "{out}");
        assert_eq!(err, "err\n");
        assert!(child.pipes().is_none());
    }

    #[tokio::test]
    async fn kill_tree_ends_the_group_and_waits() {
        let mut child = LocalProcesses.spawn(script("sleep 98701 & echo $!; wait")).await.unwrap();
        let mut pipes = child.pipes().unwrap();
        let mut pid = [0; 16];
        let count = pipes.stdout.read(&mut pid).await.unwrap();
        child.kill_tree().await.unwrap();
        assert_eq!(child.wait().await.unwrap(), Ended::Signal(9));
        let pid: i32 = std::str::from_utf8(&pid[..count]).unwrap().trim().parse().unwrap();
        for _ in 0..500 {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            if stat.is_empty() || stat.contains(") Z") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{pid} is still alive");
    }

    #[tokio::test]
    async fn a_missing_program_is_named() {
        let what = Spawn {
            argv: vec!["/no/such".into()],
            cwd: "/".into(),
            env: Vec::new(),
            fence: Fence::default(),
            shown: Vec::new(),
        };
        let error = LocalProcesses.spawn(what).await.err().unwrap();
        assert!(matches!(&error, WorkspaceError::Spawn { program, .. } if program == "/no/such"), "{error}");
    }
}
