//! One SQLite file per repository: facts by content hash, and which file has which content.
//!
//! The facts are one blob per content. Rows per use would cost more to write than the parse costs and are never asked
//! for by SQL. Definitions are rows as well, with the text, so that anybody with `sqlite3` and Trae's two tables
//! (`functions`, `classes`, here views) can read them.
//!
//! A database that is damaged, of another version, or made by other rules is thrown away and built again, with a
//! word about it: everything in it can be had from the files.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, ErrorCode, OptionalExtension as _, params};

use crate::error::GraphError;
use crate::facts::{Facts, Gap, Kind, NONE, def_flag};
use crate::hash::QuickMap;
use crate::pack::{pack, unpack};
use crate::read::{Hash, hash_of};
use crate::scan::Stamp;

/// Raised when the tables or the meaning of facts change.
const VERSION: i32 = 2;
const APPLICATION: i32 = 0x4c47_5048;

const SCHEMA: &str = "
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE contents(
    id INTEGER PRIMARY KEY AUTOINCREMENT, hash BLOB NOT NULL, language INTEGER NOT NULL, lines INTEGER NOT NULL,
    gap INTEGER NOT NULL, used INTEGER NOT NULL, source BLOB NOT NULL, facts BLOB NOT NULL);
CREATE UNIQUE INDEX contents_by_hash ON contents(hash, language);
CREATE TABLE files(
    path TEXT PRIMARY KEY, content INTEGER, gap INTEGER NOT NULL, size INTEGER NOT NULL, mtime INTEGER NOT NULL,
    ctime INTEGER NOT NULL, inode INTEGER NOT NULL, settled INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX files_by_content ON files(content);
CREATE TABLE definitions(
    id INTEGER PRIMARY KEY, content INTEGER NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL,
    start_line INTEGER NOT NULL, end_line INTEGER NOT NULL, start_byte INTEGER NOT NULL, end_byte INTEGER NOT NULL,
    parent INTEGER, parent_function TEXT, parent_class TEXT, signature TEXT NOT NULL, doc TEXT NOT NULL);
CREATE VIEW functions AS SELECT d.id AS id, d.name AS name,
    (SELECT value FROM meta WHERE key = 'root') || '/' || f.path AS file_path,
    CAST(substr(c.source, d.start_byte + 1, d.end_byte - d.start_byte) AS TEXT) AS body,
    d.start_line AS start_line, d.end_line AS end_line, d.parent_function AS parent_function,
    d.parent_class AS parent_class
  FROM definitions d JOIN files f ON f.content = d.content JOIN contents c ON c.id = d.content
  WHERE d.kind IN ('function', 'method', 'constructor');
CREATE VIEW classes AS SELECT d.id AS id, d.name AS name,
    (SELECT value FROM meta WHERE key = 'root') || '/' || f.path AS file_path,
    CAST(substr(c.source, d.start_byte + 1, d.end_byte - d.start_byte) AS TEXT) AS body,
    (SELECT group_concat('- ' || m.signature, char(10)) FROM definitions m
       WHERE m.parent = d.id AND m.kind IN ('field', 'variant', 'constant')) AS fields,
    (SELECT group_concat('- ' || m.signature, char(10)) FROM definitions m
       WHERE m.parent = d.id AND m.kind IN ('method', 'constructor')) AS methods,
    d.start_line AS start_line, d.end_line AS end_line
  FROM definitions d JOIN files f ON f.content = d.content JOIN contents c ON c.id = d.content
  WHERE d.kind IN ('class', 'struct', 'interface', 'trait', 'enum');
";

/// Made after a first build rather than during it: filling them row by row costs as much as the parse.
const INDEXES: &str = "
CREATE INDEX IF NOT EXISTS definitions_by_name ON definitions(name);
CREATE INDEX IF NOT EXISTS definitions_by_parent ON definitions(parent) WHERE parent IS NOT NULL;
";

/// Definitions of one content are numbered from here.
const PER_CONTENT: i64 = 1 << 20;

pub struct FileRow {
    pub path: String,
    /// `None`: left out, for the reason in `gap`.
    pub content: Option<i64>,
    pub gap: Gap,
    pub stamp: Stamp,
    /// False when the file was read while it may have been written: to be looked at again.
    pub settled: bool,
}

/// Contents by hash and language.
pub type Known = QuickMap<(Hash, u8), (i64, Gap)>;

pub struct Store {
    db: Connection,
    pub path: PathBuf,
    /// What the person should know: the database was rebuilt, and why.
    pub words: Vec<String>,
}

fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::SystemIoFailure)
    ) || matches!(error, rusqlite::Error::InvalidColumnType(..) | rusqlite::Error::InvalidColumnIndex(_))
        || error.to_string().contains("malformed")
}

/// Changes whenever a rule file or this version does, so that facts never mix.
fn makers() -> String {
    let mut all = Vec::new();
    for language in lathe_grammars::Language::ALL {
        for text in language.graph_rules().unwrap_or_default() {
            all.extend_from_slice(text.as_bytes());
        }
    }
    let hash = hash_of(&all);
    format!("{VERSION}.{:02x}{:02x}{:02x}{:02x}", hash[0], hash[1], hash[2], hash[3])
}

fn today() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| (since.as_secs() / 86_400) as i64)
}

impl Store {
    /// The database of a repository in the folder for graphs.
    pub fn path_for(root: &Path, folder: &Path) -> PathBuf {
        let hash = hash_of(root.as_os_str().as_encoded_bytes());
        let name: String = hash.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
        folder.join(format!("{name}.db"))
    }

    pub fn open(root: &Path, folder: &Path) -> Result<Self, GraphError> {
        std::fs::create_dir_all(folder)
            .map_err(|source| GraphError::Folder { path: folder.to_owned(), source })?;
        let path = Self::path_for(root, folder);
        match Self::connect(&path, root) {
            Ok(Ok(db)) => Ok(Self { db, path, words: Vec::new() }),
            Ok(Err(word)) => Self::rebuild(&path, root, word),
            Err(error) if is_damage(&error) => {
                Self::rebuild(&path, root, format!("the code graph was damaged ({error}) and is built again"))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn rebuild(path: &Path, root: &Path, word: String) -> Result<Self, GraphError> {
        for ending in ["", "-wal", "-shm"] {
            let mut name = path.as_os_str().to_owned();
            name.push(ending);
            let _ = std::fs::remove_file(PathBuf::from(name));
        }
        match Self::connect(path, root)? {
            Ok(db) => Ok(Self { db, path: path.to_owned(), words: vec![word] }),
            Err(word) => Err(GraphError::Question(word)),
        }
    }

    /// Throws the database away after damage was met on the way.
    pub fn start_again(&mut self, root: &Path, error: &rusqlite::Error) -> Result<(), GraphError> {
        let word = format!("the code graph was damaged ({error}) and is built again");
        let path = self.path.clone();
        self.db = Connection::open_in_memory()?;
        let mut fresh = Self::rebuild(&path, root, word)?;
        std::mem::swap(&mut self.db, &mut fresh.db);
        self.words.append(&mut fresh.words);
        Ok(())
    }

    /// The inner error is a word on why the database must be thrown away.
    fn connect(path: &Path, root: &Path) -> Result<Result<Connection, String>, rusqlite::Error> {
        let db = Connection::open(path)?;
        db.busy_timeout(Duration::from_secs(10))?;
        db.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY;
            PRAGMA cache_size = -16000; PRAGMA mmap_size = 268435456; PRAGMA wal_autocheckpoint = 4000;",
        )?;
        let version: i32 = db.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if version == 0 {
            // Two processes may arrive here at once; the second finds the work done.
            db.execute_batch("BEGIN IMMEDIATE")?;
            let version: i32 = db.query_row("PRAGMA user_version", [], |row| row.get(0))?;
            if version == 0 {
                db.execute_batch(SCHEMA)?;
                let mut put = db.prepare("INSERT INTO meta VALUES (?1, ?2)")?;
                put.execute(params!["root", root.to_string_lossy()])?;
                put.execute(params!["makers", makers()])?;
                drop(put);
                db.execute_batch(&format!(
                    "PRAGMA user_version = {VERSION}; PRAGMA application_id = {APPLICATION};"
                ))?;
            }
            db.execute_batch("COMMIT")?;
            return Ok(Ok(db));
        }
        if version > VERSION {
            return Ok(Err("the code graph was made by a newer Lathe and is built again".into()));
        }
        if version < VERSION {
            return Ok(Err("the code graph was made by an older Lathe and is built again".into()));
        }
        let made: Option<String> =
            db.query_row("SELECT value FROM meta WHERE key = 'makers'", [], |row| row.get(0)).optional()?;
        if made.as_deref() != Some(makers().as_str()) {
            return Ok(Err("the rules of the code graph have changed, it is built again".into()));
        }
        Ok(Ok(db))
    }

    /// Changes when another connection has written.
    pub fn data_version(&self) -> Result<i64, rusqlite::Error> {
        self.db.query_row("PRAGMA data_version", [], |row| row.get(0))
    }

    pub fn files(&self) -> Result<Vec<FileRow>, rusqlite::Error> {
        let mut query = self.db.prepare_cached(
            "SELECT path, content, gap, size, mtime, ctime, inode, settled FROM files ORDER BY path",
        )?;
        query
            .query_map([], |row| {
                Ok(FileRow {
                    path: row.get(0)?,
                    content: row.get(1)?,
                    gap: gap_of(row.get(2)?),
                    stamp: Stamp {
                        size: row.get::<_, i64>(3)? as u64,
                        mtime: row.get(4)?,
                        ctime: row.get(5)?,
                        inode: row.get::<_, i64>(6)? as u64,
                    },
                    settled: row.get(7)?,
                })
            })?
            .collect()
    }

    /// Content hashes and languages that need no parsing.
    pub fn known(&self) -> Result<Known, rusqlite::Error> {
        let mut query = self.db.prepare_cached("SELECT hash, language, id, gap FROM contents")?;
        let rows = query.query_map([], |row| {
            let hash: Vec<u8> = row.get(0)?;
            let hash: Hash = hash.try_into().unwrap_or([0; 32]);
            Ok(((hash, row.get::<_, i64>(1)? as u8), (row.get(2)?, gap_of(row.get(3)?))))
        })?;
        rows.collect()
    }

    pub fn facts(&self, content: i64) -> Result<Option<Facts>, rusqlite::Error> {
        let mut query = self.db.prepare_cached("SELECT facts FROM contents WHERE id = ?1")?;
        let found = query
            .query_row([content], |row| Ok(row.get_ref(0)?.as_blob().ok().and_then(unpack)))
            .optional()?;
        Ok(found.flatten())
    }

    pub fn source(&self, content: i64) -> Result<Option<Vec<u8>>, rusqlite::Error> {
        let mut query = self.db.prepare_cached("SELECT source FROM contents WHERE id = ?1")?;
        query.query_row([content], |row| row.get(0)).optional()
    }

    pub fn begin(&self) -> Result<(), rusqlite::Error> {
        self.db.execute_batch("BEGIN IMMEDIATE")
    }

    pub fn commit(&self) -> Result<(), rusqlite::Error> {
        self.db.execute_batch("COMMIT")
    }

    pub fn make_indexes(&self) -> Result<(), rusqlite::Error> {
        self.db.execute_batch(INDEXES)
    }

    pub fn rollback(&self) {
        let _ = self.db.execute_batch("ROLLBACK");
    }

    pub fn add_content(
        &self,
        hash: &Hash,
        language: u8,
        source: &str,
        facts: &Facts,
    ) -> Result<i64, rusqlite::Error> {
        let mut find = self.db.prepare_cached("SELECT id FROM contents WHERE hash = ?1 AND language = ?2")?;
        if let Some(id) = find.query_row(params![&hash[..], language], |row| row.get(0)).optional()? {
            return Ok(id);
        }
        let mut put = self.db.prepare_cached(
            "INSERT INTO contents(hash, language, lines, gap, used, source, facts) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?;
        put.execute(params![
            &hash[..],
            language,
            facts.lines,
            facts.gap as u8,
            today(),
            source.as_bytes(),
            pack(facts)
        ])?;
        let id = self.db.last_insert_rowid();
        let mut put = self.db.prepare_cached(
            "INSERT INTO definitions VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        )?;
        for (number, def) in facts.defs.iter().enumerate() {
            if def.flags & def_flag::DECLARED != 0 && def.kind == Kind::Function {
                continue;
            }
            let around = facts.def(def.parent);
            let parent_function =
                around.filter(|around| around.kind.is_callable()).map(|around| facts.name(around));
            let parent_class = if def.owner.0 != 0 {
                Some(facts.str(def.owner))
            } else {
                around.filter(|around| around.kind.is_type()).map(|around| facts.name(around))
            };
            let parent = (def.parent != NONE).then(|| id * PER_CONTENT + i64::from(def.parent));
            put.execute(params![
                id * PER_CONTENT + number as i64,
                id,
                facts.name(def),
                def.kind.name(),
                def.start_line,
                def.end_line,
                def.start_byte,
                def.end_byte,
                parent,
                parent_function,
                parent_class,
                facts.str(def.signature),
                facts.str(def.doc)
            ])?;
        }
        Ok(id)
    }

    pub fn drop_content(&self, content: i64) -> Result<(), rusqlite::Error> {
        self.db.execute("DELETE FROM definitions WHERE content = ?1", [content])?;
        self.db.execute("UPDATE files SET settled = 0, mtime = 0 WHERE content = ?1", [content])?;
        self.db.execute("DELETE FROM contents WHERE id = ?1", [content])?;
        Ok(())
    }

    pub fn put_file(&self, file: &FileRow) -> Result<(), rusqlite::Error> {
        let mut put =
            self.db.prepare_cached("INSERT OR REPLACE INTO files VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?;
        let stamp = file.stamp;
        put.execute(params![
            file.path,
            file.content,
            file.gap as u8,
            stamp.size as i64,
            stamp.mtime,
            stamp.ctime,
            stamp.inode as i64,
            file.settled
        ])?;
        Ok(())
    }

    pub fn remove_file(&self, path: &str) -> Result<(), rusqlite::Error> {
        self.db.prepare_cached("DELETE FROM files WHERE path = ?1")?.execute([path])?;
        Ok(())
    }

    /// Marks what is in use today and forgets contents no file has had for a month.
    pub fn expire(&self) -> Result<(), rusqlite::Error> {
        let day = today();
        let last: Option<String> = self
            .db
            .query_row("SELECT value FROM meta WHERE key = 'expired'", [], |row| row.get(0))
            .optional()?;
        if last.and_then(|day| day.parse().ok()) == Some(day) {
            return Ok(());
        }
        self.db.execute_batch("BEGIN IMMEDIATE")?;
        self.db.execute("UPDATE contents SET used = ?1 WHERE id IN (SELECT content FROM files)", [day])?;
        self.db.execute(
            "DELETE FROM definitions WHERE content IN (SELECT id FROM contents WHERE used < ?1)",
            [day - 30],
        )?;
        self.db.execute("DELETE FROM contents WHERE used < ?1", [day - 30])?;
        self.db.execute("INSERT OR REPLACE INTO meta VALUES ('expired', ?1)", [day.to_string()])?;
        self.db.execute_batch("COMMIT")
    }

    pub fn size(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |metadata| metadata.len())
    }
}

fn gap_of(number: i64) -> Gap {
    Gap::ALL.get(number as usize).copied().unwrap_or(Gap::Unreadable)
}

pub(crate) fn damaged(error: &rusqlite::Error) -> bool {
    is_damage(error)
}

/// A database, by its files, the main one last.
pub struct Database {
    pub files: Vec<PathBuf>,
}

impl Database {
    pub fn remove(&self) {
        for file in &self.files {
            let _ = std::fs::remove_file(file);
        }
    }
}

/// Databases of repositories that nobody has asked about for this long. One that is being built is in use.
pub fn unused_databases(folder: &Path, unused: Duration) -> Vec<Database> {
    let age = |path: &Path| {
        let modified = std::fs::metadata(path).ok()?.modified().ok()?;
        // What was written in the future was written now.
        Some(SystemTime::now().duration_since(modified).unwrap_or_default())
    };
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|ending| ending != "db") {
            continue;
        }
        // Every question asked on a new day writes, to the log first.
        let youngest = age(&path).into_iter().chain(age(&path.with_extension("db-wal"))).min();
        let lock = path.with_extension("db.lock");
        let held = std::fs::File::open(&lock).is_ok_and(|file| file.try_lock().is_err());
        if youngest.is_some_and(|age| age >= unused) && !held {
            let files = ["db-wal", "db-shm", "db.lock", "db"].map(|ending| path.with_extension(ending));
            found.push(Database { files: files.into_iter().filter(|file| file.exists()).collect() });
        }
    }
    found
}

/// Removes them.
pub fn expire_databases(folder: &Path, unused: Duration) -> usize {
    let unused = unused_databases(folder, unused);
    unused.iter().for_each(Database::remove);
    unused.len()
}
