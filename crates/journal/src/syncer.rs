//! Durability against the loss of power, outside of the write path.

use std::fs::{self, File};
use std::io;

use rusqlite::{Connection, OpenFlags};

use crate::JournalError;
use crate::files::{SessionPaths, sync_folder};
use crate::mark::Mark;
use crate::store::{connect, failure};

/// The size from which the write-ahead log is checkpointed.
const LARGE: u64 = 1024 * 1024;

/// Makes commits durable, from any thread. It has its own descriptors, so it never waits for the writer and the
/// writer never for it.
#[derive(Debug)]
pub struct Syncer {
    files: SessionPaths,
    folder_synced: bool,
    mark: Option<Mark>,
    /// Opened when it is first needed: most sessions never grow that far.
    connection: Option<Connection>,
}

impl Syncer {
    pub(crate) fn new(files: SessionPaths) -> Self {
        Self { files, folder_synced: false, mark: None, connection: None }
    }

    /// Blocks until every commit before the call survives the loss of power.
    ///
    /// The log is opened by its name each time, because it may have been removed and made again in between. If there
    /// is none, all of it is in the main file, synced by the checkpoint that removed it. SQLite syncs both sides of
    /// an ongoing checkpoint.
    pub fn sync(&mut self) -> Result<(), JournalError> {
        let mark = self.mark.get_or_insert_with(|| Mark::open(&self.files.mark));
        let last = mark.last_committed();
        match File::open(&self.files.wal).and_then(|wal| wal.sync_data()) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(JournalError::from_io("sync", &self.files.wal, error)),
        }
        if !self.folder_synced {
            sync_folder(&self.files.sessions)?;
            self.folder_synced = true;
        }
        mark.record_synced(last);
        Ok(())
    }

    /// Moves the log into the main file if it has grown large; returns true if that was tried. It does not make the
    /// writer wait, and moves only the part that no reader needs any more; the rest is for the next time.
    pub fn checkpoint_if_large(&mut self) -> Result<bool, JournalError> {
        let size = match fs::metadata(&self.files.wal) {
            Ok(wal) => wal.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(JournalError::from_io("inspect", &self.files.wal, error)),
        };
        if size <= LARGE {
            return Ok(false);
        }
        let db = &self.files.db;
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => connect(db, OpenFlags::SQLITE_OPEN_READ_WRITE)?,
        };
        connection
            .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
            .map_err(|error| failure(&connection, "checkpoint", db, error))?;
        self.connection = Some(connection);
        Ok(true)
    }
}
