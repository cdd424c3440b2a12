//! The connection to one running supervisor.

use std::mem::ManuallyDrop;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lathe_workspace::{Breach, Child, Ended, Fence, Processes, Spawn, WatchedSpan};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use crate::command_session::CommandSession;
use crate::sweep;
use crate::wire::{self, Supervisor, SupervisorEvent};
use crate::{Jobs, ShellError, ShellOptions};

const START_LIMIT: Duration = Duration::from_secs(20);
/// The supervisor needs 200 ms for processes that resist their end, 2 s for those that cannot end.
const END_LIMIT: Duration = Duration::from_secs(5);
const SEND_LIMIT: Duration = Duration::from_secs(5);
const EVENTS: usize = 16;
const FRAMES: usize = 16;
const READ_SIZE: usize = 256 * 1024;

/// A connection. Dropping it makes the supervisor end everything and exit.
pub(crate) struct Link {
    /// The channel to the writing task. Without it that task ends, and with it the supervisor's stdin.
    frames: Option<mpsc::Sender<Vec<u8>>>,
    events: mpsc::Receiver<SupervisorEvent>,
    /// The line whose output is wanted; the output of other lines belongs to their jobs.
    wanted: Arc<AtomicU64>,
    /// `Child` kills when it is dropped, and a killed supervisor cannot end its tree. So it is never
    /// dropped before the supervisor has exited: closing its stdin ends it.
    child: Option<ManuallyDrop<Box<dyn Child>>>,
    /// The mark in the environment of every process below the supervisor.
    mark: String,
    /// The watch over background processes between lines, and the limit that they passed.
    guard: Option<AbortOnDropHandle<()>>,
    passed: Arc<Mutex<Option<Breach>>>,
}

impl Link {
    /// Starts a supervisor with its bash.
    pub(crate) async fn start(
        processes: &dyn Processes,
        options: &ShellOptions,
        session: Option<&CommandSession>,
        jobs: &Jobs,
    ) -> Result<Self, ShellError> {
        let mark = sweep::mark();
        let mut env = session.map_or_else(|| options.env.clone(), |session| session.with_path(&options.env));
        env.push((sweep::VARIABLE.into(), mark.clone().into()));
        let argv = vec![options.ax.clone().into(), "supervise".into()];
        // A jail hides the folders where the session's own one is.
        let shown = session.map(|session| session.path().to_owned()).into_iter().collect();
        let what = Spawn { argv, cwd: options.cwd.clone(), env, fence: Fence::default(), shown };
        let mut child = processes.spawn(what).await?;
        let Some(pipes) = child.pipes() else {
            return Err(ShellError::SupervisorGone(": it has no pipes".to_owned()));
        };
        let (sender, events) = mpsc::channel(EVENTS);
        let wanted = Arc::new(AtomicU64::new(0));
        // Both tasks are owned by their pipes: they end when the supervisor does, which the drop of `frames` causes.
        tokio::spawn(forward(pipes.stdout, pipes.stderr, sender, Arc::clone(&wanted), jobs.clone()));
        let (frames, queue) = mpsc::channel(FRAMES);
        jobs.supervised_by(frames.downgrade());
        tokio::spawn(write(pipes.stdin, queue));
        let child = Some(ManuallyDrop::new(child));
        let (guard, passed) = (None, Arc::default());
        let mut link = Self { frames: Some(frames), events, wanted, child, mark, guard, passed };
        let folder = session.map_or(Path::new(""), CommandSession::path);
        link.send(wire::start(&options.shell, &options.cwd, folder, &options.start.to_string())).await;
        let supervisor = link.ready().await?;
        if let Some(session) = session {
            let root = link.child.as_ref().and_then(|child| child.pid()).unwrap_or(supervisor.pid);
            let has_own_numbers = link.child.as_ref().is_some_and(|child| child.has_own_numbers());
            session.supervised_by(Supervisor { root, has_own_numbers, ..supervisor });
        }
        Ok(link)
    }

    /// The mark in the environment of every process below this supervisor.
    pub(crate) fn mark(&self) -> &str {
        &self.mark
    }

    /// Waits until bash can take a line. Returns its supervisor.
    async fn ready(&mut self) -> Result<Supervisor, ShellError> {
        let wait = async {
            loop {
                match self.next().await {
                    SupervisorEvent::Ready(supervisor) => return Ok(supervisor),
                    SupervisorEvent::Failed(text) => return Err(ShellError::Bash(text)),
                    SupervisorEvent::Gone(text) => return Err(ShellError::SupervisorGone(text)),
                    SupervisorEvent::Output { .. }
                    | SupervisorEvent::Done(_)
                    | SupervisorEvent::Jobs { .. } => {}
                }
            }
        };
        timeout(START_LIMIT, wait).await.unwrap_or(Err(ShellError::SupervisorStuck))
    }

    pub(crate) async fn restart(&mut self) -> Result<(), ShellError> {
        while self.events.try_recv().is_ok() {}
        self.send(wire::fresh()).await;
        self.ready().await.map(drop)
    }

    /// Sends a frame. A failure shows as the end of the events, or as their absence.
    pub(crate) async fn send(&mut self, frame: Vec<u8>) {
        if let Some(frames) = &self.frames
            && frames.send(frame).await.is_err()
        {
            self.frames = None;
        }
    }

    /// Selects the line whose output is received, as long as the returned guard lives.
    pub(crate) fn select_output(&self, id: u64) -> OutputGuard {
        self.wanted.store(id, Ordering::Relaxed);
        OutputGuard(Arc::clone(&self.wanted))
    }

    pub(crate) async fn next(&mut self) -> SupervisorEvent {
        self.events.recv().await.unwrap_or(SupervisorEvent::Gone(String::new()))
    }

    /// Ends bash and everything below it, and waits for that.
    pub(crate) async fn close(mut self) {
        self.send(wire::quit()).await;
        let Some(child) = self.detach() else { return };
        // A supervisor that was killed has ended nothing.
        if let Some(Ended::Signal(_)) = end(child).await {
            sweep::sweep(&self.mark).await;
        }
    }

    /// Ends the supervisor and everything below it at once.
    pub(crate) async fn kill(mut self) {
        let Some(mut child) = self.detach() else { return };
        // If it cannot end now, it does as soon as the kernel lets it.
        let _ = timeout(END_LIMIT, child.kill_tree()).await;
        drop(ManuallyDrop::into_inner(child));
        sweep::sweep(&self.mark).await;
    }

    /// Begins to watch the limits of its processes, if they have any.
    pub(crate) fn begin_span(&self) -> Option<WatchedSpan> {
        self.child.as_ref().and_then(|child| child.watch()).map(|watch| watch.begin())
    }

    /// Watches background processes until the next line. All processes end if they pass a limit.
    pub(crate) fn guard_background(&mut self, jobs: usize) {
        let root = self.child.as_ref().and_then(|child| child.pid()).filter(|_| jobs > 0);
        let Some((root, mut span)) = root.zip(self.begin_span()) else { return };
        let passed = Arc::clone(&self.passed);
        self.guard = Some(AbortOnDropHandle::new(tokio::spawn(async move {
            let breach = span.breach().await;
            *passed.lock() = Some(breach);
            // The number is still the supervisor's: the link has not waited for it.
            let _ = killpg(Pid::from_raw(root), Signal::SIGKILL);
        })));
    }

    /// Ends the watch between lines. Returns the limit that was passed.
    pub(crate) fn end_guard(&mut self) -> Option<Breach> {
        self.guard = None;
        self.passed.lock().take()
    }

    fn detach(&mut self) -> Option<ManuallyDrop<Box<dyn Child>>> {
        self.frames = None;
        self.guard = None;
        self.events.close();
        self.child.take()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let Some(child) = self.detach() else { return };
        // Without a runtime to reap it, the supervisor exits all the same.
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
            // Bash dies with it; there is no caller left to report a failure to.
            let _ = child.kill_tree().await;
            Some(Ended::Signal(Signal::SIGKILL as i32))
        }
    };
    drop(ManuallyDrop::into_inner(child));
    ended
}

/// The guard of [`Link::select_output`].
pub(crate) struct OutputGuard(Arc<AtomicU64>);

impl Drop for OutputGuard {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

async fn write(mut stdin: Box<dyn AsyncWrite + Send + Unpin>, mut frames: mpsc::Receiver<Vec<u8>>) {
    while let Some(frame) = frames.recv().await {
        let write = async {
            stdin.write_all(&frame).await?;
            stdin.flush().await
        };
        if !matches!(timeout(SEND_LIMIT, write).await, Ok(Ok(()))) {
            return;
        }
    }
}

async fn forward(
    stdout: Box<dyn AsyncRead + Send + Unpin>,
    stderr: Box<dyn AsyncRead + Send + Unpin>,
    events: mpsc::Sender<SupervisorEvent>,
    wanted: Arc<AtomicU64>,
    jobs: Jobs,
) {
    let mut stdout = BufReader::with_capacity(READ_SIZE, stdout);
    while let Some(event) = wire::read_event(&mut stdout).await {
        match event {
            SupervisorEvent::Output { id, bytes, .. } if id != wanted.load(Ordering::Relaxed) => {
                jobs.printed(id, &bytes)
            }
            SupervisorEvent::Jobs { query, jobs: list } => jobs.update_from_supervisor(query, list),
            event => {
                // From now on the output of the line's processes is no longer the line's.
                if let SupervisorEvent::Done(done) = &event {
                    let _ = wanted.compare_exchange(done.id, 0, Ordering::Relaxed, Ordering::Relaxed);
                }
                // Reading continues even without a receiver, so that the supervisor never waits for us.
                let _ = events.send(event).await;
            }
        }
    }
    let mut said = String::new();
    let mut last_words = stderr.take(4096);
    let _ = timeout(Duration::from_secs(1), last_words.read_to_string(&mut said)).await;
    let said = if said.is_empty() { said } else { format!(": {}", said.trim_end()) };
    let _ = events.send(SupervisorEvent::Gone(said)).await;
}
