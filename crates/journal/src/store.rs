//! The SQLite side: connections, the schema, events to rows and back.

use std::cell::Cell;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lathe_blobs::Blobs;
use lathe_protocol::{AgentId, CallId, Dangling, Digest, Event, EventPlace, Fact, RunNo, Seq, StepNo};
use nix::unistd::{AccessFlags, access};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Row, ToSql, params};

use crate::JournalError;
use crate::checksums::Cells;
use crate::dangling::dangling;
use crate::files::{SessionPaths, remove_database, sync_folder};
use crate::format::{self, FORMAT, Seal, WITHOUT_SUMS};
use crate::live::cut_to_live_branch;
use crate::mark;

/// A body longer than this is stored as a blob.
const INLINE_MAX: usize = 64 * 1024;

const BUSY: Duration = Duration::from_secs(5);

/// The columns of an event; `sum` comes after them.
const COLUMNS: &str = "seq, at, run, agent, step, call, cause, kind, v, body, blob";

/// One connection to the events of a session.
#[derive(Debug)]
pub(crate) struct Store {
    pub connection: Connection,
    pub path: PathBuf,
    blobs: Blobs,
    /// None for a file without checksums.
    pub seal: Option<Seal>,
    /// The last event that `check_kinds` has checked.
    checked: Cell<i64>,
}

impl Store {
    /// The calls of the last answer on the live branch that have no result.
    pub fn dangling(&self) -> Result<Vec<Dangling>, JournalError> {
        Ok(self.calls_without_result()?.map_or_else(Vec::new, |(_, calls)| calls))
    }

    /// The place of the last answer on the live branch, and its calls without a result.
    ///
    /// Only the events from the last answer on are read, unless that answer was rewound since: then the live branch
    /// has to be computed.
    pub fn calls_without_result(&self) -> Result<Option<(EventPlace, Vec<Dangling>)>, JournalError> {
        const ANSWERED: &str = "model_answered";
        let Some(answer) = self.last_of(ANSWERED)? else {
            return Ok(None);
        };
        let mut after = self.after(answer.seq, usize::MAX)?;
        let mut answer = Some(answer);
        if after.iter().any(|event| matches!(event.fact, Fact::Rewound(_))) {
            let mut events = cut_to_live_branch(self.after(Seq(0), usize::MAX)?);
            let at = events.iter().rposition(|event| event.fact.kind() == ANSWERED);
            after = at.map_or_else(Vec::new, |at| events.split_off(at + 1));
            answer = at.and_then(|_| events.pop());
        }
        Ok(answer.map(|answer| {
            let calls = dangling(&answer, &after);
            (answer.place, calls)
        }))
    }

    /// Makes the database under another name, and renames it once it is complete and synced.
    pub fn create(files: &SessionPaths) -> Result<(), JournalError> {
        remove_database(&files.unfinished)?;
        // A mark of another session that had this id.
        let _ = fs::remove_file(&files.mark);
        let made = make_unfinished(&files.unfinished).and_then(|()| {
            fs::rename(&files.unfinished, &files.db)
                .map_err(|error| JournalError::from_io("make", &files.db, error))
        });
        if made.is_err() {
            let _ = remove_database(&files.unfinished);
        }
        made.and_then(|()| sync_folder(&files.sessions))
    }

    /// Opens the writer's connection. `wal_autocheckpoint` is off because a checkpoint inside a commit costs
    /// milliseconds; `journal_size_limit` truncates the log when it restarts, so that its size is the amount left to
    /// checkpoint.
    pub fn open_to_write(files: &SessionPaths, blobs: Blobs) -> Result<Self, JournalError> {
        let found = files.find()?;
        if found.permissions().mode() & 0o077 != 0 {
            fs::set_permissions(&files.db, fs::Permissions::from_mode(0o600))
                .map_err(|error| JournalError::from_io("protect", &files.db, error))?;
        }
        let mut store = Self::connect(files, blobs, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        store
            .connection
            .execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0;
                 PRAGMA journal_size_limit = 0;",
            )
            .map_err(|error| store.fail("open", error))?;
        // SQLite falls back to reading if it has no write permission.
        if store.connection.is_readonly("main").unwrap_or(false) {
            return Err(JournalError::Denied { path: store.path, why: "it can only be read".to_owned() });
        }
        if store.seal.is_none() {
            format::upgrade(&mut store.connection).map_err(|error| store.fail("upgrade", error))?;
            store.seal = store.read_seal()?;
        }
        Ok(store)
    }

    pub fn open_to_read(files: &SessionPaths, blobs: Blobs) -> Result<Self, JournalError> {
        files.find()?;
        let usual = Self::connect(files, blobs.clone(), OpenFlags::SQLITE_OPEN_READ_ONLY);
        match usual {
            // There is no room for the files that readers share with a writer. Without a writer they are not needed.
            Err(JournalError::NoSpace { .. }) if files.is_at_rest() => {
                Self::with(connect_at_rest(&files.db)?, files, blobs)
            }
            opened => opened,
        }
    }

    fn connect(files: &SessionPaths, blobs: Blobs, how: OpenFlags) -> Result<Self, JournalError> {
        Self::with(connect(&files.db, how)?, files, blobs)
    }

    fn with(connection: Connection, files: &SessionPaths, blobs: Blobs) -> Result<Self, JournalError> {
        // Before the events are counted: commits in between only add to them.
        let least = mark::minimum_events(&files.mark);
        let mut store = Self { connection, path: files.db.clone(), blobs, seal: None, checked: Cell::new(0) };
        // The log of a damaged journal must not be removed before a person has inspected it.
        store.keep_log(true)?;
        match store.number("PRAGMA user_version", "open")? {
            FORMAT => store.seal = store.read_seal()?,
            WITHOUT_SUMS => {}
            0 => return Err(store.damaged("there is no journal in it")),
            found => return Err(JournalError::NewerFormat { path: store.path, found, known: FORMAT }),
        }
        store.check_end(least)?;
        store.keep_log(false)?;
        Ok(store)
    }

    /// Sets whether closing keeps the log.
    fn keep_log(&self, keep: bool) -> Result<(), JournalError> {
        let set = self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep);
        set.map(drop).map_err(|error| self.fail("open", error))
    }

    /// The seal, checked against the existing events.
    fn read_seal(&self) -> Result<Option<Seal>, JournalError> {
        let read = Seal::read(&self.connection).map_err(|error| self.fail("open", error))?;
        let Some(seal) = read else {
            return Err(self.damaged("the seal that says how many events there are is not what was written"));
        };
        self.check_end(seal.last)?;
        Ok(Some(seal))
    }

    /// Returns an error if there are fewer events than there were.
    fn check_end(&self, least: i64) -> Result<(), JournalError> {
        let there = signed(self.last()?);
        if there < least {
            return Err(self.damaged(&format!("it ends with event {there}, and there were {least}")));
        }
        Ok(())
    }

    /// Records the number of events, so that a loss at the end is detected.
    pub fn write_seal(&mut self, last: Seq) -> Result<(), JournalError> {
        let Some(seal) = self.seal.as_mut() else { return Ok(()) };
        let seal = Seal { last: signed(last), ..*seal };
        seal.write(&self.connection).map_err(|error| self.fail("close", error))?;
        self.seal = Some(seal);
        Ok(())
    }

    /// A single number from the database.
    pub fn number(&self, sql: &str, doing: &'static str) -> Result<i64, JournalError> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
            .map_err(|error| self.fail(doing, error))
    }

    pub fn last(&self) -> Result<Seq, JournalError> {
        let last = self.number("SELECT ifnull(max(seq), 0) FROM events", "read")?;
        u64::try_from(last)
            .map(Seq)
            .map_err(|_| self.damaged(&format!("its last event has the number {last}")))
    }

    /// Commits one event; a large body is stored and synced before.
    pub fn insert(&self, event: &Event) -> Result<(), JournalError> {
        let encode = |source| JournalError::Encode { kind: event.fact.kind().to_owned(), source };
        let body = event.fact.body().map_err(encode)?;
        let (inline, blob) = if body.get().len() > INLINE_MAX {
            (None, Some(self.blobs.put(body.get().as_bytes())?))
        } else {
            (Some(body.get()), None)
        };
        let place = &event.place;
        let at = event.at.to_string();
        let cells = Cells {
            seq: signed(event.seq),
            at: &at,
            run: place.run.0,
            agent: place.agent.as_str(),
            step: place.step.map(|step| step.0),
            call: place.call.as_ref().map(CallId::as_str),
            cause: place.cause.map(signed),
            kind: event.fact.kind(),
            v: event.fact.version(),
            body: inline,
            blob: blob.as_ref().map(Digest::as_str),
        };
        self.connection
            .prepare_cached(
                "INSERT INTO events(seq, at, run, agent, step, call, cause, kind, v, body, blob, sum)
                 VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            )
            .and_then(|mut insert| {
                insert.execute(params![
                    cells.seq,
                    cells.at,
                    cells.run,
                    cells.agent,
                    cells.step,
                    cells.call,
                    cells.cause,
                    cells.kind,
                    cells.v,
                    cells.body,
                    cells.blob,
                    cells.sum(),
                ])
            })
            .map_err(|error| self.fail("append to", error))?;
        Ok(())
    }

    /// Events after `cursor`, in order.
    pub fn after(&self, cursor: Seq, limit: usize) -> Result<Vec<Event>, JournalError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut events = Vec::new();
        self.each_after(cursor, limit, &mut |event| events.push(event))?;
        Ok(events)
    }

    fn each_after(&self, cursor: Seq, limit: i64, take: &mut dyn FnMut(Event)) -> Result<(), JournalError> {
        let (mut before, mut gap) = (cursor, None);
        self.each_where(
            "WHERE seq > ?1 ORDER BY seq LIMIT ?2",
            params![signed(cursor), limit],
            &mut |event| {
                if event.seq != before.next() {
                    gap.get_or_insert(before.next());
                }
                before = event.seq;
                if gap.is_none() {
                    take(event);
                }
            },
        )?;
        gap.map_or(Ok(()), |missing| Err(self.damaged(&format!("event {missing} is not in it any more"))))
    }

    /// Returns an error if events up to `upto` are missing between others or changed their kind: a query for some
    /// kinds would skip them. No single bit flip turns a kind into another known one, so only unknown kinds are read.
    /// Each event is checked once.
    fn check_kinds(&self, upto: Seq) -> Result<(), JournalError> {
        let (from, upto) = (self.checked.get(), signed(upto));
        if upto <= from {
            return Ok(());
        }
        let known = Fact::KINDS.join("', '");
        let among = "WHERE seq > ?1 AND seq <= ?2";
        let count = format!("SELECT count(*) FROM events {among}");
        let count: i64 = self
            .connection
            .prepare_cached(&count)
            .and_then(|mut statement| statement.query_row([from, upto], |row| row.get(0)))
            .map_err(|error| self.fail("read", error))?;
        let missing = upto - from - count;
        if missing != 0 {
            return Err(self.damaged(&format!("{missing} of its events are not in it any more")));
        }
        self.each_where(&format!("{among} AND kind NOT IN ('{known}')"), [from, upto], &mut |_| {})?;
        self.checked.set(upto);
        Ok(())
    }

    /// The events between the first and the last match, with their neighbours: an event with a damaged place would
    /// not match, so the events that belong among the others are read too.
    fn matching_range(&self, fits: &str, values: &[&dyn ToSql]) -> Result<Vec<Event>, JournalError> {
        let ends = format!("SELECT min(seq), max(seq) FROM events WHERE {fits}");
        let ends = self.connection.query_row(&ends, values, |row| Ok((row.get(0)?, row.get(1)?)));
        let (Some(first), Some(last)): (Option<i64>, Option<i64>) =
            ends.map_err(|error| self.fail("read", error))?
        else {
            return Ok(Vec::new());
        };
        let before = Seq(u64::try_from(first.saturating_sub(2)).unwrap_or_default());
        let count = last.saturating_add(2).saturating_sub(signed(before));
        self.after(before, usize::try_from(count).unwrap_or_default())
    }

    /// The events that determine where a run begins, up to an event: openings, tasks, epochs, requests and ends
    /// before the last task given by then, and the number of the event before that task.
    pub fn landmarks(&self, upto: Seq) -> Result<(Vec<Event>, Seq), JournalError> {
        self.check_kinds(upto.min(self.last()?))?;
        let task = "WHERE kind = 'task_given' AND seq <= ?1 ORDER BY seq DESC LIMIT 1";
        let task = self.events(task, params![signed(upto)])?.pop();
        let Some(before) = task.map(|task| Seq(task.seq.0.saturating_sub(1))) else {
            return Ok((Vec::new(), Seq(0)));
        };
        let which = "WHERE seq <= ?1 AND kind IN ('session_opened', 'options_changed', 'epoch_started', 'task_given', \
                     'run_resumed', 'model_asked', 'task_finished', 'rewound', 'rewind_undone') ORDER BY seq";
        Ok((self.events(which, params![signed(before)])?, before))
    }

    /// The events of one step, including those on abandoned branches.
    pub fn of_step(&self, run: RunNo, step: StepNo) -> Result<Vec<Event>, JournalError> {
        let mut events = self.matching_range("run = ?1 AND step = ?2", params![run.0, step.0])?;
        events.retain(|event| event.place.run == run && event.place.step == Some(step));
        Ok(events)
    }

    /// The last event of a kind. Searches from the end, so it is fast for recent events.
    pub fn last_of(&self, kind: &str) -> Result<Option<Event>, JournalError> {
        let found = self.events("WHERE kind = ?1 ORDER BY seq DESC LIMIT 1", params![kind])?.pop();
        // A later event may be of that kind and damaged.
        let after = found.as_ref().map_or(Seq(0), |event| event.seq);
        self.each_after(after, i64::MAX, &mut |_| {})?;
        Ok(found)
    }

    /// Every event of a kind. Rows of other kinds are skipped without reading their bodies.
    pub fn of_kind(&self, kind: &str) -> Result<Vec<Event>, JournalError> {
        self.check_kinds(self.last()?)?;
        self.events("WHERE kind = ?1 ORDER BY seq", params![kind])
    }

    /// The blobs with event bodies.
    pub fn body_blobs(&self) -> Result<Vec<Digest>, JournalError> {
        let failed = |error| self.fail("read", error);
        let mut statement = self
            .connection
            .prepare_cached("SELECT blob FROM events WHERE blob IS NOT NULL")
            .map_err(failed)?;
        let names = statement.query_map([], |row| row.get::<_, String>(0)).map_err(failed)?;
        names.map(|name| Ok(Digest::parse(&name.map_err(failed)?))).filter_map(Result::transpose).collect()
    }

    /// Tells whether the session was ever rewound.
    pub fn has_rewinds(&self) -> Result<bool, JournalError> {
        Ok(self.number("SELECT EXISTS(SELECT 1 FROM events WHERE kind = 'rewound')", "read")? != 0)
    }

    /// Every event in order, one at a time: a long journal is never in memory as a whole.
    pub fn each(&self, take: &mut dyn FnMut(Event)) -> Result<(), JournalError> {
        self.each_after(Seq(0), i64::MAX, take)
    }

    /// The events that a summary needs. Rows of other kinds are skipped without reading their bodies.
    pub fn for_summary(&self) -> Result<Vec<Event>, JournalError> {
        self.check_kinds(self.last()?)?;
        let which = "WHERE kind IN ('session_opened', 'options_changed', 'task_given', 'run_resumed', 'session_named', \
                     'model_answered', 'task_finished') OR seq = (SELECT max(seq) FROM events) ORDER BY seq";
        self.events(which, [])
    }

    /// The events that determine a session's settings.
    pub fn settings(&self) -> Result<Vec<Event>, JournalError> {
        self.check_kinds(self.last()?)?;
        self.events("WHERE kind IN ('session_opened', 'options_changed', 'files_restored') ORDER BY seq", [])
    }

    /// The opening, the options in effect by then, and everything of the last run.
    pub fn last_run(&self) -> Result<Vec<Event>, JournalError> {
        let mut events = self.matching_range("run = (SELECT max(run) FROM events)", &[])?;
        let last = events.iter().map(|event| event.place.run).max();
        events.retain(|event| Some(event.place.run) == last && event.seq != Seq(1));
        let first = events.first().map_or(Seq(u64::MAX), |event| event.seq);
        let mut before = self.settings()?;
        before.retain(|event| event.seq < first && !matches!(event.fact, Fact::FilesRestored(_)));
        events.splice(0..0, before);
        Ok(events)
    }

    fn events(&self, which: &str, values: impl rusqlite::Params) -> Result<Vec<Event>, JournalError> {
        let mut events = Vec::new();
        self.each_where(which, values, &mut |event| events.push(event))?;
        Ok(events)
    }

    fn each_where(
        &self,
        which: &str,
        values: impl rusqlite::Params,
        take: &mut dyn FnMut(Event),
    ) -> Result<(), JournalError> {
        let failed = |error| self.fail("read", error);
        let sum = if self.seal.is_some() { "sum" } else { "NULL" };
        let sql = format!("SELECT {COLUMNS}, {sum} FROM events {which}");
        let mut statement = self.connection.prepare_cached(&sql).map_err(failed)?;
        let mut rows = statement.query(values).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            take(self.event(row)?);
        }
        Ok(())
    }

    fn event(&self, row: &Row<'_>) -> Result<Event, JournalError> {
        let columns = Columns::of(row).map_err(|error| self.fail("read", error))?;
        let seq = Seq(columns.seq);
        if !self.is_as_written(&columns) {
            return Err(self.damaged(&format!("event {seq} is not what was written (its checksum differs)")));
        }
        let body = match (columns.body, columns.blob) {
            (Some(body), None) => body,
            (None, Some(blob)) => self.body_from_blob(seq, blob)?,
            _ => return Err(self.damaged(&format!("event {seq} has not exactly one body"))),
        };
        let at = columns.at.parse();
        Ok(Event {
            seq,
            at: at.map_err(|error| self.damaged(&format!("event {seq}: {error}")))?,
            place: columns.place,
            fact: Fact::decode(&columns.kind, columns.v, &body)
                .map_err(|error| self.damaged(&format!("event {seq}: {error}")))?,
        })
    }

    /// Tells whether an event's row still has its checksum. Events from before checksums have none.
    fn is_as_written(&self, columns: &Columns) -> bool {
        let summed = self.seal.is_some_and(|seal| signed(Seq(columns.seq)) >= seal.since);
        !summed || columns.sum == Some(i64::from(columns.cells().sum()))
    }

    fn body_from_blob(&self, seq: Seq, blob: String) -> Result<String, JournalError> {
        let digest = Digest::parse(&blob)
            .ok_or_else(|| self.damaged(&format!("event {seq} names no blob: {blob}")))?;
        match self.blobs.get(&digest)? {
            Some(bytes) => String::from_utf8(bytes)
                .map_err(|error| self.damaged(&format!("the blob of event {seq}: {error}"))),
            None => Err(JournalError::LostBody { seq, digest }),
        }
    }

    pub fn fail(&self, doing: &'static str, error: rusqlite::Error) -> JournalError {
        failure(&self.connection, doing, &self.path, error)
    }

    pub fn damaged(&self, why: &str) -> JournalError {
        JournalError::Damaged { path: self.path.clone(), why: why.to_owned() }
    }
}

fn make_unfinished(path: &Path) -> Result<(), JournalError> {
    let failed = |error| JournalError::from_io("make", path, error);
    // SQLite would make it readable by all users.
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // No other process knows this file and a crash discards it: no rollback, and one sync at the end.
    connection
        .execute_batch("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; BEGIN;")
        .and_then(|()| format::make(&connection))
        .and_then(|()| connection.execute_batch("COMMIT; PRAGMA journal_mode = WAL;"))
        .map_err(|error| failure(&connection, "make", path, error))?;
    drop(connection);
    File::open(path).and_then(|file| file.sync_all()).map_err(failed)
}

struct Columns {
    seq: u64,
    at: String,
    place: EventPlace,
    kind: String,
    v: u16,
    body: Option<String>,
    blob: Option<String>,
    sum: Option<i64>,
}

impl Columns {
    fn cells(&self) -> Cells<'_> {
        Cells {
            seq: signed(Seq(self.seq)),
            at: &self.at,
            run: self.place.run.0,
            agent: self.place.agent.as_str(),
            step: self.place.step.map(|step| step.0),
            call: self.place.call.as_ref().map(CallId::as_str),
            cause: self.place.cause.map(signed),
            kind: &self.kind,
            v: self.v,
            body: self.body.as_deref(),
            blob: self.blob.as_deref(),
        }
    }

    fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            seq: unsigned(row, 0)?,
            at: row.get(1)?,
            place: EventPlace {
                run: RunNo(row.get(2)?),
                agent: AgentId::new(row.get::<_, String>(3)?),
                step: row.get::<_, Option<u32>>(4)?.map(StepNo),
                call: row.get::<_, Option<String>>(5)?.map(CallId::new),
                cause: row.get::<_, Option<i64>>(6)?.map(|_| unsigned(row, 6)).transpose()?.map(Seq),
            },
            kind: row.get(7)?,
            v: row.get(8)?,
            body: row.get(9)?,
            blob: row.get(10)?,
            sum: row.get(11)?,
        })
    }
}

/// SQLite counts to 2^63.
pub(crate) fn signed(seq: Seq) -> i64 {
    i64::try_from(seq.0).unwrap_or(i64::MAX)
}

/// A count or number from a column; a negative one is not ours.
pub(crate) fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, number))
}

/// Opens an existing file. The small page cache keeps hundreds of open sessions cheap.
pub(crate) fn connect(path: &Path, how: OpenFlags) -> Result<Connection, JournalError> {
    let connection =
        Connection::open_with_flags(path, how | OpenFlags::SQLITE_OPEN_NO_MUTEX).map_err(|error| {
            // There is no connection to ask for the reason, and opening the file ourselves would drop SQLite's locks.
            let os = access(path, AccessFlags::R_OK).err().map(io::Error::from);
            JournalError::from_sqlite("open", path, error, os)
        })?;
    connection
        .busy_timeout(BUSY)
        .and_then(|()| connection.execute_batch("PRAGMA cache_size = -64;"))
        .map_err(|error| failure(&connection, "open", path, error))?;
    Ok(connection)
}

/// Opens a database that has no log and no writer, without the files that SQLite shares with a writer.
fn connect_at_rest(path: &Path) -> Result<Connection, JournalError> {
    use std::os::unix::ffi::OsStrExt as _;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    let name = path.as_os_str().as_bytes().iter().map(|byte| match plain(*byte) {
        true => char::from(*byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    let uri = format!("file:{}?immutable=1", name.collect::<String>());
    connect(Path::new(&uri), OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI)
}

pub(crate) fn failure(
    connection: &Connection,
    doing: &'static str,
    path: &Path,
    error: rusqlite::Error,
) -> JournalError {
    // SAFETY: the handle is that of a live connection, borrowed for the whole call; the function only reads
    // a number out of it. rusqlite does not wrap it.
    let errno = unsafe { rusqlite::ffi::sqlite3_system_errno(connection.handle()) };
    let os = (errno != 0).then(|| io::Error::from_raw_os_error(errno));
    JournalError::from_sqlite(doing, path, error, os)
}
