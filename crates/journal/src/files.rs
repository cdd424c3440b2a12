//! The paths of a session's files, and the ids that may become file names.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use lathe_protocol::SessionId;

use crate::JournalError;

/// The files of one session. Can only be made for an id that is safe as a file name.
#[derive(Debug, Clone)]
pub(crate) struct SessionPaths {
    pub id: SessionId,
    pub sessions: PathBuf,
    pub db: PathBuf,
    pub wal: PathBuf,
    pub lock: PathBuf,
    /// The file with the number of events.
    pub mark: PathBuf,
    /// The database before it is complete.
    pub unfinished: PathBuf,
}

impl SessionPaths {
    pub fn of(sessions: &Path, id: &SessionId) -> Result<Self, JournalError> {
        if !is_safe(id.as_str()) {
            return Err(JournalError::BadId { id: id.as_str().chars().take(80).collect() });
        }
        Ok(Self {
            id: id.clone(),
            sessions: sessions.to_owned(),
            db: sessions.join(format!("{id}.db")),
            wal: sessions.join(format!("{id}.db-wal")),
            lock: sessions.join(format!("{id}.lock")),
            mark: sessions.join(format!("{id}.mark")),
            unfinished: sessions.join(format!(".{id}.new")),
        })
    }

    /// Tells whether the database is all there is: no process writes to it, and no log has content.
    pub fn is_at_rest(&self) -> bool {
        let has_log = fs::metadata(&self.wal).is_ok_and(|log| log.len() > 0);
        !has_log && !crate::is_held(&self.sessions, &self.id)
    }

    /// Checks that the database exists, without opening it.
    pub fn find(&self) -> Result<fs::Metadata, JournalError> {
        match fs::metadata(&self.db) {
            Ok(found) if found.is_file() => Ok(found),
            Ok(_) => Err(JournalError::Damaged {
                path: self.db.clone(),
                why: "it is not a regular file".to_owned(),
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(JournalError::NoSuchSession { id: self.id.clone(), sessions: self.sessions.clone() })
            }
            Err(error) => Err(JournalError::from_io("inspect", &self.db, error)),
        }
    }
}

fn is_safe(id: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    (1..=64).contains(&id.len()) && !id.starts_with('.') && id.bytes().all(allowed)
}

/// The ids of the sessions in a folder. Empty if the folder does not exist.
pub fn session_ids(sessions: &Path) -> Result<Vec<SessionId>, JournalError> {
    let failed = |error| JournalError::from_io("list", sessions, error);
    let entries = match fs::read_dir(sessions) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut ids = Vec::new();
    for entry in entries {
        let name = entry.map_err(failed)?.file_name();
        if let Some(id) = name.to_str().and_then(|name| name.strip_suffix(".db"))
            && is_safe(id)
        {
            ids.push(SessionId::new(id));
        }
    }
    ids.sort();
    Ok(ids)
}

/// Makes a folder that only its owner can enter.
pub(crate) fn make_folder(dir: &Path) -> Result<(), JournalError> {
    DirBuilder::new()
        .mode(0o700)
        .recursive(true)
        .create(dir)
        .map_err(|error| JournalError::from_io("make the folder", dir, error))
}

/// Removes a database with the other files that SQLite keeps for it.
pub(crate) fn remove_database(db: &Path) -> Result<(), JournalError> {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let mut name = db.as_os_str().to_owned();
        name.push(suffix);
        match fs::remove_file(&name) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(JournalError::from_io("remove", Path::new(&name), error)),
        }
    }
    Ok(())
}

pub(crate) fn sync_folder(dir: &Path) -> Result<(), JournalError> {
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(|error| JournalError::from_io("sync the folder", dir, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_harmless_ids_become_file_names() {
        for id in ["a", "0", "2026-11-15_ab.c", "-", &"x".repeat(64)] {
            assert!(is_safe(id), "{id}");
        }
        for id in ["", ".", "..", ".a", "a/b", "../a", "a b", "a\0", "é", "a\n", &"x".repeat(65)] {
            assert!(!is_safe(id), "{id}");
        }
    }
}
