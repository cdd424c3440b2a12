//! Processes that lines leave in the background.
//!
//! The tree is compared before and after a line. What its processes do later is found by further looks: before the next
//! call, at the end of the run, and once the shell has ended. Each look is an event of its own, because the journal has the
//! result of the line by then. What was secured for the line stays secured until its processes have ended.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lathe_changes::{Background, Broken, Kept, TreeChange};
use lathe_protocol::{CallId, Change, CommandRan, Decision, Verdict};
use lathe_shell::place_ax;

use crate::finish::recorded;
use crate::secure::{self, Secured};
use crate::services::Services;
use crate::tool::RunContext;

/// Time for background processes that are commands of the agent.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time for any others: a server runs on, and nobody waits for it.
const MOMENT: Duration = Duration::from_millis(100);
const TICK: Duration = Duration::from_millis(10);

/// Bytes of a line that are recorded with what its processes changed.
const WORDS: usize = 400;

/// A line whose processes run on.
pub(crate) struct LeftLine {
    /// Its number in the shell.
    number: u64,
    command: String,
    cwd: PathBuf,
    context: RunContext,
    secured: Secured,
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

impl LeftLine {
    /// The line that has just ended.
    pub(crate) fn new(context: &RunContext, command: String, cwd: PathBuf) -> Self {
        let number = context.services.last_number();
        let (context, secured) = (context.clone(), Secured::default());
        Self { number, command, cwd, context, secured, changes: Vec::new() }
    }

    /// Keeps what was secured for the line as long as its processes live, and what it broke by now for good.
    pub(crate) async fn keep(
        self,
        secured: Secured,
        changes: Vec<TreeChange>,
        broken: Vec<Broken>,
    ) -> Option<Kept> {
        let services = Arc::clone(&self.context.services);
        let kept = secure::after(secured.beside(), &self.context, Vec::new(), broken).await;
        services.left.lock().push(Self { secured, changes, ..self });
        kept
    }

    fn background(&self) -> Background {
        let whole = self.context.services.redactor.text(&self.command);
        let line = crate::view::clip(&whole, WORDS).to_owned();
        Background { call: self.context.call.as_str().to_owned(), line }
    }

    /// The event about changes of its processes.
    fn late(&self, changes: Vec<TreeChange>) -> LateChanges {
        let redactor = &self.context.services.redactor;
        let clean = |text: &str| redactor.text(text).into_owned();
        let cwd = clean(&self.cwd.display().to_string());
        let changes = recorded(changes, &self.context.call, redactor);
        LateChanges {
            call: self.context.call.clone(),
            ran: ran_in_background(self.background().line, cwd, changes),
        }
    }
}

/// The event about what processes of a line changed after its end.
pub fn ran_in_background(line: String, cwd: String, changes: Vec<Change>) -> CommandRan {
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
    pub fn has_left_lines(&self) -> bool {
        !self.left.lock().is_empty()
    }

    /// Looks for changes of background processes. Nothing is looked at while a line runs: its own look finds them.
    pub async fn look_late(&self) -> Option<LateChanges> {
        if !self.has_left_lines() {
            return None;
        }
        let living = self.living().await;
        let runs = |line: &LeftLine| living.iter().any(|(number, _)| *number == line.number);
        // What a look that failed should have found is found by the next one.
        let compared = self.tracking.between(!living.is_empty()).await?.ok()?;
        let (late, ended) = {
            let mut left = self.left.lock();
            let changes = compared.changes;
            let mut late = None;
            if let Some(last) = left.last_mut().filter(|_| !changes.is_empty()) {
                match self.tracking.is_sparing() {
                    true => last.changes.extend(changes),
                    false => late = Some(last.late(changes)),
                }
            }
            let ended: Vec<LeftLine> = left.extract_if(.., |line| !runs(line)).collect();
            (late, ended)
        };
        for LeftLine { context, secured, changes, .. } in ended {
            let broken = self.tracking.broken().await;
            secure::after(secured, &context, changes, broken).await;
        }
        late
    }

    /// Keeps the way back from what background processes do from now on, or lets it go where none is left. To be called when
    /// the journal has what was found so far; `changed` tells that this is more than the last time.
    pub async fn hold_left(&self, changed: bool) {
        let left = self.left.lock().last().map(LeftLine::background);
        match left {
            Some(left) => self.tracking.hold(left, changed).await,
            None => self.tracking.release(),
        }
    }

    /// Gives background processes a short time to end, commands of the agent a longer one, and looks.
    pub async fn settle_left(&self) -> Option<LateChanges> {
        if !self.has_left_lines() {
            return None;
        }
        self.wait_for_left().await;
        self.look_late().await
    }

    pub(crate) async fn wait_for_left(&self) {
        let own = [place_ax(&self.plan.home).ok(), Some(self.plan.shell.clone())];
        let own: Vec<PathBuf> =
            own.into_iter().flatten().filter_map(|path| path.canonicalize().ok()).collect();
        let began = Instant::now();
        loop {
            let living = self.living().await;
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

    /// Tells whether processes of a line live.
    pub(crate) async fn runs_on(&self, line: u64) -> bool {
        self.living().await.iter().any(|(number, _)| *number == line)
    }

    /// The lines with processes that live, and these.
    async fn living(&self) -> Vec<(u64, Vec<u32>)> {
        let Some(jobs) = self.jobs() else { return Vec::new() };
        let jobs = jobs.list().await.into_iter().filter(|job| !job.pids.is_empty());
        jobs.map(|job| (job.id, job.pids)).collect()
    }
}

/// Tells whether a process runs one of these programs. One that cannot be looked at has just ended, or begun.
fn is_one_of(process: u32, programs: &[PathBuf]) -> bool {
    let program = std::fs::read_link(Path::new("/proc").join(process.to_string()).join("exe"));
    program.map_or(true, |program| programs.contains(&program))
}
