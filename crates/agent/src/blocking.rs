//! The boundary between what waits, for a disk or for a long computation, and what must never wait.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Runs work that takes long, while other workers of the runtime take over what waits behind it. A runtime with one thread has
/// nothing else to do meanwhile.
pub fn blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        Ok(_) | Err(_) => work(),
    }
}
