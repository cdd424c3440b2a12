//! An index that is made in the background, for a process that asks more than one question.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::background::lower_priority;
use crate::index::{Index, make};
use crate::snapshot::Snapshot;

/// The thread that makes an index. If it is dropped, it stops at the next file, and the drop waits for it.
pub struct IndexBuild {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Option<Index>>>,
}

impl IndexBuild {
    pub fn start(snapshot: Arc<Snapshot>, keep: impl FnOnce(&Index) + Send + 'static) -> Option<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("graph-index".into()).spawn(move || {
            lower_priority();
            let index = make(&snapshot.without_index(), 1, &told)?;
            keep(&index);
            Some(index)
        });
        Some(Self { stop, thread: Some(thread.ok()?) })
    }

    pub fn is_done(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    pub fn finish(mut self) -> Option<Arc<Index>> {
        self.thread.take()?.join().ok()?.map(Arc::new)
    }
}

impl Drop for IndexBuild {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
