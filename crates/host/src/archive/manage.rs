//! Management of sessions: rename, remove, restore, export.

use std::path::PathBuf;
use std::time::SystemTime;

use lathe_journal::{Journal, SessionReader};
use lathe_protocol::{CommandId, Digest, Draft, EventPlace, RunNo, SessionId, SessionNamed, SessionOptions};

use crate::archive::Archive;
use crate::archive::garbage::{blobs_of, session_files};
use crate::archive::removed::{Removals, RemovedItem};
use crate::error::HostError;
use crate::session::{now, opening_and_options};

impl Archive {
    /// Gives a session that is not open anywhere a title.
    pub fn rename(&self, id: &SessionId, title: &str, command: CommandId) -> Result<(), HostError> {
        let mut journal = Journal::open(&self.home().sessions(), id, self.home().blobs()?)?;
        let run = journal.reader()?.last_run()?.last().map_or(RunNo(0), |event| event.place.run);
        let named = SessionNamed { title: title.to_owned(), command: Some(command) };
        journal.append(now(), Draft { place: EventPlace::in_run(run), fact: named.into() })?;
        journal.close()?;
        self.update_index(id);
        Ok(())
    }

    /// Removes a session that is not open anywhere, to a place from which it can be restored.
    pub fn remove(&self, id: &SessionId) -> Result<RemovedItem, HostError> {
        let workspace = self.workspace(id)?;
        // The journal is held meanwhile: no process opens it in between, and closing it puts everything into one
        // file.
        let journal = Journal::open(&self.home().sessions(), id, self.home().blobs()?)?;
        journal.close()?;
        let files = session_files(&self.home().sessions(), id);
        Removals::new(self.home()).remove_session(id.as_str(), &workspace, &files)
    }

    /// Restores a removed session, by the id of its removal.
    pub fn restore_session(&self, removal: &str) -> Result<RemovedItem, HostError> {
        let kept = Removals::new(self.home()).restore_session(removal, &self.home().sessions())?;
        self.update_index(&SessionId::new(&kept.path));
        Ok(kept)
    }

    /// Options of a removed session, from its journal where that lies now.
    pub fn removed_options(&self, removed: &RemovedItem) -> Result<SessionOptions, HostError> {
        let folder = Removals::new(self.home()).session_folder(&removed.id)?;
        let reader = SessionReader::open(&folder, &SessionId::new(&removed.path), self.home().blobs()?)?;
        Ok(opening_and_options(&reader)?.1)
    }

    /// Removed sessions, with the folders they worked in.
    pub fn removed_sessions(&self) -> Vec<RemovedItem> {
        let kept = Removals::new(self.home()).list(None).into_iter();
        kept.filter(|kept| kept.kind == "session").collect()
    }

    /// The events of a session, one line of JSON each, on every branch.
    pub fn json_lines(&self, id: &SessionId) -> Result<String, HostError> {
        let events = SessionReader::open(&self.home().sessions(), id, self.home().blobs()?)?.all()?;
        let lines = events.iter().filter_map(|event| serde_json::to_string(event).ok());
        Ok(lines.fold(String::new(), |text, line| text + &line + "\n"))
    }

    /// Bytes that an event of this session names. Those of other sessions are not found.
    pub fn session_blob(&self, id: &SessionId, digest: &Digest) -> Result<Option<Vec<u8>>, HostError> {
        let blobs = self.home().blobs()?;
        let reader = SessionReader::open(&self.home().sessions(), id, blobs.clone())?;
        let named = reader.all()?.iter().any(|event| blobs_of(&event.fact).contains(digest))
            || reader.body_blobs()?.contains(digest);
        Ok(if named { blobs.get(digest).ok().flatten() } else { None })
    }

    /// Trae's trajectory of one run, of the last if none is named.
    pub fn trajectory_of(&self, id: &SessionId, run: Option<RunNo>) -> Result<String, HostError> {
        let mut builder = crate::archive::trajectory::builder(run);
        self.events(id)?.iter().for_each(|event| builder.take(event));
        if let (Some(run), None) = (run, builder.run()) {
            return Err(HostError::NoSuchRun { id: id.clone(), run });
        }
        Ok(builder.to_json())
    }

    /// Folders of what was removed before this time.
    pub(crate) fn old_removals(&self, limit: SystemTime) -> Vec<PathBuf> {
        let places = std::fs::read_dir(self.home().removed()).into_iter().flatten().flatten();
        let is_old = |place: &std::fs::DirEntry| {
            place.metadata().and_then(|found| found.modified()).is_ok_and(|at| at < limit)
        };
        places.filter(is_old).map(|place| place.path()).collect()
    }

    /// Folders of removed sessions, whose blobs are still needed.
    pub(crate) fn removed_session_folders(&self) -> Vec<PathBuf> {
        Removals::new(self.home()).session_folders()
    }
}
