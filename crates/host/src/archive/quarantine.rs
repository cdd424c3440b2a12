//! The quarantine of what lines removed: listed, restored, and collected after some days.

use std::path::{Path, PathBuf};

use lathe_changes::restore::{Planned, RestoreStep};
use lathe_changes::{
    LineOrigin, Quarantine, QuarantineEntry, RestoreReport, RestoredEntry, SetAside, UnfinishedLine,
};
use lathe_protocol::{CallId, Digest, Event, Fact, Seq, SessionId};
use serde::Serialize;

use crate::archive::Archive;
use crate::archive::lookup::{current_folder, is_here};
use crate::archive::restoring::relative_name;
use crate::archive::rewind::{PathAct, RewindReport};
use crate::error::HostError;

/// An entry of the quarantine: what one line removed.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct KeptEntry(QuarantineEntry);

impl KeptEntry {
    pub fn id(&self) -> &str {
        &self.0.id
    }

    pub fn line(&self) -> &str {
        &self.0.line
    }

    /// The folder worked in.
    pub fn folder(&self) -> &Path {
        &self.0.folder
    }

    /// Number of files.
    pub fn files(&self) -> u64 {
        self.0.files
    }

    /// Number of changes that no session has recorded.
    pub fn changes(&self) -> usize {
        self.0.changes.len()
    }

    /// Names of git refs.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.refs.iter().map(|kept| kept.name.as_str())
    }

    /// Repositories that the line broke.
    pub fn repositories(&self) -> impl Iterator<Item = &Path> {
        self.0.repositories.iter().map(|kept| kept.path.as_path())
    }
}

/// The result of restoring an entry of the quarantine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuarantineRestore {
    pub id: String,
    pub done: Vec<String>,
    /// Paths that are left as they are, each with the reason.
    pub left: Vec<(String, String)>,
}

impl Archive {
    /// Entries of the quarantine, oldest first.
    pub fn quarantine_list(&self) -> Vec<KeptEntry> {
        self.quarantine_entries().into_iter().map(KeptEntry).collect()
    }

    /// Entries of the quarantine, oldest first. Those that a killed process left unfinished are finished first.
    pub(crate) fn quarantine_entries(&self) -> Vec<QuarantineEntry> {
        let quarantine = self.quarantine();
        for left in quarantine.unfinished() {
            self.finish_entry(left);
        }
        quarantine.entries()
    }

    /// Makes an entry of what a killed process kept for its line, with the changes of the line where no session has
    /// recorded them.
    fn finish_entry(&self, left: UnfinishedLine) {
        let UnfinishedLine { keeping, note, scratch, aside, .. } = left;
        self.record_set_aside(&note, &aside);
        let scratch = scratch.map(SessionId::new);
        let recovered = scratch.as_ref().and_then(|id| {
            let options =
                self.tracker_options(id, &self.home().workspace(&note.folder), Vec::new()).ok().flatten()?;
            lathe_changes::recover(options).ok().flatten()
        });
        let call = CallId::new(&note.call);
        let changes = recovered.map_or_else(Vec::new, |found| found.compared.changes);
        let changes = lathe_tools::journal_changes(changes, &call, &self.display_redactor());
        if keeping.finish(note, changes).is_ok()
            && let Some(id) = scratch
        {
            lathe_changes::discard(&self.scratch(&id));
        }
    }

    /// Records what was set aside of a killed line, for the process that closes its call.
    fn record_set_aside(&self, note: &LineOrigin, aside: &[SetAside]) {
        let Some(session) = note.session.as_ref().filter(|_| !aside.is_empty()) else { return };
        let path = self.scratch(&SessionId::new(session)).join(ASIDE);
        let mut all = read_aside(&path);
        all.extend(aside.iter().map(|one| (note.call.clone(), lathe_tools::aside_note(one))));
        let _ = serde_json::to_vec(&all).map(|text| std::fs::write(path, text));
    }

    /// The programs that were set aside of a session's killed lines: the call, and the text about it.
    pub(crate) fn recorded_set_aside(&self, session: &SessionId) -> Vec<(String, String)> {
        read_aside(&self.scratch(session).join(ASIDE))
    }

    /// Forgets what was recorded, once a result reports it.
    pub(crate) fn forget_set_aside(&self, session: &SessionId) {
        let _ = std::fs::remove_file(self.scratch(session).join(ASIDE));
    }

    /// Restores an entry of the quarantine; without an id the newest of the folder that the user works in. The
    /// beginning of the id is enough.
    pub fn restore_entry(&self, id: Option<&str>, folder: &Path) -> Result<QuarantineRestore, HostError> {
        if id.is_some_and(str::is_empty) {
            return Err(HostError::EmptyId);
        }
        let (entries, here) = (self.quarantine_entries(), current_folder(folder));
        let is_meant = |kept: &&QuarantineEntry| match id {
            Some(id) => kept.id.starts_with(id),
            None => is_here(&here, &kept.folder),
        };
        let mut found = entries.iter().filter(is_meant);
        let kept = match (found.next_back(), found.next_back()) {
            (Some(kept), None) => kept,
            (Some(kept), Some(_)) if id.is_none_or(|id| id == kept.id) => kept,
            (Some(_), Some(_)) => {
                return Err(HostError::Rewind(
                    "several entries begin with this id; give more of it".to_owned(),
                ));
            }
            (None, _) if id.is_none() && !entries.is_empty() => {
                return Err(HostError::Rewind(
                    "the quarantine has no entry for this folder; `lathe quarantine list` shows those for others, which are restored by id"
                        .to_owned(),
                ));
            }
            (None, _) => {
                return Err(HostError::NoSuchEntry(id.unwrap_or_default().to_owned()));
            }
        };
        let back = self
            .quarantine()
            .restore(kept, &self.home().blobs()?)
            .map_err(|error| HostError::Rewind(error.to_string()))?;
        Ok(QuarantineRestore { id: kept.id.clone(), done: back.done, left: back.left })
    }

    /// Blobs that entries need.
    pub(crate) fn quarantine_blobs(&self) -> Vec<Digest> {
        let changes = self.quarantine_entries().into_iter().flat_map(|kept| kept.changes);
        changes.flat_map(|change| [change.before, change.after]).flatten().collect()
    }

    /// Entries of a session's calls.
    pub(crate) fn entries_of_calls(&self, session: &SessionId, calls: &[String]) -> Vec<QuarantineEntry> {
        self.entries_of(session).into_iter().filter(|kept| calls.contains(&kept.call)).collect()
    }

    fn entries_of(&self, session: &SessionId) -> Vec<QuarantineEntry> {
        let mut kept = self.quarantine_entries();
        kept.retain(|kept| kept.session.as_deref() == Some(session.as_str()));
        kept
    }

    fn restored_entries_of(&self, session: &SessionId) -> Vec<RestoredEntry> {
        let mut returned = self.quarantine().restored();
        returned.retain(|one| one.kept.session.as_deref() == Some(session.as_str()));
        returned
    }

    /// The exchange for a rewind to the state after an event: at that point the calls that ended later had removed
    /// nothing, and what earlier ones removed was where it was then. `later` are the calls that ended later.
    pub(crate) fn exchange_for_rewind(&self, session: &SessionId, end: Seq, later: &[String]) -> Exchange {
        let is_out = |kept: &QuarantineEntry| {
            let acts = kept.acts.iter().filter(|act| **act < end.0).count();
            later.contains(&kept.call) || acts % 2 == 1
        };
        let mut exchange =
            Exchange { back: self.entries_of(session), again: self.restored_entries_of(session) };
        exchange.back.retain(is_out);
        exchange.again.retain(|one| !is_out(&one.kept));
        exchange
    }

    /// The exchange for the undo of an act: what its calls removed is restored, and what the act itself restored or
    /// removed again gets back its earlier state.
    pub(crate) fn exchange_for_undo(
        &self,
        session: &SessionId,
        events: &[Event],
        act: Seq,
        calls: &[String],
    ) -> Exchange {
        let is_of_act =
            |kept: &QuarantineEntry| kept.acts.last().and_then(|by| restored_after(events, *by)) == Some(act);
        let mut exchange =
            Exchange { back: self.entries_of(session), again: self.restored_entries_of(session) };
        exchange.back.retain(|kept| calls.contains(&kept.call) || is_of_act(kept));
        exchange.again.retain(|one| is_of_act(&one.kept));
        exchange
    }

    /// The acts of a session that exchanged something with the quarantine.
    pub(crate) fn exchanging_acts(&self, session: &SessionId, events: &[Event]) -> Vec<Seq> {
        let (kept, returned) = (self.entries_of(session), self.restored_entries_of(session));
        let acts =
            kept.iter().chain(returned.iter().map(|one| &one.kept)).filter_map(|kept| kept.acts.last());
        acts.filter_map(|by| restored_after(events, *by)).collect()
    }
}

/// The file next to the copies of a session's tracker.
const ASIDE: &str = "aside.json";

fn read_aside(path: &Path) -> Vec<(String, String)> {
    std::fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// The act that comes after an event: each act records what it restored.
fn restored_after(events: &[Event], by: u64) -> Option<Seq> {
    let later = events.iter().filter(|event| event.seq.0 > by);
    later.map(|event| (event.seq, &event.fact)).find_map(|(seq, fact)| match fact {
        Fact::FilesRestored(_) => Some(seq),
        _ => None,
    })
}

/// The entries that a rewind or undo moves out of the quarantine, and into it again.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    /// The oldest first.
    back: Vec<QuarantineEntry>,
    again: Vec<RestoredEntry>,
}

const BROUGHT_BACK: &str = "brought back from the quarantine";
const TAKEN_AGAIN: &str = "taken away again, and kept in the quarantine";

impl Exchange {
    /// Drops entries whose content the plan replaces by something earlier, and removes those conflicts that the
    /// quarantine resolves: files that are too large for the store.
    pub(crate) fn fit_to_plan(
        &mut self,
        quarantine: &Quarantine,
        plan: &[Planned],
        report: &mut RewindReport,
    ) {
        let is_restored = |path: &PathBuf| {
            let is_path =
                |planned: &&Planned| planned.wanted.path == *path && planned.step == RestoreStep::Restore;
            plan.iter().find(is_path).is_some_and(|planned| planned.wanted.want.is_some())
        };
        let is_rest = |kept: &QuarantineEntry| {
            let is_more = !kept.repositories.is_empty() || !kept.refs.is_empty() || !kept.changes.is_empty();
            is_more || !quarantine.missing_paths(kept).iter().all(is_restored)
        };
        self.back.retain(is_rest);
        let missing = plan.iter().filter(|planned| matches!(planned.step, RestoreStep::MissingBlob { .. }));
        for planned in missing.filter(|planned| planned.wanted.now.is_none()) {
            let path = &planned.wanted.path;
            if self.back.iter().any(|kept| kept.trees.iter().any(|tree| path.starts_with(tree))) {
                let shown = relative_name(Path::new(&report.folder), path);
                report.conflicts.retain(|act| act.path != shown);
            }
        }
    }

    /// The ids of the entries, in the order in which they are exchanged.
    pub(crate) fn ids(&self) -> (Vec<String>, Vec<String>) {
        let back = self.back.iter().rev().map(|kept| kept.id.clone());
        (back.collect(), self.again.iter().map(|one| one.kept.id.clone()).collect())
    }

    /// Adds to the report what would be done.
    pub(crate) fn add_preview(&self, report: &mut RewindReport) {
        for kept in self.back.iter().rev() {
            let repositories = kept.repositories.iter().map(|one| &one.path);
            let trees = repositories.chain(&kept.trees).map(|path| path.display().to_string());
            let names = kept.refs.iter().map(|kept| kept.name.clone());
            report.restored.extend(trees.chain(names).map(|path| act(&path, BROUGHT_BACK)));
        }
        let again = self.again.iter().flat_map(RestoredEntry::names);
        report.restored.extend(again.map(|path| act(&path, TAKEN_AGAIN)));
    }
}

/// The result of an exchange with the quarantine.
#[derive(Debug, Default)]
pub(crate) struct Exchanged {
    pub(crate) again: Vec<RestoreReport>,
    pub(crate) back: Vec<RestoreReport>,
}

/// The report of an entry that could not be exchanged; the others are exchanged all the same.
pub(crate) fn failed_exchange(id: &str, error: impl std::fmt::Display) -> RestoreReport {
    let mut back = RestoreReport::default();
    back.left.push((format!("the entry {id} of the quarantine"), error.to_string()));
    back
}

impl Exchanged {
    /// Adds to the report what was done, and what an undo of it does not remove.
    pub(crate) fn add_to_report(&self, report: &mut RewindReport) {
        for (all, words) in [(&self.again, TAKEN_AGAIN), (&self.back, BROUGHT_BACK)] {
            for one in all {
                report.restored.extend(one.done.iter().map(|path| act(path, words)));
                report.conflicts.extend(one.left.iter().map(|(path, why)| act(path, why)));
                report.stays.extend(one.stays.iter().cloned());
            }
        }
    }
}

fn act(path: &str, act: &str) -> PathAct {
    PathAct { path: path.to_owned(), act: act.to_owned() }
}
