//! The three-layer shell without a model: for users, and to see what a line would do.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lathe_agent::ApprovalStore as _;
use lathe_protocol::{CallId, Mode, OutputStream, Sandbox, ToolChoice, Toolset, Verdict};
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
use crate::walls::SandboxWish;

/// Number of chunks that may wait for the screen.
const CHUNKS: usize = 1024;

/// Bytes kept of each stream, for output that the screen missed.
const KEEP: u64 = 64 << 20;

/// The settings for opening a shell.
pub struct ShellRun {
    pub folder: PathBuf,
    /// The mode. Without one, a user's own lines are limited by the guard only.
    pub mode: Option<Mode>,
    pub sandbox: Sandbox,
    pub extras: Extras,
}

/// An open shell.
pub struct UserShell {
    services: Arc<Services>,
    toolbox: Toolbox,
    call_gate: CallGate,
    ledger: Arc<dyn Ledger>,
    cwd: PathBuf,
    rules: ShellRules,
}

/// The source of the rules, and the version of the standing approvals among them.
struct ShellRules {
    host: Host,
    workspace: Workspace,
    mode: Option<Mode>,
    mark: String,
    extras: Extras,
}

/// The end of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShellLineEnd {
    Ended {
        code: i32,
        /// The entry of the quarantine that holds what the line removed.
        kept: Option<String>,
        /// Paths that it may have removed for good.
        lost: Vec<String>,
        /// Repositories that are no longer whole, with what can be done.
        broken: Vec<String>,
    },
    /// The gate denied the line, for this reason.
    Denied(String),
}

impl Host {
    /// The services for a user's own line or call: what it removes is secured, and kept in the quarantine.
    pub(crate) fn user_services(
        &self,
        workspace: Workspace,
        extras: &Extras,
        redactor: Arc<Redactor>,
    ) -> Result<Services, HostError> {
        let workspace = self.home().recovered(workspace)?;
        let services = self.services(workspace.clone(), redactor)?.with_checks(extras.checks()?);
        let id = new_id();
        let tracking = self.archive().tracker_options(&id, &workspace, Vec::new())?;
        let tracking = tracking.map_or_else(Tracking::off, Tracking::sparing);
        let tracking = tracking.with_repositories(self.archive().quarantine().repositories());
        let keeper = Keeper { scratch: Some(id.to_string()), ..self.archive().keeper(None) };
        Ok(services.with_tracking(tracking).with_keeper(keeper))
    }

    pub async fn open_shell(&self, run: ShellRun) -> Result<UserShell, HostError> {
        let root = working_folder(&run.folder)?;
        self.home().make()?;
        // A user may see their own secrets, but a file of secrets that cannot be read stops every session.
        run.extras.secrets(self.home().path())?;
        let wish = SandboxWish { sandbox: run.sandbox, is_asked_for: true, extras: &run.extras };
        let (workspace, _) = self.sandboxed(&root, wish).await?;
        let outside = run.extras.outside_tools(&workspace, self.home().path()).await?;
        // In their own terminal the user may see what they print, and no model reads it.
        let services =
            Arc::new(self.user_services(workspace.clone(), &run.extras, Arc::new(Redactor::new([])))?);
        let toolbox =
            Toolbox::for_session(Toolset::Bash, Arc::clone(&services), ToolChoice::default(), outside);
        let (host, mark) = (Host::new(self.home().clone()), self.rules().approvals().mark());
        let call_gate = self.rules().call_gate(&workspace, run.mode, &toolbox, &run.extras)?;
        let rules = ShellRules { host, workspace, mode: run.mode, mark, extras: run.extras };
        Ok(UserShell {
            services,
            toolbox,
            call_gate,
            ledger: Arc::new(LocalLedger::default()),
            cwd: root,
            rules,
        })
    }
}

impl UserShell {
    /// The names of the commands that are not programs.
    pub fn commands(&self) -> Vec<String> {
        self.toolbox.commands()
    }

    /// The folder that the last line ended in.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Runs a line and shows everything it prints, in order.
    pub async fn run(
        &mut self,
        line: &str,
        cancel: &CancellationToken,
        mut show: impl FnMut(OutputStream, &[u8]),
    ) -> Result<ShellLineEnd, HostError> {
        // Standing approvals may have been revoked meanwhile.
        let mark = self.rules.host.rules().approvals().mark();
        if mark != self.rules.mark {
            let ShellRules { host, workspace, mode, extras, .. } = &self.rules;
            self.call_gate = host.rules().call_gate(workspace, *mode, &self.toolbox, extras)?;
            self.rules.mark = mark;
        }
        let decided = self
            .call_gate
            .clone()
            .in_shell(&self.services)
            .decide_line(&lathe_tools::ShellLine { text: line.to_owned(), folder: None });
        let decision = decided.decision;
        if decision.verdict != Verdict::Allow {
            return Ok(ShellLineEnd::Denied(decision.reason));
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
            call_gate: self.call_gate.clone(),
            ledger: Arc::clone(&self.ledger),
        };
        let (sender, mut chunks) = mpsc::channel::<LiveChunk>(CHUNKS);
        let mut shown = [0_u64; 2];
        let running = async {
            let limits = LineLimits { timeout: Duration::MAX, silence: None, keep: KEEP };
            let ended = run_line(&context, line, decided.effects, limits, &sender).await;
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
        let (end, kept, lost, broken) = match ended.map_err(|error| line_error(&error))? {
            UserLineOutcome::Ended { end, kept, lost, broken } => (end, kept, lost, broken),
            UserLineOutcome::Denied(reason) => return Ok(ShellLineEnd::Denied(reason)),
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
        Ok(ShellLineEnd::Ended { code: end.exit.code(), kept, lost, broken })
    }

    /// Closes the shell and ends everything it started.
    pub async fn close(self) {
        self.services.close().await;
    }
}

/// The error for a line that could not be run to its end.
fn line_error(error: &ShellError) -> HostError {
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
