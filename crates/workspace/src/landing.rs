//! The one rule about folders that become repositories, for all who give names in a tree, and the lock under which they look
//! and act: two who look at the same time would each see only half of a repository.

use std::path::{Path, PathBuf};

use parking_lot::{Condvar, Mutex};

use crate::guard::layout;

static BUSY: Mutex<bool> = Mutex::new(false);
static FREE: Condvar = Condvar::new();

/// The leave to look whether a name may be given, and to give it. Only one of this process has it.
#[derive(Debug)]
pub struct Landing(());

/// Waits until nobody else gives names.
pub fn landing() -> Landing {
    let mut busy = BUSY.lock();
    while *busy {
        FREE.wait(&mut busy);
    }
    *busy = true;
    Landing(())
}

impl Drop for Landing {
    fn drop(&mut self) {
        *BUSY.lock() = false;
        FREE.notify_one();
    }
}

/// The first of these real paths whose writing, together with that of the others, leaves it in the layout of a repository.
pub fn makes_repository<'a>(root: &Path, written: &'a [PathBuf]) -> Option<&'a Path> {
    written.iter().map(PathBuf::as_path).find(|path| layout::repository_of(root, path, written).is_some())
}

/// Those of the paths that, put back together, make a repository of a folder that is none now and holds something of one
/// already: what somebody wrote since would steer it. What is in `ours` was put back before, and counts as nobody's.
pub fn completes_repository<'a>(root: &Path, back: &'a [PathBuf], ours: &[PathBuf]) -> Vec<&'a Path> {
    let completes = |path: &&Path| {
        layout::repository_of(root, path, back)
            .is_some_and(|folder| !layout::is_laid_out(&folder) && layout::is_begun(&folder, ours))
    };
    back.iter().map(PathBuf::as_path).filter(completes).collect()
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
}
