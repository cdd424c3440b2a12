//! Background processes at the end of a run and of the session: what they changed is recorded before the end is.

use std::sync::Arc;

use lathe_tools::LateChanges;

use super::{Actor, AgentError};
use crate::effects::{self, Inbox};
use crate::next::Action;

impl Actor {
    /// Tells whether an action has to wait for a look at background processes. What to do is decided anew after it.
    pub(super) fn settles_first(&mut self, action: &Action) -> bool {
        let ends = matches!(action, Action::Finish { .. } | Action::Judge { .. });
        let settled = std::mem::take(&mut self.settled);
        if !ends || settled || !self.setup.toolbox.services().has_left_lines() {
            return false;
        }
        self.looking = true;
        self.tasks.spawn(effects::settle(Arc::clone(&self.setup.toolbox), self.answers.clone()));
        true
    }

    pub(super) fn has_settled(&mut self, late: Option<LateChanges>) -> Result<(), AgentError> {
        (self.looking, self.settled) = (false, true);
        let changed = late.is_some();
        self.record_late(late)?;
        self.tasks.spawn(effects::hold(Arc::clone(&self.setup.toolbox), changed));
        Ok(())
    }

    /// Keeps the way back from what background processes do from now on: the journal has what was found so far.
    pub(super) fn hold_background(&mut self) {
        if self.setup.toolbox.services().has_left_lines() {
            self.tasks.spawn(effects::hold(Arc::clone(&self.setup.toolbox), false));
        }
    }

    /// Ends the shell. What its background processes changed until then is recorded.
    pub(super) async fn close_shell(&mut self) -> Result<(), AgentError> {
        let toolbox = Arc::clone(&self.setup.toolbox);
        let closing = toolbox.services().close();
        tokio::pin!(closing);
        let late = loop {
            tokio::select! {
                biased;
                // Nobody is asked and nothing is begun any more.
                message = self.inbox.recv() => if let Some(ran @ Inbox::Ran { .. }) = message {
                    self.receive(ran)?;
                },
                late = &mut closing => break late,
            }
        };
        let changed = late.is_some();
        self.record_late(late)?;
        if changed {
            toolbox.services().hold_left(true).await;
        }
        Ok(())
    }

    fn record_late(&mut self, late: Option<LateChanges>) -> Result<(), AgentError> {
        late.map_or(Ok(()), |late| self.append(self.at_call(late.call), late.ran))
    }
}
