//! The handle of a session that is open in this process.

use std::sync::Arc;

use lathe_agent::LocalHandle;
use lathe_protocol::{BoxFuture, Command, Event, EventStream, Receipt, Seq, SessionHandle};
use lathe_redact::Redactor;

use crate::archive::run_report::event_diff;

/// The actor's handle, with the parts needed to show changes.
#[derive(Clone)]
pub(crate) struct OpenHandle {
    pub(super) actor: LocalHandle,
    /// The folder worked in.
    pub(super) workspace: Arc<str>,
    /// Redacts the secrets in what is shown.
    pub(super) display_redactor: Arc<Redactor>,
}

impl SessionHandle for OpenHandle {
    fn submit(&self, command: Command) -> BoxFuture<'_, Receipt> {
        self.actor.submit(command)
    }

    fn subscribe(&self, cursor: Seq) -> Box<dyn EventStream> {
        self.actor.subscribe(cursor)
    }

    fn diff<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, String> {
        Box::pin(async move {
            event_diff(event, &self.workspace, &self.display_redactor, |id| self.actor.blob(id))
        })
    }
}
