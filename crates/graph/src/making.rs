//! An index that is made beside other work, for a process that has more than one question.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::background::give_way;
use crate::index::{Index, make};
use crate::snapshot::Snapshot;

/// Dropped, it stops at the next file, and is waited for.
pub struct Making {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Option<Index>>>,
}

impl Making {
    pub fn start(snapshot: Arc<Snapshot>, keep: impl FnOnce(&Index) + Send + 'static) -> Option<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("graph-index".into()).spawn(move || {
            give_way();
            let index = make(&snapshot.without_index(), 1, &told)?;
            keep(&index);
            Some(index)
        });
        Some(Self { stop, thread: Some(thread.ok()?) })
    }

    pub fn is_done(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    pub fn made(mut self) -> Option<Arc<Index>> {
        self.thread.take()?.join().ok()?.map(Arc::new)
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
