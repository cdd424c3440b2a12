//! A session that is open for writing in this process.

use std::path::Path;
use std::sync::Arc;

use lathe_agent::{AgentError, Lakeview};
use lathe_protocol::{ProposedText, SessionHandle, SessionId, SessionOptions};
use tokio::task::JoinHandle;

use crate::aside::lakeview::{Summariser, SummaryTask};
use crate::error::HostError;
use crate::session::handle::OpenHandle;

/// A session that is open for writing in this process.
pub struct OpenSession {
    pub id: SessionId,
    /// The folder worked in.
    pub workspace: String,
    pub options: SessionOptions,
    /// True if a task was left unfinished.
    pub unfinished: bool,
    /// True if something can be resumed: an unfinished task, or one that ended without success.
    pub can_resume: bool,
    /// Number of tools that the model has.
    pub tools: usize,
    pub tool_names: Vec<String>,
    pub(super) handle: OpenHandle,
    pub(super) actor: JoinHandle<Result<(), AgentError>>,
    /// Reads the folder into the code graph; stops when the session is closed or dropped.
    pub(super) indexing: Option<lathe_graph::BackgroundBuild>,
    /// Ignore files that its tools met and cannot use.
    pub(super) unread: lathe_search::UnreadRules,
    pub(super) lakeview: Result<Arc<Lakeview>, String>,
    /// The task that summarises each step.
    pub(crate) summary_task: Option<SummaryTask>,
}

impl OpenSession {
    /// The summariser of its steps, or the reason why there is none.
    pub fn lakeview(&self) -> Result<Summariser, String> {
        self.lakeview.clone().map(Summariser)
    }

    /// A sentence for each `.latheignore` below the folder that a tool met, that cannot be read, and that was not
    /// reported before.
    pub fn unread_ignore_files(&self) -> Vec<String> {
        let root = Path::new(&self.workspace);
        self.unread.take_unwarned(&root.canonicalize().unwrap_or_else(|_| root.to_owned()))
    }

    pub fn handle(&self) -> &dyn SessionHandle {
        &self.handle
    }

    /// The text of a file that the call of an open question proposes, or that the user made of it.
    pub async fn proposed(
        &self,
        question: lathe_protocol::Seq,
        text: Option<String>,
    ) -> Option<ProposedText> {
        self.handle.actor.proposed_text(question, text).await
    }

    /// An owned handle.
    pub fn shared_handle(&self) -> Arc<dyn SessionHandle> {
        Arc::new(self.handle.clone())
    }

    /// Closes the session; nothing that it started is left running.
    pub async fn close(self) -> Result<(), HostError> {
        self.handle.actor.close().await;
        let ended = self.actor.await;
        if let Some(indexing) = self.indexing {
            let _ = tokio::task::spawn_blocking(|| indexing.stop()).await;
        }
        match ended {
            Ok(ended) => Ok(ended?),
            Err(error) => Err(HostError::Crashed(error.to_string())),
        }
    }
}
