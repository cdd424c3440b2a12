//! The one writer of a session.

use std::path::Path;
use std::time::Duration;

use lathe_blobs::Blobs;
use lathe_protocol::{
    CallFinished, Dangling, Draft, Event, EventPlace, Seq, SessionId, Timestamp, interrupted_result,
};
use rusqlite::params;

use crate::checksums::of_state;
use crate::files::{SessionPaths, make_folder};
use crate::format::Seal;
use crate::lock::Lock;
use crate::mark::Mark;
use crate::store::{Store, signed, unsigned};
use crate::{JournalError, SessionReader, Syncer};

/// The number of kept snapshots: the newest, and the previous one in case the program cannot read the newest.
const SNAPSHOTS: i64 = 2;

/// The writer. While it lives, no other process can write the session.
#[derive(Debug)]
pub struct Journal {
    // Fields are dropped in this order: the database is closed before others may write.
    store: Store,
    lock: Lock,
    files: SessionPaths,
    blobs: Blobs,
    last: Seq,
    mark: Mark,
}

impl Journal {
    /// Makes a new, empty session.
    pub fn create(sessions: &Path, id: &SessionId, blobs: Blobs) -> Result<Self, JournalError> {
        let files = SessionPaths::of(sessions, id)?;
        make_folder(sessions)?;
        let lock = Lock::take(&files)?;
        if files.db.symlink_metadata().is_ok() {
            return Err(JournalError::Exists { id: files.id, sessions: files.sessions });
        }
        Store::create(&files)?;
        Self::start(files, lock, blobs)
    }

    /// Opens a session to resume it.
    pub fn open(sessions: &Path, id: &SessionId, blobs: Blobs) -> Result<Self, JournalError> {
        let files = SessionPaths::of(sessions, id)?;
        files.find()?; // before a lock file is made for nothing
        let lock = Lock::take(&files)?;
        Self::start(files, lock, blobs)
    }

    fn start(files: SessionPaths, lock: Lock, blobs: Blobs) -> Result<Self, JournalError> {
        let store = Store::open_to_write(&files, blobs.clone())?;
        let (last, mark) = (store.last()?, Mark::open(&files.mark));
        mark.record_committed(signed(last));
        Ok(Self { last, mark, store, lock, files, blobs })
    }

    pub fn id(&self) -> &SessionId {
        &self.files.id
    }

    /// Commits an event. When this returns, the event survives the death of the process.
    ///
    /// After a failure nothing was appended and the journal can be used as before.
    pub fn append(&mut self, at: Timestamp, draft: Draft) -> Result<Event, JournalError> {
        let event = Event { seq: self.last.next(), at, place: draft.place, fact: draft.fact };
        match self.store.insert(&event) {
            Ok(()) => {
                self.last = event.seq;
                self.mark.record_committed(signed(event.seq));
                Ok(event)
            }
            Err(error) => {
                self.recover_from_failure();
                Err(error)
            }
        }
    }

    /// The number of the last event. 0 if there is none.
    pub fn last(&self) -> Seq {
        self.last
    }

    pub fn syncer(&self) -> Result<Syncer, JournalError> {
        Ok(Syncer::new(self.files.clone()))
    }

    pub fn reader(&self) -> Result<SessionReader, JournalError> {
        SessionReader::of(&self.files, self.blobs.clone())
    }

    /// Saves a state that is the result of all events up to `upto`. The last two are kept.
    pub fn save_snapshot(&mut self, upto: Seq, state: &[u8]) -> Result<(), JournalError> {
        if upto > self.last {
            let last = self.last;
            return Err(JournalError::SnapshotAhead { upto, last });
        }
        let saved = self.store.connection.transaction().and_then(|transaction| {
            transaction.execute(
                "INSERT OR REPLACE INTO snapshots(upto, state, sum) VALUES(?1, ?2, ?3)",
                params![signed(upto), state, of_state(signed(upto), state)],
            )?;
            transaction.execute(
                "DELETE FROM snapshots WHERE upto NOT IN (SELECT upto FROM snapshots ORDER BY upto DESC LIMIT ?1)",
                [SNAPSHOTS],
            )?;
            if let Some(seal) = self.store.seal {
                Seal { last: signed(self.last), ..seal }.write(&transaction)?;
            }
            transaction.commit()
        });
        saved.map_err(|error| {
            let error = self.store.fail("save a snapshot in", error);
            self.recover_from_failure();
            error
        })
    }

    /// The newest intact snapshot, and the event it goes up to. The state can be computed again from the events, so a
    /// damaged snapshot is skipped.
    pub fn snapshot(&self) -> Result<Option<(Seq, Vec<u8>)>, JournalError> {
        let failed = |error| self.store.fail("read a snapshot in", error);
        let mut statement = self
            .store
            .connection
            .prepare_cached("SELECT upto, state, sum FROM snapshots WHERE upto <= ?1 ORDER BY upto DESC")
            .map_err(failed)?;
        let mut rows = statement.query([signed(self.last)]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let (Ok(upto), Ok(state), Ok(sum)) =
                (unsigned(row, 0), row.get::<_, Vec<u8>>(1), row.get::<_, i64>(2))
            else {
                continue;
            };
            if i64::from(of_state(signed(Seq(upto)), &state)) == sum {
                return Ok(Some((Seq(upto), state)));
            }
        }
        Ok(None)
    }

    /// The calls of the last answer on the live branch that have no result.
    pub fn dangling(&self) -> Result<Vec<Dangling>, JournalError> {
        self.store.dangling()
    }

    /// Gives every dangling call a result that reports the interruption. To be called after `open`, before anything
    /// else is appended. If it is cut off in the middle, the next call continues.
    pub fn repair(&mut self, now: Timestamp) -> Result<Vec<Event>, JournalError> {
        self.repair_with(now, |call| interrupted_result(&call.name, call.started))
    }

    /// Like [`repair`](Self::repair), for a caller that knows more about the effects of such calls.
    pub fn repair_with(
        &mut self,
        now: Timestamp,
        mut result: impl FnMut(&Dangling) -> CallFinished,
    ) -> Result<Vec<Event>, JournalError> {
        let Some((answer, calls)) = self.store.calls_without_result()? else {
            return Ok(Vec::new());
        };
        let mut close = |call: Dangling| {
            let fact = result(&call).into();
            Draft { place: EventPlace { call: Some(call.call), cause: None, ..answer.clone() }, fact }
        };
        calls.into_iter().map(|call| self.append(now, close(call))).collect()
    }

    /// Checkpoints the log and releases the session. Open readers prevent the checkpoint; then the log is synced
    /// instead, and the next process that opens the session does the rest.
    pub fn close(self) -> Result<(), JournalError> {
        let Self { mut store, lock, files, last, .. } = self;
        // If the disk is full the old seal remains: it covers fewer events, but is not wrong.
        let _ = store.write_seal(last);
        let connection = store.connection;
        let checked_in = connection.busy_timeout(Duration::from_millis(100)).and_then(|()| {
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0))
        });
        let synced = match checked_in {
            Ok(false) => Ok(()),
            Ok(true) | Err(_) => Syncer::new(files).sync(),
        };
        drop(connection);
        drop(lock);
        synced
    }

    /// Cleans up after a failure: no transaction stays open, and `last` is read from the file. If even that fails,
    /// the next append fails on the number and comes here again.
    fn recover_from_failure(&mut self) {
        if !self.store.connection.is_autocommit() {
            let _ = self.store.connection.execute_batch("ROLLBACK");
        }
        if let Ok(last) = self.store.last() {
            self.last = last;
        }
    }
}
