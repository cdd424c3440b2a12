//! Facts that are read when they are first used: most questions touch few files.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, MutexGuard};
use rusqlite::{Connection, OptionalExtension as _};

use crate::facts::{Facts, Gap};
use crate::hash::checksum;
use crate::pack::unpack;

/// The connection that a store and its snapshots share. A rebuilt database gets a new one, so a snapshot never meets
/// numbers of contents that are not its own.
pub struct FactsSource {
    db: Mutex<Connection>,
    /// True if something that should be there could not be read.
    lost: AtomicBool,
    damaged: Mutex<Vec<i64>>,
}

impl FactsSource {
    pub fn new(db: Connection) -> Arc<Self> {
        Arc::new(Self { db: Mutex::new(db), lost: false.into(), damaged: Mutex::default() })
    }

    pub fn db(&self) -> MutexGuard<'_, Connection> {
        self.db.lock()
    }

    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Contents whose facts could not be read. The call resets the list.
    pub fn take_damaged(&self) -> Vec<i64> {
        self.lost.store(false, Ordering::Relaxed);
        std::mem::take(&mut *self.damaged.lock())
    }

    pub fn facts(&self, content: i64) -> Option<Facts> {
        let bytes: Option<Vec<u8>> = {
            let db = self.db();
            let mut query = db.prepare_cached("SELECT facts FROM contents WHERE id = ?1").ok()?;
            query.query_row([content], |row| row.get(0)).optional().ok()?
        };
        bytes.as_deref().and_then(unpack)
    }

    /// A section of the index. A section that is not as it was written counts as lost.
    pub fn section(&self, id: i64) -> Box<[u8]> {
        match self.read_section(id) {
            Ok((bytes, sum)) if checksum(&bytes) == sum => bytes.into(),
            _ => {
                self.lost.store(true, Ordering::Relaxed);
                Box::default()
            }
        }
    }

    fn read_section(&self, id: i64) -> Result<(Vec<u8>, i64), rusqlite::Error> {
        let db = self.db();
        let sum = db
            .prepare_cached("SELECT checksum FROM derived WHERE id = ?1")?
            .query_row([id], |row| row.get(0))?;
        // Directly from the file: a query would first assemble it in memory of its own.
        let blob = db.blob_open("main", "derived", "value", id, true)?;
        let mut bytes = vec![0; blob.len()];
        blob.read_at_exact(&mut bytes, 0)?;
        Ok((bytes, sum))
    }
}

/// The facts of one content.
pub struct LazyFacts {
    content: i64,
    source: Arc<FactsSource>,
    facts: OnceLock<Facts>,
}

impl LazyFacts {
    pub fn new(content: i64, source: Arc<FactsSource>) -> Self {
        Self { content, source, facts: OnceLock::new() }
    }

    pub fn read(&self) {
        let _: &Facts = self;
    }
}

impl std::fmt::Debug for LazyFacts {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "facts of content {}", self.content)
    }
}

impl Deref for LazyFacts {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        self.facts.get_or_init(|| {
            self.source.facts(self.content).unwrap_or_else(|| {
                self.source.damaged.lock().push(self.content);
                self.source.lost.store(true, Ordering::Relaxed);
                Facts::empty(Gap::Unreadable)
            })
        })
    }
}
