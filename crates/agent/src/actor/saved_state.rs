//! The saved state of a session, and its continuation by later events.

use lathe_protocol::{Digest, Event};
use serde::{Deserialize, Serialize};

use crate::state::State;

/// The state that is saved now and then, so that a long session is opened quickly.
#[derive(Serialize, Deserialize)]
pub(super) struct SavedState {
    pub(super) state: State,
    /// The chain over the messages up to the state's last event.
    pub(super) chain: Digest,
}

/// The state of a journal that is read one event at a time, from a snapshot on if there is one.
pub(super) struct StateFold {
    pub(super) saved: Option<State>,
    pub(super) state: Option<State>,
}

impl StateFold {
    pub(super) fn take(&mut self, event: &Event) {
        match (&mut self.state, &self.saved) {
            (None, _) => self.state = State::from_opening(event),
            // Events that the snapshot contains are not applied again.
            (Some(_), Some(saved)) if event.seq < saved.seq => {}
            (Some(state), Some(saved)) if event.seq == saved.seq => {
                state.clone_from(saved);
                self.saved = None;
            }
            (Some(state), _) => state.apply(event),
        }
    }
}
