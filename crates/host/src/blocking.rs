//! The one boundary between what waits for a disk and what must never wait.
//!
//! Everything a host reads, writes and finds is plain blocking code. Surfaces and sessions that run on a runtime's workers
//! call it through here.

use crate::error::HostError;

/// Runs work that waits for the disk, while other workers of the runtime take over what waits behind it.
pub fn blocking<T>(work: impl FnOnce() -> T) -> T {
    lathe_agent::blocking(work)
}

/// The same for work that may give names in a tree. Only few threads wait for the lock of those who do: the rest wait here,
/// where a task waits and no thread.
pub async fn blocking_in_turn<T>(work: impl FnOnce() -> T) -> T {
    let _queued = lathe_workspace::queue().await;
    blocking(work)
}

/// Work that waits for the disk, away from those who wait for a client.
pub async fn on_pool<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, HostError> + Send + 'static,
) -> Result<T, HostError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(HostError::Crashed(error.to_string())),
    }
}
