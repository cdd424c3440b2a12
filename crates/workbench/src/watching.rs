//! Changes in a folder, reported as they happen.
//!
//! It uses inotify on the folder and all folders below it, except those that hold generated files by the thousands. A
//! client gets names, not content; when too much happened at once, it is only asked to read everything again.

use std::ffi::OsStr;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use lathe_host::{HostError, folder_identity};
use lathe_protocol::FolderIdentity;
use lathe_workspace::LocalTree;

use schemars::JsonSchema;
use serde::Serialize;

use crate::browse::Browser;

/// Number of folders that are watched.
const FOLDERS: usize = 8192;
/// Names of folders that are left out.
const SKIPPED: &[&str] = &[".git", "node_modules", "target", "__pycache__", ".venv"];
/// Names of files that are being written.
const OURS: &str = ".lathe-";

/// A change of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FolderChange {
    /// Relative to the workspace; empty if anything may have changed.
    pub path: String,
    /// `changed`, `removed` or `unknown`.
    pub kind: &'static str,
}

impl Browser {
    /// Watches from now on.
    pub fn watch(&self) -> Result<WatchedFolder, HostError> {
        WatchedFolder::start(self.root(), self.local().clone())
    }
}

/// A folder that is watched.
pub struct WatchedFolder {
    root: PathBuf,
    /// The folder itself. Another one that gets its name is not watched.
    identity: Option<FolderIdentity>,
    tree: LocalTree,
    system: system::FolderWatcher,
}

impl WatchedFolder {
    fn start(root: &Path, tree: LocalTree) -> Result<Self, HostError> {
        let failed = |error: std::io::Error| HostError::Folder {
            path: root.to_owned(),
            reason: format!("it cannot be watched: {error}"),
        };
        let system = system::FolderWatcher::start().map_err(failed)?;
        let mut watching = Self { root: root.to_owned(), identity: folder_identity(root), tree, system };
        watching.add(root);
        Ok(watching)
    }

    /// The next changes, several at once if they came together; each path once. An error ends the watch. So does
    /// moving the folder away, because later changes in it are not for this watch.
    pub async fn next(&mut self) -> std::io::Result<Vec<FolderChange>> {
        loop {
            let read = self.system.read().await?;
            if folder_identity(&self.root) != self.identity {
                return Err(std::io::Error::new(
                    std::io::ErrorKind::NotFound,
                    "the folder was moved away: watch it where it is now",
                ));
            }
            let mut changes: Vec<FolderChange> = Vec::new();
            for event in read {
                let Some((path, is_there, is_folder)) = event else {
                    return Ok(vec![FolderChange { path: String::new(), kind: "unknown" }]);
                };
                if is_there && is_folder {
                    self.add(&path);
                }
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                if self.tree.closed() == Some(path.as_path()) {
                    continue;
                }
                if name.starts_with(OURS) || SKIPPED.contains(&&*name) {
                    continue;
                }
                let path = path.strip_prefix(&self.root).unwrap_or(&path).to_string_lossy().into_owned();
                changes.retain(|happened| happened.path != path);
                changes.push(FolderChange { path, kind: if is_there { "changed" } else { "removed" } });
            }
            if !changes.is_empty() {
                return Ok(changes);
            }
        }
    }

    /// Adds a folder and everything below it.
    fn add(&mut self, folder: &Path) {
        let mut waiting = vec![folder.to_owned()];
        while let Some(folder) = waiting.pop() {
            // A link on the way leads elsewhere, perhaps outside; and Lathe's own folder is not opened.
            let Ok(opened) = self.tree.exact_folder(&folder) else { continue };
            if self.system.len() >= FOLDERS || !self.system.add(&folder, opened.as_fd()) {
                continue;
            }
            let Ok(mut listed) = nix::dir::Dir::from_fd(opened) else { continue };
            for entry in listed.iter().flatten() {
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                let skipped =
                    name.to_str().is_some_and(|name| SKIPPED.contains(&name) || name == "." || name == "..");
                // If the kind is unknown, opening it shows it.
                let maybe = entry.file_type().is_none_or(|kind| kind == nix::dir::Type::Directory);
                if !skipped && maybe {
                    waiting.push(folder.join(name));
                }
            }
        }
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::collections::HashMap;
    use std::io;
    use std::os::fd::{AsRawFd as _, BorrowedFd};
    use std::path::{Path, PathBuf};

    use nix::errno::Errno;
    use nix::sys::inotify::{AddWatchFlags as Flag, InitFlags, Inotify, WatchDescriptor};

    const ALL: Flag = Flag::IN_CREATE
        .union(Flag::IN_DELETE)
        .union(Flag::IN_MOVED_FROM)
        .union(Flag::IN_MOVED_TO)
        .union(Flag::IN_CLOSE_WRITE)
        .union(Flag::IN_ONLYDIR);

    /// The interval between two reads of what the kernel has recorded; it keeps all until then.
    const READ_INTERVAL: std::time::Duration = std::time::Duration::from_millis(200);

    pub(super) struct FolderWatcher {
        inotify: Inotify,
        folders: HashMap<WatchDescriptor, PathBuf>,
    }

    impl FolderWatcher {
        pub(super) fn start() -> io::Result<Self> {
            let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
            Ok(Self { inotify, folders: HashMap::new() })
        }

        pub(super) fn len(&self) -> usize {
            self.folders.len()
        }

        /// Watches a folder that is open, independent of what its name leads to by then.
        pub(super) fn add(&mut self, folder: &Path, opened: BorrowedFd<'_>) -> bool {
            let by_handle = format!("/proc/self/fd/{}", opened.as_raw_fd());
            match self.inotify.add_watch(by_handle.as_str(), ALL) {
                Ok(watch) => self.folders.insert(watch, folder.to_owned()).is_none(),
                Err(_) => false,
            }
        }

        /// Ends the watch of a folder and of all below it.
        fn remove(&mut self, folder: &Path) {
            let inotify = &self.inotify;
            self.folders.retain(|watch, watched| {
                let is_kept = !watched.starts_with(folder);
                if !is_kept {
                    // The watch of a folder that was removed has ended already.
                    let _ = inotify.rm_watch(*watch);
                }
                is_kept
            });
        }

        /// Each path, with two flags: it exists, and it is a folder. None stands for events that were missed.
        pub(super) async fn read(&mut self) -> io::Result<Vec<Option<(PathBuf, bool, bool)>>> {
            loop {
                let events = match self.inotify.read_events() {
                    Ok(events) => events,
                    Err(Errno::EAGAIN | Errno::EINTR) => {
                        tokio::time::sleep(READ_INTERVAL).await;
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                };
                let mut found = Vec::new();
                for event in events {
                    if event.mask.contains(Flag::IN_Q_OVERFLOW) {
                        found.push(None);
                        continue;
                    }
                    if event.mask.contains(Flag::IN_IGNORED) {
                        self.folders.remove(&event.wd);
                        continue;
                    }
                    let (Some(folder), Some(name)) = (self.folders.get(&event.wd), &event.name) else {
                        continue;
                    };
                    let path = folder.join(name);
                    let is_there = !event.mask.intersects(Flag::IN_DELETE | Flag::IN_MOVED_FROM);
                    let is_folder = event.mask.contains(Flag::IN_ISDIR);
                    if is_folder && !is_there {
                        // The place it was moved to may be outside of the roots, and later changes happen there.
                        self.remove(&path);
                    }
                    found.push(Some((path, is_there, is_folder)));
                }
                return Ok(found);
            }
        }
    }
}

/// On other systems a client is asked now and then to read everything again.
#[cfg(not(target_os = "linux"))]
mod system {
    use std::io;
    use std::path::{Path, PathBuf};

    pub(super) struct FolderWatcher;

    impl FolderWatcher {
        pub(super) fn start() -> io::Result<Self> {
            Ok(Self)
        }

        pub(super) fn len(&self) -> usize {
            0
        }

        pub(super) fn add(&mut self, _: &Path, _: std::os::fd::BorrowedFd<'_>) -> bool {
            false
        }

        pub(super) async fn read(&mut self) -> io::Result<Vec<Option<(PathBuf, bool, bool)>>> {
            tokio::time::sleep(std::time::Duration::from_secs(2)).await;
            Ok(vec![None])
        }
    }
}
