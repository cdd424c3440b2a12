//! Lines of the user's own: the same shell with the same commands, and the bytes as they come.

use std::sync::Arc;

use lathe_protocol::Effects;
use lathe_shell::{LineEnd, LineLimits, LiveChunk, ShellError};
use tokio::sync::mpsc;

use super::background::LineWithProcesses;
use crate::commands::LineContext;
use crate::line::secure;
use crate::tool::RunContext;

/// The outcome of a user's line.
pub enum UserLineOutcome {
    Ended {
        end: Box<LineEnd>,
        /// The quarantine entry with what the line removed.
        kept: Option<String>,
        /// Paths that it may have removed for good.
        lost: Vec<String>,
        /// Repositories that are no longer intact, each with what can be done.
        broken: Vec<String>,
    },
    /// The guard refuses the line from the shell's current folder.
    Denied(String),
}

/// Runs a line that was allowed. Whatever it removes is secured first.
pub async fn run_line(
    context: &RunContext,
    line: &str,
    granted: Effects,
    limits: LineLimits,
    live: &mpsc::Sender<LiveChunk>,
) -> Result<UserLineOutcome, ShellError> {
    let services = &context.services;
    let cwd = services.cwd();
    let secured = match secure::secure_line(context, line, cwd.as_deref()).await {
        Ok(secured) => secured,
        Err(reason) => return Ok(UserLineOutcome::Denied(reason)),
    };
    let tracked = secured.needs_tracking();
    services.begin_line(Arc::new(LineContext::new(context.clone(), granted)));
    let mut shell = services.take_shell().await?;
    services.number_line(shell.next_line());
    services.note_options(line);
    let ended = shell.run(line.as_bytes(), limits, Some(live), &context.cancel).await;
    services.put_shell(shell);
    let runs_on = match &ended {
        Ok(end) if end.jobs > 0 => {
            services.wait_for_background().await;
            services.is_line_alive(services.last_number()).await
        }
        Ok(_) | Err(_) => false,
    };
    let mut lost = secured.not_kept.clone();
    let mut changes = Vec::new();
    let broken = services.tracking.broken_repositories().await;
    if tracked {
        match services.tracking.end_line(&broken).await.0 {
            Ok(compared) => {
                lost.extend(
                    compared.not_undoable.iter().map(|one| format!("{}: {}", one.path.display(), one.why)),
                );
                changes = compared.changes;
            }
            Err(reason) => lost.push(reason),
        }
    }
    let kept = match runs_on {
        true => {
            let line =
                LineWithProcesses::new(context, line.to_owned(), services.inside_cwd().unwrap_or_default());
            line.keep(secured, changes, broken.clone()).await
        }
        false => secure::finish_line(secured, context, changes, broken.clone()).await,
    };
    if let Some(kept) = &kept {
        let repositories = kept.repositories.iter().map(|one| &one.path);
        let trees = kept.trees.iter().chain(repositories);
        lost.retain(|words| !trees.clone().any(|tree| words.starts_with(&tree.display().to_string())));
    }
    let mut broken = secure::broken_notes(&broken, kept.as_ref());
    broken.extend(services.tracking.take_aside().iter().map(secure::aside_note));
    Ok(UserLineOutcome::Ended { end: Box::new(ended?), kept: kept.map(|kept| kept.id), lost, broken })
}
