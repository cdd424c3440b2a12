//! The shell of an agent session, on the host side.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lathe_protocol::FolderIdentity;
use lathe_workspace::{Breach, Processes, breach_of};
use nix::libc;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clock::Deadline;
use crate::command_session::CommandSession;
use crate::link::Link;
use crate::sweep::sweep;
use crate::wire::{self, LineDone, SupervisorEvent, WireExit};
use crate::{
    CommandHost, Jobs, LineClock, LineEnd, LineExit, LineLimits, LiveChunk, ShellError, Spool, Stream,
};

/// Between TERM and KILL for a line that has to end.
const GRACE_MS: u32 = 300;
/// A line that has to end does so in about a second at most; one that hangs in the kernel in under five.
const STUCK_LIMIT: Duration = Duration::from_secs(10);
/// A line that passed a limit has to end at once, or the shell ends with it.
const BREACH_LIMIT: Duration = Duration::from_secs(1);
/// The code of a line that passed a limit: that of a killed program.
const LIMITED: i32 = 137;
/// The code of an interrupted command.
const CANCELLED: i32 = 130;
const LINE_MAX: usize = 64 * 1024 * 1024;

/// The requirement on bash's folder before it gets a line: the folder's name may lead elsewhere by then.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StartFolder {
    /// Any folder that has the name.
    #[default]
    Any,
    /// The folder at exactly this path, without links on the way.
    Exact,
    /// This very folder.
    Is(FolderIdentity),
}

impl fmt::Display for StartFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => Ok(()),
            Self::Exact => f.write_str("path"),
            Self::Is(FolderIdentity { device, inode }) => write!(f, "{device}:{inode}"),
        }
    }
}

/// The folder, environment and programs of a shell.
#[derive(Clone)]
pub struct ShellOptions {
    pub cwd: PathBuf,
    pub start: StartFolder,
    /// The whole environment of bash.
    pub env: Vec<(OsString, OsString)>,
    /// The supervisor, see [`place_ax`](crate::place_ax).
    pub ax: PathBuf,
    pub shell: PathBuf,
    /// The host of the agent commands, if there are any.
    pub commands: Option<Arc<dyn CommandHost>>,
}

impl fmt::Debug for ShellOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cwd, start, env, ax, shell, commands } = self;
        f.debug_struct("ShellOptions")
            .field("cwd", cwd)
            .field("start", start)
            .field("env", env)
            .field("ax", ax)
            .field("shell", shell)
            .field("commands", &commands.as_ref().map(|host| host.names()))
            .finish()
    }
}

/// One live bash. Lines run one after the other.
pub struct Shell {
    processes: Arc<dyn Processes>,
    options: ShellOptions,
    /// None after the supervisor was lost, until the next line.
    link: Option<Link>,
    /// After the link, so that the supervisor exits first.
    session: Option<CommandSession>,
    cwd: PathBuf,
    /// A handle of the folder with that name at the end of the last line.
    held: Option<File>,
    jobs: Jobs,
    /// The number of background processes at the end of the last line.
    left: usize,
    last_id: u64,
    /// A line whose `run` was dropped before its end.
    unfinished: Option<u64>,
    /// True if the supervisor was replaced since the last line's end.
    replaced: bool,
    /// The value of `$?` for the next line, if something else ended since the last one.
    code: Option<i32>,
    /// The limit that background processes passed since the last line's end; the shell ended with them.
    background: Option<Breach>,
}

/// The reasons for stopping a line.
#[derive(Clone, Copy)]
enum LineStopReason {
    Timeout,
    Silence(Duration),
    Cancel,
    Limit(Breach),
}

/// The ways in which the wait for a line ends.
enum LineOutcome {
    Done(LineDone),
    /// The supervisor did not end a line that passed a limit.
    Stuck(Breach),
    /// The supervisor is gone, with its last words.
    Gone(String),
}

impl Shell {
    pub async fn start(processes: Arc<dyn Processes>, options: ShellOptions) -> Result<Self, ShellError> {
        let jobs = Jobs::default();
        let make = |host| CommandSession::make(host, &options.ax, &options.env, jobs.clone());
        let session = options.commands.clone().map(make).transpose()?;
        let link = Link::start(&*processes, &options, session.as_ref(), &jobs).await?;
        let cwd = options.cwd.clone();
        Ok(Self {
            processes,
            options,
            link: Some(link),
            session,
            cwd,
            held: None,
            jobs,
            left: 0,
            last_id: 0,
            unfinished: None,
            replaced: false,
            code: None,
            background: None,
        })
    }

    /// The number that the next line will have.
    pub fn next_line(&self) -> u64 {
        self.last_id + 1
    }

    /// Sets the exit code that the next line sees as `$?`, of something that ended in place of a line.
    pub fn set_code(&mut self, code: i32) {
        self.code = Some(code);
    }

    /// The number of background processes that lived at the end of the last line.
    pub fn job_count(&self) -> usize {
        self.left
    }

    /// The folder of bash at the end of the last line.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// The processes that lines have left running. May be called while a line runs.
    pub fn jobs(&self) -> Jobs {
        self.jobs.clone()
    }

    /// Runs one line, which may be many lines of script. It ends by itself, by its time-out or by `cancel`; its
    /// output until then is in the result. `live` gets a copy of the output as it comes. Time in which a command of
    /// the line holds its clock does not count.
    ///
    /// A text whose line ends are all CR LF is treated as if they were LF.
    ///
    /// An error means that the shell itself failed; the next call starts a new one in the same folder.
    pub async fn run(
        &mut self,
        line: &[u8],
        limits: LineLimits,
        live: Option<&mpsc::Sender<LiveChunk>>,
        cancel: &CancellationToken,
    ) -> Result<LineEnd, ShellError> {
        if line.contains(&0) {
            return Err(ShellError::NulInLine);
        }
        if line.len() > LINE_MAX {
            return Err(ShellError::LineTooLong { limit: LINE_MAX });
        }
        if cancel.is_cancelled() {
            return Ok(self.not_run());
        }
        let began = Instant::now();
        self.last_id += 1;
        let id = self.last_id;
        let mut outputs = [Spool::new(limits.keep), Spool::new(limits.keep)];
        let result = self.run_as(id, &without_cr(line), limits, live, cancel, &mut outputs).await;
        if let Some(session) = &self.session {
            session.shared().line_has_ended();
        }
        if let Err(error) = &result {
            let mark = self.link.take().map(|link| link.mark().to_owned());
            if let (ShellError::SupervisorGone(_), Some(mark)) = (error, mark) {
                sweep(&mark).await;
            }
            self.unfinished = None;
            self.replaced = true;
        }
        let (exit, done) = result?;
        self.cwd.clone_from(&done.cwd);
        self.held = hold(&self.cwd);
        self.left = done.jobs;
        self.link.iter_mut().for_each(|link| link.guard_background(done.jobs));
        let [stdout, stderr] = outputs;
        Ok(LineEnd {
            exit,
            stdout,
            stderr,
            cwd: done.cwd,
            respawned: done.respawned || std::mem::take(&mut self.replaced),
            jobs: done.jobs,
            background: self.background.take(),
            elapsed: began.elapsed(),
        })
    }

    /// The result of a line that was cancelled before it began.
    fn not_run(&self) -> LineEnd {
        LineEnd {
            exit: LineExit::Cancelled { code: CANCELLED },
            stdout: Spool::new(0),
            stderr: Spool::new(0),
            cwd: self.cwd.clone(),
            respawned: false,
            jobs: self.left,
            background: None,
            elapsed: Duration::ZERO,
        }
    }

    async fn run_as(
        &mut self,
        id: u64,
        line: &[u8],
        limits: LineLimits,
        live: Option<&mpsc::Sender<LiveChunk>>,
        cancel: &CancellationToken,
        outputs: &mut [Spool; 2],
    ) -> Result<(LineExit, LineDone), ShellError> {
        let unfinished = self.unfinished.replace(id);
        let clock = LineClock::default();
        self.jobs.line_begins(id, line);
        if let Some(session) = &mut self.session {
            session.repair();
            session.shared().line_begins(id, clock.clone());
        }
        if let Some(breach) = self.link.as_mut().and_then(Link::end_guard)
            && let Some(link) = self.link.take()
        {
            link.kill().await;
            (self.background, self.replaced) = (Some(breach), true);
        }
        let link = match &mut self.link {
            Some(link) => link,
            none => {
                let cwd = nearest(&self.cwd);
                let start = match self.options.start {
                    StartFolder::Is(_) if cwd == self.options.cwd => self.options.start,
                    // A removed folder may be made again by other processes; one that still exists is the right one.
                    StartFolder::Is(_) => {
                        let held = self.held.as_ref().filter(|_| cwd == self.cwd);
                        held.and_then(identity).map_or(StartFolder::Exact, StartFolder::Is)
                    }
                    StartFolder::Any | StartFolder::Exact => self.options.start,
                };
                let options = ShellOptions { cwd, start, ..self.options.clone() };
                none.insert(Link::start(&*self.processes, &options, self.session.as_ref(), &self.jobs).await?)
            }
        };
        let _wanted = link.select_output(id);
        if let Some(old) = unfinished {
            link.send(wire::stop(old, 0)).await;
        }
        // An unfinished line ends first: the supervisor holds the next one until then.
        if let Some(code) = self.code.take() {
            link.send(wire::code(code)).await;
        }
        let mut span = link.begin_span();
        link.send(wire::run(id, line)).await;
        let mut stop = None;
        let mut deadline = Deadline::new(limits.timeout, &clock);
        let silence = |limit: Duration| (limit, Deadline::new(limit, &clock));
        let mut silent = limits.silence.map(silence);
        let ended = {
            let breaching = breach_of(&mut span);
            tokio::pin!(breaching);
            loop {
                let why = tokio::select! {
                    event = link.next() => match event {
                        SupervisorEvent::Output { id: of, stream, bytes } if of == id => {
                            take_output(outputs, stream, bytes, live);
                            silent = limits.silence.map(silence);
                            continue;
                        }
                        SupervisorEvent::Done(done) if done.id == id => break LineOutcome::Done(done),
                        SupervisorEvent::Failed(text) => return Err(ShellError::Bash(text)),
                        SupervisorEvent::Gone(text) => break LineOutcome::Gone(text),
                        SupervisorEvent::Output { .. } | SupervisorEvent::Done(_) | SupervisorEvent::Ready(_) | SupervisorEvent::Jobs { .. } => continue,
                    },
                    () = deadline.passed() => match stop {
                        None => LineStopReason::Timeout,
                        Some(LineStopReason::Limit(breach)) => break LineOutcome::Stuck(breach),
                        Some(LineStopReason::Timeout | LineStopReason::Silence(_) | LineStopReason::Cancel) => {
                            return Err(ShellError::SupervisorStuck);
                        }
                    },
                    limit = passed(&mut silent), if stop.is_none() => LineStopReason::Silence(limit),
                    () = cancel.cancelled(), if stop.is_none() => LineStopReason::Cancel,
                    breach = &mut breaching, if stop.is_none() => LineStopReason::Limit(breach),
                };
                stop = Some(why);
                let (limit, grace) = match why {
                    LineStopReason::Limit(_) => (BREACH_LIMIT, 0),
                    LineStopReason::Timeout | LineStopReason::Silence(_) | LineStopReason::Cancel => {
                        (STUCK_LIMIT, GRACE_MS)
                    }
                };
                deadline = Deadline::new(limit, &LineClock::default());
                link.send(wire::stop(id, grace)).await;
            }
        };
        let enforced = |code| span.as_ref().and_then(|span| span.enforced(code));
        match ended {
            LineOutcome::Done(done) => {
                self.unfinished = None;
                let exit = match (exit(&done.how, stop), stop) {
                    (exit, Some(_)) => exit,
                    (exit, None) => {
                        let code = exit.code();
                        enforced(code).map_or(exit, |breach| LineExit::Limited { code, breach })
                    }
                };
                // Processes of earlier lines may be the cause, and they are still there.
                if let (Some(LineStopReason::Limit(breach)), Some(span)) = (stop, &span)
                    && done.jobs > 0
                    && span.still_passes(breach).await
                {
                    return Ok(self.replace_limited(id, breach).await);
                }
                Ok((exit, done))
            }
            LineOutcome::Stuck(breach) => Ok(self.replace_limited(id, breach).await),
            LineOutcome::Gone(text) => match (stop, enforced(LIMITED)) {
                (Some(LineStopReason::Limit(breach)), _) | (_, Some(breach)) => {
                    Ok(self.replace_limited(id, breach).await)
                }
                (_, None) => Err(ShellError::SupervisorGone(text)),
            },
        }
    }

    /// Ends the shell at once with all its processes. The next line gets a new one.
    async fn replace_limited(&mut self, id: u64, breach: Breach) -> (LineExit, LineDone) {
        self.unfinished = None;
        if let Some(link) = self.link.take() {
            link.kill().await;
        }
        let how = WireExit::Code(LIMITED);
        let done = LineDone { id, how, respawned: true, jobs: 0, cwd: nearest(&self.cwd) };
        (LineExit::Limited { code: LIMITED, breach }, done)
    }

    /// Starts a fresh bash in the folder and with the environment of the start; all old processes are ended.
    pub async fn restart(&mut self) -> Result<(), ShellError> {
        self.unfinished = None;
        self.code = None;
        self.replaced = false;
        self.cwd.clone_from(&self.options.cwd);
        self.held = None;
        let result = match &mut self.link {
            Some(link) => link.restart().await,
            none => Link::start(&*self.processes, &self.options, self.session.as_ref(), &self.jobs)
                .await
                .map(|link| *none = Some(link)),
        };
        if result.is_err() {
            self.link = None;
        }
        self.jobs.clear();
        result
    }

    /// Ends bash and everything it started. No process is left afterwards.
    pub async fn close(mut self) {
        if let Some(link) = self.link.take() {
            link.close().await;
        }
        if let Some(session) = self.session.take() {
            session.close().await;
        }
    }
}

fn take_output(
    outputs: &mut [Spool; 2],
    stream: Stream,
    bytes: Vec<u8>,
    live: Option<&mpsc::Sender<LiveChunk>>,
) {
    let [stdout, stderr] = outputs;
    let spool = match stream {
        Stream::Stdout => stdout,
        Stream::Stderr => stderr,
    };
    let at = spool.total();
    spool.push(&bytes);
    if let Some(live) = live {
        // Best effort: a slow viewer must not slow down the command.
        let _ = live.try_send(LiveChunk { stream, at, bytes });
    }
}

/// Waits until a line has been silent for too long; without end if there is no limit.
async fn passed(silent: &mut Option<(Duration, Deadline)>) -> Duration {
    match silent {
        Some((limit, deadline)) => {
            deadline.passed().await;
            *limit
        }
        None => std::future::pending().await,
    }
}

fn exit(how: &WireExit, stop: Option<LineStopReason>) -> LineExit {
    match (how, stop) {
        (WireExit::Code(code), None) => LineExit::Code(*code),
        (WireExit::ShellSignal(signal), None) => LineExit::ShellKilled { signal: *signal },
        (WireExit::Code(code), Some(LineStopReason::Timeout)) => LineExit::TimedOut { code: *code },
        (WireExit::Code(code), Some(LineStopReason::Silence(limit))) => {
            LineExit::Silent { code: *code, limit }
        }
        (WireExit::Code(code), Some(LineStopReason::Cancel)) => LineExit::Cancelled { code: *code },
        (WireExit::ShellSignal(signal), Some(LineStopReason::Timeout)) => {
            LineExit::TimedOut { code: 128 + signal }
        }
        (WireExit::ShellSignal(signal), Some(LineStopReason::Silence(limit))) => {
            LineExit::Silent { code: 128 + signal, limit }
        }
        (WireExit::ShellSignal(signal), Some(LineStopReason::Cancel)) => {
            LineExit::Cancelled { code: 128 + signal }
        }
        (WireExit::Code(_) | WireExit::ShellSignal(_), Some(LineStopReason::Limit(breach))) => {
            LineExit::Limited { code: LIMITED, breach }
        }
    }
}

/// A handle of the folder with exactly this name.
fn hold(folder: &Path) -> Option<File> {
    let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW;
    File::options().read(true).custom_flags(flags).open(folder).ok()
}

/// The identity of a folder. None once it was removed.
fn identity(held: &File) -> Option<FolderIdentity> {
    let found = held.metadata().ok().filter(|found| found.nlink() > 0)?;
    Some(FolderIdentity { device: found.dev(), inode: found.ino() })
}

fn nearest(cwd: &Path) -> PathBuf {
    cwd.ancestors().find(|dir| dir.is_dir()).unwrap_or(Path::new("/")).to_owned()
}

/// Converts CR LF line ends, which would make every word at a line's end wrong. Mixed text is not changed: a carriage
/// return in it is probably intended.
fn without_cr(line: &[u8]) -> Cow<'_, [u8]> {
    let ends = line.iter().filter(|byte| **byte == b'\n').count();
    let crlf = line.windows(2).filter(|pair| pair == b"\r\n").count();
    if ends == 0 || crlf != ends {
        return Cow::Borrowed(line);
    }
    let mut text = Vec::with_capacity(line.len());
    for (index, byte) in line.iter().enumerate() {
        if *byte != b'\r' || line.get(index + 1) != Some(&b'\n') {
            text.push(*byte);
        }
    }
    Cow::Owned(text)
}
