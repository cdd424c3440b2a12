//! The list of all sessions, shared by all processes of a home.
//!
//! Its content comes from the journals, so it is discarded rather than repaired: if it is missing, damaged or of
//! another version, opening it makes it again. Callers ignore its failures: a run does not depend on it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use lathe_blobs::Blobs;
use lathe_protocol::{Forked, SessionId, SessionState, SessionSummary, StepNo, Timestamp};
use rusqlite::{Connection, OpenFlags, Row, params};

use crate::checksums::of_state;
use crate::files::{make_folder, remove_database, session_ids};
use crate::store::{connect, failure, unsigned};
use crate::{JournalError, SessionReader, summarise};

/// Format 2 added checksums: a flipped bit in a folder's name would lead `undo` to another session. Format 3 added
/// the origins of forks.
const FORMAT: i64 = 3;

const SCHEMA: &str = "
    DROP TABLE IF EXISTS sessions;
    CREATE TABLE sessions(
        id TEXT PRIMARY KEY, created TEXT NOT NULL, updated TEXT NOT NULL, workspace TEXT NOT NULL,
        title TEXT NOT NULL, model TEXT NOT NULL, state TEXT NOT NULL,
        steps INTEGER NOT NULL, input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
        sum INTEGER NOT NULL, forked_from TEXT, forked_at INTEGER) WITHOUT ROWID;
    CREATE INDEX newest ON sessions(updated DESC);
";

#[derive(Debug)]
pub struct Index {
    connection: Connection,
    path: PathBuf,
}

/// The result of a rebuild.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebuilt {
    pub sessions: usize,
    /// Sessions that could not be read, each with the reason.
    pub skipped: Vec<(SessionId, String)>,
}

impl Index {
    /// Opens `<home>/index.db`, and makes it from `<home>/sessions` if it is not usable.
    ///
    /// While another process makes it, SQLite may return busy without waiting (a change of the journal mode does not
    /// go through the busy handler), so this tries again.
    pub fn open(home: &Path) -> Result<Self, JournalError> {
        let patience = Instant::now() + Duration::from_secs(3);
        loop {
            match Self::open_once(home) {
                Err(JournalError::Busy { .. }) if Instant::now() < patience => {
                    thread::sleep(Duration::from_millis(5))
                }
                opened => return opened,
            }
        }
    }

    fn open_once(home: &Path) -> Result<Self, JournalError> {
        let path = home.join("index.db");
        if let Some(index) = Self::open_usable(&path)? {
            return Ok(index);
        }
        // One process at a time replaces it; a process that had to wait checks again.
        let _guard = lock(home)?;
        if let Some(index) = Self::open_usable(&path)? {
            return Ok(index);
        }
        let mut index = match Self::make(&path) {
            Err(JournalError::Damaged { .. }) => {
                remove_database(&path)?;
                Self::make(&path)?
            }
            made => made?,
        };
        let blobs = Blobs::open(home.join("blobs"))?;
        index.rebuild(&home.join("sessions"), &blobs)?;
        // Last, so that an index that is only half made is made again.
        index
            .connection
            .pragma_update(None, "user_version", FORMAT)
            .map_err(|error| index.fail("make", error))?;
        Ok(index)
    }

    /// Adds a session or replaces its row.
    pub fn upsert(&self, summary: &SessionSummary) -> Result<(), JournalError> {
        insert(&self.connection, summary).map_err(|error| self.fail("write", error))
    }

    /// The sessions, the most recently used first.
    pub fn list(&self, limit: Option<usize>) -> Result<Vec<SessionSummary>, JournalError> {
        let limit = limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
        self.connection
            .prepare_cached(
                "SELECT id, created, updated, workspace, title, model, state, steps, input_tokens, output_tokens, sum,
                 forked_from, forked_at FROM sessions ORDER BY updated DESC, created DESC, id DESC LIMIT ?1",
            )
            .and_then(|mut list| list.query_map([limit], summary_of)?.collect())
            .map_err(|error| self.fail("read", error))
    }

    /// Makes the list again from the journals. Unreadable ones are left out and reported.
    pub fn rebuild(&mut self, sessions: &Path, blobs: &Blobs) -> Result<Rebuilt, JournalError> {
        let (mut found, mut skipped) = (Vec::new(), Vec::new());
        for id in session_ids(sessions)? {
            match SessionReader::open(sessions, &id, blobs.clone()).and_then(|reader| reader.all()) {
                // The name of the file counts: the session is opened by it.
                Ok(events) => {
                    found.extend(summarise(&events).map(|summary| SessionSummary { id, ..summary }))
                }
                Err(error) => skipped.push((id, error.to_string())),
            }
        }
        let replaced = self.connection.transaction().and_then(|transaction| {
            transaction.execute("DELETE FROM sessions", [])?;
            for summary in &found {
                insert(&transaction, summary)?;
            }
            transaction.commit()
        });
        replaced.map_err(|error| self.fail("write", error))?;
        Ok(Rebuilt { sessions: found.len(), skipped })
    }

    /// None if the file has no index of our version.
    fn open_usable(path: &Path) -> Result<Option<Self>, JournalError> {
        if !path.exists() {
            return Ok(None);
        }
        match Self::connect(path).and_then(|index| index.is_usable().map(|usable| usable.then_some(index))) {
            // Busy: another process is making it; wait for the lock and check again.
            Err(JournalError::Damaged { .. } | JournalError::Busy { .. }) => Ok(None),
            other => other,
        }
    }

    fn is_usable(&self) -> Result<bool, JournalError> {
        let version: i64 = self
            .connection
            .query_row("PRAGMA user_version", [], |row| row.get(0))
            .map_err(|error| self.fail("open", error))?;
        if version != FORMAT {
            return Ok(false);
        }
        // It is small: check all of it, so that damage is found here and not by a list.
        let verdict: String = self
            .connection
            .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
            .map_err(|error| self.fail("check", error))?;
        let listed = self.list(None);
        match (verdict == "ok", listed) {
            (false, _) | (true, Err(JournalError::Damaged { .. })) => {
                Err(JournalError::Damaged { path: self.path.clone(), why: verdict })
            }
            (true, listed) => listed.map(|_| true),
        }
    }

    fn make(path: &Path) -> Result<Self, JournalError> {
        if let Some(home) = path.parent() {
            make_folder(home)?;
        }
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(JournalError::from_io("make", path, error)),
        }
        let index = Self::connect(path)?;
        index
            .connection
            .execute_batch(&format!("BEGIN IMMEDIATE; PRAGMA user_version = 0; {SCHEMA} COMMIT;"))
            .map_err(|error| index.fail("make", error))?;
        Ok(index)
    }

    fn connect(path: &Path) -> Result<Self, JournalError> {
        let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection
            .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;")
            .map_err(|error| failure(&connection, "open", path, error))?;
        Ok(Self { connection, path: path.to_owned() })
    }

    fn fail(&self, doing: &'static str, error: rusqlite::Error) -> JournalError {
        failure(&self.connection, doing, &self.path, error)
    }
}

fn insert(connection: &Connection, summary: &SessionSummary) -> rusqlite::Result<()> {
    let count = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO sessions VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        )?
        .execute(params![
            summary.id.as_str(),
            sortable(summary.created),
            sortable(summary.updated),
            summary.workspace,
            summary.title,
            summary.model,
            summary.state.as_str(),
            summary.steps,
            count(summary.input_tokens),
            count(summary.output_tokens),
            of_summary(summary),
            summary.forked.as_ref().map(|forked| forked.from.as_str()),
            summary.forked.as_ref().map(|forked| forked.at.0),
        ])?;
    Ok(())
}

fn summary_of(row: &Row<'_>) -> rusqlite::Result<SessionSummary> {
    let time = |column| {
        let text: String = row.get(column)?;
        text.parse::<Timestamp>().map_err(|_| foreign(column, text))
    };
    let state: String = row.get(6)?;
    let forked = match (row.get::<_, Option<String>>(11)?, row.get::<_, Option<u32>>(12)?) {
        (Some(from), Some(at)) => Some(Forked { from: SessionId::new(from), at: StepNo(at), command: None }),
        (None, None) => None,
        (from, _) => return Err(foreign(11, from.unwrap_or_default())),
    };
    let summary = SessionSummary {
        id: SessionId::new(row.get::<_, String>(0)?),
        created: time(1)?,
        updated: time(2)?,
        workspace: row.get(3)?,
        title: row.get(4)?,
        model: row.get(5)?,
        state: SessionState::from_name(&state).ok_or_else(|| foreign(6, state))?,
        steps: row.get(7)?,
        input_tokens: unsigned(row, 8)?,
        output_tokens: unsigned(row, 9)?,
        forked,
    };
    let sum: i64 = row.get(10)?;
    if sum == i64::from(of_summary(&summary)) { Ok(summary) } else { Err(foreign(10, sum.to_string())) }
}

/// The checksum of a session's row.
fn of_summary(summary: &SessionSummary) -> u32 {
    let SessionSummary {
        id,
        created,
        updated,
        workspace,
        title,
        model,
        state,
        steps,
        input_tokens,
        output_tokens,
        forked,
    } = summary;
    let origin = forked.as_ref().map_or("", |forked| forked.from.as_str());
    let texts = [
        id.as_str(),
        &sortable(*created),
        &sortable(*updated),
        workspace,
        title,
        model,
        state.as_str(),
        origin,
    ];
    let at = forked.as_ref().map_or(0, |forked| u64::from(forked.at.0));
    let numbers = [u64::from(*steps), *input_tokens, *output_tokens, at];
    let mut said = Vec::new();
    for text in texts {
        said.extend_from_slice(text.as_bytes());
        said.push(0);
    }
    said.extend(numbers.into_iter().flat_map(u64::to_le_bytes));
    of_state(0, &said)
}

fn foreign(column: usize, text: String) -> rusqlite::Error {
    rusqlite::Error::InvalidColumnType(column, text, rusqlite::types::Type::Text)
}

/// A fixed number of digits, so that the order of the texts is the order of the times.
fn sortable(at: Timestamp) -> String {
    format!("{at:.9}")
}

fn lock(home: &Path) -> Result<File, JournalError> {
    make_folder(home)?;
    let path = home.join("index.lock");
    let failed = |error| JournalError::from_io("lock", &path, error);
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(failed)?;
    file.lock().map_err(failed)?;
    Ok(file)
}
