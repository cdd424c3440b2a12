//! One call of a tool that was found.

use lathe_protocol::Raw;
use lathe_workspace::{CaptureEnd, CaptureLimits, Captured, Ended, Surroundings, capture};
use tokio_util::sync::CancellationToken;

use crate::Program;

/// Bytes kept of each stream: more than the model is shown.
const KEEP: usize = 1 << 20;

/// The number of bytes kept of each stream of a command, which another one may read.
const COMMAND_KEEP: usize = 64 << 20;

/// The number of bytes shown of each stream of a failed call.
const SHOWN: usize = 16_000;

/// The output of a tool, and its exit code as a shell reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolRan {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub code: u8,
}

/// The exit code of a program that took too long.
const TIMED_OUT: u8 = 124;

impl Program {
    /// Runs the tool as a command in a folder: its streams and its exit code.
    pub async fn run(
        &self,
        name: &str,
        arguments: &Raw,
        caller: &Surroundings,
        cancel: &CancellationToken,
    ) -> Result<ToolRan, String> {
        let limits = CaptureLimits { time: self.call_time, keep: COMMAND_KEEP };
        let what = self.spawn(&self.call_command, &[name]).map_err(|error| error.to_string())?;
        let what = caller.apply_to(what);
        let input = arguments.get().as_bytes();
        let ran = capture(&**self.workspace.processes(), what, input, limits, cancel.cancelled()).await;
        let mut ran = ran.map_err(|error| error.to_string())?;
        let code = match ran.end {
            CaptureEnd::Ended(Ended::Code(code)) => u8::try_from(code).unwrap_or(1),
            CaptureEnd::Ended(Ended::Signal(signal)) => {
                128_u8.saturating_add(u8::try_from(signal).unwrap_or(0))
            }
            CaptureEnd::TimedOut => {
                let seconds = self.call_time.as_secs();
                ran.stderr.extend(format!("timed out after {seconds} seconds\n").into_bytes());
                TIMED_OUT
            }
            CaptureEnd::Stopped => return Err("cancelled".to_owned()),
        };
        if ran.cut {
            let words = format!("only {} MiB of each stream are kept\n", COMMAND_KEEP >> 20);
            ran.stderr.extend(words.into_bytes());
        }
        // A reader of a truncated output must not mistake it for all of it.
        let code = if ran.cut && code == 0 { 1 } else { code };
        Ok(ToolRan { stdout: ran.stdout, stderr: ran.stderr, code })
    }

    /// The output of the tool. Anything on standard error, an exit code other than 0 and a signal are failures, whose
    /// text is for the model.
    pub async fn call(
        &self,
        name: &str,
        arguments: &Raw,
        cancel: &CancellationToken,
    ) -> Result<String, String> {
        let limits = CaptureLimits { time: self.call_time, keep: KEEP };
        let ran = match self.spawn(&self.call_command, &[name]) {
            Ok(what) => {
                let input = arguments.get().as_bytes();
                capture(&**self.workspace.processes(), what, input, limits, cancel.cancelled()).await
            }
            Err(error) => return Err(self.failure(&Captured::nothing(), Some(error.to_string()))),
        };
        match ran {
            Err(error) => Err(self.failure(&Captured::nothing(), Some(error.to_string()))),
            Ok(ran) => match ran.end {
                CaptureEnd::Ended(Ended::Code(0)) if ran.stderr.is_empty() => Ok(text(&ran.stdout)),
                CaptureEnd::Ended(_) => Err(self.failure(&ran, None)),
                CaptureEnd::TimedOut => {
                    let seconds = self.call_time.as_secs();
                    let error =
                        format!("timed out after {seconds} seconds; it and all it started was killed");
                    Err(self.failure(&ran, Some(error)))
                }
                CaptureEnd::Stopped => Err(self.failure(&ran, Some("cancelled by the user".to_owned()))),
            },
        }
    }

    /// The five lines of a failure.
    fn failure(&self, ran: &Captured, error: Option<String>) -> String {
        let printed = |bytes: &[u8]| {
            if bytes.is_empty() { "(empty)".to_owned() } else { short(&(self.redact)(&text(bytes))) }
        };
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "(none)".to_owned());
        let (code, signal) = match ran.end {
            CaptureEnd::Ended(Ended::Code(code)) => (Some(code), None),
            CaptureEnd::Ended(Ended::Signal(signal)) => (None, Some(signal)),
            CaptureEnd::TimedOut | CaptureEnd::Stopped => (None, None),
        };
        [
            format!("Stdout: {}", printed(&ran.stdout)),
            format!("Stderr: {}", printed(&ran.stderr)),
            format!("Error: {}", or_none(error)),
            format!("Exit Code: {}", or_none(code.map(|code| code.to_string()))),
            format!("Signal: {}", or_none(signal.map(|signal| signal.to_string()))),
        ]
        .join("\n")
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The beginning of a program's output: a failure is shown whole or not at all, so it must be short.
fn short(whole: &str) -> String {
    let shown = lathe_redact::beginning(whole, SHOWN);
    match whole.len() - shown.len() {
        0 => whole.to_owned(),
        more => format!("{shown}\n... ({more} more bytes)"),
    }
}
