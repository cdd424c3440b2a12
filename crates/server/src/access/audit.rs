//! The audit log: who (name, role, token), action, object and outcome of each request, one line of JSON each.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use lathe_host::own_folder;
use parking_lot::Mutex;
use serde_json::json;

use super::Identity;

/// Bytes after which a new file is begun; the previous one is kept.
const FILE_MAX: u64 = 32 << 20;

pub(crate) struct Audit {
    file: Mutex<Option<std::fs::File>>,
    path: std::path::PathBuf,
}

impl Audit {
    pub fn open(home: &Path) -> Self {
        let folder = home.join("server");
        let path = folder.join("audit.jsonl");
        let file = own_folder(&folder).ok().and_then(|()| appending(&path));
        Self { file: Mutex::new(file), path }
    }

    /// Writes a line. A log that cannot be written stops no request; the server reports it once at its start.
    pub fn note(&self, identity: Option<&Identity>, did: &str, on: &str, outcome: &str) {
        let at = jiff::Timestamp::now().to_string();
        let (who, role) =
            identity.map_or(("nobody", "-"), |identity| (&*identity.name, identity.role.as_str()));
        // A name may have belonged to another token before; the digest distinguishes them.
        let token = identity.map(|identity| identity.key.short());
        let line = json!({
            "at": at, "who": who, "role": role, "did": did, "on": on, "outcome": outcome, "token": token,
        });
        let mut file = self.file.lock();
        let full =
            file.as_ref().and_then(|file| file.metadata().ok()).is_some_and(|meta| meta.len() > FILE_MAX);
        if full {
            let _ = std::fs::rename(&self.path, self.path.with_extension("jsonl.1"));
            *file = appending(&self.path);
        }
        if let Some(file) = file.as_mut() {
            let _ = file.write_all(format!("{line}\n").as_bytes());
        }
    }

    pub fn works(&self) -> bool {
        self.file.lock().is_some()
    }
}

fn appending(path: &Path) -> Option<std::fs::File> {
    std::fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path).ok()
}
