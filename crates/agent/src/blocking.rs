//! The boundary between work that waits, for a disk or for a long computation, and tasks that must never wait.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Runs work that takes long, while other workers of the runtime take over the waiting tasks. A runtime with one
/// thread runs it directly: it has nothing to do meanwhile.
pub fn blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        Ok(_) | Err(_) => work(),
    }
}
