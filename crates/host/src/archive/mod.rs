//! The archive: sessions that were, and everything that is done with them but going on.
//!
//! It finds, reads, names, removes and forks sessions, takes their changes back, collects what none of them needs any more, and
//! tells what they cost. It needs Lathe's folder and nothing else: neither models nor rules nor a runtime.

pub(crate) mod replica;
pub(crate) mod travel;

pub(crate) mod claims;
pub(crate) mod exports;
pub(crate) mod frames;
pub(crate) mod layouts;
pub(crate) mod lookup;
pub(crate) mod manage;
pub(crate) mod quarantine;
pub(crate) mod removed;
pub(crate) mod repair;
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

/// Sessions that were, in one home.
pub struct Archive {
    home: Home,
    /// Secrets of sessions that were opened here: what is shown of them later does not show those.
    pub(crate) met: Mutex<Vec<(String, String)>>,
    /// Held while a fork is made: a repeated command finds what it has made.
    pub(crate) forking: Mutex<()>,
    /// Held from the look at a journal until the index says what was seen: what is older never replaces what is newer.
    pub(crate) noting: Mutex<()>,
}

impl Archive {
    pub fn new(home: Home) -> Self {
        Self { home, met: Mutex::default(), forking: Mutex::default(), noting: Mutex::default() }
    }

    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Keeps what lines take away and no copy can be kept of.
    pub(crate) fn keeper(&self, session: Option<&SessionId>) -> Keeper {
        Keeper { quarantine: self.quarantine(), session: session.map(SessionId::to_string), scratch: None }
    }

    pub(crate) fn quarantine(&self) -> Quarantine {
        Quarantine::new(self.home.quarantine())
    }
}
