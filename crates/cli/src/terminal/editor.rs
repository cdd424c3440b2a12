//! The user's own editor, for a text that Lathe proposes.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use lathe_host::TerminalModes;

use crate::terminal::stops::Stops;

/// The reasons for which an edit ends without a text.
pub(crate) enum EditFailure {
    /// The text cannot be used, for this reason.
    Unusable(String),
    /// The process was asked to end meanwhile.
    Stopped,
}

impl From<String> for EditFailure {
    fn from(reason: String) -> Self {
        Self::Unusable(reason)
    }
}

/// The number of the signal of Ctrl-C, the same on every system.
const SIGINT: i32 = 2;

/// Time for an editor that was asked to end, and for the arrival of the Ctrl-C that ended one.
const PATIENCE: Duration = Duration::from_secs(1);

/// Runs the user's editor on a text and returns the edited text.
pub(crate) async fn edited_text(
    editor: &str,
    text: &str,
    ending: &str,
    stops: &mut Stops,
) -> Result<String, EditFailure> {
    // In a folder that only this user can enter: other programs can neither read nor replace it.
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = folder.path().join(format!("proposal.{ending}"));
    let wrong = |error: std::io::Error| EditFailure::Unusable(format!("{}: {error}", file.display()));
    std::fs::write(&file, text).map_err(wrong)?;
    run(editor, &file, stops).await?;
    std::fs::read_to_string(&file).map_err(wrong)
}

async fn run(editor: &str, file: &Path, stops: &mut Stops) -> Result<(), EditFailure> {
    let modes = TerminalModes::save();
    // The variable may hold options after the program.
    let mut child = tokio::process::Command::from(lathe_host::user_program("/bin/sh"))
        .args(["-c", &format!("{editor} \"$1\""), "sh"])
        .arg(file)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("the editor cannot be started: {error}"))?;
    let ended = tokio::select! {
        ended = child.wait() => Some(ended),
        _ = stops.wait_to_leave() => None,
    };
    let Some(ended) = ended else {
        if let Some(id) = child.id() {
            lathe_host::ask_to_end(id);
        }
        if tokio::time::timeout(PATIENCE, child.wait()).await.is_err() {
            let _ = child.kill().await;
        }
        modes.restore();
        return Err(EditFailure::Stopped);
    };
    if ended.as_ref().is_ok_and(was_interrupted) {
        stops.discard_interrupt(PATIENCE).await;
    }
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the editor ended with {status}").into()),
        Err(error) => Err(format!("the editor cannot be started: {error}").into()),
    }
}

/// True for a program that Ctrl-C ended, by itself or as a shell reports it.
fn was_interrupted(status: &ExitStatus) -> bool {
    status.signal() == Some(SIGINT) || status.code() == Some(128 + SIGINT)
}
