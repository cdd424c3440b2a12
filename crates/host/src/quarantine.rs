//! What lines took away and the quarantine keeps: listed, put back, thrown away after some days.

use std::path::Path;

use lathe_changes::{Kept, PutBack, Unfinished};
use lathe_protocol::{CallId, Digest, SessionId};

use crate::error::HostError;
use crate::lookup::{is_here, standing};
use crate::rewind::{PathAct, Really, Undone};
use crate::session::Host;

impl Host {
    /// What is kept, the oldest first.
    pub fn kept(&self) -> Vec<Kept> {
        let quarantine = self.quarantine();
        for left in quarantine.unfinished() {
            self.finish_kept(left);
        }
        quarantine.entries()
    }

    /// Makes an entry of what a killed process kept for its line, with what the line changed where no session knows it.
    fn finish_kept(&self, left: Unfinished) {
        let Unfinished { keeping, note, scratch, .. } = left;
        let scratch = scratch.map(SessionId::new);
        let recovered = scratch.as_ref().and_then(|id| {
            let options = self.tracking(id, &note.folder, Vec::new()).ok().flatten()?;
            lathe_changes::recover(options).ok().flatten()
        });
        let call = CallId::new(&note.call);
        let changes = recovered.map_or_else(Vec::new, |found| found.compared.changes);
        let changes = lathe_tools::recorded(changes, &call, &self.screen());
        if keeping.finish(note, changes).is_ok()
            && let Some(id) = scratch
        {
            lathe_changes::discard(&self.scratch(&id));
        }
    }

    /// Puts back what an entry holds; where none is named, the newest of the folder somebody stands in. The beginning of its
    /// id will do.
    pub fn restore_kept(&self, id: Option<&str>, folder: &Path) -> Result<(Kept, PutBack), HostError> {
        let (entries, here) = (self.kept(), standing(folder));
        let is_meant = |kept: &&Kept| match id {
            Some(id) => kept.id.starts_with(id),
            None => is_here(&here, &kept.folder),
        };
        let mut found = entries.iter().filter(is_meant);
        let kept = match (found.next_back(), found.next_back()) {
            (Some(kept), None) => kept,
            (Some(kept), Some(_)) if id.is_none_or(|id| id == kept.id) => kept,
            (Some(_), Some(_)) => {
                return Err(HostError::Rewind("several entries begin like this; name more of it".to_owned()));
            }
            (None, _) if id.is_none() && !entries.is_empty() => {
                return Err(HostError::Rewind(
                    "nothing is kept of this folder; `lathe quarantine list` shows what is kept of others, and an id names it"
                        .to_owned(),
                ));
            }
            (None, _) => {
                return Err(HostError::Rewind(
                    "there is no such entry; `lathe quarantine list` shows them".to_owned(),
                ));
            }
        };
        let back = self
            .quarantine()
            .restore(kept, &self.home().blobs()?)
            .map_err(|error| HostError::Rewind(error.to_string()))?;
        Ok((kept.clone(), back))
    }

    /// Blobs that entries need.
    pub(crate) fn kept_blobs(&self) -> Vec<Digest> {
        let changes = self.kept().into_iter().flat_map(|kept| kept.changes);
        changes.flat_map(|change| [change.before, change.after]).flatten().collect()
    }

    /// Entries of a session's calls.
    pub(crate) fn kept_of(&self, session: &SessionId, calls: &[String]) -> Vec<Kept> {
        let ours =
            |kept: &Kept| kept.session.as_deref() == Some(session.as_str()) && calls.contains(&kept.call);
        self.kept().into_iter().filter(ours).collect()
    }

    /// Puts entries back, newest first, beside what the journal brings back.
    pub(crate) fn put_back_kept(
        &self,
        entries: &[Kept],
        really: Really,
        undone: &mut Undone,
    ) -> Result<(), HostError> {
        let act = |path: &String, act: &str| PathAct { path: path.clone(), act: act.to_owned() };
        for kept in entries.iter().rev() {
            if really == Really::Preview {
                let repositories = kept.repositories.iter().map(|one| &one.path);
                let trees = repositories.chain(&kept.trees).map(|path| path.display().to_string());
                let names = kept.refs.iter().map(|kept| kept.name.clone());
                undone
                    .restored
                    .extend(trees.chain(names).map(|path| act(&path, "brought back from the quarantine")));
                continue;
            }
            let back = self
                .quarantine()
                .restore(kept, &self.home().blobs()?)
                .map_err(|error| HostError::Rewind(error.to_string()))?;
            undone
                .restored
                .extend(back.done.iter().map(|path| act(path, "brought back from the quarantine")));
            undone.conflicts.extend(back.left.iter().map(|(path, why)| act(path, why)));
        }
        Ok(())
    }
}
