//! One real bash for the whole session.

mod live;
mod printed;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lathe_policy::Permit;
use lathe_protocol::{Boxed, Effects};
use lathe_shell::{LineEnd, LineExit, LineLimits, LiveChunk, Shell, ShellError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::outcome::{Data, Outcome, ShellData};
use crate::preview::Preview;
use crate::problem::Problem;
use crate::tool::{Invocation, RunContext, Tool, arguments};

pub(crate) use printed::{Printed, shares};

pub(crate) const ID: &str = "bash";

/// Bytes kept of each stream of one command.
const KEEP: u64 = 64 << 20;

/// Seconds a call may ask for at most.
const LONGEST: u32 = 3600;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The command: any bash, also several lines.
    #[serde(default)]
    command: Option<String>,
    /// Seconds after which it is killed; 120 if left out.
    #[serde(default)]
    #[schemars(range(min = 1, max = 3600))]
    timeout: Option<u32>,
    /// Start a fresh shell instead of running a command.
    #[serde(default)]
    restart: Option<bool>,
    /// The folder to run it in, without going there for good. Only other toolsets speak of it.
    #[serde(default)]
    #[schemars(skip)]
    folder: Option<String>,
}

pub(crate) struct BashTool;

impl Tool for BashTool {
    fn id(&self) -> &'static str {
        ID
    }

    fn build(&self, value: Value, _: &Path) -> Result<Box<dyn Invocation>, Problem> {
        let Arguments { command, timeout, restart, folder } = arguments(value)?;
        if restart.unwrap_or(false) {
            return Ok(Box::new(Restart));
        }
        let command = command.filter(|command| !command.trim().is_empty()).ok_or(Problem::NoCommand)?;
        let line = match folder {
            Some(folder) => format!("(cd -- {} || exit\n{command}\n)", quoted(&folder)),
            None => command.clone(),
        };
        Ok(Box::new(Line { command, line, timeout: timeout.map(|seconds| seconds.clamp(1, LONGEST)) }))
    }
}

/// What a shell line may do is not understood yet, so it may do anything.
fn opaque() -> Effects {
    Effects { opaque: true, ..Effects::default() }
}

struct Restart;

impl Invocation for Restart {
    fn describe(&self) -> String {
        "restart the shell".to_owned()
    }

    fn effects(&self) -> Effects {
        opaque()
    }

    fn run(self: Box<Self>, _: Permit, context: RunContext) -> Boxed<'static, Outcome> {
        Box::pin(async move {
            let restarted = context.services.restart_shell().await;
            restarted.map(|()| Data::ShellRestarted).map_err(problem).into()
        })
    }
}

struct Line {
    /// As the model gave it.
    command: String,
    /// As it is run.
    line: String,
    timeout: Option<u32>,
}

impl Invocation for Line {
    fn describe(&self) -> String {
        self.command.clone()
    }

    fn effects(&self) -> Effects {
        opaque()
    }

    fn preview<'a>(&'a self, _: &'a RunContext) -> Boxed<'a, Preview> {
        Box::pin(async move { Preview::Exec { command: self.command.clone() } })
    }

    fn run(self: Box<Self>, _: Permit, context: RunContext) -> Boxed<'static, Outcome> {
        Box::pin(async move { self.tracked(&context).await })
    }
}

/// Paths of one line that are named as not undoable.
const NAMED: usize = 20;

impl Line {
    /// The line, with what it changed in the tree.
    async fn tracked(&self, context: &RunContext) -> Outcome {
        let tracking = &context.services.tracking;
        tracking.before().await;
        let data = self.line(context).await.map(Data::Shell);
        let mut outcome = Outcome::from(data);
        match tracking.after().await {
            Ok(compared) => {
                outcome.changes = compared.changes;
                let lost = compared.not_undoable;
                let named =
                    lost.iter().take(NAMED).map(|lost| format!("{}: {}", lost.path.display(), lost.why));
                outcome.not_undoable = named.collect();
                if lost.len() > NAMED {
                    outcome.not_undoable.push(format!("and {} more", lost.len() - NAMED));
                }
            }
            Err(reason) => outcome.not_undoable.push(reason),
        }
        outcome
    }

    async fn line(&self, context: &RunContext) -> Result<ShellData, Problem> {
        let shell = context.services.take_shell().await.map_err(problem)?;
        let seconds = self.timeout.unwrap_or(context.line_seconds);
        let before = shell.cwd().to_owned();
        let (sender, receiver) = mpsc::channel(64);
        let ((shell, ended), ()) =
            tokio::join!(self.run_in(shell, seconds, sender, context), live::forward(receiver, context));
        context.services.put_shell(shell);
        let end = ended.map_err(problem)?;
        let redactor = Arc::clone(&context.services.redactor);
        let (stdout, stderr) = (end.stdout, end.stderr);
        // Large output lies in a file.
        let read = move || [&stdout, &stderr].map(|spool| Printed::take(spool, &redactor));
        let [stdout, stderr] = tokio::task::spawn_blocking(read)
            .await
            .map_err(|error| Problem::Shell(format!("the output could not be read back: {error}")))?;
        Ok(ShellData {
            command: self.command.clone(),
            moved: end.cwd != before,
            cwd: end.cwd.display().to_string(),
            exit: end.exit,
            stdout,
            stderr,
            respawned: end.respawned,
            jobs: end.jobs,
            seconds,
        })
    }

    /// Takes `live` with it, so that whoever shows it knows when the command has ended.
    async fn run_in(
        &self,
        mut shell: Shell,
        seconds: u32,
        live: mpsc::Sender<LiveChunk>,
        context: &RunContext,
    ) -> (Shell, Result<LineEnd, ShellError>) {
        let limits = LineLimits { timeout: Duration::from_secs(seconds.into()), keep: KEEP };
        let ended = shell.run(self.line.as_bytes(), limits, Some(&live), &context.cancel).await;
        (shell, ended)
    }
}

/// One word for bash, whatever is in it.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn problem(error: ShellError) -> Problem {
    let reason = error.to_string();
    match error {
        ShellError::Place { path, source } if source.kind() == std::io::ErrorKind::StorageFull => {
            Problem::NoSpace(path)
        }
        ShellError::NoExec(_)
        | ShellError::Place { .. }
        | ShellError::Supervisor(_)
        | ShellError::Bash(_) => Problem::ShellStart(reason),
        ShellError::NulInLine
        | ShellError::LineTooLong { .. }
        | ShellError::SupervisorGone(_)
        | ShellError::SupervisorStuck => Problem::Shell(reason),
    }
}

pub(crate) fn words(shell: &ShellData, cap: usize) -> String {
    let (out, err) = shares(&shell.stdout, &shell.stderr, cap);
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

/// How the command ended, and what else the model must know to go on: one line.
fn status(shell: &ShellData) -> String {
    let mut facts = vec![match shell.exit {
        LineExit::Code(code) => format!("exit code {code}"),
        LineExit::ShellKilled { signal } => format!("the shell itself was killed by signal {signal}"),
        LineExit::TimedOut { .. } => {
            format!("timed out after {} seconds: the command and its children were killed", shell.seconds)
        }
        LineExit::Cancelled { .. } => {
            "cancelled by the user: the command and its children were killed".to_owned()
        }
    }];
    if shell.respawned {
        facts.push("the shell was started again: variables that were not exported are lost".to_owned());
    }
    if shell.moved || shell.respawned {
        facts.push(format!("now in {}", shell.cwd));
    }
    match shell.jobs {
        0 => {}
        1 => facts.push("1 background process running".to_owned()),
        jobs => facts.push(format!("{jobs} background processes running")),
    }
    let hint = match shell.exit {
        LineExit::TimedOut { .. } => ". Give a larger timeout, or run it in the background.",
        LineExit::Code(_) | LineExit::ShellKilled { .. } | LineExit::Cancelled { .. } => "",
    };
    facts.join("; ") + hint
}
