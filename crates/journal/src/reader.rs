//! Reading a session, from this process or another, even while it is being written.

use std::io::Read as _;
use std::path::Path;

use lathe_blobs::Blobs;
use lathe_protocol::{Dangling, Digest, Event, Fact, RunNo, Seq, SessionId, SessionSummary, StepNo};

use crate::files::SessionPaths;
use crate::store::Store;
use crate::summary::summarise;
use crate::{JournalError, live_branch};

fn damaged(files: &SessionPaths, why: &str) -> JournalError {
    JournalError::Damaged { path: files.db.clone(), why: why.to_owned() }
}

/// The length of a database by its header: the size of a page (bytes 16 and 17, 1 means 65536) times the number of
/// pages (bytes 28 to 31), by SQLite's file format.
fn least_length(header: &[u8; 32]) -> u64 {
    let page = match u64::from(u16::from_be_bytes([header[16], header[17]])) {
        1 => 65_536,
        page => page,
    };
    page * u64::from(u32::from_be_bytes([header[28], header[29], header[30], header[31]]))
}

/// Reads events. Any number may be open; none takes the lock or writes the main file.
#[derive(Debug)]
pub struct SessionReader {
    store: Store,
}

impl SessionReader {
    pub fn open(sessions: &Path, id: &SessionId, blobs: Blobs) -> Result<Self, JournalError> {
        Self::of(&SessionPaths::of(sessions, id)?, blobs)
    }

    pub(crate) fn of(files: &SessionPaths, blobs: Blobs) -> Result<Self, JournalError> {
        Store::open_to_read(files, blobs).map(|store| Self { store })
    }

    /// Finds damage where that is cheap: in the header and the length of the file, in the seal and the mark (the
    /// required number of events), in the first and the last event. Damage to an event in between, to its blobs and
    /// to the copies of files is not found; it is reported when they are read.
    ///
    /// For a session that no process writes: a file that is being written may be shorter than its header says.
    pub fn check(sessions: &Path, id: &SessionId, blobs: Blobs) -> Result<(), JournalError> {
        let files = SessionPaths::of(sessions, id)?;
        let length = files.find()?.len();
        let mut header = [0; 32];
        let read = std::fs::File::open(&files.db).and_then(|mut file| file.read_exact(&mut header));
        read.map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => damaged(&files, "it has no header"),
            _ => JournalError::from_io("inspect", &files.db, error),
        })?;
        let reader = Self::of(&files, blobs)?;
        if least_length(&header) > length {
            return Err(damaged(&files, "it is shorter than its header says"));
        }
        let last = reader.last()?;
        reader.after(Seq(0), 1)?;
        reader.after(Seq(last.0.saturating_sub(1)), 1)?;
        Ok(())
    }

    /// Up to `limit` events after `cursor`, in order. May include events that their writer has not acknowledged yet:
    /// they are committed all the same.
    pub fn after(&self, cursor: Seq, limit: usize) -> Result<Vec<Event>, JournalError> {
        self.store.after(cursor, limit)
    }

    /// The earlier events that a view needs to begin with the run at `upto`, and the event after which it then
    /// begins.
    pub fn run_landmarks(&self, upto: Seq) -> Result<(Vec<Event>, Seq), JournalError> {
        self.store.landmarks(upto)
    }

    /// The events of one step, including those on abandoned branches.
    pub fn of_step(&self, run: RunNo, step: StepNo) -> Result<Vec<Event>, JournalError> {
        self.store.of_step(run, step)
    }

    pub fn all(&self) -> Result<Vec<Event>, JournalError> {
        self.store.after(Seq(0), usize::MAX)
    }

    /// The calls of the last answer on the live branch that have no result.
    pub fn dangling(&self) -> Result<Vec<Dangling>, JournalError> {
        self.store.dangling()
    }

    /// The live branch.
    pub fn live(&self) -> Result<Vec<Event>, JournalError> {
        Ok(live_branch(self.all()?))
    }

    /// Tells whether the session was ever rewound: if not, every event is on the live branch.
    pub fn has_rewinds(&self) -> Result<bool, JournalError> {
        self.store.has_rewinds()
    }

    /// The live branch, one event at a time. Only a journal that was rewound is loaded into memory for it.
    pub fn live_each(&self, mut take: impl FnMut(Event)) -> Result<(), JournalError> {
        if self.store.has_rewinds()? {
            self.live()?.into_iter().for_each(take);
            return Ok(());
        }
        self.store.each(&mut take)
    }

    /// The summary of the session, without reading unneeded events.
    pub fn summary(&self) -> Result<Option<SessionSummary>, JournalError> {
        let events = if self.store.has_rewinds()? { self.all()? } else { self.store.for_summary()? };
        Ok(summarise(&events))
    }

    /// The opening and every change of options on the live branch.
    pub fn settings(&self) -> Result<Vec<Event>, JournalError> {
        if self.store.has_rewinds()? { self.live() } else { self.store.settings() }
    }

    /// The opening and the last run of the live branch.
    pub fn last_run(&self) -> Result<Vec<Event>, JournalError> {
        if self.store.has_rewinds()? { self.live() } else { self.store.last_run() }
    }

    /// The text of every task, including rewound ones.
    pub fn tasks(&self) -> Result<Vec<String>, JournalError> {
        let given = self.store.of_kind("task_given")?.into_iter();
        Ok(given
            .filter_map(|event| match event.fact {
                Fact::TaskGiven(given) => Some(given.text),
                _ => None,
            })
            .collect())
    }

    /// The last recorded request. Its digest covers every message before it.
    pub fn last_request(&self) -> Result<Option<Event>, JournalError> {
        self.store.last_of("model_asked")
    }

    /// The blobs of event bodies that were too large for a row.
    pub fn body_blobs(&self) -> Result<Vec<Digest>, JournalError> {
        self.store.body_blobs()
    }

    pub fn last(&self) -> Result<Seq, JournalError> {
        self.store.last()
    }

    /// A number that changes with each commit of any other connection. Reading it costs microseconds, so a process
    /// that tails the session polls it and reads events only when it changed.
    pub fn data_version(&self) -> Result<i64, JournalError> {
        self.store.number("PRAGMA data_version", "read")
    }
}
