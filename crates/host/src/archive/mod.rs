//! The archive: past sessions, and everything that is done with them except resuming.
//!
//! It finds, reads, names, removes and forks sessions, undoes their changes, collects what no session needs any more,
//! and reports what they cost. It needs only Lathe's folder: no models, no rules and no runtime.

pub(crate) mod fork_replay;
pub(crate) mod replica;

pub(crate) mod claims;
pub(crate) mod exports;
pub(crate) mod frames;
pub(crate) mod garbage;
pub(crate) mod lookup;
pub(crate) mod manage;
pub(crate) mod quarantine;
pub(crate) mod removed;
pub(crate) mod repair;
pub(crate) mod repository_guard;
pub(crate) mod restoring;
pub(crate) mod review;
pub(crate) mod rewind;
pub(crate) mod run_report;
pub(crate) mod set_aside;
pub(crate) mod trajectory;

use lathe_changes::Quarantine;
use lathe_protocol::SessionId;
use lathe_tools::Keeper;
use parking_lot::Mutex;

use crate::home::Home;

/// The sessions of one home.
pub struct Archive {
    home: Home,
    /// Secrets of sessions that were opened here: they are redacted in everything shown later.
    pub(crate) known_secrets: Mutex<Vec<(String, String)>>,
    /// Held while a fork is made, so that a repeated command finds the fork that it made before.
    pub(crate) fork_lock: Mutex<()>,
    /// Held from the reading of a journal until its summary is in the index, so that an older summary never replaces
    /// a newer one.
    pub(crate) index_lock: Mutex<()>,
}

impl Archive {
    pub fn new(home: Home) -> Self {
        Self {
            home,
            known_secrets: Mutex::default(),
            fork_lock: Mutex::default(),
            index_lock: Mutex::default(),
        }
    }

    pub fn home(&self) -> &Home {
        &self.home
    }

    /// The keeper that puts into the quarantine what lines remove and the blob store cannot hold.
    pub(crate) fn keeper(&self, session: Option<&SessionId>) -> Keeper {
        Keeper { quarantine: self.quarantine(), session: session.map(SessionId::to_string), scratch: None }
    }

    pub(crate) fn quarantine(&self) -> Quarantine {
        Quarantine::new(self.home.quarantine())
    }
}
