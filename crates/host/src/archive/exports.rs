//! Reports over sessions: the page, the trajectory, the cost.

use lathe_journal::{SessionReader, session_ids};
use lathe_protocol::{Digest, SessionId};
use lathe_views::{CostReport, Language, SessionCost, html};

use crate::archive::Archive;
use crate::error::HostError;
use crate::models::budget::prices;
use crate::session::secrets::redacted_content;

impl Archive {
    /// The session as one self-contained page.
    pub fn html(&self, id: &SessionId, language: Language) -> Result<String, HostError> {
        let events = self.events(id)?;
        let blobs = self.home().blobs()?;
        let screen = self.display_redactor();
        let shown = |blob: &Digest| redacted_content(Some(&screen), blobs.get(blob).ok().flatten());
        Ok(screen.redact_text(&html(&events, &shown, language)).into_owned())
    }

    /// Trae's trajectory of the last run.
    pub fn trajectory(&self, id: &SessionId) -> Result<String, HostError> {
        let mut builder = crate::archive::trajectory::builder(None);
        self.events(id)?.iter().for_each(|event| builder.take(event));
        Ok(builder.to_json())
    }

    /// The cost of all sessions, including rewound steps: they were paid for. `$LATHE_HOME/prices.json` overrides
    /// prices.
    pub fn cost(&self) -> Result<CostReport, HostError> {
        let mut report = CostReport::new(prices(self.home())?);
        for id in self.ids()? {
            let Ok(reader) = SessionReader::open(&self.home().sessions(), &id, self.home().blobs()?) else {
                continue;
            };
            let Ok(events) = reader.all() else { continue };
            if let Some(cost) = SessionCost::of(&events) {
                report.add(cost);
            }
        }
        Ok(report)
    }

    pub(crate) fn ids(&self) -> Result<Vec<SessionId>, HostError> {
        if !self.home().sessions().exists() {
            return Ok(Vec::new());
        }
        Ok(session_ids(&self.home().sessions())?)
    }
}
