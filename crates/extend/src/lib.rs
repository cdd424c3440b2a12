//! Tools that a program of the user offers: found by one command, run by another.
//!
//! The protocol is Gemini CLI's, so that programs written for it work: the first command prints function declarations
//! as JSON, the second gets the name of a tool as its last argument and the arguments on standard input. Limits that
//! Gemini CLI leaves open are fixed here: time and output of both are bounded, and a call that is cancelled ends with
//! everything it started.
//!
//! No shell is used. A command is split into words once, and the model's text only ever reaches standard input.

mod call;
mod command_words;
mod declaration;
mod error;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lathe_workspace::{
    CaptureEnd, CaptureLimits, Ended, Fence, Pin, Spawn, Workspace, capture, without_imports,
};
use tokio_util::sync::CancellationToken;

pub use call::ToolRan;
pub use command_words::split_command;
pub use declaration::{DiscoveredTool, Discovery, parse_declarations};
pub use error::ExtendError;

/// The time limit of the discovery.
const DISCOVERY: Duration = Duration::from_secs(60);

/// The maximum output of the discovery in bytes.
const PRINTED: usize = 10 << 20;

/// Redacts the secrets in a text.
pub type RedactText = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// The two commands, and the workspace in which they run.
#[derive(Clone)]
pub struct Program {
    pub discovery_command: String,
    pub call_command: String,
    /// The time limit of a call.
    pub call_time: Duration,
    /// The workspace in which they run. Relative words of the commands begin at its root, in whichever folder a call
    /// runs.
    pub workspace: Workspace,
    pub env: Vec<(OsString, OsString)>,
    /// The files that it runs, as they were when the user trusted it.
    pub pins: Vec<Pin>,
    /// Applied to a program's output before it is cut: half a secret is not recognised.
    pub redact: RedactText,
}

impl Program {
    /// The declared tools, in the order of their declarations.
    pub async fn discover(&self, cancel: &CancellationToken) -> Result<Discovery, ExtendError> {
        let what = self.spawn(&self.discovery_command, &[])?;
        // Without a usable call command, discovery is pointless.
        command_words::split_command(&self.call_command)?;
        let limits = CaptureLimits { time: DISCOVERY, keep: PRINTED };
        let ran = capture(&**self.workspace.processes(), what, b"", limits, cancel.cancelled()).await?;
        let failed = |reason: String| {
            let stderr = (self.redact)(&String::from_utf8_lossy(&ran.stderr));
            let said = stderr.trim();
            let said = lathe_redact::first_chars(said, 500).unwrap_or(said).to_owned();
            let said = if said.is_empty() { said } else { format!(": {said}") };
            ExtendError::Discovery { command: self.discovery_command.clone(), reason: reason + &said }
        };
        match ran.end {
            CaptureEnd::Ended(Ended::Code(0)) => {}
            CaptureEnd::Ended(Ended::Code(code)) => return Err(failed(format!("exit code {code}"))),
            CaptureEnd::Ended(Ended::Signal(signal)) => return Err(failed(format!("signal {signal}"))),
            CaptureEnd::TimedOut => {
                return Err(failed(format!("it took longer than {} seconds", DISCOVERY.as_secs())));
            }
            CaptureEnd::Stopped => return Err(failed("cancelled".to_owned())),
        }
        if ran.cut {
            return Err(failed(format!("it printed more than {} MB", PRINTED >> 20)));
        }
        declaration::read(&ran.stdout, &self.discovery_command, &self.call_command).map_err(failed)
    }

    /// The program that a call starts.
    pub fn call_program(&self) -> String {
        command_words::split_command(&self.call_command)
            .ok()
            .and_then(|words| words.into_iter().next())
            .unwrap_or_default()
    }

    fn spawn(&self, command: &str, more: &[&str]) -> Result<Spawn, ExtendError> {
        if let Some(why) = self.pins.iter().find_map(Pin::why_changed) {
            return Err(ExtendError::Changed(why));
        }
        let words = command_words::split_command(command)?;
        let before = [""].into_iter().chain(words.iter().map(String::as_str));
        let argv = words.iter().enumerate().zip(before);
        let argv = argv.map(|((at, word), before)| self.resolve_word(at, word, before));
        let argv = argv.chain(more.iter().map(|word| Ok(OsString::from(word))));
        let (cwd, env) = (self.inside(self.workspace.root())?, without_imports(self.env.clone()));
        Ok(Spawn {
            argv: argv.collect::<Result<_, _>>()?,
            cwd,
            env,
            fence: Fence::default(),
            shown: Vec::new(),
        })
    }

    /// A word that names a file of the folder, by its real path: in another folder the same word is another file.
    /// `before` is the previous word.
    fn resolve_word(&self, at: usize, word: &str, before: &str) -> Result<OsString, ExtendError> {
        // A program without a slash is looked up on PATH, never in a folder.
        if at == 0 && !word.contains('/') {
            return Ok(word.into());
        }
        if let Some(pin) = self.pins.iter().find(|pin| pin.word == word) {
            return Ok(self.inside(&pin.path)?.into_os_string());
        }
        let there = self.workspace.root().join(word);
        let is_path = word.contains(['/', '.']) && !word.starts_with(['-', '/']);
        // `sh -c 'head -c 9 /dev/zero'`: the value of an option, not a name.
        let is_text = before.starts_with('-') && word.contains(char::is_whitespace);
        let real = self.workspace.local().and_then(|_| there.canonicalize().ok());
        match real {
            Some(real) if is_path && real.is_file() => Ok(self.inside(&real)?.into_os_string()),
            _ if is_text => Ok(word.into()),
            // A missing program: a program with the same name in the folder of a call must not be run.
            _ if is_path && word.contains('/') => Ok(self.inside(&there)?.into_os_string()),
            // Only a folder of this machine can show whether such a word names a file.
            _ if is_path && self.workspace.local().is_none() => Err(ExtendError::Unclear(word.to_owned())),
            _ => Ok(word.into()),
        }
    }

    fn inside(&self, path: &Path) -> Result<PathBuf, ExtendError> {
        self.workspace.inside(path).ok_or_else(|| ExtendError::NoPath(path.to_owned()))
    }
}
