//! Lookup of sessions and of their content.

use std::path::{Path, PathBuf};

use lathe_journal::{Index, JournalError, SessionReader, is_held, session_ids};
use lathe_protocol::{Event, Seq, SessionId, SessionOptions, SessionState, SessionSummary, Timestamp};

use crate::archive::Archive;
use crate::archive::garbage::session_files;
use crate::error::HostError;
use crate::session::opening_and_options;

impl Archive {
    /// All sessions, newest first. Updates the index for journals that it does not know or that are unfinished.
    pub fn sessions(&self) -> Result<Vec<SessionSummary>, HostError> {
        let folder = self.home().sessions();
        if !folder.exists() {
            self.home().check_makeable()?;
            return Ok(Vec::new());
        }
        let ids = session_ids(&folder)?;
        let index = Index::open(self.home().path()).ok();
        let known = index.as_ref().and_then(|index| index.list(None).ok()).unwrap_or_default();
        let mut found: Vec<SessionSummary> = Vec::with_capacity(ids.len());
        for id in ids {
            let settled =
                known.iter().find(|summary| summary.id == id).filter(|summary| is_settled(summary.state));
            let summary = match settled {
                Some(summary) => Some(summary.clone()),
                None => self.summary(&id),
            };
            found.extend(summary);
        }
        if let Some(index) = &index {
            for summary in found.iter().filter(|summary| !known.contains(summary)) {
                let _ = index.upsert(summary);
            }
        }
        found.sort_by(|a, b| b.updated.cmp(&a.updated).then_with(|| b.id.cmp(&a.id)));
        Ok(found)
    }

    /// The summary of a session, from its journal. None for one that cannot be read: [`unreadable`](Self::unreadable)
    /// names it.
    fn summary(&self, id: &SessionId) -> Option<SessionSummary> {
        self.read_summary(id).ok().flatten()
    }

    fn read_summary(&self, id: &SessionId) -> Result<Option<SessionSummary>, HostError> {
        let reader = SessionReader::open(&self.home().sessions(), id, self.home().blobs()?)?;
        let mut summary = reader.summary()?;
        if let Some(summary) = &mut summary
            && summary.state == SessionState::Running
            && !is_held(&self.home().sessions(), id)
        {
            summary.state = SessionState::Interrupted;
        }
        Ok(summary)
    }

    /// Sessions that are not among `read` because their journals cannot be read, each with the reason.
    pub fn unreadable(&self, read: &[SessionSummary]) -> Vec<(SessionId, HostError)> {
        let ids = session_ids(&self.home().sessions()).unwrap_or_default().into_iter();
        let left = ids.filter(|id| read.iter().all(|summary| summary.id != *id));
        left.filter_map(|id| self.read_summary(&id).err().map(|error| (id, error))).collect()
    }

    /// The reason why a session cannot be read, if a cheap check finds one ([`SessionReader::check`] says what it
    /// covers). A session that a process works on is not checked.
    pub fn damage(&self, id: &SessionId) -> Option<String> {
        let sessions = self.home().sessions();
        if is_held(&sessions, id) {
            return None;
        }
        match SessionReader::check(&sessions, id, self.home().blobs().ok()?) {
            Err(error @ JournalError::Damaged { .. }) => Some(error.to_string()),
            Ok(()) | Err(_) => None,
        }
    }

    /// The index entries of sessions whose journals can no longer be read.
    pub fn indexed_summaries(&self, ids: &[SessionId]) -> Vec<SessionSummary> {
        let known = Index::open(self.home().path()).and_then(|index| index.list(None)).unwrap_or_default();
        known.into_iter().filter(|summary| ids.contains(&summary.id)).collect()
    }

    /// Returns an error if a session that cannot be read was worked on after `chosen`, the newest readable one: then
    /// an older session is not the one that the user means. `chosen` is none if there is no readable session.
    fn check_newest(
        &self,
        sessions: &[SessionSummary],
        chosen: Option<&SessionSummary>,
        here: Option<&Path>,
    ) -> Result<(), HostError> {
        let known = || Index::open(self.home().path()).and_then(|index| index.list(None)).unwrap_or_default();
        for (id, error) in self.unreadable(sessions) {
            let elsewhere = |here: &Path| {
                known()
                    .iter()
                    .any(|summary| summary.id == id && !is_here(here, Path::new(&summary.workspace)))
            };
            let is_newer =
                chosen.is_none_or(|chosen| self.last_written(&id).is_none_or(|at| at >= chosen.updated));
            if is_newer && !here.is_some_and(elsewhere) {
                return Err(error);
            }
        }
        Ok(())
    }

    /// The time at which the files of a session were last written.
    fn last_written(&self, id: &SessionId) -> Option<Timestamp> {
        let times = session_files(&self.home().sessions(), id);
        let times = times.iter().filter_map(|file| file.metadata().ok()?.modified().ok());
        times.max().and_then(|at| Timestamp::try_from(at).ok())
    }

    /// The state of a session; none if it cannot be read.
    pub fn state(&self, id: &SessionId) -> Option<SessionState> {
        self.summary(id).map(|summary| summary.state)
    }

    /// The title of a session, or its first task.
    pub fn title(&self, id: &SessionId) -> Option<String> {
        self.summary(id).map(|summary| summary.title)
    }

    /// Writes a session's summary into the shared index. The index can be rebuilt, so a failure is ignored.
    pub fn update_index(&self, id: &SessionId) {
        let _one = self.index_lock.lock();
        if let (Some(summary), Ok(index)) = (self.summary(id), Index::open(self.home().store())) {
            let _ = index.upsert(&summary);
        }
    }

    /// Tells whether a living process works on a session.
    pub fn is_running(&self, id: &SessionId) -> bool {
        is_held(&self.home().sessions(), id)
    }

    /// The session a user means: by its id, by the beginning of the id, or the newest.
    pub fn find(&self, prefix: Option<&str>) -> Result<SessionId, HostError> {
        let Some(prefix) = prefix else {
            let sessions = self.sessions()?;
            let newest = sessions.first();
            self.check_newest(&sessions, newest, None)?;
            return newest.map(|summary| summary.id.clone()).ok_or(HostError::NoSessions);
        };
        if prefix.is_empty() {
            return Err(HostError::EmptyId);
        }
        // A journal that cannot be summarised can still be named.
        let all = session_ids(&self.home().sessions()).unwrap_or_default();
        let mut found: Vec<SessionId> =
            all.into_iter().filter(|id| id.as_str().starts_with(prefix)).collect();
        if let Some(exact) = found.iter().find(|id| id.as_str() == prefix) {
            return Ok(exact.clone());
        }
        match (found.pop(), found.is_empty()) {
            (None, _) => Err(HostError::NoSuchSession(prefix.to_owned())),
            (Some(id), true) => Ok(id),
            (Some(id), false) => {
                let mut found: Vec<String> = found.into_iter().chain([id]).map(|id| id.to_string()).collect();
                found.sort();
                Err(HostError::ManySessions { prefix: prefix.to_owned(), found })
            }
        }
    }

    /// The session whose files are in `folder` and that a user means: by id, or the newest that worked there.
    pub fn find_here(&self, prefix: Option<&str>, folder: &Path) -> Result<SessionId, HostError> {
        if prefix.is_some() {
            return self.find(prefix);
        }
        let here = current_folder(folder);
        let sessions = self.sessions()?;
        let found = sessions.iter().find(|summary| is_here(&here, Path::new(&summary.workspace)));
        self.check_newest(&sessions, found, Some(&here))?;
        found.map(|summary| summary.id.clone()).ok_or_else(|| HostError::NoSessionHere(here))
    }

    /// The folder a session works in.
    pub fn workspace(&self, id: &SessionId) -> Result<PathBuf, HostError> {
        let reader = SessionReader::open(&self.home().sessions(), id, self.home().blobs()?)?;
        let (opened, _) = opening_and_options(&reader)?;
        Ok(PathBuf::from(opened.workspace))
    }

    /// The current options of a session.
    pub fn options(&self, id: &SessionId) -> Result<SessionOptions, HostError> {
        let reader = SessionReader::open(&self.home().sessions(), id, self.home().blobs()?)?;
        Ok(opening_and_options(&reader)?.1)
    }

    /// The opening and the last run of a session.
    pub fn last_run(&self, id: &SessionId) -> Result<Vec<Event>, HostError> {
        self.repair_leftovers(id)?;
        Ok(SessionReader::open(&self.home().sessions(), id, self.home().blobs()?)?.last_run()?)
    }

    /// The text of every task that a session was ever given.
    pub fn tasks(&self, id: &SessionId) -> Result<Vec<String>, HostError> {
        Ok(SessionReader::open(&self.home().sessions(), id, self.home().blobs()?)?.tasks()?)
    }

    /// The number of the last event of a session.
    pub fn last_seq(&self, id: &SessionId) -> Result<Seq, HostError> {
        Ok(SessionReader::open(&self.home().sessions(), id, self.home().blobs()?)?.last()?)
    }

    /// The live branch of a session, even while another process writes it.
    pub fn events(&self, id: &SessionId) -> Result<Vec<Event>, HostError> {
        self.repair_leftovers(id)?;
        Ok(SessionReader::open(&self.home().sessions(), id, self.home().blobs()?)?.live()?)
    }
}

/// The folder the user works in, even if that folder no longer exists.
pub(crate) fn current_folder(folder: &Path) -> PathBuf {
    let from_variable = || std::env::var_os("PWD").map(PathBuf::from).unwrap_or_default();
    let folder = if folder.as_os_str().is_empty() { from_variable() } else { folder.to_owned() };
    folder.canonicalize().unwrap_or(folder)
}

/// Tells whether a workspace contains a folder, or was in it and no longer exists.
pub(crate) fn is_here(here: &Path, workspace: &Path) -> bool {
    here.starts_with(workspace)
        || (!here.as_os_str().is_empty() && workspace.starts_with(here) && !workspace.exists())
}

fn is_settled(state: SessionState) -> bool {
    match state {
        SessionState::Completed | SessionState::Error | SessionState::Cancelled => true,
        SessionState::New | SessionState::Running | SessionState::Interrupted => false,
    }
}
