//! Lines of a person: the same shell with the same commands, and the bytes as they come.

use std::sync::Arc;

use lathe_protocol::Effects;
use lathe_shell::{LineEnd, LineLimits, LiveChunk, ShellError};
use tokio::sync::mpsc;

use super::late::LeftLine;
use crate::commands::LineContext;
use crate::secure;
use crate::tool::RunContext;

/// What became of a person's line.
pub enum PersonLine {
    Ended {
        end: Box<LineEnd>,
        /// The entry of the quarantine with what the line took away.
        kept: Option<String>,
        /// What it may have taken away for good.
        lost: Vec<String>,
        /// Repositories that are no longer whole, with what can be done.
        broken: Vec<String>,
    },
    /// From where the shell is, the guard says no.
    Denied(String),
}

/// Runs a line that was allowed. What it takes away is secured first.
pub async fn run_line(
    context: &RunContext,
    line: &str,
    granted: Effects,
    limits: LineLimits,
    live: &mpsc::Sender<LiveChunk>,
) -> Result<PersonLine, ShellError> {
    let services = &context.services;
    let cwd = services.cwd();
    let secured = match secure::before(context, line, cwd.as_deref()).await {
        Ok(secured) => secured,
        Err(reason) => return Ok(PersonLine::Denied(reason)),
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
            services.wait_for_left().await;
            services.runs_on(services.last_number()).await
        }
        Ok(_) | Err(_) => false,
    };
    let mut lost = secured.not_kept.clone();
    let mut changes = Vec::new();
    let broken = services.tracking.broken().await;
    if tracked {
        match services.tracking.after(&broken).await.0 {
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
            let line = LeftLine::new(context, line.to_owned(), services.inside_cwd().unwrap_or_default());
            line.keep(secured, changes, broken.clone()).await
        }
        false => secure::after(secured, context, changes, broken.clone()).await,
    };
    if let Some(kept) = &kept {
        let repositories = kept.repositories.iter().map(|one| &one.path);
        let trees = kept.trees.iter().chain(repositories);
        lost.retain(|words| !trees.clone().any(|tree| words.starts_with(&tree.display().to_string())));
    }
    let mut broken = secure::told(&broken, kept.as_ref());
    broken.extend(services.tracking.take_aside().iter().map(secure::told_aside));
    Ok(PersonLine::Ended { end: Box::new(ended?), kept: kept.map(|kept| kept.id), lost, broken })
}
