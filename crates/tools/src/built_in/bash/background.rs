//! Processes that lines leave in the background.
//!
//! The tree is compared before and after a line. Later changes of its processes are found by further scans: before
//! the next call, at the end of the run, and after the shell has ended. Each such scan is an event of its own,
//! because the journal has the result of the line by then. Copies made for the line are kept until its processes have
//! ended.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lathe_changes::{BackgroundLine, BrokenRepository, QuarantineEntry, TreeChange};
use lathe_protocol::{CallId, Change, CommandRan, Decision, Verdict};
use lathe_shell::place_ax;

use crate::finish::journal_changes;
use crate::line::secure::{self, SecuredLine};
use crate::services::Services;
use crate::tool::RunContext;

/// Time for background processes that are agent commands.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time for any others: a server keeps running, and is not waited for any longer.
const MOMENT: Duration = Duration::from_millis(100);
const TICK: Duration = Duration::from_millis(10);

/// Bytes of a line that are recorded with what its processes changed.
const WORDS: usize = 400;

/// A line whose processes still run.
pub(crate) struct LineWithProcesses {
    /// Its number in the shell.
    number: u64,
    command: String,
    cwd: PathBuf,
    context: RunContext,
    secured: SecuredLine,
    /// Changes that no session records.
    changes: Vec<TreeChange>,
}

/// Changes that were found after the end of their line.
#[derive(Debug)]
pub struct LateChanges {
    /// The call of the line.
    pub call: CallId,
    pub ran: CommandRan,
}

impl LineWithProcesses {
    /// The line that has just ended.
    pub(crate) fn new(context: &RunContext, command: String, cwd: PathBuf) -> Self {
        let number = context.services.last_number();
        let (context, secured) = (context.clone(), SecuredLine::default());
        Self { number, command, cwd, context, secured, changes: Vec::new() }
    }

    /// Keeps the copies made for the line as long as its processes live, and what it has broken so far for good.
    pub(crate) async fn keep(
        self,
        secured: SecuredLine,
        changes: Vec<TreeChange>,
        broken: Vec<BrokenRepository>,
    ) -> Option<QuarantineEntry> {
        let services = Arc::clone(&self.context.services);
        let kept = secure::finish_line(secured.without_secured(), &self.context, Vec::new(), broken).await;
        services.background_lines.lock().push(Self { secured, changes, ..self });
        kept
    }

    fn background(&self) -> BackgroundLine {
        let whole = self.context.services.redactor.redact_text(&self.command);
        let line = crate::view::clip(&whole, WORDS).to_owned();
        BackgroundLine { call: self.context.call.as_str().to_owned(), line }
    }

    /// The event about changes of its processes.
    fn late_changes(&self, changes: Vec<TreeChange>) -> LateChanges {
        let redactor = &self.context.services.redactor;
        let clean = |text: &str| redactor.redact_text(text).into_owned();
        let cwd = clean(&self.cwd.display().to_string());
        let changes = journal_changes(changes, &self.context.call, redactor);
        LateChanges {
            call: self.context.call.clone(),
            ran: background_event(self.background().line, cwd, changes),
        }
    }
}

/// The event about changes that processes of a line made after its end.
pub fn background_event(line: String, cwd: String, changes: Vec<Change>) -> CommandRan {
    let reason = "the line that left it running was allowed".to_owned();
    CommandRan {
        argv: vec![line],
        cwd,
        decision: Decision { verdict: Verdict::Allow, rule: "line".to_owned(), reason },
        exit: 0,
        took_ms: 0,
        changes,
        between_lines: true,
        tool: None,
        seen: Vec::new(),
        memory: None,
        summary: None,
    }
}

impl Services {
    /// Tells whether lines have left processes whose changes may not be known yet.
    pub fn has_background_lines(&self) -> bool {
        !self.background_lines.lock().is_empty()
    }

    /// Scans for changes of background processes. Nothing is scanned while a line runs: its own scan finds them.
    pub async fn find_late_changes(&self) -> Option<LateChanges> {
        if !self.has_background_lines() {
            return None;
        }
        let living = self.live_jobs().await;
        let runs = |line: &LineWithProcesses| living.iter().any(|(number, _)| *number == line.number);
        // Changes that a failed scan should have found are found by the next one.
        let compared = self.tracking.scan_between_lines(!living.is_empty()).await?.ok()?;
        let (late, ended) = {
            let mut left = self.background_lines.lock();
            let changes = compared.changes;
            let mut late = None;
            if let Some(last) = left.last_mut().filter(|_| !changes.is_empty()) {
                match self.tracking.is_sparing() {
                    true => last.changes.extend(changes),
                    false => late = Some(last.late_changes(changes)),
                }
            }
            let ended: Vec<LineWithProcesses> = left.extract_if(.., |line| !runs(line)).collect();
            (late, ended)
        };
        for LineWithProcesses { context, secured, changes, .. } in ended {
            let broken = self.tracking.broken_repositories().await;
            secure::finish_line(secured, &context, changes, broken).await;
        }
        late
    }

    /// Keeps a way to undo what background processes do from now on, or releases it if no process is left. Called
    /// when the journal has what was found so far; `changed` tells that this is more than the last time.
    pub async fn hold_background(&self, changed: bool) {
        let left = self.background_lines.lock().last().map(LineWithProcesses::background);
        match left {
            Some(left) => self.tracking.hold_copies(left, changed).await,
            None => self.tracking.release_copies(),
        }
    }

    /// Gives background processes a short time to end, agent commands a longer one, and scans.
    pub async fn settle_background(&self) -> Option<LateChanges> {
        if !self.has_background_lines() {
            return None;
        }
        self.wait_for_background().await;
        self.find_late_changes().await
    }

    pub(crate) async fn wait_for_background(&self) {
        let own = [place_ax(&self.plan.home).ok(), Some(self.plan.shell.clone())];
        let own: Vec<PathBuf> =
            own.into_iter().flatten().filter_map(|path| path.canonicalize().ok()).collect();
        let began = Instant::now();
        loop {
            let living = self.live_jobs().await;
            if living.is_empty() {
                return;
            }
            let all_own =
                living.iter().all(|(_, processes)| processes.iter().all(|one| is_one_of(*one, &own)));
            let limit = if all_own { PATIENCE } else { MOMENT };
            if began.elapsed() >= limit {
                return;
            }
            tokio::time::sleep(TICK).await;
        }
    }

    /// Tells whether processes of a line are alive.
    pub(crate) async fn is_line_alive(&self, line: u64) -> bool {
        self.live_jobs().await.iter().any(|(number, _)| *number == line)
    }

    /// The lines with live processes, and those processes.
    async fn live_jobs(&self) -> Vec<(u64, Vec<u32>)> {
        let Some(jobs) = self.jobs() else { return Vec::new() };
        let jobs = jobs.list().await.into_iter().filter(|job| !job.pids.is_empty());
        jobs.map(|job| (job.id, job.pids)).collect()
    }
}

/// Tells whether a process runs one of these programs. A process that cannot be inspected has just ended, or begun.
fn is_one_of(process: u32, programs: &[PathBuf]) -> bool {
    let program = std::fs::read_link(Path::new("/proc").join(process.to_string()).join("exe"));
    program.map_or(true, |program| programs.contains(&program))
}
