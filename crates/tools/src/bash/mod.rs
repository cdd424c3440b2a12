//! One real bash for the whole session.

use std::path::Path;
use std::time::Duration;

use lathe_policy::Permit;
use lathe_protocol::{Boxed, Effects, OutputStream};
use lathe_shell::{HeadTail, LineEnd, LineExit, LineLimits, LiveChunk, Shell, ShellError, Spool, Stream};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::outcome::{Data, Outcome, ShellData};
use crate::problem::Problem;
use crate::tool::{Invocation, RunContext, Tool, arguments};

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
    /// Seconds after which it is killed; 120 if left out, 3600 at most.
    #[serde(default)]
    timeout: Option<u32>,
    /// Start a fresh shell instead of running a command.
    #[serde(default)]
    restart: Option<bool>,
}

pub(crate) struct BashTool;

impl Tool for BashTool {
    fn id(&self) -> &'static str {
        ID
    }

    fn build(&self, value: Value, _: &Path) -> Result<Box<dyn Invocation>, Problem> {
        let Arguments {
            command,
            timeout,
            restart,
        } = arguments(value)?;
        if restart.unwrap_or(false) {
            return Ok(Box::new(Restart));
        }
        let command = command
            .filter(|command| !command.trim().is_empty())
            .ok_or_else(|| Problem::Arguments("No command provided for the bash tool".to_owned()))?;
        Ok(Box::new(Line {
            command,
            timeout: timeout.map(|seconds| seconds.clamp(1, LONGEST)),
        }))
    }
}

/// What a shell line may do is not understood yet, so it may do anything.
fn opaque() -> Effects {
    Effects {
        opaque: true,
        ..Effects::default()
    }
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
            let restarted = async {
                let mut shell = context.services.take_shell().await?;
                shell.restart().await?;
                context.services.put_shell(shell);
                Ok::<_, ShellError>(Data::ShellRestarted)
            };
            restarted.await.map_err(problem).into()
        })
    }
}

struct Line {
    command: String,
    timeout: Option<u32>,
}

impl Invocation for Line {
    fn describe(&self) -> String {
        self.command.clone()
    }

    fn effects(&self) -> Effects {
        opaque()
    }

    fn run(self: Box<Self>, _: Permit, context: RunContext) -> Boxed<'static, Outcome> {
        Box::pin(async move { self.line(&context).await.map(Data::Shell).map_err(problem).into() })
    }
}

impl Line {
    async fn line(&self, context: &RunContext) -> Result<ShellData, ShellError> {
        let shell = context.services.take_shell().await?;
        let seconds = self.timeout.unwrap_or(context.line_seconds);
        let before = shell.cwd().to_owned();
        let (sender, receiver) = mpsc::channel(64);
        let ((shell, ended), ()) = tokio::join!(
            self.run_in(shell, seconds, sender, context),
            forward(receiver, context)
        );
        context.services.put_shell(shell);
        let end = ended?;
        Ok(ShellData {
            moved: end.cwd != before,
            cwd: end.cwd.display().to_string(),
            exit: end.exit,
            stdout: end.stdout,
            stderr: end.stderr,
            respawned: end.respawned,
            jobs: end.jobs,
            seconds,
        })
    }

    async fn run_in(
        &self,
        mut shell: Shell,
        seconds: u32,
        live: mpsc::Sender<LiveChunk>,
        context: &RunContext,
    ) -> (Shell, Result<LineEnd, ShellError>) {
        let limits = LineLimits {
            timeout: Duration::from_secs(seconds.into()),
            keep: KEEP,
        };
        let ended = shell
            .run(self.command.as_bytes(), limits, Some(&live), &context.cancel)
            .await;
        (shell, ended)
    }
}

/// Shows output while it appears, secrets taken out.
async fn forward(mut chunks: mpsc::Receiver<LiveChunk>, context: &RunContext) {
    let redactor = &context.services.redactor;
    let (mut out, mut err) = (redactor.stream(), redactor.stream());
    let show = |stream, bytes: Vec<u8>| {
        if !bytes.is_empty() {
            (context.live)(stream, &String::from_utf8_lossy(&bytes));
        }
    };
    while let Some(chunk) = chunks.recv().await {
        match chunk.stream {
            Stream::Stdout => show(OutputStream::Stdout, out.push(&chunk.bytes)),
            Stream::Stderr => show(OutputStream::Stderr, err.push(&chunk.bytes)),
        }
    }
    show(OutputStream::Stdout, out.finish());
    show(OutputStream::Stderr, err.finish());
}

fn problem(error: ShellError) -> Problem {
    Problem::Shell(error.to_string())
}

/// A stream as text, head and tail if it is longer than `cap`.
pub(crate) fn stream_text(spool: &Spool, cap: usize) -> String {
    let HeadTail { head, tail, omitted } = match spool.head_tail(cap) {
        Ok(parts) => parts,
        Err(error) => return format!("[the output could not be read back: {error}]"),
    };
    let head = String::from_utf8_lossy(&head);
    let tail = String::from_utf8_lossy(&tail);
    if omitted == 0 {
        return format!("{head}{tail}");
    }
    format!(
        "{}\n[... {omitted} of {} bytes left out; narrow the command down to see them ...]\n{tail}",
        head.trim_end_matches('\n'),
        spool.total(),
    )
}

pub(crate) fn words(shell: &ShellData, cap: usize) -> String {
    let mut parts = vec![status(shell)];
    for (tag, spool) in [("stdout", &shell.stdout), ("stderr", &shell.stderr)] {
        if spool.total() > 0 {
            let text = stream_text(spool, cap);
            parts.push(format!(
                "<{tag}>\n{}\n</{tag}>",
                text.strip_suffix('\n').unwrap_or(&text)
            ));
        }
    }
    parts.join("\n")
}

/// How the command ended, and what else the model must know to go on.
fn status(shell: &ShellData) -> String {
    let mut text = match shell.exit {
        LineExit::Code(code) => format!("exit code {code}"),
        LineExit::ShellKilled { signal } => format!("the shell itself was killed by signal {signal}"),
        LineExit::TimedOut { .. } => format!(
            "timed out after {} seconds: the command and its children were killed. Give a larger timeout, or run it in the background.",
            shell.seconds
        ),
        LineExit::Cancelled { .. } => {
            "cancelled by the user: the command and its children were killed.".to_owned()
        }
    };
    if shell.respawned {
        text.push_str("; the shell had to be started again");
    }
    if shell.moved || shell.respawned {
        text.push_str(&format!("; now in {}", shell.cwd));
    }
    if shell.jobs > 0 {
        text.push_str(&format!("; {} background processes running", shell.jobs));
    }
    text
}
