//! Folders that clients watch.
//!
//! The system gives a user few watchers, and editors need some too. So there is one for each folder, however many
//! clients watch it: it begins with the first client and ends with the last.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use lathe_host::HostError;
use lathe_workbench::Browser;
use parking_lot::Mutex;
use tokio::sync::broadcast;
use tokio::task::JoinHandle;

/// Notices that wait for a client that reads slowly; one that falls behind is asked to read everything again.
const NOTICES: usize = 256;
/// The notice that such a client gets.
const MISSED: &str = r#"[{"path":"","kind":"unknown"}]"#;

/// A folder by its path and its identity: another one may be put in its place.
type WatchKey = (PathBuf, u64, u64);

#[derive(Default)]
pub(crate) struct Watches(Mutex<HashMap<WatchKey, Weak<Watcher>>>);

/// The watcher of one folder; it ends when no client has it any more.
struct Watcher {
    notices: broadcast::Sender<Arc<str>>,
    task: JoinHandle<()>,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One client's subscription to a folder.
pub(crate) struct FolderWatch {
    notices: broadcast::Receiver<Arc<str>>,
    _watcher: Arc<Watcher>,
}

impl FolderWatch {
    /// The next notice as JSON; none when the folder can no longer be watched.
    pub async fn next(&mut self) -> Option<Arc<str>> {
        match self.notices.recv().await {
            Ok(notices) => Some(notices),
            Err(broadcast::error::RecvError::Lagged(_)) => Some(MISSED.into()),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

impl Watches {
    /// Watches a folder from now on. If no other client watches it, all folders below it are scanned.
    pub fn watch(&self, browser: &Browser) -> Result<FolderWatch, HostError> {
        let key = key_of(browser.root())?;
        let mut all = self.0.lock();
        all.retain(|_, watcher| watcher.strong_count() > 0);
        if let Some(watcher) = all.get(&key).and_then(Weak::upgrade).filter(|known| !known.task.is_finished())
        {
            return Ok(FolderWatch { notices: watcher.notices.subscribe(), _watcher: watcher });
        }
        let mut watching = browser.watch()?;
        let (notices, first) = broadcast::channel(NOTICES);
        let sender = notices.clone();
        let task = tokio::spawn(async move {
            while let Ok(happened) = watching.next().await {
                let _ = sender.send(serde_json::to_string(&happened).unwrap_or_default().into());
            }
        });
        let watcher = Arc::new(Watcher { notices, task });
        all.insert(key, Arc::downgrade(&watcher));
        Ok(FolderWatch { notices: first, _watcher: watcher })
    }
}

fn key_of(folder: &Path) -> Result<WatchKey, HostError> {
    let about = std::fs::metadata(folder)
        .map_err(|error| HostError::Folder { path: folder.to_owned(), reason: error.to_string() })?;
    Ok((folder.to_owned(), about.dev(), about.ino()))
}
