//! Reading a session, from this process or another, whether or not it is being written.

use std::path::Path;

use lathe_blobs::Blobs;
use lathe_protocol::{Dangling, Digest, Event, Fact, RunNo, Seq, SessionId, StepNo};

use crate::files::Files;
use crate::store::Store;
use crate::summary::{Summary, summarise};
use crate::{JournalError, live};

/// Reads events. Any number may be open; none takes the lock or writes the main file.
#[derive(Debug)]
pub struct Reader {
    store: Store,
}

impl Reader {
    pub fn open(sessions: &Path, id: &SessionId, blobs: Blobs) -> Result<Self, JournalError> {
        Self::of(&Files::of(sessions, id)?, blobs)
    }

    pub(crate) fn of(files: &Files, blobs: Blobs) -> Result<Self, JournalError> {
        Store::open_to_read(files, blobs).map(|store| Self { store })
    }

    /// Up to `limit` events after `cursor`, in order. It may give events that their writer has not yet
    /// acknowledged: they are committed all the same.
    pub fn after(&self, cursor: Seq, limit: usize) -> Result<Vec<Event>, JournalError> {
        self.store.after(cursor, limit)
    }

    /// What a view that wants to begin with the run at `upto` must know of what came before, and the event it then begins
    /// after.
    pub fn landmarks(&self, upto: Seq) -> Result<(Vec<Event>, Seq), JournalError> {
        self.store.landmarks(upto)
    }

    /// The events of one step, those of branches that were left included.
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

    /// The current branch.
    pub fn live(&self) -> Result<Vec<Event>, JournalError> {
        Ok(live(self.all()?))
    }

    /// Whether something was ever rewound: if not, every event is on the current branch.
    pub fn has_rewinds(&self) -> Result<bool, JournalError> {
        self.store.has_rewinds()
    }

    /// The current branch, one event at a time. Only a journal that was rewound is taken into memory for it.
    pub fn live_each(&self, mut take: impl FnMut(Event)) -> Result<(), JournalError> {
        if self.store.has_rewinds()? {
            self.live()?.into_iter().for_each(take);
            return Ok(());
        }
        self.store.each(&mut take)
    }

    /// The session in one line, without reading what a summary does not need.
    pub fn summary(&self) -> Result<Option<Summary>, JournalError> {
        let events = if self.store.has_rewinds()? { self.all()? } else { self.store.for_summary()? };
        Ok(summarise(&events))
    }

    /// The opening and every change of options on the current branch.
    pub fn settings(&self) -> Result<Vec<Event>, JournalError> {
        if self.store.has_rewinds()? { self.live() } else { self.store.settings() }
    }

    /// The opening and the last run of the current branch.
    pub fn last_run(&self) -> Result<Vec<Event>, JournalError> {
        if self.store.has_rewinds()? { self.live() } else { self.store.last_run() }
    }

    /// The text of every task that was ever given, those that were rewound included.
    pub fn tasks(&self) -> Result<Vec<String>, JournalError> {
        let given = self.store.of_kind("task_given")?.into_iter();
        Ok(given
            .filter_map(|event| match event.fact {
                Fact::TaskGiven(given) => Some(given.text),
                _ => None,
            })
            .collect())
    }

    /// The last request on record. Its digest is that of every message before it.
    pub fn last_asked(&self) -> Result<Option<Event>, JournalError> {
        self.store.last_of("model_asked")
    }

    /// The blobs that bodies of events were put into because of their size.
    pub fn body_blobs(&self) -> Result<Vec<Digest>, JournalError> {
        self.store.body_blobs()
    }

    pub fn last(&self) -> Result<Seq, JournalError> {
        self.store.last()
    }

    /// A number that is another one after each commit of any other connection. Asking costs microseconds, so
    /// a process that tails the session asks this and reads only when it changed.
    pub fn data_version(&self) -> Result<i64, JournalError> {
        self.store.number("PRAGMA data_version", "read")
    }
}
