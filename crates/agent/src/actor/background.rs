//! Background processes at the end of a run and of the session: their changes are recorded before the end is.

use std::sync::Arc;

use lathe_tools::LateChanges;

use super::{Actor, AgentError};
use crate::effects::{self, ActorMessage};
use crate::next::Action;

impl Actor {
    /// Tells whether an action must wait for a scan of background processes. After the scan the next action is
    /// decided again.
    pub(super) fn must_settle_first(&mut self, action: &Action) -> bool {
        let ends = matches!(action, Action::Finish { .. } | Action::Judge { .. });
        let settled = std::mem::take(&mut self.settled);
        if !ends || settled || !self.setup.toolbox.services().has_background_lines() {
            return false;
        }
        self.comparing = true;
        self.tasks.spawn(effects::settle(Arc::clone(&self.setup.toolbox), self.inbox_sender.clone()));
        true
    }

    pub(super) fn background_settled(&mut self, late: Option<LateChanges>) -> Result<(), AgentError> {
        (self.comparing, self.settled) = (false, true);
        let changed = late.is_some();
        self.record_late(late)?;
        self.tasks.spawn(effects::hold(Arc::clone(&self.setup.toolbox), changed));
        Ok(())
    }

    /// Keeps a way to undo what background processes do from now on: the journal has the changes found so far.
    pub(super) fn hold_background(&mut self) {
        if self.setup.toolbox.services().has_background_lines() {
            self.tasks.spawn(effects::hold(Arc::clone(&self.setup.toolbox), false));
        }
    }

    /// Ends the shell. The changes of its background processes until then are recorded.
    pub(super) async fn close_shell(&mut self) -> Result<(), AgentError> {
        let toolbox = Arc::clone(&self.setup.toolbox);
        let closing = toolbox.services().close();
        tokio::pin!(closing);
        let late = loop {
            tokio::select! {
                biased;
                // No other message is handled any more: no question is asked and nothing begins.
                message = self.inbox.recv() => if let Some(ran @ ActorMessage::CommandEnded { .. }) = message {
                    self.receive(ran)?;
                },
                late = &mut closing => break late,
            }
        };
        let changed = late.is_some();
        self.record_late(late)?;
        if changed {
            toolbox.services().hold_background(true).await;
        }
        Ok(())
    }

    fn record_late(&mut self, late: Option<LateChanges>) -> Result<(), AgentError> {
        late.map_or(Ok(()), |late| self.append(self.at_call(late.call), late.ran))
    }
}
