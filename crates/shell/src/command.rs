//! Agent commands: programs on the session's PATH whose results come from the host.
//!
//! Each is a link to `ax`, which carries its words, standard streams and exit code over a socket of this shell alone
//! and does not interpret them. The owner of the shell supplies a [`CommandHost`]. A line that consists of one such
//! command calls the same trait without a process, so both ways behave alike.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use lathe_protocol::BoxFuture;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::LineClock;

/// The capacity of the channels for pieces; a slow reader slows the writer down.
const PIECES: usize = 8;

/// Runs the agent commands of one shell.
pub trait CommandHost: Send + Sync {
    /// The names of the programs on the session's PATH. Bash also requests any other name with a colon in it, and
    /// unknown names.
    fn names(&self) -> Vec<String>;

    /// Runs one command to its exit code. When the caller goes away, `call.cancel` is cancelled and the result is
    /// discarded.
    fn run(&self, call: CommandCall, io: CommandIo) -> BoxFuture<'static, u8>;
}

/// The process of a command, which waits until the host has finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    pub pid: i32,
    pub umask: u32,
}

impl Caller {
    /// Its environment: the exported variables, and those assigned before its name. Empty if the process is gone.
    pub fn variables(self) -> Vec<(OsString, OsString)> {
        let bytes = std::fs::read(format!("/proc/{}/environ", self.pid)).unwrap_or_default();
        let part = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        let pair = |text: &[u8]| {
            let at = text.iter().position(|byte| *byte == b'=')?;
            Some((part(text.get(..at)?), part(text.get(at + 1..)?)))
        };
        bytes.split(|byte| *byte == 0).filter_map(pair).collect()
    }
}

/// One use of an agent command.
#[derive(Debug, Clone)]
pub struct CommandCall {
    /// The words after expansion by bash; the first one is the name it was called by.
    pub argv: Vec<OsString>,
    /// The folder of the caller, which a subshell may have changed.
    pub cwd: PathBuf,
    /// The calling process. None for a command that needs no process.
    pub caller: Option<Caller>,
    pub output: OutputTarget,
    pub input: InputSource,
    /// The line it belongs to: the line that left its process in the background, otherwise the running line. None for
    /// a process between lines that has detached itself from its line.
    pub line: Option<u64>,
    /// The clock of that line if it runs. A host stops it while it waits for the user.
    pub clock: LineClock,
    pub cancel: CancellationToken,
}

/// The destination of a command's standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputTarget {
    /// The output of the line: text for a model, numbered and capped.
    Session,
    /// A pipe, a file or a substitution: the bytes themselves.
    Elsewhere,
}

/// The source of a command's standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputSource {
    /// No input can come: /dev/null, or closed.
    Nothing,
    /// A pipe, a file, a heredoc.
    Stream,
}

/// The standard streams of a running command, on the host's side.
pub struct CommandIo {
    said: mpsc::Sender<HostMessage>,
    given: mpsc::Receiver<Vec<u8>>,
    input_ended: bool,
}

/// The other end of a [`CommandIo`].
pub struct CommandEnd {
    said: mpsc::Receiver<HostMessage>,
    /// None once the input has ended.
    given: Option<mpsc::Sender<Vec<u8>>>,
}

/// A message of a host to its caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostMessage {
    Out(Vec<u8>),
    Err(Vec<u8>),
    /// The host wants the next piece of standard input. A command that never asks takes no input.
    WantsInput,
}

/// The error if the caller is gone, or has closed the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallerGone;

impl CommandIo {
    pub fn pair() -> (Self, CommandEnd) {
        let (said, hears) = mpsc::channel(PIECES);
        let (gives, given) = mpsc::channel(1);
        let io = Self { said, given, input_ended: false };
        (io, CommandEnd { said: hears, given: Some(gives) })
    }

    pub async fn out(&mut self, bytes: impl Into<Vec<u8>>) -> Result<(), CallerGone> {
        self.said.send(HostMessage::Out(bytes.into())).await.map_err(|_| CallerGone)
    }

    pub async fn err(&mut self, bytes: impl Into<Vec<u8>>) -> Result<(), CallerGone> {
        self.said.send(HostMessage::Err(bytes.into())).await.map_err(|_| CallerGone)
    }

    /// The next piece of standard input. None at its end.
    pub async fn read(&mut self) -> Result<Option<Vec<u8>>, CallerGone> {
        if self.input_ended {
            return Ok(None);
        }
        self.said.send(HostMessage::WantsInput).await.map_err(|_| CallerGone)?;
        let piece = self.given.recv().await.filter(|piece| !piece.is_empty());
        self.input_ended = piece.is_none();
        Ok(piece)
    }
}

impl CommandEnd {
    /// The next message. None when the host has finished.
    pub async fn next_message(&mut self) -> Option<HostMessage> {
        self.said.recv().await
    }

    /// Replies to [`HostMessage::WantsInput`]; an empty piece is the end.
    pub async fn send_input(&mut self, piece: Vec<u8>) {
        let ended = piece.is_empty();
        if let Some(given) = &self.given {
            // A host that is gone wants no input any more.
            let _ = given.send(piece).await;
        }
        if ended {
            self.given = None;
        }
    }
}
