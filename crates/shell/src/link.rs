//! The connection to one running supervisor.

use std::mem::ManuallyDrop;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lathe_workspace::{Child, Ended, Processes, Spawn};
use nix::sys::signal::Signal;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::session::Session;
use crate::sweep;
use crate::wire::{self, Event, Supervisor};
use crate::{ShellError, ShellOptions};

const START_LIMIT: Duration = Duration::from_secs(20);
/// The supervisor needs 200 ms for processes that do not want to end, 2 s for those that cannot.
const END_LIMIT: Duration = Duration::from_secs(5);
const SEND_LIMIT: Duration = Duration::from_secs(5);
const EVENTS: usize = 16;
const READ_SIZE: usize = 256 * 1024;

/// Dropping it lets the supervisor end everything and go.
pub(crate) struct Link {
    stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    events: mpsc::Receiver<Event>,
    /// The line whose output is wanted; that of all others is dropped as it comes.
    wanted: Arc<AtomicU64>,
    /// `Child` kills when it is dropped, and a killed supervisor cannot end its tree. So it is never
    /// dropped before the supervisor has gone: the end of its stdin is what ends it.
    child: Option<ManuallyDrop<Box<dyn Child>>>,
    /// What every process below the supervisor has in its environment.
    mark: String,
}

impl Link {
    /// Starts a supervisor with its bash.
    pub(crate) async fn start(
        processes: &dyn Processes,
        options: &ShellOptions,
        session: Option<&Session>,
    ) -> Result<Self, ShellError> {
        let mark = sweep::mark();
        let mut env = session.map_or_else(|| options.env.clone(), |session| session.with_path(&options.env));
        env.push((sweep::VARIABLE.into(), mark.clone().into()));
        let argv = vec![options.ax.clone().into(), "supervise".into()];
        let what = Spawn { argv, cwd: options.cwd.clone(), env };
        let mut child = processes.spawn(what).await?;
        let Some(pipes) = child.pipes() else {
            return Err(ShellError::SupervisorGone(": it has no pipes".to_owned()));
        };
        let (sender, events) = mpsc::channel(EVENTS);
        let wanted = Arc::new(AtomicU64::new(0));
        // Owned by the pipe it reads: it ends when the supervisor does, which the drop of `stdin` brings about.
        tokio::spawn(forward(pipes.stdout, pipes.stderr, sender, Arc::clone(&wanted)));
        let mut link =
            Self { stdin: Some(pipes.stdin), events, wanted, child: Some(ManuallyDrop::new(child)), mark };
        let folder = session.map_or(Path::new(""), Session::path);
        link.send(&wire::start(&options.shell, &options.cwd, folder)).await;
        let supervisor = link.ready().await?;
        if let Some(session) = session {
            session.supervised_by(supervisor);
        }
        Ok(link)
    }

    /// What every process below this supervisor has in its environment.
    pub(crate) fn mark(&self) -> &str {
        &self.mark
    }

    /// Waits until bash can take a line; gives its supervisor.
    async fn ready(&mut self) -> Result<Supervisor, ShellError> {
        let wait = async {
            loop {
                match self.next().await {
                    Event::Ready(supervisor) => return Ok(supervisor),
                    Event::Failed(text) => return Err(ShellError::Bash(text)),
                    Event::Gone(text) => return Err(ShellError::SupervisorGone(text)),
                    Event::Output { .. } | Event::Done(_) => {}
                }
            }
        };
        timeout(START_LIMIT, wait).await.unwrap_or(Err(ShellError::SupervisorStuck))
    }

    pub(crate) async fn restart(&mut self) -> Result<(), ShellError> {
        self.want(0);
        while self.events.try_recv().is_ok() {}
        self.send(&wire::fresh()).await;
        self.ready().await.map(drop)
    }

    /// A failure shows as the end of the events, or as their absence.
    pub(crate) async fn send(&mut self, frame: &[u8]) {
        let Some(stdin) = &mut self.stdin else { return };
        let write = async {
            stdin.write_all(frame).await?;
            stdin.flush().await
        };
        if !matches!(timeout(SEND_LIMIT, write).await, Ok(Ok(()))) {
            self.stdin = None;
        }
    }

    pub(crate) fn want(&self, id: u64) {
        self.wanted.store(id, Ordering::Relaxed);
    }

    pub(crate) async fn next(&mut self) -> Event {
        self.events.recv().await.unwrap_or(Event::Gone(String::new()))
    }

    /// Ends bash and everything below it, and waits for that.
    pub(crate) async fn close(mut self) {
        self.send(&wire::quit()).await;
        let Some(child) = self.let_go() else { return };
        // One that was killed has ended nothing.
        if let Some(Ended::Signal(_)) = end(child).await {
            sweep::sweep(&self.mark).await;
        }
    }

    fn let_go(&mut self) -> Option<ManuallyDrop<Box<dyn Child>>> {
        self.stdin = None;
        self.events.close();
        self.child.take()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let Some(child) = self.let_go() else { return };
        // Where no runtime is left to reap it, the supervisor goes all the same.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                end(child).await;
            });
        }
    }
}

async fn end(mut child: ManuallyDrop<Box<dyn Child>>) -> Option<Ended> {
    let ended = match timeout(END_LIMIT, child.wait()).await {
        Ok(ended) => ended.ok(),
        Err(_) => {
            // Bash dies with it; there is nobody left to tell about a failure.
            let _ = child.kill_tree().await;
            Some(Ended::Signal(Signal::SIGKILL as i32))
        }
    };
    drop(ManuallyDrop::into_inner(child));
    ended
}

async fn forward(
    stdout: Box<dyn AsyncRead + Send + Unpin>,
    stderr: Box<dyn AsyncRead + Send + Unpin>,
    events: mpsc::Sender<Event>,
    wanted: Arc<AtomicU64>,
) {
    let mut stdout = BufReader::with_capacity(READ_SIZE, stdout);
    while let Some(event) = wire::read_event(&mut stdout).await {
        let is_late = matches!(event, Event::Output { id, .. } if id != wanted.load(Ordering::Relaxed));
        if !is_late {
            // Reading goes on when nobody listens any more, so that the supervisor never waits for us.
            let _ = events.send(event).await;
        }
    }
    let mut said = String::new();
    let mut last_words = stderr.take(4096);
    let _ = timeout(Duration::from_secs(1), last_words.read_to_string(&mut said)).await;
    let said = if said.is_empty() { said } else { format!(": {}", said.trim_end()) };
    let _ = events.send(Event::Gone(said)).await;
}
