//! Repair of what a killed process left open, done when its session is next read.
//!
//! A call that had begun and has no result may have changed files. Before it began, the state of the tree was written
//! to disk (for a line by `lathe_changes::recover`; for a file tool as its pledge). The process that next reads the
//! session, and finds that no process has it open, compares the tree with that state and closes the call with its
//! changes. From then on undo, rewind, diff and show treat them like any other change.

use std::path::{Path, PathBuf};

use lathe_changes::{
    BackgroundLine, Compared, Pledges, QuarantineEntry, Recovered, TrackerOptions, TreeChange, Watch,
    read_background_note, remove_background_note,
};
use lathe_journal::{Journal, JournalError, SessionReader};
use lathe_protocol::{
    CallFinished, CallId, Dangling, Draft, EventPlace, RunNo, SessionId, interrupted_result,
};
use lathe_tools::{background_event, journal_changes, left_protected_note};
use lathe_workspace::{LocalTree, Workspace, is_protected_in};

use crate::archive::Archive;
use crate::error::HostError;
use crate::session::folder::same_folder;
use crate::session::{now, opening_and_options};

/// Files, links and folders of a tree whose changes by shell lines can be undone.
const TRACKED_FILES: usize = 200_000;

/// Number of paths that the result of an interrupted call names.
const NAMED: usize = 20;

impl Archive {
    /// The pledges of a session: the records of what its file tools are about to change.
    pub(crate) fn pledges(&self, id: &SessionId) -> Pledges {
        Pledges::of(&self.scratch(id))
    }

    pub(crate) fn scratch(&self, id: &SessionId) -> PathBuf {
        self.home().baselines().join(id.as_str())
    }

    /// The options with which changes by shell lines are tracked. None for a root that is the whole machine, which is
    /// too much to watch, and for one that is not on this machine, which cannot be read. Lathe's own folder is
    /// excluded.
    pub(crate) fn tracker_options(
        &self,
        id: &SessionId,
        workspace: &Workspace,
        mut exclude: Vec<PathBuf>,
    ) -> Result<Option<TrackerOptions>, HostError> {
        let root = workspace.local().map(LocalTree::root);
        let Some(root) = root.filter(|root| root.parent().is_some()) else { return Ok(None) };
        exclude.push(self.home().path().to_owned());
        Ok(Some(TrackerOptions {
            root: root.to_owned(),
            blobs: self.home().blobs()?,
            scratch: self.scratch(id),
            limits: lathe_changes::TrackerLimits {
                files: TRACKED_FILES,
                ..lathe_changes::TrackerLimits::default()
            },
            exclude,
            watch: Watch::On,
        }))
    }

    /// Closes what a killed process left open in a session, if no process has it open now. A session that cannot be
    /// repaired is read as it is; resuming it reports the reason.
    pub(crate) fn repair_leftovers(&self, id: &SessionId) -> Result<(), HostError> {
        let reader = SessionReader::open(&self.home().sessions(), id, self.home().blobs()?)?;
        let has_left = read_background_note(&self.scratch(id)).is_some();
        if !self.has_unfinished_restore(id)
            && !has_left
            && !reader.dangling()?.iter().any(|call| call.started)
        {
            return Ok(());
        }
        drop(reader);
        match Journal::open(&self.home().sessions(), id, self.home().blobs()?) {
            Ok(mut journal) => {
                let repaired = self.repair(&mut journal);
                journal.close()?;
                match repaired {
                    // The folder is gone, or a different one: what the call changed in it cannot be found out.
                    Err(HostError::Folder { .. }) => Ok(()),
                    repaired => repaired,
                }
            }
            // It runs, or cannot be written at the moment.
            Err(JournalError::Held { .. } | JournalError::Denied { .. } | JournalError::Busy { .. }) => {
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The same repair for the process that holds the session.
    pub(crate) fn repair(&self, journal: &mut Journal) -> Result<(), HostError> {
        self.finish_restoring(journal)?;
        let calls = journal.dangling()?;
        let begun: Vec<&Dangling> = calls.iter().filter(|call| call.started).collect();
        let id = journal.id().clone();
        let left = read_background_note(&self.scratch(&id));
        if !begun.is_empty() || left.is_some() {
            let (opened, _) = opening_and_options(&journal.reader()?)?;
            let root = same_folder(&opened)?;
            // Half-written files, and folders made for them, are removed before the tree is inspected.
            let workspace = self.home().recovered(self.home().workspace(&root))?;
            // Before git is started there.
            let kept = self.quarantine_entries();
            let aside = self.recorded_set_aside(&id);
            let line = self.line_changes(&id, &workspace);
            let found = self.call_changes(&id, &root, &begun, &line);
            let kept: Vec<QuarantineEntry> =
                kept.into_iter().filter(|kept| kept.session.as_deref() == Some(id.as_str())).collect();
            journal.repair_with(now(), |call| {
                let compared = found.iter().find(|(known, _)| *known == call.call.as_str());
                let kept: Vec<&QuarantineEntry> =
                    kept.iter().filter(|kept| kept.call == call.call.as_str()).collect();
                let mut closed = self.closing_result(call, compared.map(|(_, compared)| compared), &kept);
                if let Some((_, Ok(compared))) = found.iter().find(|(known, _)| *known == call.call.as_str())
                {
                    for words in protected_left(&compared.changes, &root) {
                        closed.text.push_str(&format!("\n[{words}]"));
                        closed.broken.push(words);
                    }
                }
                for (_, words) in aside.iter().filter(|(by, _)| by == call.call.as_str()) {
                    closed.text.push_str(&format!("\n[{words}]"));
                    closed.broken.push(words.clone());
                }
                closed
            })?;
            if let (Some(left), Ok(Some(found))) = (left, line)
                && found.line == left.mark()
                && !found.compared.changes.is_empty()
            {
                self.record_background(journal, &root, left, found.compared)?;
            }
            self.forget_set_aside(&id);
            self.update_index(&id);
        }
        lathe_changes::discard(&self.scratch(&id));
        remove_background_note(&self.scratch(&id));
        Ok(())
    }

    /// Records what processes of a line changed after its end, until they were killed together with the process that
    /// ran them.
    fn record_background(
        &self,
        journal: &mut Journal,
        root: &Path,
        left: BackgroundLine,
        found: Compared,
    ) -> Result<(), HostError> {
        let call = CallId::new(left.call);
        let events = journal.reader()?.all()?;
        let place =
            events.iter().rev().map(|event| &event.place).find(|place| place.call.as_ref() == Some(&call));
        let place = place.cloned().unwrap_or_else(|| EventPlace::in_run(RunNo(0)).at_call(call.clone()));
        let changes = journal_changes(found.changes, &call, &self.display_redactor());
        let ran = background_event(left.line, root.display().to_string(), changes);
        journal.append(now(), Draft { place: EventPlace { cause: None, ..place }, fact: ran.into() })?;
        Ok(())
    }

    /// The changes of the tree since the last line of a killed process began.
    fn line_changes(&self, id: &SessionId, workspace: &Workspace) -> Result<Option<Recovered>, String> {
        self.record_outputs(id, workspace.root(), &[])
            .and_then(|outputs| self.tracker_options(id, workspace, outputs))
            .map_err(|error| error.to_string())
            .and_then(|options| {
                options.map_or(Ok(None), |options| {
                    lathe_changes::recover(options).map_err(|error| error.to_string())
                })
            })
    }

    /// The changes of each of these calls, or the reason why they are unknown.
    fn call_changes<'c>(
        &self,
        id: &SessionId,
        root: &Path,
        calls: &[&'c Dangling],
        line: &Result<Option<Recovered>, String>,
    ) -> Vec<(&'c str, Result<Compared, String>)> {
        let (pledges, blobs) = (self.pledges(id), self.home().blobs().map_err(|error| error.to_string()));
        let one = |call: &&'c Dangling| {
            let name = call.call.as_str();
            let edits = blobs
                .as_ref()
                .map_err(Clone::clone)
                .and_then(|blobs| pledges.recover(name, root, blobs).map_err(|error| error.to_string()));
            let found = match (line, edits) {
                (Ok(Some(line)), edits) if line.line == name => {
                    Ok(merged_changes(&line.compared, edits.ok()))
                }
                (Err(error), _) => Err(error.clone()),
                (Ok(_), edits) => edits,
            };
            (name, found)
        };
        calls.iter().map(one).collect()
    }

    /// The result of a call that was interrupted.
    fn closing_result(
        &self,
        call: &Dangling,
        found: Option<&Result<Compared, String>>,
        kept: &[&QuarantineEntry],
    ) -> CallFinished {
        let mut finished = interrupted_result(&call.name, call.started);
        let mut more = String::new();
        match found {
            None => {}
            Some(Err(reason)) => {
                finished.not_undoable.push(format!("what the interrupted call changed: {reason}"));
                more.push_str(" What it changed could not be found out.");
            }
            Some(Ok(compared)) => {
                let screen = self.display_redactor();
                finished.changes = journal_changes(compared.changes.clone(), &call.call, &screen);
                let held = |path: &Path| {
                    let repositories = kept.iter().flat_map(|kept| &kept.repositories).map(|one| &one.path);
                    let mut taken = kept.iter().flat_map(|kept| &kept.trees).chain(repositories);
                    taken.any(|tree| path.starts_with(tree))
                };
                let lost = compared.not_undoable.iter().filter(|lost| !held(&lost.path)).take(NAMED);
                finished.not_undoable =
                    lost.map(|lost| format!("{}: {}", lost.path.display(), lost.why)).collect();
                more.push_str(&changes_text(&finished, kept));
            }
        }
        finished.text.push_str(&more);
        if let Some(error) = &mut finished.error {
            error.message.push_str(&more);
        }
        finished
    }
}

/// The changes of a line: those that the scan of the tree found, and those that its commands recorded in addition.
fn merged_changes(line: &Compared, edits: Option<Compared>) -> Compared {
    let mut all = line.clone();
    let is_known = |path: &Path| {
        line.changes.iter().any(|change| change.path == path)
            || line.not_undoable.iter().any(|lost| lost.path == path)
    };
    let edits: Vec<TreeChange> = edits.map(|edits| edits.changes).unwrap_or_default();
    // A path that the scan found unchanged did not change, whatever a command did to it and undid.
    all.changes
        .extend(edits.into_iter().filter(|change| !is_known(&change.path) && line_skips(line, change)));
    all
}

/// The notes on protected names among the changes since a killed line began. They are not reverted: a user may have
/// changed them since then.
fn protected_left(changes: &[TreeChange], root: &Path) -> Vec<String> {
    let is_left = |path: &Path| path.strip_prefix(root).is_ok_and(|below| is_protected_in(root, below));
    let left = changes.iter().map(|change| &change.path).filter(|path| is_left(path)).take(NAMED);
    left.map(|path| left_protected_note(path)).collect()
}

/// Tells whether the scan of the tree leaves out the place of this change.
fn line_skips(line: &Compared, change: &TreeChange) -> bool {
    line.not_undoable.iter().any(|lost| change.path.starts_with(&lost.path))
}

fn changes_text(finished: &CallFinished, kept: &[&QuarantineEntry]) -> String {
    let trees = kept.iter().flat_map(|kept| &kept.trees);
    let held = trees.chain(kept.iter().flat_map(|kept| &kept.repositories).map(|one| &one.path));
    let held = held.map(|path| path.display().to_string());
    // HEAD moves with its branch.
    let names = kept.iter().flat_map(|kept| &kept.refs).filter(|kept| kept.name != "HEAD");
    let held: Vec<String> = held.chain(names.map(|kept| kept.name.clone())).take(NAMED).collect();
    let kept = match held.as_slice() {
        [] => String::new(),
        held => format!(" What it took away is kept, and `lathe undo` brings it back: {}.", held.join(", ")),
    };
    let changed = match finished.changes.len() {
        0 if kept.is_empty() => " No file was changed by it.".to_owned(),
        0 => String::new(),
        count => {
            let names = finished.changes.iter().take(NAMED).map(|change| change.path.as_str());
            let names = names.collect::<Vec<_>>().join(", ");
            let rest = if count > NAMED { format!(" and {} more", count - NAMED) } else { String::new() };
            format!(" What it had changed by then is recorded and can be taken back: {names}{rest}.")
        }
    };
    format!("{changed}{kept}")
}
