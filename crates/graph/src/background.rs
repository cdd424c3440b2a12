//! The first build, concurrent with other work: one thread of low priority that can be stopped and reports nothing.
//!
//! It shares only the database with the code that asks questions, as another process would. A question during the
//! build finds the builders' lock taken, is answered from what is in the database, and says so.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::graph::Graph;
use crate::scan::{GraphLimits, real_root, scan};
use crate::store::expire_databases;

/// A folder with more entries is not a repository that a user works in.
const ENTRIES: usize = 200_000;

/// The time after which an unused graph is deleted.
pub const UNUSED: Duration = Duration::from_secs(30 * 86_400);

/// A build that runs concurrently with other work. If it is dropped, it stops at the next file.
pub struct BackgroundBuild {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl BackgroundBuild {
    /// Begins after a delay, so that a short process never pays for it. None for a folder that is not a repository:
    /// the root of the machine, the user's home folder, or a folder that contains it.
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
                lower_priority();
                build(&root, &folder, &told);
            }
        });
        Some(Self { stop, thread: Some(thread.ok()?) })
    }

    pub fn is_done(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Stops the build and waits for its end, which takes no longer than one file.
    pub fn stop(mut self) {
        self.signal_stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }

    fn signal_stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for BackgroundBuild {
    fn drop(&mut self) {
        self.signal_stop();
    }
}

/// Builds the graph. Errors are left to the question that meets them, which can report them.
fn build(root: &Path, folder: &Path, stop: &Arc<AtomicBool>) {
    let limits = GraphLimits { threads: 1, entries: ENTRIES, ..GraphLimits::default() };
    // A folder without sources gets no database.
    if scan(root, &limits, None, stop).is_none_or(|walked| walked.files.is_empty()) {
        return;
    }
    expire_databases(folder, UNUSED);
    if let Ok(graph) = Graph::open(root, folder, limits) {
        let mut graph = graph.stopped_by(Arc::clone(stop));
        if graph.refresh(&|_, _| ()).is_ok() && !stop.load(Ordering::Relaxed) {
            let _ = graph.ensure_index();
        }
    }
}

/// Lowers the priority of the thread, so that it only uses spare time. Threads started from here inherit it.
#[cfg(target_os = "linux")]
pub(crate) fn lower_priority() {
    use nix::libc::{PRIO_PROCESS, setpriority};
    let thread = nix::unistd::gettid().as_raw();
    // SAFETY: it takes numbers only. On Linux a thread's number stands for the thread alone.
    let _ = unsafe { setpriority(PRIO_PROCESS, thread.unsigned_abs(), 10) };
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn lower_priority() {}
