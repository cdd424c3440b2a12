//! The one boundary between work that waits for a disk and work that must never wait.
//!
//! Everything that a host reads, writes and looks up is plain blocking code. Surfaces and sessions that run on the
//! workers of a runtime call it through here.

use crate::error::HostError;

/// Runs work that waits for the disk, while other workers of the runtime take over the tasks that are waiting for
/// this one.
pub fn blocking<T>(work: impl FnOnce() -> T) -> T {
    lathe_agent::blocking(work)
}

/// The same for work that may create names in a tree. Only a few threads may wait for the lock of that work: all
/// others wait here, which blocks a task and not a thread.
pub async fn blocking_in_turn<T>(work: impl FnOnce() -> T) -> T {
    let _queued = lathe_workspace::queue().await;
    blocking(work)
}

/// Runs work that waits for the disk on other threads than those that serve clients.
pub async fn on_pool<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, HostError> + Send + 'static,
) -> Result<T, HostError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(HostError::Crashed(error.to_string())),
    }
}
