//! `ax supervise`: keeps one bash of one agent session, and everything that descends from it.
//!
//! The host communicates with it over stdin and stdout only, in frames (one type byte, a little-endian `u32` length,
//! the payload), so any kind of pipe will do. Its invariants:
//!
//! * **Nothing outlives it.** It is a child subreaper, so `setsid`, `nohup`, `disown` and double forks all end up
//!   below it. When stdin ends (the host is gone, for any reason), on QUIT and on TERM/HUP/INT every descendant is
//!   ended before it exits.
//! * **Bash reads fixed statements as its script**, from a FIFO named `bash` in a private folder, so that `$0` and
//!   bash's messages read `bash: ...`. A read-eval loop was rejected: `break` ends it, `continue` skips the answer.
//!   Bash's own standard descriptors are /dev/null; the script descriptor is close-on-exec and bash itself guards it;
//!   the answer is written to a FIFO opened by name for just that statement. So no command, trap or child ever holds
//!   a control descriptor, and a line that redirects, closes or re-uses descriptors cannot affect the next one. The
//!   answer must carry the line's random token.
//! * **A line ends when bash answers or dies**, never by the end of its output: a background child may hold that for
//!   hours. Each line has its own pair of FIFOs; all foreground output is in them when the answer arrives, so they
//!   are drained without waiting. A pair still held by a background child stays with the old line's id, and later
//!   lines get another; a pair that no process holds is used again.
//! * **A stop affects this line only, and all of it**: the current descendants of this process, less the trees that
//!   were alive when the line began. After it no further command of the line runs; module `stop` describes that. For
//!   this each line is surrounded by a loop that bash can break out of, so a `break` or `continue` outside of a loop
//!   of its own ends the line, which is reported.
//! * **State survives the death of bash.** After each answer bash writes its exported variables, functions and umask
//!   to a file in the private folder (tmpfs if possible: about 40 us, after the answer was sent to the host). A new
//!   bash starts with an empty environment, reads that file and changes to the last known folder. The file is trusted
//!   only if it ends with its line's token. Options (`set -e`) and plain variables are dropped on purpose: they are
//!   often what killed the old one. Bash that has to exit for a stop is an exception: its state then also has the
//!   effects of the stopped line and plain variables.

use std::collections::HashSet;
use std::ffi::{OsString, c_int};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::bash::{self, Bash, LineScript};
use crate::command_folder::CommandFolder;
use crate::expected::{Expected, HeldFolder};
use crate::jobs::JobTable;
use crate::keeper;
use crate::line::{CurrentLine, Outputs};
use crate::private_folder::PrivateFolder;
use crate::stop::{GIVE_UP, LineStop, StopStep};
use crate::system::{self, PollFd, SIGCONT, SIGKILL, SIGTERM, Signals, send, wait};
use crate::tree::{Process, descendants, is_asleep, live, live_for_certain};
use crate::wire::{self, ExitKind, HostRequest};

/// The number of unsent bytes at which output is no longer read, so that its writers wait.
const OUT_FULL: usize = 512 * 1024;
/// More than a pipe can hold when the answer comes; a background flood must not delay the end.
const DRAIN_MAX: usize = 1024 * 1024;
/// The maximum number of outputs held by background children; beyond it the oldest are abandoned.
const LATE_MAX: usize = 128;
/// The time between two steps of a stop.
const TICK: Duration = Duration::from_millis(5);
/// The time between two checks of a running line.
const LOOK: Duration = Duration::from_millis(250);
const END_GRACE: Duration = Duration::from_millis(200);

struct Supervisor {
    folder: PrivateFolder,
    signals: Signals,
    host_in: File,
    host_out: File,
    input: Vec<u8>,
    out: Vec<u8>,
    scratch: Vec<u8>,
    answer_text: Vec<u8>,
    shell: OsString,
    start_cwd: PathBuf,
    expected: Expected,
    session: Option<CommandFolder>,
    cwd: PathBuf,
    /// The last known folder of bash.
    last: Option<HeldFolder>,
    bash: Option<Bash>,
    /// True while the host waits for bash to be ready.
    is_awaited: bool,
    /// Wait status of bash, once it has been reaped.
    ended: Option<c_int>,
    /// True if bash was replaced since the last line's end.
    respawned: bool,
    line: Option<CurrentLine>,
    pending: Option<(u64, Vec<u8>)>,
    /// The number of background processes at the end of the last line.
    left: usize,
    jobs: JobTable,
    late: Vec<Outputs>,
    spare: Vec<u32>,
    outputs_made: u32,
    /// The value of `$?` after the last line.
    code: i32,
    /// The token of each of the two state files, and the index of the newer one.
    snapshots: [String; 2],
    newest: usize,
    state: Option<Vec<u8>>,
}

pub fn run() -> io::Result<()> {
    keeper::fork_keeper();
    let signals = system::become_supervisor()?;
    let (host_in, host_out) = system::host_pipes();
    let mut supervisor = Supervisor {
        folder: PrivateFolder::make()?,
        signals,
        host_in,
        host_out,
        input: Vec::new(),
        out: Vec::new(),
        scratch: vec![0; 64 * 1024],
        answer_text: Vec::new(),
        shell: OsString::new(),
        start_cwd: PathBuf::new(),
        expected: Expected::Any,
        session: None,
        cwd: PathBuf::new(),
        last: None,
        bash: None,
        is_awaited: false,
        ended: None,
        respawned: false,
        line: None,
        pending: None,
        left: 0,
        jobs: JobTable::default(),
        late: Vec::new(),
        spare: Vec::new(),
        outputs_made: 0,
        code: 0,
        snapshots: Default::default(),
        newest: 0,
        state: None,
    };
    let result = supervisor.serve();
    supervisor.end_tree(&HashSet::new(), END_GRACE);
    supervisor.folder.remove();
    if let Some(session) = &supervisor.session {
        session.remove_if_left();
    }
    match result {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

impl Supervisor {
    /// The main loop: returns when the host is gone or requests the end.
    fn serve(&mut self) -> io::Result<()> {
        loop {
            self.flush()?;
            let mut fds = vec![
                PollFd::reader(self.host_in.as_raw_fd()),
                PollFd::reader(self.signals.0.as_raw_fd()),
                PollFd::reader(self.folder.answers.as_raw_fd()),
                PollFd::writer(if self.out.is_empty() { -1 } else { self.host_out.as_raw_fd() }),
            ];
            let is_full = self.out.len() >= OUT_FULL;
            for end in self.line.iter().map(|line| &line.outputs).chain(&self.late).flat_map(|o| &o.ends) {
                let file = end.as_ref().filter(|_| !is_full);
                fds.push(PollFd::reader(file.map_or(-1, AsRawFd::as_raw_fd)));
            }
            let is_stopping = self.line.as_ref().is_some_and(|line| line.stop.is_some());
            let pause = match is_stopping || self.jobs.is_any_ending() {
                true => Some(TICK),
                false => self.line.as_ref().map(|_| LOOK),
            };
            wait(&mut fds, pause)?;
            let is_ready = |index: usize| fds.get(index).is_some_and(PollFd::is_ready);
            let all = self.line.iter_mut().map(|line| &mut line.outputs).chain(&mut self.late);
            for (index, outputs) in all.enumerate() {
                for which in 0..2 {
                    if is_ready(4 + 2 * index + which) {
                        outputs.pump(which, 1, &mut self.scratch, &mut self.out);
                    }
                }
            }
            self.release_outputs();
            if is_ready(1) && self.take_signals() {
                return Ok(());
            }
            if is_ready(2) {
                self.read_answers();
            }
            if is_ready(0) && self.read_host()? {
                return Ok(());
            }
            self.check_silence();
            self.advance();
        }
    }

    /// Sends queued frames, as far as the pipe accepts them.
    fn flush(&mut self) -> io::Result<()> {
        let mut sent = 0;
        while sent < self.out.len() {
            match self.host_out.write(&self.out[sent..]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.out.drain(..sent);
        Ok(())
    }

    /// Handles requests of the host. Returns true when no more will come.
    fn read_host(&mut self) -> io::Result<bool> {
        let count = self.host_in.read(&mut self.scratch)?;
        self.input.extend_from_slice(&self.scratch[..count]);
        while let Some(request) = wire::take_request(&mut self.input) {
            match request {
                HostRequest::Start { shell, cwd, session, expected } => {
                    // The folder we were started in must remain removable.
                    let _ = std::env::set_current_dir("/");
                    self.shell = OsString::from_vec(shell);
                    self.start_cwd = PathBuf::from(OsString::from_vec(cwd));
                    self.expected = Expected::parse(&expected);
                    self.session = (!session.is_empty()).then(|| CommandFolder::new(session));
                    self.start_afresh();
                }
                HostRequest::Code(code) => self.code = code,
                HostRequest::Fresh => self.start_afresh(),
                HostRequest::Run { id, text } => {
                    self.pending = Some((id, text));
                    if self.bash.is_none() {
                        self.start_bash();
                    }
                }
                HostRequest::Stop { id, grace_ms } => self.stop(id, Duration::from_millis(grace_ms.into())),
                HostRequest::Jobs { query } => self.send_jobs(query),
                HostRequest::EndJob { id, grace_ms } => {
                    self.update_jobs(self.line.is_some());
                    self.jobs.end(id, Duration::from_millis(grace_ms.into()));
                }
                HostRequest::Quit => {
                    // The host is alive and removes it.
                    self.session = None;
                    return Ok(true);
                }
            }
        }
        Ok(count == 0)
    }

    /// Starts a fresh bash, with nothing left of an old one.
    fn start_afresh(&mut self) {
        self.end_tree(&HashSet::new(), END_GRACE);
        (self.bash, self.ended, self.line, self.pending, self.state) = (None, None, None, None, None);
        self.late.clear();
        self.jobs.clear();
        self.snapshots = Default::default();
        (self.respawned, self.is_awaited, self.code, self.left) = (false, true, 0, 0);
        (self.cwd, self.last) = (self.start_cwd.clone(), None);
        self.start_bash();
    }

    fn start_bash(&mut self) {
        self.cwd = existing(std::mem::take(&mut self.cwd));
        let rc = self.session.as_ref().map(CommandFolder::rc);
        let started = self.folder.repair().and_then(|()| {
            Bash::start(&mut self.folder, &self.shell, &self.cwd, rc.as_deref(), self.state.as_deref())
        });
        match started {
            Ok(bash) => self.bash = Some(bash),
            Err(error) => self.fail(&format!("cannot start {}: {error}", self.shell.display())),
        }
    }

    fn fail(&mut self, text: &str) {
        (self.line, self.pending) = (None, None);
        wire::put_failure(&mut self.out, text);
    }

    fn stop(&mut self, id: u64, grace: Duration) {
        if self.pending.take_if(|(pending, _)| *pending == id).is_some() {
            self.update_jobs(self.line.is_some());
            self.put_done(id, &ExitKind::ShellSignal(SIGTERM));
        }
        let shell = self.shell_pid();
        let Some(line) = self.line.as_mut().filter(|line| line.outputs.id == id) else {
            return;
        };
        if let Some(stop) = &mut line.stop {
            return stop.shorten_grace(grace);
        }
        line.stop = Some(LineStop::begin(shell, &line.old, grace));
        // Only now the last answer of bash is certain.
        self.read_answers();
        self.signal_shell();
    }

    /// Makes bash give up the line, after all its processes were halted.
    fn signal_shell(&mut self) {
        let (Some(line), Some(bash)) = (&mut self.line, &self.bash) else {
            return;
        };
        let Some(stop) = &mut line.stop else { return };
        if line.answer.is_some() {
            stop.continue_without_shell(&line.old);
        } else if bash.is_itself() {
            if let Some(last) = HeldFolder::of(bash.pid) {
                self.cwd = existing(last.name().to_owned());
                self.last = Some(last);
            }
            let prepared = bash::unwind(&self.folder, self.newest, &line.token, false);
            stop.signal_shell(prepared.is_ok());
        } else {
            stop.include_shell(&line.old);
        }
    }

    fn shell_pid(&self) -> c_int {
        self.bash.as_ref().map_or(0, |bash| bash.pid)
    }

    /// Handles signals and reaps children. Returns true when we are to end.
    fn take_signals(&mut self) -> bool {
        let asked = self.signals.take();
        while let Some((pid, status)) = system::reap() {
            if pid == self.shell_pid() {
                self.ended = Some(status);
            }
        }
        asked
    }

    fn read_answers(&mut self) {
        while let Ok(count @ 1..) = self.folder.answers.read(&mut self.scratch) {
            self.answer_text.extend_from_slice(&self.scratch[..count]);
        }
        while let Some(end) = self.answer_text.iter().position(|byte| *byte == b'\n') {
            let answer: Vec<u8> = self.answer_text.drain(..=end).collect();
            let answer = String::from_utf8_lossy(&answer);
            let Some((token, code)) = answer.trim_end().split_once(' ') else {
                continue;
            };
            if let Some(line) = self.line.as_mut().filter(|line| line.token == token) {
                line.take_answer(code);
            } else if let Some(bash) = self.bash.as_mut().filter(|b| b.starting.as_deref() == Some(token)) {
                // The folder with that name may have been swapped for a link since it was checked.
                let at_start = self.is_awaited || self.cwd == self.start_cwd;
                if !self.expected.is_met(bash.pid, &self.cwd, at_start, self.last.as_ref()) {
                    send(bash.pid, SIGKILL);
                    self.bash = None;
                    let folder = self.cwd.display().to_string();
                    self.fail(&format!(
                        "{folder} is not the folder that it was: put the folder back in its place"
                    ));
                    continue;
                }
                bash.has_started();
                if std::mem::take(&mut self.is_awaited) {
                    wire::put_ready(&mut self.out, self.folder.path());
                }
            }
        }
        if self.answer_text.len() > 4096 {
            self.answer_text.clear();
        }
    }

    /// Ends a bash that reads its script without running it, as after `set -n`, or that has no descriptor left for
    /// its answer.
    fn check_silence(&mut self) {
        let (Some(line), Some(bash)) = (&mut self.line, &self.bash) else { return };
        let is_silent =
            line.answer.is_none() && line.stop.is_none() && bash.has_read_all() && bash.is_itself();
        let was_silent = line.is_silent();
        line.silent = if was_silent || (is_silent && is_asleep(bash.pid)) { line.silent + 1 } else { 0 };
        if was_silent || !line.is_silent() {
            return;
        }
        let told = b"bash: the shell runs nothing any more (after `set -n`, or a limit that is too low for it, such as `ulimit -n`); it is started again\n";
        wire::put_output(&mut self.out, line.outputs.id, 1, told);
        send(bash.pid, SIGKILL);
    }

    /// Takes the next step after an event: an answer, the end of bash, the end of a grace time.
    fn advance(&mut self) {
        if let Some(status) = self.ended.take() {
            self.bash_ended(status);
        }
        self.step();
        if self.jobs.is_any_ending() {
            self.update_jobs(self.line.is_some());
            self.jobs.signal_ending();
        }
        let is_idle = self.bash.as_ref().is_some_and(|bash| bash.starting.is_none()) && self.line.is_none();
        if let Some((id, text)) = self.pending.take_if(|_| is_idle)
            && let Err(error) = self.begin(id, &text)
        {
            self.fail(&format!("cannot hand the line to the shell: {error}"));
        }
    }

    /// Checks whether the line has ended, and continues a stop.
    fn step(&mut self) {
        let has_shell = self.bash.is_some();
        let Some(line) = &mut self.line else { return };
        match line.step(has_shell) {
            StopStep::Wait => {}
            StopStep::Relent => {
                // If it fails, the old statements make bash exit.
                let _ = bash::unwind(&self.folder, self.newest, &line.token, true);
                if let Some(stop) = &mut line.stop {
                    stop.relent(&line.old);
                }
            }
            StopStep::Done => {
                let Some(line) = self.line.take() else { return };
                let how = line.exit();
                if line.stop.is_some() {
                    bash::forget_unwind(&self.folder);
                }
                if line.has_dropped_its_rest() {
                    let told =
                        b"bash: `break` or `continue` beyond the loops of the line: the rest of the line did not run\n";
                    wire::put_output(&mut self.out, line.outputs.id, 1, told);
                }
                self.finish(line, &how);
                if !has_shell {
                    self.start_bash();
                }
            }
        }
    }

    fn begin(&mut self, id: u64, text: &[u8]) -> io::Result<()> {
        self.folder.repair()?;
        let Some(bash) = &mut self.bash else {
            return Err(ErrorKind::NotConnected.into());
        };
        let token = self.folder.token()?;
        let number = self.spare.pop().unwrap_or_else(|| {
            self.outputs_made += 1;
            self.outputs_made
        });
        let outputs = Outputs::open(&self.folder, id, number)?;
        self.newest ^= 1;
        self.snapshots[self.newest].clone_from(&token);
        // If nothing ran at the end of the last line, an idle bash has started nothing since.
        let old = match self.left {
            0 => HashSet::new(),
            _ => descendants(bash.pid, &HashSet::new()).into_iter().collect(),
        };
        let script = LineScript {
            text,
            token: &token,
            code: self.code,
            outputs: Outputs::names(number),
            state_slot: self.newest,
            session: self.session.as_ref(),
            cwd: &self.cwd,
        };
        bash.feed(&self.folder, &script)?;
        self.line = Some(CurrentLine::new(token, outputs, old));
        Ok(())
    }

    fn bash_ended(&mut self, status: c_int) {
        self.read_answers();
        let Some(bash) = self.bash.take() else { return };
        if bash.starting.is_some() {
            // The state may be the cause of its death.
            if bash.restored {
                self.state = None;
                return self.start_bash();
            }
            return self.fail("the shell ended while it was starting");
        }
        let newest = [self.newest, self.newest ^ 1];
        let state = newest.into_iter().find_map(|slot| self.folder.state(slot, &self.snapshots[slot]));
        self.state = state.or(self.state.take());
        (self.respawned, self.code) = (true, 0);
        // A bash that dies while idle is replaced when it is needed, so that it does not die over and over.
        let Some(mut line) = self.line.take() else { return };
        if let Some(stop) = &mut line.stop {
            // Its processes may still be in their grace time.
            stop.shell_ended();
            self.line = Some(line);
            return;
        }
        let how = match (line.answer, status & 0x7f) {
            (Some(code), _) => ExitKind::Code(code),
            (None, _) if line.is_silent() => ExitKind::Code(0),
            (None, 0) => ExitKind::ShellExit((status >> 8) & 0xff),
            (None, signal) => ExitKind::ShellSignal(signal),
        };
        self.finish(line, &how);
        self.start_bash();
    }

    /// Drains the outputs without waiting, then reports to the host.
    fn finish(&mut self, mut line: CurrentLine, how: &ExitKind) {
        for which in 0..2 {
            line.outputs.pump(which, DRAIN_MAX, &mut self.scratch, &mut self.out);
        }
        if let Some(last) = HeldFolder::of(self.shell_pid()) {
            self.cwd = existing(last.name().to_owned());
            self.last = Some(last);
        }
        if let (ExitKind::Code(code), Some(_)) = (how, &self.bash) {
            self.code = *code;
        }
        let new = self.update_jobs(true);
        self.jobs.add(line.outputs.id, line.outputs.number, new);
        if !self.jobs.list().is_empty() {
            wire::put_jobs(&mut self.out, 0, self.jobs.list());
        }
        self.put_done(line.outputs.id, how);
        self.late.push(line.outputs);
        self.release_outputs();
    }

    fn put_done(&mut self, id: u64, how: &ExitKind) {
        let respawned = std::mem::take(&mut self.respawned);
        let cwd = self.cwd.as_os_str().as_bytes();
        wire::put_done(&mut self.out, id, how, respawned, self.left, cwd);
    }

    /// Reads the live processes, and returns those that belong to no job but to the line, if there is one.
    fn update_jobs(&mut self, has_line: bool) -> Vec<Process> {
        let alive = live(self.shell_pid(), &HashSet::new());
        self.left = alive.len();
        self.jobs.update(&alive, &self.folder, has_line)
    }

    /// Sends the list of jobs. Output up to now goes first.
    fn send_jobs(&mut self, query: u64) {
        for outputs in &mut self.late {
            for which in 0..2 {
                outputs.pump(which, OUT_FULL / LATE_MAX, &mut self.scratch, &mut self.out);
            }
        }
        self.release_outputs();
        self.update_jobs(self.line.is_some());
        wire::put_jobs(&mut self.out, query, self.jobs.list());
    }

    /// Releases outputs that no process writes to any more for other lines.
    fn release_outputs(&mut self) {
        self.late.retain(|outputs| {
            if !outputs.are_held() {
                self.spare.push(outputs.number);
                self.jobs.forget_outputs(outputs.number);
            }
            outputs.are_held()
        });
        let excess = self.late.len().saturating_sub(LATE_MAX);
        self.late.drain(..excess);
    }

    /// Ends all descendants, bash too, except the trees in `spare`: first with TERM, then with KILL.
    fn end_tree(&mut self, spare: &HashSet<Process>, grace: Duration) {
        let began = Instant::now();
        let mut told = HashSet::new();
        loop {
            self.take_signals();
            let alive = live_for_certain(0, spare);
            if alive.is_empty() || began.elapsed() >= GIVE_UP {
                return;
            }
            let is_kind = began.elapsed() < grace;
            for process in alive.iter().map(|live| live.process) {
                if !is_kind {
                    send(process.0, SIGKILL);
                } else if told.insert(process) {
                    send(process.0, SIGTERM);
                    send(process.0, SIGCONT);
                }
            }
            let _ = wait(&mut [PollFd::reader(self.signals.0.as_raw_fd())], Some(TICK));
        }
    }
}

/// The folder, or its nearest parent that still exists.
fn existing(cwd: PathBuf) -> PathBuf {
    if cwd.is_dir() {
        return cwd;
    }
    let bytes = cwd.as_os_str().as_bytes();
    let bytes = bytes.strip_suffix(b" (deleted)").unwrap_or(bytes).to_vec();
    let path = PathBuf::from(OsString::from_vec(bytes));
    path.ancestors().find(|dir| dir.is_dir()).unwrap_or(Path::new("/")).to_owned()
}
