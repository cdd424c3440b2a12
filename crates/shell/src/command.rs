//! Agent commands: programs on the session's PATH that the host answers.
//!
//! Each is a link to `ax`, which carries its words, standard streams and exit code over a socket of this shell alone and
//! knows nothing of what they mean. Whoever owns the shell gives it a [`CommandHost`]; the same trait is called without a
//! process for a line that is nothing but one such command, so both ways are one.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use lathe_protocol::Boxed;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::LineClock;

/// Pieces on their way in either direction; a slow reader slows the writer down.
const PIECES: usize = 8;

/// Answers the agent commands of one shell.
pub trait CommandHost: Send + Sync {
    /// The names that are programs on the session's PATH. Bash also asks for any other name with a colon in it, and for a
    /// name it does not know.
    fn names(&self) -> Vec<String>;

    /// Runs one command to its exit code. When the caller goes away, `call.cancel` is cancelled and the answer is dropped.
    fn run(&self, call: CommandCall, io: CommandIo) -> Boxed<'static, u8>;
}

/// The process of a command, which waits until its host has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    pub pid: i32,
    pub umask: u32,
}

impl Caller {
    /// Its environment: what was exported, and what stood before its name. Empty if it is gone.
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
    /// As bash expanded them; the first one is the name it was called by.
    pub argv: Vec<OsString>,
    /// The folder of the caller, which a subshell may have changed.
    pub cwd: PathBuf,
    /// The process that called; none for a command that needs no process.
    pub caller: Option<Caller>,
    pub output: Output,
    pub input: Input,
    /// The line it belongs to: the one that left its process in the background, else the one that runs. None for a process
    /// between lines that has cut itself off from its line.
    pub line: Option<u64>,
    /// The clock of that line if it runs, to be stopped while somebody thinks about an answer.
    pub clock: LineClock,
    pub cancel: CancellationToken,
}

/// Where standard output of a command goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// To whoever gave the line: words for a model, numbered and capped.
    Session,
    /// Into a pipe, a file or a substitution: the bytes themselves.
    Elsewhere,
}

/// What standard input of a command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// Nothing can come from there: /dev/null, or closed.
    Nothing,
    /// A pipe, a file, a heredoc.
    Stream,
}

/// The standard streams of a running command, as its host has them.
pub struct CommandIo {
    said: mpsc::Sender<Said>,
    given: mpsc::Receiver<Vec<u8>>,
    input_ended: bool,
}

/// The other end of a [`CommandIo`].
pub struct CommandEnd {
    said: mpsc::Receiver<Said>,
    /// `None` once the input has ended.
    given: Option<mpsc::Sender<Vec<u8>>>,
}

/// What a host says to its caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    Out(Vec<u8>),
    Err(Vec<u8>),
    /// It wants the next piece of standard input. A command that never asks never takes anything from it.
    WantsInput,
}

/// The caller is gone, or has closed the stream.
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
        self.said.send(Said::Out(bytes.into())).await.map_err(|_| CallerGone)
    }

    pub async fn err(&mut self, bytes: impl Into<Vec<u8>>) -> Result<(), CallerGone> {
        self.said.send(Said::Err(bytes.into())).await.map_err(|_| CallerGone)
    }

    /// The next piece of standard input; none at its end.
    pub async fn read(&mut self) -> Result<Option<Vec<u8>>, CallerGone> {
        if self.input_ended {
            return Ok(None);
        }
        self.said.send(Said::WantsInput).await.map_err(|_| CallerGone)?;
        let piece = self.given.recv().await.filter(|piece| !piece.is_empty());
        self.input_ended = piece.is_none();
        Ok(piece)
    }
}

impl CommandEnd {
    /// What is said next; none when the host has finished.
    pub async fn hear(&mut self) -> Option<Said> {
        self.said.recv().await
    }

    /// Answers [`Said::WantsInput`]; an empty piece is the end.
    pub async fn give(&mut self, piece: Vec<u8>) {
        let ended = piece.is_empty();
        if let Some(given) = &self.given {
            // A host that has gone wants nothing any more.
            let _ = given.send(piece).await;
        }
        if ended {
            self.given = None;
        }
    }
}
