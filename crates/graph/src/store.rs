//! One SQLite file per repository: facts by content hash, and the content of each file.
//!
//! The facts are one blob per content. Rows per use would cost more to write than the parse costs, and are never
//! queried by SQL. Definitions are also stored as JSON, and the text is there, so that users of `sqlite3` and of
//! Trae's two tables (`functions`, `classes`, here views) can read them. The index over all files is derived from the
//! facts and records the contents for which it is valid.
//!
//! A database that is damaged, of another version, or made by other rules is discarded and built again, with a
//! message about it: everything in it can be made from the files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::MutexGuard;
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, params};

use crate::error::GraphError;
use crate::facts::{DefKind, Facts, Gap, NONE, def_flag};
use crate::hash::{QuickMap, checksum};
use crate::index::Index;
use crate::interface::interface;
use crate::layout::Layout;
use crate::lazy::FactsSource;
use crate::pack::pack;
use crate::scan::Stamp;
use crate::snapshot::FileFacts;
use crate::source_text::{Hash, hash_of};

/// Incremented when the tables or the meaning of facts change.
const VERSION: i32 = 4;
const APPLICATION: i32 = 0x4c47_5048;

const SCHEMA: &str = "
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE contents(
    id INTEGER PRIMARY KEY AUTOINCREMENT, hash BLOB NOT NULL, language INTEGER NOT NULL, lines INTEGER NOT NULL,
    gap INTEGER NOT NULL, used INTEGER NOT NULL, interface INTEGER NOT NULL, source BLOB NOT NULL,
    facts BLOB NOT NULL, definitions TEXT NOT NULL);
CREATE UNIQUE INDEX contents_by_hash ON contents(hash, language);
CREATE TABLE files(
    path TEXT PRIMARY KEY, content INTEGER, gap INTEGER NOT NULL, size INTEGER NOT NULL, mtime INTEGER NOT NULL,
    ctime INTEGER NOT NULL, inode INTEGER NOT NULL, settled INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX files_by_content ON files(content);
CREATE TABLE derived(id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, value BLOB NOT NULL);
CREATE VIEW definitions AS SELECT c.id * 1048576 + json_extract(d.value, '$[0]') AS id, c.id AS content,
    json_extract(d.value, '$[1]') AS name, json_extract(d.value, '$[2]') AS kind,
    json_extract(d.value, '$[3][0]') AS start_line, json_extract(d.value, '$[3][1]') AS end_line,
    json_extract(d.value, '$[3][2]') AS start_byte, json_extract(d.value, '$[3][3]') AS end_byte,
    c.id * 1048576 + json_extract(d.value, '$[4]') AS parent, json_extract(d.value, '$[5]') AS parent_function,
    json_extract(d.value, '$[6]') AS parent_class, json_extract(d.value, '$[7]') AS signature,
    json_extract(d.value, '$[8]') AS doc
  FROM contents c, json_each(c.definitions) d;
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
       WHERE m.content = d.content AND m.parent = d.id AND m.kind IN ('field', 'variant', 'constant')) AS fields,
    (SELECT group_concat('- ' || m.signature, char(10)) FROM definitions m
       WHERE m.content = d.content AND m.parent = d.id AND m.kind IN ('method', 'constructor')) AS methods,
    d.start_line AS start_line, d.end_line AS end_line
  FROM definitions d JOIN files f ON f.content = d.content JOIN contents c ON c.id = d.content
  WHERE d.kind IN ('class', 'struct', 'interface', 'trait', 'enum');
";

/// The time to wait for another process that writes: a large first build takes a while on a busy machine.
const BUSY: Duration = Duration::from_secs(60);

/// The most changed files that are read in addition to an index.
const CHANGED: usize = 64;

pub struct FileRow {
    pub path: String,
    /// None if the file is left out, for the reason in `gap`.
    pub content: Option<i64>,
    pub gap: Gap,
    pub stamp: Stamp,
    /// False if the file was read while it may have been written: then it must be checked again.
    pub settled: bool,
}

/// Contents by hash and language.
pub type KnownContents = QuickMap<(Hash, u8), (i64, Gap)>;

pub struct Store {
    source: Arc<FactsSource>,
    pub path: PathBuf,
    /// Messages for the user: the database was rebuilt, and why.
    pub messages: Vec<String>,
}

fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::SystemIoFailure)
    ) || matches!(error, rusqlite::Error::InvalidColumnType(..) | rusqlite::Error::InvalidColumnIndex(_))
        || ["malformed", "no such table", "no such column"]
            .iter()
            .any(|word| error.to_string().contains(word))
}

/// Tells whether another process is writing at this moment.
fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// A version that changes whenever a rule file or `VERSION` does, so that facts never mix.
fn rules_version() -> String {
    let mut all = Vec::new();
    for language in lathe_grammars::Language::ALL {
        for text in language.graph_rules().unwrap_or_default() {
            all.extend_from_slice(text.as_bytes());
        }
    }
    let hash = hash_of(&all);
    format!("{VERSION}.{:02x}{:02x}{:02x}{:02x}", hash[0], hash[1], hash[2], hash[3])
}

fn meta(db: &Connection, key: &str) -> Result<Option<String>, rusqlite::Error> {
    db.prepare_cached("SELECT value FROM meta WHERE key = ?1")?.query_row([key], |row| row.get(0)).optional()
}

/// An identity for a new database. Numbers of contents are valid in one database only.
fn new_database_id() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    format!("{now}.{}", std::process::id())
}

/// The definitions as JSON for the views. Separate rows would cost as much as the parse.
fn definitions(facts: &Facts) -> String {
    let mut all = Vec::with_capacity(facts.defs.len());
    for (number, def) in facts.defs.iter().enumerate() {
        if def.flags & def_flag::DECLARED != 0 && def.kind == DefKind::Function {
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
        all.push((
            number,
            facts.name(def),
            def.kind.name(),
            (def.start_line, def.end_line, def.start_byte, def.end_byte),
            (def.parent != NONE).then_some(def.parent),
            parent_function,
            parent_class,
            facts.str(def.signature),
            facts.str(def.doc),
        ));
    }
    serde_json::to_string(&all).unwrap_or_default()
}

fn current_day() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| (since.as_secs() / 86_400) as i64)
}

/// Makes the file private: names and lines of the user's code are for this user only. SQLite gives its other files
/// the same mode, and reports errors of a file that cannot be created.
fn keep_private(path: &Path) {
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
    let made = std::fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path);
    if let Ok(file) = made {
        let _ = file.set_permissions(std::fs::Permissions::from_mode(0o600));
    }
}

impl Store {
    /// The database of a repository in the folder for graphs.
    pub fn path_for(root: &Path, folder: &Path) -> PathBuf {
        let hash = hash_of(root.as_os_str().as_encoded_bytes());
        let name: String = hash.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
        folder.join(format!("{name}.db"))
    }

    pub fn open(root: &Path, folder: &Path) -> Result<Self, GraphError> {
        // The index contains text of the source.
        let mut private = std::fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(private.recursive(true), 0o700);
        private.create(folder).map_err(|source| GraphError::Folder { path: folder.to_owned(), source })?;
        let path = Self::path_for(root, folder);
        let began = Instant::now();
        let mut connected = Self::connect(&path, root);
        // SQLite does not wait by itself if two processes initialise the same new database.
        while connected.as_ref().is_err_and(is_busy) && began.elapsed() < BUSY {
            std::thread::sleep(Duration::from_millis(20));
            connected = Self::connect(&path, root);
        }
        match connected {
            Ok(Ok(db)) => Ok(Self { source: FactsSource::new(db), path, messages: Vec::new() }),
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
            Ok(db) => Ok(Self { source: FactsSource::new(db), path: path.to_owned(), messages: vec![word] }),
            Err(word) => Err(GraphError::Question(word)),
        }
    }

    /// Discards the database after damage was found during its use.
    pub fn discard_and_rebuild(&mut self, root: &Path, error: &rusqlite::Error) -> Result<(), GraphError> {
        let word = format!("the code graph was damaged ({error}) and is built again");
        let path = self.path.clone();
        let mut fresh = Self::rebuild(&path, root, word)?;
        self.source = fresh.source;
        self.messages.append(&mut fresh.messages);
        Ok(())
    }

    /// Opens the database. The inner error is a message on why the database must be discarded.
    fn connect(path: &Path, root: &Path) -> Result<Result<Connection, String>, rusqlite::Error> {
        keep_private(path);
        let db = Connection::open(path)?;
        db.busy_timeout(BUSY)?;
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
                put.execute(params!["makers", rules_version()])?;
                put.execute(params!["born", new_database_id()])?;
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
        if meta(&db, "makers")?.as_deref() != Some(rules_version().as_str()) {
            return Ok(Err("the rules of the code graph have changed, it is built again".into()));
        }
        Ok(Ok(db))
    }

    fn db(&self) -> MutexGuard<'_, Connection> {
        self.source.db()
    }

    /// The source that snapshots read from.
    pub fn facts(&self) -> Arc<FactsSource> {
        Arc::clone(&self.source)
    }

    /// A number that changes when another connection has written.
    pub fn data_version(&self) -> Result<i64, rusqlite::Error> {
        self.db().query_row("PRAGMA data_version", [], |row| row.get(0))
    }

    pub fn files(&self) -> Result<Vec<FileRow>, rusqlite::Error> {
        let db = self.db();
        let mut query = db.prepare_cached(
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
    pub fn known(&self) -> Result<KnownContents, rusqlite::Error> {
        let db = self.db();
        let mut query = db.prepare_cached("SELECT hash, language, id, gap FROM contents")?;
        let rows = query.query_map([], |row| {
            let hash: Vec<u8> = row.get(0)?;
            let hash: Hash = hash.try_into().unwrap_or([0; 32]);
            Ok(((hash, row.get::<_, i64>(1)? as u8), (row.get(2)?, gap_of(row.get(3)?))))
        })?;
        rows.collect()
    }

    pub fn source(&self, content: i64) -> Result<Option<Vec<u8>>, rusqlite::Error> {
        let db = self.db();
        let mut query = db.prepare_cached("SELECT source FROM contents WHERE id = ?1")?;
        query.query_row([content], |row| row.get(0)).optional()
    }

    pub fn begin(&self) -> Result<(), rusqlite::Error> {
        self.db().execute_batch("BEGIN IMMEDIATE")
    }

    pub fn commit(&self) -> Result<(), rusqlite::Error> {
        self.db().execute_batch("COMMIT")
    }

    pub fn rollback(&self) {
        let _ = self.db().execute_batch("ROLLBACK");
    }

    pub fn add_content(
        &self,
        hash: &Hash,
        language: u8,
        source: &str,
        facts: &Facts,
    ) -> Result<i64, rusqlite::Error> {
        let db = self.db();
        let mut find = db.prepare_cached("SELECT id FROM contents WHERE hash = ?1 AND language = ?2")?;
        if let Some(id) = find.query_row(params![&hash[..], language], |row| row.get(0)).optional()? {
            return Ok(id);
        }
        let mut put = db.prepare_cached(
            "INSERT INTO contents(hash, language, lines, gap, used, interface, source, facts, definitions)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?;
        put.execute(params![
            &hash[..],
            language,
            facts.lines,
            facts.gap as u8,
            current_day(),
            interface(facts),
            source.as_bytes(),
            pack(facts),
            definitions(facts)
        ])?;
        Ok(db.last_insert_rowid())
    }

    /// The interface of a content, which other files can see.
    pub fn interface(&self, content: i64) -> Result<Option<i64>, rusqlite::Error> {
        let db = self.db();
        let mut query = db.prepare_cached("SELECT interface FROM contents WHERE id = ?1")?;
        query.query_row([content], |row| row.get(0)).optional()
    }

    /// The numbers of the files with another content than the index was made from. None if the index is not valid for
    /// the others, or if too many have changed.
    pub fn changed_since(
        &self,
        index: &Index,
        files: &[FileFacts],
    ) -> Result<Option<Vec<u32>>, rusqlite::Error> {
        if index.files.len() != files.len() {
            return Ok(None);
        }
        let mut changed = Vec::new();
        for (at, (file, known)) in files.iter().zip(&index.files).enumerate() {
            if *file.path != *known.path || changed.len() > CHANGED {
                return Ok(None);
            }
            if file.content != known.content {
                if self.interface(file.content)? != Some(known.interface) {
                    return Ok(None);
                }
                changed.push(at as u32);
            }
        }
        Ok(Some(changed))
    }

    /// The layout of the folders, as it was last written.
    pub fn layout(&self) -> Result<Option<Layout>, rusqlite::Error> {
        let db = self.db();
        let mut query = db.prepare_cached("SELECT value, checksum FROM derived WHERE id = -1")?;
        let found =
            query.query_row([], |row| Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, i64>(1)?))).optional()?;
        Ok(found.filter(|(bytes, sum)| checksum(bytes) == *sum).and_then(|(bytes, _)| Layout::unpack(&bytes)))
    }

    pub fn put_layout(&self, layout: &Layout) -> Result<(), rusqlite::Error> {
        let bytes = layout.pack();
        let db = self.db();
        let mut put = db.prepare_cached("INSERT OR REPLACE INTO derived VALUES (-1, ?1, ?2)")?;
        put.execute(params![checksum(&bytes), bytes]).map(|_| ())
    }

    /// Deletes the index, which can be made again from the facts.
    pub fn drop_derived(&self) -> Result<(), rusqlite::Error> {
        self.db().execute_batch("DELETE FROM derived WHERE id >= 0")
    }

    /// Writes an index, completely or not at all, through a connection of its own, so that no question waits for it.
    /// Nothing happens if the database has been replaced by now.
    pub fn put_derived(
        path: &Path,
        root: &Path,
        born: &str,
        sections: &[(i64, &[u8])],
    ) -> Result<(), rusqlite::Error> {
        let Ok(db) = Self::connect(path, root)? else { return Ok(()) };
        db.execute_batch("BEGIN IMMEDIATE")?;
        if meta(&db, "born")?.as_deref() == Some(born) {
            db.execute_batch("DELETE FROM derived WHERE id >= 0")?;
            let mut put = db.prepare("INSERT INTO derived VALUES (?1, ?2, ?3)")?;
            for (id, value) in sections {
                put.execute(params![id, checksum(value), value])?;
            }
        }
        db.execute_batch("COMMIT")
    }

    /// The identity of this database, among those that were at its path.
    pub fn database_id(&self) -> Result<String, rusqlite::Error> {
        Ok(meta(&self.db(), "born")?.unwrap_or_default())
    }

    pub fn drop_content(&self, content: i64) -> Result<(), rusqlite::Error> {
        self.db().execute("UPDATE files SET settled = 0, mtime = 0 WHERE content = ?1", [content])?;
        self.db().execute("DELETE FROM contents WHERE id = ?1", [content])?;
        Ok(())
    }

    pub fn put_file(&self, file: &FileRow) -> Result<(), rusqlite::Error> {
        let db = self.db();
        let mut put =
            db.prepare_cached("INSERT OR REPLACE INTO files VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?;
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
        self.db().prepare_cached("DELETE FROM files WHERE path = ?1")?.execute([path])?;
        Ok(())
    }

    /// Marks the contents in use today and deletes contents that no file has had for a month.
    pub fn expire(&self) -> Result<(), rusqlite::Error> {
        let db = self.db();
        let day = current_day();
        if meta(&db, "expired")?.and_then(|day| day.parse().ok()) == Some(day) {
            return Ok(());
        }
        db.execute_batch("BEGIN IMMEDIATE")?;
        db.execute("UPDATE contents SET used = ?1 WHERE id IN (SELECT content FROM files)", [day])?;
        db.execute("DELETE FROM contents WHERE used < ?1", [day - 30])?;
        db.execute("INSERT OR REPLACE INTO meta VALUES ('expired', ?1)", [day.to_string()])?;
        db.execute_batch("COMMIT")
    }

    pub fn size(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |metadata| metadata.len())
    }
}

fn gap_of(number: i64) -> Gap {
    Gap::ALL.get(number as usize).copied().unwrap_or(Gap::Unreadable)
}

pub(crate) fn is_database_damage(error: &rusqlite::Error) -> bool {
    is_damage(error)
}

/// A database, by its files, the main one last.
pub struct GraphDatabase {
    pub files: Vec<PathBuf>,
}

impl GraphDatabase {
    pub fn remove(&self) {
        for file in &self.files {
            let _ = std::fs::remove_file(file);
        }
    }
}

/// Databases of repositories that have not been queried for this long. One that is being built is in use.
pub fn unused_databases(folder: &Path, unused: Duration) -> Vec<GraphDatabase> {
    let age = |path: &Path| {
        let modified = std::fs::metadata(path).ok()?.modified().ok()?;
        // A modification time in the future counts as now.
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
            found.push(GraphDatabase { files: files.into_iter().filter(|file| file.exists()).collect() });
        }
    }
    found
}

/// Removes the unused databases. Returns their number.
pub fn expire_databases(folder: &Path, unused: Duration) -> usize {
    let unused = unused_databases(folder, unused);
    unused.iter().for_each(GraphDatabase::remove);
    unused.len()
}
