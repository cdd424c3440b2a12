//! The format of the file: its tables, and the upgrade of an older one.
//!
//! Format 2 added checksums and the seal. A journal of format 1 is read as it is; the first writer upgrades it, and
//! the events from before then remain without checksums.

use rusqlite::{Connection, OptionalExtension as _, params};

use crate::checksums::of_seal;

/// The newest format, in `user_version`. A newer one is refused.
pub(crate) const FORMAT: i64 = 2;

/// The format without checksums.
pub(crate) const WITHOUT_SUMS: i64 = 1;

const EVENTS: &str = "
    CREATE TABLE events(
        seq INTEGER PRIMARY KEY, at TEXT NOT NULL,
        run INTEGER NOT NULL, agent TEXT NOT NULL, step INTEGER, call TEXT, cause INTEGER,
        kind TEXT NOT NULL, v INTEGER NOT NULL, body TEXT, blob TEXT, sum INTEGER);
";

/// Saved states can be computed again from the events, so those without a checksum are dropped when a file is
/// upgraded.
const BESIDE: &str = "
    DROP TABLE IF EXISTS snapshots;
    CREATE TABLE snapshots(upto INTEGER PRIMARY KEY, state BLOB NOT NULL, sum INTEGER NOT NULL);
    CREATE TABLE seal(
        one INTEGER PRIMARY KEY CHECK(one = 1), since INTEGER NOT NULL, last INTEGER NOT NULL, sum INTEGER NOT NULL);
";

/// The file's record of its own extent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seal {
    /// The first event that has a checksum.
    pub since: i64,
    /// The last event when the file was last closed or a state saved. If there are fewer events, some were lost.
    pub last: i64,
}

impl Seal {
    /// None if the seal itself is lost or damaged.
    pub fn read(connection: &Connection) -> rusqlite::Result<Option<Self>> {
        let read = connection.query_row("SELECT since, last, sum FROM seal WHERE one = 1", [], |row| {
            let (since, last, sum) = (row.get(0)?, row.get(1)?, row.get::<_, i64>(2)?);
            Ok((i64::from(of_seal(since, last)) == sum).then_some(Self { since, last }))
        });
        Ok(read.optional()?.flatten())
    }

    pub fn write(self, connection: &Connection) -> rusqlite::Result<()> {
        let Self { since, last } = self;
        connection.execute(
            "INSERT OR REPLACE INTO seal(one, since, last, sum) VALUES(1, ?1, ?2, ?3)",
            params![since, last, of_seal(since, last)],
        )?;
        Ok(())
    }
}

/// Makes the tables of a new file, inside a transaction of the caller.
pub(crate) fn make(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(EVENTS)?;
    finish(connection, Seal { since: 1, last: 0 })
}

/// Upgrades a file of format 1, completely or not at all.
pub(crate) fn upgrade(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    let last: i64 = transaction.query_row("SELECT ifnull(max(seq), 0) FROM events", [], |row| row.get(0))?;
    transaction.execute_batch("ALTER TABLE events ADD COLUMN sum INTEGER")?;
    finish(&transaction, Seal { since: last.saturating_add(1), last })?;
    transaction.commit()
}

fn finish(connection: &Connection, seal: Seal) -> rusqlite::Result<()> {
    connection.execute_batch(BESIDE)?;
    seal.write(connection)?;
    connection.pragma_update(None, "user_version", FORMAT)
}
