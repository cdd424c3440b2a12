//! Slots: the right of a surface to do costly work, limited in number.
//!
//! A request whose client disconnects ends at once, but its work on another thread continues until it notices. A slot
//! that ended with the request would be free too early, and a client that disconnects again and again would fill the
//! machine. So work on other threads keeps the slot of its request. It is found by the task and not passed from call
//! to call, so that no function in between can drop it.

use std::any::Any;
use std::sync::Arc;

/// A slot. It is free when the last holder drops it.
type Slot = Arc<dyn Any + Send + Sync>;

tokio::task_local! {
    static SLOT: Slot;
}

/// Runs the work of a request that has a slot. All work that it starts on other threads keeps the slot until it has
/// ended.
pub async fn with_slot<W: Future>(slot: impl Any + Send + Sync, work: W) -> W::Output {
    SLOT.scope(Arc::new(slot), work).await
}

/// Work for another thread that keeps the slot of this request, if it has one.
pub fn keeping_slot<T>(work: impl FnOnce() -> T + Send + 'static) -> impl FnOnce() -> T + Send + 'static {
    let slot = SLOT.try_with(Arc::clone).ok();
    move || {
        let _slot = slot;
        work()
    }
}
