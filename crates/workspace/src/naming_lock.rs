//! The rule about folders that become repositories, for all code that creates names in a tree, and the lock under
//! which it checks and acts: of two concurrent checks each would see only half of a repository.
//!
//! There is one lock for the process, because the root of one session may lie in that of another. It cannot deadlock,
//! because its holder never waits for a runtime. All threads of a runtime may be waiting for the lock, its workers
//! and its blocking pool alike, so the holder is a plain thread that waits only for the disk and for programs of its
//! own. A [`NamingLock`] cannot be sent to another thread, so no task holds it across an await of a shared runtime. An
//! async lock was rejected: much of the code that runs under the lock is plain blocking code that cannot await.
//!
//! The number of waiting threads is bounded too: a caller from a runtime uses [`run_in_turn`] or holds a [`queue`]
//! place, of which there are few, so that the waiting threads leave the pool to others. A place is taken before the
//! lock, and a holder of one never takes a second.

use std::collections::{HashMap, HashSet};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use parking_lot::{Condvar, Mutex};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::guard::layout::{self, Together, Top};

static BUSY: Mutex<bool> = Mutex::new(false);
static FREE: Condvar = Condvar::new();

/// The number of runtime threads that create names or wait for their turn. The blocking pool has 512.
const PLACES: usize = 32;
static QUEUE: Semaphore = Semaphore::const_new(PLACES);

/// The lock on checking and creating names. Only one thread of this process has it.
#[derive(Debug)]
pub struct NamingLock(PhantomData<*const ()>);

/// Waits until no other thread creates names. Not for tasks: see [`run_in_turn`].
pub fn lock_naming() -> NamingLock {
    let mut busy = BUSY.lock();
    while *busy {
        FREE.wait(&mut busy);
    }
    *busy = true;
    NamingLock(PhantomData)
}

impl Drop for NamingLock {
    fn drop(&mut self) {
        *BUSY.lock() = false;
        FREE.notify_one();
    }
}

/// A place in the queue of runtime threads that may wait for the lock.
#[derive(Debug)]
pub struct QueuePlace {
    _permit: Option<SemaphorePermit<'static>>,
}

/// Waits for a place. Only the caller's task waits, and it may stop waiting at any time.
pub async fn queue() -> QueuePlace {
    // The semaphore is never closed.
    QueuePlace { _permit: QUEUE.acquire().await.ok() }
}

/// Runs work that takes the lock, in the blocking pool of the runtime. Once started it runs to its end.
pub async fn run_in_turn<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, tokio::task::JoinError> {
    let queued = queue().await;
    let work = move || {
        let _queued = queued;
        work()
    };
    tokio::task::spawn_blocking(work).await
}

/// The first of these real paths that is in the layout of a repository, or steers one, once all of them are written.
pub fn makes_repository<'a>(root: &Path, written: &'a [PathBuf]) -> Option<&'a Path> {
    let (top, together) = (Top::of(root), Together::of(written));
    written.iter().map(PathBuf::as_path).find(|path| layout::makes_repository(top, path, &together))
}

/// The paths that, restored together, would make a repository of a folder that is none now and already contains a
/// part of one: that part, written by others since, would steer it. Paths in `ours` were restored earlier, and do not
/// count as written by others.
pub fn completes_repository<'a>(root: &Path, back: &'a [PathBuf], ours: &[PathBuf]) -> Vec<&'a Path> {
    let (top, together) = (Top::of(root), Together::of(back));
    let ours: HashSet<&Path> = ours.iter().map(PathBuf::as_path).collect();
    // One check for each folder: many paths may lie in the same.
    let mut looked: HashMap<PathBuf, bool> = HashMap::new();
    let mut completes = |path: &&Path| {
        let Some(folder) = layout::repository_of(top, path, &together) else { return false };
        if let Some(known) = looked.get(&folder) {
            return *known;
        }
        let found = !layout::is_laid_out(&folder) && layout::is_begun(&folder, &ours);
        looked.insert(folder, found);
        found
    };
    back.iter().map(PathBuf::as_path).filter(|path| completes(path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LocalFiles, WorkspaceError};

    #[test]
    fn who_gives_a_name_looks_when_its_turn_has_come() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("b/refs")).unwrap();
        let one = lock_naming();
        let (begun, begins) = std::sync::mpsc::channel();
        let files = LocalFiles::new(root.clone());
        let making = std::thread::spawn(move || {
            begun.send(()).unwrap();
            files.make_folder(Path::new("b/objects"))
        });
        begins.recv().unwrap();
        std::fs::write(root.join("b/HEAD"), "ref: refs/heads/main\n").unwrap();
        drop(one);
        assert!(matches!(making.join().unwrap(), Err(WorkspaceError::Protected(_))));
        assert!(!root.join("b/objects").exists());
    }

    #[test]
    fn only_what_somebody_began_is_not_completed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let paths = |names: &[&str]| names.iter().map(|name| root.join(name)).collect::<Vec<_>>();
        let whole = paths(&["b/HEAD", "b/objects", "b/refs/x", "b/config", "b/notes"]);
        assert_eq!(makes_repository(&root, &whole), Some(whole[0].as_path()));
        assert_eq!(makes_repository(&root, &whole[1..]), None);
        // Nothing is there: it is restored as it was.
        assert_eq!(completes_repository(&root, &whole, &[]), Vec::<&Path>::new());
        std::fs::create_dir_all(root.join("b/hooks")).unwrap();
        assert_eq!(completes_repository(&root, &whole, &[]), whole[..4].iter().collect::<Vec<_>>());
        assert_eq!(completes_repository(&root, &whole, &paths(&["b/hooks"])), Vec::<&Path>::new());
        assert_eq!(completes_repository(&root, &whole[1..], &[]), Vec::<&Path>::new());
    }

    /// Attack on the server, F1: the names of one request were compared with each other.
    #[test]
    fn twenty_thousand_names_are_looked_at_once_each() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("b/hooks")).unwrap();
        let mut many: Vec<PathBuf> =
            (0..20_000).map(|number| root.join(format!("{number}/config"))).collect();
        assert_eq!(makes_repository(&root, &many), None);
        let ours: Vec<PathBuf> = (0..20_000).map(|number| root.join(format!("b/{number}"))).collect();
        many.extend(["b/HEAD", "b/objects/x", "b/refs/x"].map(|name| root.join(name)));
        many.extend((0..20_000).map(|number| root.join(format!("b/objects/{number}"))));
        assert_eq!(makes_repository(&root, &many), Some(root.join("b/HEAD").as_path()));
        assert_eq!(completes_repository(&root, &many, &ours).len(), 20_003);
    }

    /// Attack on the server, F2: threads that wait for the lock leave the pool to others, and may still fill the
    /// queue.
    #[test]
    fn those_who_wait_for_the_lock_take_few_threads_of_a_runtime() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(PLACES + 1)
            .build()
            .unwrap();
        let one = lock_naming();
        let waiting: Vec<_> =
            (0..10 * PLACES).map(|_| runtime.spawn(run_in_turn(|| drop(lock_naming())))).collect();
        // All places are taken, and there is a thread for work that creates no names.
        while QUEUE.available_permits() > 0 {
            std::thread::yield_now();
        }
        assert_eq!(runtime.block_on(runtime.spawn_blocking(|| 7)).unwrap(), 7);
        drop(one);
        for waiting in waiting {
            runtime.block_on(waiting).unwrap().unwrap();
        }
    }
}
