//! The one rule about folders that become repositories, for all who give names in a tree, and the lock under which they look
//! and act: two who look at the same time would each see only half of a repository.
//!
//! The lock is one for the process, because the roots of two sessions may lie in each other. It cannot deadlock, because its
//! holder never waits for a runtime. All threads of a runtime may be waiting for the lock, its workers and its blocking pool
//! alike, so whoever holds it is a plain thread that waits for nothing but the disk and programs of its own. A [`Landing`]
//! cannot be sent to another thread, so no task holds it across an await of a shared runtime. A lock that is awaited was
//! rejected: much of the code below it is plain blocking code that cannot await.
//!
//! Waiting is bounded too: who comes from a runtime enters by [`in_turn`] or holds a [`queue`] place, of which there are few,
//! so those who wait leave the pool to others. A place is taken before the lock, and never a second one by who has one.

use std::collections::{HashMap, HashSet};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use parking_lot::{Condvar, Mutex};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::guard::layout::{self, Together, Top};

static BUSY: Mutex<bool> = Mutex::new(false);
static FREE: Condvar = Condvar::new();

/// Threads of runtimes that give names or wait for their turn. The blocking pool has 512.
const PLACES: usize = 32;
static QUEUE: Semaphore = Semaphore::const_new(PLACES);

/// The leave to look whether a name may be given, and to give it. Only one thread of this process has it.
#[derive(Debug)]
pub struct Landing(PhantomData<*const ()>);

/// Waits until nobody else gives names. Not for tasks: see [`in_turn`].
pub fn landing() -> Landing {
    let mut busy = BUSY.lock();
    while *busy {
        FREE.wait(&mut busy);
    }
    *busy = true;
    Landing(PhantomData)
}

impl Drop for Landing {
    fn drop(&mut self) {
        *BUSY.lock() = false;
        FREE.notify_one();
    }
}

/// A place among those of runtimes that may wait for the lock.
#[derive(Debug)]
pub struct Queued {
    _permit: Option<SemaphorePermit<'static>>,
}

/// Waits for a place. Nothing but the caller's task waits, and it may stop waiting at any time.
pub async fn queue() -> Queued {
    // The semaphore is never closed.
    Queued { _permit: QUEUE.acquire().await.ok() }
}

/// Does work that takes the lock, in the blocking pool of the runtime. Once begun it runs to its end.
pub async fn in_turn<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, tokio::task::JoinError> {
    let queued = queue().await;
    let work = move || {
        let _queued = queued;
        work()
    };
    tokio::task::spawn_blocking(work).await
}

/// The first of these real paths whose writing, together with that of the others, leaves it in the layout of a repository.
pub fn makes_repository<'a>(root: &Path, written: &'a [PathBuf]) -> Option<&'a Path> {
    let (top, together) = (Top::of(root), Together::of(written));
    written.iter().map(PathBuf::as_path).find(|path| layout::makes_repository(top, path, &together))
}

/// Those of the paths that, put back together, make a repository of a folder that is none now and holds something of one
/// already: what somebody wrote since would steer it. What is in `ours` was put back before, and counts as nobody's.
pub fn completes_repository<'a>(root: &Path, back: &'a [PathBuf], ours: &[PathBuf]) -> Vec<&'a Path> {
    let (top, together) = (Top::of(root), Together::of(back));
    let ours: HashSet<&Path> = ours.iter().map(PathBuf::as_path).collect();
    // One look at each folder: many paths may lie in the same.
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
        let one = landing();
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
        // Nothing is there: it comes back as it was.
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

    /// Attack on the server, F2: who waits for the lock leaves the pool to others, and may fill it all the same.
    #[test]
    fn those_who_wait_for_the_lock_take_few_threads_of_a_runtime() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(PLACES + 1)
            .build()
            .unwrap();
        let one = landing();
        let waiting: Vec<_> = (0..10 * PLACES).map(|_| runtime.spawn(in_turn(|| drop(landing())))).collect();
        // All places are taken, and there is a thread for who gives no names.
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
