//! Files that another session wrote too.
//!
//! Two sessions may work in one folder at the same time, and the look at the tree after a line finds what both changed. Each
//! journal says what its session did; a file that is as another session left it is not taken back from under it.

use std::path::Path;

use lathe_changes::{TreeChange, Wanted};
use lathe_journal::Reader;
use lathe_protocol::{Event, SessionId, Timestamp};

use crate::session::Host;

impl Host {
    /// Marks what is as another session left it since then. A journal that cannot be read claims nothing.
    pub(crate) fn leave_to_other_sessions(
        &self,
        id: &SessionId,
        workspace: &Path,
        since: Timestamp,
        wanted: &mut [Wanted],
    ) {
        if wanted.is_empty() {
            return;
        }
        let (Ok(sessions), Ok(blobs)) = (self.sessions(), self.home().blobs()) else { return };
        let is_near = |other: &str| {
            let other = Path::new(other);
            other.starts_with(workspace) || workspace.starts_with(other)
        };
        for other in sessions {
            if other.id == *id || other.updated < since || !is_near(&other.workspace) {
                continue;
            }
            let events = Reader::open(&self.home().sessions(), &other.id, blobs.clone())
                .and_then(|reader| reader.all());
            let events = events.unwrap_or_default();
            let later = events.iter().filter(|event| event.at >= since);
            for change in later.flat_map(|event: &Event| event.fact.changes()).map(TreeChange::from) {
                let left = change.state_after();
                let same =
                    wanted.iter_mut().filter(|wanted| wanted.path == change.path && wanted.now == left);
                same.for_each(|wanted| wanted.foreign = true);
            }
        }
    }
}
