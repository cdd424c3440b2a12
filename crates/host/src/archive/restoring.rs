//! A rewind or an undo that outlives its process.
//!
//! What is about to be put back is written down before the first file is touched, and away once the journal has it. Whoever
//! finds such a note and nobody at work finishes it: what is as it was is put back, what was put back already is recorded,
//! and what somebody changed since is left alone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lathe_blobs::{Durable, replace};
use lathe_changes::restore::{self, RestoreOutcome, RestoreStep};
use lathe_changes::{RestoreTarget, TreeChange};
use lathe_journal::Journal;
use lathe_protocol::{
    CallId, Change, CommandTaken, Digest, Draft, EventPlace, Fact, FilesRestored, RewindUndone, Rewound,
    RunNo, Seq, SessionId, SessionOpened, StepNo,
};
use lathe_tools::journal_changes;
use lathe_workspace::lock_naming;
use serde::{Deserialize, Serialize};

use crate::archive::Archive;
use crate::archive::layouts::leave_repositories;
use crate::archive::quarantine::{Exchanged, left_whole};
use crate::error::HostError;
use crate::session::folder::{folder_or_gone, identity};
use crate::session::{beginning, now};

/// What is put back, and what the journal is told of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Restoring {
    /// Whose private names may be left in the tree.
    pub(crate) pid: u32,
    /// The last event before it: what of it is in the journal already comes after this.
    pub(crate) after: Seq,
    pub(crate) run: RunNo,
    pub(crate) to: Option<StepNo>,
    pub(crate) undoes: Option<Seq>,
    /// The rewind of the conversation that is taken back with it.
    pub(crate) rewind: Option<Seq>,
    /// Where the conversation goes back to with it.
    pub(crate) rewound: Option<StepNo>,
    /// The command that wanted it, with what it was to do.
    #[serde(default)]
    pub(crate) taken: Option<CommandTaken>,
    pub(crate) conflicts: Vec<String>,
    /// From what is there to what is wanted.
    pub(crate) changes: Vec<Change>,
    /// Entries of the quarantine that are put back after the files.
    #[serde(default)]
    pub(crate) back: Vec<String>,
    /// Entries that are taken away again before the files.
    #[serde(default)]
    pub(crate) again: Vec<String>,
}

impl Archive {
    fn restoring_file(&self, id: &SessionId) -> PathBuf {
        self.scratch(id).join("restoring")
    }

    /// Whether a rewind or undo of a session was cut off.
    pub(crate) fn is_restoring(&self, id: &SessionId) -> bool {
        self.restoring_file(id).exists()
    }

    /// Does what is written down, once it is durable that it will be done. Gives what could not be done.
    pub(crate) fn restore(
        &self,
        journal: &mut Journal,
        opened: &SessionOpened,
        restoring: &Restoring,
    ) -> Result<(RestoreOutcome, Exchanged), HostError> {
        let file = self.restoring_file(journal.id());
        let write = || -> std::io::Result<()> {
            let folder = self.scratch(journal.id());
            std::fs::create_dir_all(&folder)?;
            let note = serde_json::to_string(restoring)?;
            replace(&file, format!("{}\n{note}", Digest::of(note.as_bytes())).as_bytes(), Durable::Name)
        };
        write().map_err(|error| {
            let reason = format!("what is put back cannot be noted down in {}: {error}", file.display());
            HostError::of_disk(&error, reason, |reason| HostError::Restore { reason, disk_full: false })
        })?;
        self.carry_out(journal, opened, restoring)
    }

    /// Finishes what a killed process began.
    pub(crate) fn finish_restoring(&self, journal: &mut Journal) -> Result<(), HostError> {
        let file = self.restoring_file(journal.id());
        let Ok(bytes) = std::fs::read(&file) else { return Ok(()) };
        // The note got its name when it was whole, so what cannot be read was acted on.
        let restoring = noted(&bytes).ok_or_else(|| {
            HostError::Rewind(format!(
                "an undo or rewind was cut off, and its note {} is damaged. Files may have been put back in part: look at them, \
                 and remove the note",
                file.display()
            ))
        })?;
        let (opened, _) = beginning(&journal.reader()?)?;
        let root = &*folder_or_gone(&opened)?;
        let paths = restoring.changes.iter().map(|change| TreeChange::from(change).path);
        restore::sweep(root, paths, restoring.pid);
        self.carry_out(journal, &opened, &restoring)?;
        let Some(taken) = restoring.taken else { return Ok(()) };
        let place = EventPlace::in_run(restoring.run);
        journal.append(now(), Draft { place, fact: taken.into() })?;
        Ok(())
    }

    fn carry_out(
        &self,
        journal: &mut Journal,
        opened: &SessionOpened,
        restoring: &Restoring,
    ) -> Result<(RestoreOutcome, Exchanged), HostError> {
        let wrong = HostError::from;
        let (root, blobs) = (&*folder_or_gone(opened)?, self.home().blobs()?);
        let changes: Vec<TreeChange> = restoring.changes.iter().map(TreeChange::from).collect();
        let wanted: Vec<RestoreTarget> = changes.iter().map(RestoreTarget::of).collect();
        let (quarantine, by, mut exchanged) = (self.quarantine(), restoring.after.0, Exchanged::default());
        // Before the folders that they lie in, and after them.
        for id in &restoring.again {
            let taken = quarantine.undo_restore(id, by);
            exchanged.again.push(taken.unwrap_or_else(|error| left_whole(id, error)));
        }
        let one = lock_naming();
        let mut plan = restore::plan_again(&wanted, &blobs, root).map_err(wrong)?;
        leave_repositories(&mut plan, root);
        let mut applied = restore::apply(&plan, &blobs, root).map_err(wrong)?;
        drop(one);
        // What an earlier try put back is its doing too; what it began counts from where it began.
        let mut done: BTreeMap<PathBuf, TreeChange> =
            applied.changes.into_iter().map(|change| (change.path.clone(), change)).collect();
        for (planned, change) in plan.iter().zip(&changes) {
            if done.contains_key(&change.path) || planned.step == RestoreStep::AlreadyThere {
                done.insert(change.path.clone(), change.clone());
            }
        }
        applied.changes = done.into_values().collect();
        for id in &restoring.back {
            let back = quarantine.restore_undoably(id, by, &blobs);
            exchanged.back.push(back.unwrap_or_else(|error| left_whole(id, error)));
        }
        let told: Vec<Fact> = journal
            .reader()?
            .after(restoring.after, usize::MAX)?
            .into_iter()
            .map(|event| event.fact)
            .collect();
        let mut append = |fact: Fact| {
            let place = EventPlace::in_run(restoring.run);
            let is_told = told.iter().any(|told| told.kind() == fact.kind());
            if is_told { Ok(()) } else { journal.append(now(), Draft { place, fact }).map(drop) }
        };
        // First the branch is what it was, then the files are: the restoring belongs to that branch.
        if let Some(rewind) = restoring.rewind {
            append(RewindUndone { rewind }.into())?;
        }
        let by = CallId::new("rewind");
        let mut conflicts = restoring.conflicts.clone();
        conflicts.extend(applied.left.iter().map(|left| shown(root, &left.wanted.path)));
        conflicts.dedup();
        let changes = journal_changes(applied.changes.clone(), &by, &self.screen());
        // Going back may have made the folder itself again.
        let folder = identity(root).filter(|now| opened.folder.is_some_and(|was| was.inode != now.inode));
        let (to, undoes) = (restoring.to, restoring.undoes);
        append(FilesRestored { to, undoes, changes, conflicts, folder }.into())?;
        if let Some(to) = restoring.rewound {
            append(Rewound { to }.into())?;
        }
        let _ = std::fs::remove_file(self.restoring_file(journal.id()));
        Ok((applied, exchanged))
    }
}

/// The note, if it is what was written. Versions before the checksum wrote no first line.
fn noted(bytes: &[u8]) -> Option<Restoring> {
    let text = std::str::from_utf8(bytes).ok()?;
    let note = match text.split_once('\n') {
        Some((sum, note)) => Some(note).filter(|note| Digest::of(note.as_bytes()).as_str() == sum)?,
        None => text,
    };
    serde_json::from_str(note).ok()
}

pub(crate) fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}
