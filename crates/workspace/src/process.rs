//! The seam for starting and stopping programs, wherever they run.
//!
//! A tool never calls `Command` itself. It asks the workspace, so the same tool works on this machine, in a jail or
//! in a container. The seam has only the operations that all three support: three byte pipes, an exit, and an end to
//! the whole tree.

use std::ffi::{OsStr, OsString};
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::{Command, Stdio};

use tokio::io::{AsyncRead, AsyncWrite};

use crate::{Fence, JailWatch, WorkspaceError};

/// A future returned through a dynamic seam.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The parameters of a new process. `env` is the whole environment of the child: nothing is inherited.
#[derive(Debug, Clone)]
pub struct Spawn {
    pub argv: Vec<OsString>,
    pub cwd: PathBuf,
    pub env: Vec<(OsString, OsString)>,
    pub fence: Fence,
    /// Places that it needs to read even where a jail hides them.
    pub shown: Vec<PathBuf>,
}

impl Spawn {
    /// The same as a command of the standard library, without input, for a caller that waits for it on a thread of
    /// its own.
    pub fn command(&self) -> Command {
        let (program, arguments) = self
            .argv
            .split_first()
            .map_or((OsStr::new(""), &[][..]), |(program, rest)| (program.as_os_str(), rest));
        let mut command = program_command(program);
        command.args(arguments).current_dir(&self.cwd).env_clear().envs(self.env.iter().cloned());
        command.stdin(Stdio::null());
        self.fence.apply(&mut command);
        command
    }
}

/// A command for a program that belongs to no session: one that the user asked for, such as an editor, or one that
/// Lathe itself uses. It gets the environment of this process. The processes of a session are started through
/// [`Processes`] instead, within its walls.
pub fn program_command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

/// The ways in which a child ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Code(i32),
    Signal(i32),
}

/// The three pipes of a child; each may be taken once.
pub struct Pipes {
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    pub stderr: Box<dyn AsyncRead + Send + Unpin>,
}

/// A running child. Dropping it kills it.
pub trait Child: Send {
    /// The pipes, on the first call.
    fn pipes(&mut self) -> Option<Pipes>;
    fn wait(&mut self) -> Boxed<'_, Result<Ended, WorkspaceError>>;
    /// Its number on this machine. All processes that it starts descend from it.
    fn pid(&self) -> Option<i32>;
    /// Tells whether the processes below it have numbers of their own.
    fn has_own_numbers(&self) -> bool {
        false
    }
    /// The watch over the limits of its jail, if it has any.
    fn watch(&self) -> Option<JailWatch> {
        None
    }
    /// Ends the child and its process group at once.
    fn kill_tree(&mut self) -> Boxed<'_, Result<(), WorkspaceError>>;
}

/// The processes of a workspace.
pub trait Processes: Send + Sync {
    fn spawn(&self, what: Spawn) -> Boxed<'_, Result<Box<dyn Child>, WorkspaceError>>;
}
