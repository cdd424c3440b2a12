//! What a killed process left behind, written down at the next look.
//!
//! A call that had begun and has no result may have changed files. Before it began, how the tree was went to disk (a line:
//! `lathe_changes::recover`; a file tool: its pledge). Whoever looks at the session next, and finds that nobody has it
//! open, compares the tree with that and closes the call with what it changed: from then on undo, rewind, diff and show
//! know of it like of any other change.

use std::path::{Path, PathBuf};

use lathe_changes::{
    BackgroundLine, Compared, Pledges, QuarantineEntry, Recovered, TrackerOptions, TreeChange, Watch,
    read_background_note, remove_background_note,
};
use lathe_journal::{Journal, JournalError, SessionReader};
use lathe_protocol::{
    CallFinished, CallId, Dangling, Draft, EventPlace, RunNo, SessionId, interrupted_result,
};
use lathe_tools::{background_event, journal_changes};
use lathe_workspace::{LocalTree, Workspace};

use crate::archive::Archive;
use crate::error::HostError;
use crate::session::folder::same_folder;
use crate::session::{beginning, now};

/// Files, links and folders of a tree whose changes by shell lines can be taken back.
const TRACKED_FILES: usize = 200_000;

/// Paths that the result of an interrupted call names.
const NAMED: usize = 20;

impl Archive {
    /// Where the file tools of a session write down what they are about to change.
    pub(crate) fn pledges(&self, id: &SessionId) -> Pledges {
        Pledges::of(&self.scratch(id))
    }

    pub(crate) fn scratch(&self, id: &SessionId) -> PathBuf {
        self.home().baselines().join(id.as_str())
    }

    /// Knows what shell lines change. A root that is the whole machine, or holds Lathe's own folder, is too much to watch; one
    /// that is not of this machine cannot be looked at.
    pub(crate) fn tracking(
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

    /// Closes what a killed process left open in a session, if nobody has it open now. A session that cannot be mended
    /// is read as it is: whoever goes on with it is told why.
    pub(crate) fn mend_left(&self, id: &SessionId) -> Result<(), HostError> {
        let reader = SessionReader::open(&self.home().sessions(), id, self.home().blobs()?)?;
        let has_left = read_background_note(&self.scratch(id)).is_some();
        if !self.is_restoring(id) && !has_left && !reader.dangling()?.iter().any(|call| call.started) {
            return Ok(());
        }
        drop(reader);
        match Journal::open(&self.home().sessions(), id, self.home().blobs()?) {
            Ok(mut journal) => {
                let mended = self.mend(&mut journal);
                journal.close()?;
                match mended {
                    // The folder is gone or another one: what the call changed in it cannot be looked at.
                    Err(HostError::Folder { .. }) => Ok(()),
                    mended => mended,
                }
            }
            // It runs, or cannot be written just now.
            Err(JournalError::Held { .. } | JournalError::Denied { .. } | JournalError::Busy { .. }) => {
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The same for whoever holds the session.
    pub(crate) fn mend(&self, journal: &mut Journal) -> Result<(), HostError> {
        self.finish_restoring(journal)?;
        let calls = journal.dangling()?;
        let begun: Vec<&Dangling> = calls.iter().filter(|call| call.started).collect();
        let id = journal.id().clone();
        let left = read_background_note(&self.scratch(&id));
        if !begun.is_empty() || left.is_some() {
            let (opened, _) = beginning(&journal.reader()?)?;
            let root = same_folder(&opened)?;
            // A file that was written half, and a folder made for it, are gone before the tree is looked at.
            let workspace = self.home().recovered(self.home().workspace(&root))?;
            // Before git is started there.
            let kept = self.kept();
            let aside = self.noted_aside(&id);
            let line = self.changed_by_line(&id, &workspace);
            let found = self.changed_by(&id, &root, &begun, &line);
            let kept: Vec<QuarantineEntry> =
                kept.into_iter().filter(|kept| kept.session.as_deref() == Some(id.as_str())).collect();
            journal.repair_with(now(), |call| {
                let compared = found.iter().find(|(known, _)| *known == call.call.as_str());
                let kept: Vec<&QuarantineEntry> =
                    kept.iter().filter(|kept| kept.call == call.call.as_str()).collect();
                let mut closed = self.closed(call, compared.map(|(_, compared)| compared), &kept);
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
            self.forget_aside(&id);
            self.note(&id);
        }
        lathe_changes::discard(&self.scratch(&id));
        remove_background_note(&self.scratch(&id));
        Ok(())
    }

    /// Records what processes of a line changed after its end, until they were killed with the process that ran them.
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
        let changes = journal_changes(found.changes, &call, &self.screen());
        let ran = background_event(left.line, root.display().to_string(), changes);
        journal.append(now(), Draft { place: EventPlace { cause: None, ..place }, fact: ran.into() })?;
        Ok(())
    }

    /// The changes of the tree since the last line of a killed process began.
    fn changed_by_line(&self, id: &SessionId, workspace: &Workspace) -> Result<Option<Recovered>, String> {
        self.keep_outputs(id, workspace.root(), &[])
            .and_then(|outputs| self.tracking(id, workspace, outputs))
            .map_err(|error| error.to_string())
            .and_then(|options| {
                options.map_or(Ok(None), |options| {
                    lathe_changes::recover(options).map_err(|error| error.to_string())
                })
            })
    }

    /// The changes of each of these calls, or the reason why they cannot be told.
    fn changed_by<'c>(
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
                (Ok(Some(line)), edits) if line.line == name => Ok(joined(&line.compared, edits.ok())),
                (Err(error), _) => Err(error.clone()),
                (Ok(_), edits) => edits,
            };
            (name, found)
        };
        calls.iter().map(one).collect()
    }

    /// The result of a call that was interrupted.
    fn closed(
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
                let screen = self.screen();
                finished.changes = journal_changes(compared.changes.clone(), &call.call, &screen);
                let held = |path: &Path| {
                    let repositories = kept.iter().flat_map(|kept| &kept.repositories).map(|one| &one.path);
                    let mut taken = kept.iter().flat_map(|kept| &kept.trees).chain(repositories);
                    taken.any(|tree| path.starts_with(tree))
                };
                let lost = compared.not_undoable.iter().filter(|lost| !held(&lost.path)).take(NAMED);
                finished.not_undoable =
                    lost.map(|lost| format!("{}: {}", lost.path.display(), lost.why)).collect();
                more.push_str(&told(&finished, kept));
            }
        }
        finished.text.push_str(&more);
        if let Some(error) = &mut finished.error {
            error.message.push_str(&more);
        }
        finished
    }
}

/// What a line changed by the look at the tree, and what its commands say beside.
fn joined(line: &Compared, edits: Option<Compared>) -> Compared {
    let mut all = line.clone();
    let is_known = |path: &Path| {
        line.changes.iter().any(|change| change.path == path)
            || line.not_undoable.iter().any(|lost| lost.path == path)
    };
    let edits: Vec<TreeChange> = edits.map(|edits| edits.changes).unwrap_or_default();
    // What the look found to be as it was is no change, whatever a command did and undid.
    all.changes
        .extend(edits.into_iter().filter(|change| !is_known(&change.path) && line_skips(line, change)));
    all
}

/// Whether the look at the tree does not go where this change is.
fn line_skips(line: &Compared, change: &TreeChange) -> bool {
    line.not_undoable.iter().any(|lost| change.path.starts_with(&lost.path))
}

fn told(finished: &CallFinished, kept: &[&QuarantineEntry]) -> String {
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
