//! The `bash` tool: one real bash for the whole session.

mod background;
mod captured;
mod fast;
mod held_by_walls;
mod line_network;
mod live;
mod loops;
mod one_tool;
mod others;
mod restart;
mod user_line;
mod written_names;

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use lathe_changes::{Compared, TreeChange};
use lathe_policy::Permit;
use lathe_protocol::{BoxFuture, Effects, ToolErrorKind, ToolKind};
use lathe_shell::{
    CommandCall, CommandHost as _, CommandIo, Deadline, HostMessage, InputSource, LineClock, LineEnd,
    LineExit, LineLimits, LiveChunk, OutputTarget, Shell, ShellError,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use self::restart::Restart;
use crate::bash::line_network::LineNetwork;
use crate::built_in::BuiltIn;
use crate::call::{BuildContext, Parameters};
use crate::commands::{AgentCommands, LineContext};
use crate::faces::Face;
use crate::line::secure;
use crate::outcome::{Data, Outcome, ShellData};
use crate::outputs;
use crate::preview::Preview;
use crate::problem::Problem;
use crate::tool::{Invocation, RunContext, ShellLine};

pub(crate) use background::LineWithProcesses;
pub use background::{LateChanges, background_event};
pub(crate) use captured::{CapturedStream, split_cap};
pub(crate) use one_tool::{ONE_TOOL, category, not_json, unknown_tool};
pub use others::writes_only_what_it_names;
pub use user_line::{UserLineOutcome, run_line};

pub(crate) const ID: &str = "bash";

/// The tool in the list of all.
pub(crate) static TOOL: BuiltIn = BuiltIn {
    face: Some(
        Face::lathe::<BashParameters>("bash", "Shell", ToolKind::Execute, include_str!("lathe.md"))
            .with_cap(30_000),
    ),
    command: None,
    only_if: None,
};

/// Bytes kept of each stream of one command.
const KEEP: u64 = 64 << 20;

/// The most seconds that a call may ask for.
const LONGEST: u32 = 3600;

#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BashParameters {
    /// The command: any bash, also several lines.
    #[serde(default)]
    pub(crate) command: Option<String>,
    /// Seconds after which it is killed; 120 if left out.
    #[serde(default)]
    #[schemars(range(min = 1, max = 3600))]
    pub(crate) timeout: Option<u32>,
    /// Start a fresh shell first; the command may be left out.
    #[serde(default)]
    pub(crate) restart: Option<bool>,
    /// The folder to run it in, without going there for good. Only other toolsets speak of it.
    #[serde(default)]
    #[schemars(skip)]
    pub(crate) folder: Option<String>,
}

impl Parameters for BashParameters {
    const TOOL: &'static str = ID;

    fn invocation(self, _: &BuildContext<'_>) -> Result<Box<dyn Invocation>, Problem> {
        let BashParameters { command, timeout, restart, folder } = self;
        let fresh = restart.unwrap_or(false);
        let command = command.filter(|command| !command.trim().is_empty());
        if fresh && command.is_none() {
            return Ok(Box::new(Restart));
        }
        let command = command.ok_or(Problem::NoCommand)?;
        let line = match &folder {
            Some(folder) => format!("(cd -P -- {} || exit\n{command}\n)", quote(folder)),
            None => command.clone(),
        };
        Ok(Box::new(RunLine { command, line, folder, timeout, fresh }))
    }
}

/// The effects of a shell line are not known here, so it may do anything.
fn opaque_effects() -> Effects {
    Effects { opaque: true, ..Effects::default() }
}

struct RunLine {
    /// The command as the model gave it.
    command: String,
    /// The line that runs.
    line: String,
    /// The folder it runs in, if not the shell's own.
    folder: Option<String>,
    /// The seconds that the call asked for.
    timeout: Option<u32>,
    /// True if it runs in a new shell.
    fresh: bool,
}

impl Invocation for RunLine {
    fn describe(&self) -> String {
        self.command.clone()
    }

    fn effects(&self) -> Effects {
        opaque_effects()
    }

    fn line(&self) -> Option<ShellLine> {
        Some(ShellLine { text: self.command.clone(), folder: self.folder.clone() })
    }

    fn preview<'a>(&'a self, context: &'a RunContext) -> BoxFuture<'a, Result<Preview, Problem>> {
        Box::pin(async move {
            self.check_folder(context).await?;
            Ok(Preview::Exec { command: self.command.clone() })
        })
    }

    fn run(self: Box<Self>, permit: Permit, context: RunContext) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            if let Err(problem) = self.check_folder(&context).await {
                return Err(problem).into();
            }
            if self.fresh
                && let Err(error) = context.services.restart_shell().await
            {
                return Err(shell_problem(error)).into();
            }
            let line = Arc::new(LineContext::new(context.clone(), permit.approved_effects().clone()));
            context.services.begin_line(Arc::clone(&line));
            match self.run_without_bash(&context).await {
                Some(data) => Outcome {
                    changes: line.take_changes(),
                    seen: line.take_seen(),
                    attached: line.take_attached(),
                    ..data.map(Data::Shell).into()
                },
                None => self.run_tracked(&context, &line).await,
            }
        })
    }
}

/// The guard's refusal, worded for the model.
fn policy_denial(reason: &str) -> Result<Data, Problem> {
    let message = format!("Tool execution denied by policy. {reason}");
    Err(Problem::Foreign { kind: ToolErrorKind::PolicyViolation, message })
}

/// Paths of one line that are named as not undoable.
const NAMED: usize = 20;

impl RunLine {
    /// Refuses a folder that is not in the workspace.
    async fn check_folder(&self, context: &RunContext) -> Result<(), Problem> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let workspace = &context.services.workspace;
        let place = context.services.inside_cwd().unwrap_or_default().join(folder);
        if let Some(host) = workspace.host(&place)
            && workspace.files().real(&host).await.is_ok()
        {
            return Ok(());
        }
        let why = "is not within any of the registered workspace directories.";
        Err(Problem::Schema(format!("Directory '{}' {why}", place.display())))
    }

    /// Runs the line, and finds its changes in the tree.
    async fn run_tracked(&self, context: &RunContext, line: &LineContext) -> Outcome {
        let tracking = &context.services.tracking;
        let cwd = context.services.inside_cwd().unwrap_or_default();
        let cwd = self.folder.as_ref().map_or_else(|| cwd.clone(), |folder| cwd.join(folder));
        let here = context.services.workspace.host(&cwd);
        if !tracking.is_sparing() {
            // A line whose losses could not be undone is not run.
            if tracking.begin_line(context.call.as_str()).await.is_err() {
                return Err(Problem::NoSpace(context.services.plan.home.clone())).into();
            }
        }
        let secured = match secure::secure_line(context, &self.command, here.as_deref()).await {
            Ok(secured) => secured,
            Err(reason) => {
                tracking.cancel_line().await;
                return policy_denial(&reason).into();
            }
        };
        let tracked = !tracking.is_sparing() || secured.needs_tracking();
        let had_jobs = tracking.has_left_running();
        let network = LineNetwork::begin(context, &self.command);
        let data = self.run_in_shell(context).await;
        let visits = network.end();
        let data = data.map(|data| Data::Shell(ShellData { untraced: line.untraced(), ..data }));
        let mut outcome = Outcome::from(data);
        line.end();
        outcome.seen = line.take_seen();
        let not_kept = secured.not_kept.clone();
        let (running, left) = match &outcome.data {
            Ok(Data::Shell(shell)) => (shell.jobs, !shell.left.is_empty()),
            _ => (0, false),
        };
        let mut aside = tracking.set_programs_aside(running).await;
        let broken = tracking.broken_repositories().await;
        let (compared, written) = match tracked {
            true => tracking.end_line(&broken).await,
            false => (Ok(Compared::default()), Vec::new()),
        };
        // The scan finds new repositories.
        aside.extend(tracking.take_aside());
        let own = line.take_changes();
        // A session records the changes by itself.
        let unknown =
            compared.as_ref().ok().filter(|_| tracking.is_sparing()).map(|found| found.changes.clone());
        let unknown = unknown.unwrap_or_default();
        let kept = match left {
            true => {
                let line = LineWithProcesses::new(context, self.command.clone(), cwd.clone());
                line.keep(secured, unknown, broken.clone()).await
            }
            false => secure::finish_line(secured, context, unknown, broken.clone()).await,
        };
        match compared {
            Ok(mut compared) => {
                outcome.others =
                    self.take_foreign_changes(context, &cwd, &mut compared.changes, &written, had_jobs).await;
                // Changes that the scan of the tree cannot undo, or did not look for, can be undone by the commands'
                // own records.
                let known =
                    |change: &TreeChange| compared.changes.iter().any(|known| known.path == change.path);
                let lost =
                    |change: &TreeChange| compared.not_undoable.iter().any(|lost| lost.path == change.path);
                let added: Vec<TreeChange> = own
                    .into_iter()
                    .filter(|change| !known(change) && (lost(change) || !tracking.is_on()))
                    .collect();
                compared.not_undoable.retain(|lost| added.iter().all(|change| change.path != lost.path));
                outcome.changes = compared.changes;
                outcome.changes.extend(added);
                let mut lost = compared.not_undoable;
                if let Some(kept) = &kept {
                    let repositories = kept.repositories.iter().map(|one| &one.path);
                    let trees = kept.trees.iter().chain(repositories);
                    lost.retain(|lost| !trees.clone().any(|tree| lost.path.starts_with(tree)));
                }
                let named =
                    lost.iter().take(NAMED).map(|lost| format!("{}: {}", lost.path.display(), lost.why));
                outcome.not_undoable = named.collect();
                if lost.len() > NAMED {
                    outcome.not_undoable.push(format!("and {} more", lost.len() - NAMED));
                }
            }
            Err(reason) => {
                outcome.changes = own;
                outcome.not_undoable.push(reason);
            }
        }
        outcome.not_undoable.extend(not_kept);
        outcome.broken = secure::broken_notes(&broken, kept.as_ref());
        outcome.broken.extend(aside.iter().map(secure::aside_note));
        outcome.notes.extend(held_by_walls::note(&outcome.data, &context.services.workspace).map(Into::into));
        outcome.notes.extend(visits.map(Into::into));
        outcome.broken.extend(tracking.take_reverted().iter().map(secure::reverted_note));
        outcome.kept = kept.map(|kept| kept.id);
        outcome.attached = line.take_attached();
        outcome
    }

    /// Runs one literal agent command without bash, if the line is one.
    async fn run_without_bash(&self, context: &RunContext) -> Option<Result<ShellData, Problem>> {
        let services = &context.services;
        let commands = services.commands()?;
        let plain = services.names_are_plain();
        if !fast::leaves_names(&self.line) {
            services.mark_names_changed();
        }
        let words = fast::literal_words(&self.line).filter(|_| plain)?;
        let name = words.first()?;
        // Bash has these names too, or reads them as grammar. Foreign programs get the shell's variables, so field
        // commands need bash too.
        if matches!(name.as_str(), "read" | "jobs" | "done")
            || name.contains(':')
            || !commands.names().contains(name)
        {
            return None;
        }
        let shell = services.take_running_shell();
        let workspace = &services.workspace;
        let cwd = match &shell {
            Some(shell) => shell.cwd().to_owned(),
            None => workspace.inside(workspace.root())?,
        };
        let seconds = self.timeout.map_or(context.line_seconds, |asked| asked.clamp(1, LONGEST));
        let ran = run_direct(commands, words, &cwd, context, Duration::from_secs(seconds.into())).await;
        if let Ok(ran) = &ran {
            services.set_last_code(ran.exit.code());
        }
        let jobs = shell.as_ref().map_or(0, Shell::job_count);
        if let Some(shell) = shell {
            services.put_shell(shell);
        }
        Some(ran.map(|ran| {
            let clean = |bytes: Vec<u8>| CapturedStream::of(bytes, &services.redactor);
            ShellData {
                command: self.command.clone(),
                ran_in: None,
                moved: false,
                cwd: cwd.display().to_string(),
                exit: ran.exit,
                stdout: clean(ran.out),
                stderr: clean(ran.err),
                respawned: false,
                background: None,
                jobs,
                left: Vec::new(),
                job: None,
                group: None,
                seconds,
                untraced: 0,
                asked: self.timeout,
                whole: outputs::output_file(context),
            }
        }))
    }

    async fn run_in_shell(&self, context: &RunContext) -> Result<ShellData, Problem> {
        outputs::provide_outputs_of_line(context, &self.command).await;
        let shell = context.services.take_shell().await.map_err(shell_problem)?;
        let number = shell.next_line();
        context.services.number_line(number);
        context.services.note_options(&self.line);
        let seconds = self.timeout.map_or(context.line_seconds, |asked| asked.clamp(1, LONGEST));
        let before = shell.cwd().to_owned();
        let (sender, receiver) = mpsc::channel(64);
        let ((shell, ended), ()) = tokio::join!(
            self.run_shell_line(shell, seconds, sender, context),
            live::forward(receiver, context)
        );
        context.services.put_shell(shell);
        let end = ended.map_err(shell_problem)?;
        let redactor = Arc::clone(&context.services.redactor);
        let (stdout, stderr) = (end.stdout, end.stderr);
        // Large output is in a file.
        let read = move || [&stdout, &stderr].map(|spool| CapturedStream::take(spool, &redactor));
        let [stdout, stderr] = tokio::task::spawn_blocking(read)
            .await
            .map_err(|error| Problem::Shell(format!("the output could not be read back: {error}")))?;
        let left = processes_left_by(context, number, end.jobs).await;
        let has_commands = context.services.commands().is_some();
        Ok(ShellData {
            command: self.command.clone(),
            moved: end.cwd != before,
            ran_in: self.folder.as_ref().map(|folder| before.join(folder).display().to_string()),
            cwd: end.cwd.display().to_string(),
            exit: end.exit,
            stdout,
            stderr,
            respawned: end.respawned,
            background: end.background,
            jobs: end.jobs,
            job: (has_commands && !left.is_empty()).then_some(number),
            group: group_of(&left),
            left,
            seconds,
            untraced: 0,
            asked: self.timeout,
            whole: outputs::output_file(context),
        })
    }

    /// Owns `live`, so that the receiver sees its end when the command has ended.
    async fn run_shell_line(
        &self,
        mut shell: Shell,
        seconds: u32,
        live: mpsc::Sender<LiveChunk>,
        context: &RunContext,
    ) -> (Shell, Result<LineEnd, ShellError>) {
        let limits = LineLimits {
            timeout: Duration::from_secs(seconds.into()),
            silence: context.silent_seconds.map(|seconds| Duration::from_secs(seconds.into())),
            keep: KEEP,
        };
        let ended = shell.run(self.line.as_bytes(), limits, Some(&live), &context.cancel).await;
        (shell, ended)
    }
}

/// The processes that a line left running, if anything runs.
async fn processes_left_by(context: &RunContext, line: u64, running: usize) -> Vec<u32> {
    let Some(jobs) = context.services.jobs().filter(|_| running > 0) else { return Vec::new() };
    let jobs = jobs.list().await.into_iter().filter(|job| job.id == line);
    jobs.flat_map(|job| job.pids).collect()
}

/// The process group of the processes that a line left running: a signal to it reaches all of them.
fn group_of(left: &[u32]) -> Option<i32> {
    let pid = left.iter().find_map(|pid| i32::try_from(*pid).ok())?;
    nix::unistd::getpgid(Some(nix::unistd::Pid::from_raw(pid))).ok().map(nix::unistd::Pid::as_raw)
}

/// The result of a command that ran without bash.
struct DirectRun {
    exit: LineExit,
    out: Vec<u8>,
    err: Vec<u8>,
}

/// Runs the command as bash would: with nothing on its input, and the session reading its output.
async fn run_direct(
    commands: &AgentCommands,
    words: Vec<String>,
    cwd: &Path,
    context: &RunContext,
    limit: Duration,
) -> Result<DirectRun, Problem> {
    let (clock, cancel) = (LineClock::default(), context.cancel.child_token());
    let call = CommandCall {
        argv: words.into_iter().map(OsString::from).collect(),
        cwd: cwd.to_owned(),
        caller: None,
        output: OutputTarget::Session,
        input: InputSource::Nothing,
        line: Some(0),
        clock: clock.clone(),
        cancel: cancel.clone(),
    };
    let (io, mut end) = CommandIo::pair();
    let listening = async {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        while let Some(said) = end.next_message().await {
            match said {
                HostMessage::Out(bytes) => out.extend(bytes),
                HostMessage::Err(bytes) => err.extend(bytes),
                HostMessage::WantsInput => end.send_input(Vec::new()).await,
            }
        }
        (out, err)
    };
    let running = std::panic::AssertUnwindSafe(commands.run(call, io)).catch_unwind();
    let mut deadline = Deadline::new(limit, &clock);
    let both = async { tokio::join!(running, listening) };
    tokio::pin!(both);
    let ((code, (out, err)), timed_out) = tokio::select! {
        done = &mut both => (done, false),
        () = deadline.passed() => {
            cancel.cancel();
            (both.await, true)
        }
    };
    let code = i32::from(code.map_err(|_| Problem::Shell("the command broke down".to_owned()))?);
    let exit = match (timed_out, context.cancel.is_cancelled()) {
        (true, _) => LineExit::TimedOut { code },
        (false, true) => LineExit::Cancelled { code },
        (false, false) => LineExit::Code(code),
    };
    Ok(DirectRun { exit, out, err })
}

/// One bash word for any text.
pub(crate) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn shell_problem(error: ShellError) -> Problem {
    let reason = error.to_string();
    match error {
        ShellError::Place { path, source } if source.kind() == std::io::ErrorKind::StorageFull => {
            Problem::NoSpace(path)
        }
        ShellError::NoExec(_)
        | ShellError::Place { .. }
        | ShellError::Session(_)
        | ShellError::Supervisor(_)
        | ShellError::Bash(_) => Problem::ShellStart(reason),
        ShellError::NulInLine
        | ShellError::LineTooLong { .. }
        | ShellError::SupervisorGone(_)
        | ShellError::SupervisorStuck => Problem::Shell(reason),
    }
}

pub(crate) fn words(shell: &ShellData, cap: usize) -> String {
    let (out, err) = split_cap(&shell.stdout, &shell.stderr, cap);
    let mut parts = vec![status(shell)];
    for (tag, printed, cap) in [("stdout", &shell.stdout, out), ("stderr", &shell.stderr, err)] {
        if printed.total > 0 {
            let text = printed.cut(cap).text;
            let text = text.strip_suffix('\n').unwrap_or(&text);
            parts.push(format!("<{tag}>\n{text}\n</{tag}>"));
        }
    }
    parts.join("\n")
}

/// The state that the next line will find.
fn shell_facts(shell: &ShellData) -> Vec<String> {
    let mut facts = Vec::new();
    if let Some(breach) = shell.background {
        facts.push(format!("the background processes were stopped by the sandbox: {breach}"));
    }
    if shell.respawned {
        // A shell that was stopped in time could save all variables.
        let are = match shell.exit {
            LineExit::TimedOut { .. }
            | LineExit::Silent { .. }
            | LineExit::Cancelled { .. }
            | LineExit::Limited { .. } => "may be",
            LineExit::Code(_) | LineExit::ShellKilled { .. } => "are",
        };
        facts.push(format!("the shell was started again: variables that were not exported {are} lost"));
    }
    if shell.moved || shell.respawned {
        facts.push(format!("now in {}", shell.cwd));
    }
    match shell.jobs {
        0 => {}
        1 => facts.push("1 background process running".to_owned()),
        jobs => facts.push(format!("{jobs} background processes running")),
    }
    if let Some(job) = shell.job {
        facts.push(format!("this command left job {job}: `jobs read {job}` shows what it prints"));
    }
    facts
}

/// One line: how the command ended, and what the model must know to continue.
fn status(shell: &ShellData) -> String {
    let mut facts = vec![match shell.exit {
        LineExit::Code(code) => format!("exit code {code}"),
        LineExit::ShellKilled { signal } => format!("the shell itself was killed by signal {signal}"),
        LineExit::TimedOut { .. } => {
            format!("timed out after {} seconds: the command and its children were killed", shell.seconds)
        }
        LineExit::Silent { limit, .. } => {
            format!(
                "printed nothing for {} seconds: the command and its children were killed",
                limit.as_secs()
            )
        }
        LineExit::Cancelled { .. } => {
            "cancelled by the user: the command and its children were killed".to_owned()
        }
        LineExit::Limited { code, breach } => format!("stopped by the sandbox: {breach}; exit code {code}"),
    }];
    facts.extend(shell_facts(shell));
    if let Some(asked) = shell.asked.filter(|asked| *asked != shell.seconds) {
        facts.push(format!("the timeout was {} seconds: {asked} is not from 1 to {LONGEST}", shell.seconds));
    }
    let hint = match shell.exit {
        LineExit::TimedOut { .. } if shell.seconds == LONGEST => ". Run it in the background.",
        LineExit::TimedOut { .. } => ". Give a larger timeout, or run it in the background.",
        LineExit::Silent { .. } => ". Let it print what it does, or run it in the background.",
        LineExit::Code(_)
        | LineExit::ShellKilled { .. }
        | LineExit::Cancelled { .. }
        | LineExit::Limited { .. } => "",
    };
    facts.join("; ") + hint
}
