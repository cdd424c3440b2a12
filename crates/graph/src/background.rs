//! The first build beside other work: one thread of low priority that can be stopped, and that asks nothing of anybody.
//!
//! It shares nothing with whoever asks questions but the database, as another process would: a question in the middle finds
//! the builders' lock taken, answers from what is there and says so.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::graph::Graph;
use crate::scan::{Limits, real_root, scan};
use crate::store::expire_databases;

/// What is larger than this is not a repository somebody works in.
const ENTRIES: usize = 200_000;

/// A graph nobody asked for this long is forgotten.
pub const UNUSED: Duration = Duration::from_secs(30 * 86_400);

/// A build that goes on beside other work. Dropped, it stops at the next file.
pub struct Background {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Begins after a moment, so that what only takes a moment never pays for it. Nothing for a folder that is no
    /// repository: the whole machine, somebody's home, or what holds one.
    pub fn start(root: &Path, folder: &Path, after: Duration) -> Option<Self> {
        let root = real_root(root).ok()?;
        let home = std::env::var_os("HOME").and_then(|home| PathBuf::from(home).canonicalize().ok());
        if root.parent().is_none() || home.is_some_and(|home| home.starts_with(&root)) {
            return None;
        }
        let (stop, folder) = (Arc::new(AtomicBool::new(false)), folder.to_owned());
        let told = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("graph".into()).spawn(move || {
            std::thread::park_timeout(after);
            if !told.load(Ordering::Relaxed) {
                give_way();
                build(&root, &folder, &told);
            }
        });
        Some(Self { stop, thread: Some(thread.ok()?) })
    }

    pub fn is_done(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Stops it and waits until it has: no longer than one file takes.
    pub fn stop(mut self) {
        self.tell();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }

    fn tell(&self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.tell();
    }
}

/// Errors are left to the question that meets them, which has somebody to tell.
fn build(root: &Path, folder: &Path, stop: &Arc<AtomicBool>) {
    let limits = Limits { threads: 1, entries: ENTRIES, ..Limits::default() };
    // Where there is no source there shall be no database.
    if scan(root, &limits, None, stop).is_none_or(|walked| walked.files.is_empty()) {
        return;
    }
    expire_databases(folder, UNUSED);
    if let Ok(graph) = Graph::open(root, folder, limits) {
        let mut graph = graph.stopped_by(Arc::clone(stop));
        if graph.refresh(&|_, _| ()).is_ok() && !stop.load(Ordering::Relaxed) {
            let _ = graph.complete();
        }
    }
}

/// Takes only the time that nobody else wants. Threads started from here inherit it.
#[cfg(target_os = "linux")]
pub(crate) fn give_way() {
    use nix::libc::{PRIO_PROCESS, setpriority};
    let thread = nix::unistd::gettid().as_raw();
    // SAFETY: it takes numbers only. On Linux a thread's number stands for the thread alone.
    let _ = unsafe { setpriority(PRIO_PROCESS, thread.unsigned_abs(), 10) };
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn give_way() {}
