//! Lines of a person: the same shell with the same commands, and the bytes as they come.

use std::sync::Arc;

use lathe_protocol::Effects;
use lathe_shell::{LineEnd, LineLimits, LiveChunk, ShellError};
use tokio::sync::mpsc;

use crate::commands::LineContext;
use crate::tool::RunContext;

/// Runs a line that was allowed.
pub async fn run_line(
    context: &RunContext,
    line: &str,
    granted: Effects,
    limits: LineLimits,
    live: &mpsc::Sender<LiveChunk>,
) -> Result<LineEnd, ShellError> {
    let services = &context.services;
    services.begin_line(Arc::new(LineContext::new(context.clone(), granted)));
    let mut shell = services.take_shell().await?;
    let ended = shell.run(line.as_bytes(), limits, Some(live), &context.cancel).await;
    services.put_shell(shell);
    ended
}
