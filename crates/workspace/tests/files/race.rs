//! Links swapped at any moment: nothing outside is read or written.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use lathe_testkit::size;
use lathe_workspace::{Expect, Files as _, LocalFiles, WorkspaceError};
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};

use crate::support::{hash, picture, remove, write};

const CANARY: &str = "CANARY";
const INSIDE: &str = "inside";

/// Exchanges pairs of names as fast as it can until it is dropped.
struct Swapper {
    stop: Arc<AtomicBool>,
    swaps: Arc<AtomicUsize>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Swapper {
    fn start(pairs: Vec<(PathBuf, PathBuf)>) -> Self {
        let (stop, swaps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let thread = std::thread::spawn({
            let (stop, swaps) = (Arc::clone(&stop), Arc::clone(&swaps));
            move || {
                while !stop.load(Ordering::Relaxed) {
                    for (one, other) in &pairs {
                        // One that a removal took away for a moment is not there to be swapped.
                        let _ = renameat2(AT_FDCWD, one, AT_FDCWD, other, RenameFlags::RENAME_EXCHANGE);
                        swaps.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        });
        Self { stop, swaps, thread: Some(thread) }
    }
}

impl Drop for Swapper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(|thread| thread.join());
    }
}

async fn race(open: fn(PathBuf) -> LocalFiles) {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    let (root, out) = (base.join("ws"), base.join("out"));
    for folder in [root.join("spot/sub"), out.join("sub")] {
        fs::create_dir_all(folder).unwrap();
    }
    for name in ["f", "sub/f", "canary"] {
        fs::write(out.join(name), CANARY).unwrap();
    }
    for name in ["spot/f", "spot/sub/f", "file"] {
        fs::write(root.join(name), INSIDE).unwrap();
    }
    symlink("../out", root.join("other")).unwrap();
    symlink(out.join("f"), root.join("link")).unwrap();
    let outside = picture(&out);
    let pair = |one: &str, other: &str| (root.join(one), root.join(other));
    let swapper = Swapper::start(vec![pair("spot", "other"), pair("file", "link")]);

    let files = open(root.clone());
    let rounds = size(1_000, 10_000);
    let (mut well, mut refused) = (0, 0);
    let mut count = |gave: Result<bool, WorkspaceError>| match gave {
        Ok(inside) => {
            assert!(inside, "something outside was seen");
            well += 1;
        }
        Err(error) => {
            assert!(!error.to_string().contains(CANARY), "{error}");
            refused += 1;
        }
    };
    for round in 0..rounds {
        for path in ["spot/f", "spot/sub/f", "file", "spot/sub/../f"] {
            let path = Path::new(path);
            count(files.read(path, None).await.map(|bytes| bytes == INSIDE.as_bytes()));
            let song = |mut file: fs::File| {
                let mut text = String::new();
                std::io::Read::read_to_string(&mut file, &mut text).unwrap();
                text == INSIDE
            };
            count(files.open(path).map(song));
            count(files.stat(path).await.map(|stat| stat.bytes == INSIDE.len() as u64));
        }
        let spot = Path::new("spot");
        count(files.list(spot).await.map(|names| names.iter().all(|named| named.name != "canary")));
        let clean =
            |entries: Vec<lathe_workspace::WalkEntry>| entries.iter().all(|e| !e.path.ends_with("canary"));
        count(files.walk(spot, 3).await.map(clean));
        count(files.real(Path::new("spot/f")).await.map(|real| real.starts_with(&root)));
        let new = PathBuf::from(format!("spot/made{round}/new"));
        for op in [
            write(Path::new("spot/f"), hash(INSIDE), INSIDE),
            write(Path::new("file"), hash(INSIDE), INSIDE),
            write(&new, Expect::Absent, INSIDE),
            remove(&new, hash(INSIDE)),
        ] {
            count(files.apply(vec![op]).await.map(|_| true));
        }
    }
    let swaps = swapper.swaps.load(Ordering::Relaxed);
    drop(swapper);
    assert_eq!(picture(&out), outside);
    eprintln!("{rounds} rounds, {swaps} swaps: {well} well, {refused} refused");
    assert!(well > 0 && refused > 0 && swaps > rounds);
    let mut left: Vec<PathBuf> = picture(&root).into_iter().map(|(path, ..)| path).collect();
    left.retain(|path| path.to_string_lossy().contains(".lathe-"));
    assert_eq!(left, [] as [PathBuf; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn links_that_are_swapped_lead_nowhere() {
    race(LocalFiles::new).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn links_that_are_swapped_lead_nowhere_without_openat2() {
    race(LocalFiles::stepwise).await;
}
