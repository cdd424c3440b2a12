//! The store: one SQLite file. An edit adds a version; nothing is ever overwritten.

use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

use lathe_protocol::{Document, DocumentRow, DocumentVersion};
use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use lathe_protocol::random_number;

use crate::error::DocumentError;

/// The maximum size of a document in bytes.
const LARGEST: usize = 4 << 20;

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS documents(
        id TEXT PRIMARY KEY, created TEXT NOT NULL, latest INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS versions(
        document TEXT NOT NULL, version INTEGER NOT NULL, at TEXT NOT NULL,
        title TEXT NOT NULL, description TEXT NOT NULL, content TEXT NOT NULL,
        PRIMARY KEY(document, version)) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS newest ON versions(at DESC);
";

pub struct DocumentStore {
    connection: Mutex<Connection>,
}

impl DocumentStore {
    /// Opens the file. A new one is made for its owner only.
    pub fn open(path: &Path) -> Result<Self, DocumentError> {
        std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
        let connection = Connection::open(path)?;
        connection.busy_timeout(Duration::from_secs(5))?;
        connection.execute_batch(SCHEMA)?;
        Ok(Self { connection: Mutex::new(connection) })
    }

    pub fn create(&self, title: &str, content: &str, description: &str) -> Result<Document, DocumentError> {
        if content.len() + title.len() + description.len() > LARGEST {
            return Err(DocumentError::too_large("/online/docs/create"));
        }
        let (id, now) = (new_id(), now());
        let mut connection = self.connection.lock();
        let change = connection.transaction()?;
        change.execute("INSERT INTO documents VALUES(?1, ?2, 1)", params![id, now])?;
        change.execute(
            "INSERT INTO versions VALUES(?1, 1, ?2, ?3, ?4, ?5)",
            params![id, now, title, description, content],
        )?;
        change.commit()?;
        drop(connection);
        self.get(&id, None)?.ok_or_else(|| DocumentError::missing("/online/docs/create"))
    }

    /// A version of a document, or the latest one.
    pub fn get(&self, id: &str, version: Option<u32>) -> Result<Option<Document>, DocumentError> {
        let sql = "SELECT document, version, title, description, content, at FROM versions
            WHERE document = ?1 AND version = coalesce(?2, (SELECT latest FROM documents WHERE id = ?1))";
        Ok(self.connection.lock().query_row(sql, params![id, version], document).optional()?)
    }

    /// The latest version of a document. An error if it does not exist.
    pub fn detail(&self, id: &str) -> Result<Document, DocumentError> {
        self.get(id, None)?.ok_or_else(|| DocumentError::missing("/online/docs/detail"))
    }

    /// Adds a version. Returns true if its title differs from the last one.
    pub fn edit(
        &self,
        id: &str,
        content: &str,
        title: Option<&str>,
    ) -> Result<(Document, bool), DocumentError> {
        const HERE: &str = "/online/report/edit";
        if content.len() > LARGEST {
            return Err(DocumentError::too_large(HERE));
        }
        let mut connection = self.connection.lock();
        let change = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let before: Option<(u32, String, String)> = change
            .query_row(
                "SELECT version, title, description FROM versions
                 WHERE document = ?1 ORDER BY version DESC LIMIT 1",
                [id],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )
            .optional()?;
        let Some((version, old, description)) = before else { return Err(DocumentError::missing(HERE)) };
        let title = title.unwrap_or(&old);
        change.execute(
            "INSERT INTO versions VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
            params![id, version + 1, now(), title, description, content],
        )?;
        change.execute("UPDATE documents SET latest = ?2 WHERE id = ?1", params![id, version + 1])?;
        change.commit()?;
        let changed = title != old;
        drop(connection);
        Ok((self.get(id, None)?.ok_or_else(|| DocumentError::missing(HERE))?, changed))
    }

    /// All versions, the newest first. Empty if the document does not exist.
    pub fn versions(&self, id: &str) -> Result<Vec<DocumentVersion>, DocumentError> {
        let connection = self.connection.lock();
        let mut rows = connection.prepare(
            "SELECT version, title, at, length(CAST(content AS BLOB)) FROM versions
             WHERE document = ?1 ORDER BY version DESC",
        )?;
        let version = |row: &Row<'_>| {
            let bytes: i64 = row.get(3)?;
            Ok(DocumentVersion {
                version: row.get(0)?,
                title: row.get(1)?,
                updated_at: row.get(2)?,
                bytes: u64::try_from(bytes).unwrap_or(0),
            })
        };
        let found = rows.query_map([id], version)?.collect::<Result<_, _>>()?;
        Ok(found)
    }

    /// Documents with the keyword in their title, description or content, the newest first.
    pub fn search(&self, keyword: &str, skip: u32, most: u32) -> Result<Vec<DocumentRow>, DocumentError> {
        let connection = self.connection.lock();
        let mut rows = connection.prepare(
            "SELECT document, version, title, description, at FROM versions
             JOIN documents ON documents.id = document AND latest = version
             WHERE ?1 = '' OR instr(lower(title || char(10) || description || char(10) || content), lower(?1)) > 0
             ORDER BY at DESC, document LIMIT ?2 OFFSET ?3",
        )?;
        let row = |row: &Row<'_>| {
            Ok(DocumentRow {
                document_id: row.get(0)?,
                version: row.get(1)?,
                title: row.get(2)?,
                description: row.get(3)?,
                updated_at: row.get(4)?,
            })
        };
        let found = rows.query_map(params![keyword, most, skip], row)?.collect::<Result<_, _>>()?;
        Ok(found)
    }
}

fn document(row: &Row<'_>) -> rusqlite::Result<Document> {
    Ok(Document {
        document_id: row.get(0)?,
        version: row.get(1)?,
        title: row.get(2)?,
        description: row.get(3)?,
        content: row.get(4)?,
        updated_at: row.get(5)?,
    })
}

fn now() -> String {
    jiff::Timestamp::now().to_string()
}

/// A unique and unguessable id.
fn new_id() -> String {
    format!("{:016x}{:016x}", random_number(), random_number())
}
