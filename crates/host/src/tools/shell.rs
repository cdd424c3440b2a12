//! The three-layer shell without a model: for people, and for whoever wants to see what a line would do.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lathe_agent::ApprovalStore as _;
use lathe_protocol::{CallId, Mode, OutputStream, ToolChoice, Toolset, Verdict};
use lathe_redact::Redactor;
use lathe_shell::{LineLimits, LiveChunk, ShellError, Stream};
use lathe_tools::{
    CallGate, Keeper, Ledger, LocalLedger, RunContext, Services, Toolbox, Tracking, UserLineOutcome, run_line,
};
use lathe_workspace::Workspace;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::error::HostError;
use crate::session::Host;
use crate::session::extras::Extras;
use crate::session::folder::{new_id, working_folder};

/// Chunks on their way to the screen.
const CHUNKS: usize = 1024;

/// Bytes kept of each stream for what the screen missed.
const KEEP: u64 = 64 << 20;

/// What to open.
pub struct ShellRun {
    pub folder: PathBuf,
    /// A person's own lines are limited by the guard only, unless a mode is named.
    pub mode: Option<Mode>,
    pub extras: Extras,
}

/// An open shell.
pub struct PersonShell {
    services: Arc<Services>,
    toolbox: Toolbox,
    judge: CallGate,
    ledger: Arc<dyn Ledger>,
    cwd: PathBuf,
    rules: Rules,
}

/// Where the rules come from, and which answers of the user's are among them.
struct Rules {
    host: Host,
    workspace: Workspace,
    mode: Option<Mode>,
    mark: String,
    extras: Extras,
}

/// How a line ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserLine {
    Ended {
        code: i32,
        /// The entry of the quarantine that holds what the line took away.
        kept: Option<String>,
        /// What it may have taken away for good.
        lost: Vec<String>,
        /// Repositories that are no longer whole, with what can be done.
        broken: Vec<String>,
    },
    /// The gate said no, and why.
    Denied(String),
}

impl Host {
    /// The services of a person's own line or call: what takes something away is secured, and kept in the quarantine.
    pub(crate) fn person_services(
        &self,
        workspace: Workspace,
        extras: &Extras,
        redactor: Arc<Redactor>,
    ) -> Result<Services, HostError> {
        let workspace = self.home().recovered(workspace)?;
        let services = self.services(workspace.clone(), redactor)?.with_checks(extras.checks()?);
        let id = new_id();
        let tracking = self.archive().tracking(&id, &workspace, Vec::new())?;
        let tracking = tracking.map_or_else(Tracking::off, Tracking::sparing);
        let tracking = tracking.with_repositories(self.archive().quarantine().repositories());
        let keeper = Keeper { scratch: Some(id.to_string()), ..self.archive().keeper(None) };
        Ok(services.with_tracking(tracking).with_keeper(keeper))
    }

    pub async fn open_shell(&self, run: ShellRun) -> Result<PersonShell, HostError> {
        let root = working_folder(&run.folder)?;
        self.home().make()?;
        // A person sees their own secrets, but a file of them that cannot be read stops every session.
        run.extras.secrets(self.home().path())?;
        let workspace = self.home().workspace(&root);
        let outside = run.extras.outside(&workspace, self.home().path()).await?;
        // A person's own terminal: what they print there is theirs to see, and no model does.
        let services =
            Arc::new(self.person_services(workspace.clone(), &run.extras, Arc::new(Redactor::new([])))?);
        let toolbox =
            Toolbox::for_session(Toolset::Bash, Arc::clone(&services), ToolChoice::default(), outside);
        let (host, mark) = (Host::new(self.home().clone()), self.rules().answers().mark());
        let judge = self.rules().judge(&workspace, run.mode, &toolbox, &run.extras)?;
        let rules = Rules { host, workspace, mode: run.mode, mark, extras: run.extras };
        Ok(PersonShell {
            services,
            toolbox,
            judge,
            ledger: Arc::new(LocalLedger::default()),
            cwd: root,
            rules,
        })
    }
}

impl PersonShell {
    /// The names of the commands that are not programs.
    pub fn commands(&self) -> Vec<String> {
        self.toolbox.commands()
    }

    /// The folder the last line ended in.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Runs a line and shows all it prints, in the order it comes.
    pub async fn run(
        &mut self,
        line: &str,
        cancel: &CancellationToken,
        mut show: impl FnMut(OutputStream, &[u8]),
    ) -> Result<UserLine, HostError> {
        // What was allowed for ever may have been taken back.
        let mark = self.rules.host.rules().answers().mark();
        if mark != self.rules.mark {
            let Rules { host, workspace, mode, extras, .. } = &self.rules;
            self.judge = host.rules().judge(workspace, *mode, &self.toolbox, extras)?;
            self.rules.mark = mark;
        }
        let judged = self
            .judge
            .clone()
            .in_shell(&self.services)
            .decide_line(&lathe_tools::ShellLine { text: line.to_owned(), folder: None });
        let decision = judged.decision;
        if decision.verdict != Verdict::Allow {
            return Ok(UserLine::Denied(decision.reason));
        }
        let context = RunContext {
            services: Arc::clone(&self.services),
            call: CallId::new("shell"),
            live: Arc::new(|_, _| {}),
            cancel: cancel.clone(),
            seen: Vec::new(),
            memory: None,
            shown: None,
            review: None,
            line_seconds: u32::MAX,
            silent_seconds: None,
            umask: None,
            handle: None,
            asker: None,
            call_gate: self.judge.clone(),
            ledger: Arc::clone(&self.ledger),
        };
        let (sender, mut chunks) = mpsc::channel::<LiveChunk>(CHUNKS);
        let mut shown = [0_u64; 2];
        let running = async {
            let limits = LineLimits { timeout: Duration::MAX, silence: None, keep: KEEP };
            let ended = run_line(&context, line, judged.effects, limits, &sender).await;
            drop(sender);
            ended
        };
        let showing = async {
            while let Some(chunk) = chunks.recv().await {
                let (at, stream) = match chunk.stream {
                    Stream::Stdout => (&mut shown[0], OutputStream::Stdout),
                    Stream::Stderr => (&mut shown[1], OutputStream::Stderr),
                };
                // After a gap the rest is shown at the end, in one piece.
                if chunk.at == *at {
                    *at += chunk.bytes.len() as u64;
                    show(stream, &chunk.bytes);
                }
            }
        };
        let (ended, ()) = tokio::join!(running, showing);
        let (end, kept, lost, broken) = match ended.map_err(|error| broken_off(&error))? {
            UserLineOutcome::Ended { end, kept, lost, broken } => (end, kept, lost, broken),
            UserLineOutcome::Denied(reason) => return Ok(UserLine::Denied(reason)),
        };
        for (spool, at, stream) in
            [(&end.stdout, shown[0], OutputStream::Stdout), (&end.stderr, shown[1], OutputStream::Stderr)]
        {
            if spool.total() > at {
                let kept = spool
                    .read_all()
                    .map_err(|error| HostError::Shell { reason: error.to_string(), disk_full: false })?;
                let from = usize::try_from(at.saturating_sub(spool.omitted())).unwrap_or(usize::MAX);
                show(stream, kept.get(from..).unwrap_or_default());
            }
        }
        self.cwd = end.cwd;
        Ok(UserLine::Ended { code: end.exit.code(), kept, lost, broken })
    }

    /// Ends the shell and everything it started.
    pub async fn close(self) {
        self.services.close().await;
    }
}

/// The error of a line that did not come to its end.
fn broken_off(error: &ShellError) -> HostError {
    let full = |source: &std::io::Error| source.kind() == std::io::ErrorKind::StorageFull;
    let disk_full = match error {
        ShellError::Place { source, .. } | ShellError::Session(source) => full(source),
        ShellError::NulInLine
        | ShellError::LineTooLong { .. }
        | ShellError::NoExec(_)
        | ShellError::Supervisor(_)
        | ShellError::SupervisorGone(_)
        | ShellError::SupervisorStuck
        | ShellError::Bash(_) => false,
    };
    HostError::Shell { reason: error.to_string(), disk_full }
}
